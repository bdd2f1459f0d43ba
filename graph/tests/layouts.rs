//! Graphs over other strides: an NHWC twin of an NCHW graph, made of transposes, gives the same bits.

use cranefold::Compiler;
use cranefold_graph::{FuseOptions, Graph, fuse};

/// Bodies from x of shape [2,8,6,10] to y of the same rank.
const BODIES: &[(&str, &str)] = &[
    (
        "batch norm and a gate",
        r#"s: f32[8] = const splat 0.75; z: f32[8] = const splat 0.25; n = batch_norm(x, s, z, z, s)
        y = map(n) "x0 / (1 + exp(-x0))""#,
    ),
    ("group norm and a residual", r#"n = group_norm(x) groups=4.0; y = map(n, x) "max(x0 + x1, 0)""#),
    ("instance norm", "y = instance_norm(x)"),
    ("layer norm over channels, as ConvNeXt has it", "y = layer_norm(x) eps=1e-6 axes=[1]"),
    (
        "global pool and a gate of channels",
        r#"p = mean(x) axes=[2,3] keep_dims; e = map(p) "1 / (1 + exp(-x0))"
        y = map(x, e) "x0 * x1""#,
    ),
    (
        "global response norm",
        r#"g = l2(x) axes=[2,3] keep_dims; m = mean(g) axes=[1] keep_dims
        y = map(x, g, m) "x0 * (x1 / (x2 + 1e-6)) + x0""#,
    ),
    ("softmax over classes", "y = softmax(x) axes=[1]"),
    ("softmax over space", "y = softmax(x) axes=[2,3]"),
    ("batch norm of a training", r#"s: f32[8] = const splat 0.75; y, a, c = batch_norm_training(x, s, s, s, s)"#),
    ("the host between", r#"n = group_norm(x) groups=2.0; q = map(n) "x0 * 2"; y = log_softmax(q) axes=[1]"#),
];

fn run(text: &str, x: &[u8], compiler: &Compiler) -> Vec<u8> {
    let graph: Graph = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
    let plan = fuse(&graph, &FuseOptions::default()).unwrap();
    let mut y = vec![0; x.len()];
    plan.prepare(compiler).unwrap().run(&[x], &mut [&mut y]).unwrap();
    y
}

#[test]
fn an_nhwc_twin_has_the_same_bits() {
    let compiler = Compiler::host().unwrap();
    let data: Vec<u8> = (0..960u32).flat_map(|i| ((i * 37 % 101) as f32 / 8.0 - 6.0).to_ne_bytes()).collect();
    let element = |bytes: &[u8], i: usize| <[u8; 4]>::try_from(&bytes[4 * i..4 * i + 4]).unwrap();
    // The place in NHWC of each element in NCHW order.
    let places: Vec<usize> = (0..2 * 8 * 6 * 10)
        .map(|i| {
            let (n, c, hw) = (i / 480, i / 60 % 8, i % 60);
            n * 480 + hw * 8 + c
        })
        .collect();
    let mut other = vec![0; data.len()];
    for (i, &place) in places.iter().enumerate() {
        other[4 * place..4 * place + 4].copy_from_slice(&element(&data, i));
    }
    for (name, body) in BODIES {
        let one = run(&format!("graph {{ x: f32[2,8,6,10] = input; {body}; return y }}"), &data, &compiler);
        let twin = format!(
            "graph {{ given: f32[2,6,10,8] = input; x = transpose(given) perm=[0,3,1,2]; {body}
            result = transpose(y) perm=[0,2,3,1]; return result }}"
        );
        let two = run(&twin, &other, &compiler);
        for (i, &place) in places.iter().enumerate() {
            assert_eq!(element(&one, i), element(&two, place), "{name}: element {i}");
        }
        assert!(one.chunks(4).any(|e| e != &one[..4]), "{name}: all elements are one");
    }
}
