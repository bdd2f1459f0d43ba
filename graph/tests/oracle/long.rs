//! Graphs that are too long for one kernel.

use crate::check::checked;
use crate::generator::{Rng, random_data};
use cranefold::Compiler;
use cranefold_graph::{FuseOptions, Graph, fuse};
use std::fmt::Write;

/// Checks a graph of these lines against the oracle; returns the number of its kernels and the most values that one reads.
fn planned(case: &str, lines: &str, compiler: &Compiler) -> (usize, usize) {
    let graph: Graph = format!("graph {{\n{lines}}}").parse().unwrap();
    let mut rng = Rng(9);
    let inputs: Vec<_> = graph.inputs().iter().map(|&id| random_data(&mut rng, graph.value(id))).collect();
    checked(&graph, &inputs, case, compiler);
    let plan = fuse(&graph, &FuseOptions::default()).unwrap();
    let read = plan.kernels().map(|kernel| kernel.inputs.len()).max();
    (plan.kernels().count(), read.unwrap_or(0))
}

/// A residual around a gate, so often.
fn residuals(count: usize) -> String {
    let mut text = "x0: f32[3,5] = input\n".to_string();
    for i in 0..count {
        let _ = writeln!(text, "a{i} = map(x{i}) \"x0 * 0.5 + 1\"\ng{i} = map(a{i}) \"x0 / (1 + exp(-x0))\"");
        let _ = writeln!(text, "x{} = map(g{i}, x{i}) \"x0 * 0.25 + x1 * 0.5\"", i + 1);
    }
    text
}

/// The sum of so many tensors.
fn sum(count: usize) -> String {
    let mut text: String = (0..count).map(|i| format!("x{i}: f32[3,5] = input\n")).collect();
    text.push_str("s1 = map(x0, x1) \"x0 + x1\"\n");
    for i in 2..count {
        let _ = writeln!(text, "s{i} = map(s{}, x{i}) \"x0 + x1\"", i - 1);
    }
    text
}

#[test]
fn long_graphs_are_cut_where_few_values_pass() {
    let compiler = Compiler::host().unwrap();
    let (kernels, read) = planned("residuals", &format!("{}return x300\n", residuals(300)), &compiler);
    assert!((8..30).contains(&kernels) && read == 1, "{kernels} kernels, of {read} operands");
    let text = format!("{}r = sum(x300) axes=[1]\nreturn r, x300\n", residuals(300));
    let (kernels, read) = planned("reduced residuals", &text, &compiler);
    assert!((8..30).contains(&kernels) && read == 1, "{kernels} kernels, of {read} operands");
    let (kernels, read) = planned("sum", &format!("{}return s99\n", sum(100)), &compiler);
    assert!(kernels == 3 && read <= 48, "{kernels} kernels, of {read} operands");
    let (kernels, read) = planned("reduced sum", &format!("{}r = max(s99) axes=[0]\nreturn r\n", sum(100)), &compiler);
    assert!(kernels == 3 && read <= 48, "{kernels} kernels, of {read} operands");
    // Outputs along the way are written by the kernels that compute them.
    let text = format!("{}return x300, x299, a290, x7, x150, g151, x298\n", residuals(300));
    planned("residuals with outputs", &text, &compiler);
}

/// Blocks of norms and softmax in primitives, one after the other, which have no end that one kernel could hold.
#[test]
fn long_chains_of_reductions_are_cut() {
    let mut text = "x0: f32[3,5] = input\n".to_string();
    for i in 0..60 {
        let _ = writeln!(text, "m{i} = mean(x{i}) axes=[1] keep_dims\nc{i} = map(x{i}, m{i}) \"x0 - x1\"");
        let _ = writeln!(text, "q{i} = map(c{i}) \"x0 * x0\"\nv{i} = mean(q{i}) axes=[1] keep_dims");
        let _ = writeln!(text, "y{i} = map(c{i}, v{i}, x{i}) \"x0 / sqrt(x1 + 1) + x2 * 0.25\"");
        let _ = writeln!(text, "k{i} = max(y{i}) axes=[1] keep_dims\ne{i} = map(y{i}, k{i}) \"exp(x0 - x1)\"");
        let _ = writeln!(text, "s{i} = sum(e{i}) axes=[1] keep_dims");
        let _ = writeln!(text, "x{} = map(e{i}, s{i}, y{i}) \"x0 / x1 + x2 * 0.5\"", i + 1);
    }
    planned("blocks", &format!("{text}return x60\n"), &Compiler::host().unwrap());
}
