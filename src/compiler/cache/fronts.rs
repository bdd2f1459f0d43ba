//! Kernels in front of the cache, so that a hit writes nothing that another thread reads.
//!
//! Each thread has a front, which it shares with few others: the kernels that it has asked for, each with a count of
//! references of its own. A front holds no kernel longer than the cache holds its code: what is evicted there is
//! removed here, by the list of where it is held, which is kept beside the code.

use super::Kept;
use crate::kernel::Kernel;
use crate::keyed::{Asked, KeyedSpec};
use crate::spec::Spec;
use quick_cache::unsync;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;

/// The kernels of each front.
const MOST_KERNELS: usize = 4096;

/// The fronts for each thread that can run at once.
const FRONTS: usize = 2;

/// Holders of one code at which those that hold it no longer are first looked for.
const MANY_HOLDERS: usize = 64;

/// Numbers threads, whatever compilers they ask, so that those that run at once have different fronts as far as there are.
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

/// Where a code is held.
#[derive(Debug, Default)]
pub(super) struct Holders(Mutex<Vec<(usize, KeyedSpec)>>);

impl Holders {
    /// The keyed spec that is equal to this one, if its kernel is held.
    pub fn known(&self, keyed: &KeyedSpec) -> Option<KeyedSpec> {
        self.list().iter().find(|(_, held)| held == keyed).map(|(_, held)| held.clone())
    }

    fn list(&self) -> MutexGuard<'_, Vec<(usize, KeyedSpec)>> {
        // Nothing under the lock panics half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fronts {
    pub fn new(most_kernels: usize) -> Fronts {
        let count = FRONTS * available_parallelism().map_or(1, usize::from);
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

    /// The kernel of a keyed spec, held in the front of this thread. Equal keyed specs become one, so that to compare
    /// them is to compare addresses.
    pub fn hold(&self, keyed: &KeyedSpec, kept: &Kept) -> Kernel {
        let number = self.own_number();
        // Held until the front has the kernel too, so that whoever takes the list finds what is on it.
        let mut list = kept.holders.list();
        let keyed = list.iter().find(|(_, held)| held == keyed).map_or(keyed, |(_, held)| held).clone();
        if !list.iter().any(|(front, held)| *front == number && *held == keyed) {
            list.push((number, keyed.clone()));
        }
        let kernel = Kernel::new(keyed.clone(), kept.compiled.clone());
        self.0[number].kernels().insert(keyed, kernel.clone());
        if list.len() >= MANY_HOLDERS && list.len().is_power_of_two() {
            // Fronts let go of kernels by themselves.
            list.retain(|(front, held)| self.0[*front].kernels().peek(held).is_some());
        }
        kernel
    }

    /// Lets go of the kernels of a code.
    pub fn remove(&self, holders: &Holders) {
        let held = std::mem::take(&mut *holders.list());
        held.iter().for_each(|(number, keyed)| drop(self.0[*number].kernels().remove(keyed)));
    }

    /// Lets go of all.
    pub fn clear(&self) {
        self.0.iter().for_each(|front| front.kernels().clear());
    }

    /// Lookups that found code ready.
    pub fn hits(&self) -> u64 {
        self.0.iter().map(|front| front.hits.load(Ordering::Relaxed)).sum()
    }
}

impl Front {
    fn kernels(&self) -> MutexGuard<'_, unsync::Cache<KeyedSpec, Kernel>> {
        // Nothing under the lock panics half-way.
        self.kernels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The kernel of a keyed spec, if it is here.
    pub fn get(&self, keyed: &KeyedSpec) -> Option<Kernel> {
        self.kernels().get(keyed).cloned()
    }

    /// The kernel of a spec that nothing was forced for, if it is here.
    pub fn get_asked(&self, spec: &Spec) -> Option<Kernel> {
        self.kernels().get(&Asked(spec)).cloned()
    }

    /// Counts a hit, and gives how many there were before.
    pub fn count_hit(&self) -> u64 {
        self.hits.fetch_add(1, Ordering::Relaxed)
    }
}
