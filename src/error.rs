//! Errors, by who can correct them: of the spec, of the schedule, of the call, and our own bugs.

use crate::layout::LayoutError;
use crate::schedule::ScheduleError;
use crate::spec::{Spec, SpecError};
use cranefold_ir::{Buffer, BufferRole, DType, Nest, Violations, verify};
use std::any::Any;
use std::fmt;
use std::ops::Range;

/// The reason why a generator makes no code.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NoCode {
    /// The vectors have no form for an expression or a statement.
    NoForm(String),
    /// Any other failure.
    Failed(Error),
}

impl From<Error> for NoCode {
    fn from(error: Error) -> NoCode {
        NoCode::Failed(error)
    }
}

impl From<NoCode> for Error {
    fn from(no_code: NoCode) -> Error {
        match no_code {
            NoCode::NoForm(what) => {
                Error::Internal { stage: "legalize", message: format!("code generation has no form for {what}") }
            }
            NoCode::Failed(error) => error,
        }
    }
}

/// Any failure of the library: to read a spec, a schedule or a layout, to compile, or to call a kernel.
///
/// So `?` works through a function that does all of them:
///
/// ```
/// use cranefold::{Compiler, Error, Spec};
///
/// fn sum(x: &[f32; 3]) -> Result<f32, Error> {
///     let mut sum = [0.0f32];
///     Compiler::host()?.compile(&"sum f32[3]".parse::<Spec>()?)?.run_one(x, &mut sum)?;
///     Ok(sum[0])
/// }
/// assert_eq!(sum(&[1.0, 2.0, 3.0]), Ok(6.0));
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The spec is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The forced schedule is wrong.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// The problem is none.
    #[error("the problem is wrong: {0}")]
    Problem(String),
    /// The nest is none, or none that code is made of.
    #[error(transparent)]
    Nest(#[from] NestError),
    /// No code can be made for the target.
    #[error("no target `{target}`: {reason}")]
    Target {
        /// The target asked for.
        target: String,
        /// The reason.
        reason: String,
    },
    /// There is no stage of that name.
    #[error("`{name}` is no stage; the stages are {stages}")]
    Stage {
        /// The name asked for.
        name: String,
        /// The stages.
        stages: String,
    },
    /// The reduction has no partial results.
    #[error("there are no partial results of a reduction that {why}")]
    NotInBlocks {
        /// The reason, as a relative clause about the reduction.
        why: &'static str,
    },
    /// A partial result has more bytes than an address space.
    #[error("a partial result has {bytes} bytes")]
    StateTooLarge {
        /// The bytes of the partial result, at most `u64::MAX`.
        bytes: u64,
    },
    /// The range is empty, or the reduction has no such blocks.
    #[error("{given:?} is no range of {blocks} blocks")]
    NoBlocks {
        /// The range asked for.
        given: Range<u64>,
        /// The number of blocks.
        blocks: u64,
    },
    /// Ranges of elements have no states of their own.
    #[error("there are no shards of elements of this reduction: {why}")]
    NotInShards {
        /// The reason, and the remedy if there is one.
        why: String,
    },
    /// The range of an axis of a shard is not one.
    #[error("axis {axis} of a shard is {given:?} of {extent}: {why}")]
    NoShard {
        /// The axis.
        axis: usize,
        /// The range asked for.
        given: Range<u64>,
        /// The extent of the axis.
        extent: u64,
        /// The reason, and the remedy.
        why: String,
    },
    /// The range of blocks would be split into too many pieces.
    #[error("pieces that read at most {most_bytes} bytes are more than {limit}")]
    TooManyPieces {
        /// The most bytes that a piece was to read.
        most_bytes: u64,
        /// The most pieces that a range is split into.
        limit: usize,
    },
    /// The object cannot be made.
    #[error("no object of {what}: {reason}")]
    Object {
        /// The name, the target or the spec at fault.
        what: String,
        /// The reason.
        reason: String,
    },
    /// The operating system gave no executable memory.
    #[error("no executable memory: {0}")]
    Memory(String),
    /// The map of code for `perf` cannot be written.
    #[error("{path} cannot be written: {reason}")]
    PerfMap {
        /// The path of the map.
        path: String,
        /// The operating system's message.
        reason: String,
    },
    /// The file of measured schedules cannot be read.
    #[error("{path} cannot be read: {reason}")]
    Schedules {
        /// The path of the file.
        path: String,
        /// The operating system's message.
        reason: String,
    },
    /// The layout is wrong.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// A call is wrong.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A call over partial results is wrong.
    #[error(transparent)]
    Partial(#[from] PartialError),
    /// A bug of ours.
    #[error("this is a bug in cranefold, after stage `{stage}`: {message}")]
    Internal {
        /// The stage whose result is wrong.
        stage: &'static str,
        /// The violations, or the message of a panic.
        message: String,
    },
}

/// A nest that no kernel is made of.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NestError {
    /// It breaks rules of the language.
    #[error("the nest does not verify: {0}")]
    Rules(Violations),
    /// An input stands after an output.
    #[error("x{input} is an input and stands after x{output}, which is written: inputs come first")]
    Order {
        /// The number of the input's buffer.
        input: usize,
        /// The number of a buffer before it that is written.
        output: usize,
    },
    /// No vectors and no scalars of the target have a form for something in it.
    #[error("code generation has no form for {0}")]
    NoForm(String),
}

impl NestError {
    /// Checks a nest that a caller gives, before anything is made of it.
    pub(crate) fn check(nest: &Nest) -> Result<(), NestError> {
        verify(nest).map_err(NestError::Rules)?;
        let is_input = |buffer: &Buffer| buffer.role == BufferRole::In;
        let output = nest.buffers.iter().position(|buffer| !is_input(buffer));
        let input = nest.buffers.iter().rposition(is_input);
        match (input, output) {
            (Some(input), Some(output)) if input > output => Err(NestError::Order { input, output }),
            _ => Ok(()),
        }
    }
}

/// A call with wrong buffers, of which nothing was read or written, or one whose parts were not each run once.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages name the fields")]
pub enum CallError {
    #[error("{given} {role}s were given, the kernel {kernel} takes {expected}")]
    Count { role: &'static str, given: usize, expected: usize, kernel: String },
    #[error("{operand} is {given}, the kernel {} takes {expected}", operand.kernel)]
    DType { operand: Box<CalledOperand>, given: DType, expected: DType },
    #[error("{operand} has {given} elements, the kernel {} takes {expected}", operand.kernel)]
    Length { operand: Box<CalledOperand>, given: u64, expected: u64 },
    #[error("{operand} has {given} bytes, no whole number of {dtype} elements of {element_bytes}")]
    PartialElement { operand: Box<CalledOperand>, given: u64, dtype: DType, element_bytes: u64 },
    #[error("in place runs what writes each element of the slice with the type and strides of input 0")]
    InPlace,
    #[error("output {output} does not have an element for each of input {input}, of its type and in its place")]
    Replaces { output: usize, input: usize },
    #[error("there is no memory for {bytes} bytes of scratch")]
    Scratch { bytes: u64 },
    #[error("the scratch memory has {given} bytes, the kernel takes {expected}")]
    ScratchLength { given: u64, expected: u64 },
    #[error("the scratch memory is at {address:#x}, which is not aligned to {align} bytes")]
    ScratchAlign { address: u64, align: u64 },
    #[error("part {given} is out of range for {parts} parts")]
    Part { given: usize, parts: usize },
    #[error("part {part} of {parts} has been run before")]
    PartTwice { part: usize, parts: usize },
    #[error("part {part} of {parts} has not been run")]
    PartLeft { part: usize, parts: usize },
    #[error("the executor panicked: {message}")]
    Executor { message: String },
    #[error("the kernel is for {target}, not for this machine")]
    Foreign { target: String },
}

/// The operand that is wrong in a call. It prints as `input 2 (eps)`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CalledOperand {
    /// The word `input` or `output`.
    pub role: &'static str,
    /// Its number among those of its role.
    pub position: usize,
    /// The name of a scalar, or of an operand of a region.
    pub name: Option<String>,
    /// The kernel's spec between quotes, cut if it is long.
    pub kernel: String,
}

impl CalledOperand {
    /// The operand of a kernel with this title.
    pub(crate) fn new(spec: Option<&Spec>, kernel: String, role: &'static str, position: usize) -> Box<CalledOperand> {
        let names = spec.filter(|_| role == "input").map(Spec::expression_names);
        let name = names.and_then(|mut names| (position < names.len()).then(|| names.swap_remove(position)));
        let default = [format!("x{position}"), format!("y{position}")];
        let name = name.filter(|name| !default.contains(name));
        Box::new(CalledOperand { role, position, name, kernel })
    }
}

impl fmt::Display for CalledOperand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.role, self.position)?;
        self.name.as_ref().map_or(Ok(()), |name| write!(f, " ({name})"))
    }
}

/// A wrong call over partial results. Nothing was written, except that [`CallError::Scratch`]
/// and [`NoCode`](PartialError::NoCode) may leave some of several states written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages name the fields")]
pub enum PartialError {
    /// An input or output is wrong, or the call cannot be made here.
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("{given} bytes are given for {states} states, which have {expected} each")]
    Length { given: usize, states: usize, expected: usize },
    #[error("state {state} does not begin as one does")]
    NoState { state: usize },
    #[error("state {state} is of a combination that failed")]
    Poisoned { state: usize },
    #[error("state {state} is laid out as version {given} has it, and not as version {expected}")]
    LayoutVersion { state: usize, given: u32, expected: u32 },
    #[error("state {state} is of version {given} of the results, and not of {expected}")]
    ResultsVersion { state: usize, given: u32, expected: u32 },
    #[error("state {state} is of problem {given:032x}, and not of {expected:032x}")]
    Problem { state: usize, given: u128, expected: u128 },
    #[error("state {state} says it has {count} {unit} from {first} on, of {blocks} {unit}")]
    Blocks { state: usize, first: u64, count: u64, blocks: u64, unit: &'static str },
    #[error("of state {state}, {unit} {one:?} and {other:?} do not follow one another")]
    Apart { state: usize, one: Range<u64>, other: Range<u64>, unit: &'static str },
    #[error("state {state} has {unit} {given:?}, and to finish takes all, 0..{blocks}")]
    Unfinished { state: usize, given: Range<u64>, blocks: u64, unit: &'static str },
    /// The code of a block that two ranges complete together cannot be made.
    #[error("the block that two ranges complete has no code: {0}")]
    NoCode(String),
}

/// The message of a panic.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}
