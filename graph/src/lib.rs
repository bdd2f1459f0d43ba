//! Graphs of tensor operations, and their fuser.
//!
//! A [`Graph`] is what graph compilers hand over: element-wise formulas, conversions, views, reductions, normalisations, and
//! opaque operations of the host. A [`Builder`] makes it, infers types and shapes, and names the node in every error.
//!
//! # Text
//!
//! A graph prints as text, which reads back to an equal graph:
//!
//! ```text
//! graph  = "graph" "{" { node LINE } "return" output { "," output } "}"
//! node   = result { "," result } "=" OP [ "(" NAME { "," NAME } ")" ] { word }
//! result = NAME [ ":" DTYPE "[" [ EXTENT { "," EXTENT } ] "]" ]
//! word   = NAME "=" ( NUMBER | QUOTED | "[" [ NUMBER { "," NUMBER } ] "]" ) | NAME
//! output = [ NAME "=" ] NAME
//! ```
//!
//! LINE is the end of a line outside brackets, or `;`. `#` begins a comment. NAME is a word of letters, digits, `_` and `.`,
//! or any text in quotes, with `\"`, `\\`, `\n` and `\u{HEX}`. EXTENT is a number, or a symbolic dim: a word that
//! [`Graph::bound`] replaces by one. A result needs its type where the operation does not give it.
//!
//! | op | result |
//! | --- | --- |
//! | `input` | a tensor that the caller gives |
//! | `const [1, 2]`, `const splat 0.5`, `const hex "00…"` | a tensor that is known; `hex` has little-endian elements |
//! | `map(x, y) "x0 * x1"` | a formula of elements, which broadcast: [`Op::Map`] |
//! | `cast(x)`, `cast(x) saturate` | a conversion to the type of the result |
//! | `reshape(x)`, `broadcast(x)` | the shape of the result |
//! | `transpose(x) perm=[1,0]` | axis i of the result is axis `perm[i]` of x |
//! | `slice(x) start=[0,8] step=[1,-2]` | elements from `start` on, as many as the result has |
//! | `concat(x, y) axis=1` | the inputs one after the other |
//! | `position axis=1` | the index along an axis, `i64` |
//! | `mean(x) axes=[1] keep_dims` | a reduction of cranefold's op table, with its parameters: `lp(x) p=3.0 axes=[1]` |
//! | `softmax(x) axes=[1]` | a normalisation of the table; scale and bias follow x |
//! | `pick(x, i) axis=1` | elements by an index: [`Op::Pick`] |
//! | `group_norm(x, w, b) groups=4` | a composite of [`COMPOSITES`] |
//! | `opaque(x, y) op="Conv" group=1` | an operation of the host, with its attributes |
//!
//! # Types
//!
//! A value has an element type and a static shape. In a formula a float of 16 bits is an `f32` and an integer of 8 or 16 bits
//! an `i32`; its result has the type of the narrow operands again. A reduction of integers gives their type: modulo 2^bits
//! where the op table wraps. `mean`, `l2` and other rows that give no integers compute in `f64` and convert towards zero.

mod build;
mod data;
mod dims;
mod error;
mod eval;
mod expand;
mod fold;
#[cfg(any(feature = "onnx", feature = "openvino"))]
mod front;
mod fuse;
mod graph;
mod infer;
#[cfg(feature = "onnx")]
pub mod onnx;
mod op;
#[cfg(feature = "openvino")]
pub mod openvino;
#[cfg(feature = "oracle")]
mod oracle;
mod plan;
#[cfg(feature = "run")]
mod run;
mod shape;
mod text;

pub use build::{Builder, MAX_INPUTS, MAX_NAME, MAX_OUTPUTS};
pub use cranefold_ir::DType;
pub use data::Data;
pub use error::GraphError;
#[cfg(feature = "oracle")]
pub use eval::Tensor;
pub use fold::MAX_FOLDED;
#[cfg(any(feature = "onnx", feature = "openvino"))]
pub use front::ReadOptions;
pub use fuse::{FuseOptions, REWRITES, Rewrite, fuse};
pub use graph::{Graph, MAX_NODES, Node, Output, Value, ValueId};
pub use op::{Attribute, COMPOSITES, CompositeParam, CompositeRow, Op, Range};
pub use plan::{Buffer, Plan, PlanKernel, PlanOpaque, PlanOutput, PlanStep};
#[cfg(feature = "run")]
pub use run::{Host, HostCall, Prepared, RunError};
pub use shape::{MAX_ELEMENTS, resolve_axes, resolve_axis};
pub use text::MAX_TEXT;
