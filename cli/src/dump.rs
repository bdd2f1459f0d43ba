//! `dump`: the stages on the way from a spec to machine code.

use crate::args::Dump;
use crate::failure::Failure;
use crate::threads::compiler;
use cranefold::Spec;
use std::io::Write;

/// Prints a stage, or all.
///
/// # Errors
/// If the spec, a forced choice or the stage's name is wrong.
pub fn dump(args: &Dump, out: &mut dyn Write) -> Result<(), Failure> {
    let spec: Spec = args.spec.parse()?;
    let kernel = compiler(args.threads)?.compile_with(&spec, &args.forced.options()?)?;
    let text = kernel.dump(&args.stage)?;
    writeln!(out, "{}", text.trim_end()).map_err(Failure::Stdout)
}
