//! Decisions as data: what the passes are to do.
//!
//! ```
//! use cranefold::Schedule;
//!
//! let schedule: Schedule = "width=128 tile=i0:1024 jam=8".parse()?;
//! assert_eq!(schedule.to_string(), "width=128 tile=i0:1024 jam=8 in_flight=1");
//! # Ok::<(), cranefold::ScheduleError>(())
//! ```
//!
//! # Text
//!
//! ```text
//! schedule = decision*                                             each at most once, "tile" once for each box
//! decision = "width" "=" bits                                      of a vector: 0 (scalar), 64, 128, 256, 512, 1024
//!          | "form" "=" ("plain" | "direct")                       the reducer's operations and state
//!          | "tile" "=" loop ":" count ("@across" | "@rows" | "@blocks" | "@runs" | "@folds" | "@lanes")?
//!          | "jam" "=" count                                       steps in one visit of an accumulator
//!          | "in_flight" "=" count                                 blocks in flight at once
//!          | "interleave" "=" count                                blocks or outputs taken step by step together
//!          | "prefetch" "=" bytes                                  distance of the prefetched line ahead
//!          | "align" "=" bytes                                     0, or 64: loops load whole lines of memory
//!          | "transpose" "=" ("on" | "off")                        columns of matrices loaded together, or each element
//!          | "gather" "=" integer                                elements brought into order at a time; 0 for whole slices
//!          | "nontemporal" "=" ("on" | "off")                     whole vectors of outputs written past the caches
//!          | "keep" "=" name ("," name)*                           element values kept between the visits of a slice
//!          | "write" "=" ("first" | "last")                       the visit that writes outputs at positions of a slice
//!          | "parts" "=" count "@blocks"?                          parts for threads: outputs, or blocks
//! loop     = "i" and a number: an output loop of the naive nest
//! ```
//!
//! A `;` begins a comment up to the end of its line. A decision that is left out has its default: width 128, the plain
//! form and transposes on (both print as nothing), no tile, 1 for all others, no prefetch, vectors loaded from
//! anywhere, slices brought into order as a whole, stores by way of the caches, every value computed again by each
//! visit, outputs at positions written by a visit of their own. A name of a kept value is that of its definition in the
//! text of the problem.

mod check;
mod choose;
mod cost;
mod decided;
mod facts;
mod form;
mod machine;
mod parts;
mod strategy;

pub use choose::{Choice, choose, choose_for, choose_in, consider, predict, visits};
pub(crate) use cost::Time;
pub use cost::{Cost, Visit};
pub use decided::{Bounds, Decided, Narrowed, Source};
pub(crate) use facts::{MOST_JOINED, narrow_bytes};
pub use form::{choose_form, slice_work};
pub use machine::{Level, Machine};
pub use parts::{Divided, Parts};

use crate::vectors::Vectors;
use cranefold_ir::ops::Form;
use cranefold_ir::{LoopVar, Over};
use std::fmt;
use std::str::FromStr;

/// A schedule: the decisions that the passes carry out. The bits of a result never depend on it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Schedule {
    /// Bits of a vector; 0 for scalar code. Lanes beyond the target's width are split for it.
    pub width: u32,
    /// The form of the reducer, one that it has for the problem.
    pub form: Form,
    /// The tiles of outputs that are taken together, at most one for each box of slices.
    pub tiles: Vec<Tile>,
    /// Steps taken in one visit of an accumulator.
    pub jam: u64,
    /// The most blocks in flight at once.
    pub in_flight: u64,
    /// The number of blocks or outputs that are interleaved.
    pub interleave: u64,
    /// The distance of prefetched memory in wide functions, in bytes; 0 for no prefetch, but on Intel's cores of inputs that
    /// lie in memory.
    pub prefetch: u64,
    /// True where columns of matrices are loaded together, by transposes; else each element that lies apart from its
    /// neighbours in a vector is loaded by itself.
    pub transpose: bool,
    /// The bytes of the lines of memory that loops load as whole vectors where they can, in wide functions whose
    /// vectors have masks; 0 loads vectors from anywhere.
    pub align: u64,
    /// Elements of a slice that are brought into the order of their positions at a time, where no fixed stride leads
    /// through them: stretches of about so many; 0 for whole slices.
    pub gather: u64,
    /// True where whole vectors of outputs are written to memory past the caches, in wide functions.
    pub nontemporal: bool,
    /// The element values of a region that are kept in scratch memory between the visits of a slice, by the names of
    /// their definitions in the problem.
    pub keep: Vec<String>,
    /// True where the first visit of a slice, which is the only one then, writes the outputs at its positions; else a
    /// visit after all others does.
    pub write_first: bool,
    /// The parts that threads may run at once.
    pub parts: Parts,
}

/// The default schedule takes one element at a time: vectors of 128 bits, the plain form, no tile, one step and one
/// block at once, no interleaving, no prefetch, stores by way of the caches, one part.
impl Default for Schedule {
    fn default() -> Schedule {
        Schedule {
            width: Vectors::BASE.bits,
            form: Form::Plain,
            tiles: vec![],
            jam: 1,
            in_flight: 1,
            interleave: 1,
            prefetch: 0,
            transpose: true,
            align: 0,
            gather: 0,
            nontemporal: false,
            keep: vec![],
            write_first: false,
            parts: Parts::ONE,
        }
    }
}

/// The transformation that a tile is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transform {
    /// The tile moves inside the loops over steps: a step walks the outputs of the tile. It prints as nothing.
    Steps,
    /// The tile moves inside the loops over steps, and inside the output loops that it is around: lanes are slices that lie
    /// apart, with few outputs between them. In text, `@across`.
    Across,
    /// The tile moves inside the loops over steps, and the rows of outputs in it become one: elements that do not lie as the
    /// outputs do are brought into their order as they are loaded. In text, `@rows`.
    Rows,
    /// The tile moves inside the loops over blocks: blocks of neighbouring outputs follow one another. In text, `@blocks`.
    Blocks,
    /// The tile moves inside the loops over blocks, except those over the blocks of a run of memory: runs of
    /// neighbouring outputs follow one another, each of several blocks. In text, `@runs`.
    Runs,
    /// The tile stays outside, and the lanes of its outputs fold together, as many outputs as a vector has lanes. In
    /// text, `@folds`.
    SharedFolds,
    /// The tile moves inside the loops over steps, around those over lanes: the lanes of all its outputs lie side by side
    /// as their elements do. In text, `@lanes`.
    Lanes,
}

impl Transform {
    /// Every transformation with its word in text.
    const WORDS: [(Transform, &str); 7] = [
        (Transform::Steps, ""),
        (Transform::Across, "@across"),
        (Transform::Rows, "@rows"),
        (Transform::Blocks, "@blocks"),
        (Transform::Runs, "@runs"),
        (Transform::SharedFolds, "@folds"),
        (Transform::Lanes, "@lanes"),
    ];
}

/// A tile of outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tile {
    /// The output loop that is split. If it moves inward, all output loops inside it move with it.
    pub var: LoopVar,
    /// The loop's iterations in a tile.
    pub by: u64,
    /// The transformation that the tile is for.
    pub transform: Transform,
}

impl fmt::Display for Tile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = Transform::WORDS.iter().find(|(transform, _)| *transform == self.transform);
        write!(f, "tile={}:{}{}", self.var, self.by, word.map_or("", |(_, word)| word))
    }
}

impl Schedule {
    /// The most steps taken in one visit of an accumulator.
    pub const MAX_JAM: u64 = 64;
    /// The most blocks in flight.
    pub const MAX_IN_FLIGHT: u64 = 16;
    /// The most blocks or outputs that are interleaved.
    pub const MAX_INTERLEAVE: u64 = 8;
    /// The most bytes of the prefetch distance.
    pub const MAX_PREFETCH: u64 = 1 << 20;
    /// The most parts that a schedule may ask for; a problem may have up to twice as many.
    pub const MAX_PARTS: u64 = 4096;
    /// The most bytes of states that parts store.
    pub const MAX_STORED_BYTES: u64 = 256 << 20;
    /// The most bytes of state in a tile, over all levels of the stack of blocks: they live on the stack of the
    /// calling thread.
    pub const MAX_STATE_BYTES: u64 = 256 << 10;
    /// The most bytes of element values that are kept between visits, over the slices of a tile: half of a second-level
    /// cache.
    pub const MAX_KEPT_BYTES: u64 = 512 << 10;
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "width={}", self.width)?;
        if self.form != Form::Plain {
            write!(f, " form={}", self.form)?;
        }
        self.tiles.iter().try_for_each(|tile| write!(f, " {tile}"))?;
        write!(f, " jam={} in_flight={}", self.jam, self.in_flight)?;
        if self.interleave > 1 {
            write!(f, " interleave={}", self.interleave)?;
        }
        if self.prefetch > 0 {
            write!(f, " prefetch={}", self.prefetch)?;
        }
        if self.align > 0 {
            write!(f, " align={}", self.align)?;
        }
        if !self.transpose {
            f.write_str(" transpose=off")?;
        }
        if self.gather > 0 {
            write!(f, " gather={}", self.gather)?;
        }
        if self.nontemporal {
            f.write_str(" nontemporal=on")?;
        }
        if !self.keep.is_empty() {
            write!(f, " keep={}", self.keep.join(","))?;
        }
        if self.write_first {
            f.write_str(" write=first")?;
        }
        if self.parts != Parts::ONE { write!(f, " parts={}", self.parts) } else { Ok(()) }
    }
}

/// The reason for which a schedule was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages name the fields")]
pub enum ScheduleError {
    #[error("{}", no_decision(.0))]
    Unknown(String),
    #[error(
        "the schedule is empty: it names a decision, as `width=512` does; the chosen one is used where none is given"
    )]
    Empty,
    #[error("`{key}` of the schedule is given twice")]
    Repeated { key: &'static str },
    #[error("width={0} is none of 0 (scalar), 64, 128, 256, 512 and 1024 bits")]
    Width(u32),
    #[error("form={form}: {work} has no such form")]
    NoForm { form: Form, work: String },
    #[error("jam={given} is outside 1 to {limit}")]
    Jam { given: u64, limit: u64 },
    #[error("in_flight={given} is outside 1 to {limit}")]
    InFlight { given: u64, limit: u64 },
    #[error("interleave={given} is outside 1 to {limit}")]
    Interleave { given: u64, limit: u64 },
    #[error("prefetch={given} is above {limit} bytes")]
    Prefetch { given: u64, limit: u64 },
    #[error("align={given} is neither 0 nor the {line} bytes of a line")]
    Align { given: u64, line: u64 },
    #[error("parts={given} is outside 1 to {limit}")]
    Parts { given: u64, limit: u64 },
    #[error("parts={count}@blocks: {why}")]
    NoBlocks { count: u64, why: &'static str },
    #[error("parts={count}@blocks store {bytes} bytes of states, above the limit of {limit}")]
    StoredTooLarge { count: u64, bytes: u64, limit: u64 },
    #[error("tile={var}:{by} has no iterations")]
    EmptyTile { var: LoopVar, by: u64 },
    #[error("tile={var}: the problem has no output loop {var}; it has {loops}")]
    NoLoop { var: LoopVar, loops: String },
    #[error("tile={first} and tile={second} are loops over the same outputs, of which one is tiled")]
    TwoTiles { first: LoopVar, second: LoopVar },
    #[error("{tile} takes outputs together, and in_flight={in_flight} several blocks at once: only one may be")]
    TileWithInFlight { tile: Tile, in_flight: u64 },
    #[error("`{0}` moves loops: a nest keeps its own, and takes width= and prefetch= alone")]
    OfNest(Box<Schedule>),
    #[error("the schedule keeps {bytes} bytes of state, above the limit of {limit}")]
    StateTooLarge { bytes: u64, limit: u64 },
    #[error("keep={given}: no such value may be kept between visits of a slice; {values} may")]
    NoKept { given: String, values: String },
    #[error("keep={given} keeps {bytes} bytes of element values, above the limit of {limit}")]
    KeptTooLarge { given: String, bytes: u64, limit: u64 },
    #[error(
        "write=first: the first visit of a slice writes outputs at its positions only if no result of a reduction is in \
         one, if there is no other visit, and if it walks the slice as they are written"
    )]
    NotFirst,
}

/// The decisions, as they are written.
const DECISIONS: [&str; 14] = [
    "width=BITS",
    "form=plain|direct",
    "tile=LOOP:ITERATIONS[@across|@rows|@blocks|@runs|@folds|@lanes]",
    "jam=STEPS",
    "in_flight=BLOCKS",
    "interleave=ITERATIONS",
    "prefetch=BYTES",
    "align=BYTES",
    "transpose=on|off",
    "gather=ELEMENTS",
    "nontemporal=on|off",
    "keep=VALUES",
    "write=first|last",
    "parts=PARTS[@blocks]",
];

/// The message for a word that is no decision: the form of the one that it names, or all of them.
fn no_decision(word: &str) -> String {
    let key = word.split('=').next().unwrap_or_default();
    match DECISIONS.iter().find(|decision| decision.split('=').next() == Some(key)) {
        Some(decision) if word.matches('=').count() > 1 => {
            format!("`{word}` is more than `{decision}`: decisions are separated by spaces")
        }
        Some(decision) => format!("`{word}` is no decision of a schedule: it is written `{decision}`"),
        None => format!("`{word}` is no decision of a schedule; they are {}", DECISIONS.join(" ")),
    }
}

/// Reads the text form. A decision that is left out has its default.
impl FromStr for Schedule {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Schedule, ScheduleError> {
        let decisions = |line: &str| line.split(';').next().unwrap_or_default().to_string();
        let text: String = text.lines().map(|line| decisions(line) + "\n").collect();
        if text.trim().is_empty() {
            return Err(ScheduleError::Empty);
        }
        let unknown = |word: &str| ScheduleError::Unknown(word.chars().take(60).collect());
        let mut schedule = Schedule::default();
        let mut given: Vec<&str> = vec![];
        for word in text.split_whitespace() {
            let (key, value) = word.split_once('=').ok_or_else(|| unknown(word))?;
            let known = schedule.read(key, value).ok_or_else(|| unknown(word))?;
            if known != "tile" && given.contains(&known) {
                return Err(ScheduleError::Repeated { key: known });
            }
            given.push(known);
        }
        schedule.check_numbers()?;
        Ok(schedule)
    }
}

fn parse_form(text: &str) -> Option<Form> {
    [Form::Plain, Form::Direct].into_iter().find(|form| form.to_string() == text)
}

fn parse_switch(text: &str) -> Option<bool> {
    match text {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

fn parse_names(text: &str) -> Option<Vec<String>> {
    let is_name = |name: &&str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let names: Vec<&str> = text.split(',').collect();
    let are_names = names.iter().all(is_name) && (1..names.len()).all(|n| !names[..n].contains(&names[n]));
    are_names.then(|| names.into_iter().map(str::to_string).collect())
}

fn parse_tile(text: &str) -> Option<Tile> {
    let (var, by) = text.split_once(':')?;
    let id = var.strip_prefix('i')?.parse().ok()?;
    let (by, word) = by.split_at(by.find('@').unwrap_or(by.len()));
    let &(transform, _) = Transform::WORDS.iter().find(|(_, known)| *known == word)?;
    Some(Tile { var: LoopVar { over: Over::Output, id }, by: by.parse().ok()?, transform })
}

impl Schedule {
    /// Takes a decision from its text and returns its key; `None` if there is no such decision.
    fn read(&mut self, key: &str, value: &str) -> Option<&'static str> {
        let number = || value.parse::<u64>().ok();
        let (key, ()) = match key {
            "width" => ("width", self.width = value.parse().ok()?),
            "form" => ("form", self.form = parse_form(value)?),
            "tile" => ("tile", self.tiles.push(parse_tile(value)?)),
            "jam" => ("jam", self.jam = number()?),
            "in_flight" => ("in_flight", self.in_flight = number()?),
            "interleave" => ("interleave", self.interleave = number()?),
            "prefetch" => ("prefetch", self.prefetch = number()?),
            "transpose" => ("transpose", self.transpose = parse_switch(value)?),
            "align" => ("align", self.align = number()?),
            "gather" => ("gather", self.gather = number()?),
            "nontemporal" => ("nontemporal", self.nontemporal = parse_switch(value)?),
            "keep" => ("keep", self.keep = parse_names(value)?),
            "write" => ("write", self.write_first = ["last", "first"].iter().position(|&word| word == value)? == 1),
            "parts" => ("parts", self.parts = value.parse().ok()?),
            _ => return None,
        };
        Some(key)
    }

    /// Checks that a vector may have this number of bits.
    ///
    /// # Errors
    /// [`ScheduleError::Width`] if it may not.
    pub fn checked_width(width: u32) -> Result<u32, ScheduleError> {
        match width {
            0 | 64 | 128 | 256 | 512 | 1024 => Ok(width),
            _ => Err(ScheduleError::Width(width)),
        }
    }

    /// Checks the limits that need no problem.
    fn check_numbers(&self) -> Result<(), ScheduleError> {
        Schedule::checked_width(self.width)?;
        if !(1..=Schedule::MAX_JAM).contains(&self.jam) {
            return Err(ScheduleError::Jam { given: self.jam, limit: Schedule::MAX_JAM });
        }
        if !(1..=Schedule::MAX_IN_FLIGHT).contains(&self.in_flight) {
            return Err(ScheduleError::InFlight { given: self.in_flight, limit: Schedule::MAX_IN_FLIGHT });
        }
        if !(1..=Schedule::MAX_INTERLEAVE).contains(&self.interleave) {
            return Err(ScheduleError::Interleave { given: self.interleave, limit: Schedule::MAX_INTERLEAVE });
        }
        if self.prefetch > Schedule::MAX_PREFETCH {
            return Err(ScheduleError::Prefetch { given: self.prefetch, limit: Schedule::MAX_PREFETCH });
        }
        if ![0, Machine::LINE_BYTES].contains(&self.align) {
            return Err(ScheduleError::Align { given: self.align, line: Machine::LINE_BYTES });
        }
        if !(1..=Schedule::MAX_PARTS).contains(&self.parts.count) {
            return Err(ScheduleError::Parts { given: self.parts.count, limit: Schedule::MAX_PARTS });
        }
        if let Some(&Tile { var, by, .. }) = self.tiles.iter().find(|tile| tile.by == 0) {
            return Err(ScheduleError::EmptyTile { var, by });
        }
        match self.tiles.iter().find(|tile| tile.transform != Transform::Steps && self.in_flight > 1) {
            Some(&tile) => Err(ScheduleError::TileWithInFlight { tile, in_flight: self.in_flight }),
            None => Ok(()),
        }
    }

    /// The tile of a loop.
    pub(crate) fn tile_of(&self, var: LoopVar) -> Option<Tile> {
        self.tiles.iter().copied().find(|tile| tile.var == var)
    }
}
