//! Indices of elements.

use crate::LoopVar;
use smallvec::SmallVec;

/// An affine function of loop variables, in elements: `64*k0 + l0 + 3`.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub struct Index {
    /// The constant term.
    pub offset: i64,
    /// The terms in order of the variables, no coefficient 0.
    terms: SmallVec<[(LoopVar, i64); 2]>,
}

// A derived clone copies term by term.
impl Clone for Index {
    fn clone(&self) -> Index {
        Index { offset: self.offset, terms: SmallVec::from_slice(&self.terms) }
    }
}

impl Index {
    /// A constant.
    pub fn constant(offset: i64) -> Index {
        Index { offset, terms: SmallVec::new() }
    }

    /// `coefficient * var`.
    pub fn term(var: LoopVar, coefficient: i64) -> Index {
        Index::default().plus(var, coefficient)
    }

    /// This plus `coefficient * var`.
    pub fn plus(mut self, var: LoopVar, coefficient: i64) -> Index {
        self.increase(var, coefficient);
        self
    }

    /// Adds `coefficient * var`.
    fn increase(&mut self, var: LoopVar, coefficient: i64) {
        match self.terms.binary_search_by_key(&var, |&(v, _)| v) {
            Ok(at) if self.terms[at].1 + coefficient == 0 => {
                self.terms.remove(at);
            }
            Ok(at) => self.terms[at].1 += coefficient,
            Err(at) if coefficient != 0 => self.terms.insert(at, (var, coefficient)),
            Err(_) => {}
        }
    }

    /// This plus a constant.
    pub fn offset_by(mut self, offset: i64) -> Index {
        self.offset += offset;
        self
    }

    /// The coefficient of a variable; 0 where it does not occur.
    pub fn coefficient(&self, var: LoopVar) -> i64 {
        self.terms.iter().find(|&&(v, _)| v == var).map_or(0, |&(_, c)| c)
    }

    /// The variables that occur with their coefficients, none of them 0, in order of the variables.
    pub fn terms(&self) -> impl Iterator<Item = (LoopVar, i64)> + '_ {
        self.terms.iter().copied()
    }

    /// Returns true if no variable occurs.
    pub fn is_constant(&self) -> bool {
        self.terms.is_empty()
    }

    /// The index times a factor.
    pub fn times(&self, factor: i64) -> Index {
        let mut product = Index::default();
        product.increase_by(self, factor);
        product
    }

    /// The sum of both.
    pub fn add(&self, other: &Index) -> Index {
        let mut sum = self.clone();
        sum.increase_by(other, 1);
        sum
    }

    /// Adds an index times a factor.
    fn increase_by(&mut self, other: &Index, factor: i64) {
        self.offset += other.offset * factor;
        other.terms().for_each(|(var, c)| self.increase(var, c * factor));
    }

    /// Puts `replacement` in place of a variable.
    pub fn substitute(&mut self, var: LoopVar, replacement: &Index) {
        let c = self.coefficient(var);
        if c != 0 {
            self.increase(var, -c);
            self.increase_by(replacement, c);
        }
    }

    /// The index with `replacement` in place of a variable.
    pub fn substituted(mut self, var: LoopVar, replacement: &Index) -> Index {
        self.substitute(var, replacement);
        self
    }
}
