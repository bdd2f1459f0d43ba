//! The element operations: operand types, results and meaning.
//!
//! Everything else is made of these: rows of the op table, `exp`, the conversions a target lacks.
//!
//! | operation | on | meaning |
//! | --- | --- | --- |
//! | `neg abs add sub mul` | numbers | floats: IEEE 754, rounded once, nearest even; integers: modulo 2^bits |
//! | `div` | numbers | floats: IEEE 754; integers: towards zero, modulo 2^bits (the least by -1 is the least); by 0 gives 0 |
//! | `mul_high` | i16 u64 | the upper half of the product, which has twice the bits |
//! | `fma` | f32 f64 | a * b + c, rounded once |
//! | `div_by` | f32 f64 | a / b as `div` gives it, in less time where vectors divide slowly; the third operand is 1 / b for b from 2^-24 to 2^24 (f64: 2^-200 to 2^200), else a NaN |
//! | `sqrt` | f32 f64 | IEEE 754, rounded once |
//! | `nearest` | f32 f64 | to an integer value, ties to even |
//! | `scale` | f32 f64 | a * 2^n, rounded once, for 1/2 <= \|a\| <= 2 and an integer n from -252 to 252 (f64: -2044 to 2044) |
//! | `scale_down` | f32 f64 | the same for n from -190 to 0 (f64: -1534 to 0), in fewer operations where vectors lack it |
//! | `min max` | numbers | floats: IEEE 754-2019 minimum and maximum: NaN if either is NaN, -0 below +0 |
//! | `and or xor not` | integers, bool | bitwise |
//! | `shl shr` | integers | amount modulo bits; `shr` of a signed integer keeps the sign |
//! | `clz` | u64 | leading zero bits; 64 for 0 |
//! | `eq ne lt le` | numbers -> bool | as numbers: NaN is unequal to all, -0 equals +0 |
//! | `select` | bool, any, any | the second where the first is true, else the third |
//! | a dtype's name, as `f32(x)` | any -> dtype | conversion: integers modulo 2^bits; to a float nearest even, once; float to integer towards zero, clamped, NaN to 0; bool to 0 or 1 |
//! | `bits_` and a dtype's name | same size | the same bits read as the other type |
//!
//! Which NaN an operation gives is not specified (instruction sets differ), but for a conversion to bf16, which gives
//! the canonical one: a nest makes NaN canonical before it stores one. `scale` and `scale_down` give a NaN if a is NaN
//! and n is not infinite (an instruction of AVX-512 gives inf for a NaN times 2^inf). With any other a or n outside these
//! ranges, and with any other third operand of `div_by`, the result is not specified.

use crate::{DType, Scalar};
use DType::*;

/// An element operation. The result type of `Cast` and `Bits` stands beside them in the expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the module's table defines each")]
pub enum Op {
    Neg,
    Abs,
    Sqrt,
    Nearest,
    Not,
    Clz,
    Cast,
    Bits,
    Add,
    Sub,
    Mul,
    MulHigh,
    Div,
    DivBy,
    Scale,
    ScaleDown,
    Min,
    Max,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    Eq,
    Ne,
    Lt,
    Le,
    Fma,
    Select,
}

use Op::*;

impl Op {
    /// Every operation.
    pub const ALL: [Op; 29] = [
        Neg, Abs, Sqrt, Nearest, Not, Clz, Cast, Bits, Add, Sub, Mul, MulHigh, Div, DivBy, Scale, ScaleDown, Min, Max,
        And, Or, Xor, Shl, Shr, Eq, Ne, Lt, Le, Fma, Select,
    ];

    /// The name in text; `cast` and `bits_` are written with their result type.
    pub const fn name(self) -> &'static str {
        match self {
            Neg => "neg",
            Abs => "abs",
            Sqrt => "sqrt",
            Nearest => "nearest",
            Not => "not",
            Clz => "clz",
            Cast => "cast",
            Bits => "bits_",
            Add => "add",
            Sub => "sub",
            Mul => "mul",
            MulHigh => "mul_high",
            Div => "div",
            DivBy => "div_by",
            Scale => "scale",
            ScaleDown => "scale_down",
            Min => "min",
            Max => "max",
            And => "and",
            Or => "or",
            Xor => "xor",
            Shl => "shl",
            Shr => "shr",
            Eq => "eq",
            Ne => "ne",
            Lt => "lt",
            Le => "le",
            Fma => "fma",
            Select => "select",
        }
    }

    /// The number of operands.
    pub const fn arity(self) -> usize {
        match self {
            Neg | Abs | Sqrt | Nearest | Not | Clz | Cast | Bits => 1,
            DivBy | Fma | Select => 3,
            _ => 2,
        }
    }

    /// Returns true if operands of these types give the type `result`.
    ///
    /// f16 and bf16 are types of memory: they are converted and their bits read, nothing else.
    pub fn accepts(self, result: DType, args: &[DType]) -> bool {
        if args.len() != self.arity() {
            return false;
        }
        let first = args[0];
        let number = |d: DType| d.is_int() || matches!(d, F32 | F64);
        let same = |ok: bool| ok && result == first && args.iter().all(|&a| a == first);
        match self {
            Neg | Abs | Add | Sub | Mul | Div | Min | Max => same(number(first)),
            Sqrt | Nearest | DivBy | Fma | Scale | ScaleDown => same(matches!(first, F32 | F64)),
            Not | And | Or | Xor => same(first.is_int() || first == Bool),
            Shl | Shr => same(first.is_int()),
            MulHigh => same(matches!(first, I16 | U64)),
            Clz => same(first == U64),
            Cast => result != first && result != Bool,
            Bits => result != first && result != Bool && first != Bool && result.bytes() == first.bytes(),
            Eq | Ne | Lt | Le => result == Bool && number(first) && args[1] == first,
            Select => first == Bool && args[1] == result && args[2] == result,
        }
    }

    /// Returns true if `operand` is neutral: the result is the other operand, but for the payload of a NaN.
    ///
    /// ```
    /// use cranefold_ir::{DType, Op, Scalar};
    ///
    /// assert!(Op::Add.is_neutral(Scalar::f32(-0.0)));
    /// assert!(!Op::Add.is_neutral(Scalar::f32(0.0)), "-0 + +0 is +0");
    /// assert!(Op::Min.is_neutral(Scalar::int(DType::U8, 255)));
    /// ```
    pub fn is_neutral(self, operand: Scalar) -> bool {
        let dtype = operand.dtype();
        match self {
            Add if dtype.is_float() => operand == Scalar::float(dtype, -0.0),
            Mul if dtype.is_float() => operand == Scalar::float(dtype, 1.0),
            Add | Or | Xor if dtype.is_int() => operand == Scalar::int(dtype, 0),
            Mul if dtype.is_int() => operand == Scalar::int(dtype, 1),
            And if dtype.is_int() => operand == Scalar::int(dtype, -1),
            Min => operand == Scalar::highest(dtype),
            Max => operand == Scalar::lowest(dtype),
            Or | Xor => operand == Scalar::bool(false),
            And => operand == Scalar::bool(true),
            _ => false,
        }
    }

    /// Returns true if the result of the operation is specified for these operands, of types it accepts: the ranges of
    /// `scale`, `scale_down` and `div_by` stand in the table of operations. Evaluators may differ in others.
    ///
    /// ```
    /// use cranefold_ir::{Op, Scalar};
    ///
    /// let of = |a, n| Op::ScaleDown.is_specified(&[Scalar::f32(a), Scalar::f32(n)]);
    /// assert!(of(1.5, -190.0) && of(f32::NAN, 1e9) && !of(1.5, -191.0) && !of(4.0, -1.0));
    /// assert!(of(f32::NAN, f32::NAN) && !of(f32::NAN, f32::INFINITY));
    /// ```
    pub fn is_specified(self, args: &[Scalar]) -> bool {
        let is_single = args[0].dtype() == F32;
        let most = match self {
            Scale | ScaleDown => {
                let [a, n] = [args[0].as_f64(), args[1].as_f64()];
                let (least, most) = match (self, is_single) {
                    (Scale, true) => (-252.0, 252.0),
                    (Scale, false) => (-2044.0, 2044.0),
                    (_, true) => (-190.0, 0.0),
                    (_, false) => (-1534.0, 0.0),
                };
                let is_within = (0.5..=2.0).contains(&a.abs()) && (least..=most).contains(&n) && n.fract() == 0.0;
                return a.is_nan() && !n.is_infinite() || is_within;
            }
            DivBy if is_single => 2f64.powi(24),
            DivBy => 2f64.powi(200),
            _ => return true,
        };
        let [b, y] = [args[1], args[2]];
        let one = Scalar::float(b.dtype(), 1.0);
        y.as_f64().is_nan() || (1.0 / most..=most).contains(&b.as_f64().abs()) && y == Div.eval(b.dtype(), &[one, b])
    }

    /// The value of the operation, given operands of types it accepts.
    pub fn eval(self, result: DType, args: &[Scalar]) -> Scalar {
        let a = args[0];
        match self {
            Cast => cast(result, a),
            Bits => Scalar::from_bits(result, a.bits()),
            Select => args[if a.bits() != 0 { 1 } else { 2 }],
            _ if a.dtype() == F32 => self.eval_f32(args),
            _ if a.dtype() == F64 => self.eval_f64(args),
            _ => self.eval_int(args),
        }
    }
}

/// Evaluates the float operations for one Rust float type.
macro_rules! eval_float {
    ($name:ident, $float:ty, $new:path, $of:expr, $scaled:path) => {
        fn $name(self, args: &[Scalar]) -> Scalar {
            let of = $of;
            let a: $float = of(args[0]);
            let b: $float = if args.len() > 1 { of(args[1]) } else { a };
            $new(match self {
                Neg => -a,
                Abs => a.abs(),
                Sqrt => a.sqrt(),
                Nearest => a.round_ties_even(),
                Add => a + b,
                Sub => a - b,
                Mul => a * b,
                Div | DivBy => a / b,
                Scale | ScaleDown => $scaled(a, b),
                Min | Max if a.is_nan() || b.is_nan() => <$float>::NAN,
                // Of two equal values only the zeros differ.
                Min if a == b => {
                    if a.is_sign_negative() {
                        a
                    } else {
                        b
                    }
                }
                Max if a == b => {
                    if a.is_sign_negative() {
                        b
                    } else {
                        a
                    }
                }
                Min => {
                    if a < b {
                        a
                    } else {
                        b
                    }
                }
                Max => {
                    if a < b {
                        b
                    } else {
                        a
                    }
                }
                Fma => a.mul_add(b, of(args[2])),
                Eq => return Scalar::bool(a == b),
                Ne => return Scalar::bool(a != b),
                Lt => return Scalar::bool(a < b),
                Le => return Scalar::bool(a <= b),
                _ => unreachable!("{} takes no float", self.name()),
            })
        }
    };
}

impl Op {
    eval_float!(eval_f32, f32, Scalar::f32, |s: Scalar| f32::from_bits(s.bits() as u32), scaled_f32);
    eval_float!(eval_f64, f64, Scalar::f64, |s: Scalar| f64::from_bits(s.bits()), scaled_f64);

    fn eval_int(self, args: &[Scalar]) -> Scalar {
        let dtype = args[0].dtype();
        let int = |s: Scalar| s.as_int().expect("an integer");
        let a = int(args[0]);
        let b = if args.len() > 1 { int(args[1]) } else { a };
        let amount = (b as u64 & u64::from(dtype.bits() - 1)) as u32;
        let value = match self {
            Neg => -a,
            Abs => a.abs(),
            Not if dtype == Bool => 1 - a,
            Not => !a,
            Clz => i128::from((a as u64).leading_zeros()),
            Add => a + b,
            Sub => a - b,
            // The low 128 bits are enough: the result keeps at most 64.
            Mul => a.wrapping_mul(b),
            MulHigh if dtype == U64 => ((a as u128 * b as u128) >> 64) as i128,
            MulHigh => (a * b) >> dtype.bits(),
            Div => a.checked_div(b).unwrap_or(0),
            Min => a.min(b),
            Max => a.max(b),
            And => a & b,
            Or => a | b,
            Xor => a ^ b,
            Shl => a << amount,
            Shr => a >> amount,
            Eq => return Scalar::bool(a == b),
            Ne => return Scalar::bool(a != b),
            Lt => return Scalar::bool(a < b),
            Le => return Scalar::bool(a <= b),
            _ => unreachable!("{} takes no integer", self.name()),
        };
        Scalar::int(dtype, value)
    }
}

/// a * 2^n: the product in f64 is exact.
fn scaled_f32(a: f32, n: f32) -> f32 {
    (f64::from(a) * power_of_two(n.into())) as f32
}

/// a * 2^n: the first product is exact.
fn scaled_f64(a: f64, n: f64) -> f64 {
    let half = (n / 2.0).floor();
    a * power_of_two(half) * power_of_two(n - half)
}

/// 2^n; where it is no normal number, one beside.
fn power_of_two(n: f64) -> f64 {
    f64::from_bits(((n.clamp(-1022.0, 1023.0) as i64 + 1023) as u64) << 52)
}

fn cast(to: DType, a: Scalar) -> Scalar {
    match a.as_int() {
        Some(i) => Scalar::int(to, i),
        None if to.is_float() => Scalar::float(to, a.as_f64()),
        None => {
            // Rust's `as` is the conversion defined here, and i128 holds every range.
            let (lo, hi) = to.int_range().expect("an integer type");
            Scalar::int(to, (a.as_f64() as i128).clamp(lo, hi))
        }
    }
}
