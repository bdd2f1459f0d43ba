//! Who runs the parts of a kernel.
//!
//! An executor is given a number of parts and a function that runs one. Any of the caller's own will do; here each part has
//! a thread:
//!
//! ```
//! use cranefold::{Compiler, Executor, Input, Output, Reduction};
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
//! let spec: Reduction = "sum f32[1000000]".parse()?;
//! let (x, mut sum) = (vec![1.0f32; 1_000_000], [0.0f32]);
//! compiler.compile(&spec)?.run_on(&pool, &[Input::from(&x[..])], &mut [Output::from(&mut sum[..])])?;
//! assert_eq!(sum, [1e6]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use rayon::ThreadPool;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs the parts of a call. The bits of a result do not depend on it.
pub trait Executor: Send + Sync {
    /// How many threads it has, at least one: what [`Builder::threads`](crate::compiler::Builder::threads) may be told.
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

/// The calling thread and rayon's: those of the pool it is called in, or of the global one, whose size rayon reads from the
/// environment. A [`ThreadPool`] is an executor too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rayon;

impl Executor for Rayon {
    fn threads(&self) -> usize {
        rayon::current_num_threads()
    }

    fn run(&self, parts: usize, part: &(dyn Fn(usize) + Sync)) {
        let work = taking_turns(parts, part);
        // The calling thread begins while others wake.
        rayon::in_place_scope(|scope| {
            (1..self.threads().min(parts)).for_each(|_| scope.spawn(|_| work()));
            work();
        });
    }
}

impl Executor for ThreadPool {
    fn threads(&self) -> usize {
        self.current_num_threads()
    }

    fn run(&self, parts: usize, part: &(dyn Fn(usize) + Sync)) {
        let work = taking_turns(parts, part);
        self.in_place_scope(|scope| {
            (1..self.threads().min(parts)).for_each(|_| scope.spawn(|_| work()));
            work();
        });
    }
}

/// Runs parts until none is left, together with all others that call it.
fn taking_turns<'p>(parts: usize, part: &'p (dyn Fn(usize) + Sync)) -> impl Fn() + Sync + 'p {
    let next = AtomicUsize::new(0);
    move || {
        // Past the end the count goes on, by one for each thread.
        let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        numbers.take_while(|&n| n < parts).for_each(part);
    }
}
