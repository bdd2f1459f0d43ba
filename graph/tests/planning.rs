//! The time of planning: it grows with the number of nodes, and no faster.

use cranefold_graph::{Attribute, Builder, DType, FuseOptions, Graph, ValueId, fuse};
use std::time::{Duration, Instant};

/// Layer norm, a residual and softmax, in 11 primitives.
fn spelled(b: &mut Builder, x: ValueId) -> ValueId {
    let mean = b.reduce("", "mean", &[], &[1], true, x).unwrap();
    let c = b.map("", "x0 - x1", &[x, mean]).unwrap();
    let square = b.map("", "x0 * x0", &[c]).unwrap();
    let var = b.reduce("", "mean", &[], &[1], true, square).unwrap();
    let r = b.map("", "1 / sqrt(x0 + 1e-5)", &[var]).unwrap();
    let y = b.map("", "x0 * x1 + x2", &[c, r, x]).unwrap();
    let max = b.reduce("", "max", &[], &[1], true, y).unwrap();
    let e = b.map("", "exp(x0 - x1)", &[y, max]).unwrap();
    let sum = b.reduce("", "sum", &[], &[1], true, e).unwrap();
    let p = b.map("", "x0 / x1", &[e, sum]).unwrap();
    b.map("", "x0 + x1", &[p, y]).unwrap()
}

/// A block of a transformer: norms, residuals, softmax and a gate between matrix products of the host; 10 nodes.
fn transformer(b: &mut Builder, x: ValueId) -> ValueId {
    let product = |b: &mut Builder, x: ValueId, kind: i64| {
        b.opaque("MatMul", vec![("kind".into(), Attribute::Int(kind))], &[x], &[("", DType::F32, &[32, 64])]).unwrap()
            [0]
    };
    let n = b.normalize("", "layer_norm", &[("eps", 1e-5)], &[1], &[x]).unwrap();
    let scores = product(b, n, 0);
    let scaled = b.map("", "x0 * 0.125", &[scores]).unwrap();
    let p = b.normalize("", "softmax", &[], &[1], &[scaled]).unwrap();
    let attended = product(b, p, 1);
    let x = b.map("", "x0 + x1", &[attended, x]).unwrap();
    let n = b.normalize("", "rms_norm", &[("eps", 1e-5)], &[1], &[x]).unwrap();
    let up = product(b, n, 2);
    let gated = b.map("", "x0 / (1 + exp(-x0))", &[up]).unwrap();
    b.map("", "x0 + x1", &[gated, x]).unwrap()
}

/// A graph of about this many nodes.
fn graph(nodes: usize, block: fn(&mut Builder, ValueId) -> ValueId) -> Graph {
    let mut b = Builder::new();
    let mut x = b.input("x", DType::F32, &[32, 64]).unwrap();
    let mut count = 1;
    while count < nodes {
        let before = x;
        x = block(&mut b, x);
        count += x.index() - before.index();
    }
    b.output("y", x).unwrap();
    b.finish().unwrap()
}

/// The least time of several plannings.
fn planned(graph: &Graph) -> Duration {
    let once = |_| {
        let start = Instant::now();
        let plan = fuse(graph, &FuseOptions::default()).unwrap();
        assert!(plan.kernels().count() > graph.nodes().len() / 100);
        start.elapsed()
    };
    (0..5).map(once).min().unwrap()
}

#[test]
fn planning_is_linear_in_the_number_of_nodes() {
    for (name, block) in [("spelled", spelled as fn(&mut Builder, ValueId) -> ValueId), ("transformer", transformer)] {
        let (few, many) = (graph(2_500, block), graph(10_000, block));
        let (short, long) = (planned(&few), planned(&many));
        println!("{name}: {} nodes {short:.1?}, {} nodes {long:.1?}", few.nodes().len(), many.nodes().len());
        assert!(long < short * 6, "{name}: 2,500 nodes in {short:?}, 10,000 in {long:?}");
    }
}
