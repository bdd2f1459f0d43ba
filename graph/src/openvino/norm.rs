//! Normalisations: MVN, NormalizeL2, group norm and batch norm.

use super::layer::{Cx, Results, as_i64};
use crate::front::Stop;

pub(super) fn mvn(cx: &mut Cx) -> Results {
    let x = cx.input(0)?;
    let rank = x.rank()?;
    let axes = match cx.opset >= 6 {
        true => cx.axes(1)?,
        false => match cx.flag("across_channels", false)? {
            true => (1..rank).collect(),
            false => (2..rank).collect(),
        },
    };
    // Before opset 6 the number is added inside of the root.
    let outside = match cx.text_or("eps_mode", "inside_sqrt").as_str() {
        "inside_sqrt" => 0.0,
        "outside_sqrt" => 1.0,
        other => return Err(Stop::Wrong(format!("eps_mode={other:?}"))),
    };
    let variance = if cx.flag("normalize_variance", true)? { 1.0 } else { 0.0 };
    let params = [("eps", cx.decimal("eps")?), ("variance", variance), ("outside", outside)];
    cx.lower.composite(&[cx.name], "mvn", &params, &as_i64(&axes), &[&x])
}

pub(super) fn normalize_l2(cx: &mut Cx) -> Results {
    let (x, axes) = (cx.input(0)?, as_i64(&cx.axes(1)?));
    let row = match cx.text_or("eps_mode", "").as_str() {
        "add" => "l2_normalize_add",
        "max" => "l2_normalize_max",
        other => return Err(Stop::Wrong(format!("eps_mode={other:?}; it is \"add\" or \"max\""))),
    };
    let eps = [("eps", cx.decimal("eps")?)];
    Ok(vec![cx.lower.normalize(cx.name, row, &eps, &axes, &[&x])?])
}

pub(super) fn group(cx: &mut Cx) -> Results {
    let (x, scale, bias) = (cx.input(0)?, cx.input(1)?, cx.input(2)?);
    let params = [("groups", cx.int_or("num_groups", 0)? as f64), ("eps", cx.decimal("epsilon")?)];
    cx.lower.composite(&[cx.name], "group_norm", &params, &[], &[&x, &scale, &bias])
}

pub(super) fn batch(cx: &mut Cx) -> Results {
    // The first version has scale and bias before x.
    let order = if cx.opset >= 5 { [0, 1, 2, 3, 4] } else { [2, 0, 1, 3, 4] };
    let inputs = order.iter().map(|&place| cx.input(place)).collect::<Result<Vec<_>, _>>()?;
    let eps = [("eps", cx.decimal("epsilon")?)];
    cx.lower.composite(&[cx.name], "batch_norm", &eps, &[], &inputs.iter().collect::<Vec<_>>())
}
