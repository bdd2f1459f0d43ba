//! Arrays in `.npy` files.
//!
//! A file holds the logical array, in C or Fortran order and either byte order, which is packed into the operand's
//! layout with zeros between elements. Or it holds the operand's buffer as it lies in memory, as an array of one axis.
//! `f16` is `<f2`; `bf16`, which NumPy lacks, is `<u2` with its bits; `bool` is `|b1`. Written files are little-endian
//! and in C order.

use crate::buffer::Buffer;
use crate::failure::Failure;
use crate::npz;
use cranefold::layout::Places;
use cranefold::spec::Operand;
use cranefold::{DType, Layout};
use npyz::{Endianness, NpyHeader, Order, TypeStr, WriterBuilder};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use std::path::Path;

/// The longest header that is read, in bytes. NumPy writes some 30 bytes an axis. The parser is recursive, so a longer
/// header could exhaust the stack.
const MAX_HEADER: u64 = 4096;

/// A file that is not the array of an operand.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages define the variants and their fields")]
pub enum NpyError {
    #[error("not a .npy file: {}", first_line(.0))]
    Header(io::Error),
    #[error("not a .npy file: {0}")]
    NoHeader(String),
    #[error("{0}")]
    Archive(String),
    #[error("the file holds `{given}`, {operand} is {dtype}, which is `{expected}` in a file{}", converted(given, *dtype))]
    DType { given: String, operand: String, dtype: DType, expected: TypeStr },
    #[error("the file has shape {given}, {operand} has shape {expected}; a file has the shape of its operand")]
    Shape { given: String, operand: String, expected: String },
    #[error("the file has shape {given}, the buffer of {operand} has shape {expected}, padding and gaps included")]
    Buffer { given: String, operand: String, expected: String },
    #[error("{given} bytes of elements follow the header, {expected} belong to shape {shape}")]
    Length { given: String, expected: u64, shape: String },
    #[error("{operand} keeps elements of the file in one place by its strides, but the file's are different")]
    Repeated { operand: String },
    #[error(
        "the file is in Fortran order, and a file is streamed in C order: save it after \
         `numpy.ascontiguousarray`, or read it without --memory"
    )]
    NotStreamed,
}

/// The form of an operand in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The logical array.
    Logical,
    /// The buffer, padding and gaps included, as an array of one axis.
    Raw,
}

impl Form {
    /// The shape of the file.
    fn shape(self, operand: &Operand) -> Vec<u64> {
        match self {
            Form::Logical => operand.shape().to_vec(),
            Form::Raw => vec![operand.span_elems()],
        }
    }
}

/// The words for how an array of another type is reduced.
fn converted(given: &str, dtype: DType) -> String {
    let known = DType::ALL.into_iter().find(|known| {
        let name = type_str(*known).to_string();
        *known != DType::Bf16 && name[1..] == given[given.len().min(1)..]
    });
    let numpy = match dtype.name().split_at(1) {
        ("f", bits) => format!("float{bits}"),
        ("i", bits) => format!("int{bits}"),
        ("u", bits) => format!("uint{bits}"),
        _ => dtype.name().to_string(),
    };
    match known {
        Some(_) if dtype == DType::Bf16 => "; the bits of bf16 are those of u2".into(),
        Some(known) => format!("; the spec may have {known}, or `array.astype(\"{numpy}\")` converts the array"),
        None => format!("; `{given}` is no element type of a spec"),
    }
}

/// The first line of a message: the parser of headers shows the header below it.
fn first_line(error: &io::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().into()
}

/// The name of an element type in a file.
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
pub fn read(path: &Path, form: Form, operand: &Operand, name: &str) -> Result<Buffer, Failure> {
    let (elements, order) = read_array(path, form, (operand.dtype(), &form.shape(operand)), name)?;
    match form {
        Form::Raw => Ok(elements),
        Form::Logical if order == Order::C && is_dense(operand) => Ok(elements),
        Form::Logical => {
            pack(&elements, order, operand, name)?.map_err(|error| Failure::Npy { path: path.into(), error })
        }
    }
}

/// Reads a file of so many elements on one axis.
///
/// # Errors
/// As [`read`].
pub fn read_flat(path: &Path, dtype: DType, len: u64, name: &str) -> Result<Buffer, Failure> {
    read_array(path, Form::Raw, (dtype, &[len]), name).map(|(elements, _)| elements)
}

/// Reads an array of this type and shape in row-major order.
///
/// # Errors
/// As [`read`].
pub fn read_packed(path: &Path, dtype: DType, shape: &[u64], name: &str) -> Result<Buffer, Failure> {
    let (elements, order) = read_array(path, Form::Logical, (dtype, shape), name)?;
    if order == Order::C || shape.len() < 2 {
        return Ok(elements);
    }
    let size = dtype.bytes() as usize;
    let mut packed = Buffer::zeroed(elements.bytes().len() as u64)?;
    let mut at = vec![0; shape.len()];
    for element in packed.bytes_mut().chunks_exact_mut(size) {
        let from = shape.iter().zip(&at).rev().fold(0, |from, (&extent, &i)| from * extent + i) as usize;
        element.copy_from_slice(&elements.bytes()[from * size..][..size]);
        for (i, &extent) in at.iter_mut().zip(shape).rev() {
            *i += 1;
            if *i < extent {
                break;
            }
            *i = 0;
        }
    }
    Ok(packed)
}

/// The elements of a file of this type and shape, and their order.
fn read_array(
    path: &Path,
    form: Form,
    (dtype, shape): (DType, &[u64]),
    name: &str,
) -> Result<(Buffer, Order), Failure> {
    let unreadable = |error| Failure::Read { path: path.into(), error };
    let refused = |error| Failure::Npy { path: path.into(), error };
    let bytes = shape.iter().fold(dtype.bytes(), |bytes, &extent| bytes.saturating_mul(extent));
    let mut file = open(path, bytes.saturating_add(MAX_HEADER))?;
    let header = read_header(&mut file, path)?;
    let swapped = check(&header, form, (dtype, shape), name).map_err(refused)?;

    let elements_bytes = shape.iter().product::<u64>() * dtype.bytes();
    let mut elements = Buffer::zeroed(elements_bytes)?;
    let got = read_full(&mut file, elements.bytes_mut()).map_err(unreadable)? as u64;
    let more = got == elements_bytes && file.read(&mut [0]).map_err(unreadable)? > 0;
    if got < elements_bytes || more {
        let given = if more { format!("more than {got}") } else { got.to_string() };
        return Err(refused(NpyError::Length { given, expected: elements_bytes, shape: list(shape) }));
    }
    if swapped {
        elements.bytes_mut().chunks_exact_mut(dtype.bytes() as usize).for_each(<[u8]>::reverse);
    }
    Ok((elements, header.order()))
}

/// Opens a file, the standard input where the path is `-`, or an array of at most so many bytes of a `.npz` file.
fn open(path: &Path, most: u64) -> Result<BufReader<Box<dyn Read>>, Failure> {
    let unreadable = |error| Failure::Read { path: path.into(), error };
    if path.as_os_str() == "-" {
        return Ok(BufReader::new(Box::new(io::stdin().lock())));
    }
    Ok(BufReader::new(match path.to_str().and_then(npz::split) {
        Some((archive, name)) => {
            let file = File::open(archive).map_err(|error| Failure::Read { path: archive.into(), error })?;
            let array = npz::read(BufReader::new(file), name, most);
            Box::new(io::Cursor::new(array.map_err(|error| Failure::Npy { path: path.into(), error })?))
        }
        None => Box::new(File::open(path).map_err(unreadable)?),
    }))
}

/// Reads the header of a file.
fn read_header(file: &mut impl BufRead, path: &Path) -> Result<NpyHeader, Failure> {
    // A folder opens as a file, and fails here.
    let start = file.fill_buf().map_err(|error| Failure::Read { path: path.into(), error })?.to_vec();
    NpyHeader::from_reader(file.by_ref().take(MAX_HEADER)).map_err(|error| Failure::Npy {
        path: path.into(),
        error: no_header(&start).map_or(NpyError::Header(error), NpyError::NoHeader),
    })
}

/// The reason why a file that begins with these bytes has no header; `None` if its header is there, and wrong.
fn no_header(start: &[u8]) -> Option<String> {
    let magic = b"\x93NUMPY";
    if start.is_empty() {
        return Some("it is empty".into());
    }
    if start.starts_with(b"PK\x03\x04") {
        return Some("it is an archive; the name of one ends in .npz".into());
    }
    if !start.starts_with(&magic[..magic.len().min(start.len())]) {
        return Some("it does not begin as `numpy.save(\"x.npy\", array)` begins a file".into());
    }
    let (bytes, length) = match *start.get(6)? {
        1 => (2, u64::from(u16::from_le_bytes(start.get(8..10)?.try_into().ok()?))),
        _ => (4, u64::from(u32::from_le_bytes(start.get(8..12)?.try_into().ok()?))),
    };
    let whole = 8 + bytes + length;
    if whole > MAX_HEADER {
        return Some(format!("its header of {length} bytes is above the limit of {MAX_HEADER}"));
    }
    ((start.len() as u64) < whole).then(|| format!("it ends in its header, after {} of {whole} bytes", start.len()))
}

/// Opens the file of a row-major operand, whose elements lie in it as in memory, from the returned byte on. The bytes of
/// each are in the other order if the last result is true.
///
/// # Errors
/// As [`read`]; also if the file is in Fortran order.
pub fn open_elements(path: &Path, operand: &Operand, name: &str) -> Result<(File, u64, bool), Failure> {
    let unreadable = |error| Failure::Read { path: path.into(), error };
    let refused = |error| Failure::Npy { path: path.into(), error };
    let mut file = BufReader::new(File::open(path).map_err(unreadable)?);
    let header = read_header(&mut file, path)?;
    let swapped = check(&header, Form::Logical, (operand.dtype(), operand.shape()), name).map_err(refused)?;
    if header.order() != Order::C && operand.shape().len() > 1 {
        return Err(refused(NpyError::NotStreamed));
    }
    let start = file.stream_position().map_err(unreadable)?;
    let length = file.get_ref().metadata().map_err(unreadable)?.len().saturating_sub(start);
    let expected = operand.span_bytes();
    if length != expected {
        let given = if length > expected { format!("more than {expected}") } else { length.to_string() };
        return Err(refused(NpyError::Length { given, expected, shape: list(operand.shape()) }));
    }
    Ok((file.into_inner(), start, swapped))
}

/// Returns true if the buffer is the elements in row-major order, and nothing else.
fn is_dense(operand: &Operand) -> bool {
    let row_major = Layout::row_major().resolve(operand.shape(), operand.dtype().bytes());
    row_major.as_ref() == Ok(operand.placement())
}

/// Checks element type and shape; says whether the bytes of elements are to be swapped.
fn check(header: &NpyHeader, form: Form, (dtype, shape): (DType, &[u64]), name: &str) -> Result<bool, NpyError> {
    let expected = type_str(dtype);
    let same = |t: &TypeStr| t.type_char() == expected.type_char() && t.size_field() == expected.size_field();
    let endianness = match header.dtype() {
        npyz::DType::Plain(given) if same(&given) => given.endianness(),
        npyz::DType::Plain(given) => return Err(other_type(given.to_string(), expected, dtype, name)),
        given => return Err(other_type(given.descr(), expected, dtype, name)),
    };
    if header.shape() != shape {
        let (given, operand, expected) = (list(header.shape()), name.into(), list(shape));
        return Err(match form {
            Form::Logical => NpyError::Shape { given, operand, expected },
            Form::Raw => NpyError::Buffer { given, operand, expected },
        });
    }
    Ok(match endianness {
        Endianness::Irrelevant => false,
        given => given != Endianness::of_machine(),
    })
}

fn other_type(given: String, expected: TypeStr, dtype: DType, name: &str) -> NpyError {
    NpyError::DType { given, operand: name.into(), dtype, expected }
}

/// Reads until the buffer is full or the file ends; returns the number of bytes read.
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

/// The elements, given in this order, in the layout of an operand. Elements that strides (zero, or overlapping) put in
/// one place must be equal.
fn pack(elements: &Buffer, order: Order, operand: &Operand, name: &str) -> Result<Result<Buffer, NpyError>, Failure> {
    let mut packed = Buffer::zeroed(operand.span_bytes())?;
    let places = || match order {
        Order::C => operand.places(),
        Order::Fortran => operand.places().column_major(),
    };
    let size = operand.dtype().bytes() as usize;
    let (from, to) = (elements.bytes(), packed.bytes_mut());
    match size {
        1 => scatter::<1>(from, places(), to),
        2 => scatter::<2>(from, places(), to),
        4 => scatter::<4>(from, places(), to),
        _ => scatter::<8>(from, places(), to),
    }
    let kept = from.chunks_exact(size).zip(places()).all(|(element, place)| *element == to[place * size..][..size]);
    Ok(if kept { Ok(packed) } else { Err(NpyError::Repeated { operand: name.into() }) })
}

/// Writes neighbouring elements to their places.
fn scatter<const SIZE: usize>(from: &[u8], places: Places, to: &mut [u8]) {
    let (from, to) = (from.as_chunks::<SIZE>().0, to.as_chunks_mut::<SIZE>().0);
    from.iter().zip(places).for_each(|(element, place)| to[place] = *element);
}

/// Collects elements from their places to neighbouring ones.
fn gather<const SIZE: usize>(from: &[u8], places: Places, to: &mut [u8]) {
    let (from, to) = (from.as_chunks::<SIZE>().0, to.as_chunks_mut::<SIZE>().0);
    to.iter_mut().zip(places).for_each(|(element, place)| *element = from[place]);
}

/// Writes an operand to a file; messages name it `path`.
///
/// # Errors
/// If the file cannot be written.
pub fn write(file: &mut File, path: &Path, form: Form, operand: &Operand, bytes: &[u8]) -> Result<(), Failure> {
    let shape = form.shape(operand);
    if form == Form::Raw {
        return write_array(file, path, operand.dtype(), &shape, bytes);
    }
    let mut elements = Buffer::zeroed(shape.iter().product::<u64>() * operand.dtype().bytes())?;
    let to = elements.bytes_mut();
    match operand.dtype().bytes() {
        1 => gather::<1>(bytes, operand.places(), to),
        2 => gather::<2>(bytes, operand.places(), to),
        4 => gather::<4>(bytes, operand.places(), to),
        _ => gather::<8>(bytes, operand.places(), to),
    }
    write_array(file, path, operand.dtype(), &shape, elements.bytes())
}

/// Writes elements, in row-major order, to a file.
///
/// # Errors
/// As [`write`].
pub fn write_array(file: &mut File, path: &Path, dtype: DType, shape: &[u64], bytes: &[u8]) -> Result<(), Failure> {
    let mut write = || -> io::Result<()> {
        let options = npyz::WriteOptions::new_header_only().dtype(npyz::DType::Plain(type_str(dtype)));
        options.shape(shape).writer(&mut *file).write_header_only()?;
        if Endianness::of_machine() == Endianness::Little {
            return file.write_all(bytes);
        }
        let mut elements = bytes.to_vec();
        elements.chunks_exact_mut(dtype.bytes() as usize).for_each(<[u8]>::reverse);
        file.write_all(&elements)
    };
    write().map_err(|error| Failure::Write { path: path.into(), error })
}

/// A shape in brackets.
fn list(shape: &[u64]) -> String {
    let extents: Vec<String> = shape.iter().map(u64::to_string).collect();
    format!("[{}]", extents.join(","))
}
