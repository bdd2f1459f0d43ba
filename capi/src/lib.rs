//! The C API: `libcranefold`, whose contract is `include/cranefold.h`.
//!
//! Every function checks what it is given, does its work in [`guard`](error::guard), which turns a panic into an error,
//! and returns an owned error or null. Handles are boxes behind opaque pointers. The tests of [`header`] hold the header
//! to these sources: names, parameters, sizes, offsets and numbers.

#![allow(unsafe_code, reason = "reads and writes through the pointers of C callers")]

mod call;
mod compiler;
mod error;
#[cfg(test)]
mod header;
mod kernel;
mod mpi;
mod partial;
mod run;
mod tensor;
mod text;

/// The version of the functions, structs and numbers of the header.
pub const ABI_VERSION: u32 = 1;

/// The version of the library's ABI.
#[unsafe(no_mangle)]
pub extern "C" fn cranefold_abi_version() -> u32 {
    ABI_VERSION
}

/// The version of the library, as `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn cranefold_version() -> *const std::ffi::c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
