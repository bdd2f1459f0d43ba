//! The only file that enters machine code.
//!
//! A call checks its buffers against the spec, here or in [`check`](super::check), makes the array of pointers that the
//! code takes (see [`link`](crate::link)), and enters it. The raw calls leave the checks to their caller.
#![allow(unsafe_code, reason = "enters machine code")]

use super::check::check;
use super::code::Compiled;
use super::{Element, Input, Kernel, Output};
use crate::error::CallError;
use crate::executor::Executor;
use crate::keyed::{Expected, KeyedSpec};
use crate::link::{Entry, SCRATCH_ALIGN};
use crate::schedule::Decided;
use crate::spec::Spec;
use cranefold_ir::{Buffer, BufferRole, Nest};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// The most pointers that a call passes without a list on the heap.
const FEW: usize = 8;

/// The function that a call with one input and one output enters directly, and the buffers it takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Direct {
    entry: Entry,
    input: Expected,
    output: Expected,
}

impl Direct {
    /// The direct entry of a spec with one input and one output; `None` if its code has several parts or scratch
    /// memory.
    pub fn of(keyed: &KeyedSpec, compiled: &Compiled) -> Option<Direct> {
        let ([input], [output]) = keyed.expected() else { return None };
        Some(Direct { entry: compiled.direct()?, input: *input, output: *output })
    }

    /// Runs the code if the buffers are those of the spec; returns true if it ran.
    #[inline]
    fn run(&self, input: &Input<'_>, output: &mut Output<'_>) -> bool {
        let Some(start) = input.own_start() else { return false };
        if !self.input.is(input.dtype, input.bytes) || !self.output.is(output.dtype, output.bytes) {
            return false;
        }
        debug_assert!(is_default_environment(), "the floating-point environment is not the default one");
        let buffers = [start.cast_mut(), output.start];
        // SAFETY: one pointer for each buffer, to at least as many elements of its type as the spec says (checked above); a
        // shared borrow of the input and a unique one of the output. The code was made for this problem on this machine, and
        // reads no more pointers.
        unsafe { (self.entry)(buffers.as_ptr()) };
        true
    }
}

impl Kernel {
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
    /// The borrows guarantee that no output overlaps another buffer, but for an input that is given as
    /// [`Input::of_output`]. Buffers may be longer than the spans of the spec.
    ///
    /// # Errors
    /// [`CallError`] if the number of buffers or an element type is not that of the spec, a buffer is too short, an
    /// output may not take the place of an input, or there is no memory for
    /// [`run_scratch_bytes`](Kernel::run_scratch_bytes): nothing is written then.
    #[inline]
    pub fn run(&self, inputs: &[Input<'_>], outputs: &mut [Output<'_>]) -> Result<(), CallError> {
        match self.run_direct(inputs, outputs) {
            true => Ok(()),
            false => self.run_indirect(inputs, outputs),
        }
    }

    /// Runs the kernel if it has a direct entry and the buffers are those of the spec; returns true if it ran.
    #[inline]
    pub(super) fn run_direct(&self, inputs: &[Input<'_>], outputs: &mut [Output<'_>]) -> bool {
        match (&self.0.direct, inputs, outputs) {
            (Some(direct), [input], [output]) => direct.run(input, output),
            _ => false,
        }
    }

    /// Runs a kernel of any kind; otherwise as [`run`](Kernel::run).
    pub(super) fn run_indirect(&self, inputs: &[Input<'_>], outputs: &mut [Output<'_>]) -> Result<(), CallError> {
        let buffers = self.checked(inputs, outputs)?;
        let mut scratch = scratch(self.run_scratch_bytes())?;
        let pointers = buffers.chain([scratch.as_mut_ptr().cast()]);
        // SAFETY: as `checked` says, with as much scratch memory as one part after the other wants, which nothing else
        // knows.
        unsafe { self.run_at(inputs.len() + outputs.len(), pointers) }
    }

    /// Runs the kernel on the calling thread alone, in the caller's scratch memory: at least
    /// [`run_scratch_bytes`](Kernel::run_scratch_bytes) bytes, aligned to 64, of any content. It allocates nothing if
    /// there are fewer than eight buffers.
    ///
    /// ```
    /// use cranefold::{Compiler, Input, Output, Spec};
    /// use std::mem::MaybeUninit;
    ///
    /// #[repr(align(64))]
    /// struct Lines<const N: usize>([MaybeUninit<u8>; N]);
    ///
    /// let kernel = Compiler::host()?.compile(&"median f32[2,40000] axes=[1]".parse::<Spec>()?)?;
    /// let mut lines = Lines([MaybeUninit::uninit(); 200_000]);
    /// assert!(kernel.run_scratch_bytes() <= 200_000);
    /// let (x, mut medians) = (vec![3.0f32; 80_000], [0.0f32; 2]);
    /// kernel.run_in(&[Input::from(&x)], &mut [Output::from(&mut medians)], &mut lines.0)?;
    /// assert_eq!(medians, [3.0; 2]);
    /// # Ok::<(), cranefold::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`run`](Kernel::run); also [`CallError::ScratchLength`] and [`CallError::ScratchAlign`].
    pub fn run_in(
        &self,
        inputs: &[Input<'_>],
        outputs: &mut [Output<'_>],
        scratch: &mut [MaybeUninit<u8>],
    ) -> Result<(), CallError> {
        if self.run_direct(inputs, outputs) {
            return Ok(());
        }
        check_scratch(scratch, self.run_scratch_bytes())?;
        let pointers = self.checked(inputs, outputs)?.chain([scratch.as_mut_ptr().cast()]);
        // SAFETY: as `checked` says, with as much scratch memory as one part after the other wants (checked above), which
        // is borrowed alone.
        unsafe { self.run_at(inputs.len() + outputs.len(), pointers) }
    }

    /// The pointers of a call, each to at least as many elements of its type as the spec says: shared borrows of the
    /// inputs, unique ones of the outputs. An input that is the memory of an output has the same places: the kernel has
    /// read a slice's elements but those of the position it writes, and reads those before.
    fn checked<'b>(
        &self,
        inputs: &'b [Input<'_>],
        outputs: &'b [Output<'_>],
    ) -> Result<impl Iterator<Item = *mut u8> + 'b, CallError> {
        check(&self.0.keyed, inputs, outputs)?;
        let of_output = |input: &Input<'_>| input.output().map_or(std::ptr::null_mut(), |output| outputs[output].start);
        let start = move |input: &Input<'_>| input.own_start().map_or_else(|| of_output(input), <*const u8>::cast_mut);
        Ok(inputs.iter().map(start).chain(outputs.iter().map(|output| output.start)))
    }

    /// Runs the kernel of a reduction that writes each element of the slice, such as `softmax`, over its
    /// own input 0: the output takes its place, and padding becomes zero. `others` are the further inputs.
    ///
    /// ```
    /// use cranefold::{Compiler, Output, Spec};
    ///
    /// let spec: Spec = "softmax f32[2,2] axes=[1]".parse()?;
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
        if !self.spec().is_some_and(Spec::runs_in_place) {
            return Err(CallError::InPlace);
        }
        let inputs: Vec<Input<'_>> = [Input::of_output(0)].into_iter().chain(others.iter().copied()).collect();
        self.run(&inputs, &mut [data.part(0, data.bytes)])
    }

    /// Runs the kernel on `count` buffers and scratch memory.
    ///
    /// # Safety
    /// As [`run_raw`](Kernel::run_raw), of pointers to `count` buffers and to scratch memory.
    unsafe fn run_at(&self, count: usize, pointers: impl Iterator<Item = *mut u8>) -> Result<(), CallError> {
        if count < FEW {
            let mut list = [std::ptr::null_mut(); FEW];
            list.iter_mut().zip(pointers).for_each(|(place, pointer)| *place = pointer);
            // SAFETY: the caller keeps the contract.
            unsafe { self.run_raw(list.as_ptr()) }
        } else {
            let list: Vec<*mut u8> = pointers.collect();
            // SAFETY: as above.
            unsafe { self.run_raw(list.as_ptr()) }
        }
    }

    /// The function of the kernel's machine code, for loops in which nothing but the call may cost time; `None` if there
    /// are several parts, or the kernel is for another machine. It lives as long as the kernel or a clone of it.
    ///
    /// ```
    /// use cranefold::{Compiler, Spec};
    ///
    /// let kernel = Compiler::host()?.compile(&"sum f32[3]".parse::<Spec>()?)?;
    /// let entry = kernel.entry().expect("one part");
    /// let (x, mut sum) = ([1.0f32, 2.0, 3.0], [0.0f32]);
    /// // SAFETY: one pointer for each buffer, to as many elements as the spec says; there is no scratch memory.
    /// unsafe { entry([x.as_ptr().cast_mut().cast(), sum.as_mut_ptr().cast()].as_ptr()) };
    /// assert_eq!(sum, [6.0]);
    /// # Ok::<(), cranefold::Error>(())
    /// ```
    ///
    /// # Safety
    /// A call keeps the contract of [`run_raw`](Kernel::run_raw).
    #[inline]
    pub fn entry(&self) -> Option<Entry> {
        self.0.alone
    }

    /// Runs the kernel on raw pointers, one part after the other.
    ///
    /// # Errors
    /// [`CallError::Foreign`] if the kernel is for another machine.
    ///
    /// # Safety
    /// - `buffers` points to one pointer for each input, then one for each output, then one to
    ///   scratch memory, which may be absent where [`scratch_bytes`](Kernel::scratch_bytes) is 0.
    /// - Each of the first points to as many readable (inputs) or writable (outputs) elements as the operand's
    ///   span in the spec. No alignment is needed.
    /// - The scratch memory is [`run_scratch_bytes`](Kernel::run_scratch_bytes) writable bytes, aligned to 64, whatever
    ///   they hold. Calls in several threads at once have one each.
    /// - No output overlaps any other buffer, but it may be an input whose place it may take
    ///   ([`Spec::may_replace`]); nothing overlaps the scratch memory.
    /// - The floating-point environment is the default one.
    #[inline]
    pub unsafe fn run_raw(&self, buffers: *const *mut u8) -> Result<(), CallError> {
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

    /// Runs the kernel on raw pointers and the threads of an executor.
    ///
    /// # Errors
    /// [`CallError::Foreign`] if the kernel is for another machine. If the executor panics or does not run each part
    /// once, the contents of the outputs are undefined.
    ///
    /// # Safety
    /// As [`run_raw`](Kernel::run_raw), with [`scratch_bytes`](Kernel::scratch_bytes) bytes of scratch memory. The pointers
    /// are those of no other call at the same time.
    pub unsafe fn run_raw_on(&self, executor: &dyn Executor, buffers: *const *mut u8) -> Result<(), CallError> {
        if self.parts() == 1 {
            // SAFETY: the caller keeps the contract; one part has as much scratch memory.
            return unsafe { self.run_raw(buffers) };
        }
        let (inputs, outputs) = self.0.keyed.expected();
        let count = inputs.len() + outputs.len() + usize::from(self.scratch_bytes() > 0);
        // SAFETY: the caller gives so many pointers.
        let given = unsafe { std::slice::from_raw_parts(buffers, count) };
        let pointers = given.iter().copied().chain([std::ptr::null_mut()]).collect();
        self.run_call(executor, Call::of_pointers(self, pointers, vec![])?)
    }

    /// Runs the parts of any kernel one after the other, each in the scratch memory of part 0; returns an error if it is
    /// for another machine.
    ///
    /// # Safety
    /// As [`run_raw`](Kernel::run_raw).
    unsafe fn run_parts_in_turn(&self, buffers: *const *mut u8) -> Result<(), CallError> {
        for part in 0..self.parts() {
            // SAFETY: the caller keeps the contract; each part runs once.
            unsafe { self.run_part_in(part, 0, buffers)? };
        }
        // SAFETY: the caller keeps the contract; all parts have run.
        unsafe { self.finish_raw(buffers) }
    }

    /// Enters the code with this number.
    ///
    /// # Safety
    /// `buffers` points to the pointers that the code takes (see [`link`](crate::link)).
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

    /// Runs a part on raw pointers.
    ///
    /// # Errors
    /// [`CallError::Part`] if there is no such part, [`CallError::Foreign`] if the kernel is for another machine.
    ///
    /// # Safety
    /// As [`run_raw`](Kernel::run_raw), with [`scratch_bytes`](Kernel::scratch_bytes) bytes of scratch memory, where all
    /// parts of a call, and its finish, have the same pointers. Parts may run in any order and at once, each once.
    pub unsafe fn run_part_raw(&self, part: usize, buffers: *const *mut u8) -> Result<(), CallError> {
        // SAFETY: the caller keeps the contract; each part has scratch memory of its own.
        unsafe { self.run_part_in(part, part, buffers) }
    }

    /// Runs a part in the scratch memory of part `memory`.
    ///
    /// # Safety
    /// As [`run_part_raw`](Kernel::run_part_raw), and no part that runs at the same time has that memory.
    unsafe fn run_part_in(&self, part: usize, memory: usize, buffers: *const *mut u8) -> Result<(), CallError> {
        let layout = &self.0.compiled.layout;
        let parts = layout.parts.len();
        let of = layout.parts.get(part).ok_or(CallError::Part { given: part, parts })?;
        // SAFETY: the starts are those of the part; its nest keeps within what is left of each buffer, as `program` asserts.
        unsafe { self.enter_at(of.code, buffers, memory, |buffer| of.starts.get(buffer).copied().unwrap_or(0)) }
    }

    /// Ends a call on raw pointers after all its parts have run.
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

    /// Enters a code with its buffers at `starts` and the scratch memory of a part.
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
        let (inputs, outputs) = self.0.keyed.expected();
        let operands = inputs.len() + outputs.len();
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

/// The states of a part: not yet run, running, done.
const LEFT: u8 = 0;
const BEGUN: u8 = 1;
const DONE: u8 = 2;

/// A call whose parts any scheduler may run: each once, in any order and on any threads, and then
/// [`finish`](Call::finish). Until then, the contents of the outputs are undefined.
///
/// ```
/// use cranefold::{Compiler, Input, Output, Spec};
///
/// let compiler = Compiler::builder().threads(2).build()?;
/// let spec: Spec = "sum f32[1000000]".parse()?;
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
    /// A pointer for each input and output, then one to the scratch memory.
    buffers: Vec<*mut u8>,
    /// The scratch memory if the call owns it.
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
    /// A call of a kernel on these buffers, in scratch memory at `scratch`; `own` holds that memory if the call owns
    /// it.
    ///
    /// # Errors
    /// [`CallError`] if the buffers are not those of the spec, or the kernel is for another machine.
    pub(super) fn new(
        kernel: &'a Kernel,
        inputs: &'a [Input<'_>],
        outputs: &'a mut [Output<'_>],
        scratch: *mut u8,
        own: Vec<Line>,
    ) -> Result<Call<'a>, CallError> {
        let buffers = kernel.checked(inputs, outputs)?.chain([scratch]).collect();
        Call::of_pointers(kernel, buffers, own)
    }

    /// A call with a pointer for each input and output, then one to scratch memory; `own` holds that memory if the call
    /// owns it.
    ///
    /// # Errors
    /// [`CallError::Foreign`] if the kernel is for another machine.
    fn of_pointers(kernel: &'a Kernel, buffers: Vec<*mut u8>, own: Vec<Line>) -> Result<Call<'a>, CallError> {
        if kernel.0.compiled.codes.iter().any(|code| code.entry().is_none()) {
            return Err(kernel.foreign());
        }
        let parts = (0..kernel.parts()).map(|_| AtomicU8::new(LEFT)).collect();
        Ok(Call { kernel, buffers, _scratch: own, parts, borrow: PhantomData })
    }

    /// The number of parts, at least one.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// The first part that has not run to its end.
    pub fn part_left(&self) -> Option<usize> {
        self.parts.iter().position(|state| state.load(Ordering::Acquire) != DONE)
    }

    /// Runs a part.
    ///
    /// # Errors
    /// [`CallError::Part`] if there is no such part, [`CallError::PartTwice`] if it was run before: nothing is done
    /// then.
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

    /// Ends the call; the outputs then hold the results.
    ///
    /// # Errors
    /// [`CallError::PartLeft`] if a part has not been run.
    pub fn finish(self) -> Result<(), CallError> {
        let parts = self.parts();
        if let Some(part) = self.part_left() {
            return Err(CallError::PartLeft { part, parts });
        }
        // SAFETY: as in `run_part`; all parts have been run, and no thread runs one, for nothing else has the call.
        unsafe { self.kernel.finish_raw(self.buffers.as_ptr()) }
    }
}

/// A buffer of a routine's call.
#[derive(Debug)]
pub(crate) enum Memory<'a> {
    Read(Input<'a>),
    Write(Output<'a>),
}

/// The code of one nest, called with a buffer for each buffer of the nest.
#[derive(Clone, Debug)]
pub(crate) struct Routine {
    compiled: Arc<Compiled>,
    /// For each buffer of the nest, true if it is written, and its bytes.
    takes: Arc<[(bool, usize)]>,
}

impl Routine {
    /// The routine of a code that was made of this nest, in one part.
    pub fn new(nest: &Nest, compiled: Arc<Compiled>) -> Routine {
        debug_assert!(compiled.layout.parts.len() == 1 && !compiled.layout.has_finish, "one nest");
        let bytes = |b: &Buffer| usize::try_from(b.bytes()).unwrap_or(usize::MAX);
        let takes = nest.buffers.iter().map(|b| (b.role != BufferRole::In, bytes(b))).collect();
        Routine { compiled, takes }
    }

    /// The decision by which the code was made.
    pub fn decided(&self) -> &Decided {
        &self.compiled.decided
    }

    /// Runs the code on a buffer for each buffer of the nest, each at least as long.
    ///
    /// # Errors
    /// [`CallError::Foreign`] if the code is for another machine, [`CallError::Scratch`] if there is no memory to work in:
    /// nothing is written then.
    ///
    /// # Panics
    /// If the number of buffers is another, one is too short, or one that is written may only be read: a bug of ours.
    pub fn run<'a>(&self, buffers: impl IntoIterator<Item = Memory<'a>>) -> Result<(), CallError> {
        let compiled = &self.compiled;
        let foreign = || CallError::Foreign { target: compiled.target.to_string() };
        let entry = compiled.alone().ok_or_else(foreign)?;
        let mut own = scratch(compiled.layout.serial_scratch_bytes)?;
        let mut takes = self.takes.iter();
        let mut list = Vec::with_capacity(FEW.max(self.takes.len() + 1));
        // A value stands in its input: so they stay until the code has run.
        let buffers: Vec<Memory<'_>> = buffers.into_iter().collect();
        for buffer in &buffers {
            let &(writes, takes) = takes.next().expect("as many buffers as the nest has");
            let (start, bytes, may_write) = match buffer {
                // One that is an output's has no bytes of its own.
                Memory::Read(input) => {
                    (input.own_start().map_or(std::ptr::null_mut(), <*const u8>::cast_mut), input.bytes, false)
                }
                Memory::Write(output) => (output.start, output.bytes, true),
            };
            let fits = bytes >= takes && (may_write || !writes || takes == 0);
            assert!(fits, "{bytes} bytes for buffer {}, which takes {takes}", list.len());
            list.push(start);
        }
        assert!(takes.next().is_none(), "as many buffers as the nest has");
        list.push(own.as_mut_ptr().cast());
        debug_assert!(is_default_environment(), "the floating-point environment is not the default one");
        // SAFETY: the code was made of the nest on this machine. For each buffer of it there is a pointer to as many bytes
        // or more, borrowed as long as this call runs: those that are written by this call alone. The last goes to as much
        // scratch memory as the code takes, which nothing else knows.
        unsafe { entry(list.as_ptr()) };
        drop(buffers);
        Ok(())
    }
}

/// Memory with the alignment of scratch memory.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Line {
    _bytes: MaybeUninit<[u8; SCRATCH_ALIGN as usize]>,
}

const _: () = assert!(align_of::<Line>() == SCRATCH_ALIGN as usize);

/// Checks that memory may be scratch memory of `expected` bytes.
pub(super) fn check_scratch(scratch: &[MaybeUninit<u8>], expected: u64) -> Result<(), CallError> {
    let given = scratch.len() as u64;
    if given < expected {
        return Err(CallError::ScratchLength { given, expected });
    }
    let address = scratch.as_ptr().addr() as u64;
    if expected > 0 && !address.is_multiple_of(SCRATCH_ALIGN) {
        return Err(CallError::ScratchAlign { address, align: SCRATCH_ALIGN });
    }
    Ok(())
}

/// Scratch memory of at least `bytes` bytes, as the capacity of a list.
pub(super) fn scratch(bytes: u64) -> Result<Vec<Line>, CallError> {
    let mut lines = Vec::new();
    let count = usize::try_from(bytes.div_ceil(SCRATCH_ALIGN)).unwrap_or(usize::MAX);
    lines.try_reserve_exact(count).map_err(|_| CallError::Scratch { bytes })?;
    Ok(lines)
}

/// Returns true if rounding is to nearest even and subnormals are kept, as far as two operations show it.
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
