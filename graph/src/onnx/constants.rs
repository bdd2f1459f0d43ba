//! Ops whose results are known, and masks by position.

use super::messages::{AttributeValue, Tensor};
use super::node::{Cx, Results};
use super::tensor::dtype;
use crate::front::{Operand, Stop};
use crate::{DType, Data, Op};
use cranefold_ir::Scalar;

/// The elements of a tensor in an attribute.
fn data(cx: &mut Cx, tensor: &Tensor) -> Result<Operand, Stop> {
    let dtype = match dtype(tensor.data_type) {
        Ok(dtype) => dtype,
        Err(error) => return Ok(Operand::Foreign(error.to_string())),
    };
    if tensor.external {
        return Err("the tensor of an attribute has external data".into());
    }
    let read = || {
        let (shape, _) = tensor.shape().map_err(|error| error.to_string())?;
        let bytes = tensor.bytes().map_err(|error| error.to_string())?;
        Data::new(dtype, &shape, bytes)
    };
    Ok(Operand::Known(cx.lower.tensor(tensor.message, read)?))
}

pub(super) fn constant(cx: &mut Cx) -> Results {
    let names = ["value", "value_float", "value_floats", "value_int", "value_ints"];
    let found = names.iter().find_map(|name| cx.attribute(name));
    let floats = |shape: &[u64], values: &[f32]| {
        let values: Vec<Scalar> = values.iter().map(|&value| Scalar::f32(value)).collect();
        Data::of(DType::F32, shape, &values)
    };
    Ok(vec![match found {
        Some(AttributeValue::Tensor(tensor)) => data(cx, tensor)?,
        Some(AttributeValue::Float(value)) => Operand::Known(floats(&[], &[*value])?),
        Some(AttributeValue::Floats(values)) => Operand::Known(floats(&[values.len() as u64], values)?),
        Some(AttributeValue::Int(value)) => Operand::Known(Data::of_ints(DType::I64, &[], &[*value])?),
        Some(AttributeValue::Ints(values)) => Operand::ints(values),
        _ => Operand::Foreign("a constant of text or of sparse elements".into()),
    }])
}

pub(super) fn constant_of_shape(cx: &mut Cx) -> Results {
    let shape = cx.known_ints(0, "shape")?.ok_or("`shape` is missing")?;
    let shape = shape.iter().map(|&extent| u64::try_from(extent)).collect::<Result<Vec<u64>, _>>();
    let shape = shape.map_err(|_| "an extent is below 0")?;
    crate::shape::elements(&shape)?;
    let value = match cx.attribute("value") {
        None => Scalar::f32(0.0),
        Some(AttributeValue::Tensor(tensor)) => match data(cx, tensor)? {
            Operand::Known(data) if data.len() == 1 => data.at(0),
            Operand::Foreign(reason) => return Ok(vec![Operand::Foreign(reason)]),
            _ => return Err("`value` does not have one element".into()),
        },
        Some(_) => return Err("attribute `value` is not a tensor".into()),
    };
    Ok(vec![Operand::Splat(value, shape)])
}

pub(super) fn shape(cx: &mut Cx) -> Results {
    let x = cx.input(0)?;
    let shape = x.shape()?;
    let rank = shape.len() as i64;
    let at = |at: i64| (if at < 0 { at.saturating_add(rank) } else { at }).clamp(0, rank) as usize;
    let (start, end) = (at(cx.int_or("start", 0)?), at(cx.int_or("end", rank)?));
    let extents = shape.get(start..end).unwrap_or_default();
    Ok(vec![Operand::ints(&extents.iter().map(|&extent| extent as i64).collect::<Vec<_>>())])
}

pub(super) fn size(cx: &mut Cx) -> Results {
    let count: u64 = cx.input(0)?.shape()?.iter().product();
    Ok(vec![Operand::Known(Data::of_ints(DType::I64, &[], &[count as i64])?)])
}

/// The most elements of a range.
const MOST: f64 = (1u64 << 20) as f64;

pub(super) fn range(cx: &mut Cx) -> Results {
    let known = |place: usize| -> Result<Scalar, Stop> {
        let unknown = || Stop::Opaque("its extent is computed when the model runs".into());
        let data = cx.input(place)?.known().ok_or_else(unknown)?;
        if data.len() == 1 { Ok(data.at(0)) } else { Err("a limit of a range is one number".into()) }
    };
    let (start, limit, step) = (known(0)?, known(1)?, known(2)?);
    let dtype = start.dtype();
    if [limit.dtype(), step.dtype()] != [dtype; 2] {
        return Err("the limits of a range have different types".into());
    }
    let count = ((limit.as_f64() - start.as_f64()) / step.as_f64()).ceil().max(0.0);
    if count.is_nan() || count > MOST {
        return Err(Stop::Wrong(format!("a range of {count} elements; the limit is {MOST}")));
    }
    let count = count as u64;
    if !cx.lower.spend(count) {
        return Err("the ranges of the model have too many elements".into());
    }
    let values: Vec<Scalar> = match (start.as_int(), step.as_int()) {
        (Some(start), Some(step)) => (0..count).map(|i| Scalar::int(dtype, start + i128::from(i) * step)).collect(),
        _ => (0..count).map(|i| Scalar::float(dtype, start.as_f64() + i as f64 * step.as_f64())).collect(),
    };
    Ok(vec![Operand::Known(Data::of(dtype, &[count], &values)?)])
}

/// The index along a row and along a column of the last two axes.
fn positions(cx: &mut Cx, rows: u64, columns: u64) -> Result<(Operand, Operand), Stop> {
    let row = cx.lower.op("", Op::Position { shape: vec![rows, 1], axis: 0 }, &[])?;
    let column = cx.lower.op("", Op::Position { shape: vec![1, columns], axis: 1 }, &[])?;
    Ok((row, column))
}

pub(super) fn trilu(cx: &mut Cx) -> Results {
    let x = cx.input(0)?;
    let k = match cx.optional(1) {
        None => 0,
        Some(_) => cx.known_ints(1, "k")?.and_then(|k| k.first().copied()).ok_or("`k` is no number")?,
    };
    let [.., rows, columns] = *x.shape()? else { return Err("a matrix has two axes".into()) };
    let (row, column) = positions(cx, rows, columns)?;
    let kept = if cx.flag("upper", true)? { "x2 >= x1 +" } else { "x2 <= x1 +" };
    let text = match x.dtype()? {
        DType::Bool => format!("x0 and {kept} ({k})"),
        _ => format!("select({kept} ({k}), x0, 0)"),
    };
    cx.map(&text, &[&x, &row, &column])
}

pub(super) fn eye_like(cx: &mut Cx) -> Results {
    let (x, name) = (cx.input(0)?, cx.name(0));
    let to = match cx.int("dtype")? {
        Some(to) => dtype(to).map_err(|error| Stop::Opaque(error.to_string()))?,
        None => x.dtype()?,
    };
    let [rows, columns] = *x.shape()? else { return Err("a matrix has two axes".into()) };
    let k = cx.int_or("k", 0)?;
    let (row, column) = positions(cx, rows, columns)?;
    let is_one = cx.lower.map("", &format!("x1 == x0 + ({k})"), &[&row, &column])?;
    Ok(vec![cx.lower.cast(name, to, &is_one)?])
}

pub(super) fn one_hot(cx: &mut Cx) -> Results {
    let (index, values, name) = (cx.input(0)?, cx.input(2)?, cx.name(0));
    let depth = cx.input(1)?.known().and_then(|data| data.uniform());
    let depth = depth.ok_or_else(|| Stop::Opaque("its depth is computed when the model runs".into()))?.as_f64();
    if !(1.0..=1e15).contains(&depth) {
        return Err(Stop::Wrong(format!("a depth of {depth}")));
    }
    let (depth, mut shape) = (depth as u64, index.shape()?.to_vec());
    let axis = crate::resolve_axis(cx.int_or("axis", -1)?, shape.len() + 1)?;
    shape.insert(axis, 1);
    let index = cx.lower.cast("", DType::I64, &index)?;
    let index = cx.lower.reshape("", &shape, &index)?;
    let mut along = vec![1; shape.len()];
    along[axis] = depth;
    let position = cx.lower.op("", Op::Position { shape: along, axis }, &[])?;
    let one = |start| [crate::Range { start, step: 1, extent: 1 }];
    let off = cx.lower.slice("", &one(0), &values)?;
    let on = cx.lower.slice("", &one(1), &values)?;
    let text = format!("select(x0 == x1 or x0 + {depth} == x1, x2, x3)");
    Ok(vec![cx.lower.map(name, &text, &[&index, &position, &on, &off])?])
}
