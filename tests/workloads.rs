//! Every workload of the benches compiles and gives right answers.

#[path = "../benches/workloads/answers.rs"]
mod answers;
#[path = "../benches/workloads/data.rs"]
mod data;
#[path = "../benches/workloads/list.rs"]
mod list;

use answers::Expected;
use cranefold::{Compiler, pipeline};
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
