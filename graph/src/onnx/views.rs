//! Ops that move elements: views, parts and joins.

use super::node::{Cx, Results};
use super::reduce::axes_of;
use crate::front::{Operand, Stop, range, reshaped};
use crate::{Op, Range, resolve_axis};

pub(super) fn identity(cx: &mut Cx) -> Results {
    Ok(vec![cx.input(0)?])
}

pub(super) fn dropout(cx: &mut Cx) -> Results {
    let x = cx.input(0)?;
    let is_training = match cx.version {
        12.. => match cx.optional(2) {
            Some(mode) => mode.known().and_then(|data| data.uniform()).is_none_or(|mode| mode.bits() != 0),
            None => false,
        },
        ..7 => !cx.flag("is_test", false)? && cx.has_output(1),
        _ => false,
    };
    if is_training {
        return Err(Stop::Opaque("it drops elements at random".into()));
    }
    let mask = match cx.version {
        10.. => crate::DType::Bool,
        _ => x.dtype()?,
    };
    let mask = Operand::Splat(crate::data::scalar(mask, 1.0), x.shape()?.to_vec());
    Ok(vec![x, mask])
}

pub(super) fn reshape(cx: &mut Cx) -> Results {
    let (x, name) = (cx.input(0)?, cx.name(0));
    let asked = cx.ints_of("shape", 1, 5)?.ok_or("`shape` is missing")?;
    let shape = reshaped(x.shape()?, &asked, !cx.flag("allowzero", false)?)?;
    Ok(vec![cx.lower.reshape(name, &shape, &x)?])
}

pub(super) fn flatten(cx: &mut Cx) -> Results {
    let (x, name) = (cx.input(0)?, cx.name(0));
    let shape = x.shape()?;
    let (rank, axis) = (shape.len(), cx.int_or("axis", 1)?);
    let axis = if axis == rank as i64 { rank } else { resolve_axis(axis, rank)? };
    let flat = [shape[..axis].iter().product(), shape[axis..].iter().product()];
    Ok(vec![cx.lower.reshape(name, &flat, &x)?])
}

pub(super) fn squeeze(cx: &mut Cx) -> Results {
    let (x, name) = (cx.input(0)?, cx.name(0));
    let shape = x.shape()?;
    let axes = match cx.ints_of("axes", 1, 13)? {
        Some(axes) => axes_of(&axes, &x)?,
        None => (0..shape.len()).filter(|&axis| shape[axis] == 1).collect(),
    };
    if let Some(axis) = axes.iter().find(|&&axis| shape[axis] != 1) {
        return Err(Stop::Wrong(format!("axis {axis} has extent {}, not 1", shape[*axis])));
    }
    let kept: Vec<u64> = (0..shape.len()).filter(|axis| !axes.contains(axis)).map(|axis| shape[axis]).collect();
    Ok(vec![cx.lower.reshape(name, &kept, &x)?])
}

pub(super) fn unsqueeze(cx: &mut Cx) -> Results {
    let (x, name) = (cx.input(0)?, cx.name(0));
    let axes = cx.ints_of("axes", 1, 13)?.ok_or("`axes` is missing")?;
    let rank = x.rank()? + axes.len();
    let axes = crate::resolve_axes(&axes, rank)?;
    let mut extents = x.shape()?.iter();
    let shape: Option<Vec<u64>> =
        (0..rank).map(|axis| if axes.contains(&axis) { Some(1) } else { extents.next().copied() }).collect();
    Ok(vec![cx.lower.reshape(name, &shape.unwrap_or_default(), &x)?])
}

pub(super) fn transpose(cx: &mut Cx) -> Results {
    let (x, name) = (cx.input(0)?, cx.name(0));
    let rank = x.rank()?;
    let perm = match cx.ints("perm")? {
        None => (0..rank).rev().collect::<Vec<usize>>(),
        Some(perm) => perm.iter().map(|&axis| resolve_axis(axis, rank)).collect::<Result<_, _>>()?,
    };
    Ok(vec![cx.lower.transpose(name, &perm, &x)?])
}

pub(super) fn expand(cx: &mut Cx) -> Results {
    let (x, name) = (cx.input(0)?, cx.name(0));
    let asked = cx.known_ints(1, "shape")?.ok_or("`shape` is missing")?;
    let asked = extents(&asked)?;
    let shape = crate::shape::broadcast(&[x.shape()?, &asked])?;
    Ok(vec![cx.lower.broadcast(name, &shape, &x)?])
}

fn extents(shape: &[i64]) -> Result<Vec<u64>, Stop> {
    let extent = |&extent: &i64| u64::try_from(extent).map_err(|_| Stop::Wrong(format!("extent {extent}")));
    shape.iter().map(extent).collect()
}

pub(super) fn tile(cx: &mut Cx) -> Results {
    let (x, name) = (cx.input(0)?, cx.name(0));
    let repeats = cx.known_ints(1, "repeats")?.ok_or("`repeats` is missing")?;
    let (repeats, shape) = (extents(&repeats)?, x.shape()?.to_vec());
    if repeats.len() != shape.len() {
        return Err(Stop::Wrong(format!("{} repeats for rank {}", repeats.len(), shape.len())));
    }
    cx.lower.tile(name, &shape, &repeats, &x).map(|value| vec![value])
}

pub(super) fn slice(cx: &mut Cx) -> Results {
    let (x, name) = (cx.input(0)?, cx.name(0));
    let starts = cx.ints_of("starts", 1, 10)?.ok_or("`starts` is missing")?;
    let ends = cx.ints_of("ends", 2, 10)?.ok_or("`ends` is missing")?;
    let axes = cx.ints_of("axes", 3, 10)?.unwrap_or((0..starts.len() as i64).collect());
    let steps = if cx.version >= 10 { cx.known_ints(4, "steps")? } else { None };
    let steps = steps.unwrap_or(vec![1; starts.len()]);
    if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] {
        let (e, a, s) = (ends.len(), axes.len(), steps.len());
        return Err(Stop::Wrong(format!("{} starts, {e} ends, {a} axes and {s} steps", starts.len())));
    }
    axes_of(&axes, &x)?;
    let mut ranges: Vec<Range> = x.shape()?.iter().map(|&extent| Range::all(extent)).collect();
    for (place, &axis) in axes.iter().enumerate() {
        let axis = resolve_axis(axis, ranges.len())?;
        ranges[axis] = range(starts[place], ends[place], steps[place], ranges[axis].extent)?;
    }
    Ok(vec![cx.lower.slice(name, &ranges, &x)?])
}

pub(super) fn concat(cx: &mut Cx) -> Results {
    let (inputs, name) = (cx.all()?, cx.name(0));
    let default = if cx.version < 4 { Some(1) } else { None };
    let axis = cx.int("axis")?.or(default).ok_or("attribute `axis` is missing")?;
    let rank = inputs.first().ok_or("there is no input")?.rank()?;
    let axis = resolve_axis(axis, rank)?;
    match &inputs[..] {
        [one] => Ok(vec![one.clone()]),
        _ => Ok(vec![cx.lower.op(name, Op::Concat(axis), &inputs.iter().collect::<Vec<_>>())?]),
    }
}

pub(super) fn split(cx: &mut Cx) -> Results {
    let (x, axis) = (cx.input(0)?, cx.axis(0)?);
    let (shape, parts) = (x.shape()?.to_vec(), cx.node.outputs.len() as u64);
    let extent = shape[axis];
    let given = match cx.version {
        1 if cx.optional(1).is_some() => cx.known_ints(1, "split")?,
        _ => cx.ints_of("split", 1, 13)?,
    };
    let sizes = match given {
        Some(sizes) => extents(&sizes)?,
        None => {
            let count = cx.int_or("num_outputs", parts as i64)?;
            let count = u64::try_from(count).ok().filter(|&count| count == parts && count > 0);
            let count = count.ok_or_else(|| format!("`num_outputs` is not {parts}, the number of outputs"))?;
            // The last part is smaller where the extent does not divide.
            let size = extent.div_ceil(count);
            (0..count).map(|part| size.min(extent.saturating_sub(part * size))).collect()
        }
    };
    let total = sizes.iter().try_fold(0u64, |all, &size| all.checked_add(size));
    if total != Some(extent) || sizes.len() as u64 != parts {
        return Err(Stop::Wrong(format!("parts of {sizes:?} for {parts} outputs of an axis of {extent}")));
    }
    let mut start = 0;
    let mut results = vec![];
    for (output, &size) in sizes.iter().enumerate() {
        let mut ranges: Vec<Range> = shape.iter().map(|&extent| Range::all(extent)).collect();
        ranges[axis] = Range { start: if size == 0 { 0 } else { start }, step: 1, extent: size };
        results.push(cx.lower.slice(cx.name(output), &ranges, &x)?);
        start += size;
    }
    Ok(results)
}

/// The block size and the extents of an image of rank 4.
fn image(cx: &Cx) -> Result<(Operand, u64, [u64; 4]), Stop> {
    let (x, block) = (cx.input(0)?, cx.int_or("blocksize", 0)?);
    let shape: [u64; 4] = x.shape()?.try_into().map_err(|_| Stop::Wrong("an image has rank 4".into()))?;
    match u64::try_from(block) {
        Ok(block @ 1..=0xffff) => Ok((x, block, shape)),
        _ => Err(Stop::Wrong(format!("blocksize={block}"))),
    }
}

pub(super) fn depth_to_space(cx: &mut Cx) -> Results {
    let (x, b, [n, c, h, w]) = image(cx)?;
    let name = cx.name(0);
    let (from, perm) = match cx.text_or("mode", "DCR")?.as_str() {
        "CRD" => ([n, c / (b * b), b, b, h, w], [0, 1, 4, 2, 5, 3]),
        _ => ([n, b, b, c / (b * b), h, w], [0, 3, 4, 1, 5, 2]),
    };
    let apart = cx.lower.reshape("", &from, &x)?;
    let moved = cx.lower.transpose("", &perm, &apart)?;
    Ok(vec![cx.lower.reshape(name, &[n, c / (b * b), h * b, w * b], &moved)?])
}

pub(super) fn space_to_depth(cx: &mut Cx) -> Results {
    let (x, b, [n, c, h, w]) = image(cx)?;
    let name = cx.name(0);
    let perm = match cx.text_or("mode", "DCR")?.as_str() {
        "CRD" => [0, 1, 3, 5, 2, 4],
        _ => [0, 3, 5, 1, 2, 4],
    };
    let apart = cx.lower.reshape("", &[n, c, h / b, b, w / b, b], &x)?;
    let moved = cx.lower.transpose("", &perm, &apart)?;
    let depth = c.checked_mul(b * b).ok_or("the result is too large")?;
    Ok(vec![cx.lower.reshape(name, &[n, depth, h / b, w / b], &moved)?])
}
