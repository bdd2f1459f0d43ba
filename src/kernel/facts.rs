//! The facts of a kernel.

use crate::kernel::code::Compiled;
use crate::keyed::{Expected, KeyedSpec};
use crate::problem::IndexBox;
use crate::problem::tree::Tree;
use crate::schedule::{Decided, Divided, Schedule};
use crate::spec::Operand;
use cranefold_ir::{LoopKind, Nest, Over, Stmt};

/// The facts of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Bytes of all elements read and written, each element once; of a problem or a nest, those of its buffers.
    pub bytes: u64,
    /// Bytes of the elements written.
    pub written_bytes: u64,
    /// Elements combined: lifts of elements, merges of blocks and folds of lanes; none where it selects, nor of a nest,
    /// which does not say what combines.
    pub combines: u64,
    /// The schedule.
    pub schedule: Schedule,
    /// The number of parts; the schedule asks for about as many.
    pub parts: u64,
    /// The quantity that parts divide; `None` if there is one part.
    pub divided: Option<Divided>,
    /// The number of different codes that parts and the finish run.
    pub codes: u64,
    /// Bytes of machine code with its constants: Cranelift's, and the wide functions'.
    pub code_bytes: u64,
    /// Bytes of executable memory: whole lines of 64 bytes, or whole pages where the system gives no others.
    pub memory_bytes: u64,
    /// The kernel's wide functions.
    pub wide_functions: WideFunctions,
    /// Loops over steps of the reduction, without unrolled ones.
    pub step_loops: StepLoops,
    /// Bytes of scratch memory that a call works in.
    pub scratch_bytes: u64,
    /// The time of the compilation, in nanoseconds.
    pub compile_ns: u64,
}

/// The wide functions of a kernel: functions of wide vectors, which Cranelift's code calls, or one that is all of a nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WideFunctions {
    /// The number of wide functions.
    pub count: u64,
    /// Bytes of their machine code with its constants. The rest of the kernel's code is Cranelift's.
    pub code_bytes: u64,
    /// Bits of their vectors; 0 if there are no wide functions.
    pub vector_bits: u32,
}

/// The number of loops over steps, by the generator of their code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepLoops {
    /// Loops in wide functions.
    pub in_wide: u64,
    /// Loops in Cranelift's code.
    pub outside: u64,
}

impl StepLoops {
    pub(crate) fn of<'n>(nests: impl Iterator<Item = &'n Nest>) -> StepLoops {
        let is_over_steps =
            |s: &Stmt| matches!(s, Stmt::For(l) if l.var.over == Over::Step && l.kind != LoopKind::Lanes);
        let (mut all, mut in_wide) = (0, 0);
        let mut count = |s: &Stmt| {
            all += u64::from(is_over_steps(s));
            if let Stmt::Wide { body } = s {
                body.iter().for_each(|s| s.visit(&mut |s| in_wide += u64::from(is_over_steps(s))));
            }
        };
        nests.for_each(|nest| nest.visit(&mut count));
        StepLoops { in_wide, outside: all - in_wide }
    }

    /// Returns true if all loops over steps are in wide functions.
    pub fn are_in_wide(self) -> bool {
        self.outside == 0
    }
}

pub(super) fn facts(keyed: &KeyedSpec, compiled: &Compiled) -> Facts {
    let (read, written) = moved_bytes(keyed);
    let parts = compiled.layout.parts.len();
    Facts {
        bytes: read.saturating_add(written),
        written_bytes: written,
        combines: combines(compiled),
        schedule: compiled.decided.schedule.clone(),
        parts: parts as u64,
        divided: (parts > 1).then_some(compiled.decided.schedule.parts.of),
        codes: compiled.codes.len() as u64,
        scratch_bytes: compiled.layout.scratch_bytes,
        code_bytes: compiled.code_bytes(),
        memory_bytes: compiled.memory_bytes(),
        wide_functions: wide_functions(compiled),
        step_loops: compiled.step_loops,
        compile_ns: compiled.compile_ns,
    }
}

/// Bytes of all elements read, and of those written: of a spec each element once, else whole buffers.
fn moved_bytes(keyed: &KeyedSpec) -> (u64, u64) {
    let Some(spec) = keyed.spec() else {
        let (inputs, outputs) = keyed.expected();
        return (sum(inputs.iter().map(Expected::bytes)), sum(outputs.iter().map(Expected::bytes)));
    };
    let bytes = |o: &Operand| o.elems().saturating_mul(o.dtype().bytes());
    (sum(spec.inputs().iter().map(bytes)), sum(spec.outputs().iter().map(bytes)))
}

fn sum(bytes: impl Iterator<Item = u64>) -> u64 {
    bytes.fold(0, u64::saturating_add)
}

fn combines(compiled: &Compiled) -> u64 {
    let Decided { source, schedule, .. } = &compiled.decided;
    let Some(problem) = source.problem() else { return 0 };
    let slices = problem.slices.iter().map(IndexBox::positions).fold(0, u64::saturating_add);
    let reducer = problem.reducer_in(schedule.form).filter(|r| !r.method.phases().is_empty());
    let Some(reducer) = reducer.filter(|_| !problem.elements().is_empty() && slices > 0) else { return 0 };
    let tree = Tree::of(&problem.walks[0], &reducer.method);
    let lanes = tree.lanes_present();
    let (looks, each) = match (compiled.windows(), reducer.method.phases().len() as u64) {
        (Some(windows), _) => (1, windows.elements + tree.lanes * (windows.whole + 1) + 2 * (tree.lanes - 1)),
        (None, 1) => (1, tree.blocks() * lanes - 1),
        (None, looks) => (looks, tree.blocks() * (lanes - 1) * looks + tree.blocks() - 1),
    };
    problem.elements_read().saturating_mul(looks).saturating_add(slices.saturating_mul(each))
}

fn wide_functions(compiled: &Compiled) -> WideFunctions {
    let bytes: Vec<u64> = compiled.codes.iter().flat_map(|code| code.wide_bytes()).collect();
    let vector_bits = if bytes.is_empty() { 0 } else { compiled.decided.vectors.bits };
    WideFunctions { count: bytes.len() as u64, code_bytes: bytes.iter().sum(), vector_bits }
}
