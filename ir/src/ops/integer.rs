//! Reducers of integers: exact.
//!
//! Modular ones accumulate modulo 2^bits of the output. The others form the exact total, in the
//! fewest bits that the number of elements proves enough (32, halves of 64, or limbs), finish it and
//! clamp or convert it once.

use super::{Reducer, RowTypes, combine};
use crate::math::{limbs, quotient_of_i16};
use crate::{DType, Def, Expr, Lets, Op, Scalar};

/// An integer element in the output's type: clamped, or modulo 2^bits where the row wraps.
pub(super) fn give(lets: &mut Lets, x: Expr, types: &RowTypes) -> Expr {
    if types.output.is_float() {
        return x.cast(DType::F64).cast(types.output);
    }
    if types.saturate { clamp(lets, x, types.output) } else { x.cast(types.output) }
}

/// The nearest value of a type. Bounds that the element's own type implies are left out.
fn clamp(lets: &mut Lets, x: Expr, to: DType) -> Expr {
    let ((from_low, from_high), (low, high)) = (range(x.dtype()), range(to));
    let x = lets.bind(x);
    let above = if from_low < low { x.clone().max(x.int(low)) } else { x };
    let within = if from_high > high { above.clone().min(above.int(high)) } else { above };
    within.cast(to)
}

fn range(dtype: DType) -> (i128, i128) {
    dtype.int_range().expect("an integer type")
}

/// The reducer of one accumulator that is combined by an operation.
fn simple(
    types: &RowTypes,
    (op, acc, identity): (Op, DType, Scalar),
    lift: impl FnOnce(&mut Lets, Expr) -> Expr,
    finish: impl FnOnce(&mut Lets, Expr) -> Expr,
) -> Reducer {
    let lift = Def::build("lift", &[types.input], |lets, args| vec![lift(lets, args[0].clone())]);
    let finish = Def::build("finish", &[acc], |lets, args| vec![finish(lets, args[0].clone())]);
    Reducer::simple(vec![identity], lift, combine(op, acc), finish)
}

pub(super) fn min(types: &RowTypes) -> Reducer {
    extreme(types, Op::Min, Scalar::highest(types.input))
}

pub(super) fn max(types: &RowTypes) -> Reducer {
    extreme(types, Op::Max, Scalar::lowest(types.input))
}

fn extreme(types: &RowTypes, op: Op, identity: Scalar) -> Reducer {
    let clamped = RowTypes { saturate: true, ..types.clone() };
    simple(types, (op, types.input, identity), |_, x| x, |lets, m| give(lets, m, &clamped))
}

/// The greatest magnitude.
pub(super) fn linf(types: &RowTypes) -> Reducer {
    let clamped = RowTypes { saturate: true, ..types.clone() };
    let acc = types.input.unsigned();
    simple(types, (Op::Max, acc, Scalar::int(acc, 0)), |_, x| magnitude(x), |lets, m| give(lets, m, &clamped))
}

/// The greatest less the least.
pub(super) fn ptp(types: &RowTypes) -> Reducer {
    let dtype = types.input;
    let lift = Def::build("both", &[dtype], |_, args| vec![args[0].clone(), args[0].clone()]);
    let combine = Def::build("extremes", &[dtype; 4], |_, args| {
        let [least, greatest, least2, greatest2] = args else { unreachable!("four parameters") };
        vec![least.clone().min(least2.clone()), greatest.clone().max(greatest2.clone())]
    });
    let finish = Def::build("finish", &[dtype; 2], |lets, args| {
        if types.count == 0 && types.output.is_float() {
            return vec![Scalar::nan(types.output).into()];
        }
        // The difference is below 2^bits: right in the unsigned type.
        let difference = args[1].clone().sub(args[0].clone()).bits(dtype.unsigned());
        vec![give(lets, difference, &RowTypes { saturate: true, ..types.clone() })]
    });
    Reducer::simple(vec![Scalar::highest(dtype), Scalar::lowest(dtype)], lift, combine, finish)
}

/// The reducer by an operation on the bits, identity all zeros or all ones.
pub(super) fn bitwise(types: &RowTypes, op: Op) -> Reducer {
    let dtype = types.input;
    let identity = Scalar::int(dtype, if op == Op::And { -1 } else { 0 });
    simple(types, (op, dtype, identity), |_, x| x, |lets, bits| give(lets, bits, types))
}

/// The number of elements that are not zero, counted in the type of positions.
pub(super) fn count_nonzero(types: &RowTypes) -> Reducer {
    let count = types.position;
    let as_wide = |x: Expr| match x.dtype() {
        // A half is zero if its bits without the sign are.
        d if d.is_float() && d.bytes() < 4 => {
            let bits = x.bits(d.unsigned());
            let magnitude = bits.int(0x7fff);
            bits.and(magnitude).cast(count)
        }
        d if d.is_int() => x.cast(if d.bytes() < 4 { count } else { d }),
        _ => x,
    };
    let lift = |_: &mut Lets, x: Expr| {
        let x = as_wide(x);
        let zero = Scalar::zero(x.dtype()).into();
        x.ne(zero).select(Scalar::int(count, 1).into(), Scalar::int(count, 0).into())
    };
    simple(types, (Op::Add, count, Scalar::int(count, 0)), lift, |_, n| n.cast(types.count_output))
}

/// Returns true if the result is taken modulo 2^bits of the output.
fn is_modular(types: &RowTypes) -> bool {
    !types.saturate && types.output.is_int()
}

/// The accumulator of a modular product: 8-bit products are formed in 16 bits, which have vectors.
fn product_type(output: DType) -> DType {
    if output.bytes() == 1 { DType::U16 } else { output }
}

/// |x|, unsigned in its own size, so that it holds for the least value too.
fn magnitude(x: Expr) -> Expr {
    let unsigned = x.dtype().unsigned();
    if x.dtype().is_signed() { x.abs().bits(unsigned) } else { x }
}

pub(super) fn sum(types: &RowTypes) -> Reducer {
    if is_modular(types) {
        let acc = types.output;
        return simple(types, (Op::Add, acc, Scalar::int(acc, 0)), |_, x| x.cast(acc), |_, s| s);
    }
    total(types, Term::Value, |lets, total| total.give(lets, types))
}

pub(super) fn l1(types: &RowTypes) -> Reducer {
    if is_modular(types) {
        let acc = types.output;
        return simple(types, (Op::Add, acc, Scalar::int(acc, 0)), |_, x| magnitude(x).cast(acc), |_, s| s);
    }
    total(types, Term::Magnitude, |lets, total| total.give(lets, types))
}

pub(super) fn sum_squares(types: &RowTypes) -> Reducer {
    if is_modular(types) {
        let acc = product_type(types.output);
        let square = |lets: &mut Lets, x: Expr| {
            let x = lets.bind(x.cast(acc));
            x.clone().mul(x)
        };
        let give = |_: &mut Lets, s: Expr| s.cast(types.output);
        return simple(types, (Op::Add, acc, Scalar::int(acc, 0)), square, give);
    }
    total(types, Term::Square, |lets, total| total.give(lets, types))
}

pub(super) fn mean(types: &RowTypes) -> Reducer {
    total(types, Term::Value, |lets, total| mean_of(lets, total, types.count, types))
}

/// The fewest elements of which a total in 32 bits takes as long: bytes side by side are summed in lanes of 32 bits.
const AS_FAST_IN_32_BITS: u64 = 256;

/// The mean by a total in 16 bits, where these hold it: twice as many lanes.
pub(super) fn direct_mean(types: &RowTypes) -> Option<Reducer> {
    if types.is_float() {
        return None;
    }
    let bits = Term::Value.bits(types.input) + bits_of(types.count) + 1;
    let signed = Term::Value.is_signed(types.input);
    let give = |lets: &mut Lets, total: Total| mean_of(lets, total, types.count, types);
    (bits <= 16 && types.count < AS_FAST_IN_32_BITS).then(|| in_one(types, Term::Value, (DType::I16, signed), give))
}

/// A total of `count` elements divided by it.
fn mean_of(lets: &mut Lets, total: Total, count: u64, types: &RowTypes) -> Expr {
    // A spec without elements is refused, unless it writes nothing or floats.
    let (signed, divisor) = (total.signed, count.max(1));
    match total.value {
        TotalValue::Small(small) if types.output.is_int() && small.dtype() == DType::I16 && !types.half_even => {
            let quotient = quotient_of_i16(&small, divisor as i16, signed);
            let ((least, most), (low, high)) = (range(types.input), range(types.output));
            // A mean lies between the elements.
            if low <= least && most <= high { quotient.cast(types.output) } else { clamp(lets, quotient, types.output) }
        }
        TotalValue::Small(small) if types.output.is_int() || types.output == DType::F32 && count > 0 => {
            let total = small.cast(quotient_type(types.input, count));
            let quotient = total.clone().div(total.float(divisor as f64));
            if types.output.is_int() && types.half_even { quotient.nearest() } else { quotient }.cast(types.output)
        }
        TotalValue::Limbs(limbs) if types.output.is_int() => {
            let divide = if types.half_even { limbs::divide_half_even } else { limbs::divide };
            let quotient = TotalValue::Limbs(divide(lets, &limbs, divisor, signed));
            Total { value: quotient, signed }.give(lets, types)
        }
        value => {
            let sum = Total { value, signed }.to_f64(lets);
            let mean = sum.clone().div(sum.float(count as f64));
            lets.splice(&crate::math::canon(DType::F64), &[mean]).remove(0).cast(types.output)
        }
    }
}

/// The float type in which a total of elements, of less than 31 bits, is divided by their number. A quotient that is no
/// integer lies at least `1 / count` from one, and one that is not half way between two at least `1 / (2 * count)` from
/// that. A type of p bits rounds a quotient, unless it is exact, by less than `|total| / count / 2^p`. That is at most
/// `1 / (2 * count)` for totals up to `2^(p - 1)`: up to 2^23 in f32, for all in f64.
///
/// As an `f32`, a quotient of two numbers of 24 bits is the same by way of f64, which has more than twice as many bits.
fn quotient_type(input: DType, count: u64) -> DType {
    if Term::Value.bits(input) + bits_of(count) < f32::MANTISSA_DIGITS { DType::F32 } else { DType::F64 }
}

/// The exponent of the least power of two that a count does not exceed.
fn bits_of(count: u64) -> u32 {
    u64::BITS - count.saturating_sub(1).leading_zeros()
}

/// The exact mean of two elements, in the output's type.
pub(super) fn mean_of_two(lets: &mut Lets, a: &Expr, b: &Expr, types: &RowTypes) -> Expr {
    let wide = |lets: &mut Lets, x: &Expr| limbs::widen(lets, x, 2);
    let (a, b) = (wide(lets, a), wide(lets, b));
    let total = limbs::add(lets, &a, &b);
    mean_of(lets, Total { value: TotalValue::Limbs(total), signed: types.input.is_signed() }, 2, types)
}

pub(super) fn l2(types: &RowTypes) -> Reducer {
    total(types, Term::Square, |lets, total| match total.value {
        TotalValue::Small(small) if types.output.is_int() || types.output == DType::F32 => {
            let root = small.cast(root_type(types.input, types.count)).sqrt();
            if types.output.is_int() && types.half_even { root.nearest() } else { root }.cast(types.output)
        }
        TotalValue::Limbs(limbs) if types.output.is_int() => {
            let root = if types.half_even { limbs::root_nearest } else { limbs::root_floor };
            Total { value: TotalValue::Limbs(root(lets, &limbs)), signed: false }.give(lets, types)
        }
        value => Total { value, signed: false }.to_f64(lets).sqrt().cast(types.output),
    })
}

/// The float type of the square root of a total of squares, of less than 31 bits. The root of a total up to `2^(2 m)`
/// that is no square lies more than `2^(-m - 1)` from an integer k of up to m bits, and more than `2^(-m - 3)` from the
/// middle between two. A type of p bits rounds it by at most `2^(m - p - 1)`, which is no more than that for totals up to
/// `2^(p - 2)`: up to 2^22 in f32, for all in f64. As an `f32`, the root is the same by way of f64, which has more than
/// twice as many bits.
fn root_type(input: DType, count: u64) -> DType {
    if Term::Square.bits(input) + bits_of(count) <= f32::MANTISSA_DIGITS - 2 { DType::F32 } else { DType::F64 }
}

/// The product: modulo 2^bits, or as a sign and a magnitude that saturates at 2^64 - 1.
pub(super) fn prod(types: &RowTypes) -> Reducer {
    if is_modular(types) {
        let acc = product_type(types.output);
        let give = |_: &mut Lets, s: Expr| s.cast(types.output);
        return simple(types, (Op::Mul, acc, Scalar::int(acc, 1)), |_, x| x.cast(acc), give);
    }
    let limb = DType::U64;
    let identity = vec![Scalar::int(limb, 0), Scalar::int(limb, 1)];
    let lift = Def::build("lift", &[types.input], |lets, args| limbs::saturating_of(lets, &args[0]));
    let combine = Def::build("combine_mul", &[limb; 4], |lets, args| {
        limbs::saturating_product(lets, [&args[0], &args[1]], [&args[2], &args[3]])
    });
    let finish = Def::build("finish", &[limb; 2], |lets, args| {
        let [sign, size] = args else { unreachable!("two parameters") };
        if types.output.is_int() {
            return vec![limbs::saturating_clamp(lets, sign, size, types.output)];
        }
        let size = lets.bind(size.clone().cast(DType::F64));
        // Zero has no sign here.
        let negative = sign.clone().ne(sign.int(0)).and(size.clone().ne(size.float(0.0)));
        vec![negative.select(size.clone().neg(), size).cast(types.output)]
    });
    Reducer::simple(identity, lift, combine, finish)
}

/// The term of an element in a sum.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Term {
    Value,
    Magnitude,
    Square,
}

impl Term {
    /// The exponent of a power of two that no magnitude of a term exceeds.
    fn bits(self, input: DType) -> u32 {
        let magnitude = if input.is_signed() { input.bits() - 1 } else { input.bits() };
        if self == Term::Square { 2 * magnitude } else { magnitude }
    }

    /// Returns true if a total can be negative.
    fn is_signed(self, input: DType) -> bool {
        self == Term::Value && input.is_signed()
    }
}

/// An exact total, and whether it can be negative.
struct Total {
    value: TotalValue,
    signed: bool,
}

/// The value of an exact total.
enum TotalValue {
    /// An `I32` or an `I16`.
    Small(Expr),
    Limbs(Vec<Expr>),
}

impl Total {
    fn to_f64(&self, lets: &mut Lets) -> Expr {
        match &self.value {
            TotalValue::Small(small) => small.clone().cast(DType::F64),
            TotalValue::Limbs(limbs) => limbs::to_f64(lets, limbs, self.signed),
        }
    }

    fn give(self, lets: &mut Lets, types: &RowTypes) -> Expr {
        match self.value {
            TotalValue::Small(small) if types.output == DType::F32 => small.cast(types.output),
            _ if types.output.is_float() => self.to_f64(lets).cast(types.output),
            TotalValue::Small(small) => clamp(lets, small, types.output),
            TotalValue::Limbs(limbs) => limbs::clamp(lets, &limbs, self.signed, types.output),
        }
    }
}

/// The reducer of an exact total.
fn total(types: &RowTypes, term: Term, finish: impl FnOnce(&mut Lets, Total) -> Expr) -> Reducer {
    // A term is at most 2^bits, n of them at most 2^(bits + ceil(log2 n)); one bit for the sign, and
    // one because a total may be that power of two.
    let count_bits = bits_of(types.count);
    let signed = term.is_signed(types.input);
    match term.bits(types.input) + count_bits + 1 {
        0..=31 => in_one(types, term, (DType::I32, signed), finish),
        65.. if term != Term::Square && count_bits < 32 => in_halves(types, term, signed, finish),
        bits => in_limbs(types, term, signed, bits.div_ceil(64) as usize, finish),
    }
}

/// The total in one integer of up to 32 bits.
fn in_one(
    types: &RowTypes,
    term: Term,
    (acc, signed): (DType, bool),
    finish: impl FnOnce(&mut Lets, Total) -> Expr,
) -> Reducer {
    let lift = |lets: &mut Lets, x: Expr| match term {
        Term::Value => x.cast(acc),
        Term::Magnitude => magnitude(x).cast(acc),
        Term::Square => {
            // A square in the accumulator's type needs no magnitude.
            let x = lets.bind(x.cast(acc));
            x.clone().mul(x)
        }
    };
    simple(types, (Op::Add, acc, Scalar::int(acc, 0)), lift, |lets, s| {
        finish(lets, Total { value: TotalValue::Small(s), signed })
    })
}

/// The total of 64-bit terms as the totals of their halves: fewer than 2^32 halves cannot overflow 64
/// bits, so there are no carries until the end. A signed term is biased by 2^63 to be unsigned.
fn in_halves(types: &RowTypes, term: Term, signed: bool, finish: impl FnOnce(&mut Lets, Total) -> Expr) -> Reducer {
    let limb = DType::U64;
    let identity = vec![Scalar::int(limb, 0); 2];
    let lift = Def::build("halves", &[types.input], |lets, args| {
        let x = args[0].clone();
        let x = match term {
            Term::Magnitude => magnitude(x),
            _ if signed => x.bits(limb).xor(Scalar::int(limb, 1 << 63).into()),
            _ => x,
        };
        let x = lets.bind(x);
        vec![x.clone().and(x.int(0xffff_ffff)), x.clone().shr(x.int(32))]
    });
    let combine = Def::build("add_halves", &[limb; 4], |_, args| {
        let [low, high, low2, high2] = args else { unreachable!("four parameters") };
        vec![low.clone().add(low2.clone()), high.clone().add(high2.clone())]
    });
    let finish = Def::build("finish", &[limb; 2], |lets, args| {
        let [low, high] = args else { unreachable!("two parameters") };
        let high = [high.clone().shl(high.int(32)), high.clone().shr(high.int(32))];
        let mut total = limbs::add(lets, &[low.clone(), low.int(0)], &high);
        if signed {
            total = limbs::subtract(lets, &total, &limbs::constants(i128::from(types.count) << 63, 2));
        }
        vec![finish(lets, Total { value: TotalValue::Limbs(total), signed })]
    });
    Reducer::simple(identity, lift, combine, finish)
}

fn in_limbs(
    types: &RowTypes,
    term: Term,
    signed: bool,
    k: usize,
    finish: impl FnOnce(&mut Lets, Total) -> Expr,
) -> Reducer {
    let limb = DType::U64;
    let identity = vec![Scalar::int(limb, 0); k];
    let lift = Def::build("lift", &[types.input], |lets, args| match term {
        // So simple a lift is inlined at its call, and recognized as a sum.
        Term::Value if k == 1 => vec![args[0].clone().cast(limb)],
        Term::Magnitude if k == 1 => vec![magnitude(args[0].clone()).cast(limb)],
        Term::Value => limbs::widen(lets, &args[0], k),
        Term::Magnitude => limbs::widen(lets, &magnitude(args[0].clone()), k),
        Term::Square if k == 1 => {
            let x = lets.bind(magnitude(args[0].clone()).cast(limb));
            vec![x.clone().mul(x)]
        }
        Term::Square => {
            let mut square = limbs::square(lets, &args[0]);
            square.resize(k, Scalar::int(limb, 0).into());
            square
        }
    });
    let combine = Def::build("combine_add", &vec![limb; 2 * k], |lets, args| match args {
        [a, b] => vec![a.clone().add(b.clone())],
        _ => limbs::add(lets, &args[..k], &args[k..]),
    });
    let finish = Def::build("finish", &vec![limb; k], |lets, args| {
        vec![finish(lets, Total { value: TotalValue::Limbs(args.to_vec()), signed })]
    });
    Reducer::simple(identity, lift, combine, finish)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_of_small_totals_are_exact_in_f32() {
        let most = (1..).take_while(|&n| root_type(DType::I8, n) == DType::F32).last().expect("a count");
        assert!(most << Term::Square.bits(DType::I8) <= 1 << 22);
        let mut root = 0u32;
        for total in 0..=1u32 << 22 {
            root += u32::from((root + 1).pow(2) <= total);
            let nearest = root + u32::from(total > root.pow(2) + root);
            assert_eq!((total as f32).sqrt() as u32, root, "{total}");
            assert_eq!((total as f32).sqrt().round_ties_even() as u32, nearest, "{total}");
        }
    }

    #[test]
    fn quotients_of_small_totals_are_exact_in_f32() {
        let nearest = |total: i64, count: i64| {
            let (floor, rest) = (total.div_euclid(count), total.rem_euclid(count));
            let up = 2 * rest > count || (2 * rest == count && floor % 2 != 0);
            floor + i64::from(up)
        };
        for input in [DType::I8, DType::U8, DType::I16, DType::U16] {
            let (least, greatest) = input.int_range().expect("an integer type");
            let counts = (0..u64::BITS).map(|n| 1 << n);
            let most = counts.take_while(|&n| quotient_type(input, n) == DType::F32).last().expect("a count");
            assert_eq!(quotient_type(input, most + 1), DType::F64);
            for count in (1..=most.min(70)).chain(most.saturating_sub(70).max(1)..=most) {
                let count = count as i64;
                let (low, high) = (least as i64 * count, greatest as i64 * count);
                // Beside integers and beside the middle between two, of magnitudes from the least to the greatest.
                for whole in [least as i64, least as i64 / 2, 0, 1, greatest as i64 / 2, greatest as i64] {
                    for beside in (-2..=2).chain(count / 2 - 2..=count / 2 + 2) {
                        let total = (whole * count + beside).clamp(low, high);
                        let quotient = total as f32 / count as f32;
                        assert_eq!(quotient.trunc() as i64, total / count, "{total} / {count}");
                        assert_eq!(quotient.round_ties_even() as i64, nearest(total, count), "{total} / {count}");
                    }
                }
            }
        }
    }
}
