//! The computation on a slice: reductions in stages, then outputs.

use super::{Apply, Reducer, Source};
use crate::{DType, Def, Expr};

/// The computation on a slice.
///
/// Stages come one after the other, each with reductions whose lifts may take the values of earlier stages. The values
/// of the slice are numbered over all stages: the results of reductions, and what the ends of stages add to them.
#[derive(Clone, Debug, PartialEq)]
pub struct Computation {
    /// The stages in order; none of a region without reductions.
    pub stages: Vec<Stage>,
    /// The outputs of the slice; `None` if the values are the outputs, in order.
    pub outputs: Option<SliceOutputs>,
    /// The outputs at each position of the slice.
    pub apply: Option<Apply>,
    /// The values of elements that are kept between visits of the slice. They are numbered after the inputs and indices.
    pub kept: Vec<Kept>,
}

/// A value of elements that the first visit which needs it computes, and that later visits read.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// The name of its definition in the region.
    pub name: String,
    /// (elements of `inputs`, values in `takes`) -> value, as memory holds it.
    pub def: Def,
    /// The inputs, indices and kept values that it is computed from, by their numbers.
    pub inputs: Vec<usize>,
    /// The values of the slice that it takes, by their numbers.
    pub takes: Vec<usize>,
}

impl Kept {
    /// The type in memory.
    pub fn dtype(&self) -> DType {
        self.def.results.first().map_or(DType::F32, Expr::dtype)
    }
}

/// The reductions that need no result of one another, and what follows from their results.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// The reductions, in groups that share a tree.
    pub groups: Vec<Group>,
    /// The end of the stage, which adds values of the slice.
    pub end: Option<Ending>,
}

/// Reductions with one tree, made into one reducer.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The names of the reductions, for people.
    pub name: String,
    /// The reducer.
    pub reducer: Reducer,
    /// The inputs whose elements lifts take first, by their numbers.
    pub inputs: Vec<usize>,
    /// True if lifts take the position of the element next.
    pub takes_position: bool,
    /// The values of earlier stages that lifts take next, by their numbers.
    pub takes: Vec<usize>,
    /// The numbers of its results among the values of the slice.
    pub results: Vec<usize>,
    /// The number of the walk over the slice that its tree follows.
    pub walk: usize,
}

/// A computation on values of the slice.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    /// (values in `takes`, elements of `reads`) -> results.
    pub def: Def,
    /// The values of the slice that it takes, by their numbers.
    pub takes: Vec<usize>,
    /// The elements that it takes after them.
    pub reads: Vec<Source>,
    /// The numbers of its results among the values of the slice, or of the outputs.
    pub results: Vec<usize>,
}

/// The outputs of a slice.
pub type SliceOutputs = Ending;

impl Computation {
    /// The computation of one reducer, whose lifts take these inputs and perhaps the position.
    pub(super) fn of_one(name: String, mut reducer: Reducer, inputs: Vec<usize>, takes_position: bool) -> Computation {
        let results: Vec<usize> = (0..reducer.finish.results.len()).collect();
        let apply = reducer.apply.take().map(|apply| Apply { takes: results.clone(), ..apply });
        let group = Group { name, reducer, inputs, takes_position, takes: vec![], results, walk: 0 };
        Computation { stages: vec![Stage { groups: vec![group], end: None }], outputs: None, apply, kept: vec![] }
    }

    /// One more than the greatest number of a value of the slice; some numbers may have no value.
    pub fn values(&self) -> usize {
        let of_groups = self.groups().flat_map(|group| &group.results);
        let of_ends = self.stages.iter().filter_map(|stage| stage.end.as_ref()).flat_map(|end| &end.results);
        of_groups.chain(of_ends).max().map_or(0, |&greatest| greatest + 1)
    }

    /// The groups of all stages.
    pub fn groups(&self) -> impl Iterator<Item = &Group> {
        self.stages.iter().flat_map(|stage| &stage.groups)
    }

    /// The only group; `None` if there are several, or none.
    pub fn only_group(&self) -> Option<&Group> {
        let mut groups = self.groups();
        groups.next().filter(|_| groups.next().is_none())
    }

    /// The inputs that the end of a slice reads.
    pub fn reads(&self) -> impl Iterator<Item = Source> + '_ {
        let endings = self.stages.iter().filter_map(|s| s.end.as_ref()).chain(&self.outputs);
        endings.flat_map(|e| &e.reads).chain(self.groups().flat_map(|g| &g.reducer.reads)).copied()
    }
}
