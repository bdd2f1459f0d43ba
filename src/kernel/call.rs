//! A call part by part: for executors and any other scheduler.

use super::check::check;
use super::{FEW, Input, Kernel, Line, Output, scratch};
use crate::error::{CallError, panic_message};
use crate::executor::Executor;
use crate::link::SCRATCH_ALIGN;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

/// A part has not been run, is being run, has been run.
const LEFT: u8 = 0;
const BEGUN: u8 = 1;
const DONE: u8 = 2;

/// A call whose parts any scheduler may run: each once, in any order and on any threads, and then [`finish`](Call::finish).
/// What the outputs hold before that is not said.
///
/// ```
/// use cranefold::{Compiler, Input, Output, Reduction};
///
/// let compiler = Compiler::builder().threads(2).build()?;
/// let spec: Reduction = "sum f32[1000000]".parse()?;
/// let kernel = compiler.compile(&spec)?;
/// let (x, mut sum) = (vec![1.0f32; 1_000_000], [0.0f32]);
/// let (inputs, mut outputs) = ([Input::from(&x[..])], [Output::from(&mut sum[..])]);
/// let call = kernel.call(&inputs, &mut outputs)?;
/// for part in (0..call.parts()).rev() {
///     call.run_part(part)?;
/// }
/// call.finish()?;
/// assert_eq!(sum, [1e6]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Call<'a> {
    kernel: &'a Kernel,
    /// One for each input and output, then that of the scratch memory.
    buffers: Vec<*mut u8>,
    /// The scratch memory, where the call owns it.
    _scratch: Vec<Line>,
    parts: Box<[AtomicU8]>,
    borrow: PhantomData<&'a mut [u8]>,
}

// SAFETY: the pointers go to inputs, which are shared borrows, and to outputs and scratch memory, which the call borrows
// alone or owns; all for 'a. Through `&Call` each part is run at most once, by `parts`, and no two parts write one byte or
// one reads what another writes.
unsafe impl Sync for Call<'_> {}
// SAFETY: as above; nothing in it belongs to a thread.
unsafe impl Send for Call<'_> {}

impl<'a> Call<'a> {
    /// How many parts there are, at least one.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Runs a part.
    ///
    /// # Errors
    /// [`CallError::Part`] if there is no such part, [`CallError::PartTwice`] if it was run before: nothing is done then.
    pub fn run_part(&self, part: usize) -> Result<(), CallError> {
        let parts = self.parts();
        let state = self.parts.get(part).ok_or(CallError::Part { given: part, parts })?;
        if state.compare_exchange(LEFT, BEGUN, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return Err(CallError::PartTwice { part, parts });
        }
        // SAFETY: the buffers were checked when the call was made, and are borrowed as long as it lives; the part has not
        // been run before.
        unsafe { self.kernel.run_part_raw(part, self.buffers.as_ptr())? };
        state.store(DONE, Ordering::Release);
        Ok(())
    }

    /// Ends the call: after this the outputs hold the results.
    ///
    /// # Errors
    /// [`CallError::PartLeft`] if a part has not been run.
    pub fn finish(self) -> Result<(), CallError> {
        let parts = self.parts();
        if let Some(part) = self.parts.iter().position(|state| state.load(Ordering::Acquire) != DONE) {
            return Err(CallError::PartLeft { part, parts });
        }
        // SAFETY: as in `run_part`; all parts have been run, and no thread runs one, for nothing else has the call.
        unsafe { self.kernel.finish_raw(self.buffers.as_ptr()) }
    }
}

impl Kernel {
    /// How many parts a call has, at least one.
    pub fn parts(&self) -> usize {
        self.0.compiled.layout.parts.len()
    }

    /// Runs the kernel on the threads of an executor. One part, which small work has, the calling thread runs itself.
    ///
    /// # Errors
    /// As [`run`](Kernel::run); also if the executor panics or does not run each part once, and then what the outputs hold
    /// is not said.
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

    /// As [`run_on`](Kernel::run_on), of several parts.
    fn run_parts(
        &self,
        executor: &dyn Executor,
        inputs: &[Input<'_>],
        outputs: &mut [Output<'_>],
    ) -> Result<(), CallError> {
        let call = self.call(inputs, outputs)?;
        let first_error = OnceLock::new();
        let run_part = |part| {
            if let Err(error) = call.run_part(part) {
                // Of several any one will do.
                let _ = first_error.set(error);
            }
        };
        // Nothing that a panic leaves half-done is used again: not the call, and not the outputs before they are written.
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
        self.call_at(inputs, outputs, at, own)
    }

    /// As [`call`](Kernel::call), in scratch memory of the caller's: as many bytes as
    /// [`scratch_bytes`](Kernel::scratch_bytes) says or more, aligned to 64, whatever they hold.
    ///
    /// # Errors
    /// Also [`CallError::ScratchLength`] and [`CallError::ScratchAlign`].
    pub fn call_in<'a>(
        &'a self,
        inputs: &'a [Input<'_>],
        outputs: &'a mut [Output<'_>],
        scratch: &'a mut [MaybeUninit<u8>],
    ) -> Result<Call<'a>, CallError> {
        let (given, expected) = (scratch.len() as u64, self.scratch_bytes());
        if given < expected {
            return Err(CallError::ScratchLength { given, expected });
        }
        let address = scratch.as_ptr().addr() as u64;
        if expected > 0 && !address.is_multiple_of(SCRATCH_ALIGN) {
            return Err(CallError::ScratchAlign { address, align: SCRATCH_ALIGN });
        }
        self.call_at(inputs, outputs, scratch.as_mut_ptr().cast(), vec![])
    }

    fn call_at<'a>(
        &'a self,
        inputs: &'a [Input<'_>],
        outputs: &'a mut [Output<'_>],
        scratch: *mut u8,
        own: Vec<Line>,
    ) -> Result<Call<'a>, CallError> {
        check(&self.0.request, inputs, outputs)?;
        if self.0.compiled.codes.iter().any(|code| code.entry().is_none()) {
            return Err(self.foreign());
        }
        let buffers = inputs.iter().map(|i| i.start.cast_mut()).chain(outputs.iter().map(|o| o.start));
        let buffers = buffers.chain([scratch]).collect();
        let parts = (0..self.parts()).map(|_| AtomicU8::new(LEFT)).collect();
        Ok(Call { kernel: self, buffers, _scratch: own, parts, borrow: PhantomData })
    }

    /// Runs a part on raw pointers.
    ///
    /// # Errors
    /// [`CallError::Part`] if there is no such part, [`CallError::Foreign`] if the kernel is for another machine.
    ///
    /// # Safety
    /// As [`run_raw`](Kernel::run_raw), where all parts of a call, and what finishes it, have the same pointers. Parts may
    /// run in any order and at once, each once.
    pub unsafe fn run_part_raw(&self, part: usize, buffers: *const *mut u8) -> Result<(), CallError> {
        // SAFETY: the caller keeps the contract; each part has scratch memory of its own.
        unsafe { self.run_part_in(part, part, buffers) }
    }

    /// Runs a part in the scratch memory of another.
    ///
    /// # Safety
    /// As [`run_part_raw`](Kernel::run_part_raw), and no part that runs at the same time has that memory.
    pub(super) unsafe fn run_part_in(
        &self,
        part: usize,
        memory: usize,
        buffers: *const *mut u8,
    ) -> Result<(), CallError> {
        let layout = &self.0.compiled.layout;
        let parts = layout.parts.len();
        let of = layout.parts.get(part).ok_or(CallError::Part { given: part, parts })?;
        // SAFETY: the starts are those of the part; its nest keeps within what is left of each buffer, as `program` asserts.
        unsafe { self.enter_at(of.code, buffers, memory, |buffer| of.starts.get(buffer).copied().unwrap_or(0)) }
    }

    /// Ends a call on raw pointers, after all its parts.
    ///
    /// # Errors
    /// [`CallError::Foreign`] if the kernel is for another machine.
    ///
    /// # Safety
    /// As [`run_part_raw`](Kernel::run_part_raw); all parts have been run, and what they wrote is seen.
    pub unsafe fn finish_raw(&self, buffers: *const *mut u8) -> Result<(), CallError> {
        if !self.0.compiled.layout.has_finish {
            return Ok(());
        }
        // SAFETY: the caller keeps the contract; the last code is that of the finish.
        unsafe { self.enter_at(self.0.compiled.codes.len() - 1, buffers, 0, |_| 0) }
    }

    /// Enters a code with its buffers from `starts` on, and the scratch memory of a part.
    ///
    /// # Safety
    /// As [`run_part_raw`](Kernel::run_part_raw); the starts are bytes, within the buffers.
    unsafe fn enter_at(
        &self,
        code: usize,
        buffers: *const *mut u8,
        part: usize,
        start: impl Fn(usize) -> usize,
    ) -> Result<(), CallError> {
        let layout = &self.0.compiled.layout;
        let operands = self.spec().inputs().len() + self.spec().outputs().len();
        let scratch = match layout.scratch_bytes {
            0 => std::ptr::null_mut(),
            // SAFETY: the caller gives a pointer to scratch memory after those to buffers where there is any.
            _ => unsafe { *buffers.add(operands) },
        };
        let pointer = |buffer: usize| {
            let base = match buffer.checked_sub(operands) {
                // SAFETY: the caller gives a pointer for each input and output.
                None => unsafe { *buffers.add(buffer) },
                Some(state) => scratch.wrapping_add(layout.states[state]),
            };
            base.wrapping_add(start(buffer))
        };
        let all = operands + layout.states.len();
        let own = scratch.wrapping_add(layout.scratch + part * layout.scratch_each);
        let pointers = (0..all).map(pointer).chain([own]);
        if all < FEW {
            let mut list = [std::ptr::null_mut(); FEW];
            list.iter_mut().zip(pointers).for_each(|(place, pointer)| *place = pointer);
            // SAFETY: the buffers of the code in its order, moved to where the part begins in each, then scratch memory
            // that no other part has: `layout` was made with the code.
            unsafe { self.enter(code, list.as_ptr()) }
        } else {
            let list: Vec<*mut u8> = pointers.collect();
            // SAFETY: as above.
            unsafe { self.enter(code, list.as_ptr()) }
        }
    }
}
