//! Outputs at each position of a slice.

use super::typed::{filled, given, given_all};
use super::walk::Along;
use super::{Walk, Ways, Work, nd};
use cranefold::DType;

/// The ways of `softmax`, `l2_normalize_max` and `layer_norm`; of the last two where slices are runs of memory.
pub fn ways<'a>(work: &Work, walk: &'a Walk) -> Option<Ways<'a>> {
    let along = walk.along().filter(|_| work.dtype == DType::F32)?;
    let is_run = along.inside == 1;
    let eps = work.params.first().map_or(0.0, |&eps| eps as f32);
    match (work.op.as_str(), &work.lens[..]) {
        ("softmax", [_]) if is_run => {
            Some([filled(move |[x], out| each(x, out, along, softmax_of_run)), given(move |x| nd::softmax(x, walk))])
        }
        ("softmax", [_]) => Some([
            filled(move |[x], out| each(x, out, along, |x, out| softmax_of_rows(x, out, along.inside))),
            given(move |x| nd::softmax(x, walk)),
        ]),
        ("l2_normalize_max", [_]) if is_run => Some([
            filled(move |[x], out| each(x, out, along, |x, out| l2_normalize(x, out, eps))),
            given(move |x| nd::l2_normalize(x, walk, eps)),
        ]),
        ("layer_norm", &[_, scale, bias]) if is_run && [scale, bias] == [along.count; 2] => Some([
            filled(move |[x, scale, bias], out| {
                each(x, out, along, |x, out| layer_norm(x, out, [scale, bias], eps));
            }),
            given_all(move |[x, scale, bias]| nd::layer_norm(x, walk, [scale, bias], eps)),
        ]),
        _ => None,
    }
}

/// Fills the output by slices that lie together in memory.
fn each(x: &[f32], out: &mut [f32], along: Along, fill: impl Fn(&[f32], &mut [f32])) {
    let together = along.count * along.inside;
    x.chunks_exact(together).zip(out.chunks_exact_mut(together)).for_each(|(x, out)| fill(x, out));
}

/// Three loops over a run of memory: the greatest; the exponentials and their sum; the division.
fn softmax_of_run(x: &[f32], out: &mut [f32]) {
    let mut greatest = f32::NEG_INFINITY;
    for &x in x {
        greatest = greatest.max(x);
    }
    let mut sum = 0.0;
    for (out, x) in out.iter_mut().zip(x) {
        *out = (x - greatest).exp();
        sum += *out;
    }
    for out in out {
        *out /= sum;
    }
}

/// The same three loops over slices side by side, each row of memory having one element of each.
fn softmax_of_rows(x: &[f32], out: &mut [f32], slices: usize) {
    let mut greatest = vec![f32::NEG_INFINITY; slices];
    for row in x.chunks_exact(slices) {
        for (greatest, x) in greatest.iter_mut().zip(row) {
            *greatest = greatest.max(*x);
        }
    }
    let mut sums = vec![0.0; slices];
    for (out, row) in out.chunks_exact_mut(slices).zip(x.chunks_exact(slices)) {
        for (((out, x), greatest), sum) in out.iter_mut().zip(row).zip(&greatest).zip(&mut sums) {
            *out = (x - greatest).exp();
            *sum += *out;
        }
    }
    for out in out.chunks_exact_mut(slices) {
        for (out, sum) in out.iter_mut().zip(&sums) {
            *out /= sum;
        }
    }
}

/// Two loops: the sum of squares; the division.
fn l2_normalize(x: &[f32], out: &mut [f32], eps: f32) {
    let mut squares = 0.0;
    for &x in x {
        squares += x * x;
    }
    let norm = f32::max(squares, eps).sqrt();
    for (out, x) in out.iter_mut().zip(x) {
        *out = x / norm;
    }
}

/// Three loops: the mean; the squares of the deviations; what is stored.
fn layer_norm(x: &[f32], out: &mut [f32], [scale, bias]: [&[f32]; 2], eps: f32) {
    let n = x.len() as f32;
    let mut sum = 0.0;
    for &x in x {
        sum += x;
    }
    let mean = sum / n;
    let mut squares = 0.0;
    for &x in x {
        squares += (x - mean) * (x - mean);
    }
    let root = (squares / n + eps).sqrt();
    for (((out, x), scale), bias) in out.iter_mut().zip(x).zip(scale).zip(bias) {
        *out = (x - mean) / root * scale + bias;
    }
}
