//! The ranges of loop variables and indices.

use crate::{Extent, Index, LoopVar, Over};
use rustc_hash::FxHashMap;

/// The variables bound at the place reached, outermost first.
#[derive(Default)]
pub(super) struct Bindings {
    stack: Vec<Binding>,
    /// The number of open loops, and of those among them that make no iteration.
    loops: usize,
    empty: usize,
}

/// A variable and its values; there are none where `most` is below `least`.
#[derive(Clone, Copy)]
struct Binding {
    var: LoopVar,
    /// The extent that bounds the variable of a loop or `pick`; none for one of `carry`.
    extent: Option<Extent>,
    least: i128,
    most: i128,
    /// The lanes of a line, for a variable of `misalign`.
    lanes: Option<u64>,
    /// The number of loops that its value depends on: the loops around the loop or `carry` that binds it.
    depth: usize,
}

/// A term of an index: the coefficient and the values of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Term {
    pub(super) var: LoopVar,
    pub(super) coefficient: i64,
    pub(super) least: i128,
    pub(super) most: i128,
    /// The number of loops around the loop, `carry` or `pick` that binds the variable.
    pub(super) depth: usize,
}

impl Term {
    /// The term of the lanes of one statement, or of their runs, whose variable no loop binds; `number` tells them apart.
    pub(super) fn within_statement(number: u32, coefficient: i64, lanes: u64) -> Term {
        let var = LoopVar { over: Over::Start, id: u32::MAX - number };
        Term { var, coefficient, least: 0, most: i128::from(lanes) - 1, depth: usize::MAX }
    }
}

/// A state of the bindings to return to.
pub(super) struct Mark {
    len: usize,
    loops: usize,
    empty: usize,
    /// A variable of `carry` or `misalign` that is known to be positive within the loop.
    positive: Option<(usize, i128)>,
}

impl Bindings {
    /// The number of open loops.
    pub(super) fn loops(&self) -> usize {
        self.loops
    }

    /// Returns true if one of the open loops makes no iteration.
    pub(super) fn never_runs(&self) -> bool {
        self.empty > 0
    }

    pub(super) fn is_bound(&self, var: LoopVar) -> bool {
        self.position(var).is_some()
    }

    /// Returns true if the variable is bound by `carry`.
    pub(super) fn is_carry(&self, var: LoopVar) -> bool {
        self.position(var).is_some_and(|i| self.stack[i].extent.is_none())
    }

    /// Returns whether the variable is bound by `misalign` in so many lanes.
    pub(super) fn is_in_line(&self, var: LoopVar, lanes: u64) -> bool {
        self.position(var).is_some_and(|i| self.stack[i].lanes == Some(lanes))
    }

    /// Returns whether the variable is bound by `misalign`.
    pub(super) fn is_place(&self, var: LoopVar) -> bool {
        self.position(var).is_some_and(|i| self.stack[i].lanes.is_some())
    }

    fn position(&self, var: LoopVar) -> Option<usize> {
        self.stack.iter().rposition(|b| b.var == var)
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { len: self.stack.len(), loops: self.loops, empty: self.empty, positive: None }
    }

    /// The most iterations a loop of this extent makes.
    pub(super) fn most_iterations(&self, extent: Extent) -> i128 {
        match extent {
            Extent::Const(n) | Extent::From(_, n) | Extent::Below(_, n) => i128::from(n),
            // Where nothing binds the variable, which is reported, any number will do.
            Extent::Carry(var) => self.position(var).map_or(1, |i| self.stack[i].most),
        }
    }

    /// Opens a loop.
    pub(super) fn enter(&mut self, var: LoopVar, extent: Extent) -> Mark {
        let mut mark = self.mark();
        let most = self.most_iterations(extent) - 1;
        if let Extent::Carry(q) | Extent::Below(q, _) = extent
            && let Some(i) = self.position(q)
        {
            mark.positive = Some((i, self.stack[i].least));
            self.stack[i].least = self.stack[i].least.max(1);
        }
        self.stack.push(Binding { var, extent: Some(extent), least: 0, most, lanes: None, depth: self.loops });
        self.loops += 1;
        self.empty += usize::from(most < 0);
        mark
    }

    /// Binds a variable to the number of trailing ones of an index that is at most `most_index`.
    pub(super) fn carry(&mut self, var: LoopVar, most_index: i128) {
        let most = i128::from(most_index.max(0).saturating_add(1).ilog2());
        self.stack.push(Binding { var, extent: None, least: 0, most, lanes: None, depth: self.loops });
    }

    /// Binds a variable to a number from 0 to `most`.
    pub(super) fn pick(&mut self, var: LoopVar, most: u64) {
        let extent = Some(Extent::Const(most.saturating_add(1)));
        self.stack.push(Binding { var, extent, least: 0, most: most.into(), lanes: None, depth: self.loops });
    }

    /// Binds a variable to a place in a line of so many lanes.
    pub(super) fn misalign(&mut self, var: LoopVar, lanes: u64) {
        self.pick(var, lanes.saturating_sub(1));
        if let Some(bound) = self.stack.last_mut() {
            bound.lanes = Some(lanes);
        }
    }

    /// Forgets the variables bound since the mark.
    pub(super) fn leave(&mut self, mark: Mark) {
        self.stack.truncate(mark.len);
        (self.loops, self.empty) = (mark.loops, mark.empty);
        if let Some((i, least)) = mark.positive {
            self.stack[i].least = least;
        }
    }

    /// The terms of an index with their values; none if a variable is not bound.
    pub(super) fn terms(&self, index: &Index) -> Option<Vec<Term>> {
        let term = |(var, coefficient)| {
            let b = self.stack[self.position(var)?];
            Some(Term { var, coefficient, least: b.least, most: b.most, depth: b.depth })
        };
        index.terms().map(term).collect()
    }

    /// The least and the greatest value an index may have, whose variables are all bound; none if they
    /// may be too large for the arithmetic used here, and so for any buffer.
    ///
    /// Exact for independent loops, and for a loop that begins or ends at a variable together with that variable.
    pub(super) fn bounds(&self, index: &Index) -> Option<(i128, i128)> {
        self.extreme(index, false).zip(self.extreme(index, true))
    }

    /// The least or the greatest value; none if it overflows.
    fn extreme(&self, index: &Index, greatest: bool) -> Option<i128> {
        let mut coefficients: FxHashMap<LoopVar, i128> = index.terms().map(|(v, c)| (v, i128::from(c))).collect();
        let mut sum = i128::from(index.offset);
        // Innermost first, since the range of a variable may be another further out.
        for b in self.stack.iter().rev() {
            let Some(c) = coefficients.remove(&b.var) else { continue };
            let at_most = (c > 0) == greatest;
            match b.extent {
                // c * most = c * (q - 1).
                Some(Extent::Carry(q) | Extent::Below(q, _)) if at_most => {
                    *coefficients.entry(q).or_default() += c;
                    sum = sum.checked_sub(c)?;
                }
                Some(Extent::From(q, _)) if !at_most => *coefficients.entry(q).or_default() += c,
                _ => sum = sum.checked_add(c.checked_mul(if at_most { b.most } else { b.least })?)?,
            }
        }
        Some(sum)
    }
}
