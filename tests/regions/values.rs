//! The values of every region of the list against its model's formula in `f64`, at several sizes.

mod formulas;
mod losses;
mod norms;

use super::given::{Draw, Slice, memory, place, results, slices};
use super::list;
use cranefold::{Compiler, DType, Scalar, Spec};

/// The most that a result may differ from that of the formula.
#[derive(Clone, Copy, Debug)]
pub enum Within {
    /// This part of the greatest magnitude of the output: a few roundings of `f32`, 6e-8 each, and their growth along a
    /// tree of sums.
    Part(f64),
    /// One unit in the last place of bf16, 2^-7 of the power of two below.
    BfloatUlp,
    /// Nothing.
    Exact,
    /// Equal to the formula's value rounded to an integer and clamped to `i8`, except within 1e-4 of a tie: `f32` holds
    /// values below 128 to 1e-5.
    Quantised,
}

/// A few roundings of `f32`.
pub const FEW: Within = Within::Part(3e-6);

/// The function of a slice: for each output one value, or one for each element.
type Formula = fn(&Slice) -> Vec<Vec<f64>>;

/// A region of the list, its data and its formula.
pub struct Case {
    /// The name in the list.
    pub name: &'static str,
    /// The elements of the inputs that are not normal.
    pub draws: &'static [(&'static str, Draw)],
    /// A part of the text's shapes, and the same with `N` for a number.
    pub size: (&'static str, &'static str),
    /// A tolerance for each output.
    pub within: &'static [Within],
    /// The formula of a slice.
    pub formula: Formula,
}

/// The outputs that are means over slices: the region, and the number of the output.
const TOTALS: &[(&str, usize)] = &[("cross-entropy by label with ignore index", 1), ("top-1 accuracy", 0)];

/// All cases.
pub fn cases() -> impl Iterator<Item = &'static Case> {
    formulas::CASES.iter().chain(losses::CASES).chain(norms::CASES)
}

/// The region of a case with another extent.
pub fn sized(case: &Case, n: u64) -> Spec {
    let (_, spec) = list().into_iter().find(|(name, _)| name == case.name).expect("a region of the list");
    let text = spec.to_string();
    assert!(text.contains(case.size.0), "{}: {text}", case.name);
    let text = text.replace(case.size.0, &case.size.1.replace('N', &n.to_string()));
    text.parse().unwrap_or_else(|e| panic!("{}: {e}\n{text}", case.name))
}

/// The result of the formula for each element of each output.
fn expected(case: &Case, spec: &Spec, slices: &[Slice]) -> Vec<Vec<f64>> {
    let mut outputs: Vec<Vec<f64>> =
        spec.outputs().iter().map(|output| vec![f64::NAN; output.elems() as usize]).collect();
    let whole = spec.shape().iter().product::<u64>() as usize;
    let of_slices: Vec<Vec<Vec<f64>>> = slices.iter().map(case.formula).collect();
    for (o, output) in outputs.iter_mut().enumerate() {
        if TOTALS.contains(&(case.name, o)) {
            // The mean over those slices that count: the others are NaN.
            let counted: Vec<f64> = of_slices.iter().map(|s| s[o][0]).filter(|value| !value.is_nan()).collect();
            output[0] = counted.iter().sum::<f64>() / counted.len() as f64;
            continue;
        }
        for (number, (slice, values)) in slices.iter().zip(&of_slices).enumerate() {
            let values = &values[o];
            if output.len() == whole && values.len() == slice.len() {
                slice.at.iter().zip(values).for_each(|(index, &value)| output[place(index, spec.shape())] = value);
            } else {
                output[number] = values[0];
            }
        }
    }
    outputs
}

/// The error of a result as a part of `scale`, the greatest magnitude of its output.
fn compare(got: Scalar, expected: f64, within: Within, scale: f64) -> Result<f64, String> {
    let value = got.as_f64();
    if value == expected || (value.is_nan() && expected.is_nan()) {
        return Ok(0.0);
    }
    let error = (value - expected).abs();
    let fine = match within {
        Within::Part(part) => error <= part * scale,
        Within::BfloatUlp => error <= 2f64.powi(expected.abs().max(1e-30).log2().floor() as i32 - 7),
        Within::Exact => false,
        Within::Quantised => {
            let is_tie = (expected - expected.floor() - 0.5).abs() < 1e-4;
            value == expected.round_ties_even().clamp(-128.0, 127.0) || is_tie && error < 0.501
        }
    };
    match fine {
        true => Ok(error / scale),
        false => Err(format!("{value:e} and not {expected:e}, {error:e} apart, of {scale:e}")),
    }
}

/// The faults of a region at one size.
fn check(compiler: &Compiler, case: &Case, spec: &Spec) -> Vec<String> {
    let memory = memory(spec, case.draws);
    let kernel = compiler.compile(spec).unwrap_or_else(|e| panic!("{}: {e}", case.name));
    let got = results(spec, &kernel, &memory);
    let expected = expected(case, spec, &slices(spec, &memory));
    assert_eq!(expected.len(), case.within.len(), "{}", case.name);
    let mut faults = vec![];
    for (o, (got, expected)) in got.iter().zip(&expected).enumerate() {
        assert_eq!(got.len(), expected.len(), "{}", case.name);
        let finite = expected.iter().filter(|value| value.is_finite());
        let scale = finite.fold(1e-30, |scale: f64, value| scale.max(value.abs()));
        let mut worst = 0f64;
        for (place, (&got, &expected)) in got.iter().zip(expected).enumerate() {
            match compare(got, expected, case.within[o], scale) {
                Ok(error) => worst = worst.max(error),
                Err(fault) => faults.push(format!("{}, output {o}, element {place}: {fault}\n  {spec}", case.name)),
            }
        }
        println!("{:9.1e} of the greatest: {}, output {o}, {:?}", worst, case.name, spec.shape());
    }
    faults.truncate(3);
    faults
}

#[test]
fn every_region_of_the_list_has_a_formula() {
    for (name, _) in list() {
        assert_eq!(cases().filter(|case| case.name == name).count(), 1, "{name}");
    }
    assert_eq!(cases().count(), list().len());
}

#[test]
fn kernels_compute_the_formulas_of_models() {
    let compiler = Compiler::host().expect("a compiler");
    let mut faults = vec![];
    for case in cases() {
        let (_, spec) = list().into_iter().find(|(name, _)| name == case.name).expect("a region of the list");
        faults.extend(check(&compiler, case, &spec));
        // Causal scores are a square of this side.
        let sizes = if case.name.contains("causal") { [1, 2, 7, 64, 130] } else { [1, 7, 64, 1000, 5000] };
        // Beside one class a label is of an element, and no total takes elements.
        let takes_totals = TOTALS.iter().any(|(name, _)| *name == case.name);
        for n in sizes.into_iter().filter(|&n| n > 1 || !takes_totals) {
            faults.extend(check(&compiler, case, &sized(case, n)));
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Data of mean 1,000 and deviation 1: `centered` subtracts the mean as a pair, and the difference from a mean of one
/// `f32` is off by up to half of its last place, 3e-5.
#[test]
fn centered_values_keep_what_a_mean_of_one_float_loses() {
    let compiler = Compiler::host().expect("a compiler");
    for n in [3, 64, 768, 1000, 5000] {
        let text = format!("region x:f32[16,{n}] axes=[1] {{ centered(x), x - mean(x) }}");
        let spec: Spec = text.parse().expect("a region");
        let memory = memory(&spec, &[("x", Draw::About(1000.0))]);
        let got = results(&spec, &compiler.compile(&spec).expect("a kernel"), &memory);
        let mut worst = [0f64; 2];
        for (row, slice) in slices(&spec, &memory).iter().enumerate() {
            let x = slice.of("x");
            let mean = x.iter().sum::<f64>() / x.len() as f64;
            for (i, x) in x.iter().enumerate() {
                for (worst, got) in worst.iter_mut().zip(&got) {
                    *worst = worst.max((got[row * n + i].as_f64() - (x - mean)).abs());
                }
            }
        }
        println!("centered {:.1e}, x - mean(x) {:.1e}, {n} elements", worst[0], worst[1]);
        assert!(worst[0] < 1e-6, "{text}: {:e}", worst[0]);
        assert!(worst[1] > 1e-6 && worst[1] < 1e-3, "{text}: {:e}", worst[1]);
    }
}

/// The bf16 nearest to a number.
pub fn bf16(value: f64) -> f64 {
    Scalar::float(DType::Bf16, value).as_f64()
}

/// The sum of a function of each element.
pub fn sum(slice: &Slice, f: impl Fn(usize) -> f64) -> f64 {
    (0..slice.len()).map(f).sum()
}

/// The mean of a function of each element.
pub fn mean(slice: &Slice, f: impl Fn(usize) -> f64) -> f64 {
    sum(slice, f) / slice.len() as f64
}

/// The logarithm of the sum of exponentials.
pub fn log_sum_exp(values: &[f64]) -> f64 {
    let most = values.iter().fold(f64::NEG_INFINITY, |most, &v| most.max(v));
    most + values.iter().map(|v| (v - most).exp()).sum::<f64>().ln()
}
