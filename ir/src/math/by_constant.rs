//! Divisions of integers of 16 bits by a constant, in operations that vectors have.
//!
//! Let `m` be `floor(2^(16 + s) / n) + 1`, so that `m n = 2^(16 + s) + e` with `1 <= e <= n`. Where `2^15 e < 2^(16 + s)`,
//! `m x / 2^(16 + s)` lies above `x / n` by less than `1 / n`, if x is not negative, and below it by less than that if it
//! is. So its floor is the quotient towards zero, or one below that if x is negative (Granlund and Montgomery, "Division
//! by invariant integers using multiplication", 1994). The least such `s` has `m` below 2^16.

use crate::{DType, Expr};

/// The quotient `x / n` of an `i16`, a variable, towards zero; `n` is at least 1. `signed` tells whether x can be negative.
///
/// ```
/// use cranefold_ir::{DType, Def, Scalar, math};
///
/// let third = Def::build("third", &[DType::I16], |_, args| vec![math::quotient_of_i16(&args[0], 3, true)]);
/// let of = |x| third.eval(&[Scalar::int(DType::I16, x)])[0].as_int();
/// assert_eq!([of(-32768), of(-4), of(5)], [Some(-10922), Some(-1), Some(1)]);
/// ```
pub fn quotient_of_i16(x: &Expr, n: i16, signed: bool) -> Expr {
    assert!(n >= 1 && x.dtype() == DType::I16, "{x:?} / {n}");
    let int = |value: i32| x.int(i128::from(value));
    let shifted = |x: Expr, by: u32| if by == 0 { x } else { x.shr(int(by as i32)) };
    let sign = || x.clone().shr(int(15));
    if n & (n - 1) == 0 {
        let below = int(i32::from(n) - 1);
        // Negative numbers are rounded down by a shift.
        let raised = if signed && n > 1 { x.clone().add(sign().and(below)) } else { x.clone() };
        return shifted(raised, n.trailing_zeros());
    }
    let (multiplier, by) = multiplier(n);
    // A multiplier of 16 bits is that less 2^16, and 1.
    let product = match i16::try_from(multiplier) {
        Ok(multiplier) => x.clone().mul_high(int(multiplier.into())),
        Err(_) => x.clone().mul_high(int(multiplier - (1 << 16))).add(x.clone()),
    };
    let floor = shifted(product, by);
    if signed { floor.sub(sign()) } else { floor }
}

/// The multiplier m and the shift s of a number that is no power of two.
fn multiplier(n: i16) -> (i32, u32) {
    let of = |by: u32| {
        let power = 1i64 << (16 + by);
        let m = power / i64::from(n) + 1;
        let excess = m * i64::from(n) - power;
        (excess << 15 < power).then_some((m as i32, by))
    };
    (0..16).find_map(of).expect("2^s above n / 2 is enough")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Def, Scalar};

    #[test]
    fn quotients_are_exact() {
        for n in (1..=260).chain([1000, 4095, 4096, 4097, 16384, 32766, 32767]) {
            for signed in [true, false] {
                let def = Def::build("of", &[DType::I16], |_, args| vec![quotient_of_i16(&args[0], n, signed)]);
                // Beside multiples, where a quotient steps.
                let steps = (0..=32767 / i32::from(n)).flat_map(|q| (-1..=1).map(move |by| q * i32::from(n) + by));
                let sampled = if n < 16 { 7 } else { 1 };
                let values = steps.step_by(sampled).chain([0, 1, 32766, 32767, 32768]);
                for x in values.flat_map(|x| if signed { vec![x, -x] } else { vec![x] }) {
                    let Ok(x) = i16::try_from(x) else { continue };
                    if x >= 0 || signed {
                        let quotient = def.eval(&[Scalar::int(DType::I16, x.into())])[0].as_int();
                        assert_eq!(quotient, Some(i128::from(x / n)), "{x} / {n}");
                    }
                }
            }
        }
    }
}
