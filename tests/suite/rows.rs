//! Every row and expression against the reference, on data that is not friendly: each result must be one that
//! the reduction tree can give.

use super::{Execute, data};
use cranefold::ir::ops::ROWS;
use cranefold::spec::{Operand, SpecError};
use cranefold::{DType, Scalar, Spec};
use cranefold_reference as reference;

/// Where the reduced axes lie.
const SHAPES: &[&str] = &[
    "[5]",
    "[3,130] axes=[1]",
    "[70,5] axes=[0]",
    "[2,67,9] axes=[1]",
    "[5,3,4]@(20,-5,1) axes=[0,2]",
    "[4,3,5]@cab axes=[0,2] keep_dims",
    "[3,4]@(1,0) axes=[1]",
    "[1,1] axes=[0]",
    "[3,0] axes=[1]",
    "[4200]",
];

/// Elements of one kind, the same in every run.
pub fn elements(dtype: DType, count: usize, kind: u64) -> Vec<Scalar> {
    let mut state = kind.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bits = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let special = [0.0, -0.0, 1.0, -1.0, 1e-45, -3.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    let one = |_| {
        let bits = bits();
        let unit = (bits >> 40) as f64 / 2f64.powi(24) - 0.5;
        if dtype == DType::Bool {
            return Scalar::from_bits(dtype, bits >> 9 & 1);
        }
        if dtype.is_int() {
            return match kind % 3 {
                0 => Scalar::int(dtype, i128::from(bits >> 7 & 7) - 3),
                1 => Scalar::from_bits(dtype, bits),
                _ => [Scalar::lowest(dtype), Scalar::highest(dtype), Scalar::int(dtype, 1)][bits as usize % 3],
            };
        }
        match kind % 6 {
            0 => Scalar::float(dtype, unit),
            1 => Scalar::float(dtype, 1000.0 + unit),
            2 => Scalar::float(dtype, unit * 200.0),
            3 => Scalar::from_bits(dtype, bits),
            4 => Scalar::float(dtype, special[bits as usize % 6]),
            _ => Scalar::float(dtype, special[bits as usize % 9]),
        }
    };
    (0..count).map(one).collect()
}

/// How many outputs were checked, and how many of those were allowed to be anything.
#[derive(Default)]
struct Tally {
    checked: usize,
    unbounded: usize,
    failed: Vec<String>,
}

impl Tally {
    /// Runs a spec on elements of one kind and checks every output.
    fn check(&mut self, execute: Execute, spec: &Spec, kind: u64) {
        let buffer = |salt: u64, operand: &Operand| {
            data::bytes(operand.dtype(), elements(operand.dtype(), operand.span_elems() as usize, kind + 6 * salt))
        };
        let inputs: Vec<Vec<u8>> = (0..).zip(spec.inputs()).map(|(i, operand)| buffer(i, operand)).collect();
        let old: Vec<Vec<u8>> = (0..).zip(spec.outputs()).map(|(i, operand)| buffer(100 + i, operand)).collect();
        let [ins, olds] = [&inputs, &old].map(|buffers| buffers.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let exact = reference::reduce_over(spec, &ins, &olds).expect("buffers of the right length");
        let got = execute(spec, &inputs, old.clone());
        for (output, (operand, exact)) in spec.outputs().iter().zip(&exact).enumerate() {
            for (place, (index, exact)) in places(operand).zip(exact).enumerate() {
                let got = Scalar::read(operand.dtype(), &got[output], index);
                self.checked += 1;
                self.unbounded += usize::from(kind < 3 && exact.error_bound(spec).is_infinite());
                if let Err(mismatch) = reference::check(spec, exact, got) {
                    self.failed.push(format!("{spec}: output {output}, element {place}, kind {kind}: {mismatch}"));
                }
            }
        }
    }

    /// That nothing failed, and that of ordinary elements few results may be anything.
    fn conclude(self) {
        let few = &self.failed[..self.failed.len().min(40)];
        assert!(few.is_empty(), "{} failed:\n{}", self.failed.len(), few.join("\n"));
        assert!(self.unbounded * 20 < self.checked, "{} of {} unbounded", self.unbounded, self.checked);
    }
}

/// The places of an operand's elements in its buffer, in row-major order.
fn places(operand: &Operand) -> impl Iterator<Item = usize> {
    let mut places = vec![operand.origin() as i64];
    for (axis, &extent) in operand.shape().iter().enumerate() {
        places = places.iter().flat_map(|p| (0..extent).map(move |i| p + operand.placement().along(axis, i))).collect();
    }
    places.into_iter().map(|p| p as usize)
}

/// Every row on every type that it takes.
pub fn check(execute: Execute) {
    let mut tally = Tally::default();
    for (r, row) in (0..).zip(ROWS) {
        let parameters: &[&str] = match row.params.iter().map(|p| p.name).collect::<Vec<_>>().as_slice() {
            [] => &[""],
            ["ddof"] => &["", "(ddof=1)", "(ddof=5)"],
            ["last"] => &["", "(last)"],
            ["q"] => &["(q=0.5)", "(q=0.9)"],
            ["p"] => &["(p=3)", "(p=2.5)"],
            ["p", "eps"] => &["(p=3,eps=0.5)", "(p=1.5)"],
            _ => &["", "(eps=1e-3)"],
        };
        for parameters in parameters {
            for dtype in ["f32", "f64", "f16", "bf16", "i8", "u8", "i32", "u64", "i64", "bool"] {
                for (s, shape) in (0..).zip(SHAPES) {
                    let text = format!("{}{parameters} {dtype}{shape}", row.name);
                    let Ok(spec) = text.parse::<Spec>() else { continue };
                    // Every kind for every row, and every kind for every shape.
                    for kind in [r + s, r + s + 3] {
                        tally.check(execute, &spec, kind % 6);
                    }
                }
            }
        }
    }
    tally.conclude();
}

/// Positions and counts in every integer type that holds them: the same numbers in each.
pub fn check_counts(execute: Execute) {
    let mut tally = Tally::default();
    for op in ["argmax", "argmin(last)", "count_nonzero", "max, argmax", "mode"] {
        for dtype in ["f32", "f64", "i8", "bool"] {
            for (shape, slice) in [("[2,100] axes=[1]", 100), ("[250,3] axes=[0]", 250), ("[1,300] axes=[1]", 300)] {
                for output in DType::ALL.into_iter().filter(|output| output.is_int()) {
                    let value = if op.contains(',') || op == "mode" { format!("{dtype}, ") } else { String::new() };
                    let text = format!("{op} {dtype}{shape} -> {value}{output}");
                    match text.parse::<Spec>() {
                        Ok(spec) => tally.check(execute, &spec, 3),
                        Err(error) => match error.kind() {
                            SpecError::TypeRefused { .. } => {}
                            SpecError::CountRange { most, .. } if !output.holds(*most) && slice > 127 => {}
                            _ => tally.failed.push(format!("{text}: {error}")),
                        },
                    }
                }
            }
        }
    }
    tally.conclude();
}

/// Specs with expressions, several reducers, several inputs and outputs.
const COMPOSED: &[&str] = &[
    "region x0:f32[16,4] axes=[1] { v0 = sum(x0); v1 = argmax(v0, axes=[0]); v1 }",
    "region x0:f32[3,4,5,6] axes=[3] { v0 = max(x0); v1 = argmin(v0, axes=[0,2]); v1 }",
    "region x0:f32[300,4] axes=[1] { v0 = sum(x0); v1 = argmax(v0, axes=[0]); v2 = mean(v0, axes=[0]); v1, v2 }",
    "max,argmax f32[33,100] axes=[1]",
    "mean,var f32[33,100] axes=[0]",
    "min,max f16[3,200] axes=[1] -> f32,f16",
    "log_sum_exp,max f32[9,77] axes=[1]",
    "sum,mean,min,max,argmin,count_nonzero f32[5,9,13] axes=[0,2]",
    "var,std(ddof=1),sum f64[200,3] axes=[0]",
    "sum,max i8[40,7] axes=[0] saturate -> i16,i8",
    "argmax,argmax(last),argmin i32[6,70] axes=[1] -> i32,i64,i32",
    "sum f32[64,51], f32[64,51] axes=[1] map=\"x0*x1\"",
    "sum f32[8,6,5,7] axes=[0,2,3] map=\"x0*x0\" then=\"sqrt(r0 / 280)\"",
    "mean f32[32,76], f32[32]:then axes=[1] then=\"max(r0, 0) + y0\"",
    "sum f32[6,51] axes=[1] scalar eps:f32 then=\"r0 / (r0 + eps)\"",
    "sum f32[6,51], f32[51], f32[6,1] axes=[0] map=\"fma(x0, x1, x2)\"",
    "max f32[6,51] axes=[1] map=\"exp(x0)\"",
    "sum f32[6,51] axes=[1] map=\"exp(-abs(x0))\"",
    "sum f64[6,51] axes=[1] map=\"log(abs(x0) + 1)\"",
    "l2 f32[6,51] axes=[1] map=\"pow(x0, 3)\"",
    "mean f32[6,51] axes=[1] map=\"pow(abs(x0), 0.3)\"",
    "argmax f32[6,51] axes=[1] map=\"x0*x0 - x0\"",
    "count_nonzero f32[6,51], f32[6,51] axes=[1] map=\"x0 - x1\"",
    "any f32[6,51], f32[51] axes=[1] map=\"x0 > x1\"",
    "all f64[6,51], f32[51] axes=[1] map=\"x0 <= f64(x1)\"",
    "sum f32[6,51] axes=[1] map=\"select(x0 > 0, x0, 0.25*x0)\"",
    "sum f32[6,51] axes=[1] then=\"r0 + d\"",
    "sum,max f32[6,51] axes=[1] then=\"r0 / r1 + d, r0 - r1\"",
    "sum i8[6,51] axes=[1] then=\"r0 * 3 - d\" -> i16",
    "sum i32[6,51] axes=[1] then=\"r0 / 7\"",
    "sum i32[6,51] axes=[1] then=\"r0 / 7\" -> f32",
    "mean i32[6,51], i16[6]:then axes=[1] saturate then=\"r0 + i64(y0)\" -> i8",
    "l1 u8[6,51] axes=[1] then=\"min(r0, 1000) - d\" saturate",
    "sum i64[6,51] axes=[1] map=\"x0*x0 + 1\"",
    "sum i8[6,51], u8[51] axes=[1] map=\"x0*x1\" -> i32",
    "max i32[6,51] axes=[1] map=\"x0/3*pow(x0, 3)\"",
    "any i32[6,51] axes=[1] map=\"x0 > 100 and not (x0 == 3)\"",
    "sum f32[8,100] axes=[1] apply=\"x0 / r0\"",
    "max,min f32[8,9,10] axes=[0,2] apply=\"(x0 - r1) / (r0 - r1)\"",
    "l2 f32[8,100], f32[100] axes=[1] scalar eps:f32 apply=\"x0 / max(r0, eps) * x1\"",
    "max i32[8,100] axes=[0] apply=\"i64(x0) - r0\"",
    "max i64[8,100] axes=[0] apply=\"x0 - r0\"",
    "mean f16[8,100] axes=[1] apply=\"x0 - r0\" -> f32",
    "argmax f32[8,100] axes=[1] apply=\"select(r0 > 50, x0, 0)\"",
    "sum f32[8,100], f32[8,100] axes=[1] map=\"x0*x1\" apply=\"x0 * r0 + x1\"",
    "softmax f32[8,100], f32[100] axes=[1] map=\"x0*x1\"",
    "softmax f32[8,100] axes=[0] map=\"x0*x0\"",
    "layer_norm(eps=1e-5) f32[8,100], f32[100], f32[100] axes=[1]",
    "layer_norm(eps=1e-5) f16[8,100], f32[100] axes=[1]",
    "rms_norm(eps=1e-6) f32[8,100], f32[100] axes=[1]",
    "rms_norm(eps=1e-6) bf16[100,8], f32[100,1] axes=[0]",
    "combiner(identity=\"0, 0\", lift=\"x0, x0*x0\", combine=\"a0 + b0, a1 + b1\", finish=\"a1/n - a0*a0/n/n\", commutative) f32[6,51] axes=[1]",
    "combiner(identity=\"i64(0)\", lift=\"i64(x0)\", combine=\"a0 + b0\", commutative) i32[6,51] axes=[1]",
    "combiner(identity=\"i64(0)\", lift=\"i64(1)\", combine=\"a0 + b0\") f32[6,51] axes=[1] then=\"r0 + 1\"",
    "combiner(identity=\"inf, i64(-1)\", lift=\"x0, i\", combine=\"select(b0 < a0, b0, a0), select(b0 < a0, b1, a1)\") f32[6,51] axes=[1]",
    "combiner(identity=\"1, 0\", lift=\"x0, x1\", combine=\"a0*b0, a1*b0 + b1\") f32[6,51], f32[6,51] axes=[1]",
    "sum,combiner(identity=\"0\", lift=\"x0\", combine=\"max(a0, abs(b0))\", commutative) f32[6,51] axes=[1]",
];

/// Runs the list.
pub fn check_composed(execute: Execute) {
    let mut tally = Tally::default();
    for text in COMPOSED {
        match text.parse() {
            Ok(spec) => (0..6).for_each(|kind| tally.check(execute, &spec, kind)),
            Err(error) => tally.failed.push(format!("{text}: {error}")),
        }
    }
    tally.conclude();
}
