//! Operands and the builder that folds them.

use super::Stop;
use crate::eval::{Tensor, node_values};
use crate::fold::MAX_FOLDED;
use crate::{Builder, DType, Data, GraphError, Op, Range, ValueId};
use cranefold_ir::expression::Expression;
use cranefold_ir::{DType::I64, Scalar};
use rustc_hash::FxHashMap;

/// A tensor of a file: a value of the graph, or elements that are known and no node has needed yet.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    /// A value of the graph.
    Value(ValueId, DType, Vec<u64>),
    /// Known elements.
    Known(Data),
    /// One element everywhere.
    Splat(Scalar, Vec<u64>),
    /// A tensor whose elements the library has no type for: the reason.
    Foreign(String),
}

impl Operand {
    /// The element type.
    pub fn dtype(&self) -> Result<DType, Stop> {
        match self {
            Operand::Value(_, dtype, _) => Ok(*dtype),
            Operand::Known(data) => Ok(data.dtype()),
            Operand::Splat(value, _) => Ok(value.dtype()),
            Operand::Foreign(reason) => Err(Stop::Opaque(reason.clone())),
        }
    }

    /// The extents.
    pub fn shape(&self) -> Result<&[u64], Stop> {
        match self {
            Operand::Value(_, _, shape) | Operand::Splat(_, shape) => Ok(shape),
            Operand::Known(data) => Ok(data.shape()),
            Operand::Foreign(reason) => Err(Stop::Opaque(reason.clone())),
        }
    }

    /// The number of axes.
    pub fn rank(&self) -> Result<usize, Stop> {
        self.shape().map(<[u64]>::len)
    }

    /// The elements, if they are known and few enough to be computed with.
    pub fn known(&self) -> Option<Data> {
        match self {
            Operand::Known(data) => Some(data.clone()),
            Operand::Splat(value, shape) if count(shape) <= MOST_SPREAD => {
                let count = count(shape) as usize;
                Data::of(value.dtype(), shape, &vec![*value; count]).ok()
            }
            _ => None,
        }
    }

    /// An operand of known integers.
    pub fn ints(values: &[i64]) -> Operand {
        let data = Data::of_ints(I64, &[values.len() as u64], values);
        Operand::Known(data.expect("as many integers as the shape says"))
    }

    /// A known number of rank 0.
    pub fn number(dtype: DType, value: f64) -> Operand {
        Operand::Splat(crate::data::scalar(dtype, value), vec![])
    }
}

/// The most elements of a tensor of one value that are computed with.
const MOST_SPREAD: u64 = 1 << 12;

/// The most elements that one file makes while it is read.
const MOST_IN_ALL: u64 = 1 << 24;

fn count(shape: &[u64]) -> u64 {
    shape.iter().fold(1, |count, &extent| count.saturating_mul(extent))
}

/// A builder whose nodes take operands.
#[derive(Debug, Default)]
pub(crate) struct Lower {
    builder: Builder,
    /// Constant nodes by the place, the type and the shape of their elements, which the graph keeps.
    constants: FxHashMap<(usize, DType, Vec<u64>), ValueId>,
    /// The tensors of the file that were read, by the places of their bytes.
    read: FxHashMap<usize, Data>,
    /// The elements that were computed.
    computed: u64,
}

impl Lower {
    /// A tensor that the caller gives.
    pub fn input(&mut self, name: &str, dtype: DType, shape: &[u64]) -> Result<Operand, GraphError> {
        let value = self.builder.input(name, dtype, shape)?;
        Ok(self.operand(value))
    }

    /// The result of an operation, computed at once if its operands are known. A name that is taken is left out.
    pub fn op(&mut self, name: &str, op: Op, inputs: &[&Operand]) -> Result<Operand, Stop> {
        self.typed(name, op, inputs, None)
    }

    /// The result of an operation that leaves a choice of its element type.
    pub fn typed(&mut self, name: &str, op: Op, inputs: &[&Operand], dtype: Option<DType>) -> Result<Operand, Stop> {
        if let Some(done) = self.at_once(&op, inputs, dtype)? {
            return Ok(done);
        }
        Ok(self.several(&[name], op, inputs, dtype)?.remove(0))
    }

    /// Counts elements that are computed; returns false once a file makes too many.
    pub fn spend(&mut self, elements: u64) -> bool {
        self.computed = self.computed.saturating_add(elements.max(1));
        self.computed <= MOST_IN_ALL
    }

    /// The tensor whose bytes lie at a place of the file, read once.
    pub fn tensor(&mut self, place: &[u8], read: impl FnOnce() -> Result<Data, String>) -> Result<Data, String> {
        let key = place.as_ptr() as usize;
        if let Some(data) = self.read.get(&key) {
            return Ok(data.clone());
        }
        let data = read()?;
        self.read.insert(key, data.clone());
        Ok(data)
    }

    fn at_once(&mut self, op: &Op, inputs: &[&Operand], dtype: Option<DType>) -> Result<Option<Operand>, Stop> {
        if let (Op::Reshape(shape) | Op::Broadcast(shape), [Operand::Splat(value, from)]) = (op, inputs) {
            crate::infer::infer(op, &[(value.dtype(), from)], dtype)?;
            return Ok(Some(Operand::Splat(*value, shape.clone())));
        }
        if let (Op::Reshape(shape), [Operand::Known(data)]) = (op, inputs) {
            return Ok(Some(Operand::Known(data.reshaped(shape)?)));
        }
        // An operation without operands stays one: a mask by position reads no memory.
        if inputs.is_empty() || !inputs.iter().all(|input| matches!(input, Operand::Known(_) | Operand::Splat(..))) {
            return Ok(None);
        }
        let Some(known) = inputs.iter().map(|input| input.known()).collect::<Option<Vec<Data>>>() else {
            return Ok(None);
        };
        let types: Vec<_> = known.iter().map(|data| (data.dtype(), data.shape())).collect();
        let types = crate::infer::infer(op, &types, dtype)?;
        match &types[..] {
            [(dtype, shape)]
                if count(shape) <= MAX_FOLDED
                    && known.iter().all(|d| d.len() as u64 <= MAX_FOLDED)
                    && self.spend(count(shape)) =>
            {
                let given: Vec<Tensor> = known.iter().map(Tensor::of).collect();
                let results = node_values(op, &given.iter().collect::<Vec<_>>(), &[(*dtype, shape)]);
                Ok(results.ok().and_then(|results| Some(Operand::Known(results.first()?.data()))))
            }
            _ => Ok(None),
        }
    }

    /// The results of an operation as nodes.
    pub fn several(
        &mut self,
        names: &[&str],
        op: Op,
        inputs: &[&Operand],
        dtype: Option<DType>,
    ) -> Result<Vec<Operand>, Stop> {
        let inputs = inputs.iter().map(|input| self.value(input)).collect::<Result<Vec<_>, _>>()?;
        let names: Vec<&str> = names.iter().map(|name| self.untaken(name)).collect();
        let values = self.builder.add_all(&names, op, &inputs, dtype)?;
        Ok(values.into_iter().map(|value| self.operand(value)).collect())
    }

    /// The results of a composite.
    pub fn composite(
        &mut self,
        names: &[&str],
        op: &str,
        params: &[(&str, f64)],
        axes: &[i64],
        inputs: &[&Operand],
    ) -> Result<Vec<Operand>, Stop> {
        let inputs = inputs.iter().map(|input| self.value(input)).collect::<Result<Vec<_>, _>>()?;
        let names: Vec<&str> = names.iter().map(|name| self.untaken(name)).collect();
        let values = self.builder.composite(&names, op, params, axes, &inputs)?;
        Ok(values.into_iter().map(|value| self.operand(value)).collect())
    }

    /// A normalisation of the op table. A softmax of a view is the view of a softmax: files turn the axis of the classes
    /// to the end and back, and flatten the others.
    pub fn normalize(
        &mut self,
        name: &str,
        op: &str,
        params: &[(&str, f64)],
        axes: &[i64],
        inputs: &[&Operand],
    ) -> Result<Operand, Stop> {
        if let [x] = inputs
            && let Some((below, perm)) = self.transposed(x)
        {
            let axes = crate::resolve_axes(axes, perm.len())?;
            let axes: Vec<i64> = axes.iter().map(|&axis| perm[axis] as i64).collect();
            let result = self.normalize("", op, params, &axes, &[&below])?;
            return self.transpose(name, &perm, &result);
        }
        if let ([x], [axis]) = (inputs, axes)
            && let Some(below) = self.reshaped(x)
            && let Some(axis) = same_axis(x.shape()?, crate::resolve_axis(*axis, x.rank()?)?, below.shape()?)
        {
            let shape = x.shape()?.to_vec();
            let result = self.normalize("", op, params, &[axis as i64], &[&below])?;
            return self.reshape(name, &shape, &result);
        }
        let inputs = inputs.iter().map(|input| self.value(input)).collect::<Result<Vec<_>, _>>()?;
        let value = self.builder.normalize(self.untaken(name), op, params, axes, &inputs)?;
        Ok(self.operand(value))
    }

    /// A formula of elements.
    pub fn map(&mut self, name: &str, formula: &str, inputs: &[&Operand]) -> Result<Operand, Stop> {
        self.map_to(name, formula, inputs, None)
    }

    /// A formula of elements whose value has this type.
    pub fn map_to(
        &mut self,
        name: &str,
        formula: &str,
        inputs: &[&Operand],
        dtype: Option<DType>,
    ) -> Result<Operand, Stop> {
        let formula: Expression = formula.parse().map_err(|error| Stop::Wrong(format!("{error}")))?;
        self.typed(name, Op::Map(formula), inputs, dtype)
    }

    /// A reduction of the op table.
    pub fn reduce(
        &mut self,
        name: &str,
        (op, params): (&str, &[(&str, f64)]),
        axes: &[usize],
        keep_dims: bool,
        x: &Operand,
    ) -> Result<Operand, Stop> {
        let call = call(op, params)?;
        self.op(name, Op::Reduce { call, axes: axes.to_vec(), keep_dims }, &[x])
    }

    /// The same elements in another shape, of the tensor below where x is a reshape itself; the same value if it has this
    /// shape.
    pub fn reshape(&mut self, name: &str, shape: &[u64], x: &Operand) -> Result<Operand, Stop> {
        let from = self.reshaped(x).unwrap_or_else(|| x.clone());
        match from.shape()? == shape {
            true => Ok(from),
            false => self.op(name, Op::Reshape(shape.to_vec()), &[&from]),
        }
    }

    /// The tensor that a value is a reshape of.
    fn reshaped(&self, x: &Operand) -> Option<Operand> {
        let Operand::Value(value, ..) = x else { return None };
        let graph = self.builder.graph();
        let node = &graph.nodes()[graph.value(*value).node];
        matches!(node.op, Op::Reshape(_)).then(|| self.operand(node.inputs[0]))
    }

    /// The tensor stretched to a shape; the same value if it has this shape.
    pub fn broadcast(&mut self, name: &str, shape: &[u64], x: &Operand) -> Result<Operand, Stop> {
        match x.shape()? == shape {
            true => Ok(x.clone()),
            false => self.op(name, Op::Broadcast(shape.to_vec()), &[x]),
        }
    }

    /// Other order of the axes, of the tensor below where x is a transpose itself; the same value if it is their order.
    pub fn transpose(&mut self, name: &str, perm: &[usize], x: &Operand) -> Result<Operand, Stop> {
        let rank = x.rank()?;
        let mut order = perm.to_vec();
        let mut from = x.clone();
        if let Some((below, inner)) = self.transposed(x)
            && perm.len() == rank
        {
            order = perm.iter().map(|&axis| inner[axis]).collect();
            from = below;
        }
        match order.iter().copied().eq(0..rank) {
            true => Ok(from),
            false => self.op(name, Op::Transpose(order), &[&from]),
        }
    }

    /// The tensor that a value is a transpose of, and the order of its axes.
    fn transposed(&self, x: &Operand) -> Option<(Operand, Vec<usize>)> {
        let Operand::Value(value, ..) = x else { return None };
        let graph = self.builder.graph();
        let node = &graph.nodes()[graph.value(*value).node];
        match &node.op {
            Op::Transpose(perm) => Some((self.operand(node.inputs[0]), perm.clone())),
            _ => None,
        }
    }

    /// Part of a tensor; the same value if it is all of it.
    pub fn slice(&mut self, name: &str, ranges: &[Range], x: &Operand) -> Result<Operand, Stop> {
        let shape = x.shape()?;
        let is_all = ranges.len() == shape.len() && ranges.iter().zip(shape).all(|(r, &e)| *r == Range::all(e));
        match is_all {
            true => Ok(x.clone()),
            false => self.op(name, Op::Slice(ranges.to_vec()), &[x]),
        }
    }

    /// A conversion; the same value if it has this type.
    pub fn cast(&mut self, name: &str, to: DType, x: &Operand) -> Result<Operand, Stop> {
        match x.dtype()? == to {
            true => Ok(x.clone()),
            false => self.op(name, Op::Cast { to, saturate: false }, &[x]),
        }
    }

    /// A host's operation.
    pub fn opaque(
        &mut self,
        op: &str,
        attributes: Vec<(String, crate::Attribute)>,
        inputs: &[&Operand],
        outputs: &[(&str, DType, &[u64])],
    ) -> Result<Vec<Operand>, Stop> {
        let inputs = inputs.iter().map(|input| self.value(input)).collect::<Result<Vec<_>, _>>()?;
        let outputs: Vec<_> = outputs.iter().map(|(name, dtype, shape)| (self.untaken(name), *dtype, *shape)).collect();
        let values = self.builder.opaque(op, attributes, &inputs, &outputs)?;
        Ok(values.into_iter().map(|value| self.operand(value)).collect())
    }

    /// Makes an operand an output of the graph.
    pub fn output(&mut self, name: &str, operand: &Operand) -> Result<(), Stop> {
        let value = self.value(operand)?;
        Ok(self.builder.output(name, value)?)
    }

    /// Returns true if the graph has an output of this name.
    #[cfg(feature = "openvino")]
    pub fn has_output(&self, name: &str) -> bool {
        self.builder.graph().outputs().iter().any(|output| output.name == name)
    }

    /// The graph.
    pub fn finish(self) -> Result<crate::Graph, GraphError> {
        self.builder.finish()
    }

    fn operand(&self, value: ValueId) -> Operand {
        Operand::Value(value, self.builder.dtype(value), self.builder.shape(value).to_vec())
    }

    /// The name, or none if another value has it.
    fn untaken<'a>(&self, name: &'a str) -> &'a str {
        if self.builder.find(name).is_some() { "" } else { name }
    }

    /// The value of an operand; known elements become a node.
    fn value(&mut self, operand: &Operand) -> Result<ValueId, Stop> {
        match operand {
            Operand::Value(value, ..) => Ok(*value),
            Operand::Known(data) => self.constant(data),
            Operand::Splat(value, shape) => {
                let data = Data::of(value.dtype(), &[], &[*value])?;
                let number = self.constant(&data)?;
                match shape.is_empty() {
                    true => Ok(number),
                    false => Ok(self.builder.broadcast("", shape, number)?),
                }
            }
            Operand::Foreign(reason) => Err(Stop::Opaque(reason.clone())),
        }
    }

    fn constant(&mut self, data: &Data) -> Result<ValueId, Stop> {
        let key = (data.bytes().as_ptr() as usize, data.dtype(), data.shape().to_vec());
        if let Some(&value) = self.constants.get(&key) {
            return Ok(value);
        }
        let value = self.builder.constant("", data.clone())?;
        self.constants.insert(key, value);
        Ok(value)
    }
}

/// The axis of another shape of the same elements along which they lie as along this one.
fn same_axis(shape: &[u64], axis: usize, other: &[u64]) -> Option<usize> {
    let before = |shape: &[u64], axis: usize| shape[..axis].iter().product::<u64>();
    (0..other.len()).find(|&at| other[at] == shape[axis] && before(other, at) == before(shape, axis))
}

/// A row of the op table with its parameters.
pub(crate) fn call(op: &str, params: &[(&str, f64)]) -> Result<cranefold_ir::ops::OpCall, Stop> {
    let row = cranefold_ir::ops::find(op).ok_or_else(|| format!("there is no op `{op}`"))?;
    let params: Vec<(String, f64)> = params.iter().map(|(name, value)| (name.to_string(), *value)).collect();
    cranefold_ir::ops::OpCall::of(row, &params).map_err(|fault| Stop::Wrong(fault.to_string()))
}

/// Little-endian elements as the machine has them.
pub(crate) fn native(dtype: DType, raw: &[u8]) -> Vec<u8> {
    let mut bytes = raw.to_vec();
    if cfg!(target_endian = "big") {
        for element in bytes.chunks_exact_mut(dtype.bytes() as usize) {
            element.reverse();
        }
    }
    bytes
}
