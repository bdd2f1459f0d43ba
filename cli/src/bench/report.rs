//! The report, for people or in the peers' format.

use super::cases::{Case, Entry};
use super::measure::{MOST_INTERPRETED, Measured};
use super::memory;
use crate::arrays::{input_bytes, moved_bytes};
use crate::check::broken_law;
use crate::failure::Failure;
use crate::figures;
use std::io::{self, Write};

/// A report in the making; each line is flushed, because some take a while.
pub struct Report<'a> {
    json: bool,
    /// The threads that kernels run on.
    threads: usize,
    /// Columns of the longest name.
    name: usize,
    out: &'a mut dyn Write,
}

impl<'a> Report<'a> {
    /// Prints the head of the report: for people, the read rates of memory.
    ///
    /// # Errors
    /// [`Failure::Stdout`], and [`Failure::Memory`].
    pub fn start(json: bool, threads: usize, entries: &[Entry], out: &'a mut dyn Write) -> Result<Report<'a>, Failure> {
        let names = entries.iter().map(|entry| match entry {
            Entry::Case(case) => case.name.chars().count(),
            Entry::Skipped { name, .. } => name.chars().count(),
        });
        let mut report = Report { json, threads, name: names.max().unwrap_or(0).clamp(4, 60), out };
        if !json {
            let rates = memory::SIZES.iter().zip(memory::ladder()?);
            let rates = rates.map(|(&size, ns)| {
                format!("{} GB/s from {}", figures::rate(size as u64, ns), figures::size(size as u64))
            });
            let rates = rates.collect::<Vec<_>>().join(", ");
            report.heading(&rates).map_err(Failure::Stdout)?;
        }
        Ok(report)
    }

    fn heading(&mut self, rates: &str) -> io::Result<()> {
        let name = self.name;
        writeln!(self.out, "one core reads {rates}")?;
        writeln!(
            self.out,
            "GB/s: bytes of elements read and written; share: the time of a plain loop that reads as many,"
        )?;
        writeln!(
            self.out,
            "sampled in turn, over the kernel's; loop: that of the nearest hand-written loop on the widest"
        )?;
        writeln!(self.out, "vectors, over the kernel's; x: the interpreter's time over the kernel's; bits are those")?;
        writeln!(self.out, "of the interpreter, above {MOST_INTERPRETED} elements of scalar code")?;
        writeln!(
            self.out,
            "\n{:<name$} {:>9} {:>9} {:>7} {:>7} {:>7} {:>12} {:>8}  bits",
            "case", "compile", "native", "GB/s", "share", "loop", "interpreter", "x"
        )?;
        self.out.flush()
    }

    /// Prints a case.
    ///
    /// # Errors
    /// [`Failure::Stdout`].
    pub fn measured(&mut self, case: &Case, measured: &Measured) -> Result<(), Failure> {
        let line = match self.json {
            true => json(self.threads, case, measured),
            false => row(self.name, case, measured),
        };
        self.line(&line)?;
        match broken_law(&case.spec) {
            Some(law) if !self.json => {
                self.line(&format!("  its combiner breaks its contract, as `Combiner::check` finds: {law}"))
            }
            _ => Ok(()),
        }
    }

    /// Prints that a case was not timed.
    ///
    /// # Errors
    /// [`Failure::Stdout`].
    pub fn skipped(&mut self, name: &str, reason: &str) -> Result<(), Failure> {
        // A bug's message may hold a nest, of which the first line is enough here.
        let reason = reason.lines().next().unwrap_or("");
        let line = match self.json {
            true => {
                let (name, reason) = (text(name), text(reason));
                let threads = self.threads;
                format!(r#"{{"peer":"cranefold","threads":{threads},"case":{name},"skip":{reason}}}"#)
            }
            false => format!("{name:<width$} skipped: {reason}", width = self.name),
        };
        self.line(&line)
    }

    fn line(&mut self, line: &str) -> Result<(), Failure> {
        writeln!(self.out, "{line}").and_then(|()| self.out.flush()).map_err(Failure::Stdout)
    }
}

fn row(name: usize, case: &Case, measured: &Measured) -> String {
    let median_ns = measured.median_ns;
    let (interpreter, ratio, other) = match measured.interpreter_ns {
        Some(ns) => (figures::time(ns), format!("{:.0}", ns / median_ns), "interpreter"),
        None => ("-".into(), "-".into(), "scalar code"),
    };
    let percent = |ns: f64| format!("{:.0} %", 100.0 * ns / median_ns);
    format!(
        "{:<name$} {:>9} {:>9} {:>7} {:>7} {:>7} {:>12} {:>8}  {other}",
        case.name,
        figures::time(measured.compile_ns),
        figures::time(median_ns),
        figures::rate(moved_bytes(&case.spec), median_ns),
        percent(measured.read_ns),
        measured.loop_ns.as_ref().map_or("-".into(), |(_, ns)| percent(*ns)),
        interpreter,
        ratio
    )
}

/// The line in the peers' format, with the bytes of the inputs, and the hand-written loop if there is one.
fn json(threads: usize, case: &Case, measured: &Measured) -> String {
    let hand = measured.loop_ns.as_ref().map(|(name, ns)| format!(r#","loop":{},"loop_ns":{ns:.1}"#, text(name)));
    format!(
        r#"{{"peer":"cranefold","threads":{threads},"case":{},"bytes":{},"first_ns":{:.0},"touch_ns":{:.0},"median_ns":{:.1},"min_ns":{:.1}{}}}"#,
        text(&case.name),
        input_bytes(&case.spec),
        measured.first_ns,
        measured.touch_ns,
        measured.median_ns,
        measured.min_ns,
        hand.unwrap_or_default()
    )
}

/// A string of JSON.
fn text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
