//! `run --from`: a problem or a nest on files or random data, held against the interpreter.

use crate::args::{ExecutorName, From, Run};
use crate::arrays::check_count;
use crate::buffer::Buffer;
use crate::execute::native;
use crate::failure::{Failure, without_controls};
use crate::figures;
use crate::given::{Flat, Given, interpret};
use crate::report::{budget_ns, print_lines};
use crate::run::{self, code};
use crate::threads::{pool, tuned_compiler};
use cranefold::ir::Nest;
use cranefold::ir::work::visits;
use cranefold::{DType, Kernel, Scalar};
use std::io::Write;
use std::path::Path;

/// Nanoseconds of the interpreter for a visit, about.
const VISIT_NS: f64 = 20.0;

/// Runs a problem or a nest.
///
/// # Errors
/// If an argument is wrong, and then nothing is written; [`Failure::WrongAnswer`] if the bits are not those of the
/// interpreter.
pub fn run_given(args: &Run, from: From, out: &mut dyn Write) -> Result<(), Failure> {
    check_args(args)?;
    let given = Given::read(from, Path::new(&args.spec))?;
    let (compiler, options) = (tuned_compiler(args.threads, args.schedules.as_deref())?, args.forced.options()?);
    let places = run::places(args)?;
    // What does not verify is refused before anything is asked of it.
    let kernel = given.compile(&compiler, &options)?;
    let seed = args.random.unwrap_or(0);
    let mut flat = Flat::of(&given, &args.input, &args.old, seed)?;
    if !args.output.is_empty() {
        check_count("output", args.output.len(), flat.outputs.len())?;
    }
    let nest = given.meaning();
    let is_native = args.executor == ExecutorName::Native;
    let budget_ns = budget_ns(args.check);
    let needed_ns = VISIT_NS * visits(&nest) as f64;
    let mut expected = flat.copy_of_outputs()?;
    if !is_native || needed_ns <= budget_ns {
        interpret(&nest, &flat.inputs, &mut expected);
    }
    let pool = pool(compiler.threads())?;
    let mut times = None;
    if is_native {
        let before = flat.copy_of_outputs()?;
        let Flat { inputs, outputs, .. } = &mut flat;
        native(&kernel, &pool, inputs, outputs)()?;
        check(&flat, &nest, (&expected, needed_ns <= budget_ns))?;
        // The calls that are timed read what the ones before them wrote.
        let mut timed = before.iter().map(|buffer| buffer.moved(0)).collect::<Result<Vec<_>, _>>()?;
        times = Some(run::time(&mut native(&kernel, &pool, &flat.inputs, &mut timed))?);
    } else {
        flat.outputs = expected;
    }
    flat.write(&places)?;
    let facts = kernel.facts();
    let bytes: u64 = flat.inputs.iter().map(|buffer| buffer.bytes().len() as u64).sum();
    let source = if args.input.is_empty() { format!("random, seed {seed}") } else { "from files".into() };
    let what = if matches!(given, Given::Nest(_)) { "nest" } else { "problem" };
    let mut lines = vec![
        (what.to_string(), name(&given, &kernel)),
        ("input".into(), format!("{} of elements, {source}", figures::size(bytes))),
    ];
    let several = flat.outputs.len() > 1;
    let numbered = |n: usize| if several { format!("output {n}") } else { "output".into() };
    lines.extend(flat.written().enumerate().map(|(n, array)| (numbered(n), shown(array, flat.outputs[n].bytes()))));
    lines.push(("kernel".into(), format!("{}, {}", kernel.schedule(), code(&facts))));
    lines.push(("compile".into(), figures::time(facts.compile_ns as f64)));
    match &times {
        Some(times) => lines.push(("run".into(), run::speed(facts.bytes, times))),
        None => lines.push(("run".into(), "interpreted, not timed".into())),
    }
    lines.push((
        "error".into(),
        match (is_native, needed_ns <= budget_ns) {
            (false, _) => "none: this is the interpreter".into(),
            (true, true) => "none: equal to the interpreter".into(),
            (true, false) => unchecked(needed_ns, budget_ns),
        },
    ));
    if args.quiet { Ok(()) } else { print_lines(&lines, &args.output, out) }
}

/// Checks what needs neither data nor code.
fn check_args(args: &Run) -> Result<(), Failure> {
    let refused = |option| Err(Failure::OfSpec { option });
    if args.executor == ExecutorName::Reference {
        return refused("--executor reference");
    }
    if args.json {
        return refused("--json");
    }
    if !args.scalar.is_empty() {
        return refused("--scalar");
    }
    Ok(())
}

/// The name of a nest, and of a problem that of its nest.
fn name(given: &Given, kernel: &Kernel) -> String {
    let name = match given {
        Given::Nest(nest) => nest.name.clone(),
        Given::Problem(_) => kernel
            .dump("nest")
            .map_or(String::new(), |text| text.parse::<Nest>().map_or(String::new(), |nest| nest.name)),
    };
    without_controls(&name, false)
}

/// Holds the outputs against those of the interpreter, where it has run.
fn check(flat: &Flat, nest: &Nest, (expected, is_checked): (&[Buffer], bool)) -> Result<(), Failure> {
    if !is_checked {
        return Ok(());
    }
    let buffers = flat.outputs.iter().zip(expected);
    for (n, ((dtype, len), (output, expected))) in flat.written().zip(buffers).enumerate() {
        let at = |buffer: &Buffer, i| Scalar::read(dtype, buffer.bytes(), i);
        // The language leaves open which NaN an operation gives.
        let is_same = |a: Scalar, b: Scalar| a.bits() == b.bits() || dtype.is_float() && a.is_nan() && b.is_nan();
        if let Some(i) = (0..len as usize).find(|&i| !is_same(at(output, i), at(expected, i))) {
            let (output, expected) = (at(output, i), at(expected, i));
            let wrong = format!("element {i} of output {n} is {output}, and {expected} by the interpreter\n{nest}");
            return Err(Failure::WrongAnswer { wrong });
        }
    }
    Ok(())
}

/// An array's type and length, and its first elements.
fn shown((dtype, len): (DType, u64), bytes: &[u8]) -> String {
    let elements = (0..len.min(run::SHOWN as u64) as usize).map(|i| format!(" {}", Scalar::read(dtype, bytes, i)));
    let more = if len > run::SHOWN as u64 { " ..." } else { "" };
    format!("{dtype}[{len}]{}{more}", elements.collect::<String>())
}

fn unchecked(needed_ns: f64, budget_ns: f64) -> String {
    crate::report::unchecked("interpreter", needed_ns, budget_ns)
}
