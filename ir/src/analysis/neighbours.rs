//! Sums of elements that lie side by side.

use crate::{BufId, DType, Expr, Index, Op};

/// A sum of neighbours in a buffer, as many as its type has bytes: `((x[4*l] + x[4*l + 1]) + x[4*l + 2]) + x[4*l + 3]`,
/// each a byte converted to a type of 4 bytes.
#[derive(Clone, Copy, Debug)]
pub struct NeighbourSum<'e> {
    /// The buffer.
    pub buf: BufId,
    /// The type of its elements: an integer of one byte.
    pub from: DType,
    /// The type of the sum: an integer of 4 or 8 bytes.
    pub dtype: DType,
    /// The index of the first neighbour.
    pub first: &'e Index,
}

impl<'e> NeighbourSum<'e> {
    /// Returns the sum that an expression computes; `None` for any other expression.
    ///
    /// ```
    /// use cranefold_ir::{Nest, Stmt, analysis::NeighbourSum};
    ///
    /// let text = r#"nest "" { in x0: i8[4] out x1: i32[1]
    ///     x1[0] = add(add(add(i32(x0[0]), i32(x0[1])), i32(x0[2])), i32(x0[3])) }"#;
    /// let nest: Nest = text.parse()?;
    /// let Stmt::Store { value, .. } = &nest.body[0] else { panic!("a store") };
    /// assert_eq!(NeighbourSum::of(value).map(|sum| sum.first.offset), Some(0));
    /// # Ok::<(), cranefold_ir::ParseError>(())
    /// ```
    pub fn of(e: &'e Expr) -> Option<NeighbourSum<'e>> {
        let dtype = e.dtype();
        let count = dtype.bytes();
        if !dtype.is_int() || count < 4 {
            return None;
        }
        // From the last one, `((first + second) + third) + ..`.
        let mut rest = e;
        let mut last: Option<(BufId, DType, &Index)> = None;
        for n in (0..count).rev() {
            let (before, one) = match rest {
                Expr::Op(Op::Add, _, args) if n > 0 => (&args[0], &args[1]),
                one => (one, one),
            };
            let Expr::Op(Op::Cast, _, args) = one else { return None };
            let Expr::Load(buf, from, index) = &args[0] else { return None };
            let follows = last.is_none_or(|(b, f, i)| b == *buf && f == *from && *i == index.clone().offset_by(1));
            if !follows || (n > 0 && std::ptr::eq(before, one)) {
                return None;
            }
            last = Some((*buf, *from, index));
            rest = before;
        }
        let (buf, from, first) = last?;
        (from.is_int() && from.bytes() == 1).then_some(NeighbourSum { buf, from, dtype, first })
    }

    /// Returns true if consecutive lanes of `var` have disjoint neighbours, one group after the other.
    pub fn fills_lanes(&self, var: crate::LoopVar) -> bool {
        self.first.coefficient(var) == self.dtype.bytes() as i64
    }
}
