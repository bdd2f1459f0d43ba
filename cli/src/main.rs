//! The command `cranefold`: runs, dumps, explains, draws, times, tunes, emits and lists tensor reductions.
//!
//! It exits with 0 on success. It exits with 2 and a line on stderr if an argument is wrong, with the place below if
//! that is in an expression. It exits with 1 and a line if cranefold is wrong: an answer out of its bound or one that
//! it cannot check, or a bug that the compiler found in itself, with the code in question.

mod args;
mod arrays;
mod bench;
mod buffer;
mod check;
mod cut;
mod doctor;
mod dump;
mod emit;
mod execute;
mod explain;
mod failure;
mod figures;
mod given;
mod interrupt;
mod list;
mod model;
mod notes;
mod npy;
mod npz;
mod output_files;
mod page;
mod progress;
mod random;
mod report;
mod run;
mod run_given;
mod scalars;
mod shells;
mod side_by_side;
mod stream;
mod style;
mod threads;
mod timing;
mod tune;
mod usage;

use args::{Args, Verb};
use failure::{Failure, without_controls};
use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let done = command(&mut out).and_then(|()| out.flush().map_err(Failure::Stdout));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of the output has closed it.
        Err(Failure::Stdout(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            // Output printed before the failure comes first. If neither stream can be written, there is nobody to tell.
            let _ = out.flush();
            let _ = writeln!(
                io::stderr(),
                "{} {}",
                style::Style::of_stderr().error(),
                without_controls(&failure.to_string(), true)
            );
            ExitCode::from(failure.exit_code())
        }
    }
}

fn command(out: &mut dyn Write) -> Result<(), Failure> {
    let Some(args) = Args::read(out)? else { return Ok(()) };
    match args.verb {
        Verb::Run(args) => run::run(&args, out),
        Verb::Dump(args) => dump::dump(&args, out),
        Verb::Explain(args) => explain::explain(&args, out),
        Verb::Bench(args) => bench::bench(&args, out),
        Verb::Tune(args) => tune::tune(&args, out),
        Verb::Emit(args) => emit::emit(&args),
        Verb::List(args) => list::list(args.op.as_deref(), out),
        Verb::Doctor => doctor::doctor(out),
        Verb::Completions(args) => shells::completions(args.shell, out),
        Verb::Man => shells::man(out),
        Verb::Model(args) => model::model(&args, out),
    }
}
