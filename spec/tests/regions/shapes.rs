//! Shapes, axes and types of a region's operands.

use super::spec;
use cranefold_ir::region::Reach::{Element, Scalar, Slice, Total};
use cranefold_spec::DType::{Bf16, Bool, F32, F64, I8, I32, I64, U64};
use cranefold_spec::{Role, Spec};

#[test]
fn operands_broadcast_and_reach() {
    let spec = spec(
        "region x:f32[6,5,1], w:f32[7], b:f32[5,1], one:f32[1,1,1] axes=[0,2] scalar k:f32 {
           s = sum(x * w * b)
           x * k + one, s, w, sum(s, axes=[1]) * one * k, x + w
         }",
    );
    assert_eq!((spec.shape(), spec.reduced(), spec.rank()), (&[6, 5, 7][..], &[true, false, true][..], 3));
    assert_eq!(spec.reduced_count(), 42);
    assert_eq!(spec.expression_names(), ["x", "w", "b", "one", "k"]);
    let roles: Vec<&Role> = spec.inputs().iter().map(|input| input.role()).collect();
    assert_eq!(roles[..4], [&Role::Element; 4]);
    assert_eq!(roles[4], &Role::Scalar("k".into()));
    let body = spec.body().expect("a body");
    let reach: Vec<_> = body.inputs.iter().map(|input| input.reach).collect();
    assert_eq!(reach, [Element, Element, Slice, Scalar, Scalar]);
    assert_eq!(body.reaches().outputs, [Element, Slice, Element, Total, Element]);
    let shapes: Vec<&[u64]> = spec.outputs().iter().map(|output| output.shape()).collect();
    assert_eq!(shapes, [&[6, 5, 7][..], &[5], &[6, 5, 7], &[], &[6, 5, 7]]);
    let axes = |output: usize| [0, 1, 2].map(|axis| spec.output_axis(output, axis));
    assert_eq!([axes(0), axes(1), axes(3)], [[Some(0), Some(1), Some(2)], [None, Some(0), None], [None; 3]]);
    let inputs = |input: usize| [0, 1, 2].map(|axis| spec.input_axis(input, axis));
    assert_eq!(
        [inputs(0), inputs(1), inputs(2), inputs(3), inputs(4)],
        [[Some(0), Some(1), None], [None, None, Some(0)], [None, Some(0), None], [None; 3], [None; 3]]
    );
    assert_eq!(spec.mapped(), [0, 1]);
}

#[test]
fn kept_axes_stay_as_ones() {
    let spec = spec(
        "region x:f32[6,5,7] axes=[2] keep_dims { s = sum(x); s, t, x }".replace("t,", "sum(s, axes=[1]),").as_str(),
    );
    let shapes: Vec<&[u64]> = spec.outputs().iter().map(|output| output.shape()).collect();
    assert_eq!(shapes, [&[6, 5, 1][..], &[6, 1, 1], &[6, 5, 7]]);
    assert_eq!([0, 1, 2].map(|axis| spec.output_axis(1, axis)), [Some(0), None, None]);
    assert_eq!([0, 1, 2].map(|axis| spec.output_axis(0, axis)), [Some(0), Some(1), None]);
    // An extent of 1 is reduced as any other, and empty extents broadcast.
    let one = self::spec("region x:f32[8,1], w:f32[1] axes=[1] { x / max(x), w }");
    assert_eq!([one.outputs()[0].shape(), one.outputs()[1].shape()], [[8, 1]; 2]);
    let none = self::spec("region x:f32[8,0], w:f32[1] axes=[1] { x * w, sum(x), sum(sum(x), axes=[0]) }");
    assert_eq!((none.shape(), none.outputs()[1].shape(), none.outputs()[2].shape()), (&[8, 0][..], &[8][..], &[][..]));
}

#[test]
fn types_of_outputs() {
    for (text, dtypes) in [
        (
            "region x:i8[4,5] axes=1 { sum(x), min(x), argmax(x), count_nonzero(x), x + 1, f32(x) / 2 }",
            &[I64, I32, I64, I64, I32, F32][..],
        ),
        (
            "region x:u32[4,5] axes=1 { prod(x), max(x), bit_xor(x), sum_squares(x) }",
            &[U64, DTypeOf::U32, DTypeOf::U32, U64],
        ),
        ("region x:bool[4,5] axes=1 { any(x), all(x), max(x), count_nonzero(x), x }", &[Bool, Bool, Bool, I64, Bool]),
        ("region x:bf16[4,5] axes=1 { mean(x), bf16(x), x, i8(x) }", &[F32, Bf16, F32, I8]),
        ("region x:bf16[4,5], w:f64[5] axes=1 { mean(x), x * w, mean(f32(w)) }", &[F64, F64, F64]),
        (
            "region x:f32[4,5] axes=1 acc=f64 { mean(x), x, position(0), position(1) + 1, 3, mean(x) > 0 }",
            &[F64, F64, I64, I64, F64, Bool],
        ),
        (
            "region x:i16[4,5] axes=1 { i32(old(0)) + min(x), i64(sum(x) + old(1)), f32(mean(f32(x)) + old(2)) }",
            &[I32, I64, F32],
        ),
    ] {
        let text = text.replace("i32(old(0)) + min(x)", "i32(old(0) + min(x))");
        let spec = spec(&text);
        let found: Vec<_> = spec.outputs().iter().map(|output| output.dtype()).collect();
        assert_eq!(found, dtypes, "{text}");
    }
}

use cranefold_spec::DType as DTypeOf;

#[test]
fn accumulators() {
    for (text, accumulator) in [
        ("region x:f16[4] { sum(x) }", F32),
        ("region x:i8[4] { sum(x) }", F32),
        ("region x:i8[4] acc=f64 { mean(f32(x)) }", F64),
        ("region x:f32[4] scalar k:f64 { mean(x) * k }", F64),
    ] {
        assert_eq!(spec(text).accumulator(), Some(accumulator), "{text}");
    }
}

#[test]
fn one_output_runs_in_place_of_input_0() {
    for (text, in_place) in [
        ("region x:f32[4,6] axes=[1] { x / sum(x) }", true),
        ("region x:f32[4,6] axes=[] { x + 1 }", true),
        ("region x:f32[4,6]@ba axes=[1] { x / sum(x) @ba }", true),
        ("region x:f32[4,6] axes=[1] { x / sum(x) @ba }", false),
        ("region x:f16[4,6] axes=[1] { x / sum(x) }", false),
        ("region x:f32[1,6], y:f32[4,6] axes=[1] { x * y / sum(x) }", false),
        ("region x:f32[4,6] axes=[1] { x / sum(x), sum(x) }", false),
        ("region x:f32[4,1] axes=[] { x * 2 }", true),
        ("region x:f32[4,6] axes=[0] { sum(x) }", false),
    ] {
        assert_eq!(spec(text).runs_in_place(), in_place, "{text}");
    }
    assert!(!self::spec("sum f32[4,6] axes=[]").runs_in_place());
    let _: Spec = spec("sum f32[4]");
}
