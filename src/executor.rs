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

mod spinning;

pub use spinning::Spinning;

use rayon::{Scope, ThreadPool};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The time that a calling thread without a part left spins for the others before it sleeps: waking it takes 30 us and
/// more, as long as a part may take.
const WAIT: Duration = Duration::from_micros(100);

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

/// The calling thread and rayon's threads: those of the pool it is called in, or of the global pool, whose size rayon
/// reads from the environment. A [`ThreadPool`] is an executor too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rayon;

impl Executor for Rayon {
    fn threads(&self) -> usize {
        rayon::current_num_threads()
    }

    fn run(&self, parts: usize, part: &(dyn Fn(usize) + Sync)) {
        let turns = Turns::new(parts, part, self.threads() - 1);
        let is_worker = rayon::current_thread_index().is_some();
        rayon::in_place_scope(|scope| turns.run(scope, is_worker, || ()));
    }
}

impl Executor for ThreadPool {
    fn threads(&self) -> usize {
        self.current_num_threads()
    }

    fn run(&self, parts: usize, part: &(dyn Fn(usize) + Sync)) {
        let turns = Turns::new(parts, part, self.threads() - 1);
        let is_worker = self.current_thread_index().is_some();
        self.in_place_scope(|scope| turns.run(scope, is_worker, || ()));
    }
}

/// The parts of a call, which threads take in turn; a late thread takes fewer.
struct Turns<'p> {
    parts: usize,
    part: &'p (dyn Fn(usize) + Sync),
    /// The first part that no thread has taken. Past the last part, each thread counts on by one.
    next: AtomicUsize,
    /// The number of threads that help the calling thread.
    helpers: usize,
    /// The number of helpers that have not ended.
    at_work: AtomicUsize,
}

impl<'p> Turns<'p> {
    /// The parts of a call for the calling thread and at most `others` helpers.
    fn new(parts: usize, part: &'p (dyn Fn(usize) + Sync), others: usize) -> Turns<'p> {
        let helpers = others.min(parts.saturating_sub(1));
        Turns { parts, part, next: AtomicUsize::new(0), helpers, at_work: AtomicUsize::new(helpers) }
    }

    /// Runs parts until none is left.
    fn take(&self) {
        let numbers = std::iter::repeat_with(|| self.next.fetch_add(1, Ordering::Relaxed));
        numbers.take_while(|&n| n < self.parts).for_each(self.part);
    }

    /// Runs the parts on the calling thread and on free threads of a scope; `wake` is called once they are asked to
    /// help. The calling thread begins while they wake.
    fn run<'s>(&'s self, scope: &Scope<'s>, is_worker: bool, wake: impl FnOnce()) {
        for _ in 0..self.helpers {
            scope.spawn(|_| {
                self.take();
                self.at_work.fetch_sub(1, Ordering::Release);
            });
        }
        wake();
        self.take();
        // A worker is useful elsewhere while it waits: rayon gives it other work.
        if !is_worker {
            self.wait();
        }
    }

    /// Spins until the helpers have ended, for a short time only, as one may have panicked.
    fn wait(&self) {
        let start = Instant::now();
        while self.at_work.load(Ordering::Acquire) > 0 && start.elapsed() < WAIT {
            std::thread::yield_now();
        }
    }
}
