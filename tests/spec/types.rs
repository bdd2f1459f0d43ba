//! The types that outputs have where none is said, and the shapes of several.

use cranefold::{DType, Spec};

fn outputs(text: &str) -> Vec<DType> {
    let spec: Spec = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
    spec.outputs().iter().map(|o| o.dtype()).collect()
}

#[test]
fn default_types() {
    use DType::{Bool, F16, F32, F64, I8, I16, I32, I64, U8};
    for (text, expected) in [
        // As the input.
        ("sum i8[4]", vec![I8]),
        ("var f16[4]", vec![F16]),
        ("mean f16[4] acc=f64", vec![F16]),
        ("min,max u8[4]", vec![U8, U8]),
        ("any bool[4]", vec![Bool]),
        ("softmax f16[4]", vec![F16]),
        ("bit_or bool[4]", vec![Bool]),
        // Positions and counts.
        ("argmax f32[4]", vec![I64]),
        ("argmax bool[4]", vec![I64]),
        ("count_nonzero f16[4]", vec![I64]),
        ("max,argmax i16[4]", vec![I16, I64]),
        ("mode f16[4]", vec![F16, I64]),
        ("mode i8[4] -> i8, i32", vec![I8, I32]),
        ("median i8[4]", vec![I8]),
        // Of a map: a float as the input is one, integers as the map's.
        (r#"sum f16[4] map="x0*x0""#, vec![F16]),
        (r#"sum f16[4], f32[4] map="x0*x1""#, vec![F16]),
        (r#"sum f32[4], f64[4] map="f64(x0)*x1""#, vec![F32]),
        (r#"sum i8[4] map="x0*x0""#, vec![I32]),
        (r#"sum i64[4] map="x0*x0""#, vec![I64]),
        (r#"sum i8[4] map="f32(x0)""#, vec![F32]),
        (r#"sum bool[4] map="i32(x0)""#, vec![I32]),
        (r#"sum f32[4] map="i64(x0)""#, vec![I64]),
        (r#"any f32[4] map="x0 > 0""#, vec![Bool]),
        (r#"count_nonzero f32[4] map="x0 > 0""#, vec![I64]),
        (r#"argmax i8[4] map="-x0""#, vec![I64]),
        // Of `then`: what the expression is, floats as the input.
        (r#"sum f16[4] then="r0 / 2""#, vec![F16]),
        (r#"max f32[4] then="r0 > 0""#, vec![Bool]),
        (r#"max i32[4] then="r0 + 1""#, vec![I32]),
        (r#"sum i8[4] then="r0 / 2""#, vec![I8]),
        (r#"sum i8[4] then="f32(r0) / 2""#, vec![F32]),
        (r#"argmax f32[4] then="r0 + 1""#, vec![I64]),
        (r#"argmax i8[4] then="r0 + 1""#, vec![I64]),
        (r#"argmax f16[4] then="f32(r0)""#, vec![F16]),
        (r#"sum,max f32[4] then="r0 - r1""#, vec![F32]),
        (r#"sum f32[4] then="r0, r0 > 0""#, vec![F32, Bool]),
        // Where one is a float, results of integers are.
        (r#"sum i32[4] then="r0, f32(r0)""#, vec![F64, F32]),
        (r#"sum i32[4] apply="x0 - i32(r0)""#, vec![I32]),
        (r#"sum f16[4] apply="x0 / r0""#, vec![F16]),
        // As said.
        ("mean i32[4] -> f32", vec![F32]),
        (r#"mean i32[4] then="r0" -> f64"#, vec![F64]),
        ("max,argmax f32[4] -> f64, i32", vec![F64, I32]),
        ("min,max f32[4,2] axes=[0] -> f64, @(2)", vec![F64, F32]),
        // Combiners: what finish gives.
        (r#"combiner(identity="0", lift="x0", combine="a0+b0") f16[4]"#, vec![F16]),
        (r#"combiner(identity="i64(0)", lift="i64(x0)", combine="a0+b0") f32[4]"#, vec![I64]),
        (r#"combiner(identity="0, i64(0)", lift="x0, i", combine="a0+b0, a1+b1") f32[4]"#, vec![F32, I64]),
        (r#"combiner(identity="0", lift="x0", combine="a0+b0", finish="a0 > n") f32[4]"#, vec![Bool]),
    ] {
        assert_eq!(outputs(text), expected, "{text}");
        let spec: Spec = text.parse().expect("just read");
        assert_eq!(spec.to_string().parse(), Ok(spec), "{text}");
    }
}

#[test]
fn shapes_of_outputs() {
    for (text, expected) in [
        ("min,max f32[4,5,6] axes=[1]", vec![vec![4, 6], vec![4, 6]]),
        ("max,argmax f32[4,5,6] axes=[1] keep_dims", vec![vec![4, 1, 6], vec![4, 1, 6]]),
        ("softmax f32[4,5] axes=[1]", vec![vec![4, 5]]),
        ("softmax f32[4,5] axes=[1] keep_dims", vec![vec![4, 5]]),
        (r#"sum f32[4,5] axes=[1] apply="x0 / r0""#, vec![vec![4, 5]]),
        (r#"sum f32[4,5], f32[5] axes=[1] map="x0*x1""#, vec![vec![4]]),
        (r#"sum f32[4,5] then="r0, -r0""#, vec![vec![], vec![]]),
    ] {
        let spec: Spec = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        let shapes: Vec<Vec<u64>> = spec.outputs().iter().map(|o| o.shape().to_vec()).collect();
        assert_eq!(shapes, expected, "{text}");
    }
}

/// The axes of operands by axis of input 0: none where they are broadcast.
#[test]
fn broadcast_axes() {
    let text = r#"sum f32[4,5,6], f32[6], f32[5,1], f32[4,1]:then axes=[1] keep_dims scalar s:f32 map="x0*x1*x2*s" then="r0+y0""#;
    assert!(text.parse::<Spec>().is_err(), "[4,1] is no shape that broadcasts to [4,1,6]");
    let text = r#"sum f32[4,5,6], f32[6], f32[5,1], f32[4,1,1]:then axes=[1] keep_dims scalar s:f32 map="x0*x1*x2*s" then="r0+y0""#;
    let spec: Spec = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
    let axes: Vec<[Option<usize>; 3]> = (0..5).map(|i| [0, 1, 2].map(|axis| spec.input_axis(i, axis))).collect();
    let none = [None; 3];
    let all = [Some(0), Some(1), Some(2)];
    assert_eq!(axes, [all, [None, None, Some(0)], [None, Some(0), None], [Some(0), None, None], none]);
    assert_eq!([0, 1, 2].map(|axis| spec.output_axis(0, axis)), [Some(0), None, Some(2)]);
    assert_eq!(spec.mapped(), [0, 1, 2, 4]);
}
