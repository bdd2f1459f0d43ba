//! The kernels of a transformer block as a graph compiler asks for them: ten kinds, four types, five shapes.
//!
//!     cargo run --release --example block
//!
//! Each runs checked, in scratch memory of ours, on threads of ours, part by part, raw, and in place where it may: to the
//! same bits, which are compared with a reference in f64.
#![allow(unsafe_code, reason = "one way to call is by raw pointers")]

use cranefold::{Compiler, DType, Error, Executor, Input, Kernel, Output, Scalar, Spec, op};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Threads that take the parts of a call in turn.
struct Threads(usize);

impl Executor for Threads {
    fn threads(&self) -> usize {
        self.0
    }

    fn run(&self, parts: usize, part: &(dyn Fn(usize) + Sync)) {
        let next = AtomicUsize::new(0);
        let turns = || std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed)).take_while(|&n| n < parts);
        std::thread::scope(|scope| (0..self.0.min(parts)).for_each(|_| drop(scope.spawn(|| turns().for_each(part)))));
    }
}

/// A tensor of any type: its bytes.
type Tensor = (DType, Vec<u8>);

fn tensor(dtype: DType, count: usize, value: impl Fn(usize) -> f64) -> Tensor {
    let mut bytes = vec![0; count * dtype.bytes() as usize];
    for n in 0..count {
        let value = value(n);
        let scalar =
            if dtype.is_float() { Scalar::float(dtype, value) } else { Scalar::from_bits(dtype, value as u64) };
        scalar.write(&mut bytes, n);
    }
    (dtype, bytes)
}

fn values((dtype, bytes): &Tensor) -> Vec<f64> {
    (0..bytes.len() / dtype.bytes() as usize).map(|n| Scalar::read(*dtype, bytes, n).as_f64()).collect()
}

/// The rows of the outputs for a row of each input, in f64.
type Reference = fn(&[f64], &[f64]) -> Vec<Vec<f64>>;

fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

fn map(x: &[f64], f: impl Fn(f64) -> f64) -> Vec<f64> {
    x.iter().map(|&x| f(x)).collect()
}

fn zip(x: &[f64], y: &[f64], f: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    x.iter().zip(y).map(|(&x, &y)| f(x, y)).collect()
}

fn log_sum_exp(x: &[f64]) -> f64 {
    map(x, f64::exp).iter().sum::<f64>().ln()
}

fn linf(x: &[f64]) -> f64 {
    map(x, f64::abs).into_iter().fold(0.0, f64::max)
}

/// Each kind with its reference.
fn kinds(t: DType, rows: usize, n: usize) -> Result<Vec<(Spec, Reference)>, Error> {
    let one = |body: &str| format!("region x:{t}[{rows},{n}] axes=[1] {{ {body} }}").parse::<Spec>();
    let two =
        |with: &str, body: &str| format!("region x:{t}[{rows},{n}], {with} axes=[1] {{ {body} }}").parse::<Spec>();
    let (mask, label, same) = (format!("k:bool[{rows},{n}]"), format!("l:i64[{rows},1]"), format!("h:{t}[{rows},{n}]"));
    let picked = "sum(select(position(1) == l, x, 0))";
    let row = |op: op::NamedOp| Spec::builder(op).input(t, &[rows, n]).axes(1).build();
    let masked_softmax = two(&mask, &format!("y = select(k, x, -inf); m, s = sum_exp(y); {t}(exp(y - m) / s)"))?;
    let layer_norm = format!("y = x + h; c = centered(y); {t}(y), {t}(c * rsqrt(mean(c * c) + 1e-5))");
    let masked_mean = format!("sum(select(k, x, 0)) / max(sum({}(k)), 1)", if t == DType::F64 { "f64" } else { "f32" });
    Ok(vec![
        (masked_softmax, |x, k| {
            let all = zip(x, k, |x, k| k * x.exp()).iter().sum::<f64>();
            vec![zip(x, k, |x, k| k * x.exp() / all)]
        }),
        (one(&format!("{t}(x * rsqrt(mean(x * x) + 1e-6))"))?, |x, _| {
            let r = (mean(&map(x, |x| x * x)) + 1e-6).sqrt();
            vec![map(x, |x| x / r)]
        }),
        (two(&same, &layer_norm)?, |x, h| {
            let y = zip(x, h, |x, h| x + h);
            let c = map(&y, |x| x - mean(&y));
            let r = (mean(&map(&c, |c| c * c)) + 1e-5).sqrt();
            vec![y, map(&c, |c| c / r)]
        }),
        (two(&label, &format!("log_sum_exp(x) - {picked}"))?, |x, l| vec![vec![log_sum_exp(x) - x[l[0] as usize]]]),
        (two(&label, picked)?, |x, l| vec![vec![x[l[0] as usize]]]),
        (row(op::mean())?, |x, _| vec![vec![mean(x)]]),
        (two(&mask, &masked_mean)?, |x, k| {
            vec![vec![zip(x, k, |x, k| x * k).iter().sum::<f64>() / k.iter().sum::<f64>().max(1.0)]]
        }),
        (row(op::argmax().into())?, |x, _| {
            vec![vec![(0..x.len()).fold(0, |best, n| if x[n] > x[best] { n } else { best }) as f64]]
        }),
        (one("a = linf(x); i8(round(x * (127 / a))), a / 127")?, |x, _| {
            vec![map(x, |y| y * 127.0 / linf(x)), vec![linf(x) / 127.0]]
        }),
        (row(op::linf())?, |x, _| vec![vec![linf(x)]]),
    ])
}

/// The outputs of a kernel, which every way to call it gives.
fn run(kernel: &Kernel, given: &[Tensor]) -> Result<Vec<Tensor>, Error> {
    let inputs: Vec<Input> = given.iter().map(|(dtype, bytes)| Input::from_bytes(*dtype, bytes)).collect();
    let mut scratch = vec![MaybeUninit::uninit(); kernel.scratch_bytes() as usize + 64];
    let aligned = scratch.as_ptr().align_offset(64);
    let scratch = &mut scratch[aligned..];
    let mut found: Vec<Vec<Tensor>> = vec![];
    for way in 0..6 {
        let (mut inputs, mut all) = (inputs.clone(), vec![]);
        all.extend(kernel.outputs().map(|(dtype, elems)| tensor(dtype, elems as usize, |_| 7.0)));
        if way == 5 && kernel.spec().is_some_and(|spec| spec.may_replace(0, 0)) {
            (all[0], inputs[0]) = (given[0].clone(), Input::of_output(0));
        }
        let memory = given.iter().map(|(_, bytes)| bytes.as_ptr().cast_mut());
        let mut pointers: Vec<*mut u8> = memory.chain(all.iter_mut().map(|(_, bytes)| bytes.as_mut_ptr())).collect();
        pointers.push(scratch.as_mut_ptr().cast());
        let mut outputs: Vec<Output> = all.iter_mut().map(|(dtype, bytes)| Output::from_bytes(*dtype, bytes)).collect();
        match way {
            0 => kernel.run(&inputs, &mut outputs)?,
            1 => kernel.run_in(&inputs, &mut outputs, scratch)?,
            2 => {
                let call = kernel.call_in(&inputs, &mut outputs, scratch)?;
                (0..call.parts()).rev().try_for_each(|part| call.run_part(part))?;
                call.finish()?;
            }
            // SAFETY: a pointer to each tensor, which has the kernel's elements, and to scratch memory for all parts.
            3 => unsafe { kernel.run_raw_on(&Threads(4), pointers.as_ptr())? },
            _ => kernel.run_on(&Threads(4), &inputs, &mut outputs)?,
        }
        drop(outputs);
        found.push(all);
        assert_eq!(found[way], found[0], "the same bits in every way");
    }
    Ok(found.swap_remove(0))
}

fn main() -> Result<(), Error> {
    let compiler = Compiler::builder().threads(4).build()?;
    let mut kernels = 0;
    for (rows, n) in [(1, 8), (3, 50), (64, 256), (7, 1000), (512, 2048)] {
        for (t, bound) in [(DType::F64, 1e-12f64), (DType::F32, 1e-5), (DType::F16, 2e-3), (DType::Bf16, 2e-2)] {
            for (spec, reference) in kinds(t, rows, n)? {
                let kernel = compiler.compile(&spec)?;
                let input = |(dtype, elems): (DType, u64)| match dtype {
                    DType::I64 => tensor(dtype, elems as usize, |row| (row * 31 % n) as f64),
                    DType::Bool => tensor(dtype, elems as usize, |i| f64::from(i % 3 != 1)),
                    _ => tensor(dtype, elems as usize, |i| ((i * 7919 + 13) % 1009) as f64 / 252.0 - 2.0),
                };
                let given: Vec<Tensor> = kernel.inputs().map(input).collect();
                let found: Vec<Vec<f64>> = run(&kernel, &given)?.iter().map(values).collect();
                let rows_of = given.iter().map(values).chain([vec![0.0; rows]]).collect::<Vec<_>>();
                for row in 0..rows {
                    let part = |all: &[f64]| all[row * all.len() / rows..(row + 1) * all.len() / rows].to_vec();
                    for (found, expected) in found.iter().zip(reference(&part(&rows_of[0]), &part(&rows_of[1]))) {
                        let most = linf(&expected).max(1.0);
                        let error = linf(&zip(&part(found), &expected, |a, b| a - b)) / most;
                        assert!(error <= bound.max(if most > 100.0 { 0.51 / most } else { 0.0 }), "{spec}: {error}");
                    }
                }
                kernels += 1;
            }
        }
    }
    println!("{kernels} kernels of {} codes, each in six ways to the same bits", compiler.statistics().kernels);
    Ok(())
}
