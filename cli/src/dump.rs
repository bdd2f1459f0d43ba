//! `dump`: the stages on the way from a spec to machine code.

use crate::args::Dump;
use crate::failure::Failure;
use crate::given::Given;
use crate::threads::tuned_compiler;
use cranefold::Spec;
use std::io::Write;
use std::path::Path;

/// Prints a stage, or all.
///
/// # Errors
/// If the spec, a forced choice or the stage's name is wrong.
pub fn dump(args: &Dump, out: &mut dyn Write) -> Result<(), Failure> {
    let (compiler, options) = (tuned_compiler(args.threads, args.schedules.as_deref())?, args.forced.options()?);
    let kernel = match args.from {
        Some(from) => Given::read(from, Path::new(&args.spec))?.compile(&compiler, &options)?,
        None => compiler.compile_with(&args.spec.parse::<Spec>()?, &options)?,
    };
    let text = kernel.dump(&args.stage)?;
    writeln!(out, "{}", text.trim_end()).map_err(Failure::Stdout)
}
