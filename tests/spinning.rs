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
