//! Softmax, reductions, pooling, optimisers and activations.

use super::{Built, F32, inputs, scalars, sum_exp};
use cranefold::spec::RegionBuilder;
use cranefold::{DType, Layout};

pub const BUILT: &[Built] = &[
    ("softmax", softmax),
    ("softmax of scores: scale, additive mask, log-sum-exp saved", scores),
    ("causal softmax by position", causal),
    ("log-softmax", log_softmax),
    ("softmax backward", softmax_backward),
    ("log-softmax backward", log_softmax_backward),
    ("mean absolute deviation", mean_absolute_deviation),
    ("dequantise and reduce", dequantise),
    ("masked mean and variance", masked_moments),
    ("mean pooling by lengths", pooling_by_lengths),
    ("max with argmax and count", max_argmax_count),
    ("LAMB norms and update", lamb),
    ("clip by norm", clip),
    ("GELU (erf) and bias gradient", gelu_erf),
    ("GELU (tanh) and bias gradient", gelu_tanh),
    ("global average pool with ReLU", average_pool),
    ("pooling 2x2", pooling),
    ("pooling 3x3, overlapping", overlapping_pooling),
    ("standardise", standardise),
    ("accumulate into what is there", accumulate),
    ("mean of points with weights", weighted_mean),
];

fn softmax(r: &mut RegionBuilder) {
    let [x] = inputs(r, [("x", &[6, 200])]);
    r.axes([-1]);
    let m = r.reduce("max", x.clone());
    let e = r.define("e", (x - m).exp());
    let sum = r.reduce("sum", e.clone());
    r.output(e / sum);
}

fn scores(r: &mut RegionBuilder) {
    let [x, mask] = inputs(r, [("x", &[6, 200]), ("mask", &[200])]);
    r.axes([-1]);
    let [scale] = scalars(r, ["scale"]);
    let y = r.define("y", x * scale + mask);
    let (m, s) = sum_exp(r, y.clone());
    r.output((y - m.clone()).exp() / s.clone());
    r.output(m + s.log());
}

fn causal(r: &mut RegionBuilder) {
    let [x] = inputs(r, [("x", &[2, 40, 40])]);
    r.axes([-1]);
    let (column, row) = (r.position(2), r.position(1));
    let y = r.define("y", column.le(row).select(x, f64::NEG_INFINITY));
    let (m, s) = sum_exp(r, y.clone());
    r.output((y - m.clone()).exp() / s.clone());
    r.output(m + s.log());
}

fn log_softmax(r: &mut RegionBuilder) {
    let [x] = inputs(r, [("x", &[6, 200])]);
    r.axes([-1]);
    let (m, s) = sum_exp(r, x.clone());
    r.output(x - m - s.log());
}

fn softmax_backward(r: &mut RegionBuilder) {
    let [y, dy] = inputs(r, [("y", &[6, 200]), ("dy", &[6, 200])]);
    r.axes([-1]);
    let d = r.reduce("sum", y.clone() * dy.clone());
    r.output(y * (dy - d));
}

fn log_softmax_backward(r: &mut RegionBuilder) {
    let [y, dy] = inputs(r, [("y", &[6, 200]), ("dy", &[6, 200])]);
    r.axes([-1]);
    let d = r.reduce("sum", dy.clone());
    r.output(dy - y.exp() * d);
}

fn mean_absolute_deviation(r: &mut RegionBuilder) {
    let [x] = inputs(r, [("x", &[8, 100])]);
    r.axes([1]);
    let c = r.centered(x);
    let mean = r.reduce("mean", c.abs());
    r.output(mean);
}

fn weighted_mean(r: &mut RegionBuilder) {
    let [x, w] = inputs(r, [("x", &[700, 3]), ("w", &[700, 1])]);
    r.axes([0]);
    let sum = r.reduce("sum", x * w.clone());
    let weights = r.reduce("sum", w);
    r.output(sum / weights);
}

fn dequantise(r: &mut RegionBuilder) {
    let q = r.input("q", DType::I8, &[8, 100]);
    let scale = r.input("scale", F32, &[100]);
    let zero = r.input("zero", DType::I8, &[100]);
    r.axes([1]);
    let sum = r.reduce("sum", (q - zero).cast(F32) * scale);
    r.output(sum);
}

fn masked_moments(r: &mut RegionBuilder) {
    let x = r.input("x", F32, &[8, 100]);
    let mask = r.input("mask", DType::Bool, &[8, 100]);
    r.axes([1]);
    let n = r.reduce("sum", mask.clone().cast(F32));
    let n = r.define("n", n);
    let sum = r.reduce("sum", mask.clone().select(x.clone(), 0));
    let m = r.define("m", sum / n.clone());
    let d = r.define("d", mask.select(x - m.clone(), 0));
    let squares = r.reduce("sum", d.clone() * d);
    r.output(m);
    r.output(squares / n);
}

fn pooling_by_lengths(r: &mut RegionBuilder) {
    let x = r.input("x", F32, &[4, 20, 30]);
    let length = r.input("length", DType::I64, &[4, 1, 1]);
    r.axes([1]);
    let at = r.position(1);
    let sum = r.reduce("sum", at.lt(length.clone()).select(x, 0));
    r.output(sum / length.cast(F32));
}

fn max_argmax_count(r: &mut RegionBuilder) {
    let [x] = inputs(r, [("x", &[8, 100])]);
    r.axes([1]);
    let m = r.reduce("max", x.clone());
    let at = r.reduce("argmax", x.clone());
    let count = r.reduce("sum", x.eq(m.clone()).cast(DType::I64));
    r.output(m);
    r.output(at);
    r.output(count);
}

fn lamb(r: &mut RegionBuilder) {
    let [w, g, m, v] = inputs(r, [("w", &[500]), ("g", &[500]), ("m", &[500]), ("v", &[500])]);
    r.axes([0]);
    let [lr, decay] = scalars(r, ["lr", "decay"]);
    let m1 = r.define("m1", 0.9 * m + 0.1 * g.clone());
    let v1 = r.define("v1", 0.999 * v + 0.001 * g.clone() * g);
    let u = r.define("u", m1.clone() / (v1.clone().sqrt() + 1e-6) + decay * w.clone());
    let (wn, un) = (r.reduce("l2", w.clone()), r.reduce("l2", u.clone()));
    let both = wn.clone().gt(0).and(un.clone().gt(0));
    let ratio = r.define("ratio", both.select(wn / un, 1));
    r.output(w - lr * ratio * u);
    r.output(m1);
    r.output(v1);
}

fn clip(r: &mut RegionBuilder) {
    let [x] = inputs(r, [("x", &[8, 100])]);
    r.axes([0, 1]);
    let [most] = scalars(r, ["most"]);
    let n = r.reduce("l2", x.clone());
    let one = cranefold::ir::expression::Expression::from(1);
    r.output(x * one.min(most / (n.clone() + 1e-6)));
    r.output(n);
}

fn gelu_erf(r: &mut RegionBuilder) {
    let [x, dy] = inputs(r, [("x", &[40, 30]), ("dy", &[40, 30])]);
    r.axes([0]);
    let cdf = r.define("cdf", 0.5 * (1 + (x.clone() * std::f64::consts::FRAC_1_SQRT_2).erf()));
    let pdf = r.define("pdf", 0.398_942_280_401_432_7 * (-0.5 * x.clone() * x.clone()).exp());
    let dx = r.define("dx", dy * (cdf + x.clone() * pdf));
    let sum = r.reduce("sum", dx.clone());
    r.output(dx);
    r.output(sum);
    r.output(x.gelu());
}

fn gelu_tanh(r: &mut RegionBuilder) {
    const ROOT: f64 = 0.797_884_560_802_865_4;
    let [x, dy] = inputs(r, [("x", &[40, 30]), ("dy", &[40, 30])]);
    r.axes([0]);
    let x = || x.clone();
    let t = r.define("t", (ROOT * (x() + 0.044715 * x() * x() * x())).tanh());
    let t = || t.clone();
    let slope = 0.5
        * x()
        * (1 - t() * t())
        * ROOT
        * (1 + cranefold::ir::expression::Expression::from(3) * 0.044715 * x() * x());
    let dx = r.define("dx", dy * (0.5 * (1 + t()) + slope));
    let sum = r.reduce("sum", dx.clone());
    r.output(dx);
    r.output(sum);
    r.output(x().gelu_tanh());
}

fn average_pool(r: &mut RegionBuilder) {
    let [x] = inputs(r, [("x", &[2, 6, 7, 7])]);
    r.axes([2, 3]);
    let mean = r.reduce("mean", x.max(0));
    r.output(mean);
}

fn pooling(r: &mut RegionBuilder) {
    let [x] = inputs(r, [("x", &[2, 3, 4, 2, 4, 2])]);
    r.axes([3, 5]);
    let (max, mean) = (r.reduce("max", x.clone()), r.reduce("mean", x));
    r.output(max);
    r.output(mean);
}

fn overlapping_pooling(r: &mut RegionBuilder) {
    let x = r.input_at("x", F32, &[2, 3, 5, 3, 5, 3], Layout::strides([363, 121, 22, 11, 2, 1]));
    r.axes([3, 5]);
    let (max, mean) = (r.reduce("max", x.clone()), r.reduce("mean", x));
    r.output(max);
    r.output(mean);
}

fn standardise(r: &mut RegionBuilder) {
    let [x] = inputs(r, [("x", &[8, 100])]);
    r.axes([1]);
    let (c, std) = (r.centered(x.clone()), r.reduce("std", x));
    r.output(c / std);
}

fn accumulate(r: &mut RegionBuilder) {
    let [x] = inputs(r, [("x", &[8, 100])]);
    r.axes([1]);
    let sum = r.reduce("sum", x.clone());
    let (first, second) = (r.old(0), r.old(1));
    r.output(sum + first);
    r.output(x.cast(F32) + second);
}
