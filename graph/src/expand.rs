//! Composites written out in primitives: formulas, views, reductions and picks.
//!
//! A normalisation of the op table is the text of its row; the composites of [`COMPOSITES`](crate::COMPOSITES) follow their
//! definitions in ONNX. Values between the primitives have the type of an accumulator, `f32` or `f64`.

use crate::build::Builder;
use crate::error::GraphError;
use crate::graph::{Graph, Node, ValueId};
use crate::infer::working_float;
use crate::op::{CompositeRow, Op};
use cranefold_ir::DType::{self, Bool, I64};
use cranefold_ir::expression::{Expression, name};
use cranefold_ir::ops::{OpCall, Row, find};
use cranefold_ir::region::{Body, BodyInput, Definition, Reach, Value};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::rc::Rc;

type Result<T> = std::result::Result<T, GraphError>;

/// The graph without composites, and its value for each value of the given graph.
pub(crate) fn expanded(graph: &Graph) -> Result<(Cow<'_, Graph>, Vec<ValueId>)> {
    if !graph.nodes().iter().any(|node| matches!(node.op, Op::Normalize { .. } | Op::Composite { .. })) {
        return Ok((Cow::Borrowed(graph), (0..graph.values().len() as u32).map(ValueId).collect()));
    }
    let mut e = Expander { b: Builder::new(), bodies: FxHashMap::default(), formulas: FxHashMap::default() };
    let mut to: Vec<ValueId> = vec![];
    for node in graph.nodes() {
        let inputs: Vec<ValueId> = node.inputs.iter().map(|id| to[id.index()]).collect();
        let own = || node.outputs.iter().map(|&id| graph.value(id));
        let outputs = match &node.op {
            Op::Normalize { call, axes } => {
                let dtype = graph.value(node.outputs[0]).dtype;
                vec![e.row(call, axes, &inputs, dtype)?]
            }
            Op::Composite { row, axes, params } => e.composite(row, axes, params, &inputs, node)?,
            op => {
                let types = own().map(|value| (value.dtype, value.shape.clone())).collect();
                e.b.unchecked(op.clone(), &inputs, types)
            }
        };
        to.extend(outputs);
    }
    for output in graph.outputs() {
        e.b.output(&output.name, to[output.value.index()])?;
    }
    Ok((Cow::Owned(e.b.finish()?), to))
}

/// Builds the primitives of a composite.
struct Expander {
    b: Builder,
    /// The texts of rows that were read, with the types of their floats.
    bodies: FxHashMap<(String, DType), Rc<Lowered>>,
    /// The formulas that were read.
    formulas: FxHashMap<String, Expression>,
}

/// The body of a region over one input, as nodes in order: one list for all nodes of the row.
struct Lowered {
    steps: Vec<LoweredStep>,
    /// The place of the result among the values: the input, then the results of the steps.
    result: usize,
}

struct LoweredStep {
    op: LoweredOp,
    /// The places of its operands among the values.
    inputs: Vec<usize>,
    results: usize,
}

enum LoweredOp {
    Map(Expression),
    Reduce(OpCall),
}

impl Lowered {
    fn of(text: &str, float: DType) -> Result<Lowered> {
        let input = BodyInput { name: "x".into(), dtype: float, reach: Reach::Element };
        let body = Body::parse(text, vec![input], &[true], float);
        let body = body.map_err(|error| GraphError::Call(error.to_string()))?;
        let mut lowered = Lowered { steps: vec![], result: 0 };
        let mut places: FxHashMap<String, usize> = FxHashMap::from_iter([("x".to_string(), 0)]);
        let mut count = 1;
        for Definition { names, value } in &body.definitions {
            match value {
                Value::Expression(expression) => {
                    let place = lowered.formula(expression, &places, &mut count)?;
                    places.insert(names[0].clone(), place);
                }
                Value::Reduction(reduction) => {
                    let of = lowered.formula(&reduction.of, &places, &mut count)?;
                    let op = LoweredOp::Reduce(reduction.call.clone());
                    lowered.steps.push(LoweredStep { op, inputs: vec![of], results: names.len() });
                    places.extend(names.iter().cloned().zip(count..));
                    count += names.len();
                }
                Value::Position(_) | Value::Old(_) => {
                    return Err(GraphError::Call("a row reads neither positions nor old elements".into()));
                }
            }
        }
        lowered.result = lowered.formula(&body.outputs[0], &places, &mut count)?;
        Ok(lowered)
    }

    /// The place of a formula over names; a name alone is its value.
    fn formula(
        &mut self,
        expression: &Expression,
        places: &FxHashMap<String, usize>,
        count: &mut usize,
    ) -> Result<usize> {
        let used: Vec<String> = expression.names().into_iter().map(|(name, _)| name).collect();
        let unknown = || GraphError::Call("a text names a value that it does not define".into());
        let inputs: Vec<usize> =
            used.iter().map(|name| places.get(name).copied().ok_or_else(unknown)).collect::<Result<_>>()?;
        if let ([only], true) = (inputs.as_slice(), used.first().is_some_and(|used| *expression == name(used))) {
            return Ok(*only);
        }
        let place = |name: &str| used.iter().position(|used| used == name).map(|i| format!("x{i}"));
        let op = LoweredOp::Map(expression.renamed(place));
        self.steps.push(LoweredStep { op, inputs, results: 1 });
        *count += 1;
        Ok(*count - 1)
    }
}

impl Expander {
    fn map(&mut self, formula: &str, inputs: &[ValueId], dtype: DType) -> Result<ValueId> {
        let formula = match self.formulas.get(formula) {
            Some(known) => known.clone(),
            None => {
                let parsed: Expression = formula.parse().map_err(|e| GraphError::Call(format!("{e}")))?;
                self.formulas.insert(formula.to_string(), parsed.clone());
                parsed
            }
        };
        self.b.add_typed("", Op::Map(formula), inputs, dtype)
    }

    fn reduce(&mut self, op: &str, params: &[f64], axes: &[usize], x: ValueId, dtype: DType) -> Result<ValueId> {
        let row = find(op).ok_or_else(|| GraphError::Call(format!("there is no op `{op}`")))?;
        let op = Op::Reduce { call: OpCall::row(row, params), axes: axes.to_vec(), keep_dims: true };
        self.b.add_typed("", op, &[x], dtype)
    }

    /// A row of the op table that writes a value at each position: the text of the row.
    fn row(&mut self, call: &OpCall, axes: &[usize], inputs: &[ValueId], dtype: DType) -> Result<ValueId> {
        let row = call.as_row().ok_or_else(|| GraphError::Call("a combiner is no normalisation".into()))?;
        let x = inputs[0];
        let float = working_float(&inputs.iter().map(|&x| self.b.dtype(x)).collect::<Vec<_>>());
        let mut result = self.text(&row_text(row, call), axes, x, float)?;
        for (&more, formula) in inputs[1..].iter().zip(["x0 * x1", "x0 + x1"]) {
            result = self.map(formula, &[result, more], float)?;
        }
        self.map_to(result, dtype)
    }

    /// The value in another float type, without a rounding before it is written.
    fn map_to(&mut self, x: ValueId, dtype: DType) -> Result<ValueId> {
        if self.b.dtype(x) == dtype { Ok(x) } else { self.map("x0", &[x], dtype) }
    }

    /// The last value of a region's body over `x`, of this float type.
    fn text(&mut self, text: &str, axes: &[usize], x: ValueId, float: DType) -> Result<ValueId> {
        let lowered = match self.bodies.get(&(text.to_string(), float)) {
            Some(lowered) => lowered.clone(),
            None => {
                let lowered = Rc::new(Lowered::of(text, float)?);
                self.bodies.insert((text.to_string(), float), lowered.clone());
                lowered
            }
        };
        let whole = self.b.shape(x).to_vec();
        let mut slices = whole.clone();
        axes.iter().for_each(|&axis| slices[axis] = 1);
        // Each value with true for one of the slice.
        let mut values = vec![(x, false)];
        for LoweredStep { op, inputs, results } in &lowered.steps {
            let given: Vec<ValueId> = inputs.iter().map(|&place| values[place].0).collect();
            let (op, is_slice) = match op {
                LoweredOp::Reduce(call) => {
                    (Op::Reduce { call: call.clone(), axes: axes.to_vec(), keep_dims: true }, true)
                }
                LoweredOp::Map(formula) => (Op::Map(formula.clone()), inputs.iter().all(|&place| values[place].1)),
            };
            let shape = if is_slice { &slices } else { &whole };
            let made = self.b.unchecked(op, &given, vec![(float, shape.clone()); *results]);
            values.extend(made.into_iter().map(|value| (value, is_slice)));
        }
        Ok(values[lowered.result].0)
    }

    fn composite(
        &mut self,
        row: &'static CompositeRow,
        axes: &[usize],
        params: &[Option<f64>],
        inputs: &[ValueId],
        node: &Node,
    ) -> Result<Vec<ValueId>> {
        let x = inputs[0];
        let (dtype, shape) = (self.b.dtype(x), self.b.shape(x).to_vec());
        let float = working_float(&inputs.iter().map(|&x| self.b.dtype(x)).collect::<Vec<_>>());
        let eps = row.param(params, "eps").unwrap_or(0.0);
        let spatial: Vec<usize> = (2..shape.len()).collect();
        match row.name {
            "layer_norm_stats" => {
                let call = OpCall::row(known("layer_norm")?, &[eps]);
                let y = self.row(&call, axes, inputs, dtype)?;
                let mean = self.reduce("mean", &[], axes, x, working_float(&[dtype]))?;
                let var = self.reduce("var", &[0.0], axes, x, working_float(&[dtype]))?;
                let deviation = self.map(&format!("1 / sqrt(x0 + {eps:?})"), &[var], working_float(&[dtype]))?;
                Ok(vec![y, mean, deviation])
            }
            "group_norm" => {
                let groups = row.param(params, "groups").unwrap_or(1.0) as u64;
                let rest = shape[2..].iter().product::<u64>() * (shape[1] / groups.max(1));
                let grouped = self.b.reshape("", &[shape[0], groups, rest], x)?;
                let call = OpCall::row(known("layer_norm")?, &[eps]);
                let y = self.row(&call, &[2], &[grouped], float)?;
                let y = self.b.reshape("", &shape, y)?;
                Ok(vec![self.of_channels(y, &inputs[1..], dtype)?])
            }
            "instance_norm" => {
                let call = OpCall::row(known("layer_norm")?, &[eps]);
                let y = self.row(&call, &spatial, &[x], float)?;
                Ok(vec![self.of_channels(y, &inputs[1..], dtype)?])
            }
            "batch_norm" => {
                let of = self.channels(inputs, shape.len())?;
                let formula = format!("(x0 - x3) * (1 / sqrt(x4 + {eps:?})) * x1 + x2");
                Ok(vec![self.map(&formula, &of, dtype)?])
            }
            "batch_norm_training" => {
                let momentum = row.param(params, "momentum").unwrap_or(0.9);
                let over: Vec<usize> = (0..shape.len()).filter(|&axis| axis != 1).collect();
                let call = OpCall::row(known("layer_norm")?, &[eps]);
                let y = self.row(&call, &over, &[x], float)?;
                let y = self.of_channels(y, &inputs[1..3], dtype)?;
                let mut result = vec![y];
                for (op, params, old) in [("mean", &[][..], inputs[3]), ("var", &[0.0][..], inputs[4])] {
                    let own = self.reduce(op, params, &over, x, float)?;
                    let own = self.b.reshape("", &[shape[1]], own)?;
                    let dtype = self.b.dtype(old);
                    let formula = format!("x0 * {momentum:?} + x1 * {:?}", 1.0 - momentum);
                    result.push(self.map(&formula, &[old, own], dtype)?);
                }
                Ok(result)
            }
            "mvn" => {
                let is = |name| row.param(params, name) != Some(0.0);
                let text = match (is("variance"), is("outside")) {
                    (false, _) => "centered(x)".to_string(),
                    (true, false) => format!("c = centered(x); r = 1 / sqrt(var(x) + {eps:?}); c * r"),
                    (true, true) => format!("centered(x) / (std(x) + {eps:?})"),
                };
                let y = self.text(&text, axes, x, float)?;
                Ok(vec![self.map_to(y, dtype)?])
            }
            "hardmax" => {
                let greatest = self.reduce("argmax", &[0.0], axes, x, I64)?;
                let position = self.b.add("", Op::Position { shape, axis: axes[0] }, &[])?;
                let is = self.map("x0 == x1", &[position, greatest], Bool)?;
                Ok(vec![self.map(&format!("{dtype}(x0)"), &[is], dtype)?])
            }
            _ => self.loss(row, params, inputs, node),
        }
    }

    /// Values of channels, with ones after them.
    fn channels(&mut self, inputs: &[ValueId], rank: usize) -> Result<Vec<ValueId>> {
        let mut result = vec![inputs[0]];
        for &value in &inputs[1..] {
            let mut shape = vec![1; rank - 1];
            shape[0] = self.b.shape(value)[0];
            result.push(self.b.reshape("", &shape, value)?);
        }
        Ok(result)
    }

    /// y times scale, plus bias, as far as there are any.
    fn of_channels(&mut self, y: ValueId, more: &[ValueId], dtype: DType) -> Result<ValueId> {
        let rank = self.b.shape(y).len();
        let inputs: Vec<ValueId> = [y].into_iter().chain(more.iter().copied()).collect();
        let of = self.channels(&inputs, rank)?;
        let formula = ["x0", "x0 * x1", "x0 * x1 + x2"][more.len().min(2)];
        self.map(formula, &of, dtype)
    }

    /// The losses of classes: log-softmax, the pick, weights, and the mean.
    fn loss(
        &mut self,
        row: &'static CompositeRow,
        params: &[Option<f64>],
        inputs: &[ValueId],
        node: &Node,
    ) -> Result<Vec<ValueId>> {
        let (dtype, shape) = (self.b.dtype(inputs[0]), self.b.shape(inputs[0]).to_vec());
        let float = working_float(&[dtype]);
        let mut x = inputs[0];
        if row.name.starts_with("cross_entropy") {
            x = self.row(&OpCall::row(known("log_softmax")?, &[]), &[1], &[x], float)?;
        }
        let mut one = shape.clone();
        one[1] = 1;
        let label = self.b.add("", Op::Cast { to: I64, saturate: true }, &inputs[1..2])?;
        let label = self.b.reshape("", &one, label)?;
        let picked = self.b.add("", Op::Pick(1), &[x, label])?;
        let weight = match inputs.get(2) {
            Some(&weight) => {
                let mut classes = vec![1; shape.len()];
                classes[1] = shape[1];
                let weight = self.b.reshape("", &classes, weight)?;
                let weight = self.b.broadcast("", &shape, weight)?;
                Some(self.b.add("", Op::Pick(1), &[weight, label])?)
            }
            None => None,
        };
        let ignore = row.param(params, "ignore").map(|value| value as i64);
        let used = match (ignore, weight) {
            (None, weight) => weight,
            (Some(label_value), None) => {
                Some(self.map(&format!("select(x0 == {label_value}, 0.0, 1.0)"), &[label], float)?)
            }
            (Some(label_value), Some(weight)) => {
                Some(self.map(&format!("select(x0 == {label_value}, 0, x1)"), &[label, weight], float)?)
            }
        };
        let rest: Vec<u64> = shape.iter().enumerate().filter(|(axis, _)| *axis != 1).map(|(_, &e)| e).collect();
        let all: Vec<usize> = (0..rest.len()).collect();
        let loss = match (used, ignore) {
            (Some(used), Some(label_value)) => {
                // The loss of an ignored label is 0, whatever stands in x.
                self.map(&format!("select(x2 == {label_value}, 0, -x0 * x1)"), &[picked, used, label], float)?
            }
            (Some(used), None) => self.map("-x0 * x1", &[picked, used], float)?,
            (None, _) => self.map("-x0", &[picked], float)?,
        };
        let loss = self.b.reshape("", &rest, loss)?;
        let total = |e: &mut Self, op: &str, value: ValueId| {
            let value = e.reduce(op, &[], &all, value, float)?;
            e.b.reshape("", &[], value)
        };
        let loss = if row.name.ends_with("_sum") {
            total(self, "sum", loss)?
        } else if row.name.ends_with("_mean") {
            match used {
                Some(used) => {
                    let used = self.b.reshape("", &rest, used)?;
                    let (loss, used) = (total(self, "sum", loss)?, total(self, "sum", used)?);
                    self.map("x0 / x1", &[loss, used], float)?
                }
                None => total(self, "mean", loss)?,
            }
        } else {
            loss
        };
        let mut results = vec![self.map_to(loss, dtype)?];
        if node.outputs.len() > 1 {
            results.push(self.map_to(x, dtype)?);
        }
        Ok(results)
    }
}

fn known(op: &str) -> Result<&'static Row> {
    find(op).ok_or_else(|| GraphError::Call(format!("there is no op `{op}`")))
}

/// The text of a row with its parameters in place of the braces.
fn row_text(row: &Row, call: &OpCall) -> String {
    row.params.iter().zip(call.params()).fold(row.text.to_string(), |text, (param, value)| {
        text.replace(&format!("{{{}}}", param.name), &format!("{value:?}"))
    })
}
