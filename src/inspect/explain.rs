//! The page that explains a kernel: its problem, work, tree, schedule and expected time.
//!
//! ```text
//! sum f32[1024,1024] axes=[1]
//! problem    the compiled problem: types, then dims in the order of memory, the reduced ones in parentheses
//! signature  the rest of the cache key of the code
//! moves      bytes of elements read and written, each element once
//! operations of the nest after its last pass, which are close to instructions
//! level      the level of memory that holds so many bytes from call to call
//! tree       the order of accumulation, which is part of the meaning
//! order      the loops around the body that does most of the work, outermost first
//! schedule   the chosen schedule, and the reason for it
//! parts      the code that each generator made
//! predicted  the expected time of a call
//! visits     of several: bytes, operations and expected time of each
//! ```

mod work;

use crate::error::Error;
use crate::inspect::CountedWork;
use crate::kernel::Facts;
use crate::kernel::code::Compiled;
use crate::pipeline;
use crate::problem::first_phase::FirstPhase;
use crate::problem::search_windows::Windows;
use crate::problem::tree::{Grid, Tree};
use crate::problem::{IndexBox, Problem, SliceWalk};
use crate::results::RESULTS_VERSION;
use crate::schedule::{self, Decided, Divided, Level, Machine, Source, Time, Visit};
use crate::spec::Spec;
use cranefold_ir::ops::{Form, Method};
use cranefold_ir::{LoopKind, LoopVar, Nest, Over, Stmt};
use std::fmt::Write;
use work::Work;

/// The most other schedules that the page names.
const MOST_OTHERS: usize = 3;

/// The page.
pub(crate) fn explain(spec: Option<&Spec>, compiled: &Compiled, facts: &Facts) -> Result<String, Error> {
    let schedule = &compiled.decided.schedule;
    let program = pipeline::legal(&compiled.decided)?;
    let nest = &program.nests[0];
    let work = Work::of(&program);
    // A problem and a nest have no line of their own.
    let mut page = Page(spec.map_or(String::new(), |spec| format!("{spec}\n")));
    // A name without extents has two blanks where they would stand.
    let what = if compiled.decided.source.problem().is_some() { "problem" } else { "nest" };
    page.line(what, &nest.name.replace("  ", " "));
    page.line("signature", &signature(compiled, what));
    let written = facts.written_bytes;
    let read = facts.bytes.saturating_sub(written);
    page.line("moves", &format!("{} bytes read, {} written", grouped(read), grouped(written)));
    page.line("operations", &operations(&compiled.decided.source, &work));
    page.line("level", &level(facts.bytes));
    trees(compiled).iter().enumerate().for_each(|(n, tree)| page.line(if n == 0 { "tree" } else { "" }, tree));
    page.line("order", &order(&work));
    page.line("schedule", &schedule.to_string());
    why(compiled).iter().for_each(|reason| page.line("", reason));
    parts(compiled, facts, nest, &work).iter().enumerate().for_each(|(n, part)| {
        page.line(if n == 0 { "code" } else { "" }, part);
    });
    page.line("predicted", &predicted(compiled, facts));
    visits(compiled).iter().enumerate().for_each(|(n, visit)| page.line(if n == 0 { "visits" } else { "" }, visit));
    Ok(page.0)
}

/// The operations of a call, and the loop that holds most of them.
pub(crate) fn counted(compiled: &Compiled) -> Result<CountedWork, Error> {
    let program = pipeline::legal(&compiled.decided)?;
    let Work { operations, executed: vector_operations, main, .. } = Work::of(&program);
    let hot_loop = main.loops.last().map(|l| l.var.to_string());
    Ok(CountedWork { operations, vector_operations, hot_loop })
}

struct Page(String);

impl Page {
    fn line(&mut self, name: &str, text: &str) {
        writeln!(self.0, "{name:<10} {text}").expect("a string takes all text");
    }
}

fn signature(compiled: &Compiled, what: &str) -> String {
    let bounds = &compiled.signature.bounds;
    let forced = if compiled.signature.schedule.is_some() { ", the schedule" } else { "" };
    let threads = match bounds.threads {
        1 => String::new(),
        threads => format!(", {threads} threads"),
    };
    format!("the {what}, {} bits{threads}{forced}, version {RESULTS_VERSION} of the results", bounds.width)
}

fn operations(source: &Source, work: &Work) -> String {
    if work.operations == 0 {
        return "none: elements are only moved".into();
    }
    let elements = source.problem().map_or(0, |problem| elements_read(problem));
    let each = match elements {
        0 => String::new(),
        elements => {
            format!(", {:.2} for each of {} elements", work.operations as f64 / elements as f64, grouped(elements))
        }
    };
    format!("{}{each}; {} where a vector is one", grouped(work.operations), grouped(work.executed))
}

/// The number of elements that are reduced or converted, over all slices.
fn elements_read(problem: &Problem) -> u64 {
    let slices = problem.slices.iter().map(IndexBox::positions).fold(0, u64::saturating_add);
    let each = problem.elements().iter().map(IndexBox::positions).fold(0, u64::saturating_add);
    if !problem.walks.is_empty() { slices.saturating_mul(each) } else { slices }
}

fn level(bytes: u64) -> String {
    let machine = Machine::TYPICAL;
    let level = machine.level(bytes);
    let caches = [Level::L1, Level::L2, Level::L3].into_iter().zip(machine.cache_bytes);
    let bound = match caches.clone().find(|&(cache, _)| cache == level) {
        Some((_, most)) => format!("at most {}", grouped(most)),
        None => format!("more than the {} of the last-level cache", grouped(machine.cache_bytes[2])),
    };
    format!("{level}: {} bytes, {bound}", grouped(bytes))
}

/// The trees of the reductions, a line each; with several, each line says the stage and the reductions.
fn trees(compiled: &Compiled) -> Vec<String> {
    let Decided { source, schedule, .. } = &compiled.decided;
    let Some(problem) = source.problem() else {
        return vec!["none: the order is that of the nest".into()];
    };
    let Some(computation) = problem.computation_in(schedule.form) else {
        return vec!["none: elements are converted one by one".into()];
    };
    if problem.walks.is_empty() {
        return vec!["none: there is nothing to reduce".into()];
    }
    let windows = compiled.windows();
    let several = computation.only_group().is_none();
    let mut lines = vec![];
    let mut groups = 0;
    for (number, stage) in computation.stages.iter().filter(|stage| !stage.groups.is_empty()).enumerate() {
        for group in &stage.groups {
            let (walk, method) = (&problem.walks[group.walk], &group.reducer.method);
            let mut tree = tree(walk, method, windows.as_ref());
            if let Some(first) = problem.first_phase_before(&computation, groups) {
                let earlier = &computation.groups().nth(first.group()).expect("an earlier group").name;
                tree += &match first {
                    FirstPhase::Folded(_) => format!(", the first for {earlier} already"),
                    FirstPhase::Lanes(_) => format!(", looked at for {earlier} already"),
                };
            }
            groups += 1;
            lines.push(if several { format!("stage {number}, {}: {tree}", group.name) } else { tree });
        }
    }
    lines.extend(problem.totals.as_ref().map(|totals| format!("then totals over {} slices each", totals.count)));
    lines
}

/// The tree of one group of reductions.
fn tree(walk: &SliceWalk, method: &Method, windows: Option<&Windows>) -> String {
    if let Method::Select { .. } = method {
        return "none: elements are selected from each slice".into();
    }
    let tree = Tree::of(walk, method);
    let present = tree.lanes_present();
    let mut text = several(tree.lanes, "lane");
    for (k, &lanes) in tree.phases.iter().enumerate().filter(|(_, lanes)| **lanes < tree.lanes) {
        text += &format!(", {lanes} in phase {}", k + 1);
    }
    if present < tree.lanes {
        text += &format!(", {present} of them taken");
    }
    let times = |extents: &[u64]| extents.iter().map(u64::to_string).collect::<Vec<_>>().join("x");
    let steps: Vec<String> = tree.grids.iter().map(|grid| times(&grid.steps)).collect();
    let steps = if steps == ["1"] { "1 step".into() } else { format!("{} steps", steps.join(" + ")) };
    let in_block = |grid: &Grid| grid.block * grid.steps[grid.cut + 1..].iter().product::<u64>();
    text += &format!("; {steps}");
    text += &match tree.blocks() {
        1 => " in one block".to_string(),
        blocks => {
            let most = tree.grids.iter().map(in_block).max().unwrap_or(1);
            format!(" in {} blocks of at most {most}", grouped(blocks))
        }
    };
    if walk.gathered.is_some() {
        text += ", gathered first";
    }
    match (windows, method.phases().len()) {
        (Some(windows), _) => {
            let (all, elements) = (windows.whole + u64::from(windows.last % windows.elements != 0), windows.elements);
            format!("{text}; searched in {} of {}", several(all, "window"), several(elements, "element"))
        }
        (None, 0 | 1) => text,
        (None, looks) => format!("{text}, each looked at {looks} times"),
    }
}

/// The quantity that a loop runs over.
fn over(var: LoopVar) -> &'static str {
    match var.over {
        Over::Output => "outputs",
        Over::Block => "blocks",
        Over::Step => "steps",
        Over::Jam => "jammed steps",
        Over::Lane => "lanes",
        Over::Element => "states",
        Over::Level => "levels",
        Over::Position => "positions",
        Over::Start => "windows",
    }
}

fn order(work: &Work) -> String {
    let main = &work.main;
    if main.weight == 0 {
        return "no loop does any work".into();
    }
    let mut levels: Vec<String> =
        main.loops.iter().map(|l| format!("{} {} in {}", over(l.var), l.var, l.extent)).collect();
    levels.push(match (main.selected, main.loads, main.lanes) {
        (0, 0, 1) => "scalars".into(),
        (0, 0, lanes) => format!("vectors of {lanes} lanes"),
        (0, loads, 1) => several(loads, "load"),
        (0, loads, lanes) => format!("{} of {lanes} lanes", several(loads, "load")),
        (selected, ..) => format!("selection from {}", several(selected, "element")),
    });
    if let Some((number, outside)) = main.wide_function {
        levels.insert(outside, format!("wide {number}"));
    }
    let share = 100.0 * main.weight as f64 / work.weight as f64;
    let share = if share < 99.5 { format!(", {share:.0} % of the work") } else { String::new() };
    levels.join(" > ") + &share
}

/// The reasons for the schedule, a line each.
fn why(compiled: &Compiled) -> Vec<String> {
    let Decided { source, schedule, vectors, is_forced, narrowed } = &compiled.decided;
    if let Some(narrowed) = narrowed {
        return vec![narrowed.to_string()];
    }
    let Some(problem) = source.problem() else {
        return vec![format!("vectors are of {} bits; the loops are those of the nest", vectors.bits)];
    };
    if *is_forced {
        let whose = if compiled.signature.schedule.is_some() { "forced" } else { "of a line of the schedule file" };
        let forced = format!("{whose}; vectors are of {} bits", vectors.bits);
        return [forced].into_iter().chain(why_form(problem, schedule.form, vectors.bits)).collect();
    }
    let (given, width) = (compiled.signature.bounds.width, schedule.width);
    let width = if width == 0 {
        "scalar code: no vectors are allowed".to_string()
    } else if width < given {
        format!("{width} bits: so few bytes are not worth a call of wider code")
    } else if width < compiled.target.vectors().bits {
        format!("{width} bits: no more are allowed")
    } else {
        format!("{width} bits: the widest vectors of the target")
    };
    let reasons = schedule::consider(problem, given).reasons();
    let more = reasons.len().saturating_sub(MOST_OTHERS);
    let rest = (more > 0).then(|| format!("and {more} more that are slower still"));
    let none = reasons.is_empty().then(|| "nothing else to choose".to_string());
    let form = why_form(problem, schedule.form, schedule.width);
    [width].into_iter().chain(form).chain(reasons.into_iter().take(MOST_OTHERS)).chain(rest).chain(none).collect()
}

/// The work of the reducer's form beside the other form's; `None` if the problem has one form.
fn why_form(problem: &Problem, form: Form, width: u32) -> Option<String> {
    let other = if form == Form::Plain { Form::Direct } else { Form::Plain };
    let of = |form| schedule::slice_work(problem, form, width);
    let (own, others) = (of(form)?, of(other)?);
    Some(format!("{form} form: work of {} a slice, {} in the {other} one", grouped(own), grouped(others)))
}

/// The code that each generator made, a line each.
fn parts(compiled: &Compiled, facts: &Facts, nest: &Nest, work: &Work) -> Vec<String> {
    if facts.parts > 1 {
        return shared_out(compiled, facts);
    }
    let of_wide: Vec<u64> = compiled.codes[0].wide_bytes().collect();
    let outside = facts.code_bytes - facts.wide_functions.code_bytes;
    let mut function = match outside {
        0 if !of_wide.is_empty() => "all is one wide function".to_string(),
        _ => format!("Cranelift, at most 128 bits: {} bytes", grouped(outside)),
    };
    let mut selects = false;
    nest.visit(&mut |s| selects |= matches!(s, Stmt::Select { .. }));
    if selects {
        function += ", which call a function of the host to select";
    }
    if facts.scratch_bytes > 0 {
        function += &format!(", with {} bytes of scratch memory", grouped(facts.scratch_bytes));
    }
    if of_wide.is_empty() && compiled.decided.vectors.are_wide() {
        function += "; nothing is in wide vectors";
    }
    let loops = |body: &[Stmt]| {
        let (mut all, mut steps) = (0u64, 0u64);
        body.iter().for_each(|s| {
            s.visit(&mut |s| {
                if let Stmt::For(l) = s
                    && l.kind != LoopKind::Lanes
                {
                    all += 1;
                    steps += u64::from(l.var.over == Over::Step);
                }
            });
        });
        (all, steps)
    };
    let wide_function = |(number, (bytes, body)): (usize, (&u64, &&[Stmt]))| {
        let (all, steps) = loops(body);
        let bits = compiled.decided.vectors.bits;
        format!("wide {number}, {bits} bits: {} bytes, {}, {steps} over steps", grouped(*bytes), several(all, "loop"))
    };
    let mut parts = vec![function];
    parts.extend(of_wide.iter().zip(&work.wide_functions).enumerate().map(wide_function));
    if !of_wide.is_empty() && outside > 0 {
        parts.push(match work.share_in_wide() {
            1.0 => "all operations are in wide functions".into(),
            share => format!("{:.1} % of the operations are in wide functions", 100.0 * share),
        });
    }
    parts
}

/// The work that threads divide, a line for each code.
fn shared_out(compiled: &Compiled, facts: &Facts) -> Vec<String> {
    let of = match compiled.decided.schedule.parts.of {
        Divided::Outputs => "outputs",
        Divided::Blocks => "blocks, whose states a finish merges",
    };
    let mut parts = vec![format!("{} of {of}", several(facts.parts, "part"))];
    for (number, code) in compiled.codes.iter().enumerate() {
        let run = compiled.layout.parts.iter().filter(|part| part.code == number).count() as u64;
        let whose = if run == 0 { "the finish".into() } else { several(run, "part") };
        let (all, wide_functions) = (code.len(), code.wide_bytes().sum::<u64>());
        let bits = compiled.decided.vectors.bits;
        parts.push(format!(
            "{whose}: {} bytes, {} in wide functions of {bits} bits",
            grouped(all),
            grouped(wide_functions)
        ));
    }
    parts
}

fn predicted(compiled: &Compiled, facts: &Facts) -> String {
    let Decided { source, schedule, .. } = &compiled.decided;
    let Some(problem) = source.problem() else {
        return "nothing: there is no model of any nest".into();
    };
    match schedule::predict(problem, schedule) {
        None => "nothing: there is no model of what only moves, converts or selects".into(),
        Some(cost) => {
            let terms = cost.terms().into_iter().filter(|&(_, ns)| ns > 0.0);
            let terms: Vec<String> = terms.map(|(name, ns)| format!("{name} {}", Time(ns))).collect();
            let rate = facts.bytes as f64 / cost.total_ns();
            let alone = if facts.parts > 1 { " on one thread" } else { "" };
            format!("{}{alone}, {rate:.1} GB/s: {}", Time(cost.total_ns()), terms.join(", "))
        }
    }
}

/// The visits of slices, a line each, if there are several.
fn visits(compiled: &Compiled) -> Vec<String> {
    let Decided { source, schedule, .. } = &compiled.decided;
    let Some(problem) = source.problem() else { return vec![] };
    let visits = schedule::visits(problem, schedule);
    if visits.len() > 1 { visits.iter().map(visit).collect() } else { vec![] }
}

fn visit(visit: &Visit) -> String {
    let mut text = format!("{}: {} bytes from the {}", visit.name, grouped(visit.read_bytes), visit.level);
    if visit.times > 1 {
        text += &format!(", {} times", visit.times);
    }
    if visit.written_bytes > 0 {
        text += &format!(", {} written", grouped(visit.written_bytes));
    }
    let (operations, cycles) = (several(visit.operations, "operation"), grouped(visit.port_cycles as u64));
    text + &format!("; {operations} an element, {cycles} port cycles; {}", Time(visit.ns))
}

/// A count with its noun, which has a plural in s.
fn several(count: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// A number with a comma before every three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        let text = [0, 999, 1000, 102_760_448, u64::MAX].map(grouped);
        assert_eq!(text, ["0", "999", "1,000", "102,760,448", "18,446,744,073,709,551,615"]);
    }
}
