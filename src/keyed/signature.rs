//! The cache key of code.

use crate::schedule::{Bounds, Schedule, Source};
use std::fmt::{self, Write};
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// The cache key of code: everything that changes the code, and nothing else. Cheap to clone.
///
/// Machines of the same features have equal signatures, whether the features were named or detected. The hash is of the
/// canonical text of all fields. It is the same on every machine and in every process while that text and
/// [`RESULTS_VERSION`](crate::results::RESULTS_VERSION) stay. Two signatures are equal if all their fields are,
/// whatever their hashes.
#[derive(Clone)]
pub struct Signature(Arc<(u128, Key)>);

/// The fields of a [`Signature`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The source of the code.
    pub source: Source,
    /// The target with its features, in canonical text: [`Target::canonical`](crate::Target::canonical).
    pub target: Arc<str>,
    /// The bounds of the decisions.
    pub bounds: Bounds,
    /// The schedule if it was forced.
    pub schedule: Option<Schedule>,
    /// The version of the bits of results.
    pub results_version: u32,
}

impl Signature {
    pub(crate) fn new(key: Key) -> Signature {
        let Key { source, target, bounds: Bounds { vectors, width, threads }, schedule, results_version } = &key;
        let dot = if vectors.dot { " dot" } else { "" };
        let bytes = if vectors.byte_permutes { " bytes" } else { "" };
        let intel = if vectors.intel { " intel" } else { "" };
        let bounds = format_args!("{}{dot}{bytes}{intel} {width} {threads}", vectors.bits);
        let schedule = schedule.as_ref().map_or(String::new(), Schedule::to_string);
        let how = format_args!("{target}\n{bounds} {results_version}\n{schedule}");
        let hash = match source {
            Source::Problem(problem) => hash(format_args!("{problem}\n{how}")),
            Source::Part(problem, nest) => hash(format_args!("{problem}\n{how}\n{nest}")),
            Source::Nest(nest) => hash(format_args!("{nest}\n{how}")),
        };
        Signature(Arc::new((hash, key)))
    }

    /// The hash.
    pub fn hash(&self) -> u128 {
        self.0.0
    }
}

/// A hash of text that is the same on every machine (XXH3 of 128 bits).
pub(crate) fn hash(text: fmt::Arguments<'_>) -> u128 {
    let mut hash = Hashed(Xxh3::new());
    hash.write_fmt(text).expect("hashing takes all text");
    hash.0.digest128()
}

/// A text sink that hashes.
struct Hashed(Xxh3);

impl Write for Hashed {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}

impl Deref for Signature {
    type Target = Key;

    fn deref(&self) -> &Key {
        &self.0.1
    }
}

impl PartialEq for Signature {
    fn eq(&self, other: &Signature) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Eq for Signature {}

impl Hash for Signature {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.0 as u64);
    }
}

/// The hash in 32 hexadecimal digits.
impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0.0)
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signature({self})")
    }
}
