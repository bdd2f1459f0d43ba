#![doc = include_str!("../README.md")]
//!
//! # The data's way
//!
//! ```text
//! text or builder -> Reduction -> Problem -> Nest -> passes -> Nest -> Code -> Kernel
//!                                   |          ^
//!                               Signature   Schedule
//! ```
//!
//! | module | contents |
//! | --- | --- |
//! | [`spec`], [`layout`] | the request as the user means it, validated once (crate `cranefold-spec`) |
//! | [`problem`] | the request without its accidents; equal problems share code |
//! | [`problem::tree`] | lanes, steps and blocks: the order of accumulation, part of the meaning |
//! | [`schedule`] | decisions as data, chosen or forced |
//! | [`lower`] | problem -> naive nests: a [program](lower::program) |
//! | [`passes`], [`pipeline`] | nest -> nest, one function a file, in order |
//! | [`target`], [`vectors`] | instruction sets, and the vectors they have |
//! | `codegen` | legal nest -> machine code: Cranelift functions of 128 bits, and x86 tiles of wide vectors |
//! | `link` | machine code in memory that runs |
//! | [`request`] | a spec with the signature of its code |
//! | [`kernel`] | checked calls and facts |
//! | [`inspect`] | every stage as text, the explain page, disassembly, names for `perf` |
//! | [`compiler`] | request -> kernel, and the cache: signature -> code, bounded, each made once |
//! | [`aot`] | code as an object file with a C header |
//! | [`partial`] | states of some blocks of a reduction, for engines that merge them |
//! | [`executor`] | who runs the parts of a kernel: a thread, rayon, threads that stay awake, or the caller's own |
//!
//! Dependencies point one way, and `tests/layout.rs` holds the list. [`ir`] knows none of these. Spec, problem,
//! lowering, schedule and passes never mention Cranelift, which only code generation, `link`, `aot`, `inspect` and `target` do,
//! nor `iced_x86`, which only `codegen::x86` and `inspect` do. Nothing here prints, reads the environment or exits. Unsafe
//! code stands in the file that enters machine code, the file that maps memory for it, and the functions of the host that it calls. The oracle, crate `cranefold-reference`, shares nothing with the compiler but the spec.

pub mod aot;
mod codegen;
pub mod compiler;
pub mod error;
pub mod executor;
mod forms;
pub mod inspect;
pub mod kernel;
mod link;
pub mod lower;
pub mod partial;
pub mod passes;
pub mod pipeline;
pub mod problem;
pub mod request;
pub mod schedule;
pub mod target;
pub mod vectors;

pub use compiler::{Compiler, Options};
pub use cranefold_ir as ir;
pub use cranefold_ir::ops;
pub use cranefold_ir::{DType, Scalar};
pub use cranefold_spec as spec;
pub use cranefold_spec::layout;
pub use error::{CallError, Error, PartialError};
pub use executor::{Executor, Rayon, Serial, Spinning};
pub use kernel::{Call, Element, Input, Kernel, Output};
pub use layout::Layout;
pub use partial::{Partial, Shard};
pub use problem::Problem;
pub use request::{Request, Signature};
pub use schedule::{Schedule, ScheduleError};
pub use spec::{Reduction, SpecError};
pub use target::Target;
pub use vectors::Vectors;
