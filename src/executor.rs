//! The threads that run the parts of a kernel.
//!
//! An executor is given a number of parts and a function that runs one. Callers may write their own; this one starts a
//! thread for each part:
//!
//! ```
//! use cranefold::{Compiler, Executor, Input, Output, Spec};
//!
//! struct Threads(usize);
//!
//! impl Executor for Threads {
//!     fn threads(&self) -> usize {
//!         self.0
//!     }
//!
//!     fn run(&self, parts: usize, part: &(dyn Fn(usize) + Sync)) {
//!         std::thread::scope(|scope| {
//!             for n in 0..parts {
//!                 scope.spawn(move || part(n));
//!             }
//!         });
//!     }
//! }
//!
//! let pool = Threads(2);
//! let compiler = Compiler::builder().threads(pool.threads()).build()?;
//! let spec: Spec = "sum f32[1000000]".parse()?;
//! let (x, mut sum) = (vec![1.0f32; 1_000_000], [0.0f32]);
//! compiler.compile(&spec)?.run_on(&pool, &[Input::from(&x[..])], &mut [Output::from(&mut sum[..])])?;
//! assert_eq!(sum, [1e6]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cores;
#[cfg(feature = "rayon")]
mod rayon;
mod spinning;
mod turns;

#[cfg(feature = "rayon")]
pub use rayon::Rayon;
pub use spinning::Spinning;

pub(crate) use cores::Cores;
use turns::Turns;

/// Runs the parts of a call. The bits of a result do not depend on the executor.
pub trait Executor: Send + Sync {
    /// The number of threads, at least one, for [`Builder::threads`](crate::compiler::Builder::threads).
    fn threads(&self) -> usize;

    /// Runs `part` once for each number below `parts`, in any order and on any threads, and returns when all are done.
    fn run(&self, parts: usize, part: &(dyn Fn(usize) + Sync));
}

/// The calling thread alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Serial;

impl Executor for Serial {
    fn threads(&self) -> usize {
        1
    }

    fn run(&self, parts: usize, part: &(dyn Fn(usize) + Sync)) {
        (0..parts).for_each(part);
    }
}
