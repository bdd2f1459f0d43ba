//! The `ndarray` crate, as its documentation shows it: `sum_axis` where the op is a sum in the type of
//! the elements, else a fold of each lane of the innermost axis, and `fold_axis` for the others.
//! Several axes are reduced one after the other, from the innermost.

use super::walk::Walk;
use ndarray::{ArrayD, ArrayViewD, Axis, LinalgScalar};

fn view<'a, T>(x: &'a [T], walk: &Walk) -> ArrayViewD<'a, T> {
    let shape: Vec<usize> = walk.0.iter().map(|d| d.extent).collect();
    ArrayViewD::from_shape(shape, x).expect("dense data")
}

/// The reduced axes, from the innermost.
fn axes(walk: &Walk) -> impl Iterator<Item = Axis> {
    (0..walk.0.len()).rev().filter(|&axis| walk.0[axis].reduced).map(Axis)
}

/// The sum.
pub fn sum<T: LinalgScalar, U>(x: &[T], walk: &Walk, finish: impl Fn(T) -> U) -> Vec<U> {
    let x = view(x, walk);
    if x.ndim() == walk.0.iter().filter(|d| d.reduced).count() {
        return vec![finish(x.sum())];
    }
    let mut axes = axes(walk);
    let sums = axes.next().map(|axis| axes.fold(x.sum_axis(axis), |sums, axis| sums.sum_axis(axis)));
    elements(sums.unwrap_or_else(|| x.to_owned()), finish)
}

/// Any fold, `join` being that of partial results.
pub fn fold<T: Copy, A: Copy, U>(
    x: &[T],
    walk: &Walk,
    zero: A,
    step: impl Fn(A, T) -> A,
    join: impl Fn(A, A) -> A,
    finish: impl Fn(A) -> U,
) -> Vec<U> {
    let x = view(x, walk);
    let mut axes = axes(walk);
    let first = match axes.next() {
        None => x.mapv(|x| step(zero, x)),
        Some(axis) if axis.index() + 1 == x.ndim() => x.map_axis(axis, |lane| lane.fold(zero, |a, &x| step(a, x))),
        Some(axis) => x.fold_axis(axis, zero, |&a, &x| step(a, x)),
    };
    elements(axes.fold(first, |folds, axis| folds.fold_axis(axis, zero, |&a, &b| join(a, b))), finish)
}

/// log(sum exp x) over one axis: the greatest, the differences to it, the sum of their exponentials.
pub fn log_sum_exp(x: &[f32], walk: &Walk) -> Vec<f32> {
    let axis = axes(walk).next().expect("an axis");
    let greatest: Vec<f32> = fold(x, walk, f32::NEG_INFINITY, f32::max, f32::max, |m| m);
    let mut shape: Vec<usize> = walk.0.iter().map(|d| d.extent).collect();
    shape[axis.index()] = 1;
    let greatest = ArrayD::from_shape_vec(shape, greatest).expect("one for each output");
    let sums = (&view(x, walk) - &greatest).mapv_into(f32::exp).sum_axis(axis);
    greatest.iter().zip(&sums).map(|(m, s)| m + s.ln()).collect()
}

fn elements<A: Copy, U>(array: ArrayD<A>, finish: impl Fn(A) -> U) -> Vec<U> {
    array.iter().map(|&a| finish(a)).collect()
}
