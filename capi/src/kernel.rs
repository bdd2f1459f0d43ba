//! The kernel: its operands, and the facts that a caller allocates by.

use crate::error::{Failure, OwnedError, free, give, given, guard, place};
use crate::tensor::{Description, Operand, Plain};
use cranefold::Spinning;
use cranefold::kernel::Entry;
use std::ffi::{CString, c_char, c_void};
use std::ops::Deref;
use std::sync::Arc;

/// A kernel with its operands; clones share them.
#[derive(Clone, Debug)]
pub struct Kernel(Arc<Inner>);

/// The state that the clones of a kernel share.
#[derive(Debug)]
pub struct Inner {
    pub kernel: cranefold::Kernel,
    /// The threads that run it; `None` for the calling one alone.
    pub pool: Option<Arc<Spinning>>,
    pub inputs: Vec<Operand>,
    pub outputs: Vec<Operand>,
    pub direct: Option<Direct>,
    text: CString,
}

/// The function of a kernel of one input, one output and no scratch memory, both of them plain.
#[derive(Debug)]
pub struct Direct {
    pub entry: Entry,
    pub input: Plain,
    pub output: Plain,
}

impl Deref for Kernel {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Kernel {
    pub fn new(kernel: cranefold::Kernel, pool: Option<Arc<Spinning>>) -> Kernel {
        let spec = kernel.spec().expect("a kernel of a spec");
        let names = spec.expression_names();
        let inputs: Vec<Operand> = spec.inputs().iter().zip(&names).map(|(o, name)| Operand::of(o, name)).collect();
        let outputs: Vec<Operand> = spec.outputs().iter().map(|o| Operand::of(o, "")).collect();
        let text = CString::new(spec.to_string()).unwrap_or_default();
        let direct = match (inputs.as_slice(), outputs.as_slice(), kernel.entry()) {
            ([input], [output], Some(entry)) if kernel.scratch_bytes() == 0 => {
                input.plain().zip(output.plain()).map(|(input, output)| Direct { entry, input, output })
            }
            _ => None,
        };
        Kernel(Arc::new(Inner { kernel, pool, inputs, outputs, direct, text }))
    }
}

/// Another handle of a kernel.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_kernel_clone(kernel: *const Kernel, clone: *mut *mut Kernel) -> *mut OwnedError {
    guard(|| {
        // SAFETY: the caller keeps the header's contract.
        let (into, kernel) = unsafe { (place(clone, "clone")?, given(kernel, "kernel")?) };
        give(into, kernel.clone());
        Ok(())
    })
}

/// Frees a handle of a kernel.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_kernel_free(kernel: *mut Kernel) {
    // SAFETY: the caller keeps the header's contract.
    unsafe { free(kernel) }
}

/// The text of the kernel's spec, which lives as long as a handle of the kernel; the empty text of null.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_kernel_spec(kernel: *const Kernel) -> *const c_char {
    // SAFETY: the caller keeps the header's contract.
    unsafe { kernel.as_ref() }.map_or(c"", |kernel| &kernel.text).as_ptr()
}

/// The number of inputs of a call; 0 of null.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_kernel_inputs(kernel: *const Kernel) -> usize {
    // SAFETY: the caller keeps the header's contract.
    unsafe { kernel.as_ref() }.map_or(0, |kernel| kernel.inputs.len())
}

/// The number of outputs of a call; 0 of null.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_kernel_outputs(kernel: *const Kernel) -> usize {
    // SAFETY: the caller keeps the header's contract.
    unsafe { kernel.as_ref() }.map_or(0, |kernel| kernel.outputs.len())
}

/// Writes the description of an operand.
fn describe(
    operands: &[Operand],
    number: usize,
    role: &str,
    into: &mut std::mem::MaybeUninit<Description>,
) -> Result<(), Failure> {
    let operand = operands.get(number);
    let message = || format!("there is no {role} {number}: the kernel has {}", operands.len());
    let refused = || Failure::new(crate::error::Code::Argument, message());
    into.write(operand.ok_or_else(refused)?.description());
    Ok(())
}

/// Describes an input.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_kernel_input(
    kernel: *const Kernel,
    number: usize,
    operand: *mut Description,
) -> *mut OwnedError {
    // SAFETY: the caller keeps the header's contract.
    guard(|| unsafe { describe(&given(kernel, "kernel")?.inputs, number, "input", place(operand, "operand")?) })
}

/// Describes an output.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_kernel_output(
    kernel: *const Kernel,
    number: usize,
    operand: *mut Description,
) -> *mut OwnedError {
    // SAFETY: the caller keeps the header's contract.
    guard(|| unsafe { describe(&given(kernel, "kernel")?.outputs, number, "output", place(operand, "operand")?) })
}

/// The number of parts of a call; 0 of null.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_kernel_parts(kernel: *const Kernel) -> usize {
    // SAFETY: the caller keeps the header's contract.
    unsafe { kernel.as_ref() }.map_or(0, |kernel| kernel.kernel.parts())
}

/// Bytes of scratch memory of `cranefold_run_in` and the raw calls; 0 of null.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_kernel_run_scratch(kernel: *const Kernel) -> u64 {
    // SAFETY: the caller keeps the header's contract.
    unsafe { kernel.as_ref() }.map_or(0, |kernel| kernel.kernel.run_scratch_bytes())
}

/// Bytes of scratch memory of `cranefold_call_new`; 0 of null.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_kernel_call_scratch(kernel: *const Kernel) -> u64 {
    // SAFETY: the caller keeps the header's contract.
    unsafe { kernel.as_ref() }.map_or(0, |kernel| kernel.kernel.scratch_bytes())
}

/// The function of the kernel's machine code; null if it has several parts.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_kernel_entry(kernel: *const Kernel) -> Option<Entry> {
    // SAFETY: the caller keeps the header's contract.
    unsafe { kernel.as_ref() }.and_then(|kernel| kernel.kernel.entry())
}

/// Runs a kernel on raw pointers, without a check of any of them.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_run_raw(kernel: *const Kernel, pointers: *const *mut c_void) -> *mut OwnedError {
    guard(|| {
        // SAFETY: the caller keeps the header's contract.
        let kernel = unsafe { given(kernel, "kernel")? };
        if pointers.is_null() {
            return Err(Failure::null("pointers"));
        }
        // SAFETY: the caller keeps the header's contract, which is that of `run_raw`.
        unsafe { kernel.kernel.run_raw(pointers.cast()) }.map_err(Failure::from)
    })
}
