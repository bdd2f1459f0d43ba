//! Reductions and softmax.

use super::layer::{Cx, Results, dtype};
use crate::DType;
use crate::front::Stop;

/// A reduction by a row of the op table. Over no axes it reduces each element alone.
pub(super) fn reduce(cx: &mut Cx, row: &'static str) -> Results {
    let (x, axes) = (cx.input(0)?, cx.axes(1)?);
    let keep = cx.flag("keep_dims", false)?;
    Ok(vec![cx.lower.reduce(cx.name, (row, &[]), &axes, keep, &x)?])
}

/// A softmax along one axis.
pub(super) fn softmax(cx: &mut Cx, row: &'static str) -> Results {
    let (x, axis) = (cx.input(0)?, cx.axis(1)?);
    Ok(vec![cx.lower.normalize(cx.name, row, &[], &[axis as i64], &[&x])?])
}

/// The extreme along an axis with its position, if one is asked for.
pub(super) fn top_k(cx: &mut Cx) -> Results {
    let (x, axis) = (cx.input(0)?, cx.axis(-1)?);
    if cx.known_int(1, "k")? != 1 {
        return Err(Stop::Opaque("more than one element is asked for, which is no reduction".into()));
    }
    let (value, position) = match cx.text_or("mode", "").as_str() {
        "max" => ("max", "argmax"),
        "min" => ("min", "argmin"),
        other => return Err(Stop::Wrong(format!("mode={other:?}; it is \"max\" or \"min\""))),
    };
    let to = dtype(&cx.text_or("index_element_type", "i32")).filter(|to| [DType::I32, DType::I64].contains(to));
    let to = to.ok_or("`index_element_type` is i32 or i64")?;
    let value = cx.lower.reduce(cx.name, (value, &[]), &[axis], true, &x)?;
    let position = cx.lower.reduce("", (position, &[]), &[axis], true, &x)?;
    Ok(vec![value, cx.lower.cast("", to, &position)?])
}
