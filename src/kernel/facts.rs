//! What is known of a kernel.

use crate::compiled::Compiled;
use crate::problem::Region;
use crate::schedule::Schedule;
use crate::spec::Reduction;
use crate::tree::Tree;

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

pub(super) fn facts(spec: &Reduction, compiled: &Compiled) -> Facts {
    let operands = spec.inputs().iter().chain(spec.outputs());
    let problem = &compiled.signature.problem;
    let outputs = problem.slices.iter().map(Region::positions).fold(0, u64::saturating_add);
    let combines = match problem
        .reducer()
        .filter(|r| !r.method.phases().is_empty() && !problem.elements.is_empty() && outputs > 0)
    {
        None => 0,
        Some(reducer) => {
            let tree = Tree::of(problem, &reducer.method);
            let phases = reducer.method.phases().len() as u64;
            let each = if phases == 1 {
                tree.blocks() * tree.lanes_present() - 1
            } else {
                tree.blocks() * (tree.lanes_present() - 1) * phases + tree.blocks() - 1
            };
            problem.elements_read().saturating_mul(phases).saturating_add(outputs.saturating_mul(each))
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
