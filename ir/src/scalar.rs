//! One value of one element type, kept as its bits.

use crate::DType;
use DType::*;
use half::{bf16, f16};
use std::fmt;

/// A value of an element type. Equality is equality of type and bits, so `-0` differs from `0` and
/// a NaN equals itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scalar {
    dtype: DType,
    bits: u64,
}

impl Scalar {
    /// The value with these low bits; bits above the type's size are dropped, a `bool` becomes 0 or 1.
    pub const fn from_bits(dtype: DType, bits: u64) -> Scalar {
        let bits = match dtype.bytes() {
            _ if matches!(dtype, Bool) => (bits & 0xff != 0) as u64,
            1 => bits & 0xff,
            2 => bits & 0xffff,
            4 => bits & 0xffff_ffff,
            _ => bits,
        };
        Scalar { dtype, bits }
    }

    /// An `f32`.
    pub const fn f32(value: f32) -> Scalar {
        Scalar::from_bits(F32, value.to_bits() as u64)
    }

    /// An `f64`.
    pub const fn f64(value: f64) -> Scalar {
        Scalar::from_bits(F64, value.to_bits())
    }

    /// A `bool`.
    pub const fn bool(value: bool) -> Scalar {
        Scalar { dtype: Bool, bits: value as u64 }
    }

    /// The integer `value` in `dtype`, modulo 2^bits; for a float type the nearest float.
    pub fn int(dtype: DType, value: i128) -> Scalar {
        match dtype {
            F64 => Scalar::f64(value as f64),
            F32 => Scalar::f32(value as f32),
            F16 | Bf16 => Scalar::float(dtype, value as f64),
            _ => Scalar::from_bits(dtype, value as u64),
        }
    }

    /// The float of type `dtype` nearest to `value`, ties to even, rounded once.
    ///
    /// # Panics
    /// If `dtype` is no float type.
    pub fn float(dtype: DType, value: f64) -> Scalar {
        match dtype {
            F64 => Scalar::f64(value),
            F32 => Scalar::f32(value as f32),
            F16 => Scalar::from_bits(F16, round_to_half(value, 5, 10)),
            Bf16 => Scalar::from_bits(Bf16, round_to_half(value, 8, 7)),
            _ => panic!("{dtype} is no float type"),
        }
    }

    /// The element type.
    pub const fn dtype(self) -> DType {
        self.dtype
    }

    /// The bits, in the low end.
    pub const fn bits(self) -> u64 {
        self.bits
    }

    /// Zero, or false.
    pub const fn zero(dtype: DType) -> Scalar {
        Scalar::from_bits(dtype, 0)
    }

    /// The canonical quiet NaN: positive, only the quiet bit set.
    ///
    /// # Panics
    /// If `dtype` is no float type.
    pub const fn nan(dtype: DType) -> Scalar {
        let bits = match dtype {
            F16 => 0x7e00,
            Bf16 => 0x7fc0,
            F32 => 0x7fc0_0000,
            F64 => 0x7ff8_0000_0000_0000,
            _ => panic!("no NaN in this type"),
        };
        Scalar { dtype, bits }
    }

    /// The least value of the type: minus infinity, the least integer, false.
    pub fn lowest(dtype: DType) -> Scalar {
        match dtype.int_range() {
            Some((lo, _)) => Scalar::int(dtype, lo),
            None if dtype == Bool => Scalar::bool(false),
            None => Scalar::float(dtype, f64::NEG_INFINITY),
        }
    }

    /// The greatest value of the type: infinity, the greatest integer, true.
    pub fn highest(dtype: DType) -> Scalar {
        match dtype.int_range() {
            Some((_, hi)) => Scalar::int(dtype, hi),
            None if dtype == Bool => Scalar::bool(true),
            None => Scalar::float(dtype, f64::INFINITY),
        }
    }

    /// Returns true for a NaN.
    pub fn is_nan(self) -> bool {
        self.dtype.is_float() && self.as_f64().is_nan()
    }

    /// The value as an `f64`: exact for floats, nearest for 64-bit integers.
    pub fn as_f64(self) -> f64 {
        match self.dtype {
            F16 => f64::from(f16::from_bits(self.bits as u16)),
            Bf16 => f64::from(bf16::from_bits(self.bits as u16)),
            F32 => f64::from(f32::from_bits(self.bits as u32)),
            F64 => f64::from_bits(self.bits),
            I64 => self.bits as i64 as f64,
            U64 => self.bits as f64,
            _ => self.as_int().expect("an integer") as f64,
        }
    }

    /// The value of an integer or `bool`; `None` for a float.
    pub fn as_int(self) -> Option<i128> {
        Some(match self.dtype {
            Bool | U8 | U16 | U32 | U64 => i128::from(self.bits),
            I8 => i128::from(self.bits as i8),
            I16 => i128::from(self.bits as i16),
            I32 => i128::from(self.bits as i32),
            I64 => i128::from(self.bits as i64),
            F16 | Bf16 | F32 | F64 => return None,
        })
    }

    /// Element `index` of a buffer of `dtype`, in the machine's byte order; a non-zero byte is true.
    ///
    /// # Panics
    /// If the element lies outside the buffer.
    pub fn read(dtype: DType, bytes: &[u8], index: usize) -> Scalar {
        let size = dtype.bytes() as usize;
        let at = &bytes[index * size..][..size];
        let bits = match size {
            1 => u64::from(at[0]),
            2 => u64::from(u16::from_ne_bytes(at.try_into().expect("two bytes"))),
            4 => u64::from(u32::from_ne_bytes(at.try_into().expect("four bytes"))),
            _ => u64::from_ne_bytes(at.try_into().expect("eight bytes")),
        };
        Scalar::from_bits(dtype, bits)
    }

    /// Writes element `index` of a buffer of this type, in the machine's byte order.
    ///
    /// # Panics
    /// If the element lies outside the buffer.
    pub fn write(self, bytes: &mut [u8], index: usize) {
        let size = self.dtype.bytes() as usize;
        let at = &mut bytes[index * size..][..size];
        match size {
            1 => at[0] = self.bits as u8,
            2 => at.copy_from_slice(&(self.bits as u16).to_ne_bytes()),
            4 => at.copy_from_slice(&(self.bits as u32).to_ne_bytes()),
            _ => at.copy_from_slice(&self.bits.to_ne_bytes()),
        }
    }

    /// Reads the text form of a value of a known type; `None` if it is none.
    ///
    /// Numbers, `inf`, `-inf`, `nan`, `true`, `false`, and `bits(0x7fc00001)` for other NaNs.
    pub fn parse(dtype: DType, text: &str) -> Option<Scalar> {
        if let Some(hex) = text.strip_prefix("bits(0x").and_then(|t| t.strip_suffix(')')) {
            let bits = u64::from_str_radix(hex, 16).ok()?;
            return (Scalar::from_bits(dtype, bits).bits == bits).then(|| Scalar::from_bits(dtype, bits));
        }
        match dtype {
            Bool => match text {
                "true" => Some(Scalar::bool(true)),
                "false" => Some(Scalar::bool(false)),
                _ => None,
            },
            F16 | Bf16 | F32 | F64 => {
                let digits = text.strip_prefix('-').unwrap_or(text);
                if digits == "nan" {
                    return (text == "nan").then(|| Scalar::nan(dtype));
                }
                if digits != "inf" && !digits.starts_with(|c: char| c.is_ascii_digit()) {
                    return None;
                }
                match dtype {
                    F32 => text.parse().ok().map(Scalar::f32),
                    _ => text.parse().ok().map(|v| Scalar::float(dtype, v)),
                }
            }
            _ => {
                let value: i128 = text.parse().ok()?;
                let (lo, hi) = dtype.int_range()?;
                (lo <= value && value <= hi).then(|| Scalar::int(dtype, value))
            }
        }
    }
}

/// Text that [`Scalar::parse`] reads back to the same bits, given the type.
impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.dtype {
            Bool => write!(f, "{}", self.bits != 0),
            _ if self.is_nan() && *self == Scalar::nan(self.dtype) => f.write_str("nan"),
            _ if self.is_nan() => write!(f, "bits({:#x})", self.bits),
            F32 => write!(f, "{:?}", f32::from_bits(self.bits as u32)),
            F16 | Bf16 | F64 => write!(f, "{:?}", self.as_f64()),
            _ => write!(f, "{}", self.as_int().expect("an integer")),
        }
    }
}

/// Rounds to a 16-bit float of `exp` exponent and `frac` fraction bits: nearest even, once.
fn round_to_half(value: f64, exp: u32, frac: u32) -> u64 {
    let bits = value.to_bits();
    let sign = (bits >> 63) << 15;
    let magnitude = bits & !(1 << 63);
    let inf = ((1u64 << exp) - 1) << frac;
    if value.is_nan() {
        return inf | (1 << (frac - 1));
    }
    let bias = (1i64 << (exp - 1)) - 1;
    let e = (magnitude >> 52) as i64 - 1023;
    if e > bias {
        return sign | inf;
    }
    // Bits to drop from the 53-bit significand: more of them below the least normal exponent.
    let drop = 52 - i64::from(frac) + (1 - bias - e).max(0);
    if drop > 54 {
        return sign;
    }
    let significand = (magnitude & ((1 << 52) - 1)) | (1 << 52);
    let kept = significand >> drop;
    let rest = significand & ((1 << drop) - 1);
    let half = 1u64 << (drop - 1);
    let rounded = kept + u64::from(rest > half || (rest == half && kept & 1 == 1));
    // A carry out of the significand moves into the exponent, also to infinity.
    let exponent = if e < 1 - bias { 0 } else { (e + bias - 1) as u64 };
    sign | ((exponent << frac) + rounded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_survive_the_way_through_f64() {
        for bits in 0..=0xffffu64 {
            for dtype in [F16, Bf16] {
                let s = Scalar::from_bits(dtype, bits);
                let back = Scalar::float(dtype, s.as_f64());
                assert!(back == s || (s.is_nan() && back == Scalar::nan(dtype)), "{dtype} {bits:#x}");
                assert_eq!(Scalar::parse(dtype, &s.to_string()), Some(s));
            }
        }
    }

    #[test]
    fn rounding_to_half_is_nearest_even_and_single() {
        let f = |v: f64| Scalar::float(F16, v).bits();
        assert_eq!(f(65519.999), 0x7bff);
        assert_eq!(f(65520.0), 0x7c00);
        assert_eq!(f(2f64.powi(-25)), 0);
        assert_eq!(f(2f64.powi(-25) * 1.0000001), 1);
        assert_eq!(f(-1.0 - 2f64.powi(-11)), 0xbc00);
        // Twice rounded (through f32) this would go up.
        assert_eq!(f(1.0 + 2f64.powi(-11) - 2f64.powi(-40)), 0x3c00);
        assert_eq!(Scalar::float(Bf16, 3.4e38).bits(), 0x7f80);
        assert_eq!(Scalar::float(Bf16, 1.0 + 2f64.powi(-8)).bits(), 0x3f80);
    }
}
