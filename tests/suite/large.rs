//! Counts at which a wrong accumulator shows.

use super::{Execute, data, run};
use cranefold::{Scalar, Spec};

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
        let spec: Spec = text.parse().expect("a spec");
        let (from, to) = (spec.inputs()[0].dtype(), spec.outputs()[0].dtype());
        let value = Scalar::parse(from, input).expect("a value");
        let count = spec.inputs()[0].span_elems() as usize;
        let bytes = data::bytes(from, [value]).repeat(count);
        let got = data::scalars(to, &run(execute, &spec, &[bytes])[0]);
        let expected = Scalar::parse(to, expected).expect("a value");
        assert!(got.iter().all(|&got| got == expected), "{text}: got {:?}, expected {expected}", &got[..1]);
    }
}

/// The variance of 2^20 elements with mean 10^6 and standard deviation 1, along inner, outer and middle axes,
/// against exact integers: f32 near 10^6 are multiples of 1/16.
pub fn check_variance(execute: Execute) {
    let mut state = 1u64;
    let mut uniform = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f64 / 2f64.powi(24)
    };
    let normal = |_| ((0..12).map(|_| uniform()).sum::<f64>() - 6.0 + 1e6) as f32;
    let x: Vec<f32> = (0..1 << 20).map(normal).collect();
    let bytes: Vec<u8> = x.iter().flat_map(|x| x.to_ne_bytes()).collect();
    for (shape, axis, inside) in [
        ("[1048576]", 0, 1),
        ("[524288,2]", 0, 2),
        ("[2,262144,2]", 1, 2),
        ("[4,262144]", 1, 1),
        ("[2,512,1024]", 1, 1024),
    ] {
        let spec: Spec = format!("var f32{shape} axes=[{axis}] -> f64").parse().expect("a spec");
        let count = spec.reduced_count() as usize;
        let got = data::scalars(cranefold::DType::F64, &run(execute, &spec, std::slice::from_ref(&bytes))[0]);
        for (output, got) in got.into_iter().enumerate() {
            let start = output / inside * inside * count + output % inside;
            let sixteenths = (0..count).map(|k| (f64::from(x[start + k * inside]) * 16.0) as i128);
            let (sum, squares) = sixteenths.fold((0i128, 0i128), |(s, q), x| (s + x, q + x * x));
            let n = count as i128;
            let exact = (n * squares - sum * sum) as f64 / (256 * n * n) as f64;
            let error = (got.as_f64() - exact).abs() / exact;
            assert!(error < 1e-6, "{spec}, output {output}: {got} for {exact}, off by {error:e}");
        }
    }
}
