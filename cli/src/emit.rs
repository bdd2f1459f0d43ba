//! `emit`: an object file and its C header.

use crate::args::Emit;
use crate::failure::Failure;
use crate::output_files::OutputFiles;
use cranefold::{Spec, Target, aot};
use std::io::Write;

/// Compiles a spec and writes both files; if one cannot be written, neither is replaced.
///
/// # Errors
/// If the spec, the target or a forced choice is wrong, or a file cannot be written.
pub fn emit(args: &Emit) -> Result<(), Failure> {
    let spec: Spec = args.spec.parse()?;
    let target = match &args.target {
        None => Target::host()?,
        Some(triple) => Target::elsewhere(triple, args.features.as_deref().unwrap_or_default())?,
    };
    let made = aot::emit(&target, &spec, &args.forced.options()?, args.symbol.as_deref())?;
    let files = [(args.object.clone(), "the object".into()), (args.header.clone(), "the header".into())];
    let contents = [made.bytes.as_slice(), made.header.as_bytes()];
    OutputFiles::of(&files, &[])?.write(|file, given, to| {
        to.write_all(contents[file]).map_err(|error| Failure::Write { path: given.into(), error })
    })
}
