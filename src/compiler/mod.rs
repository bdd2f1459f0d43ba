//! The compiler: a target, and the code it has made so far.

mod builder;
mod cache;
mod many;

pub use builder::Builder;
pub use cache::Statistics;
pub use many::Reduction;

use crate::error::{Error, NestError, NoCode};
use crate::inspect::perf::PerfMap;
use crate::kernel::code::Compiled;
use crate::kernel::{Kernel, Routine};
use crate::keyed::KeyedSpec;
use crate::keyed::{Key, Signature};
use crate::link::{self, Code, Memory};
use crate::lower::{self, program::Program};
use crate::pipeline::{self, Made, Verify};
use crate::problem::Problem;
use crate::process::OfProcess;
use crate::results::RESULTS_VERSION;
use crate::schedule::{Bounds, Decided, Schedule, ScheduleError, Source};
use crate::schedules::Schedules;
use crate::spec::Spec;
use crate::target::Target;
use crate::vectors::Vectors;
use cache::Cache;
use cranefold_ir::Nest;
use std::sync::Arc;
use std::time::Instant;

/// Compiles reductions to kernels and keeps the code by signature.
///
/// Cheap to clone: clones share the cache. Threads may share it too; two that ask for one signature at once compile it once.
/// A child after a fork begins with an empty cache; kernels that it had before the fork run there as well.
///
/// ```
/// use cranefold::{Compiler, Spec};
///
/// let compiler = Compiler::host()?;
/// let spec: Spec = "sum f32[2,3] axes=[1]".parse()?;
/// let kernel = compiler.compile(&spec)?;
/// let mut sums = [0.0f32; 2];
/// kernel.run_one(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &mut sums)?;
/// assert_eq!(sums, [6.0, 15.0]);
///
/// // The same problem in other words: no second compilation.
/// compiler.compile(&"sum f32[1,2,3,1] axes=[2,3]".parse()?)?;
/// assert_eq!((compiler.statistics().compiles, compiler.statistics().hits), (1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Compiler(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    target: Target,
    /// The bounds of decisions if the caller forces nothing.
    bounds: Bounds,
    /// The target's canonical text, which signatures hold.
    target_text: Arc<str>,
    /// Schedules that were measured, which are taken where one is chosen.
    schedules: Schedules,
    limits: Limits,
    of_process: OfProcess<Kept>,
}

/// The part of a compiler that each process has for itself: a child after a fork begins with nothing.
#[derive(Debug)]
struct Kept {
    cache: Cache,
    memory: Memory,
    perf_map: Option<PerfMap>,
}

/// The limits of the cache, and whether names are written for `perf`.
#[derive(Clone, Copy, Debug)]
struct Limits {
    most_kernels: usize,
    most_code_bytes: u64,
    perf_map: bool,
}

impl Limits {
    /// The empty cache of a process.
    ///
    /// # Errors
    /// [`Error::PerfMap`] if the map cannot be written.
    fn start(self) -> Result<Kept, Error> {
        let perf_map = self.perf_map.then(PerfMap::open).transpose()?;
        Ok(Kept::new(self, perf_map))
    }
}

impl Kept {
    fn new(limits: Limits, perf_map: Option<PerfMap>) -> Kept {
        Kept { cache: Cache::new(limits.most_kernels, limits.most_code_bytes), memory: Memory::default(), perf_map }
    }
}

impl Inner {
    /// The part of the compiler that is this process's. A child that cannot write a map has none.
    #[inline]
    fn kept(&self) -> &Kept {
        self.of_process.get(|| self.limits.start().unwrap_or_else(|_| Kept::new(self.limits, None)))
    }
}

/// The choices that a caller may force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The schedule; `None` lets the compiler choose.
    pub schedule: Option<Schedule>,
    /// Bits of the widest vector; `None` allows the target's.
    pub width: Option<u32>,
}

impl Options {
    /// The bounds of decisions on a target with these vectors, for `threads` threads.
    ///
    /// # Errors
    /// [`ScheduleError::Width`] if vectors cannot have that width.
    pub fn bounds(&self, vectors: Vectors, threads: usize) -> Result<Bounds, ScheduleError> {
        self.within(Bounds { threads, ..Bounds::new(vectors) })
    }

    /// The bounds of decisions within others.
    fn within(&self, all: Bounds) -> Result<Bounds, ScheduleError> {
        let bounds = match self.width {
            None => all,
            Some(width) => all.at_most(Schedule::checked_width(width)?),
        };
        Ok(self.schedule.as_ref().map_or(bounds, |schedule| bounds.of_forced(schedule)))
    }
}

impl Compiler {
    /// A compiler for this machine, with every instruction it has.
    ///
    /// # Errors
    /// [`Error::Target`] if Cranelift does not know the machine.
    pub fn host() -> Result<Compiler, Error> {
        Compiler::builder().build()
    }

    /// A builder of a compiler for another target, for several threads, or with other limits of the cache.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The number of threads that the compiler compiles for.
    pub fn threads(&self) -> usize {
        self.0.bounds.threads
    }

    /// The target.
    pub fn target(&self) -> &Target {
        &self.0.target
    }

    /// The widest vectors that the compiler uses.
    pub fn vectors(&self) -> Vectors {
        self.0.bounds.vectors
    }

    /// The bounds of decisions if the caller forces nothing.
    fn bounds(&self) -> Bounds {
        self.0.bounds
    }

    /// The kernel of a reduction, compiled or from the cache.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn compile(&self, spec: &Spec) -> Result<Kernel, Error> {
        match self.0.kept().cache.get_asked(spec) {
            Some(kernel) => Ok(kernel),
            None => self.compile_keyed(&self.new_keyed(spec, self.bounds(), None, false)),
        }
    }

    /// Compiles with forced choices; otherwise as [`compile`](Compiler::compile).
    ///
    /// # Errors
    /// [`Error::Schedule`] if the schedule does not fit the problem.
    pub fn compile_with(&self, spec: &Spec, options: &Options) -> Result<Kernel, Error> {
        self.compile_keyed(&self.keyed_with(spec, options)?)
    }

    /// A spec with the signature of its code, so that [`compile_keyed`](Compiler::compile_keyed) and
    /// [`get`](Compiler::get) need not compute it.
    pub fn keyed(&self, spec: &Spec) -> KeyedSpec {
        let known = self.0.kept().cache.keyed(spec);
        known.unwrap_or_else(|| self.0.kept().cache.known(self.new_keyed(spec, self.bounds(), None, false)))
    }

    /// The keyed spec with forced choices; otherwise as [`keyed`](Compiler::keyed).
    ///
    /// # Errors
    /// [`Error::Schedule`] if vectors cannot have the forced width.
    pub fn keyed_with(&self, spec: &Spec, options: &Options) -> Result<KeyedSpec, Error> {
        let bounds = options.within(self.0.bounds)?;
        if options.schedule.is_none() && bounds == self.bounds() {
            return Ok(self.keyed(spec));
        }
        Ok(self.0.kept().cache.known(self.new_keyed(spec, bounds, options.schedule.clone(), true)))
    }

    fn new_keyed(&self, spec: &Spec, bounds: Bounds, schedule: Option<Schedule>, is_forced: bool) -> KeyedSpec {
        let key = Key {
            source: Problem::of(spec).without_spare_memory().into(),
            target: self.0.target_text.clone(),
            bounds,
            schedule,
            results_version: RESULTS_VERSION,
        };
        KeyedSpec::new(spec.clone(), Signature::new(key), is_forced)
    }

    /// The kernel of a problem, such as one read from the text that [`Kernel::dump`] prints: the cost model chooses, the
    /// passes run and the cache keeps as for a spec, and a spec of the problem shares the code.
    ///
    /// ```
    /// use cranefold::{Compiler, Options, Problem};
    ///
    /// let problem: Problem = "problem {
    ///   reduce sum in f32 over 3
    ///   in x0: f32[6]
    ///   out x1: f32[2]
    ///   slices at 0 -> 0
    ///     dim 2: 3 -> 1
    ///   elements at 0
    ///     dim 3: 1
    /// }".parse()?;
    /// let kernel = Compiler::host()?.compile_problem(&problem, &Options::default())?;
    /// let mut sums = [0.0f32; 2];
    /// kernel.run_one(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &mut sums)?;
    /// assert_eq!(sums, [6.0, 15.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Problem`] if its parts do not fit together, [`Error::Nest`] if its naive nest does not verify, as where
    /// boxes of outputs overlap; else as [`compile_with`](Compiler::compile_with).
    pub fn compile_problem(&self, problem: &Problem, options: &Options) -> Result<Kernel, Error> {
        problem.check().map_err(Error::Problem)?;
        let keyed = self.source_request(problem.clone().into(), options)?;
        self.0.kept().cache.get_or_make(&keyed, || {
            // What its check does not find, and what no test has seen: it may be no spec's.
            let naive = lower::lower(problem, "nest");
            cranefold_ir::verify(&naive).map_err(NestError::Rules)?;
            let Key { source, bounds, schedule, .. } = &**keyed.signature();
            let decided = Decided::of(source.clone(), schedule.as_ref(), *bounds)?;
            pipeline::run(pipeline::lowered(&decided), &decided, Verify::Last, |_, _| {})?;
            self.make(keyed.signature())
        })
    }

    /// The kernel of a nest, such as one that [`Kernel::dump`] has printed after any pass and someone has edited. Its
    /// bits are those of the interpreter on the nest; its inputs are the `in` buffers, its outputs all others.
    ///
    /// The nest keeps its loops. A nest without wide functions and lanes goes through the passes that make vectors of
    /// parallel loops (`hoist`, `outline`, `vectorize`, `unroll`); one that has some says itself what its vectors are.
    /// In either, merges and folds are written out, and whatever the target lacks is replaced. A `transpose` becomes loads
    /// of its columns, and again a transpose where vectors load them together. The place that `misalign` binds is 0, so
    /// that no bits depend on an address: loops load vectors where `align` had lines of memory.
    ///
    /// ```
    /// use cranefold::{Compiler, Options, Spec, ir::Nest};
    ///
    /// let compiler = Compiler::host()?;
    /// let spec: Spec = "sum f32[2,3] axes=[1]".parse()?;
    /// let text = compiler.compile(&spec)?.dump("nest")?;
    /// let products: Nest = text.replace("= -0.0", "= 1.0").replace("add", "mul").parse()?;
    /// let kernel = compiler.compile_nest(&products, &Options::default())?;
    /// let mut outputs = [0.0f32; 2];
    /// kernel.run_one(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &mut outputs)?;
    /// assert_eq!(outputs, [6.0, 120.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Nest`] if it does not verify, an `in` buffer stands after another, or code generation has no form for
    /// something in it; [`Error::Schedule`] if a schedule is forced that says more than vectors and prefetch.
    pub fn compile_nest(&self, nest: &Nest, options: &Options) -> Result<Kernel, Error> {
        NestError::check(nest)?;
        self.compile_keyed(&self.source_request(Source::Nest(nest.clone().into()), options)?)
    }

    fn source_request(&self, source: Source, options: &Options) -> Result<KeyedSpec, Error> {
        let key = Key {
            source,
            target: self.0.target_text.clone(),
            bounds: options.within(self.0.bounds)?,
            schedule: options.schedule.clone(),
            results_version: RESULTS_VERSION,
        };
        Ok(KeyedSpec::of_source(Signature::new(key)))
    }

    /// The kernel of a keyed spec: compiled, or from the cache.
    ///
    /// # Errors
    /// As [`compile_with`](Compiler::compile_with); [`Error::Target`] if the keyed spec is of a compiler for another
    /// target.
    pub fn compile_keyed(&self, keyed: &KeyedSpec) -> Result<Kernel, Error> {
        self.0.kept().cache.get_or_make(keyed, || self.make(keyed.signature()))
    }

    /// The kernel of a keyed spec if its code is ready; compiles nothing.
    ///
    /// ```
    /// use cranefold::{Compiler, Spec};
    ///
    /// let compiler = Compiler::host()?;
    /// let spec: Spec = "sum f32[2,3] axes=[1]".parse()?;
    /// let keyed = compiler.keyed(&spec);
    /// assert!(compiler.get(&keyed).is_none());
    /// compiler.compile(&spec)?;
    /// assert!(compiler.get(&keyed).is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get(&self, keyed: &KeyedSpec) -> Option<Kernel> {
        self.0.kept().cache.get(keyed)
    }

    /// Drops all code from the cache. Code that kernels hold lives as long as they do.
    pub fn clear(&self) {
        self.0.kept().cache.clear();
    }

    /// The code of a naive nest of a problem, by the schedule that was chosen for the problem; compiled or from the
    /// cache.
    ///
    /// # Errors
    /// See [`Error`].
    pub(crate) fn routine(&self, problem: &Arc<Problem>, nest: Nest, schedule: &Schedule) -> Result<Routine, Error> {
        let key = Key {
            source: Source::Part(problem.clone(), nest.clone().into()),
            target: self.0.target_text.clone(),
            bounds: self.bounds().of_forced(schedule),
            schedule: Some(schedule.clone()),
            results_version: RESULTS_VERSION,
        };
        let signature = Signature::new(key);
        let compiled = self.0.kept().cache.code(&signature, || self.make(&signature))?;
        Ok(Routine::new(&nest, compiled))
    }

    fn make(&self, signature: &Signature) -> Result<Compiled, Error> {
        self.make_by(signature, |decided, program| {
            let memory = self.0.target.is_host().then_some(&self.0.kept().memory);
            link::compile(program.all_nests(), decided.vectors, self.0.target.isa(), memory)
        })
    }

    fn make_by(
        &self,
        signature: &Signature,
        generate: impl Fn(&Decided, &Program) -> Result<Vec<Code>, NoCode>,
    ) -> Result<Compiled, Error> {
        let start = Instant::now();
        if signature.target != self.0.target_text {
            let reason = format!("the compiler is for {}", self.0.target);
            return Err(Error::Target { target: signature.target.to_string(), reason });
        }
        let Key { source, bounds, schedule: forced, .. } = &**signature;
        let generate = |decided: &Decided, program: &Program| match (generate(decided, program), source) {
            // It is the caller's nest that has none, and no other vectors are left to try.
            (Err(NoCode::NoForm(what)), Source::Nest(_)) if !decided.vectors.are_wide() => {
                Err(NoCode::Failed(NestError::NoForm(what).into()))
            }
            (made, _) => made,
        };
        let made_by = |schedule: Option<&Schedule>| {
            pipeline::made(*bounds, |bounds| pipeline::decide(source.clone(), schedule, bounds), generate)
        };
        let measured = forced.is_none().then(|| self.0.schedules.of(signature.hash())).into_iter().flatten();
        // A schedule that was measured and does not fit is as good as none.
        let fits = measured.filter(|schedule| schedule.width <= bounds.width);
        let made = fits.map(|schedule| made_by(Some(schedule))).find_map(Result::ok);
        let Made { decided, program, code } = made.map_or_else(|| made_by(forced.as_ref()), Ok)?;
        let (signature, target) = (signature.clone(), self.0.target.clone());
        let compiled = Compiled::new(signature, target, decided, &program, code, start);
        self.0.kept().perf_map.iter().try_for_each(|map| map.add(&compiled))?;
        Ok(compiled)
    }

    /// The counts of the work done so far, and of the code held.
    pub fn statistics(&self) -> Statistics {
        self.0.kept().cache.statistics()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a kernel by a compiler whose generator of wide vectors refuses all.
    fn narrowed(compiler: &Compiler, spec: &str, options: &Options) -> (Kernel, Kernel) {
        let spec: Spec = spec.parse().expect("a spec");
        let keyed = compiler.keyed_with(&spec, options).expect("a keyed spec");
        let refusing = |decided: &Decided, program: &Program| {
            if decided.vectors.are_wide() {
                return Err(NoCode::NoForm("frobnication of f32".into()));
            }
            let memory = &compiler.0.kept().memory;
            link::compile(program.all_nests(), decided.vectors, compiler.0.target.isa(), Some(memory))
        };
        let make = || compiler.make_by(keyed.signature(), refusing);
        let narrowed = compiler.0.kept().cache.get_or_make(&keyed, make).expect("code of 128 bits");
        compiler.clear();
        (narrowed, compiler.compile_keyed(&keyed).expect("a kernel"))
    }

    #[test]
    fn a_wide_function_without_a_form_is_made_of_128_bits() {
        let compiler = Compiler::host().expect("a compiler");
        if !compiler.vectors().are_wide() {
            return;
        }
        let bits = compiler.vectors().bits;
        let input: Vec<f32> = (0..8000).map(|n| (n as f32 * 0.37).sin()).collect();
        let forced: Schedule = format!("width={bits}").parse().expect("a schedule");
        for schedule in [None, Some(forced)] {
            let options = Options { schedule, width: None };
            let (narrow, wide) = narrowed(&compiler, "log_sum_exp f32[8,1000] axes=[1]", &options);
            assert_eq!((narrow.vectors(), wide.vectors().bits), (Vectors::BASE, bits));
            let says = format!("128 bits: {bits} bits have no form for frobnication of f32");
            let dumped = narrow.dump("schedule").expect("a stage");
            assert!(dumped.ends_with(&format!("\n; {says}")), "{dumped}");
            assert_eq!(dumped.parse::<Schedule>().as_ref(), Ok(narrow.schedule()), "a stage that reads back");
            assert!(narrow.dump("asm").expect("a stage").lines().all(|line| !line.contains("wide 0")));
            assert!(narrow.explain().expect("facts").contains(&says));
            assert!(!wide.dump("schedule").expect("a stage").contains("no form"));
            let mut sums = [[0f32; 8]; 2];
            for (kernel, sums) in [&narrow, &wide].into_iter().zip(&mut sums) {
                kernel.run_one(&input, sums).expect("a call");
            }
            assert_eq!(sums[0].map(f32::to_bits), sums[1].map(f32::to_bits));
        }
    }
}
