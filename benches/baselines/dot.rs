//! Sums of products of the elements of two inputs.

use super::typed::given_all;
use super::{Walk, Ways, Work, nd};
use cranefold::DType;

/// The ways of `sum` with the map `x0*x1`, of two inputs that lie alike.
pub fn ways<'a>(work: &Work, walk: &'a Walk) -> Option<Ways<'a>> {
    let along = walk.along().filter(|along| along.inside == 1)?;
    let is_dot = work.op == "sum x0 * x1" && work.dtype == DType::F32 && work.lens[0] == work.lens[1];
    is_dot.then(|| {
        [
            given_all(move |[x, y]: [&[f32]; 2]| {
                let rows = x.chunks_exact(along.count).zip(y.chunks_exact(along.count));
                rows.map(|(x, y)| x.iter().zip(y).fold(0.0, |sum, (x, y)| sum + x * y)).collect::<Vec<f32>>()
            }),
            given_all(move |[x, y]: [&[f32]; 2]| nd::dots(x, y, walk)),
        ]
    })
}
