//! Tensors of C callers, with the layout of a `DLTensor`, and the operands that they are checked against.

use crate::error::{Code, Failure};
use cranefold::DType;
use cranefold::spec::Operand as SpecOperand;
use std::ffi::{CString, c_char, c_void};
use std::fmt::Display;
use std::ops::Range;

/// A device of a tensor; only the processor's memory is taken.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Device {
    pub kind: i32,
    pub id: i32,
}

/// The number of the processor's memory among DLPack's devices.
pub const CPU: i32 = 1;

/// An element type, as DLPack has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct DataType {
    pub code: u8,
    pub bits: u8,
    pub lanes: u16,
}

/// DLPack's numbers of kinds of elements.
pub const INT: u8 = 0;
pub const UINT: u8 = 1;
pub const FLOAT: u8 = 2;
pub const BFLOAT: u8 = 4;
pub const BOOL: u8 = 6;

/// A tensor: a view of the caller's memory.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Tensor {
    pub data: *mut c_void,
    pub device: Device,
    pub ndim: i32,
    pub dtype: DataType,
    pub shape: *const i64,
    pub strides: *const i64,
    pub byte_offset: u64,
}

/// The rank of a tensor that is plain memory: `shape` points to its number of elements.
pub const BUFFER: i32 = -1;

impl DataType {
    /// DLPack's form of an element type.
    pub fn of(dtype: DType) -> DataType {
        let code = match dtype {
            DType::Bool => BOOL,
            DType::Bf16 => BFLOAT,
            other if other.is_float() => FLOAT,
            other if other.is_signed() => INT,
            _ => UINT,
        };
        DataType { code, bits: dtype.bits() as u8, lanes: 1 }
    }

    /// The name in messages.
    fn shown(self) -> String {
        match DType::ALL.into_iter().find(|&dtype| DataType::of(dtype) == self) {
            Some(dtype) => dtype.name().into(),
            None => format!("of code {}, {} bits and {} lanes", self.code, self.bits, self.lanes),
        }
    }
}

/// The description of an operand, which is `cranefold_operand`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Description {
    pub dtype: DataType,
    pub ndim: i32,
    pub shape: *const i64,
    pub strides: *const i64,
    pub origin: u64,
    pub span_elems: u64,
    pub span_bytes: u64,
    pub name: *const c_char,
}

/// An operand of a kernel, which tensors are held to.
#[derive(Debug)]
pub struct Operand {
    pub dtype: DType,
    packed: DataType,
    shape: Vec<i64>,
    strides: Vec<i64>,
    /// True if no strides say where elements are.
    is_blocked: bool,
    /// True if elements lie as those of a tensor without strides.
    is_row_major: bool,
    /// Elements, and bytes, of the span before the element whose indices are all 0.
    origin: u64,
    origin_bytes: usize,
    /// The number of elements of the span.
    pub span: u64,
    span_bytes: usize,
    name: CString,
}

impl Operand {
    pub fn of(operand: &SpecOperand, name: &str) -> Operand {
        let placement = operand.placement();
        let shape: Vec<i64> = operand.shape().iter().map(|&extent| extent as i64).collect();
        let strides = placement.strides.clone();
        let is_empty = shape.contains(&0);
        // An axis of one element, and a tensor of none, may have any stride.
        let mut stride = 1i64;
        let mut is_row_major = placement.blocks.is_empty();
        for (&extent, &own) in shape.iter().zip(&strides).rev() {
            is_row_major &= extent == 1 || is_empty || own == stride;
            stride = stride.saturating_mul(extent);
        }
        Operand {
            dtype: operand.dtype(),
            packed: DataType::of(operand.dtype()),
            shape,
            strides,
            is_blocked: !placement.blocks.is_empty(),
            is_row_major,
            origin: placement.origin,
            origin_bytes: (placement.origin * operand.dtype().bytes()) as usize,
            span: operand.span_elems(),
            span_bytes: operand.span_bytes() as usize,
            name: CString::new(name).unwrap_or_default(),
        }
    }

    pub fn description(&self) -> Description {
        Description {
            dtype: self.packed,
            ndim: self.shape.len() as i32,
            shape: self.shape.as_ptr(),
            strides: if self.is_blocked { std::ptr::null() } else { self.strides.as_ptr() },
            origin: self.origin,
            span_elems: self.span,
            span_bytes: self.span_bytes as u64,
            name: self.name.as_ptr(),
        }
    }

    /// The operand as the shortest check has it; `None` unless it is row-major, begins at its first element, and has any.
    pub fn plain(&self) -> Option<Plain> {
        let is_plain = self.is_row_major && self.origin_bytes == 0 && self.span_bytes > 0;
        is_plain.then(|| Plain {
            kind: kind(self.shape.len() as i32, self.packed),
            shape: self.shape.clone().into(),
            span_bytes: self.span_bytes,
        })
    }

    /// The addresses of the operand's span in a tensor; `None` if the tensor is not one of the operand, or may not be.
    ///
    /// # Safety
    /// The tensor's `shape` and `strides` point to as many numbers as the header says.
    pub unsafe fn place(&self, tensor: &Tensor) -> Option<Range<usize>> {
        let rank = self.shape.len();
        if tensor.dtype != self.packed || tensor.device.kind != CPU || tensor.ndim as isize != rank as isize {
            return None;
        }
        if rank > 0 {
            if tensor.shape.is_null() || !tensor.shape.is_aligned() {
                return None;
            }
            for (axis, &extent) in self.shape.iter().enumerate() {
                // SAFETY: the caller gives a number for each axis.
                if unsafe { *tensor.shape.add(axis) } != extent {
                    return None;
                }
            }
        }
        if !(tensor.strides.is_null() && self.is_row_major) {
            // SAFETY: the caller gives a number for each axis.
            unsafe { self.check_strides(tensor) }.ok()?;
        }
        self.span_at(tensor, self.origin_bytes)
    }

    /// The addresses of the span of a tensor whose first element is `before` bytes after the span's start.
    fn span_at(&self, tensor: &Tensor, before: usize) -> Option<Range<usize>> {
        if self.span_bytes == 0 {
            return Some(0..0);
        }
        if tensor.data.is_null() {
            return None;
        }
        let offset = usize::try_from(tensor.byte_offset).ok()?;
        let start = tensor.data.addr().checked_add(offset)?.checked_sub(before)?;
        Some(start..start.checked_add(self.span_bytes)?)
    }

    /// The addresses of the operand's span in a tensor, or the reason why the tensor is not one of the operand.
    ///
    /// # Safety
    /// As [`place`](Operand::place).
    pub unsafe fn place_in(&self, tensor: &Tensor, shown: &dyn Display) -> Result<Range<usize>, Failure> {
        // SAFETY: the caller keeps the contract.
        if let Some(place) = unsafe { self.place(tensor) } {
            return Ok(place);
        }
        let refused = |why: String| Failure::new(Code::Tensor, format!("{shown} {why}"));
        check_memory(self.packed, tensor).map_err(refused)?;
        let before = match tensor.ndim {
            BUFFER => {
                // SAFETY: the caller gives one number.
                unsafe { self.check_buffer(tensor) }.map_err(refused)?;
                0
            }
            _ => {
                // SAFETY: the caller gives a number for each axis.
                unsafe { self.check_view(tensor) }.map_err(refused)?;
                self.origin_bytes
            }
        };
        if tensor.data.is_null() && self.span_bytes > 0 {
            return Err(refused("has no data: its pointer is null".into()));
        }
        let past = || refused(format!("of {} bytes does not lie within the address space", self.span_bytes));
        self.span_at(tensor, before).ok_or_else(past)
    }

    /// # Safety
    /// As [`place`](Operand::place).
    unsafe fn check_buffer(&self, tensor: &Tensor) -> Result<(), String> {
        if !tensor.strides.is_null() {
            return Err("is plain memory, which has no strides".into());
        }
        // SAFETY: the caller gives one number.
        let given = unsafe { numbers(tensor.shape, 1) }.ok_or("is plain memory without its number of elements")?[0];
        if u64::try_from(given).is_ok_and(|given| given >= self.span) {
            return Ok(());
        }
        Err(format!("is memory of {given} elements, of which {} are needed", self.span))
    }

    /// # Safety
    /// As [`place`](Operand::place).
    unsafe fn check_view(&self, tensor: &Tensor) -> Result<(), String> {
        let rank = self.shape.len();
        if usize::try_from(tensor.ndim) != Ok(rank) {
            return Err(format!("has rank {}, and {rank} is needed", tensor.ndim));
        }
        // SAFETY: the caller gives a number for each axis.
        let shape = unsafe { numbers(tensor.shape, rank) }.ok_or("has no shape: its pointer is null")?;
        if shape != self.shape {
            return Err(format!("has shape {shape:?}, and {:?} is needed", self.shape));
        }
        // SAFETY: the caller gives a number for each axis.
        unsafe { self.check_strides(tensor) }
    }

    /// # Safety
    /// As [`place`](Operand::place).
    #[cold]
    unsafe fn check_strides(&self, tensor: &Tensor) -> Result<(), String> {
        if self.is_blocked {
            return Err("has a blocked layout, which no strides tell: give it as plain memory".into());
        }
        let rank = self.shape.len();
        // SAFETY: the caller gives a number for each axis, or none.
        let strides = match unsafe { numbers(tensor.strides, rank) } {
            Some(strides) => strides.to_vec(),
            None => row_major(&self.shape),
        };
        let axes = self.shape.iter().zip(&strides).zip(&self.strides);
        let is_empty = self.span == 0;
        if is_empty || axes.clone().all(|((&extent, given), own)| extent == 1 || given == own) {
            return Ok(());
        }
        Err(format!("has strides {strides:?}, and {:?} are needed", self.strides))
    }
}

/// The rank and the type of a tensor as one number.
#[inline(always)]
fn kind(rank: i32, dtype: DataType) -> u64 {
    let packed = u32::from(dtype.code) | u32::from(dtype.bits) << 8 | u32::from(dtype.lanes) << 16;
    u64::from(rank as u32) | u64::from(packed) << 32
}

/// A row-major operand, for the shortest check of a tensor.
#[derive(Debug)]
pub struct Plain {
    kind: u64,
    shape: Box<[i64]>,
    span_bytes: usize,
}

impl Plain {
    /// The address of the tensor's first element, and of the end of its last; `None` if it needs a second look.
    ///
    /// # Safety
    /// The tensor's `shape` points to as many numbers as the header says.
    #[inline(always)]
    pub unsafe fn place(&self, tensor: &Tensor) -> Option<(usize, usize)> {
        let start = tensor.data.addr();
        let (end, is_past) = start.overflowing_add(self.span_bytes);
        let is_other = kind(tensor.ndim, tensor.dtype) != self.kind || tensor.device.kind != CPU;
        if is_other || tensor.byte_offset != 0 || !tensor.strides.is_null() || start == 0 || is_past {
            return None;
        }
        if !self.shape.is_empty() && tensor.shape.is_null() {
            return None;
        }
        for (axis, &extent) in self.shape.iter().enumerate() {
            // SAFETY: the caller gives a number for each axis; here it needs no alignment.
            if unsafe { tensor.shape.add(axis).read_unaligned() } != extent {
                return None;
            }
        }
        Some((start, end))
    }
}

/// The strides of a tensor without strides.
fn row_major(shape: &[i64]) -> Vec<i64> {
    let mut stride = 1i64;
    let mut strides: Vec<i64> = vec![];
    for &extent in shape.iter().rev() {
        strides.push(stride);
        stride = stride.saturating_mul(extent);
    }
    strides.reverse();
    strides
}

/// The numbers of a caller, `count` of them; `None` if the pointer is none.
///
/// # Safety
/// The pointer is null or to as many numbers, which live as long as 'a.
unsafe fn numbers<'a>(pointer: *const i64, count: usize) -> Option<&'a [i64]> {
    if count == 0 {
        return Some(&[]);
    }
    let usable = !pointer.is_null() && pointer.is_aligned();
    // SAFETY: the caller keeps the contract.
    usable.then(|| unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// Checks the type and the device of a tensor.
fn check_memory(dtype: DataType, tensor: &Tensor) -> Result<(), String> {
    if tensor.dtype != dtype {
        return Err(format!("is {}, and {} is needed", tensor.dtype.shown(), dtype.shown()));
    }
    if tensor.device.kind != CPU {
        return Err(format!("is on a device of kind {}, and the processor's is {CPU}", tensor.device.kind));
    }
    Ok(())
}

/// The addresses of the elements of a tensor in a row: plain memory, or one axis of stride 1.
///
/// # Safety
/// As [`Operand::place`].
pub unsafe fn row(tensor: &Tensor, dtype: DType, elems: u64, shown: &dyn Display) -> Result<Range<usize>, Failure> {
    let refused = |why: String| Failure::new(Code::Tensor, format!("{shown} {why}"));
    check_memory(DataType::of(dtype), tensor).map_err(refused)?;
    let is_scalar = tensor.ndim == 0;
    if !matches!(tensor.ndim, BUFFER | 0 | 1) {
        return Err(refused(format!("has rank {}, and one row of elements is needed", tensor.ndim)));
    }
    let no_shape = || refused("has no shape: its pointer is null".into());
    // SAFETY: the caller gives one number.
    let given = if is_scalar { 1 } else { unsafe { numbers(tensor.shape, 1) }.ok_or_else(no_shape)?[0] };
    // SAFETY: the caller gives one number.
    let stride = if is_scalar { None } else { unsafe { numbers(tensor.strides, 1) } };
    if stride.is_some_and(|stride| stride != [1]) && given > 1 {
        return Err(refused("has a stride, and one row of elements is needed".into()));
    }
    let is_enough = match tensor.ndim {
        BUFFER => u64::try_from(given).is_ok_and(|given| given >= elems),
        _ => u64::try_from(given) == Ok(elems),
    };
    if !is_enough {
        return Err(refused(format!("has {given} elements, and {elems} are needed")));
    }
    let bytes = elems.checked_mul(dtype.bytes()).and_then(|bytes| usize::try_from(bytes).ok());
    if bytes == Some(0) {
        return Ok(0..0);
    }
    if tensor.data.is_null() {
        return Err(refused("has no data: its pointer is null".into()));
    }
    let offset = usize::try_from(tensor.byte_offset).ok();
    let start = offset.and_then(|offset| tensor.data.addr().checked_add(offset));
    let end = start.zip(bytes).and_then(|(start, bytes)| start.checked_add(bytes));
    let range = start.zip(end).map(|(start, end)| start..end);
    range.ok_or_else(|| refused("does not lie within the address space".into()))
}

/// Returns true if two ranges of addresses have an address in common.
#[inline]
pub fn overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}
