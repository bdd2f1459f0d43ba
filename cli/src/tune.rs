//! `tune`: schedules measured on this machine, and the fastest kept.

use crate::args::Tune;
use crate::failure::Failure;
use crate::figures;
use crate::side_by_side::medians_ns;
use crate::threads::{check_schedules, compiler, pool};
use cranefold::schedule::{Divided, Parts, choose_for, consider};
use cranefold::schedules::{Measurement, append};
use cranefold::{Compiler, Executor, Problem, Schedule, Spec, Spinning};
use std::io::Write;

/// The least and the most rounds of samples.
const ROUNDS: (usize, usize) = (7, 1001);

/// The most schedules that are timed again, the chosen one among them.
const FINALISTS: usize = 4;

/// The most seconds of sampling.
const MOST_SECONDS: f64 = 3600.0;

/// Times the candidates of each reduction, adds the fastest to the file, and prints what it gains over the one that the
/// cost model chooses.
///
/// # Errors
/// If an argument is wrong, before anything is timed; if the file cannot be written.
pub fn tune(args: &Tune, out: &mut dyn Write) -> Result<(), Failure> {
    if !(args.budget > 0.0 && args.budget <= MOST_SECONDS) {
        let given = args.budget;
        return Err(Failure::Usage(format!("budget={given} is outside 0 to {MOST_SECONDS} seconds")));
    }
    let specs = args.specs.iter().map(|text| Ok(text.parse()?)).collect::<Result<Vec<Spec>, Failure>>()?;
    check_schedules(&args.file)?;
    let (compiler, executor) = (compiler(args.threads)?, pool(args.threads)?);
    for spec in &specs {
        let schedules = candidates(spec, &compiler);
        if schedules.len() < 2 {
            writeln!(out, "{spec}: nothing to choose").map_err(Failure::Stdout)?;
            continue;
        }
        let (fastest, ns, chosen_ns) = fastest(spec, schedules, &compiler, &executor, args.budget * 1e9)?;
        let line = Measurement::new(&compiler.keyed(spec), fastest, ns.round() as u64);
        append(&args.file, &line).map_err(|error| Failure::Write { path: args.file.clone(), error })?;
        let (before, after) = (figures::time(chosen_ns), figures::time(ns));
        let line = format!("{spec}: {before} -> {after}, {:.2} times as fast: {}", chosen_ns / ns, line.schedule);
        writeln!(out, "{line}").and_then(|()| out.flush()).map_err(Failure::Stdout)?;
    }
    Ok(())
}

/// The schedules to time: the chosen one first, then the cost model's other candidates in as many parts, then the chosen
/// one in other parts.
fn candidates(spec: &Spec, compiler: &Compiler) -> Vec<Schedule> {
    let (problem, threads) = (Problem::of(spec), compiler.threads());
    let choice = consider(&problem, compiler.vectors().bits);
    let chosen = choose_for(&problem, compiler.vectors().bits, threads);
    let others = choice.others.into_iter().map(|(schedule, _)| Schedule { parts: chosen.parts, ..schedule });
    let counts = [1, threads as u64, 2 * threads as u64, 4 * threads as u64].into_iter().filter(|_| threads > 1);
    let parts = counts.flat_map(|count| [Divided::Outputs, Divided::Blocks].map(|of| Parts { count, of }));
    let divided = parts.map(|parts| Schedule { parts, ..chosen.clone() });
    let mut all = vec![chosen.clone()];
    for schedule in others.chain(divided).filter(|schedule| schedule.check(&problem).is_ok()) {
        if !all.contains(&schedule) {
            all.push(schedule);
        }
    }
    all
}

/// The fastest schedule, its time and the time of the first. All are timed for half of the budget, and the chosen one and
/// the fastest others for the other half, so that one that was lucky is found out.
fn fastest(
    spec: &Spec,
    schedules: Vec<Schedule>,
    compiler: &Compiler,
    executor: &Spinning,
    budget_ns: f64,
) -> Result<(Schedule, f64, f64), Failure> {
    let executor: &dyn Executor = executor;
    let medians = |all: &[Schedule]| medians_ns(spec, all, compiler, executor, ROUNDS, budget_ns / 2.0);
    let first = medians(&schedules)?;
    let mut order: Vec<usize> = (1..schedules.len()).collect();
    order.sort_by(|&a, &b| first[a].total_cmp(&first[b]));
    let finalists = std::iter::once(0).chain(order).take(FINALISTS);
    let finalists: Vec<Schedule> = finalists.map(|n| schedules[n].clone()).collect();
    let medians = medians(&finalists)?;
    let best = (0..finalists.len()).min_by(|&a, &b| medians[a].total_cmp(&medians[b])).expect("the chosen one");
    Ok((finalists[best].clone(), medians[best], medians[0]))
}
