//! Makes machine code of a legal nest: one walk over the nest drives either of two emitters.
//!
//! | module | contents |
//! | --- | --- |
//! | [`storage`] | the place of each accumulator: registers, the frame, scratch memory |
//! | [`walk`] | the walk of a legal nest: statements and loops |
//! | [`expr`] | the walk of expressions and definitions |
//! | [`address`] | the pointers of a nest, and addresses |
//! | [`accumulators`] | accumulators in registers |
//! | [`positions`] | values of indices |
//! | [`transpose`] | loads of whole vectors, and the shuffles that make columns of them |
//! | [`emit`] | the contract between the walk and an emitter |
//! | [`clif`] | the emitter of Cranelift functions, with vectors of 128 bits |
//! | [`x86`] | the emitter of wide functions: machine code of x86-64, with vectors of 256 or 512 bits |
//! | [`marks`] | the loop that each instruction belongs to, for the disassembly |

mod accumulators;
mod address;
pub mod clif;
mod emit;
mod expr;
pub mod marks;
mod positions;
pub mod storage;
#[cfg(test)]
mod tests;
mod transpose;
mod walk;
pub mod x86;

/// A nest holds something that should have been legalized: a bug of ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("code generation has no form for {0}")]
pub struct Refused(pub String);
