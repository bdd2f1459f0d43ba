//! Reductions, softmax and global pools.

use super::node::{Cx, Results};
use crate::front::{Operand, Stop};
use crate::{DType, resolve_axes, resolve_axis};

/// The version from which the axes of an op are an operand.
fn axes_since(op: &str) -> i64 {
    if op == "ReduceSum" { 13 } else { 18 }
}

/// A reduction by a row of the op table.
pub(super) fn reduce(cx: &mut Cx, row: &'static str) -> Results {
    let x = cx.input(0)?;
    let rank = x.rank()?;
    let axes = match cx.ints_of("axes", 1, axes_since(cx.node.op))? {
        Some(axes) if !axes.is_empty() => {
            // ONNX allows an axis to be named twice, and axes of a scalar.
            let mut axes: Vec<usize> = match rank {
                0 => vec![],
                _ => axes.iter().map(|&axis| resolve_axis(axis, rank)).collect::<Result<_, _>>()?,
            };
            axes.sort_unstable();
            axes.dedup();
            axes
        }
        // Without axes the composite ops still do their other steps: a reduction over none.
        _ if cx.flag("noop_with_empty_axes", false)? => vec![],
        _ => (0..rank).collect(),
    };
    let row = match (row, x.dtype()?) {
        ("max", DType::Bool) => "any",
        ("min", DType::Bool) => "all",
        _ => row,
    };
    let (keep, name) = (cx.flag("keepdims", true)?, cx.name(0));
    Ok(vec![cx.lower.reduce(name, (row, &[]), &axes, keep, &x)?])
}

/// The position of an extreme.
pub(super) fn arg(cx: &mut Cx, row: &'static str) -> Results {
    let (x, axis) = (cx.input(0)?, cx.axis(0)?);
    let last = cx.flag("select_last_index", false)?;
    let (keep, name) = (cx.flag("keepdims", true)?, cx.name(0));
    let params: &[(&str, f64)] = if last { &[("last", 1.0)] } else { &[] };
    Ok(vec![cx.lower.reduce(name, (row, params), &[axis], keep, &x)?])
}

/// The axes of a softmax: one, or before version 13 all from `axis` on, which counted as one.
fn softmax_axes(cx: &Cx) -> Result<Vec<usize>, Stop> {
    match cx.version < 13 {
        true => cx.axes_from(1),
        false => Ok(vec![cx.axis(-1)?]),
    }
}

pub(super) fn softmax(cx: &mut Cx, row: &'static str) -> Results {
    let (x, axes) = (cx.input(0)?, softmax_axes(cx)?);
    let axes: Vec<i64> = axes.into_iter().map(|axis| axis as i64).collect();
    let name = cx.name(0);
    Ok(vec![cx.lower.normalize(name, row, &[], &axes, &[&x])?])
}

pub(super) fn hardmax(cx: &mut Cx) -> Results {
    let (x, axes, name) = (cx.input(0)?, softmax_axes(cx)?, cx.name(0));
    let shape = x.shape()?.to_vec();
    if let [axis] = axes[..] {
        return cx.lower.composite(&[name], "hardmax", &[], &[axis as i64], &[&x]);
    }
    let from = shape.len() - axes.len();
    let flat = [shape[..from].iter().product(), shape[from..].iter().product()];
    let x = cx.lower.reshape("", &flat, &x)?;
    let y = cx.lower.composite(&[""], "hardmax", &[], &[1], &[&x])?;
    Ok(vec![cx.lower.reshape(name, &shape, &y[0])?])
}

/// A pool over all axes after the channels.
fn pool(cx: &mut Cx, row: &str, params: &[(&str, f64)]) -> Results {
    let (x, name) = (cx.input(0)?, cx.name(0));
    let rank = x.rank()?;
    if rank < 2 {
        return Err(Stop::Wrong(format!("rank {rank}; a pool needs axes of images and channels")));
    }
    Ok(vec![cx.lower.reduce(name, (row, params), &(2..rank).collect::<Vec<_>>(), true, &x)?])
}

pub(super) fn global_average(cx: &mut Cx) -> Results {
    pool(cx, "mean", &[])
}

pub(super) fn global_max(cx: &mut Cx) -> Results {
    pool(cx, "max", &[])
}

pub(super) fn global_lp(cx: &mut Cx) -> Results {
    let p = match cx.version {
        1 => cx.decimal_or("p", 2.0)?,
        _ => cx.int_or("p", 2)? as f64,
    };
    match p {
        1.0 => pool(cx, "l1", &[]),
        2.0 => pool(cx, "l2", &[]),
        _ => pool(cx, "lp", &[("p", p)]),
    }
}

/// The greatest elements along an axis, if one is asked for.
pub(super) fn top_k(cx: &mut Cx) -> Results {
    let x = cx.input(0)?;
    let k = match cx.version < 10 {
        true => cx.int("k")?.map(|k| vec![k]),
        false => cx.known_ints(1, "k")?,
    };
    let axis = cx.axis(-1)?;
    if k.as_deref() != Some(&[1]) {
        return Err(Stop::Opaque("more than one element is asked for, which is no reduction".into()));
    }
    let (value, position) = if cx.flag("largest", true)? { ("max", "argmax") } else { ("min", "argmin") };
    let (first, second) = (cx.name(0), cx.name(1));
    let value = cx.lower.reduce(first, (value, &[]), &[axis], true, &x)?;
    let position = match cx.has_output(1) {
        true => cx.lower.reduce(second, (position, &[]), &[axis], true, &x)?,
        false => value.clone(),
    };
    Ok(vec![value, position])
}

/// The division by a norm; a slice of zeros alone stays.
pub(super) fn lp_normalization(cx: &mut Cx) -> Results {
    let (x, axis, name) = (cx.input(0)?, cx.axis(-1)?, cx.name(0));
    let row = match cx.int_or("p", 2)? {
        1 => "l1",
        2 => "l2",
        p => return Err(Stop::Wrong(format!("p={p}; it is 1 or 2"))),
    };
    let norm = cx.lower.reduce("", (row, &[]), &[axis], true, &x)?;
    Ok(vec![cx.lower.map(name, "select(x1 == 0, 0, x0 / x1)", &[&x, &norm])?])
}

/// The axes of an operand, negative ones from its end.
pub(super) fn axes_of(axes: &[i64], x: &Operand) -> Result<Vec<usize>, Stop> {
    Ok(resolve_axes(axes, x.rank()?)?)
}

/// The axes in their order, negative ones from the end of the rank.
pub(super) fn axes_in_order(axes: &[i64], rank: usize) -> Result<Vec<usize>, Stop> {
    Ok(axes.iter().map(|&axis| resolve_axis(axis, rank)).collect::<Result<_, _>>()?)
}
