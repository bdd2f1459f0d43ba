//! The states between the parts of a problem whose blocks are divided.
//!
//! A part stores the state of its blocks, merged but not folded. The finish merges the states of all parts like the
//! states of as many blocks. Each value of a state has a buffer, ordered by part, then slice, then lane.

use super::{At, Lowering, Share, State};
use crate::problem::blocks::Stored;
use crate::problem::tree::Tree;
use crate::problem::{IndexBox, Problem};
use cranefold_ir::ops::Form;
use cranefold_ir::{BufId, Buffer, BufferRole, DType, Expr, Index, LoopKind, Over, Stmt};
use std::ops::Range;

impl Share {
    /// Returns true if the share writes padding.
    pub(super) fn pads(&self) -> bool {
        matches!(self, Share::Whole | Share::Slices { padding: true, .. } | Share::Finish { .. })
    }

    /// The blocks of a tree that the share reduces.
    pub(super) fn blocks(&self, tree: &Tree) -> Range<u64> {
        match self {
            Share::Whole | Share::Slices { .. } => 0..tree.blocks(),
            Share::Blocks { blocks, .. } => blocks.clone(),
            Share::Finish { .. } => 0..0,
        }
    }

    /// The number of states that the share merges.
    pub(super) fn states(&self, tree: &Tree) -> u64 {
        match *self {
            Share::Finish { parts } => parts,
            Share::Whole | Share::Slices { .. } | Share::Blocks { .. } => self.blocks(tree).count() as u64,
        }
    }
}

/// The buffers of states that the share stores or reads, and of the numbers at its start.
pub(super) fn buffers(problem: &Problem, form: Form, share: &Share) -> Vec<Buffer> {
    let (role, parts) = match *share {
        Share::Blocks { parts, .. } => (BufferRole::Out, parts),
        Share::Finish { parts } => (BufferRole::In, parts),
        Share::Whole | Share::Slices { .. } => return vec![],
    };
    let stored = Stored::of(problem, form).expect("only blocks are shared out so");
    let buffer = |(dtype, lanes)| Buffer { role, dtype, len: parts * slices(problem) * lanes };
    let starts = if let Share::Blocks { counted, .. } = share { counted.buffers(problem) } else { vec![] };
    stored.values().map(buffer).chain(starts).collect()
}

fn slices(problem: &Problem) -> u64 {
    problem.slices.iter().map(IndexBox::positions).sum()
}

impl Lowering<'_> {
    /// The place of a slice's state in the buffers of states.
    fn place(&self, part: Index, lanes: u64, at: &At) -> Index {
        part.times(slices(self.problem) as i64).add(&at.slice()).times(lanes as i64)
    }

    fn state_buffer(&self, value: usize) -> BufId {
        BufId((self.problem.inputs.len() + self.problem.outputs.len() + self.first_state + value) as u32)
    }

    /// The buffer of a number at the start of the share.
    pub(super) fn start_buffer(&self, number: usize) -> BufId {
        let states = self.nest.buffers.iter().rposition(|b| b.role != BufferRole::In).map_or(0, |last| last + 1);
        BufId((states + number) as u32)
    }

    /// Stores a merged state if the share is a part of the blocks.
    pub(super) fn given(&mut self, state: &State, lanes: u64, at: &At) -> Vec<Stmt> {
        let &Share::Blocks { part, .. } = self.share else { return vec![] };
        let start = self.place(Index::constant(part as i64), lanes, at);
        self.repeat(Over::Element, lanes, LoopKind::Parallel, |this, e| {
            let store = |(n, value)| Stmt::Store { buf: this.state_buffer(n), index: start.add(&e), value };
            state.read(&e).into_iter().enumerate().map(store).collect()
        })
    }

    /// Loads the states of all parts if the share is the finish.
    pub(super) fn taken(&mut self, state: &State, lanes: u64, at: &At) -> Vec<Stmt> {
        let Share::Finish { parts } = *self.share else { return vec![] };
        self.repeat(Over::Block, parts, LoopKind::Parallel, |this, part| {
            let start = this.place(part.clone(), lanes, at);
            this.repeat(Over::Element, lanes, LoopKind::Parallel, |this, e| {
                let load =
                    |(n, &(_, dtype)): (usize, &(_, DType))| Expr::Load(this.state_buffer(n), dtype, start.add(&e));
                let values = state.accs.iter().enumerate().map(load).collect();
                state.set(&part.times(lanes as i64).add(&e), values)
            })
        })
    }
}
