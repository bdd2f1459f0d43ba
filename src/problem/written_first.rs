//! The outputs that the only visit of a slice by its reductions can write.

use super::{IndexBox, Problem};
use cranefold_ir::ops::{Computation, Method};

impl Problem {
    /// The boxes of the elements that reductions walk, with the places of outputs, if the first visit of a slice can
    /// write every output at its positions: no such output takes a value of the slice or an old element, reductions visit
    /// each element once, since an output may lie in the memory of an input, and they walk the positions as outputs are
    /// written.
    pub fn written_first(&self, computation: &Computation) -> Option<Vec<IndexBox>> {
        let apply = computation.apply.as_ref().filter(|apply| apply.takes.is_empty() && apply.old.is_empty())?;
        let group = computation.only_group()?;
        let walk = self.walks.get(group.walk).filter(|walk| walk.gathered.is_none() && !self.elements().is_empty())?;
        let visits_once =
            matches!(&group.reducer.method, Method::Phases { phases, search: None, .. } if phases.len() == 1);
        let takes_none = computation.kept.iter().all(|kept| kept.takes.is_empty());
        if !visits_once || !takes_none || apply.outputs.iter().any(|&o| self.reads_old(o)) {
            return None;
        }
        let reads = self.reads_of(computation, &group.inputs);
        let same = |own: &[i64], written: &[i64]| reads.iter().all(|&i| own.get(i) == written.get(i));
        let both = |(own, written): (&IndexBox, &IndexBox)| {
            let dims = own.dims.iter().zip(&written.dims);
            let alike = own.dims.len() == written.dims.len()
                && same(&own.start.inputs, &written.start.inputs)
                && dims.clone().all(|(a, b)| a.extent == b.extent && same(&a.stride.inputs, &b.stride.inputs));
            let mut both = written.clone();
            both.start.position = own.start.position;
            both.dims.iter_mut().zip(dims).for_each(|(to, (own, _))| to.stride.position = own.stride.position);
            alike.then_some(both)
        };
        let boxes: Option<Vec<IndexBox>> = walk.elements.iter().zip(&self.positions).map(both).collect();
        boxes.filter(|boxes| boxes.len() == walk.elements.len() && boxes.len() == self.positions.len())
    }

    /// The inputs and indices that these inputs, indices and kept values are computed from.
    fn reads_of(&self, computation: &Computation, inputs: &[usize]) -> Vec<usize> {
        let of = |&input: &usize| match input.checked_sub(self.first_kept()) {
            Some(k) => self.reads_of(computation, &computation.kept[k].inputs),
            None => vec![input],
        };
        inputs.iter().flat_map(of).collect()
    }
}
