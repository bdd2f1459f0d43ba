//! The types and shapes of a node's results.

use crate::op::{CompositeRow, Op, Range};
use crate::shape::{broadcast, elements, shown};
use cranefold_ir::DType::{self, Bool, F32, F64, I32, I64};
use cranefold_ir::Def;
use cranefold_ir::expression::Expression;
use cranefold_ir::ops::{Integers, OpCall, ResultKind};

/// The type and the shape of a value.
pub(crate) type Type = (DType, Vec<u64>);

/// A type and a shape, of an operand.
pub(crate) type TypeRef<'a> = (DType, &'a [u64]);

/// The results of an operation; `dtype` is the type that the caller asks for, where the operation leaves a choice.
pub(crate) fn infer(op: &Op, inputs: &[TypeRef], dtype: Option<DType>) -> Result<Vec<Type>, String> {
    let one = |least, most| count(op.word(), inputs.len(), least, most);
    let fixed = |own: DType| match dtype {
        Some(asked) if asked != own => Err(format!("`{}` gives {own}, and {asked} is asked for", op.word())),
        _ => Ok(own),
    };
    let single = |shape: Vec<u64>| -> Result<Vec<Type>, String> { Ok(vec![(fixed(inputs[0].0)?, shape)]) };
    let types = match op {
        Op::Input | Op::Opaque { .. } => return Err(format!("the type of `{}` is missing", op.word())),
        Op::Constant(data) => {
            one(0, 0)?;
            vec![(fixed(data.dtype())?, data.shape().to_vec())]
        }
        Op::Map(formula) => {
            let shapes: Vec<&[u64]> = inputs.iter().map(|(_, shape)| *shape).collect();
            let own = formula_type(formula, &inputs.iter().map(|(dtype, _)| *dtype).collect::<Vec<_>>())?;
            vec![(dtype.unwrap_or(own), broadcast(&shapes)?)]
        }
        Op::Cast { to, .. } => {
            one(1, 1)?;
            vec![(fixed(*to)?, inputs[0].1.to_vec())]
        }
        Op::Reshape(shape) => {
            one(1, 1)?;
            let (from, to) = (elements(inputs[0].1)?, elements(shape)?);
            if from != to {
                let (given, asked) = (shown(inputs[0].1), shown(shape));
                return Err(format!("{given} has {from} elements, and {asked} has {to}"));
            }
            single(shape.clone())?
        }
        Op::Transpose(perm) => {
            one(1, 1)?;
            let rank = inputs[0].1.len();
            let mut sorted = perm.clone();
            sorted.sort_unstable();
            if sorted != (0..rank).collect::<Vec<_>>() {
                return Err(format!("{perm:?} is no order of {rank} axes"));
            }
            single(perm.iter().map(|&axis| inputs[0].1[axis]).collect())?
        }
        Op::Broadcast(shape) => {
            one(1, 1)?;
            if broadcast(&[inputs[0].1, shape])? != *shape {
                return Err(format!("{} does not broadcast to {}", shown(inputs[0].1), shown(shape)));
            }
            single(shape.clone())?
        }
        Op::Slice(ranges) => {
            one(1, 1)?;
            check_ranges(ranges, inputs[0].1)?;
            single(ranges.iter().map(|range| range.extent).collect())?
        }
        Op::Concat(axis) => {
            one(1, usize::MAX)?;
            single(concat(*axis, inputs)?)?
        }
        Op::Position { shape, axis } => {
            one(0, 0)?;
            in_range(*axis, shape.len())?;
            vec![(fixed(I64)?, shape.clone())]
        }
        Op::Reduce { call, axes, keep_dims } => {
            one(1, 1)?;
            reduced(call, axes, *keep_dims, inputs[0], dtype)?
        }
        Op::Normalize { call, axes } => {
            let row = call.as_row().filter(|row| row.applies).ok_or("the op is no normalisation")?;
            one(1, row.inputs)?;
            floats(row.name, inputs)?;
            axes.iter().try_for_each(|&axis| in_range(axis, inputs[0].1.len()))?;
            inputs[1..].iter().try_for_each(|(_, shape)| stretches(shape, inputs[0].1))?;
            vec![(float_type(dtype.unwrap_or(inputs[0].0))?, inputs[0].1.to_vec())]
        }
        Op::Pick(axis) => {
            one(2, 2)?;
            let ((_, from), (index, shape)) = (inputs[0], inputs[1]);
            in_range(*axis, from.len())?;
            let agree =
                from.len() == shape.len() && from.iter().zip(shape).enumerate().all(|(a, (x, i))| a == *axis || x == i);
            if !index.is_int() || !agree {
                let message = "the index has integers and the extents of the first input along all axes but";
                return Err(format!("{message} {axis}: {index}{} beside {} given", shown(shape), shown(from)));
            }
            single(shape.to_vec())?
        }
        Op::Composite { row, axes, params } => {
            one(row.inputs[0], row.inputs[1])?;
            floats(row.name, &inputs[..1])?;
            axes.iter().try_for_each(|&axis| in_range(axis, inputs[0].1.len()))?;
            if !row.takes_axes && !axes.is_empty() {
                return Err(format!("`{}` takes no axes", row.name));
            }
            if let Some(asked) = dtype.filter(|&asked| asked != inputs[0].0) {
                return Err(format!("`{}` gives {}, and {asked} is asked for", row.name, inputs[0].0));
            }
            composite(row, axes, params, inputs)?
        }
    };
    types.iter().try_for_each(|(_, shape)| elements(shape).map(|_| ()))?;
    Ok(types)
}

/// Refuses a number of inputs out of range.
fn count(op: &str, given: usize, least: usize, most: usize) -> Result<(), String> {
    match (least..=most).contains(&given) {
        true => Ok(()),
        false if least == most => Err(format!("`{op}` takes {least} inputs, {given} given")),
        false => Err(format!("`{op}` takes {least} to {most} inputs, {given} given")),
    }
}

fn in_range(axis: usize, rank: usize) -> Result<(), String> {
    (axis < rank).then_some(()).ok_or_else(|| format!("axis {axis} is out of range for rank {rank}"))
}

fn floats(op: &str, inputs: &[TypeRef]) -> Result<(), String> {
    let wrong = inputs.iter().find(|(dtype, _)| !dtype.is_float());
    wrong.map_or(Ok(()), |(dtype, _)| Err(format!("`{op}` takes floats, {dtype} given")))
}

fn float_type(dtype: DType) -> Result<DType, String> {
    dtype.is_float().then_some(dtype).ok_or_else(|| format!("the result is a float, and {dtype} is asked for"))
}

fn stretches(shape: &[u64], to: &[u64]) -> Result<(), String> {
    match broadcast(&[shape, to])? == to {
        true => Ok(()),
        false => Err(format!("{} does not broadcast to {}", shown(shape), shown(to))),
    }
}

fn check_ranges(ranges: &[Range], shape: &[u64]) -> Result<(), String> {
    if ranges.len() != shape.len() {
        return Err(format!("{} ranges for rank {}", ranges.len(), shape.len()));
    }
    for (axis, (range, &extent)) in ranges.iter().zip(shape).enumerate() {
        let last = i128::from(range.start) + i128::from(range.step) * (i128::from(range.extent) - 1);
        let inside = |at: i128| (0..i128::from(extent)).contains(&at);
        if range.step == 0 || range.extent > 0 && !(inside(range.start.into()) && inside(last)) {
            let Range { start, step, extent: count } = range;
            return Err(format!("{count} elements from {start} by {step} leave axis {axis} of extent {extent}"));
        }
    }
    Ok(())
}

fn concat(axis: usize, inputs: &[TypeRef]) -> Result<Vec<u64>, String> {
    let (dtype, first) = inputs[0];
    in_range(axis, first.len())?;
    let mut shape = first.to_vec();
    for (other, extents) in &inputs[1..] {
        let agree = extents.len() == first.len() && (0..first.len()).all(|a| a == axis || extents[a] == first[a]);
        if *other != dtype || !agree {
            let (a, b) = (shown(first), shown(extents));
            return Err(format!("{dtype}{a} and {other}{b} do not join along axis {axis}"));
        }
        shape[axis] = shape[axis].checked_add(extents[axis]).ok_or("the extent is too large")?;
    }
    Ok(shape)
}

/// The type that floats have in a formula of these inputs.
pub(crate) fn working_float(inputs: &[DType]) -> DType {
    if inputs.contains(&F64) { F64 } else { F32 }
}

/// The type of an element in a formula.
pub(crate) fn seen(dtype: DType, float: DType) -> DType {
    match dtype {
        _ if dtype.is_float() => float,
        _ if dtype.is_int() && dtype.bytes() < 4 => I32,
        _ => dtype,
    }
}

/// The type of the value of a formula, as a map gives it: that of its operands where they are narrower.
pub(crate) fn formula_type(formula: &Expression, inputs: &[DType]) -> Result<DType, String> {
    let float = working_float(inputs);
    let types: Vec<DType> = inputs.iter().map(|&dtype| seen(dtype, float)).collect();
    let mut result = Err(String::new());
    Def::build("map", &types, |lets, args| {
        let names: Vec<(String, _)> = args.iter().enumerate().map(|(i, arg)| (format!("x{i}"), arg.clone())).collect();
        result = formula.build(lets, &names, float).map(|value| value.dtype()).map_err(|error| error.to_string());
        vec![]
    });
    let own = result?;
    let used = |i: &usize| formula.uses(&format!("x{i}"));
    if let Some(unused) = (0..inputs.len()).find(|i| !used(i)) {
        return Err(format!("the formula does not use x{unused}"));
    }
    let widest = |is: fn(DType) -> bool| {
        let narrow: Vec<DType> = inputs.iter().copied().filter(|&dtype| is(dtype)).collect();
        narrow.first().copied().filter(|first| narrow.iter().all(|dtype| dtype == first))
    };
    Ok(match own {
        F32 => widest(DType::is_float).filter(|dtype| dtype.bytes() < 4).unwrap_or(own),
        I32 => widest(DType::is_int).filter(|dtype| dtype.bytes() < 4).unwrap_or(own),
        _ => own,
    })
}

fn reduced(
    call: &OpCall,
    axes: &[usize],
    keep_dims: bool,
    (input, shape): TypeRef,
    asked: Option<DType>,
) -> Result<Vec<Type>, String> {
    let row = call.as_row().filter(|row| !row.applies).ok_or("the op is no reduction")?;
    axes.iter().try_for_each(|&axis| in_range(axis, shape.len()))?;
    // Rows without a form for integers convert them to floats, and the result back.
    let refused = input.is_int() && (!row.takes(input) || row.integers == Integers::Refused);
    let converts = refused && row.results == [ResultKind::Value] && row.takes(F64);
    if !row.takes(input) && !converts {
        return Err(format!("`{}` takes {}, {input} given", row.name, row.takes_words()));
    }
    let takes_position = row.results == [ResultKind::Count] && row.takes_position;
    if takes_position && axes.iter().map(|&a| shape[a]).product::<u64>() == 0 && !shape.contains(&0) {
        return Err(format!("`{}` of nothing has no position", row.name));
    }
    let own = |kind: &ResultKind| match kind {
        ResultKind::Count => I64,
        _ => input,
    };
    let is_value = |kind: &ResultKind, to: DType| match kind {
        _ if input == Bool && *kind != ResultKind::Count => to == Bool,
        ResultKind::Count => to.is_int(),
        _ if input.is_float() => to.is_float(),
        _ => to.is_int(),
    };
    let mut result = shape.to_vec();
    axes.iter().for_each(|&axis| result[axis] = 1);
    if !keep_dims {
        let mut axis = 0;
        result.retain(|_| {
            axis += 1;
            !axes.contains(&(axis - 1))
        });
    }
    let output = |kind: &ResultKind| {
        let to = asked.unwrap_or_else(|| own(kind));
        match is_value(kind, to) {
            true => Ok((to, result.clone())),
            false => Err(format!("`{}` of {input} gives no {to}", row.name)),
        }
    };
    row.results.iter().map(output).collect()
}

/// The results of a composite, whose first input is x.
fn composite(
    row: &'static CompositeRow,
    axes: &[usize],
    params: &[Option<f64>],
    inputs: &[TypeRef],
) -> Result<Vec<Type>, String> {
    let (dtype, shape) = inputs[0];
    let same = (dtype, shape.to_vec());
    let channels = || shape.get(1).copied().ok_or_else(|| format!("`{}` needs a rank of 2 at least", row.name));
    let per_channel = || {
        let channels = channels()?;
        match inputs[1..].iter().find(|(other, shape)| !other.is_float() || *shape != [channels]) {
            Some((other, shape)) => Err(format!("{other}{} given for [{channels}] channels", shown(shape))),
            None => Ok(channels),
        }
    };
    match row.name {
        "layer_norm_stats" => {
            inputs[1..].iter().try_for_each(|(_, other)| stretches(other, shape))?;
            floats(row.name, inputs)?;
            let mut slices = shape.to_vec();
            axes.iter().for_each(|&axis| slices[axis] = 1);
            let float = working_float(&[dtype]);
            Ok(vec![same, (float, slices.clone()), (float, slices)])
        }
        "group_norm" => {
            let (channels, groups) = (per_channel()?, row.param(params, "groups").unwrap_or(1.0));
            if groups < 1.0 || groups.fract() != 0.0 || groups > 2e15 || !channels.is_multiple_of(groups as u64) {
                return Err(format!("{groups} groups do not divide {channels} channels"));
            }
            Ok(vec![same])
        }
        "instance_norm" | "batch_norm" => per_channel().map(|_| vec![same]),
        "batch_norm_training" => {
            let channels = per_channel()?;
            Ok(vec![same, (inputs[3].0, vec![channels]), (inputs[4].0, vec![channels])])
        }
        "hardmax" if axes.len() != 1 => Err("`hardmax` takes one axis".into()),
        "mvn" | "hardmax" => Ok(vec![same]),
        _ => losses(row, inputs),
    }
}

/// The results of a loss: x of classes along axis 1, labels of the other axes, and perhaps weights of classes.
fn losses(row: &'static CompositeRow, inputs: &[TypeRef]) -> Result<Vec<Type>, String> {
    let ((dtype, shape), (label, labels)) = (inputs[0], inputs[1]);
    let classes = *shape.get(1).ok_or_else(|| format!("`{}` needs a rank of 2 at least", row.name))?;
    let others: Vec<u64> = shape.iter().enumerate().filter(|(axis, _)| *axis != 1).map(|(_, &e)| e).collect();
    if !label.is_int() || labels != others {
        return Err(format!("labels are integers of shape {}, {label}{} given", shown(&others), shown(labels)));
    }
    if let Some((other, weights)) = inputs.get(2)
        && (!other.is_float() || *weights != [classes])
    {
        return Err(format!("weights are floats of shape [{classes}], {other}{} given", shown(weights)));
    }
    let is_whole = row.name.ends_with("_sum") || row.name.ends_with("_mean");
    let loss = (dtype, if is_whole { vec![] } else { others });
    Ok(match row.name.starts_with("cross_entropy") {
        true => vec![loss, (dtype, shape.to_vec())],
        false => vec![loss],
    })
}
