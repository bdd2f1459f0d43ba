//! What the compiler keeps: the code of a signature, and how it was made.

use crate::jit::{Code, SCRATCH_ALIGN};
use crate::kernel::StepLoops;
use crate::problem::Problem;
use crate::program::{Part, Program};
use crate::schedule::Schedule;
use crate::target::Target;
use crate::tree::Tree;
use crate::vectors::Vectors;
use crate::windows::Windows;

/// What identifies code: everything that changes it, and nothing else.
///
/// A compiler has one target; what it compiles for it is told apart by this.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Signature {
    /// The problem.
    pub problem: Problem,
    /// Bits of the widest vector: what the choice of a schedule is given, or where one is forced, bits of the
    /// vectors its code is made of.
    pub width: u32,
    /// The schedule that was forced, if any.
    pub schedule: Option<Schedule>,
    /// The threads that the choice of a schedule is given; 1 where one is forced, which says its parts itself.
    pub threads: usize,
    /// The version of the reduction tree.
    pub tree_version: u32,
}

/// The code of a signature and what is known of it.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub signature: Signature,
    pub schedule: Schedule,
    /// What the code is made of.
    pub vectors: Vectors,
    pub target: Target,
    /// The code of each nest of the program, that of the finish last.
    pub codes: Vec<Code>,
    /// The bytes of all of it.
    pub bytes: Vec<u8>,
    pub layout: Layout,
    pub step_loops: StepLoops,
    pub compile_ns: u64,
}

impl Compiled {
    /// The windows in which each slice is searched, if it is.
    pub fn windows(&self) -> Option<Windows> {
        let problem = &self.signature.problem;
        if self.layout.has_finish || problem.elements.is_empty() {
            return None;
        }
        let reducer = problem.reducer()?;
        Windows::of(problem, &reducer, &Tree::of(problem, &reducer.method))
    }
}

/// Where parts find their buffers, in bytes.
#[derive(Debug)]
pub(crate) struct Layout {
    pub parts: Vec<PartLayout>,
    /// Whether the last code is of what runs after the parts.
    pub has_finish: bool,
    /// Where each buffer of states begins in scratch memory.
    pub states: Vec<usize>,
    /// Where the scratch memory of part 0 begins, after that of states.
    pub scratch: usize,
    /// Scratch memory of each part, and of the finish, which takes that of part 0.
    pub scratch_each: usize,
    /// All scratch memory.
    pub scratch_bytes: u64,
    /// That of states and one part: enough for one part after the other.
    pub serial_scratch_bytes: u64,
}

/// A part.
#[derive(Debug)]
pub(crate) struct PartLayout {
    /// Its code.
    pub code: usize,
    /// Where each of its buffers begins in that of the call.
    pub starts: Vec<usize>,
}

impl Layout {
    /// Of a program and its code.
    pub fn of(program: &Program, codes: &[Code]) -> Layout {
        let mut end: u64 = 0;
        let mut after = |bytes: u64| {
            let start = end;
            end = end.saturating_add(bytes).saturating_add(SCRATCH_ALIGN - 1) / SCRATCH_ALIGN * SCRATCH_ALIGN;
            start as usize
        };
        let states = program.states().iter().map(|b| after(b.len.saturating_mul(b.dtype.bytes()))).collect();
        let each = codes.iter().map(Code::scratch_bytes).max().unwrap_or(0);
        debug_assert!(each.is_multiple_of(SCRATCH_ALIGN), "so that the memory of each part is aligned");
        let scratch = after(each.saturating_mul(program.parts.len() as u64));
        let part = |part: &Part| {
            let buffers = &program.nests[part.nest].buffers;
            let starts = buffers.iter().zip(&part.starts).map(|(b, at)| (at * b.dtype.bytes()) as usize);
            PartLayout { code: part.nest, starts: starts.collect() }
        };
        Layout {
            parts: program.parts.iter().map(part).collect(),
            has_finish: program.finish.is_some(),
            states,
            scratch,
            scratch_each: each as usize,
            serial_scratch_bytes: scratch as u64 + each,
            scratch_bytes: end,
        }
    }
}
