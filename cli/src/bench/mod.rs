//! `bench`: kernels against the interpreter and the memory.

mod candidates;
mod cases;
mod ceiling;
mod measure;
mod memory;
mod report;

use crate::args::Bench;
use crate::failure::Failure;
use crate::threads::{compiler, pool};
pub use cases::Case;
use cases::Entry;
use cranefold::{Options, Schedule};
pub use measure::{Measured, Order, measure};
use report::Report;
use std::io::Write;

/// Times reductions.
///
/// # Errors
/// If a request is wrong, before anything is timed; [`Failure::WrongAnswer`] after all was, if an answer
/// was wrong.
pub fn bench(request: &Bench, out: &mut dyn Write) -> Result<(), Failure> {
    let entries = match &request.file {
        Some(path) => cases::read(path)?,
        None if request.specs.is_empty() => return Err(Failure::NothingToTime),
        None => cases::specs(&request.specs)?,
    };
    let width = request.width.map(Schedule::checked_width).transpose()?;
    if request.candidates {
        return candidates::candidates(&entries, width, request.json, out);
    }
    let options = Options { schedule: None, width };
    let compiler = compiler(request.threads)?;
    let executor = pool(request.threads)?;
    let target = compiler.target().clone();
    // A process's first compilation sets tables up, which is no case's time.
    compiler.compile(&"sum f32[2]".parse()?)?;
    let budget_ns = 1e6 * request.budget_ms as f64;
    let order = if request.json { Order::Alone } else { Order::InTurn };
    let mut report = Report::start(request.json, request.threads, &entries, out)?;
    let mut wrong = None;
    for entry in &entries {
        match entry {
            Entry::Skipped { name, reason } => report.skipped(name, reason)?,
            Entry::Case(case) => match measure(case, &target, &options, &executor, budget_ns, order, request.offset) {
                Ok(measured) => report.measured(case, &measured)?,
                Err(failure) if failure.exit_code() == 1 => {
                    report.skipped(&case.name, &failure.to_string())?;
                    wrong = wrong.or(Some(failure));
                }
                Err(failure) => return Err(failure),
            },
        }
    }
    wrong.map_or(Ok(()), Err)
}
