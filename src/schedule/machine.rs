//! What a machine can do, as far as a choice depends on it.

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
    /// Time in ns that a line of memory costs of which neighbours are far apart, the lines of other rows between them.
    pub line_ns: [f64; 4],
    /// Rows from which lines are read in turn: more than these lie in pages that the core does not find at once.
    pub near_pages: u64,
    /// Operations on whole vectors in a ns.
    pub vector_ops: f64,
    /// Bytes of accumulators that are written and read again in a ns: a store of 64 bytes takes two cycles.
    pub state_rate: f64,
    /// Time in ns from an operation to the next that needs its result.
    pub latency_ns: f64,
    /// Time in ns that the end of a block costs whose results are waited for: a loop that ends unforeseen, and a chain of
    /// operations. `argmax` of two rows of 1,000 floats at once saved 12 ns a row in the second-level cache, 4 in the last.
    pub wait_ns: f64,
    /// Time in ns that a call of a kernel with tiles costs beyond one without.
    pub tile_ns: f64,
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
        tile_ns: 6.0,
    };

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
