//! Normalisations: layer, RMS, instance, group and batch norm, and mean-variance normalisation.

use super::node::{Cx, Results};
use crate::front::{Operand, Stop};
use crate::{DType, resolve_axes};

/// Refuses a type of the statistics other than `f32`, or `f64` for tensors of `f64`.
fn stash(cx: &Cx, x: &Operand) -> Result<(), Stop> {
    match (cx.int_or("stash_type", 1)?, x.dtype()?) {
        (1, _) | (11, DType::F64) => Ok(()),
        (10 | 16, _) => Ok(()),
        (other, _) => {
            let name = super::tensor::type_name(other);
            Err(Stop::Opaque(format!("stash_type={name}: statistics have the type float")))
        }
    }
}

/// The operands from the second on that are there.
fn with_scale_and_bias(cx: &Cx, x: Operand) -> Vec<Operand> {
    std::iter::once(x).chain((1..3).filter_map(|place| cx.optional(place))).collect()
}

fn as_i64(axes: &[usize]) -> Vec<i64> {
    axes.iter().map(|&axis| axis as i64).collect()
}

pub(super) fn layer(cx: &mut Cx) -> Results {
    let (x, axes) = (cx.input(0)?, as_i64(&cx.axes_from(-1)?));
    stash(cx, &x)?;
    let eps = [("eps", cx.decimal_or("epsilon", 1e-5)?)];
    let inputs = with_scale_and_bias(cx, x);
    let inputs: Vec<&Operand> = inputs.iter().collect();
    let names = [cx.name(0), cx.name(1), cx.name(2)];
    match cx.has_output(1) || cx.has_output(2) {
        true => cx.lower.composite(&names, "layer_norm_stats", &eps, &axes, &inputs),
        false => Ok(vec![cx.lower.normalize(names[0], "layer_norm", &eps, &axes, &inputs)?]),
    }
}

pub(super) fn rms(cx: &mut Cx) -> Results {
    let (x, axes) = (cx.input(0)?, as_i64(&cx.axes_from(-1)?));
    stash(cx, &x)?;
    let eps = [("eps", cx.decimal_or("epsilon", 1e-5)?)];
    let (scale, name) = (cx.input(1)?, cx.name(0));
    Ok(vec![cx.lower.normalize(name, "rms_norm", &eps, &axes, &[&x, &scale])?])
}

pub(super) fn instance(cx: &mut Cx) -> Results {
    let (x, scale, bias, name) = (cx.input(0)?, cx.input(1)?, cx.input(2)?, cx.name(0));
    let eps = [("eps", cx.decimal_or("epsilon", 1e-5)?)];
    cx.lower.composite(&[name], "instance_norm", &eps, &[], &[&x, &scale, &bias])
}

pub(super) fn group(cx: &mut Cx) -> Results {
    let (x, mut scale, mut bias, name) = (cx.input(0)?, cx.input(1)?, cx.input(2)?, cx.name(0));
    stash(cx, &x)?;
    let groups = cx.int("num_groups")?.ok_or("attribute `num_groups` is missing")?;
    let channels = x.shape()?.get(1).copied().ok_or("a group norm needs an axis of channels")?;
    if groups < 1 || !channels.is_multiple_of(groups as u64) {
        return Err(Stop::Wrong(format!("{groups} groups do not divide {channels} channels")));
    }
    if cx.version < 21 {
        // Here scale and bias have a value for each group.
        let of_channels = [groups as u64, channels / groups as u64];
        for operand in [&mut scale, &mut bias] {
            let column = cx.lower.reshape("", &[groups as u64, 1], operand)?;
            let spread = cx.lower.broadcast("", &of_channels, &column)?;
            *operand = cx.lower.reshape("", &[channels], &spread)?;
        }
    }
    let params = [("groups", groups as f64), ("eps", cx.decimal_or("epsilon", 1e-5)?)];
    cx.lower.composite(&[name], "group_norm", &params, &[], &[&x, &scale, &bias])
}

pub(super) fn mean_variance(cx: &mut Cx) -> Results {
    let (x, name) = (cx.input(0)?, cx.name(0));
    let axes = cx.ints("axes")?.unwrap_or(vec![0, 2, 3]);
    resolve_axes(&axes, x.rank()?)?;
    // The number is that of the op's function in ONNX.
    cx.lower.composite(&[name], "mvn", &[("eps", 1e-9), ("outside", 1.0)], &axes, &[&x])
}

pub(super) fn batch(cx: &mut Cx) -> Results {
    let inputs = cx.all()?;
    if inputs.len() != 5 {
        return Err(Stop::Wrong(format!("{} inputs; a batch norm has 5", inputs.len())));
    }
    let inputs: Vec<&Operand> = inputs.iter().collect();
    let outputs = (0..cx.node.outputs.len()).filter(|&output| cx.has_output(output)).count();
    let is_training = match cx.version {
        14.. => cx.flag("training_mode", false)?,
        7.. => outputs > 1,
        _ => !cx.flag("is_test", false)? && outputs > 1,
    };
    if !cx.flag("spatial", true)? {
        return Err(Stop::Opaque("spatial=0: statistics of each element of an image".into()));
    }
    let eps = ("eps", cx.decimal_or("epsilon", 1e-5)?);
    let names = [cx.name(0), cx.name(1), cx.name(2)];
    match is_training {
        false => cx.lower.composite(&names[..1], "batch_norm", &[eps], &[], &inputs),
        true if cx.version < 14 => Err(Stop::Opaque("training before version 14 leaves the variance open".into())),
        true => {
            let params = [eps, ("momentum", cx.decimal_or("momentum", 0.9)?)];
            cx.lower.composite(&names, "batch_norm_training", &params, &[], &inputs)
        }
    }
}
