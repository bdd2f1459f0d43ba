//! Checked calls of kernels.

use crate::error::{Code, Failure, OwnedError, given, guard, list, list_mut};
use crate::kernel::Kernel;
use crate::tensor::{Operand, Tensor, overlap};
use cranefold::{Input, Output};
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr::with_exposed_provenance_mut;

/// The buffers of a call, checked: types, shapes, strides, and that no output overlaps another buffer.
pub struct Buffers {
    pub inputs: Vec<Input<'static>>,
    pub outputs: Vec<Output<'static>>,
}

/// The tensors that C gives a call.
#[derive(Clone, Copy)]
pub struct Given {
    pub inputs: *const Tensor,
    pub input_count: usize,
    pub outputs: *const Tensor,
    pub output_count: usize,
}

impl Given {
    /// The buffers of a call of a kernel beside scratch memory at these addresses.
    ///
    /// # Safety
    /// As the header says of calls. The buffers are used while the caller's memory lives.
    pub unsafe fn buffers(self, kernel: &Kernel, scratch: &Range<usize>) -> Result<Buffers, Failure> {
        // SAFETY: the caller keeps the contract.
        let given = unsafe {
            let inputs = list(self.inputs, self.input_count, "inputs")?;
            (inputs, list(self.outputs, self.output_count, "outputs")?)
        };
        // SAFETY: the caller keeps the contract.
        let (inputs, outputs) =
            unsafe { (places("input", &kernel.inputs, given.0)?, places("output", &kernel.outputs, given.1)?) };
        let over = places_taken(kernel, &inputs, &outputs)?;
        let all = inputs.iter().chain(&outputs);
        if all.clone().any(|range| overlap(range, scratch)) {
            return Err(Failure::new(Code::Tensor, "the scratch memory overlaps a tensor"));
        }
        let input = |((operand, range), over): ((&Operand, &Range<usize>), &Option<usize>)| match *over {
            Some(output) => Input::of_output(output),
            // SAFETY: the caller gives as many elements, which nothing writes but outputs, and these do not overlap.
            None => unsafe { Input::from_raw(operand.dtype, at(range), operand.span as usize) },
        };
        let output = |(operand, range): (&Operand, &Range<usize>)| {
            // SAFETY: the caller gives as many elements, which nothing else reads or writes.
            unsafe { Output::from_raw(operand.dtype, at(range), operand.span as usize) }
        };
        Ok(Buffers {
            inputs: kernel.inputs.iter().zip(&inputs).zip(&over).map(input).collect(),
            outputs: kernel.outputs.iter().zip(&outputs).map(output).collect(),
        })
    }
}

/// The pointer to a range of a caller's memory.
fn at(range: &Range<usize>) -> *mut u8 {
    with_exposed_provenance_mut(range.start)
}

/// The addresses of the operands of one role.
///
/// # Safety
/// As [`Operand::place`].
unsafe fn places(role: &str, operands: &[Operand], tensors: &[Tensor]) -> Result<Vec<Range<usize>>, Failure> {
    if operands.len() != tensors.len() {
        let message = format!("{} {role}s are given, and the kernel takes {}", tensors.len(), operands.len());
        return Err(Failure::new(Code::Tensor, message));
    }
    let all = operands.iter().zip(tensors).enumerate();
    // SAFETY: the caller keeps the contract.
    all.map(|(n, (operand, tensor))| unsafe { operand.place_in(tensor, &format_args!("{role} {n}")) }).collect()
}

/// For each input, the output that takes its place.
fn places_taken(
    kernel: &Kernel,
    inputs: &[Range<usize>],
    outputs: &[Range<usize>],
) -> Result<Vec<Option<usize>>, Failure> {
    let mut over = vec![None; inputs.len()];
    for (output, range) in outputs.iter().enumerate() {
        if let Some(other) = outputs[..output].iter().position(|other| overlap(other, range)) {
            let message = format!("outputs {other} and {output} overlap");
            return Err(Failure::new(Code::Tensor, message));
        }
        for (input, read) in inputs.iter().enumerate().filter(|(_, read)| overlap(read, range)) {
            let may_replace = kernel.kernel.spec().is_some_and(|spec| spec.may_replace(output, input));
            if !may_replace || read.start != range.start {
                let message = format!("output {output} overlaps input {input}, and may not take its place");
                return Err(Failure::new(Code::Tensor, message));
            }
            over[input] = Some(output);
        }
    }
    Ok(over)
}

/// Runs a kernel of one input and one output whose tensors need no second look; `None` if it has not run.
///
/// Nothing in it can panic, so that it needs no guard.
///
/// # Safety
/// As the header says of `cranefold_run`.
#[inline(always)]
unsafe fn run_direct(kernel: *const Kernel, given: Given) -> Option<()> {
    // SAFETY: the caller keeps the contract.
    let direct = unsafe { kernel.as_ref() }?.direct.as_ref()?;
    let are_one = given.input_count == 1 && given.output_count == 1;
    let are_aligned = (given.inputs.addr() | given.outputs.addr()).is_multiple_of(align_of::<Tensor>());
    if !are_one || !are_aligned || given.inputs.is_null() || given.outputs.is_null() {
        return None;
    }
    // SAFETY: the caller gives one tensor of each, with a number for each axis.
    let (read, written) = unsafe { (direct.input.place(&*given.inputs)?, direct.output.place(&*given.outputs)?) };
    if read.0 < written.1 && written.0 < read.1 {
        return None;
    }
    let pointers: [*mut u8; 2] = [with_exposed_provenance_mut(read.0), with_exposed_provenance_mut(written.0)];
    // SAFETY: one pointer for each operand, to as many elements as its span has; the output overlaps no input. The code has
    // no scratch memory, and was made for this machine.
    unsafe { (direct.entry)(pointers.as_ptr()) };
    Some(())
}

/// Runs a kernel of any kind, with every check and its message.
///
/// # Safety
/// As the header says of `cranefold_run`.
#[cold]
#[inline(never)]
unsafe fn run_checked(kernel: *const Kernel, tensors: Given) -> *mut OwnedError {
    guard(|| {
        // SAFETY: the caller keeps the header's contract.
        let kernel = unsafe { given(kernel, "kernel")? };
        // SAFETY: as above.
        let Buffers { inputs, mut outputs } = unsafe { tensors.buffers(kernel, &(0..0))? };
        let done = match &kernel.pool {
            Some(pool) => kernel.kernel.run_on(&**pool, &inputs, &mut outputs),
            None => kernel.kernel.run(&inputs, &mut outputs),
        };
        done.map_err(Failure::from)
    })
}

/// Runs a kernel on the threads of its compiler.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_run(
    kernel: *const Kernel,
    inputs: *const Tensor,
    input_count: usize,
    outputs: *const Tensor,
    output_count: usize,
) -> *mut OwnedError {
    let tensors = Given { inputs, input_count, outputs, output_count };
    // SAFETY: the caller keeps the header's contract.
    match unsafe { run_direct(kernel, tensors) } {
        Some(()) => std::ptr::null_mut(),
        // SAFETY: as above.
        None => unsafe { run_checked(kernel, tensors) },
    }
}

/// Runs a kernel on the calling thread, in the caller's scratch memory.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_run_in(
    kernel: *const Kernel,
    inputs: *const Tensor,
    input_count: usize,
    outputs: *const Tensor,
    output_count: usize,
    scratch: *mut c_void,
    scratch_bytes: usize,
) -> *mut OwnedError {
    let tensors = Given { inputs, input_count, outputs, output_count };
    guard(|| {
        // SAFETY: the caller keeps the header's contract.
        let kernel = unsafe { given(kernel, "kernel")? };
        // SAFETY: as above.
        let (scratch, addresses) = unsafe { scratch_memory(scratch, scratch_bytes)? };
        // SAFETY: as above.
        let Buffers { inputs, mut outputs } = unsafe { tensors.buffers(kernel, &addresses)? };
        Ok(kernel.kernel.run_in(&inputs, &mut outputs, scratch)?)
    })
}

/// The scratch memory of a caller, and its addresses.
///
/// # Safety
/// As the header says of scratch memory.
pub unsafe fn scratch_memory<'a>(
    scratch: *mut c_void,
    bytes: usize,
) -> Result<(&'a mut [MaybeUninit<u8>], Range<usize>), Failure> {
    // SAFETY: the caller keeps the contract; bytes that may be uninitialised are not read through this slice.
    let memory = unsafe { list_mut(scratch.cast::<MaybeUninit<u8>>(), bytes, "scratch")? };
    let start = memory.as_ptr().addr();
    let range = if bytes == 0 { 0..0 } else { start..start + bytes };
    Ok((memory, range))
}
