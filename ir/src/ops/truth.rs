//! Truth values: bytes in memory, where every non-zero one is true.

use super::{Reducer, RowTypes};
use crate::{DType, Def, Expr, Op, Scalar};

const BYTE: DType = DType::U8;

fn byte(value: u64) -> Scalar {
    Scalar::from_bits(BYTE, value)
}

/// 1 for any byte but 0.
pub(super) fn truth_of(x: Expr) -> Expr {
    let (one, none) = (x.int(1), x.int(0));
    is_true(x).select(one, none)
}

/// The condition that a byte is not 0.
pub(super) fn is_true(x: Expr) -> Expr {
    let zero = x.int(0);
    x.ne(zero)
}

/// The definition of a byte's truth as 0 or 1.
pub(super) fn as_bool() -> Def {
    Def::build("bool", &[BYTE], |_, args| vec![truth_of(args[0].clone())])
}

/// Combines bytes as they are; finish turns them into truth values.
fn reduce(op: Op, identity: u64) -> Reducer {
    Reducer::simple(
        vec![byte(identity)],
        Def::build("truth", &[BYTE], |_, args| vec![args[0].clone()]),
        Def::build(op.name().to_owned() + "_truth", &[BYTE, BYTE], |_, args| vec![Expr::op(op, args.to_vec())]),
        as_bool(),
    )
}

/// The reducer that is true if an odd number of bytes is not 0.
pub(super) fn odd(_: &RowTypes) -> Reducer {
    let lift = Def::build("truth", &[BYTE], |_, args| vec![truth_of(args[0].clone())]);
    Reducer::simple(vec![byte(0)], lift, super::combine(Op::Xor, BYTE), as_bool())
}

/// The reducer that is true if some byte is not 0.
pub(super) fn any(_: &RowTypes) -> Reducer {
    reduce(Op::Or, 0)
}

/// The reducer that is true if the least byte is not 0.
pub(super) fn all(_: &RowTypes) -> Reducer {
    reduce(Op::Min, 255)
}
