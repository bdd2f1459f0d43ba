//! Notes about results that surprise, each with its remedy. They go to the standard error, and change nothing.

use crate::failure::without_controls;
use crate::style::Style;
use cranefold::ops::{OpCall, ResultKind};
use cranefold::{DType, Spec};
use std::io::Write;

/// Prints the notes of a spec.
pub fn print(spec: &Spec) {
    for note in of(spec) {
        // If the standard error cannot be written, there is nobody to tell.
        let _ = writeln!(std::io::stderr(), "{} {}", Style::of_stderr().note(), without_controls(&note, false));
    }
}

/// The notes of a spec.
pub fn of(spec: &Spec) -> Vec<String> {
    if spec.body().is_some() {
        return vec![];
    }
    [wraps(spec), accumulates(spec), copies(spec)].into_iter().flatten().collect()
}

/// The names of the ops, of combiners none.
fn names(spec: &Spec) -> impl Iterator<Item = &'static str> {
    spec.reducers().iter().filter_map(|call| if let OpCall::Row { name, .. } = call { Some(*name) } else { None })
}

/// A sum or product of integers of 8 or 16 bits in their own type.
fn wraps(spec: &Spec) -> Option<String> {
    let (dtype, count) = (spec.inputs()[0].dtype(), spec.reduced_count());
    let output = spec.outputs()[0].dtype();
    let grows = names(spec).find(|name| matches!(*name, "sum" | "prod" | "l1" | "sum_squares"))?;
    let (_, most) = output.int_range()?;
    let is_own = output == dtype && dtype.is_int() && dtype.bits() <= 16 && !spec.saturate();
    let may_wrap = count > 1 && spec.map().is_none() && spec.then().is_empty() && spec.apply().is_none();
    (is_own && may_wrap).then(|| {
        let wider = if dtype.is_signed() { "i64" } else { "u64" };
        format!(
            "`{grows}` of {dtype} is {dtype}, modulo 2^{}: totals beyond {most} wrap; `-> {wider}` gives them whole, `saturate` clamps \
             them",
            dtype.bits()
        )
    })
}

/// A float result that is wider than its accumulator.
fn accumulates(spec: &Spec) -> Option<String> {
    let row = |call: &OpCall| matches!(call, OpCall::Row { .. });
    let adds = |name: &str| cranefold::ops::find(name).is_some_and(|row| row.results.contains(&ResultKind::Value));
    let exact = ["max", "min", "linf", "median", "median_low", "quantile", "mode", "ptp"];
    let name = names(spec).find(|name| adds(name) && !exact.contains(name))?;
    let is_wide = spec.outputs().iter().any(|output| output.dtype() == DType::F64);
    let is_narrow = spec.accumulator() == Some(DType::F32) && spec.inputs()[0].dtype().is_float();
    let reduces = spec.reduced_count() > 1 && spec.reducers().iter().all(row);
    (is_wide && is_narrow && reduces).then(|| {
        format!(
            "`{name}` accumulates in f32, and the f64 output has no more digits than that; `acc=f64` accumulates in f64"
        )
    })
}

/// A reduction over no axes that copies, where the op of one element is something else.
fn copies(spec: &Spec) -> Option<String> {
    let changes = ["l1", "l2", "linf", "lp", "sum_squares", "log_sum"];
    let name = names(spec).find(|name| changes.contains(name))?;
    (spec.is_identity() && spec.rank() > 0).then(|| {
        format!("`axes=[]` copies the elements: `{name}` of none of the axes is no `{name}`; `empty_axes=lift` takes each element for a slice")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(spec: &str) -> Vec<String> {
        of(&spec.parse().unwrap_or_else(|e| panic!("{spec}: {e}")))
    }

    #[test]
    fn what_surprises_is_noted_with_its_remedy() {
        for (spec, says, remedy) in [
            (
                "sum i8[64,512] axes=[1]",
                "`sum` of i8 is i8, modulo 2^8: totals beyond 127 wrap",
                "sum i8[64,512] axes=[1] -> i64",
            ),
            ("prod u16[9]", "modulo 2^16: totals beyond 65535 wrap", "prod u16[9] saturate"),
            ("sum f32[100] -> f64", "accumulates in f32", "sum f32[100] acc=f64 -> f64"),
            ("var f16[100] -> f64", "accumulates in f32", "var f16[100] acc=f64 -> f64"),
            ("l1 f32[3,4] axes=[]", "copies the elements", "l1 f32[3,4] axes=[] empty_axes=lift"),
        ] {
            let all = notes(spec);
            assert!(all.len() == 1 && all[0].contains(says), "{spec}: {all:?}");
            assert!(notes(remedy).is_empty(), "{remedy}: {:?}", notes(remedy));
        }
    }

    #[test]
    fn what_surprises_nobody_is_not_noted() {
        for spec in [
            "sum f32[64,512] axes=[1]",
            "sum i32[64,512] axes=[1]",
            "max i8[64]",
            "sum i64[8]",
            "sum i8[64] -> i32",
            "mean i8[64]",
            "max f32[8] -> f64",
            "sum f64[8]",
            "sum f32[4,5] axes=[] -> f64",
            "sum f32[4] axes=[]",
            "max f32[3] axes=[]",
            "sum i8[1]",
            "argmax f32[8]",
            "region x:f32[8] { sum(x) }",
        ] {
            assert!(notes(spec).is_empty(), "{spec}: {:?}", notes(spec));
        }
    }
}
