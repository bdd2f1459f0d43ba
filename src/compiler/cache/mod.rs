//! The codes that a compiler keeps: by signature, bounded in number and in bytes, each made once.
//!
//! A thread that asks for a signature which another thread is making waits for it and gets the same result, be it an
//! error. A failure, also a panic, leaves nothing behind: the next caller tries again. Evicted code lives as long as a
//! kernel holds it.
//!
//! A thread finds kernels that it has asked for before in a front ([`fronts`]), which it shares with few others. One in
//! [`HITS_TOLD`] hits there is reported to the cache behind, which evicts codes that have not been asked for lately.

mod fronts;
#[cfg(test)]
mod tests;

use crate::error::{Error, panic_message};
use crate::kernel::Kernel;
use crate::kernel::code::Compiled;
use crate::keyed::KeyedSpec;
use crate::keyed::Signature;
use crate::spec::Spec;
use fronts::{Fronts, Holders};
use quick_cache::sync::Cache as Ready;
use quick_cache::{DefaultHashBuilder, Lifecycle, OptionsBuilder, Weighter};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The result of making a code, for all threads that wait for it.
type Flight = Arc<OnceLock<Result<Kept, Error>>>;

/// A code that the cache keeps, and the fronts that hold kernels of it.
#[derive(Clone, Debug)]
struct Kept {
    compiled: Arc<Compiled>,
    holders: Arc<Holders>,
}

/// The cache of codes.
#[derive(Debug)]
pub(crate) struct Cache {
    fronts: Arc<Fronts>,
    ready: Ready<Signature, Kept, Weight, DefaultHashBuilder, Evictions>,
    /// The codes that are being made.
    flights: Mutex<HashMap<Signature, Flight>>,
    misses: AtomicU64,
    compiles: AtomicU64,
    failures: AtomicU64,
    evictions: Arc<AtomicU64>,
}

/// The counts of a compiler's work so far, and of the code it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Lookups that found code ready.
    pub hits: u64,
    /// Lookups that found no code ready: they compiled, waited for another thread's compilation, or were a
    /// [`get`](crate::Compiler::get), which does neither.
    pub misses: u64,
    /// Compilations, failed ones included.
    pub compiles: u64,
    /// Compilations that failed.
    pub failures: u64,
    /// Codes that were evicted to make room.
    pub evictions: u64,
    /// Codes that the cache holds.
    pub kernels: u64,
    /// Bytes of their executable memory.
    pub code_bytes: u64,
}

/// The weight of a code: its bytes, or the most bytes divided by the most codes, whichever is more. Both bounds hold
/// so.
#[derive(Clone, Copy, Debug)]
struct Weight {
    least: u64,
}

impl Weighter<Signature, Kept> for Weight {
    fn weight(&self, _: &Signature, kept: &Kept) -> u64 {
        kept.compiled.memory_bytes().max(self.least)
    }
}

/// Counts evicted codes, and drops them after the cache's lock.
#[derive(Clone, Debug)]
struct Evictions {
    count: Arc<AtomicU64>,
    fronts: Arc<Fronts>,
}

impl Lifecycle<Signature, Kept> for Evictions {
    type RequestState = Evicted;

    fn on_evict(&self, evicted: &mut Evicted, _: Signature, kept: Kept) {
        self.count.fetch_add(1, Ordering::Relaxed);
        evicted.0.push((self.fronts.clone(), kept));
    }
}

/// The codes that one insertion has evicted, with the fronts that may hold them.
#[derive(Debug, Default)]
struct Evicted(Vec<(Arc<Fronts>, Kept)>);

impl Drop for Evicted {
    fn drop(&mut self) {
        self.0.iter().for_each(|(fronts, kept)| fronts.remove(&kept.holders));
    }
}

impl Cache {
    /// A cache of at most `most_kernels` codes with at most `most_code_bytes` bytes together.
    pub fn new(most_kernels: usize, most_code_bytes: u64) -> Cache {
        let (most_kernels, most_code_bytes) = (most_kernels.max(1), most_code_bytes.max(1));
        let evictions = Arc::new(AtomicU64::new(0));
        let fronts = Arc::new(Fronts::new(most_kernels));
        let shards = (most_kernels / SHARD_KERNELS).min((most_code_bytes / SHARD_BYTES) as usize).clamp(1, SHARDS);
        // The cache rounds the number of shards to a power of two.
        let shards = 1 << shards.ilog2();
        // The cache remembers the signatures of evicted codes, as many as it may hold codes.
        let expected = most_kernels.min((most_code_bytes / LEAST_CODE_BYTES).max(1) as usize);
        let options = OptionsBuilder::new()
            .estimated_items_capacity(expected)
            .weight_capacity(most_code_bytes)
            .shards(shards)
            .build()
            .expect("both capacities are given");
        // The cache keeps no code that weighs nearly all there may be.
        let share = most_code_bytes.div_ceil(most_kernels as u64);
        let weight = Weight { least: share.min(most_code_bytes - most_code_bytes / 16).max(1) };
        let lifecycle = Evictions { count: evictions.clone(), fronts: fronts.clone() };
        let ready = Ready::with_options(options, weight, Default::default(), lifecycle);
        let [misses, compiles, failures] = [(); 3].map(|()| AtomicU64::new(0));
        Cache { fronts, ready, flights: Default::default(), misses, compiles, failures, evictions }
    }

    /// The kernel of a spec without forced choices, if this thread has asked for it before.
    pub fn get_asked(&self, spec: &Spec) -> Option<Kernel> {
        let kernel = self.fronts.own().get_asked(spec)?;
        self.hit(&kernel);
        Some(kernel)
    }

    /// The kernel of a keyed spec, if its code is ready.
    pub fn get(&self, keyed: &KeyedSpec) -> Option<Kernel> {
        let kernel = self.found(keyed);
        if kernel.is_none() {
            self.misses.fetch_add(1, Ordering::Relaxed);
        }
        kernel
    }

    fn found(&self, keyed: &KeyedSpec) -> Option<Kernel> {
        if let Some(kernel) = self.fronts.own().get(keyed) {
            self.hit(&kernel);
            return Some(kernel);
        }
        let kept = self.ready.get(keyed.signature())?;
        self.fronts.own().count_hit();
        Some(self.held(keyed, kept))
    }

    fn hit(&self, kernel: &Kernel) {
        // One in so many hits is reported, at no fixed distance, so that repeating lookups all have their turn.
        if self.fronts.own().count_hit().wrapping_mul(SCATTER) < u64::MAX / HITS_TOLD {
            self.ready.get(kernel.keyed_spec().signature());
        }
    }

    /// A kernel, held in front unless its code has been evicted meanwhile.
    fn held(&self, keyed: &KeyedSpec, kept: Kept) -> Kernel {
        let kernel = self.fronts.hold(keyed, &kept);
        let is_same = |now: Kept| Arc::ptr_eq(&now.compiled, &kept.compiled);
        if !self.ready.peek(keyed.signature()).is_some_and(is_same) {
            self.fronts.remove(&kept.holders);
        }
        kernel
    }

    /// The keyed spec of a spec without forced choices, if this thread has asked for its kernel before.
    pub fn keyed(&self, spec: &Spec) -> Option<KeyedSpec> {
        self.fronts.own().get_asked(spec).map(|kernel| kernel.keyed_spec().clone())
    }

    /// The equal keyed spec of a held kernel if there is one, else this one.
    pub fn known(&self, keyed: KeyedSpec) -> KeyedSpec {
        let kept = self.ready.peek(keyed.signature());
        kept.and_then(|kept| kept.holders.known(&keyed)).unwrap_or(keyed)
    }

    /// The kernel of a keyed spec, of code that is ready or that `make` makes; one thread at a time makes it.
    ///
    /// # Errors
    /// The errors of `make`; [`Error::Internal`] if it panics.
    pub fn get_or_make(
        &self,
        keyed: &KeyedSpec,
        make: impl FnOnce() -> Result<Compiled, Error>,
    ) -> Result<Kernel, Error> {
        if let Some(kernel) = self.get(keyed) {
            return Ok(kernel);
        }
        Ok(self.held(keyed, self.kept(keyed.signature(), make)?))
    }

    /// The code of a signature without a kernel, ready or made by `make`; one thread at a time makes it.
    ///
    /// # Errors
    /// As [`get_or_make`](Cache::get_or_make).
    pub fn code(
        &self,
        signature: &Signature,
        make: impl FnOnce() -> Result<Compiled, Error>,
    ) -> Result<Arc<Compiled>, Error> {
        if let Some(kept) = self.ready.get(signature) {
            self.fronts.own().count_hit();
            return Ok(kept.compiled);
        }
        self.misses.fetch_add(1, Ordering::Relaxed);
        Ok(self.kept(signature, make)?.compiled)
    }

    /// The code of a signature, which one thread makes and others wait for.
    fn kept(&self, signature: &Signature, make: impl FnOnce() -> Result<Compiled, Error>) -> Result<Kept, Error> {
        let flight = {
            let mut flights = self.flights();
            // Another thread may have finished it since.
            match self.ready.peek(signature) {
                Some(kept) => Arc::new(OnceLock::from(Ok(kept))),
                None => flights.entry(signature.clone()).or_default().clone(),
            }
        };
        let result = flight.get_or_init(|| {
            let made = self.made(make);
            if let Ok(kept) = &made {
                self.ready.insert(signature.clone(), kept.clone());
            }
            self.flights().remove(signature);
            made
        });
        result.clone()
    }

    fn made(&self, make: impl FnOnce() -> Result<Compiled, Error>) -> Result<Kept, Error> {
        self.compiles.fetch_add(1, Ordering::Relaxed);
        let made = catch_unwind(AssertUnwindSafe(make))
            .unwrap_or_else(|panic| Err(Error::Internal { stage: "compile", message: panic_message(&*panic) }));
        if made.is_err() {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        made.map(|compiled| Kept { compiled: Arc::new(compiled), holders: Arc::default() })
    }

    fn flights(&self) -> MutexGuard<'_, HashMap<Signature, Flight>> {
        // No panic under the lock leaves its data half-changed.
        self.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops all codes.
    pub fn clear(&self) {
        // The last owners drop their code after the cache's locks.
        let held: Vec<Kept> = self.ready.iter().map(|(_, kept)| kept).collect();
        self.ready.clear();
        self.fronts.clear();
        drop(held);
    }

    /// The counts of the work done so far, and of the code held.
    pub fn statistics(&self) -> Statistics {
        let bytes = self.ready.iter().map(|(_, kept)| kept.compiled.memory_bytes());
        let (kernels, code_bytes) = bytes.fold((0, 0), |(kernels, sum), bytes| (kernels + 1, sum + bytes));
        Statistics {
            hits: self.fronts.hits(),
            misses: self.misses.load(Ordering::Relaxed),
            compiles: self.compiles.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            evictions: self.evictions.load(Ordering::Relaxed),
            kernels,
            code_bytes,
        }
    }
}

/// The number of hits in a front, one of which is reported to the cache.
const HITS_TOLD: u64 = 64;

/// Scatters counts over all numbers (2^64 by the golden ratio).
const SCATTER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The bytes of a small code.
const LEAST_CODE_BYTES: u64 = 512;

/// The least codes of a shard, and their bytes; each shard evicts by itself.
const SHARD_KERNELS: usize = 256;
const SHARD_BYTES: u64 = 4 << 20;

/// The most shards, each behind a lock of its own.
const SHARDS: usize = 32;
