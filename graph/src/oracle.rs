//! The oracle of plans: a graph evaluated node by node, in real arithmetic.
//!
//! It knows nothing of the fuser. A normalisation or a composite is computed here by its own formula, slice by slice, and
//! never by the primitives in which the fuser writes it out: a fault there is a difference between a plan and the oracle.

use crate::data::Data;
use crate::error::GraphError;
use crate::eval::{Tensor, each, floats, node_values, position, stretched, too_large};
use crate::graph::{Graph, Node, Output, ValueId};
use crate::op::{CompositeRow, Op};
use crate::shape::shown;
use cranefold_ir::{DType, Scalar};
use std::collections::BTreeMap;

type Result<T> = std::result::Result<T, String>;

/// The places of the elements of each slice, by what is equal in it.
type Slices = BTreeMap<Vec<u64>, Vec<usize>>;

/// The element type and the shape of a result.
type Type<'g> = (DType, &'g [u64]);

impl Graph {
    /// The outputs of the graph in real arithmetic; none of its nodes may be opaque. Feature `oracle`.
    ///
    /// ```
    /// use cranefold_graph::{DType, Data, Graph};
    ///
    /// let graph: Graph = "graph { x: f32[2,3] = input; y = softmax(x) axes=[1]; return y }".parse()?;
    /// let outputs = graph.evaluate(&[Data::splat(DType::F32, &[2, 3], 7.0).unwrap()])?;
    /// assert_eq!(outputs[0].elements[0].as_f64(), 1.0 / 3.0);
    /// # Ok::<(), cranefold_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// If the inputs do not fit, a node is opaque, or a value is very large.
    pub fn evaluate(&self, inputs: &[Data]) -> std::result::Result<Vec<Tensor>, GraphError> {
        let own = self.inputs();
        if own.len() != inputs.len() {
            return Err(GraphError::Call(format!("{} inputs for a graph with {}", inputs.len(), own.len())));
        }
        let mut values: Vec<Option<Tensor>> = vec![None; self.values().len()];
        for (&id, data) in own.iter().zip(inputs) {
            let value = self.value(id);
            if (value.dtype, value.shape.as_slice()) != (data.dtype(), data.shape()) {
                let given = format!("{}{}", data.dtype(), shown(data.shape()));
                let reason = format!("{given} given for {}{}", value.dtype, shown(&value.shape));
                return Err(GraphError::node(&value.name, reason));
            }
            values[id.index()] = Some(Tensor::of(data));
        }
        for (number, node) in self.nodes().iter().enumerate().filter(|(_, node)| node.op != Op::Input) {
            let results = {
                let of =
                    |id: &ValueId| values[id.index()].as_ref().unwrap_or_else(|| unreachable!("nodes are in order"));
                let given: Vec<&Tensor> = node.inputs.iter().map(of).collect();
                self.node_results(node, &given).map_err(|reason| GraphError::node(self.name(number), reason))?
            };
            for (id, tensor) in node.outputs.iter().zip(results) {
                values[id.index()] = Some(tensor);
            }
        }
        let output = |output: &Output| values[output.value.index()].clone();
        self.outputs().iter().map(output).collect::<Option<_>>().ok_or_else(|| GraphError::Call("no value".into()))
    }

    fn node_results(&self, node: &Node, given: &[&Tensor]) -> Result<Vec<Tensor>> {
        let value = |&id: &ValueId| (self.value(id).dtype, self.value(id).shape.as_slice());
        let types: Vec<Type> = node.outputs.iter().map(value).collect();
        too_large(&types)?;
        let results = match &node.op {
            Op::Normalize { call, axes } => {
                let row = call.as_row().ok_or("a combiner is no normalisation")?;
                vec![scaled(normalized(row.name, &call.params(), axes, given[0])?, given)]
            }
            Op::Composite { row, axes, params } => composite(row, axes, params, given)?,
            op => return node_values(op, given, &types),
        };
        let tensor = |(elements, &(dtype, shape)): (Vec<f64>, &Type)| {
            let elements = elements.into_iter().map(Scalar::f64).collect();
            Tensor { dtype, shape: shape.to_vec(), elements }
        };
        Ok(results.into_iter().zip(&types).map(tensor).collect())
    }
}

/// The elements as floats.
fn reals(x: &Tensor) -> Vec<f64> {
    x.elements.iter().map(|value| value.as_f64()).collect()
}

/// The places of the elements of each slice; a slice has a key within `keys`, which are extents, and may be empty.
fn slices(shape: &[u64], keys: &[u64], key: impl Fn(&[u64]) -> Vec<u64>) -> Slices {
    let mut slices = Slices::new();
    each(keys, &mut |key| _ = slices.insert(key.to_vec(), vec![]));
    let mut place = 0;
    each(shape, &mut |index| {
        slices.entry(key(index)).or_default().push(place);
        place += 1;
    });
    slices
}

/// The slices over axes, in the order of a tensor that has extents of 1 there.
fn over(shape: &[u64], axes: &[usize]) -> Slices {
    let keys: Vec<u64> = (0..shape.len()).map(|axis| if axes.contains(&axis) { 1 } else { shape[axis] }).collect();
    slices(shape, &keys, |index| {
        (0..index.len()).map(|axis| if axes.contains(&axis) { 0 } else { index[axis] }).collect()
    })
}

/// The elements of each channel.
fn channels(shape: &[u64]) -> Slices {
    slices(shape, &shape[1..2], |index| vec![index[1]])
}

/// Each slice replaced by what `f` makes of it.
fn by_slices(x: &[f64], slices: &Slices, f: impl Fn(&[f64]) -> Result<Vec<f64>>) -> Result<Vec<f64>> {
    let mut result = vec![0.0; x.len()];
    for places in slices.values() {
        let slice: Vec<f64> = places.iter().map(|&place| x[place]).collect();
        places.iter().zip(f(&slice)?).for_each(|(&place, value)| result[place] = value);
    }
    Ok(result)
}

/// A reduction of a slice, by its name.
fn of_slice(row: &str, params: &[f64], slice: &[f64]) -> Result<f64> {
    floats(row, params, slice).map(|values| values[0])
}

/// The elements less their mean, times 1 / sqrt(var + eps).
fn layer_norm(x: &[f64], eps: f64) -> Result<Vec<f64>> {
    let (mean, var) = (of_slice("mean", &[], x)?, of_slice("var", &[0.0], x)?);
    Ok(x.iter().map(|x| (x - mean) / (var + eps).sqrt()).collect())
}

/// A row that writes a value at each position, without scale and bias.
fn normalized(row: &str, params: &[f64], axes: &[usize], x: &Tensor) -> Result<Vec<f64>> {
    let param = params.first().copied().unwrap_or_default();
    by_slices(&reals(x), &over(&x.shape, axes), |x| {
        let of = |row: &str| of_slice(row, &[], x);
        let over = |divisor: f64| Ok(x.iter().map(|x| x / divisor).collect());
        match row {
            "softmax" | "log_softmax" => {
                let greatest = of("max")?;
                let sum: f64 = x.iter().map(|x| (x - greatest).exp()).sum();
                let log = |x: &f64| x - greatest - sum.ln();
                Ok(x.iter().map(|x| if row == "softmax" { (x - greatest).exp() / sum } else { log(x) }).collect())
            }
            "layer_norm" => layer_norm(x, param),
            "rms_norm" => over((of("sum_squares")? / x.len() as f64 + param).sqrt()),
            "standardize" => {
                let (mean, std) = (of("mean")?, of_slice("std", &[param], x)?);
                Ok(x.iter().map(|x| (x - mean) / std).collect())
            }
            "l1_normalize_add" => over(of("l1")? + param),
            "l1_normalize_max" => over(of("l1")?.max(param)),
            "linf_normalize_add" => over(of("linf")? + param),
            "linf_normalize_max" => over(of("linf")?.max(param)),
            "l2_normalize_add" => over((of("sum_squares")? + param).sqrt()),
            "l2_normalize_max" => over(of("sum_squares")?.max(param).sqrt()),
            "l2_normalize_max_root" => over(of("l2")?.max(param)),
            _ => Err(format!("the oracle has no `{row}`")),
        }
    })
}

/// The elements times the second operand, plus the third, which broadcast to the first.
fn scaled(mut y: Vec<f64>, given: &[&Tensor]) -> Vec<f64> {
    let mut place = 0;
    each(&given[0].shape, &mut |index| {
        let of = |x: &&Tensor| x.elements[stretched(index, &x.shape)].as_f64();
        y[place] = y[place] * given.get(1).map_or(1.0, of) + given.get(2).map_or(0.0, of);
        place += 1;
    });
    y
}

/// The elements times the first value of their channel, plus the second.
fn of_channels(mut y: Vec<f64>, shape: &[u64], more: &[&Tensor]) -> Vec<f64> {
    let more: Vec<Vec<f64>> = more.iter().map(|x| reals(x)).collect();
    for (channel, places) in channels(shape) {
        let of = |values: &Vec<f64>| values[channel[0] as usize];
        let (scale, bias) = (more.first().map_or(1.0, of), more.get(1).map_or(0.0, of));
        places.into_iter().for_each(|place| y[place] = y[place] * scale + bias);
    }
    y
}

/// The results of a composite.
fn composite(
    row: &'static CompositeRow,
    axes: &[usize],
    params: &[Option<f64>],
    given: &[&Tensor],
) -> Result<Vec<Vec<f64>>> {
    let (x, shape) = (reals(given[0]), given[0].shape.as_slice());
    let param = |name: &str| row.param(params, name);
    let eps = param("eps").unwrap_or(0.0);
    let of_all = |slices: &Slices, row: &str| -> Result<Vec<f64>> {
        let slice = |places: &Vec<usize>| places.iter().map(|&place| x[place]).collect::<Vec<f64>>();
        slices.values().map(|places| of_slice(row, &[0.0], &slice(places))).collect()
    };
    Ok(match row.name {
        "layer_norm_stats" => {
            let slices = over(shape, axes);
            let y = scaled(by_slices(&x, &slices, |x| layer_norm(x, eps))?, given);
            let deviations = of_all(&slices, "var")?.into_iter().map(|var| 1.0 / (var + eps).sqrt()).collect();
            vec![y, of_all(&slices, "mean")?, deviations]
        }
        "group_norm" => {
            let each_group = shape[1] / param("groups").map_or(1, |groups| groups as u64).max(1);
            let keys = [shape[0], shape[1] / each_group.max(1)];
            let groups = slices(shape, &keys, |index| vec![index[0], index[1] / each_group]);
            vec![of_channels(by_slices(&x, &groups, |x| layer_norm(x, eps))?, shape, &given[1..])]
        }
        "instance_norm" => {
            let channels = slices(shape, &shape[..2], |index| vec![index[0], index[1]]);
            vec![of_channels(by_slices(&x, &channels, |x| layer_norm(x, eps))?, shape, &given[1..])]
        }
        "batch_norm" => {
            let (means, vars) = (reals(given[3]), reals(given[4]));
            let mut y = x.clone();
            for (channel, places) in channels(shape) {
                let (mean, var) = (means[channel[0] as usize], vars[channel[0] as usize]);
                places.into_iter().for_each(|place| y[place] = (x[place] - mean) / (var + eps).sqrt());
            }
            vec![of_channels(y, shape, &given[1..3])]
        }
        "batch_norm_training" => {
            let channels = channels(shape);
            let y = of_channels(by_slices(&x, &channels, |x| layer_norm(x, eps))?, shape, &given[1..3]);
            let momentum = param("momentum").unwrap_or(0.9);
            let running = |old: &Tensor, own: Vec<f64>| {
                reals(old).iter().zip(own).map(|(old, own)| momentum * old + (1.0 - momentum) * own).collect()
            };
            vec![y, running(given[3], of_all(&channels, "mean")?), running(given[4], of_all(&channels, "var")?)]
        }
        "mvn" => {
            let (with_variance, outside) = (param("variance") != Some(0.0), param("outside") != Some(0.0));
            vec![by_slices(&x, &over(shape, axes), |x| {
                let (mean, var) = (of_slice("mean", &[], x)?, of_slice("var", &[0.0], x)?);
                let divisor = match (with_variance, outside) {
                    (false, _) => 1.0,
                    (true, false) => (var + eps).sqrt(),
                    (true, true) => var.sqrt() + eps,
                };
                Ok(x.iter().map(|x| (x - mean) / divisor).collect())
            })?]
        }
        "hardmax" => vec![by_slices(&x, &over(shape, axes), |x| {
            let values: Vec<Scalar> = x.iter().map(|&x| Scalar::f64(x)).collect();
            let first = position("argmax", &[0.0], &values)?;
            Ok((0..x.len()).map(|i| if i == first { 1.0 } else { 0.0 }).collect())
        })?],
        _ => losses(row, params, given)?,
    })
}

/// The losses of classes: the logarithms of probabilities at the labels, weighed.
fn losses(row: &'static CompositeRow, params: &[Option<f64>], given: &[&Tensor]) -> Result<Vec<Vec<f64>>> {
    let (x, labels) = (given[0], given[1]);
    let logs = if row.name.starts_with("cross_entropy") { normalized("log_softmax", &[], &[1], x)? } else { reals(x) };
    let weights = given.get(2).map(|weights| reals(weights));
    let ignore = row.param(params, "ignore").map(|label| label as i128);
    let (mut loss, mut sum_of_weights) = (vec![], 0.0);
    // Each slice along the classes has one label, in the order of the labels.
    for (places, label) in over(&x.shape, &[1]).values().zip(&labels.elements) {
        let label = label.as_int().unwrap_or_default();
        if ignore == Some(label) {
            loss.push(0.0);
            continue;
        }
        let class = if label < 0 { label + places.len() as i128 } else { label };
        let class = usize::try_from(class).ok().filter(|&class| class < places.len());
        let weight = weights.as_ref().map_or(1.0, |weights| class.map_or(0.0, |class| weights[class]));
        loss.push(-class.map_or(0.0, |class| logs[places[class]]) * weight);
        sum_of_weights += weight;
    }
    let sum = loss.iter().sum::<f64>();
    let loss = match row.name {
        name if name.ends_with("_sum") => vec![sum],
        name if name.ends_with("_mean") => vec![sum / sum_of_weights],
        _ => loss,
    };
    Ok(vec![loss, logs])
}
