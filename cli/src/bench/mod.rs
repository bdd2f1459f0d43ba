//! `bench`: kernels against the interpreter and the memory.

mod cases;
mod ceiling;
mod measure;
mod memory;
mod report;

use crate::args::Bench;
use crate::failure::Failure;
use cases::Entry;
use cranefold::{Compiler, Options, Schedule};
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
    let options = Options { schedule: None, width };
    let compiler = Compiler::host()?;
    let target = compiler.target().clone();
    // A process's first compilation sets tables up, which is no case's time.
    compiler.compile(&"sum f32[2]".parse()?)?;
    let mut report = Report::start(request.json, &entries, out)?;
    let mut wrong = None;
    for entry in &entries {
        match entry {
            Entry::Skipped { name, reason } => report.skipped(name, reason)?,
            Entry::Case(case) => match measure::measure(case, &target, &options) {
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
