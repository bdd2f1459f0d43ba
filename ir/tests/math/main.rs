//! The definitions of `cranefold_ir::math`: accuracy, special values, exhaustive and random checks.
//!
//! `FULL=1 cargo test --release -p cranefold-ir --test math` sweeps every f32 there is, which takes
//! some three minutes; without it the sweeps take every 31st.

mod accuracy;
mod big;
mod eval;
mod exp;
mod half;
mod limbs;
mod log;
mod minmax;
mod pow;
mod scale;
