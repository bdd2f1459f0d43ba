//! The cut of an array that is streamed: the boxes of its kept axes and the ranges of its first reduced axis that fit a bound
//! of memory.
//!
//! A box is cut along kept axes before the reduced one until a shard reads all of it; where that is not enough, each range of
//! the reduced axis is a shard. A shard is small, so that it stays in the cache from its reading to its reduction, but many
//! times its state. Where the states of a box, or one index of it, take too much, the box is halved, from the outermost axis
//! on: its inner axes are cut last, as their elements lie apart in a file. It is halved further while a shard that fits has a
//! large state: of many columns the elements of one block take more than the bound, and the raw elements of a part of it are
//! as large as what was read.

use crate::arrays::output_bytes;
use crate::failure::Failure;
use crate::figures;
use cranefold::spec::Operand;
use cranefold::{Compiler, Partial, Spec};
use std::ops::Range;

/// The bytes that a shard reads, where its state is small beside them: a larger read costs less a byte, and these stay in the
/// caches until they are reduced.
const READ_BYTES: u64 = 2 << 20;

/// The bytes that a shard reads are so many times those of its state, if boxes and ranges can be cut so.
const READ_PER_STATE: u64 = 16;

/// The least bytes of neighbouring elements that boxes are made narrower to, for the time that each read takes.
const LEAST_RUN_BYTES: u64 = 16 << 10;

/// The most bytes that a shard reads, and about those of the shards that a thread takes at once.
const BATCH_BYTES: u64 = 4 << 20;

/// The shards of a box at most, for the time that each takes.
const MOST_SHARDS: u64 = 1 << 20;

/// The batches that wait for an older one, for each thread.
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
    /// The pieces that a thread takes at once.
    batch: u64,
}

impl<'s> Cut<'s> {
    /// The cut of a spec's array for a bound of memory.
    ///
    /// # Errors
    /// If there are no shards of the reduction, or no cut fits the bound: the error names the least.
    pub fn choose(spec: &'s Spec, compiler: &Compiler, memory: u64, threads: usize) -> Result<Cut<'s>, Failure> {
        let axis = compiler.partial(spec)?.axis()?;
        let mut cut = Cut { spec, axis, widths: spec.shape().to_vec(), indices: spec.shape()[axis], batch: 1 };
        let most = (memory / 2 / threads as u64).min(BATCH_BYTES);
        let kept = spec.axes_kept();
        for &outer in kept.iter().filter(|&&kept| kept < axis) {
            let all = std::mem::replace(&mut cut.widths[outer], 1);
            cut.widths[outer] = (most.min(READ_BYTES) / cut.shard_bytes().max(1)).clamp(1, all.max(1));
            if cut.widths[outer] > 1 {
                break;
            }
        }
        let mut least = u64::MAX;
        // The best cut so far, and the bytes of its states for each that is read.
        let mut best: Option<(f64, Cut<'s>)> = None;
        loop {
            let partial = compiler.partial_of(spec, &cut.first_box())?;
            cut.indices = spec.shape()[axis];
            if cut.shard_bytes() > READ_BYTES {
                // A power of two of indices begins at ends of blocks where rows are whole.
                cut.indices = 1 << cut.indices.max(1).ilog2();
            }
            let may_halve = |cut: &Cut| cut.indices > 1 && cut.spec.shape()[axis] / cut.indices < MOST_SHARDS;
            while may_halve(&cut) && (cut.shard_bytes() > most || cut.bytes(&partial, threads)? > memory) {
                cut.indices /= 2;
            }
            let bytes = cut.bytes(&partial, threads)?;
            least = least.min(bytes);
            if bytes <= memory {
                while may_halve(&cut) && cut.shard_bytes() > READ_BYTES && cut.is_halved_well(&partial)? {
                    cut.indices /= 2;
                }
                let state = partial.range_bytes(&(0..cut.indices))? as f64 / cut.shard_bytes().max(1) as f64;
                if best.as_ref().is_none_or(|(least, _)| state < *least) {
                    best = Some((state, cut.clone()));
                }
                if state * READ_PER_STATE as f64 <= 1.0 || cut.run_bytes() < 2 * LEAST_RUN_BYTES {
                    break;
                }
            }
            let Some(&widest) = kept.iter().find(|&&axis| cut.widths[axis] > 1) else { break };
            cut.widths[widest] = cut.widths[widest].div_ceil(2);
        }
        if let Some((_, mut cut)) = best {
            let partial = compiler.partial_of(spec, &cut.first_box())?;
            cut.batch = (BATCH_BYTES / cut.shard_bytes().max(1)).max(1);
            while cut.batch > 1 && cut.bytes(&partial, threads)? > memory {
                cut.batch /= 2;
            }
            return Ok(cut);
        }
        let (given, least) = (figures::size(memory), least.div_ceil(1 << 10));
        let why = format!("{given}, and the least for this spec and --threads {threads} is {least}K");
        Err(Failure::Usage(format!("--memory is too small: {why}")))
    }

    /// Returns true if the state of half a shard is small beside what it reads.
    fn is_halved_well(&self, partial: &Partial) -> Result<bool, Failure> {
        let state = partial.range_bytes(&(0..self.indices / 2))? as u64;
        Ok(state.saturating_mul(READ_PER_STATE) <= self.shard_bytes() / 2)
    }

    /// The batches that are taken before an older one is combined, at most.
    pub fn open_batches(threads: usize) -> usize {
        (WAITING + 1) * threads
    }

    /// The kept axes of the first box, which is the widest.
    pub fn first_box(&self) -> Vec<Range<u64>> {
        self.spec.axes_kept().into_iter().map(|axis| 0..self.widths[axis]).collect()
    }

    /// The ranges of an input's axes that a shard of the first box reads.
    fn first_shard(&self, input: usize) -> Vec<Range<u64>> {
        let mut chunk: Vec<Range<u64>> = self.widths.iter().map(|&width| 0..width).collect();
        chunk[self.axis] = 0..self.indices;
        within(self.spec.inputs()[input].shape(), &chunk, |axis| self.spec.input_axis(input, axis))
    }

    /// Bytes that a shard of the first box reads.
    fn shard_bytes(&self) -> u64 {
        let bytes = |(input, operand): (usize, &Operand)| {
            let extents = self.first_shard(input).into_iter().map(|range| range.end - range.start);
            extents.fold(operand.dtype().bytes(), u64::saturating_mul)
        };
        self.spec.inputs().iter().enumerate().map(bytes).fold(0, u64::saturating_add)
    }

    /// Bytes of neighbouring elements that a shard of the first box reads of its largest input.
    fn run_bytes(&self) -> u64 {
        let bytes = |(input, operand): (usize, &Operand)| {
            let (shape, within) = (operand.shape(), self.first_shard(input));
            // The dims inside the last one that is cut are whole.
            let cut = (0..shape.len()).rev().find(|&axis| within[axis] != (0..shape[axis])).unwrap_or(0);
            let inner = shape.iter().skip(cut + 1).fold(operand.dtype().bytes(), |all, extent| all * extent);
            within.get(cut).map_or(1, |range| range.end - range.start) * inner
        };
        self.spec.inputs().iter().enumerate().map(bytes).max().unwrap_or(0)
    }

    /// Bytes of memory that the first boxes take: what is read, the states that are made, that wait and that are combined
    /// with them, and the outputs, which are written from a copy.
    fn bytes(&self, partial: &Partial, threads: usize) -> Result<u64, Failure> {
        let extent = self.spec.shape()[self.axis];
        let (mut one, mut all) = (0, 0);
        for range in ranges(extent, self.indices) {
            one = one.max(partial.range_bytes(&range)? as u64);
            all = all.max(partial.range_bytes(&(0..range.end))? as u64);
        }
        // The states of a batch: one of each box in it, of as many shards as it has of the box.
        let own = if self.batch == 1 { one } else { all };
        let batch = own.saturating_mul(self.batch.div_ceil(self.shards()).saturating_add(u64::from(self.batch > 1)));
        let states = batch.saturating_mul((Cut::open_batches(threads) + 1) as u64);
        let states = states.saturating_add(all.saturating_mul(2 + 2 * threads as u64));
        let read = self.shard_bytes().saturating_mul(threads as u64);
        Ok(read.saturating_add(states).saturating_add(2 * output_bytes(self.spec)))
    }

    /// The shards of a box.
    fn shards(&self) -> u64 {
        ranges(self.spec.shape()[self.axis], self.indices).len() as u64
    }

    /// The number of all shards.
    pub fn pieces(&self) -> u64 {
        let along = |axis: usize| ranges(self.spec.shape()[axis], self.widths[axis]).len() as u64;
        self.spec.axes_kept().into_iter().map(along).product::<u64>() * self.shards()
    }

    /// The number of all batches.
    pub fn batches(&self) -> u64 {
        self.pieces().div_ceil(self.batch)
    }

    /// The shards of a batch: those of one box stand together, in order.
    pub fn batch(&self, number: u64) -> impl Iterator<Item = Piece> {
        let first = number * self.batch;
        (first..(first + self.batch).min(self.pieces())).map(|number| self.piece(number))
    }

    /// A shard by its number: box after box.
    fn piece(&self, number: u64) -> Piece {
        let spec = self.spec;
        let mut chunk: Vec<Range<u64>> = spec.shape().iter().map(|&extent| 0..extent).collect();
        let (mut of_box, in_box) = (number / self.shards(), number % self.shards());
        for axis in spec.axes_kept().into_iter().rev() {
            let mut along = ranges(spec.shape()[axis], self.widths[axis]);
            let count = along.len() as u64;
            chunk[axis] = along.nth((of_box % count) as usize).expect("a range below their number");
            of_box /= count;
        }
        let kept = spec.axes_kept().into_iter().map(|axis| chunk[axis].clone()).collect();
        let extent = spec.shape()[self.axis];
        chunk[self.axis] = ranges(extent, self.indices).nth(in_box as usize).expect("a range below their number");
        let ends_box = chunk[self.axis].end == extent;
        Piece { kept, chunk, ends_box }
    }
}

/// An axis in ranges of so many indices; one empty range of an axis of none.
fn ranges(extent: u64, width: u64) -> impl ExactSizeIterator<Item = Range<u64>> {
    let width = width.max(1);
    (0..extent.div_ceil(width).max(1) as usize).map(move |n| {
        let start = n as u64 * width;
        start..(start + width).min(extent)
    })
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
            // A block of all columns is larger than the bound: a shard is one block of some of them.
            ("sum f32[1024,2097152] axes=[0] order=logical", 256 << 20, &[1024, 16_384], 64),
            // The state is a third of the elements, however narrow.
            ("sum f32[3,20000000] axes=[0] order=logical", 256 << 20, &[3, 156_250], 3),
        ] {
            let spec: Spec = text.parse().expect("a spec");
            let cut = cut(&spec, memory).expect("a cut");
            assert_eq!((&cut.widths[..], cut.indices), (widths, indices), "{text}");
            let elems = |piece: &Piece| piece.chunk.iter().map(|range| range.end - range.start).product::<u64>();
            let pieces: Vec<Piece> = (0..cut.batches()).flat_map(|batch| cut.batch(batch)).collect();
            assert_eq!(pieces.iter().map(elems).sum::<u64>(), spec.shape().iter().product::<u64>(), "{text}");
            let boxes = pieces.chunk_by(|a, b| a.kept == b.kept);
            assert!(
                boxes.clone().all(|of| of.iter().rev().map(|piece| piece.ends_box).eq((0..of.len()).map(|n| n == 0)))
            );
            assert_eq!(boxes.count() as u64 * cut.shards(), cut.pieces(), "{text}");
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
