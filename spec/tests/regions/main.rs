//! Regions: their text, the rules, the builder, the canonical form.

mod build;
mod canonical;
mod mutations;
mod refused;
mod shapes;
mod texts;

use cranefold_spec::Spec;

/// The spec of a text.
fn spec(text: &str) -> Spec {
    text.parse().unwrap_or_else(|error| panic!("{text}\n{error}"))
}

/// Regions of models, by name.
const REGIONS: &[(&str, &str)] = &[
    (
        "softmax with scale and additive mask",
        "region x:f32[2,4,16,16], mask:f32[16,16] axes=[-1] scalar scale:f32 {
           m, s = sum_exp(x * scale + mask)
           exp(x * scale + mask - m) / s
         }",
    ),
    (
        "causal mask by position, with the log-sum-exp",
        "region x:bf16[2,16,16] axes=[2] {
           e = select(position(-1) <= position(-2), x * 0.125, -inf)   # the future is masked
           m, s = sum_exp(e)
           bf16(exp(e - m) / s), m + log(s)
         }",
    ),
    ("log-softmax", "region x:f32[8,768] axes=1 { m, s = sum_exp(x); x - m - log(s) }"),
    (
        "cross-entropy by label with ignore index",
        "region x:f32[32,1000], label:i64[32,1] axes=[1] scalar ignore:i64 {
           m, s = sum_exp(x)
           picked = sum(select(position(1) == label, x, 0))
           valid = label != ignore
           loss = select(valid, m + log(s) - picked, 0)
           loss, sum(loss, axes=[0]) / f32(sum(i64(valid), axes=[0]))
         }",
    ),
    ("softmax backward", "region y:f32[8,768], dy:f32[8,768] axes=[1] { y * (dy - sum(y * dy)) }"),
    (
        "layer norm with residual, mean and 1/std",
        "region x:f32[8,768], h:f32[8,768], w:f32[768], b:f32[768] axes=[1] {
           y = x + h
           m = mean(y)
           c = centered(y)
           r = 1 / sqrt(mean(c * c) + 1e-5)
           y, bf16(c * r * w + b), m, r
         }",
    ),
    (
        "layer norm to int8",
        "region x:f16[8,768], w:f16[768], b:f16[768] axes=[1] scalar scale:f32 scalar zero:i32 {
           c = centered(x)
           q = (c / sqrt(mean(c * c) + 1e-5) * w + b) / scale + f32(zero)
           i8(min(max(q, -128), 127))
         }",
    ),
    (
        "RMS norm, bf16 in and out, explicit roundings",
        "region x:bf16[8,768], w:bf16[768] axes=[-1] {
           r = 1 / sqrt(mean(x * x) + 1e-6)
           n = bf16(x * r)
           bf16(f32(n) * w)
         }",
    ),
    (
        "batch norm training NCHW",
        "region x:f32[8,3,5,5], w:f32[3,1,1], b:f32[3,1,1] axes=[0,2,3] scalar momentum:f32 {
           m = mean(x)
           v = var(x)
           r = 1 / sqrt(v + 1e-5)
           (x - m) * r * w + b, m, r,
           (1 - momentum) * old(3) + momentum * m,
           (1 - momentum) * old(4) + momentum * v * extent(0) * 25 / (extent(0) * 25 - 1)
         }",
    ),
    (
        "max with argmax and count",
        "region x:f32[8,768] axes=[1] { m = max(x); m, argmax(x, last=1), count_nonzero(x == m) }",
    ),
    (
        "cosine similarity",
        "region a:f32[8,64], b:f32[8,64] axes=[1] scalar eps:f32 {
           sum(a * b) / max(l2(a) * l2(b), eps)
         }",
    ),
    ("element-wise", "region x:f32[8,1], y:bool[1,5] axes=[] { select(y, x, -x) }"),
    (
        "layouts",
        "region x:f32[8,20,7,7]@nChw16c, w:f32[20,1,1]@(1,0,0)+3 axes=[2,3] keep_dims { x * w / sum(x) @any, max(x) @any+8 }",
    ),
    (
        "integers",
        "region x:u8[3,100], i32[100] axes=[1] acc=f64 order=logical { sum(x), min(x1), mean(f32(x)), x + x1 }",
    ),
    ("two results by name", "region x:f32[3,100] { v, n = mode(x); v, n }"),
];
