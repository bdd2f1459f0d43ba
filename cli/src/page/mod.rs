//! `explain --html`: a kernel as a page of pictures, in one file that needs no network.

mod charts;
#[cfg(test)]
mod colours;
mod html;
mod layout;
mod loops;
mod map;
mod tree;

use crate::bench::{Measured, memory};
use crate::failure::Failure;
use crate::figures;
use charts::Roofline;
pub use charts::{Series, rates};
use cranefold::ops::Method;
use cranefold::problem::tree::Tree;
use cranefold::schedule::{Machine, consider, predict};
use cranefold::{Kernel, Problem, Spec};
use html::{Section, escape, facts, figure, page};
pub use map::Map;

/// The most other schedules that are drawn.
const OTHERS: usize = 9;

/// The page of a kernel of a spec, with its measured time.
///
/// # Errors
/// [`Failure::Compile`] if a stage cannot be made again; [`Failure::Memory`].
pub fn of_kernel(spec: &Spec, kernel: &Kernel, measured: &Measured) -> Result<String, Failure> {
    let problem = Problem::of(spec);
    let schedule = kernel.schedule();
    let predicted_ns = predict(&problem, schedule).map(|cost| cost.total_ns());
    let explained = kernel.explain()?;
    let told = |name: &str| {
        let line = explained.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.trim().to_string()
    };
    let work = kernel.work()?;
    let of_call = kernel.facts();
    let rate = |ns: f64| format!("{}, {} GB/s", figures::time(ns), figures::rate(of_call.bytes, ns));
    let head = facts(&[
        ("predicted", predicted_ns.map_or("no model".into(), rate)),
        ("measured", rate(measured.median_ns)),
        ("moves", told("moves")),
        ("operations", told("operations")),
        ("code", format!("{} bytes, compiled in {}", of_call.code_bytes, figures::time(of_call.compile_ns as f64))),
    ]);
    let mut sections =
        vec![Section { id: "tree", title: "The tree of one slice", body: trees(&problem, kernel, &told("tree")) }];
    sections.push(Section { id: "layout", title: "The operands in memory", body: layouts(spec) });
    let (nest, code) = (kernel.dump("legalize")?, kernel.dump("asm")?);
    let caption = "The statements after the last pass stand beside the instructions that were made of them. A loop over lanes is \
                   one vector instruction or a few. The code of a loop may have its first or last turns before and after it. The loop \
                   that does most of the work is marked.";
    let body = format!("<p>{caption}</p>\n{}", loops::table(&nest, &code, work.hot_loop.as_deref()));
    sections.push(Section { id: "loops", title: "The loop nest and its machine code", body });
    sections.push(Section {
        id: "roofline",
        title: "The roofline",
        body: roof(kernel, work.operations, (predicted_ns, measured.median_ns))?,
    });
    sections.push(Section {
        id: "schedules",
        title: "The schedules to choose from",
        body: schedules(&problem, kernel),
    });
    let body = format!(
        "<details><summary>The page of <code>explain</code></summary><pre>{}</pre></details>\n<details><summary>The stages \
         <code>problem</code> and <code>nest</code></summary><pre>{}</pre></details>",
        escape(&explained),
        escape(&format!("{}\n{}", kernel.dump("problem")?, kernel.dump("nest")?))
    );
    sections.push(Section { id: "text", title: "As text", body });
    Ok(page(&spec.to_string(), &head, &sections))
}

/// The trees of the reductions; in words where there is none to draw.
fn trees(problem: &Problem, kernel: &Kernel, told: &str) -> String {
    let computation = problem.computation_in(kernel.schedule().form).filter(|_| !problem.walks.is_empty());
    // Reductions with one tree share its picture.
    let mut drawn: Vec<(String, Tree)> = vec![];
    for group in computation.iter().flat_map(|c| &c.stages).flat_map(|stage| &stage.groups) {
        if let Method::Select { .. } = group.reducer.method {
            continue;
        }
        let tree = Tree::of(&problem.walks[group.walk], &group.reducer.method);
        match drawn.iter_mut().find(|(_, known)| *known == tree) {
            Some((names, _)) => *names += &format!(", {}", group.name),
            None => drawn.push((group.name.to_string(), tree)),
        }
    }
    let pictures = drawn.iter().map(|(names, tree)| {
        let blocks = if tree.blocks() > 1 { "; blocks merge in pairs, the older first" } else { "" };
        let caption = format!(
            "{names}: each square is an element of the slice. A lane is a column, and combines its elements from the top down{blocks}; \
             the lanes fold last. This order is part of the meaning, so the bits are the same on every machine."
        );
        figure(&tree::picture(tree), &format!("The reduction tree of {names}"), &caption)
    });
    let body: String = pictures.collect();
    if body.is_empty() { format!("<p>{}</p>", escape(told)) } else { body }
}

/// The operands, those drawn whose elements do not lie in the order of their shape.
fn layouts(spec: &Spec) -> String {
    let named = |role: &str, operands: &[cranefold::spec::Operand]| {
        let mut all = String::new();
        for (number, operand) in operands.iter().enumerate() {
            let extents: Vec<String> = operand.shape().iter().map(u64::to_string).collect();
            let name = format!("{role} {number}: {}[{}]", operand.dtype(), extents.join(","));
            all += &match layout::picture(operand) {
                Some((svg, words)) => {
                    let name = format!("{name}@{}", operand.layout());
                    let caption = format!("{name}: {}, {words}", figures::size(operand.span_bytes()));
                    figure(&svg, &name, &caption)
                }
                None if operand.layout().is_row_major() => {
                    format!("<p><code>{}</code>: row-major, the last index runs fastest.</p>\n", escape(&name))
                }
                None => format!("<p><code>{}@{}</code></p>\n", escape(&name), escape(&operand.layout().to_string())),
            };
        }
        all
    };
    named("input", spec.inputs()) + &named("output", spec.outputs())
}

/// The roofline of this machine's measured read rates.
fn roof(kernel: &Kernel, operations: u64, times_ns: (Option<f64>, f64)) -> Result<String, Failure> {
    let of_call = kernel.facts();
    if operations == 0 || of_call.bytes == 0 {
        return Ok("<p>None: elements are only moved.</p>".into());
    }
    let rates: Vec<f64> = memory::SIZES.iter().zip(memory::ladder()?).map(|(&size, ns)| size as f64 / ns).collect();
    let names = memory::SIZES.iter().map(|&size| format!("read from {}", figures::size(size as u64)));
    let level = Machine::TYPICAL.level(of_call.bytes) as usize;
    let lanes = f64::from(kernel.schedule().width.max(32)) / 32.0;
    let svg = charts::roofline(&Roofline {
        operations_per_byte: operations as f64 / of_call.bytes as f64,
        bytes: of_call.bytes as f64,
        times_ns,
        levels: names.zip(rates).collect(),
        level: level.min(memory::SIZES.len() - 1),
        peak: Machine::TYPICAL.vector_ops * lanes,
    });
    let caption = "The slopes are the rates at which a plain loop reads so many bytes on this machine now; the level line is the \
                   model's rate of operations on lanes of 32 bits. A kernel at its slope waits for memory, and one at the level line \
                   for the vector units.";
    Ok(figure(&svg, "The roofline of this kernel", caption))
}

/// The chosen schedule beside the others that the model priced.
fn schedules(problem: &Problem, kernel: &Kernel) -> String {
    let chosen = kernel.schedule();
    let Some(cost) = predict(problem, chosen) else {
        return "<p>Nothing to choose: there is no model of a kernel that only moves, converts or selects.</p>".into();
    };
    let choice = consider(problem, chosen.width);
    let all = choice.cost.map(|cost| (choice.schedule, cost)).into_iter().chain(choice.others);
    let mut others: Vec<(String, f64)> = all
        .filter(|(schedule, _)| schedule != chosen)
        .map(|(schedule, cost)| (schedule.to_string(), cost.total_ns()))
        .collect();
    others.sort_by(|a, b| a.1.total_cmp(&b.1));
    let more = others.len().saturating_sub(OTHERS);
    let rows: Vec<(String, f64)> =
        std::iter::once((chosen.to_string(), cost.total_ns())).chain(others.into_iter().take(OTHERS)).collect();
    let caption = match more {
        0 => "Expected times of a call. All give the same bits.".to_string(),
        more => format!("Expected times of a call; {more} more are slower still. All give the same bits."),
    };
    let terms = cost.terms().into_iter().filter(|(_, ns)| *ns > 0.0);
    let terms: Vec<String> = terms.map(|(name, ns)| format!("{name} {}", figures::time(ns))).collect();
    format!(
        "{}\n<p>The chosen one: {}. The times of reading, computing and visiting accumulators overlap: together they take the root of \
         the sum of their squares. The others add up.</p>",
        figure(&charts::bars(&rows), "Expected times of the schedules", &caption),
        escape(&terms.join(", "))
    )
}
