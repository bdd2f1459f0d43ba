//! Element-wise ops: formulas of their operands.

use super::layer::{Cx, Results, dtype};
use crate::front::{FLOOR_DIVISION, Operand, Stop, number, remainder};

/// An op that is one formula of `x0`, `x1`, ….
pub(super) fn formula(cx: &mut Cx, text: &'static str) -> Results {
    let mut inputs = cx.inputs.clone();
    if cx.text_or("auto_broadcast", "numpy") == "pdpd" && inputs.len() == 2 {
        inputs[1] = paddle(cx, &inputs[0], &inputs[1])?;
    }
    cx.map(text, &inputs.iter().collect::<Vec<_>>())
}

/// The second operand whose axes lie at `axis` of the first one, or at its end.
fn paddle(cx: &mut Cx, a: &Operand, b: &Operand) -> Result<Operand, Stop> {
    let (rank, mut shape) = (a.rank()? as i64, b.shape()?.to_vec());
    let axis = match cx.int_or("axis", -1)? {
        -1 => rank - shape.len() as i64,
        axis => axis,
    };
    let after = rank - axis - shape.len() as i64;
    if axis < 0 || after < 0 {
        return Err(Stop::Wrong(format!("axis {axis} leaves no room for {} axes in rank {rank}", shape.len())));
    }
    shape.resize(shape.len() + after as usize, 1);
    cx.lower.reshape("", &shape, b)
}

fn is_float(cx: &Cx) -> Result<bool, Stop> {
    Ok(cx.input(0)?.dtype()?.is_float())
}

pub(super) fn divide(cx: &mut Cx) -> Results {
    match is_float(cx)? || !cx.flag("m_pythondiv", true)? {
        true => formula(cx, "x0 / x1"),
        false => formula(cx, FLOOR_DIVISION),
    }
}

pub(super) fn modulo(cx: &mut Cx) -> Results {
    let text = remainder(is_float(cx)?, true);
    formula(cx, text)
}

pub(super) fn floor_mod(cx: &mut Cx) -> Results {
    let text = remainder(is_float(cx)?, false);
    formula(cx, text)
}

pub(super) fn power(cx: &mut Cx) -> Results {
    let (x, exponent) = (cx.input(0)?, cx.input(1)?);
    Ok(vec![cx.lower.pow(cx.name, &x, &exponent)?])
}

pub(super) fn round(cx: &mut Cx) -> Results {
    match cx.text_or("mode", "half_to_even").as_str() {
        "half_to_even" => formula(cx, "round(x0)"),
        "half_away_from_zero" => formula(cx, "trunc(x0) + select(abs(x0 - trunc(x0)) >= 0.5, sign(x0), 0)"),
        other => Err(Stop::Wrong(format!("mode={other:?}"))),
    }
}

fn unary(cx: &mut Cx, text: &str, attributes: &[(&str, f32)]) -> Results {
    let mut text = text.to_string();
    for (name, default) in attributes {
        text = text.replace(&format!("{{{name}}}"), &number(cx.float_or(name, *default)?));
    }
    let x = cx.input(0)?;
    cx.map(&text, &[&x])
}

pub(super) fn clamp(cx: &mut Cx) -> Results {
    let (least, most) = (cx.decimal("min")?, cx.decimal("max")?);
    let (x, ints) = (cx.input(0)?, !is_float(cx)?);
    // Limits of integers lie between them: the least is rounded up, the greatest down.
    let (least, most) = if ints { (least.ceil(), most.floor()) } else { (least, most) };
    let of = x.dtype()?;
    let (least, most) = (Operand::number(of, least), Operand::number(of, most));
    cx.map("min(max(x0, x1), x2)", &[&x, &least, &most])
}

pub(super) fn elu(cx: &mut Cx) -> Results {
    unary(cx, "select(x0 < 0, {alpha} * expm1(x0), x0)", &[("alpha", 1.0)])
}

pub(super) fn selu(cx: &mut Cx) -> Results {
    formula(cx, "x2 * select(x0 > 0, x0, x1 * expm1(x0))")
}

pub(super) fn hard_sigmoid(cx: &mut Cx) -> Results {
    formula(cx, "max(min(x1 * x0 + x2, 1), 0)")
}

pub(super) fn gelu(cx: &mut Cx) -> Results {
    match cx.text_or("approximation_mode", "erf").as_str() {
        "erf" => formula(cx, "gelu(x0)"),
        "tanh" => formula(cx, "gelu_tanh(x0)"),
        other => Err(Stop::Wrong(format!("approximation_mode={other:?}"))),
    }
}

pub(super) fn swish(cx: &mut Cx) -> Results {
    match cx.inputs.len() {
        1 => formula(cx, "silu(x0)"),
        _ => formula(cx, "x0 * sigmoid(x1 * x0)"),
    }
}

pub(super) fn prelu(cx: &mut Cx) -> Results {
    let (x, mut slope) = (cx.input(0)?, cx.input(1)?);
    // A slope of one axis belongs to the channels.
    if slope.rank()? == 1 && x.rank()? > 2 {
        let mut shape = slope.shape()?.to_vec();
        shape.resize(x.rank()? - 1, 1);
        slope = cx.lower.reshape("", &shape, &slope)?;
    }
    cx.map("select(x0 < 0, x1 * x0, x0)", &[&x, &slope])
}

pub(super) fn is_inf(cx: &mut Cx) -> Results {
    match (cx.flag("detect_negative", true)?, cx.flag("detect_positive", true)?) {
        (true, true) => formula(cx, "is_inf(x0)"),
        (true, false) => formula(cx, "x0 == -inf"),
        (false, true) => formula(cx, "x0 == inf"),
        (false, false) => formula(cx, "x0 == x0 and x0 != x0"),
    }
}

pub(super) fn convert(cx: &mut Cx) -> Results {
    let to = cx.text_or("destination_type", "");
    let to = dtype(&to).ok_or_else(|| Stop::Opaque(format!("element type {to:?} is none of the library's")))?;
    let x = cx.input(0)?;
    Ok(vec![cx.lower.cast(cx.name, to, &x)?])
}

pub(super) fn convert_like(cx: &mut Cx) -> Results {
    let (x, to) = (cx.input(0)?, cx.input(1)?.dtype()?);
    Ok(vec![cx.lower.cast(cx.name, to, &x)?])
}
