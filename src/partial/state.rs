//! The bytes of a state, and the check of bytes that claim to be one.

use super::ragged::{RawInput, Units};
use super::ranges::{most_subtrees, subtrees};
use crate::error::{Error, PartialError};
use crate::problem::blocks::Stored;
use crate::problem::{IndexBox, Problem};
use crate::results::RESULTS_VERSION;
use cranefold_ir::DType;
use std::fmt;
use std::ops::Range;

/// The first eight bytes of a state, as an integer.
const MARK: u64 = u64::from_be_bytes(*b"cranpart");

/// The mark of a state that a failed combination has made unusable.
const POISON: u64 = u64::from_be_bytes(*b"cranbad!");

/// Bytes of the header.
const HEADER_BYTES: usize = 64;

/// The alignment of entries, and of the values in them, in bytes.
const ALIGN: u64 = 64;

/// The version of the layout in this file.
const LAYOUT_VERSION: u32 = 2;

/// The places of the header's fields, in bytes.
const LAYOUT_AT: usize = 8;
const VERSION_AT: usize = 12;
const FINGERPRINT_AT: usize = 16;
const FIRST_AT: usize = 32;
const COUNT_AT: usize = 40;

/// The layout of a state's bytes: plain data, which prints. See the [module](crate::partial).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateLayout {
    /// The hash of the problem and of the box: the same in every process and on every machine.
    pub fingerprint: u128,
    /// The number of blocks of each slice.
    pub blocks: u64,
    /// The number of units of each slice: of positions of the first reduced dim where a range may end inside a block, else
    /// of blocks.
    pub units: u64,
    /// The units of a block; the last may have fewer.
    pub block_units: u64,
    /// The number of slices. Every entry holds a state of each.
    pub slices: u64,
    /// The values of a state.
    pub values: Vec<StateValue>,
    /// Bytes before the first entry.
    pub header_bytes: usize,
    /// Bytes of an entry.
    pub entry_bytes: usize,
    /// The most entries.
    pub most_entries: usize,
    /// The most bytes of raw elements, which follow the entries.
    pub most_raw_bytes: usize,
    /// Bytes of a state: of the header, the most entries and the most raw elements, or the states of all trees.
    pub bytes: usize,
    /// The layouts of the states that follow the header, if reductions have several trees.
    pub trees: Vec<StateLayout>,
    /// The inputs whose elements are raw.
    raw: Vec<RawInput>,
}

/// A value of each state in an entry: an array, ordered by slice and then by lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateValue {
    /// The element type.
    pub dtype: DType,
    /// The number of values of each slice, one for each lane.
    pub lanes: u64,
    /// The start of the array in the entry, in bytes.
    pub start: usize,
    /// The bytes of the array.
    pub bytes: usize,
}

impl StateLayout {
    /// The layout for a problem with these states, `None` if it has no elements, and with these units.
    pub(super) fn of(
        problem: &Problem,
        stored: Option<&Stored>,
        blocks: u64,
        (units, raw): (Units, Vec<RawInput>),
        fingerprint: u128,
    ) -> Result<StateLayout, Error> {
        let slices = problem.slices.iter().map(IndexBox::positions).fold(0, u64::saturating_add);
        let most_entries = most_subtrees(blocks);
        let mut end = 0u64;
        let mut starts = vec![];
        for (dtype, lanes) in stored.iter().flat_map(|stored| stored.values()) {
            let bytes = slices.saturating_mul(lanes).saturating_mul(dtype.bytes());
            starts.push((dtype, lanes, end, bytes));
            end = end.saturating_add(bytes).checked_next_multiple_of(ALIGN).unwrap_or(u64::MAX);
        }
        let (head, tail) = units.most_raw();
        let most_raw = bytes_of(&raw, head).saturating_add(bytes_of(&raw, tail));
        let entries = end.saturating_mul(most_entries);
        let bytes = entries.saturating_add(most_raw).saturating_add(HEADER_BYTES as u64);
        // No slice has more bytes, and all other numbers are less.
        if isize::try_from(bytes).is_err() {
            return Err(Error::StateTooLarge { bytes });
        }
        let value =
            |(dtype, lanes, start, bytes)| StateValue { dtype, lanes, start: start as usize, bytes: bytes as usize };
        Ok(StateLayout {
            fingerprint,
            blocks,
            units: units.all,
            block_units: units.block,
            slices,
            values: starts.into_iter().map(value).collect(),
            header_bytes: HEADER_BYTES,
            entry_bytes: end as usize,
            most_entries: most_entries as usize,
            most_raw_bytes: most_raw as usize,
            bytes: bytes as usize,
            trees: vec![],
            raw,
        })
    }

    /// The layout for the states of several trees, each of a range of these units.
    pub(super) fn of_trees(
        trees: impl Iterator<Item = StateLayout>,
        units: Units,
        fingerprint: u128,
    ) -> Result<StateLayout, Error> {
        let trees: Vec<StateLayout> = trees.collect();
        let bytes = trees.iter().map(|tree| tree.bytes as u64).fold(HEADER_BYTES as u64, u64::saturating_add);
        if isize::try_from(bytes).is_err() {
            return Err(Error::StateTooLarge { bytes });
        }
        Ok(StateLayout {
            fingerprint,
            blocks: 0,
            units: units.all,
            block_units: units.block,
            slices: trees.first().map_or(0, |tree| tree.slices),
            values: vec![],
            header_bytes: HEADER_BYTES,
            entry_bytes: 0,
            most_entries: 0,
            most_raw_bytes: 0,
            bytes: bytes as usize,
            trees,
            raw: vec![],
        })
    }

    pub(super) fn units(&self) -> Units {
        Units { all: self.units, block: self.block_units }
    }

    /// The whole blocks in a range of units; none of several trees.
    pub(super) fn blocks_in(&self, units: &Range<u64>) -> Range<u64> {
        if self.trees.is_empty() { self.units().split(units).blocks } else { 0..0 }
    }

    /// The word for units in errors.
    pub(super) fn unit(&self) -> &'static str {
        if self.block_units > 1 || !self.trees.is_empty() { "positions" } else { "blocks" }
    }

    /// The raw inputs, and the bytes of each in a fragment of so many units: one follows the other.
    pub(super) fn raw(&self, units: u64) -> impl Iterator<Item = (&RawInput, Range<usize>)> {
        let mut end = 0;
        self.raw.iter().map(move |raw| {
            let bytes = end..end + raw.bytes(units) as usize;
            end = bytes.end.next_multiple_of(ALIGN as usize);
            (raw, bytes)
        })
    }

    /// Bytes of a fragment.
    pub(super) fn raw_bytes(&self, fragment: &Range<u64>) -> usize {
        if fragment.is_empty() { 0 } else { bytes_of(&self.raw, fragment.end - fragment.start) as usize }
    }

    /// The bytes of the head and of the tail of a range of units; the state ends with them.
    pub(super) fn raw_places(&self, units: &Range<u64>) -> [Range<usize>; 2] {
        let split = self.units().split(units);
        let start = self.entry(subtrees(split.blocks).count()).start;
        let head = start..start + self.raw_bytes(&split.head);
        let tail = head.end..head.end + self.raw_bytes(&split.tail);
        [head, tail]
    }

    /// The bytes of an entry in a state.
    pub fn entry(&self, number: usize) -> Range<usize> {
        let start = self.header_bytes + number * self.entry_bytes;
        start..start + self.entry_bytes
    }

    /// The values of an entry.
    pub(super) fn values_of<'e>(&self, entry: &'e [u8]) -> impl Iterator<Item = &'e [u8]> {
        self.values.iter().map(|v| &entry[v.start..v.start + v.bytes])
    }

    /// The values of an entry, for writing.
    pub(super) fn values_mut<'e>(&self, entry: &'e mut [u8]) -> Vec<&'e mut [u8]> {
        let mut rest = entry;
        let value = |v: &StateValue| {
            let (array, after) = std::mem::take(&mut rest).split_at_mut(v.bytes.next_multiple_of(ALIGN as usize));
            rest = after;
            &mut array[..v.bytes]
        };
        self.values.iter().map(value).collect()
    }

    /// Writes zeros after each value of an entry.
    pub(super) fn clear_gaps(&self, entry: &mut [u8]) {
        for v in &self.values {
            let end = v.start + v.bytes;
            entry[end..end.next_multiple_of(ALIGN as usize)].fill(0);
        }
    }

    /// Writes the header of the state of a range of units.
    pub(super) fn write_header(&self, state: &mut [u8], units: &Range<u64>) {
        let header = &mut state[..HEADER_BYTES];
        header.fill(0);
        let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &MARK.to_le_bytes());
        put(LAYOUT_AT, &LAYOUT_VERSION.to_le_bytes());
        put(VERSION_AT, &RESULTS_VERSION.to_le_bytes());
        put(FINGERPRINT_AT, &self.fingerprint.to_le_bytes());
        // An empty range begins at 0, so that its bytes are always the same.
        put(FIRST_AT, &if units.is_empty() { 0 } else { units.start }.to_le_bytes());
        put(COUNT_AT, &(units.end - units.start).to_le_bytes());
    }

    /// The units of a state; `state` is its number in errors.
    pub(super) fn read_header(&self, bytes: &[u8], state: usize) -> Result<Range<u64>, PartialError> {
        let mark = u64::from_le_bytes(field(bytes, 0));
        if mark == POISON {
            return Err(PartialError::Poisoned { state });
        }
        if mark != MARK {
            return Err(PartialError::NoState { state });
        }
        let given = u32::from_le_bytes(field(bytes, LAYOUT_AT));
        if given != LAYOUT_VERSION {
            return Err(PartialError::LayoutVersion { state, given, expected: LAYOUT_VERSION });
        }
        let given = u32::from_le_bytes(field(bytes, VERSION_AT));
        if given != RESULTS_VERSION {
            return Err(PartialError::ResultsVersion { state, given, expected: RESULTS_VERSION });
        }
        let given = u128::from_le_bytes(field(bytes, FINGERPRINT_AT));
        if given != self.fingerprint {
            return Err(PartialError::Problem { state, given, expected: self.fingerprint });
        }
        let (first, count) = (u64::from_le_bytes(field(bytes, FIRST_AT)), u64::from_le_bytes(field(bytes, COUNT_AT)));
        let within = first.checked_add(count).filter(|&end| end <= self.units && (count > 0 || first == 0));
        let (units, unit) = (self.units, self.unit());
        let end = within.ok_or(PartialError::Blocks { state, first, count, blocks: units, unit })?;
        Ok(first..end)
    }
}

/// The [`fingerprint`](StateLayout::fingerprint) in the header of a state; `None` if the bytes do not begin as a state of
/// this machine does, poisoned or not.
///
/// ```
/// use cranefold::{Compiler, partial};
///
/// let sum = Compiler::host()?.partial(&"sum f32[9]".parse::<cranefold::Spec>()?)?;
/// let mut state = vec![0; sum.state_bytes()];
/// assert_eq!(partial::fingerprint_of(&state), None);
/// sum.identity(&mut state, 1)?;
/// assert_eq!(partial::fingerprint_of(&state), Some(sum.layout().fingerprint));
/// # Ok::<(), cranefold::Error>(())
/// ```
pub fn fingerprint_of(state: &[u8]) -> Option<u128> {
    let header = state.get(..HEADER_BYTES)?;
    let is_state = [MARK, POISON].contains(&u64::from_le_bytes(field(header, 0)));
    is_state.then(|| u128::from_le_bytes(field(header, FINGERPRINT_AT)))
}

/// Makes bytes unusable as a state: every function that reads them returns [`PartialError::Poisoned`]. It is for callers
/// that have no other way to tell that a combination has failed, as functions of MPI have none. Bytes that are too few
/// for a header are left as they are.
///
/// ```
/// use cranefold::{Compiler, PartialError, partial};
///
/// let sum = Compiler::host()?.partial(&"sum f32[9]".parse::<cranefold::Spec>()?)?;
/// let (mut state, mut other) = (vec![0; sum.state_bytes()], vec![0; sum.state_bytes()]);
/// sum.identity(&mut other, 1)?;
/// partial::poison(&mut state);
/// assert_eq!(sum.combine(&state, &mut other, 1), Err(PartialError::Poisoned { state: 0 }));
/// # Ok::<(), cranefold::Error>(())
/// ```
pub fn poison(state: &mut [u8]) {
    if let Some(header) = state.get_mut(..HEADER_BYTES) {
        header[..8].copy_from_slice(&POISON.to_le_bytes());
    }
}

/// Bytes of a fragment of so many units, each input from a multiple of the alignment on.
fn bytes_of(raw: &[RawInput], units: u64) -> u64 {
    let aligned = |bytes: u64| bytes.checked_next_multiple_of(ALIGN).unwrap_or(u64::MAX);
    let all = raw.iter().filter(|_| units > 0).map(|input| aligned(input.bytes(units)));
    all.fold(0, u64::saturating_add)
}

fn field<const N: usize>(header: &[u8], at: usize) -> [u8; N] {
    header[at..at + N].try_into().expect("as many bytes")
}

impl fmt::Display for StateLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StateLayout { fingerprint, blocks, slices, header_bytes, entry_bytes, .. } = self;
        let (most, bytes) = (self.most_entries, self.bytes);
        writeln!(f, "state of problem {fingerprint:032x}, {blocks} blocks: {bytes} bytes")?;
        writeln!(f, "  0: u64 mark {MARK:#018x}")?;
        writeln!(f, "  {LAYOUT_AT}: u32 version {LAYOUT_VERSION} of this layout")?;
        writeln!(f, "  {VERSION_AT}: u32 version {RESULTS_VERSION} of the results")?;
        writeln!(f, "  {FINGERPRINT_AT}: u128 the problem")?;
        let unit = self.unit();
        writeln!(f, "  {FIRST_AT}: u64 first of {} {unit}", self.units)?;
        writeln!(f, "  {COUNT_AT}: u64 {unit}")?;
        writeln!(f, "  {header_bytes}: at most {most} entries of {entry_bytes} bytes, in each")?;
        let mut values = self.values.iter();
        values.try_for_each(|v| writeln!(f, "    {}: {}[{slices} slices, {} lanes]", v.start, v.dtype, v.lanes))?;
        self.trees.iter().try_for_each(|tree| write!(f, "then, in the bytes that it uses, a {tree}"))?;
        match self.most_raw_bytes {
            0 => Ok(()),
            most => writeln!(f, "  after them: at most {most} bytes of raw elements"),
        }
    }
}
