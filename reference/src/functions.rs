//! Exponential, logarithm, powers, hyperbolic tangent and error function of [`Real`]s, good to some 1e-34 of the result.

use super::real::Real;
use std::cmp::Ordering;

/// ln 2, rounded to odd from its digits.
const LN_2: Real =
    Real::Finite { negative: false, exponent: -128, mantissa: 0xb172_17f7_d1cf_79ab_c9e3_b398_03f2_f6af };

/// 2 / sqrt(pi), rounded to odd from its digits.
const TWO_OVER_ROOT_PI: Real =
    Real::Finite { negative: false, exponent: -127, mantissa: 0x906e_ba82_14db_688d_71d4_8a7f_6bfe_c345 };

/// The mantissa of the square root of 2.
const SQRT_2: u128 = 0xb504_f333_f9de_6484_597d_89b3_754a_be9f;

fn integer(value: i64) -> Real {
    Real::from(super::wide::Integer::from(i128::from(value)))
}

/// Twice the inverse hyperbolic tangent of a number below 0.172 in magnitude.
fn twice_artanh(z: Real) -> Real {
    let square = z.times(z);
    let (mut power, mut sum) = (z, z);
    for n in (3..=57).step_by(2) {
        power = power.times(square);
        sum = sum.plus(power.over_int(n));
    }
    sum.plus(sum)
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

    /// Returns e to this power less 1.
    ///
    /// Up to 1/2 in magnitude it is the Taylor series, `x (1 + x/2 (1 + x/3 (1 + ...)))`, whose 32nd term is
    /// below 2^-128 of the first; beyond, nothing much cancels.
    pub fn exp_less_one(self) -> Real {
        match self {
            Real::Zero { .. } => self,
            Real::Finite { exponent, .. } if exponent + 127 < -1 => {
                let mut sum = Real::ONE;
                for n in (2..=32).rev() {
                    sum = sum.times(self).over_int(n).plus(Real::ONE);
                }
                sum.times(self)
            }
            _ => self.exp().plus(Real::ONE.minus()),
        }
    }

    /// The natural logarithm of 1 and this; NaN below -1, minus infinity at -1.
    ///
    /// Up to 1/4 in magnitude it is `2 artanh z` with `z = x / (2 + x)`, `|z| < 0.15`; beyond, the sum 1 + x has all
    /// bits that matter.
    pub fn ln_of_one_plus(self) -> Real {
        match self {
            Real::Zero { .. } => self,
            Real::Finite { exponent, .. } if exponent + 127 < -2 => twice_artanh(self.over(self.plus(integer(2)))),
            _ => self.plus(Real::ONE).ln(),
        }
    }

    /// The hyperbolic tangent, `t / (t + 2)` where t is `e^2x - 1`.
    pub fn tanh(self) -> Real {
        if let Real::Infinite { .. } = self {
            return if self.is_negative() { Real::ONE.minus() } else { Real::ONE };
        }
        // Of |x|, lest e^2x vanish beside 1.
        let t = self.abs().plus(self.abs()).exp_less_one();
        let size = match t {
            Real::Infinite { .. } => Real::ONE,
            _ => t.over(t.plus(integer(2))),
        };
        if self.is_negative() { size.minus() } else { size }
    }

    /// The error function, `2 / sqrt(pi) e^(-x^2)` times the sum of `2^k x^(2k+1) / (1 3 5 ... (2k+1))`.
    ///
    /// All terms have the sign of x, so nothing cancels. Beyond 10 the difference from 1 is below 2^-128.
    pub fn erf(self) -> Real {
        let one = if self.is_negative() { Real::ONE.minus() } else { Real::ONE };
        match self {
            Real::Zero { .. } | Real::Nan => return self,
            Real::Infinite { .. } => return one,
            _ if integer(10).below(self.abs()) => return one,
            _ => {}
        }
        let square = self.times(self);
        let twice = square.plus(square);
        let (mut term, mut sum, mut odd) = (self, self, 1);
        while sum.abs().times(Real::power_of_two(-130)).below(term.abs()) {
            odd += 2;
            term = term.times(twice).over_int(odd);
            sum = sum.plus(term);
        }
        TWO_OVER_ROOT_PI.times(square.minus().exp()).times(sum)
    }

    /// The greatest integer that is at most this.
    pub fn floor(self) -> Real {
        match self {
            Real::Finite { exponent, .. } if exponent < 0 => {
                let whole = self.whole();
                if self.below(whole) { whole.plus(Real::ONE.minus()) } else { whole }
            }
            _ => self,
        }
    }

    /// This without its fraction; a zero has its sign.
    pub fn whole(self) -> Real {
        match self {
            Real::Finite { negative, exponent, mantissa } if exponent < 0 => {
                let kept = mantissa.checked_shr(exponent.unsigned_abs().min(128) as u32).unwrap_or(0);
                match kept {
                    0 => Real::Zero { negative },
                    _ => Real::scaled(negative, super::wide::U256::new(0, kept), 0),
                }
            }
            _ => self,
        }
    }

    /// The nearest integer, ties to even; a zero has the sign of this.
    pub fn nearest_even(self) -> Real {
        let size = self.abs();
        let Real::Finite { .. } = size else { return self };
        let low = size.whole();
        let rest = size.plus(low.minus());
        let up = match rest.compare(Real::power_of_two(-1)) {
            Some(Ordering::Greater) => true,
            Some(Ordering::Equal) => {
                let half = low.times(Real::power_of_two(-1));
                half.whole().compare(half) != Some(Ordering::Equal)
            }
            _ => false,
        };
        let size = if up { low.plus(Real::ONE) } else { low };
        if self.is_negative() { size.minus() } else { size }
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
        integer(exponent + 127 + half).times(LN_2).plus(twice_artanh(z))
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

    /// A function, an argument, and the value there as the sum of three f64.
    type Digits = (fn(Real) -> Real, f64, [f64; 3]);

    /// The value of a function beside its true value, as the sum of three f64.
    const DIGITS: [Digits; 9] = [
        (Real::tanh, 0.5, [0.46211715726000974, 2.1916603238260928e-17, 4.249939575546907e-34]),
        (Real::tanh, -3.0, [-0.9950547536867305, 1.2991892863562624e-17, -5.678175909710717e-34]),
        (Real::erf, 0.5, [0.5204998778130465, 1.900077467916287e-17, -1.0436449312314153e-33]),
        (Real::erf, -2.5, [-0.999593047982555, -4.6925151097042234e-17, -4.482866168064449e-34]),
        (Real::erf, 5.5, [0.9999999999999927, -3.03759554483649e-17, 2.2399641629383494e-33]),
        (Real::exp_less_one, 0.25, [0.2840254166877415, -2.133257464457841e-17, -3.22512255058912e-34]),
        (Real::exp_less_one, -2.0, [-0.8646647167633873, -1.042381423288669e-17, -5.455118371208139e-34]),
        (Real::ln_of_one_plus, 0.125, [0.11778303565638346, -1.1971685747593677e-18, 1.6074073738081715e-35]),
        (Real::ln_of_one_plus, -0.75, [-1.3862943611198906, -4.638093627692599e-17, -1.1415416876832424e-33]),
    ];

    #[test]
    fn functions_have_their_digits() {
        for (function, x, parts) in DIGITS {
            let want = parts.into_iter().fold(Real::ZERO, |sum, part| sum.plus(Real::from(part)));
            let got = function(Real::from(x));
            assert!(off(got, want) < 1e-34, "{x}: {:e}", off(got, want));
        }
    }

    #[test]
    fn functions_of_small_and_great_numbers() {
        for x in [5e-324, -1e-300, 1e-20, -1e-9] {
            let x = Real::from(x);
            for function in [Real::tanh, Real::exp_less_one, Real::ln_of_one_plus] {
                assert!(off(function(x), x) < 1e-8, "{x:?}");
            }
            assert!(off(x.erf(), x.times(TWO_OVER_ROOT_PI)) < 1e-16, "{x:?}");
            assert!(off(x.exp_less_one().ln_of_one_plus(), x) < 1e-36, "{x:?}");
        }
        for x in [Real::ZERO, Real::MINUS_ZERO] {
            assert_eq!([x.tanh(), x.erf(), x.exp_less_one(), x.ln_of_one_plus()], [x; 4]);
        }
        let (minus_one, minus_infinity) = (Real::ONE.minus(), Real::INFINITY.minus());
        assert_eq!([Real::INFINITY.tanh(), Real::INFINITY.erf(), Real::from(1e300).erf()], [Real::ONE; 3]);
        assert_eq!([minus_infinity.tanh(), minus_infinity.erf(), minus_infinity.exp_less_one()], [minus_one; 3]);
        assert_eq!(Real::from(-1e300).tanh().to_f64(), -1.0);
        assert_eq!([minus_one.ln_of_one_plus(), Real::from(-1.5).ln_of_one_plus()], [minus_infinity, Real::Nan]);
        assert_eq!([Real::Nan.tanh(), Real::Nan.erf(), Real::Nan.exp_less_one()], [Real::Nan; 3]);
    }

    #[test]
    fn integer_values_are_the_standard_librarys() {
        let numbers = [0.0, 0.3, 0.5, 0.7, 1.0, 1.5, 2.5, 3.5, 1e15 + 0.5, 4503599627370495.5, 1e300, 5e-324];
        for x in numbers.into_iter().flat_map(|x| [x, -x]).chain([f64::INFINITY, f64::NEG_INFINITY]) {
            let a = Real::from(x);
            let got = [a.floor(), a.whole(), a.nearest_even()].map(|r| r.to_f64().to_bits());
            assert_eq!(got, [x.floor(), x.trunc(), x.round_ties_even()].map(f64::to_bits), "{x}");
        }
        assert_eq!([Real::Nan.floor(), Real::Nan.whole(), Real::Nan.nearest_even()], [Real::Nan; 3]);
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
