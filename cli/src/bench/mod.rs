//! `bench`: kernels against the interpreter and the memory.

mod candidates;
mod cases;
mod ceiling;
mod measure;
pub mod memory;
mod report;
mod scan;
mod sizes;

use crate::args::Bench;
use crate::failure::Failure;
use crate::threads::{compiler, pool};
pub use cases::Case;
use cases::Entry;
use cranefold::Problem;
pub use measure::{Measured, Order, measure};
use report::Report;
use std::io::Write;

/// Times reductions.
///
/// # Errors
/// If an argument is wrong, before any case is timed; [`Failure::WrongAnswer`], after all cases, if an answer was
/// wrong.
pub fn bench(args: &Bench, out: &mut dyn Write) -> Result<(), Failure> {
    if args.scan {
        let drawn = scan::Drawn { seed: args.seed.unwrap_or(1), shapes: args.shapes.unwrap_or(40) as usize };
        return scan::scan(args.limit.unwrap_or(2.5), drawn, args.html.as_deref(), out);
    }
    // clap drops what an argument requires where that conflicts with another.
    // Beside a SPEC, with which --scan does not stand, clap does not ask for --scan.
    let of_scan =
        [("--limit", args.limit.is_some()), ("--seed", args.seed.is_some()), ("--shapes", args.shapes.is_some())];
    if let Some((option, _)) = of_scan.into_iter().find(|(_, given)| *given) {
        return Err(Failure::Usage(format!("{option} is for --scan, which draws its own specs")));
    }
    if args.html.is_some() {
        let message = "--html is for --scan; the page of one kernel is that of `explain SPEC --html FILE`";
        return Err(Failure::Usage(message.into()));
    }
    let entries = match &args.file {
        Some(path) => cases::read(path)?,
        None if args.specs.is_empty() => return Err(Failure::NothingToTime),
        None => cases::specs(&args.specs, &args.input)?,
    };
    if let Some(path) = &args.svg {
        return sizes::draw(&entries, path, args, out);
    }
    let options = args.forced.options()?;
    if args.candidates {
        return candidates::candidates(&entries, options.width, args.json, out);
    }
    let mut cases = entries.iter().filter_map(|entry| if let Entry::Case(case) = entry { Some(case) } else { None });
    if let Some(schedule) = &options.schedule {
        cases.try_for_each(|case| schedule.check(&Problem::of(&case.spec)))?;
    }
    let compiler = compiler(args.threads)?;
    let executor = pool(args.threads)?;
    let target = compiler.target().clone();
    // The first compilation of a process sets up tables, whose time belongs to no case.
    compiler.compile(&"sum f32[2]".parse()?)?;
    let budget_ns = 1e6 * args.budget_ms as f64;
    let order = if args.json { Order::Alone } else { Order::InTurn };
    let mut report = Report::start(args.json, args.threads, &entries, out)?;
    let mut wrong = None;
    for entry in &entries {
        match entry {
            Entry::Skipped { name, reason } => report.skipped(name, reason)?,
            Entry::Case(case) => match measure(case, &target, &options, &executor, budget_ns, order, args.offset) {
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
