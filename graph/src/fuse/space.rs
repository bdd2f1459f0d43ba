//! The space of a kernel: its axes, and how a value's axes lie in them.
//!
//! An axis of the space is an *atom*. A reshape inside a kernel splits atoms, so that each axis of each value is a row-major
//! run of whole atoms. Reductions keep their trees: neighbouring reduced axes count as one.

use std::rc::Rc;

/// For each axis of a value, its atoms, outermost first; none for an extent of 1.
pub(crate) type Index = Rc<[Vec<usize>]>;

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
        let index = shape.iter().enumerate().map(|(axis, &e)| if e == 1 { vec![] } else { vec![axis] }).collect();
        (space, index)
    }

    pub(crate) fn extent(&self, atom: usize) -> u64 {
        self.atoms[atom].extent
    }

    pub(crate) fn is_reduced(&self, atom: usize) -> bool {
        self.atoms[atom].is_reduced
    }

    fn push_parts(&self, atom: usize, to: &mut Vec<usize>) {
        match self.atoms[atom].split {
            None => to.push(atom),
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
        let parts = |atoms: &Vec<usize>| {
            let mut parts = vec![];
            atoms.iter().for_each(|&atom| self.push_parts(atom, &mut parts));
            parts
        };
        index.iter().map(parts).collect()
    }

    /// All atoms of an index.
    pub(crate) fn atoms_of(&self, index: &Index) -> Vec<usize> {
        let mut atoms: Vec<usize> = self.resolved(index).iter().flatten().copied().collect();
        atoms.sort_unstable();
        atoms.dedup();
        atoms
    }

    /// The index of the same elements in row-major order in another shape; none where its axes are no runs of atoms.
    pub(crate) fn reshaped(&mut self, index: &Index, to: &[u64]) -> Option<Index> {
        let mut rest: Vec<usize> = self.resolved(index).iter().flatten().rev().copied().collect();
        let mut result = vec![];
        for &extent in to {
            let (mut need, mut atoms) = (extent, vec![]);
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
    let mut result = vec![vec![]; inner.len()];
    for (axis, atoms) in from.iter().zip(index.iter()) {
        if let Some(axis) = axis {
            result[*axis] = atoms.clone();
        }
    }
    result.into()
}
