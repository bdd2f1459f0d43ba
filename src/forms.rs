//! The table of vector forms: the form of each operation on each type in each set of vectors.
//!
//! Vectors of 128 bits are Cranelift's, the same on every target. Vectors of 256 and 512 bits stand in wide functions,
//! where a scalar is a vector of which one lane counts: an operation without a form here has none there. Passes ask
//! this table what they may leave to a generator; the tests of both generators give them every form of the table, with
//! operands that `codegen/tests.rs` chooses. A form may use any instruction of its set's CPU features, which
//! `target.rs` lists.

use crate::vectors::{Set, Vectors};
use cranefold_ir::{DType, Op};

/// The form of an operation in a vector set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// No form.
    Absent,
    /// Instructions.
    Direct,
    /// A call of an equivalent definition, whose operations have forms.
    Defined,
    /// Instructions, if the amount of a shift is a constant.
    ByConstant,
    /// Instructions, if the lanes of all conditions have one size.
    OfOneSize,
    /// Instructions, if the lanes of the condition have a size that is known.
    OfKnownSize,
}

impl Form {
    const fn direct_if(holds: bool) -> Form {
        if holds { Form::Direct } else { Form::Absent }
    }
}

/// Returns the form of an operation with the result type `result`, whose first operand has the type `from`.
///
/// A condition is a mask register at 512 bits; at fewer bits it is a vector with lanes of the size of the compared
/// values.
pub fn form(vectors: Vectors, op: Op, result: DType, from: DType) -> Form {
    use Form::{Absent, ByConstant, Defined, Direct, OfKnownSize, OfOneSize};
    // The forms at 128, 256 and 512 bits.
    let forms = match op {
        Op::Neg | Op::Abs | Op::Sqrt | Op::Nearest | Op::Add | Op::Sub | Op::Fma | Op::Bits => [Direct; 3],
        Op::Eq | Op::Ne | Op::Lt | Op::Le => [Direct; 3],
        Op::Clz => [Absent; 3],
        Op::MulHigh => [Form::direct_if(from == DType::I16); 3],
        Op::Mul => [Form::direct_if(from.bytes() > 1); 3],
        Op::Div | Op::DivBy => [Form::direct_if(from.is_float()); 3],
        Op::Scale | Op::ScaleDown => [Defined, Defined, Direct],
        Op::Min | Op::Max if from.is_float() => [Defined, Direct, Direct],
        Op::Min | Op::Max => [Form::direct_if(from.bytes() < 8), Direct, Direct],
        Op::Not | Op::And | Op::Or | Op::Xor if from == DType::Bool => [Direct, OfOneSize, Direct],
        Op::Not | Op::And | Op::Or | Op::Xor => [Direct; 3],
        Op::Shl | Op::Shr if from.bytes() == 1 => [Absent; 3],
        Op::Shl | Op::Shr => [ByConstant; 3],
        Op::Select => [OfKnownSize, OfKnownSize, Direct],
        Op::Cast => cast(result, from),
    };
    match vectors.set() {
        Set::Scalars => Absent,
        Set::Portable => forms[0],
        Set::Avx2 => forms[1],
        Set::Avx512 => forms[2],
    }
}

/// Returns the forms of a conversion at 128, 256 and 512 bits.
fn cast(to: DType, from: DType) -> [Form; 3] {
    use DType::{Bf16, Bool, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
    use Form::{Absent, Defined, Direct, OfOneSize};
    match (from, to) {
        (Bool, _) if to.is_int() => [Absent, OfOneSize, Direct],
        (Bool, _) => [Absent; 3],
        _ if from.is_int() && to.is_int() => [Direct; 3],
        (F16 | Bf16, F32) | (F32, F16) => [Defined, Direct, Direct],
        (F16 | Bf16, F64) => [Defined, Direct, Direct],
        (F32, Bf16) => [Defined, Defined, Direct],
        (F64, F16 | Bf16) => [Defined; 3],
        (F32, F64) | (F64, F32) => [Direct; 3],
        (I8 | I16 | I32 | U8 | U16, F32 | F64) | (F32 | F64, I8 | I16 | I32 | U8 | U16) => [Direct; 3],
        (U32, F32 | F64) | (F32 | F64, U32) => [Direct, Defined, Direct],
        (I64 | U64, F32 | F64) | (F32 | F64, I64 | U64) => [Defined, Defined, Direct],
        _ => [Absent; 3],
    }
}

/// Returns true if vectors can hold positions.
pub fn counts(vectors: Vectors) -> bool {
    vectors.set() != Set::Scalars
}
