//! Kernels in front of the cache, so that a hit writes nothing that another thread reads.
//!
//! Each thread has a front, which it shares with few others. A front holds the kernels that its threads have asked for,
//! each with a reference count of its own. A front holds no kernel longer than the cache holds its code: beside the
//! code stands the list of its holders, by which an evicted code is removed from the fronts.

use super::Kept;
use crate::executor::Cores;
use crate::kernel::Kernel;
use crate::keyed::{Asked, KeyedSpec};
use crate::spec::Spec;
use quick_cache::unsync;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;

/// The most kernels of each front.
const MOST_KERNELS: usize = 4096;

/// The number of fronts per hardware thread.
const FRONTS: usize = 2;

/// The number of a code's holders at which stale ones are first removed.
const MANY_HOLDERS: usize = 64;

/// The next thread's number, over all compilers; threads that run at once get different fronts while there are enough.
static NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static NUMBER: usize = NEXT.fetch_add(1, Ordering::Relaxed);
}

/// The fronts.
#[derive(Debug)]
pub(super) struct Fronts(Box<[Front]>);

/// A front, in lines of memory of its own.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Front {
    kernels: Mutex<unsync::Cache<KeyedSpec, Kernel>>,
    hits: AtomicU64,
}

/// The number of a front, and the keyed spec whose kernel it holds.
type Holder = (usize, KeyedSpec);

/// The fronts that hold a kernel of a code: most often one.
#[derive(Debug, Default)]
pub(super) struct Holders(Mutex<SmallVec<[Holder; 1]>>);

impl Holders {
    /// The equal keyed spec whose kernel is held, if there is one.
    pub fn known(&self, keyed: &KeyedSpec) -> Option<KeyedSpec> {
        self.list().iter().find(|(_, held)| held == keyed).map(|(_, held)| held.clone())
    }

    fn list(&self) -> MutexGuard<'_, SmallVec<[Holder; 1]>> {
        // No panic under the lock leaves its data half-changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fronts {
    pub fn new(most_kernels: usize) -> Fronts {
        // Where Linux tells the cores, that takes a microsecond; the standard library also reads files, in some 60.
        let processors = Cores::allowed().map(|cores| cores.count());
        let processors = processors.unwrap_or_else(|| available_parallelism().map_or(1, usize::from));
        let count = FRONTS * processors.max(1);
        let kernels = || Mutex::new(unsync::Cache::new(most_kernels.min(MOST_KERNELS)));
        Fronts((0..count).map(|_| Front { kernels: kernels(), hits: 0.into() }).collect())
    }

    /// The front of this thread.
    pub fn own(&self) -> &Front {
        &self.0[self.own_number()]
    }

    fn own_number(&self) -> usize {
        NUMBER.with(|number| number % self.0.len())
    }

    /// The kernel of a keyed spec, which the front of this thread holds from now on. Equal keyed specs become one, so
    /// that comparing them is comparing addresses.
    pub fn hold(&self, keyed: &KeyedSpec, kept: &Kept) -> Kernel {
        let number = self.own_number();
        // The list stays locked until the front has the kernel too, so that every entry on it is true.
        let mut list = kept.holders.list();
        let keyed = list.iter().find(|(_, held)| held == keyed).map_or(keyed, |(_, held)| held).clone();
        if !list.iter().any(|(front, held)| *front == number && *held == keyed) {
            list.push((number, keyed.clone()));
        }
        let kernel = Kernel::new(keyed.clone(), kept.compiled.clone());
        self.0[number].kernels().insert(keyed, kernel.clone());
        if list.len() >= MANY_HOLDERS && list.len().is_power_of_two() {
            // Fronts also drop kernels by themselves.
            list.retain(|(front, held)| self.0[*front].kernels().peek(held).is_some());
        }
        kernel
    }

    /// Drops the kernels of a code from the fronts.
    pub fn remove(&self, holders: &Holders) {
        let held = std::mem::take(&mut *holders.list());
        held.iter().for_each(|(number, keyed)| drop(self.0[*number].kernels().remove(keyed)));
    }

    /// Drops all kernels.
    pub fn clear(&self) {
        self.0.iter().for_each(|front| front.kernels().clear());
    }

    /// The number of lookups that found code ready.
    pub fn hits(&self) -> u64 {
        self.0.iter().map(|front| front.hits.load(Ordering::Relaxed)).sum()
    }
}

impl Front {
    fn kernels(&self) -> MutexGuard<'_, unsync::Cache<KeyedSpec, Kernel>> {
        // No panic under the lock leaves its data half-changed.
        self.kernels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The kernel of a keyed spec, if the front holds it.
    pub fn get(&self, keyed: &KeyedSpec) -> Option<Kernel> {
        self.kernels().get(keyed).cloned()
    }

    /// The kernel of a spec without forced choices, if the front holds it.
    pub fn get_asked(&self, spec: &Spec) -> Option<Kernel> {
        self.kernels().get(&Asked(spec)).cloned()
    }

    /// Counts a hit, and returns the number of hits before it.
    pub fn count_hit(&self) -> u64 {
        self.hits.fetch_add(1, Ordering::Relaxed)
    }
}
