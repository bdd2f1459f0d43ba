//! The choice of a schedule.

use super::Schedule;
use super::cost::{Cost, Time, Visit};
use super::facts::{Facts, bytes_read};
use super::form::choose_form;
use super::parts::parts;
use super::strategy::across::of_elements;
use super::strategy::positions::{alone, elements_pass_caches};
use super::strategy::{candidates, cost};
use crate::problem::Problem;
use crate::vectors::Vectors;
use cranefold_ir::ops::{Computation, Form};

/// The input bytes up to which vectors stay at 128 bits: a call of wider code costs more than it gains.
const TINY_BYTES: u64 = 512;

/// The width of vectors, at most `width` bits, for which the problem is long enough.
fn worthwhile(problem: &Problem, width: u32) -> u32 {
    if bytes_read(problem) <= TINY_BYTES { width.min(Vectors::BASE.bits) } else { width }
}

/// A schedule, its cost, and the other candidates.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The schedule.
    pub schedule: Schedule,
    /// The expected cost; `None` of conversions and selections.
    pub cost: Option<Cost>,
    /// The other candidates with their expected costs.
    pub others: Vec<(Schedule, Cost)>,
}

/// The schedule for a problem on a target with vectors of `width` bits.
pub fn choose(problem: &Problem, width: u32) -> Schedule {
    consider(problem, width).schedule
}

/// The schedule for a problem in a form that it has, on a target with vectors of `width` bits.
pub fn choose_in(problem: &Problem, form: Form, width: u32) -> Schedule {
    consider_in(problem, form, worthwhile(problem, width)).schedule
}

/// Chooses as [`choose`], for `threads` threads: small work stays in one part.
pub fn choose_for(problem: &Problem, width: u32, threads: usize) -> Schedule {
    choose_with_computation(problem, width, threads).0
}

/// Chooses as [`choose_for`]; the computation is that of the schedule, if the choice needed it.
pub(super) fn choose_with_computation(
    problem: &Problem,
    width: u32,
    threads: usize,
) -> (Schedule, Option<Computation>) {
    let width = worthwhile(problem, width);
    let (Choice { schedule, cost, .. }, computation) = considered(problem, choose_form(problem, width), width);
    (Schedule { parts: parts(problem, schedule.form, cost, threads as u64), ..schedule }, computation)
}

/// Chooses the schedule of a problem on a target with vectors of `width` bits: the candidate with the least expected
/// time on [`Machine::TYPICAL`](super::Machine::TYPICAL). All candidates are in the form that takes fewer operations
/// ([`choose_form`]).
///
/// ```
/// use cranefold::{Problem, Spec, schedule::consider};
///
/// let spec: Spec = "sum f32[1024,1024] axes=[0]".parse()?;
/// let choice = consider(&Problem::of(&spec), 512);
/// assert_eq!(choice.schedule.jam, 4);
/// assert!(choice.others.iter().all(|(_, cost)| cost.total_ns() >= choice.cost.unwrap().total_ns()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn consider(problem: &Problem, width: u32) -> Choice {
    let width = worthwhile(problem, width);
    consider_in(problem, choose_form(problem, width), width)
}

/// The choice among schedules with vectors of `width` bits in a form.
fn consider_in(problem: &Problem, form: Form, width: u32) -> Choice {
    considered(problem, form, width).0
}

/// The same choice; the computation is that of the schedule, if the choice needed it.
fn considered(problem: &Problem, form: Form, width: u32) -> (Choice, Option<Computation>) {
    let Some(facts) = Facts::of(problem, form, width) else {
        let (nontemporal, tiles) = (elements_pass_caches(problem, width), of_elements(problem, width));
        let schedule = Schedule { width, form, nontemporal, tiles, ..Schedule::default() };
        return (Choice { cost: alone(problem, &schedule), schedule, others: vec![] }, None);
    };
    let priced = |schedule| {
        let cost = cost(&facts, &schedule);
        (schedule, cost)
    };
    let mut others: Vec<(Schedule, Cost)> = candidates(&facts, width).into_iter().map(priced).collect();
    let total = |(_, cost): &(Schedule, Cost)| cost.total_ns();
    let best = (0..others.len()).min_by(|&a, &b| total(&others[a]).total_cmp(&total(&others[b])));
    let (schedule, cost) = others.remove(best.expect("a candidate"));
    let computation = facts.into_computation(&schedule.keep);
    (Choice { schedule, cost: Some(cost), others }, computation)
}

/// The expected cost of a schedule on [`Machine::TYPICAL`](super::Machine::TYPICAL); `None` of conversions and selections.
pub fn predict(problem: &Problem, schedule: &Schedule) -> Option<Cost> {
    match Facts::of(problem, schedule.form, schedule.width) {
        Some(facts) => Some(cost(&facts, schedule)),
        None => alone(problem, schedule),
    }
}

/// The visits of a region's slices by a schedule, in order; none of what only moves, converts or selects.
///
/// ```
/// use cranefold::{Problem, Schedule, Spec, schedule::visits};
///
/// let spec: Spec = "region x:f32[64,1000] axes=[1] { m = mean(x); m, mean((x - m) * (x - m)) }".parse()?;
/// let visits = visits(&Problem::of(&spec), &Schedule::default());
/// assert_eq!(visits.iter().map(|visit| visit.name.as_str()).collect::<Vec<_>>(), ["mean", "mean"]);
/// # Ok::<(), cranefold::SpecError>(())
/// ```
pub fn visits(problem: &Problem, schedule: &Schedule) -> Vec<Visit> {
    let facts = Facts::of(problem, schedule.form, schedule.width);
    facts.map_or(vec![], |facts| super::strategy::visits(&facts, schedule))
}

impl Choice {
    /// The reasons for this schedule: a line for each other candidate, the next best first.
    pub fn reasons(&self) -> Vec<String> {
        let Some(cost) = self.cost else { return vec![] };
        let mut others = self.others.clone();
        others.sort_by(|(_, a), (_, b)| a.total_ns().total_cmp(&b.total_ns()));
        let reason = |(schedule, other): (Schedule, Cost)| {
            let more = other.total_ns() - cost.total_ns();
            let pairs = other.terms().into_iter().zip(cost.terms());
            let most = pairs.map(|((name, a), (_, b))| (name, a - b)).max_by(|a, b| a.1.total_cmp(&b.1));
            let why = most
                .filter(|&(_, ns)| ns > 0.0)
                .map_or(String::new(), |(name, ns)| format!(": {name} {} more", Time(ns)));
            format!("not {schedule}: {} more{why}", Time(more))
        };
        others.into_iter().map(reason).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spec;
    use crate::schedule::{Level, Machine};

    fn choice(spec: &str) -> Choice {
        let spec: Spec = spec.parse().expect("a spec");
        consider(&Problem::of(&spec), 512)
    }

    /// Eight short runs of each output are streams, which those of the next output continue; slices in memory do not
    /// share folds.
    #[test]
    fn short_runs_are_followed_from_output_to_output() {
        let streams = choice("sum f32[64,128,56,56]@aBcd16b axes=[1]");
        assert!(streams.schedule.tiles.is_empty() && !streams.others.is_empty(), "{streams:?}");
        let reading = streams.cost.expect("a cost").reading_ns;
        assert_eq!(reading, Machine::TYPICAL.read_ns(64 * 128 * 56 * 56 * 4));
        // Each run of pages begins anew.
        let pages = choice("sum f32[64,128,56,56] axes=[0,2,3]");
        assert!(pages.cost.expect("a cost").reading_ns > reading, "{pages:?}");
    }

    /// Memory is idle while slices are visited again, unless it is asked ahead; from a cache, two slices at once are.
    #[test]
    fn slices_that_are_visited_again_are_asked_for_ahead() {
        let rows = |spec: &str| choice(&format!("{spec} axes=[1]")).schedule.prefetch;
        assert_eq!(
            [rows("sum f32[32768,1024]"), rows("var f32[32768,1024]"), rows("log_sum_exp f32[1000,1024]")],
            [0, 32768, 8192]
        );
        // In the last-level cache, one slice at a time is where later visits compute; in the second, none is.
        let softmax = ["1000,1024", "100,1024"].map(|shape| rows(&format!("softmax f32[{shape}]")));
        let normalized = ["1000,1024", "100,1024"].map(|shape| rows(&format!("l2_normalize f32[{shape}]")));
        assert_eq!([softmax, normalized], [[8192, 0]; 2]);
        // Rows that are written as they are read leave memory idle; slices that no cache holds are read from memory again.
        let written = ["8192,1024", "8,1048576"].map(|shape| rows(&format!("l2_normalize f32[{shape}]")));
        assert_eq!(written, [32768, 0]);
        // Columns of heavy operations, and those whose states are in registers meanwhile.
        let columns = |spec: &str| choice(&format!("{spec} axes=[0]")).schedule.prefetch;
        assert_eq!([columns("var f32[8192,1024]"), columns("var f32[131072,64]")], [0, 32768]);
        assert_eq!([columns("max f32[16384,1024]"), columns("log_sum_exp f32[16384,1024]")], [0, 32768]);
        assert_eq!([columns("sum bf16[16384,1024]"), columns("sum bf16[131072,128]")], [32768, 0]);
    }

    /// Sums of bytes take half of a register or less while steps add to them; few steps are not worth the states in memory.
    #[test]
    fn tiles_of_small_integers_are_wider_where_there_are_many_steps() {
        let tile = |spec: &str| choice(spec).schedule.tiles[0].by;
        assert_eq!(tile("mean i8[6,1000,300] axes=[1]"), 300);
        assert_eq!(tile("sum i8[10,3000] axes=[0] -> i32"), 192);
    }

    #[test]
    fn slices_that_wait_at_their_ends_are_taken_two_at_once() {
        assert_eq!(choice("argmax f32[64,1000] axes=[1]").schedule.interleave, 2);
        assert_eq!(choice("sum f32[64,1000] axes=[1]").schedule.interleave, 1);
    }

    /// Slices that are near enough and long enough gain by ends that come together.
    #[test]
    fn near_slices_of_several_steps_are_taken_two_at_once() {
        let rows = |shape| choice(&format!("rms_norm f32[{shape}] axes=[1]")).schedule.interleave;
        assert_eq!([rows("64,1000"), rows("64,256"), rows("400,1000")], [2, 1, 1]);
        assert_eq!(choice("l1 bf16[64,1000] axes=[1]").schedule.interleave, 2);
    }

    /// Two rows of 4 KB, of two inputs and two outputs, do not fit the first-level cache together.
    #[test]
    fn rows_that_share_a_cache_are_taken_one_at_a_time() {
        let rows = |written| {
            let text = "region x:f32[100,1024], h:f32[100,1024] axes=[1] { y = x + h; c = centered(y); W }";
            choice(&text.replace('W', written)).schedule.interleave
        };
        assert_eq!([rows("c"), rows("y, c * rsqrt(mean(c * c))")], [2, 1]);
    }

    /// Elements that no reduction reads count as well.
    #[test]
    fn regions_of_elements_alone_have_wide_vectors() {
        assert_eq!(choice("region x:f32[64,1024] axes=[1] { exp(x) }").schedule.width, 512);
        assert_eq!(choice("region x:f32[2,8] axes=[1] { exp(x) }").schedule.width, 128);
    }

    /// Rows of 4 KB are read from memory by the first visit alone.
    #[test]
    fn visits_are_priced_one_by_one() {
        let text = "region x:f32[8192,1024] axes=[1] { c = centered(x); c * rsqrt(mean(c * c)) }";
        let problem = Problem::of(&text.parse::<Spec>().expect("a spec"));
        let schedule = choose(&problem, 512);
        let visits = visits(&problem, &schedule);
        let told: Vec<_> = visits.iter().map(|v| (v.name.as_str(), v.times, v.level, v.written_bytes)).collect();
        let bytes = 8192 * 1024 * 4;
        let (memory, cache) = (Level::Memory, Level::L1);
        assert_eq!(told, [("mean_pair", 2, memory, 0), ("mean", 1, cache, 0), ("outputs", 1, cache, bytes)]);
        assert!(visits.iter().all(|v| v.read_bytes == bytes && v.port_cycles > 0.0), "{visits:?}");
        let all: f64 = visits.iter().map(|visit| visit.ns).sum();
        let total = predict(&problem, &schedule).expect("a cost").total_ns();
        assert!((total - all).abs() <= Machine::TYPICAL.wide_call_ns, "{total} and {all}");
    }

    /// Pieces of rows of a matrix that begin inside of lines read more of them.
    #[test]
    fn matrix_rows_that_are_no_whole_lines_are_not_cut() {
        assert_eq!(choice("sum f32[16,256,14,14] axes=[1]").schedule.tiles[0].by, 196);
    }
}
