//! Graphs as text: what is written reads back, and what breaks a rule is refused with its place or node.

use cranefold_graph::{Attribute, Builder, DType, Data, FuseOptions, Graph, MAX_NODES, Op, Plan, Range, fuse};
use std::time::{Duration, Instant};

const EVERY_OP: &str = r#"graph {
  x: f32[4,6] = input
  i: i64[4,1] = input
  w: f32[6] = const [0.5, 1.0, -inf, nan, 1e-45, 2.0]
  z: f16[100] = const splat 0.5
  y: f32[4,6] = map(x, w) "x0 * x1 + 1"
  c: i8[4,6] = cast(y)
  s: u8[4,6] = cast(c) saturate
  r: f32[2,2,6] = reshape(y)
  t: f32[6,4] = transpose(x) perm=[1,0]
  b: f32[3,4,6] = broadcast(x)
  l: f32[2,3] = slice(x) start=[0,5] step=[2,-2]
  k: f32[8,6] = concat(x, y) axis=0
  p: i64[4,6] = position axis=1
  m: f32[4,1] = mean(y) axes=[1] keep_dims
  n: f32[4] = lp(y) p=3.0 axes=[1]
  a: i32[6] = argmax(x) last=1.0 axes=[0]
  mx: f32[4], sx: f32[4] = sum_exp(x) axes=[1]
  q: f32[4,6] = softmax(y) axes=[1]
  ln: f32[4,6] = layer_norm(y, w) eps=1e-5 axes=[1]
  pk: f32[4,1] = pick(x, i) axis=1
  g: f32[4,6] = group_norm(x) groups=2.0 eps=1e-5
  "a b/c:0": f32[4,2], o2: i64[2] = opaque(y, i) op="Mat\"Mul" alpha=1.5 k.1=[1,2] name="x" beta=floats [1.0,2.0] n=3
  return y, "out 2" = "a b/c:0", o2, pk
}
"#;

#[test]
fn every_op_prints_and_reads_back() {
    let graph: Graph = EVERY_OP.parse().unwrap();
    assert_eq!(graph.to_string(), EVERY_OP);
    assert_eq!(graph.to_string().parse::<Graph>().unwrap(), graph);
}

#[test]
fn what_breaks_a_rule_is_refused_with_its_name() {
    let cases = [
        ("", "line 1, column 1: a graph begins with `graph {`"),
        ("graph { x: f32[2] = input; return y }", "line 1, column 35: there is no value `y` before this line"),
        ("graph { x: f32[2] = input\n x: f32[2] = input\n return x }", "node `x`: another value has this name"),
        (
            "graph { x: f32[2] = input\n y: f32[3] = map(x) \"x0\"\n return y }",
            "line 2, column 14: `y` is f32[2], not f32[3]",
        ),
        (
            "graph { x: f32[2] = input; y = mean(x) axes=[1]; return y }",
            "line 1, column 32: axis 1 is out of range for rank 1",
        ),
        (
            "graph { x: f32[2,3] = input; y: f32[7] = reshape(x); return y }",
            "node `y`: [2,3] has 6 elements, and [7] has 7",
        ),
        (
            "graph { x: i32[2] = input; y = softmax(x) axes=[0]; return y }",
            "node `y`: `softmax` takes floats, i32 given",
        ),
        ("graph { x: f32[2] = input; y = map(x, x) \"x0\"; return y }", "node `y`: the formula does not use x1"),
        (
            "graph { x: f32[99999999,99999999,99999999,99999999] = input; return x }",
            "node `x`: shape [99999999,99999999,99999999,99999999] has more than 1152921504606846976 elements",
        ),
        (
            "graph { x: f32[2] = input; y: f32[2] = slice(x) start=[1] step=[1]; return y }",
            "node `y`: 2 elements from 1 by 1 leave axis 0 of extent 2",
        ),
        (
            "graph { x: f32[2] = const [1.0]; return x }",
            "line 1, column 21: 4 bytes of data, and f32 of shape [2] needs 8",
        ),
        ("graph { x: f32[2] = input; return x, x }", "node `x`: the graph has an output of this name"),
        (
            "graph { x: f32[2] = input; y = y(x); return y }",
            "line 1, column 32: there is no op `y`; a formula of elements is `map(x) \"…\"`",
        ),
        ("graph { x: f32[2] = input\n}", "line 2, column 1: the graph ends without its outputs: `return NAME, …`"),
    ];
    for (text, message) in cases {
        assert_eq!(text.parse::<Graph>().unwrap_err().to_string(), message, "{text}");
    }
}

/// A NaN is equal to itself in attributes, so that graphs and plans read back.
#[test]
fn attributes_hold_nan_and_signs_of_zero() {
    let text = "graph { x: f32[2] = input; y: f32[2] = opaque(x) op=\"F\" a=nan b=floats [-0.0,NaN] c=-0.0; return y }";
    let graph: Graph = text.parse().unwrap();
    assert_eq!(graph.to_string().parse::<Graph>().unwrap(), graph);
    assert!(graph.to_string().contains("a=NaN b=floats [-0.0,NaN] c=-0.0"), "{graph}");
    assert_ne!(Attribute::Float(0.0), Attribute::Float(-0.0));
    assert_ne!(Attribute::Floats(vec![1.0]), Attribute::Floats(vec![1.0, 1.0]));
}

#[test]
fn chosen_names_give_way() {
    let mut b = Builder::new();
    let x = b.input("", DType::F32, &[2]).unwrap();
    assert_eq!(b.name(x), "v0");
    let y = b.input("v0", DType::F32, &[2]).unwrap();
    assert_eq!((b.name(x), b.name(y)), ("v1", "v0"));
    let opaque =
        b.opaque("MatMul", vec![("t".into(), Attribute::Ints(vec![]))], &[x, y], &[("", DType::F32, &[2])]).unwrap();
    b.output("", opaque[0]).unwrap();
    let graph = b.finish().unwrap();
    assert_eq!(graph.to_string().parse::<Graph>().unwrap(), graph);
}

#[test]
fn the_builder_refuses_values_of_other_graphs() {
    let mut other = Builder::new();
    other.input("a", DType::F32, &[2]).unwrap();
    let b = other.input("b", DType::F32, &[2]).unwrap();
    let mut builder = Builder::new();
    builder.input("a", DType::F32, &[2]).unwrap();
    assert!(builder.add("y", Op::Slice(vec![Range::all(2)]), &[b]).is_err());
    assert!(builder.output("y", b).is_err());
}

#[test]
fn constants_hold_bits() {
    let values: Vec<i64> = (0..100).collect();
    let mut b = Builder::new();
    let c = b.constant("c", Data::of_ints(DType::I16, &[100], &values).unwrap()).unwrap();
    b.output("c", c).unwrap();
    let graph = b.finish().unwrap();
    let text = graph.to_string();
    assert!(text.contains("hex \"000001000200"));
    assert_eq!(text.parse::<Graph>().unwrap(), graph);
}

#[test]
fn a_plan_reads_back() {
    let graph: Graph = EVERY_OP.parse().unwrap();
    let plan = fuse(&graph, &FuseOptions::default()).unwrap();
    let text = plan.to_string();
    assert!(plan.opaque().count() == 1 && text.contains("alpha=1.5"), "{text}");
    assert_eq!(text.parse::<Plan>().unwrap(), plan);
    assert_eq!(text.parse::<Plan>().unwrap().to_string(), text);
}

#[test]
fn a_plan_that_does_not_fit_is_refused() {
    let plan = |buffers: &str, steps: &str| format!("plan {{\n{buffers}\n{steps}\nreturn y = y [2]\n}}");
    let both = "x: f32[2] = input\ny: f32[2] = buffer";
    let kernel = |text: &str| format!("{text} bytes=1 before=1 nodes=[] notes=[]");
    let whole = kernel("y = kernel(x) \"region x0:f32[2] axes=[] { x0 + x0 }\"");
    assert!(plan(both, &whole).parse::<Plan>().is_ok());
    let cases = [
        ("".to_string(), "line 1, column 1: a plan begins with `plan {`"),
        (plan(both, ""), "line 5, column 12: nothing writes `y`"),
        (
            plan("x: f32[1] = input\ny: f32[2] = buffer", &whole),
            "line 4, column 1: the kernel takes 8 bytes of f32, and `x` has f32, 4 bytes",
        ),
        (
            plan("x: f16[2] = input\ny: f32[2] = buffer", &whole),
            "line 4, column 1: the kernel takes 8 bytes of f32, and `x` has f16, 4 bytes",
        ),
        (
            plan("x: f32[2] = input\ny: f32[2] = input", &whole),
            "line 4, column 1: `y` is no buffer that a step may write",
        ),
        (plan("y: f32[2] = buffer\nx: f32[2] = buffer", &whole), "line 4, column 12: nothing writes `x`"),
        (plan(both, &whole.replace("(x)", "(x, x)")), "line 4, column 1: 2 inputs for a kernel with 1"),
        (plan(both, &whole.replace("(x)", "(z)")), "line 4, column 12: there is no buffer `z` before this line"),
        (plan(both, &whole.replace("kernel", "colonel")), "line 4, column 1: a step is `kernel` or `opaque`"),
        (plan("x: f32[2] = input\nx: f32[2] = buffer", ""), "line 3, column 1: another buffer has the name `x`"),
        (
            plan(both, &whole).replace("y = y [2]", "y = y [3]"),
            "line 5, column 12: a buffer of shape [2] is no output of shape [3]",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(text.parse::<Plan>().unwrap_err().to_string(), message, "{text}");
    }
    let wrong = plan(both, &whole.replace("x0 + x0", "x0 +")).parse::<Plan>().unwrap_err().to_string();
    assert!(wrong.starts_with("line 4, column 15: ") && wrong.contains('^'), "{wrong}");
}

#[test]
fn a_million_nodes_are_refused_soon() {
    let nodes: String = (0..1_000_000).map(|n| format!("v{n} = map(x) \"-x0\"\n")).collect();
    let start = Instant::now();
    let error = format!("graph {{\nx: f32[4] = input\n{nodes}return x\n}}\n").parse::<Graph>().expect_err("a refusal");
    assert_eq!(error.to_string(), format!("{} nodes, and the limit is {MAX_NODES}", MAX_NODES + 1));
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}
