//! `model bench`: the time of each distinct kernel of a plan, and its share of this machine's speed.

use super::distinct::Distinct;
use super::load::{load, planned, wrong};
use crate::args::ModelBench;
use crate::arrays::moved_bytes;
use crate::bench::{Case, Measured, Order, measure};
use crate::failure::Failure;
use crate::figures;
use crate::threads::{compiler, pool};
use cranefold::Options;
use serde_json::{Value, json};
use std::io::Write;

/// The most characters of the nodes' names in a line.
const MOST_NAMES: usize = 60;

/// A distinct kernel, timed.
struct Timed<'p> {
    kernels: Distinct<'p>,
    bytes: u64,
    measured: Measured,
}

impl Timed<'_> {
    /// The name and the time of the loop that the kernel is held against: the nearest hand-written one, or one that reads
    /// as many bytes.
    fn ceiling(&self) -> (&str, f64) {
        match &self.measured.loop_ns {
            Some((name, ns)) => (name, *ns),
            None => ("read", self.measured.read_ns),
        }
    }

    /// The sum over the kernels of this spec.
    fn total(&self, of_one: f64) -> f64 {
        of_one * self.kernels.count() as f64
    }
}

/// Times the kernels of a plan, each on random elements of its shapes.
///
/// # Errors
/// If the model cannot be read or a kernel not compiled; [`Failure::WrongAnswer`] if a kernel's answer is wrong.
pub fn bench(args: &ModelBench, out: &mut dyn Write) -> Result<(), Failure> {
    let plan = planned(&load(&args.file, &args.bind)?.graph, &args.file)?;
    let (compiler, executor) = (compiler(args.threads)?, pool(args.threads)?);
    let budget_ns = 1e6 * args.budget_ms as f64;
    if !args.json {
        head(out).map_err(Failure::Stdout)?;
    }
    let mut all = vec![];
    for kernels in Distinct::of(&plan) {
        let spec = kernels.spec().clone();
        let case = Case::of(spec);
        let options = Options::default();
        let measured = measure(&case, compiler.target(), &options, &executor, budget_ns, Order::InTurn, 0);
        let measured = measured.map_err(|failure| match failure.exit_code() {
            2 => wrong(&args.file, format!("kernel {}: {failure}", kernels.first())),
            _ => failure,
        })?;
        let timed = Timed { kernels, bytes: moved_bytes(&case.spec), measured };
        if !args.json {
            writeln!(out, "{}", row(&timed)).and_then(|()| out.flush()).map_err(Failure::Stdout)?;
        }
        all.push(timed);
    }
    let opaque = plan.opaque();
    if args.json {
        let opaque = opaque.map(|step| json!({ "name": step.name, "op": step.op, "why": step.why }));
        return writeln!(out, "{}", json_of(&all, opaque.collect())).map_err(Failure::Stdout);
    }
    writeln!(out, "{}", total(&all)).map_err(Failure::Stdout)?;
    for step in opaque {
        writeln!(out, "left out: {}, {}: {}", step.name, step.op, step.why).map_err(Failure::Stdout)?;
    }
    Ok(())
}

fn head(out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(
        out,
        "kernel: its number in `model plan`, the first of as many as have the same spec; time: the median of a"
    )?;
    writeln!(
        out,
        "call on random elements; GB/s: bytes of elements read and written; share: the time of the ceiling,"
    )?;
    writeln!(
        out,
        "sampled in turn, over the kernel's; ceiling: the nearest hand-written loop on the widest vectors, or"
    )?;
    writeln!(out, "`read`, a plain loop that reads as many bytes")?;
    let (kernel, count, time, rate, share) = ("kernel", "count", "time", "GB/s", "share");
    writeln!(out, "\n{kernel:>6} {count:>5} {time:>9} {rate:>7} {share:>7}  {:<26} nodes", "ceiling")?;
    out.flush()
}

fn row(timed: &Timed) -> String {
    let (name, ns) = timed.ceiling();
    let median_ns = timed.measured.median_ns;
    let nodes = timed.kernels.kernels[0].1.nodes.join(", ");
    let nodes = match nodes.char_indices().nth(MOST_NAMES) {
        Some((at, _)) => format!("{}…", &nodes[..at]),
        None => nodes,
    };
    format!(
        "{:>6} {:>5} {:>9} {:>7} {:>7}  {name:<26} {nodes}",
        timed.kernels.first(),
        timed.kernels.count(),
        figures::time(median_ns),
        figures::rate(timed.bytes, median_ns),
        percent(ns, median_ns)
    )
}

fn percent(part: f64, of: f64) -> String {
    format!("{:.0} %", 100.0 * part / of)
}

/// The time, the bytes and the ceilings' time of all kernels of a plan, one after the other.
fn sums(all: &[Timed]) -> (f64, u64, f64) {
    let ns = all.iter().map(|timed| timed.total(timed.measured.median_ns)).sum();
    let bytes = all.iter().map(|timed| timed.bytes * timed.kernels.count() as u64).sum();
    (ns, bytes, all.iter().map(|timed| timed.total(timed.ceiling().1)).sum())
}

fn total(all: &[Timed]) -> String {
    let kernels: usize = all.iter().map(|timed| timed.kernels.count()).sum();
    if kernels == 0 {
        return "total: no kernels".into();
    }
    let (ns, bytes, ceiling_ns) = sums(all);
    let (time, rate, share) = (figures::time(ns), figures::rate(bytes, ns), percent(ceiling_ns, ns));
    let distinct = all.len();
    format!("total: {kernels} kernels, {distinct} of them distinct: {time}, {rate} GB/s, {share} of the ceilings")
}

fn json_of(all: &[Timed], opaque: Vec<Value>) -> Value {
    let kernels = all.iter().map(|timed| {
        let (ceiling, ceiling_ns) = timed.ceiling();
        let numbers: Vec<usize> = timed.kernels.kernels.iter().map(|(number, _)| *number).collect();
        json!({
            "kernels": numbers,
            "spec": timed.kernels.spec().to_string(),
            "bytes": timed.bytes,
            "median_ns": timed.measured.median_ns,
            "ceiling": ceiling,
            "ceiling_ns": ceiling_ns,
        })
    });
    let (total_ns, total_bytes, total_ceiling_ns) = sums(all);
    json!({
        "kernels": kernels.collect::<Vec<_>>(),
        "opaque": opaque,
        "total_ns": total_ns,
        "total_bytes": total_bytes,
        "total_ceiling_ns": total_ceiling_ns,
    })
}
