//! Threads that spin for a while before they sleep.

use super::{Executor, Turns};
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder, Yield};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// The calling thread, and threads of its own that spin for a while between calls, as OpenMP's do. A program that calls
/// one kernel after the other does not wait for them to wake, which takes as long as a sum of some MB.
///
/// A spinning thread keeps a core busy, but yields to any thread that is ready to run. A call wakes only as many
/// threads as it needs. Calls from several threads at once share them, and a part may itself make calls. A panic in a
/// part is a panic of [`run`](Executor::run). The threads end with the executor.
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
    /// Rayon's pool, whose scopes run closures that borrow; `None` without threads of its own. Its threads are the
    /// residents.
    pool: Option<ThreadPool>,
    shared: Arc<Pool>,
}

#[derive(Debug)]
struct Pool {
    residents: Vec<Resident>,
    /// The number of helpers that calls have asked for and that have not ended.
    wanted: AtomicUsize,
    /// True once the executor is dropped.
    ended: AtomicBool,
    awake: Duration,
}

/// A thread that helps calls.
#[derive(Debug, Default)]
struct Resident {
    /// The thread; it is set before the thread sleeps for the first time.
    thread: OnceLock<Thread>,
    /// True if the thread sleeps, or is about to and checks once more for work.
    sleeps: AtomicBool,
}

impl Spinning {
    /// The default time that threads spin after a call: longer than a runtime takes between two calls.
    pub const AWAKE: Duration = Duration::from_micros(200);

    /// An executor of `threads` threads, which include the calling one.
    ///
    /// # Errors
    /// An error if the system does not give the threads.
    pub fn new(threads: usize) -> Result<Spinning, ThreadPoolBuildError> {
        Spinning::awake_for(threads, Spinning::AWAKE)
    }

    /// An executor of `threads` threads that spin for `awake` after a call. With no time at all, each call wakes them.
    ///
    /// # Errors
    /// As [`new`](Spinning::new).
    pub fn awake_for(threads: usize, awake: Duration) -> Result<Spinning, ThreadPoolBuildError> {
        let residents: Vec<Resident> = (1..threads).map(|_| Resident::default()).collect();
        let builder = ThreadPoolBuilder::new().num_threads(residents.len()).thread_name(|n| format!("cranefold {n}"));
        // Rayon would make as many threads as it likes of the number 0.
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
    /// Runs a resident until the executor is dropped: it runs rayon's work, spins for more, and sleeps.
    ///
    /// Rayon never sees a resident idle and wakes none; [`wake`](Pool::wake) does.
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

    /// Sleeps until woken, unless work has come while the thread still counted as awake.
    fn sleep(&self, resident: &Resident) {
        resident.sleeps.store(true, Ordering::SeqCst);
        // Either the caller's read of `sleeps`, after it asked for help, or this thread's check for work sees the
        // other.
        fence(Ordering::SeqCst);
        if runs_something() {
            resident.sleeps.store(false, Ordering::SeqCst);
            return;
        }
        while resident.sleeps.load(Ordering::SeqCst) && !self.ended.load(Ordering::SeqCst) {
            thread::park();
        }
    }

    /// Wakes residents until as many are awake as this and other calls want, or all are.
    ///
    /// Each resident is looked at once. One that is awake then sees the work before it sleeps; if it counted a second
    /// time, as one that had to be woken, another would be left asleep in its place.
    fn wake(&self) {
        fence(Ordering::SeqCst);
        let asleep = |resident: &&Resident| resident.sleeps.load(Ordering::SeqCst);
        let asleep: Vec<&Resident> = self.residents.iter().filter(asleep).collect();
        let awake = self.residents.len() - asleep.len();
        let missing = self.wanted.load(Ordering::SeqCst).saturating_sub(awake);
        asleep.iter().take(missing).for_each(|resident| resident.wake());
    }
}

impl Resident {
    /// Wakes the thread if it sleeps.
    fn wake(&self) {
        let slept = self.sleeps.swap(false, Ordering::SeqCst);
        if let Some(thread) = self.thread.get().filter(|_| slept) {
            thread.unpark();
        }
    }
}

/// Runs one piece of work that rayon has for this thread; returns false if there is none.
fn runs_something() -> bool {
    rayon::yield_now() == Some(Yield::Executed)
}

/// A request for helpers, which ends when this is dropped.
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
