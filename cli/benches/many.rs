//! Many kernels: what a process pays for its first one, what two threads gain, and the memory that each keeps.
//!
//!     cargo bench --bench many
//!     cargo bench --bench many -- first 31        the first kernel of 31 processes
//!     cargo bench --bench many -- threads 9       9 rounds of one and two threads in turn
//!     cargo bench --bench many -- memory          resident memory of 1,000 kernels
//!
//! The 1,000 kernels are different ones: reductions and normalisations of rows, columns and images in three types.

use cranefold::{Compiler, Executor, Kernel, Serial, Spec, Spinning};
use std::error::Error;
use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let number = |least: usize| arguments.get(1).and_then(|n| n.parse().ok()).unwrap_or(least);
    match arguments.first().map(String::as_str) {
        Some("one") => one(),
        Some("first") => first(number(31)),
        Some("threads") => threads(number(9)),
        Some("memory") => memory(),
        _ => first(31).and_then(|()| threads(9)).and_then(|()| memory()),
    }
}

/// A thousand different specs, others for each `shift`.
fn specs(shift: u64) -> Outcome<Vec<Spec>> {
    let ops = ["sum", "mean", "max", "l2", "var", "log_sum_exp", "argmax", "softmax", "layer_norm(eps=1e-5)", "min"];
    let mut specs = vec![];
    for n in 0..25u64 {
        for (op, dtype) in ops.iter().zip(["f32", "bf16", "f32", "f64", "f32"].into_iter().cycle()) {
            let (rows, row) = (8 + 3 * n, 64 + 40 * n + shift);
            for shape in [
                format!("[{rows},{row}] axes=[1]"),
                format!("[{row},{rows}] axes=[0]"),
                format!("[{},{},7,7] axes=[2,3]", 1 + n, 16 + n + 50 * shift),
                format!("[{},9,{rows}] axes=[1]", 2 + n + 50 * shift),
            ] {
                specs.push(format!("{op} {dtype}{shape}").parse()?);
            }
        }
    }
    Ok(specs)
}

/// Compiles the first kernel of this process, and prints the nanoseconds of the compiler and of the kernel.
fn one() -> Outcome<()> {
    let start = Instant::now();
    let compiler = Compiler::host()?;
    let made = start.elapsed().as_nanos();
    compiler.compile(&"sum f32[1024,1024] axes=[1]".parse()?)?;
    println!("{made} {}", start.elapsed().as_nanos() - made);
    Ok(())
}

fn first(processes: usize) -> Outcome<()> {
    let mut times = [vec![], vec![], vec![]];
    for _ in 0..processes {
        let output = Command::new(std::env::current_exe()?).arg("one").output()?;
        let told = String::from_utf8(output.stdout)?;
        let ns = told.split_whitespace().map(str::parse::<f64>).collect::<Result<Vec<_>, _>>()?;
        [ns[0], ns[1], ns[0] + ns[1]].iter().zip(&mut times).for_each(|(ns, times)| times.push(*ns));
    }
    for (what, mut times) in ["Compiler::host()", "the first kernel", "both"].into_iter().zip(times) {
        let (median, least) = median_and_least(&mut times);
        println!(
            "{what:<20} {:6.0} us in the median of {processes} processes, {:6.0} at least",
            median / 1e3,
            least / 1e3
        );
    }
    Ok(())
}

/// Arithmetic without memory, which scales as well as the machine lets anything.
fn arithmetic(_: usize) {
    let mut x = black_box(1.0f64);
    for _ in 0..50_000 {
        x = x.mul_add(0.999, 1e-3);
    }
    black_box(x);
}

fn threads(rounds: usize) -> Outcome<()> {
    let specs = specs(0)?;
    let pool = Spinning::new(2)?;
    let executors: [&dyn Executor; 2] = [&Serial, &pool];
    let compile_all = |executor: &dyn Executor| -> Outcome<f64> {
        let compiler = Compiler::host()?;
        let start = Instant::now();
        compiler.compile_all(executor, &specs).into_iter().collect::<Result<Vec<Kernel>, _>>()?;
        let ns = start.elapsed().as_nanos() as f64;
        assert_eq!(compiler.statistics().kernels, specs.len() as u64);
        Ok(ns)
    };
    let count = |executor: &dyn Executor| -> Outcome<f64> {
        let start = Instant::now();
        executor.run(specs.len(), &arithmetic);
        Ok(start.elapsed().as_nanos() as f64)
    };
    let mut times = [(); 4].map(|()| vec![]);
    for _ in 0..rounds {
        for (n, executor) in executors.into_iter().enumerate() {
            times[n].push(compile_all(executor)?);
            times[2 + n].push(count(executor)?);
        }
    }
    let gains = |one: &[f64], two: &[f64]| {
        let mut ratios: Vec<f64> = one.iter().zip(two).map(|(one, two)| two / one).collect();
        let (median, least) = median_and_least(&mut ratios);
        (1.0 / median, 1.0 / least)
    };
    let (gain, best) = gains(&times[0], &times[1]);
    let (of_arithmetic, best_of_arithmetic) = gains(&times[2], &times[3]);
    let (one_ns, least_ns) = median_and_least(&mut times[0]);
    let each_us = |ns: f64| ns / specs.len() as f64 / 1e3;
    println!(
        "one thread           {:6.1} us a kernel in the median of {rounds} rounds, {:6.1} at least",
        each_us(one_ns),
        each_us(least_ns)
    );
    println!("two threads          {gain:6.2} times as fast, {best:6.2} at most");
    println!("arithmetic           {of_arithmetic:6.2} times as fast, {best_of_arithmetic:6.2} at most");
    Ok(())
}

fn memory() -> Outcome<()> {
    let compiler = Compiler::host()?;
    let compile =
        |specs: Vec<Spec>| specs.iter().map(|spec| compiler.compile(spec)).collect::<Result<Vec<Kernel>, _>>();
    // What a compilation frees is there before, and lies between kernels that stay.
    let warm = compile(specs(1)?)?;
    let before = resident()?;
    let kernels = compile(specs(0)?)?;
    let grown = resident()? - before;
    let code: u64 = kernels.iter().map(|kernel| kernel.facts().code_bytes).sum();
    let pages: u64 = kernels.iter().map(|kernel| kernel.facts().memory_bytes).sum();
    let each = |bytes: u64| bytes as f64 / kernels.len() as f64 / 1e3;
    println!(
        "resident memory      {:6.2} KB a kernel, of which {:.2} are code in {:.2} of pages",
        each(grown),
        each(code),
        each(pages)
    );
    drop(warm);
    Ok(())
}

/// Bytes of resident memory that belong to this process alone. The pages of its file are left out, for the system maps
/// more of them while it runs.
fn resident() -> Outcome<u64> {
    let told = std::fs::read_to_string("/proc/self/statm")?;
    let pages = |n: usize| -> Outcome<u64> { Ok(told.split(' ').nth(n).ok_or("too few numbers")?.parse()?) };
    let (all, of_files) = (pages(1)?, pages(2)?);
    Ok((all - of_files) * 4096)
}

fn median_and_least(times: &mut [f64]) -> (f64, f64) {
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], times[0])
}
