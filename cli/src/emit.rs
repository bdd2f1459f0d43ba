//! `emit`: an object file and its C header.

use crate::args::Emit;
use crate::failure::Failure;
use cranefold::{Reduction, Target, aot};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::{fs, process};

/// Compiles a spec and writes both files; where one cannot be written beside its place, neither is replaced.
///
/// # Errors
/// If the spec, the target or what is forced is wrong, or a file cannot be written.
pub fn emit(request: &Emit) -> Result<(), Failure> {
    let spec: Reduction = request.spec.parse()?;
    let target = match &request.target {
        None => Target::host()?,
        Some(triple) => Target::elsewhere(triple, request.features.as_deref().unwrap_or_default())?,
    };
    let made = aot::emit(&target, &spec, &request.forced.options()?, request.symbol.as_deref())?;
    let object = Place::of(&request.object, "object")?;
    let header = Place::of(&request.header, "header")?;
    if object.path == header.path {
        return Err(Failure::OneFile { path: request.object.clone() });
    }
    let written = object.prepare(&made.bytes).and_then(|()| header.prepare(made.header.as_bytes()));
    let put = written.and_then(|()| object.put()).and_then(|()| header.put());
    if put.is_err() {
        // What cannot be removed was not written.
        for place in [&object, &header] {
            let _ = fs::remove_file(&place.beside);
        }
    }
    put
}

/// A file to be: written beside its place first, so that the place holds all of it or what it held before.
struct Place {
    /// As it was given.
    given: PathBuf,
    /// Where it is: in a folder that exists, behind links.
    path: PathBuf,
    beside: PathBuf,
}

impl Place {
    /// The place of a path, whose file beside it is told apart by `role`.
    fn of(given: &Path, role: &str) -> Result<Place, Failure> {
        let refused = |error| Failure::Write { path: given.into(), error };
        let path = match given.canonicalize() {
            Ok(path) if path.is_dir() => return Err(refused(io::ErrorKind::IsADirectory.into())),
            Ok(path) => path,
            Err(_) => {
                let folder = given.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
                let name = given.file_name().ok_or_else(|| refused(io::ErrorKind::InvalidInput.into()))?;
                folder.canonicalize().map_err(refused)?.join(name)
            }
        };
        let mut name = OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(format!(".{role}.{}", process::id()));
        Ok(Place { given: given.into(), beside: path.with_file_name(name), path })
    }

    /// Whether it is no file that another may take the place of, such as a terminal.
    fn is_stream(&self) -> bool {
        self.path.exists() && !self.path.is_file()
    }

    fn prepare(&self, bytes: &[u8]) -> Result<(), Failure> {
        let to = if self.is_stream() { &self.path } else { &self.beside };
        fs::write(to, bytes).map_err(|error| Failure::Write { path: self.given.clone(), error })
    }

    fn put(&self) -> Result<(), Failure> {
        if self.is_stream() {
            return Ok(());
        }
        fs::rename(&self.beside, &self.path).map_err(|error| Failure::Write { path: self.given.clone(), error })
    }
}
