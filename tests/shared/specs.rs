//! Specs whose blocks are shared out, between threads or between machines.

/// Ops by types by where the reduced axes lie.
pub const SHARED: &[&str] = &[
    // Full, inner, outer, middle.
    "sum f32[40000]",
    "sum f32[7,9000] axes=[1]",
    "sum f32[9000,7] axes=[0]",
    "sum f32[700,130] axes=[0]",
    "sum f32[5,700,9] axes=[1]",
    "sum f32[5,40,9,30] axes=[0,2]",
    "sum f32[5,8,70,70] axes=[0,2,3]",
    "max f32[3,4097] axes=[1]",
    "min f64[4097,3] axes=[0]",
    "mean f16[9,2000] axes=[1]",
    "mean bf16[2000,9] axes=[0]",
    "sum f32[10000] acc=f64",
    // One output of a few lanes, and more outputs than parts.
    "sum f32[100000,2] axes=[0]",
    "log_sum f64[17,333] axes=[0]",
    // Integers: blocks join, or are exact in 128 bits.
    "sum i32[30000]",
    "sum i8[3,30000] axes=[1] -> i32",
    "sum i64[300,130] axes=[0] saturate",
    "mean i32[3,9000] axes=[1]",
    "l2 u32[20000]",
    "prod i64[20000] saturate",
    "all bool[30000]",
    "any bool[300,40] axes=[0]",
    "count_nonzero f32[20000]",
    "bit_xor u16[30000]",
    // Several phases, positions.
    "var f32[40000]",
    "var(ddof=1) f32[700,30] axes=[0]",
    "std f64[5,9000] axes=[1]",
    "log_sum_exp f32[20000]",
    "log_sum_exp f32[300,40] axes=[0]",
    "argmax f32[20000]",
    "argmin i16[5,9000] axes=[1]",
    "argmax(last) f32[700,30] axes=[0]",
    "argmax f64[5,8,70] axes=[0,2]",
    "lp_max(p=3,eps=1e-6) f32[9000]",
    // Several inputs and outputs, expressions, old elements.
    "max,argmax f32[3,9000] axes=[1]",
    "mean,max f32[20000]",
    "sum f32[64,512], f32[512] axes=[1] map=\"x0*x1\"",
    "mean f32[32,768], f32[32]:then axes=[1] then=\"max(r0, 0) + y0\"",
    // Layouts: blocked with padding, cut into boxes, strided, backwards.
    "sum f32[3,20,9,9]@aBcd16b axes=[2,3] keep_dims -> @aBcd16b",
    "sum f32[1,20,70,70]@aBcd16b axes=[2,3] keep_dims -> @aBcd16b",
    "count_nonzero i8[2,65,17] axes=[0,1] -> @A2a",
    "max f32[3,20,40,9]@aBcd16b axes=[1]",
    "sum f32[3,20,30,9]@aBcd8b axes=[0,2,3]",
    "sum f32[300,100]@(256,2) axes=[1]",
    "sum f32[300,100]@ba axes=[1]",
    "sum f32[300,100]@(-100,1)+29900 axes=[0]",
    "argmax f32[300,100]@(-100,1)+29900",
    // Nothing to write, nothing to reduce.
    "sum f32[5,0] axes=[1]",
];
