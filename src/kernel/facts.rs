//! What is known of a kernel.

use crate::compiled::Compiled;
use crate::schedule::Schedule;
use crate::spec::Reduction;
use crate::tree::Tree;
use cranefold_ir::DType;

/// An output: where its elements lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputDesc {
    /// Element type.
    pub dtype: DType,
    /// Extents, as the user sees them.
    pub shape: Vec<u64>,
    /// Strides in elements.
    pub strides: Vec<i64>,
    /// Length of the buffer in elements.
    pub span_elems: u64,
    /// Length of the buffer in bytes.
    pub span_bytes: u64,
}

/// What is known of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Bytes of all elements read and written, each element once.
    pub bytes: u64,
    /// Elements combined: lifts of elements, merges of blocks and folds of lanes; none where it selects.
    pub combines: u64,
    /// The schedule.
    pub schedule: Schedule,
    /// Bytes of machine code.
    pub code_bytes: u64,
    /// Bytes of scratch memory that a call works in.
    pub scratch_bytes: u64,
    /// How long the compilation took, in nanoseconds.
    pub compile_ns: u64,
}

pub(super) fn output_desc(spec: &Reduction) -> Vec<OutputDesc> {
    let desc = |o: &crate::spec::Operand| OutputDesc {
        dtype: o.dtype(),
        shape: o.shape().to_vec(),
        strides: o.strides().to_vec(),
        span_elems: o.span_elems(),
        span_bytes: o.span_bytes(),
    };
    spec.outputs().iter().map(desc).collect()
}

pub(super) fn facts(spec: &Reduction, compiled: &Compiled) -> Facts {
    let operands = spec.inputs().iter().chain(spec.outputs());
    let problem = &compiled.signature.problem;
    let elements: u64 = problem.dims.iter().map(|d| d.extent).product();
    let outputs: u64 = problem.dims.iter().filter(|d| !d.reduced).map(|d| d.extent).product();
    let combines = match problem
        .reducer()
        .filter(|r| !r.method.phases().is_empty() && problem.count > 0 && !problem.dims.is_empty())
    {
        None => 0,
        Some(reducer) => {
            let tree = Tree::of(problem, &reducer.method);
            let phases = reducer.method.phases().len() as u64;
            let innermost = problem.dims.iter().rfind(|d| d.reduced).map_or(1, |d| d.extent);
            let lanes = tree.lanes.min(innermost);
            let each = if phases == 1 {
                tree.blocks() * lanes - 1
            } else {
                tree.blocks() * (lanes - 1) * phases + tree.blocks() - 1
            };
            elements * phases + outputs * each
        }
    };
    Facts {
        bytes: operands.fold(0, |sum: u64, o| sum.saturating_add(o.elems().saturating_mul(o.dtype().bytes()))),
        combines,
        schedule: compiled.schedule.clone(),
        scratch_bytes: compiled.code.scratch_bytes(),
        code_bytes: compiled.code.bytes().len() as u64,
        compile_ns: compiled.compile_ns,
    }
}
