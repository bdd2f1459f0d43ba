//! The `ndarray` crate, as its documentation shows it: `sum_axis` where the op is a sum in the type of
//! the elements, else a fold of each lane of the innermost axis, and `fold_axis` for the others.
//! Several axes are reduced one after the other, from the innermost.

use super::walk::Walk;
use ndarray::{ArrayD, ArrayView1, ArrayViewD, Axis, LinalgScalar};

fn view<'a, T>(x: &'a [T], walk: &Walk) -> ArrayViewD<'a, T> {
    let shape: Vec<usize> = walk.0.iter().map(|d| d.extent).collect();
    ArrayViewD::from_shape(shape, x).expect("dense data")
}

/// The reduced axes, from the innermost.
fn axes(walk: &Walk) -> impl Iterator<Item = Axis> {
    (0..walk.0.len()).rev().filter(|&axis| walk.0[axis].reduced).map(Axis)
}

/// The axis of a walk with one reduced dim.
fn only_axis(walk: &Walk) -> Axis {
    axes(walk).next().expect("an axis")
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

/// What each lane of the one reduced axis gives.
pub fn lanes<T, U>(x: &[T], walk: &Walk, of: impl Fn(ArrayView1<'_, T>) -> U) -> Vec<U> {
    vec(view(x, walk).map_axis(only_axis(walk), of))
}

/// The mean over one axis.
pub fn mean(x: &[f32], walk: &Walk) -> Vec<f32> {
    vec(view(x, walk).mean_axis(only_axis(walk)).expect("elements"))
}

/// The variance over one axis, by the crate's own function: one pass, after Welford.
pub fn var(x: &[f32], walk: &Walk, ddof: f32) -> Vec<f32> {
    vec(view(x, walk).var_axis(only_axis(walk), ddof))
}

/// The root of the variance over one axis.
pub fn std(x: &[f32], walk: &Walk, ddof: f32) -> Vec<f32> {
    vec(view(x, walk).std_axis(only_axis(walk), ddof))
}

/// Products of the rows of two arrays, the innermost axis being reduced.
pub fn dots(x: &[f32], y: &[f32], walk: &Walk) -> Vec<f32> {
    let (x, y) = (view(x, walk), view(y, walk));
    x.rows().into_iter().zip(y.rows()).map(|(x, y)| x.dot(&y)).collect()
}

/// log(sum exp x) over one axis: the greatest, the differences to it, the sum of their exponentials.
pub fn log_sum_exp(x: &[f32], walk: &Walk) -> Vec<f32> {
    let axis = only_axis(walk);
    let greatest = greatest(x, walk);
    let sums = (&view(x, walk) - &greatest).mapv_into(f32::exp).sum_axis(axis);
    greatest.iter().zip(&sums).map(|(m, s)| m + s.ln()).collect()
}

/// Softmax over one axis, likewise.
pub fn softmax(x: &[f32], walk: &Walk) -> Vec<f32> {
    let axis = only_axis(walk);
    let exponentials = (&view(x, walk) - &greatest(x, walk)).mapv_into(f32::exp);
    let sums = exponentials.sum_axis(axis).insert_axis(axis);
    vec(exponentials / &sums)
}

/// The elements over sqrt(max(sum of squares, eps)) of one axis.
pub fn l2_normalize(x: &[f32], walk: &Walk, eps: f32) -> Vec<f32> {
    let (x, axis) = (view(x, walk), only_axis(walk));
    let norms = x.map_axis(axis, |lane| lane.dot(&lane).max(eps).sqrt()).insert_axis(axis);
    vec(&x / &norms)
}

/// (x - mean) / sqrt(variance + eps), scaled and shifted, over the innermost axis.
pub fn layer_norm(x: &[f32], walk: &Walk, [scale, bias]: [&[f32]; 2], eps: f32) -> Vec<f32> {
    let (x, axis) = (view(x, walk), only_axis(walk));
    let means = x.mean_axis(axis).expect("elements").insert_axis(axis);
    let roots = x.var_axis(axis, 0.0).mapv_into(|var| (var + eps).sqrt()).insert_axis(axis);
    vec((&x - &means) / &roots * ArrayView1::from(scale) + ArrayView1::from(bias))
}

/// The greatest of each lane of the one reduced axis, which stays with extent 1.
fn greatest(x: &[f32], walk: &Walk) -> ArrayD<f32> {
    let axis = only_axis(walk);
    let greatest = fold(x, walk, f32::NEG_INFINITY, f32::max, f32::max, |m| m);
    let mut shape: Vec<usize> = walk.0.iter().map(|d| d.extent).collect();
    shape[axis.index()] = 1;
    ArrayD::from_shape_vec(shape, greatest).expect("one for each output")
}

/// The elements of an array in row-major order, as they lie in memory.
fn vec<A>(array: ArrayD<A>) -> Vec<A> {
    assert!(array.is_standard_layout(), "arithmetic keeps the layout of its first operand");
    array.into_raw_vec_and_offset().0
}

fn elements<A: Copy, U>(array: ArrayD<A>, finish: impl Fn(A) -> U) -> Vec<U> {
    array.iter().map(|&a| finish(a)).collect()
}
