//! Threads that spin for a while before they sleep.

use super::cores::{Cores, here};
use super::{Executor, Turns, turns};
use crate::process::OfProcess;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// The calling thread, and threads of its own that spin for a while between calls, as OpenMP's do. A program that calls
/// one kernel after the other does not wait for them to wake, which takes as long as a sum of some MB.
///
/// A spinning thread keeps a core busy, but yields to any thread that is ready to run, and moves off the core that the
/// calling thread is on while it may run on another. No more threads spin than there are cores besides the caller's; the
/// others sleep. A call wakes only as many threads as it needs. Calls from several threads at once share them, and a
/// part may itself make calls. A panic in a part is a panic of [`run`](Executor::run). The threads end with the executor.
/// A child after a fork starts threads of its own for its first call.
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
    threads: usize,
    awake: Duration,
    residents: OfProcess<Residents>,
}

/// The threads of one process, which end when this is dropped.
#[derive(Debug)]
struct Residents(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    residents: Box<[Resident]>,
    board: Mutex<Board>,
    /// The number of places for helpers on the board, which spinning threads look at.
    wanted: AtomicUsize,
    /// The number of residents that spin.
    spinning: AtomicUsize,
    /// The core that the last calling thread was on, plus one; 0 if it is not known.
    caller: AtomicUsize,
    /// True once the executor is dropped.
    ended: AtomicBool,
    awake: Duration,
}

/// The calls that want helpers, and the residents that sleep.
#[derive(Debug, Default)]
struct Board {
    /// Calls, each with the number of helpers that it still wants.
    calls: Vec<(Arc<Turns>, usize)>,
    /// The residents that sleep; the last went to sleep last.
    asleep: Vec<usize>,
    /// The number of residents that help a call.
    at_work: usize,
}

/// A thread that helps calls.
#[derive(Debug, Default)]
struct Resident {
    /// The thread; it is set before the thread sleeps for the first time.
    thread: OnceLock<Thread>,
    /// True if it was woken, or has not slept.
    woken: AtomicBool,
    /// The core that it was last seen on, plus one; 0 if it sleeps or that is not known.
    core: AtomicUsize,
}

impl Spinning {
    /// The default time that threads spin after a call: longer than a runtime takes between two calls.
    pub const AWAKE: Duration = Duration::from_micros(200);

    /// An executor of `threads` threads, which include the calling one.
    ///
    /// # Errors
    /// The system's error if it does not give the threads.
    pub fn new(threads: usize) -> io::Result<Spinning> {
        Spinning::awake_for(threads, Spinning::AWAKE)
    }

    /// An executor of `threads` threads that spin for `awake` after a call. With no time at all, each call wakes them.
    ///
    /// # Errors
    /// As [`new`](Spinning::new).
    pub fn awake_for(threads: usize, awake: Duration) -> io::Result<Spinning> {
        let threads = threads.max(1);
        Ok(Spinning { threads, awake, residents: OfProcess::new(Residents::start(threads - 1, awake)?) })
    }

    /// The threads of this process. A child that gets no threads has none.
    fn pool(&self) -> &Arc<Pool> {
        let none = || Residents(Pool::of(0, self.awake));
        &self.residents.get(|| Residents::start(self.threads - 1, self.awake).unwrap_or_else(|_| none())).0
    }
}

impl Executor for Spinning {
    fn threads(&self) -> usize {
        self.threads
    }

    fn run(&self, parts: usize, part: &(dyn Fn(usize) + Sync)) {
        if self.threads == 1 || parts < 2 {
            return (0..parts).for_each(part);
        }
        let pool = self.pool();
        let mut asked = None;
        turns::run(parts, part, pool.residents.len(), |turns, helpers| asked = Some(pool.ask(turns, helpers)));
    }
}

/// A request for helpers, which ends when this is dropped.
struct Asked<'a> {
    pool: &'a Pool,
    turns: Arc<Turns>,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let mut board = self.pool.board();
        if let Some(at) = board.calls.iter().position(|(turns, _)| Arc::ptr_eq(turns, &self.turns)) {
            let (_, wanted) = board.calls.remove(at);
            self.pool.wanted.fetch_sub(wanted, Ordering::SeqCst);
        }
    }
}

impl Residents {
    /// Starts so many threads.
    fn start(count: usize, awake: Duration) -> io::Result<Residents> {
        // Threads that were started before one was refused end with this.
        let all = Residents(Pool::of(count, awake));
        for number in 0..count {
            let pool = all.0.clone();
            thread::Builder::new().name(format!("cranefold {number}")).spawn(move || pool.reside(number))?;
        }
        Ok(all)
    }
}

impl Drop for Residents {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::SeqCst);
        // Under the lock, a resident has either seen it, or is asleep, or will see it before it is.
        let asleep = std::mem::take(&mut self.0.board().asleep);
        asleep.into_iter().for_each(|number| self.0.residents[number].wake());
    }
}

impl Pool {
    fn of(count: usize, awake: Duration) -> Arc<Pool> {
        Arc::new(Pool {
            residents: (0..count).map(|_| Resident::default()).collect(),
            board: Mutex::default(),
            wanted: AtomicUsize::new(0),
            spinning: AtomicUsize::new(0),
            caller: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
            awake,
        })
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        // No panic under the lock leaves its data half-changed.
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for helpers of a call, and wakes as many residents as are missing.
    fn ask(&self, turns: &Arc<Turns>, helpers: usize) -> Asked<'_> {
        self.caller.store(here().map_or(0, |core| core + 1), Ordering::Relaxed);
        let mut board = self.board();
        board.calls.push((turns.clone(), helpers));
        let wanted = self.wanted.fetch_add(helpers, Ordering::SeqCst) + helpers;
        // One that is neither asleep nor at work looks at the board before it sleeps.
        let looking = self.residents.len() - board.asleep.len() - board.at_work;
        let missing = wanted.saturating_sub(looking).min(board.asleep.len());
        let at = board.asleep.len() - missing;
        let woken = board.asleep.split_off(at);
        drop(board);
        woken.into_iter().for_each(|number| self.residents[number].wake());
        Asked { pool: self, turns: turns.clone() }
    }

    /// Runs a resident until the executor is dropped: it helps calls, spins for more, and sleeps.
    fn reside(&self, number: usize) {
        let resident = &self.residents[number];
        resident.thread.get_or_init(thread::current);
        while !self.ended.load(Ordering::SeqCst) {
            match self.take() {
                Some(turns) => {
                    self.stand_apart(number, None);
                    turns.help();
                    self.board().at_work -= 1;
                }
                None if self.spin(number) => {}
                None => self.sleep(number),
            }
        }
    }

    /// Takes a place in a call, if one wants helpers.
    fn take(&self) -> Option<Arc<Turns>> {
        if self.wanted.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let mut board = self.board();
        let (turns, wanted) = board.calls.last_mut()?;
        let turns = turns.clone();
        *wanted -= 1;
        if *wanted == 0 {
            board.calls.pop();
        }
        board.at_work += 1;
        self.wanted.fetch_sub(1, Ordering::SeqCst);
        Some(turns)
    }

    /// Spins until a call wants helpers, for as long as residents do; returns true if one does. It returns at once where
    /// there is no core to spin on.
    fn spin(&self, number: usize) -> bool {
        let cores = Cores::allowed();
        // Where nothing is known of cores, all may spin.
        let most = cores.map_or(usize::MAX, |cores| cores.count() - 1);
        let others = self.spinning.fetch_add(1, Ordering::SeqCst);
        let (start, mut checked) = (Instant::now(), None);
        let mut wants = false;
        while others < most && !wants && !self.ended.load(Ordering::Relaxed) {
            let spun = start.elapsed();
            if spun >= self.awake {
                break;
            }
            if checked.is_none_or(|at| spun - at >= CHECK) {
                self.stand_apart(number, cores.as_ref());
                checked = Some(spun);
            }
            thread::yield_now();
            wants = self.wanted.load(Ordering::SeqCst) > 0;
        }
        self.spinning.fetch_sub(1, Ordering::SeqCst);
        wants
    }

    /// Moves this resident off the core of the calling thread, where it would wait for that thread or keep it waiting.
    fn stand_apart(&self, number: usize, cores: Option<&Cores>) {
        let Some(here) = here() else { return };
        self.residents[number].core.store(here + 1, Ordering::Relaxed);
        if self.caller.load(Ordering::Relaxed) != here + 1 {
            return;
        }
        let Some(cores) = cores.copied().or_else(Cores::allowed).filter(|cores| cores.count() > 1) else { return };
        let mut taken: Vec<usize> = self.residents.iter().map(|other| other.core.load(Ordering::Relaxed)).collect();
        taken.retain(|core| *core > 0);
        taken.sort_unstable();
        taken.dedup();
        // Where every core has its thread, only the caller's is left.
        let taken = if taken.len() < cores.count() { taken } else { vec![here + 1] };
        cores.move_off(taken.into_iter().map(|core| core - 1));
    }

    /// Sleeps until woken, unless a call wants helpers.
    fn sleep(&self, number: usize) {
        let resident = &self.residents[number];
        {
            let mut board = self.board();
            if !board.calls.is_empty() || self.ended.load(Ordering::SeqCst) {
                return;
            }
            resident.woken.store(false, Ordering::SeqCst);
            resident.core.store(0, Ordering::Relaxed);
            board.asleep.push(number);
        }
        while !resident.woken.load(Ordering::SeqCst) {
            thread::park();
        }
    }
}

impl Resident {
    /// Wakes the thread, which sleeps.
    fn wake(&self) {
        self.woken.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}

/// The time between two looks at the core that a spinning thread is on.
const CHECK: Duration = Duration::from_micros(10);
