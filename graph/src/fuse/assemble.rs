//! The assembly of a plan: placed kernels become specs over buffers, with their bytes, nodes and notes.

use super::FuseOptions;
use super::emit::{Single, emitted};
use super::kernel::{Kernel, Why};
use super::place::{Placement, Unit};
use super::terms::{T, TermOp};
use super::translate::Translated;
use crate::data::Data;
use crate::error::GraphError;
use crate::fold::Known;
use crate::graph::{Graph, ValueId};
use crate::op::{Attribute, Op};
use crate::plan::{Buffer, Plan, PlanKernel, PlanOpaque, PlanOutput, PlanStep};
use crate::shape::elements;
use cranefold_ir::{DType, Scalar};
use cranefold_spec::{Order, Spec};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// The plan of a placement, in the making.
pub(super) struct Assembly<'g> {
    pub(super) graph: &'g Graph,
    pub(super) primitive: &'g Graph,
    /// The value of the primitive graph for each value of the graph.
    pub(super) to: &'g [ValueId],
    pub(super) translated: &'g Translated,
    pub(super) options: &'g FuseOptions,
}

/// The name of each term that has one.
type Names<'g> = Vec<Option<&'g str>>;

/// The buffers of a plan, as they are found.
struct Buffers {
    all: Vec<Buffer>,
    of: FxHashMap<(T, DType), usize>,
    names: FxHashSet<String>,
    /// The specs of texts, as blocks of a model repeat.
    specs: FxHashMap<String, Result<Arc<Spec>, String>>,
}

impl Buffers {
    fn add(&mut self, name: &str, dtype: DType, shape: &[u64], data: Option<Data>) -> usize {
        let mut own = name.to_string();
        let mut number = 1;
        while !self.names.insert(own.clone()) {
            own = format!("{name}.{number}");
            number += 1;
        }
        self.all.push(Buffer { name: own, dtype, shape: shape.to_vec(), data });
        self.all.len() - 1
    }
}

impl<'g> Assembly<'g> {
    pub(super) fn plan(&self) -> Result<Plan, GraphError> {
        let terms = &self.translated.terms;
        let of = |id: ValueId| self.translated.of[id.index()];
        let needed = self.needed_nodes();
        let mut opaque: Vec<(usize, Vec<T>, Vec<T>)> = vec![];
        for (number, node) in self.primitive.nodes().iter().enumerate() {
            if matches!(node.op, Op::Opaque { .. }) && needed[number] {
                let all = |ids: &[ValueId]| ids.iter().map(|&id| of(id)).collect();
                opaque.push((number, all(&node.inputs), all(&node.outputs)));
            }
        }
        let outputs: Vec<T> = self.primitive.outputs().iter().map(|output| of(output.value)).collect();
        let placement = Placement::new(terms, &opaque, &outputs, self.options.elementwise);

        let wanted = self.wanted(&opaque);
        let memory = self.memory(&placement, &wanted);
        let mut buffers =
            Buffers { all: vec![], of: FxHashMap::default(), names: FxHashSet::default(), specs: FxHashMap::default() };
        let mut plan = Plan::default();
        let inputs = self.graph.inputs();
        for &id in &inputs {
            let value = self.graph.value(id);
            let buffer = buffers.add(&value.name, value.dtype, &value.shape, None);
            buffers.of.insert((of(self.to[id.index()]), value.dtype), buffer);
            plan.inputs.push(buffer);
        }
        let names = self.names();
        let mut notes = self.notes(&placement, &names);
        // The first step that computes each term.
        let mut computed: Vec<Option<usize>> = vec![None; terms.len()];
        let order = placement.waits.order();
        if order.len() < placement.units.len() {
            return Err(GraphError::Call("the plan's steps wait for one another; this is a bug of the fuser".into()));
        }
        for step in order {
            match &placement.units[step] {
                Unit::Opaque(node) => self.opaque(*node, &placement, &memory, &names, &mut buffers, &mut plan)?,
                Unit::Changing => {}
                Unit::Kernel(kernel) => {
                    let left = kernel.outputs.iter().any(|placed| placement.left.contains(&placed.into.0));
                    let made = self.kernel(&placement, kernel, &memory, &names, &mut buffers);
                    match made {
                        Ok(made) if made.inputs.iter().any(|input| made.outputs.contains(input)) => {
                            let why = "a kernel of the plan reads what it writes; this is a bug of the fuser";
                            return Err(GraphError::Call(why.into()));
                        }
                        Ok(mut made) if !left => {
                            made.notes = notes.remove(&step).unwrap_or_default();
                            let own = kernel.computed.iter().map(|(t, _)| *t).chain(kernel.reductions.iter().copied());
                            for t in own.chain(kernel.outputs.iter().map(|placed| placed.term)) {
                                computed[t as usize].get_or_insert(plan.steps.len());
                            }
                            plan.steps.push(PlanStep::Kernel(made));
                        }
                        Ok(made) => {
                            let name = buffers.all[made.outputs[0]].name.clone();
                            let why = "element-wise nodes without a reduction".to_string();
                            let attributes = vec![("spec".into(), Attribute::Text(made.spec.to_string()))];
                            let (inputs, outputs) = (made.inputs, made.outputs);
                            let step = PlanOpaque { name, op: "map".into(), attributes, inputs, outputs, why };
                            plan.steps.push(PlanStep::Opaque(step));
                        }
                        Err(why) => self.unmade(&placement, kernel, why, &memory, &names, &mut buffers, &mut plan)?,
                    }
                }
            }
        }
        for output in self.primitive.outputs() {
            let value = self.primitive.value(output.value);
            let buffer = self.buffer_as(output.value, &placement, &memory, &names, &mut buffers, &mut plan)?;
            plan.outputs.push(PlanOutput { name: output.name.clone(), buffer, shape: value.shape.clone() });
        }
        plan.buffers = buffers.all;
        self.count(&mut plan, &computed);
        Ok(plan)
    }

    /// The nodes from which outputs follow.
    fn needed_nodes(&self) -> Vec<bool> {
        let graph = self.primitive;
        let mut needed = vec![false; graph.nodes().len()];
        graph.outputs().iter().for_each(|output| needed[graph.value(output.value).node] = true);
        for number in (0..graph.nodes().len()).rev() {
            if needed[number] {
                graph.nodes()[number].inputs.iter().for_each(|&id| needed[graph.value(id).node] = true);
            }
        }
        needed
    }

    /// The element types in which values are wanted by the caller and the host.
    fn wanted(&self, opaque: &[(usize, Vec<T>, Vec<T>)]) -> FxHashMap<T, Vec<DType>> {
        let mut wanted: FxHashMap<T, Vec<DType>> = FxHashMap::default();
        let mut note = |id: ValueId| {
            let dtypes = wanted.entry(self.translated.of[id.index()]).or_default();
            let dtype = self.primitive.value(id).dtype;
            if !dtypes.contains(&dtype) {
                dtypes.push(dtype);
            }
        };
        self.primitive.outputs().iter().for_each(|output| note(output.value));
        opaque.iter().for_each(|(node, ..)| self.primitive.nodes()[*node].inputs.iter().for_each(|&id| note(id)));
        wanted
    }

    /// The type in memory of each term, as far as it is written or a leaf.
    fn memory(&self, placement: &Placement, wanted: &FxHashMap<T, Vec<DType>>) -> Vec<DType> {
        let terms = &self.translated.terms;
        let mut memory: Vec<DType> = (0..terms.len() as T).map(|t| terms.get(t).dtype).collect();
        let mut first: Vec<Option<DType>> = vec![None; terms.len()];
        for &id in self.to {
            first[self.translated.of[id.index()] as usize].get_or_insert(self.primitive.value(id).dtype);
        }
        for t in 0..terms.len() as T {
            if let TermOp::Leaf(id) = terms.get(t).op {
                memory[t as usize] = self.primitive.value(id).dtype;
            }
        }
        for &t in placement.written.keys() {
            let widest = wanted.get(&t).and_then(|dtypes| dtypes.iter().copied().max_by_key(|dtype| dtype.bytes()));
            if let Some(own) = widest.or(first[t as usize]) {
                memory[t as usize] = own;
            }
        }
        // An alias has the elements of its source.
        for (&t, written) in &placement.written {
            if let Some(source) = written.alias {
                memory[t as usize] = memory[source as usize];
            }
        }
        memory
    }

    /// The names of terms: of the first value of the graph that each is.
    fn names(&self) -> Names<'g> {
        let terms = &self.translated.terms;
        let mut names = vec![None; terms.len()];
        for (value, &id) in self.graph.values().iter().zip(self.to) {
            names[self.translated.of[id.index()] as usize].get_or_insert(value.name.as_str());
        }
        // What has no value of its own but a view has that one's name.
        for (value, &id) in self.graph.values().iter().zip(self.to) {
            let mut t = self.translated.of[id.index()];
            while matches!(terms.get(t).op, TermOp::Reshape | TermOp::View(_)) {
                t = terms.get(t).args[0];
                names[t as usize].get_or_insert(value.name.as_str());
            }
        }
        names
    }

    fn name_of(&self, t: T, names: &Names) -> String {
        names[t as usize].map_or_else(|| format!("t{t}"), |name| name.to_string())
    }

    /// The buffer of a term in its type in memory.
    fn buffer(
        &self,
        t: T,
        placement: &Placement,
        memory: &[DType],
        names: &Names,
        buffers: &mut Buffers,
    ) -> Result<usize, GraphError> {
        let terms = &self.translated.terms;
        let mut source = t;
        while let Some(alias) = placement.written.get(&source).and_then(|written| written.alias) {
            source = alias;
        }
        let dtype = memory[source as usize];
        if let Some(&buffer) = buffers.of.get(&(source, dtype)) {
            return Ok(buffer);
        }
        let data = match terms.get(source).op {
            TermOp::Leaf(id) => Known::default().of(self.primitive, id),
            _ => None,
        };
        let buffer = buffers.add(&self.name_of(source, names), dtype, terms.shape(source), data);
        buffers.of.insert((source, dtype), buffer);
        Ok(buffer)
    }

    /// The buffer of a value that the caller or the host sees, in the type that it sees. A number is the same term in every
    /// shape, so each value has a buffer of its own; what is too large for a constant the host fills.
    fn buffer_as(
        &self,
        id: ValueId,
        placement: &Placement,
        memory: &[DType],
        names: &Names,
        buffers: &mut Buffers,
        plan: &mut Plan,
    ) -> Result<usize, GraphError> {
        let terms = &self.translated.terms;
        let (t, dtype) = (self.translated.of[id.index()], self.primitive.value(id).dtype);
        if let Some(value) = terms.number(t) {
            let shape = &self.primitive.value(id).shape;
            let scalar = match value.as_int() {
                Some(int) if dtype != DType::Bool => Scalar::int(dtype, int),
                Some(int) => Scalar::bool(int != 0),
                None => crate::data::scalar(dtype, value.as_f64()),
            };
            let one = Data::of(dtype, &[], &[scalar]).map_err(GraphError::Call)?;
            let count = elements(shape).map_err(GraphError::Call)?;
            if count > MAX_FILLED {
                let buffer = buffers.add(&self.name_of(t, names), dtype, shape, None);
                let value = match value.as_int() {
                    Some(int) => Attribute::Int(int as i64),
                    None => Attribute::Float(value.as_f64()),
                };
                plan.steps.push(PlanStep::Opaque(PlanOpaque {
                    name: buffers.all[buffer].name.clone(),
                    op: "fill".into(),
                    attributes: vec![("value".into(), value)],
                    inputs: vec![],
                    outputs: vec![buffer],
                    why: format!("{count} equal elements, and a plan keeps at most {MAX_FILLED}"),
                }));
                return Ok(buffer);
            }
            let data = Data::new(dtype, shape, one.bytes().repeat(count as usize)).map_err(GraphError::Call)?;
            return Ok(buffers.add(&self.name_of(t, names), dtype, shape, Some(data)));
        }
        let own = self.buffer(t, placement, memory, names, buffers)?;
        let in_memory = buffers.all[own].dtype;
        if in_memory == dtype {
            return Ok(own);
        }
        if let Some(&known) = buffers.of.get(&(t, dtype)) {
            return Ok(known);
        }
        let count = elements(terms.shape(t)).map_err(GraphError::Call)?;
        let text = format!("region x0:{in_memory}[{count}] axes=[] {{ {dtype}(x0) }}");
        let spec: Spec = text.parse().map_err(|error| GraphError::Call(format!("{error}")))?;
        let name = format!("{}.{dtype}", buffers.all[own].name);
        let result = buffers.add(&name, dtype, terms.shape(t), None);
        buffers.of.insert((t, dtype), result);
        let bytes = count * (in_memory.bytes() + dtype.bytes());
        let (inputs, outputs) = (vec![own], vec![result]);
        let notes = vec![format!("{name} is wanted in another type")];
        let spec = Arc::new(spec);
        let kernel = PlanKernel { spec, inputs, outputs, nodes: vec![], bytes, bytes_before: 0, notes };
        plan.steps.push(PlanStep::Kernel(kernel));
        Ok(result)
    }

    fn opaque(
        &self,
        number: usize,
        placement: &Placement,
        memory: &[DType],
        names: &Names,
        buffers: &mut Buffers,
        plan: &mut Plan,
    ) -> Result<(), GraphError> {
        let node = &self.primitive.nodes()[number];
        let Op::Opaque { op, attributes } = &node.op else { return Ok(()) };
        let mut inputs = vec![];
        for &id in &node.inputs {
            inputs.push(self.buffer_as(id, placement, memory, names, buffers, plan)?);
        }
        let mut outputs = vec![];
        for &id in &node.outputs {
            outputs.push(self.buffer(self.translated.of[id.index()], placement, memory, names, buffers)?);
        }
        let name = outputs.first().map_or(String::new(), |&buffer| buffers.all[buffer].name.clone());
        let said = attributes.iter().find(|(name, _)| name == "why");
        let why = match said {
            Some((_, Attribute::Text(why))) => why.clone(),
            _ => "an operation of the host".to_string(),
        };
        let (op, attributes) = (op.clone(), attributes.clone());
        plan.steps.push(PlanStep::Opaque(PlanOpaque { name, op, attributes, inputs, outputs, why }));
        Ok(())
    }

    fn kernel(
        &self,
        placement: &Placement,
        kernel: &Kernel,
        memory: &[DType],
        names: &Names,
        buffers: &mut Buffers,
    ) -> Result<PlanKernel, String> {
        let terms = &self.translated.terms;
        let in_memory = |t: T| {
            let mut source = t;
            while let Some(alias) = placement.written.get(&source).and_then(|written| written.alias) {
                source = alias;
            }
            memory[source as usize]
        };
        let order = if self.options.order == Order::Logical { "logical" } else { "" };
        let mut made = |single| {
            let emitted = emitted(placement, kernel, &in_memory, order, single)?;
            let spec = match buffers.specs.get(&emitted.text) {
                Some(known) => known.clone(),
                None => {
                    let spec: Result<Spec, String> = emitted.text.parse().map_err(|error| format!("{error}"));
                    let spec = spec.map(Arc::new);
                    buffers.specs.insert(emitted.text.clone(), spec.clone());
                    spec
                }
            };
            Ok::<_, String>((emitted, spec?))
        };
        let others = [Single::Element, Single::Whole];
        let (emitted, spec) = made(Single::Slice)
            .or_else(|error| others.into_iter().find_map(|single| made(single).ok()).ok_or(error))?;
        let mut all = |ts: &[T]| -> Result<Vec<usize>, String> {
            ts.iter()
                .map(|&t| self.buffer(t, placement, memory, names, buffers).map_err(|error| error.to_string()))
                .collect()
        };
        let (inputs, outputs) = (all(&emitted.operands)?, all(&emitted.outputs)?);
        let read: u64 = emitted.operands.iter().zip(&emitted.read).map(|(&t, n)| n * in_memory(t).bytes()).sum();
        let written: u64 = kernel
            .outputs
            .iter()
            .map(|placed| terms.shape(placed.term).iter().product::<u64>() * in_memory(placed.into.0).bytes())
            .sum();
        let bytes = read + written;
        Ok(PlanKernel { spec, inputs, outputs, nodes: vec![], bytes, bytes_before: 0, notes: vec![] })
    }

    /// A step for terms that could not be made a kernel.
    #[allow(clippy::too_many_arguments, reason = "the state of one plan")]
    fn unmade(
        &self,
        placement: &Placement,
        kernel: &Kernel,
        why: String,
        memory: &[DType],
        names: &Names,
        buffers: &mut Buffers,
        plan: &mut Plan,
    ) -> Result<(), GraphError> {
        let mut all = |ts: Vec<T>| -> Result<Vec<usize>, GraphError> {
            ts.into_iter().map(|t| self.buffer(t, placement, memory, names, buffers)).collect()
        };
        let inputs = all(kernel.operands.iter().map(|(t, _)| *t).collect())?;
        let outputs = all(kernel.outputs.iter().map(|placed| placed.into.0).collect())?;
        let name = outputs.first().map_or(String::new(), |&buffer| buffers.all[buffer].name.clone());
        let step = PlanOpaque { name, op: "fused".into(), attributes: vec![], inputs, outputs, why };
        plan.steps.push(PlanStep::Opaque(step));
        Ok(())
    }

    /// The reasons that values are written for other steps, by the kernels that write them.
    fn notes(&self, placement: &Placement, names: &Names) -> FxHashMap<usize, Vec<String>> {
        let mut notes: FxHashMap<usize, Vec<String>> = FxHashMap::default();
        for (&t, written) in &placement.written {
            let reason = match written.why.iter().find(|why| !matches!(why, Why::Output | Why::Opaque)) {
                Some(Why::OtherAxes) => "a kernel over other axes reads it",
                Some(Why::Shared) => "several kernels read it",
                Some(Why::Layout) => "no strides lead from its elements to where they are read",
                Some(Why::Long) => "the kernel that reads it is long enough",
                _ => continue,
            };
            if let Some(home) = written.home {
                notes.entry(home).or_default().push(format!("{} is written: {reason}", self.name_of(t, names)));
            }
        }
        notes
    }

    /// Gives each node to the kernel that computes it, and counts its bytes.
    fn count(&self, plan: &mut Plan, computed: &[Option<usize>]) {
        let graph = self.graph;
        let mut of_node: Vec<Option<usize>> = vec![None; graph.nodes().len()];
        let mut of_value: Vec<Option<usize>> = vec![None; graph.values().len()];
        for (number, node) in graph.nodes().iter().enumerate().rev() {
            if matches!(node.op, Op::Input | Op::Constant(_) | Op::Opaque { .. }) {
                continue;
            }
            let own = node.outputs.iter().filter_map(|id| {
                let t = self.translated.of[self.to[id.index()].index()];
                computed[t as usize]
            });
            // A node that a rewrite made needless belongs to its user.
            let user = node.outputs.iter().filter_map(|id| of_value[id.index()]);
            let Some(step) = own.min().or_else(|| user.min()) else { continue };
            of_node[number] = Some(step);
            for id in &node.inputs {
                let known = of_value[id.index()].get_or_insert(step);
                *known = (*known).min(step);
            }
        }
        for (number, node) in graph.nodes().iter().enumerate() {
            let Some(step) = of_node[number] else { continue };
            let PlanStep::Kernel(kernel) = &mut plan.steps[step] else { continue };
            kernel.nodes.push(graph.name(number).to_string());
            // A view moves nothing by itself.
            let is_view = matches!(
                node.op,
                Op::Reshape(_) | Op::Transpose(_) | Op::Broadcast(_) | Op::Slice(_) | Op::Position { .. }
            );
            let bytes = |id: &ValueId| {
                let value = graph.value(*id);
                value.shape.iter().product::<u64>() * value.dtype.bytes()
            };
            if !is_view {
                kernel.bytes_before += node.inputs.iter().chain(&node.outputs).map(bytes).sum::<u64>();
            }
        }
    }
}

/// The most elements of a constant that is one number.
const MAX_FILLED: u64 = 1 << 24;
