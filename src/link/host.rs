//! The functions of the host that compiled code calls: selection from the elements of a slice.
//!
//! [`Selection`](cranefold_ir::Selection) defines their results. They compare integers: a float is replaced by a key of
//! the same order, and put back before the return. Afterwards elements may have moved, and a NaN may have become the
//! canonical one; later selections from them give the same results.
//!
//! None of them unwinds or allocates: a panic, which would be a bug here, ends the process.
#![allow(unsafe_code, reason = "takes slices from pointers that compiled code gives")]

use crate::codegen::clif::{HostFunction, HostName};
use cranefold_ir::DType;

/// The address of a function of the host.
pub fn address(function: HostFunction) -> *const u8 {
    let [nth, mode] = match function.dtype {
        DType::I8 => of::<i8>(),
        DType::I16 => of::<i16>(),
        DType::I32 => of::<i32>(),
        DType::I64 => of::<i64>(),
        // In memory, a `bool` is a byte.
        DType::Bool | DType::U8 => of::<u8>(),
        DType::U16 => of::<u16>(),
        DType::U32 => of::<u32>(),
        DType::U64 => of::<u64>(),
        DType::F16 => of::<F16>(),
        DType::Bf16 => of::<Bf16>(),
        DType::F32 => of::<F32>(),
        DType::F64 => of::<F64>(),
    };
    match function.name {
        HostName::Nth => nth,
        HostName::Mode => mode,
    }
}

fn of<E: Element>() -> [*const u8; 2] {
    [nth::<E> as *const u8, mode::<E> as *const u8]
}

/// Elements in memory, and the keys that stand for them in comparisons.
trait Element {
    /// The type of the bits of an element and of its key.
    type Key: Copy + Ord;

    /// A key in the order of the elements.
    fn key(bits: Self::Key) -> Self::Key;

    /// The bits of the element of a key.
    fn bits(key: Self::Key) -> Self::Key;

    /// The key, with the key of +0 in place of the key of -0.
    fn plus_zero(key: Self::Key) -> Self::Key;
}

/// Integers are their own keys.
macro_rules! integers {
    ($($int:ty)*) => {$(
        impl Element for $int {
            type Key = $int;

            fn key(bits: $int) -> $int {
                bits
            }

            fn bits(key: $int) -> $int {
                key
            }

            fn plus_zero(key: $int) -> $int {
                key
            }
        }
    )*};
}

integers! { i8 i16 i32 i64 u8 u16 u32 u64 }

/// The key of a float is its bits as a signed integer, with the bits below the sign inverted if the sign is set:
/// numbers ascend, -0 is -1 and +0 is 0. The key of every NaN is the canonical NaN's, above infinity.
macro_rules! floats {
    ($($float:ident $int:ty, inf $inf:literal, nan $nan:literal;)*) => {$(
        enum $float {}

        impl Element for $float {
            type Key = $int;

            fn key(bits: $int) -> $int {
                let is_nan = bits & <$int>::MAX > $inf;
                Self::bits(if is_nan { $nan } else { bits })
            }

            fn bits(key: $int) -> $int {
                key ^ ((key >> (<$int>::BITS - 1)) & <$int>::MAX)
            }

            fn plus_zero(key: $int) -> $int {
                if key == -1 { 0 } else { key }
            }
        }
    )*};
}

floats! {
    F16 i16, inf 0x7c00, nan 0x7e00;
    Bf16 i16, inf 0x7f80, nan 0x7fc0;
    F32 i32, inf 0x7f80_0000, nan 0x7fc0_0000;
    F64 i64, inf 0x7ff0_0000_0000_0000, nan 0x7ff8_0000_0000_0000;
}

/// Writes the elements at three positions of the order to `results`.
///
/// # Safety
/// - `elements` points to `len` initialised elements that nothing else uses meanwhile, aligned for them.
/// - `results` points to memory for three, aligned and apart from those.
unsafe extern "C" fn nth<E: Element>(elements: *mut E::Key, len: u64, a: u64, b: u64, c: u64, results: *mut E::Key) {
    // SAFETY: the caller's promise; elements in memory are fewer than isize::MAX bytes.
    let elements = unsafe { std::slice::from_raw_parts_mut(elements, len as usize) };
    let found = nth_of::<E>(elements, [a, b, c].map(|p| p as usize));
    // SAFETY: the caller's promise.
    unsafe { results.cast::<[E::Key; 3]>().write(found) };
}

/// Writes the most frequent element, the least of several, to `result`; returns the number of its occurrences.
///
/// # Safety
/// As for [`nth`], with memory for one result.
unsafe extern "C" fn mode<E: Element>(elements: *mut E::Key, len: u64, result: *mut E::Key) -> i64 {
    // SAFETY: the caller's promise; elements in memory are fewer than isize::MAX bytes.
    let elements = unsafe { std::slice::from_raw_parts_mut(elements, len as usize) };
    let (found, count) = mode_of::<E>(elements);
    // SAFETY: the caller's promise.
    unsafe { result.write(found) };
    count as i64
}

/// The elements at these positions of the ascending order.
fn nth_of<E: Element>(elements: &mut [E::Key], positions: [usize; 3]) -> [E::Key; 3] {
    elements.iter_mut().for_each(|e| *e = E::key(*e));
    let mut ascending = positions;
    ascending.sort_unstable();
    // Once an element is in its place, all greater ones stand behind it.
    let mut start = 0;
    for position in ascending {
        if position >= start {
            elements[start..].select_nth_unstable(position - start);
            start = position + 1;
        }
    }
    let found = positions.map(|p| E::bits(elements[p]));
    elements.iter_mut().for_each(|e| *e = E::bits(*e));
    found
}

/// The most frequent element, the least of several, and the number of its occurrences.
fn mode_of<E: Element>(elements: &mut [E::Key]) -> (E::Key, usize) {
    elements.iter_mut().for_each(|e| *e = E::key(*e));
    elements.sort_unstable();
    let mut longest: &[E::Key] = &elements[..1];
    for run in elements.chunk_by(|&a, &b| E::plus_zero(a) == E::plus_zero(b)) {
        if run.len() > longest.len() {
            longest = run;
        }
    }
    let (found, count) = (E::bits(E::plus_zero(longest[0])), longest.len());
    elements.iter_mut().for_each(|e| *e = E::bits(*e));
    (found, count)
}
