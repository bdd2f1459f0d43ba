//! The definitions of `cranefold_ir::math`: accuracy, special values, exhaustive and random checks.
//!
//! `FULL=1 cargo test --release -p cranefold-ir --test math` sweeps every f32 there is, which takes
//! some three minutes; without it the sweeps take every 31st.

mod accuracy;
mod big;
mod erf;
mod eval;
mod exp;
mod expm1;
mod half;
mod limbs;
mod log;
mod log1p;
mod minmax;
mod pow;
mod round;
mod scale;
mod tanh;

use cranefold_ir::{DType, Def, Scalar};

/// Checks an odd function whose limits are -1 and 1: its special values, its range, and that it falls nowhere by more
/// than some ulps of 1.
fn odd_from_minus_one_to_one(function: &dyn Fn(DType) -> Def, falls: f64) {
    for dtype in [DType::F32, DType::F64] {
        let def = function(dtype);
        let f = |x: f64| eval::eval1(&def, &[Scalar::float(dtype, x)]);
        for (x, want) in [(0.0, 0.0), (-0.0, -0.0), (f64::INFINITY, 1.0), (f64::NEG_INFINITY, -1.0), (1e30, 1.0)] {
            assert_eq!(f(x), Scalar::float(dtype, want), "{} of {x}", def.name);
        }
        let inf = Scalar::float(dtype, f64::INFINITY).bits();
        let sign = 1 << (dtype.bits() - 1);
        for payload in [1, 7, inf - 1] {
            for bits in [inf | payload, inf | payload | sign] {
                let nan = Scalar::from_bits(dtype, bits);
                assert!(!nan.is_nan() || eval::eval1(&def, &[nan]).is_nan(), "{} of {nan}", def.name);
            }
        }
        let ulp = if dtype == DType::F32 { 2f64.powi(-24) } else { 2f64.powi(-53) };
        let mut before = 0.0;
        for i in 1..200_000u32 {
            let x = f64::from(i) / 25_000.0;
            let (y, opposite) = (f(x).as_f64(), f(-x).as_f64());
            assert_eq!(y, -opposite, "{} of {x}", def.name);
            assert!(before - falls * ulp <= y && y <= 1.0, "{} of {x}: {before} {y}", def.name);
            before = y;
        }
    }
}
