//! What the kernels are compared with: plain Rust loops, the `ndarray` crate, and the rate memory is read at.
//!
//! A baseline computes one workload one way. A way is absent where there is none worth comparing with: what the
//! crate does not offer, or a line that no loop was written for; it is then not timed. There is a file for each
//! family of ops, and in it both ways.

mod dot;
mod folds;
mod median;
pub mod memory;
mod moments;
mod nd;
mod normalize;
mod plain;
mod position;
mod typed;
mod walk;

pub use walk::Walk;

use crate::data::Data;
use cranefold::{DType, Spec};

/// A way to compute a workload: from the data of its inputs it makes the outputs, each in the row-major order
/// of its shape, and gives their bits if asked to.
pub type Baseline<'a> = Box<dyn FnMut(&[Data], bool) -> Vec<Vec<u64>> + 'a>;

/// The [`BASELINES`] of a workload. `None`: the way is absent.
pub type Ways<'a> = [Option<Baseline<'a>>; BASELINES.len()];

/// The names of the ways.
pub const BASELINES: [&str; 2] = ["loop", "ndarray"];

/// The properties by which a family of ops decides.
struct Work {
    /// The names of the ops, with a comma between them and without parameters; then the map, if there is one.
    op: String,
    /// The type of the elements, which all inputs have.
    dtype: DType,
    /// The parameters of the ops, one after the other.
    params: Vec<f64>,
    /// How many elements each input has.
    lens: Vec<usize>,
}

/// The ways of a workload whose operands lie as the walk says.
pub fn baselines<'a>(spec: &Spec, walk: &'a Walk) -> Ways<'a> {
    let dtype = spec.inputs()[0].dtype();
    let plain_words = spec.then().is_empty() && spec.apply().is_none();
    if !plain_words || spec.inputs().iter().any(|input| input.dtype() != dtype) {
        return [None, None];
    }
    let calls = spec.reducers().iter();
    let names: Vec<&str> = calls.map(|call| call.as_row().map_or("combiner", |row| row.name)).collect();
    let map = spec.map().map(|map| format!(" {map}")).unwrap_or_default();
    let work = Work {
        op: names.join(",") + &map,
        dtype,
        params: spec.reducers().iter().flat_map(|call| call.params()).collect(),
        lens: spec.inputs().iter().map(|input| input.elems() as usize).collect(),
    };
    let families = [folds::ways, moments::ways, position::ways, median::ways, normalize::ways, dot::ways];
    families.into_iter().find_map(|ways| ways(&work, walk)).unwrap_or([None, None])
}
