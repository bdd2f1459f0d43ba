//! `run`: a reduction on files or random data, how fast it is and how exact.

use crate::args::{Check, ExecutorName, Run};
use crate::arrays::{Arrays, Old, check_count, input_bytes, moved_bytes};
use crate::check::{self, Found, Verdict, Worst};
use crate::execute::Executor;
use crate::failure::Failure;
use crate::figures;
use crate::notes;
use crate::npy::Form;
use crate::output_files::OutputFiles;
use crate::progress::Progress;
use crate::report::{self, Checked, NotChecked, budget_ns, print_json, print_lines};
use crate::run_given::run_given;
use crate::scalars::{self, ScalarError};
use crate::stream::stream;
use crate::threads::tuned_compiler;
use crate::timing::{self, Samples, Timed};
use cranefold::kernel::Facts;
use cranefold::schedule::Divided;
use cranefold::{Scalar, Spec};
use std::io::Write;
use std::path::PathBuf;

/// Output elements that are shown.
pub const SHOWN: usize = 6;
/// Calls timed, and the time after which no more are.
const ROUNDS: (usize, usize) = (3, 101);
const BUDGET_NS: f64 = 4e8;
/// The time in ns of a first call after which no more are timed.
const SLOW_NS: f64 = 5e8;

/// Runs a reduction.
///
/// # Errors
/// If an argument is wrong, and then nothing is written; [`Failure::WrongAnswer`] if the result is wrong, or
/// [`Failure::Contract`] if a combiner is the cause.
pub fn run(args: &Run, out: &mut dyn Write) -> Result<(), Failure> {
    if let Some(memory) = &args.memory {
        return stream(args, memory, out);
    }
    if let Some(from) = args.from {
        return run_given(args, from, out);
    }
    let spec: Spec = args.spec.parse()?;
    let compiler = tuned_compiler(args.threads, args.schedules.as_deref())?;
    let scalars = check_args(args, &spec)?;
    let options = args.forced.options()?;
    let places = places(args)?;
    let seed = args.random.unwrap_or(0);
    let form = if args.raw { Form::Raw } else { Form::Logical };
    let progress = Progress::start(if args.input.is_empty() { "drawing data" } else { "reading data" }, !args.quiet);
    let mut arrays = match args.input.as_slice() {
        [] => Arrays::random(&spec, seed)?,
        paths => Arrays::read(&spec, form, paths)?,
    };
    arrays.set_scalars(&spec, &scalars);
    let old = Arrays::old(&spec, form, &args.old)?;
    progress.stage("compiling");
    let (executor, prepare_ns) = timing::once_ns(|| Executor::prepare(&spec, args.executor, &options, &compiler))?;
    progress.stage("running");
    let times = time(&mut *executor.call(&spec, &mut arrays))?;
    if !old.is_empty() {
        // The timed calls have read the results of the calls before them.
        arrays.restore(&old);
        executor.call(&spec, &mut arrays)()?;
    }
    progress.stage("checking");
    let found = checked(args, &spec, &arrays, &old)?;
    progress.stage("writing");
    arrays.write(&spec, form, &places)?;
    drop(progress);
    if args.quiet {
        return Ok(());
    }
    if !args.json {
        notes::print(&spec);
    }
    if args.json {
        return print_json((args, &spec), &arrays, &executor, &times, &found, out);
    }
    let mut lines = vec![("spec".to_string(), spec.to_string()), ("input".into(), data(args, &spec, &arrays, seed))];
    let several = spec.outputs().len() > 1;
    let numbered = |name: &str, n: usize| if several { format!("{name} {n}") } else { name.into() };
    lines.extend((0..spec.outputs().len()).map(|n| (numbered("output", n), shown(&spec, n, &arrays))));
    lines.push(("kernel".into(), kernel(&executor)));
    lines.push(("compile".into(), compile(&executor, prepare_ns)));
    lines.push(("run".into(), speed(moved_bytes(&spec), &times)));
    match &found {
        Ok(found) => lines.extend(found.iter().enumerate().map(|(n, found)| (numbered("error", n), exactness(found)))),
        Err(why) => lines.push(("error".into(), unchecked(why, args))),
    }
    print_lines(&lines, &args.output, out)
}

/// Holds the outputs against the reference, as far as is wanted.
fn checked(args: &Run, spec: &Spec, arrays: &Arrays, old: &[Old]) -> Result<Checked, Failure> {
    if args.executor == ExecutorName::Reference {
        return Ok(Err(NotChecked::IsReference));
    }
    if args.check == Check::None {
        return Ok(Err(NotChecked::NotWanted));
    }
    let given = check::Given { inputs: &arrays.input_bytes(), old: &arrays.old_bytes(old) };
    match check::against_reference(spec, given, &arrays.output_bytes(), budget_ns(args.check))? {
        Verdict::Wrong(wrong) => Err(check::blame(spec, wrong)),
        Verdict::Right(found) => Ok(Ok(found)),
        Verdict::NotChecked { needed_ns } => Ok(Err(NotChecked::TooLong { needed_ns })),
    }
}

/// The description of the inputs.
fn data(args: &Run, spec: &Spec, arrays: &Arrays, seed: u64) -> String {
    let from = if args.input.is_empty() { format!("random, seed {seed}") } else { "from files".into() };
    let parts = [format!("{} of elements, {from}", figures::size(input_bytes(spec)))];
    parts.into_iter().chain(arrays.scalars(spec)).collect::<Vec<_>>().join(", ")
}

/// The places of the outputs' files: none of them another's or an input's. An old file may be the output's, for it is
/// what that held before.
pub fn places(args: &Run) -> Result<OutputFiles, Failure> {
    let named = |role: &str, paths: &'_ [PathBuf]| -> Vec<(PathBuf, String)> {
        paths.iter().enumerate().map(|(n, path)| (path.clone(), format!("{role} {n}"))).collect()
    };
    if let Some(path) = args.output.iter().find(|path| path.extension().is_some_and(|end| end == "npz")) {
        return Err(Failure::Archive { path: path.clone() });
    }
    OutputFiles::of(&named("output", &args.output), &named("input", &args.input))
}

/// Checks the arguments that need neither data nor code; returns the scalars.
fn check_args(args: &Run, spec: &Spec) -> Result<Vec<Option<Scalar>>, Failure> {
    if args.executor == ExecutorName::Reference && args.forced.is_any() {
        let option = if args.forced.schedule.is_some() { "schedule" } else { "width" };
        return Err(Failure::NoSchedule { option });
    }
    let from_stdin = args.input.iter().chain(&args.old).filter(|path| path.as_os_str() == "-").count();
    if from_stdin > 1 {
        return Err(Failure::Stdin { given: from_stdin });
    }
    let values = scalars::given(spec, &args.scalar)?;
    let names = spec.inputs().iter().filter_map(scalars::name);
    let missing = names.zip(&values).find(|(_, value)| value.is_none());
    if let Some((name, _)) = missing.filter(|_| !args.input.is_empty()) {
        return Err(ScalarError::Missing { name: name.into() }.into());
    }
    match args.output.len() {
        0 => Ok(values),
        given => check_count("output", given, spec.outputs().len()).map(|()| values),
    }
}

/// Times a call: the first, if it is slow, else several after it.
pub fn time(call: &mut Timed) -> Result<Samples, Failure> {
    let mut only = Samples::single();
    only.take(call)?;
    if only.median_ns() > SLOW_NS {
        return Ok(only);
    }
    Ok(timing::in_turn(&mut [call], ROUNDS, BUDGET_NS)?.swap_remove(0))
}

/// An output's type, shape and layout, and its first elements.
pub fn shown(spec: &Spec, output: usize, arrays: &Arrays) -> String {
    let operand = &spec.outputs()[output];
    let extents: Vec<String> = operand.shape().iter().map(u64::to_string).collect();
    let mut text = format!("{}[{}]", operand.dtype(), extents.join(","));
    if !operand.layout().is_row_major() {
        text += &format!("@{}", operand.layout());
    }
    let bytes = arrays.outputs[output].bytes();
    for place in operand.places().take(SHOWN) {
        text += &format!(" {}", Scalar::read(operand.dtype(), bytes, place));
    }
    if operand.elems() > SHOWN as u64 { text + " ..." } else { text }
}

fn kernel(executor: &Executor) -> String {
    match executor {
        Executor::Native(kernel, _) => format!("{}, {}", kernel.schedule(), code(&kernel.facts())),
        Executor::Interpreter(_, schedule) => format!("{schedule}, interpreted"),
        Executor::Reference => "none: the reference walks the spec".into(),
    }
}

pub fn code(facts: &Facts) -> String {
    let Facts { code_bytes, wide_functions, step_loops, .. } = facts;
    let parts = match facts.divided {
        None => String::new(),
        Some(Divided::Outputs) => format!("{} parts of the outputs, ", facts.parts),
        Some(Divided::Blocks) => format!("{} parts of the blocks, ", facts.parts),
    };
    if wide_functions.count == 0 {
        return format!("{parts}{code_bytes} bytes of code");
    }
    let s = if wide_functions.count == 1 { "" } else { "s" };
    let mut text = format!(
        "{parts}{code_bytes} bytes of code, {} of them in {} wide function{s}",
        wide_functions.code_bytes, wide_functions.count
    );
    text += &format!(" of {}-bit vectors", wide_functions.vector_bits);
    match step_loops.in_wide + step_loops.outside {
        0 => text,
        all => text + &format!(" with {} of {all} loops over steps", step_loops.in_wide),
    }
}

fn compile(executor: &Executor, prepare_ns: f64) -> String {
    match executor {
        Executor::Native(kernel, _) => figures::time(kernel.facts().compile_ns as f64),
        Executor::Interpreter(..) => format!("{}, without code generation", figures::time(prepare_ns)),
        Executor::Reference => "none".into(),
    }
}

pub fn speed(moved_bytes: u64, times: &Samples) -> String {
    let (median_ns, runs) = (times.median_ns(), times.len());
    let rate = figures::rate(moved_bytes, median_ns);
    match runs {
        1 => format!("{} (the only run), {rate} GB/s read and written", figures::time(median_ns)),
        _ => format!("{} (median of {runs}), {rate} GB/s read and written", figures::time(median_ns)),
    }
}

fn exactness(found: &Found) -> String {
    let Found { checked, elements, worst, unbounded } = found;
    let of = if checked == elements { "all".into() } else { format!("{checked} of") };
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
    format!("{error} ({of} {elements} outputs checked{overflow})")
}

fn unchecked(why: &NotChecked, args: &Run) -> String {
    match why {
        NotChecked::IsReference => "none: this is the reference".into(),
        NotChecked::NotWanted => report::unchecked("reference", 0.0, budget_ns(args.check)),
        NotChecked::TooLong { needed_ns } => report::unchecked("reference", *needed_ns, budget_ns(args.check)),
    }
}

fn magnitude(error: f64) -> String {
    if error == 0.0 { "0".into() } else { format!("{error:.2e}") }
}
