//! Calls part by part, for executors and other schedulers of parts.

use super::enter::{check_scratch, scratch};
use super::{Call, Input, Kernel, Output};
use crate::error::{CallError, panic_message};
use crate::executor::Executor;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

impl Kernel {
    /// The number of parts of a call, at least one.
    pub fn parts(&self) -> usize {
        self.0.compiled.layout.parts.len()
    }

    /// Runs the kernel on the threads of an executor. A single part, which small work has, runs on the calling thread.
    ///
    /// # Errors
    /// As [`run`](Kernel::run); also if the executor panics or does not run each part once, and then the contents of
    /// the outputs are undefined.
    #[inline]
    pub fn run_on(
        &self,
        executor: &dyn Executor,
        inputs: &[Input<'_>],
        outputs: &mut [Output<'_>],
    ) -> Result<(), CallError> {
        if self.run_direct(inputs, outputs) {
            return Ok(());
        }
        match self.0.compiled.layout.parts.len() {
            1 => self.run_indirect(inputs, outputs),
            _ => self.run_parts(executor, inputs, outputs),
        }
    }

    /// Runs a kernel of several parts; otherwise as [`run_on`](Kernel::run_on).
    fn run_parts(
        &self,
        executor: &dyn Executor,
        inputs: &[Input<'_>],
        outputs: &mut [Output<'_>],
    ) -> Result<(), CallError> {
        self.run_call(executor, self.call(inputs, outputs)?)
    }

    /// Runs the parts of a call on the threads of an executor, and ends it.
    ///
    /// # Errors
    /// If the executor panics or does not run each part once.
    pub(super) fn run_call(&self, executor: &dyn Executor, call: Call<'_>) -> Result<(), CallError> {
        let first_error = OnceLock::new();
        let run_part = |part| {
            if let Err(error) = call.run_part(part) {
                // The first of several errors is kept.
                let _ = first_error.set(error);
            }
        };
        // A panic leaves nothing half-done that is used again: the call ends, and outputs are written before they are
        // read.
        catch_unwind(AssertUnwindSafe(|| executor.run(call.parts(), &run_part)))
            .map_err(|panic| CallError::Executor { message: panic_message(&*panic) })?;
        match first_error.into_inner() {
            Some(error) => Err(error),
            None => call.finish(),
        }
    }

    /// A call whose parts the caller runs.
    ///
    /// # Errors
    /// As [`run`](Kernel::run).
    pub fn call<'a>(&'a self, inputs: &'a [Input<'_>], outputs: &'a mut [Output<'_>]) -> Result<Call<'a>, CallError> {
        let mut own = scratch(self.scratch_bytes())?;
        let at = own.as_mut_ptr().cast();
        Call::new(self, inputs, outputs, at, own)
    }

    /// A call whose parts the caller runs, in the caller's scratch memory: at least
    /// [`scratch_bytes`](Kernel::scratch_bytes) bytes, aligned to 64, of any content.
    ///
    /// # Errors
    /// As [`call`](Kernel::call); also [`CallError::ScratchLength`] and [`CallError::ScratchAlign`].
    pub fn call_in<'a>(
        &'a self,
        inputs: &'a [Input<'_>],
        outputs: &'a mut [Output<'_>],
        scratch: &'a mut [MaybeUninit<u8>],
    ) -> Result<Call<'a>, CallError> {
        check_scratch(scratch, self.scratch_bytes())?;
        Call::new(self, inputs, outputs, scratch.as_mut_ptr().cast(), vec![])
    }
}
