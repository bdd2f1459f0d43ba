//! Cuts a problem into a program: the parts that a schedule asks for, each the nest of a share.
//!
//! The tree is always the tree of the whole problem. If outputs are divided, a part has some of the slices: a dim of a
//! box is cut, from the outermost on, until there are enough pieces, nearly even ones. Boxes of slices too small to be
//! cut share a part; the last part of them also writes the padding. If blocks are divided, part `c` has
//! the blocks from `c * 2^k` on, up to 2^k of them, which are a subtree. Merging the blocks of each part, and then the
//! parts' states like blocks, is merging all blocks.

use super::{Counted, Share, lower_computation};
use crate::lower::program::Program;
use crate::problem::blocks::{blocks, blocks_of_part};
use crate::problem::{IndexBox, Offsets, Problem};
use crate::schedule::{Divided, Schedule};
use cranefold_ir::ops::{Computation, Form};
use cranefold_ir::{BufferRole, Nest};
use std::ops::Range;
use std::sync::Arc;

/// Elements at whose multiples long pieces of the innermost dim begin: a cache line of f32, so that two parts seldom
/// store to one line.
const LINE: u64 = 16;

/// The naive program of a problem in the parts of a schedule; `computation` is the schedule's, if it is known.
pub fn cut(problem: &Problem, schedule: &Schedule, computation: Option<Computation>, name: &str) -> Program {
    let shares = shares(problem, schedule);
    let computation = computation.or_else(|| problem.computation_keeping(schedule.form, &schedule.keep)).map(Arc::new);
    let lower = |share: &Share| {
        let mut nest = lower_computation(problem, schedule, computation.clone(), name, share);
        let operands = problem.inputs.len() + problem.outputs.len();
        let written = nest.buffers.iter_mut().take(operands).filter(|b| b.role == BufferRole::Out);
        written.filter(|_| schedule.nontemporal).for_each(|b| b.role = BufferRole::Nontemporal);
        nest
    };
    let finish = match shares[..] {
        [Share::Blocks { parts, .. }, ..] => {
            Some(Nest { name: format!("{name}, finish"), ..lower(&Share::Finish { parts }) })
        }
        _ => None,
    };
    match &shares[..] {
        [only] => Program::of(lower(only)),
        shares => Program::of_parts(shares.iter().map(lower), finish),
    }
}

/// The shares of the parts; at least one.
fn shares(problem: &Problem, schedule: &Schedule) -> Vec<Share> {
    let parts = schedule.parts;
    let shares = match parts.of {
        // Totals need the values of all slices.
        _ if parts.count <= 1 || problem.totals.is_some() => vec![],
        Divided::Outputs => of_slices(problem, parts.count),
        Divided::Blocks => of_blocks(problem, schedule.form, parts.count),
    };
    if shares.len() > 1 { shares } else { vec![Share::Whole] }
}

fn of_slices(problem: &Problem, count: u64) -> Vec<Share> {
    let all: u64 = problem.slices.iter().map(IndexBox::positions).fold(0, u64::saturating_add);
    let mut shares = vec![];
    // Small boxes, and the number of their slices.
    let (mut rest, mut in_rest) = (vec![], 0);
    for (number, slices) in problem.slices.iter().enumerate() {
        let pieces = (u128::from(slices.positions()) * u128::from(count) + u128::from(all / 2)) / u128::from(all);
        if pieces == 0 {
            in_rest += slices.positions();
            rest.push((number, slices.clone()));
            if in_rest >= all / count {
                shares.push(Share::Slices { boxes: std::mem::take(&mut rest), padding: false });
                in_rest = 0;
            }
            continue;
        }
        let share = |piece| Share::Slices { boxes: vec![(number, piece)], padding: false };
        shares.extend(pieces_of(slices.clone(), 0, pieces as u64).into_iter().map(share));
    }
    if !rest.is_empty() || !problem.padding.is_empty() {
        shares.push(Share::Slices { boxes: rest, padding: true });
    }
    shares
}

/// The pieces of a box, `count` or somewhat more, nearly even, cut in the dims from `level` on.
fn pieces_of(slices: IndexBox, level: usize, count: u64) -> Vec<IndexBox> {
    let Some(extent) = slices.dims.get(level).map(|d| d.extent).filter(|_| count > 1) else { return vec![slices] };
    let innermost = level + 1 == slices.dims.len();
    if count > extent && !innermost {
        let one = |i| pieces_of(piece(&slices, level, i..i + 1), level + 1, count.div_ceil(extent));
        return (0..extent).flat_map(one).collect();
    }
    let unit = if innermost && extent / count >= 4 * LINE { LINE } else { 1 };
    let (units, count) = (extent.div_ceil(unit), count.min(extent));
    let bound = |i: u64| ((u128::from(units) * u128::from(i) / u128::from(count)) as u64 * unit).min(extent);
    (0..count).map(|i| piece(&slices, level, bound(i)..bound(i + 1))).collect()
}

/// The piece of a box within a range of a dim.
fn piece(slices: &IndexBox, level: usize, range: Range<u64>) -> IndexBox {
    let mut piece = slices.clone();
    let stride = piece.dims[level].stride.clone();
    let moved = |at: &mut i64, by: i64| *at += by * range.start as i64;
    let Offsets { inputs, outputs, position } = &mut piece.start;
    inputs.iter_mut().zip(stride.inputs).for_each(|(at, by)| moved(at, by));
    outputs.iter_mut().zip(stride.outputs).for_each(|(at, by)| moved(at, by));
    moved(position, stride.position);
    piece.dims[level].extent = range.end - range.start;
    piece
}

fn of_blocks(problem: &Problem, form: Form, count: u64) -> Vec<Share> {
    let Some(blocks) = blocks(problem, form) else { return vec![] };
    let each = blocks_of_part(blocks, count);
    let parts = blocks.div_ceil(each);
    let share = |part: u64| {
        let blocks = part * each..((part + 1) * each).min(blocks);
        Share::Blocks { blocks, part, parts, counted: Counted::default() }
    };
    (0..parts).map(share).collect()
}
