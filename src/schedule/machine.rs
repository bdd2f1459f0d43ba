//! What a machine can do, as far as a choice depends on it.

use crate::vectors::Vectors;
use cranefold_ir::{DType, Op};
use std::fmt;

/// Where the data of a call lies, after the calls before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The first-level cache.
    L1,
    /// The second-level cache.
    L2,
    /// The last-level cache.
    L3,
    /// Memory.
    Memory,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Level::L1 => "first-level cache",
            Level::L2 => "second-level cache",
            Level::L3 => "last-level cache",
            Level::Memory => "memory",
        })
    }
}

/// The figures of a core and its caches.
///
/// ```
/// use cranefold::schedule::{Level, Machine};
///
/// let machine = Machine::TYPICAL;
/// assert_eq!(machine.level(16 << 10), Level::L1);
/// assert_eq!(machine.level(256 << 20), Level::Memory);
/// assert!(machine.read_ns(1 << 20) < machine.read_ns(64 << 20) / 64.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Bytes up to which data stays in the first-level cache, the second-level cache, and the last.
    pub cache_bytes: [u64; 3],
    /// Bytes that are read in a ns by wide vectors one after the other, from the three caches and from memory.
    pub read_rate: [f64; 4],
    /// Time in ns that the beginning of a run of memory costs before the prefetcher follows it, see
    /// [`begin_ns`](Machine::begin_ns).
    pub run_ns: [f64; 4],
    /// Time in ns that a line of memory costs of which neighbours are far apart, the lines of other rows of the matrix
    /// between them.
    pub line_ns: [f64; 4],
    /// Rows of a matrix from which lines are read in turn: more than these lie in pages that the core does not find at
    /// once.
    pub near_pages: u64,
    /// Operations on whole vectors in a ns.
    pub vector_ops: f64,
    /// Bytes of accumulators that are written and read again in a ns: a store of 64 bytes takes two cycles.
    pub state_rate: f64,
    /// Time in ns from an operation to the next that needs its result.
    pub latency_ns: f64,
    /// Time in ns that the end of a block costs whose results are waited for: a loop that ends unforeseen, and a chain of
    /// operations. `argmax` of two slices of 1,000 floats at once saved 12 ns a slice in the second-level cache, 4 in
    /// the last.
    pub wait_ns: f64,
    /// Time in ns that a call of a kernel with wide functions costs beyond one without.
    pub wide_call_ns: f64,
    /// Bytes of states that stay in registers while steps go by, of vectors below 512 bits and of these.
    pub state_bytes: [u64; 2],
    /// Streams of memory that prefetchers follow.
    pub streams: u64,

    /// Operations in the time of a division or a square root.
    pub division_ops: u64,
    /// Operations in the time of an IEEE 754 minimum or maximum: of vectors below 512 bits five instructions, of these a
    /// comparison beside the instruction.
    pub extreme_ops: [u64; 2],
    /// The most operations on an element, in each phase, that cost little beside its load.
    pub light_ops: u64,
    /// Operations in which a fold halves the lanes of a value: two moves and a combination.
    pub halving_ops: f64,
    /// Operations in which several slices fold a value together, for each slice: two moves.
    pub shared_fold_ops: f64,
    /// Operations that bring the elements of a vector together which lie a line of memory apart.
    pub transpose_ops: f64,
    /// Dependent operations after the lanes of a slice are folded, beside one for each halving.
    pub finish_chain: f64,
    /// Latency of an extreme of integers, and of one of floats with a comparison for NaN, where a slice is searched, in
    /// times of `latency_ns`.
    pub extreme_latency: f64,
    /// See `extreme_latency`.
    pub compared_extreme_latency: f64,

    /// Times that reading takes as long, by level, where blocks of one phase are interleaved: prefetchers follow worse.
    pub reading_interleaved: [f64; 4],
    /// Times that reading takes as long, by level, where elements are looked at again: meanwhile nothing is read.
    pub reading_again: [f64; 4],
    /// The same where blocks are interleaved.
    pub reading_again_interleaved: [f64; 4],
    /// The same where memory is asked for ahead, which is in the way of prefetchers.
    pub reading_again_asked: [f64; 4],
    /// The same where memory beyond a short run is asked for: it has to be read all the same.
    pub reading_again_astray: [f64; 4],
    /// Times that computing takes as long where memory is asked for that is at hand in the first-level cache.
    pub computing_asked: f64,
    /// Times that reading takes as long, by level, where vectors of a whole line lie across two: of an input that begins 16
    /// bytes after the start of a line. From memory, what begins at lines took no less.
    pub reading_across: [f64; 4],
    /// Time in ns that a loop which loads lines takes beyond one that does not: its first and last line, and a rotation.
    pub line_ends_ns: f64,
    /// Times that reading takes as long, by level, where slices fold together: nothing is read meanwhile. `sum` over
    /// axis 1 of `nChw16c` took 1.1 times as long from memory.
    pub reading_shared_folds: [f64; 4],
    /// Times that reading takes as long, by level, where a matrix is read by pieces of single rows.
    pub reading_pieces: [f64; 4],
    /// Times that reading from memory takes longer for each page of a piece, where pieces of several rows of it are
    /// read at once: prefetchers follow one of several rows in a page.
    pub reading_rows: f64,
    /// The most times that it takes as long.
    pub reading_rows_most: f64,

    /// Times that visiting accumulators takes as long where these and the rows leave the first-level cache.
    pub visiting_far: f64,
    /// Times that lines of memory take as long where there are more rows than `near_pages`.
    pub lines_far: f64,
    /// Times that the state of a block is written or read where outputs take turns, beyond once: it has a stack of its own,
    /// which left the registers and the nearest lines.
    pub pushed: f64,
    /// The same where a tile moves into all loops over blocks: the state has a place among those of the tile before it is
    /// pushed.
    pub pushed_in_tile: f64,

    /// Time in ns that a part is worth: some times what waking a thread takes. In parts of 2.5 us, a sum of 1 MB took 11 us
    /// on one thread and 28 on two; measured beside other work.
    pub part_ns: f64,
    /// Time in ns for a byte where no cost is known: elements are brought into order, or converted.
    pub byte_ns: f64,
}

impl Machine {
    /// One core of a server of 2023 with 256-bit units (Zen 4), on which `cargo bench --bench ceiling` measured the rates and
    /// `cranefold bench --candidates` gave the rest. The choice is made by these figures everywhere, so that a dump is
    /// the same on every machine.
    pub const TYPICAL: Machine = Machine {
        cache_bytes: [28 << 10, 1 << 20, 18 << 20],
        read_rate: [200.0, 110.0, 90.0, 33.0],
        run_ns: [1.0, 4.0, 20.0, 250.0],
        line_ns: [0.25, 2.0, 3.3, 7.0],
        near_pages: 2048,
        vector_ops: 6.0,
        state_rate: 237.0,
        latency_ns: 1.1,
        wait_ns: 12.0,
        wide_call_ns: 6.0,
        state_bytes: [256, 768],
        streams: 16,
        division_ops: 6,
        extreme_ops: [5, 2],
        light_ops: 6,
        halving_ops: 3.0,
        shared_fold_ops: 2.0,
        transpose_ops: 4.0,
        finish_chain: 2.0,
        extreme_latency: 0.3,
        compared_extreme_latency: 2.0,
        reading_interleaved: [1.0, 1.0, 1.2, 1.3],
        reading_again: [1.0, 1.3, 1.3, 1.0],
        reading_again_interleaved: [1.0, 1.5, 1.5, 1.6],
        reading_again_asked: [1.0, 1.0, 1.0, 1.5],
        reading_again_astray: [1.0, 1.7, 1.7, 1.5],
        computing_asked: 1.03,
        reading_across: [1.45, 1.08, 1.08, 1.0],
        line_ends_ns: 1.5,
        reading_shared_folds: [1.0, 1.0, 1.0, 1.08],
        reading_pieces: [1.0, 1.0, 1.12, 2.5],
        reading_rows: 0.5,
        reading_rows_most: 2.0,
        visiting_far: 3.0,
        lines_far: 2.0,
        pushed: 2.0,
        pushed_in_tile: 5.0,
        part_ns: 2e4,
        byte_ns: 0.1,
    };

    /// Bytes of a line of memory.
    pub const LINE_BYTES: u64 = 64;

    /// Bytes of a page of memory.
    pub const PAGE_BYTES: u64 = 4 << 10;

    /// Operations in the time of one, on vectors of `width` bits. Reading bits as another type is none.
    pub fn operations(&self, op: Op, dtype: DType, width: u32) -> u64 {
        match op {
            Op::Bits => 0,
            Op::Div | Op::Sqrt => self.division_ops,
            Op::Min | Op::Max if dtype.is_float() => self.extreme_ops[with_masks(width)],
            _ => 1,
        }
    }

    /// Bytes of states that stay in registers of `width` bits while steps go by.
    pub fn state_bytes(&self, width: u32) -> u64 {
        self.state_bytes[with_masks(width)]
    }

    /// Where so many bytes lie when they are read over and over.
    pub fn level(&self, bytes: u64) -> Level {
        let levels = [Level::L1, Level::L2, Level::L3];
        let fits = levels.into_iter().zip(self.cache_bytes).find(|&(_, most)| bytes <= most);
        fits.map_or(Level::Memory, |(level, _)| level)
    }

    /// The time in ns that reading so many bytes in order takes.
    pub fn read_ns(&self, bytes: u64) -> f64 {
        bytes as f64 / self.read_rate[self.level(bytes) as usize]
    }

    /// The time in ns that the beginning of a run costs, of so many bytes that are read over and over. Of data little larger than
    /// the second-level cache, much is still there: runs of 1.6 MB began as fast as in it, of 12.8 MB as in the last-level one.
    ///
    /// ```
    /// use cranefold::schedule::Machine;
    ///
    /// let machine = Machine::TYPICAL;
    /// assert_eq!(machine.begin_ns(2 << 20), machine.begin_ns(1 << 20));
    /// assert!(machine.begin_ns(16 << 20) > 4.0 * machine.begin_ns(2 << 20));
    /// ```
    pub fn begin_ns(&self, bytes: u64) -> f64 {
        let [_, second, last, _] = self.run_ns;
        match self.level(bytes) {
            Level::L3 => (last * (1.0 - 2.0 * self.cache_bytes[1] as f64 / bytes as f64)).max(second),
            level => self.run_ns[level as usize],
        }
    }
}

/// The place, in a pair of figures, of vectors of this width: 1 where they have masks.
fn with_masks(width: u32) -> usize {
    usize::from(Vectors::WIDEST.at_most(width).has_masks())
}
