//! Random specs and schedules.
//!
//! A [`Case`] is a list of numbers, drawn from bytes, that stands for a valid spec whatever the numbers are. Almost no
//! case is discarded, and bytes that shrink to zero make a failing case simpler.

use crate::bytes::Bytes;
use crate::compositions::{self, builder};
use crate::data::Random;
use cranefold::ir::{LoopVar, Over};
use cranefold::ops;
use cranefold::schedule::{Divided, Parts, Tile, Transform};
use cranefold::{Layout, Options, Problem, Schedule, Spec, SpecError};
use std::fmt;

/// Extents: none, one, small ones, primes, and both sides of every width of a vector, of 64 lanes and of the 64 steps
/// of a block.
const EXTENTS: &[u64] = &[
    1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 97, 127, 128, 129, 191, 193, 255, 257,
    511, 513, 1021, 1025, 2047, 2049, 4095, 4096, 4097, 4159, 4161, 8191, 8193, 12289, 0,
];

/// An axis: its extent, true if it is reduced, and its place in both layouts.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    extent: u64,
    reduced: bool,
    input: AxisPlace,
    output: AxisPlace,
}

/// The place of an axis in a layout.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AxisPlace {
    /// The sort key of the axes, the innermost first.
    rank: u8,
    /// Elements left free after the axis, if the layout has strides.
    gap: u8,
    /// True if the axis runs backwards, if the layout has strides.
    backwards: bool,
    /// True if its stride is zero, if the layout is an input's and has strides.
    repeats: bool,
    /// The choice of its blocks, if the layout has any: see [`blocks`].
    blocks: u8,
}

impl AxisPlace {
    /// A random place.
    pub fn some(random: &mut Random) -> AxisPlace {
        let gap = random.pick(&[0, 0, 1, 3]);
        let (rank, backwards) = (random.below(256) as u8, random.below(2) == 0);
        let (repeats, blocks) = (random.below(10) == 0, random.below(256) as u8);
        AxisPlace { rank, gap, backwards, repeats, blocks }
    }
}

/// The form of a layout's text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    /// No text.
    RowMajor,
    /// A tag.
    Tag,
    /// Strides.
    Strides,
    /// A tag with blocks.
    Blocked,
    /// Strides of blocks.
    BlockedStrides,
}

/// A spec and its data as numbers.
#[derive(Clone)]
pub struct Case {
    pub(crate) composition: compositions::Composition,
    /// The seed of all choices of [`crate::compositions`].
    pub(crate) choice: u64,
    axes: Vec<Axis>,
    forms: (Form, Form),
    /// True if operands may be blocked.
    pub(crate) blocks: bool,
    pub(crate) flags: Flags,
    most_elements: u64,
    /// The seed of the data.
    pub seed: u64,
    /// The kind of the data, see `data.rs`.
    pub kind: u8,
    /// Bytes by which inputs and outputs are off alignment.
    pub offsets: (usize, usize),
    /// The forced schedules, which [`Case::schedules`] makes fit the problem.
    forced: Vec<Forced>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Flags {
    pub keep_dims: bool,
    pub lift: bool,
    pub saturate: bool,
    pub half_even: bool,
    pub says_rounding: bool,
    pub acc_f64: bool,
    pub same_output: bool,
    /// True if the output keeps the layout of input 0.
    pub any_output: bool,
}

#[derive(Clone, Debug)]
struct Forced {
    width: u32,
    tiles: Vec<(usize, u64)>,
    jam: u64,
    in_flight: u64,
    parts: (u64, bool),
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { composition, choice, seed, kind, offsets, .. } = self;
        match self.built() {
            Err(error) => write!(f, "{composition:?} of choice {choice}, which is refused: {error}"),
            Ok(spec) => {
                write!(f, "{spec} (data {kind} of seed {seed:#x}, off by {offsets:?} bytes)")?;
                self.schedules(&Problem::of(&spec)).iter().try_for_each(|s| write!(f, "\n    {s}"))
            }
        }
    }
}

impl Case {
    /// The case of these bytes, with at most `most_elements` elements and `most_axes` axes. Without bytes it is the
    /// simplest case; it takes fewer than [`Case::BYTES`].
    pub fn of(bytes: &[u8], most_elements: u64, most_axes: u64) -> Case {
        let bytes = &mut Bytes::new(bytes);
        Case {
            composition: bytes.pick(&compositions::Composition::ALL),
            choice: bytes.bits(),
            seed: bytes.bits(),
            kind: bytes.below(8) as u8,
            offsets: (bytes.below(16) as usize, bytes.below(16) as usize),
            flags: Flags::of(bytes),
            forms: (bytes.pick(&FORMS), bytes.pick(&FORMS)),
            blocks: true,
            most_elements,
            forced: (0..2).map(|_| Forced::of(bytes)).collect(),
            axes: (0..bytes.below(most_axes + 1)).map(|_| Axis::of(bytes)).collect(),
        }
    }

    /// A number of bytes that is enough for any case.
    pub const BYTES: usize = 192;
}

/// The forms with their frequencies.
const FORMS: [Form; 10] = [
    Form::RowMajor,
    Form::RowMajor,
    Form::RowMajor,
    Form::Tag,
    Form::Strides,
    Form::Strides,
    Form::Strides,
    Form::Blocked,
    Form::Blocked,
    Form::BlockedStrides,
];

impl Axis {
    fn of(bytes: &mut Bytes) -> Axis {
        let few = if bytes.flag() { EXTENTS.len() } else { 20 };
        let (extent, reduced) = (bytes.pick(&EXTENTS[..few]), bytes.flag());
        Axis { extent, reduced, input: AxisPlace::of(bytes), output: AxisPlace::of(bytes) }
    }
}

impl AxisPlace {
    fn of(bytes: &mut Bytes) -> AxisPlace {
        AxisPlace {
            rank: bytes.below(256) as u8,
            gap: bytes.pick(&[0, 0, 0, 0, 0, 0, 1, 2, 3]),
            backwards: bytes.flag(),
            repeats: bytes.one_in(10),
            blocks: bytes.below(256) as u8,
        }
    }
}

impl Flags {
    fn of(bytes: &mut Bytes) -> Flags {
        Flags {
            keep_dims: bytes.flag(),
            lift: bytes.flag(),
            saturate: bytes.flag(),
            half_even: bytes.flag(),
            says_rounding: bytes.flag(),
            acc_f64: bytes.flag(),
            same_output: bytes.flag(),
            any_output: bytes.one_in(5),
        }
    }
}

impl Forced {
    fn of(bytes: &mut Bytes) -> Forced {
        let width = bytes.pick(&[0, 64, 128, 256, 512, 1024]);
        let count = |bytes: &mut Bytes| if bytes.flag() { 2 + bytes.below(15) } else { 1 };
        let tile = |bytes: &mut Bytes| {
            let by = if bytes.flag() { bytes.pick(EXTENTS) } else { 1 + bytes.below(19) };
            (bytes.below(8) as usize, by)
        };
        Forced {
            width,
            tiles: (0..bytes.below(3)).map(|_| tile(bytes)).collect(),
            jam: count(bytes),
            in_flight: count(bytes),
            parts: (bytes.pick(&[1, 1, 2, 3, 5, 8, 64]), bytes.flag()),
        }
    }
}

/// Returns true if two tiles are of loops over one box of slices.
fn same_box(problem: &Problem, one: Tile, other: Tile) -> bool {
    let mut before = 0;
    let box_of = |tile: Tile| {
        before = 0;
        problem.slices.iter().position(|slices| {
            before += slices.dims.len();
            (tile.var.id as usize) < before
        })
    };
    let [one, other] = [one, other].map(box_of);
    one == other
}

/// The widths to which a compiler may be limited.
const WIDTHS: [u32; 6] = [0, 64, 128, 256, 512, 1024];

/// The most bytes of an operand, with its gaps.
const MOST_BYTES: u64 = 16 << 20;

impl Case {
    /// The spec.
    ///
    /// # Panics
    /// If the spec is refused: a bug of the generator, or of the builder of specs.
    pub fn spec(&self) -> Spec {
        self.built().unwrap_or_else(|error| panic!("{error}"))
    }

    fn built(&self) -> Result<Spec, SpecError> {
        match builder(self).build() {
            // Blocks of many axes cut a spec into too many boxes.
            Err(SpecError::TooManyBoxes { .. }) => {
                let whole = |axis: &Axis| Axis {
                    input: AxisPlace { blocks: 0, ..axis.input },
                    output: AxisPlace { blocks: 0, ..axis.output },
                    ..axis.clone()
                };
                Case { axes: self.axes.iter().map(whole).collect(), blocks: false, ..self.clone() }.built()
            }
            // Some reductions of no integers have no value, so they get elements.
            Err(SpecError::IntegerOverNothing { .. } | SpecError::PositionOverNothing { .. }) => {
                let some = |axis: &Axis| Axis { extent: axis.extent.max(2), ..axis.clone() };
                Case { axes: self.axes.iter().map(some).collect(), ..self.clone() }.built()
            }
            // Gaps and strides of many axes make spans that no machine holds.
            Ok(spec) if spec.inputs().iter().chain(spec.outputs()).any(|o| o.span_bytes() > MOST_BYTES) => {
                let dense = |place: AxisPlace| AxisPlace { gap: 0, blocks: 0, ..place };
                let dense = |axis: &Axis| Axis { input: dense(axis.input), output: dense(axis.output), ..axis.clone() };
                let axes = self.axes.iter().map(dense).collect();
                let case = Case { axes, blocks: false, ..self.clone() };
                if case.axes == self.axes { Ok(spec) } else { case.built() }
            }
            built => built,
        }
    }

    /// Bits of the vectors for which a schedule is chosen; the seed decides them.
    pub fn width(&self) -> u32 {
        [128, 256, 512][(self.seed % 3) as usize]
    }

    /// Elements from the start of a line of memory to that of each input.
    pub fn place(&self) -> u64 {
        u64::from((self.seed / 3 % 64) as u32)
    }

    /// The requirements of a compiler: its own choice, each width it may be kept to, and the schedules to force.
    pub fn options(&self, problem: &Problem) -> Vec<Options> {
        let widths = WIDTHS.map(|width| Options { schedule: None, width: Some(width) });
        let forced = self.schedules(problem).into_iter().map(|s| Options { schedule: Some(s), width: None });
        [Options::default()].into_iter().chain(widths).chain(forced).collect()
    }

    /// The schedules to force, each of which fits the problem.
    pub fn schedules(&self, problem: &Problem) -> Vec<Schedule> {
        let loops = problem.slices.iter().map(|slices| slices.dims.len()).sum::<usize>();
        let fit = |forced: &Forced| {
            let tile = |&(var, by): &(usize, u64)| Tile {
                var: LoopVar { over: Over::Output, id: (var % loops) as u32 },
                by: by.max(1),
                transform: [
                    Transform::Blocks,
                    Transform::SharedFolds,
                    Transform::Runs,
                    Transform::Steps,
                    Transform::Lanes,
                    Transform::Across,
                    Transform::Rows,
                ][((by + var as u64) % 6) as usize],
            };
            let mut tiles: Vec<Tile> = vec![];
            for tile in forced.tiles.iter().filter(|_| loops > 0).map(tile) {
                if tiles.iter().all(|other| !same_box(problem, tile, *other)) {
                    tiles.push(tile);
                }
            }
            let Forced { width, jam, mut in_flight, parts: (count, of_blocks), .. } = *forced;
            if tiles.iter().any(|tile| tile.transform != Transform::Steps) {
                in_flight = 1;
            }
            let parts = Parts { count, of: if of_blocks { Divided::Blocks } else { Divided::Outputs } };
            let (interleave, prefetch, transpose) = (1 + jam % 4, 64 * (in_flight % 3), jam % 8 < 6);
            let has_direct = problem.reducer_in(ops::Form::Direct).is_some();
            let form = if has_direct && jam % 2 == 0 { ops::Form::Direct } else { ops::Form::Plain };
            let gather = if jam % 3 == 0 { 64 * in_flight } else { 0 };
            let nontemporal = jam % 5 == 0;
            let align = if jam % 2 == 1 { 64 } else { 0 };
            let keep = match jam % 3 {
                0 => vec![],
                _ => problem.keepable(|_| true).into_iter().map(|value| value.name).collect(),
            };
            let mut schedule = Schedule {
                width,
                form,
                tiles,
                jam,
                in_flight,
                interleave,
                prefetch,
                transpose,
                align,
                gather,
                nontemporal,
                keep,
                write_first: jam % 2 == 0,
                parts,
            };
            if schedule.check(problem).is_err() {
                schedule.write_first = false;
            }
            if schedule.check(problem).is_err() {
                schedule.keep.clear();
            }
            if schedule.check(problem).is_err() {
                schedule.parts.of = Divided::Outputs;
            }
            while schedule.check(problem).is_err() {
                schedule.interleave = 1;
                schedule.tiles.retain(|t| t.by > 1);
                schedule.tiles.iter_mut().for_each(|t| t.by /= 2);
            }
            schedule
        };
        self.forced.iter().map(fit).collect()
    }

    /// The reduced axes.
    pub(crate) fn reduced(&self) -> Vec<i64> {
        (0i64..).zip(&self.axes).filter(|(_, a)| a.reduced).map(|(i, _)| i).collect()
    }

    /// The outputs' shape, each axis with its place in the first one's layout.
    fn kept(&self) -> Vec<(u64, AxisPlace)> {
        let keeps_all = self.flags.keep_dims && !self.reduced().is_empty();
        let kept = self.axes.iter().zip(self.shape()).filter(|(axis, _)| keeps_all || !axis.reduced);
        kept.map(|(axis, extent)| (if axis.reduced { 1 } else { extent }, axis.output)).collect()
    }

    /// The outputs' shape, for outputs without an element for each of input 0.
    pub(crate) fn output_shape(&self) -> Vec<u64> {
        self.kept().into_iter().map(|(extent, _)| extent).collect()
    }

    /// The first output's layout.
    pub(crate) fn output_layout(&self) -> Layout {
        if self.flags.any_output { Layout::any() } else { layout(self.forms.1, &self.kept(), false) }
    }

    /// The extents, cut so that their product keeps to the limit.
    pub(crate) fn shape(&self) -> Vec<u64> {
        let mut left = self.most_elements;
        let cut = |axis: &Axis| {
            let extent = axis.extent.min(left);
            left /= extent.max(1);
            extent
        };
        self.axes.iter().map(cut).collect()
    }

    pub(crate) fn input_layout(&self, shape: &[u64]) -> Layout {
        let axes: Vec<(u64, AxisPlace)> = shape.iter().copied().zip(self.axes.iter().map(|a| a.input)).collect();
        layout(self.forms.0, &axes, true)
    }
}

/// The blocks of an axis, the outermost first. Most sizes divide one another; others cut long axes into too many boxes.
fn blocks(place: AxisPlace) -> &'static [u64] {
    match place.blocks % 16 {
        1 => &[2],
        2 => &[4],
        3 | 4 => &[8],
        5 | 6 => &[16],
        7 => &[32],
        8 => &[4, 4],
        9 => &[2, 8],
        10 => &[12],
        _ => &[],
    }
}

/// The layout of axes with these extents. Strides are laid from the innermost axis outwards, each over the span of all
/// before, so that elements share a place only along an axis that repeats.
pub fn layout(form: Form, axes: &[(u64, AxisPlace)], repeats: bool) -> Layout {
    let mut order: Vec<usize> = (0..axes.len()).collect();
    order.sort_by_key(|&axis| axes[axis].1.rank);
    // The axes take turns, so that the blocks of one lie inside the blocks of another.
    let blocked = matches!(form, Form::Blocked | Form::BlockedStrides);
    let mut inner: Vec<(usize, u64)> = vec![];
    for level in (0..2).filter(|_| blocked) {
        inner.extend(order.iter().filter_map(|&axis| Some((axis, *blocks(axes[axis].1).get(level)?))));
    }
    let letter = |axis: usize| char::from(b'a' + axis as u8);
    let end: String = inner.iter().map(|&(axis, size)| format!("{size}{}", letter(axis))).collect();
    let whole = |axis: usize| inner.iter().filter(|b| b.0 == axis).map(|b| b.1).product::<u64>();
    let offset = axes.iter().map(|(_, place)| u64::from(place.gap)).sum::<u64>();
    match form {
        Form::Tag | Form::Blocked if !axes.is_empty() => {
            let capital = |axis: usize| if whole(axis) > 1 { letter(axis).to_ascii_uppercase() } else { letter(axis) };
            let letters: String = order.iter().rev().map(|&axis| capital(axis)).collect();
            Layout::tag(&format!("{letters}{end}")).expect("each letter once").offset(offset)
        }
        Form::Strides | Form::BlockedStrides => {
            let mut strides = vec![0; axes.len()];
            let mut span: i64 = inner.iter().map(|b| b.1 as i64).product();
            for axis in order {
                let (extent, place) = axes[axis];
                if repeats && place.repeats {
                    continue;
                }
                strides[axis] = if place.backwards { -span } else { span };
                span = span * extent.div_ceil(whole(axis)).max(1) as i64 + i64::from(place.gap);
            }
            Layout::blocked_strides(strides, &end).expect("blocks of its axes").offset(offset)
        }
        _ => Layout::row_major(),
    }
}
