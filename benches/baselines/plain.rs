//! A plain Rust loop for each access pattern, as one writes it without thinking of registers: memory is
//! walked in order, a row that is reduced folds into one accumulator, a row that is kept is added to a
//! row of accumulators.

use super::walk::{Dim, Walk};

/// Reduces `x`, whose elements lie in the order of the walk. `step` takes the number of the output too.
pub fn reduce<T: Copy, A: Copy, U>(
    x: &[T],
    walk: &Walk,
    zero: A,
    step: impl Fn(A, T, usize) -> A,
    finish: impl Fn(A) -> U,
) -> Vec<U> {
    let mut accumulators = vec![zero; walk.outputs()];
    fold(x, &walk.0, &mut accumulators, 0, &step);
    accumulators.into_iter().map(finish).collect()
}

/// Folds elements into the accumulators of the outputs from number `first` on.
fn fold<T: Copy, A: Copy>(
    x: &[T],
    dims: &[Dim],
    accumulators: &mut [A],
    first: usize,
    step: &impl Fn(A, T, usize) -> A,
) {
    match dims {
        [] => accumulators[0] = step(accumulators[0], x[0], first),
        [Dim { reduced: true, .. }] => {
            accumulators[0] = x.iter().fold(accumulators[0], |a, &x| step(a, x, first));
        }
        [Dim { reduced: false, .. }] => row(x, accumulators, first, step),
        [Dim { reduced: false, .. }, inner @ Dim { reduced: true, .. }] => {
            for (n, (a, run)) in accumulators.iter_mut().zip(x.chunks_exact(inner.extent)).enumerate() {
                *a = run.iter().fold(*a, |a, &x| step(a, x, first + n));
            }
        }
        [Dim { reduced: true, .. }, inner @ Dim { reduced: false, .. }] => {
            x.chunks_exact(inner.extent).for_each(|run| row(run, accumulators, first, step));
        }
        [outer, inner @ ..] => {
            let chunks = x.chunks_exact(x.len() / outer.extent);
            if outer.reduced {
                chunks.for_each(|chunk| fold(chunk, inner, accumulators, first, step));
            } else {
                let outputs = accumulators.len() / outer.extent;
                for (n, (chunk, tile)) in chunks.zip(accumulators.chunks_exact_mut(outputs)).enumerate() {
                    fold(chunk, inner, tile, first + n * outputs, step);
                }
            }
        }
    }
}

/// Adds a row to a row of accumulators.
fn row<T: Copy, A: Copy>(x: &[T], accumulators: &mut [A], first: usize, step: &impl Fn(A, T, usize) -> A) {
    for (n, (a, &x)) in accumulators.iter_mut().zip(x).enumerate() {
        *a = step(*a, x, first + n);
    }
}

/// log(sum exp x): the greatest of each output first, then the sum of the exponentials.
pub fn log_sum_exp(x: &[f32], walk: &Walk) -> Vec<f32> {
    let greatest = reduce(x, walk, f32::NEG_INFINITY, |m, x, _| m.max(x), |m| m);
    let sums = reduce(x, walk, 0.0, |s, x, output| s + (x - greatest[output]).exp(), |s| s);
    greatest.iter().zip(sums).map(|(m, s)| m + s.ln()).collect()
}
