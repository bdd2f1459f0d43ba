//! The kernel: checked and raw calls of compiled code, and the facts of it.

mod buffers;
mod call;
mod check;
pub(crate) mod code;
mod enter;
mod facts;

pub use crate::link::Entry;
pub use buffers::{Element, Input, Output};
pub use enter::Call;
pub(crate) use enter::{Memory, Routine};
pub use facts::{Facts, StepLoops, WideFunctions};

use crate::kernel::code::Compiled;
use crate::keyed::{Expected, KeyedSpec};
use crate::schedule::{Decided, Schedule};
use crate::spec::{OutputDesc, Spec};
use crate::vectors::Vectors;
use cranefold_ir::DType;
use enter::Direct;
use std::sync::Arc;

/// The native code of a reduction, given as a spec, a problem or a nest. Cheap to clone; threads may share it.
///
/// The executable memory is freed when the last kernel that uses it is dropped and the compiler no longer keeps it.
///
/// Kernels assume the default floating-point environment: round to nearest even, subnormals kept.
#[derive(Clone, Debug)]
pub struct Kernel(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    keyed: KeyedSpec,
    compiled: Arc<Compiled>,
    /// The function of the only part; `None` if there are more parts, or the code is for another machine. It takes the
    /// pointers of a call directly.
    alone: Option<Entry>,
    direct: Option<Direct>,
}

impl Kernel {
    pub(crate) fn new(keyed: KeyedSpec, compiled: Arc<Compiled>) -> Kernel {
        let direct = Direct::of(&keyed, &compiled);
        Kernel(Arc::new(Inner { keyed, alone: compiled.alone(), compiled, direct }))
    }

    pub(crate) fn compiled(&self) -> &Compiled {
        &self.0.compiled
    }

    /// The spec; none of a kernel of a problem or a nest.
    pub fn spec(&self) -> Option<&Spec> {
        self.0.keyed.spec()
    }

    /// The spec, the problem or the nest, with the signature of this code.
    pub fn keyed_spec(&self) -> &KeyedSpec {
        &self.0.keyed
    }

    /// The problem with the decisions that its code was made by.
    pub fn decided(&self) -> &Decided {
        &self.0.compiled.decided
    }

    /// The schedule of the code.
    pub fn schedule(&self) -> &Schedule {
        &self.0.compiled.decided.schedule
    }

    /// The vectors of the code.
    pub fn vectors(&self) -> Vectors {
        self.0.compiled.decided.vectors
    }

    /// The machine code: the function that a call enters, then its wide functions; for several parts, one code after
    /// the other. Addresses of functions are zero in it, so that equal code has equal bytes wherever it lies.
    pub fn code(&self) -> Vec<u8> {
        self.0.compiled.bytes()
    }

    /// Returns true if two kernels run one code in memory.
    pub fn shares_code(&self, other: &Kernel) -> bool {
        Arc::ptr_eq(&self.0.compiled, &other.0.compiled)
    }

    /// Bytes of scratch memory that a call needs, for all parts: 0 unless slices of selections or states do not fit the
    /// stack, or parts leave states for a finish. [`run_on`](Kernel::run_on) allocates it for each call.
    pub fn scratch_bytes(&self) -> u64 {
        self.0.compiled.layout.scratch_bytes
    }

    /// Bytes of scratch memory that [`run`](Kernel::run) needs, which runs one part after the other: at most
    /// [`scratch_bytes`](Kernel::scratch_bytes). It allocates them for each call;
    /// [`run_in`](Kernel::run_in) takes the caller's.
    pub fn run_scratch_bytes(&self) -> u64 {
        self.0.compiled.layout.serial_scratch_bytes
    }

    /// The element type and the number of elements of each input of a call: of its whole buffer.
    pub fn inputs(&self) -> impl Iterator<Item = (DType, u64)> {
        self.0.keyed.expected().0.iter().map(Expected::elements)
    }

    /// The element type and the number of elements of each output of a call: of its whole buffer.
    pub fn outputs(&self) -> impl Iterator<Item = (DType, u64)> {
        self.0.keyed.expected().1.iter().map(Expected::elements)
    }

    /// The outputs: shapes, strides and lengths of their buffers; of a problem or a nest arrays of one axis.
    pub fn output_desc(&self) -> Vec<OutputDesc> {
        let flat = || self.outputs().map(|(dtype, elems)| OutputDesc::flat(dtype, elems)).collect();
        self.spec().map_or_else(flat, Spec::output_desc)
    }

    /// The facts of the kernel.
    pub fn facts(&self) -> Facts {
        facts::facts(&self.0.keyed, &self.0.compiled)
    }
}
