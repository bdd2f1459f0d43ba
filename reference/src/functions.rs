//! Exponential, logarithm and powers of [`Real`]s, good to some 1e-34 of the result.

use super::real::Real;
use std::cmp::Ordering;

/// ln 2, rounded to odd from its digits.
const LN_2: Real =
    Real::Finite { negative: false, exponent: -128, mantissa: 0xb172_17f7_d1cf_79ab_c9e3_b398_03f2_f6af };

/// The mantissa of the square root of 2.
const SQRT_2: u128 = 0xb504_f333_f9de_6484_597d_89b3_754a_be9f;

fn integer(value: i64) -> Real {
    Real::from(super::wide::Integer::from(i128::from(value)))
}

impl Real {
    /// Returns e to this power.
    ///
    /// With `x = k ln 2 + r` and `|r| <= 0.35`, it is `2^k` times the Taylor series of `e^r`, whose
    /// 34th term is below 2^-128 by far. Cancellation in r costs the bits of k: for all results
    /// that an `f64` can hold, 11.
    pub fn exp(self) -> Real {
        let exponent = match self {
            Real::Nan | Real::Infinite { negative: false } => return self,
            Real::Infinite { .. } => return Real::ZERO,
            Real::Zero { .. } => return Real::ONE,
            Real::Finite { exponent, .. } => exponent + 127,
        };
        match exponent {
            ..-140 => return Real::ONE.plus(self),
            40.. if self.is_negative() => return Real::ZERO,
            40.. => return Real::INFINITY,
            _ => {}
        }
        let k = (self.to_f64() / std::f64::consts::LN_2).round() as i64;
        let r = self.plus(integer(-k).times(LN_2));
        let mut sum = Real::ONE;
        for n in (1..=34).rev() {
            sum = sum.times(r).over_int(n).plus(Real::ONE);
        }
        sum.times(Real::power_of_two(k))
    }

    /// The natural logarithm; NaN below zero, minus infinity at both zeros.
    ///
    /// With `x = 2^e m`, m between the square roots of 1/2 and 2, it is `e ln 2 + 2 artanh z` with
    /// `z = (m - 1) / (m + 1)`, `|z| < 0.172`. Near 1, e is 0 and nothing cancels.
    pub fn ln(self) -> Real {
        let (exponent, mantissa) = match self {
            Real::Zero { .. } => return Real::Infinite { negative: true },
            Real::Nan | Real::Infinite { negative: false } => return self,
            _ if self.is_negative() => return Real::Nan,
            Real::Finite { exponent, mantissa, .. } => (exponent, mantissa),
            Real::Infinite { .. } => unreachable!("both are matched above"),
        };
        let half = i64::from(mantissa > SQRT_2);
        let m = Real::Finite { negative: false, exponent: -127 - half, mantissa };
        let z = m.plus(Real::ONE.minus()).over(m.plus(Real::ONE));
        let square = z.times(z);
        let (mut power, mut sum) = (z, z);
        for n in (3..=57).step_by(2) {
            power = power.times(square);
            sum = sum.plus(power.over_int(n));
        }
        integer(exponent + 127 + half).times(LN_2).plus(sum.plus(sum))
    }

    /// Returns this to the power `p > 0`; below zero NaN, but for `p = 1`.
    pub fn power(self, p: Real) -> Real {
        let small = (1..=64).find(|&n| integer(n).compare(p) == Some(Ordering::Equal));
        match self {
            Real::Nan => self,
            _ if small == Some(1) => self,
            Real::Zero { .. } | Real::Infinite { negative: false } => self.abs(),
            _ if self.is_negative() => Real::Nan,
            _ if p == Real::power_of_two(-1) => self.square_root(),
            _ => match small {
                Some(n) => (1..n).fold(self, |product, _| product.times(self)),
                None => self.ln().times(p).exp(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The relative difference, as an exact power of ten's exponent would be read.
    fn off(a: Real, b: Real) -> f64 {
        a.plus(b.minus()).over(b).abs().to_f64()
    }

    #[test]
    fn known_digits() {
        // e = 2.71828182845904523536028747135266249775724709369995...; as hi + mid + lo of f64.
        let e = Real::from(std::f64::consts::E)
            .plus(Real::from(1.4456468917292502e-16))
            .plus(Real::from(-2.1277171080381768e-33));
        assert!(off(Real::ONE.exp(), e) < 1e-37, "{}", off(Real::ONE.exp(), e));
        let ln_10 = Real::from(std::f64::consts::LN_10)
            .plus(Real::from(-2.1707562233822494e-16))
            .plus(Real::from(-9.984262454465777e-33));
        assert!(off(Real::from(10.0).ln(), ln_10) < 1e-37);
    }

    #[test]
    fn logarithms_undo_exponentials() {
        for x in [1e-9, -1e-9, 0.3, -0.34, 0.35, 1.0, -1.0, 17.25, -87.3, 700.0, -745.0, 12345.678] {
            let x = Real::from(x);
            assert!(off(x.exp().ln(), x) < 1e-28, "{x:?} {:e}", off(x.exp().ln(), x));
            assert!(off(x.exp().times(x.minus().exp()), Real::ONE) < 1e-32, "{x:?}");
        }
        use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};
        for x in [FRAC_1_SQRT_2.next_down(), FRAC_1_SQRT_2, SQRT_2, 1f64.next_up(), 1f64.next_down()] {
            let (got, x) = (Real::from(x).ln().to_f64(), f64::ln(x));
            assert!((got - x).abs() <= x.abs() * 2.3e-16, "{got:e} {x:e}");
        }
    }

    #[test]
    fn powers_and_roots() {
        for x in [1e-30, 0.1, 1.0, 2.0, 1e30] {
            for p in [1.0, 2.5, 3.0, 7.3, 64.0, 65.0] {
                let (x, p) = (Real::from(x), Real::from(p));
                let back = x.power(p).power(Real::ONE.over(p));
                assert!(off(back, x) < 1e-32, "{x:?} {p:?} {:e}", off(back, x));
            }
        }
        assert_eq!(Real::from(-8.0).power(Real::ONE), Real::from(-8.0));
        assert_eq!(Real::from(-8.0).power(Real::from(3.0)), Real::Nan);
        assert_eq!(Real::from(5.0).power(Real::from(3.0)), Real::from(125.0));
    }
}
