//! The measurement of one case: first its result is checked, then it is timed.

use super::cases::Case;
use super::ceiling::Ceiling;
use super::memory;
use crate::arrays::{Arrays, outputs};
use crate::buffer::Buffer;
use crate::check::blame;
use crate::execute::{interpret, native};
use crate::failure::Failure;
use crate::timing;
use cranefold::{Compiler, Executor, Kernel, Options, Schedule, Serial, Target, pipeline};
use std::hint::black_box;

/// The most elements that the interpreter is given; it takes some 50 ns for each, and 1 us for an exponential.
pub const MOST_INTERPRETED: u64 = 1 << 21;

/// The least and the most rounds of samples; beyond the least, rounds end with the budget.
const ROUNDS: (usize, usize) = (7, 201);

/// Bytes of a page.
const PAGE_BYTES: usize = 4096;

/// The measurements of a case.
#[derive(Debug)]
pub struct Measured {
    /// The time of compilation and the first call, on outputs that nobody has touched.
    pub first_ns: f64,
    /// The time to touch each page of as many outputs for the first time, a part of `first_ns`.
    pub touch_ns: f64,
    /// The time of compilation.
    pub compile_ns: f64,
    /// The median time of a call.
    pub median_ns: f64,
    /// The least time of a call.
    pub min_ns: f64,
    /// The number of samples.
    pub samples: usize,
    /// The median time of a plain loop that reads the inputs' buffers, and buffers as large as the outputs', sampled in
    /// turn with the kernel.
    pub read_ns: f64,
    /// The hand-written loop that is nearest to the case, and its median time over the same input, sampled in turn with
    /// the kernel; `None` if none is near.
    pub loop_ns: Option<(String, f64)>,
    /// The time of the interpreter's one run; `None` if there are too many elements for it, and the bits were compared
    /// with those of scalar code instead.
    pub interpreter_ns: Option<f64>,
}

/// The order of samples of the kernel and of the loops it is compared to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// In turn: anything that slows the machine for a while slows all, but each finds the caches as the others left
    /// them.
    InTurn,
    /// One after the other: each has the caches to itself, like the peers.
    Alone,
}

/// Compiles a case with these options, checks its answer and times it, until `budget_ns` is spent or there are enough
/// samples. Inputs begin `offset` bytes after the start of a page.
///
/// # Errors
/// If it cannot be compiled, or the answer is wrong.
pub fn measure(
    case: &Case,
    target: &Target,
    options: &Options,
    executor: &dyn Executor,
    budget_ns: f64,
    order: Order,
    offset: u64,
) -> Result<Measured, Failure> {
    let mut arrays = case.arrays()?;
    if offset > 0 {
        arrays.inputs = arrays.inputs.iter().map(|input| input.moved(offset)).collect::<Result<_, _>>()?;
    }
    // The compiler is the case's own, so that no code comes from another case.
    let compiler = Compiler::builder().target(target.clone()).threads(executor.threads()).build()?;
    let (kernel, first_ns) = timing::once_ns(|| {
        let kernel = compiler.compile_with(&case.spec, options)?;
        native(&kernel, executor, &arrays.inputs, &mut arrays.outputs)()?;
        Ok(kernel)
    })?;
    let interpreter_ns = check(case, &kernel, &compiler, &arrays)?;
    let mut written = outputs(&case.spec)?;
    let ((), touch_ns) = timing::once_ns(|| {
        written
            .iter_mut()
            .for_each(|buffer| buffer.bytes_mut().iter_mut().step_by(PAGE_BYTES).for_each(|byte| *byte = 1));
        Ok(())
    })?;
    // A page that was never written is the same page of zeros everywhere, and is read from the cache.
    written.iter_mut().for_each(|buffer| buffer.bytes_mut().fill(1));
    let Arrays { inputs, outputs } = &mut arrays;
    let bytes: Vec<&[u8]> = inputs.iter().chain(&written).map(Buffer::bytes).collect();
    let mut read = || {
        for bytes in &bytes {
            black_box(memory::read(black_box(bytes)));
        }
        Ok(())
    };
    let ceiling = Ceiling::of(&case.spec);
    let mut loops = match &ceiling {
        Some(ceiling) => ceiling.calls(inputs)?,
        None => vec![],
    };
    let mut call = native(&kernel, executor, inputs, outputs);
    let mut calls: Vec<&mut timing::Timed> = vec![&mut call, &mut read];
    calls.extend(loops.iter_mut().map(|one| &mut **one as &mut timing::Timed));
    let samples = match order {
        Order::InTurn => timing::in_turn(&mut calls, ROUNDS, budget_ns)?,
        Order::Alone => {
            let each = calls.iter_mut().map(|call| timing::in_turn(&mut [&mut **call], ROUNDS, budget_ns));
            each.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect()
        }
    };
    let medians = samples[2..].iter().map(timing::Samples::median_ns);
    Ok(Measured {
        first_ns,
        touch_ns,
        compile_ns: kernel.facts().compile_ns as f64,
        median_ns: samples[0].median_ns(),
        min_ns: samples[0].min_ns(),
        samples: samples[0].len(),
        read_ns: samples[1].median_ns(),
        loop_ns: ceiling.and_then(|ceiling| ceiling.fastest(medians)),
        interpreter_ns,
    })
}

/// Compares the bits of the outputs with the interpreter's; if there are too many elements, with those of code without
/// vectors and wide functions. Returns the interpreter's time.
fn check(case: &Case, kernel: &Kernel, compiler: &Compiler, arrays: &Arrays) -> Result<Option<f64>, Failure> {
    let mut expected = outputs(&case.spec)?;
    let elements: u64 = case.spec.inputs().iter().map(|operand| operand.elems()).sum();
    let (other, interpreter_ns) = if elements <= MOST_INTERPRETED {
        let program = pipeline::legal(kernel.decided())?;
        let ((), ns) = timing::once_ns(|| {
            interpret(&program, &arrays.inputs, &mut expected);
            Ok(())
        })?;
        ("the interpreter", Some(ns))
    } else {
        // Decisions that are not named have their defaults.
        let scalar: Schedule = "width=0".parse()?;
        let options = Options { schedule: Some(scalar), width: None };
        native(&compiler.compile_with(&case.spec, &options)?, &Serial, &arrays.inputs, &mut expected)()?;
        ("scalar code", None)
    };
    let differ = arrays.outputs.iter().zip(&expected).any(|(got, expected)| got.bytes() != expected.bytes());
    match differ {
        false => Ok(interpreter_ns),
        true => {
            let wrong = format!("`{}` gives other bits in the kernel than in {other}", case.spec);
            Err(blame(&case.spec, wrong))
        }
    }
}
