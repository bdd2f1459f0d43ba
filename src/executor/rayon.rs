//! Rayon's threads.

use super::{Executor, Turns, turns};
use crate::process::{OfProcess, forks};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The calling thread and rayon's threads: those of the pool it is called in, or of the global pool, whose size rayon
/// reads from the environment. A [`ThreadPool`] is an executor too.
///
/// A child after a fork has none of these threads. Both executors then find, once for each pool and within 20 ms, that no
/// thread of it answers, and have a pool of as many threads in its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rayon;

impl Executor for Rayon {
    fn threads(&self) -> usize {
        rayon::current_num_threads()
    }

    fn run(&self, parts: usize, part: &(dyn Fn(usize) + Sync)) {
        // A pool that it is called in has this very thread.
        let answers = || rayon::current_thread_index().is_some();
        run(0, self.threads(), parts, part, answers, rayon::spawn::<Job>);
    }
}

impl Executor for ThreadPool {
    fn threads(&self) -> usize {
        self.current_num_threads()
    }

    fn run(&self, parts: usize, part: &(dyn Fn(usize) + Sync)) {
        let answers = || self.current_thread_index().is_some();
        run((&raw const *self).addr(), self.threads(), parts, part, answers, |job| self.spawn(job));
    }
}

/// A piece of work for a pool.
type Job = Box<dyn FnOnce() + Send>;

/// Runs the parts of a call on the calling thread and those of a pool, which has an address or is 0, the global one.
fn run(
    pool: usize,
    threads: usize,
    parts: usize,
    part: &(dyn Fn(usize) + Sync),
    answers: impl Fn() -> bool,
    spawn: impl Fn(Job),
) {
    let helped = |turns: &Arc<Turns>| {
        let turns = turns.clone();
        Box::new(move || turns.help())
    };
    turns::run(parts, part, threads - 1, |turns, helpers| {
        let instead = if forks() == 0 || answers() { None } else { instead(pool, threads, &spawn) };
        for _ in 0..helpers {
            match &instead {
                None => spawn(helped(turns)),
                Some(pool) => pool.spawn(helped(turns)),
            }
        }
    });
}

/// A pool that a child after a fork has asked, and the pool in its place if it did not answer.
type Asked = (usize, Option<Arc<ThreadPool>>);

/// The pool in the place of one that has no threads in this process; `None` of one that has.
fn instead(pool: usize, threads: usize, spawn: impl Fn(Job)) -> Option<Arc<ThreadPool>> {
    static ASKED: OfProcess<Mutex<Vec<Asked>>> = OfProcess::after(0, Mutex::new(vec![]));
    let mut asked = ASKED.get(Default::default).lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, instead)) = asked.iter().find(|(known, _)| *known == pool) {
        return instead.clone();
    }
    let answer = Arc::new(AtomicBool::new(false));
    let answering = answer.clone();
    spawn(Box::new(move || answering.store(true, Ordering::Release)));
    let start = Instant::now();
    while !answer.load(Ordering::Acquire) && start.elapsed() < ANSWER {
        thread::yield_now();
    }
    let instead = match answer.load(Ordering::Acquire) {
        true => None,
        // Without threads there is no help.
        false => ThreadPoolBuilder::new().num_threads(threads).build().ok().map(Arc::new),
    };
    asked.push((pool, instead.clone()));
    instead
}

/// The time in which a pool with threads answers.
const ANSWER: Duration = Duration::from_millis(20);
