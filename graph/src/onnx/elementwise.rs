//! Element-wise ops: formulas of their operands.

use super::node::{Cx, Results};
use super::tensor::dtype;
use crate::DType;
use crate::front::{Operand, Stop, number, remainder};

/// An op that is one formula of `x0`, `x1`, ….
pub(super) fn formula(cx: &mut Cx, text: &str) -> Results {
    let mut inputs = cx.all()?;
    if cx.version < 7 && inputs.len() == 2 {
        inputs[1] = aligned(cx, &inputs[0], &inputs[1])?;
    }
    cx.map(text, &inputs.iter().collect::<Vec<_>>())
}

/// The second operand as before version 7: its axes lie at `axis` of the first one, or at the end.
fn aligned(cx: &mut Cx, a: &Operand, b: &Operand) -> Result<Operand, Stop> {
    let Some(axis) = cx.int("axis")? else { return Ok(b.clone()) };
    let (rank, mut shape) = (a.rank()? as i64, b.shape()?.to_vec());
    let axis = if axis < 0 { axis + rank } else { axis };
    let after = rank - axis - shape.len() as i64;
    if axis < 0 || after < 0 {
        return Err(Stop::Wrong(format!("axis {axis} leaves no room for {} axes in rank {rank}", shape.len())));
    }
    shape.resize(shape.len() + after as usize, 1);
    cx.lower.reshape("", &shape, b)
}

/// The formula with attributes in the places of their names.
fn with(cx: &Cx, text: &str, attributes: &[(&str, f32)]) -> Result<String, Stop> {
    attributes.iter().try_fold(text.to_string(), |text, (name, default)| {
        Ok(text.replace(&format!("{{{name}}}"), &number(cx.float_or(name, *default)?)))
    })
}

/// A formula of one operand and attributes.
fn unary(cx: &mut Cx, text: &str, attributes: &[(&str, f32)]) -> Results {
    let (x, text) = (cx.input(0)?, with(cx, text, attributes)?);
    cx.map(&text, &[&x])
}

pub(super) fn leaky_relu(cx: &mut Cx) -> Results {
    unary(cx, "select(x0 < 0, {alpha} * x0, x0)", &[("alpha", 0.01)])
}

pub(super) fn elu(cx: &mut Cx) -> Results {
    unary(cx, "select(x0 < 0, {alpha} * expm1(x0), x0)", &[("alpha", 1.0)])
}

pub(super) fn selu(cx: &mut Cx) -> Results {
    // Before version 6 the defaults were rounded.
    let (alpha, gamma) = if cx.version < 6 { (1.6732, 1.0507) } else { (1.673_263_2, 1.050_701) };
    let text = "select(x0 > 0, {gamma} * x0, {gamma} * ({alpha} * expm1(x0)))";
    unary(cx, text, &[("alpha", alpha), ("gamma", gamma)])
}

pub(super) fn celu(cx: &mut Cx) -> Results {
    unary(cx, "max(x0, 0) + min({alpha} * expm1(x0 / {alpha}), 0)", &[("alpha", 1.0)])
}

pub(super) fn hard_sigmoid(cx: &mut Cx) -> Results {
    unary(cx, "max(min({alpha} * x0 + {beta}, 1), 0)", &[("alpha", 0.2), ("beta", 0.5)])
}

pub(super) fn thresholded_relu(cx: &mut Cx) -> Results {
    unary(cx, "select(x0 > {alpha}, x0, 0)", &[("alpha", 1.0)])
}

pub(super) fn shrink(cx: &mut Cx) -> Results {
    let text = "select(x0 < -{lambd}, x0 + {bias}, select(x0 > {lambd}, x0 - {bias}, 0))";
    unary(cx, text, &[("lambd", 0.5), ("bias", 0.0)])
}

pub(super) fn swish(cx: &mut Cx) -> Results {
    match cx.float_or("alpha", 1.0)? {
        1.0 => unary(cx, "silu(x0)", &[]),
        _ => unary(cx, "x0 * sigmoid({alpha} * x0)", &[("alpha", 1.0)]),
    }
}

pub(super) fn swiglu(cx: &mut Cx) -> Results {
    let (gate, x) = (cx.input(0)?, cx.input(1)?);
    let text = match cx.float_or("alpha", 1.0)? {
        1.0 => "silu(x0) * x1".into(),
        _ => with(cx, "x0 * sigmoid({alpha} * x0) * x1", &[("alpha", 1.0)])?,
    };
    cx.map(&text, &[&gate, &x])
}

pub(super) fn gelu(cx: &mut Cx) -> Results {
    match cx.text_or("approximate", "none")?.as_str() {
        "none" => unary(cx, "gelu(x0)", &[]),
        "tanh" => unary(cx, "gelu_tanh(x0)", &[]),
        other => Err(Stop::Wrong(format!("approximate={other:?}; it is \"none\" or \"tanh\""))),
    }
}

pub(super) fn is_inf(cx: &mut Cx) -> Results {
    let x = cx.input(0)?;
    match (cx.flag("detect_negative", true)?, cx.flag("detect_positive", true)?) {
        (true, true) => cx.map("is_inf(x0)", &[&x]),
        (true, false) => cx.map("x0 == -inf", &[&x]),
        (false, true) => cx.map("x0 == inf", &[&x]),
        (false, false) => cx.map("x0 == x0 and x0 != x0", &[&x]),
    }
}

pub(super) fn prelu(cx: &mut Cx) -> Results {
    let (x, mut slope) = (cx.input(0)?, cx.input(1)?);
    // Before version 7 a slope of one axis belongs to the channels.
    if cx.version < 7 && slope.rank()? == 1 && x.rank()? > 2 && x.shape()?[1] == slope.shape()?[0] {
        let mut shape = slope.shape()?.to_vec();
        shape.resize(x.rank()? - 1, 1);
        slope = cx.lower.reshape("", &shape, &slope)?;
    }
    cx.map("select(x0 < 0, x1 * x0, x0)", &[&x, &slope])
}

/// A shift by all bits or more, or by less than none, leaves no bit but those of the sign.
pub(super) fn bit_shift(cx: &mut Cx) -> Results {
    let (of, direction) = (cx.input(0)?.dtype()?, cx.text_or("direction", "")?);
    let (shifted, sign) = match direction.as_str() {
        "LEFT" => ("x0 << x1", "0"),
        "RIGHT" if of.is_signed() => ("x0 >> x1", "select(x0 < 0, -1, 0)"),
        "RIGHT" => ("x0 >> x1", "0"),
        other => return Err(Stop::Wrong(format!("direction={other:?}; it is \"LEFT\" or \"RIGHT\""))),
    };
    formula(cx, &format!("select(x1 >= 0 and x1 < {}, {shifted}, {sign})", of.bits()))
}

pub(super) fn modulo(cx: &mut Cx) -> Results {
    let (is_float, truncates) = (cx.input(0)?.dtype()?.is_float(), cx.flag("fmod", false)?);
    formula(cx, remainder(is_float, truncates))
}

pub(super) fn pow(cx: &mut Cx) -> Results {
    let (x, mut exponent, name) = (cx.input(0)?, cx.input(1)?, cx.name(0));
    if cx.version < 7 {
        exponent = aligned(cx, &x, &exponent)?;
    }
    Ok(vec![cx.lower.pow(name, &x, &exponent)?])
}

pub(super) fn clip(cx: &mut Cx) -> Results {
    let x = cx.input(0)?;
    let is_old = cx.version < 11;
    let bound = |name: &str, place: usize| -> Result<Option<Operand>, Stop> {
        match (is_old, cx.attribute(name).is_some()) {
            (true, false) => Ok(None),
            (true, true) => Ok(Some(Operand::number(x.dtype()?, f64::from(cx.float_or(name, 0.0)?)))),
            (false, _) => Ok(cx.optional(place)),
        }
    };
    match (bound("min", 1)?, bound("max", 2)?) {
        (None, None) => Ok(vec![x]),
        (Some(least), None) => cx.map("max(x0, x1)", &[&x, &least]),
        (None, Some(most)) => cx.map("min(x0, x1)", &[&x, &most]),
        (Some(least), Some(most)) => cx.map("min(max(x0, x1), x2)", &[&x, &least, &most]),
    }
}

/// The most operands of one formula.
const MOST: usize = 32;

/// An op of any number of operands: a formula of two that is nested from the left, and one of the result.
fn variadic(cx: &mut Cx, nested: fn(String, usize) -> String, last: &str) -> Results {
    let inputs = cx.all()?;
    let Some((first, mut rest)) = inputs.split_first() else { return Err("there is no input".into()) };
    let mut value = first.clone();
    while rest.len() > MOST {
        let (some, others) = rest.split_at(MOST);
        let text = (1..=some.len()).fold("x0".to_string(), nested);
        let operands: Vec<&Operand> = std::iter::once(&value).chain(some).collect();
        value = cx.lower.map("", &text, &operands)?;
        rest = others;
    }
    let text = (1..=rest.len()).fold("x0".to_string(), nested);
    let text = last.replace("{}", &text).replace("{n}", &inputs.len().to_string());
    if text == "x0" {
        return Ok(vec![value]);
    }
    let operands: Vec<Operand> = std::iter::once(value).chain(rest.iter().cloned()).collect();
    cx.map(&text, &operands.iter().collect::<Vec<_>>())
}

pub(super) fn max(cx: &mut Cx) -> Results {
    variadic(cx, |text, i| format!("max({text}, x{i})"), "{}")
}

pub(super) fn min(cx: &mut Cx) -> Results {
    variadic(cx, |text, i| format!("min({text}, x{i})"), "{}")
}

pub(super) fn sum(cx: &mut Cx) -> Results {
    variadic(cx, |text, i| format!("{text} + x{i}"), "{}")
}

pub(super) fn mean(cx: &mut Cx) -> Results {
    variadic(cx, |text, i| format!("{text} + x{i}"), "({}) / {n}")
}

/// Before version 6 the type was a text.
pub(super) fn cast(cx: &mut Cx) -> Results {
    let to = match cx.version < 6 {
        true => {
            let text = cx.text_or("to", "")?.to_ascii_lowercase();
            (1..=16).find(|&number| super::tensor::type_name(number) == text).unwrap_or(0)
        }
        false => cx.int_or("to", 0)?,
    };
    cast_to(cx, dtype(to).map_err(|error| Stop::Opaque(error.to_string()))?)
}

pub(super) fn cast_like(cx: &mut Cx) -> Results {
    let to = cx.input(1)?.dtype()?;
    cast_to(cx, to)
}

fn cast_to(cx: &mut Cx, to: DType) -> Results {
    let (x, name) = (cx.input(0)?, cx.name(0));
    Ok(vec![cx.lower.cast(name, to, &x)?])
}
