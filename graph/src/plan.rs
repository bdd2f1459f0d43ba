//! Plans: kernels, opaque steps and the buffers between them.

use crate::data::Data;
use crate::op::Attribute;
use crate::shape::elements;
use cranefold_ir::DType;
use cranefold_spec::Spec;
use std::sync::Arc;

/// An ordered list of steps over buffers: what a graph became.
///
/// [`fuse`](crate::fuse) makes it. Its text reads back to an equal plan, and is checked: a kernel fits its buffers, and a
/// step reads what is given, known, or written before it.
///
/// ```text
/// plan   = "plan" "{" { buffer LINE } { step LINE } "return" output { "," output } "}"
/// buffer = NAME ":" DTYPE "[" [ INT { "," INT } ] "]" "=" ( "input" | "buffer" | "const" DATA )
/// step   = NAME { "," NAME } "=" ( kernel | opaque )
/// kernel = "kernel" "(" NAMES ")" SPEC "bytes=" INT "before=" INT "nodes=" TEXTS "notes=" TEXTS
/// opaque = "opaque" "(" NAMES ")" "name=" TEXT "op=" TEXT "why=" TEXT { NAME "=" VALUE }
/// output = NAME "=" NAME "[" [ INT { "," INT } ] "]"
/// ```
///
/// SPEC is the text of a spec in quotes; DATA, NAME and VALUE are those of the text of [graphs](crate).
///
/// ```
/// use cranefold_graph::{FuseOptions, Graph, Plan, fuse};
///
/// let graph: Graph = "graph { x: f32[2,3] = input; y = softmax(x) axes=[1]; return y }".parse()?;
/// let plan = fuse(&graph, &FuseOptions::default())?;
/// assert_eq!(plan.to_string().parse::<Plan>()?, plan);
/// # Ok::<(), cranefold_graph::GraphError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) steps: Vec<PlanStep>,
    pub(crate) inputs: Vec<usize>,
    pub(crate) outputs: Vec<PlanOutput>,
}

/// A tensor of a plan, row-major and without gaps.
#[derive(Clone, Debug, PartialEq)]
pub struct Buffer {
    /// The name: the graph value's where it has one.
    pub name: String,
    /// The element type.
    pub dtype: DType,
    /// The extents.
    pub shape: Vec<u64>,
    /// The elements of a constant.
    pub data: Option<Data>,
}

impl Buffer {
    /// The size in bytes.
    pub fn bytes(&self) -> u64 {
        elements(&self.shape).unwrap_or(0) * self.dtype.bytes()
    }
}

/// An output of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanOutput {
    /// The name that the caller knows it by.
    pub name: String,
    /// The buffer.
    pub buffer: usize,
    /// The extents; the buffer may have the same elements in another shape.
    pub shape: Vec<u64>,
}

/// A step of a plan.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "most steps are kernels")]
pub enum PlanStep {
    /// A kernel of cranefold.
    Kernel(PlanKernel),
    /// An operation of the host.
    Opaque(PlanOpaque),
}

/// A kernel of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanKernel {
    /// The spec, which kernels of the same text share.
    pub spec: Arc<Spec>,
    /// The buffers that it reads, in the order of a call.
    pub inputs: Vec<usize>,
    /// The buffers that it writes, in the order of a call.
    pub outputs: Vec<usize>,
    /// The names of the graph's nodes that it computes.
    pub nodes: Vec<String>,
    /// The bytes that it reads and writes.
    pub bytes: u64,
    /// The bytes that its nodes read and write one by one.
    pub bytes_before: u64,
    /// The reasons that values are written for other steps, and read from them.
    pub notes: Vec<String>,
}

/// An operation that the caller of a plan runs.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanOpaque {
    /// The name of the node.
    pub name: String,
    /// The host's name of the operation.
    pub op: String,
    /// Its attributes.
    pub attributes: Vec<(String, Attribute)>,
    /// The buffers that it reads.
    pub inputs: Vec<usize>,
    /// The buffers that it writes.
    pub outputs: Vec<usize>,
    /// The reason that it is no kernel.
    pub why: String,
}

impl Plan {
    /// The buffers.
    pub fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    /// The steps in order.
    pub fn steps(&self) -> &[PlanStep] {
        &self.steps
    }

    /// The buffers that the caller gives, in the order of the graph's inputs.
    pub fn inputs(&self) -> &[usize] {
        &self.inputs
    }

    /// The outputs in the order of the graph's.
    pub fn outputs(&self) -> &[PlanOutput] {
        &self.outputs
    }

    /// The kernels in order.
    pub fn kernels(&self) -> impl Iterator<Item = &PlanKernel> {
        self.steps.iter().filter_map(|step| match step {
            PlanStep::Kernel(kernel) => Some(kernel),
            PlanStep::Opaque(_) => None,
        })
    }

    /// The opaque steps in order.
    pub fn opaque(&self) -> impl Iterator<Item = &PlanOpaque> {
        self.steps.iter().filter_map(|step| match step {
            PlanStep::Kernel(_) => None,
            PlanStep::Opaque(opaque) => Some(opaque),
        })
    }

    /// The bytes that all kernels read and write.
    pub fn bytes_after(&self) -> u64 {
        self.kernels().map(|kernel| kernel.bytes).sum()
    }

    /// The bytes that their nodes read and write one by one.
    pub fn bytes_before(&self) -> u64 {
        self.kernels().map(|kernel| kernel.bytes_before).sum()
    }

    /// The decisions, a line for each kernel and each reason: `kernel 3: m, y, 25 MB instead of 101 MB`.
    pub fn decisions(&self) -> Vec<String> {
        let mut lines = vec![];
        for (number, kernel) in self.kernels().enumerate() {
            let (after, before) = (megabytes(kernel.bytes), megabytes(kernel.bytes_before));
            lines.push(format!("kernel {number}: {}, {after} instead of {before}", kernel.nodes.join(", ")));
            lines.extend(kernel.notes.iter().map(|note| format!("kernel {number}: {note}")));
        }
        lines.extend(self.opaque().map(|opaque| format!("opaque {}: {} ({})", opaque.name, opaque.op, opaque.why)));
        lines
    }
}

/// Bytes for readers: `25 MB`, `3.1 kB`.
fn megabytes(bytes: u64) -> String {
    match bytes as f64 {
        b if b >= 1e7 => format!("{:.0} MB", b / 1e6),
        b if b >= 1e6 => format!("{:.1} MB", b / 1e6),
        b if b >= 1e3 => format!("{:.1} kB", b / 1e3),
        b => format!("{b} B"),
    }
}
