//! The definitions of `cranefold_ir::math`: accuracy, special values, exhaustive and random checks.

mod accuracy;
mod big;
mod eval;
mod exp;
mod half;
mod limbs;
mod log;
mod minmax;
mod pow;
