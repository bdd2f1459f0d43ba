//! The dependence test: two iterations of a parallel loop must not touch the same element.
//!
//! Iterations `v` and `v + d` of a loop of n iterations access elements whose indices are affine.
//! The difference of the indices is `c*d + s + g*m`, where c is the coefficient of the loop's
//! variable, the same in both; s is the sum of the constants and of all terms with a coefficient smaller
//! than |c|, whose least and greatest value is known; and g is the greatest common divisor of the
//! coefficients that are not smaller (m any integer). Variables bound in the loop differ between the
//! iterations, those from outside do not. The elements differ for each 0 < |d| < n if
//!
//! - `c*d + s` lies strictly between two neighbouring multiples of g, where s may also take terms with greater
//!   coefficients and g is the divisor of the remaining ones, or
//! - it meets one multiple of g only, p, and |s - p| < |c|, so that no d but 0 reaches it, or
//! - from the greatest coefficient down to c, the span of the smaller ones leaves each variable one value
//!   for which the difference may be 0, and d only the value 0.
//!
//! For one index in mixed radix, such as `800*i + 100*j + k`, the second is the usual test that each
//! coefficient exceeds the span of those below it; the third is for radices that do not divide one
//! another, such as `5*i + 2*j + k`. They differ as well if the ranges of the two indices do not meet.
//! A pair without a proof counts as a conflict.

use super::bounds::Term;
use super::{Site, Verifier};
use crate::{AccId, BufId, LoopVar, Stmt};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// A read or write of one element.
pub(super) struct Access<'a> {
    pub(super) target: Target,
    /// The number of loops around the declaration of the target.
    pub(super) decl_depth: usize,
    pub(super) write: bool,
    pub(super) offset: i64,
    pub(super) terms: Vec<Term>,
    pub(super) stmt: &'a Stmt,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Target {
    Acc(AccId),
    Buf(BufId),
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Target::Acc(acc) => acc.fmt(f),
            Target::Buf(buf) => buf.fmt(f),
        }
    }
}

impl<'a> Verifier<'a> {
    /// Checks the accesses noted since `first` against each other, at the end of a parallel loop over
    /// `var` of `extent` iterations with `depth` loops around it.
    pub(super) fn conflicts(&mut self, first: usize, var: LoopVar, extent: i128, depth: usize) {
        let mut reports: Vec<(&'a Stmt, String)> = Vec::new();
        let mut seen = FxHashSet::default();
        let mut by_target: FxHashMap<Target, Vec<&Access>> = FxHashMap::default();
        let noted = &self.accesses[first..];
        let distinct: Vec<&Access> = noted
            .iter()
            .filter(|a| a.decl_depth <= depth && seen.insert((a.target, a.write, a.offset, &a.terms)))
            .collect();
        for access in &distinct {
            by_target.entry(access.target).or_default().push(access);
        }
        for write in distinct.iter().filter(|a| a.write) {
            let v = Iterations { var, extent, depth };
            let others = &by_target[&write.target];
            if let Some(other) = others.iter().find(|other| v.collide(write, other) != Some(false)) {
                let target = write.target;
                let does = if other.write { "write" } else { "read and write" };
                reports.push((write.stmt, format!("iterations of {var} may {does} the same element of {target}")));
            }
        }
        for (stmt, message) in reports {
            self.report_in(Site::Stmt(stmt), message);
        }
    }
}

/// The iterations of one loop.
#[derive(Clone, Copy)]
struct Iterations {
    var: LoopVar,
    extent: i128,
    depth: usize,
}

impl Iterations {
    /// Returns false if no two different iterations access the same element, one as `a`, the other as `b`;
    /// none if the arithmetic overflows.
    fn collide(self, a: &Access, b: &Access) -> Option<bool> {
        let own = |access: &Access| access.terms.iter().find(|t| t.var == self.var).map_or(0, |t| t.coefficient);
        let (c, c_b) = (i128::from(own(a)), i128::from(own(b)));
        let last = self.extent - 1;
        let rest = self.difference(a, b)?;
        let constant = rest.constant;

        // The ranges of the whole indices.
        let own_terms = [(c, last), (-c_b, last)];
        let (least, greatest) = range(constant, rest.terms.iter().copied().chain(own_terms))?;
        if least > 0 || greatest < 0 {
            return Some(false);
        }
        if c != c_b || c == 0 {
            return Some(true);
        }

        if rest.leaves_only_zero(c.abs(), last)? || rest.lies_between_multiples(c.abs(), last)? {
            return Some(false);
        }
        let is_small = |&(t, _): &(i128, i128)| t.abs() < c.abs();
        let (small_least, small_greatest) = range(constant, rest.terms.iter().copied().filter(is_small))?;
        let g = rest.terms.iter().filter(|t| !is_small(t)).fold(0, |g, &(t, _)| gcd(g, t.abs()));
        let reach = c.abs().checked_mul(last)?;
        let (least, greatest) = (small_least.checked_sub(reach)?, small_greatest.checked_add(reach)?);
        let p = if g == 0 {
            0
        } else {
            let p = least.checked_sub(least.rem_euclid(g))?;
            let p = if p < least { p.checked_add(g)? } else { p };
            if p > greatest {
                return Some(false);
            }
            if p.checked_add(g)? <= greatest {
                return Some(true);
            }
            p
        };
        let misses = small_least.checked_sub(p)? > -c.abs() && small_greatest.checked_sub(p)? < c.abs();
        Some(!misses)
    }

    /// The index of `a` minus that of `b`, without the terms of the loop's own variable.
    fn difference(self, a: &Access, b: &Access) -> Option<Difference> {
        let mut constant = i128::from(a.offset) - i128::from(b.offset);
        let mut terms = Vec::new();
        let mut outer: BTreeMap<LoopVar, (i128, i128, i128)> = BTreeMap::new();
        for (access, sign) in [(a, 1), (b, -1)] {
            for t in access.terms.iter().filter(|t| t.var != self.var) {
                let c = sign * i128::from(t.coefficient);
                if t.depth > self.depth {
                    constant = constant.checked_add(c.checked_mul(t.least)?)?;
                    terms.push((c, t.most - t.least));
                } else {
                    // The least value may differ, where one access is in a loop that needs a variable to be
                    // positive.
                    let sum = outer.entry(t.var).or_insert((0, t.least, t.most));
                    *sum = (sum.0 + c, sum.1.min(t.least), sum.2.max(t.most));
                }
            }
        }
        for (c, least, most) in outer.into_values() {
            constant = constant.checked_add(c.checked_mul(least)?)?;
            terms.push((c, most - least));
        }
        // A variable with one value only adds a constant.
        terms.retain(|&(c, span)| c != 0 && span > 0);
        Difference { constant, terms }.joined()
    }
}

/// A constant and terms: each a coefficient and the greatest value of its variable, whose least is 0.
struct Difference {
    constant: i128,
    terms: Vec<(i128, i128)>,
}

impl Difference {
    /// The same values with fewer terms: one whose coefficient is a multiple of another's continues that one, where the
    /// other leaves no gap. So `33*p0 + 66*p1` with p0 below 2 and p1 below 4 is `33*p` with p below 8. `None` if the
    /// arithmetic overflows.
    fn joined(mut self) -> Option<Difference> {
        for (c, span) in &mut self.terms {
            // A negative multiple counts down from its greatest value.
            if *c < 0 {
                self.constant = self.constant.checked_add(c.checked_mul(*span)?)?;
                *c = c.checked_neg()?;
            }
        }
        self.terms.sort_unstable();
        let mut joined: Vec<(i128, i128)> = vec![];
        for (c, span) in self.terms {
            let continued = |&&mut (of, reach): &&mut (i128, i128)| c % of == 0 && reach >= c / of - 1;
            match joined.iter_mut().rev().find(continued) {
                Some((of, reach)) => *reach = reach.checked_add(span.checked_mul(c / *of)?)?,
                None => joined.push((c, span)),
            }
        }
        Some(Difference { constant: self.constant, terms: joined })
    }

    /// Returns true if for some coefficient greater than c the sum of `c*d`, the constant and all terms with smaller
    /// coefficients lies strictly between two neighbouring multiples of the other coefficients' greatest common
    /// divisor; none if the arithmetic overflows.
    fn lies_between_multiples(&self, c: i128, last: i128) -> Option<bool> {
        let mut splits: Vec<i128> = self.terms.iter().map(|&(t, _)| t.abs()).filter(|&t| t > c).collect();
        splits.sort_unstable();
        splits.dedup();
        for split in splits {
            let (small, others): (Vec<_>, Vec<_>) = self.terms.iter().copied().partition(|&(t, _)| t.abs() < split);
            let own = [(c, last), (-c, last)];
            let (least, greatest) = range(self.constant, small.into_iter().chain(own))?;
            let g = others.into_iter().fold(0, |g, (t, _)| gcd(g, t.abs()));
            if least.checked_add((-least).rem_euclid(g))? > greatest {
                return Some(true);
            }
        }
        Some(false)
    }

    /// Returns true if `c*d` plus this is 0 for no d from -last to last but 0, by fixing one variable after the other
    /// from the greatest coefficient down; none if the arithmetic overflows.
    fn leaves_only_zero(&self, c: i128, last: i128) -> Option<bool> {
        // For each coefficient the least and the greatest multiple of it.
        let mut digits: BTreeMap<i128, (i128, i128)> = BTreeMap::new();
        for &(t, most) in &self.terms {
            let (low, high) = digits.entry(t.checked_abs()?).or_default();
            if t < 0 { *low = low.checked_sub(most)? } else { *high = high.checked_add(most)? }
        }
        if digits.insert(c, (-last, last)).is_some() {
            return Some(false);
        }
        let mut constant = self.constant;
        while let Some((radix, (low, high))) = digits.pop_last() {
            let smaller = digits.iter().flat_map(|(&t, &(low, high))| [(t, high), (-t, -low)]);
            let (least, greatest) = range(constant, smaller)?;
            let from = low.max(-greatest.div_euclid(radix));
            let to = high.min((-least).div_euclid(radix));
            match (from > to, from == to) {
                (true, _) => return Some(true),
                (_, false) => return Some(false),
                _ if radix == c => return Some(from == 0),
                _ => constant = constant.checked_add(radix.checked_mul(from)?)?,
            }
        }
        unreachable!("the loop's own coefficient is among the digits")
    }
}

/// The least and the greatest value of a constant and terms; none if it overflows.
fn range(constant: i128, terms: impl Iterator<Item = (i128, i128)>) -> Option<(i128, i128)> {
    let (mut least, mut greatest) = (constant, constant);
    for (c, most) in terms {
        let end = c.checked_mul(most)?;
        least = least.checked_add(end.min(0))?;
        greatest = greatest.checked_add(end.max(0))?;
    }
    Some((least, greatest))
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}
