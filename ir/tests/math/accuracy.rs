//! Measures errors in ulps.

use crate::eval::{BLOCK, Program};
use cranefold_ir::{DType, Def, Scalar};
use std::fmt;

/// The greatest error seen and the argument that gave it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Worst {
    pub ulps: f64,
    pub at: f64,
}

impl Worst {
    pub fn see(&mut self, ulps: f64, at: f64) {
        if ulps > self.ulps {
            *self = Worst { ulps, at };
        }
    }
}

impl fmt::Display for Worst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.4} ulp at {:e}", self.ulps, self.at)
    }
}

/// The distance of `got` from the true value `want` in ulps of an f32 at `want`, and whether
/// `want` is below the normal range. Infinite where one is NaN or infinite and the other is not.
pub fn ulps_f32(got: f32, want: f64) -> (f64, bool) {
    // Half an ulp beyond the greatest f32 everything rounds to infinity.
    const LIMIT: f64 = 3.402_823_567_797_336_6e38;
    if want.is_nan() || want.abs() >= LIMIT {
        let right = if want.is_nan() { got.is_nan() } else { f64::from(got) == want.signum() * f64::INFINITY };
        return (if right { 0.0 } else { f64::INFINITY }, false);
    }
    let exponent = ((want.abs().to_bits() >> 52) as i32 - 1023).max(-126);
    let ulp = f64::from_bits(((exponent - 23 + 1023) as u64) << 52);
    let error = if got.is_finite() || got.is_nan() { (f64::from(got) - want).abs() / ulp } else { 1.0 };
    (if error.is_nan() { f64::INFINITY } else { error }, want != 0.0 && want.abs() < f64::from(f32::MIN_POSITIVE))
}

/// The errors of a definition with one f32 parameter over every `stride`-th bit pattern: of
/// normal and of subnormal results.
pub fn sweep_f32(def: &Def, stride: u32, truth: impl Fn(f32) -> f64 + Sync) -> [Worst; 2] {
    let quarter = |q: u64| {
        let mut program = Program::new(def);
        let mut worst = [Worst::default(); 2];
        let mut inputs = Vec::with_capacity(BLOCK);
        let mut all = (q << 30..(q + 1) << 30).step_by(stride as usize);
        loop {
            inputs.clear();
            inputs.extend(all.by_ref().take(BLOCK));
            if inputs.is_empty() {
                return worst;
            }
            program.run(&[&inputs]);
            for (&x, &y) in inputs.iter().zip(program.result(0)) {
                let x = f32::from_bits(x as u32);
                let (ulps, subnormal) = ulps_f32(f32::from_bits(y as u32), truth(x));
                worst[usize::from(subnormal)].see(ulps, f64::from(x));
            }
        }
    };
    let mut worst = [Worst::default(); 2];
    std::thread::scope(|scope| {
        let quarters: Vec<_> = (0..4).map(|q| scope.spawn(move || quarter(q))).collect();
        for q in quarters {
            let seen = q.join().expect("a quarter of all inputs");
            worst.iter_mut().zip(seen).for_each(|(w, s)| w.see(s.ulps, s.at));
        }
    });
    worst
}

/// Arguments of an f64 function, the results rounded to f64, and what is left of those in ulps.
pub struct Table {
    rows: Vec<Vec<f64>>,
}

impl Table {
    /// Reads a file of `tests/data`: bits in hexadecimal, `#` starts a comment.
    pub fn read(name: &str) -> Table {
        let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        let word = |w: &str| f64::from_bits(u64::from_str_radix(w, 16).expect("hexadecimal bits"));
        let lines = text.lines().filter(|l| !l.starts_with('#'));
        Table { rows: lines.map(|l| l.split(' ').map(word).collect()).collect() }
    }

    /// The number of arguments.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// The errors of `def` over the table: of normal and of subnormal results.
    pub fn check(&self, def: &Def) -> [Worst; 2] {
        let mut worst = [Worst::default(); 2];
        for row in &self.rows {
            let (args, want) = row.split_at(row.len() - 2);
            let args: Vec<Scalar> = args.iter().map(|&a| Scalar::f64(a)).collect();
            let got = crate::eval::eval1(def, &args);
            assert_eq!(got.dtype(), DType::F64);
            let (ulps, subnormal) = ulps_f64(f64::from_bits(got.bits()), want[0], want[1]);
            worst[usize::from(subnormal)].see(ulps, row[0]);
        }
        worst
    }
}

/// The distance of `got` from the true value, which is `want` and `rest` ulps of it, in the same
/// ulps, and whether `want` is below the normal range.
fn ulps_f64(got: f64, want: f64, rest: f64) -> (f64, bool) {
    if !want.is_finite() || !got.is_finite() {
        let right = got == want || (got.is_nan() && want.is_nan());
        return (if right { 0.0 } else { f64::INFINITY }, false);
    }
    let exponent = ((want.abs().to_bits() >> 52) as i32 - 1023).max(-1022);
    // Scaled in two steps: the ulp itself may be below the normal range.
    let scale = f64::from_bits(((52 - exponent).min(1023) as u64 + 1023) << 52);
    let left = f64::from_bits(((52 - exponent - (52 - exponent).min(1023)) as u64 + 1023) << 52);
    let error = ((got - want) * scale * left - rest).abs();
    (error, want != 0.0 && want.abs() < f64::MIN_POSITIVE)
}

/// The step between inputs of a sweep: `full` with `FULL=1` in the environment, which takes some
/// minutes in release; else a prime multiple of it, so that every exponent is still seen densely.
pub fn stride(full: u32) -> u32 {
    match std::env::var_os("FULL") {
        Some(_) => full,
        None if cfg!(debug_assertions) => full * 9973,
        None => full * 31,
    }
}
