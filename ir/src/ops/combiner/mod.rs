//! Combiners of the user's own: phases as expressions.

mod build;
mod contract;

use super::recipe::RecipeError;
use crate::expression::Expression;
use std::fmt;

/// A reducer whose fields are expressions.
///
/// | field | names | gives |
/// | --- | --- | --- |
/// | `identity` | | the state of no element, which has the state's types |
/// | `lift` | the elements `x0`, `x1`, ...; the position `i` in the slice (`i64`); results `r0`, ... of earlier phases | the state of one element |
/// | `combine` | the older state `a0`, `a1`, ... and the newer `b0`, `b1`, ... | the state of both |
/// | `close` | the state `a0`, ... of a block and the number `n` of its elements | the phase's results; by default the state |
/// | `merge` | the results of all phases, `a0`, ... of the older and `b0`, ... of the newer block | the results of both |
/// | `finish` | the state `a0`, ..., with several phases all results; the number `n` of elements | the outputs |
///
/// `combine` and `merge` are associative by contract and `identity` is neutral: [`Combiner::check`] tests
/// it. Only with `commutative` may elements be combined in another order than the slice's; without it
/// there are no lanes and no reordered loops, which is slower.
///
/// ```
/// use cranefold_ir::ops::Combiner;
/// use cranefold_ir::DType;
///
/// // Sum and sum of squares in one pass: the mean of squares less the square of the mean.
/// let spread = Combiner::new("0, 0", "x0, x0*x0", "a0 + b0, a1 + b1")?.finish("a1/n - a0*a0/n/n")?.commutative();
/// spread.check(&[DType::F32], DType::F32)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Combiner {
    /// The phases, at least one.
    pub phases: Vec<OwnPhase>,
    /// The combination of two blocks' states, with several phases.
    pub merge: Vec<Expression>,
    /// The outputs.
    pub finish: Vec<Expression>,
    /// True if elements may be combined in any order.
    pub commutative: bool,
}

/// A phase of a combiner.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the table of `Combiner` defines them")]
pub struct OwnPhase {
    pub identity: Vec<Expression>,
    pub lift: Vec<Expression>,
    pub combine: Vec<Expression>,
    pub close: Vec<Expression>,
}

fn list(field: &'static str, text: &str) -> Result<Vec<Expression>, RecipeError> {
    Expression::list(text).map_err(|error| RecipeError::Expression { field, error })
}

impl Combiner {
    /// A combiner of one phase, whose state is its output.
    ///
    /// # Errors
    /// If a text is no list of expressions.
    pub fn new(identity: &str, lift: &str, combine: &str) -> Result<Combiner, RecipeError> {
        let none = Combiner { phases: vec![], merge: vec![], finish: vec![], commutative: false };
        none.phase(identity, lift, combine)
    }

    /// Adds a phase, which starts when the earlier ones have walked the whole block.
    ///
    /// # Errors
    /// As [`new`](Combiner::new).
    pub fn phase(mut self, identity: &str, lift: &str, combine: &str) -> Result<Combiner, RecipeError> {
        let (identity, lift) = (list("identity", identity)?, list("lift", lift)?);
        self.phases.push(OwnPhase { identity, lift, combine: list("combine", combine)?, close: vec![] });
        Ok(self)
    }

    /// Sets `close` of the phase added last: the results that later phases read and the block's state holds.
    ///
    /// # Errors
    /// As [`new`](Combiner::new).
    pub fn close(mut self, close: &str) -> Result<Combiner, RecipeError> {
        self.phases.last_mut().ok_or(RecipeError::MissingField { field: "identity" })?.close = list("close", close)?;
        Ok(self)
    }

    /// Sets the combination of two blocks' states, with several phases.
    ///
    /// # Errors
    /// As [`new`](Combiner::new).
    pub fn merge(mut self, merge: &str) -> Result<Combiner, RecipeError> {
        self.merge = list("merge", merge)?;
        Ok(self)
    }

    /// Sets the outputs.
    ///
    /// # Errors
    /// As [`new`](Combiner::new).
    pub fn finish(mut self, finish: &str) -> Result<Combiner, RecipeError> {
        self.finish = list("finish", finish)?;
        Ok(self)
    }

    /// Declares that elements may be combined in any order.
    #[must_use]
    pub fn commutative(self) -> Combiner {
        Combiner { commutative: true, ..self }
    }

    /// Adds a field by its name; `identity` begins a phase.
    ///
    /// # Errors
    /// If there is no field of this name, no phase for it, or the text is no list of expressions.
    pub fn add(&mut self, name: &str, text: &str) -> Result<(), RecipeError> {
        const FIELDS: [&str; 6] = ["identity", "lift", "combine", "close", "merge", "finish"];
        let unknown = || RecipeError::UnknownPart { name: name.chars().take(40).collect() };
        let field = FIELDS.into_iter().find(|&field| field == name).ok_or_else(unknown)?;
        let expressions = list(field, text)?;
        let repeated = || RecipeError::RepeatedField { field };
        if field == "identity" {
            self.phases.push(OwnPhase { identity: expressions, lift: vec![], combine: vec![], close: vec![] });
            return Ok(());
        }
        let place = match (field, self.phases.last_mut()) {
            ("merge", _) => &mut self.merge,
            ("finish", _) => &mut self.finish,
            (_, None) => return Err(RecipeError::MissingField { field: "identity" }),
            ("lift", Some(phase)) => &mut phase.lift,
            ("combine", Some(phase)) => &mut phase.combine,
            (_, Some(phase)) => &mut phase.close,
        };
        if !place.is_empty() {
            return Err(repeated());
        }
        *place = expressions;
        Ok(())
    }

    /// Returns the combiner, if no field is missing.
    ///
    /// # Errors
    /// The missing field.
    pub fn whole(self) -> Result<Combiner, RecipeError> {
        let several = self.phases.len() > 1 || self.phases.iter().any(|p| !p.close.is_empty());
        let missing = match () {
            _ if self.phases.is_empty() => "identity",
            _ if self.phases.iter().any(|p| p.lift.is_empty()) => "lift",
            _ if self.phases.iter().any(|p| p.combine.is_empty()) => "combine",
            _ if several && self.merge.is_empty() => "merge",
            _ if !several && !self.merge.is_empty() => return Err(RecipeError::MergeOfOnePhase),
            _ => return Ok(self),
        };
        Err(RecipeError::MissingField { field: missing })
    }

    /// The number of outputs.
    pub fn outputs(&self) -> usize {
        if self.finish.is_empty() { self.state_width() } else { self.finish.len() }
    }

    fn state_width(&self) -> usize {
        let width = |p: &OwnPhase| if p.close.is_empty() { p.identity.len() } else { p.close.len() };
        self.phases.iter().map(width).sum()
    }

    /// The combiner with every name that lift reads replaced by its `rename`, if that gives one.
    #[must_use]
    pub fn renamed(&self, rename: impl Fn(&str) -> Option<String> + Copy) -> Combiner {
        let phase = |p: &OwnPhase| OwnPhase { lift: p.lift.iter().map(|f| f.renamed(rename)).collect(), ..p.clone() };
        Combiner { phases: self.phases.iter().map(phase).collect(), ..self.clone() }
    }

    /// Returns true if a lift reads a value of this name.
    pub fn reads(&self, name: &str) -> bool {
        self.phases.iter().flat_map(|p| &p.lift).any(|f| f.uses(name))
    }

    /// Returns true if a lift uses the position.
    pub fn takes_position(&self) -> bool {
        self.reads("i")
    }
}

/// `combiner(identity="0", lift="x0", combine="a0 + b0", commutative)`, which reads back in a spec.
impl fmt::Display for Combiner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = vec![];
        let mut add = |name: &str, expressions: &[Expression]| {
            if !expressions.is_empty() {
                let list: Vec<String> = expressions.iter().map(Expression::to_string).collect();
                parts.push(format!("{name}=\"{}\"", list.join(", ")));
            }
        };
        for phase in &self.phases {
            add("identity", &phase.identity);
            add("lift", &phase.lift);
            add("combine", &phase.combine);
            add("close", &phase.close);
        }
        add("merge", &self.merge);
        add("finish", &self.finish);
        if self.commutative {
            parts.push("commutative".into());
        }
        write!(f, "combiner({})", parts.join(", "))
    }
}
