//! The cut of an array that is streamed: the boxes of its kept axes and the ranges of its first reduced axis that fit a bound
//! of memory.
//!
//! A box is cut along kept axes before the reduced one until a shard reads all of it; where that is not enough, each range of
//! the reduced axis is a shard. Where the states of a box, or one index of it, take too much, the box is halved, from the
//! outermost axis on: its inner axes are cut last, as their elements lie apart in a file.

use crate::arrays::output_bytes;
use crate::failure::Failure;
use crate::figures;
use cranefold::spec::Operand;
use cranefold::{Compiler, Partial, Spec};
use std::ops::Range;

/// The most bytes that a shard reads: those that stay in the cache from their reading to their reduction.
const MOST_SHARD_BYTES: u64 = 4 << 20;

/// The shards of a box at most, for the time that each takes.
const MOST_SHARDS: u64 = 1 << 20;

/// The states that wait for an older one, for each thread.
const WAITING: usize = 2;

/// A shard, with its box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The box: a range of each kept axis.
    pub kept: Vec<Range<u64>>,
    /// The shard: a range of each axis.
    pub chunk: Vec<Range<u64>>,
    /// True for the last piece of a box.
    pub ends_box: bool,
}

/// The cut of an array.
#[derive(Clone, Debug)]
pub struct Cut<'s> {
    spec: &'s Spec,
    /// The axis that shards are ranges of.
    axis: usize,
    /// The indices of a box along each axis; along the reduced ones, all.
    widths: Vec<u64>,
    /// The indices of a shard along the axis.
    indices: u64,
}

impl<'s> Cut<'s> {
    /// The cut of a spec's array for a bound of memory.
    ///
    /// # Errors
    /// If there are no shards of the reduction, or no cut fits the bound: the error names the least.
    pub fn choose(spec: &'s Spec, compiler: &Compiler, memory: u64, threads: usize) -> Result<Cut<'s>, Failure> {
        let axis = compiler.partial(spec)?.axis()?;
        let mut cut = Cut { spec, axis, widths: spec.shape().to_vec(), indices: spec.shape()[axis] };
        let most = (memory / 2 / threads as u64).min(MOST_SHARD_BYTES);
        let kept = spec.axes_kept();
        for &outer in kept.iter().filter(|&&kept| kept < axis) {
            let all = std::mem::replace(&mut cut.widths[outer], 1);
            cut.widths[outer] = (most / cut.shard_bytes().max(1)).clamp(1, all.max(1));
            if cut.widths[outer] > 1 {
                break;
            }
        }
        let mut least = u64::MAX;
        loop {
            let partial = compiler.partial_of(spec, &cut.first_box())?;
            cut.indices = spec.shape()[axis];
            if cut.shard_bytes() > most {
                // A power of two of indices begins at ends of blocks where rows are whole.
                cut.indices = 1 << cut.indices.max(1).ilog2();
            }
            let may_halve = |cut: &Cut| cut.indices > 1 && cut.spec.shape()[axis] / cut.indices < MOST_SHARDS;
            while may_halve(&cut) && (cut.shard_bytes() > most || cut.bytes(&partial, threads)? > memory) {
                cut.indices /= 2;
            }
            let bytes = cut.bytes(&partial, threads)?;
            if bytes <= memory {
                return Ok(cut);
            }
            least = least.min(bytes);
            let Some(&widest) = kept.iter().find(|&&axis| cut.widths[axis] > 1) else { break };
            cut.widths[widest] = cut.widths[widest].div_ceil(2);
        }
        let (given, least) = (figures::size(memory), least.div_ceil(1 << 10));
        let why = format!("{given}, and the least for this spec and --threads {threads} is {least}K");
        Err(Failure::Usage(format!("--memory is too small: {why}")))
    }

    /// The pieces that are taken before an older one is combined, at most.
    pub fn open_pieces(threads: usize) -> usize {
        (WAITING + 1) * threads
    }

    /// The kept axes of the first box, which is the widest.
    fn first_box(&self) -> Vec<Range<u64>> {
        self.spec.axes_kept().into_iter().map(|axis| 0..self.widths[axis]).collect()
    }

    /// Bytes that a shard of the first box reads.
    fn shard_bytes(&self) -> u64 {
        let mut chunk: Vec<Range<u64>> = self.widths.iter().map(|&width| 0..width).collect();
        chunk[self.axis] = 0..self.indices;
        let bytes = |(input, operand): (usize, &Operand)| {
            let within = within(operand.shape(), &chunk, |axis| self.spec.input_axis(input, axis));
            let elems = within.iter().map(|range| range.end - range.start).fold(1, u64::saturating_mul);
            elems.saturating_mul(operand.dtype().bytes())
        };
        self.spec.inputs().iter().enumerate().map(bytes).fold(0, u64::saturating_add)
    }

    /// Bytes of memory that the first box takes: what is read, the states that are made and wait, the state that they
    /// combine to, and the outputs, which are written from a copy.
    fn bytes(&self, partial: &Partial, threads: usize) -> Result<u64, Failure> {
        let extent = self.spec.shape()[self.axis];
        let (mut one, mut all) = (0, 0);
        for range in ranges(extent, self.indices) {
            one = one.max(partial.range_bytes(&range)? as u64);
            all = all.max(partial.range_bytes(&(0..range.end))? as u64);
        }
        let states = one.saturating_mul(Cut::open_pieces(threads) as u64 + 1).saturating_add(2 * all);
        let read = self.shard_bytes().saturating_mul(threads as u64);
        Ok(read.saturating_add(states).saturating_add(2 * output_bytes(self.spec)))
    }

    /// The shards, box after box.
    pub fn pieces(&self) -> Vec<Piece> {
        let axes = self.spec.axes_kept();
        let boxes = axes.iter().fold(vec![vec![]], |boxes: Vec<Vec<Range<u64>>>, &axis| {
            let along = || ranges(self.spec.shape()[axis], self.widths[axis]);
            boxes.iter().flat_map(|outer| along().map(|range| [&outer[..], &[range]].concat())).collect()
        });
        let extent = self.spec.shape()[self.axis];
        let mut pieces = vec![];
        for kept in boxes {
            let mut chunk: Vec<Range<u64>> = self.spec.shape().iter().map(|&extent| 0..extent).collect();
            axes.iter().zip(&kept).for_each(|(&axis, range)| chunk[axis] = range.clone());
            for range in ranges(extent, self.indices) {
                chunk[self.axis] = range.clone();
                pieces.push(Piece { kept: kept.clone(), chunk: chunk.clone(), ends_box: range.end == extent });
            }
        }
        pieces
    }
}

/// An axis in ranges of so many indices; one empty range of an axis of none.
fn ranges(extent: u64, width: u64) -> impl Iterator<Item = Range<u64>> {
    let width = width.max(1);
    (0..extent.div_ceil(width).max(1)).map(move |n| n * width..((n + 1) * width).min(extent))
}

/// The ranges of an operand's own axes in a chunk: whole where the operand is broadcast. `own` gives its axis for one of the
/// spec's.
pub fn within(shape: &[u64], chunk: &[Range<u64>], own: impl Fn(usize) -> Option<usize>) -> Vec<Range<u64>> {
    let mut within: Vec<Range<u64>> = shape.iter().map(|&extent| 0..extent).collect();
    for (axis, range) in chunk.iter().enumerate() {
        if let Some(own) = own(axis) {
            within[own] = range.clone();
        }
    }
    within
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(spec: &Spec, memory: u64) -> Result<Cut<'_>, String> {
        let compiler = Compiler::host().expect("this machine");
        Cut::choose(spec, &compiler, memory, 1).map_err(|failure| failure.to_string())
    }

    #[test]
    fn pieces_are_the_array_and_fit() {
        for (text, memory, widths, indices) in [
            // All at once; ranges of a power of two; rows whole; a row in ranges.
            ("sum f32[1000] order=logical", 1 << 20, &[1000][..], 1000),
            ("sum f32[10000000] order=logical", 1 << 20, &[10_000_000], 1 << 17),
            ("sum f32[5000,1000] axes=[1] order=logical", 1 << 20, &[131, 1000], 1000),
            ("sum f32[5,10000000] axes=[1] order=logical", 1 << 20, &[1, 10_000_000], 1 << 17),
            // States of all columns are too large, and rows too.
            ("sum f32[1000,30000] axes=[0] order=logical", 1 << 20, &[1000, 1875], 64),
        ] {
            let spec: Spec = text.parse().expect("a spec");
            let cut = cut(&spec, memory).expect("a cut");
            assert_eq!((&cut.widths[..], cut.indices), (widths, indices), "{text}");
            let elems = |piece: &Piece| piece.chunk.iter().map(|range| range.end - range.start).product::<u64>();
            assert_eq!(cut.pieces().iter().map(elems).sum::<u64>(), spec.shape().iter().product::<u64>(), "{text}");
        }
    }

    #[test]
    fn the_least_bound_is_named_and_works() {
        let spec: Spec = "sum f32[3,700000] axes=[0,1] order=logical".parse().expect("a spec");
        let refused = cut(&spec, 1 << 20).expect_err("an index is 2.8 MB");
        let least =
            refused.strip_prefix("--memory is too small: 1 MB, and the least for this spec and --threads 1 is ");
        let least: u64 = least.and_then(|least| least.strip_suffix('K')).expect("in K").parse().expect("a number");
        assert_eq!(cut(&spec, least << 10).expect("enough").indices, 1);
        cut(&spec, (least - 1) << 10).expect_err("less");
    }
}
