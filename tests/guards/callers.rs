//! Calls that are refused: by a typed error, and with nothing written.
//!
//! That an output overlaps another buffer cannot be said to a checked call: outputs are unique borrows. The
//! documentation of `Kernel::run_one` has a call that does not compile.

use crate::cases::{Case, TAILS, ops};
use cranefold::{CallError, Compiler, DType, Input, Kernel, Options, Output, Rayon};
use cranefold_fuzz::data::Buffer;
use cranefold_fuzz::execute::Memory;
use std::mem::MaybeUninit;

/// Buffers as they are given: element type and bytes.
type Given = Vec<(DType, Vec<u8>)>;

/// A way to call a kernel.
type Way = fn(&Kernel, &[Input], &mut [Output]) -> Result<(), CallError>;

/// What is wrong with a list of buffers, and the list.
fn wrong(buffers: &Given) -> Vec<(String, Given)> {
    let mut all = vec![("none".to_string(), vec![])];
    let mut changed = |what: String, change: &dyn Fn(&mut Given)| {
        let mut given = buffers.clone();
        change(&mut given);
        all.push((what, given));
    };
    changed("one more".into(), &|given: &mut Given| given.push(given[0].clone()));
    for (n, (dtype, bytes)) in buffers.iter().enumerate() {
        let size = dtype.bytes() as usize;
        let other = if *dtype == DType::I32 { DType::F32 } else { DType::I32 };
        changed(format!("{n} of another type"), &|given: &mut Given| given[n].0 = other);
        if !bytes.is_empty() {
            changed(format!("{n} one shorter"), &|given: &mut Given| given[n].1.truncate(bytes.len() - size));
            changed(format!("{n} empty"), &|given: &mut Given| given[n].1.clear());
        }
        if size > 1 && !bytes.is_empty() {
            changed(format!("{n} one byte shorter"), &|given: &mut Given| given[n].1.truncate(bytes.len() - 1));
        }
    }
    all
}

/// Calls a kernel in every way there is; all must be refused.
fn refused(kernel: &Kernel, inputs: &Given, outputs: &Given) -> Result<usize, String> {
    let ways: [Way; 4] = [
        |kernel, inputs, outputs| kernel.run(inputs, outputs),
        |kernel, inputs, outputs| kernel.run_on(&Rayon, inputs, outputs),
        |kernel, inputs, outputs| kernel.call(inputs, outputs).map(drop),
        |kernel, inputs, outputs| {
            let mut scratch = vec![MaybeUninit::new(0u8); kernel.scratch_bytes() as usize + 64];
            let start = scratch.as_ptr().align_offset(64);
            kernel.call_in(inputs, outputs, &mut scratch[start..]).map(drop)
        },
    ];
    for (n, way) in ways.into_iter().enumerate() {
        let mut after = outputs.clone();
        let inputs: Vec<Input> = inputs.iter().map(|(dtype, bytes)| Input::from_bytes(*dtype, bytes)).collect();
        let mut places: Vec<Output> =
            after.iter_mut().map(|(dtype, bytes)| Output::from_bytes(*dtype, bytes)).collect();
        match way(kernel, &inputs, &mut places) {
            Err(
                CallError::Count { .. }
                | CallError::DType { .. }
                | CallError::Length { .. }
                | CallError::PartialElement { .. },
            ) => {}
            other => return Err(format!("call {n} gives {other:?}")),
        }
        if after != *outputs {
            return Err(format!("call {n} writes"));
        }
    }
    Ok(ways.len())
}

fn given(dtypes: impl Iterator<Item = DType>, buffers: &[Buffer]) -> Given {
    dtypes.zip(buffers).map(|(dtype, buffer)| (dtype, buffer.bytes().to_vec())).collect()
}

#[test]
fn wrong_buffers_are_refused_and_nothing_is_written() {
    let compiler = Compiler::builder().threads(3).most_kernels(64).build().expect("a compiler for this machine");
    let (ops, mut calls) = (ops(), 0);
    for number in (0..ops.len()).map(|op| op * TAILS as usize + 7 + op % 100) {
        let case = Case::of(&ops, number);
        let memory = Memory::of(&case.spec, 3, 1, (0, 0));
        let inputs = given(case.spec.inputs().iter().map(|o| o.dtype()), &memory.inputs);
        let outputs = given(case.spec.outputs().iter().map(|o| o.dtype()), &memory.outputs);
        let options = Options { schedule: Some(case.schedule.clone()), width: None };
        let kernel = compiler.compile_with(&case.spec, &options).expect("a kernel");
        let wrong_inputs =
            wrong(&inputs).into_iter().map(|(what, given)| (format!("inputs: {what}"), given, outputs.clone()));
        let wrong_outputs =
            wrong(&outputs).into_iter().map(|(what, given)| (format!("outputs: {what}"), inputs.clone(), given));
        for (what, inputs, outputs) in wrong_inputs.chain(wrong_outputs) {
            calls += refused(&kernel, &inputs, &outputs).unwrap_or_else(|why| panic!("{}, {what}: {why}", case.spec));
        }
    }
    assert!(calls > 10_000, "{calls} calls");
}

#[test]
fn wrong_scratch_memory_is_refused_and_nothing_is_written() {
    let compiler = Compiler::host().expect("this machine");
    for (spec, schedule) in [
        ("median f32[3,20000] axes=[1]", "parts=3"),
        ("mode i16[40000,3] axes=[0]", "jam=1"),
        ("sum f32[40000]", "parts=4@blocks"),
        ("var f64[3,40000] axes=[1]", "parts=2@blocks"),
    ] {
        let spec = spec.parse().expect("a spec");
        let options = Options { schedule: Some(schedule.parse().expect("a schedule")), width: None };
        let kernel = compiler.compile_with(&spec, &options).expect("a kernel");
        let bytes = kernel.scratch_bytes() as usize;
        assert!(bytes > 0, "{spec}");
        let memory = Memory::of(&spec, 3, 1, (0, 0));
        let inputs = given(spec.inputs().iter().map(|o| o.dtype()), &memory.inputs);
        let mut outputs = given(spec.outputs().iter().map(|o| o.dtype()), &memory.outputs);
        let before = outputs.clone();
        let inputs: Vec<Input> = inputs.iter().map(|(dtype, bytes)| Input::from_bytes(*dtype, bytes)).collect();
        let mut scratch = vec![MaybeUninit::new(0x5au8); bytes + 128];
        let start = scratch.as_ptr().align_offset(64);
        for (off, len) in [(0, bytes - 1), (0, bytes / 2), (0, 0)].into_iter().chain((1..64).map(|off| (off, bytes))) {
            let mut places: Vec<Output> =
                outputs.iter_mut().map(|(dtype, bytes)| Output::from_bytes(*dtype, bytes)).collect();
            let error = kernel.call_in(&inputs, &mut places, &mut scratch[start + off..][..len]).map(drop);
            let expected = match &error {
                Err(CallError::ScratchLength { .. }) => len < bytes,
                Err(CallError::ScratchAlign { .. }) => off > 0,
                _ => false,
            };
            assert!(expected, "{spec}, {len} bytes {off} off: {error:?}");
        }
        assert!(outputs == before, "{spec}: an output is written");
    }
}
