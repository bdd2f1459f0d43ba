//! Output shapes and axes against the published suites and specs (`tests/conformance/`).

use cranefold::{DType, Spec, SpecError, ops};
use serde_json::Value;

fn cases(text: &str) -> Vec<Value> {
    let file: Value = serde_json::from_str(text).expect("JSON");
    file["cases"].as_array().expect("cases").clone()
}

/// The integers of a list; none where an item is anything else.
fn ints(value: &Value) -> Option<Vec<i64>> {
    value.as_array()?.iter().map(Value::as_i64).collect()
}

fn extents(value: &Value) -> Option<Vec<u64>> {
    ints(value)?.into_iter().map(|extent| extent.try_into().ok()).collect()
}

/// A dtype that each op takes.
fn dtype_of(op: &str) -> DType {
    if ops::find(op).expect("an op").takes(DType::F32) { DType::F32 } else { DType::Bool }
}

/// The XML examples of the OpenVINO specs, as written and with `keep_dims` the other way, for their
/// op and for every other.
#[test]
fn examples_of_the_openvino_specs() {
    let cases = cases(include_str!("../conformance/openvino_examples.json"));
    assert_eq!(cases.len(), 16);
    for case in cases {
        let named = case["op"].as_str().expect("an op");
        let all =
            ["ReduceMin", "ReduceMean", "ReduceLogicalAnd", "ReduceLp", "ReduceL2", "ReduceSum", "ReduceLogSumExp"];
        for op in all.into_iter().chain([named]) {
            let (shape, axes) = (extents(&case["shape"]).unwrap(), ints(&case["axes"]).unwrap());
            let mut builder = Spec::builder(op).input(dtype_of(op), &shape).axes(axes.clone());
            if op == "ReduceLp" {
                builder = builder.param("p", 2.0);
            }
            let reduced = |axis: usize| axes.contains(&(axis as i64)) || axes.contains(&(axis as i64 - 4));
            let kept: Vec<u64> = (0..4).map(|axis| if reduced(axis) { 1 } else { shape[axis] }).collect();
            let dropped: Vec<u64> = (0..4).filter(|&axis| !reduced(axis)).map(|axis| shape[axis]).collect();
            let with = builder.clone().keep_dims(true).build().unwrap();
            let without = builder.build().unwrap();
            assert_eq!((with.outputs()[0].shape(), without.outputs()[0].shape()), (&kept[..], &dropped[..]));
            let written = if case["keep_dims"] == true { &with } else { &without };
            assert_eq!(written.outputs()[0].shape(), extents(&case["out"]).unwrap(), "{case}");
        }
    }
}

/// The static cases of OpenVINO's shape inference. Repeated axes are refused, as the written spec
/// has it, where the implementation takes a set.
#[test]
fn openvino_shape_inference() {
    let (mut run, mut refused) = (0, 0);
    for case in cases(include_str!("../conformance/openvino_shapes.json")) {
        let (Some(shape), Some(axes)) = (extents(&case["data"]), ints(&case["axes"])) else { continue };
        let name = case["name"].as_str().expect("a name");
        let build = |op: &str, dtype: DType| {
            let builder = Spec::builder(op).input(dtype, &shape).axes(axes.clone());
            if case["keep_dims"] == true { builder.keep_dims(true) } else { builder }.build()
        };
        let nine =
            "ReduceL1 ReduceL2 ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceLogicalAnd ReduceLogicalOr";
        for op in nine.split(' ') {
            match name {
                "arithmetic reduce on boolean" if !op.contains("Logical") && !op.contains('M') => {
                    assert!(matches!(build(op, DType::Bool), Err(SpecError::TypeRefused { .. })), "{op}");
                }
                "logical reduce on f32/i32/u32" if op.contains("Logical") => {
                    for dtype in [DType::F32, DType::I32, DType::U32] {
                        assert!(matches!(build(op, dtype), Err(SpecError::TypeRefused { .. })), "{op}");
                    }
                }
                // Rank and type of the axes tensor: our axes are a list of integers.
                _ if case["error"].is_string() => continue,
                _ if name.contains("out of range") => {
                    assert_eq!(build(op, dtype_of(op)), Err(SpecError::AxisOutOfRange { axis: 3, rank: 3 }), "{name}");
                }
                _ if name.contains("duplicated") => {
                    assert_eq!(build(op, dtype_of(op)), Err(SpecError::RepeatedAxis { axis: 1, rank: 3 }), "{name}");
                }
                _ => {
                    let spec = build(op, dtype_of(op)).unwrap();
                    assert_eq!(spec.outputs()[0].shape(), extents(&case["out"]).unwrap(), "{name}");
                    run += 1;
                    continue;
                }
            }
            refused += 1;
        }
    }
    assert_eq!((run, refused), (3 * 9, 4 * 9 + 4 + 2));
}
