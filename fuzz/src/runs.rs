//! Laws of compilations: every pass gives a nest that verifies, and native code gives the bits of the interpreter.

use crate::bits::{are_equal, difference, is_allowed, native, only_elements_are_written};
use crate::execute::Memory;
use crate::nests;
use crate::regions::RegionCase;
use crate::specs::Case;
use crate::texts::text;
use cranefold::ir::{Nest, verify};
use cranefold::schedule::{Bounds, Decided};
use cranefold::{Compiler, Options, Problem, Schedule, Spec, Vectors, lower, pipeline};
use std::sync::LazyLock;

/// The compiler. It keeps few codes, so that most are freed while others are made.
static COMPILER: LazyLock<Compiler> =
    LazyLock::new(|| Compiler::builder().threads(4).most_kernels(64).build().expect("this machine"));

/// The widths, one of which a schedule is chosen for.
const WIDTHS: [u32; 4] = [512, 256, 128, 0];

/// The most elements of an operand that is interpreted, gaps included.
const MOST_ELEMS: u64 = 4096;
const MOST_BYTES: u64 = 1 << 16;

/// The spec, and the schedule if there is one: the line before the spec.
fn compilation(text: &str) -> Option<(Spec, Option<Schedule>)> {
    match text.split_once('\n') {
        None => Some((text.parse().ok()?, None)),
        Some((schedule, spec)) => Some((spec.parse().ok()?, Some(schedule.parse().ok()?))),
    }
}

/// Puts a spec or a problem through all passes.
pub fn stages(bytes: &[u8]) -> bool {
    let text = text(bytes);
    let width = WIDTHS[text.len() % WIDTHS.len()];
    let bounds = Bounds::new(Vectors::WIDEST).at_most(width);
    let through = |problem: &Problem, forced: Option<&Schedule>| {
        let bounds = forced.map_or(bounds, |_| Bounds::new(Vectors::WIDEST));
        pipeline::stages(&Decided::of(problem.clone(), forced, bounds).expect("a schedule that fits"))
    };
    if let Ok(problem) = text.parse::<Problem>() {
        // Boxes of outputs may overlap, which the verifier finds.
        let _ = through(&problem, None);
        return true;
    }
    let Some((spec, forced)) = compilation(&text) else { return false };
    let problem = Problem::of(&spec);
    let forced = forced.filter(|schedule| schedule.check(&problem).is_ok());
    if let Err(error) = through(&problem, forced.as_ref()) {
        panic!("{spec}, {forced:?}: {error}");
    }
    true
}

/// Compiles a spec from text, and runs it if it is small.
pub fn compile(bytes: &[u8]) -> bool {
    let text = text(bytes);
    let Some((spec, schedule)) = compilation(&text) else { return false };
    let problem = Problem::of(&spec);
    let schedule = schedule.filter(|schedule| schedule.check(&problem).is_ok());
    let width = schedule.is_none().then(|| WIDTHS[text.len() % WIDTHS.len()]);
    let options = Options { schedule, width };
    let operands = || spec.inputs().iter().chain(spec.outputs());
    if operands().any(|o| o.elems() > MOST_ELEMS || o.span_bytes() > MOST_BYTES) {
        let compiled = COMPILER.compile_with(&spec, &options);
        compiled.unwrap_or_else(|error| panic!("{spec}, {options:?}: {error}"));
        return true;
    }
    let kind = (text.len() % 8) as u8;
    same_bits(&spec, &Memory::of(&spec, kind, text.len() as u64, (text.len() % 16, 0)), &options, true);
    true
}

/// The text of a nest, or of a problem: compiled where it verifies, and run if it is small.
pub fn given(bytes: &[u8]) -> bool {
    let text = text(bytes);
    let options = Options { schedule: None, width: Some(WIDTHS[text.len() % WIDTHS.len()]) };
    let (nest, made) = match text.parse::<Nest>() {
        Err(_) => {
            let Ok(problem) = text.parse::<Problem>() else { return false };
            (lower::lower(&problem, "naive"), Some(COMPILER.compile_problem(&problem, &options)))
        }
        Ok(nest) => (nest, None),
    };
    if verify(&nest).is_err() || !nests::is_small(&nest) {
        return false;
    }
    let (kind, seed) = ((text.len() % 8) as u8, text.len() as u64);
    let agrees = match made {
        None => nests::native(&COMPILER, &nest, &options, kind, seed),
        Some(Ok(kernel)) => nests::agrees(&kernel, &nest, kind, seed).map(|()| true),
        Some(Err(error)) => Err(error.to_string()),
    };
    agrees.unwrap_or_else(|error| panic!("{error}\n{nest}"))
}

/// A [`Case`] of numbers: compiled as it may be asked for, and run.
pub fn run(bytes: &[u8]) -> bool {
    let case = Case::of(bytes, 600, 6);
    let spec = case.spec();
    let memory = Memory::of(&spec, case.kind, case.seed, case.offsets);
    let mut options = case.options(&Problem::of(&spec));
    let options = options.swap_remove((case.seed >> 8) as usize % options.len());
    same_bits(&spec, &memory, &options, case.seed.is_multiple_of(8));
    true
}

/// A [`RegionCase`] of numbers: compiled at some width, and run.
pub fn run_region(bytes: &[u8]) -> bool {
    let case = RegionCase::of(bytes, 600);
    let spec = case.spec();
    let memory = Memory::of(&spec, case.kind, case.seed, case.offsets);
    let options = Options { schedule: None, width: Some(WIDTHS[(case.seed >> 8) as usize % WIDTHS.len()]) };
    same_bits(&spec, &memory, &options, case.seed.is_multiple_of(8));
    true
}

/// Checks that native code gives the bits of the naive nest and writes the same places; if `allowed`, also that the
/// reference allows them.
fn same_bits(spec: &Spec, memory: &Memory, options: &Options, allowed: bool) {
    let fail = |message: String| panic!("{spec}: {message}");
    let naive = pipeline::checked("nest", lower::lower(&Problem::of(spec), "naive"));
    let naive = memory.interpreted(&naive.unwrap_or_else(|error| panic!("{spec}: {error}")));
    only_elements_are_written(spec, memory, &naive).unwrap_or_else(fail);
    let outputs = native(&COMPILER, spec, memory, options).unwrap_or_else(|error| panic!("{spec}: {error}"));
    if !are_equal(&naive, &outputs) {
        fail(difference(spec, options, &naive, &outputs));
    }
    if allowed {
        is_allowed(spec, memory, &outputs).unwrap_or_else(fail);
    }
}
