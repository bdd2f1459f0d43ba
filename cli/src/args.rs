//! The command line.

use crate::failure::Failure;
use crate::usage;
use cranefold::{Options, Schedule};
use std::io::Write;
use std::path::PathBuf;

/// Compiles and runs tensor reductions.
#[derive(Debug, clap::Parser)]
#[command(name = "cranefold", version, disable_help_subcommand = true, arg_required_else_help = false, after_help = EXAMPLES)]
pub struct Args {
    /// The command.
    #[command(subcommand)]
    pub verb: Verb,
}

/// The examples and the exit codes below the help of the command.
const EXAMPLES: &str = "\
Examples:
  cranefold run \"mean f32[64,512] axes=[1]\"
  cranefold explain \"softmax f32[384,1000] axes=[1]\" --html page.html
  cranefold list softmax

Exit codes: 0 of success, 2 of a wrong argument, 1 of a fault of cranefold.";

/// A command.
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// Run a reduction on .npy files or on random data, and print its speed and its error
    Run(Run),
    /// Print the stages on the way from a spec to machine code
    Dump(Dump),
    /// Explain a kernel: bytes, operations, order of loops, schedule, generators, time expected and measured
    Explain(Explain),
    /// Time kernels against the interpreter and the speed of memory
    Bench(Bench),
    /// Time the schedules of reductions, and keep the fastest in a file that compilers take schedules from
    Tune(Tune),
    /// Compile ahead of time: write an object file and the C header that declares its function
    Emit(Emit),
    /// List the ops, or one: aliases, formulas, element types, parameters, identities
    List(List),
    /// Tell what this machine gives to kernels, and what is missing
    Doctor,
    /// Print the completions of a shell, to be sourced by it
    Completions(Completions),
    /// Print the manual page, in roff
    Man,
    /// Read a model, print its graph or its plan of kernels, run it, or time its kernels
    Model(Model),
}

/// The arguments of `list`.
#[derive(Debug, clap::Args)]
pub struct List {
    /// An op, by its name or an alias; all, if none is given
    pub op: Option<String>,
}

/// The arguments of `completions`.
#[derive(Debug, clap::Args)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// A shell with completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Shell {
    /// `source <(cranefold completions bash)`
    Bash,
    /// `cranefold completions zsh > ~/.zfunc/_cranefold`
    Zsh,
    /// `cranefold completions fish | source`
    Fish,
}

/// The arguments of `model`.
#[derive(Debug, clap::Args)]
pub struct Model {
    /// The command.
    #[command(subcommand)]
    pub verb: ModelVerb,
}

/// A command on a model.
#[derive(Debug, clap::Subcommand)]
pub enum ModelVerb {
    /// Print the graph
    Dump {
        /// The model: `.onnx`, `.xml` of OpenVINO beside its `.bin`, or the text of a graph
        file: PathBuf,
        /// The extent of a symbolic dim; axis 0 of the input x without a name is x.0
        #[arg(long, value_name = "NAME=EXTENT")]
        bind: Vec<String>,
    },
    /// Print the kernels of its plan, the reasons, and the bytes moved
    Plan {
        /// The model: `.onnx`, `.xml` of OpenVINO beside its `.bin`, or the text of a graph
        file: PathBuf,
        /// The extent of a symbolic dim; axis 0 of the input x without a name is x.0
        #[arg(long, value_name = "NAME=EXTENT")]
        bind: Vec<String>,
        /// Print one JSON object: kernels, opaque, bytes_before, bytes_after
        #[arg(long)]
        json: bool,
    },
    /// Run a model without opaque nodes on `.npy` files
    Run {
        /// The model: `.onnx`, `.xml` of OpenVINO beside its `.bin`, or the text of a graph
        file: PathBuf,
        /// The extent of a symbolic dim; axis 0 of the input x without a name is x.0
        #[arg(long, value_name = "NAME=EXTENT")]
        bind: Vec<String>,
        /// An input; without a name, the next in order
        #[arg(long, value_name = "[NAME=]F.npy")]
        input: Vec<String>,
        /// A file for an output; without a name, the next in order
        #[arg(long, value_name = "[NAME=]F.npy")]
        output: Vec<String>,
    },
    /// Time each distinct kernel of its plan; opaque nodes are named and left out
    Bench(ModelBench),
}

/// The arguments of `model bench`.
#[derive(Debug, clap::Args)]
#[command(allow_negative_numbers = true)]
pub struct ModelBench {
    /// The model: `.onnx`, `.xml` of OpenVINO beside its `.bin`, or the text of a graph
    pub file: PathBuf,
    /// The extent of a symbolic dim; axis 0 of the input x without a name is x.0
    #[arg(long, value_name = "NAME=EXTENT")]
    pub bind: Vec<String>,
    /// Milliseconds of sampling for a kernel; at least 7 samples are taken
    #[arg(long, value_name = "MS", default_value_t = 120)]
    pub budget_ms: u32,
    /// The number of threads that run the kernels
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub threads: usize,
    /// Print one JSON object: kernels, opaque, and the times and bytes of one run
    #[arg(long)]
    pub json: bool,
}

/// The arguments of `run`.
#[derive(Debug, clap::Args)]
#[command(allow_negative_numbers = true)]
pub struct Run {
    /// The reduction, such as "mean f32[64,128,56,56] axes=[2,3]"; with --from the file of a problem or a nest
    pub spec: String,
    /// Read a problem, or a nest, as `dump` prints it: of FILE, or of the standard input if that is `-`
    #[arg(long, value_enum)]
    pub from: Option<From>,
    /// A file for each input that is no scalar, in order: --input A.npy --input B.npy, first the elements, then
    /// what is marked `:then`; `-` is the standard input, F.npz or F.npz:NAME an array of an archive; random data if there
    /// is none
    #[arg(long, value_name = "F.npy", conflicts_with = "random")]
    pub input: Vec<PathBuf>,
    /// The value of a scalar of the spec; a random one if it is not given and the inputs are random too
    #[arg(long, value_name = "NAME=VALUE")]
    pub scalar: Vec<String>,
    /// A file for each output, in order; it is overwritten, never read; `-` is the standard output, and the report then goes
    /// to the standard error
    #[arg(long, value_name = "F.npy")]
    pub output: Vec<PathBuf>,
    /// A file for each output whose expression reads its old element `d`, in order; with --raw for each output; zeros
    /// if there is none
    #[arg(long, value_name = "F.npy")]
    pub old: Vec<PathBuf>,
    /// Files hold buffers as they lie in memory, padding and gaps included, as arrays of one axis; the gaps of an
    /// output keep the contents of its old file
    #[arg(long)]
    pub raw: bool,
    /// The seed of the random data; 0 if not given
    #[arg(long, value_name = "SEED")]
    pub random: Option<u64>,
    /// The part of the results that is held against the reference
    #[arg(long, value_enum, default_value_t = Check::Sample)]
    pub check: Check,
    /// Print one JSON object in place of the report; docs/shell.md has its schema
    #[arg(long, conflicts_with = "quiet")]
    pub json: bool,
    /// Print no report and no notes
    #[arg(long)]
    pub quiet: bool,
    /// The way to evaluate the reduction
    #[arg(long, value_enum, default_value_t = ExecutorName::Native)]
    pub executor: ExecutorName,
    /// The forced choices.
    #[command(flatten)]
    pub forced: Forced,
    /// The number of threads that run the kernel; a forced schedule decides the parts
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub threads: usize,
    /// A file of measured schedules, as `tune` writes it
    #[arg(long, value_name = "F")]
    pub schedules: Option<PathBuf>,
    /// Read the files piece by piece, in at most about so many bytes of memory, outputs included, such as 256M; the
    /// spec has order=logical, and the result the bits of one kernel
    #[arg(long, value_name = "BYTES")]
    pub memory: Option<String>,
}

/// The part of the results that is held against the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Check {
    /// Nothing
    None,
    /// The part that two seconds allow
    Sample,
    /// All, however long that takes
    All,
}

/// The text that is read in place of a spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum From {
    /// The stage `problem`
    Problem,
    /// The stage `nest`, or that after any pass
    Nest,
}

/// The evaluator of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ExecutorName {
    /// The compiled kernel
    Native,
    /// The nest that the kernel is made from, statement by statement
    Interpreter,
    /// The spec itself, exactly, rounded once
    Reference,
}

/// The arguments of `dump`.
#[derive(Debug, clap::Args)]
#[command(allow_negative_numbers = true)]
pub struct Dump {
    /// The reduction; with --from the file of a problem or a nest
    pub spec: String,
    /// Read a problem, or a nest, as `dump` prints it: of FILE, or of the standard input if that is `-`
    #[arg(long, value_enum)]
    pub from: Option<From>,
    /// spec, problem, schedule, nest, the name of a pass, clif, asm, or all
    #[arg(long, value_name = "STAGE", default_value = "all")]
    pub stage: String,
    /// The forced choices.
    #[command(flatten)]
    pub forced: Forced,
    /// The number of threads that the kernel is for
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub threads: usize,
    /// A file of measured schedules, as `tune` writes it
    #[arg(long, value_name = "F")]
    pub schedules: Option<PathBuf>,
}

/// The arguments of `explain`.
#[derive(Debug, clap::Args)]
#[command(allow_negative_numbers = true)]
pub struct Explain {
    /// The reduction; with --from the file of a problem or a nest
    pub spec: String,
    /// Read a problem, or a nest, as `dump` prints it: of FILE, or of the standard input if that is `-`
    #[arg(long, value_enum)]
    pub from: Option<From>,
    /// Time it as well, in turn with the nearest hand-written loop over the same data
    #[arg(long, conflicts_with = "from")]
    pub measure: bool,
    /// Measure it, and write a page of pictures to FILE: tree, layouts, loops beside code, roofline, schedules; the page
    /// needs no network
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    pub html: Option<PathBuf>,
    /// A file for each input, as of `run`, on which it is timed; random data if there is none
    #[arg(long, value_name = "F.npy", conflicts_with = "from")]
    pub input: Vec<PathBuf>,
    /// The number of threads that the kernel is for
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub threads: usize,
    /// A file of measured schedules, as `tune` writes it
    #[arg(long, value_name = "F")]
    pub schedules: Option<PathBuf>,
    /// The forced choices.
    #[command(flatten)]
    pub forced: Forced,
}

/// The arguments of `tune`.
#[derive(Debug, clap::Args)]
#[command(allow_negative_numbers = true)]
pub struct Tune {
    /// The reductions
    #[arg(value_name = "SPEC", required = true)]
    pub specs: Vec<String>,
    /// The file that the schedules are added to, a line each
    #[arg(long, value_name = "F")]
    pub file: PathBuf,
    /// Seconds of sampling for each reduction; each schedule is sampled at least 7 times
    #[arg(long, value_name = "S", default_value_t = 2.0)]
    pub budget: f64,
    /// The number of threads that the kernels are for and run on
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub threads: usize,
}

/// The arguments of `emit`.
#[derive(Debug, clap::Args)]
#[command(after_help = EMIT_EXAMPLES)]
pub struct Emit {
    /// The reduction
    #[arg(required_unless_present = "model", conflicts_with = "model")]
    pub spec: Option<String>,
    /// A model in place of a reduction: a function for each distinct kernel of its plan
    #[arg(long, value_name = "FILE")]
    pub model: Option<PathBuf>,
    /// The extent of a symbolic dim of the model
    #[arg(long, value_name = "NAME=EXTENT", requires = "model")]
    pub bind: Vec<String>,
    /// Leave out the model's opaque nodes, which are refused otherwise
    #[arg(long, requires = "model")]
    pub kernels_only: bool,
    /// The path of the object file, which is overwritten
    #[arg(long, value_name = "K.o")]
    pub object: PathBuf,
    /// The path of the C header, which is overwritten
    #[arg(long, value_name = "K.h")]
    pub header: PathBuf,
    /// The target of the object, such as aarch64-unknown-linux-gnu; if not given, this machine with every feature it
    /// has
    #[arg(long, value_name = "TRIPLE")]
    pub target: Option<String>,
    /// The features of the target, separated by commas: for x86_64 x86-64-v3, x86-64-v4, ...; for riscv64 has_v, ...;
    /// for s390x arch13, ...; without them the target is the least of its kind
    #[arg(long, value_name = "F,F", requires = "target")]
    pub features: Option<String>,
    /// The name of the function; if not given, it is made of the spec. Functions of a model are NAME_0, NAME_1, ... by
    /// the numbers of their kernels in `model plan`
    #[arg(long, value_name = "NAME")]
    pub symbol: Option<String>,
    /// The forced choices.
    #[command(flatten)]
    pub forced: Forced,
}

/// The examples below the help of `emit`.
const EMIT_EXAMPLES: &str = "\
Examples:
  cranefold emit \"mean f32[4,10] axes=[1]\" --object mean.o --header mean.h
  cranefold emit \"softmax f32[8,128] axes=[1]\" --symbol softmax8 --object s.o --header s.h \\
      --target riscv64gc-unknown-linux-gnu --features has_v
  riscv64-linux-gnu-gcc main.c s.o -lm
  cranefold emit --model block.onnx --symbol block --object block.o --header block.h";

/// The arguments of `bench`.
#[derive(Debug, clap::Args)]
#[command(allow_negative_numbers = true)]
pub struct Bench {
    /// The reductions
    #[arg(value_name = "SPEC", conflicts_with = "file")]
    pub specs: Vec<String>,
    /// A file of specs or of cases as peers/cases.py writes them, one a line; `#` starts a comment
    #[arg(long, value_name = "F")]
    pub file: Option<PathBuf>,
    /// A file for each input, as of `run`, of the one SPEC; random data if there is none
    #[arg(long, value_name = "F.npy", conflicts_with_all = ["file", "candidates", "scan", "svg"])]
    pub input: Vec<PathBuf>,
    /// Time each SPEC at sizes of 16 KB to 64 MB, by its first extent, and draw GB/s over size to FILE
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "candidates", "scan", "offset", "schedule", "json"])]
    pub svg: Option<PathBuf>,
    /// With --scan: write a page with the map of ops and shapes, by the share of the time that is due
    #[arg(long, value_name = "FILE", requires = "scan")]
    pub html: Option<PathBuf>,
    /// The number of shapes that `--scan` draws; 40 if not given
    #[arg(long, value_name = "N", requires = "scan", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub shapes: Option<u32>,
    /// Milliseconds of sampling for a case; at least 7 samples are taken
    #[arg(long, value_name = "MS", default_value_t = 120)]
    pub budget_ms: u32,
    /// Time every candidate schedule, and print by how much the chosen one is slower than the fastest
    #[arg(long, conflicts_with_all = ["threads", "budget_ms", "offset", "schedule"])]
    pub candidates: bool,
    /// Draw shapes that people have, and print each of 17 ops and 5 dtypes that takes more than the limit times its cost
    /// on wide rows of as many bytes, in each of four measurements
    #[arg(long, conflicts_with_all = ["specs", "file", "threads", "budget_ms", "offset", "schedule", "candidates", "json"])]
    pub scan: bool,
    /// The limit of `--scan`, 2.5 if not given; 1.2 times that of f16 and i8
    #[arg(long, value_name = "TIMES", requires = "scan")]
    pub limit: Option<f64>,
    /// The seed from which `--scan` draws its shapes; 1 if not given
    #[arg(long, value_name = "N", requires = "scan")]
    pub seed: Option<u64>,
    /// The number of threads that run the kernels
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub threads: usize,
    /// Bytes from the start of a page to the first element of each input, less than 64
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..64))]
    pub offset: u64,
    /// Print one JSON object a line, in the peers' format; kernels are then timed alone, like the peers, not in turn
    #[arg(long)]
    pub json: bool,
    /// The forced choices.
    #[command(flatten)]
    pub forced: Forced,
}

/// The choices that are forced upon the compiler.
#[derive(Debug, clap::Args)]
pub struct Forced {
    /// The schedule, as `dump --stage schedule` prints it
    #[arg(long, value_name = "S")]
    pub schedule: Option<String>,
    /// The most bits of a vector: 0 (scalar), 64, 128, 256, 512 or 1024; if not given, the machine's
    #[arg(long, value_name = "BITS")]
    pub width: Option<u32>,
}

impl Args {
    /// The command line; `None` if it asked for help, which is then printed.
    ///
    /// # Errors
    /// [`Failure::Usage`] if the command line is wrong.
    pub fn read(out: &mut dyn Write) -> Result<Option<Args>, Failure> {
        match <Args as clap::Parser>::try_parse() {
            Ok(args) => Ok(Some(args)),
            Err(error) if !error.use_stderr() => {
                write!(out, "{error}").map_err(Failure::Stdout)?;
                Ok(None)
            }
            Err(error) => Err(Failure::Usage(usage::message(&error.to_string()))),
        }
    }
}

impl Forced {
    /// The compiler's options.
    ///
    /// # Errors
    /// If the schedule cannot be read, or vectors cannot have the width.
    pub fn options(&self) -> Result<Options, Failure> {
        let schedule = self.schedule.as_deref().map(str::parse::<Schedule>).transpose()?;
        let width = self.width.map(Schedule::checked_width).transpose()?;
        Ok(Options { schedule, width })
    }

    /// Returns true if any choice is forced.
    pub fn is_any(&self) -> bool {
        self.schedule.is_some() || self.width.is_some()
    }
}
