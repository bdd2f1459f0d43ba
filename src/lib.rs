//! A compiler for tensor reductions.
//!
//! A [`Reduction`] is a request: an op, its inputs and outputs, the axes. It is built or parsed
//! from one line of text, checked once, and plain data from then on. The [`mod@reference`] executes it
//! slowly and obviously rightly; it is what every other way of execution is held against.
//!
//! ```
//! use cranefold::Reduction;
//!
//! let spec: Reduction = "mean f32[6,12,10,24] axes=[2,3]".parse()?;
//! assert_eq!(spec.outputs()[0].shape(), [6, 12]);
//! # Ok::<(), cranefold::SpecError>(())
//! ```

mod codegen;
pub mod compiler;
pub mod dump;
pub mod error;
mod jit;
pub mod kernel;
pub mod layout;
pub mod lower;
pub mod passes;
pub mod pipeline;
pub mod problem;
pub mod reference;
pub mod schedule;
pub mod spec;
pub mod target;
pub mod tree;

pub use compiler::{Compiler, Options};
pub use cranefold_ir as ir;
pub use cranefold_ir::ops;
pub use cranefold_ir::{DType, Scalar};
pub use error::{CallError, Error};
pub use kernel::{Element, Input, Kernel, Output};
pub use layout::Layout;
pub use problem::Problem;
pub use schedule::{Schedule, ScheduleError};
pub use spec::{Reduction, SpecError};
pub use target::Target;
