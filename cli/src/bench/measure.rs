//! One case: right first, then fast.

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

/// The most elements the interpreter is given; it takes some 50 ns for each, and 1 us for an exponential.
pub const MOST_INTERPRETED: u64 = 1 << 21;

/// Rounds of samples: no more than the first once the budget is spent.
const ROUNDS: (usize, usize) = (7, 201);

/// What was measured of a case.
#[derive(Debug)]
pub struct Measured {
    /// Compilation and the first call.
    pub first_ns: f64,
    /// Compilation.
    pub compile_ns: f64,
    /// The median of a call.
    pub median_ns: f64,
    /// The least of a call.
    pub min_ns: f64,
    /// How many samples were taken.
    pub samples: usize,
    /// The median of a plain loop that reads the inputs' buffers and ones as large as the outputs', sampled
    /// in turn with the kernel.
    pub read_ns: f64,
    /// The hand-written loop that does most nearly the same, and the median of it over the same input, sampled in
    /// turn with the kernel; none where nothing is near.
    pub loop_ns: Option<(String, f64)>,
    /// The interpreter's one run; none where there are more elements than it is given, and the bits were
    /// compared with those of scalar code instead.
    pub interpreter_ns: Option<f64>,
}

/// How the kernel and what it is held against are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// In turn, so that what slows the machine for a while slows all; but each finds in the caches what the others left.
    InTurn,
    /// One after the other, each with the caches to itself, as peers are.
    Alone,
}

/// Compiles a case with these options, checks its answer and times it, for `budget_ns` or until there are enough
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
    let mut arrays = Arrays::random(&case.spec, 1)?;
    if offset > 0 {
        arrays.inputs = arrays.inputs.iter().map(|input| input.moved(offset)).collect::<Result<_, _>>()?;
    }
    // A compiler of its own: no case is answered from what was compiled for another.
    let compiler = Compiler::builder().target(target.clone()).threads(executor.threads()).build()?;
    let (kernel, first_ns) = timing::once_ns(|| {
        let kernel = compiler.compile_with(&case.spec, options)?;
        native(&kernel, executor, &arrays.inputs, &mut arrays.outputs)()?;
        Ok(kernel)
    })?;
    let interpreter_ns = check(case, &kernel, &compiler, &arrays)?;
    let mut written = outputs(&case.spec)?;
    // A page that was never written is the same page of zeros everywhere, and read from the cache.
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
        compile_ns: kernel.facts().compile_ns as f64,
        median_ns: samples[0].median_ns(),
        min_ns: samples[0].min_ns(),
        samples: samples[0].len(),
        read_ns: samples[1].median_ns(),
        loop_ns: ceiling.and_then(|ceiling| ceiling.fastest(medians)),
        interpreter_ns,
    })
}

/// Compares the bits of the outputs with the interpreter's, or where there is too much for it, with those
/// of code without vectors and wide functions. Gives the interpreter's time.
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
        // Decisions that are not named are at their simplest.
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
