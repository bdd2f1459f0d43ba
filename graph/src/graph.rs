//! The graph: nodes in order, each over values before it.

use crate::op::Op;
use cranefold_ir::DType;

/// The most nodes of a graph.
pub const MAX_NODES: usize = 200_000;

/// The number of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(pub(crate) u32);

impl ValueId {
    /// The place in [`Graph::values`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A tensor: the result of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// The name, which no other value has.
    pub name: String,
    /// The element type.
    pub dtype: DType,
    /// The extents.
    pub shape: Vec<u64>,
    /// The node that gives it.
    pub node: usize,
}

/// An operation on values. Its name is that of its first value.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The operation.
    pub op: Op,
    /// Its operands.
    pub inputs: Vec<ValueId>,
    /// Its results.
    pub outputs: Vec<ValueId>,
}

/// An output of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The name that the caller knows it by.
    pub name: String,
    /// The value.
    pub value: ValueId,
}

/// A tensor program: single assignments with static types and shapes.
///
/// A [`Builder`](crate::Builder) or its text makes one, and both refuse what breaks a rule: every graph is valid. The
/// [text](crate) reads back to an equal graph.
///
/// ```
/// use cranefold_graph::Graph;
///
/// let graph: Graph = r#"graph {
///     x: f32[8,768] = input
///     m = mean(x) axes=[1] keep_dims
///     y = map(x, m) "x0 - x1"
///     return y
/// }"#
/// .parse()?;
/// assert_eq!(graph.outputs()[0].name, "y");
/// assert_eq!(graph.value(graph.outputs()[0].value).shape, [8, 768]);
/// assert_eq!(graph.to_string().parse::<Graph>()?, graph);
/// # Ok::<(), cranefold_graph::GraphError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    pub(crate) nodes: Vec<Node>,
    pub(crate) values: Vec<Value>,
    pub(crate) outputs: Vec<Output>,
}

impl Graph {
    /// The nodes in order.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The values in the order of their nodes.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// A value.
    ///
    /// # Panics
    /// If the number is of a value of another graph that has more.
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.index()]
    }

    /// The outputs in order.
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// The values that the caller gives, in order.
    pub fn inputs(&self) -> Vec<ValueId> {
        let inputs = self.nodes.iter().filter(|node| node.op == Op::Input);
        inputs.flat_map(|node| node.outputs.iter().copied()).collect()
    }

    /// The name of a node: that of its first value.
    pub fn name(&self, node: usize) -> &str {
        self.nodes[node].outputs.first().map_or("", |&id| &self.value(id).name)
    }
}
