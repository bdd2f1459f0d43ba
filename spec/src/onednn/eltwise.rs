//! oneDNN's elementwise functions as expressions.

use super::{SpecError, known, number, wide_number};
use cranefold_ir::DType::{F32, F64};
use cranefold_ir::expression::Expression;

/// The functions that expressions can compute.
const ELTWISE: &[&str] = &[
    "relu",
    "tanh",
    "elu",
    "square",
    "abs",
    "sqrt",
    "linear",
    "soft_relu",
    "hardsigmoid",
    "logistic",
    "exp",
    "gelu_tanh",
    "swish",
    "log",
    "clip",
    "clip_v2",
    "pow",
    "round",
    "mish",
    "hardswish",
];

/// sqrt(2 / pi) and the coefficient of gelu, as oneDNN has them.
const SQRT_2_OVER_PI: f32 = 0.797_884_6;
const CUBE: f32 = 0.044_715;

/// The magnitude below which tanh t is t to less than half an ulp of f32; from there on the error of 2^-53 of the
/// general form is negligible. The next constant is the one of e^t - 1.
const LINEAR_TANH: f64 = 2e-4;
const LINEAR_EXPM1: f64 = 5e-8;

/// The exponent below which log(1 + e^t) is e^t, in the same way.
const TINY_EXP: i64 = -17;

/// 2^52 * 1.5: beside it an f64 has no fraction.
const NO_FRACTION: i64 = 3 << 51;

/// The expression of an algorithm's f32 result for s, an f32.
pub(super) fn expression(alg: &str, s: Expression, alpha: f32, beta: f32) -> Result<Expression, SpecError> {
    let forward = alg.strip_suffix("_use_dst_for_bwd").unwrap_or(alg);
    let alg = known("eltwise post-op", forward, &["dnnl_eltwise_", "eltwise_"], ELTWISE)?;
    if alg.starts_with("clip") && !matches!(alpha.partial_cmp(&beta), Some(o) if o.is_le()) {
        return Err(SpecError::ClipBounds { alg, alpha, beta });
    }
    let t = s.clone().cast(F64);
    let line = |s: Expression| number(alpha) * s + number(beta);
    let unit = |value: Expression| value.max(0).min(1);
    let t_times = |factor: f32| if factor == 1.0 { t.clone() } else { wide_number(factor) * t.clone() };
    Ok(match alg {
        "abs" => s.abs(),
        "square" => s.pow(2),
        "sqrt" => s.sqrt(),
        "exp" => s.exp(),
        "log" => s.log(),
        "linear" => line(s),
        "pow" => scaled(number(alpha), s.pow(number(beta))),
        "clip" | "clip_v2" => s.max(number(alpha)).min(number(beta)),
        "hardsigmoid" => unit(line(s)),
        "hardswish" => s.clone() * unit(line(s)),
        "relu" if alpha == 0.0 => s.max(0),
        "relu" => s.clone().gt(0).select(s.clone(), number(alpha) * s),
        "elu" => {
            let below = t.clone().gt(-LINEAR_EXPM1).select(t.clone(), t.clone().exp() - 1);
            t.clone().gt(0).select(t, scaled(wide_number(alpha), below)).cast(F32)
        }
        "tanh" => {
            let twice = t.clone() * 2;
            let far = 1 - 2 / (twice.exp() + 1);
            t.clone().abs().lt(LINEAR_TANH).select(t, far).cast(F32)
        }
        "soft_relu" => {
            let u = t_times(alpha);
            let shrunk = (-u.clone().abs()).exp();
            let whole = u.clone().max(0) + (shrunk + 1).log();
            let value = u.clone().lt(TINY_EXP).select(u.exp(), whole);
            if alpha == 1.0 { value.cast(F32) } else { (value / wide_number(alpha)).cast(F32) }
        }
        "logistic" => (Expression::from(1) / ((-t).exp() + 1)).cast(F32),
        "swish" => (t.clone() / (t_times(-alpha).exp() + 1)).cast(F32),
        // (1 + tanh u) / 2 is 1 / (1 + e^-2u), where nothing cancels.
        "gelu_tanh" => {
            let minus_2u = wide_number(-2.0 * SQRT_2_OVER_PI) * t.clone() * (wide_number(CUBE) * t.clone().pow(2) + 1);
            (t / (minus_2u.exp() + 1)).cast(F32)
        }
        // With e = e^s, tanh(log(1 + e)) is e (e + 2) / (e (e + 2) + 2).
        "mish" => {
            let e = t.clone().exp();
            (t / (2 / (e.clone() * (e + 2)) + 1)).cast(F32)
        }
        // From 2^23 on all are integers.
        _ => s.clone().abs().lt(1 << 23).select((t + NO_FRACTION - NO_FRACTION).cast(F32), s),
    })
}

/// alpha times the value.
fn scaled(alpha: Expression, value: Expression) -> Expression {
    if alpha == Expression::from(1) { value } else { alpha * value }
}
