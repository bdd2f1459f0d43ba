//! Threads that stay awake for a while.

use super::{Executor, Turns};
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder, Yield};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// The calling thread and threads of its own that look for the next call for a while before they sleep, as those of OpenMP do:
/// what calls one kernel after the other does not wait for threads to wake, which takes as long as a sum of some MB.
///
/// While they look they keep a core each busy, but give way to any thread that is ready to run. Only threads that a call wants
/// are woken. Calls from several threads at once share them, a part may itself make calls, and a panic of a part is one of
/// [`run`](Executor::run). They end with the executor.
///
/// ```
/// use cranefold::{Compiler, Executor, Input, Output, Spec, Spinning};
///
/// let pool = Spinning::new(2)?;
/// let compiler = Compiler::builder().threads(pool.threads()).build()?;
/// let spec: Spec = "sum f32[1024,2048] axes=[1]".parse()?;
/// let kernel = compiler.compile(&spec)?;
/// let (x, mut sums) = (vec![1.0f32; 1024 * 2048], [0.0f32; 1024]);
/// for _ in 0..3 {
///     kernel.run_on(&pool, &[Input::from(&x[..])], &mut [Output::from(&mut sums[..])])?;
/// }
/// assert_eq!(sums, [2048.0; 1024]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Spinning {
    /// Rayon's, whose scopes run what borrows; none where the calling thread is all there is. Its threads are the residents.
    pool: Option<ThreadPool>,
    shared: Arc<Pool>,
}

#[derive(Debug)]
struct Pool {
    residents: Vec<Resident>,
    /// Helpers that calls have asked for and that have not ended.
    wanted: AtomicUsize,
    /// The executor is gone.
    ended: AtomicBool,
    awake: Duration,
}

/// A thread that runs what a call asks for.
#[derive(Debug, Default)]
struct Resident {
    /// Known before it sleeps for the first time.
    thread: OnceLock<Thread>,
    /// It sleeps, or is about to and looks once more.
    sleeps: AtomicBool,
}

impl Spinning {
    /// How long threads look for a call after the last one, where nothing is said: longer than a runtime takes between two.
    pub const AWAKE: Duration = Duration::from_micros(200);

    /// So many threads, with the calling one, which is always there.
    ///
    /// # Errors
    /// If the system does not give them.
    pub fn new(threads: usize) -> Result<Spinning, ThreadPoolBuildError> {
        Spinning::awake_for(threads, Spinning::AWAKE)
    }

    /// As [`new`](Spinning::new), where threads look so long for a call after the last one. With no time at all each call wakes
    /// them.
    ///
    /// # Errors
    /// As [`new`](Spinning::new).
    pub fn awake_for(threads: usize, awake: Duration) -> Result<Spinning, ThreadPoolBuildError> {
        let residents: Vec<Resident> = (1..threads).map(|_| Resident::default()).collect();
        let builder = ThreadPoolBuilder::new().num_threads(residents.len()).thread_name(|n| format!("cranefold {n}"));
        // Rayon takes no threads for as many as it likes.
        let pool = if residents.is_empty() { None } else { Some(builder.build()?) };
        let shared = Pool { residents, wanted: AtomicUsize::new(0), ended: AtomicBool::new(false), awake };
        let shared = Arc::new(shared);
        if let Some(pool) = &pool {
            let shared = shared.clone();
            pool.spawn_broadcast(move |context| shared.reside(&shared.residents[context.index()]));
        }
        Ok(Spinning { pool, shared })
    }
}

impl Executor for Spinning {
    fn threads(&self) -> usize {
        self.shared.residents.len() + 1
    }

    fn run(&self, parts: usize, part: &(dyn Fn(usize) + Sync)) {
        let turns = Turns::new(parts, part, self.shared.residents.len());
        let Some(pool) = self.pool.as_ref().filter(|_| turns.helpers > 0) else { return turns.take() };
        let is_worker = pool.current_thread_index().is_some();
        let _asked = Asked::new(&self.shared.wanted, turns.helpers);
        pool.in_place_scope(|scope| turns.run(scope, is_worker, || self.shared.wake()));
    }
}

impl Drop for Spinning {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        for resident in &self.shared.residents {
            resident.wake();
        }
    }
}

impl Pool {
    /// What a resident does until the executor is gone: it runs what rayon has for it, looks for more, and sleeps.
    ///
    /// Rayon never sees it idle, and wakes none: [`wake`](Pool::wake) does.
    fn reside(&self, resident: &Resident) {
        resident.thread.get_or_init(thread::current);
        let mut last = Instant::now();
        while !self.ended.load(Ordering::SeqCst) {
            if runs_something() {
                last = Instant::now();
            } else if last.elapsed() < self.awake {
                thread::yield_now();
            } else {
                self.sleep(resident);
                last = Instant::now();
            }
        }
    }

    /// Sleeps until woken, unless there is something to run, which may have come while it was seen awake.
    fn sleep(&self, resident: &Resident) {
        resident.sleeps.store(true, Ordering::SeqCst);
        // Either the caller's look at `sleeps`, after it asked for help, or this look for what it asked sees the other.
        fence(Ordering::SeqCst);
        if runs_something() {
            resident.sleeps.store(false, Ordering::SeqCst);
            return;
        }
        while resident.sleeps.load(Ordering::SeqCst) && !self.ended.load(Ordering::SeqCst) {
            thread::park();
        }
    }

    /// Wakes residents until as many are awake as are wanted, by this call and others, or all are.
    fn wake(&self) {
        fence(Ordering::SeqCst);
        let asleep = |resident: &&Resident| resident.sleeps.load(Ordering::SeqCst);
        let awake = self.residents.len() - self.residents.iter().filter(asleep).count();
        let mut missing = self.wanted.load(Ordering::SeqCst).saturating_sub(awake);
        for resident in &self.residents {
            if missing == 0 {
                break;
            }
            missing -= usize::from(resident.wake());
        }
    }
}

impl Resident {
    /// Wakes it if it sleeps, and says whether it did.
    fn wake(&self) -> bool {
        let slept = self.sleeps.swap(false, Ordering::SeqCst);
        if let Some(thread) = self.thread.get().filter(|_| slept) {
            thread.unpark();
        }
        slept
    }
}

/// Runs something that rayon has for this thread, if there is anything.
fn runs_something() -> bool {
    rayon::yield_now() == Some(Yield::Executed)
}

/// Helpers that are wanted as long as this lives.
struct Asked<'a> {
    wanted: &'a AtomicUsize,
    helpers: usize,
}

impl Asked<'_> {
    fn new(wanted: &AtomicUsize, helpers: usize) -> Asked<'_> {
        wanted.fetch_add(helpers, Ordering::SeqCst);
        Asked { wanted, helpers }
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.wanted.fetch_sub(self.helpers, Ordering::SeqCst);
    }
}
