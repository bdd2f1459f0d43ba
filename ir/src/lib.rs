//! The loop-nest language of cranefold: data, text form, verifier and interpreter.
mod dtype;
pub mod eval;
mod expr;
pub mod math;
mod nest;
mod op;
pub mod ops;
mod parse;
mod print;
mod scalar;
pub mod tree;
mod verify;

pub use dtype::{DType, UnknownDType};
pub use expr::{Def, Expr, Lets};
pub use nest::{
    AccId, BufId, Buffer, BufferRole, DefId, Extent, Index, Loop, LoopKind, LoopVar, Names, Nest, Over, Stmt, Var,
};
pub use op::Op;
pub use parse::{MAX_DEPTH, ParseError};
pub use scalar::Scalar;
pub use verify::{Violation, Violations, verify};
