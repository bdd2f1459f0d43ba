//! The builder of graphs.

use crate::data::{Data, scalar};
use crate::error::GraphError;
use crate::fold::Known;
use crate::graph::{Graph, MAX_NODES, Node, Output, Value, ValueId};
use crate::infer::{Type, infer};
use crate::op::{CompositeRow, Op, Range};
use crate::shape::{elements, resolve_axes, resolve_axis};
use cranefold_ir::DType;
use cranefold_ir::expression::Expression;
use cranefold_ir::ops::{OpCall, find};
use rustc_hash::FxHashMap;

/// Makes a [`Graph`] node by node; each call names the node, infers types and shapes, and refuses what does not fit.
///
/// A node without a name (`""`) gets one.
///
/// ```
/// use cranefold_graph::{Builder, DType};
///
/// let mut b = Builder::new();
/// let x = b.input("x", DType::F32, &[8, 768])?;
/// let m = b.reduce("m", "mean", &[], &[-1], true, x)?;
/// let y = b.map("y", "x0 - x1", &[x, m])?;
/// b.output("y", y)?;
/// assert_eq!(b.shape(y), [8, 768]);
/// assert_eq!(b.map("z", "x0 + x2", &[x, y]).unwrap_err().to_string().lines().next(),
///     Some("node `z`: unknown name `x2`; the names here are x0, x1; for `x2` give 3 inputs"));
/// let graph = b.finish()?;
/// assert_eq!(graph.nodes().len(), 3);
/// # Ok::<(), cranefold_graph::GraphError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Builder {
    pub(crate) graph: Graph,
    names: FxHashMap<String, ValueId>,
    /// The values whose names the builder chose, and may change.
    free: FxHashMap<ValueId, ()>,
    /// The number that the next chosen name tries first.
    next: usize,
    /// The values that follow from constants, as far as they were asked for.
    pub(crate) known: Known,
}

impl Builder {
    /// A builder of an empty graph.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// A tensor that the caller gives.
    ///
    /// # Errors
    /// If the name is taken or the shape too large.
    pub fn input(&mut self, name: &str, dtype: DType, shape: &[u64]) -> Result<ValueId, GraphError> {
        self.push(&[name], Op::Input, &[], vec![(dtype, shape.to_vec())]).map(|values| values[0])
    }

    /// A known tensor.
    ///
    /// # Errors
    /// If the name is taken.
    pub fn constant(&mut self, name: &str, data: Data) -> Result<ValueId, GraphError> {
        self.add(name, Op::Constant(data), &[])
    }

    /// A known tensor of rank 0: the value of the type nearest to a number.
    ///
    /// # Errors
    /// If the name is taken.
    pub fn number(&mut self, name: &str, dtype: DType, value: f64) -> Result<ValueId, GraphError> {
        let data = Data::of(dtype, &[], &[scalar(dtype, value)]).map_err(|reason| GraphError::node(name, reason))?;
        self.constant(name, data)
    }

    /// A formula of elements, `x0` the first input's.
    ///
    /// # Errors
    /// If the formula does not parse, or does not fit the inputs.
    pub fn map(&mut self, name: &str, formula: &str, inputs: &[ValueId]) -> Result<ValueId, GraphError> {
        let formula: Expression = formula.parse().map_err(|error| GraphError::node(name, format!("{error}")))?;
        self.add(name, Op::Map(formula), inputs)
    }

    /// A conversion.
    ///
    /// # Errors
    /// If the name is taken.
    pub fn cast(&mut self, name: &str, to: DType, x: ValueId) -> Result<ValueId, GraphError> {
        self.add(name, Op::Cast { to, saturate: false }, &[x])
    }

    /// The same elements in another shape.
    ///
    /// # Errors
    /// If it has another number of elements.
    pub fn reshape(&mut self, name: &str, shape: &[u64], x: ValueId) -> Result<ValueId, GraphError> {
        self.add(name, Op::Reshape(shape.to_vec()), &[x])
    }

    /// Other order of the axes: axis i of the result is axis `perm[i]` of x.
    ///
    /// # Errors
    /// If `perm` is no order of the axes.
    pub fn transpose(&mut self, name: &str, perm: &[usize], x: ValueId) -> Result<ValueId, GraphError> {
        self.add(name, Op::Transpose(perm.to_vec()), &[x])
    }

    /// The tensor stretched to a shape, right-aligned.
    ///
    /// # Errors
    /// If it does not broadcast to the shape.
    pub fn broadcast(&mut self, name: &str, shape: &[u64], x: ValueId) -> Result<ValueId, GraphError> {
        self.add(name, Op::Broadcast(shape.to_vec()), &[x])
    }

    /// Part of a tensor.
    ///
    /// # Errors
    /// If a range leaves its axis.
    pub fn slice(&mut self, name: &str, ranges: &[Range], x: ValueId) -> Result<ValueId, GraphError> {
        self.add(name, Op::Slice(ranges.to_vec()), &[x])
    }

    /// Tensors one after the other along an axis.
    ///
    /// # Errors
    /// If their other extents or types differ.
    pub fn concat(&mut self, name: &str, axis: i64, inputs: &[ValueId]) -> Result<ValueId, GraphError> {
        let rank = inputs.first().map_or(0, |&x| self.shape(x).len());
        let axis = resolve_axis(axis, rank).map_err(|reason| GraphError::node(name, reason))?;
        self.add(name, Op::Concat(axis), inputs)
    }

    /// A reduction by its name in the op table, or an alias. It has one result, of the type of x or a position.
    ///
    /// # Errors
    /// If there is no such reduction, or it does not fit the tensor.
    pub fn reduce(
        &mut self,
        name: &str,
        op: &str,
        params: &[(&str, f64)],
        axes: &[i64],
        keep_dims: bool,
        x: ValueId,
    ) -> Result<ValueId, GraphError> {
        let (call, axes) = self.call(name, op, params, axes, x)?;
        self.add(name, Op::Reduce { call, axes, keep_dims }, &[x])
    }

    /// A normalisation of the op table, such as `softmax` or `layer_norm`, with scale and bias after x.
    ///
    /// # Errors
    /// If there is no such row, or it does not fit the tensors.
    pub fn normalize(
        &mut self,
        name: &str,
        op: &str,
        params: &[(&str, f64)],
        axes: &[i64],
        inputs: &[ValueId],
    ) -> Result<ValueId, GraphError> {
        let x = *inputs.first().ok_or_else(|| GraphError::node(name, format!("`{op}` has no input")))?;
        let (call, axes) = self.call(name, op, params, axes, x)?;
        self.add(name, Op::Normalize { call, axes }, inputs)
    }

    fn call(
        &self,
        name: &str,
        op: &str,
        params: &[(&str, f64)],
        axes: &[i64],
        x: ValueId,
    ) -> Result<(OpCall, Vec<usize>), GraphError> {
        let error = |reason: String| GraphError::node(name, reason);
        let row = find(op).ok_or_else(|| error(format!("there is no op `{}`", crate::error::cut(op))))?;
        let params: Vec<(String, f64)> = params.iter().map(|(name, value)| (name.to_string(), *value)).collect();
        let call = OpCall::of(row, &params).map_err(|fault| error(fault.to_string()))?;
        Ok((call, resolve_axes(axes, self.shape(x).len()).map_err(error)?))
    }

    /// A composite by its name in [`COMPOSITES`](crate::COMPOSITES); `names` are those of its results.
    ///
    /// # Errors
    /// If there is no such composite, or it does not fit the tensors.
    pub fn composite(
        &mut self,
        names: &[&str],
        op: &str,
        params: &[(&str, f64)],
        axes: &[i64],
        inputs: &[ValueId],
    ) -> Result<Vec<ValueId>, GraphError> {
        let error = |reason: String| GraphError::node(names.first().unwrap_or(&""), reason);
        let row = CompositeRow::find(op).ok_or_else(|| error(format!("there is no op `{}`", crate::error::cut(op))))?;
        let params = row.values(params).map_err(error)?;
        let rank = inputs.first().map_or(0, |&x| self.shape(x).len());
        let axes = resolve_axes(axes, rank).map_err(error)?;
        self.add_all(names, Op::Composite { row, axes, params }, inputs, None)
    }

    /// A host's operation, whose results have these names, types and shapes.
    ///
    /// # Errors
    /// If there is no result, a name is taken, or a shape is too large.
    pub fn opaque(
        &mut self,
        op: &str,
        attributes: Vec<(String, crate::Attribute)>,
        inputs: &[ValueId],
        outputs: &[(&str, DType, &[u64])],
    ) -> Result<Vec<ValueId>, GraphError> {
        let names: Vec<&str> = outputs.iter().map(|(name, ..)| *name).collect();
        let types = outputs.iter().map(|(_, dtype, shape)| (*dtype, shape.to_vec())).collect();
        self.push(&names, Op::Opaque { op: op.into(), attributes }, inputs, types)
    }

    /// An operation with one result.
    ///
    /// # Errors
    /// If the inputs do not fit the operation, or it has several results.
    pub fn add(&mut self, name: &str, op: Op, inputs: &[ValueId]) -> Result<ValueId, GraphError> {
        self.add_all(&[name], op, inputs, None).map(|values| values[0])
    }

    /// An operation with one result of this element type, where the operation leaves a choice: a formula, a reduction.
    ///
    /// # Errors
    /// As [`add`](Builder::add).
    pub fn add_typed(&mut self, name: &str, op: Op, inputs: &[ValueId], dtype: DType) -> Result<ValueId, GraphError> {
        self.add_all(&[name], op, inputs, Some(dtype)).map(|values| values[0])
    }

    /// An operation; `names` are those of its results, `dtype` the type of the results where the operation leaves a choice.
    ///
    /// # Errors
    /// If the inputs do not fit the operation, or the number of names is not that of its results.
    pub fn add_all(
        &mut self,
        names: &[&str],
        op: Op,
        inputs: &[ValueId],
        dtype: Option<DType>,
    ) -> Result<Vec<ValueId>, GraphError> {
        let error = |reason: String| GraphError::node(names.first().unwrap_or(&""), reason);
        self.known_values(inputs).map_err(error)?;
        let types: Vec<_> = inputs.iter().map(|&x| (self.dtype(x), self.shape(x))).collect();
        let mut types = infer(&op, &types, dtype).map_err(error)?;
        // The last results of a composite may be left out.
        if let Op::Composite { row, .. } = &op
            && (row.outputs[0]..types.len()).contains(&names.len())
        {
            types.truncate(names.len());
        }
        if types.len() != names.len() {
            return Err(error(format!("`{}` has {} results, {} named", op.word(), types.len(), names.len())));
        }
        self.push(names, op, inputs, types)
    }

    /// Makes a value an output under a name.
    ///
    /// # Errors
    /// If there is an output of this name.
    pub fn output(&mut self, name: &str, value: ValueId) -> Result<(), GraphError> {
        self.known_values(&[value]).map_err(|reason| GraphError::node(name, reason))?;
        let name = if name.is_empty() { self.graph.value(value).name.clone() } else { name.to_string() };
        let error = |reason: &str| GraphError::node(&name, reason);
        if self.graph.outputs.len() >= MAX_OUTPUTS {
            return Err(error("the graph has too many outputs"));
        }
        if self.graph.outputs.iter().any(|output| output.name == name) {
            return Err(error("the graph has an output of this name"));
        }
        self.graph.outputs.push(Output { name, value });
        Ok(())
    }

    /// The value of this name.
    pub fn find(&self, name: &str) -> Option<ValueId> {
        self.names.get(name).copied()
    }

    /// The element type of a value.
    pub fn dtype(&self, value: ValueId) -> DType {
        self.graph.value(value).dtype
    }

    /// The extents of a value.
    pub fn shape(&self, value: ValueId) -> &[u64] {
        &self.graph.value(value).shape
    }

    /// The name of a value.
    pub fn name(&self, value: ValueId) -> &str {
        &self.graph.value(value).name
    }

    /// The elements of a value that is a constant node.
    pub fn data(&self, value: ValueId) -> Option<&Data> {
        match &self.graph.nodes[self.graph.value(value).node].op {
            Op::Constant(data) => Some(data),
            _ => None,
        }
    }

    /// The graph so far.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The graph.
    ///
    /// # Errors
    /// If it has no output.
    pub fn finish(self) -> Result<Graph, GraphError> {
        match self.graph.outputs.is_empty() {
            true => Err(GraphError::Call("the graph has no output".into())),
            false => Ok(self.graph),
        }
    }

    /// A node of another graph, which has been checked there; its values get names of their own.
    pub(crate) fn unchecked(&mut self, op: Op, inputs: &[ValueId], types: Vec<Type>) -> Vec<ValueId> {
        let node = self.graph.nodes.len();
        let first = self.graph.values.len() as u32;
        let outputs: Vec<ValueId> = (0..types.len() as u32).map(|i| ValueId(first + i)).collect();
        let value = |(dtype, shape)| Value { name: String::new(), dtype, shape, node };
        self.graph.values.extend(types.into_iter().map(value));
        self.graph.nodes.push(Node { op, inputs: inputs.to_vec(), outputs: outputs.clone() });
        outputs
    }

    /// Refuses the numbers of values of another graph.
    fn known_values(&self, values: &[ValueId]) -> Result<(), String> {
        match values.iter().find(|value| value.index() >= self.graph.values.len()) {
            Some(value) => Err(format!("there is no value of number {}", value.0)),
            None => Ok(()),
        }
    }

    fn push(
        &mut self,
        names: &[&str],
        op: Op,
        inputs: &[ValueId],
        types: Vec<Type>,
    ) -> Result<Vec<ValueId>, GraphError> {
        let first = names.first().copied().unwrap_or_default();
        if self.graph.nodes.len() >= MAX_NODES {
            let (given, limit) = (MAX_NODES as u64 + 1, MAX_NODES as u64);
            return Err(GraphError::Limit { what: "nodes", given, limit });
        }
        if names.is_empty() || names.len() > MAX_OUTPUTS || inputs.len() > MAX_INPUTS {
            let reason =
                format!("{} results and {} inputs; from 1 to {MAX_OUTPUTS} are allowed", names.len(), inputs.len());
            return Err(GraphError::node(first, reason));
        }
        self.known_values(inputs).map_err(|reason| GraphError::node(first, reason))?;
        for (i, name) in names.iter().enumerate() {
            let taken = self.names.get(*name).is_some_and(|value| !self.free.contains_key(value));
            if !name.is_empty() && (taken || names[..i].contains(name)) {
                return Err(GraphError::node(name, "another value has this name"));
            }
            if name.len() > MAX_NAME {
                return Err(GraphError::node(
                    name,
                    format!("{} bytes of a name, and the limit is {MAX_NAME}", name.len()),
                ));
            }
        }
        types.iter().try_for_each(|(_, shape)| elements(shape).map(|_| ())).map_err(|r| GraphError::node(first, r))?;
        let node = self.graph.nodes.len();
        let mut outputs = vec![];
        for (name, (dtype, shape)) in names.iter().zip(types) {
            let id = ValueId(self.graph.values.len() as u32);
            // A name that the builder chose for another value gives way.
            if let Some(other) = self.names.get(*name).copied() {
                let chosen = self.choose(other);
                self.graph.values[other.index()].name = chosen;
            }
            let name = match name.is_empty() {
                true => {
                    self.free.insert(id, ());
                    self.choose(id)
                }
                false => name.to_string(),
            };
            self.names.insert(name.clone(), id);
            self.graph.values.push(Value { name, dtype, shape, node });
            outputs.push(id);
        }
        self.graph.nodes.push(Node { op, inputs: inputs.to_vec(), outputs: outputs.clone() });
        Ok(outputs)
    }

    /// A name that no value has, which becomes this value's.
    fn choose(&mut self, id: ValueId) -> String {
        loop {
            let name = format!("v{}", self.next);
            self.next += 1;
            if !self.names.contains_key(&name) {
                self.names.insert(name.clone(), id);
                return name;
            }
        }
    }
}

/// The most inputs of a node.
pub const MAX_INPUTS: usize = 4096;

/// The most results of a node, and outputs of a graph.
pub const MAX_OUTPUTS: usize = 4096;

/// The most bytes of a name.
pub const MAX_NAME: usize = 4096;
