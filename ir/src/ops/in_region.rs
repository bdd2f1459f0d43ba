//! Reductions of regions: the reducers of rows, and values in memory.

use super::product::{Agree, Members, groups};
use super::{OpCall, Reducer, ResultKind, RowTypes, Types, in_memory, truth};
use crate::{DType, Expr, Lets, Scalar, math};

/// The types of a row over elements of this type, whose values have the types of `results`.
pub(crate) fn types_in_region(
    call: &OpCall,
    element: DType,
    results: &[DType],
    accumulator: DType,
    types: &Types,
) -> RowTypes {
    let row = call.as_row().expect("a row of the table");
    let value = row.results.iter().position(|&kind| kind == ResultKind::Value).map(|i| results[i]);
    RowTypes {
        input: in_memory(element),
        output: in_memory(value.unwrap_or(element)),
        outputs: results.iter().map(|&d| in_memory(d)).collect(),
        count_output: DType::I64,
        position: types.position(),
        narrow: types.narrow,
        truth: element == DType::Bool,
        extra: vec![],
        accumulator,
        count: types.count,
        params: call.params(),
        saturate: false,
        half_even: false,
    }
}

/// The groups of reducers over a walk that share a tree.
pub(crate) fn grouped(reducers: &[Reducer], walk: usize, agree: &Agree) -> Vec<Members> {
    let (chosen, others): (Vec<usize>, Vec<usize>) =
        (0..reducers.len()).partition(|&i| !reducers[i].method.phases().is_empty());
    let phased: Vec<Reducer> = chosen.iter().map(|&i| reducers[i].clone()).collect();
    let own = vec![false; phased.len()];
    let made = if phased.is_empty() { vec![] } else { groups(&phased, &own, (walk, agree)) };
    let named = |Members { alone, numbers }: Members| {
        let numbers = numbers.into_iter().map(|n| chosen[n]).collect();
        Members { alone, numbers }
    };
    // What selects stands alone.
    let selects = others.into_iter().map(|i| Members { alone: vec![], numbers: vec![i] });
    made.into_iter().map(named).chain(selects).collect()
}

/// A value as it is stored: a NaN canonical, as conversions to bf16 give it; truth as a byte.
pub(crate) fn stored(lets: &mut Lets, value: Expr) -> Expr {
    match value.dtype() {
        DType::Bool => as_byte(value),
        DType::F16 | DType::Bf16 => {
            let half = value.dtype();
            let wide = match value {
                Expr::Op(crate::Op::Cast, _, mut args) if matches!(args[0].dtype(), DType::F32 | DType::F64) => {
                    args.remove(0)
                }
                other => other.cast(DType::F32),
            };
            if half == DType::Bf16 {
                return wide.cast(half);
            }
            let canon = math::canon(wide.dtype());
            lets.splice(&canon, &[wide]).remove(0).cast(half)
        }
        float if float.is_float() => {
            let canon = math::canon(float);
            lets.splice(&canon, &[value]).remove(0)
        }
        _ => value,
    }
}

/// Truth as a byte.
pub(crate) fn as_byte(value: Expr) -> Expr {
    let byte = |truth: i128| Expr::from(Scalar::int(DType::U8, truth));
    value.select(byte(1), byte(0))
}

/// A byte as truth.
pub(crate) fn as_truth(value: Expr) -> Expr {
    truth::is_true(value)
}
