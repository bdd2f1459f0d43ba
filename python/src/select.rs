//! Medians, quantiles and positions of the elements that are not NaN, and quantiles by methods that no kernel has.
//!
//! A kernel selects at places of the sorted slice that its shape decides. Here the number of elements that take part decides
//! them, and it differs from slice to slice. The value has the bits of the kernel of `median` or `quantile` over the elements
//! that are left. They are in a total order, -0 before +0, so that neither layout nor place shows.

use crate::view::Dims;
use cranefold::{DType, Scalar};

/// A selection of the sorted elements.
#[derive(Clone, Copy, Debug)]
pub enum Selection {
    /// The mean of the two middle elements.
    Median,
    /// The quantile of a q by a method.
    Quantile(f64, Method),
}

/// The place of a quantile among n sorted elements.
#[derive(Clone, Copy, Debug)]
pub enum Method {
    /// q (n - 1), linear between neighbours.
    Linear,
    /// q (n - 1), brought to one element, or to the middle of two, by its neighbours.
    Rounded(fn(f64) -> f64),
    /// n q + a + q (1 - a - b) - 1, linear between neighbours.
    Continuous(f64, f64),
    /// The element before n q - 1, less the number, where the function says so of the fraction and that element, else the next.
    Step(f64, fn(f64, f64) -> bool),
    /// n q - 1: the next element, or the middle of two where the fraction is 0.
    AveragedStep,
}

/// The methods by NumPy's names; each call has the number of one. The first is that of kernels.
pub const METHODS: &[(&str, Method)] = &[
    ("linear", Method::Linear),
    ("lower", Method::Rounded(f64::floor)),
    ("higher", Method::Rounded(f64::ceil)),
    ("midpoint", Method::Rounded(|place| 0.5 * (place.floor() + place.ceil()))),
    ("nearest", Method::Rounded(f64::round_ties_even)),
    ("inverted_cdf", Method::Step(0.0, |part, _| part == 0.0)),
    ("averaged_inverted_cdf", Method::AveragedStep),
    ("closest_observation", Method::Step(0.5, |part, before| part == 0.0 && before.rem_euclid(2.0) == 1.0)),
    ("interpolated_inverted_cdf", Method::Continuous(0.0, 1.0)),
    ("hazen", Method::Continuous(0.5, 0.5)),
    ("weibull", Method::Continuous(0.0, 0.0)),
    ("median_unbiased", Method::Continuous(1.0 / 3.0, 1.0 / 3.0)),
    ("normal_unbiased", Method::Continuous(3.0 / 8.0, 3.0 / 8.0)),
];

impl Method {
    /// The place among the sorted elements, from 0 to n - 1: between two elements where it is no integer.
    fn place(self, q: f64, count: usize) -> f64 {
        let (n, last) = (count as f64, (count - 1) as f64);
        let place = match self {
            Method::Linear => q * last,
            Method::Rounded(round) => round(q * last),
            Method::Continuous(a, b) => n * q + (a + q * (1.0 - a - b)) - 1.0,
            Method::Step(less, stays) => {
                let at = n * q - 1.0 - less;
                let before = at.floor();
                if stays(at - before, before) { before } else { before + 1.0 }
            }
            Method::AveragedStep => {
                let at = n * q - 1.0;
                if at == at.floor() { at + 0.5 } else { at.ceil() }
            }
        };
        place.clamp(0.0, last)
    }
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

/// Writes the selection of each slice of `x`, whose reduced axes have a bit each; `out` has the kept axes, and elements of
/// the type of `x`, or of f64 if those of `x` are no floats. NaN takes no part if `skips_nan`, else a slice with one gives it.
pub fn write(
    selection: Selection,
    skips_nan: bool,
    dtype: DType,
    x: &Place<&[u8]>,
    axes: u64,
    out: &mut Place<&mut [u8]>,
) {
    let result = if dtype.is_float() { dtype } else { DType::F64 };
    let size = dtype.bytes() as usize;
    let (reduced, kept): (Vec<usize>, Vec<usize>) = (0..x.shape.len()).partition(|&axis| axes >> axis & 1 != 0);
    let slices = x.offsets(size as i64, &kept);
    let places = out.offsets(result.bytes() as i64, &(0..out.shape.len()).collect::<Vec<_>>());
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
            elements.extend((0..extent).map(element).filter(|element| !(skips_nan && element.is_nan())));
        }
        let count = elements.len();
        let value = match selection {
            _ if elements.is_empty() || elements.iter().any(|element| element.is_nan()) => f64::NAN,
            Selection::Median => median(result, &mut elements),
            Selection::Quantile(q, method) => quantile(result, &mut elements, method.place(q, count)),
        };
        let value = if value.is_nan() { Scalar::nan(result) } else { Scalar::float(result, value) };
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

/// The value at a place of the sorted elements, linear between the two nearest.
fn quantile(dtype: DType, elements: &mut [f64], at: f64) -> f64 {
    let last = elements.len() - 1;
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
