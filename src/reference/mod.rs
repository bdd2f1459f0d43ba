//! The reference: slow and obviously right.
//!
//! It walks indices straight from the spec, knows the ops by their names, and shares nothing with
//! the compiler. Integers are exact, floats carry 128 significant bits, and each result is rounded
//! once at the end. Every other way of execution is held against it: [`check`] says whether a
//! result is one that the reduction tree can give.
//!
//! ```
//! use cranefold::{Reduction, Scalar, reference};
//!
//! let spec: Reduction = "mean i32[2,3] axes=[1] round_half_even".parse()?;
//! let input: Vec<u8> = [1, 2, 3, 7, 8, 8].into_iter().flat_map(i32::to_ne_bytes).collect();
//! let exact = reference::reduce(&spec, &[&input])?;
//! assert_eq!(exact[0][1].round(&spec).as_int(), Some(8));
//!
//! let mut output = [0; 8];
//! reference::run(&spec, &[&input], &mut [&mut output])?;
//! assert_eq!(Scalar::read(cranefold::DType::I32, &output, 0).as_int(), Some(2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What the words of the ops leave open is decided here so:
//!
//! - parameters (`p`, `eps`) and the count that a mean divides by are first rounded to the
//!   accumulator type;
//! - over no axes, copies wrap or clamp as a reduction of the same op would;
//! - the least and greatest of no integers are the limits of the *input's* type, then converted.

mod bound;
mod exact;
mod floats;
mod functions;
mod integers;
mod logic;
mod real;
mod walk;
mod wide;

pub use exact::{Exact, Mismatch, Value, check};
pub use real::Real;
pub use wide::{Integer, U256};

use crate::spec::Reduction;
use walk::{Indices, Slice};

/// Buffers that do not fit the spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages define the variants and their fields")]
pub enum BufferError {
    #[error("{given} {kind} buffers for a spec with {expected}")]
    Count { kind: &'static str, given: usize, expected: usize },
    #[error("{kind} {index} has {given} bytes and needs {needed}")]
    TooShort { kind: &'static str, index: usize, given: usize, needed: u64 },
}

/// The exact result of every element of every output, in the row-major order of the output's shape.
///
/// A buffer holds the operand's elements in the machine's byte order, from the lowest address that
/// one of them touches; it may be longer.
///
/// # Errors
/// If there are too few or too many buffers, or one is too short.
pub fn reduce(spec: &Reduction, inputs: &[&[u8]]) -> Result<Vec<Vec<Exact>>, BufferError> {
    walk::check_buffers("input", spec.inputs(), inputs.iter().map(|b| b.len()))?;
    Ok(vec![Slice::all(spec, inputs[0]).map(|slice| one(spec, &slice)).collect()])
}

/// One output element.
fn one(spec: &Reduction, slice: &Slice) -> Exact {
    let dtype = spec.inputs()[0].dtype();
    if spec.is_identity() {
        let element = slice.elements().next().expect("one element over no axes");
        return Exact::certain(match dtype {
            _ if dtype.is_float() => Value::Float(floats::value(element)),
            _ if dtype.is_int() => Value::Int(Integer::from(integers::value(element))),
            _ => Value::Bool(element.bits() != 0),
        });
    }
    match dtype {
        _ if dtype.is_float() => floats::reduce(spec, slice),
        _ if dtype.is_int() => integers::reduce(spec, slice),
        _ => logic::reduce(spec.row().name, slice.elements()),
    }
}

/// Runs the spec: writes every output element through the output's layout. What lies between the
/// elements is left alone.
///
/// # Errors
/// If there are too few or too many buffers, or one is too short.
pub fn run(spec: &Reduction, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) -> Result<(), BufferError> {
    walk::check_buffers("output", spec.outputs(), outputs.iter().map(|b| b.len()))?;
    for ((output, exact), bytes) in spec.outputs().iter().zip(reduce(spec, inputs)?).zip(outputs) {
        for (index, exact) in Indices::of(output).zip(exact) {
            exact.round(spec).write(bytes, index as usize);
        }
    }
    Ok(())
}
