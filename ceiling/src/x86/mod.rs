//! The loops of x86-64.

/// Calls a macro for each vector width, with the width's module and the features that its loops may use.
macro_rules! at_each_width {
    ($kernels:ident) => {
        $kernels!(w128, "avx2,fma,f16c");
        $kernels!(w256, "avx2,fma,f16c");
        $kernels!(w512, "avx512f,avx512bw,avx512dq,avx512vl");
    };
}

mod bytes;
mod exp;
mod extremes;
mod fold;
mod halves;
mod outer;
mod rows;
mod sums;
mod var;
mod width;

use crate::{HandLoop, Loop, RowLoop};

/// Builds loops from operation, form, and the code by kind, file and name, at these widths.
macro_rules! loops {
    ($($what:literal, $form:literal, $kind:ident $file:ident::$name:ident at $($width:ident)+;)+) => {
        &[$($(HandLoop {
            what: $what,
            form: $form,
            bits: 8 * width::$width::BYTES as u32,
            code: Loop::$kind($file::$width::$name),
        },)+)+]
    };
}

/// Every loop that does not need VNNI.
const LOOPS: &[HandLoop] = loops! {
    "f32 sum", "", Whole sums::f32_sum at w512 w256 w128;
    "f64 sum", "", Whole sums::f64_sum at w512 w256 w128;
    "i32 sum", "", Whole sums::i32_sum at w512 w256 w128;
    "f32 prod", "", Whole sums::f32_prod at w512 w256 w128;
    "f64 prod", "", Whole sums::f64_prod at w512 w256 w128;
    "f32 l1", "", Whole sums::f32_l1 at w512 w256 w128;
    "f64 l1", "", Whole sums::f64_l1 at w512 w256 w128;
    "f32 sum_squares", "", Whole sums::f32_sum_squares at w512 w256 w128;
    "f64 sum_squares", "", Whole sums::f64_sum_squares at w512 w256 w128;
    "f32 max", "", Whole extremes::f32_max at w512 w256 w128;
    "f64 max", "", Whole extremes::f64_max at w512 w256 w128;
    "f32 max exact", "range", Whole extremes::f32_range at w512;
    "f32 max exact", "integers", Whole extremes::f32_integers at w512 w256 w128;
    "f32 max exact", "unordered", Whole extremes::f32_unordered at w256 w128;
    "f64 max exact", "range", Whole extremes::f64_range at w512;
    "f64 max exact", "integers", Whole extremes::f64_integers at w512;
    "f64 max exact", "unordered", Whole extremes::f64_unordered at w256 w128;
    "bf16 sum", "", Whole halves::bf16_sum at w512 w256 w128;
    "f16 sum", "", Whole halves::f16_sum at w512 w256 w128;
    "i8 sum", "", Whole bytes::i8_sum at w512 w256 w128;
    "u8 sum", "", Whole bytes::u8_sum at w512 w256 w128;
    "f32 log_sum_exp rough", "", Whole exp::f32_rough at w512 w256 w128;
    "f32 log_sum_exp", "", Whole exp::f32_log_sum_exp at w512 w256 w128;
    "f32 var", "", Whole var::f32_var at w512 w256 w128;
    "f32 var in blocks", "", Whole var::f32_var_in_blocks at w512 w256 w128;
    "f32 outer sum", "column blocks", Columns outer::f32_blocks at w512 w256 w128;
    "f32 outer sum", "row streaming", Columns outer::f32_rows at w512 w256 w128;
    "f64 outer sum", "column blocks", Columns outer::f64_blocks at w512 w256 w128;
    "f64 outer sum", "row streaming", Columns outer::f64_rows at w512 w256 w128;
};

/// The loops that need VNNI with AVX-512 VL.
const VNNI: &[HandLoop] = loops! {
    "i8 sum vpdpbusd", "", Whole bytes::i8_sum_vnni at w512 w256 w128;
};

/// Builds loops over rows likewise.
macro_rules! row_loops {
    ($($what:literal, $name:ident at $($width:ident)+;)+) => {
        &[$($(RowLoop::new($what, 8 * width::$width::BYTES as u32, rows::$width::$name),)+)+]
    };
}

/// Every loop over rows.
const ROW_LOOPS: &[RowLoop] = row_loops! {
    "softmax", softmax at w512 w256 w128;
    "layer_norm", layer_norm at w512 w256 w128;
    "rms_norm", rms_norm at w512 w256 w128;
    "int8", int8 at w512 w256 w128;
};

/// The features of vectors of 256 bits, and of 512.
fn features() -> (bool, bool) {
    let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c");
    let avx512 = avx2
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    (avx2, avx512)
}

pub fn row_loops() -> Vec<RowLoop> {
    let (avx2, avx512) = features();
    ROW_LOOPS.iter().filter(|rows| if rows.bits() == 512 { avx512 } else { avx2 }).copied().collect()
}

pub fn loops() -> Vec<HandLoop> {
    let (avx2, avx512) = features();
    let vnni = avx512 && is_x86_feature_detected!("avx512vnni");
    let plain = LOOPS.iter().filter(|hand| if hand.bits == 512 { avx512 } else { avx2 });
    plain.chain(VNNI.iter().filter(|_| vnni)).copied().collect()
}
