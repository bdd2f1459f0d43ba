//! The failures of a command, each with its message: one line, and for an expression the place in it below.

use crate::npy::NpyError;
use crate::scalars::ScalarError;
use cranefold::schedules::NotMeasured;
use cranefold::{CallError, Error, ScheduleError, SpecError};
use cranefold_reference::ReferenceError;
use std::io;
use std::path::{Path, PathBuf};

/// The reason why a command failed.
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
    Reference(#[from] ReferenceError),
    #[error("{}: {message}, in {place}", shown(path))]
    Text { path: PathBuf, message: String, place: String },
    #[error("{option} is for specs: a problem and a nest have neither a reference nor names")]
    OfSpec { option: &'static str },
    #[error("threads={given} is outside 1 to {limit}")]
    Threads { given: usize, limit: usize },
    #[error("there are no {threads} threads: {error}")]
    NoThreads { threads: usize, error: String },
    #[error("the reference executor has no {option}: it is for native and interpreter")]
    NoSchedule { option: &'static str },
    #[error("bench needs a SPEC, or a file of them by --file")]
    NothingToTime,
    #[error(transparent)]
    Scalar(#[from] ScalarError),
    #[error("`-` is the standard input, which is read once, and {given} files are to come from it")]
    Stdin { given: usize },
    #[error("`--input` is of one spec, {given} given")]
    InputsOfOne { given: usize },
    #[error("{option} scales the first extent, which `{spec}` does not have in row-major order")]
    NotScaled { option: &'static str, spec: String },
    #[error("{given} files by --old, and the spec reads {expected} old outputs, which an expression does by `d`")]
    Old { given: usize, expected: usize },
    #[error("{given} files by --{role}, and the spec has {expected}: one for each, in order")]
    Files { role: &'static str, given: usize, expected: usize },
    #[error("{}: {message}", shown(path))]
    Model { path: PathBuf, message: String },
    #[error("cannot read {}: {error}", shown(path))]
    Read { path: PathBuf, error: io::Error },
    #[error("{}: a file of outputs is one array, and its name ends in .npy", shown(path))]
    Archive { path: PathBuf },
    #[error("{}:{line}: {error}", shown(path))]
    NoSchedules { path: PathBuf, line: usize, error: NotMeasured },
    #[error("cannot write {}: {error}", shown(path))]
    Write { path: PathBuf, error: io::Error },
    #[error("{} is {first} and {second}: they are two files", shown(path))]
    OneFile { path: PathBuf, first: String, second: String },
    #[error("{}: {error}", if path.as_os_str() == "-" { "the standard input".into() } else { shown(path) })]
    Npy { path: PathBuf, error: NpyError },
    #[error("{}:{line}: {error}", shown(path))]
    Line { path: PathBuf, line: usize, error: Box<Failure> },
    #[error("`{text}` is no case: {reason}")]
    Case { text: String, reason: String },
    #[error("no memory for {bytes} bytes: {error}")]
    Memory { bytes: u64, error: io::Error },
    #[error("cannot write to stdout: {0}")]
    Stdout(io::Error),
    #[error("a combiner breaks its contract, as `Combiner::check` finds: {law}")]
    Contract { law: String },
    #[error("this is a bug in cranefold: {wrong}")]
    WrongAnswer { wrong: String },
    #[error("this is a bug in cranefold: the result is not checked, for its check fails: {error}")]
    Check { error: String },
}

/// A path on one line, without control characters.
fn shown(path: &Path) -> String {
    without_controls(&path.display().to_string(), false)
}

/// The text without control characters, which a spec or a file name may hold; line breaks stay if `lines` is true.
pub fn without_controls(text: &str, lines: bool) -> String {
    let shown = |c: char| match c {
        '\n' if lines => c.to_string(),
        c if c.is_control() => c.escape_default().to_string(),
        c => c.to_string(),
    };
    text.chars().map(shown).collect()
}

impl Failure {
    /// An error in a spec that the check of a result makes: a fault of ours, whatever its type.
    pub fn check(error: impl std::fmt::Display) -> Failure {
        Failure::Check { error: error.to_string() }
    }

    /// The exit code: 2 if the arguments are wrong, 1 if we are.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Compile(Error::Internal { .. }) | Failure::WrongAnswer { .. } | Failure::Check { .. } => 1,
            Failure::Reference(ReferenceError::Unknown { .. }) => 1,
            _ => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An error has one code as the user's, another where the check of a result meets it.
    #[test]
    fn a_check_that_fails_is_no_fault_of_the_arguments() {
        let error = "sum f32[4] axes=[1]".parse::<cranefold::Spec>().expect_err("no such axis");
        assert_eq!(Failure::Spec(error.clone()).exit_code(), 2);
        let ours = Failure::check(error);
        assert_eq!(ours.exit_code(), 1);
        let message =
            "the result is not checked, for its check fails: axis 1 is out of range for rank 1: its axes are -1 to 0";
        assert!(ours.to_string().starts_with(&format!("this is a bug in cranefold: {message}\n")), "{ours}");
    }
}
