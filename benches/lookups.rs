//! The cost of looking up a ready kernel, and a call of a small one, as ratios in one run.
//!
//!     cargo bench --bench lookups
//!
//! Each figure is the median of interleaved rounds, in ns for one lookup or call; each lookup is of another of 256
//! specs than the one before, in a fixed random order. The least each is compared with is the least there can be: a
//! map behind a lock that gives out what it counts references to, and a function of C's kind that sums eight elements.

#![allow(unsafe_code, reason = "reads through pointers, as code of C's does, and calls a kernel with them")]

use cranefold::{Compiler, Error, Kernel, KeyedSpec, Spec};
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::{Arc, Barrier, RwLock};
use std::time::Instant;

/// Rounds, of which the median is told.
const ROUNDS: usize = 31;

/// Lookups, or calls, in a round.
const REPEATS: usize = 100_000;

/// Specs that are asked for: a power of two.
const SPECS: usize = 256;

/// What a thread does with a spec, by their numbers.
type Way<'a> = dyn Fn(usize, usize) + Sync + 'a;

type Map = RwLock<HashMap<u128, Arc<Kernel>>>;

fn main() -> Result<(), Error> {
    let compiler = Compiler::host()?;
    let text = |n: usize| format!("sum f32[{},{}] axes=[{}]", 2 + n % 16, 3 + n / 16, n % 2);
    let specs: Vec<Spec> = (0..SPECS).map(|n| text(n).parse()).collect::<Result<_, _>>()?;
    let kernels: Vec<Kernel> = specs.iter().map(|spec| compiler.compile(spec)).collect::<Result<_, _>>()?;
    let keyed: Vec<KeyedSpec> = kernels.iter().map(|kernel| kernel.keyed_spec().clone()).collect();
    let keys: Vec<u128> = keyed.iter().map(|one| one.signature().hash()).collect();
    let map: Map = RwLock::new(keys.iter().copied().zip(kernels.into_iter().map(Arc::new)).collect());

    let bare = |_: usize, n: usize| drop(black_box(map.read().expect("no panic").get(&keys[n]).cloned()));
    let ready = |_: usize, n: usize| drop(black_box(compiler.get(&keyed[n])));
    let raw = |_: usize, n: usize| drop(black_box(compiler.compile(&specs[n]).expect("a kernel")));
    // Two threads with a compiler each have nothing in common but the machine.
    let own: [(Compiler, Vec<KeyedSpec>); 2] = [of_its_own(&specs)?, of_its_own(&specs)?];
    let apart = |thread: usize, n: usize| drop(black_box(own[thread].0.get(&own[thread].1[n])));
    let raw_apart = |thread: usize, n: usize| drop(black_box(own[thread].0.compile(&specs[n]).expect("a kernel")));
    let mut times = [(); 7].map(|()| vec![]);
    for _ in 0..ROUNDS {
        let ways: [(usize, &Way); 7] =
            [(1, &bare), (1, &ready), (1, &raw), (2, &ready), (2, &apart), (2, &raw), (2, &raw_apart)];
        times.iter_mut().zip(ways).for_each(|(times, (threads, way))| times.push(on_threads(threads, way)));
    }
    let [bare_ns, ready_ns, raw_ns, two_ready_ns, apart_ns, two_raw_ns, raw_apart_ns] = times.map(median);
    println!("a map behind a lock          {bare_ns:6.1} ns");
    println!("a keyed spec, ready          {ready_ns:6.1} ns  {:5.2} of the map", ready_ns / bare_ns);
    println!("a spec, ready                {raw_ns:6.1} ns  {:5.2} of the keyed spec", raw_ns / ready_ns);
    println!("a keyed spec, by two threads {two_ready_ns:6.1} ns  {:5.2} of one thread", two_ready_ns / ready_ns);
    println!("  with a compiler each       {apart_ns:6.1} ns  {:5.2} of one thread", apart_ns / ready_ns);
    println!("a spec, by two threads       {two_raw_ns:6.1} ns  {:5.2} of one thread", two_raw_ns / raw_ns);
    println!("  with a compiler each       {raw_apart_ns:6.1} ns  {:5.2} of one thread", raw_apart_ns / raw_ns);

    let kernel = compiler.compile(&"sum f32[8]".parse()?)?;
    let x: [f32; 8] = std::array::from_fn(|n| n as f32);
    let plain = |_: usize, _: usize| {
        let mut y = [0.0f32];
        let function: extern "C" fn(*const f32, *mut f32, usize) = black_box(sum);
        function(black_box(x.as_ptr()), y.as_mut_ptr(), black_box(x.len()));
        black_box(y);
    };
    let checked = |_: usize, _: usize| {
        let mut y = [0.0f32];
        kernel.run_one(black_box(&x), &mut y).expect("the right buffers");
        black_box(y);
    };
    let raw = |_: usize, _: usize| {
        let mut y = [0.0f32];
        let buffers = [black_box(&x).as_ptr().cast_mut().cast(), y.as_mut_ptr().cast()];
        // SAFETY: eight elements that the kernel only reads, and a place for the sum; it takes no scratch memory.
        unsafe { kernel.run_raw(buffers.as_ptr()).expect("a kernel for this machine") };
        black_box(y);
    };
    let entry = kernel.entry().expect("one part");
    let by_entry = |_: usize, _: usize| {
        let mut y = [0.0f32];
        let buffers = [black_box(&x).as_ptr().cast_mut().cast(), y.as_mut_ptr().cast()];
        // SAFETY: as above.
        unsafe { entry(buffers.as_ptr()) };
        black_box(y);
    };
    let mut times = [(); 4].map(|()| vec![]);
    for _ in 0..ROUNDS {
        let ways: [&Way; 4] = [&plain, &checked, &raw, &by_entry];
        times.iter_mut().zip(ways).for_each(|(times, way)| times.push(on_threads(1, way)));
    }
    let [plain_ns, checked_ns, raw_ns, entry_ns] = times.map(median);
    println!("a function that sums eight   {plain_ns:6.1} ns");
    println!("a checked call of sum f32[8] {checked_ns:6.1} ns  {:5.2} of the function", checked_ns / plain_ns);
    println!("a raw call of it             {raw_ns:6.1} ns  {:5.2} of the checked call", raw_ns / checked_ns);
    println!("a call of its entry          {entry_ns:6.1} ns  {:5.2} of the raw call", entry_ns / raw_ns);
    let takes_less = raw_ns <= 1.1 * checked_ns && entry_ns <= 1.1 * raw_ns;
    assert!(takes_less, "what checks less takes no longer");
    Ok(())
}

/// A compiler with kernels of its own.
fn of_its_own(specs: &[Spec]) -> Result<(Compiler, Vec<KeyedSpec>), Error> {
    let compiler = Compiler::host()?;
    let key = |spec| compiler.compile(spec).map(|kernel| kernel.keyed_spec().clone());
    let keyed = specs.iter().map(key).collect::<Result<_, _>>()?;
    Ok((compiler, keyed))
}

/// The sum of so many elements in their order.
extern "C" fn sum(x: *const f32, y: *mut f32, count: usize) {
    // SAFETY: the one caller passes an array and its length, and a place for the sum.
    unsafe { *y = std::slice::from_raw_parts(x, count).iter().sum() };
}

/// Time of one call in ns, on so many threads at once, each of which makes them all.
fn on_threads(threads: usize, call: &Way) -> f64 {
    let barrier = Barrier::new(threads);
    let timed = &|thread: usize| {
        let mut n = 77 * thread;
        barrier.wait();
        let start = Instant::now();
        for _ in 0..REPEATS {
            n = (5 * n + 1) % SPECS;
            call(thread, n);
        }
        start.elapsed().as_nanos() as f64 / REPEATS as f64
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || timed(thread))).collect();
        let times = threads.into_iter().map(|t| t.join().expect("no panic"));
        times.fold(0.0, f64::max)
    })
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
