//! The way of a problem to legal nests, on one screen.

use crate::error::Error;
use crate::lower::program::Program;
use crate::lower::{cut, lower};
use crate::passes::PASSES;
use crate::problem::{Dim, Problem};
use crate::schedule::{self, Schedule};
use crate::vectors::Vectors;
use cranefold_ir::{Nest, verify};

/// The program after lowering and after each pass, with the stage's name, the last being the legal one, for a target that
/// has these vectors: the parts of the schedule, each of which goes its own way through the passes.
///
/// # Errors
/// [`Error::Internal`] if a stage gives a nest that does not verify: a bug of ours.
pub fn program_stages(
    problem: &Problem,
    schedule: &Schedule,
    vectors: Vectors,
) -> Result<Vec<(&'static str, Program)>, Error> {
    let vectors = vectors.at_most(schedule.width);
    let naive = cut(problem, schedule, &name(problem));
    let mut stages = vec![("nest", naive.try_map(|nest| checked("nest", nest))?)];
    for pass in PASSES {
        let (_, before) = stages.last().expect("the naive nest");
        let after = before.clone().try_map(|nest| checked(pass.name, (pass.run)(nest, schedule, vectors)))?;
        stages.push((pass.name, after));
    }
    Ok(stages)
}

/// The legal program; verified after each pass in debug builds only.
///
/// # Errors
/// As [`program_stages`].
pub fn legal_program(problem: &Problem, schedule: &Schedule, vectors: Vectors) -> Result<Program, Error> {
    let vectors = vectors.at_most(schedule.width);
    cut(problem, schedule, &name(problem)).try_map(|nest| passed(nest, schedule, vectors))
}

/// What a problem is compiled as.
pub(crate) struct Decided {
    /// The problem, in the form that the vectors favour.
    pub problem: Problem,
    /// The schedule.
    pub schedule: Schedule,
    /// The vectors that code is made of.
    pub vectors: Vectors,
    /// The legal program.
    pub program: Program,
}

/// What a problem is compiled as: in its form for the vectors, by the schedule that is forced, or else chosen for `width`
/// and `threads`. The legal program is verified where the schedule was forced: what the cost model chooses is tested;
/// what others force may never have run.
///
/// # Errors
/// [`Error::Schedule`] if the forced schedule does not fit; else as [`program_stages`].
pub(crate) fn decided(
    problem: &Problem,
    forced: Option<&Schedule>,
    vectors: Vectors,
    width: u32,
    threads: usize,
) -> Result<Decided, Error> {
    let problem = schedule::as_compiled(problem, forced, width).into_owned();
    let schedule = schedule::decide(&problem, forced, width, threads)?;
    let vectors = vectors.at_most(schedule.width.min(width));
    let program = legal_program(&problem, &schedule, vectors)?;
    let program = match forced {
        Some(_) => program.try_map(|nest| checked("legalize", nest))?,
        None => program,
    };
    Ok(Decided { problem, schedule, vectors, program })
}

/// The decision for a naive nest of a problem, of which the schedule was chosen for the whole. The legal nest is verified: the
/// ranges of blocks that partial results are made of are the caller's, and no test has seen them all.
///
/// # Errors
/// As [`program_stages`].
pub(crate) fn decided_nest(
    problem: &Problem,
    nest: &Nest,
    schedule: &Schedule,
    vectors: Vectors,
) -> Result<Decided, Error> {
    let program = Program::of(legal_nest_of(nest.clone(), schedule, vectors)?);
    let vectors = vectors.at_most(schedule.width);
    Ok(Decided { problem: problem.clone(), schedule: schedule.clone(), vectors, program })
}

/// The legal nest of a naive one, verified.
///
/// # Errors
/// As [`program_stages`].
pub(crate) fn legal_nest_of(naive: Nest, schedule: &Schedule, vectors: Vectors) -> Result<Nest, Error> {
    checked("legalize", passed(naive, schedule, vectors.at_most(schedule.width))?)
}

/// As [`program_stages`], of all in one part.
///
/// # Errors
/// [`Error::Internal`] if a stage gives a nest that does not verify: a bug of ours.
pub fn stages(problem: &Problem, schedule: &Schedule, vectors: Vectors) -> Result<Vec<(&'static str, Nest)>, Error> {
    let vectors = vectors.at_most(schedule.width);
    let mut stages = vec![("nest", checked("nest", lower(problem, &name(problem)))?)];
    for pass in PASSES {
        let (_, before) = stages.last().expect("the naive nest");
        let after = (pass.run)(before.clone(), schedule, vectors);
        stages.push((pass.name, checked(pass.name, after)?));
    }
    Ok(stages)
}

/// As [`legal_program`], of all in one part.
///
/// # Errors
/// As [`stages`].
pub fn legal_nest(problem: &Problem, schedule: &Schedule, vectors: Vectors) -> Result<Nest, Error> {
    let vectors = vectors.at_most(schedule.width);
    passed(lower(problem, &name(problem)), schedule, vectors)
}

/// A naive nest after all passes.
fn passed(naive: Nest, schedule: &Schedule, vectors: Vectors) -> Result<Nest, Error> {
    let check = |stage, nest| if cfg!(debug_assertions) { checked(stage, nest) } else { Ok(nest) };
    PASSES.iter().try_fold(check("nest", naive)?, |nest, pass| check(pass.name, (pass.run)(nest, schedule, vectors)))
}

/// The nest after a stage, verified.
///
/// # Errors
/// As [`stages`].
pub fn checked(stage: &'static str, nest: Nest) -> Result<Nest, Error> {
    match verify(&nest) {
        Ok(()) => Ok(nest),
        Err(violations) => Err(Error::Internal { stage, message: format!("{violations}\n{nest}") }),
    }
}

/// A name that says the problem: op, types and extents of the first box in canonical order, reduced ones in
/// parentheses.
pub(crate) fn name(problem: &Problem) -> String {
    let op = match &problem.work {
        crate::problem::Work::Convert { .. } => "convert".to_string(),
        crate::problem::Work::Reduce(recipe) => recipe.name(),
    };
    let extent = |(d, reduced): (Dim, bool)| if reduced { format!("({})", d.extent) } else { d.extent.to_string() };
    let first = problem.slices.first().map_or(vec![], |slices| problem.dims(slices));
    let dims: Vec<String> = first.into_iter().map(extent).collect();
    let inputs: Vec<&str> = problem.inputs.iter().map(|i| i.operand.dtype.name()).collect();
    let outputs: Vec<&str> = problem.outputs.iter().map(|o| o.dtype.name()).collect();
    format!("{op} {} {} -> {}", inputs.join(", "), dims.join("x"), outputs.join(", "))
}

/// The name as a linker takes it, where `r` marks reduced extents: `sum_f32_4xr1000_to_f32`.
pub fn symbol(problem: &Problem) -> String {
    let plain = name(problem).replace(" -> ", " to ").replace('(', "r");
    let words = plain.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("_")
}
