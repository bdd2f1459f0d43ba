//! The process that data belongs to.
//!
//! After a fork the child has the forking thread alone. Locks that other threads held stay locked there, and pools have
//! no threads. Data of this kind is therefore kept for each process: the child makes its own when it first asks for it,
//! and leaves the parent's alone.
//!
//! Forks are seen by `pthread_atfork`, which the C library calls in every child that its `fork` makes.
#![allow(unsafe_code, reason = "asks the C library to tell of forks, and drops by hand")]

use std::mem::ManuallyDrop;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The number of forks between the process that first asked and this one.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// True once forks are seen.
static SEES_FORKS: AtomicBool = AtomicBool::new(false);

/// The number of forks between the process that first asked for it and this one.
#[inline]
pub(crate) fn forks() -> u64 {
    if !SEES_FORKS.load(Ordering::Acquire) {
        see_forks();
    }
    FORKS.load(Ordering::Relaxed)
}

/// Asks for forks to be counted. Two threads may do so at once: then each fork counts twice, which is as good.
#[cold]
fn see_forks() {
    #[cfg(unix)]
    {
        extern "C" fn in_child() {
            FORKS.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the function may run at any time, for it changes one number. Without memory for it, forks are not seen.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    }
    SEES_FORKS.store(true, Ordering::Release);
}

/// A value for each process: this one's, and for a child that asks for it one of its own.
#[derive(Debug)]
pub(crate) struct OfProcess<T> {
    /// The process that the value is for.
    forks: u64,
    value: ManuallyDrop<T>,
    /// The value of a child, where this is its copy of the parent's memory.
    child: OnceLock<Box<OfProcess<T>>>,
}

impl<T> OfProcess<T> {
    /// The value for this process.
    pub fn new(value: T) -> OfProcess<T> {
        OfProcess::after(forks(), value)
    }

    /// The value for the process after so many forks.
    pub const fn after(forks: u64, value: T) -> OfProcess<T> {
        OfProcess { forks, value: ManuallyDrop::new(value), child: OnceLock::new() }
    }

    /// The value of this process, which `make` makes if the process is a child that has none.
    #[inline]
    pub fn get(&self, make: impl Fn() -> T) -> &T {
        let now = forks();
        if self.forks == now { &self.value } else { self.of_child(now, make) }
    }

    #[cold]
    fn of_child(&self, now: u64, make: impl Fn() -> T) -> &T {
        let mut at = self;
        while at.forks != now {
            at = match at.child.get() {
                Some(child) => child,
                None => {
                    // It is made before the cell is locked, so that hardly any fork finds the lock held. Of two threads
                    // that make one, one is first.
                    let made = Box::new(OfProcess::after(now, make()));
                    at.child.get_or_init(|| made)
                }
            };
        }
        &at.value
    }
}

impl<T> Drop for OfProcess<T> {
    fn drop(&mut self) {
        if self.forks == forks() {
            // SAFETY: it is dropped here alone, and not used afterwards. A parent's value, which threads that are no more
            // may have left half-changed, is never dropped.
            unsafe { ManuallyDrop::drop(&mut self.value) };
        }
    }
}
