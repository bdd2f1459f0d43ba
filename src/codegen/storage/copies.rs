//! Copies of the same lanes to several places of an accumulator.

use super::{Cell, Vector};
use crate::vectors::Vectors;
use cranefold_ir::{AccId, DType, Expr, Stmt};

/// Statements that set runs of an accumulator, one behind the other, to the same lanes:
///
/// ```text
/// for e0 in 0..3 lanes { a1[e0] = a0[e0] }
/// for e0 in 0..3 lanes { a1[e0 + 3] = a0[e0] }
/// for e0 in 0..3 lanes { a1[e0 + 6] = a0[e0] }
/// ```
///
/// Each register of such an accumulator is one permutation of the lanes, and the runs may end in other registers than
/// they begin in.
#[derive(Clone, Copy, Debug)]
pub struct Copies<'a> {
    /// The lanes of a run.
    pub vector: Vector,
    /// The accumulator.
    pub acc: AccId,
    /// The elements that are set.
    pub elements: Cell,
    /// The value of the lanes.
    pub value: &'a Expr,
    /// The number of statements.
    pub statements: usize,
}

impl<'a> Copies<'a> {
    /// The copies with which a body begins; `None` where its first two statements are none.
    pub fn first_of(body: &'a [Stmt]) -> Option<Copies<'a>> {
        let [first, second, ..] = body else { return None };
        let (vector, acc, start, value) = set_of(first)?;
        let follows = |stmt: &Stmt, number: usize| {
            let Some((other, to, at, same)) = set_of(stmt) else { return false };
            other == vector && to == acc && at == start + vector.lanes * number as u64 && same == value
        };
        if !follows(second, 1) || reads(value, acc) {
            return None;
        }
        let statements =
            body.iter().enumerate().skip(1).take_while(|(number, stmt)| follows(stmt, *number)).count() + 1;
        let elements = Cell { start, lanes: vector.lanes * statements as u64 };
        Some(Copies { vector, acc, elements, value, statements })
    }

    /// Returns whether vectors have instructions that put the lanes of such a type in any order.
    pub fn are_permutations(&self, dtype: DType, vectors: Vectors) -> bool {
        let bytes = dtype.bytes();
        let fits = vectors.joined_lanes(bytes).is_some_and(|lanes| self.vector.lanes <= lanes);
        fits && dtype != DType::Bool
    }

    /// The lanes that elements of the accumulator hold, from `start` on.
    pub fn lanes_from(&self, start: u64) -> impl Iterator<Item = u64> {
        let (first, lanes) = (start - self.elements.start, self.vector.lanes);
        (first..).map(move |element| element % lanes)
    }
}

/// The lanes, the accumulator, the first element and the value of lanes that set a run at a constant place.
fn set_of(stmt: &Stmt) -> Option<(Vector, AccId, u64, &Expr)> {
    let Stmt::For(l) = stmt else { return None };
    let (vector @ Vector { outer: None, edge: None, .. }, [Stmt::Set { acc, index, value }]) = Vector::of(l)? else {
        return None;
    };
    let is_run = index.coefficient(l.var) == 1 && index.terms().count() == 1;
    (is_run && index.offset >= 0).then_some((vector, *acc, index.offset as u64, value))
}

fn reads(value: &Expr, of: AccId) -> bool {
    let mut found = false;
    value.visit(&mut |e| found |= matches!(e, Expr::Read(acc, ..) if *acc == of));
    found
}
