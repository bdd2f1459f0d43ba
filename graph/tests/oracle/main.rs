//! Plans against the oracle: random graphs, long ones, and each composite and normalisation by its name.

mod check;
mod composites;
mod generator;
mod long;

use check::checked;
use cranefold::Compiler;
use generator::{Rng, random_data, random_graph};

#[test]
fn plans_of_random_graphs_compute_them() {
    let compiler = Compiler::host().unwrap();
    let first = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let count = std::env::var("COUNT").ok().and_then(|count| count.parse().ok()).unwrap_or(150);
    for seed in first..first + count {
        let graph = random_graph(seed);
        let mut rng = Rng(seed ^ 0x9e37);
        let inputs: Vec<_> = graph.inputs().iter().map(|&id| random_data(&mut rng, graph.value(id))).collect();
        checked(&graph, &inputs, &format!("seed {seed}"), &compiler);
    }
}

/// Asserts that the plan of a graph's text computes it.
fn computes(case: &str, text: &str) {
    let graph: cranefold_graph::Graph = text.parse().unwrap();
    let mut rng = Rng(1);
    let inputs: Vec<_> = graph.inputs().iter().map(|&id| random_data(&mut rng, graph.value(id))).collect();
    checked(&graph, &inputs, case, &Compiler::host().unwrap());
}

/// A kernel that reads a slice of a value waits for the kernel that writes the value, which is another than its users'.
#[test]
fn a_slice_waits_for_its_source() {
    let text = r#"graph {
        x: f32[4,3,4] = input
        t: f32[4,3,4] = transpose(x) perm=[2,1,0]
        s: f32[4,3,4] = slice(t) start=[3,2,3] step=[-1,-1,-1]
        a: f32[4,3,4] = map(s) "abs(x0)"
        return a, s, t
    }"#;
    computes("a slice", text);
}

/// The kernel that writes a value reads no slice of a slice of it, nor a slice of what is computed from one: another kernel
/// would have to write the inner slice before, and read the value after.
#[test]
fn a_slice_of_a_slice_is_read_after_both_sources() {
    let outputs = r#"graph {
        x: f32[3,6] = input
        t: f32[3,6] = map(x) "tanh(x0)"
        a: f32[3,6] = slice(t) start=[2,5] step=[-1,-1]
        b: f32[3,6] = slice(a) start=[2,0] step=[-1,1]
        c: f32[9,2] = reshape(b)
        return c, t
    }"#;
    computes("a slice of a slice", outputs);
    let reduced = r#"graph {
        x: f32[7] = input
        e: f32[7] = map(x) "exp(x0)"
        a: f32[7] = slice(e) start=[6] step=[-1]
        m: f32[1] = min(a) axes=[0] keep_dims
        h: f16[7] = cast(a)
        b: f16[7] = slice(h) start=[6] step=[-1]
        y: f16[7] = map(b) "-x0"
        return y, m
    }"#;
    computes("a slice of a conversion of a slice", reduced);
}

/// A reshape whose axes are no runs of its operand's leads through memory, as a slice does.
#[test]
fn a_reshape_across_axes_waits_for_its_source() {
    let text = r#"graph {
        x: f32[6,7] = input
        t: f32[6,7] = map(x) "tanh(x0)"
        r: f32[7,6] = reshape(t)
        e: f32[7,6] = map(r) "exp(x0)"
        b: f32[6,7] = reshape(e)
        y: f32[6,7] = map(t, b) "x0 + x1"
        return y, t
    }"#;
    computes("a reshape across axes", text);
}

/// A kernel that reads a concatenation waits for the kernels of all its parts.
#[test]
fn a_concatenation_is_read_after_all_its_parts() {
    let text = r#"graph {
        x: f32[4,6] = input
        m: f32[4,1] = sum(x) axes=[1] keep_dims
        s: f32[4,6] = slice(x) start=[3,0] step=[-1,1]
        a: f32[4,6] = map(s, m) "x0 * x1"
        c: f32[8,6] = concat(a, x) axis=0
        v: f32[8,6] = slice(c) start=[7,5] step=[-1,-1]
        y: f32[8] = log_sum_exp(v) axes=[1]
        z: f32[8,6] = map(v, c) "x0 - x1"
        w: f32[4,12] = reshape(z)
        return y, w, c
    }"#;
    computes("a concatenation", text);
}

/// A reduction over an axis of extent 1 takes elements, though its operand has no other axis than those that are kept.
#[test]
fn one_element_is_reduced_of_a_position() {
    let text = r#"graph {
        x: f32[16,1] = input
        h: f32[16,1] = hardmax(x) axes=[0]
        y: f32[16,1] = mvn(h) eps=0.5 variance=1.0 outside=0.0 axes=[1]
        return y
    }"#;
    computes("one element", text);
}

/// A kernel that compares positions with a position it finds has no more results of the search for that.
#[test]
fn a_maximum_stands_beside_a_found_position() {
    let text = r#"graph {
        x: f32[3,6] = input
        a: f32[3,6] = map(x) "abs(x0)"
        m: f32[3,1] = max(a) axes=[1] keep_dims
        h: f32[3,6] = hardmax(x) axes=[1]
        y: f32[3,6] = map(a, m) "x0 - x1"
        return h, y
    }"#;
    computes("a position", text);
}

/// A reduction of elements less a total is in another kernel than the total: a total combines only with numbers.
#[test]
fn elements_less_a_total_are_reduced_after_it() {
    let text = r#"graph {
        x: f32[4,6] = input
        s: f32[4,1] = sum(x) axes=[1] keep_dims
        m: f32[1,1] = min(s) axes=[0] keep_dims
        d: f32[4,6] = map(x, m) "x0 - x1"
        y: f32[4] = max(d) axes=[1]
        return s, y
    }"#;
    computes("a total", text);
}

/// A fault of the fuser cannot hide in code that the oracle shares with it.
#[test]
fn the_oracle_names_nothing_of_the_fuser() {
    for source in [include_str!("../../src/oracle.rs"), include_str!("../../src/eval.rs")] {
        assert!(!source.contains("crate::expand") && !source.contains("crate::fuse"));
    }
}
