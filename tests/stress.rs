//! What the `stress` bench does for minutes, in short.
#![cfg(target_os = "linux")]

#[path = "../benches/stress/work.rs"]
mod work;

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Duration;

/// Memory is the process's: one at a time.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn memory_does_not_grow_with_what_is_dropped() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    // The first ones leave the allocator what it keeps.
    work::cycles(2000).expect("kernels");
    let memory = work::cycles(2000).expect("kernels");
    assert!(memory.grown_bytes < 10_000_000, "{memory:?}");
}

#[test]
fn many_kernels_live_at_once() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let memory = work::alive(3000).expect("kernels");
    // A slab of 64 pages is one mapping at most, and neighbours are one.
    assert!(memory.mappings < 1000, "{memory:?}");
}

#[test]
fn threads_get_right_answers_from_a_cache_that_is_too_small() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let hammered = work::hammer(8, Duration::from_secs(3)).expect("a compiler");
    assert!(hammered.answers > 1000 && hammered.told.evictions > 100 && hammered.told.hits > 100, "{hammered:?}");
}

#[test]
fn the_specs_are_problems_of_their_own() {
    let problems: HashSet<_> = (0..20_000).map(|n| cranefold::Problem::of(&work::spec(n))).collect();
    assert_eq!(problems.len(), 20_000);
}
