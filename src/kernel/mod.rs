//! The kernel: checked and raw calls of compiled code, and what is known of it.
#![allow(unsafe_code, reason = "calls compiled code")]

mod call;
mod check;
pub(crate) mod code;
mod direct;
mod element;
mod facts;
mod routine;

pub use call::Call;
pub use element::{Element, Input, Output};
pub use facts::{Facts, StepLoops, Tiles};
pub(crate) use routine::{Memory, Routine};

use crate::error::CallError;
use crate::kernel::code::Compiled;
use crate::link::{Entry, SCRATCH_ALIGN};
use crate::request::Request;
use crate::schedule::Schedule;
use crate::spec::Reduction;
use crate::vectors::Vectors;
use direct::Direct;
use std::mem::MaybeUninit;
use std::sync::Arc;

/// A compiled reduction. Cheap to clone; threads may share it.
///
/// The executable memory is given back when the last kernel that uses it is gone and the compiler has
/// let go of it too.
///
/// Kernels assume the default floating-point environment: round to nearest even, subnormals kept.
#[derive(Clone, Debug)]
pub struct Kernel(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    request: Request,
    compiled: Arc<Compiled>,
    /// The function of the one part, where there is no more and the code is for this machine: it takes the pointers of a
    /// call as they are.
    alone: Option<Entry>,
    direct: Option<Direct>,
}

/// Pointers that a call passes without a list on the heap.
const FEW: usize = 8;

impl Kernel {
    pub(crate) fn new(request: Request, compiled: Arc<Compiled>) -> Kernel {
        let direct = Direct::of(&request, &compiled);
        Kernel(Arc::new(Inner { request, alone: compiled.alone(), compiled, direct }))
    }

    pub(crate) fn compiled(&self) -> &Compiled {
        &self.0.compiled
    }

    /// The spec.
    pub fn spec(&self) -> &Reduction {
        self.0.request.spec()
    }

    /// The spec with the signature of this code.
    pub fn request(&self) -> &Request {
        &self.0.request
    }

    /// The schedule the code was made by.
    pub fn schedule(&self) -> &Schedule {
        &self.0.compiled.schedule
    }

    /// The vectors the code is made of.
    pub fn vectors(&self) -> Vectors {
        self.0.compiled.vectors
    }

    /// The machine code: that of the function that a call enters, then that of its tiles; of several parts, one code after
    /// the other.
    pub fn code(&self) -> &[u8] {
        &self.0.compiled.bytes
    }

    /// Runs the kernel of a reduction with one input and one output. The borrows say that they do not overlap:
    ///
    /// ```compile_fail,E0502
    /// # let kernel = cranefold::Compiler::host().unwrap().compile(&"sum f32[4]".parse().unwrap()).unwrap();
    /// let mut x = [1.0f32; 4];
    /// kernel.run_one(&x[..], &mut x[..1]).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`CallError`] if an element type or length is not that of the spec: nothing is written then.
    #[inline]
    pub fn run_one<T: Element, U: Element>(&self, input: &[T], output: &mut [U]) -> Result<(), CallError> {
        self.run(&[Input::from(input)], &mut [Output::from(output)])
    }

    /// Runs the kernel on the calling thread alone.
    ///
    /// That no output overlaps another buffer is known from the borrows.
    ///
    /// # Errors
    /// [`CallError`] if the number of buffers, an element type or a length is not that of the spec, or
    /// there is no memory for [`scratch_bytes`](Kernel::scratch_bytes): nothing is written then.
    #[inline]
    pub fn run(&self, inputs: &[Input<'_>], outputs: &mut [Output<'_>]) -> Result<(), CallError> {
        match self.run_direct(inputs, outputs) {
            true => Ok(()),
            false => self.run_indirect(inputs, outputs),
        }
    }

    /// Runs the kernel if its code may be entered at once and the buffers are those of the spec.
    #[inline]
    fn run_direct(&self, inputs: &[Input<'_>], outputs: &mut [Output<'_>]) -> bool {
        match (&self.0.direct, inputs, outputs) {
            (Some(direct), [input], [output]) => direct.run(input, output),
            _ => false,
        }
    }

    /// As [`run`](Kernel::run), of any kernel.
    fn run_indirect(&self, inputs: &[Input<'_>], outputs: &mut [Output<'_>]) -> Result<(), CallError> {
        check::check(&self.0.request, inputs, outputs)?;
        let buffers = inputs.iter().map(|i| i.start.cast_mut()).chain(outputs.iter().map(|o| o.start));
        // SAFETY: one pointer for each buffer, to as many elements of its type as the spec says (checked above); shared
        // borrows of the inputs and unique ones of the outputs.
        unsafe { self.run_at(inputs.len() + outputs.len(), buffers) }
    }

    /// Runs the kernel of a reduction that writes each element of the slice, such as `softmax`, over its
    /// own input 0: the output takes its place, and padding becomes zero. `others` are the further inputs.
    ///
    /// ```
    /// use cranefold::{Compiler, Output, Reduction};
    ///
    /// let spec: Reduction = "softmax f32[2,2] axes=[1]".parse()?;
    /// let mut data = [0.0f32, 0.0, 1.0, f32::NEG_INFINITY];
    /// Compiler::host()?.compile(&spec)?.run_in_place(&mut Output::from(&mut data[..]), &[])?;
    /// assert_eq!(data, [0.5, 0.5, 1.0, 0.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`CallError::InPlace`] if the output is not of input 0's type and layout or is one for each slice;
    /// else as [`run`](Kernel::run).
    pub fn run_in_place(&self, data: &mut Output<'_>, others: &[Input<'_>]) -> Result<(), CallError> {
        if !self.spec().runs_in_place() {
            return Err(CallError::InPlace);
        }
        let inputs = std::iter::once((data.dtype, data.bytes)).chain(others.iter().map(|i| (i.dtype, i.bytes)));
        check::check_inputs(&self.0.request, inputs.collect::<Vec<_>>().into_iter())?;
        let buffers = std::iter::once(data.start).chain(others.iter().map(|i| i.start.cast_mut()));
        // SAFETY: one pointer for each buffer, to as many elements as the spec says (checked above). Input 0
        // and the output are one buffer with the same places: the kernel has read a slice's elements but those
        // of the position it writes, and reads that one before.
        unsafe { self.run_at(others.len() + 2, buffers.chain([data.start])) }
    }

    /// Runs the kernel on so many buffers and its scratch memory.
    ///
    /// # Safety
    /// As [`run_raw`](Kernel::run_raw), but for the scratch memory.
    unsafe fn run_at(&self, count: usize, buffers: impl Iterator<Item = *mut u8>) -> Result<(), CallError> {
        let mut scratch = scratch(self.0.compiled.layout.serial_scratch_bytes)?;
        let pointers = buffers.chain([scratch.as_mut_ptr().cast()]);
        if count < FEW {
            let mut list = [std::ptr::null_mut(); FEW];
            list.iter_mut().zip(pointers).for_each(|(place, pointer)| *place = pointer);
            // SAFETY: the caller keeps the contract; the last pointer goes to as much scratch memory as one part after
            // the other wants, which nothing else knows.
            unsafe { self.run_in_turn(list.as_ptr()) }
        } else {
            let list: Vec<*mut u8> = pointers.collect();
            // SAFETY: as above.
            unsafe { self.run_in_turn(list.as_ptr()) }
        }
    }

    /// Runs the kernel on raw pointers.
    ///
    /// # Errors
    /// [`CallError::Foreign`] if the kernel is for another machine.
    ///
    /// # Safety
    /// - `buffers` points to one pointer for each input, then one for each output, then one to
    ///   scratch memory, which may be absent where [`scratch_bytes`](Kernel::scratch_bytes) is 0.
    /// - Each of the first points to as many readable (inputs) or writable (outputs) elements as the operand's
    ///   span in the spec. No alignment is needed.
    /// - The scratch memory is that many writable bytes, aligned to 64, whatever they hold. Calls in
    ///   several threads at once have one each.
    /// - No output overlaps any other buffer, but that one of input 0's type and strides, with an element for
    ///   each of the slice, may be input 0 itself; nothing overlaps the scratch memory.
    /// - The floating-point environment is the default one.
    #[inline]
    pub unsafe fn run_raw(&self, buffers: *const *mut u8) -> Result<(), CallError> {
        // SAFETY: the caller keeps the contract; there is no less scratch memory.
        unsafe { self.run_in_turn(buffers) }
    }

    /// Runs one part after the other, each in the scratch memory of part 0.
    ///
    /// # Safety
    /// As [`run_raw`](Kernel::run_raw), but the scratch memory may be that of one part.
    #[inline]
    unsafe fn run_in_turn(&self, buffers: *const *mut u8) -> Result<(), CallError> {
        let Some(entry) = self.0.alone else {
            // SAFETY: the caller keeps the contract.
            return unsafe { self.run_parts_in_turn(buffers) };
        };
        debug_assert!(is_default_environment(), "the floating-point environment is not the default one");
        // SAFETY: one part takes its buffers as they are; the code was made for this problem on this machine; the caller
        // keeps the contract.
        unsafe { entry(buffers) };
        Ok(())
    }

    /// Runs one part after the other, of a kernel of any number of parts and for any machine.
    ///
    /// # Safety
    /// As [`run_in_turn`](Kernel::run_in_turn).
    unsafe fn run_parts_in_turn(&self, buffers: *const *mut u8) -> Result<(), CallError> {
        for part in 0..self.parts() {
            // SAFETY: the caller keeps the contract; each part runs once.
            unsafe { self.run_part_in(part, 0, buffers)? };
        }
        // SAFETY: the caller keeps the contract; all parts have run.
        unsafe { self.finish_raw(buffers) }
    }

    /// Enters a code.
    ///
    /// # Safety
    /// `buffers` points to the pointers that the code takes (see `jit`).
    unsafe fn enter(&self, code: usize, buffers: *const *mut u8) -> Result<(), CallError> {
        debug_assert!(is_default_environment(), "the floating-point environment is not the default one");
        let entry = self.0.compiled.codes[code].entry().ok_or_else(|| self.foreign())?;
        // SAFETY: the code was made for this problem on this machine; the caller keeps the contract.
        unsafe { entry(buffers) };
        Ok(())
    }

    fn foreign(&self) -> CallError {
        CallError::Foreign { target: self.0.compiled.target.to_string() }
    }

    /// Bytes of scratch memory that a call works in, for all parts: 0 but where slices are selected from, or states
    /// are kept, that do not fit a stack, or where parts leave states to be finished. [`run_on`](Kernel::run_on) allocates it
    /// for each call; [`run`](Kernel::run), which runs one part after the other, that of one.
    pub fn scratch_bytes(&self) -> u64 {
        self.0.compiled.layout.scratch_bytes
    }

    /// What the outputs are: shapes, strides and lengths of their buffers.
    pub fn output_desc(&self) -> Vec<crate::spec::OutputDesc> {
        self.spec().output_desc()
    }

    /// What is known of the kernel.
    pub fn facts(&self) -> Facts {
        facts::facts(self.spec(), &self.0.compiled)
    }
}

/// Memory with the alignment of scratch memory.
#[derive(Debug)]
#[repr(align(64))]
struct Line {
    _bytes: MaybeUninit<[u8; SCRATCH_ALIGN as usize]>,
}

const _: () = assert!(align_of::<Line>() == SCRATCH_ALIGN as usize);

/// Room for as many bytes, in the list's capacity.
fn scratch(bytes: u64) -> Result<Vec<Line>, CallError> {
    let mut lines = Vec::new();
    let count = usize::try_from(bytes.div_ceil(SCRATCH_ALIGN)).unwrap_or(usize::MAX);
    lines.try_reserve_exact(count).map_err(|_| CallError::Scratch { bytes })?;
    Ok(lines)
}

/// Whether rounding is to nearest even and subnormals are kept, as far as two operations show it.
fn is_default_environment() -> bool {
    use std::hint::black_box;
    let subnormal = black_box(f32::MIN_POSITIVE) * black_box(0.5);
    let above = black_box(1.0f32) + black_box(f32::EPSILON * 0.75);
    let below = black_box(-1.0f32) - black_box(f32::EPSILON * 0.25);
    subnormal > 0.0 && above == 1.0 + f32::EPSILON && below == -1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_memory_is_aligned_and_its_lack_is_an_error() {
        assert_eq!(scratch(0).expect("nothing").capacity(), 0);
        for bytes in [1, 64, 65, 1_000_000] {
            let mut lines = scratch(bytes).expect("little memory");
            assert!(lines.capacity() as u64 * SCRATCH_ALIGN >= bytes);
            assert_eq!(lines.as_mut_ptr().addr() as u64 % SCRATCH_ALIGN, 0);
        }
        for bytes in [1 << 62, i64::MAX as u64, u64::MAX] {
            let error = scratch(bytes).map(drop).expect_err("too much");
            assert_eq!(error.to_string(), format!("there is no memory for {bytes} bytes of scratch"));
        }
    }
}
