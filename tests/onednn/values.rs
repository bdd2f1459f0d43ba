//! Reductions worked out by NumPy (values.py), buffer by buffer.

use crate::problem::{Problem, Tensor, cases, dtype, ints, text, texts};
use crate::run::{Tally, run};
use cranefold::{DType, Scalar, Spec};
use cranefold_fuzz::data::Buffer;
use serde_json::Value;

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).expect("ASCII"), 16).expect("two digits");
    hexadecimal.as_bytes().chunks(2).map(byte).collect()
}

/// Little-endian bytes of elements, in the machine's order.
fn native(mut bytes: Vec<u8>, dtype: DType) -> Vec<u8> {
    if cfg!(target_endian = "big") {
        bytes.chunks_mut(dtype.bytes() as usize).for_each(<[u8]>::reverse);
    }
    bytes
}

/// How many numbers of the type lie between two; none where one is no number and the other is.
fn ulps_between(a: Scalar, b: Scalar) -> Option<u64> {
    let line = |v: Scalar| match v.bits() >> (v.dtype().bits() - 1) {
        0 => v.bits() as i64,
        _ => -((v.bits() & !(1 << (v.dtype().bits() - 1))) as i64),
    };
    match a == b {
        true => Some(0),
        false if a.dtype().is_int() || a.is_nan() || b.is_nan() => None,
        false => Some(line(a).abs_diff(line(b))),
    }
}

fn problem(case: &Value) -> Problem {
    let number = |name: &str| case[name].as_f64().expect("a number") as f32;
    let (from, to) = text(&case["dts"]).split_once("->").expect("two types");
    Problem {
        alg: text(&case["alg"]).into(),
        p: number("p"),
        eps: number("eps"),
        src: Tensor::new(dtype(from), &ints(&case["src"]), text(&case["stag"])),
        dst: Tensor::new(dtype(to), &ints(&case["dst"]), text(&case["dtag"])),
        post_ops: text(&case["post_ops"]).into(),
    }
}

/// Runs a case and compares the whole destination.
fn compare(spec: &Spec, case: &Value) -> Result<(), String> {
    let buffers = [&case["input"]].into_iter().chain(case["operands"].as_array().expect("a list"));
    let operands = spec.inputs().iter().zip(buffers);
    let inputs: Vec<Buffer> =
        operands.map(|(o, hex)| Buffer::holding(&native(bytes(text(hex)), o.dtype()), 1)).collect();
    let dtype = spec.outputs()[0].dtype();
    let mut output = [Buffer::holding(&native(bytes(text(&case["old"])), dtype), 3)];
    run(spec, &inputs, &mut output)?;
    let expected = native(bytes(text(&case["expected"])), dtype);
    if expected.len() != output[0].bytes().len() || !output[0].guards_hold() {
        return Err(format!("{spec}: {} bytes expected", expected.len()));
    }
    for place in 0..expected.len() / dtype.bytes() as usize {
        let (got, wanted) = (Scalar::read(dtype, output[0].bytes(), place), Scalar::read(dtype, &expected, place));
        if ulps_between(got, wanted).is_none_or(|ulps| ulps > case["ulps"].as_u64().expect("a number")) {
            return Err(format!("{spec}: at {place} {got}, NumPy {wanted}, of {}", case["ulps"]));
        }
    }
    Ok(())
}

#[test]
fn values_of_numpy() {
    let mut tally = Tally::default();
    for case in cases(include_str!("values.json")) {
        tally.checked += 1;
        let done = match problem(&case).translate() {
            Ok(spec) => compare(&spec, &case),
            Err(error) => Err(format!("{case}: {error}")),
        };
        done.unwrap_or_else(|message| tally.fail(message));
    }
    assert_eq!(tally.conclude(), 270);
}

/// What values.py ran through is what the published cases have, and more.
#[test]
fn all_algorithms_and_types_are_among_them() {
    let own = cases(include_str!("values.json"));
    let published = cases(crate::published::CASES);
    for (list, one) in [("algs", "alg"), ("dts", "dts")] {
        for name in texts(&published[0][list]) {
            assert!(own.iter().filter(|case| case[one] == name).count() > 9, "{name}");
        }
    }
}
