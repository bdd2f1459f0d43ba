//! Times of calls.

use crate::failure::Failure;
use std::time::Instant;

/// The least time of a sample: the clock costs some 25 ns, which must not show.
const SAMPLE_NS: f64 = 20_000.0;

/// A call that may fail.
pub type Timed<'a> = dyn FnMut() -> Result<(), Failure> + 'a;

/// Samples of one call, each of enough repeats to be measured.
#[derive(Debug)]
pub struct Samples {
    repeats: u64,
    /// The time of one call in each sample, in ns.
    each_ns: Vec<f64>,
}

impl Samples {
    /// No samples yet; each will be of one call.
    pub fn single() -> Samples {
        Samples { repeats: 1, each_ns: vec![] }
    }

    /// Warms the call up, and finds the number of repeats of a sample.
    ///
    /// # Errors
    /// The call's.
    pub fn warm_up(call: &mut Timed) -> Result<Samples, Failure> {
        let mut samples = Samples::single();
        loop {
            let total_ns = samples.measure(call)? * samples.repeats as f64;
            if total_ns >= SAMPLE_NS {
                return Ok(samples);
            }
            samples.repeats *= 2;
        }
    }

    fn measure(&self, call: &mut Timed) -> Result<f64, Failure> {
        let start = Instant::now();
        for _ in 0..self.repeats {
            call()?;
        }
        Ok(start.elapsed().as_nanos() as f64 / self.repeats as f64)
    }

    /// Takes a sample.
    ///
    /// # Errors
    /// The call's.
    pub fn take(&mut self, call: &mut Timed) -> Result<(), Failure> {
        let ns = self.measure(call)?;
        self.each_ns.push(ns);
        Ok(())
    }

    /// The number of samples.
    pub fn len(&self) -> usize {
        self.each_ns.len()
    }

    /// The median time of a call.
    ///
    /// # Panics
    /// If no sample was taken.
    pub fn median_ns(&self) -> f64 {
        let mut sorted = self.each_ns.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }

    /// The least time of a call.
    pub fn min_ns(&self) -> f64 {
        self.each_ns.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

/// Samples calls in turn, so that anything that slows the machine for a while slows all of them: `least` rounds, and
/// more until `budget_ns` is spent or there are `most`.
///
/// # Errors
/// A call's.
pub fn in_turn(calls: &mut [&mut Timed], rounds: (usize, usize), budget_ns: f64) -> Result<Vec<Samples>, Failure> {
    let mut samples = calls.iter_mut().map(|call| Samples::warm_up(call)).collect::<Result<Vec<_>, _>>()?;
    let (least, most) = rounds;
    let start = Instant::now();
    for round in 0..most {
        if round >= least && start.elapsed().as_nanos() as f64 > budget_ns {
            break;
        }
        for (samples, call) in samples.iter_mut().zip(calls.iter_mut()) {
            samples.take(call)?;
        }
    }
    Ok(samples)
}

/// The time that a call takes once.
///
/// # Errors
/// The call's.
pub fn once_ns<T>(call: impl FnOnce() -> Result<T, Failure>) -> Result<(T, f64), Failure> {
    let start = Instant::now();
    let result = call()?;
    Ok((result, start.elapsed().as_nanos() as f64))
}
