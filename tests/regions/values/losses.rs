//! Softmax, losses and their gradients.

use super::super::given::{Draw, Slice};
use super::{Case, FEW, Within, log_sum_exp, mean, sum};

const SCORES: &[(&str, Draw)] = &[("mask", Draw::Additive), ("scale", Draw::Value(0.125))];
const LABELS: &[(&str, Draw)] = &[("label", Draw::Labels(1)), ("count", Draw::Value(6.0))];
const SPARSE: &[(&str, Draw)] = &[("p", Draw::Sparse), ("logq", Draw::Negative(1.0))];

fn softmax(s: &Slice) -> Vec<Vec<f64>> {
    let l = log_sum_exp(s.of("x"));
    vec![s.map(|i| (s.of("x")[i] - l).exp())]
}

fn scores(s: &Slice) -> Vec<Vec<f64>> {
    let y = s.map(|i| s.of("x")[i] * s.one("scale") + s.of("mask")[i]);
    let l = log_sum_exp(&y);
    vec![s.map(|i| (y[i] - l).exp()), vec![l]]
}

fn causal(s: &Slice) -> Vec<Vec<f64>> {
    let seen = |i: usize| s.at[i][2] <= s.at[i][1];
    let past: Vec<f64> = (0..s.len()).filter(|&i| seen(i)).map(|i| s.of("x")[i]).collect();
    let l = log_sum_exp(&past);
    vec![s.map(|i| if seen(i) { (s.of("x")[i] - l).exp() } else { 0.0 }), vec![l]]
}

fn log_softmax(s: &Slice) -> Vec<Vec<f64>> {
    let l = log_sum_exp(s.of("x"));
    vec![s.map(|i| s.of("x")[i] - l)]
}

fn cross_entropy(s: &Slice) -> Vec<Vec<f64>> {
    let label = s.one("label");
    if label == -100.0 {
        return vec![vec![0.0], vec![f64::NAN]];
    }
    // A label beyond the classes picks nothing.
    let picked = s.of("x").get(label as usize).copied().unwrap_or(0.0);
    let loss = log_sum_exp(s.of("x")) - picked;
    vec![vec![loss], vec![loss]]
}

fn cross_entropy_gradient(s: &Slice) -> Vec<Vec<f64>> {
    let (label, l) = (s.one("label"), log_sum_exp(s.of("x")));
    let one = |i: usize| ((s.of("x")[i] - l).exp() - f64::from(i as f64 == label)) / s.one("count");
    vec![s.map(|i| if label == -100.0 { 0.0 } else { one(i) })]
}

fn softmax_backward(s: &Slice) -> Vec<Vec<f64>> {
    let (y, dy) = (s.of("y"), s.of("dy"));
    let d = sum(s, |i| y[i] * dy[i]);
    vec![s.map(|i| y[i] * (dy[i] - d))]
}

fn log_softmax_backward(s: &Slice) -> Vec<Vec<f64>> {
    let (y, dy) = (s.of("y"), s.of("dy"));
    let d = sum(s, |i| dy[i]);
    vec![s.map(|i| dy[i] - y[i].exp() * d)]
}

fn cosine(s: &Slice) -> Vec<Vec<f64>> {
    let (a, b) = (s.of("a"), s.of("b"));
    let norm = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
    vec![vec![sum(s, |i| a[i] * b[i]) / (norm(a) * norm(b)).max(1e-8)]]
}

fn squared(s: &Slice) -> Vec<Vec<f64>> {
    vec![vec![mean(s, |i| (s.of("y")[i] - s.of("t")[i]).powi(2))]]
}

fn divergence(s: &Slice) -> Vec<Vec<f64>> {
    let p = s.of("p");
    vec![vec![sum(s, |i| if p[i] > 0.0 { p[i] * (p[i].ln() - s.of("logq")[i]) } else { 0.0 })]]
}

fn huber(s: &Slice) -> Vec<Vec<f64>> {
    let delta = s.one("delta");
    let one = |a: f64| if a <= delta { 0.5 * a * a } else { delta * (a - 0.5 * delta) };
    vec![vec![mean(s, |i| one((s.of("y")[i] - s.of("t")[i]).abs()))]]
}

fn binary(s: &Slice) -> Vec<Vec<f64>> {
    // -t log(sigmoid(x)) - (1 - t) log(1 - sigmoid(x))
    let plus = |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p();
    let (x, t) = (s.of("x"), s.of("t"));
    vec![vec![mean(s, |i| t[i] * plus(-x[i]) + (1.0 - t[i]) * plus(x[i]))]]
}

fn entropy(s: &Slice) -> Vec<Vec<f64>> {
    let l = log_sum_exp(s.of("x"));
    vec![vec![sum(s, |i| (s.of("x")[i] - l).exp() * (l - s.of("x")[i]))]]
}

/// The place of the first greatest.
fn argmax(x: &[f64]) -> f64 {
    let most = x.iter().fold(f64::NEG_INFINITY, |most, &v| most.max(v));
    x.iter().position(|&v| v == most).unwrap_or(0) as f64
}

fn greatest(s: &Slice) -> Vec<Vec<f64>> {
    let x = s.of("x");
    let at = argmax(x);
    let most = x[at as usize];
    vec![vec![most], vec![at], vec![x.iter().filter(|&&v| v == most).count() as f64]]
}

fn accuracy(s: &Slice) -> Vec<Vec<f64>> {
    vec![vec![f64::from(argmax(s.of("x")) == s.one("label"))]]
}

const fn case(
    name: &'static str,
    draws: &'static [(&'static str, Draw)],
    size: (&'static str, &'static str),
    within: &'static [Within],
    formula: fn(&Slice) -> Vec<Vec<f64>>,
) -> Case {
    Case { name, draws, size, within, formula }
}

/// Their cases.
pub const CASES: &[Case] = &[
    case("softmax", &[], ("200]", "N]"), &[FEW], softmax),
    case("softmax of scores: scale, additive mask, log-sum-exp saved", SCORES, ("200]", "N]"), &[FEW, FEW], scores),
    case("causal softmax by position", &[], ("40,40]", "N,N]"), &[FEW, FEW], causal),
    case("log-softmax", &[], ("200]", "N]"), &[FEW], log_softmax),
    case("cross-entropy by label with ignore index", LABELS, ("50]", "N]"), &[FEW, FEW], cross_entropy),
    case("gradient of cross-entropy, given the count", LABELS, ("50]", "N]"), &[FEW], cross_entropy_gradient),
    case("softmax backward", &[("y", Draw::Positive(0.0))], ("200]", "N]"), &[FEW], softmax_backward),
    case("log-softmax backward", &[("y", Draw::Negative(0.0))], ("200]", "N]"), &[FEW], log_softmax_backward),
    case("cosine similarity", &[], ("100]", "N]"), &[FEW], cosine),
    case("MSE", &[], ("100]", "N]"), &[FEW], squared),
    case("KL divergence", SPARSE, ("100]", "N]"), &[FEW], divergence),
    case("Huber loss", &[("delta", Draw::Value(1.0))], ("100]", "N]"), &[FEW], huber),
    case("binary cross-entropy with logits", &[("t", Draw::Integers(0, 1))], ("100]", "N]"), &[FEW], binary),
    case("entropy of a softmax", &[], ("100]", "N]"), &[FEW], entropy),
    case("max with argmax and count", &[], ("100]", "N]"), &[Within::Exact, Within::Exact, Within::Exact], greatest),
    case("top-1 accuracy", &[("label", Draw::Integers(0, 6))], ("100]", "N]"), &[Within::Exact], accuracy),
];
