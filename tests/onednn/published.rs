//! All of onednn_cases.json: case, algorithm, types, p and eps, post-ops.

use crate::problem::{cases, combinations, ints};
use crate::run::Tally;

pub const CASES: &str = include_str!("../conformance/onednn_cases.json");

/// Every second case from `first` on: halves run at once.
fn check_half(first: usize) -> usize {
    let mut tally = Tally::default();
    for (c, case) in cases(CASES).iter().enumerate().skip(first).step_by(2) {
        for (n, problem) in combinations(case).iter().enumerate() {
            match problem.translate() {
                Ok(spec) => {
                    assert_eq!(spec.axes(), ints(&case["axes"]).iter().map(|&a| a as usize).collect::<Vec<_>>());
                    assert_eq!(spec.to_string().parse(), Ok(spec.clone()));
                    tally.check(&spec, (c + n) as u64);
                }
                Err(error) => tally.fail(format!("{problem:?}: {error}")),
            }
        }
    }
    tally.conclude()
}

#[test]
fn even_cases() {
    assert_eq!(check_half(0), 4465);
}

#[test]
fn odd_cases() {
    assert_eq!(check_half(1), 4560);
}
