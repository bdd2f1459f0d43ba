//! The order of floats: a signed integer, the greater the better, and above all numbers for any NaN.
//!
//! ```text
//! greatest value: (bits xor (all bits of the sign but the first)) - K          K = the bits of the fraction
//! least value:    not (bits xor (all bits of the sign but the first)) - K
//! ```
//!
//! Before K is subtracted, NaNs of one sign are above all numbers and those of the other below them; these wrap around. A
//! state is one value, where that of [`extremes`](super::extreme::extremes) has three, and an element takes four operations,
//! not three.

use crate::{DType, Expr, Op, Scalar};

/// The orders of floats of a type, for the greatest or for the least value.
#[derive(Clone, Copy)]
pub(super) struct Order {
    float: DType,
    op: Op,
}

impl Order {
    pub(super) fn new(float: DType, op: Op) -> Order {
        Order { float, op }
    }

    /// The type of an order.
    pub(super) fn dtype(self) -> DType {
        self.float.signed()
    }

    /// The least order: that of the worst infinity.
    pub(super) fn least(self) -> Scalar {
        Scalar::lowest(self.dtype())
    }

    /// The order of a float.
    pub(super) fn of(self, x: &Expr) -> Expr {
        let ascending = self.ordered(x.clone().bits(self.dtype()));
        let better = if self.op == Op::Max { ascending } else { ascending.xor(self.constant(-1)) };
        better.sub(self.constant(self.offset()))
    }

    /// The float of an order, NaN canonical.
    pub(super) fn value(self, order: &Expr) -> Expr {
        let better = order.clone().add(self.constant(self.offset()));
        let ascending = if self.op == Op::Max { better } else { better.xor(self.constant(-1)) };
        let nan = Expr::from(Scalar::nan(self.float)).bits(self.dtype());
        self.is_nan(order).select(nan, self.ordered(ascending)).bits(self.float)
    }

    /// The least order of the elements that are as good: one for both zeros, and one for all NaNs.
    pub(super) fn bound(self, order: &Expr) -> Expr {
        let zero = -self.offset();
        let of_number = order.clone().eq(self.constant(zero)).select(self.constant(zero - 1), order.clone());
        self.is_nan(order).select(self.constant(self.greatest() + 1), of_number)
    }

    /// The bits of a float as an integer that is the greater the greater the float, and the bits again from this integer.
    fn ordered(self, bits: Expr) -> Expr {
        let all_but_first = self.constant(Scalar::highest(self.dtype()).as_int().expect("an integer"));
        let sign = bits.clone().shr(self.constant(i128::from(self.float.bits()) - 1));
        bits.xor(sign.and(all_but_first))
    }

    fn is_nan(self, order: &Expr) -> Expr {
        self.constant(self.greatest()).lt(order.clone())
    }

    /// The greatest order of a number: that of an infinity.
    fn greatest(self) -> i128 {
        self.infinity() - self.offset()
    }

    fn offset(self) -> i128 {
        (1 << (self.float.bits() - 1)) - 1 - self.infinity()
    }

    fn infinity(self) -> i128 {
        Scalar::float(self.float, f64::INFINITY).bits().into()
    }

    fn constant(self, value: i128) -> Expr {
        Scalar::int(self.dtype(), value).into()
    }
}
