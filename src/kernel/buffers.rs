//! Typed buffers of a call.

use cranefold_ir::DType;
use half::{bf16, f16};
use std::marker::PhantomData;

mod sealed {
    pub trait Sealed {}
}

/// A Rust type of elements.
pub trait Element: sealed::Sealed + Copy {
    /// The element type.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($rust:ty => $dtype:ident,)*) => {$(
        impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const DTYPE: DType = DType::$dtype;
        }
    )*};
}

elements! {
    bool => Bool, i8 => I8, i16 => I16, i32 => I32, i64 => I64, u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    f16 => F16, bf16 => Bf16, f32 => F32, f64 => F64,
}

/// The memory of an input in a call that writes over inputs: see [`Kernel::run_over`](super::Kernel::run_over).
#[derive(Clone, Copy, Debug)]
pub enum InputMemory<'a> {
    /// Memory of its own.
    Own(Input<'a>),
    /// The memory of the output with this number, which takes the input's place.
    OfOutput(usize),
}

/// An input of a call.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    pub(crate) dtype: DType,
    pub(crate) bytes: usize,
    pub(crate) start: *const u8,
    borrow: PhantomData<&'a [u8]>,
}

impl<'a, T: Element> From<&'a [T]> for Input<'a> {
    fn from(elements: &'a [T]) -> Input<'a> {
        let bytes = size_of_val(elements);
        Input { dtype: T::DTYPE, bytes, start: elements.as_ptr().cast(), borrow: PhantomData }
    }
}

impl<'a> Input<'a> {
    /// Bytes as elements of `dtype`; of `bool` every non-zero byte is true. The call refuses a number of
    /// bytes that is no whole number of elements.
    pub fn from_bytes(dtype: DType, bytes: &'a [u8]) -> Input<'a> {
        Input { dtype, bytes: bytes.len(), start: bytes.as_ptr(), borrow: PhantomData }
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
    pub(crate) fn part(&self, start: usize, bytes: usize) -> Input<'a> {
        let start = start.min(self.bytes);
        Input { bytes: bytes.min(self.bytes - start), start: self.start.wrapping_add(start), ..*self }
    }
}

/// An output of a call.
#[derive(Debug)]
pub struct Output<'a> {
    pub(crate) dtype: DType,
    pub(crate) bytes: usize,
    pub(crate) start: *mut u8,
    borrow: PhantomData<&'a mut [u8]>,
}

impl<'a, T: Element> From<&'a mut [T]> for Output<'a> {
    fn from(elements: &'a mut [T]) -> Output<'a> {
        let bytes = size_of_val(elements);
        Output { dtype: T::DTYPE, bytes, start: elements.as_mut_ptr().cast(), borrow: PhantomData }
    }
}

impl<'a> Output<'a> {
    /// Bytes as elements of `dtype`. The call refuses a number of bytes that is no whole number of elements.
    pub fn from_bytes(dtype: DType, bytes: &'a mut [u8]) -> Output<'a> {
        Output { dtype, bytes: bytes.len(), start: bytes.as_mut_ptr(), borrow: PhantomData }
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
