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
//! | module | what it is |
//! | --- | --- |
//! | [`spec`], [`layout`] | the request as the user means it, validated once |
//! | [`problem`] | the request without its accidents; equal problems share code |
//! | [`tree`] | lanes, steps and blocks: the order of accumulation, part of the meaning |
//! | [`windows`] | how a slice is searched for one element; no part of the meaning |
//! | [`lower`] | problem -> naive nest, or those of its parts |
//! | [`program`] | the nests that together do what a problem says |
//! | [`schedule`] | decisions as data, chosen or forced |
//! | [`passes`], [`pipeline`] | nest -> nest, one function a file, in order |
//! | [`target`], [`vectors`] | instruction sets, and the vectors they have |
//! | `storage` | where accumulators live: registers, the frame, scratch memory |
//! | `codegen` | legal nest -> Cranelift function |
//! | `wide` | tile -> machine code of wide vectors |
//! | `jit`, `disassembly` | code in memory that runs, and as text |
//! | [`signature`], [`request`] | what code is kept by; a spec with its own, and what its calls are held to |
//! | `cache` | signature -> code, bounded, each made once |
//! | [`compiler`] | request -> kernel |
//! | [`aot`] | code as an object file with a C header |
//! | `perf` | names of code for `perf` |
//! | [`kernel`] | checked calls and facts |
//! | [`partial`] | states of some blocks of a reduction, for engines that merge them |
//! | [`executor`] | who runs the parts of a kernel: a thread, rayon, threads that stay awake, or the caller's own |
//! | [`dump`] | every stage as text |
//! | `explain` | why a kernel is as it is, on one page |
//! | [`mod@reference`] | the slow executor that shares nothing with the compiler |
//!
//! Dependencies point one way, and by what is absent: [`ir`] knows none of these; spec, problem,
//! lowering, schedule and passes never mention Cranelift, which only code generation, the loader
//! of code, `aot` and `target` do, nor `iced_x86`, which only `wide` and `disassembly` do; nothing here prints, reads the environment or exits; unsafe
//! code stands in the loader, in the functions of the host beside it and in `kernel` alone.

pub mod aot;
mod cache;
mod codegen;
mod compiled;
pub mod compiler;
mod disassembly;
pub mod dump;
pub mod error;
pub mod executor;
mod explain;
mod jit;
pub mod kernel;
pub mod layout;
pub mod lower;
pub mod partial;
pub mod passes;
mod perf;
pub mod pipeline;
pub mod problem;
pub mod program;
pub mod reference;
pub mod request;
pub mod schedule;
pub mod signature;
pub mod spec;
mod storage;
pub mod target;
pub mod tree;
pub mod vectors;
mod wide;
pub mod windows;

pub use compiler::{Compiler, Options};
pub use cranefold_ir as ir;
pub use cranefold_ir::ops;
pub use cranefold_ir::{DType, Scalar};
pub use error::{CallError, Error, PartialError};
pub use executor::{Executor, Rayon, Serial, Spinning};
pub use kernel::{Call, Element, Input, Kernel, Output};
pub use layout::Layout;
pub use partial::{Partial, Shard};
pub use problem::Problem;
pub use request::Request;
pub use schedule::{Schedule, ScheduleError};
pub use signature::Signature;
pub use spec::{Reduction, SpecError};
pub use target::Target;
pub use vectors::Vectors;
