//! The parts of one call, which threads take in turn.
//!
//! The calling thread takes parts until none is left, and then waits for the helpers that have begun. It never waits for
//! one that has not: a helper whose thread is late, or is no more, finds the call closed and does nothing. So a call
//! cannot hang for lack of threads, and a busy machine delays it only by parts that are being run.
#![allow(unsafe_code, reason = "lends the parts of a call to threads that outlive it")]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// The time that a calling thread without a part left spins for the others before it sleeps: waking it takes 30 us and
/// more, as long as a part may take.
const WAIT: Duration = Duration::from_micros(100);

/// The bits of [`Turns::inside`] above the number of helpers: the call is closed; the calling thread sleeps.
const CLOSED: usize = 1 << (usize::BITS - 1);
const SLEEPS: usize = CLOSED >> 1;

/// A function that runs a part.
type Part<'p> = dyn Fn(usize) + Sync + 'p;

/// The parts of a call, which threads take in turn; a late thread takes fewer.
#[derive(Debug)]
pub(super) struct Turns {
    parts: usize,
    /// The caller's function, borrowed until the call is closed and nobody is inside.
    part: *const Part<'static>,
    /// The first part that no thread has taken. Past the last part, each thread counts on by one.
    next: AtomicUsize,
    /// The number of helpers that have begun and not ended; [`CLOSED`] and [`SLEEPS`] besides.
    inside: AtomicUsize,
    /// The first panic of a helper's part.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    caller: Thread,
}

// SAFETY: the function that `part` points to may be called by any thread (`Sync`); it is called between `begin` and
// `end` alone, and lives then, as `Open` waits. All else is `Send` and `Sync`.
unsafe impl Send for Turns {}
// SAFETY: as above.
unsafe impl Sync for Turns {}

/// Runs `part` once for each number below `parts`, on the calling thread and on at most `others` helpers. `ask` is given
/// the turns and the number of helpers that may call [`Turns::help`], and need not; where no help is needed it is not called.
/// Returns when all parts are done. A panic of a part goes on here.
pub(super) fn run(parts: usize, part: &Part<'_>, others: usize, ask: impl FnOnce(&Arc<Turns>, usize)) {
    let helpers = others.min(parts.saturating_sub(1));
    if helpers == 0 {
        return (0..parts).for_each(part);
    }
    // SAFETY: only the lifetime changes; `Open` sees to it that nobody uses the function after this call.
    let lent = unsafe { std::mem::transmute::<*const Part<'_>, *const Part<'static>>(part) };
    let turns = Arc::new(Turns {
        parts,
        part: lent,
        next: AtomicUsize::new(0),
        inside: AtomicUsize::new(0),
        panic: Mutex::new(None),
        caller: thread::current(),
    });
    {
        let open = Open(&turns);
        ask(&turns, helpers);
        open.0.take(part);
    }
    let panic = turns.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(panic) = panic {
        resume_unwind(panic);
    }
}

/// An open call, which is closed when this is dropped, also by a panic of the calling thread's part.
struct Open<'a>(&'a Turns);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Turns {
    /// Runs parts until none is left, if the call is open: the work of a helper.
    pub fn help(&self) {
        if !self.begin() {
            return;
        }
        // SAFETY: this helper is inside, so that the calling thread is in `run`, where the function is borrowed.
        let part = unsafe { &*self.part };
        // Nothing half-done is used again: the panic becomes the caller's.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.take(part))) {
            self.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(panic);
        }
        self.end();
    }

    /// Takes parts until none is left.
    fn take(&self, part: &Part<'_>) {
        let numbers = std::iter::repeat_with(|| self.next.fetch_add(1, Ordering::Relaxed));
        numbers.take_while(|&n| n < self.parts).for_each(part);
    }

    /// Counts a helper in; returns false if the call is closed.
    fn begin(&self) -> bool {
        let more = |inside: usize| (inside & CLOSED == 0).then_some(inside + 1);
        // Acquire: what the caller wrote before the call is seen by the parts.
        self.inside.fetch_update(Ordering::Acquire, Ordering::Relaxed, more).is_ok()
    }

    fn end(&self) {
        // Release: what the parts wrote is seen by the caller, whose handle lives as long as the turns.
        if self.inside.fetch_sub(1, Ordering::AcqRel) == (CLOSED | SLEEPS) + 1 {
            self.caller.unpark();
        }
    }

    /// Lets no more helpers in, and waits for those inside: it spins for a time, then sleeps.
    fn close(&self) {
        if self.inside.fetch_or(CLOSED, Ordering::AcqRel) == 0 {
            return;
        }
        let start = Instant::now();
        while start.elapsed() < WAIT {
            if self.inside.load(Ordering::Acquire) == CLOSED {
                return;
            }
            thread::yield_now();
        }
        if self.inside.fetch_or(SLEEPS, Ordering::AcqRel) == CLOSED {
            return;
        }
        while self.inside.load(Ordering::Acquire) != CLOSED | SLEEPS {
            thread::park();
        }
    }
}
