//! A problem with all that is decided of its code.
//!
//! The width, the vectors and the schedule are resolved here and nowhere else; from here on they travel as one value.
//!
//! ```text
//! vectors of the target -> of at most the width asked for (Bounds) -> of at most the schedule's width (Decided)
//! ```

use super::choose::choose_for;
use super::{Schedule, ScheduleError};
use crate::problem::Problem;
use crate::vectors::Vectors;
use std::fmt;
use std::sync::Arc;

/// The bounds of a decision: what code may be made of, and for how many threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// The widest vectors that code may be made of.
    pub vectors: Vectors,
    /// Bits of the widest vector that may be chosen: those of `vectors`, or less than the narrowest have.
    pub width: u32,
    /// Threads that parts may be chosen for.
    pub threads: usize,
}

impl Bounds {
    /// The bounds of one thread on a target with these vectors.
    pub fn new(vectors: Vectors) -> Bounds {
        Bounds { vectors, width: vectors.bits, threads: 1 }
    }

    /// The bounds with vectors of at most so many bits.
    ///
    /// ```
    /// use cranefold::Vectors;
    /// use cranefold::schedule::Bounds;
    ///
    /// let bounds = Bounds::new(Vectors::WIDEST);
    /// assert_eq!(bounds.at_most(1024), bounds);
    /// assert_eq!(bounds.at_most(256).vectors, Vectors { bits: 256, dot: false });
    /// assert_eq!((bounds.at_most(0).width, bounds.at_most(0).vectors), (0, Vectors::BASE));
    /// ```
    pub fn at_most(self, width: u32) -> Bounds {
        let width = width.min(self.width);
        Bounds { vectors: self.vectors.at_most(width), width, ..self }
    }

    /// The bounds that still tell something where this schedule is forced: it chooses nothing by the width, and says its parts
    /// itself.
    pub fn of_forced(self, schedule: &Schedule) -> Bounds {
        Bounds::new(self.at_most(schedule.width).vectors)
    }
}

/// A problem with its schedule and the vectors that its code is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The problem.
    pub problem: Arc<Problem>,
    /// The schedule, which fits the problem.
    pub schedule: Schedule,
    /// The vectors that code is made of.
    pub vectors: Vectors,
    /// Whether the schedule was forced, so that perhaps no test has seen its like.
    pub is_forced: bool,
    /// The reason of vectors that are narrower than they were to be.
    pub narrowed: Option<Narrowed>,
}

/// The reason of vectors that are narrower than they were to be: wider ones have no form for something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Narrowed {
    /// Bits of the wider vectors.
    from: u32,
    /// Bits of the vectors instead.
    to: u32,
    /// The thing without a form.
    what: String,
}

impl fmt::Display for Narrowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bits: {} bits have no form for {}", self.to, self.from, self.what)
    }
}

impl Decided {
    /// Decides by the schedule that is forced, or else chooses one within the bounds.
    ///
    /// ```
    /// use cranefold::schedule::{Bounds, Decided};
    /// use cranefold::{Problem, Spec, Vectors};
    ///
    /// let spec: Spec = "max f32[8,1000] axes=[1]".parse()?;
    /// let bounds = Bounds::new(Vectors::WIDEST);
    /// let chosen = Decided::of(Problem::of(&spec), None, bounds)?;
    /// assert_eq!(chosen.schedule.to_string(), "width=512 form=direct jam=1 in_flight=1 align=64");
    /// let forced = Decided::of(chosen.problem, Some(&"width=256".parse()?), bounds)?;
    /// assert_eq!((forced.vectors.bits, forced.is_forced), (256, true));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ScheduleError`] if the forced schedule does not fit the problem.
    pub fn of(
        problem: impl Into<Arc<Problem>>,
        forced: Option<&Schedule>,
        bounds: Bounds,
    ) -> Result<Decided, ScheduleError> {
        let problem = problem.into();
        let schedule = match forced {
            Some(forced) => {
                forced.check(&problem)?;
                forced.clone()
            }
            None => choose_for(&problem, bounds.width, bounds.threads),
        };
        let vectors = bounds.vectors.at_most(schedule.width);
        Ok(Decided { problem, schedule, vectors, is_forced: forced.is_some(), narrowed: None })
    }

    /// The decision for one nest of a problem's partial results, by a schedule that was chosen for the whole problem.
    pub(crate) fn for_nest(problem: Arc<Problem>, schedule: Schedule, vectors: Vectors) -> Decided {
        let vectors = vectors.at_most(schedule.width);
        Decided { problem, schedule, vectors, is_forced: true, narrowed: None }
    }

    /// The same decision, made instead of one whose vectors have no form for `what`.
    pub(crate) fn instead_of(self, wide: &Decided, what: String) -> Decided {
        let narrowed = Narrowed { from: wide.vectors.bits, to: self.vectors.bits, what };
        Decided { narrowed: Some(narrowed), ..self }
    }
}
