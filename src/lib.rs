//! [docs]: crate::docs
//! [specs]: docs::specs
//! [layouts]: docs::layouts
//! [expressions-and-combiners]: docs::expressions_and_combiners
//! [regions]: docs::regions
//! [results]: docs::results
//! [threads-and-cache]: docs::threads_and_cache
//! [python]: docs::python
//! [partial-results]: docs::partial_results
//! [c]: docs::c
//! [ahead-of-time]: docs::ahead_of_time
//! [wide-vectors]: docs::wide_vectors
//! [reading-a-dump]: docs::reading_a_dump
//! [speed]: docs::speed
//! [reliability]: docs::reliability
//! [internals]: docs::internals
//! [words]: docs::words
//! [mit]: https://opensource.org/license/mit
//! [apache]: https://www.apache.org/licenses/LICENSE-2.0
//!
#![doc = include_str!("../docs/pictures/rustdoc.md")]
//!
#![doc = include_str!("../README.md")]
//!
//! # The modules
//!
//! ```text
//! text or builder -> Spec -> Problem -> Nest -> passes -> Nest -> Code -> Kernel
//!                                   |          ^
//!                               Signature   Schedule
//! ```
//!
//! | module | contents |
//! | --- | --- |
//! | [`spec`], [`layout`] | the spec as the user means it, validated once (crate `cranefold-spec`) |
//! | [`problem`] | the spec without its accidents; equal problems share code |
//! | [`problem::tree`] | lanes, steps and blocks: the order of accumulation, part of the meaning |
//! | [`schedule`] | decisions as data, chosen or forced |
//! | [`schedules`] | a file of schedules that were measured |
//! | [`lower`] | problem -> naive nests: a [program](lower::program) |
//! | [`passes`], [`pipeline`] | nest -> nest, one function a file, in order |
//! | [`target`], [`vectors`] | instruction sets, and their vectors |
//! | `codegen` | legal nest -> machine code: Cranelift functions of 128 bits, and x86 functions of wide vectors |
//! | `link` | machine code in memory that runs |
//! | [`keyed`] | a spec with the signature of its code |
//! | [`kernel`] | checked calls and facts |
//! | [`inspect`] | every stage as text, the explain page, disassembly, names for `perf` |
//! | [`compiler`] | spec -> kernel, and the cache: signature -> code, bounded, each made once |
//! | [`aot`] | code as an object file with a C header |
//! | [`partial`] | states of some blocks of a reduction, for engines that merge them |
//! | `process` | what a child after a fork makes anew |
//! | [`executor`] | the threads that run the parts of a kernel: one thread, rayon, threads that stay awake, or the caller's own |
//!
//! # Stability
//!
//! Stable are the items at the root of the crate and the modules [`aot`], [`compiler`], [`error`], [`executor`],
//! [`inspect`], [`kernel`], [`keyed`], [`layout`], [`op`], [`partial`], [`results`], [`schedules`], [`spec`] and
//! [`target`]: a release that breaks a program which uses these alone raises the major version, or the minor one before
//! 1.0, as [semantic versioning](https://semver.org) has it. Inner are [`ir`], [`lower`], [`passes`], [`pipeline`], [`problem`],
//! [`schedule`] and [`vectors`]: they are public for readers of the language and for tests, say so on their first line,
//! and may change in any release. So may the text of a problem, a nest or a schedule, which reads back in the release that
//! printed it. Error enums and most structs of facts are `#[non_exhaustive]`: a `match` has a last arm for what is to come.
//! Results change with [`results::RESULTS_VERSION`] alone. The minimum Rust version is 1.95; a release that raises it raises
//! the minor version.
//!
//! Dependencies point one way, and `tests/layout.rs` holds the list. [`ir`] knows none of these modules. Code generation,
//! `link`, `aot`, `inspect` and `target` name Cranelift; `codegen::x86` and `inspect` name `iced_x86`; no other module
//! does. Nothing here prints, reads the environment or exits. Unsafe code stands in eight files: one enters machine code,
//! one takes raw buffers, one maps memory for code, two hold the host functions that it calls, one lends the parts of a
//! call to threads, one asks the system for cores, and one for forks. The oracle, crate `cranefold-reference`, shares
//! nothing with the compiler except the spec.

pub mod aot;
mod codegen;
pub mod compiler;
#[cfg(any(doc, doctest))]
pub mod docs;
pub mod error;
pub mod executor;
mod forms;
pub mod inspect;
pub mod kernel;
pub mod keyed;
mod link;
/// Inner: may change in any release.
///
pub mod lower;
pub mod partial;
/// Inner: may change in any release.
///
pub mod passes;
/// Inner: may change in any release.
///
pub mod pipeline;
/// Inner: may change in any release.
///
pub mod problem;
mod process;
pub mod results;
/// Inner: may change in any release.
///
pub mod schedule;
pub mod schedules;
pub mod target;
mod transposes;
/// Inner: may change in any release.
///
pub mod vectors;

pub use compiler::{Compiler, Options};
/// Inner: may change in any release.
///
pub use cranefold_ir as ir;
pub use cranefold_ir::ops;
pub use cranefold_ir::{DType, Scalar};
pub use cranefold_spec as spec;
pub use cranefold_spec::layout;
pub use cranefold_spec::op;
pub use error::{CallError, CalledOperand, Error, PartialError};
#[cfg(feature = "rayon")]
pub use executor::Rayon;
pub use executor::{Executor, Serial, Spinning};
pub use kernel::{Call, Element, Input, Kernel, Output};
pub use keyed::{KeyedSpec, Signature};
pub use layout::Layout;
pub use partial::{Partial, Shard};
pub use problem::Problem;
pub use schedule::{Schedule, ScheduleError};
pub use spec::{Spec, SpecError};
pub use target::Target;
pub use vectors::Vectors;
