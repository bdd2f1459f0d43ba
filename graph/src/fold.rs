//! Constants: the values that follow from constants alone.

use crate::build::Builder;
use crate::data::Data;
use crate::eval::{Tensor, node_values};
use crate::graph::{Graph, ValueId};
use crate::op::Op;
use cranefold_ir::DType;
use rustc_hash::FxHashMap;

/// The most elements of a value that is folded.
pub const MAX_FOLDED: u64 = 1 << 16;

/// The values of a graph that are known, each computed once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    values: FxHashMap<ValueId, Option<Data>>,
}

impl Known {
    /// The elements of a value, if it follows from constants.
    pub(crate) fn of(&mut self, graph: &Graph, value: ValueId) -> Option<Data> {
        // Operands first, without recursion: a graph may be as deep as it is long.
        let mut open = vec![value];
        while let Some(&next) = open.last() {
            if self.values.contains_key(&next) {
                open.pop();
                continue;
            }
            let node = &graph.nodes[graph.value(next).node];
            if let Op::Constant(data) = &node.op {
                self.values.insert(next, Some(data.clone()));
                continue;
            }
            let is_dead = node.inputs.iter().any(|input| matches!(self.values.get(input), Some(None)));
            if is_dead || matches!(node.op, Op::Input | Op::Opaque { .. } | Op::Normalize { .. } | Op::Composite { .. })
            {
                self.values.extend(node.outputs.iter().map(|&id| (id, None)));
                continue;
            }
            let types: Vec<(DType, &[u64])> =
                node.outputs.iter().map(|&id| (graph.value(id).dtype, graph.value(id).shape.as_slice())).collect();
            let is_small = types.iter().all(|(_, shape)| shape.iter().product::<u64>() <= MAX_FOLDED);
            let missing = node.inputs.iter().find(|input| !self.values.contains_key(input));
            if let Some(&missing) = missing.filter(|_| is_small) {
                open.push(missing);
                continue;
            }
            let given: Option<Vec<Tensor>> = node
                .inputs
                .iter()
                .map(|input| {
                    let data = self.values.get(input)?.as_ref()?;
                    // A large constant is no part of the arithmetic of shapes.
                    (data.len() as u64 <= 16 * MAX_FOLDED).then(|| Tensor::of(data))
                })
                .collect();
            let results = given.filter(|_| is_small).and_then(|given| {
                let given: Vec<&Tensor> = given.iter().collect();
                node_values(&node.op, &given, &types).ok()
            });
            for (i, &id) in node.outputs.iter().enumerate() {
                self.values.insert(id, results.as_ref().map(|results| results[i].data()));
            }
        }
        self.values.get(&value).cloned().flatten()
    }
}

impl Builder {
    /// The elements of a value that follows from constants: shapes, axes, ranges. At most [`MAX_FOLDED`] elements.
    ///
    /// ```
    /// use cranefold_graph::{Builder, DType, Data};
    ///
    /// let mut b = Builder::new();
    /// let shape = b.constant("shape", Data::of_ints(DType::I64, &[2], &[8, 768]).unwrap())?;
    /// let elements = b.reduce("elements", "prod", &[], &[0], false, shape)?;
    /// assert_eq!(b.known(elements).and_then(|data| data.ints()), Some(vec![6144]));
    /// let x = b.input("x", DType::I64, &[2])?;
    /// assert_eq!(b.known(x), None);
    /// # Ok::<(), cranefold_graph::GraphError>(())
    /// ```
    pub fn known(&mut self, value: ValueId) -> Option<Data> {
        if value.index() >= self.graph.values.len() {
            return None;
        }
        let mut known = std::mem::take(&mut self.known);
        let data = known.of(&self.graph, value);
        self.known = known;
        data
    }
}
