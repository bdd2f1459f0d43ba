//! The dims that baselines walk.

use cranefold::Problem;

/// The dims of a workload whose input and output lie densely in memory, outermost first, neighbours that
/// are both reduced or both kept being one.
#[derive(Clone, Debug)]
pub struct Walk(pub Vec<Dim>);

/// A dim.
#[derive(Clone, Copy, Debug)]
pub struct Dim {
    /// Positions.
    pub extent: usize,
    /// Whether it is reduced.
    pub reduced: bool,
}

impl Walk {
    /// The walk of a problem.
    ///
    /// # Panics
    /// If its input or output has gaps, or outputs lie in another order than inputs.
    pub fn of(problem: &Problem) -> Walk {
        let (mut elems, mut outputs) = (1, 1);
        for dim in problem.dims.iter().rev() {
            let dense = dim.input_strides == [elems] && (dim.reduced || dim.output_strides == [outputs]);
            assert!(dense || dim.extent == 1, "the baselines take dense arrays only");
            elems *= dim.extent as i64;
            outputs *= if dim.reduced { 1 } else { dim.extent as i64 };
        }
        let dim = |d: &cranefold::problem::Dim| Dim { extent: d.extent as usize, reduced: d.reduced };
        Walk(problem.dims.iter().map(dim).collect())
    }

    /// The number of outputs.
    pub fn outputs(&self) -> usize {
        self.0.iter().filter(|d| !d.reduced).map(|d| d.extent).product()
    }

    /// The number of elements that each output is reduced from.
    pub fn count(&self) -> usize {
        self.0.iter().filter(|d| d.reduced).map(|d| d.extent).product()
    }
}
