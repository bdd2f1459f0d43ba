//! Each composite and each normalisation of the op table: its kernels against the formula of the oracle.

use crate::check::checked;
use crate::generator::{Rng, random_data};
use cranefold::{Compiler, DType};
use cranefold_graph::{COMPOSITES, Data, Graph, Op};
use cranefold_ir::ops::ROWS;
use std::collections::BTreeSet;

/// The inputs that bodies name: x of two dims and z of four, factors of their rows and channels, labels and weights of
/// classes. Variances are not negative.
const INPUTS: &[(&str, &str)] = &[
    ("x", "f32[6,16]"),
    ("h", "f16[6,16]"),
    ("wide", "f64[6,16]"),
    ("w", "f32[16]"),
    ("b", "f32[16]"),
    ("rows", "f32[6,1]"),
    ("z", "f32[3,8,5,4]"),
    ("scale", "f32[8]"),
    ("bias", "f32[8]"),
    ("mean", "f32[8]"),
    ("var", "f32[8]"),
    ("label", "i64[6]"),
    ("short", "i8[6]"),
    ("image", "i32[3,5,4]"),
    ("weight", "f32[16]"),
    ("classes", "f32[8]"),
];

/// The results are `y`, `y1` and `y2`.
const BODIES: &[&str] = &[
    "y = softmax(x) axes=[1]",
    "y = softmax(z) axes=[1]",
    "y = softmax(h) axes=[0,1]",
    "y = log_softmax(x) axes=[1]",
    "y = log_softmax(z) axes=[1,3]",
    "y = layer_norm(x) eps=0.25 axes=[1]",
    "y = layer_norm(x, w, b) eps=0.25 axes=[1]",
    "y = layer_norm(x, rows) eps=0.25 axes=[1]",
    "y = layer_norm(wide, w) eps=1e-5 axes=[0]",
    "y = rms_norm(x) eps=0.25 axes=[1]",
    "y = rms_norm(z) eps=0.25 axes=[0,2]",
    "y = rms_norm(h, w) eps=0.25 axes=[1]",
    "y = standardize(x) axes=[1]",
    "y = standardize(x) ddof=1.0 axes=[0]",
    "y = l1_normalize_add(x) eps=2.5 axes=[1]",
    "y = l1_normalize_max(x) eps=15.0 axes=[1]",
    "y = linf_normalize_add(x) eps=2.5 axes=[1]",
    "y = linf_normalize_max(x) eps=1.75 axes=[1]",
    "y = l2_normalize_add(x) eps=2.5 axes=[1]",
    "y = l2_normalize_max(x) eps=20.0 axes=[1]",
    "y = l2_normalize_max_root(x) eps=5.0 axes=[1]",
    "y, y1, y2 = layer_norm_stats(x) eps=0.25 axes=[1]",
    "y, y1, y2 = layer_norm_stats(h, w, b) eps=0.25 axes=[1]",
    "y, y1, y2 = layer_norm_stats(z) eps=0.25 axes=[1,2,3]",
    "y = group_norm(z) groups=4.0 eps=0.25",
    "y = group_norm(z, scale) groups=1.0 eps=0.25",
    "y = group_norm(z, scale, bias) groups=2.0",
    "y = group_norm(z, scale, bias) groups=8.0 eps=0.25",
    "y = instance_norm(z) eps=0.25",
    "y = instance_norm(z, scale, bias)",
    "y = batch_norm(z, scale, bias, mean, var) eps=0.25",
    "y = batch_norm(z, scale, bias, mean, var)",
    "y, y1, y2 = batch_norm_training(z, scale, bias, mean, var) eps=0.25 momentum=0.75",
    "y, y1, y2 = batch_norm_training(z, scale, bias, mean, var)",
    "y = mvn(x) axes=[1]",
    "y = mvn(x) eps=0.25 axes=[0]",
    "y = mvn(x) eps=0.25 outside=1.0 axes=[1]",
    "y = mvn(z) variance=0.0 axes=[0,2,3]",
    "y = hardmax(x) axes=[1]",
    "y = hardmax(z) axes=[1]",
    "y = nll_loss(x, label)",
    "y = nll_loss(x, label, weight)",
    "y = nll_loss(x, short, weight) ignore=3.0",
    "y = nll_loss(x, label) ignore=3.0",
    "y = nll_loss(z, image, classes)",
    "y = nll_loss_sum(x, label)",
    "y = nll_loss_sum(x, label, weight) ignore=3.0",
    "y = nll_loss_mean(x, label)",
    "y = nll_loss_mean(x, label) ignore=3.0",
    "y = nll_loss_mean(x, label, weight)",
    "y = nll_loss_mean(x, label, weight) ignore=3.0",
    "y = nll_loss_mean(z, image, classes) ignore=2.0",
    "y = cross_entropy(x, label)",
    "y, y1 = cross_entropy(z, image, classes) ignore=2.0",
    "y = cross_entropy_sum(x, label, weight)",
    "y, y1 = cross_entropy_sum(x, label)",
    "y = cross_entropy_mean(x, label)",
    "y = cross_entropy_mean(x, label, weight) ignore=3.0",
    "y, y1 = cross_entropy_mean(z, image, classes)",
];

fn graph(body: &str) -> Graph {
    let is_named = |name: &str| body.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name);
    let inputs = INPUTS.iter().filter(|(name, _)| is_named(name));
    let given: String = inputs.map(|(name, dtype)| format!("{name}: {dtype} = input; ")).collect();
    let results = body.split(" = ").next().unwrap_or_default();
    let text = format!("graph {{ {given}{body}; return {results} }}");
    text.parse().unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Elements of an input: labels are classes, one of them 3 and one from the end; a variance is positive.
fn elements(rng: &mut Rng, graph: &Graph) -> Vec<Data> {
    let input = |id| {
        let value = graph.value(id);
        let data = random_data(rng, value);
        let values: Vec<f64> = data.floats().unwrap_or_default();
        match value.name.as_str() {
            "var" => {
                let values: Vec<_> =
                    values.iter().map(|x| cranefold::Scalar::float(DType::F32, x.abs() + 0.5)).collect();
                Data::of(value.dtype, &value.shape, &values).unwrap()
            }
            _ if value.dtype.is_int() => {
                let classes = if value.name == "image" { 8 } else { 16 };
                let mut labels: Vec<i64> = values.iter().map(|x| (*x as i64).rem_euclid(classes)).collect();
                (labels[0], labels[1], labels[2]) = (3, -1, 2);
                Data::of_ints(value.dtype, &value.shape, &labels).unwrap()
            }
            _ => data,
        }
    };
    graph.inputs().into_iter().map(input).collect()
}

#[test]
fn kernels_of_composites_are_their_formulas() {
    let compiler = Compiler::host().unwrap();
    let mut seen = BTreeSet::new();
    for (number, body) in BODIES.iter().enumerate() {
        let graph = graph(body);
        for node in graph.nodes() {
            if let Op::Normalize { .. } | Op::Composite { .. } = node.op {
                seen.insert(node.op.word().to_string());
            }
        }
        let mut rng = Rng(number as u64);
        checked(&graph, &elements(&mut rng, &graph), body, &compiler);
    }
    let rows = ROWS.iter().filter(|row| row.applies).map(|row| row.name);
    let missing: Vec<&str> =
        COMPOSITES.iter().map(|row| row.name).chain(rows).filter(|name| !seen.contains(*name)).collect();
    assert!(missing.is_empty(), "no case: {missing:?}");
}

/// An index that no `i64` holds is out of range: it counts from neither end, and picks 0.
#[test]
fn indices_beyond_i64_pick_nothing() {
    let text = "graph { x: f32[2,3] = input; i: u64[2,1] = input; l: u64[2] = reshape(i)
        y = pick(x, i) axis=1; n = nll_loss_sum(x, l) ignore=7.0; return y, n }";
    let graph: Graph = text.parse().unwrap();
    let x = Data::splat(DType::F32, &[2, 3], 0.5).unwrap();
    let indices = [u64::MAX, 2].map(|index| cranefold::Scalar::int(DType::U64, index.into()));
    let i = Data::of(DType::U64, &[2, 1], &indices).unwrap();
    let found: Vec<f64> =
        graph.evaluate(&[x.clone(), i.clone()]).unwrap().iter().flat_map(|y| &y.elements).map(|y| y.as_f64()).collect();
    assert_eq!(found, [0.0, 0.5, -0.5]);
    checked(&graph, &[x, i], "indices beyond i64", &Compiler::host().unwrap());
}
