//! Floating-point numbers of 128 significant bits and practically any exponent.
//!
//! Results are rounded to odd: the last bit is set if any nonzero bit is lost. So one later rounding
//! to a narrower type is the rounding of the exact value, and the relative error of an operation is
//! at most 2^-127.

use super::wide::{Integer, U256};
use cranefold_ir::{DType, Scalar};
use std::cmp::Ordering;

/// A real number of 128 significant bits, an infinity, or no number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Real {
    /// NaN.
    Nan,
    /// An infinity.
    Infinite {
        /// True for the negative one.
        negative: bool,
    },
    /// A zero, which has a sign.
    Zero {
        /// True for the negative one.
        negative: bool,
    },
    /// `mantissa * 2^exponent`, the mantissa's top bit set.
    Finite {
        /// True below zero.
        negative: bool,
        /// The power of two.
        exponent: i64,
        /// The significant bits.
        mantissa: u128,
    },
}

use Real::*;

impl Real {
    /// Zero, the positive one.
    pub const ZERO: Real = Zero { negative: false };
    /// Zero, the negative one: the identity of addition.
    pub const MINUS_ZERO: Real = Zero { negative: true };
    /// One.
    pub const ONE: Real = Finite { negative: false, exponent: -127, mantissa: 1 << 127 };
    /// Infinity.
    pub const INFINITY: Real = Infinite { negative: false };

    /// Two to this power.
    pub const fn power_of_two(power: i64) -> Real {
        Finite { negative: false, exponent: power - 127, mantissa: 1 << 127 }
    }

    /// `value * 2^exponent`, rounded to odd.
    pub fn scaled(negative: bool, value: U256, exponent: i64) -> Real {
        if value == U256::default() {
            return Real::ZERO;
        }
        let by = value.leading_zeros();
        let value = value.shifted_left(by);
        let mantissa = value.high() | u128::from(value.low() != 0);
        Finite { negative, exponent: exponent + 128 - i64::from(by), mantissa }
    }

    /// Returns true if the sign is minus; a NaN has none.
    pub fn is_negative(self) -> bool {
        matches!(self, Infinite { negative: true } | Zero { negative: true } | Finite { negative: true, .. })
    }

    /// Returns true for a zero.
    pub fn is_zero(self) -> bool {
        matches!(self, Zero { .. })
    }

    /// Returns true for a zero or another finite number.
    pub fn is_finite(self) -> bool {
        matches!(self, Zero { .. } | Finite { .. })
    }

    /// The negative.
    pub fn minus(self) -> Real {
        match self {
            Nan => Nan,
            Infinite { negative } => Infinite { negative: !negative },
            Zero { negative } => Zero { negative: !negative },
            Finite { negative, exponent, mantissa } => Finite { negative: !negative, exponent, mantissa },
        }
    }

    /// The absolute value.
    pub fn abs(self) -> Real {
        if self.is_negative() { self.minus() } else { self }
    }

    /// The numeric order; none with a NaN, and the zeros are equal.
    pub fn compare(self, other: Real) -> Option<Ordering> {
        let sign = |r: Real| match r {
            Zero { .. } => 0,
            _ if r.is_negative() => -1,
            _ => 1,
        };
        let (a, b) = (sign(self), sign(other));
        let by_magnitude = match (self, other) {
            (Nan, _) | (_, Nan) => return None,
            _ if a != b => return Some(a.cmp(&b)),
            (Infinite { .. }, Infinite { .. }) | (Zero { .. }, _) => Ordering::Equal,
            (Infinite { .. }, _) => Ordering::Greater,
            (_, Infinite { .. }) => Ordering::Less,
            (Finite { exponent: e, mantissa: m, .. }, Finite { exponent: f, mantissa: n, .. }) => (e, m).cmp(&(f, n)),
            (Finite { .. }, Zero { .. }) => unreachable!("their signs differ"),
        };
        Some(if a < 0 { by_magnitude.reverse() } else { by_magnitude })
    }

    /// Returns true if this is less than `other`; false with a NaN.
    pub fn below(self, other: Real) -> bool {
        self.compare(other) == Some(Ordering::Less)
    }

    /// IEEE 754-2019 maximum: NaN if either is, -0 below +0.
    pub fn max(self, other: Real) -> Real {
        match self.compare(other) {
            None => Nan,
            Some(Ordering::Less) => other,
            Some(Ordering::Equal) if self.is_negative() => other,
            Some(_) => self,
        }
    }

    /// IEEE 754-2019 minimum: NaN if either is, -0 below +0.
    pub fn min(self, other: Real) -> Real {
        self.minus().max(other.minus()).minus()
    }

    /// The sum.
    pub fn plus(self, other: Real) -> Real {
        let ((sign, e, m), (other_sign, f, n)) = match (self, other) {
            (Nan, _) | (_, Nan) => return Nan,
            (Infinite { negative: a }, Infinite { negative: b }) => return if a == b { self } else { Nan },
            (Infinite { .. }, _) => return self,
            (_, Infinite { .. }) => return other,
            (Zero { negative: a }, Zero { negative: b }) => return Zero { negative: a && b },
            (Zero { .. }, _) => return other,
            (_, Zero { .. }) => return self,
            (Finite { negative: s, exponent: e, mantissa: m }, Finite { negative: t, exponent: f, mantissa: n }) => {
                ((s, e, m), (t, f, n))
            }
        };
        if e < f {
            return other.plus(self);
        }
        // One bit of room above for the carry, 127 below for the smaller operand.
        let a = U256::new(m, 0).shifted_right(1);
        let by = (e - f).saturating_add(1).min(256) as u32;
        let exact = U256::new(n, 0);
        let mut b = exact.shifted_right(by);
        if b.shifted_left(by) != exact {
            b = U256::new(b.high(), b.low() | 1);
        }
        if sign == other_sign {
            Real::scaled(sign, a.plus(b), e - 127)
        } else if a >= b {
            Real::scaled(sign, a.minus(b), e - 127)
        } else {
            Real::scaled(other_sign, b.minus(a), e - 127)
        }
    }

    /// The product.
    pub fn times(self, other: Real) -> Real {
        let negative = self.is_negative() != other.is_negative();
        match (self, other) {
            (Nan, _) | (_, Nan) | (Infinite { .. }, Zero { .. }) | (Zero { .. }, Infinite { .. }) => Nan,
            (Infinite { .. }, _) | (_, Infinite { .. }) => Infinite { negative },
            (Zero { .. }, _) | (_, Zero { .. }) => Zero { negative },
            (Finite { exponent: e, mantissa: m, .. }, Finite { exponent: f, mantissa: n, .. }) => {
                Real::scaled(negative, U256::product(m, n), e + f)
            }
        }
    }

    /// The quotient.
    pub fn over(self, other: Real) -> Real {
        let negative = self.is_negative() != other.is_negative();
        match (self, other) {
            (Nan, _) | (_, Nan) | (Infinite { .. }, Infinite { .. }) | (Zero { .. }, Zero { .. }) => Nan,
            (Infinite { .. }, _) | (_, Zero { .. }) => Infinite { negative },
            (Zero { .. }, _) | (_, Infinite { .. }) => Zero { negative },
            (Finite { exponent: e, mantissa: m, .. }, Finite { exponent: f, mantissa: n, .. }) => {
                // Long division: the bit before the point, then 130 behind it.
                let (mut quotient, mut rest, mut carry) = (U256::default(), m, false);
                for _ in 0..=130 {
                    let bit = carry || rest >= n;
                    if bit {
                        rest = rest.wrapping_sub(n);
                    }
                    quotient = quotient.shifted_left(1).plus(U256::new(0, u128::from(bit)));
                    carry = rest >> 127 == 1;
                    rest <<= 1;
                }
                let lost = carry || rest != 0;
                let quotient = U256::new(quotient.high(), quotient.low() | u128::from(lost));
                Real::scaled(negative, quotient, e - f - 130)
            }
        }
    }

    /// The quotient by a small positive integer, faster.
    pub(super) fn over_int(self, divisor: u32) -> Real {
        let Finite { negative, exponent, mantissa } = self else { return self };
        let divisor = u128::from(divisor);
        let low = ((mantissa % divisor) << 64) / divisor;
        Real::scaled(negative, U256::new(0, mantissa / divisor).shifted_left(64).plus(U256::new(0, low)), exponent - 64)
    }

    /// The square root; NaN below zero.
    pub fn square_root(self) -> Real {
        match self {
            Zero { .. } | Nan | Infinite { negative: false } => self,
            Infinite { .. } | Finite { negative: true, .. } => Nan,
            Finite { exponent, mantissa, .. } => {
                let odd = (exponent & 1) as u32;
                let square = U256::new(mantissa, 0).shifted_right(odd);
                let root = square.square_root();
                let lost = U256::product(root, root) != square;
                let exponent = (exponent - 128 + i64::from(odd)) / 2;
                Real::scaled(false, U256::new(0, root | u128::from(lost)), exponent)
            }
        }
    }

    /// The nearest value of a float type, ties to even; the canonical NaN.
    ///
    /// # Panics
    /// If `dtype` is no float type.
    pub fn to_float(self, dtype: DType) -> Scalar {
        let fraction = i64::from(dtype.significand_bits().expect("a float type")) - 1;
        let bias = (1i64 << (i64::from(dtype.bits()) - 2 - fraction)) - 1;
        let infinity = ((2 * bias + 1) as u64) << fraction;
        let magnitude = match self {
            Nan => return Scalar::nan(dtype),
            Infinite { .. } => infinity,
            Zero { .. } => 0,
            Finite { exponent, mantissa, .. } => {
                let power = exponent + 127;
                let least = 1 - bias;
                let kept = fraction + 1 - (least - power).max(0);
                if power > bias {
                    infinity
                } else if kept < 0 {
                    0
                } else {
                    let rounded = nearest_even(mantissa, 128 - kept as u32) as u64;
                    // A carry out of the significand moves into the exponent, also to infinity.
                    (((power - least).max(0) as u64) << fraction) + rounded
                }
            }
        };
        Scalar::from_bits(dtype, magnitude | (u64::from(self.is_negative()) << (dtype.bits() - 1)))
    }

    /// The integer, towards zero or to nearest even, clamped to a range; a NaN is 0.
    pub fn to_int(self, half_even: bool, low: i128, high: i128) -> i128 {
        let value = match self {
            Nan | Zero { .. } => return 0,
            Infinite { .. } => i128::MAX,
            Finite { exponent, .. } if exponent + 127 > 100 => i128::MAX,
            Finite { exponent, .. } if exponent + 127 < -1 => 0,
            Finite { exponent, mantissa, .. } => {
                let by = -exponent as u32;
                let truncated = mantissa.checked_shr(by).unwrap_or(0);
                (if half_even { nearest_even(mantissa, by) } else { truncated }) as i128
            }
        };
        (if self.is_negative() { -value } else { value }).clamp(low, high)
    }

    /// The nearest `f64`.
    pub fn to_f64(self) -> f64 {
        f64::from_bits(self.to_float(DType::F64).bits())
    }
}

/// The mantissa without its last `by` bits, 1 to 128 of them, rounded to nearest even.
fn nearest_even(mantissa: u128, by: u32) -> u128 {
    let kept = mantissa.checked_shr(by).unwrap_or(0);
    let rest = mantissa - kept.checked_shl(by).unwrap_or(0);
    let half = 1u128 << (by - 1);
    kept + u128::from(rest > half || (rest == half && kept & 1 == 1))
}

impl From<f64> for Real {
    fn from(value: f64) -> Real {
        let negative = value.is_sign_negative();
        let bits = value.to_bits();
        let (power, fraction) = ((bits >> 52 & 0x7ff) as i64, bits & ((1 << 52) - 1));
        if value.is_nan() {
            Nan
        } else if value.is_infinite() {
            Infinite { negative }
        } else if value == 0.0 {
            Zero { negative }
        } else {
            let hidden = u64::from(power > 0) << 52;
            Real::scaled(negative, U256::new(0, u128::from(fraction | hidden)), power.max(1) - 1075)
        }
    }
}

impl From<Integer> for Real {
    fn from(value: Integer) -> Real {
        Real::scaled(value.is_negative(), value.magnitude(), 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DType::*;

    fn numbers() -> Vec<f64> {
        let mut numbers = vec![0.0, -0.0, 1.0, -1.5, 3.0, 1e300, -1e-300, 5e-324, f64::INFINITY, f64::NAN];
        numbers.extend([0.1, 1e16, -1e16, f64::MAX, f64::MIN_POSITIVE, 1.0 + f64::EPSILON, 7.25, -12345.678]);
        numbers
    }

    fn same(a: f64, b: Real, what: &str) {
        let b = b.to_f64();
        assert!(a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()), "{what}: {a:?} {b:?}");
    }

    #[test]
    fn single_operations_round_as_ieee_does() {
        for x in numbers() {
            let a = Real::from(x);
            same(x, a, "itself");
            same(x.sqrt(), a.square_root(), "square root");
            same(x / 7.0, a.over_int(7), "over 7");
            for y in numbers() {
                let b = Real::from(y);
                same(x + y, a.plus(b), &format!("{x} + {y}"));
                same(x * y, a.times(b), &format!("{x} * {y}"));
                same(x / y, a.over(b), &format!("{x} / {y}"));
                assert_eq!(x.partial_cmp(&y), a.compare(b), "{x} {y}");
            }
        }
        assert_eq!(Real::ZERO.max(Real::MINUS_ZERO), Real::ZERO);
        assert_eq!(Real::MINUS_ZERO.max(Real::ZERO), Real::ZERO);
        assert_eq!(Real::ZERO.min(Real::MINUS_ZERO), Real::MINUS_ZERO);
    }

    #[test]
    fn narrow_floats_round_once() {
        for x in [65519.999, 65520.0, 2f64.powi(-25), 3e-8, 1.0 + 2f64.powi(-11), 3.4e38, -3.39e38, 1e-40, 1e-46] {
            for x in [x, x * (1.0 + 1e-15), x * (1.0 - 1e-15)] {
                for dtype in [F16, Bf16, F32, F64] {
                    assert_eq!(Real::from(x).to_float(dtype), Scalar::float(dtype, x), "{dtype} {x:e}");
                }
            }
        }
        // A tie but for one part in 2^200.
        let above = Real::from(1.0 + 2f64.powi(-24)).plus(Real::power_of_two(-200));
        assert_eq!(above.to_float(F32), Scalar::f32(1.0 + f32::EPSILON));
    }

    #[test]
    fn integers_are_clamped() {
        let int = |x: f64, half_even| Real::from(x).to_int(half_even, -128, 127);
        assert_eq!([2.5, 3.5, -0.5, 0.5, 0.75, 0.2].map(|x| int(x, true)), [2, 4, 0, 0, 1, 0]);
        assert_eq!([2.9, -2.9, 0.9, 1e30, -1e30, f64::NAN].map(|x| int(x, false)), [2, -2, 0, 127, -128, 0]);
    }
}
