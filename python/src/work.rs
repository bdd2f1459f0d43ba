//! The time that a kernel works, which decides whether other Python threads run meanwhile.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// Nanoseconds of work from which on other Python threads run during a call.
const LONG: u32 = 5_000;

/// The calls that are timed. The least of their times counts, since a call may wait for memory or for a processor.
const TIMED: u32 = 4;

/// The times of a kernel's first calls.
///
/// The bytes of a call do not tell: on a Zen 3 a masked variance of 128 KiB of int8 worked for up to 1.2 ms, and a maximum of
/// 128 KiB of float32 for 5 us.
pub struct Work {
    calls: AtomicU32,
    least: AtomicU32,
}

impl Work {
    pub fn new() -> Work {
        Work { calls: AtomicU32::new(0), least: AtomicU32::new(u32::MAX) }
    }

    /// Returns true if a call is known to be long, or not yet known to be short.
    #[inline]
    pub fn is_long(&self) -> bool {
        self.least.load(Ordering::Relaxed) >= LONG || self.calls.load(Ordering::Relaxed) < TIMED
    }

    /// Runs a call that may be long, and notes its time if it is one of the first. A count that two threads add to at once
    /// may miss a call, which is then timed once more.
    pub fn note<R>(&self, run: impl FnOnce() -> R) -> R {
        let calls = self.calls.load(Ordering::Relaxed);
        if calls >= TIMED {
            return run();
        }
        let start = Instant::now();
        let result = run();
        let nanoseconds = u32::try_from(start.elapsed().as_nanos()).unwrap_or(u32::MAX);
        self.least.fetch_min(nanoseconds, Ordering::Relaxed);
        self.calls.store(calls + 1, Ordering::Relaxed);
        result
    }
}
