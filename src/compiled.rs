//! What the compiler keeps: the code of a signature, and how it was made.

use crate::jit::Code;
use crate::kernel::StepLoops;
use crate::problem::Problem;
use crate::schedule::Schedule;
use crate::target::Target;
use crate::vectors::Vectors;

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
    pub code: Code,
    pub step_loops: StepLoops,
    pub compile_ns: u64,
}
