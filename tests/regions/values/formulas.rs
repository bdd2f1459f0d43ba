//! Activations, pooling, optimisers, and reductions of masked and quantised elements.

use super::super::given::{Draw, Slice};
use super::{Case, FEW, Within, mean, sum};

const STEP: &[(&str, Draw)] = &[("v", Draw::Positive(0.01)), ("lr", Draw::Value(0.01)), ("decay", Draw::Value(0.1))];
const BYTES: &[(&str, Draw)] =
    &[("q", Draw::Integers(-128, 127)), ("zero", Draw::Integers(-5, 5)), ("scale", Draw::Positive(0.01))];

fn deviation(s: &Slice) -> Vec<Vec<f64>> {
    let m = mean(s, |i| s.of("x")[i]);
    vec![vec![mean(s, |i| (s.of("x")[i] - m).abs())]]
}

fn dequantised(s: &Slice) -> Vec<Vec<f64>> {
    vec![vec![sum(s, |i| (s.of("q")[i] - s.of("zero")[i]) * s.of("scale")[i])]]
}

fn weighted(s: &Slice) -> Vec<Vec<f64>> {
    vec![vec![sum(s, |i| s.of("x")[i] * s.of("w")[i]) / sum(s, |i| s.of("w")[i])]]
}

fn masked(s: &Slice) -> Vec<Vec<f64>> {
    let x: Vec<f64> = (0..s.len()).filter(|&i| s.of("mask")[i] != 0.0).map(|i| s.of("x")[i]).collect();
    let n = x.len() as f64;
    let m = x.iter().sum::<f64>() / n;
    vec![vec![m], vec![x.iter().map(|x| (x - m).powi(2)).sum::<f64>() / n]]
}

fn pooled(s: &Slice) -> Vec<Vec<f64>> {
    let length = s.one("length") as usize;
    vec![vec![s.of("x").iter().take(length).sum::<f64>() / length as f64]]
}

fn lamb(s: &Slice) -> Vec<Vec<f64>> {
    let (w, g) = (s.of("w"), s.of("g"));
    let m = s.map(|i| 0.9 * s.of("m")[i] + 0.1 * g[i]);
    let v = s.map(|i| 0.999 * s.of("v")[i] + 0.001 * g[i] * g[i]);
    let u = s.map(|i| m[i] / (v[i].sqrt() + 1e-6) + s.one("decay") * w[i]);
    let norm = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
    let ratio = norm(w) / norm(&u);
    vec![s.map(|i| w[i] - s.one("lr") * ratio * u[i]), m, v]
}

fn clipped(s: &Slice) -> Vec<Vec<f64>> {
    let n = sum(s, |i| s.of("x")[i].powi(2)).sqrt();
    vec![s.map(|i| s.of("x")[i] * (s.one("most") / (n + 1e-6)).min(1.0)), vec![n]]
}

/// The error function by its series of positive terms.
fn erf(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    for k in 1..200 {
        term *= 2.0 * x * x / f64::from(2 * k + 1);
        sum += term;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

fn gelu(s: &Slice) -> Vec<Vec<f64>> {
    let cdf = |x: f64| 0.5 * (1.0 + erf(x / 2f64.sqrt()));
    let pdf = |x: f64| (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let dx = s.map(|i| s.of("dy")[i] * (cdf(s.of("x")[i]) + s.of("x")[i] * pdf(s.of("x")[i])));
    vec![dx.clone(), vec![dx.iter().sum()], s.map(|i| s.of("x")[i] * cdf(s.of("x")[i]))]
}

fn gelu_tanh(s: &Slice) -> Vec<Vec<f64>> {
    let root = (2.0 / std::f64::consts::PI).sqrt();
    let t = |x: f64| (root * (x + 0.044715 * x.powi(3))).tanh();
    let slope = |x: f64| {
        let inner = root * (1.0 + 3.0 * 0.044715 * x * x);
        0.5 * (1.0 + t(x)) + 0.5 * x * (1.0 - t(x).powi(2)) * inner
    };
    let dx = s.map(|i| s.of("dy")[i] * slope(s.of("x")[i]));
    vec![dx.clone(), vec![dx.iter().sum()], s.map(|i| 0.5 * s.of("x")[i] * (1.0 + t(s.of("x")[i])))]
}

fn rectified(s: &Slice) -> Vec<Vec<f64>> {
    vec![vec![mean(s, |i| s.of("x")[i].max(0.0))]]
}

fn pools(s: &Slice) -> Vec<Vec<f64>> {
    let most = s.of("x").iter().fold(f64::NEG_INFINITY, |most, &x| most.max(x));
    vec![vec![most], vec![mean(s, |i| s.of("x")[i])]]
}

fn accumulated(s: &Slice) -> Vec<Vec<f64>> {
    let x = s.of("x");
    vec![vec![sum(s, |i| x[i]) + s.one("old0")], s.map(|i| x[i] + s.of("old1")[i])]
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
    case("mean absolute deviation", &[], ("100]", "N]"), &[FEW], deviation),
    case("dequantise and reduce", BYTES, ("100]", "N]"), &[FEW], dequantised),
    case("masked mean and variance", &[], ("100]", "N]"), &[FEW, FEW], masked),
    case("mean pooling by lengths", &[("length", Draw::Lengths(1))], ("4,20,30]", "4,N,3]"), &[FEW], pooled),
    case("LAMB norms and update", STEP, ("500]", "N]"), &[FEW, FEW, FEW], lamb),
    case("clip by norm", &[("most", Draw::Value(1.5))], ("100]", "N]"), &[FEW, FEW], clipped),
    case("GELU (erf) and bias gradient", &[], ("[40,", "[N,"), &[FEW, FEW, FEW], gelu),
    case("GELU (tanh) and bias gradient", &[], ("[40,", "[N,"), &[FEW, FEW, FEW], gelu_tanh),
    case("global average pool with ReLU", &[], ("7,7]", "N,2]"), &[FEW], rectified),
    case("pooling 2x2", &[], ("4,2,4,2]", "N,2,4,2]"), &[Within::Exact, FEW], pools),
    case(
        "pooling 3x3, overlapping",
        &[],
        ("5,3,5,3]@(363,121,", "N,3,5,3]@(363000,121000,"),
        &[Within::Exact, FEW],
        pools,
    ),
    case("mean of points with weights", &[("w", Draw::Positive(0.01))], ("[700,", "[N,"), &[FEW], weighted),
    case("accumulate into what is there", &[], ("100]", "N]"), &[FEW, FEW], accumulated),
];
