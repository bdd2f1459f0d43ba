//! The command `cranefold`: runs, dumps, explains, times, emits and lists tensor reductions.
//!
//! It exits with 0; with 2 and a line on stderr where an argument is wrong, below it the place where an
//! expression is; with 1 and a line where cranefold is: an answer out of its bound, one that it cannot check, or a
//! bug that the compiler found in itself, with the code it is about.

mod args;
mod arrays;
mod bench;
mod buffer;
mod check;
mod dump;
mod emit;
mod execute;
mod explain;
mod failure;
mod figures;
mod given;
mod list;
mod npy;
mod output_files;
mod random;
mod run;
mod run_given;
mod scalars;
mod threads;
mod timing;

use args::{Args, Verb};
use failure::{Failure, without_controls};
use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let done = command(&mut out).and_then(|()| out.flush().map_err(Failure::Stdout));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read the output has seen enough of it.
        Err(Failure::Stdout(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            // What was printed before the failure comes first. If neither stream can be written,
            // there is nobody to tell.
            let _ = out.flush();
            let _ = writeln!(io::stderr(), "error: {}", without_controls(&failure.to_string(), true));
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
        Verb::Emit(args) => emit::emit(&args),
        Verb::List => list::list(out),
    }
}
