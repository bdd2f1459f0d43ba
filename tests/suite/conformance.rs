//! Values of the ONNX and OpenVINO test suites (`tests/conformance/`).
//!
//! Each element must be near the published value and within the reference's derived bound.

use super::{Execute, data, run};
use cranefold::{DType, Scalar, Spec, spec::Builder};
use cranefold_reference as reference;
use serde_json::Value;

fn cases(text: &str) -> Vec<Value> {
    let file: Value = serde_json::from_str(text).expect("JSON");
    file["cases"].as_array().expect("cases").clone()
}

fn list<T>(value: &Value, item: impl Fn(&Value) -> T) -> Vec<T> {
    value.as_array().expect("a list").iter().map(item).collect()
}

fn shape(value: &Value) -> Vec<u64> {
    list(value, |v| v.as_u64().expect("an extent"))
}

fn number(value: &Value) -> f64 {
    match value {
        Value::String(text) => text.parse().expect("inf or nan"),
        Value::Bool(truth) => f64::from(u8::from(*truth)),
        _ => value.as_f64().expect("a number"),
    }
}

fn scalar(dtype: DType, value: f64) -> Scalar {
    if dtype == DType::Bool { Scalar::bool(value != 0.0) } else { Scalar::float(dtype, value) }
}

/// Runs one case and compares.
fn compare(what: &str, execute: Execute, spec: &Spec, input: &[f64], expected: &[f64], relative: f64) {
    let (from, to) = (spec.inputs()[0].dtype(), spec.outputs()[0].dtype());
    let bytes = data::bytes(from, input.iter().map(|&v| scalar(from, v)));
    let got = data::scalars(to, &run(execute, spec, std::slice::from_ref(&bytes))[0]);
    let exact = reference::reduce(spec, &[&bytes]).expect("buffers of the right length");
    assert_eq!(got.len(), expected.len(), "{what}");
    for ((&got, exact), &expected) in got.iter().zip(&exact[0]).zip(expected) {
        let near = (got.as_f64() - expected).abs() <= relative * expected.abs();
        assert!(near || got.as_f64() == expected, "{what}: got {got}, published {expected}");
        reference::check(spec, exact, got).unwrap_or_else(|mismatch| panic!("{what}: {mismatch}"));
    }
}

/// All cases of onnx.json. ONNX reduces all axes when the list is empty, unless
/// told to do nothing.
pub fn check_onnx(execute: Execute) {
    let mut count = 0;
    for case in cases(include_str!("../conformance/onnx.json")) {
        let (name, op) = (case["name"].as_str().expect("a name"), case["op"].as_str().expect("an op"));
        let dtype: DType = case["dtype"].as_str().expect("a dtype").parse().expect("a dtype");
        let mut builder: Builder = Spec::builder(op).input(dtype, &shape(&case["in_shape"]));
        let axes = case["axes"].as_array().is_some_and(|axes| !axes.is_empty());
        if axes || case["noop_with_empty_axes"] == 1 {
            builder = builder.axes(list(&case["axes"], |v| v.as_i64().expect("an axis")));
        }
        if case["keepdims"] == 1 {
            builder = builder.keep_dims(true);
        }
        if case["select_last_index"] == 1 {
            builder = builder.param("last", 1.0);
        }
        let spec = builder.build().unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(spec.outputs()[0].shape(), shape(&case["out_shape"]), "{name}");
        assert_eq!(case["out_dtype"], spec.outputs()[0].dtype().name(), "{name}");
        let tolerance = if dtype == DType::F64 { 1e-14 } else { 4e-7 };
        compare(name, execute, &spec, &list(&case["input"], number), &list(&case["expected"], number), tolerance);
        count += 1;
    }
    assert_eq!(count, 70);
}

/// The 40 cases of openvino_values.json. Their greatest of nothing is the least finite f32; ours is
/// -inf, which differs on purpose.
pub fn check_openvino(execute: Execute) {
    let cases = cases(include_str!("../conformance/openvino_values.json"));
    assert_eq!(cases.len(), 40);
    for case in cases {
        let op = case["op"].as_str().expect("an op");
        let axes = list(&case["axes"], |v| v.as_i64().expect("an axis"));
        let mut builder = Spec::builder(op).input(DType::F32, &shape(&case["shape"])).axes(axes);
        if case["keep_dims"] == true {
            builder = builder.keep_dims(true);
        }
        let spec = builder.build().expect("a spec");
        assert_eq!(spec.outputs()[0].shape(), shape(&case["out_shape"]), "{spec}");
        let input = list(&case["input"], number);
        let mut expected = list(&case["expected"], number);
        if op == "ReduceMax" && input.is_empty() {
            expected.fill(f64::NEG_INFINITY);
        }
        compare(&spec.to_string(), execute, &spec, &input, &expected, 1e-6);
    }
}
