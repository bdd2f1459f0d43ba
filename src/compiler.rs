//! The compiler: a target, and the code it has made so far.

use crate::compiled::{Compiled, Layout, Signature};
use crate::error::Error;
use crate::jit;
use crate::kernel::{Kernel, StepLoops};
use crate::pipeline;
use crate::problem::Problem;
use crate::schedule::{self, Schedule};
use crate::spec::Reduction;
use crate::target::Target;
use crate::tree::TREE_VERSION;
use crate::vectors::Vectors;
use crate::wide::Plan;
use quick_cache::sync::Cache;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Kernels kept; each holds a page or two of executable memory for each of its codes.
const MOST_KERNELS: usize = 16_000;

/// Compiles reductions to kernels and keeps the code by signature.
///
/// Threads may share it; two that ask for one signature at once compile it once.
///
/// ```
/// use cranefold::{Compiler, Reduction};
///
/// let compiler = Compiler::host()?;
/// let spec: Reduction = "sum f32[2,3] axes=[1]".parse()?;
/// let kernel = compiler.compile(&spec)?;
/// let mut sums = [0.0f32; 2];
/// kernel.run_one(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &mut sums)?;
/// assert_eq!(sums, [6.0, 15.0]);
///
/// // The same problem in other words: no second compilation.
/// compiler.compile(&"sum f32[1,2,3,1] axes=[2,3]".parse()?)?;
/// assert_eq!((compiler.counters().compiles, compiler.counters().hits), (1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Compiler {
    target: Target,
    vectors: Vectors,
    threads: usize,
    cache: Cache<Signature, Arc<Compiled>>,
    requests: AtomicU64,
    compiles: AtomicU64,
}

/// What a request may force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The schedule; none lets the compiler choose.
    pub schedule: Option<Schedule>,
    /// Bits of the widest vector; none allows the target's.
    pub width: Option<u32>,
}

/// What a compiler has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests answered from the cache.
    pub hits: u64,
    /// Requests that compiled.
    pub compiles: u64,
    /// Kernels in the cache.
    pub kernels: u64,
}

impl Compiler {
    /// A compiler for this machine, with every instruction it has.
    ///
    /// # Errors
    /// [`Error::Target`] if Cranelift does not know the machine.
    pub fn host() -> Result<Compiler, Error> {
        Target::host().map(Compiler::new)
    }

    /// A compiler for a target.
    pub fn new(target: Target) -> Compiler {
        let (requests, compiles) = (AtomicU64::new(0), AtomicU64::new(0));
        let vectors = target.vectors();
        Compiler { target, vectors, threads: 1, cache: Cache::new(MOST_KERNELS), requests, compiles }
    }

    /// A compiler for calls that so many threads run: large work gets several parts, which an [`Executor`] shares out.
    /// Without this, all work has one part.
    ///
    /// [`Executor`]: crate::Executor
    pub fn with_threads(self, threads: usize) -> Compiler {
        // What it has compiled was for another number.
        Compiler { threads: threads.max(1), ..Compiler::new(self.target) }
    }

    /// How many threads it compiles for.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The target.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The widest vectors it makes code of.
    pub fn vectors(&self) -> Vectors {
        self.vectors
    }

    /// The kernel of a reduction: compiled, or from the cache.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn compile(&self, spec: &Reduction) -> Result<Kernel, Error> {
        self.compile_with(spec, &Options::default())
    }

    /// As [`compile`](Compiler::compile), with something forced.
    ///
    /// # Errors
    /// [`Error::Schedule`] if the schedule does not fit the problem.
    pub fn compile_with(&self, spec: &Reduction, options: &Options) -> Result<Kernel, Error> {
        let widest = match options.width {
            None => self.vectors.bits,
            Some(width) => Schedule::checked_width(width)?.min(self.vectors.bits),
        };
        // A forced schedule is told the width by the vectors alone.
        let width = options.schedule.as_ref().map_or(widest, |s| self.vectors.at_most(s.width.min(widest)).bits);
        let signature = Signature {
            problem: Problem::of(spec),
            width,
            schedule: options.schedule.clone(),
            threads: if options.schedule.is_some() { 1 } else { self.threads },
            tree_version: TREE_VERSION,
        };
        self.requests.fetch_add(1, Ordering::Relaxed);
        let compiled = self.cache.get_or_insert_with(&signature, || self.make(&signature).map(Arc::new))?;
        Ok(Kernel::new(spec.clone(), compiled))
    }

    fn make(&self, signature: &Signature) -> Result<Compiled, Error> {
        let start = Instant::now();
        self.compiles.fetch_add(1, Ordering::Relaxed);
        let schedule = match &signature.schedule {
            None => schedule::choose_for(&signature.problem, signature.width, signature.threads),
            Some(forced) => {
                forced.check(&signature.problem)?;
                forced.clone()
            }
        };
        let vectors = self.vectors.at_most(schedule.width.min(signature.width));
        let mut program = pipeline::legal_program(&signature.problem, &schedule, vectors)?;
        if signature.schedule.is_some() {
            // What the cost model chooses is tested; what others force may never have run.
            program = program.try_map(|nest| pipeline::checked("legalize", nest))?;
        }
        let plan = Plan { vectors, prefetch_bytes: schedule.prefetch };
        let compile = |nest| jit::compile(nest, plan, self.target.isa(), self.target.is_host());
        let codes = program.all_nests().map(compile).collect::<Result<Vec<_>, _>>()?;
        let bytes = codes.iter().map(jit::Code::bytes).collect::<Vec<_>>().concat();
        let layout = Layout::of(&program, &codes);
        let step_loops = StepLoops::of(program.all_nests());
        let compile_ns = start.elapsed().as_nanos() as u64;
        let (signature, target) = (signature.clone(), self.target.clone());
        Ok(Compiled { signature, schedule, vectors, target, codes, bytes, layout, step_loops, compile_ns })
    }

    /// What was done so far.
    pub fn counters(&self) -> Counters {
        let compiles = self.compiles.load(Ordering::Relaxed);
        let hits = self.requests.load(Ordering::Relaxed).saturating_sub(compiles);
        Counters { hits, compiles, kernels: self.cache.len() as u64 }
    }
}
