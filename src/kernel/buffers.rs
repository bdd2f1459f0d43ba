//! Typed buffers of a call.
#![allow(unsafe_code, reason = "makes buffers of raw pointers, and shares those of borrows among threads")]

use cranefold_ir::DType;
use half::{bf16, f16};
use std::marker::PhantomData;

mod sealed {
    pub trait Sealed {}
}

/// A Rust type of elements: a plain number, at most eight bytes long.
pub trait Element: sealed::Sealed + Copy + Send + Sync + 'static {
    /// The element type.
    const DTYPE: DType;

    /// The bytes of an element, then zeros.
    #[doc(hidden)]
    fn to_bytes(self) -> [u8; 8];
}

macro_rules! elements {
    ($($rust:ty => $dtype:ident, $bits:expr;)*) => {$(
        impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const DTYPE: DType = DType::$dtype;

            fn to_bytes(self) -> [u8; 8] {
                let mut bytes = [0; 8];
                bytes[..size_of::<$rust>()].copy_from_slice(&$bits(self).to_ne_bytes());
                bytes
            }
        }
    )*};
}

elements! {
    bool => Bool, u8::from;
    i8 => I8, i8::from;
    i16 => I16, i16::from;
    i32 => I32, i32::from;
    i64 => I64, i64::from;
    u8 => U8, u8::from;
    u16 => U16, u16::from;
    u32 => U32, u32::from;
    u64 => U64, u64::from;
    f16 => F16, f16::to_bits;
    bf16 => Bf16, bf16::to_bits;
    f32 => F32, f32::to_bits;
    f64 => F64, f64::to_bits;
}

/// An input of a call: memory that is read, one value, or the memory of an output.
///
/// It may be longer than the operand's span in the spec; elements past the span are not read.
///
/// ```
/// use cranefold::{Compiler, Input, Output, Spec};
///
/// let spec: Spec = "region x:f32[3] axes=[0] scalar k:f32 { sum(x) * k }".parse()?;
/// let (x, mut y) = (vec![1.0f32, 2.0, 3.0], [0.0f32]);
/// let kernel = Compiler::host()?.compile(&spec)?;
/// kernel.run(&[Input::from(&x), Input::scalar(0.5f32)], &mut [Output::from(&mut y)])?;
/// assert_eq!(y, [3.0]);
/// # Ok::<(), cranefold::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    pub(crate) dtype: DType,
    pub(crate) bytes: usize,
    source: Source,
    borrow: PhantomData<&'a [u8]>,
}

/// The place of an input's elements.
#[derive(Clone, Copy, Debug)]
enum Source {
    Memory(*const u8),
    /// One element, in the input itself.
    Value([u8; 8]),
    /// The memory of the output with this number.
    Output(usize),
}

// SAFETY: the pointer goes to memory that is borrowed for 'a and only read, of plain numbers, which threads may share. Who
// makes an input of a raw pointer promises the same.
unsafe impl Send for Input<'_> {}
// SAFETY: as above.
unsafe impl Sync for Input<'_> {}

impl<'a, T: Element> From<&'a [T]> for Input<'a> {
    #[inline]
    fn from(elements: &'a [T]) -> Input<'a> {
        Input::of_memory(T::DTYPE, elements.as_ptr().cast(), size_of_val(elements))
    }
}

impl<'a, T: Element, const N: usize> From<&'a [T; N]> for Input<'a> {
    fn from(elements: &'a [T; N]) -> Input<'a> {
        Input::from(&elements[..])
    }
}

impl<'a, T: Element> From<&'a Vec<T>> for Input<'a> {
    fn from(elements: &'a Vec<T>) -> Input<'a> {
        Input::from(&elements[..])
    }
}

impl<'a> Input<'a> {
    #[inline]
    fn of_memory(dtype: DType, start: *const u8, bytes: usize) -> Input<'a> {
        Input { dtype, bytes, source: Source::Memory(start), borrow: PhantomData }
    }

    /// Bytes as elements of `dtype`; of `bool` every non-zero byte is true. No alignment is needed.
    pub fn from_bytes(dtype: DType, bytes: &'a [u8]) -> Input<'a> {
        Input::of_memory(dtype, bytes.as_ptr(), bytes.len())
    }

    /// One value: a scalar of a spec, or an operand of one element.
    pub fn scalar<T: Element>(value: T) -> Input<'static> {
        let source = Source::Value(value.to_bytes());
        Input { dtype: T::DTYPE, bytes: size_of::<T>(), source, borrow: PhantomData }
    }

    /// The memory of the output with this number of the same call, which takes the input's place: the call overwrites
    /// the input, and padding becomes zero. A call refuses it unless [`Spec::may_replace`](crate::Spec::may_replace)
    /// says that the output may.
    ///
    /// ```
    /// use cranefold::{Compiler, Input, Output, Spec};
    ///
    /// let spec: Spec = "region x:f32[2,2], h:f32[2,2] axes=[1] { y = x + h; y, max(y) }".parse()?;
    /// let (mut x, h, mut max) = ([1.0f32, 2.0, 3.0, 4.0], [1.0f32, 1.0, 0.0, -9.0], [0.0f32; 2]);
    /// let inputs = [Input::of_output(0), Input::from(&h)];
    /// Compiler::host()?.compile(&spec)?.run(&inputs, &mut [Output::from(&mut x), Output::from(&mut max)])?;
    /// assert_eq!((x, max), ([2.0, 3.0, 3.0, -5.0], [3.0, 3.0]));
    /// # Ok::<(), cranefold::Error>(())
    /// ```
    pub fn of_output(output: usize) -> Input<'static> {
        // The type is that of the output, whatever stands here.
        Input { dtype: DType::U8, bytes: 0, source: Source::Output(output), borrow: PhantomData }
    }

    /// Memory of `elems` elements of `dtype` at a pointer, which needs no alignment.
    ///
    /// # Safety
    /// As long as 'a, the elements may be read, by any thread, and nothing writes them. The pointer may be any if
    /// `elems` is 0.
    pub unsafe fn from_raw(dtype: DType, start: *const u8, elems: usize) -> Input<'a> {
        Input::of_memory(dtype, start, elems.saturating_mul(dtype.bytes() as usize))
    }

    /// The element type.
    pub(crate) fn dtype(&self) -> DType {
        self.dtype
    }

    /// The number of bytes.
    pub(crate) fn len_bytes(&self) -> usize {
        self.bytes
    }

    /// The start of the input's own elements; `None` if they are an output's.
    #[inline]
    pub(super) fn own_start(&self) -> Option<*const u8> {
        match &self.source {
            Source::Memory(start) => Some(*start),
            Source::Value(bytes) => Some(bytes.as_ptr()),
            Source::Output(_) => None,
        }
    }

    /// The number of the output whose memory the input is.
    #[inline]
    pub(super) fn output(&self) -> Option<usize> {
        if let Source::Output(output) = self.source { Some(output) } else { None }
    }

    /// The bytes from `start` on, at most `bytes` of them, as elements of the same type.
    pub(crate) fn part(&self, start: usize, bytes: usize) -> Input<'a> {
        let start = start.min(self.bytes);
        let source = match self.source {
            Source::Memory(memory) => Source::Memory(memory.wrapping_add(start)),
            // A part is all of it, or nothing.
            whole => whole,
        };
        Input { bytes: bytes.min(self.bytes - start), source, ..*self }
    }

    /// Copies the bytes from `start` on, as many as `into` has.
    pub(crate) fn copy_to(&self, start: usize, into: &mut [u8]) {
        assert!(start.checked_add(into.len()).is_some_and(|end| end <= self.bytes), "bytes of the input");
        let Some(own) = self.own_start().filter(|_| !into.is_empty()) else { return };
        // SAFETY: the input has these bytes, which are borrowed for 'a; `into` is borrowed alone, so that they do not
        // overlap.
        unsafe { std::ptr::copy_nonoverlapping(own.add(start), into.as_mut_ptr(), into.len()) }
    }
}

/// An output of a call.
///
/// It may be longer than the operand's span in the spec; elements past the span are not written.
#[derive(Debug)]
pub struct Output<'a> {
    pub(crate) dtype: DType,
    pub(crate) bytes: usize,
    pub(crate) start: *mut u8,
    borrow: PhantomData<&'a mut [u8]>,
}

// SAFETY: the pointer goes to memory that is borrowed for 'a alone, of plain numbers, which any thread may write. Who makes
// an output of a raw pointer promises the same.
unsafe impl Send for Output<'_> {}
// SAFETY: as above; through a shared reference nothing is written.
unsafe impl Sync for Output<'_> {}

impl<'a, T: Element> From<&'a mut [T]> for Output<'a> {
    #[inline]
    fn from(elements: &'a mut [T]) -> Output<'a> {
        let bytes = size_of_val(elements);
        Output { dtype: T::DTYPE, bytes, start: elements.as_mut_ptr().cast(), borrow: PhantomData }
    }
}

impl<'a, T: Element, const N: usize> From<&'a mut [T; N]> for Output<'a> {
    fn from(elements: &'a mut [T; N]) -> Output<'a> {
        Output::from(&mut elements[..])
    }
}

impl<'a, T: Element> From<&'a mut Vec<T>> for Output<'a> {
    fn from(elements: &'a mut Vec<T>) -> Output<'a> {
        Output::from(&mut elements[..])
    }
}

impl<'a> Output<'a> {
    /// Bytes as elements of `dtype`. No alignment is needed.
    pub fn from_bytes(dtype: DType, bytes: &'a mut [u8]) -> Output<'a> {
        Output { dtype, bytes: bytes.len(), start: bytes.as_mut_ptr(), borrow: PhantomData }
    }

    /// Memory of `elems` elements of `dtype` at a pointer, which needs no alignment.
    ///
    /// # Safety
    /// As long as 'a, the elements may be written, by any thread, and nothing else reads or writes them. The pointer may
    /// be any if `elems` is 0.
    pub unsafe fn from_raw(dtype: DType, start: *mut u8, elems: usize) -> Output<'a> {
        let bytes = elems.saturating_mul(dtype.bytes() as usize);
        Output { dtype, bytes, start, borrow: PhantomData }
    }

    /// The element type.
    pub(crate) fn dtype(&self) -> DType {
        self.dtype
    }

    /// The number of bytes.
    pub(crate) fn len_bytes(&self) -> usize {
        self.bytes
    }

    /// The bytes from `start` on, at most `bytes` of them, as elements of the same type.
    pub(crate) fn part(&mut self, start: usize, bytes: usize) -> Output<'_> {
        let start = start.min(self.bytes);
        let bytes = bytes.min(self.bytes - start);
        Output { bytes, start: self.start.wrapping_add(start), dtype: self.dtype, borrow: PhantomData }
    }
}
