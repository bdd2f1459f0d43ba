//! Ops that are left to the host: their attributes, and the shapes of their results where the file does not say them.

use super::messages::AttributeValue;
use super::node::Cx;
use super::tensor::dtype;
use crate::front::{Operand, Stop};
use crate::shape::broadcast;
use crate::{Attribute, DType};

/// The most bytes of a text among the attributes of an opaque node.
const MOST_TEXT: usize = 1000;

/// The type and the shape of a result.
type Type = (DType, Vec<u64>);

/// A node of the host with the operands that the library has types for, and the reason that no kernel computes it.
pub(super) fn opaque(cx: &mut Cx, reason: String) -> Result<Vec<Operand>, Stop> {
    let mut types = vec![];
    for output in 0..cx.node.outputs.len() {
        types.push(match &cx.said[output] {
            Some(said) => Some(said.clone()),
            None => result(cx, output)?,
        });
    }
    if let Some(output) = (0..types.len()).find(|&output| types[output].is_none() && cx.has_output(output)) {
        let name = cx.node.outputs[output];
        let remedy = "the file has no static shape for it; shape inference by ONNX adds one";
        return Err(Stop::Wrong(format!("the shape of the result `{name}` is not known: {remedy}")));
    }
    // Results that the node leaves out keep their places by a mark.
    let mut attributes = vec![("why".to_string(), Attribute::Text(reason))];
    let missing =
        |list: Vec<bool>| -> Vec<i64> { (0..).zip(list).filter(|(_, there)| !there).map(|(i, _)| i).collect() };
    let there = |input: &Option<Operand>| !matches!(input, None | Some(Operand::Foreign(_)));
    let lists = [
        ("omitted_inputs", missing(cx.inputs.iter().map(there).collect())),
        ("omitted_outputs", missing((0..types.len()).map(|output| cx.has_output(output)).collect())),
    ];
    for (name, list) in lists {
        if !list.is_empty() {
            attributes.push((name.into(), Attribute::Ints(list)));
        }
    }
    for attribute in &cx.node.attributes {
        let value = cx.attribute(attribute.name).cloned().unwrap_or(AttributeValue::None);
        if let Some(value) = shown(value)
            && !attribute.name.is_empty()
            && attributes.iter().all(|(name, _)| name != attribute.name)
        {
            attributes.push((attribute.name.into(), value));
        }
    }
    let op = match cx.node.domain {
        "" | "ai.onnx" => cx.node.op.to_string(),
        domain => format!("{domain}.{}", cx.node.op),
    };
    let inputs: Vec<Operand> = cx.inputs.iter().filter(|input| there(input)).flatten().cloned().collect();
    let kept: Vec<usize> = (0..types.len()).filter(|&output| cx.has_output(output)).collect();
    let typed: Vec<(&str, Type)> =
        kept.iter().filter_map(|&output| Some((cx.name(output), types[output].clone()?))).collect();
    let outputs: Vec<(&str, DType, &[u64])> =
        typed.iter().map(|(name, (dtype, shape))| (*name, *dtype, &shape[..])).collect();
    let mut values = cx.lower.opaque(&op, attributes, &inputs.iter().collect::<Vec<_>>(), &outputs)?.into_iter();
    let nothing = || Operand::Foreign("the node leaves this result out".into());
    Ok((0..types.len())
        .map(|output| if kept.contains(&output) { values.next().unwrap_or_else(nothing) } else { nothing() })
        .collect())
}

/// An attribute of the host, unless it is a tensor, a graph or too long.
fn shown(value: AttributeValue) -> Option<Attribute> {
    match value {
        AttributeValue::Int(value) => Some(Attribute::Int(value)),
        AttributeValue::Float(value) if value.is_finite() => Some(Attribute::Float(f64::from(value))),
        AttributeValue::Float(value) => Some(Attribute::Text(value.to_string())),
        AttributeValue::Text(text) if text.len() <= MOST_TEXT => {
            Some(Attribute::Text(String::from_utf8_lossy(text).into_owned()))
        }
        AttributeValue::Ints(values) if values.len() <= MOST_TEXT => Some(Attribute::Ints(values)),
        AttributeValue::Floats(values) if values.len() <= MOST_TEXT && values.iter().all(|value| value.is_finite()) => {
            Some(Attribute::Floats(values.into_iter().map(f64::from).collect()))
        }
        _ => None,
    }
}

/// The type and the shape of a result of the ops that models have most; none for others.
fn result(cx: &Cx, output: usize) -> Result<Option<Type>, Stop> {
    let Some(Some(x)) = cx.inputs.first() else { return Ok(None) };
    if matches!(x, Operand::Foreign(_)) {
        return Ok(None);
    }
    let (of, shape) = (x.dtype()?, x.shape()?.to_vec());
    Ok(match (cx.node.op, output) {
        ("Conv", 0) => Some((of, windows(cx, &shape, true)?)),
        ("MaxPool", 0) | ("AveragePool" | "LpPool", 0) => Some((of, windows(cx, &shape, false)?)),
        ("MaxPool", 1) => Some((DType::I64, windows(cx, &shape, false)?)),
        ("ConvTranspose", 0) => transposed(cx, &shape)?.map(|shape| (of, shape)),
        ("Gemm", 0) => Some((of, gemm(cx)?)),
        ("MatMul" | "MatMulInteger", 0) => {
            let integer = cx.node.op == "MatMulInteger";
            Some((if integer { DType::I32 } else { of }, matmul(&shape, cx.input(1)?.shape()?)?))
        }
        ("Pad", 0) => padded(cx, &shape)?.map(|shape| (of, shape)),
        ("Gather", 0) => {
            let axis = cx.axis(0)?;
            Some((of, [&shape[..axis], cx.input(1)?.shape()?, &shape[axis + 1..]].concat()))
        }
        ("TopK", 0 | 1) => {
            let k = if cx.version < 10 { cx.int("k")?.map(|k| vec![k]) } else { cx.known_ints(1, "k")? };
            let (mut shape, axis) = (shape, cx.axis(-1)?);
            shape[axis] = k.and_then(|k| u64::try_from(*k.first()?).ok()).ok_or("`k` is no number")?;
            Some((if output == 0 { of } else { DType::I64 }, shape))
        }
        ("DequantizeLinear", 0) => Some((cx.input(1)?.dtype()?, shape)),
        ("QuantizeLinear", 0) => match (cx.optional(2), cx.int_or("output_dtype", 0)?) {
            (Some(zero), _) => zero.dtype().ok().map(|to| (to, shape)),
            (None, 0) => Some((DType::U8, shape)),
            (None, to) => dtype(to).ok().map(|to| (to, shape)),
        },
        ("Dropout" | "Bernoulli", _) => Some((if output == 0 { of } else { DType::Bool }, shape)),
        ("RandomNormalLike" | "RandomUniformLike", 0) => match cx.int("dtype")? {
            Some(to) => dtype(to).ok().map(|to| (to, shape)),
            None => Some((of, shape)),
        },
        (op, 0) if SAME.contains(&op) => Some((of, shape)),
        _ => None,
    })
}

/// Ops whose first result has the type and the shape of the first operand.
const SAME: [&str; 19] = [
    "Acos",
    "Asin",
    "Atan",
    "BatchNormalization",
    "Cos",
    "CumProd",
    "CumSum",
    "GroupNormalization",
    "LRN",
    "LayerNormalization",
    "RMSNormalization",
    "ReverseSequence",
    "RotaryEmbedding",
    "Scatter",
    "ScatterElements",
    "ScatterND",
    "Sin",
    "Tan",
    "TensorScatter",
];

/// Values for each axis of a window: an attribute, or the same for all.
fn each(cx: &Cx, name: &str, count: usize, default: i64) -> Result<Vec<i64>, Stop> {
    let values = cx.ints(name)?.filter(|values| !values.is_empty()).unwrap_or(vec![default; count]);
    match values.len() == count && values.iter().all(|value| (0..1 << 40).contains(value)) {
        true => Ok(values),
        false => Err(Stop::Wrong(format!("attribute `{name}` has {values:?} for {count} axes"))),
    }
}

/// The shape of a convolution or of a pool.
fn windows(cx: &Cx, shape: &[u64], is_convolution: bool) -> Result<Vec<u64>, Stop> {
    let axes = shape.len().checked_sub(2).ok_or("an image has axes of images and channels")?;
    let (channels, kernel) = match is_convolution {
        true => {
            let weights = cx.input(1)?;
            let weights = weights.shape()?.to_vec();
            if weights.len() != shape.len() {
                return Err(Stop::Wrong(format!("weights of rank {} for rank {}", weights.len(), shape.len())));
            }
            (weights[0], weights[2..].iter().map(|&extent| extent as i64).collect())
        }
        false => (shape[1], cx.ints("kernel_shape")?.ok_or("attribute `kernel_shape` is missing")?),
    };
    let (strides, dilations) = (each(cx, "strides", axes, 1)?, each(cx, "dilations", axes, 1)?);
    let pads = each(cx, "pads", 2 * axes, 0)?;
    let auto = cx.text_or("auto_pad", "NOTSET")?;
    let rounds_up = cx.flag("ceil_mode", false)?;
    if kernel.len() != axes || kernel.iter().any(|extent| !(1..1 << 40).contains(extent)) || strides.contains(&0) {
        return Err(Stop::Wrong(format!("a window of {kernel:?} by {strides:?} for {axes} axes")));
    }
    let mut result = vec![shape[0], channels];
    for axis in 0..axes {
        let (extent, stride) = (shape[axis + 2] as i128, i128::from(strides[axis]));
        let (first, last) = (i128::from(pads[axis]), i128::from(pads[axis + axes]));
        let window = i128::from(dilations[axis]) * (i128::from(kernel[axis]) - 1) + 1;
        let steps = match auto.as_str() {
            "SAME_UPPER" | "SAME_LOWER" => (extent + stride - 1) / stride,
            auto => {
                let padded = if auto == "VALID" { extent } else { extent + first + last };
                let more = if rounds_up { stride - 1 } else { 0 };
                let steps = (padded - window + more).div_euclid(stride) + 1;
                // A window that begins beyond the image and its first padding is left out.
                let is_beyond = rounds_up && (steps - 1) * stride >= extent + if auto == "VALID" { 0 } else { first };
                if is_beyond { steps - 1 } else { steps }
            }
        };
        result.push(u64::try_from(steps).map_err(|_| format!("a window of {window} in an axis of {extent}"))?);
    }
    Ok(result)
}

/// The shape of a transposed convolution.
fn transposed(cx: &Cx, shape: &[u64]) -> Result<Option<Vec<u64>>, Stop> {
    let weights = cx.input(1)?;
    let weights = weights.shape()?.to_vec();
    let axes = shape.len().checked_sub(2).ok_or("an image has axes of images and channels")?;
    if weights.len() != shape.len() {
        return Err(Stop::Wrong(format!("weights of rank {} for rank {}", weights.len(), shape.len())));
    }
    let group = u64::try_from(cx.int_or("group", 1)?).map_err(|_| "`group` is below 0")?;
    let channels = weights[1].checked_mul(group).ok_or("too many channels")?;
    let mut result = vec![shape[0], channels];
    if let Some(sizes) = cx.ints("output_shape")? {
        let sizes = sizes.get(sizes.len().saturating_sub(axes)..).unwrap_or_default();
        result.extend(sizes.iter().map(|&size| size.max(0) as u64));
        return Ok((result.len() == shape.len()).then_some(result));
    }
    let (strides, dilations) = (each(cx, "strides", axes, 1)?, each(cx, "dilations", axes, 1)?);
    let (pads, more) = (each(cx, "pads", 2 * axes, 0)?, each(cx, "output_padding", axes, 0)?);
    let same = cx.text_or("auto_pad", "NOTSET")?.starts_with("SAME");
    for axis in 0..axes {
        let (extent, stride) = (shape[axis + 2] as i128, i128::from(strides[axis]));
        let window = i128::from(dilations[axis]) * (weights[axis + 2] as i128 - 1) + 1;
        let (first, last) = (i128::from(pads[axis]), i128::from(pads[axis + axes]));
        let size = match same {
            true => extent * stride,
            false => stride * (extent - 1) + i128::from(more[axis]) + window - first - last,
        };
        result.push(u64::try_from(size).map_err(|_| format!("an axis of {size}"))?);
    }
    Ok(Some(result))
}

fn gemm(cx: &Cx) -> Result<Vec<u64>, Stop> {
    let (a, b) = (cx.input(0)?, cx.input(1)?);
    let (a, b) = (a.shape()?.to_vec(), b.shape()?.to_vec());
    let ([m, k], [l, n]) = (&a[..], &b[..]) else { return Err("the operands are matrices".into()) };
    let rows = if cx.flag("transA", false)? { k } else { m };
    Ok(vec![*rows, *if cx.flag("transB", false)? { l } else { n }])
}

/// The shape of a matrix product as in NumPy.
fn matmul(a: &[u64], b: &[u64]) -> Result<Vec<u64>, Stop> {
    if a.is_empty() || b.is_empty() {
        return Err("a matrix product of a number".into());
    }
    let (rows, columns) = (a.len() > 1, b.len() > 1);
    let mut result = broadcast(&[&a[..a.len().saturating_sub(2)], &b[..b.len().saturating_sub(2)]])?;
    if rows {
        result.push(a[a.len() - 2]);
    }
    if columns {
        result.push(b[b.len() - 1]);
    }
    Ok(result)
}

/// The shape of a padded tensor, where the padding is known.
fn padded(cx: &Cx, shape: &[u64]) -> Result<Option<Vec<u64>>, Stop> {
    let pads = match cx.version {
        1 => cx.ints("paddings")?,
        2..11 => cx.ints("pads")?,
        _ => cx.known_ints(1, "pads")?,
    };
    let axes = match cx.version >= 18 && cx.optional(3).is_some() {
        true => super::reduce::axes_in_order(&cx.known_ints(3, "axes")?.unwrap_or_default(), shape.len())?,
        false => (0..shape.len()).collect::<Vec<usize>>(),
    };
    let Some(pads) = pads.filter(|pads| pads.len() == 2 * axes.len()) else { return Ok(None) };
    let mut result = shape.to_vec();
    for (place, &axis) in axes.iter().enumerate() {
        let extent = result[axis] as i128 + i128::from(pads[place]) + i128::from(pads[place + axes.len()]);
        result[axis] = u64::try_from(extent).map_err(|_| format!("an axis of {extent}"))?;
    }
    Ok(Some(result))
}
