//! The pipeline from a problem to legal nests, on one screen.

use crate::error::{Error, NoCode};
use crate::lower::cut;
use crate::lower::program::Program;
use crate::passes::{PASSES, Pass, RunsOn, has_vectors};
use crate::problem::{Dim, Problem};
use crate::schedule::{Bounds, Decided, Schedule, Source};
use crate::vectors::Vectors;
use cranefold_ir::ops::Computation;
use cranefold_ir::{Nest, verify};

/// The stages after which nests are verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    /// Every stage.
    Each,
    /// The last stage, of which code is made.
    Last,
    /// No stage: tests have covered nests of this kind.
    None,
}

/// Runs the pipeline: every pass on every nest of a naive program. Calls `see` with each stage's name and program,
/// first with `nest`. Returns the legal program.
///
/// # Errors
/// [`Error::Internal`] if a stage's nest does not verify: a bug of ours.
pub fn run(
    naive: Program,
    decided: &Decided,
    verify: Verify,
    mut see: impl FnMut(&'static str, &Program),
) -> Result<Program, Error> {
    let passes: Vec<&Pass> = PASSES.iter().filter(|pass| runs(pass, &decided.source)).collect();
    let last = passes.len();
    let check = |number, stage, nest| match verify {
        Verify::Each => checked(stage, nest),
        Verify::Last if number == last => checked(stage, nest),
        Verify::Last | Verify::None => Ok(nest),
    };
    let mut program = naive.try_map(|nest| check(0, "nest", nest))?;
    see("nest", &program);
    for (number, pass) in (1..).zip(passes) {
        let run = |nest| check(number, pass.name, (pass.run)(nest, &decided.schedule, decided.vectors));
        program = program.try_map(run)?;
        see(pass.name, &program);
    }
    Ok(program)
}

/// Returns whether a pass runs on nests of this source.
pub(crate) fn runs(pass: &Pass, source: &Source) -> bool {
    match (source, pass.runs_on) {
        (Source::Problem(_) | Source::Part(..), _) | (Source::Nest(_), RunsOn::Any) => true,
        (Source::Nest(_), RunsOn::Lowered) => false,
        (Source::Nest(nest), RunsOn::WithoutVectors) => !has_vectors(nest),
    }
}

/// The first program of a source: the naive one of a problem, in the parts of its schedule; or the nest itself.
pub fn lowered(decided: &Decided) -> Program {
    lowered_by(decided, None)
}

/// The same program; `computation` is the schedule's, if it is known.
fn lowered_by(decided: &Decided, computation: Option<Computation>) -> Program {
    match &decided.source {
        Source::Problem(problem) => cut(problem, &decided.schedule, computation, &name(problem)),
        Source::Part(_, nest) | Source::Nest(nest) => Program::of(Nest::clone(nest)),
    }
}

/// The legal program of a source. It is verified where the schedule was forced, where the nest is not that of a whole
/// problem, and in debug builds: what the cost model chooses is tested; what others force, or write, may never have run.
///
/// # Errors
/// As [`run`].
pub fn legal(decided: &Decided) -> Result<Program, Error> {
    legal_from(lowered(decided), decided)
}

fn legal_from(lowered: Program, decided: &Decided) -> Result<Program, Error> {
    let is_tested = matches!(decided.source, Source::Problem(_)) && !decided.is_forced;
    let verify = match is_tested {
        _ if cfg!(debug_assertions) => Verify::Each,
        true => Verify::None,
        false => Verify::Last,
    };
    run(lowered, decided, verify, |_, _| {})
}

/// Decides by the forced schedule, or else chooses one within the bounds; with the decision's legal program.
///
/// # Errors
/// As [`Decided::of`] and [`run`].
pub(crate) fn decide(
    source: impl Into<Source>,
    forced: Option<&Schedule>,
    bounds: Bounds,
) -> Result<(Decided, Program), Error> {
    let (decided, computation) = Decided::with_computation(source, forced, bounds)?;
    let program = legal_from(lowered_by(&decided, computation), &decided)?;
    Ok((decided, program))
}

/// A decision with its legal program and the code of it.
pub(crate) struct Made<T> {
    pub decided: Decided,
    pub program: Program,
    pub code: T,
}

/// The code that `generate` makes of the decision and the legal program that `decide` gives within the bounds. If wide
/// vectors have no form for something, the decision is made again without them: a missing form makes code slower, but
/// never fails.
///
/// # Errors
/// The errors of `decide`, and the errors of `generate` for vectors that every target has.
pub(crate) fn made<T>(
    bounds: Bounds,
    decide: impl Fn(Bounds) -> Result<(Decided, Program), Error>,
    generate: impl Fn(&Decided, &Program) -> Result<T, NoCode>,
) -> Result<Made<T>, Error> {
    let (decided, program) = decide(bounds)?;
    match generate(&decided, &program) {
        Err(NoCode::NoForm(what)) if decided.vectors.are_wide() => {
            let (narrow, program) = decide(bounds.at_most(Vectors::BASE.bits))?;
            let code = generate(&narrow, &program)?;
            Ok(Made { decided: narrow.instead_of(&decided, what), program, code })
        }
        code => Ok(Made { decided, program, code: code? }),
    }
}

/// The program after each stage, verified, with the stage's name; the last program is legal.
///
/// # Errors
/// As [`run`].
pub fn stages(decided: &Decided) -> Result<Vec<(&'static str, Program)>, Error> {
    let mut stages = vec![];
    run(lowered(decided), decided, Verify::Each, |stage, program| stages.push((stage, program.clone())))?;
    Ok(stages)
}

/// The nest after a stage, if it verifies.
///
/// # Errors
/// As [`run`].
pub fn checked(stage: &'static str, nest: Nest) -> Result<Nest, Error> {
    match verify(&nest) {
        Ok(()) => Ok(nest),
        Err(violations) => Err(Error::Internal { stage, message: format!("{violations}\n{nest}") }),
    }
}

/// The name of a problem: op, types and extents of the first box in canonical order, with the reduced extents in
/// parentheses.
pub(crate) fn name(problem: &Problem) -> String {
    let op = match &problem.work {
        crate::problem::Work::Convert { .. } => "convert".to_string(),
        crate::problem::Work::Reduce(recipe) => recipe.name(),
        crate::problem::Work::Region(body) => body.name(),
    };
    let extent = |(d, reduced): (Dim, bool)| if reduced { format!("({})", d.extent) } else { d.extent.to_string() };
    let first = problem.slices.first().map_or(vec![], |slices| problem.dims(slices));
    let dims: Vec<String> = first.into_iter().map(extent).collect();
    let inputs: Vec<&str> = problem.inputs.iter().map(|i| i.operand.dtype.name()).collect();
    let outputs: Vec<&str> = problem.outputs.iter().map(|o| o.dtype.name()).collect();
    format!("{op} {} {} -> {}", inputs.join(", "), dims.join("x"), outputs.join(", "))
}

/// The name as a linker takes it, where `r` marks reduced extents: `sum_f32_4xr1000_to_f32`.
pub fn symbol(source: &Source) -> String {
    let name = match source {
        Source::Problem(problem) | Source::Part(problem, _) => name(problem),
        Source::Nest(nest) => nest.name.clone(),
    };
    let plain = name.replace(" -> ", " to ").replace('(', "r");
    let words = plain.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("_")
}
