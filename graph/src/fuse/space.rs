//! The space of a kernel: its axes, and how a value's axes lie in them.
//!
//! An axis of the space is an *atom*. A reshape inside a kernel splits atoms, so that each axis of each value is a row-major
//! run of whole atoms. Reductions keep their trees: neighbouring reduced axes count as one.

use smallvec::{SmallVec, smallvec};
use std::rc::Rc;

/// The atoms of an axis, outermost first.
pub(crate) type Atoms = SmallVec<[usize; 2]>;

/// For each axis of a value its atoms; none for an extent of 1.
pub(crate) type Index = Rc<[Atoms]>;

#[derive(Clone, Debug)]
struct Atom {
    extent: u64,
    is_reduced: bool,
    split: Option<[usize; 2]>,
}

#[derive(Clone, Debug)]
pub(crate) struct Space {
    atoms: Vec<Atom>,
    /// The number of atoms that are no parts of others: they come first.
    roots: usize,
}

impl Space {
    /// The space of a shape, whose axes are its atoms.
    pub(crate) fn new(shape: &[u64], reduced: &[usize]) -> (Space, Index) {
        let atom = |(axis, &extent): (usize, &u64)| Atom { extent, is_reduced: reduced.contains(&axis), split: None };
        let space = Space { atoms: shape.iter().enumerate().map(atom).collect(), roots: shape.len() };
        let index =
            shape.iter().enumerate().map(|(axis, &e)| if e == 1 { smallvec![] } else { smallvec![axis] }).collect();
        (space, index)
    }

    pub(crate) fn extent(&self, atom: usize) -> u64 {
        self.atoms[atom].extent
    }

    pub(crate) fn is_reduced(&self, atom: usize) -> bool {
        self.atoms[atom].is_reduced
    }

    fn push_parts(&self, atom: usize, to: &mut impl Extend<usize>) {
        match self.atoms[atom].split {
            None => to.extend([atom]),
            Some(parts) => parts.iter().for_each(|&part| self.push_parts(part, to)),
        }
    }

    /// The atoms in order, each whole.
    pub(crate) fn order(&self) -> Vec<usize> {
        let mut order = vec![];
        (0..self.roots).for_each(|atom| self.push_parts(atom, &mut order));
        order
    }

    /// The atoms of an index after later splits.
    pub(crate) fn resolved(&self, index: &Index) -> Index {
        if self.atoms.len() == self.roots {
            return index.clone();
        }
        let parts = |atoms: &Atoms| {
            let mut parts = smallvec![];
            atoms.iter().for_each(|&atom| self.push_parts(atom, &mut parts));
            parts
        };
        index.iter().map(parts).collect()
    }

    /// All atoms of an index.
    pub(crate) fn atoms_of(&self, index: &[Atoms]) -> Vec<usize> {
        self.parts_of(index.iter().flatten().copied())
    }

    /// The parts of atoms, in order.
    pub(crate) fn parts_of(&self, atoms: impl IntoIterator<Item = usize>) -> Vec<usize> {
        let mut parts = vec![];
        atoms.into_iter().for_each(|atom| self.push_parts(atom, &mut parts));
        parts.sort_unstable();
        parts.dedup();
        parts
    }

    /// The number of atoms.
    pub(super) fn len(&self) -> usize {
        self.atoms.len()
    }

    /// Takes back the splits since there were so many atoms.
    pub(super) fn truncate(&mut self, len: usize) {
        if self.atoms.len() > len {
            self.atoms.truncate(len);
            let is_new = |parts: [usize; 2]| parts[0] >= len;
            self.atoms.iter_mut().for_each(|atom| atom.split = atom.split.filter(|&parts| !is_new(parts)));
        }
    }

    /// The index of the same elements in row-major order in another shape, for which atoms may be split; none where its axes
    /// are no runs of atoms.
    pub(crate) fn reshaped(&mut self, index: &Index, to: &[u64]) -> Option<Index> {
        let len = self.len();
        let result = self.runs(index, to);
        if result.is_none() {
            self.truncate(len);
        }
        result
    }

    fn runs(&mut self, index: &Index, to: &[u64]) -> Option<Index> {
        let mut rest: Vec<usize> = self.resolved(index).iter().flatten().rev().copied().collect();
        let mut result = vec![];
        for &extent in to {
            let (mut need, mut atoms) = (extent, Atoms::new());
            while need > 1 {
                let atom = rest.pop()?;
                let own = self.extent(atom);
                if own == 0 {
                    return None;
                }
                if need.is_multiple_of(own) {
                    need /= own;
                    atoms.push(atom);
                } else if own.is_multiple_of(need) {
                    let [outer, inner] = self.split(atom, need);
                    atoms.push(outer);
                    rest.push(inner);
                    need = 1;
                } else {
                    return None;
                }
            }
            if need == 0 {
                return None;
            }
            result.push(atoms);
        }
        rest.is_empty().then(|| result.into())
    }

    /// Splits an atom into an outer part of an extent and an inner one.
    fn split(&mut self, atom: usize, outer: u64) -> [usize; 2] {
        let Atom { extent, is_reduced, .. } = self.atoms[atom];
        let parts = [self.atoms.len(), self.atoms.len() + 1];
        for extent in [outer, extent / outer] {
            self.atoms.push(Atom { extent, is_reduced, split: None });
        }
        self.atoms[atom].split = Some(parts);
        parts
    }
}

/// The index of what a view shows.
pub(super) fn seen_through(from: &[Option<usize>], index: &Index, inner: &[u64]) -> Index {
    // Of two axes that show the same one, the later tells.
    let shown = |axis: usize| from.iter().rposition(|&from| from == Some(axis));
    (0..inner.len()).map(|axis| shown(axis).map_or(smallvec![], |place| index[place].clone())).collect()
}
