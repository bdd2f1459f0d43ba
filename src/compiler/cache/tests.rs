//! Faults in making code: every waiting thread gets the error, and nothing is kept.

use super::Cache;
use crate::error::Error;
use crate::keyed::KeyedSpec;
use crate::pipeline;
use crate::{Compiler, Spec};
use cranefold_ir::Nest;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

fn keyed() -> KeyedSpec {
    let spec: Spec = "sum f32[64,65] axes=[1]".parse().expect("a spec");
    Compiler::host().expect("this machine").keyed(&spec)
}

/// The errors that threads get which ask at once for code that cannot be made, and the number of tries.
fn all_get(fault: fn() -> Error) -> (Vec<Error>, usize) {
    let (cache, keyed, tries, barrier) = (Cache::new(10, 1 << 20), keyed(), AtomicUsize::new(0), Barrier::new(4));
    let ask = || {
        barrier.wait();
        let made = cache.get_or_make(&keyed, || {
            tries.fetch_add(1, Ordering::Relaxed);
            // The sleep lets the other threads begin to wait.
            std::thread::sleep(std::time::Duration::from_millis(100));
            Err(fault())
        });
        made.map(drop).expect_err("a failure")
    };
    let errors = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|t| t.join().expect("no panic reaches it")).collect()
    });
    let told = cache.statistics();
    assert_eq!((told.kernels, told.code_bytes, told.hits), (0, 0, 0));
    assert_eq!(told.failures as usize, tries.load(Ordering::Relaxed));
    assert!(cache.flights().is_empty(), "no flight is left");
    assert!(cache.get(&keyed).is_none());
    (errors, tries.into_inner())
}

#[test]
fn a_verifier_that_fails_is_an_error_for_all_who_wait() {
    let fault = || {
        let nest: Nest = "nest \"\" { in x0: f32[4] out x1: f32[1] x1[0] = x0[4] }".parse().expect("a nest");
        pipeline::checked("legalize", nest).expect_err("an index beyond the buffer")
    };
    let (errors, tries) = all_get(fault);
    assert!(
        matches!(&errors[0], Error::Internal { stage: "legalize", message } if message.contains("x0[4]")),
        "{errors:?}"
    );
    assert!(errors.iter().all(|e| *e == errors[0]));
    assert_eq!(tries, 1, "made once for all");
}

#[test]
fn a_panic_is_an_error_for_all_who_wait() {
    let (errors, tries) = all_get(|| panic!("as it was told to"));
    let expected = Error::Internal { stage: "compile", message: "as it was told to".into() };
    assert!(errors.iter().all(|e| *e == expected), "{errors:?}");
    assert_eq!(tries, 1, "made once for all");
}

#[test]
fn lack_of_memory_is_an_error_and_the_next_caller_tries_again() {
    let compiler = Compiler::host().expect("this machine");
    let spec: Spec = "sum f32[64,65] axes=[1]".parse().expect("a spec");
    let keyed = compiler.keyed(&spec);
    let refused = compiler.0.kept().cache.get_or_make(&keyed, || Err(Error::Memory("none".into())));
    assert_eq!(refused.map(drop), Err(Error::Memory("none".into())));
    compiler.compile(&spec).expect("a kernel");
    let told = compiler.statistics();
    assert_eq!((told.compiles, told.failures, told.misses, told.kernels), (2, 1, 2, 1));
}
