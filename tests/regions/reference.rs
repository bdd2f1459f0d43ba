//! Results of kernels are ones that the reference allows, and of ordinary data it bounds nearly all of them.

use super::given::{memory, results};
use super::list;
use super::values::{cases, sized};
use cranefold::{Compiler, Spec};
use cranefold_fuzz::bits::is_allowed;
use cranefold_fuzz::data::Buffer;
use cranefold_fuzz::execute::Memory;
use cranefold_reference as reference;

/// The results that were checked, and those of them that may be anything.
#[derive(Clone, Copy, Default)]
struct Tally {
    checked: usize,
    unbounded: usize,
}

/// Checks ordinary data.
fn check(compiler: &Compiler, spec: &Spec, memory: &Memory, tally: &mut Tally) -> Result<(), String> {
    let [inputs, old] = [&memory.inputs, &memory.outputs].map(|b| b.iter().map(Buffer::bytes).collect::<Vec<_>>());
    let exact = reference::reduce_over(spec, &inputs, &old).map_err(|e| format!("{spec}: {e}"))?;
    let kernel = compiler.compile(spec).map_err(|e| format!("{spec}: {e}"))?;
    for (o, (exact, got)) in exact.iter().zip(results(spec, &kernel, memory)).enumerate() {
        if exact.len() != got.len() {
            return Err(format!("{spec}: {} results of output {o}, not {}", exact.len(), got.len()));
        }
        for (place, (exact, got)) in exact.iter().zip(got).enumerate() {
            tally.checked += 1;
            tally.unbounded += usize::from(!exact.is_bounded(spec));
            reference::check(spec, exact, got).map_err(|e| format!("{spec}: output {o}, element {place}: {e}"))?;
        }
    }
    Ok(())
}

#[test]
fn the_reference_allows_and_bounds_results_of_ordinary_data() {
    let compiler = Compiler::host().expect("a compiler");
    let (mut all, mut faults) = (Tally::default(), vec![]);
    for case in cases() {
        let mut tally = Tally::default();
        let (_, listed) = list().into_iter().find(|(name, _)| name == case.name).expect("a region of the list");
        let mut run = |spec: &Spec| {
            let checked = check(&compiler, spec, &memory(spec, case.draws), &mut tally);
            faults.extend(checked.err().map(|e| format!("{}: {e}", case.name)));
        };
        run(&listed);
        let sizes = if case.name.contains("causal") { &[2, 7, 17] } else { &[2, 7, 65] };
        sizes.iter().for_each(|&n| run(&sized(case, n)));
        let share = 100.0 * tally.unbounded as f64 / tally.checked as f64;
        println!("{share:6.2} % of {:6} results unbounded: {}", tally.checked, case.name);
        all.checked += tally.checked;
        all.unbounded += tally.unbounded;
    }
    println!("{} of {} results unbounded", all.unbounded, all.checked);
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    assert!(all.unbounded * 20 <= all.checked, "{} of {} unbounded", all.unbounded, all.checked);
}

#[test]
fn the_reference_allows_results_of_corners() {
    let compiler = Compiler::host().expect("a compiler");
    let mut faults = vec![];
    for case in cases() {
        let spec = sized(case, 7);
        let kernel = compiler.compile(&spec).unwrap_or_else(|e| panic!("{}: {e}", case.name));
        for kind in 0..8 {
            let memory = Memory::of(&spec, kind, 3, (0, 0));
            let outputs = memory.run(&kernel);
            let allowed = is_allowed(&spec, &memory, &outputs);
            faults.extend(allowed.err().map(|e| format!("{}, kind {kind}: {e}\n  {spec}", case.name)));
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}
