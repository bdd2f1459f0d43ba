//! Calls timed in turn.

use cranefold::Kernel;
use cranefold::{Input, Output};
use cranefold_fuzz::execute::Memory;
use std::time::Instant;

/// Rounds of calls; the calls of one in a round take about as long as this, in ns.
const ROUNDS: usize = 31;
const ROUND_NS: f64 = 5e5;

/// The least time of a call of each in ns.
pub fn in_turn(mut calls: [&mut dyn FnMut(); 2]) -> [f64; 2] {
    let mut least = [f64::INFINITY; 2];
    let mut counts = [1; 2];
    for _ in 0..ROUNDS {
        for ((call, least), count) in calls.iter_mut().zip(&mut least).zip(&mut counts) {
            // The first call drives out of the caches what the other left there.
            call();
            let start = Instant::now();
            (0..*count).for_each(|_| call());
            let ns = start.elapsed().as_nanos() as f64 / *count as f64;
            *least = least.min(ns);
            *count = (ROUND_NS / ns).clamp(1.0, 1e4) as usize;
        }
    }
    least
}

/// A call of a kernel on the buffers of its spec.
pub fn call<'a>(kernel: &'a Kernel, memory: &'a mut Memory) -> impl FnMut() + 'a {
    let inputs = kernel.inputs().zip(&memory.inputs);
    let inputs: Vec<Input> = inputs.map(|((dtype, _), b)| Input::from_bytes(dtype, b.bytes())).collect();
    let places = kernel.outputs().zip(&mut memory.outputs);
    let mut outputs: Vec<Output> = places.map(|((dtype, _), b)| Output::from_bytes(dtype, b.bytes_mut())).collect();
    move || kernel.run(&inputs, &mut outputs).expect("the right buffers")
}
