//! The corner cases of every op: a spec, its input buffer, the exact bits of its output buffer.
//!
//! Only results that the spec decides to the bit are here, so that one table serves every executor.
//! The answers to the questions are those of DESIGN.md's table of semantics.

use super::{Execute, data};
use cranefold::{Reduction, Scalar};

/// Spec, input, output; the values in the order of the buffers.
const CASES: &[(&str, &str, &str)] = &[
    // Sums: signed zeros, nothing, what is no number.
    ("sum f32[2]", "-0 -0", "-0"),
    ("sum f32[2]", "-0 0", "0"),
    ("sum f32[2]", "1 -1", "0"),
    ("sum f32[0]", "", "0"),
    ("sum f32[130]", "130*-0", "-0"),
    ("sum f32[3]", "inf 1 -inf", "nan"),
    ("sum f32[3]", "inf 1 2", "inf"),
    ("sum f32[2]", "nan 1", "nan"),
    ("sum f32[2]", "bits(0xffc00001) 1", "nan"),
    ("sum f32[1]", "bits(0x7f800001)", "nan"),
    ("sum f64[1]", "bits(0xfff8000000000001)", "nan"),
    ("sum f32[2]", "1e-45 1e-45", "3e-45"),
    ("sum f32[0,3] axes=[1]", "", ""),
    ("sum f32[2,0] axes=[1]", "", "0 0"),
    ("sum f32[2,0] axes=[1] keep_dims", "", "0 0"),
    ("sum f32[]", "7", "7"),
    // Narrow floats accumulate in f32; wider on request; one rounding at the end.
    ("sum f16[4096]", "4096*1", "4096"),
    ("sum f16[2]", "60000 60000", "inf"),
    ("sum f16[2] -> f32", "60000 60000", "120000"),
    ("sum bf16[1000] -> f32", "1000*1", "1000"),
    ("sum f32[3] acc=f64", "16777216 1 1", "16777218"),
    ("sum f32[2] acc=f64 -> f64", "16777216 1", "16777217"),
    ("sum f16[2] acc=f64 -> f64", "65504 0.00006103515625", "65504.00006103515625"),
    ("max f64[1] -> f16", "1.0004882812490905", "1"),
    ("max f64[1] -> bf16", "1.00390625000000022", "1.0078125"),
    ("max f64[1] -> f32", "1e300", "inf"),
    ("mean f32[2]", "-0 -0", "-0"),
    ("mean f32[4]", "1 2 3 4", "2.5"),
    ("mean f32[0]", "", "nan"),
    ("mean f32[2,0] axes=[1]", "", "nan nan"),
    // Integers: modular unless something asks for the true value.
    ("sum i32[2]", "16777217 1", "16777218"),
    ("sum i8[2]", "127 1", "-128"),
    ("sum i8[2] saturate", "127 1", "127"),
    ("sum i8[4] saturate", "127 127 -127 -127", "0"),
    ("sum i8[2] -> i32", "127 1", "128"),
    ("sum i8[2] -> f32", "127 1", "128"),
    ("sum i32[2] -> u8", "-1 -1", "254"),
    ("sum i32[2] saturate -> u8", "-1 -1", "0"),
    ("sum u8[2] -> i8", "200 100", "44"),
    ("sum u8[2] saturate -> i8", "200 100", "127"),
    ("sum u16[257]", "257*65535", "65279"),
    ("sum i64[2]", "9223372036854775807 1", "-9223372036854775808"),
    ("sum i64[2] saturate", "9223372036854775807 1", "9223372036854775807"),
    ("sum i64[3] saturate", "9223372036854775807 1 -2", "9223372036854775806"),
    ("sum i64[2] -> f64", "9223372036854775807 1", "9223372036854775808"),
    ("sum u64[3] saturate", "18446744073709551615 1 1", "18446744073709551615"),
    ("sum u64[2] -> f32", "18446744073709551615 18446744073709551615", "36893488147419103232"),
    ("sum i64[2] saturate -> u32", "-9223372036854775808 -9223372036854775808", "0"),
    ("sum i32[0]", "", "0"),
    // To the nearest f64 first, so that this is rounded twice.
    ("sum i64[1] -> f32", "9007199791611905", "9007199254740992"),
    ("prod i8[2]", "16 16", "0"),
    ("prod i8[2] saturate", "16 16", "127"),
    ("prod i8[2] saturate", "-16 16", "-128"),
    ("prod i32[0]", "", "1"),
    ("prod i64[4] saturate", "1099511627776 1099511627776 1099511627776 0", "0"),
    ("prod i64[3] saturate", "-9223372036854775808 -1 1", "9223372036854775807"),
    ("prod i64[3] saturate", "-9223372036854775808 -1 -1", "-9223372036854775808"),
    ("prod u64[2] -> f64", "1099511627776 1099511627776", "18446744073709551616"),
    ("prod i64[2] -> f64", "1099511627776 -1099511627776", "-18446744073709551616"),
    ("prod i64[3]", "4294967296 4294967297 3", "12884901888"),
    ("prod f32[0]", "", "1"),
    ("prod f32[3]", "-2 4 0.5", "-4"),
    ("prod f32[3]", "-0 4 0.5", "-0"),
    ("prod f32[2]", "0 inf", "nan"),
    ("prod f32[2]", "-2 inf", "-inf"),
    ("mean i32[2]", "1 2", "1"),
    ("mean i32[2]", "-1 -2", "-1"),
    ("mean i32[2] trunc", "-1 -2", "-1"),
    ("mean i32[2] round_half_even", "1 2", "2"),
    ("mean i32[2] round_half_even", "2 3", "2"),
    ("mean i32[2] round_half_even", "-1 -2", "-2"),
    ("mean i32[2] round_half_even", "-2 -3", "-2"),
    ("mean i32[3] round_half_even", "1 2 2", "2"),
    ("mean i64[2]", "9223372036854775807 9223372036854775807", "9223372036854775807"),
    ("mean i64[2]", "-9223372036854775808 -9223372036854775808", "-9223372036854775808"),
    ("mean i64[3]", "9223372036854775807 9223372036854775807 9223372036854775804", "9223372036854775806"),
    ("mean u64[3]", "18446744073709551615 18446744073709551615 18446744073709551614", "18446744073709551614"),
    ("mean u64[2] -> i8", "18446744073709551615 1", "127"),
    ("mean i32[2] -> u8", "-5 -7", "0"),
    ("mean i32[2] -> f32", "1 2", "1.5"),
    ("mean u8[3] -> f32", "1 1 2", "1.3333334"),
    ("mean i32[0] -> f32", "", "nan"),
    ("mean i32[0,0] axes=[1]", "", ""),
    ("l1 i8[1]", "-128", "-128"),
    ("l1 i8[1] saturate", "-128", "127"),
    ("l1 i8[1] -> u8", "-128", "128"),
    ("l1 i64[1] saturate", "-9223372036854775808", "9223372036854775807"),
    ("l1 i64[1] -> u64", "-9223372036854775808", "9223372036854775808"),
    ("l1 i64[2] -> f64", "-9223372036854775808 -9223372036854775808", "18446744073709551616"),
    ("l1 f32[3]", "-1 2 -3", "6"),
    ("l1 f32[2]", "-0 -0", "0"),
    ("l1 f32[0]", "", "0"),
    ("l1 f32[2]", "-inf 1", "inf"),
    ("l2 i32[2]", "3 4", "5"),
    ("l2 i32[2]", "1 1", "1"),
    ("l2 i32[4]", "1 1 1 2", "2"),
    ("l2 i32[4] round_half_even", "1 1 1 2", "3"),
    ("l2 i32[2] round_half_even", "1 2", "2"),
    ("l2 i8[2]", "127 127", "127"),
    ("l2 i8[2] -> i16", "127 127", "179"),
    ("l2 u64[1]", "18446744073709551615", "18446744073709551615"),
    ("l2 u64[2]", "18446744073709551615 18446744073709551615", "18446744073709551615"),
    ("l2 i64[1]", "-9223372036854775808", "9223372036854775807"),
    ("l2 i64[1] -> u64", "-9223372036854775808", "9223372036854775808"),
    ("l2 i32[2] -> f32", "1 1", "1.4142135"),
    ("l2 i32[0]", "", "0"),
    ("sum_squares i16[2]", "300 400", "-12144"),
    ("sum_squares i16[2] saturate", "300 400", "32767"),
    ("sum_squares i16[2] -> i32", "300 400", "250000"),
    ("sum_squares u64[2] saturate", "18446744073709551615 18446744073709551615", "18446744073709551615"),
    ("sum_squares i64[2] -> f64", "-9223372036854775808 -9223372036854775808", "1.7014118346046923e38"),
    ("sum_squares f32[3]", "1 -2 3", "14"),
    ("sum_squares f32[1]", "1e30", "inf"),
    ("l2 f32[2]", "3 -4", "5"),
    ("l2 f32[1]", "1e30", "inf"),
    ("l2 f32[1] acc=f64", "1e30", "1e30"),
    ("l2 f16[4]", "4*300", "600"),
    ("l2 f32[2]", "nan inf", "nan"),
    ("l2 f32[2]", "-inf 1", "inf"),
    ("l2 f32[0]", "", "0"),
    // Least and greatest.
    ("max f32[3]", "1 nan 2", "nan"),
    ("max f32[2]", "-inf -inf", "-inf"),
    ("min f32[2]", "inf inf", "inf"),
    ("max f32[2]", "-0 0", "0"),
    ("max f32[2]", "0 -0", "0"),
    ("min f32[2]", "-0 0", "-0"),
    ("min f32[2]", "0 -0", "-0"),
    ("max f32[2]", "-1e-45 -1e-44", "-1e-45"),
    ("max f16[2]", "-65504 -inf", "-65504"),
    ("min bf16[3]", "1 bits(0xff81) 2", "nan"),
    ("max f32[0]", "", "-inf"),
    ("min f32[0]", "", "inf"),
    ("max f16[0]", "", "-inf"),
    ("min bf16[0]", "", "inf"),
    ("max i8[0]", "", "-128"),
    ("min i8[0]", "", "127"),
    ("max u32[0]", "", "0"),
    ("min u64[0]", "", "18446744073709551615"),
    ("max i64[0]", "", "-9223372036854775808"),
    ("max i32[0] -> i8", "", "-128"),
    ("max u8[0] -> i32", "", "0"),
    ("max bool[0]", "", "false"),
    ("min bool[0]", "", "true"),
    ("max bool[2]", "false true", "true"),
    ("min bool[2]", "false true", "false"),
    ("max i32[2] -> i8", "300 -300", "127"),
    ("min i32[2] -> u8", "300 -300", "0"),
    ("max i32[2] -> f32", "16777217 3", "16777216"),
    ("max u64[2]", "18446744073709551615 1", "18446744073709551615"),
    ("min i64[2]", "-9223372036854775808 1", "-9223372036854775808"),
    // Floats that become integers.
    ("max f32[2] trunc -> i32", "2.9 -5", "2"),
    ("min f32[2] trunc -> i32", "2.9 -5.9", "-5"),
    ("max f32[2] round_half_even -> i32", "2.5 1", "2"),
    ("max f32[2] round_half_even -> i32", "3.5 1", "4"),
    ("max f32[1] trunc -> i8", "1e9", "127"),
    ("max f32[1] trunc -> u8", "-1e9", "0"),
    ("max f32[1] trunc -> i32", "nan", "0"),
    ("max f32[1] trunc -> i16", "-inf", "-32768"),
    ("max f32[1] trunc -> u64", "inf", "18446744073709551615"),
    ("mean f32[0] trunc -> i32", "", "0"),
    // Truth.
    ("any bool[3]", "false false true", "true"),
    ("any bool[3]", "3*false", "false"),
    ("all bool[3]", "false true true", "false"),
    ("all bool[3]", "3*true", "true"),
    ("any bool[0]", "", "false"),
    ("all bool[0]", "", "true"),
    // Over no axes: a copy, or groups of one.
    ("sum f32[4] axes=[]", "1 bits(0xffc00001) -0 1e-45", "1 nan -0 1e-45"),
    ("l1 f32[2] axes=[]", "-1 2", "-1 2"),
    ("l1 f32[2] axes=[] empty_axes=lift", "-1 2", "1 2"),
    ("l1 f32[]", "-3", "-3"),
    ("l1 f32[] empty_axes=lift", "-3", "3"),
    ("sum_squares i32[2] axes=[]", "-3 2", "-3 2"),
    ("sum_squares i32[2] axes=[] empty_axes=lift", "-3 2", "9 4"),
    ("log_sum f32[2] axes=[]", "5 -5", "5 -5"),
    ("log_sum f32[2] axes=[] empty_axes=lift", "1 -5", "0 nan"),
    ("log_sum_exp f32[2] axes=[]", "5 -5", "5 -5"),
    ("lp(p=3) f32[2] axes=[]", "-3 5", "-3 5"),
    ("lp_max(p=1,eps=4) f32[2] axes=[]", "-3 5", "4 5"),
    ("mean i32[2] axes=[] -> f32", "16777217 -3", "16777216 -3"),
    ("sum i32[2] axes=[] -> i8", "300 -300", "44 -44"),
    ("sum i32[2] axes=[] saturate -> i8", "300 -300", "127 -128"),
    ("max i32[2] axes=[] -> i8", "300 -300", "127 -128"),
    ("sum f32[3] axes=[] trunc -> i8", "300.5 nan -2.5", "127 0 -2"),
    ("sum f32[3] axes=[] round_half_even -> i8", "2.5 3.5 -2.5", "2 4 -2"),
    ("sum f64[2] axes=[] -> f16", "1.0004882812490905 65520", "1 inf"),
    ("all bool[2] axes=[]", "true false", "true false"),
    ("max f32[0] axes=[]", "", ""),
    // Logarithms of sums.
    ("log_sum f32[2]", "1 0", "0"),
    ("log_sum f32[2]", "1 -1", "-inf"),
    ("log_sum f32[2]", "-1 0", "nan"),
    ("log_sum f32[2]", "-0 -0", "-inf"),
    ("log_sum f32[2]", "inf 1", "inf"),
    ("log_sum f32[0]", "", "-inf"),
    ("log_sum_exp f32[0]", "", "-inf"),
    ("log_sum_exp f32[2]", "-inf -inf", "-inf"),
    ("log_sum_exp f32[2]", "-inf 5", "5"),
    ("log_sum_exp f32[3]", "inf -inf 1", "inf"),
    ("log_sum_exp f32[3]", "inf nan 1", "nan"),
    ("log_sum_exp f32[1]", "0", "0"),
    ("log_sum_exp f32[1]", "inf", "inf"),
    ("log_sum_exp f32[1]", "-inf", "-inf"),
    ("log_sum_exp f32[1]", "nan", "nan"),
    ("log_sum_exp f32[1]", "-3.4028234663852886e38", "-3.4028234663852886e38"),
    ("log_sum_exp f32[2]", "inf inf", "inf"),
    ("log_sum_exp f32[2]", "-inf nan", "nan"),
    ("log_sum_exp f64[2]", "inf -inf", "inf"),
    ("log_sum_exp f16[2]", "inf -inf", "inf"),
    ("log_sum_exp f16[3]", "inf nan -inf", "nan"),
    // Blocks of 1,024 elements with other greatest ones.
    ("log_sum_exp f32[4000]", "4000*-inf", "-inf"),
    ("log_sum_exp f32[4000]", "4000*inf", "inf"),
    ("log_sum_exp f32[4000]", "1500*-inf inf 2499*-inf", "inf"),
    ("log_sum_exp f32[4000]", "inf 1500*-1e4 2499*1e4", "inf"),
    ("log_sum_exp f32[4000]", "3999*-inf 7", "7"),
    ("log_sum_exp f32[4000]", "1500*-1e4 1e4 2499*-inf", "1e4"),
    ("log_sum_exp f32[4000]", "1500*inf nan 2499*-inf", "nan"),
    ("log_sum_exp f64[4000]", "1500*-inf inf 2499*-inf", "inf"),
    ("log_sum_exp f64[4000]", "1500*-1e4 1e4 2499*-inf", "1e4"),
    ("log_sum_exp f32[1]", "-1000", "-1000"),
    ("log_sum_exp f32[2]", "1e30 -1e30", "1e30"),
    ("log_sum_exp f32[2]", "3e38 -3e38", "3e38"),
    ("log_sum_exp f64[2]", "1e308 -1e308", "1e308"),
    // Norms.
    ("lp(p=1) f32[2]", "-3 5", "8"),
    ("lp(p=2) f32[2]", "-3 4", "5"),
    ("lp(p=3) f32[0]", "", "0"),
    ("lp(p=3) f32[2]", "-inf 1", "inf"),
    ("lp(p=3) f32[2]", "nan inf", "nan"),
    ("lp_power_p_max(p=3,eps=1) f32[2]", "-1 2", "9"),
    ("lp_power_p_max(p=3,eps=100) f32[2]", "-1 2", "100"),
    ("lp_power_p_max(p=3,eps=100) f32[2]", "nan 2", "nan"),
    ("lp_power_p_sum(p=3,eps=0.5) f32[2]", "-1 2", "9.5"),
    ("lp_power_p_sum(p=2,eps=7) f32[0]", "", "7"),
    ("lp_sum(p=1,eps=-5) f32[2]", "1 2", "-2"),
    ("lp_sum(p=3,eps=-5) f32[2]", "1 0", "nan"),
    ("lp_max(p=3) f32[0]", "", "0"),
    ("lp_power_p_sum(p=4,eps=0.5) f16[2] -> f32", "2 -3", "97.5"),
    // Layouts: broadcast, backwards, permuted, with gaps.
    ("sum f32[2,2]@(0,1) axes=[0]", "1 2", "2 4"),
    ("sum f32[1000]@(0)", "2", "2000"),
    ("sum i32[2,3]@(-3,-1) axes=[0]", "1 2 3 4 5 6", "9 7 5"),
    ("sum i32[2,3]@ba axes=[1]", "1 4 2 5 3 6", "6 15"),
    ("max f16[1,2,2,1]@acdb axes=[2]", "1 -4 3 -2", "3 -2"),
    ("sum i32[2,2,2] axes=[0] -> @ba", "1 2 3 4 5 6 7 8", "6 10 8 12"),
    ("sum i32[2,2] axes=[1] -> @(-1)", "1 2 3 4", "7 3"),
    ("sum i32[2,2] axes=[1] -> i64@(2)", "1 2 3 4", "3 0 7"),
    ("sum i32[2,2] axes=[1] keep_dims -> @(1,7)", "1 2 3 4", "3 7"),
    ("min i32[2,2]@(3,2)", "9 -5 8 7 -5 6", "6"),
];

/// Runs the table.
pub fn check(execute: Execute) {
    let mut failed = vec![];
    for &(text, input, expected) in CASES {
        let spec: Reduction = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        let (from, to) = (spec.inputs()[0].dtype(), spec.outputs()[0].dtype());
        let input = data::parse(from, input);
        assert_eq!(input.len() as u64, spec.inputs()[0].span_elems(), "elements of {text}");
        let got = data::scalars(to, &execute(&spec, &[data::bytes(from, input)])[0]);
        let expected = data::parse(to, expected);
        if got != expected {
            failed.push(format!("{text}: got {got:?}, expected {expected:?}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// A NaN at every position of slices around the boundaries of vectors and lanes, of either sign.
pub fn check_nan_positions(execute: Execute) {
    for dtype in [cranefold::DType::F16, cranefold::DType::Bf16, cranefold::DType::F32, cranefold::DType::F64] {
        for length in [1, 2, 3, 7, 8, 9, 16, 31, 33, 64, 65, 130] {
            let spec: Reduction = format!("max {dtype}[{length}]").parse().expect("a spec");
            for at in 0..length {
                let sign = (at as u64 & 1) << (dtype.bits() - 1);
                let mut values: Vec<Scalar> = (0..length).map(|i| Scalar::float(dtype, f64::from(i) - 20.0)).collect();
                values[at as usize] = Scalar::from_bits(dtype, Scalar::nan(dtype).bits() | sign | 1);
                let got = data::scalars(dtype, &execute(&spec, &[data::bytes(dtype, values)])[0]);
                assert_eq!(got, [Scalar::nan(dtype)], "{spec} with a NaN at {at}");
            }
        }
    }
}

/// A `bool` reads true where its byte is not 0, and is written as 0 or 1.
pub fn check_truth_bytes(execute: Execute) {
    for (text, expected) in [
        ("all bool[2,2] axes=[1]", [0, 1]),
        ("any bool[2,2] axes=[1]", [1, 1]),
        ("max bool[2,2] axes=[1]", [1, 1]),
        ("min bool[2,2] axes=[1]", [0, 1]),
    ] {
        let spec: Reduction = text.parse().expect("a spec");
        assert_eq!(execute(&spec, &[vec![0, 2, 0x80, 255]])[0], expected, "{text}");
    }
    let copy: Reduction = "any bool[3] axes=[]".parse().expect("a spec");
    assert_eq!(execute(&copy, &[vec![0, 2, 255]])[0], [0, 1, 1]);
}
