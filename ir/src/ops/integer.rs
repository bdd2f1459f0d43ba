//! Reducers of integers: exact.
//!
//! Modular ones accumulate modulo 2^bits of the output. The others form the exact total, in the
//! fewest bits that the number of elements proves enough (32, halves of 64, or limbs), finish it and
//! clamp or convert it once.

use super::{Reducer, Request, combine};
use crate::math::limbs;
use crate::{DType, Def, Expr, Lets, Op, Scalar};

/// An integer element in the output's type: clamped, or modulo 2^bits where the row wraps.
pub(super) fn give(lets: &mut Lets, x: Expr, request: &Request) -> Expr {
    if request.output.is_float() {
        return x.cast(DType::F64).cast(request.output);
    }
    if request.saturate { clamp(lets, x, request.output) } else { x.cast(request.output) }
}

/// The nearest value of a type. Bounds that the element's own type keeps are left out.
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

/// One accumulator that is combined by an operation.
fn simple(
    request: &Request,
    (op, acc, identity): (Op, DType, Scalar),
    lift: impl FnOnce(&mut Lets, Expr) -> Expr,
    finish: impl FnOnce(&mut Lets, Expr) -> Expr,
) -> Reducer {
    let lift = Def::build("lift", &[request.input], |lets, args| vec![lift(lets, args[0].clone())]);
    let finish = Def::build("finish", &[acc], |lets, args| vec![finish(lets, args[0].clone())]);
    Reducer::simple(vec![identity], lift, combine(op, acc), finish)
}

pub(super) fn min(request: &Request) -> Reducer {
    extreme(request, Op::Min, Scalar::highest(request.input))
}

pub(super) fn max(request: &Request) -> Reducer {
    extreme(request, Op::Max, Scalar::lowest(request.input))
}

fn extreme(request: &Request, op: Op, identity: Scalar) -> Reducer {
    let clamped = Request { saturate: true, ..request.clone() };
    simple(request, (op, request.input, identity), |_, x| x, |lets, m| give(lets, m, &clamped))
}

/// The greatest magnitude.
pub(super) fn linf(request: &Request) -> Reducer {
    let clamped = Request { saturate: true, ..request.clone() };
    let acc = request.input.unsigned();
    simple(request, (Op::Max, acc, Scalar::int(acc, 0)), |_, x| magnitude(x), |lets, m| give(lets, m, &clamped))
}

/// The greatest less the least.
pub(super) fn ptp(request: &Request) -> Reducer {
    let dtype = request.input;
    let lift = Def::build("both", &[dtype], |_, args| vec![args[0].clone(), args[0].clone()]);
    let combine = Def::build("extremes", &[dtype; 4], |_, args| {
        let [least, greatest, least2, greatest2] = args else { unreachable!("four parameters") };
        vec![least.clone().min(least2.clone()), greatest.clone().max(greatest2.clone())]
    });
    let finish = Def::build("finish", &[dtype; 2], |lets, args| {
        if request.count == 0 && request.output.is_float() {
            return vec![Scalar::nan(request.output).into()];
        }
        // The difference is below 2^bits: right in the unsigned type.
        let difference = args[1].clone().sub(args[0].clone()).bits(dtype.unsigned());
        vec![give(lets, difference, &Request { saturate: true, ..request.clone() })]
    });
    Reducer::simple(vec![Scalar::highest(dtype), Scalar::lowest(dtype)], lift, combine, finish)
}

/// An operation on the bits, identity all zeros or all ones.
pub(super) fn bitwise(request: &Request, op: Op) -> Reducer {
    let dtype = request.input;
    let identity = Scalar::int(dtype, if op == Op::And { -1 } else { 0 });
    simple(request, (op, dtype, identity), |_, x| x, |lets, bits| give(lets, bits, request))
}

/// How many elements are not zero, counted in the type of positions.
pub(super) fn count_nonzero(request: &Request) -> Reducer {
    let count = request.position;
    let as_wide = |x: Expr| match x.dtype() {
        // A half is zero where its bits but the sign are.
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
    simple(request, (Op::Add, count, Scalar::int(count, 0)), lift, |_, n| n.cast(request.count_output))
}

/// Whether the result is taken modulo 2^bits of the output.
fn is_modular(request: &Request) -> bool {
    !request.saturate && request.output.is_int()
}

/// The accumulator of a modular product: 8-bit products are formed in 16 bits, which have vectors.
fn product_type(output: DType) -> DType {
    if output.bytes() == 1 { DType::U16 } else { output }
}

/// |x|, unsigned in its own size: that of the least value is right.
fn magnitude(x: Expr) -> Expr {
    let unsigned = x.dtype().unsigned();
    if x.dtype().is_signed() { x.abs().bits(unsigned) } else { x }
}

pub(super) fn sum(request: &Request) -> Reducer {
    if is_modular(request) {
        let acc = request.output;
        return simple(request, (Op::Add, acc, Scalar::int(acc, 0)), |_, x| x.cast(acc), |_, s| s);
    }
    total(request, Term::Value, |lets, total| total.give(lets, request))
}

pub(super) fn l1(request: &Request) -> Reducer {
    if is_modular(request) {
        let acc = request.output;
        return simple(request, (Op::Add, acc, Scalar::int(acc, 0)), |_, x| magnitude(x).cast(acc), |_, s| s);
    }
    total(request, Term::Magnitude, |lets, total| total.give(lets, request))
}

pub(super) fn sum_squares(request: &Request) -> Reducer {
    if is_modular(request) {
        let acc = product_type(request.output);
        let square = |lets: &mut Lets, x: Expr| {
            let x = lets.bind(x.cast(acc));
            x.clone().mul(x)
        };
        let give = |_: &mut Lets, s: Expr| s.cast(request.output);
        return simple(request, (Op::Add, acc, Scalar::int(acc, 0)), square, give);
    }
    total(request, Term::Square, |lets, total| total.give(lets, request))
}

pub(super) fn mean(request: &Request) -> Reducer {
    total(request, Term::Value, |lets, total| mean_of(lets, total, request.count, request))
}

/// A total of `count` elements divided by it.
fn mean_of(lets: &mut Lets, total: Total, count: u64, request: &Request) -> Expr {
    if request.output.is_float() {
        let sum = total.to_f64(lets);
        let mean = sum.clone().div(sum.float(count as f64));
        let canon = crate::math::canon(DType::F64);
        return lets.splice(&canon, &[mean]).remove(0).cast(request.output);
    }
    let divide = if request.half_even { limbs::divide_half_even } else { limbs::divide };
    // Without elements the spec has refused the request, unless nothing is written.
    let quotient = divide(lets, &total.limbs, count.max(1), total.signed);
    Total { limbs: quotient, small: None, ..total }.give(lets, request)
}

/// The exact mean of two elements, in the output's type.
pub(super) fn mean_of_two(lets: &mut Lets, a: &Expr, b: &Expr, request: &Request) -> Expr {
    let wide = |lets: &mut Lets, x: &Expr| limbs::widen(lets, x, 2);
    let (a, b) = (wide(lets, a), wide(lets, b));
    let total = limbs::add(lets, &a, &b);
    mean_of(lets, Total { limbs: total, signed: request.input.is_signed(), small: None }, 2, request)
}

pub(super) fn l2(request: &Request) -> Reducer {
    total(request, Term::Square, |lets, total| {
        if request.output.is_float() {
            return total.to_f64(lets).sqrt().cast(request.output);
        }
        let root = if request.half_even { limbs::root_nearest } else { limbs::root_floor };
        let root = root(lets, &total.limbs);
        Total { limbs: root, signed: false, small: None }.give(lets, request)
    })
}

/// The product: modulo 2^bits, or as a sign and a magnitude that sticks at 2^64 - 1.
pub(super) fn prod(request: &Request) -> Reducer {
    if is_modular(request) {
        let acc = product_type(request.output);
        let give = |_: &mut Lets, s: Expr| s.cast(request.output);
        return simple(request, (Op::Mul, acc, Scalar::int(acc, 1)), |_, x| x.cast(acc), give);
    }
    let limb = DType::U64;
    let identity = vec![Scalar::int(limb, 0), Scalar::int(limb, 1)];
    let lift = Def::build("lift", &[request.input], |lets, args| limbs::saturating_of(lets, &args[0]));
    let combine = Def::build("combine_mul", &[limb; 4], |lets, args| {
        limbs::saturating_product(lets, [&args[0], &args[1]], [&args[2], &args[3]])
    });
    let finish = Def::build("finish", &[limb; 2], |lets, args| {
        let [sign, size] = args else { unreachable!("two parameters") };
        if request.output.is_int() {
            return vec![limbs::saturating_clamp(lets, sign, size, request.output)];
        }
        let size = lets.bind(size.clone().cast(DType::F64));
        // Zero has no sign here.
        let negative = sign.clone().ne(sign.int(0)).and(size.clone().ne(size.float(0.0)));
        vec![negative.select(size.clone().neg(), size).cast(request.output)]
    });
    Reducer::simple(identity, lift, combine, finish)
}

/// What of an element is summed.
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

    /// Whether a total can be negative.
    fn is_signed(self, input: DType) -> bool {
        self == Term::Value && input.is_signed()
    }
}

/// An exact total: limbs, and the same as an `I32` where that holds it.
struct Total {
    limbs: Vec<Expr>,
    signed: bool,
    small: Option<Expr>,
}

impl Total {
    fn to_f64(&self, lets: &mut Lets) -> Expr {
        match &self.small {
            Some(small) => small.clone().cast(DType::F64),
            None => limbs::to_f64(lets, &self.limbs, self.signed),
        }
    }

    fn give(&self, lets: &mut Lets, request: &Request) -> Expr {
        match request.output.is_float() {
            true => self.to_f64(lets).cast(request.output),
            false => limbs::clamp(lets, &self.limbs, self.signed, request.output),
        }
    }
}

/// The reducer of an exact total.
fn total(request: &Request, term: Term, finish: impl FnOnce(&mut Lets, Total) -> Expr) -> Reducer {
    // A term is at most 2^bits, n of them at most 2^(bits + ceil(log2 n)); one bit for the sign, and
    // one because a total may be that power of two.
    let count_bits = u64::BITS - request.count.saturating_sub(1).leading_zeros();
    let signed = term.is_signed(request.input);
    match term.bits(request.input) + count_bits + 1 {
        0..=31 => in_32_bits(request, term, signed, finish),
        65.. if term != Term::Square && count_bits < 32 => in_halves(request, term, signed, finish),
        bits => in_limbs(request, term, signed, bits.div_ceil(64) as usize, finish),
    }
}

fn in_32_bits(request: &Request, term: Term, signed: bool, finish: impl FnOnce(&mut Lets, Total) -> Expr) -> Reducer {
    let acc = DType::I32;
    let lift = |lets: &mut Lets, x: Expr| match term {
        Term::Value => x.cast(acc),
        Term::Magnitude => magnitude(x).cast(acc),
        Term::Square => {
            let x = lets.bind(magnitude(x).cast(acc));
            x.clone().mul(x)
        }
    };
    simple(request, (Op::Add, acc, Scalar::int(acc, 0)), lift, |lets, s| {
        let s = lets.bind(s);
        let limbs = vec![lets.bind(s.clone().cast(DType::I64).bits(DType::U64))];
        finish(lets, Total { limbs, signed, small: Some(s) })
    })
}

/// The total of 64-bit terms as the totals of their halves: fewer than 2^32 halves cannot overflow 64
/// bits, so that nothing carries until the end. A signed term is biased by 2^63 to be unsigned.
fn in_halves(request: &Request, term: Term, signed: bool, finish: impl FnOnce(&mut Lets, Total) -> Expr) -> Reducer {
    let limb = DType::U64;
    let identity = vec![Scalar::int(limb, 0); 2];
    let lift = Def::build("halves", &[request.input], |lets, args| {
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
            total = limbs::subtract(lets, &total, &limbs::constants(i128::from(request.count) << 63, 2));
        }
        vec![finish(lets, Total { limbs: total, signed, small: None })]
    });
    Reducer::simple(identity, lift, combine, finish)
}

fn in_limbs(
    request: &Request,
    term: Term,
    signed: bool,
    k: usize,
    finish: impl FnOnce(&mut Lets, Total) -> Expr,
) -> Reducer {
    let limb = DType::U64;
    let identity = vec![Scalar::int(limb, 0); k];
    let lift = Def::build("lift", &[request.input], |lets, args| match term {
        // As little as that is written out where it is called, and seen to be a sum.
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
        vec![finish(lets, Total { limbs: args.to_vec(), signed, small: None })]
    });
    Reducer::simple(identity, lift, combine, finish)
}
