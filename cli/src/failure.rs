//! What can go wrong, each with the one line that says so.

use crate::npy::NpyError;
use cranefold::reference::BufferError;
use cranefold::{CallError, Error, ScheduleError, SpecError};
use std::io;
use std::path::PathBuf;

/// A request that was not fulfilled.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages define the variants and their fields")]
pub enum Failure {
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    #[error(transparent)]
    Compile(#[from] Error),
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(transparent)]
    Buffer(#[from] BufferError),
    #[error("threads={given} is outside 1 to {limit}: kernels run on one thread so far")]
    Threads { given: u64, limit: u64 },
    #[error("the reference executor has no {option}: it is for native and interpreter")]
    NoSchedule { option: &'static str },
    #[error("bench needs a SPEC, or a file of them by --file")]
    NothingToTime,
    #[error("{given} {role} files for a spec with {expected}")]
    Files { role: &'static str, given: usize, expected: usize },
    #[error("cannot read {}: {error}", path.display())]
    Read { path: PathBuf, error: io::Error },
    #[error("cannot write {}: {error}", path.display())]
    Write { path: PathBuf, error: io::Error },
    #[error("{}: {error}", path.display())]
    Npy { path: PathBuf, error: NpyError },
    #[error("{}:{line}: {error}", path.display())]
    Line { path: PathBuf, line: usize, error: Box<Failure> },
    #[error("`{text}` is no case: {reason}")]
    Case { text: String, reason: String },
    #[error("no memory for {bytes} bytes: {error}")]
    Memory { bytes: u64, error: io::Error },
    #[error("cannot write to stdout: {0}")]
    Stdout(io::Error),
    #[error("this is a bug in cranefold: {wrong}")]
    WrongAnswer { wrong: String },
}

impl Failure {
    /// 2 where the request is wrong, 1 where we are.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Compile(Error::Internal { .. }) | Failure::WrongAnswer { .. } => 1,
            _ => 2,
        }
    }
}
