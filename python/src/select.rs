//! Medians, quantiles and positions of the elements that are not NaN.
//!
//! A kernel selects at places of the sorted slice that its shape decides. Here the number of elements that take part decides
//! them, and it differs from slice to slice. The value has the bits of the kernel of `median` or `quantile` over the elements
//! that are left. They are in a total order, -0 before +0, so that neither layout nor place shows.

use crate::view::Dims;
use cranefold::{DType, Scalar};

/// A selection that leaves NaN out.
#[derive(Clone, Copy, Debug)]
pub enum Selection {
    /// The mean of the two middle elements.
    Median,
    /// The sorted elements at q (n - 1), linear between the two nearest.
    Quantile(f64),
}

/// An array in bytes, with the place of its first element among them; strides are in elements.
pub struct Place<B> {
    pub bytes: B,
    pub first: usize,
    pub shape: Dims,
    pub strides: Dims,
}

impl<B> Place<B> {
    /// The places of the elements along some axes in row-major order, in bytes from the first one.
    fn offsets(&self, size: i64, axes: &[usize]) -> Vec<i64> {
        let mut offsets = vec![0];
        for &axis in axes {
            let steps = (0..self.shape[axis]).map(|index| index * self.strides[axis] * size);
            offsets = offsets.iter().flat_map(|start| steps.clone().map(move |step| start + step)).collect();
        }
        offsets
    }
}

/// Writes the selection of each slice of `x`, whose elements are floats of a type and whose reduced axes have a bit each;
/// `out` has the kept axes.
pub fn write(selection: Selection, dtype: DType, x: &Place<&[u8]>, axes: u64, out: &mut Place<&mut [u8]>) {
    let size = dtype.bytes() as usize;
    let (reduced, kept): (Vec<usize>, Vec<usize>) = (0..x.shape.len()).partition(|&axis| axes >> axis & 1 != 0);
    let slices = x.offsets(size as i64, &kept);
    let places = out.offsets(size as i64, &(0..out.shape.len()).collect::<Vec<_>>());
    let (last, outer) = reduced.split_last().map_or((None, &[][..]), |(&last, outer)| (Some(last), outer));
    let (extent, stride) = last.map_or((1, 0), |axis| (x.shape[axis], x.strides[axis] * size as i64));
    let rows = x.offsets(size as i64, outer);
    let mut elements = vec![];
    for (slice, place) in slices.into_iter().zip(places) {
        elements.clear();
        for row in &rows {
            let element = |index: i64| {
                let at = (x.first as i64 + slice + row + index * stride) as usize;
                Scalar::read(dtype, &x.bytes[at..], 0).as_f64()
            };
            elements.extend((0..extent).map(element).filter(|element| !element.is_nan()));
        }
        let value = match selection {
            _ if elements.is_empty() => f64::NAN,
            Selection::Median => median(dtype, &mut elements),
            Selection::Quantile(q) => quantile(dtype, &mut elements, q),
        };
        let value = if value.is_nan() { Scalar::nan(dtype) } else { Scalar::float(dtype, value) };
        value.write(&mut out.bytes[(out.first as i64 + place) as usize..], 0);
    }
}

/// Returns true if one of the positions that `found` has for the slices of `x` is that of a NaN. A position counts the
/// elements of the reduced axes, which have a bit each, in row-major order.
pub fn names_nan(dtype: DType, x: &Place<&[u8]>, axes: u64, found: &Place<&[u8]>) -> bool {
    let size = dtype.bytes() as i64;
    let (reduced, kept): (Vec<usize>, Vec<usize>) = (0..x.shape.len()).partition(|&axis| axes >> axis & 1 != 0);
    let places = found.offsets(8, &(0..found.shape.len()).collect::<Vec<_>>());
    x.offsets(size, &kept).into_iter().zip(places).any(|(slice, place)| {
        let position = &found.bytes[(found.first as i64 + place) as usize..];
        let mut left = position.first_chunk().map_or(0, |bytes| i64::from_ne_bytes(*bytes));
        let mut at = x.first as i64 + slice;
        for &axis in reduced.iter().rev() {
            at += left % x.shape[axis] * x.strides[axis] * size;
            left /= x.shape[axis];
        }
        Scalar::read(dtype, &x.bytes[at as usize..], 0).as_f64().is_nan()
    })
}

/// A value in the accumulator's type, f64 of f64 and f32 of all others. Sums and products of two floats of f32 are first
/// rounded to f64, which changes no bit of them.
fn rounded(dtype: DType, value: f64) -> f64 {
    if dtype == DType::F64 { value } else { f64::from(value as f32) }
}

/// The element at a place of the sorted ones, and the next one, or itself at the end.
fn two_at(elements: &mut [f64], low: usize) -> (f64, f64) {
    let (_, &mut at, above) = elements.select_nth_unstable_by(low, f64::total_cmp);
    (at, above.iter().copied().min_by(f64::total_cmp).unwrap_or(at))
}

fn median(dtype: DType, elements: &mut [f64]) -> f64 {
    let count = elements.len();
    let (low, next) = two_at(elements, (count - 1) / 2);
    let high = if count.is_multiple_of(2) { next } else { low };
    let sum = rounded(dtype, low + high);
    match low == high {
        true => low,
        false if sum.is_infinite() => rounded(dtype, rounded(dtype, low * 0.5) + rounded(dtype, high * 0.5)),
        false => rounded(dtype, sum * 0.5),
    }
}

fn quantile(dtype: DType, elements: &mut [f64], q: f64) -> f64 {
    let last = elements.len() - 1;
    let at = q * last as f64;
    let place = (at as usize).min(last);
    let part = at - place as f64;
    let (low, high) = two_at(elements, place);
    if part == 0.0 {
        return low;
    }
    if low.is_infinite() || high.is_infinite() {
        return low + high;
    }
    let (share, rest) = (rounded(dtype, part), rounded(dtype, 1.0 - part));
    if share == 0.0 || low == high {
        return low;
    }
    let distance = rounded(dtype, high - low);
    match distance.is_finite() {
        true => rounded(dtype, low + rounded(dtype, distance * share)),
        false => rounded(dtype, rounded(dtype, low * rest) + rounded(dtype, high * share)),
    }
}
