//! Compile time of the workloads, or of the regions, by stage, after a warm-up.
//!
//!     cargo bench -p cranefold-cli --bench compile                 of `workloads.txt`
//!     cargo bench -p cranefold-cli --bench compile -- regions      of `regions.txt`, each region once
//!
//! The bench is one of this package because the tests of the library turn on its checks of machine code.
//!
//! Prints the median of each stage in microseconds:
//!
//! | column | what |
//! | --- | --- |
//! | `total` | from the text to a kernel that can be called, by a compiler that has cached nothing |
//! | `parse` `problem` `schedule` `lower` | text to spec, to problem, choosing the form and the schedule, to the first nest |
//! | the passes | each pass |
//! | `clif` | code generation: the legal nest to Cranelift's functions |
//! | `cranelift` | Cranelift's own passes, by its own timers |
//! | `load` | the rest of the total: executable memory, the cache, caches of the processor that are not warm yet |
//!
//! `clif` is not timed directly, for it is no public function: it is what compiling for a target without
//! an operating system takes, where nothing is loaded, less the other stages. So it may be a few
//! microseconds off, and `load` with it.

#[path = "../../benches/workloads/list.rs"]
mod list;

use cranefold::ir::Nest;
use cranefold::passes::PASSES;
use cranefold::{Compiler, Error, Kernel, Problem, Schedule, Spec, Target, Vectors, lower, schedule};
use cranelift_codegen::timing;
use list::Workload;
use std::hint::black_box;
use std::time::Instant;

/// Times that each workload is compiled. All are compiled once before any is again, so that a change
/// of the machine's speed meets all alike.
const REPEATS: usize = 40;

/// Columns before and after those of the passes.
const BEFORE: [&str; 5] = ["total", "parse", "problem", "schedule", "lower"];
const AFTER: [&str; 3] = ["clif", "cranelift", "load"];

/// The time a workload should stay below, in microseconds.
const BAR_US: f64 = 1000.0;

fn main() -> Result<(), Error> {
    let host = Target::host()?;
    let compiler = |target: &Target| Compiler::builder().target(target.clone()).build();
    let mut compilers = Compilers { bare: compiler(&bare_target(&host)?)?, host: compiler(&host)?, kept: vec![] };
    let workloads = if std::env::args().any(|argument| argument == "regions") { list::regions() } else { list::list() };
    for workload in &workloads {
        times(&workload.spec.to_string(), &mut compilers)?;
    }
    let mut samples: Vec<Vec<Vec<f64>>> = vec![vec![]; workloads.len()];
    for _ in 0..REPEATS {
        for (workload, samples) in workloads.iter().zip(&mut samples) {
            samples.push(times(&workload.spec.to_string(), &mut compilers)?);
        }
    }
    let medians: Vec<Vec<f64>> = samples.iter().map(|samples| medians(samples)).collect();
    print_table(&workloads, &medians);
    Ok(())
}

struct Compilers {
    host: Compiler,
    /// The same machine without an operating system.
    bare: Compiler,
    /// The kernels so far, which keep their memory as a graph's kernels do.
    kept: Vec<Kernel>,
}

/// This architecture and its features, without an operating system.
fn bare_target(host: &Target) -> Result<Target, Error> {
    Target::new(&format!("{}-unknown-none", std::env::consts::ARCH), &host.features().join(","))
}

/// The times of one compilation, in microseconds, in the order of the columns.
fn times(text: &str, compilers: &mut Compilers) -> Result<Vec<f64>, Error> {
    let Compilers { host: compiler, bare, kept } = compilers;
    compiler.clear();
    bare.clear();
    cranelift();
    let (total, kernel) = timed(|| compiler.compile(&text.parse()?));
    let (kernel, cranelift_host) = (kernel?, cranelift());

    let (parse, spec) = timed(|| text.parse::<Spec>());
    let spec = spec?;
    let (make_problem, problem) = timed(|| Problem::of(&spec));
    let width = compiler.vectors().bits;
    let (choose, chosen) = timed(|| schedule::choose(&problem, width));
    assert_eq!(&chosen, kernel.schedule(), "{text}: the compiler's own choice");
    let (lower, nest) =
        timed(|| lower::lower_share(&problem, chosen.form, "a nest of the bench", &lower::Share::Whole));
    let passes = passes(nest, &chosen, kernel.vectors());
    let before_code = make_problem + choose + lower + passes.iter().sum::<f64>();

    kept.push(kernel);
    let (unloaded, kernel) = timed(|| bare.compile(&spec));
    kernel?;
    let clif = unloaded - before_code - cranelift();
    let load = total - parse - before_code - clif - cranelift_host;
    Ok([&[total, parse, make_problem, choose, lower], &passes[..], &[clif, cranelift_host, load]].concat())
}

/// The time of each pass.
fn passes(mut nest: Nest, schedule: &Schedule, vectors: Vectors) -> Vec<f64> {
    let mut times = vec![];
    for pass in PASSES {
        let (time, after) = timed(|| (pass.run)(nest, schedule, vectors));
        times.push(time);
        nest = after;
    }
    times
}

/// What Cranelift's passes took on this thread since this was last asked: it keeps its own time.
fn cranelift() -> f64 {
    timing::take_current().total().as_secs_f64() * 1e6
}

fn timed<R>(f: impl FnOnce() -> R) -> (f64, R) {
    let start = Instant::now();
    let result = black_box(f());
    (start.elapsed().as_secs_f64() * 1e6, result)
}

/// The median of each column.
fn medians(samples: &[Vec<f64>]) -> Vec<f64> {
    let median = |column: usize| {
        let mut times: Vec<f64> = samples.iter().map(|sample| sample[column]).collect();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    (0..samples[0].len()).map(median).collect()
}

fn print_table(workloads: &[Workload], medians: &[Vec<f64>]) {
    let names: Vec<&str> = BEFORE.into_iter().chain(PASSES.iter().map(|p| p.name)).chain(AFTER).collect();
    let width = |name: &str| name.len().max(6) + 1;
    println!("median microseconds of {REPEATS} compilations:");
    println!("{}", names.iter().map(|name| format!("{name:>0$}", width(name))).collect::<String>());
    let mut group = "";
    for (workload, medians) in workloads.iter().zip(medians) {
        if workload.group != group {
            group = workload.group;
            println!("# {group}");
        }
        let cell = |(name, median): (&&str, &f64)| format!("{median:>0$.1}", width(name));
        println!("{}  {}", names.iter().zip(medians).map(cell).collect::<String>(), workload.spec);
    }
    let below = medians.iter().filter(|m| m[0] < BAR_US).count();
    println!("{below} of {} workloads compile in less than {BAR_US} microseconds", workloads.len());
}
