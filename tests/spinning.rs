//! Threads that stay awake: each part runs once whoever calls, from wherever, whether they sleep or not.

use cranefold::{Executor, Spinning};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

fn spinning(threads: usize, awake_us: u64) -> Spinning {
    Spinning::awake_for(threads, Duration::from_micros(awake_us)).expect("threads")
}

/// Runs so many parts and asserts that each has run once.
fn run_all(executor: &dyn Executor, parts: usize, during: impl Fn(usize) + Sync) {
    let runs: Vec<AtomicUsize> = (0..parts).map(|_| AtomicUsize::new(0)).collect();
    executor.run(parts, &|n| {
        runs[n].fetch_add(1, Ordering::Relaxed);
        during(n);
    });
    let runs: Vec<usize> = runs.into_iter().map(AtomicUsize::into_inner).collect();
    assert_eq!(runs, vec![1; parts]);
}

/// Runs a part on each of its threads at once: one that is not there keeps all waiting.
fn run_on_each(executor: &Spinning, during: impl Fn(usize) + Sync) {
    let all = Barrier::new(executor.threads());
    run_all(executor, executor.threads(), |n| {
        all.wait();
        during(n);
    });
}

#[test]
fn each_part_runs_once_on_any_number_of_threads() {
    for threads in [0, 1, 2, 3, 9] {
        let executor = spinning(threads, 200);
        assert_eq!(executor.threads(), threads.max(1));
        (0..40).for_each(|parts| run_all(&executor, parts, |_| ()));
        run_on_each(&executor, |_| ());
    }
}

/// A call may come while threads look, while they are about to sleep, and when they sleep.
#[test]
fn calls_find_threads_whether_they_sleep_or_not() {
    for awake_us in [0, 1, 20] {
        let executor = spinning(3, awake_us);
        for round in 0..3000 {
            run_on_each(&executor, |_| ());
            let pause = Duration::from_nanos(round % 50 * 1000);
            let start = Instant::now();
            while start.elapsed() < pause {
                std::hint::spin_loop();
            }
        }
    }
}

/// Two calls at once have a helper each: what one waits for may be in the other.
#[test]
fn callers_share_the_threads() {
    let executor = spinning(3, 20);
    for _ in 0..500 {
        let all = Barrier::new(4);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    run_all(&executor, 2, |_| {
                        all.wait();
                    })
                });
            }
        });
    }
    thread::scope(|scope| {
        for caller in 0..6 {
            let executor = &executor;
            scope.spawn(move || (0..2000).for_each(|round| run_all(executor, (caller + round) % 7, |_| ())));
        }
    });
}

#[test]
fn a_part_may_make_calls() {
    for awake_us in [0, 50] {
        let executor = spinning(3, awake_us);
        for _ in 0..200 {
            run_all(&executor, 5, |_| run_all(&executor, 4, |_| run_all(&executor, 2, |_| ())));
        }
    }
}

#[test]
fn a_panic_of_a_part_is_the_callers() {
    let executor = spinning(2, 50);
    let caller = thread::current().id();
    for on_caller in [false, true] {
        let both = Barrier::new(2);
        let result = catch_unwind(AssertUnwindSafe(|| {
            executor.run(2, &|_| {
                both.wait();
                if (thread::current().id() == caller) == on_caller {
                    panic!("as it was told to");
                }
            })
        }));
        let panic = result.expect_err("a panic");
        assert_eq!(panic.downcast_ref(), Some(&"as it was told to"));
        run_on_each(&executor, |_| ());
    }
}

/// Counts threads that are gone.
struct Last(Cell<Option<&'static AtomicUsize>>);

impl Drop for Last {
    fn drop(&mut self) {
        if let Some(gone) = self.0.get() {
            gone.fetch_add(1, Ordering::Relaxed);
        }
    }
}

thread_local! {
    static LAST: Last = const { Last(Cell::new(None)) };
}

/// Also those that sleep.
#[test]
fn threads_end_with_the_executor() {
    static GONE: AtomicUsize = AtomicUsize::new(0);
    let caller = thread::current().id();
    for pause in [0, 20] {
        let executor = spinning(4, 100);
        run_on_each(&executor, |_| {
            if thread::current().id() != caller {
                LAST.with(|last| last.0.set(Some(&GONE)));
            }
        });
        thread::sleep(Duration::from_millis(pause));
        drop(executor);
    }
    let start = Instant::now();
    while GONE.load(Ordering::Relaxed) < 6 {
        assert!(start.elapsed() < Duration::from_secs(20), "{GONE:?} of 6 threads have ended");
        thread::sleep(Duration::from_millis(1));
    }
}

/// The time of the processor that threads take once nobody calls, by what Linux tells of them.
#[cfg(target_os = "linux")]
#[test]
fn threads_sleep_when_nobody_calls() {
    use std::path::{Path, PathBuf};
    use std::sync::Mutex;

    /// Time of a thread in the ticks of `/proc`, of which there are 100 in a second.
    fn ticks(task: &Path) -> u64 {
        let stat = std::fs::read_to_string(task.join("stat")).expect("a living thread");
        let (_, after_name) = stat.rsplit_once(") ").expect("a name in parentheses");
        let fields: Vec<&str> = after_name.split(' ').collect();
        // utime and stime are the 14th and 15th fields of all; the state, which comes first here, is the third.
        fields[11..13].iter().map(|field| field.parse::<u64>().expect("a number")).sum()
    }

    let executor = spinning(3, 200);
    let tasks = Mutex::new(vec![]);
    let caller = thread::current().id();
    run_on_each(&executor, |_| {
        if thread::current().id() != caller {
            let task: PathBuf = std::fs::read_link("/proc/thread-self").expect("procfs");
            tasks.lock().expect("no panic").push(Path::new("/proc").join(task));
        }
    });
    let tasks = tasks.into_inner().expect("no panic");
    assert_eq!(tasks.len(), 2);
    thread::sleep(Duration::from_millis(50));
    let before: u64 = tasks.iter().map(|task| ticks(task)).sum();
    thread::sleep(Duration::from_millis(500));
    let after: u64 = tasks.iter().map(|task| ticks(task)).sum();
    assert!(after - before <= 2, "{} ticks of 100 while nobody calls", after - before);
    run_on_each(&executor, |_| ());
}

/// Neighbours: other threads that want the cores.
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "asks Linux for cores")]
mod neighbours {
    use super::*;
    use cranefold::{Executor, Rayon};
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;

    fn core() -> i32 {
        // SAFETY: it reads a number that the system keeps.
        unsafe { libc::sched_getcpu() }
    }

    fn cores() -> libc::cpu_set_t {
        // SAFETY: numbers, for which zeros are the empty set.
        let mut mask = unsafe { std::mem::zeroed() };
        // SAFETY: the mask is as large as is said.
        assert_eq!(unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut mask) }, 0);
        mask
    }

    fn count(mask: &libc::cpu_set_t) -> i32 {
        // SAFETY: the mask is initialised.
        unsafe { libc::CPU_COUNT(mask) }
    }

    /// Lets this thread, and those that it starts, run on one core alone.
    fn stay_on_one_core() {
        let (all, here) = (cores(), core() as usize);
        // SAFETY: numbers, for which zeros are the empty set.
        let mut one: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: both masks are initialised, and have a bit of this number.
        unsafe {
            if libc::CPU_ISSET(here, &all) {
                libc::CPU_SET(here, &mut one)
            }
        };
        // SAFETY: the mask is as large as is said.
        assert_eq!(unsafe { libc::sched_setaffinity(0, size_of_val(&one), &one) }, 0);
    }

    fn busy(until: &AtomicBool) {
        while !until.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    }

    fn work(time: Duration) {
        let start = Instant::now();
        while start.elapsed() < time {
            std::hint::spin_loop();
        }
    }

    /// The share of calls whose two parts ran on one core, of those on two threads; all parts run once.
    fn share_on_one_core(executor: &Spinning, calls: usize) -> f64 {
        let (mut on_one, mut on_two_threads) = (0, 0);
        for _ in 0..calls {
            let places = Mutex::new(vec![]);
            run_all(executor, 2, |_| {
                work(Duration::from_micros(100));
                places.lock().expect("no panic").push((thread::current().id(), core()));
            });
            let places = places.into_inner().expect("no panic");
            on_two_threads += usize::from(places[0].0 != places[1].0);
            on_one += usize::from(places[0].0 != places[1].0 && places[0].1 == places[1].1);
        }
        println!("{on_one} of {on_two_threads} calls on two threads were on one core, of {calls}");
        on_one as f64 / on_two_threads.max(1) as f64
    }

    /// The helper is not left on the caller's core by a neighbour that was busy before.
    #[test]
    fn a_neighbour_before_leaves_no_trace() {
        if count(&cores()) < 2 {
            return;
        }
        for _ in 0..3 {
            let executor = spinning(2, 200);
            let ended = AtomicBool::new(false);
            thread::scope(|scope| {
                (0..count(&cores())).for_each(|_| drop(scope.spawn(|| busy(&ended))));
                let start = Instant::now();
                while start.elapsed() < Duration::from_millis(300) {
                    run_all(&executor, 2, |_| work(Duration::from_micros(100)));
                }
                ended.store(true, Ordering::Relaxed);
            });
            let share = share_on_one_core(&executor, 1000);
            assert!(share < 0.2, "{share} of the calls on one core");
        }
    }

    /// While a neighbour is busy, a call takes no longer than a few turns of the caller's core.
    #[test]
    fn a_neighbour_during_delays_no_call_for_long() {
        let (executor, ended) = (spinning(2, 200), AtomicBool::new(false));
        thread::scope(|scope| {
            (0..count(&cores()) - 1).for_each(|_| drop(scope.spawn(|| busy(&ended))));
            let start = Instant::now();
            (0..500).for_each(|_| run_all(&executor, 2, |_| work(Duration::from_micros(100))));
            let took = start.elapsed();
            ended.store(true, Ordering::Relaxed);
            assert!(took < Duration::from_secs(10), "{took:?} for 100 ms of work");
        });
    }

    #[test]
    fn one_core_is_enough() {
        thread::spawn(|| {
            stay_on_one_core();
            for threads in [2, 9] {
                let executor = spinning(threads, 200);
                let start = Instant::now();
                (0..500).for_each(|_| run_all(&executor, threads, |_| work(Duration::from_micros(20))));
                (0..50).for_each(|_| run_on_each(&executor, |_| ()));
                assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
            }
        })
        .join()
        .expect("no panic");
    }

    #[test]
    fn more_threads_than_cores_take_turns() {
        let executor = spinning(4 * count(&cores()) as usize, 200);
        let start = Instant::now();
        (0..500).for_each(|round| run_all(&executor, round % 20, |_| work(Duration::from_micros(10))));
        (0..50).for_each(|_| run_on_each(&executor, |_| ()));
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    }

    /// Rayon's threads work while ours do, and calls are made from them.
    #[test]
    fn rayon_beside_is_no_trouble() {
        let executor = spinning(2, 200);
        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    Rayon.run(8, &|_| work(Duration::from_micros(50)));
                }
            });
            let start = Instant::now();
            (0..300).for_each(|_| run_all(&executor, 2, |_| work(Duration::from_micros(50))));
            Rayon.run(8, &|_| (0..20).for_each(|_| run_all(&executor, 4, |_| ())));
            let took = start.elapsed();
            ended.store(true, Ordering::Relaxed);
            assert!(took < Duration::from_secs(20), "{took:?}");
        });
    }
}
