//! From wide integers to floats and to narrow integers.

use super::{constant, constants, held, is_negative, less, magnitude};
use crate::DType::{F64, I64};
use crate::{DType, Expr, Lets, Scalar};

/// The f64 nearest to a, ties to even, rounded once.
///
/// Leading zero limbs are skipped; the other limbs are shifted up until the first bit is the first of a limb, and the
/// bits below that limb are or-ed into its last bit, far below the place of rounding. 1, 31 and 46 operations for 1, 2
/// and 3 signed limbs.
pub fn to_f64(lets: &mut Lets, a: &[Expr], signed: bool) -> Expr {
    match (a, signed) {
        ([a], true) => a.clone().bits(I64).cast(F64),
        ([a], false) => a.clone().cast(F64),
        (_, true) => {
            let (negative, size) = magnitude(lets, a);
            let value = unsigned_to_f64(lets, &size);
            let value = held(lets, &value);
            negative.select(value.clone().neg(), value)
        }
        (_, false) => unsigned_to_f64(lets, a),
    }
}

fn unsigned_to_f64(lets: &mut Lets, a: &[Expr]) -> Expr {
    let mut limbs: Vec<Expr> = a.iter().map(|l| held(lets, l)).collect();
    // The exponent field of 2^(64 (k - 1)), the worth of the top limb's last bit.
    let k = limbs.len() as u64;
    let mut exponent = constant(1023 + 64 * (k - 1));
    for _ in 1..k {
        let top = limbs.last().expect("a limb").clone();
        let empty = lets.bind(top.eq(constant(0)));
        let moved: Vec<Expr> = std::iter::once(constant(0)).chain(limbs.iter().cloned()).take(limbs.len()).collect();
        limbs = moved.into_iter().zip(&limbs).map(|(m, l)| lets.bind(empty.clone().select(m, l.clone()))).collect();
        exponent = lets.bind(exponent.clone().sub(empty.select(constant(64), constant(0))));
    }
    let [below @ .., next, top] = limbs.as_slice() else { unreachable!("two limbs or more") };
    // If the total is zero every part is zero, for any shift amounts.
    let up = lets.bind(top.clone().clz());
    let down = constant(63).sub(up.clone());
    let first = top.clone().shl(up.clone()).or(next.clone().shr(constant(1)).shr(down));
    let left = below.iter().fold(next.clone().shl(up.clone()), |left, l| left.or(l.clone()));
    let sticky = left.ne(constant(0)).cast(DType::U64);
    let scale = exponent.sub(up).shl(constant(52)).bits(F64);
    first.or(sticky).cast(F64).mul(scale)
}

/// The value of an integer type nearest to a: a itself where it is in range.
///
/// # Panics
/// If `dtype` is no integer type.
pub fn clamp(lets: &mut Lets, a: &[Expr], signed: bool, dtype: DType) -> Expr {
    let (low, high) = dtype.int_range().expect("an integer type");
    let k = a.len();
    let a: Vec<Expr> = a.iter().map(|l| held(lets, l)).collect();
    let mut value = a[0].clone().cast(dtype);
    // One signed limb holds no number above the greatest u64.
    if !(signed && k == 1 && high > i128::from(i64::MAX)) {
        let above = less(lets, &constants(high, k), &a, signed);
        value = above.select(Scalar::highest(dtype).into(), value);
    }
    if signed {
        let below = if low == 0 { is_negative(&a) } else { less(lets, &a, &constants(low, k), true) };
        value = below.select(Scalar::lowest(dtype).into(), value);
    }
    value
}
