//! Variance: the loop takes two passes, the mean and then the squares of the deviations from it.

use super::typed::given;
use super::{Walk, Ways, Work, nd, plain};
use cranefold::DType;

/// The ways of `var`, `std` and `mean,var`.
pub fn ways<'a>(work: &Work, walk: &'a Walk) -> Option<Ways<'a>> {
    let is_f32 = work.dtype == DType::F32;
    let ddof = work.params.first().map_or(0.0, |&ddof| ddof as f32);
    match work.op.as_str() {
        "var" if is_f32 => Some([
            given(move |x| mean_and_var(x, walk, ddof).1),
            walk.along().and_then(|_| given(move |x| nd::var(x, walk, ddof))),
        ]),
        "std" if is_f32 => Some([
            given(move |x| -> Vec<f32> { mean_and_var(x, walk, ddof).1.into_iter().map(f32::sqrt).collect() }),
            walk.along().and_then(|_| given(move |x| nd::std(x, walk, ddof))),
        ]),
        "mean,var" if is_f32 => Some([
            given(move |x| mean_and_var(x, walk, ddof)),
            walk.along().and_then(|_| given(move |x| (nd::mean(x, walk), nd::var(x, walk, ddof)))),
        ]),
        _ => None,
    }
}

/// Both, of each output.
fn mean_and_var(x: &[f32], walk: &Walk, ddof: f32) -> (Vec<f32>, Vec<f32>) {
    let n = walk.count() as f32;
    let means = plain::reduce(x, walk, 0.0, |sum, x, _| sum + x, |sum| sum / n);
    let squares = |sum, x, output: usize| {
        let deviation = x - means[output];
        sum + deviation * deviation
    };
    let vars = plain::reduce(x, walk, 0.0, squares, |sum| sum / (n - ddof));
    (means, vars)
}
