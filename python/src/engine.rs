//! The compiler of this process, and the threads that run its kernels.
//!
//! Forks need no care here: the library's compilers, kernels and executors work in a forked child, and nothing in this file
//! takes a lock, which another thread could hold at the fork.

use crate::door;
use cranefold::{Compiler, Executor, Kernel, Options, Serial, Spec, Spinning};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// A compiler for a number of threads, with these threads. It lives as long as the process.
pub struct Engine {
    compiler: Compiler,
    /// The threads, started by the first kernel of several parts; null before.
    pool: AtomicPtr<Spinning>,
    threads: usize,
    width: u32,
    /// The engine made before this one.
    older: Option<&'static Engine>,
}

/// The engine of calls; null before the first one.
static CURRENT: AtomicPtr<Engine> = AtomicPtr::new(std::ptr::null_mut());

/// The engine that was made last, which leads to all others; null before the first one.
static NEWEST: AtomicPtr<Engine> = AtomicPtr::new(std::ptr::null_mut());

/// The number of times that the settings were changed: kernels of other settings are not called.
static CHANGES: AtomicU32 = AtomicU32::new(0);

/// The number of processors that this process may run on: its affinity mask and its quota allow them.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Stores a value that lives as long as the process, and gives it.
fn publish<T>(place: &AtomicPtr<T>, value: &'static T) -> &'static T {
    place.store(std::ptr::from_ref(value).cast_mut(), Ordering::Release);
    value
}

impl Engine {
    /// The engine of this process.
    ///
    /// # Errors
    /// An error if Cranelift does not know the machine.
    #[inline]
    pub fn current() -> Result<&'static Engine, cranefold::Error> {
        match door::leaked(&CURRENT) {
            Some(engine) => Ok(engine),
            None => Engine::with(processors(), 0),
        }
    }

    /// The engine of these settings, which becomes the current one.
    fn with(threads: usize, width: u32) -> Result<&'static Engine, cranefold::Error> {
        let newest = door::leaked(&NEWEST);
        let fits = |engine: &&Engine| engine.threads == threads && engine.width == width;
        let engine = match std::iter::successors(newest, |engine| engine.older).find(fits) {
            Some(engine) => engine,
            None => {
                let compiler = Compiler::builder().threads(threads).build()?;
                let pool = AtomicPtr::default();
                publish(&NEWEST, Box::leak(Box::new(Engine { compiler, pool, threads, width, older: newest })))
            }
        };
        Ok(publish(&CURRENT, engine))
    }

    /// The number of threads.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The bits of the widest vector asked for; 0 is the machine's.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// The compiler.
    pub fn compiler(&self) -> &Compiler {
        &self.compiler
    }

    /// The threads that run parts; the calling one alone where the system gives none.
    pub fn executor(&self) -> &'static dyn Executor {
        if let Some(pool) = door::leaked(&self.pool) {
            return pool;
        }
        match Spinning::new(self.threads) {
            // Of two threads that come here at once, one leaves a pool that sleeps.
            Ok(pool) => publish::<Spinning>(&self.pool, Box::leak(Box::new(pool))),
            Err(_) => &Serial,
        }
    }

    /// The kernel of a spec by the settings of this engine.
    ///
    /// # Errors
    /// Those of [`Compiler::compile_with`].
    pub fn compile(&self, spec: &Spec) -> Result<Kernel, cranefold::Error> {
        let width = (self.width != 0).then_some(self.width);
        self.compiler.compile_with(spec, &Options { width, ..Options::default() })
    }
}

/// The number of changes of the settings so far.
#[inline]
pub fn changes() -> u32 {
    CHANGES.load(Ordering::Relaxed)
}

/// Sets the number of threads, 0 for the default, and the bits of the widest vector, 0 for the machine's.
///
/// # Errors
/// As [`Engine::current`].
pub fn set(threads: usize, width: u32) -> Result<(), cranefold::Error> {
    Engine::with(if threads == 0 { processors() } else { threads }, width)?;
    CHANGES.fetch_add(1, Ordering::AcqRel);
    Ok(())
}
