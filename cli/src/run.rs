//! `run`: a reduction on files or random data, how fast it is and how exact.

use crate::args::{ExecutorName, Run};
use crate::arrays::{Arrays, check_count, element_bytes};
use crate::check::{self, Verdict, Worst};
use crate::execute::Executor;
use crate::failure::Failure;
use crate::figures;
use crate::strided::{Placed, walk};
use crate::timing::{self, Call, Samples};
use cranefold::{Reduction, Scalar};
use std::io::Write;

/// The threads a kernel may use.
const MOST_THREADS: u64 = 1;
/// Output elements that are shown.
const SHOWN: usize = 6;
/// Calls timed, and the time after which no more are.
const ROUNDS: (usize, usize) = (3, 101);
const BUDGET_NS: f64 = 4e8;
/// A first call that takes longer is the only one.
const SLOW_NS: f64 = 5e8;

/// Runs a reduction.
///
/// # Errors
/// If the request is wrong, and then nothing is written; [`Failure::WrongAnswer`] if the result is.
pub fn run(request: &Run, out: &mut dyn Write) -> Result<(), Failure> {
    let spec: Reduction = request.spec.parse()?;
    check_request(request, &spec)?;
    let options = request.forced.options()?;
    let seed = request.random.unwrap_or(0);
    let mut arrays = match request.input.as_slice() {
        [] => Arrays::random(&spec, seed)?,
        paths => Arrays::read(&spec, paths)?,
    };
    let (executor, prepare_ns) = timing::once_ns(|| Executor::prepare(&spec, request.executor, &options))?;
    let times = time(&mut *executor.call(&spec, &mut arrays))?;
    let verdict = match request.executor {
        ExecutorName::Reference => None,
        _ => Some(check::against_reference(&spec, &arrays.input_bytes(), &arrays.output_bytes())?),
    };
    if let Some(Verdict::Wrong(wrong)) = verdict {
        return Err(Failure::WrongAnswer { wrong });
    }
    arrays.write(&spec, &request.output)?;
    let data = if request.input.is_empty() { format!("random, seed {seed}") } else { "from files".into() };
    let lines = [
        ("spec", spec.to_string()),
        ("input", format!("{} of elements, {data}", figures::size(element_bytes(&spec)))),
        ("output", shown(&spec, &arrays)),
        ("kernel", kernel(&executor)),
        ("compile", compile(&executor, prepare_ns)),
        ("run", speed(&spec, &times)),
        ("error", verdict.as_ref().map_or("none: this is the reference".into(), exactness)),
    ];
    lines.iter().try_for_each(|(name, text)| writeln!(out, "{name:<8} {text}")).map_err(Failure::Stdout)
}

/// Checks what needs neither data nor code.
fn check_request(request: &Run, spec: &Reduction) -> Result<(), Failure> {
    if !(1..=MOST_THREADS).contains(&request.threads) {
        return Err(Failure::Threads { given: request.threads, limit: MOST_THREADS });
    }
    if request.executor == ExecutorName::Reference && request.forced.is_any() {
        let option = if request.forced.schedule.is_some() { "schedule" } else { "width" };
        return Err(Failure::NoSchedule { option });
    }
    match request.output.len() {
        0 => Ok(()),
        given => check_count("output", given, spec.outputs().len()),
    }
}

/// Times a call: the first, if it is slow, else several after it.
fn time(call: &mut Call) -> Result<Samples, Failure> {
    let mut only = Samples::single();
    only.take(call)?;
    if only.median_ns() > SLOW_NS {
        return Ok(only);
    }
    Ok(timing::in_turn(&mut [call], ROUNDS, BUDGET_NS)?.swap_remove(0))
}

/// The output's type and shape, and its first elements.
fn shown(spec: &Reduction, arrays: &Arrays) -> String {
    let operand = &spec.outputs()[0];
    let extents: Vec<String> = operand.shape().iter().map(u64::to_string).collect();
    let mut text = format!("{}[{}]", operand.dtype(), extents.join(","));
    let mut left = SHOWN;
    let place = Placed::of(operand);
    // Past the last element that is shown the walk is stopped, which is no error.
    let _: Result<(), ()> = walk(operand.shape(), place, place, |index, _| {
        let element = Scalar::read(operand.dtype(), arrays.outputs[0].bytes(), index);
        text += &if left > 0 { format!(" {element}") } else { " ...".into() };
        left = left.checked_sub(1).ok_or(())?;
        Ok(())
    });
    text
}

fn kernel(executor: &Executor) -> String {
    match executor {
        Executor::Native(kernel) => format!("{}, {} bytes of code", kernel.schedule(), kernel.facts().code_bytes),
        Executor::Interpreter(_, schedule) => format!("{schedule}, interpreted"),
        Executor::Reference => "none: the reference walks the spec".into(),
    }
}

fn compile(executor: &Executor, prepare_ns: f64) -> String {
    match executor {
        Executor::Native(kernel) => figures::time(kernel.facts().compile_ns as f64),
        Executor::Interpreter(..) => format!("{}, without code generation", figures::time(prepare_ns)),
        Executor::Reference => "none".into(),
    }
}

fn speed(spec: &Reduction, times: &Samples) -> String {
    let (median_ns, runs) = (times.median_ns(), times.len());
    let rate = figures::rate(element_bytes(spec), median_ns);
    match runs {
        1 => format!("{} (the only run), {rate} GB/s of input", figures::time(median_ns)),
        _ => format!("{} (median of {runs}), {rate} GB/s of input", figures::time(median_ns)),
    }
}

fn exactness(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Right { checked, outputs, worst, unbounded } => {
            let of = if checked == outputs { "all".into() } else { format!("{checked} of") };
            let overflow = match unbounded {
                0 => String::new(),
                _ => format!(", {unbounded} may overflow and have no bound"),
            };
            let error = match worst {
                Some(Worst { error, bound }) => {
                    format!("{} at most against the reference, bound {}", magnitude(*error), magnitude(*bound))
                }
                None if *unbounded > 0 => "no bound".into(),
                None => "none: equal to the reference".into(),
            };
            format!("{error} ({of} {outputs} outputs checked{overflow})")
        }
        Verdict::NotChecked { needed_ns } => {
            let (needed, limit) = (figures::time(*needed_ns), figures::time(check::BUDGET_NS));
            format!("not checked: the reference would take about {needed} for one output, the limit is {limit}")
        }
        Verdict::Wrong(wrong) => wrong.clone(),
    }
}

fn magnitude(error: f64) -> String {
    if error == 0.0 { "0".into() } else { format!("{error:.2e}") }
}
