//! Children after a fork: they compile, and run several parts, on any executor and whatever the parent's threads did.
#![cfg(unix)]
#![allow(unsafe_code, reason = "forks, and waits for the children")]

use cranefold::{Compiler, Executor, Input, Kernel, Output, Rayon, Serial, Spec, Spinning};
use std::process::{Command, abort};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The time in which a child is done.
const PATIENCE: Duration = Duration::from_secs(60);

/// A reduction that threads divide into several parts.
fn large(number: usize) -> String {
    format!("sum f32[{}]", 2_000_000 + number)
}

fn compiler() -> Compiler {
    Compiler::builder().threads(3).build().expect("this machine")
}

fn kernel(compiler: &Compiler, text: &str) -> Kernel {
    compiler.compile(&text.parse::<Spec>().expect("a spec")).expect("a kernel")
}

/// The bits of the sum of a large kernel's elements.
fn sum(kernel: &Kernel, executor: &dyn Executor) -> u32 {
    let (_, elements) = kernel.inputs().next().expect("an input");
    let x: Vec<f32> = (0..elements).map(|n| (n % 1000) as f32 / 500.0).collect();
    let mut y = [0.0f32];
    kernel.run_on(executor, &[Input::from(&x[..])], &mut [Output::from(&mut y[..])]).expect("a call");
    y[0].to_bits()
}

/// Runs a function in a child, and returns true if it returned true there in time.
fn in_child(run: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child runs the function, in which it may allocate: the C library lets it.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "a child");
    if child == 0 {
        // A panic must not go on into the test's harness, whose other threads are no more.
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        // SAFETY: it ends the process, without what the parent registered.
        unsafe { libc::_exit(if matches!(done, Ok(true)) { 0 } else { 1 }) };
    }
    let (start, mut status) = (Instant::now(), -1);
    // SAFETY: the status is ours to write.
    while unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } == 0 {
        if start.elapsed() > PATIENCE {
            // SAFETY: a child of ours, which is not waited for yet.
            unsafe { libc::kill(child, libc::SIGKILL) };
            // SAFETY: as above.
            unsafe { libc::waitpid(child, &mut status, 0) };
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    status == 0
}

/// Threads of its own for each call.
struct Scoped;

impl Executor for Scoped {
    fn threads(&self) -> usize {
        3
    }

    fn run(&self, parts: usize, part: &(dyn Fn(usize) + Sync)) {
        thread::scope(|scope| (0..parts).for_each(|n| drop(scope.spawn(move || part(n)))));
    }
}

/// The executors, whose threads have run.
fn executors() -> Vec<(&'static str, Box<dyn Executor>)> {
    let pool = || rayon::ThreadPoolBuilder::new().num_threads(3).build().expect("threads");
    let executors: Vec<(&'static str, Box<dyn Executor>)> = vec![
        ("Serial", Box::new(Serial)),
        ("Spinning", Box::new(Spinning::new(3).expect("threads"))),
        ("asleep", Box::new(Spinning::awake_for(3, Duration::ZERO).expect("threads"))),
        ("Rayon", Box::new(Rayon)),
        ("ThreadPool", Box::new(pool())),
        ("Scoped", Box::new(Scoped)),
    ];
    for (_, executor) in &executors {
        executor.run(8, &|_| ());
    }
    executors
}

#[test]
fn a_child_compiles_and_runs_several_parts_on_any_executor() {
    let compiler = compiler();
    let (old, new) = (kernel(&compiler, &large(0)), large(1));
    assert!(old.parts() > 1);
    let expected = [sum(&old, &Serial), sum(&kernel(&self::compiler(), &new), &Serial)];
    for (name, executor) in executors() {
        for generation in ["child", "grandchild"] {
            let run = || {
                let found = [sum(&old, &*executor), sum(&kernel(&compiler, &new), &*executor)];
                found == expected && sum(&kernel(&compiler, &large(0)), &*executor) == expected[0]
            };
            let done = match generation {
                "child" => in_child(run),
                _ => in_child(|| run() && in_child(run)),
            };
            assert!(done, "{name} in a {generation}");
        }
        assert_eq!([sum(&old, &*executor), sum(&kernel(&compiler, &new), &*executor)], expected, "{name} afterwards");
    }
}

/// The helpers of a child are threads of its own: each part waits for all others.
#[test]
fn a_child_has_threads_of_its_own() {
    for (name, executor) in executors().into_iter().filter(|(name, _)| *name != "Serial" && *name != "Rayon") {
        let parts = executor.threads();
        let done = in_child(|| {
            let all = Barrier::new(parts);
            for _ in 0..3 {
                executor.run(parts, &|_| {
                    all.wait();
                });
            }
            true
        });
        assert!(done, "{name}");
    }
}

/// Dropping what the parent made harms neither.
#[test]
fn a_child_drops_what_its_parent_made() {
    let compiler = compiler();
    let kernels: Vec<Kernel> = (0..50).map(|n| kernel(&compiler, &format!("sum f32[{},3] axes=[1]", n + 2))).collect();
    let pool = Spinning::new(3).expect("threads");
    pool.run(3, &|_| ());
    let (in_parent, in_parent_too) = (kernels.clone(), compiler.clone());
    assert!(in_child(move || {
        drop((kernels, compiler, pool));
        true
    }));
    let x: Vec<f32> = (0..6).map(|n| n as f32).collect();
    let mut sums = [0.0f32; 2];
    in_parent[0].run_one(&x, &mut sums).expect("a call");
    assert_eq!((sums, in_parent_too.statistics().kernels), ([3.0, 12.0], 50));
}

/// Both sides compile a thousand different kernels, and neither sees the other's.
#[test]
fn both_sides_compile_kernels_of_their_own() {
    let compiler = compiler();
    let before: Vec<Kernel> = (0..100).map(|n| kernel(&compiler, &format!("sum f32[{},3] axes=[1]", n + 2))).collect();
    let compile = |axis: usize| -> bool {
        let text =
            |n: usize| if axis == 0 { format!("sum f32[3,{n}] axes=[0]") } else { format!("sum f32[{n},3] axes=[1]") };
        let kernels: Vec<Kernel> = (200..1200).map(|n| kernel(&compiler, &text(n))).collect();
        kernels.iter().chain(&before).all(|kernel| {
            let rows = kernel.outputs().next().expect("an output").1 as usize;
            let (x, mut y) = (vec![1.5f32; 3 * rows], vec![0.0f32; rows]);
            kernel.run_one(&x, &mut y).expect("a call");
            y.iter().all(|sum| *sum == 4.5)
        })
    };
    let (mut parent, start) = (false, Barrier::new(2));
    thread::scope(|scope| {
        let child = scope.spawn(|| {
            in_child(|| {
                // The parent compiles at the same time.
                compile(0)
            })
        });
        scope.spawn(|| {
            start.wait();
            parent = compile(1);
        });
        start.wait();
        assert!(child.join().expect("no panic"), "the child");
    });
    assert!(parent, "the parent");
}

/// Locks that other threads hold at the fork stay locked in the child.
#[test]
fn a_fork_amid_the_work_of_threads_hangs_no_child() {
    let (compiler, pool) = (compiler(), Spinning::new(2).expect("threads"));
    let (ended, next) = (AtomicBool::new(false), AtomicU64::new(10));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    kernel(&compiler, &format!("sum f32[{},7] axes=[1]", n % 5000 + 2));
                    kernel(&compiler, "sum f32[9,7] axes=[1]");
                    pool.run(4, &|_| ());
                    if n % 50 == 0 {
                        compiler.clear();
                    }
                }
            });
        }
        for round in 0..40 {
            let done = in_child(|| {
                let sums = kernel(&compiler, &large(round));
                sum(&sums, &pool) == sum(&sums, &Serial)
            });
            if !done {
                // The threads would go on for ever.
                eprintln!("the child of round {round} failed");
                abort();
            }
        }
        ended.store(true, Ordering::Relaxed);
    });
}

/// A child that becomes another program begins anew.
#[test]
fn a_child_with_exec_compiles_and_runs() {
    let compiler = compiler();
    let expected = sum(&kernel(&compiler, &large(2)), &Spinning::new(3).expect("threads"));
    let this = std::env::current_exe().expect("a test");
    let test = "a_program_of_its_own";
    let mut program = Command::new(this);
    program.args(["--exact", test, "--nocapture"]).env("CRANEFOLD_SUM", expected.to_string());
    let mut child = program.spawn().expect("a child");
    let start = Instant::now();
    let status = loop {
        match child.try_wait().expect("a child") {
            Some(status) => break status,
            None => assert!(start.elapsed() < PATIENCE),
        }
        thread::sleep(Duration::from_millis(1));
    };
    assert!(status.success());
}

/// The program of the child above; by itself it compares a sum with its own.
#[test]
fn a_program_of_its_own() {
    let found = sum(&kernel(&compiler(), &large(2)), &Spinning::new(3).expect("threads"));
    let expected = std::env::var("CRANEFOLD_SUM").map_or(found, |sum| sum.parse().expect("a number"));
    assert_eq!(found, expected);
}
