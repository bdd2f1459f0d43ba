//! The expected time of a schedule.

use super::facts::Facts;
use super::machine::Level;
use std::fmt;

/// A visit of the slices of a region and its expected time.
#[derive(Clone, Debug, PartialEq)]
pub struct Visit {
    /// The reductions; `outputs` for the visit that writes each position.
    pub name: String,
    /// Bytes of the elements read, each once.
    pub read_bytes: u64,
    /// The number of times that they are read.
    pub times: usize,
    /// The level of memory that holds them.
    pub level: Level,
    /// Bytes written to outputs at positions.
    pub written_bytes: u64,
    /// Operations on an element, over all times.
    pub operations: u64,
    /// Cycles in which the ports of the vector units begin these operations.
    pub port_cycles: f64,
    /// The expected time in ns, without values that are kept or computed for several visits.
    pub ns: f64,
}

/// The time of a call on one thread in ns, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Reading the elements, and beginning runs of memory.
    pub reading_ns: f64,
    /// Operations on elements, or waiting for earlier results.
    pub computing_ns: f64,
    /// Visiting accumulators that are not in registers.
    pub visiting_ns: f64,
    /// Ending slices: folding lanes, finishing, storing, beginning loops; and moving states of blocks that lie among
    /// those of other outputs.
    pub ending_ns: f64,
    /// Visits of slices after the first: by further reductions, and to write each position.
    pub later_ns: f64,
    /// Element values that several visits of a slice need: computing them, and keeping them between visits.
    pub keeping_ns: f64,
    /// The call itself.
    pub calling_ns: f64,
}

impl Cost {
    /// The total time. Reading, computing and visiting overlap, but not completely.
    pub fn total_ns(&self) -> f64 {
        self.reading_ns.hypot(self.computing_ns).hypot(self.visiting_ns)
            + self.ending_ns
            + self.later_ns
            + self.keeping_ns
            + self.calling_ns
    }

    /// The parts by name.
    pub fn terms(&self) -> [(&'static str, f64); 7] {
        [
            ("reading", self.reading_ns),
            ("computing", self.computing_ns),
            ("visiting accumulators", self.visiting_ns),
            ("ending slices", self.ending_ns),
            ("later visits", self.later_ns),
            ("values of several visits", self.keeping_ns),
            ("calling", self.calling_ns),
        ]
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Time(self.total_ns()))?;
        let terms = self.terms().map(|(name, ns)| format!("{name} {}", Time(ns)));
        write!(f, " ({})", terms.join(", "))
    }
}

/// The time in ns to read the lines of an input whose rows lie across the steps, if `taken` elements of each line are
/// taken at once.
pub(super) fn lines_ns(facts: &Facts, level: Level, taken: u64) -> f64 {
    let taken = taken.clamp(1, facts.in_line()) as f64;
    if facts.crosses() { facts.elements() / taken * facts.machine.line_ns[level as usize] } else { 0.0 }
}

/// A time in ns, printed in a readable unit.
pub(crate) struct Time(pub f64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ns if ns < 999.5 => write!(f, "{ns:.1} ns"),
            ns if ns < 999.5e3 => write!(f, "{:.1} us", ns / 1e3),
            ns => write!(f, "{:.2} ms", ns / 1e6),
        }
    }
}
