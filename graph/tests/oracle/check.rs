//! A plan against the oracle.

use cranefold::{Compiler, DType, Scalar};
use cranefold_graph::{Data, FuseOptions, Graph, Plan, fuse};

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

/// Asserts that the plan of a graph computes what the graph means, reads back as text, and is the same each time.
pub fn checked(graph: &Graph, inputs: &[Data], case: &str, compiler: &Compiler) {
    let text = graph.to_string();
    assert_eq!(&text.parse::<Graph>().unwrap(), graph, "{case}");
    let plan = fuse(graph, &FuseOptions::default()).unwrap_or_else(|error| panic!("{case}: {error}\n{text}"));
    assert_eq!(plan, fuse(graph, &FuseOptions::default()).unwrap(), "{case}");
    let again: Plan = plan.to_string().parse().unwrap_or_else(|error| panic!("{case}: {error}\n{plan}"));
    assert_eq!(again, plan, "{case}");
    let expected = graph.evaluate(inputs).unwrap();
    let prepared = again.prepare(compiler).unwrap_or_else(|error| panic!("{case}: {error}\n{text}"));
    let given: Vec<&[u8]> = inputs.iter().map(|data| data.bytes()).collect();
    let mut outputs: Vec<Vec<u8>> =
        expected.iter().map(|t| vec![0; t.elements.len() * t.dtype.bytes() as usize]).collect();
    let mut taken: Vec<&mut [u8]> = outputs.iter_mut().map(|o| o.as_mut_slice()).collect();
    prepared
        .run(&given, &mut taken)
        .unwrap_or_else(|error| panic!("{case}: {error}\n{text}\n{}", plan.decisions().join("\n")));
    let units = roundings(&plan);
    for (((bytes, tensor), output), planned) in outputs.iter().zip(&expected).zip(graph.outputs()).zip(plan.outputs()) {
        let scale = tensor.elements.iter().map(|e| e.as_f64().abs()).filter(|x| x.is_finite()).fold(0.0, f64::max);
        for (i, want) in tensor.elements.iter().enumerate() {
            let got = Scalar::read(tensor.dtype, bytes, i);
            let same = match want.as_int() {
                Some(int) => got.as_int() == Some(int),
                None => {
                    let (a, b) = (got.as_f64(), want.as_f64());
                    a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= units[planned.buffer] * 16.0 * scale.max(1.0)
                }
            };
            let specs: Vec<String> = plan.kernels().map(|k| k.spec.to_string()).collect();
            assert!(same, "{case}: {}[{i}] is {got}, not {want}\n{text}\n{}", output.name, specs.join("\n"));
        }
    }
}
