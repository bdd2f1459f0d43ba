//! The operations on states: identity, combine and finish.

use super::nests::Keep;
use super::ranges::are_halves;
use super::{Partial, subtrees};
use crate::error::{CallError, CalledOperand, Error, PartialError};
use crate::kernel::{Input, Memory, Output};
use crate::keyed::title;
use crate::spec::Spec;
use cranefold_ir::DType;
use std::borrow::Cow;
use std::ops::Range;

impl Partial {
    /// Writes `states` states of no blocks, one after the other.
    ///
    /// # Errors
    /// [`PartialError::Length`] if the length is not that of `states` states.
    pub fn identity(&self, into: &mut [u8], states: usize) -> Result<(), PartialError> {
        self.check_length(into, states)?;
        for state in into.chunks_exact_mut(self.state_bytes()) {
            self.inner.layout.write_header(state, &(0..0));
            for (tree, units, start) in self.places(&(0..0)) {
                tree.inner.layout.write_header(&mut state[start..], &units);
            }
        }
        Ok(())
    }

    /// The state of each tree in a state of these units: the partial results, their units, and the first byte. None if there
    /// is one tree.
    pub(super) fn places(&self, units: &Range<u64>) -> impl Iterator<Item = (&Partial, Range<u64>, usize)> {
        let mut end = self.inner.layout.header_bytes;
        self.inner.trees.iter().map(move |tree| {
            let own = tree.inner.shared.along.as_ref().map_or(0..0, |along| along.of(units));
            let start = end;
            end += tree.used(&own);
            (tree, own, start)
        })
    }

    /// The units of a state, whose trees have the same; `number` is its own in errors.
    fn checked(&self, state: &[u8], number: usize) -> Result<Range<u64>, PartialError> {
        let units = self.inner.layout.read_header(state, number)?;
        for (tree, own, start) in self.places(&units) {
            let (layout, given) = (&tree.inner.layout, tree.inner.layout.read_header(&state[start..], number)?);
            if given != own {
                let (first, count) = (given.start, given.end - given.start);
                return Err(PartialError::Blocks {
                    state: number,
                    first,
                    count,
                    blocks: layout.units,
                    unit: layout.unit(),
                });
            }
        }
        Ok(units)
    }

    /// Combines each of `states` states with the state at the same place of `into`, and stores the result there. The
    /// ranges of the two must be adjacent, in either order, or one of them empty. The elements of a block that the two
    /// complete are reduced, by code that is compiled for it or from the compiler's cache.
    ///
    /// # Errors
    /// [`PartialError`] if some bytes are no states of this problem, or a pair is not adjacent: nothing is written
    /// then.
    pub fn combine(&self, from: &[u8], into: &mut [u8], states: usize) -> Result<(), PartialError> {
        self.check_length(from, states)?;
        self.combine_states(from, into, states)
    }

    /// Combines one state as [`combine`](Partial::combine) does, given the bytes that it uses
    /// ([`used_bytes`](Partial::used_bytes)) and perhaps some after them, as it was sent.
    ///
    /// ```
    /// use cranefold::{Compiler, Input, Spec};
    ///
    /// let partial = Compiler::host()?.partial(&"sum f32[9] order=logical".parse::<Spec>()?)?;
    /// let (mut state, mut all) = (vec![0; partial.state_bytes()], vec![0; partial.state_bytes()]);
    /// partial.identity(&mut all, 1)?;
    /// partial.shard_of(&[0..4])?.partial(&[Input::from(&[1.0f32; 4])], &mut state)?;
    /// state.truncate(partial.used_bytes(&state)?);
    /// partial.combine_used(&state, &mut all)?;
    /// assert_eq!(partial.range_of(&all)?, 0..4);
    /// # Ok::<(), cranefold::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`combine`](Partial::combine); [`PartialError::Length`] if `from` has fewer bytes than it uses, or more than
    /// a state.
    pub fn combine_used(&self, from: &[u8], into: &mut [u8]) -> Result<(), PartialError> {
        let used = self.used_bytes(from)?;
        if from.len() < used || from.len() > self.state_bytes() {
            return Err(PartialError::Length { given: from.len(), states: 1, expected: used });
        }
        self.combine_states(from, into, 1)
    }

    /// Combines states; the last of `from` may end after the bytes that it uses.
    fn combine_states(&self, from: &[u8], into: &mut [u8], states: usize) -> Result<(), PartialError> {
        let (bytes, layout) = (self.state_bytes(), &self.inner.layout);
        self.check_length(into, states)?;
        let pair = |state: usize, into: &[u8]| -> Result<_, PartialError> {
            let at = state * bytes;
            Ok((self.checked(&from[at..], state)?, self.checked(&into[at..], state)?))
        };
        for state in 0..states {
            let (one, other) = pair(state, into)?;
            let follow = one.end == other.start || other.end == one.start;
            if !one.is_empty() && !other.is_empty() && !follow {
                return Err(PartialError::Apart { state, one, other, unit: layout.unit() });
            }
        }
        for state in 0..states {
            let (one, other) = pair(state, into)?;
            let at = state * bytes..(state + 1) * bytes;
            self.combine_one(&from[at.start..], &one, &mut into[at], &other)?;
        }
        Ok(())
    }

    /// Combines two adjacent states, of these units.
    fn combine_one(
        &self,
        from: &[u8],
        from_units: &Range<u64>,
        into: &mut [u8],
        into_units: &Range<u64>,
    ) -> Result<(), PartialError> {
        let layout = &self.inner.layout;
        if from_units.is_empty() {
            return Ok(());
        }
        if into_units.is_empty() {
            let used = self.used(from_units);
            into[..used].copy_from_slice(&from[..used]);
            return Ok(());
        }
        if self.inner.trees.is_empty() {
            self.combine_tree(from, from_units, into, into_units)?;
        } else {
            self.combine_trees(from, from_units, into, into_units)?;
        }
        layout.write_header(into, &both(from_units, into_units));
        Ok(())
    }

    /// Combines what follows the headers of two adjacent states of one tree, neither of them empty.
    fn combine_tree(
        &self,
        from: &[u8],
        from_units: &Range<u64>,
        into: &mut [u8],
        into_units: &Range<u64>,
    ) -> Result<(), PartialError> {
        let (layout, units) = (&self.inner.layout, self.inner.layout.units());
        let (of_from, mut blocks) = (units.split(from_units).blocks, units.split(into_units).blocks);
        // What is allocated or compiled comes before anything is written.
        let Joined { block, raw } = self.join_raw((from, from_units), (into, into_units))?;
        if let Some(elements) = block {
            let block = units.block_of(&elements.units);
            let made = self.reduce_block(block, &elements)?;
            self.combine_entries(&made, &(block..block + 1), into, &mut blocks)?;
        }
        self.combine_entries(from, &of_from, into, &mut blocks)?;
        let joined = both(from_units, into_units);
        let split = units.split(&joined);
        debug_assert_eq!(blocks, split.blocks);
        let given = self.fragments(from, from_units);
        for (range, place) in [split.head, split.tail].iter().zip(layout.raw_places(&joined)) {
            if let Some(fragment) = raw.iter().chain(&given).find(|fragment| fragment.units == *range) {
                into[place].copy_from_slice(&fragment.bytes);
            }
        }
        Ok(())
    }

    /// Combines what follows the headers of two adjacent states of several trees. Nothing is written before the states of
    /// all trees are made.
    fn combine_trees(
        &self,
        from: &[u8],
        from_units: &Range<u64>,
        into: &mut [u8],
        into_units: &Range<u64>,
    ) -> Result<(), PartialError> {
        let mut made = vec![];
        for ((tree, own, start), (_, into_own, into_start)) in self.places(from_units).zip(self.places(into_units)) {
            let mut state = room(tree.state_bytes())?;
            state.extend_from_slice(&into[into_start..into_start + tree.used(&into_own)]);
            state.resize(tree.state_bytes(), 0);
            tree.combine_one(&from[start..], &own, &mut state, &into_own)?;
            made.push(state);
        }
        for ((tree, own, start), state) in self.places(&both(from_units, into_units)).zip(made) {
            let used = tree.used(&own);
            into[start..start + used].copy_from_slice(&state[..used]);
        }
        Ok(())
    }

    /// The raw elements of a state: of its head and of its tail, as far as it has them.
    fn fragments<'s>(&self, state: &'s [u8], units: &Range<u64>) -> Vec<Fragment<'s>> {
        let layout = &self.inner.layout;
        let split = layout.units().split(units);
        let parts = [split.head, split.tail].into_iter().zip(layout.raw_places(units));
        let some = parts.filter(|(units, _)| layout.block_units > 1 && !units.is_empty());
        some.map(|(units, place)| Fragment { units, bytes: Cow::Borrowed(&state[place]) }).collect()
    }

    /// Joins the raw elements of two neighbours.
    fn join_raw(
        &self,
        (from, from_units): (&[u8], &Range<u64>),
        (into, into_units): (&[u8], &Range<u64>),
    ) -> Result<Joined, PartialError> {
        let units = self.inner.layout.units();
        let (given, mut kept) = (self.fragments(from, from_units), self.fragments(into, into_units));
        let at = if into_units.start < from_units.start { kept.len() } else { 0 };
        let is_given = |fragment: &Fragment<'_>| given.iter().any(|one| one.units == fragment.units);
        kept.splice(at..at, given.iter().cloned());
        let block = |fragment: &Fragment<'_>| units.block_of(&fragment.units);
        let mut made = Joined { block: None, raw: vec![] };
        if let Some(at) = kept.windows(2).position(|pair| block(&pair[0]) == block(&pair[1])) {
            let newer = kept.remove(at + 1);
            let joined = self.join(&kept.remove(at), &newer)?;
            if units.is_block(&joined.units) { made.block = Some(joined) } else { made.raw.push(joined) }
        }
        for fragment in kept.iter().filter(|fragment| !is_given(fragment)) {
            let mut bytes = room(fragment.bytes.len())?;
            bytes.extend_from_slice(&fragment.bytes);
            made.raw.push(Fragment { units: fragment.units.clone(), bytes: Cow::Owned(bytes) });
        }
        Ok(made)
    }

    /// Joins two neighbours of one block.
    fn join(&self, older: &Fragment<'_>, newer: &Fragment<'_>) -> Result<Fragment<'static>, PartialError> {
        let layout = &self.inner.layout;
        let units = older.units.start..newer.units.end;
        let all = layout.raw_bytes(&units);
        let mut bytes = room(all)?;
        let raw = |units: &Range<u64>| layout.raw(units.end - units.start);
        for (((input, first), (_, second)), (_, place)) in raw(&older.units).zip(raw(&newer.units)).zip(raw(&units)) {
            bytes.resize(place.start, 0);
            let runs = |part: &Fragment<'_>| input.runs(&part.units, &part.units);
            for (one, other) in runs(older).zip(runs(newer)) {
                bytes.extend_from_slice(&older.bytes[first.clone()][one]);
                if input.moves {
                    bytes.extend_from_slice(&newer.bytes[second.clone()][other]);
                }
            }
        }
        bytes.resize(all, 0);
        Ok(Fragment { units, bytes: Cow::Owned(bytes) })
    }

    /// The bytes of a state with the entry of one block, made of its elements; they have no header.
    fn reduce_block(&self, block: u64, elements: &Fragment<'_>) -> Result<Vec<u8>, PartialError> {
        let inner = &self.inner;
        let code = self.block_code(block).map_err(|error| PartialError::NoCode(error.to_string()))?;
        let mut made = room(inner.layout.entry(1).start)?;
        made.resize(inner.layout.entry(1).start, 0);
        let (mut numbers, mut given) = (vec![], vec![]);
        for (raw, bytes) in inner.layout.raw(elements.units.end - elements.units.start) {
            numbers.push(raw.input);
            given.push(Input::from_bytes(inner.shared.spec.inputs()[raw.input].dtype(), &elements.bytes[bytes]));
        }
        code.run(self, numbers.into_iter(), &given, &mut made[inner.layout.entry(0)])?;
        Ok(made)
    }

    /// Combines the entries of two states of adjacent blocks.
    fn combine_entries(
        &self,
        from: &[u8],
        from_blocks: &Range<u64>,
        into: &mut [u8],
        blocks: &mut Range<u64>,
    ) -> Result<(), PartialError> {
        let layout = &self.inner.layout;
        let into_blocks = blocks.clone();
        if from_blocks.is_empty() {
            return Ok(());
        }
        if into_blocks.is_empty() {
            let used = layout.entry(0).start..layout.entry(entries(from_blocks).len()).start;
            into[used.clone()].copy_from_slice(&from[used]);
            *blocks = from_blocks.clone();
            return Ok(());
        }
        let (given, mut kept) = (entries(from_blocks), entries(&into_blocks));
        if into_blocks.end == from_blocks.start {
            let mut taken = 0;
            loop {
                let last = kept.len() - 1;
                if last > 0 && are_halves(&kept[last - 1], &kept[last]) {
                    let (older, newer) = into.split_at_mut(layout.entry(last).start);
                    self.merge(&newer[..layout.entry_bytes], &mut older[layout.entry(last - 1)], Keep::Older)?;
                    kept.pop();
                } else if given.get(taken).is_some_and(|next| are_halves(&kept[last], next)) {
                    self.merge(&from[layout.entry(taken)], &mut into[layout.entry(last)], Keep::Older)?;
                    taken += 1;
                } else {
                    break;
                }
                let last = kept.last_mut().expect("one that is merged with");
                last.end += last.end - last.start;
            }
            let rest = layout.entry(taken).start..layout.entry(given.len()).start;
            let at = layout.entry(kept.len()).start;
            into[at..at + rest.len()].copy_from_slice(&from[rest]);
            *blocks = into_blocks.start..from_blocks.end;
        } else {
            // The first entry left of `kept`, and the number of entries left of `given`.
            let (mut first, mut left) = (0, given.len());
            loop {
                let last = left.checked_sub(1);
                if first + 1 < kept.len() && are_halves(&kept[first], &kept[first + 1]) {
                    let (older, newer) = into.split_at_mut(layout.entry(first + 1).start);
                    self.merge(&older[layout.entry(first)], &mut newer[..layout.entry_bytes], Keep::Newer)?;
                    kept[first + 1].start = kept[first].start;
                    first += 1;
                } else if let Some(last) = last.filter(|&last| are_halves(&given[last], &kept[first])) {
                    self.merge(&from[layout.entry(last)], &mut into[layout.entry(first)], Keep::Newer)?;
                    kept[first].start = given[last].start;
                    left = last;
                } else {
                    break;
                }
            }
            let stay = layout.entry(first).start..layout.entry(kept.len()).start;
            into.copy_within(stay, layout.entry(left).start);
            let front = layout.entry(0).start..layout.entry(left).start;
            into[front.clone()].copy_from_slice(&from[front]);
            *blocks = from_blocks.start..into_blocks.end;
        }
        Ok(())
    }

    /// Merges the entry `read` into the entry `kept`.
    fn merge(&self, read: &[u8], kept: &mut [u8], keep: Keep) -> Result<(), PartialError> {
        let inner = &self.inner;
        let code = if keep == Keep::Older { &inner.shared.merge_into_older } else { &inner.shared.merge_into_newer };
        let read = inner.layout.values_of(read).map(read_bytes);
        let kept = inner.layout.values_mut(kept).into_iter().map(write_bytes);
        Ok(code.run(read.chain(kept))?)
    }

    /// Writes the outputs of `states` states, each of all blocks.
    ///
    /// Inputs are those of [`finish_inputs`](Partial::finish_inputs), in that order. Every input and output holds
    /// `states` operands of the spec, one after the other.
    ///
    /// # Errors
    /// [`PartialError`] if some bytes are no states of this problem, a state has not all blocks
    /// ([`Unfinished`](PartialError::Unfinished)), an input or output has another type or length, or there is no memory
    /// for an entry where several are merged: nothing is written then.
    pub fn finish(
        &self,
        from: &[u8],
        inputs: &[Input<'_>],
        outputs: &mut [Output<'_>],
        states: usize,
    ) -> Result<(), PartialError> {
        let (inner, bytes) = (&self.inner, self.state_bytes());
        self.check_length(from, states)?;
        let of = |o: &crate::spec::Operand| (o.dtype(), o.span_elems().saturating_mul(states as u64));
        let operands = inner.shared.finish_inputs.iter().map(|&i| of(&inner.shared.spec.inputs()[i]));
        check(&inner.shared.spec, "input", operands, inputs.iter().map(|i| (i.dtype(), i.len_bytes())))?;
        let operands = inner.shared.spec.outputs().iter().map(of);
        check(&inner.shared.spec, "output", operands, outputs.iter().map(|o| (o.dtype(), o.len_bytes())))?;
        for state in 0..states {
            let given = self.checked(&from[state * bytes..], state)?;
            if given != (0..inner.layout.units) {
                let (blocks, unit) = (inner.layout.units, inner.layout.unit());
                return Err(PartialError::Unfinished { state, given, blocks, unit });
            }
        }
        let places: Vec<(&Partial, usize)> = match inner.trees.is_empty() {
            true => vec![(self, 0)],
            false => self.places(&(0..inner.layout.units)).map(|(tree, _, start)| (tree, start)).collect(),
        };
        let mut merged = places.iter().map(|(tree, _)| tree.room_to_merge()).collect::<Result<Vec<_>, _>>()?;
        for state in 0..states {
            let mut all = vec![];
            for (&(tree, start), merged) in places.iter().zip(&mut merged) {
                all.push((tree, tree.merged(&from[state * bytes + start..], merged)?));
            }
            self.finish_one(&all, inputs, outputs, state)?;
        }
        Ok(())
    }

    /// Memory for an entry, if that of all blocks is merged from several.
    fn room_to_merge(&self) -> Result<Vec<u8>, CallError> {
        let is_merged = entries(&(0..self.blocks())).len() > 1;
        room(if is_merged { self.inner.layout.entry_bytes } else { 0 })
    }

    /// The entry of all blocks, of a state that has them: its only one, or merged here.
    fn merged<'s>(&self, state: &'s [u8], merged: &'s mut Vec<u8>) -> Result<&'s [u8], PartialError> {
        let entry = |number| &state[self.inner.layout.entry(number)];
        let count = entries(&(0..self.blocks())).len();
        if count <= 1 {
            return Ok(if count == 1 { entry(0) } else { &[] });
        }
        // The entries that are left merge from the newest to the oldest.
        merged.clear();
        merged.extend_from_slice(entry(count - 1));
        for older in (0..count - 1).rev() {
            self.merge(entry(older), merged, Keep::Newer)?;
        }
        Ok(merged)
    }

    /// Finishes the state with the number `state`: the entry of all blocks of each tree.
    fn finish_one(
        &self,
        all: &[(&Partial, &[u8])],
        inputs: &[Input<'_>],
        outputs: &mut [Output<'_>],
        state: usize,
    ) -> Result<(), PartialError> {
        let inner = &self.inner;
        let operands = inner.shared.spec.inputs();
        // The finish does not read all of the problem's inputs.
        let mut given = vec![Input::from_bytes(DType::U8, &[]); operands.len()];
        for (&number, input) in inner.shared.finish_inputs.iter().zip(inputs) {
            let bytes = operands[number].span_bytes() as usize;
            given[number] = input.part(state * bytes, bytes);
        }
        let operands = inner.shared.spec.outputs().iter().zip(outputs);
        let places = operands.map(|(o, output)| {
            let bytes = o.span_bytes() as usize;
            Memory::Write(output.part(state * bytes, bytes))
        });
        let values: Vec<Vec<&[u8]>> =
            all.iter().map(|(tree, entry)| tree.inner.layout.values_of(entry).collect()).collect();
        let values = inner.shared.finish_values.iter().map(|&(tree, value)| read_bytes(values[tree][value]));
        Ok(inner.shared.finish.run(given.into_iter().map(Memory::Read).chain(places).chain(values))?)
    }

    /// The range of the axis of shards ([`axis`](Partial::axis)) that a state has. Its header is enough.
    ///
    /// # Errors
    /// [`PartialError`] if the bytes are no state of this problem.
    pub fn range_of(&self, state: &[u8]) -> Result<Range<u64>, PartialError> {
        let units = self.units_of(state)?;
        Ok(self.inner.shared.along.as_ref().map_or(units.clone(), |along| along.indices(&units)))
    }

    /// The whole blocks of a state's range; none if reductions have several trees. Its header is enough.
    ///
    /// # Errors
    /// [`PartialError`] if the bytes are no state of this problem.
    pub fn blocks_of(&self, state: &[u8]) -> Result<Range<u64>, PartialError> {
        Ok(self.inner.layout.blocks_in(&self.units_of(state)?))
    }

    fn units_of(&self, state: &[u8]) -> Result<Range<u64>, PartialError> {
        let expected = self.inner.layout.header_bytes;
        if state.len() < expected {
            return Err(PartialError::Length { given: state.len(), states: 1, expected });
        }
        self.inner.layout.read_header(state, 0)
    }

    /// The used bytes of a state, from its header: a message needs no more, as the bytes after them are not read.
    ///
    /// # Errors
    /// [`PartialError`] if the bytes are no state of this problem.
    pub fn used_bytes(&self, state: &[u8]) -> Result<usize, PartialError> {
        Ok(self.used(&self.units_of(state)?))
    }

    /// The used bytes of the state of a range of the axis of shards ([`axis`](Partial::axis)), raw ends included. A message
    /// of this size holds it.
    ///
    /// ```
    /// use cranefold::{Compiler, Spec};
    ///
    /// let spec: Spec = "sum f32[1000000] order=logical".parse()?;
    /// let partial = Compiler::host()?.partial(&spec)?;
    /// // A header and 64 lanes; a range that ends in the next block has its elements too.
    /// assert_eq!(partial.range_bytes(&(0..4096))?, 64 + 256);
    /// assert_eq!(partial.range_bytes(&(0..4196))?, 64 + 256 + 448);
    /// # Ok::<(), cranefold::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotInShards`] if there are no shards of elements, [`Error::NoShard`] if the range is not within the axis.
    pub fn range_bytes(&self, range: &Range<u64>) -> Result<usize, Error> {
        let along = self.along()?;
        along.check(range)?;
        Ok(self.used(&along.units(range)))
    }

    fn used(&self, units: &Range<u64>) -> usize {
        match self.places(units).last() {
            Some((tree, own, start)) => start + tree.used(&own),
            None => self.inner.layout.raw_places(units)[1].end,
        }
    }

    pub(super) fn check_length(&self, given: &[u8], states: usize) -> Result<(), PartialError> {
        let expected = self.state_bytes();
        match expected.checked_mul(states) == Some(given.len()) {
            true => Ok(()),
            false => Err(PartialError::Length { given: given.len(), states, expected }),
        }
    }
}

/// Elements of a block that is not whole.
#[derive(Clone)]
struct Fragment<'s> {
    units: Range<u64>,
    bytes: Cow<'s, [u8]>,
}

/// The raw elements of two neighbours, joined.
struct Joined {
    /// The block that the two complete.
    block: Option<Fragment<'static>>,
    /// The raw elements of the combined state that are not those of `from` alone.
    raw: Vec<Fragment<'static>>,
}

/// The range of two neighbours, in either order.
fn both(one: &Range<u64>, other: &Range<u64>) -> Range<u64> {
    one.start.min(other.start)..one.end.max(other.end)
}

/// Memory for so many bytes.
fn room(bytes: usize) -> Result<Vec<u8>, CallError> {
    let mut room = vec![];
    room.try_reserve_exact(bytes).map_err(|_| CallError::Scratch { bytes: bytes as u64 })?;
    Ok(room)
}

/// Bytes of a state that a routine reads.
fn read_bytes(bytes: &[u8]) -> Memory<'_> {
    Memory::Read(Input::from_bytes(DType::U8, bytes))
}

/// Bytes of a state that a routine writes.
pub(super) fn write_bytes(bytes: &mut [u8]) -> Memory<'_> {
    Memory::Write(Output::from_bytes(DType::U8, bytes))
}

/// The subtrees of the entries of a state.
fn entries(blocks: &Range<u64>) -> Vec<Range<u64>> {
    subtrees(blocks.clone()).collect()
}

/// Checks that buffers have these types and elements.
pub(super) fn check(
    spec: &Spec,
    role: &'static str,
    expected: impl ExactSizeIterator<Item = (DType, u64)>,
    given: impl ExactSizeIterator<Item = (DType, usize)>,
) -> Result<(), CallError> {
    if given.len() != expected.len() {
        return Err(CallError::Count { role, given: given.len(), expected: expected.len(), kernel: title(spec) });
    }
    let operand = |position: usize| CalledOperand::new(None, title(spec), role, position);
    for (position, ((dtype, elems), (given, bytes))) in expected.zip(given).enumerate() {
        let (bytes, element_bytes) = (bytes as u64, dtype.bytes());
        if given != dtype {
            return Err(CallError::DType { operand: operand(position), given, expected: dtype });
        }
        if !bytes.is_multiple_of(element_bytes) {
            let operand = operand(position);
            return Err(CallError::PartialElement { operand, given: bytes, dtype, element_bytes });
        }
        if bytes / element_bytes != elems {
            let given = bytes / element_bytes;
            return Err(CallError::Length { operand: operand(position), given, expected: elems });
        }
    }
    Ok(())
}
