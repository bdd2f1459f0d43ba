//! Partial results: states of ranges of blocks, which other processes combine and finish.

use crate::compiler::Compiler;
use crate::error::{Code, Failure, OwnedError, free, give, given, guard, list, list_mut, place, text};
use crate::mpi;
use crate::tensor::{DataType, Tensor, overlap, row};
use crate::text::give_text;
use cranefold::{DType, Input, Output, Spec};
use std::ffi::{c_char, c_void};
use std::ops::Range;
use std::ptr::with_exposed_provenance_mut;

/// The partial results of a reduction.
#[derive(Debug)]
pub struct Partial {
    partial: cranefold::Partial,
    /// Holds its place in the registry of the combinations of MPI.
    _registered: mpi::Registered,
}

/// A range of blocks, and its code.
#[derive(Debug)]
pub struct Shard {
    shard: cranefold::Shard,
    /// The type of each input.
    dtypes: Vec<DType>,
}

/// The part of an input that a range of blocks reads: `cranefold_span`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Span {
    pub input: u64,
    pub dtype: DataType,
    pub first: u64,
    pub end: u64,
}

/// Makes the partial results of a reduction.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_partial_new(
    compiler: *const Compiler,
    spec: *const c_char,
    partial: *mut *mut Partial,
) -> *mut OwnedError {
    guard(|| {
        // SAFETY: the caller keeps the header's contract.
        let (into, compiler, spec) =
            unsafe { (place(partial, "partial")?, given(compiler, "compiler")?, text(spec, "spec")?) };
        let partial = compiler.compiler.partial(&spec.parse::<Spec>()?)?;
        give(into, Partial { _registered: mpi::register(&partial), partial });
        Ok(())
    })
}

/// Makes the partial results of a box of the kept axes: `bounds` has the first index and the end along each of them.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_partial_of(
    compiler: *const Compiler,
    spec: *const c_char,
    bounds: *const u64,
    kept: usize,
    partial: *mut *mut Partial,
) -> *mut OwnedError {
    guard(|| {
        // SAFETY: the caller keeps the header's contract.
        let (into, compiler, spec) =
            unsafe { (place(partial, "partial")?, given(compiler, "compiler")?, text(spec, "spec")?) };
        // SAFETY: as above.
        let bounds = unsafe { list(bounds.cast::<[u64; 2]>(), kept, "bounds")? };
        let kept: Vec<Range<u64>> = bounds.iter().map(|&[first, end]| range(first, end)).collect();
        let partial = compiler.compiler.partial_of(&spec.parse::<Spec>()?, &kept)?;
        give(into, Partial { _registered: mpi::register(&partial), partial });
        Ok(())
    })
}

/// Frees partial results; their shards stay.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_partial_free(partial: *mut Partial) {
    // SAFETY: the caller keeps the header's contract.
    unsafe { free(partial) }
}

/// The number of blocks of each slice; 0 of null.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_partial_blocks(partial: *const Partial) -> u64 {
    // SAFETY: the caller keeps the header's contract.
    unsafe { partial.as_ref() }.map_or(0, |partial| partial.partial.blocks())
}

/// The bytes of a state; 0 of null.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_partial_state_bytes(partial: *const Partial) -> usize {
    // SAFETY: the caller keeps the header's contract.
    unsafe { partial.as_ref() }.map_or(0, |partial| partial.partial.state_bytes())
}

/// Writes the axis that shards are ranges of.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_partial_axis(partial: *const Partial, axis: *mut usize) -> *mut OwnedError {
    guard(|| {
        // SAFETY: the caller keeps the header's contract.
        let (into, partial) = unsafe { (place(axis, "axis")?, given(partial, "partial")?) };
        into.write(partial.partial.axis()?);
        Ok(())
    })
}

/// Writes the bytes that the state of a range of the axis of shards uses.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_partial_range_bytes(
    partial: *const Partial,
    first: u64,
    end: u64,
    used: *mut usize,
) -> *mut OwnedError {
    guard(|| {
        // SAFETY: the caller keeps the header's contract.
        let (into, partial) = unsafe { (place(used, "used")?, given(partial, "partial")?) };
        into.write(partial.partial.range_bytes(&range(first, end))?);
        Ok(())
    })
}

/// Writes the first and the end of each of `count` ranges, nearly even, that all blocks are in.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_partial_ranges(
    partial: *const Partial,
    count: usize,
    bounds: *mut u64,
) -> *mut OwnedError {
    guard(|| {
        // SAFETY: the caller keeps the header's contract.
        let partial = unsafe { given(partial, "partial")? };
        if count > cranefold::partial::MOST_RANGES {
            let message = format!("{count} ranges are above the limit of {}", cranefold::partial::MOST_RANGES);
            return Err(Failure::new(Code::Argument, message));
        }
        // SAFETY: as above: a place for the bounds of each range; it is checked like a list that is read.
        unsafe { list(bounds.cast_const().cast::<std::mem::MaybeUninit<[u64; 2]>>(), count, "bounds")? };
        for (n, range) in partial.partial.shards(count).into_iter().enumerate() {
            // SAFETY: as above.
            unsafe { bounds.add(2 * n).cast::<[u64; 2]>().write([range.start, range.end]) };
        }
        Ok(())
    })
}

/// The blocks or indices from `first` to before `end`. A range that is backwards is refused by the library.
fn range(first: u64, end: u64) -> Range<u64> {
    first..end
}

/// Compiles a range of blocks.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_partial_shard(
    partial: *const Partial,
    first: u64,
    end: u64,
    shard: *mut *mut Shard,
) -> *mut OwnedError {
    guard(|| {
        // SAFETY: the caller keeps the header's contract.
        let (into, partial) = unsafe { (place(shard, "shard")?, given(partial, "partial")?) };
        let shard = partial.partial.shard(range(first, end))?;
        let operands = partial.partial.spec().inputs();
        let dtypes = shard.inputs().iter().map(|span| operands[span.input].dtype()).collect();
        give(into, Shard { shard, dtypes });
        Ok(())
    })
}

/// Compiles the shard of a chunk: `bounds` has the first index and the end along each axis.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_partial_shard_of(
    partial: *const Partial,
    bounds: *const u64,
    axes: usize,
    shard: *mut *mut Shard,
) -> *mut OwnedError {
    guard(|| {
        // SAFETY: the caller keeps the header's contract.
        let (into, partial) = unsafe { (place(shard, "shard")?, given(partial, "partial")?) };
        // SAFETY: as above.
        let bounds = unsafe { list(bounds.cast::<[u64; 2]>(), axes, "bounds")? };
        let chunk: Vec<Range<u64>> = bounds.iter().map(|&[first, end]| range(first, end)).collect();
        let shard = partial.partial.shard_of(&chunk)?;
        let operands = partial.partial.spec().inputs();
        let dtypes = shard.inputs().iter().map(|span| operands[span.input].dtype()).collect();
        give(into, Shard { shard, dtypes });
        Ok(())
    })
}

/// Frees a range of blocks.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_shard_free(shard: *mut Shard) {
    // SAFETY: the caller keeps the header's contract.
    unsafe { free(shard) }
}

/// The number of inputs that a range of blocks reads; 0 of null.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_shard_inputs(shard: *const Shard) -> usize {
    // SAFETY: the caller keeps the header's contract.
    unsafe { shard.as_ref() }.map_or(0, |shard| shard.dtypes.len())
}

/// Describes the part of an input that a range of blocks reads.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_shard_input(shard: *const Shard, number: usize, span: *mut Span) -> *mut OwnedError {
    guard(|| {
        // SAFETY: the caller keeps the header's contract.
        let (into, shard) = unsafe { (place(span, "span")?, given(shard, "shard")?) };
        let inputs = shard.shard.inputs();
        let message = || format!("there is no input {number}: the shard reads {}", inputs.len());
        let of = inputs.get(number).ok_or_else(|| Failure::new(Code::Argument, message()))?;
        let dtype = DataType::of(shard.dtypes[number]);
        into.write(Span { input: of.input as u64, dtype, first: of.elems.start, end: of.elems.end });
        Ok(())
    })
}

/// The addresses of rows of elements, one for each tensor.
///
/// # Safety
/// As [`row`].
unsafe fn rows(role: &str, tensors: &[Tensor], expected: &[(DType, u64)]) -> Result<Vec<Range<usize>>, Failure> {
    if tensors.len() != expected.len() {
        let message = format!("{} {role}s are given, and {} are needed", tensors.len(), expected.len());
        return Err(Failure::new(Code::Tensor, message));
    }
    let all = tensors.iter().zip(expected).enumerate();
    // SAFETY: the caller keeps the contract.
    all.map(|(n, (tensor, &(dtype, elems)))| unsafe { row(tensor, dtype, elems, &format_args!("{role} {n}")) })
        .collect()
}

fn input(range: &Range<usize>, (dtype, elems): (DType, u64)) -> Input<'static> {
    // SAFETY: the caller of the C function gives as many elements for the time of the call, and nothing writes them: what is
    // written was checked to overlap none.
    unsafe { Input::from_raw(dtype, with_exposed_provenance_mut(range.start), elems as usize) }
}

/// The addresses of bytes.
fn addresses(bytes: &[u8]) -> Range<usize> {
    match bytes.len() {
        0 => 0..0,
        length => bytes.as_ptr().addr()..bytes.as_ptr().addr() + length,
    }
}

/// Checks that what is written overlaps nothing else.
fn check_apart(written: &[Range<usize>], read: &[Range<usize>]) -> Result<(), Failure> {
    for (n, one) in written.iter().enumerate() {
        if read.iter().chain(&written[..n]).any(|other| overlap(one, other)) {
            return Err(Failure::new(Code::Argument, "memory that is written overlaps other memory of the call"));
        }
    }
    Ok(())
}

/// Reduces the blocks of a shard, and writes their state.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_shard_run(
    shard: *const Shard,
    inputs: *const Tensor,
    input_count: usize,
    state: *mut c_void,
    state_bytes: usize,
) -> *mut OwnedError {
    guard(|| {
        // SAFETY: the caller keeps the header's contract.
        let (shard, tensors) = unsafe { (given(shard, "shard")?, list(inputs, input_count, "inputs")?) };
        let spans = shard.shard.inputs().iter().zip(&shard.dtypes);
        let expected: Vec<_> = spans.map(|(span, &dtype)| (dtype, span.elems.end - span.elems.start)).collect();
        // SAFETY: as above.
        let (read, state) =
            unsafe { (rows("input", tensors, &expected)?, list_mut(state.cast::<u8>(), state_bytes, "state")?) };
        check_apart(&[addresses(state)], &read)?;
        let inputs: Vec<Input<'_>> = read.iter().zip(expected).map(|(range, of)| input(range, of)).collect();
        Ok(shard.shard.partial(&inputs, state)?)
    })
}

/// Writes states of no blocks.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_partial_identity(
    partial: *const Partial,
    states: *mut c_void,
    bytes: usize,
    count: usize,
) -> *mut OwnedError {
    guard(|| {
        // SAFETY: the caller keeps the header's contract.
        let (partial, states) =
            unsafe { (given(partial, "partial")?, list_mut(states.cast::<u8>(), bytes, "states")?) };
        Ok(partial.partial.identity(states, count)?)
    })
}

/// Combines each of several states with the state at the same place of others.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_partial_combine(
    partial: *const Partial,
    from: *const c_void,
    into: *mut c_void,
    bytes: usize,
    count: usize,
) -> *mut OwnedError {
    guard(|| {
        // SAFETY: the caller keeps the header's contract.
        let partial = unsafe { given(partial, "partial")? };
        // SAFETY: as above; it is seen that the two are apart before either is read.
        let (from, into) = unsafe {
            let from = list(from.cast::<u8>(), bytes, "from")?;
            let at = into.addr()..into.addr().saturating_add(bytes);
            check_apart(&[at], &[addresses(from)])?;
            (from, list_mut(into.cast::<u8>(), bytes, "into")?)
        };
        Ok(partial.partial.combine(from, into, count)?)
    })
}

/// Writes the ends of a range that a state has.
///
/// # Safety
/// As the header says of the functions that call it.
unsafe fn write_range(
    (partial, state, bytes): (*const Partial, *const c_void, usize),
    (first, end): (*mut u64, *mut u64),
    of: impl FnOnce(&cranefold::Partial, &[u8]) -> Result<Range<u64>, cranefold::PartialError>,
) -> *mut OwnedError {
    guard(|| {
        // SAFETY: the caller keeps the header's contract.
        let (partial, state) = unsafe { (given(partial, "partial")?, list(state.cast::<u8>(), bytes, "state")?) };
        // SAFETY: as above.
        let (first, end) = unsafe { (place(first, "first")?, place(end, "end")?) };
        let range = of(&partial.partial, state)?;
        first.write(range.start);
        end.write(range.end);
        Ok(())
    })
}

/// Writes the range of blocks of a state.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_partial_blocks_of(
    partial: *const Partial,
    state: *const c_void,
    bytes: usize,
    first: *mut u64,
    end: *mut u64,
) -> *mut OwnedError {
    // SAFETY: the caller keeps the header's contract.
    unsafe { write_range((partial, state, bytes), (first, end), cranefold::Partial::blocks_of) }
}

/// Writes the range of the axis of shards that a state has.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_partial_range_of(
    partial: *const Partial,
    state: *const c_void,
    bytes: usize,
    first: *mut u64,
    end: *mut u64,
) -> *mut OwnedError {
    // SAFETY: the caller keeps the header's contract.
    unsafe { write_range((partial, state, bytes), (first, end), cranefold::Partial::range_of) }
}

/// Writes the bytes that a state uses.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_partial_used_bytes(
    partial: *const Partial,
    state: *const c_void,
    bytes: usize,
    used: *mut usize,
) -> *mut OwnedError {
    guard(|| {
        // SAFETY: the caller keeps the header's contract.
        let (partial, state) = unsafe { (given(partial, "partial")?, list(state.cast::<u8>(), bytes, "state")?) };
        // SAFETY: as above.
        let into = unsafe { place(used, "used")? };
        into.write(partial.partial.used_bytes(state)?);
        Ok(())
    })
}

/// The number of inputs of `cranefold_partial_finish`; 0 of null.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_partial_finish_inputs(partial: *const Partial) -> usize {
    // SAFETY: the caller keeps the header's contract.
    unsafe { partial.as_ref() }.map_or(0, |partial| partial.partial.finish_inputs().len())
}

/// The number in the spec of an input of `cranefold_partial_finish`; -1 if there is none.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_partial_finish_input(partial: *const Partial, number: usize) -> i64 {
    // SAFETY: the caller keeps the header's contract.
    let input = unsafe { partial.as_ref() }.and_then(|partial| partial.partial.finish_inputs().get(number));
    input.map_or(-1, |&input| input as i64)
}

/// Writes the outputs of states of all blocks.
///
/// # Safety
/// As the header says.
#[allow(clippy::too_many_arguments, reason = "two lists of tensors in C are four arguments")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_partial_finish(
    partial: *const Partial,
    from: *const c_void,
    bytes: usize,
    count: usize,
    inputs: *const Tensor,
    input_count: usize,
    outputs: *const Tensor,
    output_count: usize,
) -> *mut OwnedError {
    guard(|| {
        // SAFETY: the caller keeps the header's contract.
        let (partial, from) = unsafe { (&given(partial, "partial")?.partial, list(from.cast::<u8>(), bytes, "from")?) };
        // SAFETY: as above.
        let (inputs, outputs) =
            unsafe { (list(inputs, input_count, "inputs")?, list(outputs, output_count, "outputs")?) };
        let of = |o: &cranefold::spec::Operand| (o.dtype(), o.span_elems().saturating_mul(count as u64));
        let operands = partial.spec().inputs();
        let of_inputs: Vec<_> = partial.finish_inputs().iter().map(|&i| of(&operands[i])).collect();
        let of_outputs: Vec<_> = partial.spec().outputs().iter().map(of).collect();
        // SAFETY: as above.
        let (read, written) = unsafe { (rows("input", inputs, &of_inputs)?, rows("output", outputs, &of_outputs)?) };
        let all: Vec<Range<usize>> = read.iter().cloned().chain([addresses(from)]).collect();
        check_apart(&written, &all)?;
        let inputs: Vec<Input<'_>> = read.iter().zip(of_inputs).map(|(range, of)| input(range, of)).collect();
        let output = |(range, (dtype, elems)): (&Range<usize>, (DType, u64))| {
            // SAFETY: the caller gives as many elements, which overlap nothing that is read or written.
            unsafe { Output::from_raw(dtype, with_exposed_provenance_mut(range.start), elems as usize) }
        };
        let mut outputs: Vec<Output<'_>> = written.iter().zip(of_outputs).map(output).collect();
        Ok(partial.finish(from, &inputs, &mut outputs, count)?)
    })
}

/// Writes the nests that merge and finish states.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_partial_dump(partial: *const Partial, dump: *mut *mut c_char) -> *mut OwnedError {
    guard(|| {
        // SAFETY: the caller keeps the header's contract.
        let (into, partial) = unsafe { (place(dump, "dump")?, given(partial, "partial")?) };
        give_text(into, &partial.partial.dump()?);
        Ok(())
    })
}
