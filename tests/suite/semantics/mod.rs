//! The corner cases of every op: a spec, its input buffers, the exact bits of its output buffers.
//!
//! Only results that the spec decides to the bit are here, so that one table serves every executor.
//! The answers to the questions are those of DESIGN.md's table of semantics.

mod expressions;
mod extremes;
mod moments;
mod normalize;
mod plain;
mod selections;

pub use plain::{check_nan_positions, check_truth_bytes};

use super::{Execute, data};
use cranefold::{DType, Spec};

/// Spec, inputs, outputs; the values in the order of the buffers, with `;` between buffers. After `|` stands
/// what the outputs' buffers hold before; else that is zeros.
pub type Case = (&'static str, &'static str, &'static str);

fn buffers(dtypes: impl Iterator<Item = DType>, text: &str) -> Vec<Vec<u8>> {
    let texts: Vec<&str> = text.split(';').collect();
    let dtypes: Vec<DType> = dtypes.collect();
    assert_eq!(texts.len(), dtypes.len(), "buffers in `{text}`");
    dtypes.into_iter().zip(texts).map(|(dtype, text)| data::bytes(dtype, data::parse(dtype, text))).collect()
}

/// Runs the tables.
pub fn check(execute: Execute) {
    let mut failed = vec![];
    let tables =
        [plain::CASES, extremes::CASES, moments::CASES, normalize::CASES, expressions::CASES, selections::CASES];
    for &(text, given, expected) in tables.into_iter().flatten() {
        let spec: Spec = match text.parse() {
            Ok(spec) => spec,
            Err(error) => {
                failed.push(format!("{text}: {error}"));
                continue;
            }
        };
        let (ins, outs) = (|| spec.inputs().iter().map(|o| o.dtype()), || spec.outputs().iter().map(|o| o.dtype()));
        let (given, old) = given.split_once('|').map_or((given, None), |(given, old)| (given, Some(old)));
        let inputs = buffers(ins(), given);
        for (operand, bytes) in spec.inputs().iter().zip(&inputs) {
            assert_eq!(bytes.len() as u64, operand.span_bytes(), "elements of {text}");
        }
        let zeros = || spec.outputs().iter().map(|o| vec![0; o.span_bytes() as usize]).collect();
        let got = execute(&spec, &inputs, old.map_or_else(zeros, |old| buffers(outs(), old)));
        for ((dtype, got), expected) in outs().zip(got).zip(expected.split(';')) {
            let (got, expected) = (data::scalars(dtype, &got), data::parse(dtype, expected));
            if got != expected {
                failed.push(format!("{text} of {given}: got {got:?}, expected {expected:?}"));
            }
        }
        assert_eq!(expected.split(';').count(), spec.outputs().len(), "outputs of {text}");
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// What has no value over nothing is refused where something would have to be written.
#[test]
fn nothing_to_point_at_is_refused() {
    for text in ["argmax f32[0]", "argmin i32[2,0] axes=[1]", "ptp i32[0]", "mean,max i32[0]", "max,argmax f32[0]"] {
        let error = text.parse::<Spec>().expect_err(text).to_string();
        assert!(error.contains("nothing") || error.contains("extent 0"), "{text}: {error}");
    }
}
