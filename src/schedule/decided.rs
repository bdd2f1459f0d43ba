//! A problem with its schedule and its vectors.
//!
//! The width, the vectors and the schedule are resolved here and nowhere else; from here on they travel as one value.
//!
//! ```text
//! vectors of the target -> of at most the width asked for (Bounds) -> of at most the schedule's width (Decided)
//! ```

use super::choose::choose_with_computation;
use super::{Schedule, ScheduleError};
use crate::problem::Problem;
use crate::vectors::Vectors;
use cranefold_ir::Nest;
use cranefold_ir::ops::Computation;
use std::fmt;
use std::sync::Arc;

/// The bounds of a decision: the vectors that code may use, and the number of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// The widest vectors that code may use.
    pub vectors: Vectors,
    /// Bits of the widest vector that may be chosen: those of `vectors`, or fewer than any vectors have.
    pub width: u32,
    /// The number of threads that parts are chosen for.
    pub threads: usize,
}

impl Bounds {
    /// The bounds of one thread on a target with these vectors.
    pub fn new(vectors: Vectors) -> Bounds {
        Bounds { vectors, width: vectors.bits, threads: 1 }
    }

    /// The bounds with vectors of at most `width` bits.
    ///
    /// ```
    /// use cranefold::Vectors;
    /// use cranefold::schedule::Bounds;
    ///
    /// let bounds = Bounds::new(Vectors::WIDEST);
    /// assert_eq!(bounds.at_most(1024), bounds);
    /// assert_eq!(bounds.at_most(256).vectors, Vectors { bits: 256, ..Vectors::BASE });
    /// assert_eq!((bounds.at_most(0).width, bounds.at_most(0).vectors), (0, Vectors::BASE));
    /// ```
    pub fn at_most(self, width: u32) -> Bounds {
        let width = width.min(self.width);
        Bounds { vectors: self.vectors.at_most(width), width, ..self }
    }

    /// The part of the bounds that matters if this schedule is forced: its vectors. The schedule itself has the width
    /// and the parts.
    pub fn of_forced(self, schedule: &Schedule) -> Bounds {
        Bounds::new(self.at_most(schedule.width).vectors)
    }
}

/// The meaning that code is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A problem, which a schedule puts into nests.
    Problem(Arc<Problem>),
    /// A naive nest of a problem's partial results.
    Part(Arc<Problem>, Arc<Nest>),
    /// A nest that a caller gives, which keeps its loops.
    Nest(Arc<Nest>),
}

impl Source {
    /// The problem that the code is of; none of a nest that a caller gives.
    pub fn problem(&self) -> Option<&Arc<Problem>> {
        match self {
            Source::Problem(problem) | Source::Part(problem, _) => Some(problem),
            Source::Nest(_) => None,
        }
    }
}

impl From<Problem> for Source {
    fn from(problem: Problem) -> Source {
        Source::Problem(problem.into())
    }
}

impl From<Arc<Problem>> for Source {
    fn from(problem: Arc<Problem>) -> Source {
        Source::Problem(problem)
    }
}

/// A source of code with its schedule and the vectors that its code is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The source.
    pub source: Source,
    /// The schedule, which fits the problem; of a nest that a caller gives, its width alone counts.
    pub schedule: Schedule,
    /// The vectors of its code.
    pub vectors: Vectors,
    /// True if the schedule was forced; tests may not cover it.
    pub is_forced: bool,
    /// The reason if vectors are narrower than intended.
    pub narrowed: Option<Narrowed>,
}

/// The reason for vectors narrower than intended: wider ones have no form for an operation of the problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Narrowed {
    /// Bits of the wider vectors.
    from: u32,
    /// Bits of the narrower vectors.
    to: u32,
    /// The operation without a form.
    what: String,
}

impl fmt::Display for Narrowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bits: {} bits have no form for {}", self.to, self.from, self.what)
    }
}

impl Decided {
    /// Decides by the forced schedule, or else chooses one within the bounds.
    ///
    /// ```
    /// use cranefold::schedule::{Bounds, Decided};
    /// use cranefold::{Problem, Spec, Vectors};
    ///
    /// let spec: Spec = "max f32[8,1000] axes=[1]".parse()?;
    /// let bounds = Bounds::new(Vectors::WIDEST);
    /// let chosen = Decided::of(Problem::of(&spec), None, bounds)?;
    /// assert_eq!(chosen.schedule.to_string(), "width=512 form=direct jam=1 in_flight=1 align=64");
    /// let forced = Decided::of(chosen.source, Some(&"width=256".parse()?), bounds)?;
    /// assert_eq!((forced.vectors.bits, forced.is_forced), (256, true));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ScheduleError`] if the forced schedule does not fit the problem, or says more of a nest than its width.
    pub fn of(source: impl Into<Source>, forced: Option<&Schedule>, bounds: Bounds) -> Result<Decided, ScheduleError> {
        Decided::with_computation(source, forced, bounds).map(|(decided, _)| decided)
    }

    /// Decides as [`of`](Decided::of); the computation is that of the schedule, if its choice needed it.
    pub(crate) fn with_computation(
        source: impl Into<Source>,
        forced: Option<&Schedule>,
        bounds: Bounds,
    ) -> Result<(Decided, Option<Computation>), ScheduleError> {
        let source = source.into();
        let mut computation = None;
        let schedule = match (&source, forced) {
            (Source::Problem(problem), Some(forced)) => {
                forced.check(problem)?;
                forced.clone()
            }
            (Source::Problem(problem), None) => {
                let (schedule, of_schedule) = choose_with_computation(problem, bounds.width, bounds.threads);
                computation = of_schedule;
                schedule
            }
            // The forced one was chosen for the whole problem.
            (Source::Part(..), forced) => forced.cloned().unwrap_or_default(),
            (Source::Nest(_), Some(forced)) => {
                forced.check_of_nest()?;
                forced.clone()
            }
            (Source::Nest(_), None) => Schedule { width: bounds.width, ..Schedule::default() },
        };
        let vectors = bounds.vectors.at_most(schedule.width);
        Ok((Decided { source, schedule, vectors, is_forced: forced.is_some(), narrowed: None }, computation))
    }

    /// The same decision, made instead of one whose vectors have no form for `what`.
    pub(crate) fn instead_of(self, wide: &Decided, what: String) -> Decided {
        let narrowed = Narrowed { from: wide.vectors.bits, to: self.vectors.bits, what };
        Decided { narrowed: Some(narrowed), ..self }
    }
}
