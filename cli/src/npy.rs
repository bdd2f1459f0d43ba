//! Arrays in `.npy` files.
//!
//! A file holds the logical array, in C or Fortran order and either byte order; it is packed into the
//! operand's layout. `f16` is `<f2`; `bf16`, which NumPy has not, is `<u2` that holds the bits; `bool`
//! is `|b1`. What is written is little-endian and in C order.

use crate::buffer::Buffer;
use crate::failure::Failure;
use crate::strided::{Placed, row_major, walk};
use cranefold::DType;
use cranefold::spec::Operand;
use npyz::{Endianness, NpyHeader, TypeStr, WriterBuilder};
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

/// The longest header that is read. NumPy writes some 30 bytes an axis; the parser is recursive, so that
/// a longer one could exhaust the stack.
const MAX_HEADER: u64 = 4096;

/// A file that is not the array of an operand.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages define the variants and their fields")]
pub enum NpyError {
    #[error("not a .npy file: {}", first_line(.0))]
    Header(io::Error),
    #[error("the file holds `{given}`, {operand} is {dtype}, which is `{expected}` in a file")]
    DType { given: String, operand: String, dtype: DType, expected: TypeStr },
    #[error("the file has shape {given}, {operand} has shape {expected}")]
    Shape { given: String, operand: String, expected: String },
    #[error("{given} bytes of elements follow the header, {expected} belong to shape {shape}")]
    Length { given: String, expected: u64, shape: String },
    #[error("{operand} keeps elements of the file in one place by its strides, but the file's are different")]
    Repeated { operand: String },
}

/// The first line of a message: the parser of headers shows the header below it.
fn first_line(error: &io::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().into()
}

/// How an element type is said in a file.
fn type_str(dtype: DType) -> TypeStr {
    let text = match dtype {
        DType::Bool => "|b1",
        DType::I8 => "|i1",
        DType::U8 => "|u1",
        DType::I16 => "<i2",
        DType::U16 | DType::Bf16 => "<u2",
        DType::I32 => "<i4",
        DType::U32 => "<u4",
        DType::I64 => "<i8",
        DType::U64 => "<u8",
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
    };
    text.parse().expect("a type string")
}

/// Reads a file into the layout of an operand, whose name in messages is `name`.
///
/// # Errors
/// If the file cannot be read, or holds other elements or another shape.
pub fn read(path: &Path, operand: &Operand, name: &str) -> Result<Buffer, Failure> {
    let unreadable = |error| Failure::Read { path: path.into(), error };
    let refused = |error| Failure::Npy { path: path.into(), error };
    let mut file = BufReader::new(File::open(path).map_err(unreadable)?);
    let header = NpyHeader::from_reader(file.by_ref().take(MAX_HEADER)).map_err(|error| match error.kind() {
        // A folder opens as a file, and fails here.
        io::ErrorKind::IsADirectory => unreadable(error),
        _ => refused(NpyError::Header(error)),
    })?;
    let swapped = check(&header, operand, name).map_err(refused)?;

    let elements_bytes = operand.elems() * operand.dtype().bytes();
    let mut elements = Buffer::zeroed(elements_bytes)?;
    let got = read_full(&mut file, elements.bytes_mut()).map_err(unreadable)? as u64;
    let more = got == elements_bytes && file.read(&mut [0]).map_err(unreadable)? > 0;
    if got < elements_bytes || more {
        let given = if more { format!("more than {got}") } else { got.to_string() };
        return Err(refused(NpyError::Length { given, expected: elements_bytes, shape: list(operand.shape()) }));
    }
    if swapped {
        elements.bytes_mut().chunks_exact_mut(operand.dtype().bytes() as usize).for_each(<[u8]>::reverse);
    }
    let strides: Vec<i64> = header.strides().iter().map(|&stride| stride as i64).collect();
    let in_place = strides == operand.strides() && operand.origin() == 0 && operand.span_elems() == operand.elems();
    if in_place { Ok(elements) } else { pack(&elements, &strides, operand, name)?.map_err(refused) }
}

/// Checks element type and shape; says whether the bytes of elements are to be swapped.
fn check(header: &NpyHeader, operand: &Operand, name: &str) -> Result<bool, NpyError> {
    let expected = type_str(operand.dtype());
    let same = |t: &TypeStr| t.type_char() == expected.type_char() && t.size_field() == expected.size_field();
    let endianness = match header.dtype() {
        npyz::DType::Plain(given) if same(&given) => given.endianness(),
        npyz::DType::Plain(given) => return Err(other_type(given.to_string(), expected, operand, name)),
        given => return Err(other_type(given.descr(), expected, operand, name)),
    };
    if header.shape() != operand.shape() {
        let (given, expected) = (list(header.shape()), list(operand.shape()));
        return Err(NpyError::Shape { given, operand: name.into(), expected });
    }
    Ok(match endianness {
        Endianness::Irrelevant => false,
        given => given != Endianness::of_machine(),
    })
}

fn other_type(given: String, expected: TypeStr, operand: &Operand, name: &str) -> NpyError {
    NpyError::DType { given, operand: name.into(), dtype: operand.dtype(), expected }
}

/// Reads until the buffer is full or the file ends; gives the number of bytes.
fn read_full(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match file.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(bytes) => got += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

/// The elements, which have these strides, in the layout of an operand. Strides that put several
/// elements in one place (zero, or overlapping) need them to be the same.
fn pack(
    elements: &Buffer,
    strides: &[i64],
    operand: &Operand,
    name: &str,
) -> Result<Result<Buffer, NpyError>, Failure> {
    let mut packed = Buffer::zeroed(operand.span_bytes())?;
    let (from, to) = (Placed { strides, origin: 0 }, Placed::of(operand));
    copy(operand, elements.bytes(), from, packed.bytes_mut(), to);
    let size = operand.dtype().bytes() as usize;
    let (from_bytes, to_bytes) = (elements.bytes(), packed.bytes());
    let kept = walk(operand.shape(), from, to, |from, to| {
        let same = from_bytes[from * size..][..size] == to_bytes[to * size..][..size];
        if same { Ok(()) } else { Err(NpyError::Repeated { operand: name.into() }) }
    });
    Ok(kept.map(|()| packed))
}

/// Copies the elements of an operand from one placement to another.
fn copy(operand: &Operand, from_bytes: &[u8], from: Placed, to_bytes: &mut [u8], to: Placed) {
    match operand.dtype().bytes() {
        1 => copy_sized::<1>(operand.shape(), from_bytes, from, to_bytes, to),
        2 => copy_sized::<2>(operand.shape(), from_bytes, from, to_bytes, to),
        4 => copy_sized::<4>(operand.shape(), from_bytes, from, to_bytes, to),
        _ => copy_sized::<8>(operand.shape(), from_bytes, from, to_bytes, to),
    }
}

fn copy_sized<const SIZE: usize>(shape: &[u64], from_bytes: &[u8], from: Placed, to_bytes: &mut [u8], to: Placed) {
    let (from_elems, to_elems) = (from_bytes.as_chunks::<SIZE>().0, to_bytes.as_chunks_mut::<SIZE>().0);
    let done: Result<(), std::convert::Infallible> = walk(shape, from, to, |from, to| {
        to_elems[to] = from_elems[from];
        Ok(())
    });
    let Ok(()) = done;
}

/// Writes an operand to a file.
///
/// # Errors
/// If the file cannot be written.
pub fn write(path: &Path, operand: &Operand, bytes: &[u8]) -> Result<(), Failure> {
    let mut dense = Buffer::zeroed(operand.elems() * operand.dtype().bytes())?;
    let strides = row_major(operand.shape());
    copy(operand, bytes, Placed::of(operand), dense.bytes_mut(), Placed { strides: &strides, origin: 0 });
    if Endianness::of_machine() == Endianness::Big {
        dense.bytes_mut().chunks_exact_mut(operand.dtype().bytes() as usize).for_each(<[u8]>::reverse);
    }
    let write = || -> io::Result<()> {
        let options = npyz::WriteOptions::new_header_only().dtype(npyz::DType::Plain(type_str(operand.dtype())));
        let mut file = options.shape(operand.shape()).writer(File::create(path)?).write_header_only()?;
        file.write_all(dense.bytes())
    };
    write().map_err(|error| Failure::Write { path: path.into(), error })
}

/// A shape in brackets.
fn list(shape: &[u64]) -> String {
    let extents: Vec<String> = shape.iter().map(u64::to_string).collect();
    format!("[{}]", extents.join(","))
}
