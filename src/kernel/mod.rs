//! The kernel: checked and raw calls of compiled code, and the facts of it.

mod buffers;
mod call;
mod check;
pub(crate) mod code;
mod enter;
mod facts;

pub use buffers::{Element, Input, Output};
pub use enter::Call;
pub(crate) use enter::{Memory, Routine};
pub use facts::{Facts, StepLoops, WideFunctions};

use crate::kernel::code::Compiled;
use crate::keyed::KeyedSpec;
use crate::link::Entry;
use crate::schedule::{Decided, Schedule};
use crate::spec::Spec;
use crate::vectors::Vectors;
use enter::Direct;
use std::sync::Arc;

/// A compiled reduction. Cheap to clone; threads may share it.
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

    /// The spec.
    pub fn spec(&self) -> &Spec {
        self.0.keyed.spec()
    }

    /// The spec with the signature of this code.
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
    /// the other.
    pub fn code(&self) -> &[u8] {
        &self.0.compiled.bytes
    }

    /// Bytes of scratch memory that a call needs, for all parts: 0 unless slices of selections or states do not fit the
    /// stack, or parts leave states for a finish. [`run_on`](Kernel::run_on) allocates it for each call;
    /// [`run`](Kernel::run) runs one part after the other, and allocates that of one.
    pub fn scratch_bytes(&self) -> u64 {
        self.0.compiled.layout.scratch_bytes
    }

    /// The shapes, strides and buffer lengths of the outputs.
    pub fn output_desc(&self) -> Vec<crate::spec::OutputDesc> {
        self.spec().output_desc()
    }

    /// The facts of the kernel.
    pub fn facts(&self) -> Facts {
        facts::facts(self.spec(), &self.0.compiled)
    }
}
