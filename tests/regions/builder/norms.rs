//! Normalisations and their gradients.

use super::{Built, F32, inputs, mean_square, scalars};
use cranefold::DType;
use cranefold::ir::expression::Expression;
use cranefold::spec::RegionBuilder;

pub const BUILT: &[Built] = &[
    ("layer norm", layer_norm),
    ("layer norm with residual, mean and 1/std saved", residual),
    ("layer norm quantised", quantised),
    ("layer norm backward dx", layer_norm_dx),
    ("layer norm backward dgamma and dbeta", layer_norm_dgamma),
    ("RMS norm in bf16", rms_norm),
    ("RMS norm backward", rms_norm_backward),
    ("SwiGLU before RMS norm", swiglu),
    ("group norm NCHW", group_nchw),
    ("group norm NHWC", group_nhwc),
    ("instance norm", instance_norm),
    ("batch norm training NCHW", batch_nchw),
    ("batch norm training NHWC", batch_nhwc),
    ("L1 normalisation", l1),
    ("L2 normalisation", l2),
    ("Linf normalisation", linf),
];

/// `c / sqrt(mean(c * c) + 1e-5)` of centered values.
fn scaled(r: &mut RegionBuilder, x: Expression) -> Expression {
    let c = r.centered(x);
    let squares = mean_square(r, &c);
    c / (squares + 1e-5).sqrt()
}

/// A normalisation over some axes, with weights and biases of a shape.
fn affine(r: &mut RegionBuilder, shape: &[u64], weights: &[u64], axes: &[i64]) {
    let [x, w, b] = inputs(r, [("x", shape), ("w", weights), ("b", weights)]);
    r.axes(axes);
    let scaled = scaled(r, x);
    r.output(scaled * w + b);
}

fn layer_norm(r: &mut RegionBuilder) {
    affine(r, &[8, 768], &[768], &[1]);
}

fn residual(r: &mut RegionBuilder) {
    let [x, h, w, b] = inputs(r, [("x", &[8, 768]), ("h", &[8, 768]), ("w", &[768]), ("b", &[768])]);
    r.axes([1]);
    let y = r.define("y", x + h);
    let c = r.centered(y.clone());
    let scale = mean_square(r, &c);
    let scale = r.define("r", 1 / (scale + 1e-5).sqrt());
    let mean = r.reduce("mean", y.clone());
    r.output(y);
    r.output((c * scale.clone() * w + b).cast(DType::Bf16));
    r.output(mean);
    r.output(scale);
}

fn quantised(r: &mut RegionBuilder) {
    let [x, w, b] = inputs(r, [("x", &[8, 300]), ("w", &[300]), ("b", &[300])]);
    r.axes([1]);
    let [scale, zero] = scalars(r, ["scale", "zero"]);
    let y = scaled(r, x) * w + b;
    r.output(((y / scale).round() + zero).cast(DType::I8));
}

fn layer_norm_dx(r: &mut RegionBuilder) {
    let [x, dy, w] = inputs(r, [("x", &[8, 300]), ("dy", &[8, 300]), ("w", &[300])]);
    let [mu, rstd] = inputs(r, [("mu", &[8, 1]), ("rstd", &[8, 1])]);
    r.axes([1]);
    let xhat = r.define("xhat", (x - mu) * rstd.clone());
    let g = r.define("g", dy * w);
    let a = r.reduce("mean", g.clone() * xhat.clone());
    let b = r.reduce("mean", g.clone());
    r.output((g - xhat * a - b) * rstd);
}

fn layer_norm_dgamma(r: &mut RegionBuilder) {
    let [x, dy] = inputs(r, [("x", &[40, 30]), ("dy", &[40, 30])]);
    let [mu, rstd] = inputs(r, [("mu", &[40, 1]), ("rstd", &[40, 1])]);
    r.axes([0]);
    let dgamma = r.reduce("sum", dy.clone() * ((x - mu) * rstd));
    let dbeta = r.reduce("sum", dy);
    r.output(dgamma);
    r.output(dbeta);
}

fn rms_norm(r: &mut RegionBuilder) {
    let x = r.input("x", DType::Bf16, &[8, 512]);
    let w = r.input("w", DType::Bf16, &[512]);
    r.axes([1]);
    let squares = mean_square(r, &x);
    let scale = (squares + 1e-6).rsqrt();
    r.output(((x * scale).cast(DType::Bf16).cast(F32) * w).cast(DType::Bf16));
}

fn rms_norm_backward(r: &mut RegionBuilder) {
    let [x, dy, w, scale] = inputs(r, [("x", &[8, 300]), ("dy", &[8, 300]), ("w", &[300]), ("r", &[8, 1])]);
    r.axes([1]);
    let g = r.define("g", dy * w);
    let k = r.reduce("mean", g.clone() * x.clone());
    r.output(g * scale.clone() - x * (k * scale.clone() * scale.clone() * scale));
}

fn swiglu(r: &mut RegionBuilder) {
    let [a, b, w] = inputs(r, [("a", &[8, 300]), ("b", &[8, 300]), ("w", &[300])]);
    r.axes([1]);
    let y = r.define("y", a.silu() * b);
    let squares = mean_square(r, &y);
    r.output(y * (squares + 1e-6).rsqrt() * w);
}

fn group_nchw(r: &mut RegionBuilder) {
    affine(r, &[2, 4, 6, 5, 5], &[4, 6, 1, 1], &[2, 3, 4]);
}

fn group_nhwc(r: &mut RegionBuilder) {
    affine(r, &[2, 5, 5, 4, 6], &[4, 6], &[1, 2, 4]);
}

fn instance_norm(r: &mut RegionBuilder) {
    affine(r, &[2, 6, 9, 7], &[6, 1, 1], &[2, 3]);
}

fn batch_nchw(r: &mut RegionBuilder) {
    let each: &[u64] = &[6, 1, 1];
    let [x, w, b, rm, rv] = inputs(r, [("x", &[4, 6, 5, 7]), ("w", each), ("b", each), ("rm", each), ("rv", each)]);
    r.axes([0, 2, 3]);
    let [momentum] = scalars(r, ["momentum"]);
    let m = r.reduce("mean", x.clone());
    let c = r.centered(x.clone());
    let v = mean_square(r, &c);
    let [unbiased] = r.results(cranefold::op::var().ddof(1), x).try_into().expect("one result");
    r.output(c / (v.clone() + 1e-5).sqrt() * w + b);
    r.output(m.clone());
    r.output(1 / (v + 1e-5).sqrt());
    r.output(rm * (1 - momentum.clone()) + m * momentum.clone());
    r.output(rv * (1 - momentum.clone()) + unbiased * momentum);
}

fn batch_nhwc(r: &mut RegionBuilder) {
    let [x, w, b] = inputs(r, [("x", &[4, 5, 7, 6]), ("w", &[6]), ("b", &[6])]);
    r.axes([0, 1, 2]);
    let m = r.reduce("mean", x.clone());
    let c = r.centered(x);
    let v = mean_square(r, &c);
    r.output(c / (v.clone() + 1e-5).sqrt() * w + b);
    r.output(m);
    r.output(v);
}

/// The elements divided by a norm of the slice.
fn by_norm(r: &mut RegionBuilder, op: &str) {
    let [x] = inputs(r, [("x", &[8, 100])]);
    r.axes([1]);
    let norm = r.reduce(op, x.clone());
    r.output(x / norm.max(1e-12));
}

fn l1(r: &mut RegionBuilder) {
    by_norm(r, "l1");
}

fn l2(r: &mut RegionBuilder) {
    by_norm(r, "l2");
}

fn linf(r: &mut RegionBuilder) {
    by_norm(r, "linf");
}
