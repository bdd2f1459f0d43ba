//! Operations over typed operands, as nest expressions.

use super::node::Operation;
use super::{power, sugar};
use crate::{DType, Def, Expr, Lets, Op, Scalar, math};

/// The depth at which a nest expression is bound to a value: well below the language's limit, and enough to leave a
/// short expression in one piece.
const DEEP: usize = 16;

/// An operation over operands of the types in the module's table: one type for all, but for the condition of `select`.
pub(super) fn apply(lets: &mut Lets, operation: Operation, args: Vec<Expr>) -> Expr {
    let result = match (operation, <[Expr; 1]>::try_from(args)) {
        (operation, Ok([a])) => unary(lets, operation, a),
        (operation, Err(args)) => match <[Expr; 2]>::try_from(args) {
            Ok([a, b]) => binary(lets, operation, a, b),
            Err(args) if operation == Operation::Fma => Expr::op(Op::Fma, args),
            Err(args) => match <[Expr; 3]>::try_from(args) {
                Ok([condition, yes, no]) => select(lets, condition, yes, no),
                Err(_) => unreachable!("at most three operands"),
            },
        },
    };
    if depth(&result) > DEEP { lets.bind(result) } else { result }
}

/// The value of an operation over constants, NaN canonical.
pub(super) fn constant(operation: Operation, args: Vec<Expr>) -> Scalar {
    let def = Def::build("constant", &[], |lets, _| vec![apply(lets, operation, args)]);
    let value = def.eval(&[]).remove(0);
    if value.is_nan() { Scalar::nan(value.dtype()) } else { value }
}

/// The value, bound so that it may be used twice.
pub(super) fn share(lets: &mut Lets, value: Expr) -> Expr {
    if value.args().is_empty() { value } else { lets.bind(value) }
}

fn depth(value: &Expr) -> usize {
    1 + value.args().iter().map(depth).max().unwrap_or(0)
}

fn unary(lets: &mut Lets, operation: Operation, a: Expr) -> Expr {
    match operation {
        Operation::Not | Operation::BitNot => a.not(),
        Operation::Neg => a.neg(),
        Operation::Abs if a.dtype().is_int() && !a.dtype().is_signed() => a,
        Operation::Abs => a.abs(),
        Operation::Sqrt => a.sqrt(),
        Operation::ExpBelow => call(lets, math::exp_below, a),
        Operation::Exp if is_minus_magnitude(&a) => call(lets, math::exp_below, a),
        Operation::Exp => call(lets, math::exp, a),
        Operation::Log => call(lets, math::log, a),
        Operation::Expm1 => call(lets, math::expm1, a),
        Operation::Log1p => call(lets, math::log1p, a),
        Operation::Tanh => call(lets, math::tanh, a),
        Operation::Erf => call(lets, math::erf, a),
        Operation::Floor | Operation::Ceil | Operation::Round | Operation::Trunc if a.dtype().is_int() => a,
        Operation::Floor => call(lets, math::floor, a),
        Operation::Ceil => call(lets, math::ceil, a),
        Operation::Round => a.nearest(),
        Operation::Trunc => call(lets, math::trunc, a),
        Operation::Sign => call(lets, math::sign, a),
        Operation::IsNan | Operation::IsInf => class(lets, operation, a),
        Operation::Cast(dtype) => cast(a, dtype),
        _ => sugar::build(lets, operation, a),
    }
}

/// Returns true for `-abs(x)`, which is never above 0.
fn is_minus_magnitude(a: &Expr) -> bool {
    matches!(a, Expr::Op(Op::Neg, _, args) if matches!(args[0], Expr::Op(Op::Abs, ..)))
}

fn call(lets: &mut Lets, function: fn(DType) -> Def, a: Expr) -> Expr {
    lets.splice(&function(a.dtype()), &[a]).remove(0)
}

/// The condition that a float is a NaN, or infinite. A 16-bit float is converted first, which changes neither.
fn class(lets: &mut Lets, operation: Operation, a: Expr) -> Expr {
    let a = share(lets, if a.dtype().bytes() == 2 { a.cast(DType::F32) } else { a });
    match operation {
        Operation::IsNan => a.is_nan(),
        _ => a.clone().abs().eq(a.float(f64::INFINITY)),
    }
}

fn binary(lets: &mut Lets, operation: Operation, a: Expr, b: Expr) -> Expr {
    let truth = a.dtype() == DType::Bool;
    match operation {
        Operation::Or | Operation::BitOr => a.or(b),
        Operation::And | Operation::BitAnd => a.and(b),
        Operation::BitXor => a.xor(b),
        Operation::Shl => shift(lets, Op::Shl, a, b),
        Operation::Shr => shift(lets, Op::Shr, a, b),
        Operation::Eq if truth => a.xor(b).not(),
        Operation::Ne if truth => a.xor(b),
        Operation::Eq => a.eq(b),
        Operation::Ne => a.ne(b),
        Operation::Lt => a.lt(b),
        Operation::Le => a.le(b),
        Operation::Gt => b.lt(a),
        Operation::Ge => b.le(a),
        Operation::Add => a.add(b),
        Operation::Sub => a.sub(b),
        Operation::Mul => a.mul(b),
        Operation::Div => a.div(b),
        Operation::Min => a.min(b),
        Operation::Max => a.max(b),
        Operation::Pow if a.dtype().is_int() => power::integer(lets, a, &b),
        Operation::Pow => power::float(lets, a, b),
        _ => unreachable!("{} does not have two operands", operation.text()),
    }
}

/// A shift. Vectors shift by constants, so an amount that varies is a sum of the powers of two in its bits. No vector
/// shifts 8-bit integers.
fn shift(lets: &mut Lets, op: Op, a: Expr, amount: Expr) -> Expr {
    if matches!(amount, Expr::Const(_)) || a.dtype().bytes() == 1 {
        return Expr::op(op, vec![a, amount]);
    }
    let (a, amount) = (share(lets, a), share(lets, amount));
    (0..a.dtype().bits().ilog2()).fold(a, |value, bit| {
        let power = value.int(1 << bit);
        let has = amount.clone().and(power.clone()).ne(value.int(0));
        lets.bind(has.select(Expr::op(op, vec![value.clone(), power]), value))
    })
}

/// A selection. Truth is selected by logic, since a condition has no memory type; 16-bit floats are selected as
/// bits, since they have no operations.
fn select(lets: &mut Lets, condition: Expr, yes: Expr, no: Expr) -> Expr {
    match yes.dtype() {
        DType::Bool => {
            let condition = share(lets, condition);
            condition.clone().and(yes).or(condition.not().and(no))
        }
        half @ (DType::F16 | DType::Bf16) => condition.select(yes.bits(DType::U16), no.bits(DType::U16)).bits(half),
        _ => condition.select(yes, no),
    }
}

/// A conversion. Truth is converted by a selection, which vectors have; 16-bit floats through a wider float,
/// and integers to 16-bit floats through f64, as sums of integers are.
fn cast(a: Expr, to: DType) -> Expr {
    let half = |d| matches!(d, DType::F16 | DType::Bf16);
    let from = a.dtype();
    match (from, to) {
        _ if from == to => a,
        (DType::Bool, _) if half(to) => cast(a, DType::F32).cast(to),
        (DType::Bool, _) => a.select(Scalar::int(to, 1).into(), Scalar::int(to, 0).into()),
        _ if half(from) && !matches!(to, DType::F32 | DType::F64) => cast(a.cast(DType::F32), to),
        (_, DType::Bool) => {
            let zero = Expr::from(Scalar::int(from, 0));
            a.ne(zero)
        }
        _ if half(to) && from.is_int() => a.cast(DType::F64).cast(to),
        _ => a.cast(to),
    }
}
