//! Values that are one number everywhere: each has its own shape, though all are the same term.

use cranefold::Compiler;
use cranefold_graph::{FuseOptions, Graph, Plan, fuse};

fn planned(text: &str) -> Plan {
    fuse(&text.parse::<Graph>().expect("a graph"), &FuseOptions::default()).expect("a plan")
}

#[test]
fn outputs_of_one_number_have_their_own_shapes() {
    let plan = planned("graph { a: f32[3] = const splat 1; b: f32[2,5] = const splat 1; return a, b, c = a }");
    let shapes: Vec<_> = plan.outputs().iter().map(|output| plan.buffers()[output.buffer].shape.clone()).collect();
    assert_eq!(shapes, [vec![3], vec![2, 5], vec![3]]);
    let (mut a, mut b, mut c) = ([0; 12], [0; 40], [0; 12]);
    let prepared = plan.prepare(&Compiler::host().expect("a compiler")).expect("no kernels");
    prepared.run(&[], &mut [&mut a, &mut b, &mut c]).expect("a run");
    assert!([&a[..], &b, &c].concat().chunks(4).all(|bytes| bytes == 1.0f32.to_ne_bytes()));
}

#[test]
fn the_host_takes_one_number_in_the_shapes_of_its_nodes() {
    let plan = planned(
        "graph { x: f32[4] = input; a: f32[3] = const splat 0.5; b: f32[7] = const splat 0.5; \
         y: f32[4] = opaque(x, a) op=\"Conv\"; z: f32[4] = opaque(y, b) op=\"Conv\"; return z }",
    );
    let weights: Vec<_> = plan.opaque().map(|step| plan.buffers()[step.inputs[1]].shape.clone()).collect();
    assert_eq!(weights, [[3], [7]]);
}

#[test]
fn what_is_too_large_for_a_plan_is_filled_by_the_host() {
    let plan = planned(
        "graph { x: f32[4] = input; n: f32[1] = const splat 0.5; w: f32[20000000] = broadcast(n); \
         y: f32[4] = opaque(x, w) op=\"Conv\"; return y }",
    );
    let [fill, conv] = &plan.opaque().collect::<Vec<_>>()[..] else { panic!("two steps") };
    assert_eq!((fill.op.as_str(), conv.op.as_str()), ("fill", "Conv"));
    assert_eq!(fill.outputs[0], conv.inputs[1]);
    assert_eq!(fill.why, "20000000 equal elements, and a plan keeps at most 16777216");
    assert!(plan.buffers().iter().all(|buffer| buffer.data.is_none()));
}

/// A value that only a view stands for has the view's name in the reasons.
#[test]
fn reasons_have_the_names_of_nodes() {
    let plan = planned(
        "graph { x: f32[2,8,6] = input; r: f32[2,1,6] = l2(x) axes=[1] keep_dims; m: f32[2,1,1] = mean(r) axes=[2] keep_dims; \
         y = map(x, r, m) \"x0 * x1 / (x2 + 1)\"; return y }",
    );
    let reason =
        plan.decisions().into_iter().any(|line| line.contains("r is written: a kernel over other axes reads it"));
    assert!(reason, "{:?}", plan.decisions());
}
