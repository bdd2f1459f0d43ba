//! The combination of states as MPI calls it: without a closure and without a way to fail.
//!
//! The states say which problem they are of, and a registry of the partial results that the program holds has the code. A
//! combination that fails poisons the result, which every further combination and the finish refuse.

use cranefold::Partial;
use cranefold::partial::{fingerprint_of, poison};
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes that show whose state it is: those of a header.
const HEADER_BYTES: usize = 64;

/// The partial results that are held, by the fingerprint of their problem, and how many hold them.
static HELD: Mutex<Option<HashMap<u128, (Partial, usize)>>> = Mutex::new(None);

fn held() -> MutexGuard<'static, Option<HashMap<u128, (Partial, usize)>>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A place in the registry, which is given up when this is dropped.
#[derive(Debug)]
pub struct Registered(u128);

/// Enters partial results into the registry.
pub fn register(partial: &Partial) -> Registered {
    let fingerprint = partial.layout().fingerprint;
    let mut held = held();
    let entry = held.get_or_insert_default().entry(fingerprint).or_insert_with(|| (partial.clone(), 0));
    entry.1 += 1;
    Registered(fingerprint)
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut held = held();
        let Some(all) = held.as_mut() else { return };
        let last = all.get_mut(&self.0).is_some_and(|(_, holders)| {
            *holders -= 1;
            *holders == 0
        });
        // It is dropped after the lock.
        let _dropped = last.then(|| all.remove(&self.0));
        if all.is_empty() {
            *held = None;
        }
        drop(held);
    }
}

/// The partial results of a state.
fn partial_of(header: &[u8]) -> Option<Partial> {
    let fingerprint = fingerprint_of(header)?;
    held().as_ref()?.get(&fingerprint).map(|(partial, _)| partial.clone())
}

/// Combines `*len` states, as a function of type `MPI_User_function`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_mpi_combine(
    from: *mut c_void,
    into: *mut c_void,
    len: *mut c_int,
    _datatype: *mut c_void,
) {
    let (from, into) = (from.cast::<u8>().cast_const(), into.cast::<u8>());
    // SAFETY: the caller keeps the header's contract.
    let count = unsafe { len.as_ref() }.map_or(0, |&count| usize::try_from(count).unwrap_or(0));
    if into.is_null() || count == 0 {
        return;
    }
    let done = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: MPI gives `count` states, each of at least a header, at both places; they do not overlap. The slices end
        // before others of the same memory begin.
        let header = |state: *const u8| unsafe { std::slice::from_raw_parts(state, HEADER_BYTES) };
        let known = partial_of(header(into)).or_else(|| (!from.is_null()).then(|| partial_of(header(from))).flatten());
        // Without a state that is known, no more of the memory is known than one header.
        let bytes = known.as_ref().map_or(HEADER_BYTES, Partial::state_bytes);
        let count = if known.is_some() { count } else { 1 };
        for state in 0..count {
            // SAFETY: as above.
            let into = unsafe { std::slice::from_raw_parts_mut(into.add(state * bytes), bytes) };
            let combined = known.as_ref().filter(|_| !from.is_null()).is_some_and(|partial| {
                // SAFETY: as above.
                let from = unsafe { std::slice::from_raw_parts(from.add(state * bytes), bytes) };
                partial.combine(from, into, 1).is_ok()
            });
            if !combined {
                poison(into);
            }
        }
    }));
    if done.is_err() {
        // SAFETY: as above.
        poison(unsafe { std::slice::from_raw_parts_mut(into, HEADER_BYTES) });
    }
}
