//! Kernels and partial results as text, which the caller frees.

use crate::error::{OwnedError, given, guard, place, text};
use crate::kernel::Kernel;
use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Gives a caller a text.
pub fn give_text(into: &mut MaybeUninit<*mut c_char>, text: &str) {
    into.write(CString::new(text.replace('\0', "\\0")).unwrap_or_default().into_raw());
}

/// Writes the page that explains a kernel.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_explain(kernel: *const Kernel, page: *mut *mut c_char) -> *mut OwnedError {
    guard(|| {
        // SAFETY: the caller keeps the header's contract.
        let (into, kernel) = unsafe { (place(page, "page")?, given(kernel, "kernel")?) };
        give_text(into, &kernel.kernel.explain()?);
        Ok(())
    })
}

/// Writes the text of a stage of a kernel.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_dump(
    kernel: *const Kernel,
    stage: *const c_char,
    dump: *mut *mut c_char,
) -> *mut OwnedError {
    guard(|| {
        // SAFETY: the caller keeps the header's contract.
        let (into, kernel, stage) = unsafe { (place(dump, "dump")?, given(kernel, "kernel")?, text(stage, "stage")?) };
        give_text(into, &kernel.kernel.dump(stage)?);
        Ok(())
    })
}

/// Frees a text.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_text_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: the caller gives a text of this library, once.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(unsafe { CString::from_raw(text) })));
    }
}
