//! Losses, their gradients, and measures of a prediction.

use super::{Built, F32, inputs, scalars, sum_exp};
use cranefold::DType;
use cranefold::ir::expression::Expression;
use cranefold::spec::RegionBuilder;

pub const BUILT: &[Built] = &[
    ("cross-entropy by label with ignore index", cross_entropy),
    ("gradient of cross-entropy, given the count", cross_entropy_gradient),
    ("cosine similarity", cosine),
    ("MSE", mse),
    ("KL divergence", divergence),
    ("Huber loss", huber),
    ("binary cross-entropy with logits", binary_cross_entropy),
    ("entropy of a softmax", entropy),
    ("top-1 accuracy", accuracy),
];

fn scores_and_labels(r: &mut RegionBuilder, shape: [u64; 2]) -> (Expression, Expression) {
    (r.input("x", F32, &shape), r.input("label", DType::I64, &[shape[0], 1]))
}

fn cross_entropy(r: &mut RegionBuilder) {
    let (x, label) = scores_and_labels(r, [8, 50]);
    r.axes([1]);
    let (m, s) = sum_exp(r, x.clone());
    let at = r.position(1);
    let picked = r.reduce("sum", at.eq(label.clone()).select(x, 0));
    let valid = r.define("valid", label.ne(-100));
    let loss = r.define("loss", valid.clone().select(m + s.log() - picked, 0));
    let total = r.total("sum", loss.clone(), [0]);
    let count = r.total("sum", valid.cast(F32), [0]);
    r.output(loss);
    r.output(total / count);
}

fn cross_entropy_gradient(r: &mut RegionBuilder) {
    let (x, label) = scores_and_labels(r, [8, 50]);
    r.axes([1]);
    let [count] = scalars(r, ["count"]);
    let (m, s) = sum_exp(r, x.clone());
    let p = r.define("p", (x - m).exp() / s);
    let at = r.position(1);
    let hit = at.eq(label.clone()).select(1, 0);
    r.output(label.ne(-100).select((p - hit) / count, 0));
}

fn cosine(r: &mut RegionBuilder) {
    let [a, b] = inputs(r, [("a", &[8, 100]), ("b", &[8, 100])]);
    r.axes([1]);
    let dot = r.reduce("sum", a.clone() * b.clone());
    let [aa, bb] = [a, b].map(|v| r.reduce("sum", v.clone() * v).sqrt());
    r.output(dot / (aa * bb).max(1e-8));
}

fn mse(r: &mut RegionBuilder) {
    let [y, t] = inputs(r, [("y", &[8, 100]), ("t", &[8, 100])]);
    r.axes([0, 1]);
    let d = r.define("d", y - t);
    let mean = r.reduce("mean", d.clone() * d);
    r.output(mean);
}

fn divergence(r: &mut RegionBuilder) {
    let [p, logq] = inputs(r, [("p", &[8, 100]), ("logq", &[8, 100])]);
    r.axes([1]);
    let sum = r.reduce("sum", p.clone().gt(0).select(p.clone() * (p.log() - logq), 0));
    r.output(sum);
}

fn huber(r: &mut RegionBuilder) {
    let [y, t] = inputs(r, [("y", &[8, 100]), ("t", &[8, 100])]);
    r.axes([1]);
    let [delta] = scalars(r, ["delta"]);
    let a = r.define("a", (y - t).abs());
    let square = 0.5 * a.clone() * a.clone();
    let linear = delta.clone() * (a.clone() - 0.5 * delta.clone());
    let mean = r.reduce("mean", a.le(delta).select(square, linear));
    r.output(mean);
}

fn binary_cross_entropy(r: &mut RegionBuilder) {
    let [x, t] = inputs(r, [("x", &[8, 100]), ("t", &[8, 100])]);
    r.axes([1]);
    let mean = r.reduce("mean", x.clone().max(0) - x.clone() * t + (-x.abs()).exp().log1p());
    r.output(mean);
}

fn entropy(r: &mut RegionBuilder) {
    let [x] = inputs(r, [("x", &[8, 100])]);
    r.axes([1]);
    let (m, s) = sum_exp(r, x.clone());
    let l = r.define("l", x - m - s.log());
    let sum = r.reduce("sum", l.clone().exp() * l);
    r.output(-sum);
}

fn accuracy(r: &mut RegionBuilder) {
    let (x, label) = scores_and_labels(r, [8, 100]);
    r.axes([1]);
    let hit = r.reduce("argmax", x).eq(label);
    let mean = r.total("mean", hit.cast(F32), [0]);
    r.output(mean);
}
