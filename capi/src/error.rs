//! Errors that C callers own, and the guard that makes them of panics.

use cranefold::{CallError, Error, PartialError, SpecError};
use std::any::Any;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

/// The kind of an error: who can correct it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Code {
    /// An argument is null, no UTF-8, or out of its range.
    Argument = 1,
    /// A spec's text is refused.
    Spec = 2,
    /// The code or the partial results cannot be made.
    Compile = 3,
    /// A tensor is not the operand's.
    Tensor = 4,
    /// A call is wrong: its scratch memory, or its parts.
    Call = 5,
    /// The bytes of a state are none, or those of another.
    State = 6,
    /// There is no memory.
    Memory = 7,
    /// A bug of the library.
    Internal = 8,
}

/// An error that the caller frees.
#[derive(Debug)]
pub struct OwnedError {
    code: Code,
    message: CString,
    /// The byte of the text at fault, or -1.
    place: i64,
    /// The number of the item at fault among several, or -1.
    item: i64,
}

/// A failure inside of the library, before it becomes an [`OwnedError`].
#[derive(Debug)]
pub struct Failure {
    code: Code,
    message: String,
    place: Option<usize>,
    item: Option<usize>,
}

impl Failure {
    pub fn new(code: Code, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into(), place: None, item: None }
    }

    /// A null pointer where the argument `name` has to point to something.
    pub fn null(name: &str) -> Failure {
        Failure::new(Code::Argument, format!("`{name}` is null"))
    }

    /// The failure of the item with this number among several.
    pub fn of_item(self, item: usize) -> Failure {
        Failure { item: Some(item), message: format!("item {item}: {}", self.message), ..self }
    }

    fn owned(self) -> *mut OwnedError {
        let index = |n: Option<usize>| n.and_then(|n| i64::try_from(n).ok()).unwrap_or(-1);
        let (place, item) = (index(self.place), index(self.item));
        let message = CString::new(self.message.replace('\0', "\\0")).unwrap_or_default();
        Box::into_raw(Box::new(OwnedError { code: self.code, message, place, item }))
    }
}

impl From<SpecError> for Failure {
    fn from(error: SpecError) -> Failure {
        let place = error.place();
        Failure { place, ..Failure::new(Code::Spec, error.to_string()) }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Failure {
        let code = match &error {
            CallError::Scratch { .. } => Code::Memory,
            CallError::Count { .. } | CallError::DType { .. } | CallError::Length { .. } => Code::Tensor,
            CallError::PartialElement { .. } | CallError::Replaces { .. } | CallError::InPlace => Code::Tensor,
            _ => Code::Call,
        };
        Failure::new(code, error.to_string())
    }
}

impl From<PartialError> for Failure {
    fn from(error: PartialError) -> Failure {
        match error {
            PartialError::Call(error) => error.into(),
            error => Failure::new(Code::State, error.to_string()),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::Spec(error) => error.into(),
            Error::Call(error) => error.into(),
            Error::Partial(error) => error.into(),
            Error::Memory(_) => Failure::new(Code::Memory, error.to_string()),
            Error::Internal { .. } => Failure::new(Code::Internal, error.to_string()),
            error => Failure::new(Code::Compile, error.to_string()),
        }
    }
}

/// Does the work of a function: null if it is done, an error if it fails or panics.
pub fn guard(work: impl FnOnce() -> Result<(), Failure>) -> *mut OwnedError {
    // What a panic leaves half-done is dropped with the work: handles are only read, and their locks are not poisoned.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => null_mut(),
        Ok(Err(failure)) => failure.owned(),
        Err(panic) => {
            let message = format!("this is a bug in cranefold: {}", panic_message(&*panic));
            Failure::new(Code::Internal, message).owned()
        }
    }
}

/// The value of a getter; `otherwise` if it panics.
pub fn get<T>(otherwise: T, work: impl FnOnce() -> Option<T>) -> T {
    catch_unwind(AssertUnwindSafe(work)).ok().flatten().unwrap_or(otherwise)
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}

/// The thing that a handle or a struct of the caller is.
///
/// # Safety
/// The pointer is null or one that the header asks for, and what it points to lives as long as 'a.
pub unsafe fn given<'a, T>(pointer: *const T, name: &str) -> Result<&'a T, Failure> {
    check_aligned(pointer, name)?;
    // SAFETY: the caller keeps the contract.
    unsafe { pointer.as_ref() }.ok_or_else(|| Failure::null(name))
}

fn check_aligned<T>(pointer: *const T, name: &str) -> Result<(), Failure> {
    let refused = || Failure::new(Code::Argument, format!("`{name}` is not aligned to {} bytes", align_of::<T>()));
    if pointer.is_aligned() { Ok(()) } else { Err(refused()) }
}

/// The place that a result is written to.
///
/// # Safety
/// As [`given`], and nothing else reads or writes the place.
pub unsafe fn place<'a, T>(pointer: *mut T, name: &str) -> Result<&'a mut std::mem::MaybeUninit<T>, Failure> {
    check_aligned(pointer, name)?;
    // SAFETY: the caller keeps the contract; nothing of the place is read.
    unsafe { pointer.cast::<std::mem::MaybeUninit<T>>().as_mut() }.ok_or_else(|| Failure::null(name))
}

/// The items of an array of the caller; of none the pointer may be null.
///
/// # Safety
/// As [`given`], for `count` items.
pub unsafe fn list<'a, T>(pointer: *const T, count: usize, name: &str) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(Failure::null(name));
    }
    check_aligned(pointer, name)?;
    check_bytes(pointer.addr(), count.checked_mul(size_of::<T>()), name)?;
    // SAFETY: the caller keeps the contract; the array fits the address space.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// Items of the caller that are written; of none the pointer may be null.
///
/// # Safety
/// As [`list`], and nothing else reads or writes them.
pub unsafe fn list_mut<'a, T>(pointer: *mut T, count: usize, name: &str) -> Result<&'a mut [T], Failure> {
    // SAFETY: the caller keeps the contract.
    let items = unsafe { list(pointer, count, name)? }.len();
    if items == 0 {
        return Ok(&mut []);
    }
    // SAFETY: the caller keeps the contract; the items fit the address space.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer, items) })
}

/// Checks that so many bytes at an address are no more than an address space has.
fn check_bytes(address: usize, bytes: Option<usize>, name: &str) -> Result<(), Failure> {
    let fits = bytes.filter(|&bytes| isize::try_from(bytes).is_ok() && address.checked_add(bytes).is_some());
    fits.map(|_| ()).ok_or_else(|| Failure::new(Code::Argument, format!("`{name}` is longer than the address space")))
}

/// The text of a caller.
///
/// # Safety
/// The pointer is null or to a string that ends with a zero and lives as long as 'a.
pub unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return Err(Failure::null(name));
    }
    // SAFETY: the caller keeps the contract.
    let bytes = unsafe { CStr::from_ptr(pointer) };
    bytes.to_str().map_err(|error| {
        let failure =
            Failure::new(Code::Argument, format!("`{name}` is no UTF-8 from byte {} on", error.valid_up_to()));
        Failure { place: Some(error.valid_up_to()), ..failure }
    })
}

/// Gives a caller a handle.
pub fn give<T>(into: &mut std::mem::MaybeUninit<*mut T>, value: T) {
    into.write(Box::into_raw(Box::new(value)));
}

/// Frees a handle; null is none.
///
/// # Safety
/// The pointer is null or one that [`give`] gave, and is not used again.
pub unsafe fn free<T>(pointer: *mut T) {
    if !pointer.is_null() {
        // A panic of a destructor must not cross into C; what it leaves is lost.
        // SAFETY: the caller keeps the contract.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(unsafe { Box::from_raw(pointer) })));
    }
}

/// The kind of an error; 0 of null.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_error_code(error: *const OwnedError) -> i32 {
    // SAFETY: the caller keeps the contract.
    unsafe { error.as_ref() }.map_or(0, |error| error.code as i32)
}

/// The message of an error, which lives as long as the error; the empty text of null.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_error_message(error: *const OwnedError) -> *const c_char {
    // SAFETY: the caller keeps the contract.
    unsafe { error.as_ref() }.map_or(c"", |error| &error.message).as_ptr()
}

/// The byte of the given text at which the fault is, or -1.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_error_place(error: *const OwnedError) -> i64 {
    // SAFETY: the caller keeps the contract.
    unsafe { error.as_ref() }.map_or(-1, |error| error.place)
}

/// The number of the item at fault in a call that takes several, or -1.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_error_item(error: *const OwnedError) -> i64 {
    // SAFETY: the caller keeps the contract.
    unsafe { error.as_ref() }.map_or(-1, |error| error.item)
}

/// Frees an error.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_error_free(error: *mut OwnedError) {
    // SAFETY: the caller keeps the contract.
    unsafe { free(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes the code and the message of an error, and frees it.
    fn told(error: *mut OwnedError) -> (i32, String) {
        // SAFETY: the error is one of `guard`, freed once.
        unsafe {
            let message = CStr::from_ptr(cranefold_error_message(error)).to_string_lossy().into_owned();
            let code = cranefold_error_code(error);
            cranefold_error_free(error);
            (code, message)
        }
    }

    #[test]
    fn a_panic_is_an_error() {
        let literal = guard(|| panic!("of its own"));
        assert_eq!(told(literal), (Code::Internal as i32, "this is a bug in cranefold: of its own".into()));
        let made = guard(|| panic!("at {}", 3));
        assert_eq!(told(made), (Code::Internal as i32, "this is a bug in cranefold: at 3".into()));
        let other = guard(|| std::panic::panic_any(3));
        assert_eq!(told(other), (Code::Internal as i32, "this is a bug in cranefold: no message".into()));
        assert_eq!(get(7, || panic!("in a getter")), 7);
        assert!(guard(|| Ok(())).is_null());
        struct Panics;
        impl Drop for Panics {
            fn drop(&mut self) {
                panic!("in a destructor")
            }
        }
        // SAFETY: a box of its own.
        unsafe { free(Box::into_raw(Box::new(Panics))) };
    }

    #[test]
    fn a_message_may_hold_zeros() {
        let error = guard(|| Err(Failure::new(Code::Argument, "a\0b").of_item(2)));
        // SAFETY: the error lives.
        assert_eq!(unsafe { (cranefold_error_item(error), cranefold_error_place(error)) }, (2, -1));
        assert_eq!(told(error), (1, "item 2: a\\0b".into()));
        assert_eq!(told(null_mut()), (0, String::new()));
    }
}
