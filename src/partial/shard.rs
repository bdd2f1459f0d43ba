//! A range of blocks: the inputs that it reads, and its code.

use super::call::write_bytes;
use super::{Partial, nests, subtrees};
use crate::error::{Error, PartialError};
use crate::kernel::{Input, Memory, Routine};
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

/// A range of blocks of every slice, and the code that reduces it. Cheap to clone; threads may share it.
#[derive(Clone, Debug)]
pub struct Shard {
    partial: Partial,
    blocks: Range<u64>,
    inputs: Vec<InputSpan>,
    parts: Arc<[SubtreeCode]>,
}

/// The code of a subtree.
#[derive(Debug)]
struct SubtreeCode {
    code: Routine,
    /// For each input of the shard, the number of elements of its span before those that the code reads.
    starts: Vec<u64>,
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
            let (nest, starts) = nests::of_blocks(&self.inner.maker.problem, &self.inner.maker.name, subtree);
            let before = |span: &InputSpan| match nest.buffers[span.input].len {
                0 => 0,
                _ => starts[span.input] - span.elems.start,
            };
            let starts = inputs.iter().map(before).collect();
            Ok(SubtreeCode { code: self.inner.maker.code(nest, &self.inner.maker.schedule)?, starts })
        };
        let parts = subtrees(blocks.clone()).map(part).collect::<Result<_, Error>>()?;
        Ok(Shard { partial: self.clone(), blocks, inputs, parts })
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
        let problem = &self.inner.maker.problem;
        let read = (!blocks.is_empty()).then(|| nests::of_blocks(problem, &self.inner.maker.name, blocks));
        let span = |input: usize| {
            let read = read.as_ref().map(|(nest, starts)| starts[input]..starts[input] + nest.buffers[input].len);
            InputSpan { input, elems: read.unwrap_or(0..0) }
        };
        problem.reduced_inputs().into_iter().map(span).collect()
    }

    /// Bytes of all inputs that a range of blocks reads.
    pub(super) fn bytes_of(&self, blocks: Range<u64>) -> u64 {
        let inputs = self.spec().inputs();
        let bytes = |span: &InputSpan| (span.elems.end - span.elems.start) * inputs[span.input].dtype().bytes();
        self.spans(blocks).iter().map(bytes).fold(0, u64::saturating_add)
    }
}

impl Shard {
    /// The blocks.
    pub fn blocks(&self) -> Range<u64> {
        self.blocks.clone()
    }

    /// The nests of the shard's subtrees, before the first and after the last pass: text that reads back.
    ///
    /// # Errors
    /// [`Error::Internal`] if a nest cannot be made again: a bug of ours.
    pub fn dump(&self) -> Result<String, Error> {
        let inner = &self.partial.inner;
        let one = |subtree: Range<u64>| {
            let what = format!("blocks {}..{}", subtree.start, subtree.end);
            let (naive, _) = nests::of_blocks(&inner.maker.problem, &inner.maker.name, subtree);
            inner.maker.dump(&what, naive, &inner.maker.schedule)
        };
        subtrees(self.blocks()).map(one).collect()
    }

    /// The inputs of [`partial`](Shard::partial): the part of each input that the blocks read.
    pub fn inputs(&self) -> &[InputSpan] {
        &self.inputs
    }

    /// Reduces the blocks, and writes their state.
    ///
    /// Each input in `inputs` is the part that [`inputs`](Shard::inputs) gives, and nothing else.
    ///
    /// # Errors
    /// [`PartialError`] if an input has another type or length, or the state other bytes than
    /// [`state_bytes`](Partial::state_bytes): nothing is written then.
    pub fn partial(&self, inputs: &[Input<'_>], state: &mut [u8]) -> Result<(), PartialError> {
        let inner = &self.partial.inner;
        let operands = inner.spec.inputs();
        let expected = self.inputs.iter().map(|s| (operands[s.input].dtype(), s.elems.end - s.elems.start));
        super::call::check(&inner.spec, "input", expected, inputs.iter().map(|i| (i.dtype(), i.len_bytes())))?;
        self.partial.check_length(state, 1)?;
        for (number, part) in self.parts.iter().enumerate() {
            let entry = &mut state[inner.layout.entry(number)];
            inner.layout.clear_gaps(entry);
            // The blocks do not read all of the problem's inputs.
            let mut given = vec![Input::from_bytes(DType::U8, &[]); operands.len()];
            for ((span, input), &start) in self.inputs.iter().zip(inputs).zip(&part.starts) {
                given[span.input] = input.part((start * input.dtype().bytes()) as usize, usize::MAX);
            }
            let outputs = inner.spec.outputs().iter().map(|_| write_bytes(&mut []));
            let values = inner.layout.values_mut(entry).into_iter().map(write_bytes);
            part.code.run(given.into_iter().map(Memory::Read).chain(outputs).chain(values))?;
        }
        inner.layout.write_header(state, &self.blocks);
        Ok(())
    }
}
