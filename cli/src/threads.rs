//! The threads that kernels are for and run on.

use crate::failure::Failure;
use cranefold::{Compiler, Spinning};

/// The most threads.
const MOST_THREADS: usize = 1024;

/// A compiler for this machine and `threads` threads.
///
/// # Errors
/// [`Failure::Threads`] if there are none or too many.
pub fn compiler(threads: usize) -> Result<Compiler, Failure> {
    match threads {
        1..=MOST_THREADS => Ok(Compiler::builder().threads(threads).build()?),
        given => Err(Failure::Threads { given, limit: MOST_THREADS }),
    }
}

/// An executor of `threads` threads, the calling one included, that spin between calls.
///
/// # Errors
/// [`Failure::NoThreads`] if the system does not give them.
pub fn pool(threads: usize) -> Result<Spinning, Failure> {
    Spinning::new(threads).map_err(|error| Failure::NoThreads { threads, error: error.to_string() })
}
