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
    let graph: cranefold_graph::Graph = text.parse().unwrap();
    let mut rng = Rng(1);
    let inputs: Vec<_> = graph.inputs().iter().map(|&id| random_data(&mut rng, graph.value(id))).collect();
    checked(&graph, &inputs, "a slice", &Compiler::host().unwrap());
}

/// A fault of the fuser cannot hide in code that the oracle shares with it.
#[test]
fn the_oracle_names_nothing_of_the_fuser() {
    for source in [include_str!("../../src/oracle.rs"), include_str!("../../src/eval.rs")] {
        assert!(!source.contains("crate::expand") && !source.contains("crate::fuse"));
    }
}
