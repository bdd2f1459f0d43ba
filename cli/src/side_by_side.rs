//! The times of one reduction by several schedules, taken in turn.

use crate::arrays::Arrays;
use crate::buffer::Buffer;
use crate::execute::native;
use crate::failure::Failure;
use crate::timing::{self, Timed};
use cranefold::{Compiler, Executor, Kernel, Options, Schedule, Spec};

/// The median time of a call by each schedule, after all have given the same bits. Sampling takes `rounds` at least and at
/// most, and between them ends after `budget_ns`.
///
/// # Errors
/// If a schedule does not fit, or one gives other bits than the first.
pub fn medians_ns(
    spec: &Spec,
    schedules: &[Schedule],
    compiler: &Compiler,
    executor: &dyn Executor,
    rounds: (usize, usize),
    budget_ns: f64,
) -> Result<Vec<f64>, Failure> {
    let kernel = |schedule: &Schedule| {
        Ok(compiler.compile_with(spec, &Options { schedule: Some(schedule.clone()), width: None })?)
    };
    let kernels = schedules.iter().map(kernel).collect::<Result<Vec<Kernel>, Failure>>()?;
    let inputs = Arrays::random(spec, 1)?.inputs;
    let mut outputs = kernels.iter().map(|_| crate::arrays::outputs(spec)).collect::<Result<Vec<_>, _>>()?;
    for (kernel, outputs) in kernels.iter().zip(&mut outputs) {
        native(kernel, executor, &inputs, outputs)()?;
    }
    let bits = |outputs: &[Buffer]| outputs.iter().map(|b| b.bytes().to_vec()).collect::<Vec<_>>();
    if let Some(n) = (1..outputs.len()).find(|&n| bits(&outputs[n]) != bits(&outputs[0])) {
        let wrong = format!("`{spec}` gives other bits by `{}` than by `{}`", schedules[n], schedules[0]);
        return Err(Failure::WrongAnswer { wrong });
    }
    let mut calls: Vec<Box<Timed>> = vec![];
    for (kernel, outputs) in kernels.iter().zip(&mut outputs) {
        calls.push(Box::new(native(kernel, executor, &inputs, outputs)));
    }
    let mut calls: Vec<&mut Timed> = calls.iter_mut().map(|call| &mut **call as &mut Timed).collect();
    let samples = timing::in_turn(&mut calls, rounds, budget_ns)?;
    Ok(samples.iter().map(timing::Samples::median_ns).collect())
}
