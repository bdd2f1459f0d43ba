//! The cost model beside the clock: the predicted time of a call over its measured one.
//!
//!     cargo bench --bench predictions             all rows of the op table, and the regions of `regions.txt`
//!     cargo bench --bench predictions -- norm     those whose text has this word
//!
//! Prints the specs that are off by the most, and how many are within 1.5 times. Data is of the second-level cache and of the
//! last one; medians of calls on one thread.

use cranefold::ops::{ROWS, Row};
use cranefold::{Compiler, DType, Error, Input, Output, Problem, Spec, schedule};
use cranefold_fuzz::execute::Memory;
use std::time::{Duration, Instant};

/// Shapes and axes of the rows: rows, columns, and slices between others.
const SHAPES: [(&str, &str); 5] =
    [("256,1024", "1"), ("1024,2048", "1"), ("512,512", "0"), ("2048,512", "0"), ("16,64,28,28", "1")];

const DTYPES: [DType; 3] = [DType::F32, DType::Bf16, DType::I8];

/// Regions of this many bytes read and more are left out: memory.
const MOST_BYTES: u64 = 18 << 20;

/// Time spent on each spec.
const BUDGET: Duration = Duration::from_millis(40);

/// The factor within which a prediction counts as right.
const FACTOR: f64 = 1.5;

/// Specs that are printed.
const WORST: usize = 40;

fn main() -> Result<(), Error> {
    let word = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let compiler = Compiler::host()?;
    let mut found: Vec<(f64, f64, f64, String)> = vec![];
    for text in texts().into_iter().filter(|text| text.contains(&word)) {
        let spec: Spec = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        let kernel = compiler.compile(&spec)?;
        let problem = Problem::of(&spec);
        let Some(cost) = schedule::predict(&problem, kernel.schedule()) else { continue };
        let mut memory = Memory::of(&spec, 3, 1, (0, 0));
        let inputs = kernel.inputs().zip(&memory.inputs);
        let inputs: Vec<Input> = inputs.map(|((dtype, _), b)| Input::from_bytes(dtype, b.bytes())).collect();
        let places = kernel.outputs().zip(&mut memory.outputs);
        let mut outputs: Vec<Output> = places.map(|((dtype, _), b)| Output::from_bytes(dtype, b.bytes_mut())).collect();
        let measured = median_ns(|| kernel.run(&inputs, &mut outputs).expect("the right buffers"));
        let predicted = cost.total_ns();
        found.push((predicted / measured, predicted, measured, text));
    }
    let off = |&(ratio, ..): &(f64, f64, f64, String)| ratio.ln().abs();
    found.sort_by(|a, b| off(b).total_cmp(&off(a)));
    println!("{:>9} {:>9} {:>6}  spec", "predicted", "measured", "ratio");
    for (ratio, predicted, measured, text) in found.iter().take(WORST) {
        println!("{:>6.1} us {:>6.1} us {ratio:>6.2}  {text}", predicted / 1e3, measured / 1e3);
    }
    let within = found.iter().filter(|one| off(one) <= FACTOR.ln()).count();
    println!("{within} of {} are within {FACTOR} times", found.len());
    Ok(())
}

/// Every row on each shape and type that it takes, and the regions whose data is in a cache.
fn texts() -> Vec<String> {
    let mut texts = vec![];
    for (shape, axes) in SHAPES {
        for dtype in DTYPES {
            let row = |row: &Row| format!("{}{} {dtype}[{shape}] axes=[{axes}]", row.name, parameters(row));
            texts.extend(ROWS.iter().filter(|r| r.takes(dtype)).map(row).filter(|text| text.parse::<Spec>().is_ok()));
        }
    }
    let regions = include_str!("regions.txt").lines().filter(|line| line.starts_with("region"));
    let regions = regions.map(|line| line.split("  #").next().unwrap_or(line).trim().to_string());
    let bytes = |text: &String| {
        let spec: Spec = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        spec.inputs().iter().chain(spec.outputs()).map(|operand| operand.span_bytes()).sum::<u64>()
    };
    texts.extend(regions.filter(|text| bytes(text) < MOST_BYTES));
    texts
}

/// The parameters that a row needs.
fn parameters(row: &Row) -> String {
    let needed = row.params.iter().filter(|param| param.default.is_none());
    let all: Vec<String> =
        needed.map(|param| format!("{}={}", param.name, if param.name == "q" { 0.3 } else { 2.5 })).collect();
    if all.is_empty() { String::new() } else { format!("({})", all.join(",")) }
}

/// The median time of a call in ns, after one to warm up.
fn median_ns(mut call: impl FnMut()) -> f64 {
    call();
    let start = Instant::now();
    let mut samples = vec![];
    while samples.len() < 7 || start.elapsed() < BUDGET {
        let start = Instant::now();
        call();
        samples.push(start.elapsed().as_nanos() as f64);
    }
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}
