//! Conversions between floats and integers, in operations of lanes of one size.
//!
//! Vectors of less than 512 bits have no instruction for 64-bit integers, and few for `u32`. A definition here is named
//! by its result and its source: `i64.f32` is i64 of an f32. All are right for every input, as
//! [`Op::Cast`](crate::Op::Cast) means: to a float rounded once, to nearest even; to an integer towards zero, clamped,
//! and 0 of a NaN.
//!
//! They use one fact: the last bits of 2^52 + n, as an f64, are those of n.

use crate::{DType, Def, Expr, Lets, Scalar, math};
use DType::*;

/// The definition of a conversion between floats and integers of 32 or 64 bits; `None` for others.
///
/// | conversion | definition | operations |
/// | --- | --- | --- |
/// | `f32.u32` | the upper and the lower 16 bits apart, whose sum is rounded once | 7 |
/// | `f64.u32` | the bits of 2^52 + x, less 2^52 | 4 |
/// | `f64.u64 f64.i64` | the upper and the lower 32 bits apart, whose sum is rounded once | 8, 9 |
/// | `f32.u64 f32.i64` | the f64 of x, with its last bits joined into one where they would be rounded twice | 17, 19 |
/// | `u32.f32` | i32 of x, or of x - 2^31 | 9 |
/// | `u32.f64` | the bits of 2^52 + x | 9 |
/// | `i64.f64 u64.f64` | h 2^32 + l, with the bits of h and l out of sums as above | 23, 19 |
/// | `i64.f32 u64.f32` | those of f64 of x, which is exact | 24, 20 |
///
/// ```
/// use cranefold_ir::DType::{F32, I64};
/// use cranefold_ir::Scalar;
/// use cranefold_ir::math::integer_conversion;
///
/// let def = integer_conversion(I64, F32).expect("a definition");
/// assert_eq!(def.eval(&[Scalar::f32(-3e10)]), [Scalar::int(I64, -30_000_001_024)]);
/// ```
pub fn integer_conversion(to: DType, from: DType) -> Option<Def> {
    let convert: fn(&mut Lets, &Expr) -> Expr = match (to, from) {
        (F32, U32) => f32_of_u32,
        (F64, U32) => |_, x| f64_of_u32(x),
        (F64, U64 | I64) => f64_of_64,
        (F32, U64 | I64) => f32_of_64,
        (U32, F32) => u32_of_f32,
        (U32, F64) => u32_of_f64,
        (I64, F64) => i64_of_f64,
        (U64, F64) => u64_of_f64,
        (I64, F32) => |lets, x| {
            let x = lets.bind(x.clone().cast(F64));
            i64_of_f64(lets, &x)
        },
        (U64, F32) => |lets, x| {
            let x = lets.bind(x.clone().cast(F64));
            u64_of_f64(lets, &x)
        },
        _ => return None,
    };
    Some(Def::build(format!("{to}.{from}"), &[from], |lets, args| vec![convert(lets, &args[0])]))
}

fn power(dtype: DType, n: i32) -> Expr {
    Scalar::float(dtype, 2f64.powi(n)).into()
}

/// The sum of an upper part, whose unit is 2^k, and a lower part: each is the last bits of a power of two, which the
/// subtraction takes away. It is exact, and the addition rounds.
fn joined(upper: Expr, lower: Expr, powers: f64) -> Expr {
    upper.clone().sub(upper.float(powers)).add(lower)
}

fn f32_of_u32(_: &mut Lets, x: &Expr) -> Expr {
    let (high, low) = (power(F32, 39).bits(U32), power(F32, 23).bits(U32));
    let lower = x.clone().and(x.int(0xffff)).or(low).bits(F32);
    let upper = x.clone().shr(x.int(16)).or(high).bits(F32);
    joined(upper, lower, 2f64.powi(39) + 2f64.powi(23))
}

fn f64_of_u32(x: &Expr) -> Expr {
    x.clone().cast(U64).or(power(F64, 52).bits(U64)).bits(F64).sub(power(F64, 52))
}

fn f64_of_64(_: &mut Lets, x: &Expr) -> Expr {
    // The sign bit of an i64 is turned, which adds 2^63.
    let offset = if x.dtype().is_signed() { 2f64.powi(63) } else { 0.0 };
    let high = Scalar::f64(2f64.powi(84) + offset);
    let x = x.clone().bits(U64);
    let lower = x.clone().and(x.int(0xffff_ffff)).or(power(F64, 52).bits(U64)).bits(F64);
    let upper = x.clone().shr(x.int(32)).xor(Expr::from(Scalar::from_bits(U64, high.bits()))).bits(F64);
    joined(upper, lower, 2f64.powi(84) + offset + 2f64.powi(52))
}

fn f32_of_64(lets: &mut Lets, x: &Expr) -> Expr {
    // An f64 holds integers below 2^53. From there on an f32 rounds far above the last 11 bits, so that it is enough
    // to know of them if one is set.
    let last = 0x7ff;
    let set = x.clone().and(x.int(last)).add(x.int(last));
    let joined = x.clone().or(set).and(x.int(!last));
    let below = if x.dtype().is_signed() { 1i128 << 53 } else { 0 };
    let moved = x.clone().bits(U64).add(Scalar::int(U64, below).into());
    let is_exact = moved.lt(Scalar::int(U64, (1i128 << 53) + below).into());
    let value = lets.bind(is_exact.select(x.clone(), joined));
    f64_of_64(lets, &value).cast(F32)
}

/// x where it is above 0, else 0, also for a NaN.
fn positive(x: &Expr) -> Expr {
    x.float(0.0).lt(x.clone()).select(x.clone(), x.float(0.0))
}

fn u32_of_f32(lets: &mut Lets, x: &Expr) -> Expr {
    let x = lets.bind(positive(x));
    let half = power(F32, 31);
    let is_upper = lets.bind(half.clone().le(x.clone()));
    let rest = is_upper.clone().select(x.clone().sub(half), x).cast(I32).bits(U32);
    let upper = is_upper.select(rest.int(1 << 31), rest.int(0));
    rest.or(upper)
}

fn u32_of_f64(lets: &mut Lets, x: &Expr) -> Expr {
    let x = lets.bind(positive(x));
    let most = x.float(f64::from(u32::MAX));
    let x = lets.bind(x.clone().lt(most.clone()).select(x, most));
    let whole = lets.splice(&math::floor(F64), &[x]).remove(0);
    whole.add(power(F64, 52)).bits(U64).cast(U32)
}

/// The last 64 bits of an integer of an f64.
fn last_bits(lets: &mut Lets, whole: Expr) -> Expr {
    let whole = lets.bind(whole);
    // The last bits are those of a sum also where what is added is below 0.
    let magic = whole.float(1.5 * 2f64.powi(52));
    let high = lets.bind(whole.clone().mul(power(F64, -32)).nearest());
    let low = high.clone().fma(whole.float(-(2f64.powi(32))), whole);
    let high = high.add(magic.clone()).bits(U64);
    let high = high.clone().shl(high.int(32));
    high.add(low.add(magic.clone()).bits(U64)).sub(Expr::from(Scalar::from_bits(U64, bits_of(&magic))))
}

fn bits_of(constant: &Expr) -> u64 {
    if let Expr::Const(s) = constant { s.bits() } else { unreachable!("a constant") }
}

fn i64_of_f64(lets: &mut Lets, x: &Expr) -> Expr {
    let whole = lets.splice(&math::trunc(F64), std::slice::from_ref(x)).remove(0);
    let bits = last_bits(lets, whole).bits(I64);
    let limit = power(F64, 63);
    let least = x.clone().lt(limit.clone().neg());
    let value = least.select(bits.int(i64::MIN.into()), bits.clone());
    let value = limit.le(x.clone()).select(bits.int(i64::MAX.into()), value);
    x.clone().eq(x.clone()).select(value, bits.int(0))
}

fn u64_of_f64(lets: &mut Lets, x: &Expr) -> Expr {
    let x = lets.bind(positive(x));
    let whole = lets.splice(&math::floor(F64), std::slice::from_ref(&x)).remove(0);
    let bits = last_bits(lets, whole);
    power(F64, 64).le(x).select(bits.int(u64::MAX.into()), bits)
}
