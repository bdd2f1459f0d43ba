//! Random graphs: a plan computes what the graph means, reads back as text, and is the same each time.

mod common;

use common::{Rng, random_data, random_graph};
use cranefold::{Compiler, DType};
use cranefold_graph::{FuseOptions, Graph, Plan, fuse};

/// The rounding of a type.
fn unit(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 1e-3,
        DType::Bf16 => 8e-3,
        _ => 3e-6,
    }
}

/// For each buffer the greatest rounding on the way to it: a value that a plan writes has the type of the graph.
fn roundings(plan: &Plan) -> Vec<f64> {
    let mut units: Vec<f64> = plan.buffers().iter().map(|_| 0.0).collect();
    for kernel in plan.kernels() {
        let before = kernel.inputs.iter().map(|&buffer| units[buffer]).fold(0.0, f64::max);
        kernel.outputs.iter().for_each(|&buffer| units[buffer] = f64::max(before, unit(plan.buffers()[buffer].dtype)));
    }
    units
}

fn checked(graph: &Graph, seed: u64, compiler: &Compiler) {
    let text = graph.to_string();
    assert_eq!(&text.parse::<Graph>().unwrap(), graph, "seed {seed}");
    let plan = fuse(graph, &FuseOptions::default()).unwrap();
    assert_eq!(plan, fuse(graph, &FuseOptions::default()).unwrap(), "seed {seed}");
    let again: Plan = plan.to_string().parse().unwrap_or_else(|error| panic!("seed {seed}: {error}\n{plan}"));
    assert_eq!(again, plan, "seed {seed}");
    let mut rng = Rng(seed ^ 0x9e37);
    let inputs: Vec<_> = graph.inputs().iter().map(|&id| random_data(&mut rng, graph.value(id))).collect();
    let expected = graph.evaluate(&inputs).unwrap();
    let prepared = again.prepare(compiler).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
    let given: Vec<&[u8]> = inputs.iter().map(|data| data.bytes()).collect();
    let mut outputs: Vec<Vec<u8>> =
        expected.iter().map(|t| vec![0; t.elements.len() * t.dtype.bytes() as usize]).collect();
    let mut taken: Vec<&mut [u8]> = outputs.iter_mut().map(|o| o.as_mut_slice()).collect();
    prepared
        .run(&given, &mut taken)
        .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}\n{}", plan.decisions().join("\n")));
    let units = roundings(&plan);
    for (((bytes, tensor), output), planned) in outputs.iter().zip(&expected).zip(graph.outputs()).zip(plan.outputs()) {
        let scale = tensor.elements.iter().map(|e| e.as_f64().abs()).filter(|x| x.is_finite()).fold(0.0, f64::max);
        for (i, want) in tensor.elements.iter().enumerate() {
            let got = cranefold::Scalar::read(tensor.dtype, bytes, i);
            let same = match want.as_int() {
                Some(int) => got.as_int() == Some(int),
                None => {
                    let (a, b) = (got.as_f64(), want.as_f64());
                    a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= units[planned.buffer] * 16.0 * scale.max(1.0)
                }
            };
            let specs: Vec<String> = plan.kernels().map(|k| k.spec.to_string()).collect();
            assert!(same, "seed {seed}: {}[{i}] is {got}, not {want}\n{text}\n{}", output.name, specs.join("\n"));
        }
    }
}

#[test]
fn plans_of_random_graphs_compute_them() {
    let compiler = Compiler::host().unwrap();
    let first = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let count = std::env::var("COUNT").ok().and_then(|count| count.parse().ok()).unwrap_or(150);
    for seed in first..first + count {
        checked(&random_graph(seed), seed, &compiler);
    }
}
