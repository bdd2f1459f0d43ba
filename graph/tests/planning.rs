//! The time of planning: it grows with the number of nodes, and no faster.

use cranefold_graph::{Attribute, Builder, DType, FuseOptions, Graph, Plan, ValueId, fuse};
use std::time::{Duration, Instant};

/// Nodes after a value, the last of which it returns.
type Block = fn(&mut Builder, ValueId) -> ValueId;

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

/// Norms by their names, each a kernel of its own, and a residual; 4 nodes, of which the fuser makes 30 primitives.
fn named(b: &mut Builder, x: ValueId) -> ValueId {
    let n = b.normalize("", "layer_norm", &[("eps", 1e-5)], &[1], &[x]).unwrap();
    let r = b.normalize("", "rms_norm", &[("eps", 1e-5)], &[1], &[n]).unwrap();
    let p = b.normalize("", "softmax", &[], &[1], &[r]).unwrap();
    b.map("", "x0 + x1", &[p, x]).unwrap()
}

/// A graph of about this many nodes.
fn graph(nodes: usize, block: Block) -> Graph {
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

/// The time that this thread had a core, where the system tells it: another process's load is no part of it.
fn own_time(start: Instant) -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.as_deref().and_then(|text| text.split_whitespace().next()?.parse().ok());
    nanoseconds.map_or_else(|| start.elapsed(), Duration::from_nanos)
}

/// The time of so many plannings.
fn planned(graph: &Graph, count: usize) -> Duration {
    let start = Instant::now();
    let before = own_time(start);
    for _ in 0..count {
        let plan = fuse(graph, &FuseOptions::default()).unwrap();
        assert!(plan.kernels().count() > graph.nodes().len() / 100);
    }
    own_time(start).saturating_sub(before)
}

/// A graph of 10,000 nodes takes as long as one of 2,500 four times; if the time were quadratic, it would take 4 times as
/// long.
#[test]
fn planning_is_linear_in_the_number_of_nodes() {
    let blocks: [(&str, Block); 3] = [("spelled", spelled), ("transformer", transformer), ("named", named)];
    for (name, block) in blocks {
        let (few, many) = (graph(2_500, block), graph(10_000, block));
        let (mut short, mut long, mut least) = (Duration::ZERO, Duration::ZERO, Duration::MAX);
        for _ in 0..4 {
            short += planned(&few, 4);
            let once = planned(&many, 1);
            (long, least) = (long + once, least.min(once));
        }
        let plan = fuse(&few, &FuseOptions::default()).unwrap();
        assert_eq!(plan.to_string().parse::<Plan>().unwrap(), plan, "{name}");
        println!("{name}: {} nodes in {least:.1?}", many.nodes().len());
        assert!(long < short * 2, "{name}: 2,500 nodes 16 times in {short:?}, 10,000 nodes 4 times in {long:?}");
    }
}

/// Each value of a long chain waits for all before it, and none of these questions takes a search through the whole chain.
#[test]
fn a_chain_of_slices_takes_bounded_time() {
    let mut text = "graph { v0: f32[64] = input\n".to_string();
    for n in 0..5_000 {
        text += &format!("s{n}: f32[64] = slice(v{n}) start=[63] step=[-1]\n");
        text += &format!("v{}: f32[64] = map(v{n}, s{n}) \"x0 + x1\"\n", n + 1);
    }
    let graph: Graph = (text + "return v5000 }").parse().unwrap();
    let time = planned(&graph, 1);
    assert!(time < Duration::from_secs(20), "{time:?}");
}
