//! Who runs the parts of a kernel.
//!
//! An executor is given a number of parts and a function that runs one. Any of the caller's own will do; here each part has
//! a thread:
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

/// How long a calling thread that is left no part waits awake for the others before it sleeps: waking it takes 30 us and more,
/// which is what a part may take.
const WAIT: Duration = Duration::from_micros(100);

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

/// The parts of a call, which threads take in turn: one that is late takes fewer.
struct Turns<'p> {
    parts: usize,
    part: &'p (dyn Fn(usize) + Sync),
    /// The first that none has taken. Past the end the count goes on, by one for each thread.
    next: AtomicUsize,
    /// Threads that help the calling one.
    helpers: usize,
    /// How many of them have not ended.
    at_work: AtomicUsize,
}

impl<'p> Turns<'p> {
    /// The parts of a call on the calling thread and at most so many others.
    fn new(parts: usize, part: &'p (dyn Fn(usize) + Sync), others: usize) -> Turns<'p> {
        let helpers = others.min(parts.saturating_sub(1));
        Turns { parts, part, next: AtomicUsize::new(0), helpers, at_work: AtomicUsize::new(helpers) }
    }

    /// Runs parts until none is left.
    fn take(&self) {
        let numbers = std::iter::repeat_with(|| self.next.fetch_add(1, Ordering::Relaxed));
        numbers.take_while(|&n| n < self.parts).for_each(self.part);
    }

    /// Runs the parts on the calling thread, and on those of a scope that are free; `wake` is called once they are asked. The
    /// calling thread begins while they wake.
    fn run<'s>(&'s self, scope: &Scope<'s>, is_worker: bool, wake: impl FnOnce()) {
        for _ in 0..self.helpers {
            scope.spawn(|_| {
                self.take();
                self.at_work.fetch_sub(1, Ordering::Release);
            });
        }
        wake();
        self.take();
        // A worker is of use elsewhere while it waits: rayon sees to that.
        if !is_worker {
            self.wait();
        }
    }

    /// Waits awake for those who help; not for long, nor for one that has panicked.
    fn wait(&self) {
        let start = Instant::now();
        while self.at_work.load(Ordering::Acquire) > 0 && start.elapsed() < WAIT {
            std::thread::yield_now();
        }
    }
}
