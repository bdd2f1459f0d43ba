//! The loop-nest language of cranefold: data, text form, verifier and interpreter.
mod dtype;
pub mod eval;
mod expr;
mod nest;
mod op;
pub mod ops;
mod scalar;
pub mod tree;

pub use dtype::{DType, UnknownDType};
pub use expr::{Def, Expr, Lets};
pub use nest::{
    AccId, BufId, Buffer, BufferRole, DefId, Extent, Index, Loop, LoopKind, LoopVar, Nest, Over, Stmt, Var,
};
pub use op::Op;
pub use scalar::Scalar;
