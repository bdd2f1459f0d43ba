//! What is refused, as onednn_errors.json has it and beyond, and what only looks as if it were.

use crate::problem::{Problem, Tensor, ints, text};
use crate::run::check;
use cranefold::ops::ParamError;
use cranefold::spec::Dims;
use cranefold::spec::onednn::{PostOp, Primitive};
use cranefold::{DType, Layout, SpecError};
use serde_json::Value;

fn file() -> Value {
    serde_json::from_str(include_str!("../conformance/onednn_errors.json")).expect("JSON")
}

fn list(name: &str) -> Vec<Value> {
    file()[name].as_array().expect("a list").clone()
}

/// The problem of an entry; what it leaves out is as in the published test: 4 floats to one.
fn problem(entry: &Value) -> Problem {
    let dims = |name: &str, default: &[i64]| if entry[name].is_array() { ints(&entry[name]) } else { default.into() };
    let number = |value: &Value| match value {
        Value::String(text) => text.parse().expect("inf"),
        value => value.as_f64().unwrap_or(1.0) as f32,
    };
    let (src, dst) = (dims("src", &[1, 1, 1, 4]), dims("dst", &[1, 1, 1, 1]));
    let tag = |name: &str| entry[name].as_str().unwrap_or("abcd").to_string();
    Problem {
        alg: text(&entry["alg"]).into(),
        p: number(&entry["p"]),
        eps: 0.0,
        src: Tensor::new(DType::F32, &src, &if entry["why"] == "src tag any" { "any".into() } else { tag("stag") }),
        dst: Tensor::new(DType::F32, &dst, &tag("dtag")),
        post_ops: String::new(),
    }
}

#[test]
fn published_refusals() {
    let entries = list("expected_failures");
    let errors: Vec<String> =
        entries.iter().map(|entry| problem(entry).translate().expect_err("an error").to_string()).collect();
    let at_least_1 = |op: &str| format!("parameter `p` of `{op}` must be finite and at least 1, inf given");
    assert_eq!(
        errors,
        [
            "source and destination dims [1,1,1,4] are equal: nothing is reduced".to_string(),
            "`eltwise_relu` is no reduction algorithm that is translated from oneDNN; those are max, min, sum, mul, \
             mean, norm_lp_max, norm_lp_sum, norm_lp_power_p_max, norm_lp_power_p_sum"
                .into(),
            "extent -1 of axis 0 is negative".into(),
            "source and destination dims [1,8,4,4] are equal: nothing is reduced".into(),
            at_least_1("lp_max"),
            at_least_1("lp_sum"),
            at_least_1("lp_power_p_max"),
            at_least_1("lp_power_p_sum"),
            "input 0: layout `any` is the layout of input 0, kept by an output, and of nothing else".into(),
        ]
    );
}

fn sum(src: &[i64], dst: &[i64]) -> String {
    let primitive = Primitive::new("sum", Dims::new(DType::F32, src), Dims::new(DType::F32, dst));
    primitive.translate().expect_err("an error").to_string()
}

#[test]
fn further_checks() {
    assert_eq!(sum(&[2, 3, 4], &[2, 1]), "source rank 3 and destination rank 2 differ");
    assert_eq!(sum(&[2, 3, 4], &[2, 2, 1]), "destination dim 2 of axis 1 must be 1 or 3");
    assert_eq!(sum(&[2, 3, 4], &[2, 1, -4]), "extent -4 of axis 2 is negative");
    assert_eq!(sum(&[], &[]), "source and destination dims [] are equal: nothing is reduced");
    let norm = |alg: &'static str, dtype, p, eps| {
        let (src, dst) = (Dims::new(dtype, &[2, 3]), Dims::new(DType::F32, &[2, 1]));
        Primitive::new(alg, src, dst).p(p).eps(eps).translate().map(drop).map_err(|e| e.to_string())
    };
    for (alg, row) in [
        ("norm_lp_max", "lp_max"),
        ("reduction_norm_lp_sum", "lp_sum"),
        ("dnnl_reduction_norm_lp_power_p_max", "lp_power_p_max"),
        ("norm_lp_power_p_sum", "lp_power_p_sum"),
    ] {
        assert_eq!(norm(alg, DType::F16, 1.0, 0.0), Ok(()));
        for (dtype, name) in [(DType::I8, "i8"), (DType::U8, "u8"), (DType::I32, "i32")] {
            assert_eq!(norm(alg, dtype, 2.0, 0.0), Err(format!("`{row}` does not take {name}; it takes floats")));
        }
        for (p, given) in [(0.99, "0.99"), (-1.0, "-1"), (f32::INFINITY, "inf"), (f32::NAN, "NaN")] {
            let message = format!("parameter `p` of `{row}` must be finite and at least 1, {given} given");
            assert_eq!(norm(alg, DType::F32, p, 0.0), Err(message));
        }
        for (eps, given) in [(f32::INFINITY, "inf"), (f32::NAN, "NaN")] {
            let message = format!("parameter `eps` of `{row}` must be finite, {given} given");
            assert_eq!(norm(alg, DType::Bf16, 2.0, eps), Err(message));
        }
    }
    // Of the others p and eps mean nothing.
    assert_eq!(norm("max", DType::I8, f32::NAN, f32::INFINITY), Ok(()));
    let unsaid = Primitive::new("norm_lp_sum", Dims::new(DType::F32, &[2]), Dims::new(DType::F32, &[1]));
    assert_eq!(unsaid.translate(), Err(SpecError::Param(ParamError::Missing { op: "lp_sum", param: "p" })));
}

#[test]
fn post_ops_that_are_refused() {
    let (src, dst) = (Dims::new(DType::F32, &[2, 3, 4]), Dims::new(DType::I32, &[2, 3, 1]));
    let primitive = Primitive::new("sum", src, dst);
    let refused = |post_op| primitive.clone().post_op(post_op).translate().expect_err("an error").to_string();
    for alg in ["gelu_erf", "eltwise_gelu_erf", "prelu", "depthwise", "reduction_sum"] {
        let message = refused(PostOp::eltwise(alg, 1.0, 0.0));
        let start =
            format!("`{alg}` is no eltwise post-op that is translated from oneDNN; those are relu, tanh, elu, ");
        assert!(message.starts_with(&start), "{message}");
    }
    let operand = || Dims::new(DType::F32, &[1, 3, 1]);
    assert_eq!(
        refused(PostOp::binary("binary_select", operand())),
        "`binary_select` is no binary post-op that is translated from oneDNN; those are add, mul, max, min, div, sub, \
         ge, gt, le, lt, eq, ne"
    );
    assert_eq!(refused(PostOp::eltwise("clip", 2.0, 1.0)), "`clip` needs an alpha of at most beta, given 2 and 1");
    let nan = f32::NAN;
    assert_eq!(
        refused(PostOp::eltwise("clip_v2", nan, 1.0)),
        "`clip_v2` needs an alpha of at most beta, given NaN and 1"
    );
    assert_eq!(
        refused(PostOp::Sum { scale: 1.0, zero_point: 0, dtype: Some(DType::F32) }),
        "a `sum` post-op cannot read the old i32 destination as f32: only i8 and u8 stand for another"
    );
    let wide = refused(PostOp::binary("add", Dims::new(DType::F32, &[1, 2, 1])));
    assert!(wide.contains("y0 of shape [1,2,1] does not broadcast to the output's shape [2,3,1]"), "{wide}");
    let longer = refused(PostOp::binary("add", Dims::new(DType::F32, &[1, 1, 1, 1])));
    assert!(longer.contains("does not broadcast"), "{longer}");
    let negative = PostOp::binary("add", Dims::new(DType::F32, &[-1, 3, 1]));
    assert_eq!(refused(negative), "extent -1 of axis 0 is negative");
    let any = PostOp::binary("add", operand().at(Layout::any()));
    assert_eq!(refused(any), "input y0: layout `any` is the layout of input 0, kept by an output, and of nothing else");
    // Each doubles the text of what it is applied to.
    let long = (0..20).fold(primitive.clone(), |p, _| p.post_op(PostOp::eltwise("mish", 0.0, 0.0)));
    assert!(matches!(long.translate(), Err(SpecError::Recipe(_))));
}

#[test]
fn zero_dims_and_simple_cases() {
    let mut count = 0;
    for name in ["zero_dim", "simple", "f32_only"] {
        for entry in list(name) {
            for kind in [1, 5] {
                let spec = problem(&entry).translate().unwrap_or_else(|e| panic!("{entry}: {e}"));
                assert_eq!(spec.outputs()[0].shape().iter().product::<u64>() == 0, name == "zero_dim");
                check(&spec, kind, 7).unwrap_or_else(|e| panic!("{e}"));
            }
            count += 1;
        }
    }
    assert_eq!(count, 9);
    // Every type of the published test, where nothing is reduced as well.
    for name in ["f32", "bf16", "f16", "i8", "u8"] {
        let dtype: DType = name.parse().expect("a dtype");
        for (src, dst) in [([4, 17, 3, 2], [1, 17, 1, 2]), ([4, 17, 0, 2], [4, 17, 1, 1]), ([4, 0, 3, 2], [1, 0, 1, 2])]
        {
            let [src, dst] = [src, dst].map(|dims| Tensor::new(dtype, &dims, "aBcd16b"));
            let problem = Problem {
                alg: "sum".into(),
                p: 1.0,
                eps: 0.0,
                src,
                dst,
                post_ops: "sum:0.5+relu+add:f32:per_oc".into(),
            };
            check(&problem.translate().expect("a spec"), 5, 3).unwrap_or_else(|e| panic!("{e}"));
        }
    }
}
