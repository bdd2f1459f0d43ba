//! The figures of a machine on which the choice of a schedule depends.

use crate::vectors::Vectors;
use cranefold_ir::{DType, Op};
use std::fmt;

/// The level of memory that holds the data of a call, after the calls before it.
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
    /// Bytes per ns that wide vectors read in order, from the three caches and from memory.
    pub read_rate: [f64; 4],
    /// Bytes per ns that are written in order.
    pub write_rate: [f64; 4],
    /// Bytes per ns that are written to memory past the caches. A product of 32 MB took 1.7 ms that way, and 2.3 ms by way
    /// of the caches; of 8 MB it took as long both ways, and of 4 MB half as long by way of the caches.
    pub write_past_rate: f64,
    /// The most bytes of inputs and outputs together with which outputs are written by way of the caches. Rows of 16 KB and their results,
    /// 16.8 MB, took 0.30 ms past the caches, and 0.41 to 0.47 by way of them; 12.6 MB as long both ways.
    pub write_past_bytes: u64,
    /// Time in ns to begin a run of memory, before the prefetcher follows it; see [`begin_ns`](Machine::begin_ns).
    pub run_ns: [f64; 4],
    /// Time in ns to begin a run of at most two lines, which lies as far from the run before as that from its own:
    /// prefetchers follow the distance. Runs of 8 floats: 0.5 ns in 0.8 MB, 0.9 in 6.4 MB, 2.7 in 51 MB.
    pub strided_ns: [f64; 4],
    /// Time in ns to write such a run, beyond the time to write it behind the run before.
    pub strided_store_ns: [f64; 4],
    /// Time in ns to read such a run, beyond the time to read others, if whole pages lie between the starts of a slice's
    /// runs: they share a set of the first-level cache, which drops what was fetched with them before the next slice takes
    /// it. 100 runs of 16 floats 4,096 bytes apart took 2 to 3 ns each longer than 4,160 bytes apart.
    pub one_set_ns: [f64; 4],
    /// Time in ns to read a line of memory if lines of other rows of the matrix are read before its neighbours.
    pub line_ns: [f64; 4],
    /// Time in ns to bring an element that lies across memory into the order of its slice, by squares, beyond the time to
    /// read it in order: a sum of f32 took 17 us more for 0.5 MB, 0.39 ms for 8 MB and 5 ms for 64 MB.
    pub gather_ns: [f64; 4],
    /// The most rows of a matrix from which lines are read in turn without missing the nearest table of pages.
    pub near_pages: u64,
    /// Operations on whole vectors in a ns.
    pub vector_ops: f64,
    /// Operations on whole vectors that begin in a cycle.
    pub ports: f64,
    /// Bytes of accumulators that are written and read again per ns: a store of 64 bytes takes two cycles.
    pub state_rate: f64,
    /// Time in ns between an operation and the next one that needs its result.
    pub latency_ns: f64,
    /// Time in ns to wait for the results of a block at its end: for the misprediction of a loop's end, and a chain of
    /// operations. `argmax` of two slices of 1,000 floats at once saved 12 ns a slice in the second-level cache, 4 in
    /// the last.
    pub wait_ns: f64,
    /// Time in ns of a call of a kernel with wide functions beyond a call without.
    pub wide_call_ns: f64,
    /// Bytes of states that stay in registers from step to step, at vectors below 512 bits and at 512.
    pub state_bytes: [u64; 2],
    /// Streams of memory that prefetchers follow.
    pub streams: u64,

    /// Operations in the time of a division or a square root.
    pub division_ops: u64,
    /// Operations that round an f32 to bf16.
    pub rounding_ops: u64,
    /// Operations in the time of an IEEE 754 minimum or maximum: five instructions at vectors below 512 bits; at 512
    /// bits a comparison beside the instruction.
    pub extreme_ops: [u64; 2],
    /// Operations that fold the lanes of one value of a row's state, without and with masks: maxima of bf16 in rows of 256
    /// take as long by three values of three operations an element as by one of four.
    pub folding_ops: [u64; 2],
    /// The most operations on an element in each phase that cost little beside its load.
    pub light_ops: u64,
    /// Operations on an element in the time in which memory delivers it, which caches do in less: where later visits of a
    /// slice had 10, asking for the next one made int8 quantisation of rows 1.1 times as long; where they had 11 and an
    /// exponential, softmax took three quarters of its time.
    pub read_ops: u64,
    /// The operations on an element in the time of storing its value and loading it again.
    pub kept_ops: u64,
    /// Operations by which a fold halves the lanes of a value: two moves and a combination.
    pub halving_ops: f64,
    /// Operations per slice by which several slices fold a value together: two moves.
    pub shared_fold_ops: f64,
    /// Time in ns to load a slice of fewer elements than a vector has, of more than a byte each and with values of more
    /// than two, beyond the time of a whole vector: sums of 1,000 rows of 12 bf16 took 0.6 us more than of rows of 16, of
    /// rows of 14 f32 0.4, on a core that others slowed down by 1.6.
    pub part_of_vector_ns: f64,
    /// Operations that gather the elements of a vector which lie a line of memory apart.
    pub transpose_ops: f64,
    /// Operations that load an element by itself into its lane.
    pub gather_ops: f64,
    /// Dependent operations after the lanes of a slice are folded, beside one for each halving.
    pub finish_chain: f64,
    /// Latency, in a search, of an extreme of integers, in multiples of `latency_ns`.
    pub extreme_latency: f64,
    /// Latency, in a search, of an extreme of floats with a comparison for NaN, in multiples of `latency_ns`.
    pub compared_extreme_latency: f64,
    /// The most chains of maxima of floats whose checks for NaN are joined at once.
    pub joined_maxima: u64,

    /// Slowdown of reading, by level, if blocks of one phase are interleaved: prefetchers follow worse.
    pub reading_interleaved: [f64; 4],
    /// Slowdown of reading, by level, if elements are read again for a later phase: nothing new is read meanwhile.
    pub reading_again: [f64; 4],
    /// The same slowdown if blocks are interleaved.
    pub reading_again_interleaved: [f64; 4],
    /// The same slowdown with prefetch: `var` of 8,192 rows of 1,024 floats took 0.73 ms with two rows at once and 0.87 with
    /// one, without prefetch 1.77 and 1.02.
    pub reading_again_asked: [f64; 4],
    /// The same slowdown if the prefetch goes beyond a short run, and reads memory that is not needed, or if interleaved
    /// slices do not fit the first-level cache together: `layer_norm` of two rows of 16 KB at once took 1.2 times as long
    /// as of one.
    pub reading_again_astray: [f64; 4],
    /// Slowdown of reading, by level, if what is read once is asked for ahead: `sum` of 65,536 rows of 1,024 bf16 took 6.8
    /// ms that way, and 4.2 without.
    pub reading_once_asked: [f64; 4],
    /// Share of the time of reading, by level, that is left where columns are asked for ahead: `log_sum_exp` over axis 1 of
    /// `f32[64,128,1024]` took 2.5 ms that way, and 3.3 without.
    pub reading_columns_asked: [f64; 4],
    /// The time of operations, over that of reading, from which on asking ahead for columns pays: `max` of bf16 over axis 0
    /// took 1.0 ms that way and 1.8 without, of f32 1.7 and 1.0.
    pub asking_share: f64,
    /// The same of operations and visits of accumulators in memory, for columns of 16-bit elements: sums of
    /// `bf16[16384,1024]` took 0.70 ms that way and 1.10 without.
    pub visiting_share: f64,
    /// Share of the time of reading, by level, that is left where later visits ask for what is read next: softmax of rows of
    /// 4,096 floats from memory took 2.8 ms that way, and 4.1 without; of 1,024 rows of 1,024 floats, on an Intel Xeon, 0.36
    /// and 0.51.
    pub reading_asked_between: [f64; 4],
    /// Times that reading takes as long, by level, where vectors of a whole line lie across two: of an input that begins 16
    /// bytes after the start of a line. From memory, what begins at lines took no less.
    pub reading_across: [f64; 4],
    /// Time in ns that a loop which loads lines takes beyond one that does not: its first and last line, and a rotation.
    pub line_ends_ns: f64,
    /// Times that reading takes as long, by level, where slices fold together: nothing is read meanwhile. `sum` over
    /// axis 1 of `nChw16c` took 1.1 times as long from memory.
    pub reading_shared_folds: [f64; 4],
    /// Slowdown of reading, by level, if a matrix is read by pieces of single rows.
    pub reading_pieces: [f64; 4],
    /// The same of pieces of several lines in memory whose blocks are visited again, if they are asked for ahead: `var` of
    /// `f64[8000,16,196]` over axis 1 took 8.1 ms that way, 20.5 without, and 16.1 in whole rows.
    pub reading_pieces_asked: f64,
    /// The same of pieces of what fills the last-level cache, with the outputs that go through it: `rms_norm` of
    /// `f32[1193,16,196]` over axis 1 took 1.9 ms by pieces, and 0.9 in whole rows.
    pub reading_pieces_crowded: f64,
    /// Slowdown of reading, by level, if rows of runs are read by parts of each.
    pub reading_parts: [f64; 4],
    /// Additional slowdown of reading from memory for each page of a piece, if pieces of several of its rows are read
    /// at once: prefetchers follow one of several rows in a page.
    pub reading_rows: f64,
    /// The greatest slowdown by `reading_rows`.
    pub reading_rows_most: f64,

    /// Slowdown of visiting accumulators if these and the rows do not fit the first-level cache.
    pub visiting_far: f64,
    /// Slowdown of reading lines of memory if there are more rows than `near_pages`.
    pub lines_far: f64,
    /// Additional times that the state of a block is written or read if outputs take turns: each output's stack has
    /// left the registers and the nearest lines.
    pub pushed: f64,
    /// The same number if a tile moves into all loops over blocks: the state is stored among those of the tile before
    /// it is pushed.
    pub pushed_in_tile: f64,

    /// Time in ns for which a part is worthwhile: several times the time to wake a thread. In parts of 2.5 us, a sum of
    /// 1 MB took 11 us on one thread and 28 on two; measured beside other work.
    pub part_ns: f64,
    /// Time in ns per byte if no cost is known: elements are brought into order, or converted.
    pub byte_ns: f64,
}

impl Machine {
    /// One core of a server of 2023 with 256-bit units (Zen 4). `cargo bench --bench ceiling` measured the rates, and
    /// `cranefold bench --candidates` the rest. Every choice uses these figures, so that a dump is the same on every
    /// machine.
    pub const TYPICAL: Machine = Machine {
        cache_bytes: [28 << 10, 1 << 20, 18 << 20],
        read_rate: [200.0, 110.0, 90.0, 33.0],
        write_rate: [200.0, 140.0, 90.0, 30.0],
        write_past_rate: 48.0,
        write_past_bytes: 14 << 20,
        run_ns: [1.0, 4.0, 20.0, 250.0],
        strided_ns: [0.3, 0.5, 0.7, 2.5],
        strided_store_ns: [0.3, 1.0, 3.0, 6.0],
        one_set_ns: [0.0, 2.2, 3.0, 2.5],
        line_ns: [0.25, 2.0, 3.3, 7.0],
        gather_ns: [0.04, 0.05, 0.09, 0.2],
        near_pages: 2048,
        vector_ops: 6.0,
        ports: 2.0,
        state_rate: 237.0,
        latency_ns: 1.1,
        wait_ns: 12.0,
        wide_call_ns: 6.0,
        state_bytes: [256, 768],
        streams: 16,
        division_ops: 8,
        rounding_ops: 7,
        extreme_ops: [5, 2],
        folding_ops: [4, 8],
        light_ops: 6,
        read_ops: 10,
        kept_ops: 4,
        halving_ops: 3.0,
        shared_fold_ops: 2.0,
        part_of_vector_ns: 0.35,
        transpose_ops: 4.0,
        gather_ops: 1.0,
        finish_chain: 2.0,
        extreme_latency: 0.3,
        compared_extreme_latency: 2.0,
        joined_maxima: 5,
        reading_interleaved: [1.0, 1.0, 1.2, 1.7],
        reading_again: [1.0, 1.3, 1.3, 1.0],
        reading_again_interleaved: [1.0, 1.3, 1.3, 1.7],
        reading_again_asked: [1.0, 1.0, 1.0, 0.8],
        reading_again_astray: [1.0, 1.7, 1.7, 1.2],
        reading_once_asked: [1.0, 1.1, 1.1, 1.4],
        reading_columns_asked: [1.0, 1.0, 0.75, 0.75],
        asking_share: 0.4,
        visiting_share: 0.7,
        reading_asked_between: [1.0, 1.0, 0.9, 0.5],
        reading_across: [1.45, 1.08, 1.08, 1.0],
        line_ends_ns: 1.5,
        reading_shared_folds: [1.0, 1.0, 1.0, 1.08],
        reading_pieces: [1.0, 1.0, 1.12, 2.5],
        reading_pieces_asked: 1.25,
        reading_pieces_crowded: 1.8,
        reading_parts: [1.0, 1.0, 1.5, 2.0],
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

    /// The cost of an operation on vectors of `width` bits, in simple operations. Reading bits as another type is free.
    pub fn operations(&self, op: Op, dtype: DType, width: u32) -> u64 {
        match op {
            Op::Bits => 0,
            Op::Div | Op::Sqrt => self.division_ops,
            Op::Cast if dtype == DType::Bf16 => self.rounding_ops,
            Op::Min | Op::Max if dtype.is_float() => self.extreme_ops[with_masks(width)],
            _ => 1,
        }
    }

    /// Operations that fold the lanes of one value of a row's state.
    pub fn folding_ops(&self, width: u32) -> u64 {
        self.folding_ops[with_masks(width)]
    }

    /// Bytes of states that stay in registers of `width` bits from step to step.
    pub fn state_bytes(&self, width: u32) -> u64 {
        self.state_bytes[with_masks(width)]
    }

    /// The level that holds `bytes` bytes when they are read over and over.
    pub fn level(&self, bytes: u64) -> Level {
        let levels = [Level::L1, Level::L2, Level::L3];
        let fits = levels.into_iter().zip(self.cache_bytes).find(|&(_, most)| bytes <= most);
        fits.map_or(Level::Memory, |(level, _)| level)
    }

    /// The time in ns to read `bytes` bytes in order.
    pub fn read_ns(&self, bytes: u64) -> f64 {
        bytes as f64 / self.read_rate[self.level(bytes) as usize]
    }

    /// The time in ns to begin a run, in data of `bytes` bytes that are read over and over. Of data little larger than
    /// the second-level cache, much is still there: runs in 1.6 MB began as fast as in that cache, in 12.8 MB as in the
    /// last.
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

/// The index, in a pair of figures, for vectors of this width: 1 if they have masks.
fn with_masks(width: u32) -> usize {
    usize::from(Vectors::WIDEST.at_most(width).has_masks())
}
