//! Prints the plan of a graph's text on the standard input.
use cranefold_graph::{FuseOptions, Graph, PlanStep, fuse};
use std::io::Read;

fn main() {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).expect("a text");
    for text in text.split("----") {
        match text.parse::<Graph>().and_then(|graph| fuse(&graph, &FuseOptions::default())) {
            Ok(plan) => {
                for step in plan.steps() {
                    let names = |all: &[usize]| {
                        all.iter().map(|&b| plan.buffers()[b].name.clone()).collect::<Vec<_>>().join(", ")
                    };
                    match step {
                        PlanStep::Kernel(k) => println!("{} <- {} ({})", names(&k.outputs), k.spec, names(&k.inputs)),
                        PlanStep::Opaque(o) => {
                            println!("{} <- {} ({}): {}", names(&o.outputs), o.op, names(&o.inputs), o.why)
                        }
                    }
                }
                plan.decisions().iter().for_each(|line| println!("  # {line}"));
            }
            Err(error) => println!("error: {error}"),
        }
        println!("--");
    }
}
