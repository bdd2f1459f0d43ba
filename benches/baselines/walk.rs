//! The dims that baselines walk.

use cranefold::Problem;
use cranefold::problem::{self, Offsets};

/// The dims of a workload whose first input and outputs lie densely in memory, outermost first, neighbours that
/// are both reduced or both kept being one. Further inputs are as the first, or as its slices.
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

/// A walk with one reduced dim: the positions around it, along it and inside of it.
#[derive(Clone, Copy, Debug)]
pub struct Along {
    /// Positions of the dims outside.
    pub outside: usize,
    /// Elements that each output is reduced from.
    pub count: usize,
    /// Positions of the dims inside: neighbours in memory.
    pub inside: usize,
}

impl Walk {
    /// The walk of a problem. `None` if an operand has gaps, outputs lie in another order than inputs, or a further
    /// input lies in any other way.
    pub fn of(problem: &Problem) -> Option<Walk> {
        let ([slices], 0 | 1) = (&problem.slices[..], problem.elements().len()) else { return None };
        let dims = problem.dims(slices);
        let (mut elems, mut outputs) = (1, 1);
        for (dim, reduced) in dims.iter().rev() {
            let at = if problem.applies() { elems } else { outputs };
            let outputs_fit = *reduced || dim.stride.outputs.iter().all(|&s| s == at);
            let mut further = problem.inputs.iter().zip(&dim.stride.inputs);
            let inputs_fit = further.all(|(input, &s)| s == elems || (s == 0 && !(*reduced && input.mapped)));
            let dense = dim.stride.inputs[0] == elems && inputs_fit && outputs_fit;
            if !dense && dim.extent > 1 {
                return None;
            }
            elems *= dim.extent as i64;
            outputs *= if *reduced { 1 } else { dim.extent as i64 };
        }
        let alike = |d: &problem::Dim| {
            let Offsets { inputs, outputs, .. } = &d.stride;
            inputs.iter().chain(outputs).all(|s| *s == inputs[0])
        };
        if !problem.positions.iter().flat_map(|region| &region.dims).all(alike) {
            return None;
        }
        let dim = |(d, reduced): (problem::Dim, bool)| Dim { extent: d.extent as usize, reduced };
        Some(Walk(dims.into_iter().map(dim).collect()))
    }

    /// The number of slices.
    pub fn outputs(&self) -> usize {
        self.0.iter().filter(|d| !d.reduced).map(|d| d.extent).product()
    }

    /// The number of elements that each output is reduced from.
    pub fn count(&self) -> usize {
        self.0.iter().filter(|d| d.reduced).map(|d| d.extent).product()
    }

    /// The same, where one dim is reduced.
    pub fn along(&self) -> Option<Along> {
        let axis = self.0.iter().position(|d| d.reduced)?;
        let positions = |dims: &[Dim]| dims.iter().map(|d| d.extent).product();
        let (outside, inside) = (&self.0[..axis], &self.0[axis + 1..]);
        let only = inside.iter().all(|d| !d.reduced);
        only.then(|| Along { outside: positions(outside), count: self.0[axis].extent, inside: positions(inside) })
    }
}
