//! Run time of the workloads: compiled kernels, the interpreter, a plain Rust loop and `ndarray`.
//!
//!     cargo bench --bench run                      all
//!     cargo bench --bench run -- outer             one group
//!     cargo bench --bench run -- /native           the kernels only
//!
//! A way that is absent has no line: `ndarray` has no median, and the interpreter takes small inputs only.
//!
//! Rates are bytes read and written, each once, over the time of a call on one thread. Baselines
//! allocate their outputs, as they are used, but for loops with an output at each position; those and kernels
//! write to buffers made beforehand. Every answer is
//! held against the reference before it is timed; baselines, which add in order, may be a thousandth off.

#[path = "workloads/answers.rs"]
mod answers;
mod baselines;
#[path = "workloads/data.rs"]
mod data;
#[path = "workloads/list.rs"]
mod list;

use answers::Expected;
use baselines::{BASELINES, Walk, baselines, memory};
use cranefold::{Compiler, Problem, Scalar, Spec, pipeline};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput};
use data::Data;
use std::cell::LazyCell;
use std::hint::black_box;
use std::mem;
use std::time::Duration;

/// Elements up to which the interpreter is timed: it takes about 100 ns for each.
const INTERPRETED_ELEMS: u64 = 64 << 10;

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(400))
        .configure_from_args();
    memory::print_read_rates();
    let compiler = Compiler::host().expect("this machine");
    for workload in list::list() {
        let mut group = criterion.benchmark_group(format!("{}: {}", workload.group, workload.spec));
        measure(&mut group, &compiler, &workload.spec);
        group.finish();
    }
    criterion.final_summary();
}

/// Times one workload every way that there is. What a way needs is made when it is timed: a filter may leave it
/// out.
fn measure(group: &mut BenchmarkGroup<WallTime>, compiler: &Compiler, spec: &Spec) {
    let kernel = compiler.compile(spec).unwrap_or_else(|error| panic!("{spec}: {error}"));
    let problem = Problem::of(spec);
    let data = LazyCell::new(|| Data::all(spec));
    let expected = LazyCell::new(|| Expected::of(spec, &data));
    let check = |way: &str, answers: &[Vec<Scalar>], may_be_off: f64| {
        expected.check(answers, may_be_off).unwrap_or_else(|error| panic!("{spec}, {way}: {error}"));
    };
    group.throughput(Throughput::Bytes(kernel.facts().bytes));
    let mut buffers = answers::buffers(spec);

    let mut unchecked = true;
    group.bench_function("native", |b| {
        let inputs = answers::inputs(&data);
        if mem::take(&mut unchecked) {
            answers::run(&kernel, &inputs, &mut answers::outputs(spec, &mut buffers));
            check("native", &answers::scalars(spec, &buffers), 0.0);
        }
        let mut outputs = answers::outputs(spec, &mut buffers);
        b.iter(|| answers::run(&kernel, black_box(&inputs), black_box(&mut outputs)));
    });

    if spec.inputs()[0].span_elems() <= INTERPRETED_ELEMS {
        let program = pipeline::legal(kernel.decided()).expect("nests that verify");
        let nest = &program.nests[0];
        let bytes = LazyCell::new(|| answers::bytes(&data));
        let mut unchecked = true;
        group.bench_function("interpreter", |b| {
            if mem::take(&mut unchecked) {
                answers::interpret(nest, &bytes, &mut buffers);
                check("interpreter", &answers::scalars(spec, &buffers), 0.0);
            }
            b.iter(|| answers::interpret(nest, &bytes, black_box(&mut buffers)));
        });
    }

    let walk = Walk::of(&problem);
    let ways = walk.as_ref().map_or([None, None], |walk| baselines(spec, walk));
    for (name, way) in BASELINES.into_iter().zip(ways) {
        let Some(mut way) = way else { continue };
        let mut unchecked = true;
        group.bench_function(name, |b| {
            if mem::take(&mut unchecked) {
                let outputs = spec.outputs().iter().map(|output| output.dtype()).zip(way(&data, true));
                let scalar = |dtype| move |bits| Scalar::from_bits(dtype, bits);
                let answers: Vec<Vec<Scalar>> =
                    outputs.map(|(dtype, bits)| bits.into_iter().map(scalar(dtype)).collect()).collect();
                check(name, &answers, 1e-3);
            }
            b.iter(|| way(&data, false));
        });
    }
}
