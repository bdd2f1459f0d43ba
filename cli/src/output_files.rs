//! Files to be written: all of them, or none.

use crate::failure::Failure;
use crate::interrupt;
use std::fs::{self, File, Metadata, OpenOptions};
use std::path::{Path, PathBuf};
use std::{io, process};

/// The path that stands for the standard output.
pub const STDOUT: &str = "-";

/// A path, and the name of its file in messages.
pub type Named = (PathBuf, String);

/// Files to be written, all or none. Each is first written beside its place. If one cannot be written, no place is
/// replaced; every place holds either its new file or its old contents.
#[derive(Debug)]
pub struct OutputFiles(Vec<OutputFile>);

#[derive(Debug)]
struct OutputFile {
    /// The path as it was given.
    given: PathBuf,
    /// The name of the file in messages.
    name: String,
    /// The path behind links, in a folder that exists.
    path: PathBuf,
    beside: PathBuf,
}

impl OutputFiles {
    /// The places of the files `written`, none of which is one of `read`. No file is written yet.
    ///
    /// # Errors
    /// [`Failure::Write`] if one cannot be written, [`Failure::OneFile`] if two are one file, by whatever names.
    pub fn of(written: &[Named], read: &[Named]) -> Result<OutputFiles, Failure> {
        let place = |(n, (given, name)): (usize, &Named)| OutputFile::of(given, name, n);
        let places = written.iter().enumerate().map(place).collect::<Result<Vec<_>, _>>()?;
        for (n, place) in places.iter().enumerate().filter(|(_, place)| !place.is_stream()) {
            let earlier = places[..n].iter().map(|other| (other.given.as_path(), &other.path, &other.name));
            // A file that cannot be found is reported by its reader.
            let found = |(given, name): &Named| Some((given.clone(), given.canonicalize().ok()?, name.clone()));
            let read: Vec<_> = read.iter().filter_map(found).collect();
            let read = read.iter().map(|(given, path, name)| (given.as_path(), path, name));
            if let Some((given, _, name)) = earlier.chain(read).find(|(_, path, _)| is_one_file(path, &place.path)) {
                let (first, second) = (name.clone(), place.name.clone());
                return Err(Failure::OneFile { path: given.into(), first, second });
            }
        }
        Ok(OutputFiles(places))
    }

    /// Writes the files: `write` is given the number of each, in any order, its path for messages, and the file.
    ///
    /// # Errors
    /// The first error of `write`; no file is replaced then, unless the system fails to rename a written one.
    pub fn write(&self, mut write: impl FnMut(usize, &Path, &mut File) -> Result<(), Failure>) -> Result<(), Failure> {
        interrupt::remove_on_signal(self.0.iter().map(|place| place.beside.clone()).collect());
        let mut create = |streams: bool| {
            let mut places = self.0.iter().enumerate().filter(|(_, place)| place.is_stream() == streams);
            places.try_for_each(|(n, place)| write(n, &place.given, &mut place.create()?))
        };
        // A stream cannot be taken back, so streams come after the files are written.
        let written =
            create(false).and_then(|()| create(true)).and_then(|()| self.0.iter().try_for_each(OutputFile::put));
        if written.is_err() {
            // A file that cannot be removed was not written.
            let files = self.0.iter().filter(|place| !place.is_stdout());
            files.for_each(|place| drop(fs::remove_file(&place.beside)));
        }
        written
    }
}

impl OutputFile {
    /// The place of a path; `number` tells the file beside it apart from those of other places.
    fn of(given: &Path, name: &str, number: usize) -> Result<OutputFile, Failure> {
        if given.as_os_str() == STDOUT {
            let [given, path, beside] = [given, given, given].map(PathBuf::from);
            return Ok(OutputFile { given, name: name.into(), path, beside });
        }
        let refused = |error| Failure::Write { path: given.into(), error };
        let path = match given.canonicalize() {
            Ok(path) if path.is_dir() => {
                let reason = "it is a directory: write the name of a file in it";
                return Err(refused(io::Error::new(io::ErrorKind::IsADirectory, reason)));
            }
            Ok(path) => path,
            Err(_) => {
                let folder = given.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
                let file = given.file_name().ok_or_else(|| refused(io::ErrorKind::InvalidInput.into()))?;
                folder.canonicalize().map_err(refused)?.join(file)
            }
        };
        let beside = path.with_file_name(format!(".cranefold.{}.{number}", process::id()));
        let place = OutputFile { given: given.into(), name: name.into(), beside, path };
        if place.path.is_file() {
            // A file that may not be written is not replaced either.
            OpenOptions::new().write(true).open(&place.path).map_err(refused)?;
        }
        Ok(place)
    }

    /// Returns true if the path is no file that may be replaced, but for example a terminal.
    fn is_stream(&self) -> bool {
        self.is_stdout() || self.path.exists() && !self.path.is_file()
    }

    /// Returns true of the standard output.
    fn is_stdout(&self) -> bool {
        self.given.as_os_str() == STDOUT
    }

    /// Opens the stream, or the file beside the place, with the permissions of the present file.
    fn create(&self) -> Result<File, Failure> {
        let refused = |error| Failure::Write { path: self.given.clone(), error };
        if self.is_stdout() {
            return stdout().map_err(refused);
        }
        if self.is_stream() {
            return OpenOptions::new().write(true).open(&self.path).map_err(refused);
        }
        let file = File::create(&self.beside).map_err(refused)?;
        if let Ok(metadata) = self.path.metadata() {
            file.set_permissions(metadata.permissions()).map_err(refused)?;
        }
        Ok(file)
    }

    fn put(&self) -> Result<(), Failure> {
        if self.is_stream() {
            return Ok(());
        }
        fs::rename(&self.beside, &self.path).map_err(|error| Failure::Write { path: self.given.clone(), error })
    }
}

/// The standard output as a file.
#[cfg(unix)]
fn stdout() -> io::Result<File> {
    use std::os::fd::AsFd;
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

/// The standard output as a file.
#[cfg(windows)]
fn stdout() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(File::from(io::stdout().as_handle().try_clone_to_owned()?))
}

/// Returns true if two paths without links are the same file, which may have several names.
fn is_one_file(a: &Path, b: &Path) -> bool {
    let same = |a: &Metadata, b: &Metadata| numbers(a).is_some() && numbers(a) == numbers(b);
    a == b || matches!((a.metadata(), b.metadata()), (Ok(a), Ok(b)) if same(&a, &b))
}

/// The numbers by which the system identifies a file; `None` if it has none.
#[cfg(unix)]
fn numbers(metadata: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((metadata.dev(), metadata.ino()))
}

/// The numbers by which the system identifies a file; `None` if it has none.
#[cfg(not(unix))]
fn numbers(_: &Metadata) -> Option<(u64, u64)> {
    None
}
