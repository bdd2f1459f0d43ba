//! Partial results beside the whole: what shards, their combining and finishing take in one thread.
//!
//!     cargo bench --bench partial
//!
//! Prints, for each spec in four shards, medians of runs in turn after the bits are compared:
//!
//! | column | what |
//! | --- | --- |
//! | `whole` | the kernel over everything |
//! | `shards` | four partials, one after the other, combined and finished |
//! | `ratio` | of both |
//! | `combine` | combining the states of two halves of the blocks |
//! | `GB/s` | of that, counting both states read and one written |
//! | `shard` | compiling the first shard, in microseconds |
//!
//! Then ragged shards, whose ends lie inside blocks, of several widths: what making, reducing, combining and finishing them
//! take beside the whole, the first time (`first`, which compiles) and later (`ratio`).

use cranefold::{Compiler, Input, Output, Spec};
use std::hint::black_box;
use std::time::Instant;

const SPECS: [&str; 7] = [
    "sum f32[67108864]",
    "sum f32[1048576]",
    "sum f32[1024,65536] axes=[0]",
    "max f32[1024,65536] axes=[0]",
    "var f32[1024,65536] axes=[0]",
    "log_sum_exp f32[1024,65536] axes=[0]",
    "argmax f32[16777216]",
];

const SHARDS: usize = 4;

/// Specs in ragged shards, with the first axis' extent and the elements of one of its indices.
const RAGGED: [(&str, usize, usize); 4] = [
    ("sum f32[268435456] order=logical", 268_435_456, 1),
    ("var f32[268435456] order=logical", 268_435_456, 1),
    ("sum f32[262144,1000] axes=[0] order=logical", 262_144, 1000),
    ("argmax f32[268435456] order=logical", 268_435_456, 1),
];

/// The numbers of ragged shards.
const CUTS: [usize; 4] = [16, 64, 256, 1024];

const REPEATS: usize = 15;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!(
        "{:38} {:>10} {:>10} {:>6} {:>10} {:>6} {:>9}",
        "spec", "whole us", "shards us", "ratio", "combine us", "GB/s", "shard us"
    );
    for spec in SPECS {
        let spec: Spec = spec.parse()?;
        let compiler = Compiler::host()?;
        let kernel = compiler.compile(&spec)?;
        let partial = compiler.partial(&spec)?;
        let x: Vec<f32> = (0..spec.inputs()[0].elems() as u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 9) as f32 / 8e6 - 0.5)
            .collect();
        let start = Instant::now();
        partial.shard(partial.shards(SHARDS)[0].clone())?;
        let compile_us = us(start);
        let shards = partial.shards(SHARDS).into_iter().map(|b| partial.shard(b)).collect::<Result<Vec<_>, _>>()?;
        let bytes = spec.outputs()[0].span_bytes() as usize;
        let dtype = spec.outputs()[0].dtype();
        let (mut expected, mut got) = (vec![0u8; bytes], vec![1u8; bytes]);
        let (mut state, mut all) = (vec![0; partial.state_bytes()], vec![0; partial.state_bytes()]);
        let part = |range: &std::ops::Range<u64>| Input::from(&x[range.start as usize..range.end as usize]);
        let mut samples: [Vec<f64>; 2] = Default::default();
        for _ in 0..REPEATS {
            let start = Instant::now();
            kernel.run(&[Input::from(&x[..])], &mut [Output::from_bytes(dtype, black_box(&mut expected))])?;
            samples[0].push(us(start));
            let start = Instant::now();
            partial.identity(&mut all, 1)?;
            for shard in &shards {
                shard.partial(&[part(&shard.inputs()[0].elems)], &mut state)?;
                partial.combine(&state, &mut all, 1)?;
            }
            partial.finish(&all, &[], &mut [Output::from_bytes(dtype, black_box(&mut got))], 1)?;
            samples[1].push(us(start));
            assert!(got == expected, "{spec}: other bits");
        }
        let half = 1 << (partial.blocks() - 1).max(1).ilog2();
        let halves =
            [0..half, half..(2 * half).min(partial.blocks())].map(|blocks| -> Result<_, Box<dyn std::error::Error>> {
                let shard = partial.shard(blocks)?;
                let mut state = vec![0; partial.state_bytes()];
                shard.partial(&[part(&shard.inputs()[0].elems)], &mut state)?;
                Ok(state)
            });
        let [older, newer] = halves;
        let (older, newer) = (older?, newer?);
        let merge_us = median(
            (0..REPEATS)
                .map(|_| {
                    let mut into = older.clone();
                    let start = Instant::now();
                    partial.combine(black_box(&newer), black_box(&mut into), 1).map(|()| us(start))
                })
                .collect::<Result<_, _>>()?,
        );
        let moved = (2 * partial.used_bytes(&older)? + partial.used_bytes(&newer)?) as f64;
        let [whole, parts] = samples.map(median);
        println!(
            "{:38} {whole:10.1} {parts:10.1} {:6.2} {merge_us:10.2} {:6.1} {compile_us:9.0}",
            spec.to_string(),
            parts / whole,
            moved / merge_us / 1e3
        );
    }
    ragged()
}

/// Times ragged shards.
fn ragged() -> Result<(), Box<dyn std::error::Error>> {
    println!("\n{:46} {:>6} {:>10} {:>10} {:>6} {:>6}", "spec", "shards", "blocks", "whole us", "first", "ratio");
    for (text, extent, inner) in RAGGED {
        let spec: Spec = text.parse()?;
        let compiler = Compiler::host()?;
        let kernel = compiler.compile(&spec)?;
        let x: Vec<f32> =
            (0..(extent * inner) as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 9) as f32 / 8e6 - 0.5).collect();
        let (bytes, dtype) = (spec.outputs()[0].span_bytes() as usize, spec.outputs()[0].dtype());
        let (mut expected, mut got) = (vec![0u8; bytes], vec![1u8; bytes]);
        for count in CUTS {
            let partial = compiler.partial(&spec)?;
            let (mut state, mut all) = (vec![0; partial.state_bytes()], vec![0; partial.state_bytes()]);
            // Odd places, so that no cut is an end of a block.
            let cut = |n: usize| if n == count { extent } else { (n * extent / count) | usize::from(n > 0) };
            let mut samples: [Vec<f64>; 2] = Default::default();
            for _ in 0..5 {
                let start = Instant::now();
                kernel.run(&[Input::from(&x[..])], &mut [Output::from_bytes(dtype, black_box(&mut expected))])?;
                samples[0].push(us(start));
                let start = Instant::now();
                partial.identity(&mut all, 1)?;
                for n in 0..count {
                    let range = cut(n)..cut(n + 1);
                    let kept = (inner > 1).then_some(0..inner as u64);
                    let chunk: Vec<_> = std::iter::once(range.start as u64..range.end as u64).chain(kept).collect();
                    let shard = partial.shard_of(&chunk)?;
                    shard.partial(&[Input::from(&x[range.start * inner..range.end * inner])], &mut state)?;
                    partial.combine(&state, &mut all, 1)?;
                }
                partial.finish(&all, &[], &mut [Output::from_bytes(dtype, black_box(&mut got))], 1)?;
                samples[1].push(us(start));
                assert!(got == expected, "{spec}: other bits");
            }
            let first = samples[1][0];
            let [whole, parts] = samples.map(median);
            println!(
                "{text:46} {count:6} {:10.1} {whole:10.0} {:6.2} {:6.2}",
                partial.blocks() as f64 / count as f64,
                first / whole,
                parts / whole
            );
        }
    }
    Ok(())
}

fn us(start: Instant) -> f64 {
    start.elapsed().as_nanos() as f64 / 1e3
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}
