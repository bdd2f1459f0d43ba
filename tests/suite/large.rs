//! Counts at which a wrong accumulator shows.

use super::{Execute, data};
use cranefold::{Reduction, Scalar};

/// All elements the same value, so that every order of a right tree gives the exact result.
const CASES: &[(&str, &str, &str)] = &[
    ("sum f32[16777280]", "1", "16777280"),
    ("sum f32[16777280,1] axes=[0]", "1", "16777280"),
    ("sum bf16[70000]", "1", "70144"),
    ("sum bf16[70000] -> f32", "1", "70000"),
    ("sum f16[70000] -> f32", "1", "70000"),
    ("sum bf16[70000,2] axes=[0] -> f32", "1", "70000"),
    ("sum i8[70000] -> i32", "-128", "-8960000"),
    ("sum u8[70000] saturate", "255", "255"),
    ("mean u8[70000]", "255", "255"),
    ("mean i64[70000]", "9223372036854775807", "9223372036854775807"),
    ("l2 i16[65536]", "-32768", "32767"),
    ("l2 i16[65536] -> i32", "-32768", "8388608"),
    ("prod i32[70000]", "-1", "1"),
    ("prod f32[70001]", "-1", "-1"),
    ("max f32[70000]", "-inf", "-inf"),
];

/// Runs the table.
pub fn check(execute: Execute) {
    for &(text, input, expected) in CASES {
        let spec: Reduction = text.parse().expect("a spec");
        let (from, to) = (spec.inputs()[0].dtype(), spec.outputs()[0].dtype());
        let value = Scalar::parse(from, input).expect("a value");
        let count = spec.inputs()[0].span_elems() as usize;
        let bytes = data::bytes(from, [value]).repeat(count);
        let got = data::scalars(to, &execute(&spec, &[bytes])[0]);
        let expected = Scalar::parse(to, expected).expect("a value");
        assert!(got.iter().all(|&got| got == expected), "{text}: got {:?}, expected {expected}", &got[..1]);
    }
}
