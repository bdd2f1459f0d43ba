//! A range of blocks or of elements: the inputs that it reads, and its code.

use super::call::write_bytes;
use super::{Maker, Partial, nests, subtrees};
use crate::error::{Error, PartialError};
use crate::kernel::{Input, Memory, Routine};
use crate::lower::Counted;
use cranefold_ir::DType;
use std::ops::Range;
use std::sync::Arc;

/// The part of an input that a range of blocks reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputSpan {
    /// The number of the input in the spec.
    pub input: usize,
    /// The elements from the first to the last that the range reads, counted from the start of the input's buffer. If
    /// the blocks of one slice lie between those of others, elements between them are not read.
    pub elems: Range<u64>,
}

/// A range of every slice, and the code that reduces it. Cheap to clone; threads may share it.
#[derive(Clone, Debug)]
pub struct Shard {
    partial: Partial,
    units: Range<u64>,
    /// The positions that the arrays of inputs hold, if they do not hold all.
    positions: Option<Range<u64>>,
    inputs: Vec<InputSpan>,
    parts: Arc<[SubtreeCode]>,
    /// The shards of each tree, if there are several.
    trees: Vec<Shard>,
}

/// The code of a subtree.
#[derive(Debug)]
pub(super) struct SubtreeCode {
    pub code: Routine,
    /// For each input of the shard, the number of elements of its span before those that the code reads.
    pub starts: Vec<u64>,
    /// The positions and indices at the start of the subtree, which the code counts on from.
    pub numbers: Vec<Input<'static>>,
}

impl SubtreeCode {
    /// Reduces the subtree to an entry. The inputs have these numbers in the spec, which are those that blocks read.
    pub fn run(
        &self,
        partial: &Partial,
        inputs: impl Iterator<Item = usize>,
        given: &[Input<'_>],
        entry: &mut [u8],
    ) -> Result<(), PartialError> {
        let inner = &partial.inner;
        inner.layout.clear_gaps(entry);
        // The blocks do not read all of the problem's inputs.
        let mut all = vec![Input::from_bytes(DType::U8, &[]); inner.shared.spec.inputs().len()];
        for ((number, input), &start) in inputs.zip(given).zip(&self.starts) {
            all[number] = input.part((start * input.dtype().bytes()) as usize, usize::MAX);
        }
        let outputs = inner.shared.spec.outputs().iter().map(|_| write_bytes(&mut []));
        let values = inner.layout.values_mut(entry).into_iter().map(write_bytes);
        let numbers = self.numbers.iter().copied().map(Memory::Read);
        Ok(self.code.run(all.into_iter().map(Memory::Read).chain(outputs).chain(values).chain(numbers))?)
    }
}

impl Partial {
    /// Compiles a range of blocks: one code for each kind of [`subtrees`] in it. Subtrees of one size share code if
    /// blocks are adjacent in memory, except those with the last block, and those whose elements are reduced with their
    /// positions. The compiler's cache keeps the codes for further shards.
    ///
    /// # Errors
    /// [`Error::NoBlocks`] if the range exceeds the blocks; else as [`compile`](crate::Compiler::compile).
    pub fn shard(&self, blocks: Range<u64>) -> Result<Shard, Error> {
        let inputs = self.inputs_of(blocks.clone())?;
        let part = |subtree| {
            let Maker { problem, name, .. } = &self.inner.shared.maker;
            let (nest, starts) = nests::of_blocks(problem, name, subtree, Counted::default());
            let before = |span: &InputSpan| match nest.buffers[span.input].len {
                0 => 0,
                _ => starts[span.input] - span.elems.start,
            };
            let starts = inputs.iter().map(before).collect();
            let code = self.inner.shared.maker.code(nest, &self.inner.shared.maker.schedule)?;
            Ok(SubtreeCode { code, starts, numbers: vec![] })
        };
        let parts = subtrees(blocks.clone()).map(part).collect::<Result<_, Error>>()?;
        let units = self.inner.layout.units().of_blocks(&blocks);
        Ok(Shard { partial: self.clone(), units, positions: None, inputs, parts, trees: vec![] })
    }

    /// Compiles the shard of a chunk of the array, which is given as a range of each axis: any range of the first reduced
    /// axis of extent above 1 ([`axis`](Partial::axis)), all of the other reduced axes, and along kept axes the ranges that
    /// these partial results are of. The inputs of the shard are row-major arrays of the chunk; one that is broadcast
    /// along an axis has extent 1 there, or lacks it.
    ///
    /// ```
    /// use cranefold::{Compiler, Input, Output, Spec};
    ///
    /// let spec: Spec = "mean f32[1000000] order=logical".parse()?;
    /// let compiler = Compiler::host()?;
    /// let partial = compiler.partial(&spec)?;
    /// let x: Vec<f32> = (0..1_000_000).map(|i| (i % 777) as f32 * 0.1).collect();
    ///
    /// // Each of these may be in another process. Their ends are no ends of blocks.
    /// let mut states = vec![];
    /// for (start, end) in [(0, 1), (1, 333_333), (333_333, 1_000_000)] {
    ///     let chunk = &x[start..end];
    ///     let mut state = vec![0; partial.state_bytes()];
    ///     partial.shard_of(&[start as u64..end as u64])?.partial(&[Input::from(chunk)], &mut state)?;
    ///     states.push(state);
    /// }
    ///
    /// let mut all = states.remove(2);
    /// partial.combine(&states[1], &mut all, 1)?;
    /// partial.combine(&states[0], &mut all, 1)?;
    /// let (mut mean, mut whole) = ([0.0f32], [0.0f32]);
    /// partial.finish(&all, &[], &mut [Output::from(&mut mean)], 1)?;
    /// compiler.compile(&spec)?.run_one(&x, &mut whole)?;
    /// assert_eq!(mean[0].to_bits(), whole[0].to_bits());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotInShards`] unless the spec has `order=logical` and operands without layouts; [`Error::NoShard`] if there is
    /// not a range for each axis, or one of them is not as above; else as [`compile`](crate::Compiler::compile).
    pub fn shard_of(&self, chunk: &[Range<u64>]) -> Result<Shard, Error> {
        let inner = &self.inner;
        let along = self.along()?;
        let range = self.range_in(chunk)?;
        let (units, positions) = (along.units(&range), along.positions(&range));
        let trees = inner.trees.iter().map(|tree| tree.shard_of(chunk)).collect::<Result<Vec<Shard>, Error>>()?;
        if !trees.is_empty() {
            let mut inputs: Vec<InputSpan> = trees.iter().flat_map(|tree| &tree.inputs).cloned().collect();
            inputs.sort_unstable_by_key(|span| span.input);
            inputs.dedup();
            let (positions, parts) = (Some(positions), [].into());
            return Ok(Shard { partial: self.clone(), units, positions, inputs, parts, trees });
        }
        let span =
            |&input: &usize| InputSpan { input, elems: 0..along.elems(&inner.shared.maker.problem, input, &positions) };
        let inputs: Vec<InputSpan> = inner.shared.reads.iter().map(span).collect();
        let split = inner.layout.units().split(&units);
        let parts = subtrees(split.blocks).map(|subtree| self.code_on(&positions, &subtree));
        let parts = parts.collect::<Result<_, Error>>()?;
        Ok(Shard { partial: self.clone(), units, positions: Some(positions), inputs, parts, trees })
    }

    /// The range of the cut axis in a chunk.
    fn range_in(&self, chunk: &[Range<u64>]) -> Result<Range<u64>, Error> {
        let along = self.along()?;
        let (cut, spec) = (along.axis, self.spec());
        if chunk.len() != spec.rank() {
            let why = format!("{} ranges are given for {} axes", chunk.len(), spec.rank());
            return Err(Error::NotInShards { why });
        }
        let mut kept = self.inner.kept.iter();
        for (axis, given) in chunk.iter().enumerate() {
            let refused = |why| Err(Error::NoShard { axis, given: given.clone(), extent: spec.shape()[axis], why });
            if !spec.reduced()[axis] {
                let own = kept.next().expect("a range of each kept axis");
                if given != own {
                    let why = format!("these partial results are of {own:?}, and others of other ranges");
                    return refused(why);
                }
            } else if axis != cut && *given != (0..spec.shape()[axis]) {
                let why = format!(
                    "of reduced axes only the first of extent above 1, axis {cut}, is cut: bring the chunks of the others \
                     together, or reduce axis by axis"
                );
                return refused(why);
            } else if axis == cut {
                along.check(given)?;
            }
        }
        Ok(chunk[cut].clone())
    }

    /// The code of one block whose elements are raw.
    pub(super) fn block_code(&self, block: u64) -> Result<SubtreeCode, Error> {
        let block = block..block + 1;
        self.code_on(&self.inner.layout.units().of_blocks(&block), &block)
    }

    /// The elements that a range of blocks reads of each input; nothing is compiled. Inputs that only the finish reads
    /// are not among them.
    ///
    /// # Errors
    /// [`Error::NoBlocks`] if the range exceeds the blocks.
    pub fn inputs_of(&self, blocks: Range<u64>) -> Result<Vec<InputSpan>, Error> {
        self.check(&blocks)?;
        Ok(self.spans(blocks))
    }

    fn spans(&self, blocks: Range<u64>) -> Vec<InputSpan> {
        let problem = &self.inner.shared.maker.problem;
        let nest = |blocks| nests::of_blocks(problem, &self.inner.shared.maker.name, blocks, Counted::default());
        let read = (!blocks.is_empty()).then(|| nest(blocks));
        let span = |&input: &usize| {
            let read = read.as_ref().map(|(nest, starts)| starts[input]..starts[input] + nest.buffers[input].len);
            InputSpan { input, elems: read.unwrap_or(0..0) }
        };
        self.inner.shared.reads.iter().map(span).collect()
    }

    /// Bytes of all inputs that a range of blocks reads.
    pub(super) fn bytes_of(&self, blocks: Range<u64>) -> u64 {
        let inputs = self.spec().inputs();
        let bytes = |span: &InputSpan| (span.elems.end - span.elems.start) * inputs[span.input].dtype().bytes();
        self.spans(blocks).iter().map(bytes).fold(0, u64::saturating_add)
    }
}

impl Shard {
    /// The whole blocks of the range; none if reductions have several trees.
    pub fn blocks(&self) -> Range<u64> {
        self.partial.inner.layout.blocks_in(&self.units)
    }

    /// The nests of the shard's subtrees, before the first and after the last pass: text that reads back.
    ///
    /// # Errors
    /// [`Error::Internal`] if a nest cannot be made again: a bug of ours.
    pub fn dump(&self) -> Result<String, Error> {
        let inner = &self.partial.inner;
        let one = |subtree: Range<u64>| {
            let what = format!("blocks {}..{}", subtree.start, subtree.end);
            let Maker { problem, name, .. } = &inner.shared.maker;
            let (naive, _) = match &self.positions {
                Some(positions) => self.partial.nest_on(positions, &subtree)?,
                None => nests::of_blocks(problem, name, subtree, Counted::default()),
            };
            inner.shared.maker.dump(&what, naive, &inner.shared.maker.schedule)
        };
        self.trees.iter().map(Shard::dump).chain(subtrees(self.blocks()).map(one)).collect()
    }

    /// The inputs of [`partial`](Shard::partial): the part of each input that blocks read, or the elements of each array of
    /// a chunk.
    pub fn inputs(&self) -> &[InputSpan] {
        &self.inputs
    }

    /// Reduces the range, and writes its state.
    ///
    /// Each input in `inputs` is the part that [`inputs`](Shard::inputs) gives, and nothing else.
    ///
    /// # Errors
    /// [`PartialError`] if an input has another type or length, or the state other bytes than
    /// [`state_bytes`](Partial::state_bytes): nothing is written then.
    pub fn partial(&self, inputs: &[Input<'_>], state: &mut [u8]) -> Result<(), PartialError> {
        let inner = &self.partial.inner;
        let operands = inner.shared.spec.inputs();
        let expected = self.inputs.iter().map(|s| (operands[s.input].dtype(), s.elems.end - s.elems.start));
        super::call::check(&inner.shared.spec, "input", expected, inputs.iter().map(|i| (i.dtype(), i.len_bytes())))?;
        self.partial.check_length(state, 1)?;
        for (tree, (_, _, start)) in self.trees.iter().zip(self.partial.places(&self.units)) {
            let given = |span: &InputSpan| self.inputs.iter().position(|all| all.input == span.input);
            let own = tree.inputs.iter().map(|span| inputs[given(span).expect("an input of a tree")]);
            let own: Vec<Input<'_>> = own.collect();
            tree.partial(&own, &mut state[start..start + tree.partial.state_bytes()])?;
        }
        for (number, part) in self.parts.iter().enumerate() {
            let entry = &mut state[inner.layout.entry(number)];
            part.run(&self.partial, self.inputs.iter().map(|span| span.input), inputs, entry)?;
        }
        if let Some(positions) = self.positions.as_ref().filter(|_| self.trees.is_empty()) {
            self.keep_raw(positions, inputs, state);
        }
        inner.layout.write_header(state, &self.units);
        Ok(())
    }

    /// Stores the elements of the blocks that the range begins or ends inside.
    fn keep_raw(&self, positions: &Range<u64>, inputs: &[Input<'_>], state: &mut [u8]) {
        let layout = &self.partial.inner.layout;
        let split = layout.units().split(&self.units);
        for (fragment, place) in [split.head, split.tail].iter().zip(layout.raw_places(&self.units)) {
            let into = &mut state[place];
            if fragment.is_empty() {
                continue;
            }
            let mut written = 0;
            for ((raw, bytes), input) in layout.raw(fragment.end - fragment.start).zip(inputs) {
                into[written..bytes.start].fill(0);
                written = bytes.end;
                let into = &mut into[bytes];
                for (to, from) in raw.runs(fragment, fragment).zip(raw.runs(fragment, positions)) {
                    input.copy_to(from.start, &mut into[to]);
                }
            }
            into[written..].fill(0);
        }
    }
}
