//! Every workload of the benches compiles and gives right answers; every region of theirs compiles.

#[path = "../benches/workloads/answers.rs"]
mod answers;
#[path = "../benches/workloads/data.rs"]
mod data;
#[path = "../benches/workloads/list.rs"]
mod list;

use answers::Expected;
use cranefold::{Compiler, Spec, pipeline};
use data::Data;
use list::Workload;

/// Elements up to which the interpreter runs a workload too.
const INTERPRETED_ELEMS: u64 = 64 << 10;

#[test]
fn every_workload_is_right() {
    let compiler = Compiler::host().expect("this machine");
    for Workload { group, spec } in list::list() {
        let kernel = compiler.compile(&spec).unwrap_or_else(|error| panic!("{group}: {spec}: {error}"));
        let data = Data::all(&spec);
        let mut outputs = answers::buffers(&spec);
        answers::run(&kernel, &answers::inputs(&data), &mut answers::outputs(&spec, &mut outputs));
        let checked = Expected::of(&spec, &data).check(&answers::scalars(&spec, &outputs), 0.0);
        checked.unwrap_or_else(|error| panic!("{group}: {spec}: {error}"));
        let elems = spec.inputs()[0].span_elems();
        if elems <= INTERPRETED_ELEMS {
            let program = pipeline::legal(kernel.decided()).expect("nests that verify");
            let mut others = answers::buffers(&spec);
            answers::interpret(&program.nests[0], &answers::bytes(&data), &mut others);
            assert!(outputs == others, "{group}: {spec}: the interpreter gives other bits");
        }
    }
}

/// The regions that `benches/regions.sh` times, each with its name in `benches/regions.py`.
#[test]
fn every_region_to_be_timed_compiles_and_has_a_name() {
    let compiler = Compiler::host().expect("this machine");
    let names = include_str!("../benches/regions.py");
    let lines: Vec<&str> =
        include_str!("../benches/regions.txt").lines().filter(|line| !line.starts_with('#')).collect();
    assert!(lines.len() >= 90, "{} regions", lines.len());
    for line in lines {
        let (text, name) = line.split_once("  # ").unwrap_or_else(|| panic!("{line} has no name"));
        let spec: Spec = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        compiler.compile(&spec).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert!(names.contains(&format!("\"{name}\"")), "regions.py has no `{name}`");
    }
}
