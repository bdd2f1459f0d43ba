//! The comparison of the chosen schedule with all its candidates, timed in turn.

use super::cases::{Case, Entry};
use crate::failure::Failure;
use crate::figures;
use crate::side_by_side::medians_ns;
use cranefold::schedule::{Cost, consider};
use cranefold::{Compiler, Problem, Schedule, Serial};
use std::io::Write;

/// The least and the most rounds of samples; between them, sampling ends after [`BUDGET_NS`] for each candidate.
const ROUNDS: (usize, usize) = (7, 101);
const BUDGET_NS: f64 = 3e7;

/// A schedule, its expected cost and its measured time.
struct Candidate {
    schedule: Schedule,
    cost: Cost,
    median_ns: f64,
}

/// Times every candidate of each case, and prints by how much the chosen one is slower than the fastest; with `json`,
/// prints each candidate.
///
/// # Errors
/// The errors of [`bench`](super::bench).
pub fn candidates(entries: &[Entry], width: Option<u32>, json: bool, out: &mut dyn Write) -> Result<(), Failure> {
    let compiler = Compiler::host()?;
    let width = width.map_or(compiler.vectors().bits, |width| width.min(compiler.vectors().bits));
    let mut ratios = vec![];
    for entry in entries {
        let case = match entry {
            Entry::Case(case) => case,
            Entry::Skipped { name, reason } => {
                if !json {
                    writeln!(out, "{name:<40} skipped: {reason}").map_err(Failure::Stdout)?;
                }
                continue;
            }
        };
        let measured = measure(case, width)?;
        let [chosen, ..] = measured.as_slice() else { continue };
        let fastest = measured.iter().min_by(|a, b| a.median_ns.total_cmp(&b.median_ns)).expect("the chosen one");
        let ratio = chosen.median_ns / fastest.median_ns;
        ratios.push(ratio);
        let lines = match json {
            true => measured.iter().map(|c| line_of_json(case, c)).collect::<Vec<_>>().join("\n"),
            false => format!(
                "{:<40} {ratio:>5.2}  {:>9}  {}{}",
                case.name,
                figures::time(chosen.median_ns),
                chosen.schedule,
                if ratio > 1.05 {
                    format!("\n{:<40} {:>5}  {:>9}  {}", "", "", figures::time(fastest.median_ns), fastest.schedule)
                } else {
                    String::new()
                }
            ),
        };
        writeln!(out, "{lines}").and_then(|()| out.flush()).map_err(Failure::Stdout)?;
    }
    ratios.sort_by(f64::total_cmp);
    if let (false, Some(worst)) = (json, ratios.last()) {
        let at = |share: f64| ratios[((ratios.len() - 1) as f64 * share) as usize];
        let summary = format!(
            "chosen over fastest: median {:.2}, 90 % below {:.2}, worst {worst:.2}, of {} cases with a choice",
            at(0.5),
            at(0.9),
            ratios.len()
        );
        writeln!(out, "{summary}").map_err(Failure::Stdout)?;
    }
    Ok(())
}

/// The candidates of a case, the chosen one first; empty if there is no choice.
fn measure(case: &Case, width: u32) -> Result<Vec<Candidate>, Failure> {
    let problem = Problem::of(&case.spec);
    let choice = consider(&problem, width);
    let Some(cost) = choice.cost else { return Ok(vec![]) };
    if choice.others.is_empty() {
        return Ok(vec![]);
    }
    let priced: Vec<(Schedule, Cost)> = [(choice.schedule, cost)].into_iter().chain(choice.others).collect();
    let schedules: Vec<Schedule> = priced.iter().map(|(schedule, _)| schedule.clone()).collect();
    let budget_ns = BUDGET_NS * schedules.len() as f64;
    let medians = medians_ns(&case.spec, &schedules, &Compiler::host()?, &Serial, ROUNDS, budget_ns)?;
    let measured = priced.into_iter().zip(medians);
    Ok(measured.map(|((schedule, cost), median_ns)| Candidate { schedule, cost, median_ns }).collect())
}

fn line_of_json(case: &Case, candidate: &Candidate) -> String {
    let terms = candidate.cost.terms().map(|(name, ns)| (name.to_string(), serde_json::Value::from(ns)));
    let line = serde_json::json!({
        "case": case.name,
        "schedule": candidate.schedule.to_string(),
        "median_ns": candidate.median_ns,
        "expected_ns": candidate.cost.total_ns(),
        "terms": serde_json::Map::from_iter(terms),
    });
    line.to_string()
}
