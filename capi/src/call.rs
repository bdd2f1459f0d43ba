//! Calls whose parts the caller's scheduler runs.

use crate::error::{Code, Failure, OwnedError, free, give, given, guard, place};
use crate::kernel::Kernel;
use crate::run::{Buffers, Given, scratch_memory};
use crate::tensor::Tensor;
use cranefold::CallError;
use std::ffi::c_void;
use std::sync::{RwLock, TryLockError};

/// A call of a kernel; `None` once it is finished. Parts share the lock, and none ever waits for it.
#[derive(Debug)]
pub struct Call {
    /// Before the kernel, which it borrows.
    call: RwLock<Option<cranefold::Call<'static>>>,
    parts: usize,
    _kernel: Box<cranefold::Kernel>,
}

/// The failure of a call that another thread finishes.
fn ended<T>(_: TryLockError<T>) -> Failure {
    Failure::new(Code::Call, "a part runs on another thread, or it finishes the call")
}

fn finished() -> Failure {
    Failure::new(Code::Call, "the call is finished")
}

/// Begins a call.
///
/// # Safety
/// As the header says.
#[allow(clippy::too_many_arguments, reason = "two lists of tensors in C are four arguments")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_call_new(
    kernel: *const Kernel,
    inputs: *const Tensor,
    input_count: usize,
    outputs: *const Tensor,
    output_count: usize,
    scratch: *mut c_void,
    scratch_bytes: usize,
    call: *mut *mut Call,
) -> *mut OwnedError {
    let tensors = Given { inputs, input_count, outputs, output_count };
    guard(|| {
        // SAFETY: the caller keeps the header's contract.
        let (into, kernel) = unsafe { (place(call, "call")?, given(kernel, "kernel")?) };
        // SAFETY: as above.
        let (memory, addresses) = unsafe { scratch_memory(scratch, scratch_bytes)? };
        // SAFETY: as above.
        let Buffers { inputs, mut outputs } = unsafe { tensors.buffers(kernel, &addresses)? };
        let own = Box::new(kernel.kernel.clone());
        let call = match scratch.is_null() {
            true => own.call(&inputs, &mut outputs)?,
            false => own.call_in(&inputs, &mut outputs, memory)?,
        };
        let parts = call.parts();
        // SAFETY: the call borrows the kernel, which stands behind it in its box as long as the call, and the memory of the
        // caller, who keeps it until the call is freed. No input is a value, whose bytes would stand in `inputs`.
        let call = unsafe { std::mem::transmute::<cranefold::Call<'_>, cranefold::Call<'static>>(call) };
        give(into, Call { call: RwLock::new(Some(call)), parts, _kernel: own });
        Ok(())
    })
}

/// The number of parts of a call; 0 of null.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_call_parts(call: *const Call) -> usize {
    // SAFETY: the caller keeps the header's contract.
    unsafe { call.as_ref() }.map_or(0, |call| call.parts)
}

/// Runs a part of a call.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_call_run(call: *const Call, part: usize) -> *mut OwnedError {
    guard(|| {
        // SAFETY: the caller keeps the header's contract.
        let call = unsafe { given(call, "call")? }.call.try_read().map_err(ended)?;
        Ok(call.as_ref().ok_or_else(finished)?.run_part(part)?)
    })
}

/// Ends a call all of whose parts have run.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_call_finish(call: *const Call) -> *mut OwnedError {
    guard(|| {
        // SAFETY: the caller keeps the header's contract.
        let mut call = unsafe { given(call, "call")? }.call.try_write().map_err(ended)?;
        let open = call.as_ref().ok_or_else(finished)?;
        let parts = open.parts();
        open.part_left().map_or(Ok(()), |part| Err(CallError::PartLeft { part, parts }))?;
        Ok(call.take().ok_or_else(finished)?.finish()?)
    })
}

/// Frees a call.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_call_free(call: *mut Call) {
    // SAFETY: the caller keeps the header's contract.
    unsafe { free(call) }
}
