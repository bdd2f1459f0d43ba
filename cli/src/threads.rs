//! The threads that kernels are for and run on.

use crate::failure::Failure;
use cranefold::schedules::Measurement;
use cranefold::{Compiler, Spinning};
use std::fs::File;
use std::path::Path;

/// The most threads.
const MOST_THREADS: usize = 1024;

/// A compiler for this machine and `threads` threads.
///
/// # Errors
/// [`Failure::Threads`] if there are none or too many.
pub fn compiler(threads: usize) -> Result<Compiler, Failure> {
    tuned_compiler(threads, None)
}

/// A compiler for this machine and `threads` threads, which takes the schedules of a file.
///
/// # Errors
/// As [`compiler`]; also if the file is not there or cannot be read.
pub fn tuned_compiler(threads: usize, schedules: Option<&Path>) -> Result<Compiler, Failure> {
    if !(1..=MOST_THREADS).contains(&threads) {
        return Err(Failure::Threads { given: threads, limit: MOST_THREADS });
    }
    if let Some(path) = schedules {
        File::open(path).map_err(|error| Failure::Read { path: path.into(), error })?;
        check_schedules(path)?;
    }
    let builder = Compiler::builder().threads(threads);
    Ok(schedules.map_or_else(|| builder.clone(), |path| builder.clone().schedules(path)).build()?)
}

/// Refuses a file of which no line is a schedule's, if it has any lines. A torn line among others is nobody's mistake.
///
/// # Errors
/// [`Failure::NoSchedules`].
pub fn check_schedules(path: &Path) -> Result<(), Failure> {
    let text = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).peekable();
    let Some(&(first, line)) = lines.peek() else { return Ok(()) };
    let Err(error) = line.parse::<Measurement>() else { return Ok(()) };
    match lines.any(|(_, line)| line.parse::<Measurement>().is_ok()) {
        true => Ok(()),
        false => Err(Failure::NoSchedules { path: path.into(), line: first + 1, error }),
    }
}

/// An executor of `threads` threads, the calling one included, that spin between calls.
///
/// # Errors
/// [`Failure::NoThreads`] if the system does not give them.
pub fn pool(threads: usize) -> Result<Spinning, Failure> {
    Spinning::new(threads).map_err(|error| Failure::NoThreads { threads, error: error.to_string() })
}
