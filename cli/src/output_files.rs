//! Files to be written: all of them, or none.

use crate::failure::Failure;
use std::fs::{self, File, Metadata, OpenOptions};
use std::path::{Path, PathBuf};
use std::{io, process};

/// A path with the name that messages have for its file.
pub type Named = (PathBuf, String);

/// Files to be written. Each is written beside its place first, so that where one cannot be written none is replaced,
/// and a place holds all of its file or what it held before.
#[derive(Debug)]
pub struct OutputFiles(Vec<OutputFile>);

#[derive(Debug)]
struct OutputFile {
    /// The path as it was given.
    given: PathBuf,
    /// The name that messages have for it.
    name: String,
    /// The path behind links, in a folder that exists.
    path: PathBuf,
    beside: PathBuf,
}

impl OutputFiles {
    /// The places of files that are written, none of them one of `read`. Nothing is written yet.
    ///
    /// # Errors
    /// [`Failure::Write`] if one cannot be, [`Failure::OneFile`] if two are one file, by whatever names.
    pub fn of(written: &[Named], read: &[Named]) -> Result<OutputFiles, Failure> {
        let place = |(n, (given, name)): (usize, &Named)| OutputFile::of(given, name, n);
        let places = written.iter().enumerate().map(place).collect::<Result<Vec<_>, _>>()?;
        for (n, place) in places.iter().enumerate().filter(|(_, place)| !place.is_stream()) {
            let earlier = places[..n].iter().map(|other| (other.given.as_path(), &other.path, &other.name));
            // A file that cannot be found is told by what reads it.
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
    /// The first that there is; no file is replaced then, unless the system fails to rename what it has written.
    pub fn write(&self, mut write: impl FnMut(usize, &Path, &mut File) -> Result<(), Failure>) -> Result<(), Failure> {
        let mut create = |streams: bool| {
            let mut places = self.0.iter().enumerate().filter(|(_, place)| place.is_stream() == streams);
            places.try_for_each(|(n, place)| write(n, &place.given, &mut place.create()?))
        };
        // What is in a stream stays there, so streams come when the files are sure.
        let written =
            create(false).and_then(|()| create(true)).and_then(|()| self.0.iter().try_for_each(OutputFile::put));
        if written.is_err() {
            // What cannot be removed was not written.
            self.0.iter().for_each(|place| drop(fs::remove_file(&place.beside)));
        }
        written
    }
}

impl OutputFile {
    /// The place of a path; the file beside it is told apart by `number` from those of other places.
    fn of(given: &Path, name: &str, number: usize) -> Result<OutputFile, Failure> {
        let refused = |error| Failure::Write { path: given.into(), error };
        let path = match given.canonicalize() {
            Ok(path) if path.is_dir() => return Err(refused(io::ErrorKind::IsADirectory.into())),
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
            // What may not be written is not replaced either.
            OpenOptions::new().write(true).open(&place.path).map_err(refused)?;
        }
        Ok(place)
    }

    /// Returns whether this is no file that another may take the place of, such as a terminal.
    fn is_stream(&self) -> bool {
        self.path.exists() && !self.path.is_file()
    }

    /// Opens what is written: the stream, or the file beside the place, with the permissions of what is there.
    fn create(&self) -> Result<File, Failure> {
        let refused = |error| Failure::Write { path: self.given.clone(), error };
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

/// Returns whether two paths behind links are of one file, which may have several names.
fn is_one_file(a: &Path, b: &Path) -> bool {
    let same = |a: &Metadata, b: &Metadata| numbers(a).is_some() && numbers(a) == numbers(b);
    a == b || matches!((a.metadata(), b.metadata()), (Ok(a), Ok(b)) if same(&a, &b))
}

/// The numbers by which the system knows a file; none where it has no such.
#[cfg(unix)]
fn numbers(metadata: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((metadata.dev(), metadata.ino()))
}

/// The numbers by which the system knows a file; none where it has no such.
#[cfg(not(unix))]
fn numbers(_: &Metadata) -> Option<(u64, u64)> {
    None
}
