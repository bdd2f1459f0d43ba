//! The functions that Cranelift calls if a target lacks an instruction; all are correctly rounded.
#![allow(unsafe_code, reason = "takes vectors apart")]

use cranelift_codegen::ir::LibCall;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::__m128i;

extern "C" fn fma_f32(a: f32, b: f32, c: f32) -> f32 {
    a.mul_add(b, c)
}

extern "C" fn fma_f64(a: f64, b: f64, c: f64) -> f64 {
    a.mul_add(b, c)
}

extern "C" fn nearest_f32(a: f32) -> f32 {
    a.round_ties_even()
}

extern "C" fn nearest_f64(a: f64) -> f64 {
    a.round_ties_even()
}

/// Bytes of `a` at the places that `mask` names, 0 where its highest bit is set.
#[cfg(target_arch = "x86_64")]
#[allow(improper_ctypes_definitions, reason = "vectors are passed in registers, as the compiled code does")]
extern "C" fn x86_pshufb(a: __m128i, mask: __m128i) -> __m128i {
    // SAFETY: 128 bits either way, and all values of all types are valid.
    let [a, mask] = unsafe { std::mem::transmute::<[__m128i; 2], [[u8; 16]; 2]>([a, mask]) };
    let bytes = mask.map(|at| if at & 0x80 == 0 { a[usize::from(at & 15)] } else { 0 });
    // SAFETY: as above.
    unsafe { std::mem::transmute::<[u8; 16], __m128i>(bytes) }
}

/// The address of a function; `None` of one that our code never calls.
pub fn address(call: LibCall) -> Option<*const u8> {
    Some(match call {
        #[cfg(target_arch = "x86_64")]
        LibCall::X86Pshufb => x86_pshufb as *const u8,
        LibCall::FmaF32 => fma_f32 as *const u8,
        LibCall::FmaF64 => fma_f64 as *const u8,
        LibCall::NearestF32 => nearest_f32 as *const u8,
        LibCall::NearestF64 => nearest_f64 as *const u8,
        _ => return None,
    })
}
