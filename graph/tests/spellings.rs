//! Composites that are spelled in primitives: each is one kernel, and what has a name has the kernel of the name.

use cranefold_graph::{FuseOptions, Graph, Plan, fuse};

/// The plan of a body over `x: f32[32,64]`, scale and bias of 64, labels and gradients, that returns `y`.
fn planned(body: &str) -> Plan {
    let inputs = [
        ("x: f32[32,64]", "x"),
        ("w: f32[64]", "w"),
        ("b: f32[64]", "b"),
        ("g: f32[32,64]", "g"),
        ("m: f32[32,64]", "m"),
        ("label: i64[32,1]", "label"),
    ];
    let word = |name: &str| {
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        body.split(|c| !is_part(c)).any(|word| word == name)
    };
    let given: String =
        inputs.iter().filter(|(_, name)| word(name)).map(|(input, _)| format!("{input} = input; ")).collect();
    let graph: Graph =
        format!("graph {{ {given}{body}; return y }}").parse().unwrap_or_else(|error| panic!("{error}: {body}"));
    fuse(&graph, &FuseOptions::default()).unwrap()
}

fn specs(plan: &Plan) -> Vec<String> {
    plan.kernels().map(|kernel| kernel.spec.to_string()).collect()
}

const MEAN: &str = "u = mean(x) axes=[1] keep_dims";
const SOFTMAX: &str = r#"k = max(x) axes=[1] keep_dims; e = map(x, k) "exp(x0 - x1)"; s = sum(e) axes=[1] keep_dims"#;

/// The named op, and its spellings.
const NAMED: &[(&str, &[&str])] = &[
    ("y = softmax(x) axes=[1]", &[r#"{SOFTMAX}; y = map(e, s) "x0 / x1""#, r#"y = softmax(x) axes=[1]"#]),
    (
        "y = log_softmax(x) axes=[1]",
        &[
            r#"{SOFTMAX}; l = map(s) "log(x0)"; d = map(x, k) "x0 - x1"; y = map(d, l) "x0 - x1""#,
            r#"{SOFTMAX}; p = map(e, s) "x0 / x1"; y = map(p) "log(x0)""#,
        ],
    ),
    (
        "y = log_sum_exp(x) axes=[1] keep_dims",
        &[r#"{SOFTMAX}; l = map(s) "log(x0)"; y = map(l, k) "x0 + x1""#, r#"{SOFTMAX}; y = map(k, s) "x0 + log(x1)""#],
    ),
    (
        "y = layer_norm(x, w, b) eps=1e-5 axes=[1]",
        &[
            r#"{MEAN}; c = map(x, u) "x0 - x1"; q = map(c) "x0 * x0"; v = mean(q) axes=[1] keep_dims
               r = map(v) "1 / sqrt(x0 + 1e-5)"; n = map(c, r) "x0 * x1"; z = map(n, w) "x0 * x1"; y = map(z, b) "x0 + x1""#,
            r#"{MEAN}; c = map(x, u) "x0 - x1"; q = map(c) "pow(x0, 2)"; v = mean(q) axes=[1] keep_dims
               r = map(v) "sqrt(x0 + 1e-5)"; n = map(c, r) "x0 / x1"; z = map(n, w) "x0 * x1"; y = map(z, b) "x0 + x1""#,
            r#"t = sum(x) axes=[1] keep_dims; u = map(t) "x0 * 0.015625"; c = map(x, u) "x0 - x1"; q = map(c) "x0 * x0"
               p = sum(q) axes=[1] keep_dims; y = map(c, p, w, b) "x0 / sqrt(x1 * 0.015625 + 1e-5) * x2 + x3""#,
            r#"t = sum(x) axes=[1] keep_dims; u = map(t) "x0 / 64"; c = map(x, u) "x0 - x1"; v = var(x) axes=[1] keep_dims
               r = map(v) "rsqrt(x0 + 1e-5)"; n = map(c, r) "x0 * x1"; z = map(n, w) "x0 * x1"; y = map(z, b) "x0 + x1""#,
        ],
    ),
    (
        "y = rms_norm(x, w) eps=1e-6 axes=[1]",
        &[
            r#"q = map(x) "x0 * x0"; v = mean(q) axes=[1] keep_dims; r = map(v) "1 / sqrt(x0 + 1e-6)"; n = map(x, r) "x0 * x1"
               y = map(n, w) "x0 * x1""#,
            r#"q = map(x) "pow(x0, 2)"; v = mean(q) axes=[1] keep_dims; r = map(v) "sqrt(x0 + 1e-6)"; n = map(x, r) "x0 / x1"
               y = map(n, w) "x0 * x1""#,
        ],
    ),
    (
        "y = var(x) axes=[1]",
        &[
            r#"{MEAN}; c = map(x, u) "x0 - x1"; q = map(c) "x0 * x0"; y = mean(q) axes=[1]"#,
            r#"q = map(x) "x0 * x0"; o = mean(q) axes=[1]; u = mean(x) axes=[1]; u2 = map(u) "x0 * x0"; y = map(o, u2) "x0 - x1""#,
            r#"q = map(x) "x0 * x0"; o = sum(q) axes=[1]; a = map(o) "x0 / 64"; t = sum(x) axes=[1]; u = map(t) "x0 / 64"
           u2 = map(u) "pow(x0, 2)"; y = map(a, u2) "x0 - x1""#,
        ],
    ),
    (
        "y = var(x) ddof=1.0 axes=[1]",
        &[
            r#"{MEAN}; c = map(x, u) "x0 - x1"; q = map(c) "x0 * x0"; s = sum(q) axes=[1]; y = map(s) "x0 / 63""#,
            r#"{MEAN}; c = map(x, u) "x0 - x1"; q = map(c) "x0 * x0"; s = sum(q) axes=[1]; y = map(s) "x0 * 0.015873015873015872""#,
        ],
    ),
    (
        "y = mean(x) axes=[1]",
        &[r#"s = sum(x) axes=[1]; y = map(s) "x0 / 64""#, r#"s = sum(x) axes=[1]; y = map(s) "x0 * 0.015625""#],
    ),
    ("y = l1(x) axes=[1]", &[r#"a = map(x) "abs(x0)"; y = sum(a) axes=[1]"#]),
    ("y = l2(x) axes=[1]", &[r#"q = map(x) "x0 * x0"; s = sum(q) axes=[1]; y = map(s) "sqrt(x0)""#]),
    ("y = linf(x) axes=[1]", &[r#"a = map(x) "abs(x0)"; y = max(a) axes=[1]"#]),
];

/// The text with the parts that spellings share.
fn whole(text: &str) -> String {
    text.replace("{SOFTMAX}", SOFTMAX).replace("{MEAN}", MEAN)
}

#[test]
fn a_spelling_is_the_kernel_of_its_name() {
    let mut wrong = vec![];
    for (named, spellings) in NAMED {
        let expected = specs(&planned(named));
        assert_eq!(expected.len(), 1, "{named}: {expected:?}");
        for spelling in *spellings {
            let found = specs(&planned(&whole(spelling)));
            if found != expected {
                wrong.push(format!("{spelling}\n  {found:?}\n  {expected:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Composites without a name of their own.
const UNNAMED: &[(&str, &str)] = &[
    ("softmax without the maximum", r#"e = map(x) "exp(x0)"; s = sum(e) axes=[1] keep_dims; y = map(e, s) "x0 / x1""#),
    (
        "log-softmax without the maximum",
        r#"e = map(x) "exp(x0)"; s = sum(e) axes=[1] keep_dims; l = map(s) "log(x0)"; y = map(x, l) "x0 - x1""#,
    ),
    ("log-sum-exp without the maximum", r#"e = map(x) "exp(x0)"; s = sum(e) axes=[1]; y = map(s) "log(x0)""#),
    (
        "eps as a floor of the length",
        r#"q = map(x) "x0 * x0"; s = sum(q) axes=[1] keep_dims; l = map(s) "sqrt(x0)"; f = map(l) "max(x0, 1e-12)"
           y = map(x, f) "x0 / x1""#,
    ),
    (
        "eps added under the root",
        r#"q = map(x) "x0 * x0"; s = sum(q) axes=[1] keep_dims; f = map(s) "sqrt(x0 + 1e-12)"; y = map(x, f) "x0 / x1""#,
    ),
    (
        "eps as a floor under the root",
        r#"q = map(x) "x0 * x0"; s = sum(q) axes=[1] keep_dims; f = map(s) "sqrt(max(x0, 1e-12))"
           y = map(x, f) "x0 / x1""#,
    ),
    ("L1 normalisation", r#"a = l1(x) axes=[1] keep_dims; f = map(a) "max(x0, 1e-12)"; y = map(x, f) "x0 / x1""#),
    ("Linf normalisation", r#"a = linf(x) axes=[1] keep_dims; f = map(a) "x0 + 1e-12"; y = map(x, f) "x0 / x1""#),
    (
        "masked mean",
        r#"p = map(x, m) "x0 * x1"; s = sum(p) axes=[1]; n = sum(m) axes=[1]; y = map(s, n) "x0 / max(x1, 1)""#,
    ),
    (
        "masked softmax",
        r#"f = map(x, m) "select(x1 > 0, x0, -inf)"; k = max(f) axes=[1] keep_dims; e = map(f, k) "exp(x0 - x1)"
           s = sum(e) axes=[1] keep_dims; y = map(e, s) "x0 / x1""#,
    ),
    (
        "cross-entropy by a pick",
        r#"l = log_softmax(x) axes=[1]; p = pick(l, label) axis=1; n = map(p) "-x0"; y = mean(n) axes=[0,1]"#,
    ),
    (
        "cross-entropy in primitives",
        r#"{SOFTMAX}; l = map(s, k) "log(x0) + x1"; p = pick(x, label) axis=1; n = map(l, p) "x0 - x1"; y = sum(n) axes=[0,1]"#,
    ),
    (
        "softmax backward",
        r#"p = map(g, m) "x0 * x1"; s = sum(p) axes=[1] keep_dims; d = map(g, s) "x0 - x1"; y = map(d, m) "x0 * x1""#,
    ),
    (
        "layer norm backward",
        r#"{MEAN}; c = map(x, u) "x0 - x1"; v = var(x) axes=[1] keep_dims; r = map(v) "1 / sqrt(x0 + 1e-5)"
           h = map(c, r) "x0 * x1"; gw = map(g, w) "x0 * x1"; a = mean(gw) axes=[1] keep_dims
           gh = map(gw, h) "x0 * x1"; e = mean(gh) axes=[1] keep_dims; hb = map(h, e) "x0 * x1"
           d = map(gw, a) "x0 - x1"; f = map(d, hb) "x0 - x1"; y = map(f, r) "x0 * x1""#,
    ),
    ("a residual before the norm", r#"z = map(x, g) "x0 + x1"; y = layer_norm(z, w, b) eps=1e-5 axes=[1]"#),
    (
        "layer norm by moments",
        r#"{MEAN}; q = map(x) "x0 * x0"; o = mean(q) axes=[1] keep_dims; u2 = map(u) "x0 * x0"; v = map(o, u2) "x0 - x1"
               c = map(x, u) "x0 - x1"; r = map(v) "sqrt(x0 + 1e-5)"; n = map(c, r) "x0 / x1"; z = map(n, w) "x0 * x1"
               y = map(z, b) "x0 + x1""#,
    ),
    ("group norm", r#"z: f32[1,32,64] = reshape(x); y = group_norm(z) groups=8.0"#),
    ("instance norm", r#"z: f32[1,32,64] = reshape(x); y = instance_norm(z)"#),
    ("mean-variance normalisation", r#"y = mvn(x) axes=[1]"#),
    ("hardmax", r#"y = hardmax(x) axes=[1]"#),
];

#[test]
fn a_composite_in_primitives_is_one_kernel() {
    let mut wrong = vec![];
    for (name, body) in UNNAMED {
        let plan = planned(&whole(body));
        if specs(&plan).len() != 1 || plan.bytes_after() > plan.bytes_before() {
            wrong.push(format!("{name}\n  {:?}\n  {:?}", specs(&plan), plan.decisions()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Softmax with the maximum subtracted and without it are two meanings: only one overflows.
#[test]
fn a_softmax_keeps_its_maximum_or_has_none() {
    let without = specs(&planned(&whole(UNNAMED[0].1)));
    assert!(!without[0].contains("max"), "{without:?}");
    let with = specs(&planned("y = softmax(x) axes=[1]"));
    assert!(with[0].contains("max") || with[0].contains("sum_exp"), "{with:?}");
}
