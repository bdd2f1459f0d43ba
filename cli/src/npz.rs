//! Arrays in `.npz` files, which are ZIP archives of `.npy` files as `numpy.savez` and `numpy.savez_compressed` write them.

use crate::npy::NpyError;
use miniz_oxide::inflate::decompress_to_vec_with_limit;
use std::io::{self, Read, Seek, SeekFrom};

/// The bytes of the records of an archive, without their names and the like.
const END: usize = 22;
const ENTRY: usize = 46;
const LOCAL: usize = 30;

/// The longest directory of an archive that is read.
const MAX_DIRECTORY: u64 = 16 << 20;

/// An array of an archive.
struct Entry {
    name: String,
    is_compressed: bool,
    packed: u64,
    whole: u64,
    at: u64,
}

/// The bytes of the `.npy` file of an array: of that name, or the only one.
///
/// # Errors
/// [`NpyError::Archive`] if this is no archive, or lacks the array; [`NpyError::Header`] if it cannot be read.
pub fn read(mut file: impl Read + Seek, name: Option<&str>, most: u64) -> Result<Vec<u8>, NpyError> {
    let wrong = |why: &str| NpyError::Archive(why.to_string());
    let entries = directory(&mut file)?;
    let names = || entries.iter().map(|e| e.name.as_str()).collect::<Vec<_>>().join(", ");
    let entry = match (name, entries.as_slice()) {
        (Some(""), _) => {
            return Err(NpyError::Archive(format!("a name follows the colon: the archive has {}", names())));
        }
        (Some(name), all) => all.iter().find(|entry| entry.name == name).ok_or_else(|| {
            NpyError::Archive(format!("there is no array `{name}` in the archive; it has {}", names()))
        })?,
        (None, [only]) => only,
        (None, []) => return Err(wrong("the archive has no arrays")),
        (None, all) => {
            let example = &all[0].name;
            let message = format!("the archive has {} arrays, {}; FILE.npz:{example} names one", all.len(), names());
            return Err(NpyError::Archive(message));
        }
    };
    if entry.whole > most || entry.packed > most {
        return Err(NpyError::Archive(format!(
            "{} bytes of `{}` are above the limit of {most}",
            entry.whole, entry.name
        )));
    }
    let mut local = [0; LOCAL];
    file.seek(SeekFrom::Start(entry.at)).and_then(|_| file.read_exact(&mut local)).map_err(NpyError::Header)?;
    if local[..4] != *b"PK\x03\x04" {
        return Err(wrong("an array of the archive is not where its directory says"));
    }
    let skipped = u64::from(number(&local, 26, 2) as u16) + u64::from(number(&local, 28, 2) as u16);
    file.seek(SeekFrom::Current(skipped as i64)).map_err(NpyError::Header)?;
    let mut packed = vec![];
    file.take(entry.packed).read_to_end(&mut packed).map_err(NpyError::Header)?;
    if packed.len() as u64 != entry.packed {
        return Err(wrong("the archive ends in the midst of an array"));
    }
    let bytes = match entry.is_compressed {
        false => packed,
        true => decompress_to_vec_with_limit(&packed, entry.whole as usize)
            .map_err(|_| wrong("the compressed bytes of an array are broken"))?,
    };
    if bytes.len() as u64 != entry.whole { Err(wrong("an array of the archive has another length")) } else { Ok(bytes) }
}

/// The arrays of an archive.
fn directory(file: &mut (impl Read + Seek)) -> Result<Vec<Entry>, NpyError> {
    let wrong = |why: &str| NpyError::Archive(why.to_string());
    let length = file.seek(SeekFrom::End(0)).map_err(NpyError::Header)?;
    let tail = length.min((END + 65_535) as u64);
    let mut end = vec![];
    file.seek(SeekFrom::Start(length - tail)).and_then(|_| file.read_to_end(&mut end)).map_err(NpyError::Header)?;
    let at = (0..(end.len() + 1).saturating_sub(END)).rev().find(|&at| end[at..].starts_with(b"PK\x05\x06"));
    let at = at.ok_or_else(|| wrong("not a .npz file: there is no directory of an archive at its end"))?;
    let (size, start) = (number(&end, at + 12, 4), number(&end, at + 16, 4));
    if size > MAX_DIRECTORY || start > length {
        return Err(wrong("the directory of the archive is broken, or of an archive of 4 GB and more"));
    }
    let mut all = vec![];
    file.seek(SeekFrom::Start(start)).map_err(NpyError::Header)?;
    file.take(size).read_to_end(&mut all).map_err(NpyError::Header)?;
    let mut entries = vec![];
    let mut rest = all.as_slice();
    while rest.len() >= ENTRY && rest.starts_with(b"PK\x01\x02") {
        let [name, extra, comment] = [28, 30, 32].map(|at| number(rest, at, 2) as usize);
        let next = ENTRY + name + extra + comment;
        let bytes = rest.get(ENTRY..ENTRY + name).filter(|_| rest.len() >= next);
        let bytes = bytes.ok_or_else(|| wrong("the directory of the archive is cut short"))?;
        let name = String::from_utf8_lossy(bytes).into_owned();
        let method = number(rest, 10, 2);
        if let Some(array) = name.strip_suffix(".npy") {
            if method != 0 && method != 8 {
                return Err(wrong("an array of the archive is compressed by another method than `deflate`"));
            }
            let [packed, whole, at] = [20, 24, 42].map(|at| number(rest, at, 4));
            if [packed, whole, at].contains(&0xffff_ffff) {
                return Err(wrong("an array of the archive has 4 GB and more: write it as a .npy file"));
            }
            entries.push(Entry { name: array.into(), is_compressed: method == 8, packed, whole, at });
        }
        rest = &rest[next..];
    }
    Ok(entries)
}

/// A little-endian number.
fn number(bytes: &[u8], at: usize, len: usize) -> u64 {
    bytes[at..at + len].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// Splits `FILE.npz:NAME` into the file and the array's name.
pub fn split(path: &str) -> Option<(&str, Option<&str>)> {
    if let Some((file, name)) = path.rsplit_once(".npz:") {
        return Some((&path[..file.len() + 4], Some(name)));
    }
    path.ends_with(".npz").then_some((path, None))
}

/// An error of reading as this file's.
impl From<io::Error> for NpyError {
    fn from(error: io::Error) -> NpyError {
        NpyError::Header(error)
    }
}
