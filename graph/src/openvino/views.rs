//! Ops that move elements: views, parts and joins; and ops whose results are known.

use super::layer::{Cx, Results, dtype};
use crate::front::{Operand, Stop, range, reshaped};
use crate::shape::broadcast;
use crate::{Data, Op, Range, resolve_axes, resolve_axis};

pub(super) fn identity(cx: &mut Cx) -> Results {
    Ok(vec![cx.input(0)?])
}

pub(super) fn reshape(cx: &mut Cx) -> Results {
    let (x, asked) = (cx.input(0)?, cx.known_ints(1, "shape")?);
    let shape = reshaped(x.shape()?, &asked, cx.flag("special_zero", false)?)?;
    Ok(vec![cx.lower.reshape(cx.name, &shape, &x)?])
}

pub(super) fn squeeze(cx: &mut Cx) -> Results {
    let x = cx.input(0)?;
    let shape = x.shape()?.to_vec();
    let axes = match cx.inputs.len() {
        1 => (0..shape.len()).filter(|&axis| shape[axis] == 1).collect(),
        _ => match &cx.known_ints(1, "axes")?[..] {
            [] => (0..shape.len()).filter(|&axis| shape[axis] == 1).collect(),
            _ => cx.axes(1)?,
        },
    };
    if let Some(&axis) = axes.iter().find(|&&axis| shape[axis] != 1) {
        return Err(Stop::Wrong(format!("axis {axis} has extent {}, not 1", shape[axis])));
    }
    let kept: Vec<u64> = (0..shape.len()).filter(|axis| !axes.contains(axis)).map(|axis| shape[axis]).collect();
    Ok(vec![cx.lower.reshape(cx.name, &kept, &x)?])
}

pub(super) fn unsqueeze(cx: &mut Cx) -> Results {
    let (x, axes) = (cx.input(0)?, cx.known_ints(1, "axes")?);
    let rank = x.rank()? + axes.len();
    let axes = resolve_axes(&axes, rank)?;
    let mut extents = x.shape()?.iter();
    let shape: Option<Vec<u64>> =
        (0..rank).map(|axis| if axes.contains(&axis) { Some(1) } else { extents.next().copied() }).collect();
    Ok(vec![cx.lower.reshape(cx.name, &shape.unwrap_or_default(), &x)?])
}

pub(super) fn transpose(cx: &mut Cx) -> Results {
    let (x, order) = (cx.input(0)?, cx.known_ints(1, "order")?);
    let rank = x.rank()?;
    let perm = match order.is_empty() {
        true => (0..rank).rev().collect::<Vec<usize>>(),
        false => order.iter().map(|&axis| resolve_axis(axis, rank)).collect::<Result<_, _>>()?,
    };
    Ok(vec![cx.lower.transpose(cx.name, &perm, &x)?])
}

fn extents(shape: &[i64]) -> Result<Vec<u64>, Stop> {
    let extent = |&extent: &i64| u64::try_from(extent).map_err(|_| Stop::Wrong(format!("extent {extent}")));
    shape.iter().map(extent).collect()
}

pub(super) fn spread(cx: &mut Cx) -> Results {
    let (mut x, shape) = (cx.input(0)?, extents(&cx.known_ints(1, "target_shape")?)?);
    let shape = match cx.text_or("mode", "numpy").as_str() {
        "numpy" => shape,
        "bidirectional" => broadcast(&[x.shape()?, &shape])?,
        "explicit" => {
            // Axis i of x is axis `mapping[i]` of the result.
            let mapping = cx.known_ints(2, "axes_mapping")?;
            let from = x.shape()?.to_vec();
            if mapping.len() != from.len() || mapping.windows(2).any(|pair| pair[0] >= pair[1]) {
                return Err(Stop::Wrong(format!("the mapping {mapping:?} of {} axes", from.len())));
            }
            let mut apart = vec![1; shape.len()];
            for (&axis, extent) in mapping.iter().zip(from) {
                apart[resolve_axis(axis, shape.len())?] = extent;
            }
            x = cx.lower.reshape("", &apart, &x)?;
            shape
        }
        other => return Err(Stop::Opaque(format!("mode={other:?}"))),
    };
    Ok(vec![cx.lower.broadcast(cx.name, &shape, &x)?])
}

pub(super) fn slice(cx: &mut Cx) -> Results {
    let x = cx.input(0)?;
    let (starts, ends, steps) = (cx.known_ints(1, "start")?, cx.known_ints(2, "stop")?, cx.known_ints(3, "step")?);
    let axes = if cx.inputs.len() > 4 { cx.known_ints(4, "axes")? } else { (0..starts.len() as i64).collect() };
    if [ends.len(), steps.len(), axes.len()] != [starts.len(); 3] {
        return Err(Stop::Wrong(format!("{} starts for {} axes", starts.len(), axes.len())));
    }
    let mut ranges: Vec<Range> = x.shape()?.iter().map(|&extent| Range::all(extent)).collect();
    resolve_axes(&axes, ranges.len())?;
    for (place, &axis) in axes.iter().enumerate() {
        let axis = resolve_axis(axis, ranges.len())?;
        ranges[axis] = range(starts[place], ends[place], steps[place], ranges[axis].extent)?;
    }
    Ok(vec![cx.lower.slice(cx.name, &ranges, &x)?])
}

pub(super) fn strided_slice(cx: &mut Cx) -> Results {
    let x = cx.input(0)?;
    let (begins, ends) = (cx.known_ints(1, "begin")?, cx.known_ints(2, "end")?);
    let steps = if cx.inputs.len() > 3 { cx.known_ints(3, "strides")? } else { vec![1; begins.len()] };
    if [ends.len(), steps.len()] != [begins.len(); 2] {
        return Err(Stop::Wrong(format!("{} begins and {} ends", begins.len(), ends.len())));
    }
    let mask = |name: &str| -> Result<Vec<bool>, Stop> {
        let mut bits: Vec<bool> = cx.ints(name)?.into_iter().map(|bit| bit == 1).collect();
        bits.resize(begins.len(), false);
        Ok(bits)
    };
    let (keep_begin, keep_end) = (mask("begin_mask")?, mask("end_mask")?);
    let (new, shrink, ellipsis) = (mask("new_axis_mask")?, mask("shrink_axis_mask")?, mask("ellipsis_mask")?);
    let shape = x.shape()?.to_vec();
    let taken = (0..begins.len()).filter(|&place| !new[place] && !ellipsis[place]).count();
    let Some(whole) = shape.len().checked_sub(taken) else {
        return Err(Stop::Wrong(format!("{taken} ranges for rank {}", shape.len())));
    };
    let (mut axis, mut ranges, mut result) = (0, vec![], vec![]);
    let rest = |count: usize, axis: &mut usize, ranges: &mut Vec<Range>, result: &mut Vec<u64>| {
        for _ in 0..count {
            ranges.push(Range::all(shape[*axis]));
            result.push(shape[*axis]);
            *axis += 1;
        }
    };
    let mut open = Some(whole);
    for place in 0..begins.len() {
        if ellipsis[place] {
            let count = open.take().ok_or("two ellipses")?;
            rest(count, &mut axis, &mut ranges, &mut result);
        } else if new[place] {
            result.push(1);
        } else {
            let (extent, step) = (shape[axis], if shrink[place] { 1 } else { steps[place] });
            let begin = match (keep_begin[place], step < 0) {
                (false, _) => begins[place],
                (true, false) => 0,
                (true, true) => i64::MAX,
            };
            let end = match (shrink[place], keep_end[place], step < 0) {
                (true, ..) if begin == -1 => i64::MAX,
                (true, ..) => begin.saturating_add(1),
                (_, false, _) => ends[place],
                (_, true, false) => i64::MAX,
                (_, true, true) => i64::MIN,
            };
            let range = range(begin, end, step, extent)?;
            if shrink[place] && range.extent != 1 {
                return Err(Stop::Wrong(format!("index {begin} is out of range for an extent of {extent}")));
            }
            if !shrink[place] {
                result.push(range.extent);
            }
            ranges.push(range);
            axis += 1;
        }
    }
    let count = open.unwrap_or(0);
    rest(count, &mut axis, &mut ranges, &mut result);
    let part = cx.lower.slice("", &ranges, &x)?;
    Ok(vec![cx.lower.reshape(cx.name, &result, &part)?])
}

pub(super) fn concat(cx: &mut Cx) -> Results {
    let axis = cx.axis(0)?;
    match &cx.inputs[..] {
        [one] => Ok(vec![one.clone()]),
        inputs => Ok(vec![cx.lower.op(cx.name, Op::Concat(axis), &inputs.iter().collect::<Vec<_>>())?]),
    }
}

pub(super) fn split(cx: &mut Cx) -> Results {
    let axis = resolve_axis(cx.known_int(1, "axis")?, cx.input(0)?.rank()?)?;
    let extent = cx.input(0)?.shape()?[axis];
    let count = u64::try_from(cx.int_or("num_splits", 0)?).ok().filter(|&count| count > 0);
    let count = count.filter(|&count| extent.is_multiple_of(count) && count <= super::MAX_PORTS as u64);
    let count = count.ok_or_else(|| format!("`num_splits` does not divide the extent {extent}"))?;
    parts(cx, axis, &vec![extent / count; count as usize])
}

pub(super) fn variadic_split(cx: &mut Cx) -> Results {
    let axis = resolve_axis(cx.known_int(1, "axis")?, cx.input(0)?.rank()?)?;
    let (extent, mut sizes) = (cx.input(0)?.shape()?[axis], cx.known_ints(2, "split_lengths")?);
    let known: i128 = sizes.iter().filter(|&&size| size >= 0).map(|&size| i128::from(size)).sum();
    if let Some(open) = sizes.iter_mut().find(|size| **size == -1) {
        *open = i64::try_from(i128::from(extent) - known).unwrap_or(-1);
    }
    parts(cx, axis, &extents(&sizes)?)
}

fn parts(cx: &mut Cx, axis: usize, sizes: &[u64]) -> Results {
    let x = cx.input(0)?;
    let shape = x.shape()?.to_vec();
    if sizes.iter().try_fold(0u64, |all, &size| all.checked_add(size)) != Some(shape[axis]) {
        return Err(Stop::Wrong(format!("parts of {sizes:?} of an axis of {}", shape[axis])));
    }
    let (mut start, mut results) = (0, vec![]);
    for &size in sizes {
        let mut ranges: Vec<Range> = shape.iter().map(|&extent| Range::all(extent)).collect();
        ranges[axis] = Range { start: if size == 0 { 0 } else { start }, step: 1, extent: size };
        let name = if results.is_empty() { cx.name } else { "" };
        results.push(cx.lower.slice(name, &ranges, &x)?);
        start += size;
    }
    Ok(results)
}

pub(super) fn tile(cx: &mut Cx) -> Results {
    let x = cx.input(0)?;
    let (mut shape, mut repeats) = (x.shape()?.to_vec(), extents(&cx.known_ints(1, "repeats")?)?);
    let rank = shape.len().max(repeats.len());
    shape.splice(0..0, vec![1; rank - shape.len()]);
    repeats.splice(0..0, vec![1; rank - repeats.len()]);
    cx.lower.tile(cx.name, &shape, &repeats, &x).map(|value| vec![value])
}

pub(super) fn gather(cx: &mut Cx) -> Results {
    let (x, index) = (cx.input(0)?, cx.input(1)?);
    if cx.int_or("batch_dims", 0)? != 0 {
        return Err(Stop::Opaque("batch_dims: each batch has its own indices".into()));
    }
    let axis = resolve_axis(cx.known_int(2, "axis")?, x.rank()?)?;
    cx.lower.gather(cx.name, &x, &index, axis, cx.feeds_reduction).map(|value| vec![value])
}

pub(super) fn gather_elements(cx: &mut Cx) -> Results {
    let (x, index, axis) = (cx.input(0)?, cx.input(1)?, cx.axis(0)?);
    cx.lower.pick(cx.name, &x, &index, axis).map(|value| vec![value])
}

pub(super) fn shape_of(cx: &mut Cx) -> Results {
    let x = cx.input(0)?;
    let extents: Vec<i64> = x.shape()?.iter().map(|&extent| extent as i64).collect();
    let to = dtype(&cx.text_or("output_type", "i64")).ok_or("`output_type` is no element type")?;
    Ok(vec![Operand::Known(Data::of_ints(to, &[extents.len() as u64], &extents)?)])
}
