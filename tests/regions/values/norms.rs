//! Normalisations and their gradients.

use super::super::given::{Draw, Slice};
use super::{Case, FEW, Within, bf16, mean, sum};

const MOMENTS: &[(&str, Draw)] = &[("rstd", Draw::Positive(0.5)), ("r", Draw::Positive(0.5))];
const QUANTISED: &[(&str, Draw)] = &[("scale", Draw::Value(0.05)), ("zero", Draw::Value(3.0))];
const RUNNING: &[(&str, Draw)] = &[("rv", Draw::Positive(0.1)), ("momentum", Draw::Value(0.1))];

/// The mean and the variance of numbers.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let m = values.iter().sum::<f64>() / n;
    (m, values.iter().map(|v| (v - m) * (v - m)).sum::<f64>() / n)
}

/// `(x - mean) / sqrt(var + 1e-5) * w + b` at each element.
fn normalised(s: &Slice, x: &[f64]) -> Vec<f64> {
    let (m, v) = moments(x);
    s.map(|i| (x[i] - m) / (v + 1e-5).sqrt() * s.of("w")[i] + s.of("b")[i])
}

fn norm(s: &Slice) -> Vec<Vec<f64>> {
    vec![normalised(s, s.of("x"))]
}

fn residual(s: &Slice) -> Vec<Vec<f64>> {
    // The sum is a value of f32.
    let y = s.map(|i| f64::from((s.of("x")[i] + s.of("h")[i]) as f32));
    let (m, v) = moments(&y);
    vec![y.clone(), normalised(s, &y), vec![m], vec![1.0 / (v + 1e-5).sqrt()]]
}

fn quantised(s: &Slice) -> Vec<Vec<f64>> {
    let y = normalised(s, s.of("x"));
    vec![s.map(|i| y[i] / s.one("scale") + s.one("zero"))]
}

fn layer_backward(s: &Slice) -> Vec<Vec<f64>> {
    let hat = |i: usize| (s.of("x")[i] - s.one("mu")) * s.one("rstd");
    let g = |i: usize| s.of("dy")[i] * s.of("w")[i];
    let (a, b) = (mean(s, |i| g(i) * hat(i)), mean(s, g));
    vec![s.map(|i| (g(i) - hat(i) * a - b) * s.one("rstd"))]
}

fn layer_parameters(s: &Slice) -> Vec<Vec<f64>> {
    let dy = s.of("dy");
    let hat = |i: usize| (s.of("x")[i] - s.of("mu")[i]) * s.of("rstd")[i];
    vec![vec![sum(s, |i| dy[i] * hat(i))], vec![sum(s, |i| dy[i])]]
}

fn rms(s: &Slice) -> Vec<Vec<f64>> {
    let x = s.of("x");
    let r = 1.0 / (mean(s, |i| x[i] * x[i]) + 1e-6).sqrt();
    vec![s.map(|i| bf16(bf16(x[i] * r) * s.of("w")[i]))]
}

fn rms_backward(s: &Slice) -> Vec<Vec<f64>> {
    let (x, r) = (s.of("x"), s.one("r"));
    let g = |i: usize| s.of("dy")[i] * s.of("w")[i];
    let k = mean(s, |i| g(i) * x[i]);
    vec![s.map(|i| g(i) * r - x[i] * k * r.powi(3))]
}

fn gated_rms(s: &Slice) -> Vec<Vec<f64>> {
    let y = s.map(|i| s.of("a")[i] / (1.0 + (-s.of("a")[i]).exp()) * s.of("b")[i]);
    let r = 1.0 / (mean(s, |i| y[i] * y[i]) + 1e-6).sqrt();
    vec![s.map(|i| y[i] * r * s.of("w")[i])]
}

fn batch(s: &Slice) -> Vec<Vec<f64>> {
    let (m, v) = moments(s.of("x"));
    let n = s.len() as f64;
    let (old, new) = (1.0 - s.one("momentum"), s.one("momentum"));
    let unbiased = v * n / (n - 1.0);
    let running = [s.one("rm") * old + m * new, s.one("rv") * old + unbiased * new];
    vec![normalised(s, s.of("x")), vec![m], vec![1.0 / (v + 1e-5).sqrt()], vec![running[0]], vec![running[1]]]
}

fn batch_last(s: &Slice) -> Vec<Vec<f64>> {
    let (m, v) = moments(s.of("x"));
    vec![normalised(s, s.of("x")), vec![m], vec![v]]
}

fn over(s: &Slice, norm: f64) -> Vec<Vec<f64>> {
    vec![s.map(|i| s.of("x")[i] / norm.max(1e-12))]
}

fn l1(s: &Slice) -> Vec<Vec<f64>> {
    over(s, sum(s, |i| s.of("x")[i].abs()))
}

fn l2(s: &Slice) -> Vec<Vec<f64>> {
    over(s, sum(s, |i| s.of("x")[i].powi(2)).sqrt())
}

fn linf(s: &Slice) -> Vec<Vec<f64>> {
    over(s, s.of("x").iter().fold(0.0, |most, x| x.abs().max(most)))
}

fn standardise(s: &Slice) -> Vec<Vec<f64>> {
    let (m, v) = moments(s.of("x"));
    vec![s.map(|i| (s.of("x")[i] - m) / v.sqrt())]
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
    case("layer norm", &[], ("768]", "N]"), &[FEW], norm),
    case(
        "layer norm with residual, mean and 1/std saved",
        &[],
        ("768]", "N]"),
        &[Within::Exact, Within::BfloatUlp, FEW, FEW],
        residual,
    ),
    case("layer norm quantised", QUANTISED, ("300]", "N]"), &[Within::Quantised], quantised),
    case("layer norm backward dx", MOMENTS, ("300]", "N]"), &[FEW], layer_backward),
    case("layer norm backward dgamma and dbeta", MOMENTS, ("[40,", "[N,"), &[FEW, FEW], layer_parameters),
    case("RMS norm in bf16", &[], ("512]", "N]"), &[Within::BfloatUlp], rms),
    case("RMS norm backward", MOMENTS, ("300]", "N]"), &[FEW], rms_backward),
    case("SwiGLU before RMS norm", &[], ("300]", "N]"), &[FEW], gated_rms),
    case("group norm NCHW", &[], ("6,5,5]", "6,N,1]"), &[FEW], norm),
    case("group norm NHWC", &[], ("[2,5,5,", "[2,1,N,"), &[FEW], norm),
    case("instance norm", &[], ("9,7]", "2,N]"), &[FEW], norm),
    case("batch norm training NCHW", RUNNING, ("[4,6,5,7]", "[N,6,2,3]"), &[FEW, FEW, FEW, FEW, FEW], batch),
    case("batch norm training NHWC", &[], ("[4,5,7,", "[2,N,1,"), &[FEW, FEW, FEW], batch_last),
    case("L1 normalisation", &[], ("100]", "N]"), &[FEW], l1),
    case("L2 normalisation", &[], ("100]", "N]"), &[FEW], l2),
    case("Linf normalisation", &[], ("100]", "N]"), &[FEW], linf),
    case("standardise", &[], ("100]", "N]"), &[FEW], standardise),
];
