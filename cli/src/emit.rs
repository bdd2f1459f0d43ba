//! `emit`: an object file and its C header, of a spec or of a model's kernels.

use crate::args::Emit;
use crate::failure::Failure;
use crate::model;
use crate::output_files::OutputFiles;
use cranefold::{Spec, Target, aot};
use std::io::Write;

/// Compiles a spec or a model and writes both files; if one cannot be written, neither is replaced.
///
/// # Errors
/// If the spec, the model, the target or a forced choice is wrong, or a file cannot be written.
pub fn emit(args: &Emit) -> Result<(), Failure> {
    let target = match &args.target {
        None => Target::host()?,
        Some(triple) => Target::elsewhere(triple, args.features.as_deref().unwrap_or_default())?,
    };
    let options = args.forced.options()?;
    let (object, header) = match &args.model {
        Some(file) => {
            let library = model::library(file, args, &target, &options)?;
            (library.bytes, library.header)
        }
        None => {
            let spec: Spec = args.spec.as_deref().unwrap_or_default().parse()?;
            let made = aot::emit(&target, &spec, &options, args.symbol.as_deref())?;
            (made.bytes, made.header)
        }
    };
    let files = [(args.object.clone(), "the object".into()), (args.header.clone(), "the header".into())];
    let contents = [object.as_slice(), header.as_bytes()];
    OutputFiles::of(&files, &[])?.write(|file, given, to| {
        to.write_all(contents[file]).map_err(|error| Failure::Write { path: given.into(), error })
    })
}
