//! Quotients by a value of the slice, which wide vectors compute through its reciprocal: of numerators whose quotients
//! lie near the middle between two numbers, of those for which a step would leave the range of normal numbers, and of
//! zeros, infinities and NaNs. Every width has the bits of a division.

use cranefold::{Compiler, Input, Options, Output, Problem, Spec, lower};
use cranefold_fuzz::data::Random;
use cranefold_fuzz::execute::Memory;

const WIDTHS: [u32; 4] = [512, 256, 128, 0];

/// The divisors of a call, and the numerators of each.
const ROWS: usize = 32;
const COLUMNS: usize = 512;

/// A significand of so many bits, at times one at an end of their range.
fn significand(random: &mut Random, bits: u32) -> u64 {
    let all = 1u64 << (bits - 1);
    match random.below(8) {
        0 => all + random.below(4),
        1 => 2 * all - 1 - random.below(4),
        _ => all + random.below(all),
    }
}

/// The significands `a` of so many bits for which `a / b` lies closest to the middle between two numbers: there
/// `2^n a - m b` is a small odd number for an odd `m` of one bit more.
fn hard(b: u64, bits: u32) -> Vec<u64> {
    // Newton's method doubles the bits that are right.
    let inverse = (0..6).fold(b, |x, _| x.wrapping_mul(2u64.wrapping_sub(b.wrapping_mul(x))));
    let mut all = vec![];
    for c in (-15i128..16).step_by(2) {
        for n in [bits, bits + 1] {
            let m = (-c as u64).wrapping_mul(inverse) & ((1 << n) - 1) | 1 << bits;
            let scaled = (u128::from(m) * u128::from(b)).wrapping_add_signed(c);
            let a = (scaled >> n) as u64;
            if scaled & ((1 << n) - 1) == 0 && a >> (bits - 1) == 1 {
                all.push(a);
            }
        }
    }
    all
}

/// Checks quotients of one float type with so many bits of significands, and the exponents of divisors and numerators.
macro_rules! checks {
    ($name:ident, $float:ident, $bits:literal, $divisors:expr, $numerators:expr) => {
        #[test]
        fn $name() {
            let text = format!(
                "region x:{t}[{ROWS},{COLUMNS}], y:{t}[{ROWS},1] axes=[1] {{ x / y, max(x) }}",
                t = stringify!($float)
            );
            let spec: Spec = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
            let compiler = Compiler::host().expect("a compiler");
            let kernels = WIDTHS.map(|width| {
                let options = Options { width: Some(width), ..Options::default() };
                (width, compiler.compile_with(&spec, &options).expect("a kernel"))
            });
            let mut random = Random::new(3);
            // Exact: the significand is a whole number, and 2^e is given in two factors.
            let number = |significand: u64, e: i32| {
                let two: $float = 2.0;
                significand as $float * two.powi(e / 2) * two.powi(e - e / 2)
            };
            let mut hard_ones = 0;
            for round in 0..64 {
                let mut x = Vec::with_capacity(ROWS * COLUMNS);
                let mut y = vec![];
                for _ in 0..ROWS {
                    let odd = significand(&mut random, $bits) | 1;
                    let divisors: std::ops::Range<i32> = $divisors;
                    let numerators: std::ops::Range<i32> = $numerators;
                    let pick = |range: std::ops::Range<i32>, r: u64| range.start + (r % range.len() as u64) as i32;
                    // Every other round has divisors and numerators of all exponents; those of a row are often near
                    // one another, so that a whole group of vectors is small.
                    let near = -$bits..3 - $bits;
                    let is_any = round % 2 == 1;
                    let exponent = pick(if is_any { divisors } else { near.clone() }, random.bits());
                    let from = match random.below(8) {
                        _ if !is_any => near,
                        0 => numerators,
                        _ => {
                            let first = pick(numerators, random.bits());
                            first..first + 3
                        }
                    };
                    let sign = if random.below(16) == 0 { -1.0 } else { 1.0 };
                    y.push(match random.below(64) {
                        0 => [0.0, -0.0, $float::INFINITY, $float::NAN, $float::MIN_POSITIVE / 4.0][round % 5],
                        _ => sign * number(odd, exponent),
                    });
                    let mut row: Vec<$float> = vec![];
                    let hard = hard(odd, $bits);
                    hard_ones += hard.len();
                    row.extend(hard.iter().map(|&a| number(a, pick(from.clone(), random.bits()))));
                    while row.len() < COLUMNS {
                        let a = number(significand(&mut random, $bits), pick(from.clone(), random.bits()));
                        row.push(if random.below(2) == 0 { a } else { -a });
                    }
                    // In some rows a group of vectors has zeros, in some one number that a test must find.
                    for _ in 0..random.below(4) {
                        let at = random.below(COLUMNS as u64) as usize;
                        let special = [0.0, -0.0, $float::INFINITY, $float::NEG_INFINITY, $float::NAN];
                        let tiny = number(odd, $numerators.start);
                        row[at] = if random.below(4) == 0 { tiny } else { special[random.below(5) as usize] };
                    }
                    if random.below(4) == 0 {
                        (0..COLUMNS).filter(|n| n % 3 == 0).for_each(|n| row[n] = if n % 2 == 0 { 0.0 } else { -0.0 });
                    }
                    x.extend(row);
                }
                for (width, kernel) in &kernels {
                    let mut found: Vec<$float> = vec![0.5; x.len()];
                    let mut greatest: Vec<$float> = vec![0.0; ROWS];
                    let mut outputs = [Output::from(found.as_mut_slice()), Output::from(greatest.as_mut_slice())];
                    kernel.run(&[Input::from(x.as_slice()), Input::from(y.as_slice())], &mut outputs).expect("a run");
                    for (n, found) in found.iter().enumerate() {
                        let (a, b) = (x[n], y[n / COLUMNS]);
                        let expected = a / b;
                        let is_right = match expected.is_nan() {
                            true => found.to_bits() == $float::NAN.to_bits(),
                            false => found.to_bits() == expected.to_bits(),
                        };
                        assert!(is_right, "{a:e} / {b:e} is {expected:e}, not {found:e}, at {width} bits");
                    }
                }
            }
            assert!(hard_ones > 10_000, "{hard_ones} hard numerators");
        }
    };
}

checks!(quotients_of_f32_are_rounded_once, f32, 24, -172..104, -172..104);
checks!(quotients_of_f64_are_rounded_once, f64, 53, -1126..970, -1126..970);

/// Loops that end after quotients, with and without a store behind them, count their iterations all the same: the test of
/// quotients takes the flags.
#[test]
fn loops_with_quotients_count_their_iterations() {
    let compiler = Compiler::host().expect("a compiler");
    for text in [
        "region x:f32[3,1000] axes=[1] scalar k:f32 { max(x / k) }",
        "region x:f32[3,4096] axes=[1] scalar k:f32 { sum(x / k) }",
        "region x:f64[3,900] axes=[1] scalar k:f64 { sum(x / k) }",
        "region x:bf16[3,640] axes=[1] scalar k:f32 { min(x / k) }",
        "region x:bf16[585] axes=[0] scalar k:f32 { m = max(x); a, b = sum_exp((x / k - m) * x); a + b }",
        "region x:f32[2,5000] axes=[1] { m = max(x); sum(x / m) }",
        "region x:f32[2,5000] axes=[1] { m = max(x); max(x / m), min(x / m) }",
        "region x:f32[300,64] axes=[0] scalar k:f32 { max(x / k) }",
        "region x:bf16[585] axes=[0] scalar k:f32 { m = max(x); a, b = sum_exp((x / k + 1 - m) * x); a + b }",
        "region x:f32[700] axes=[0] scalar k:f32 { a, b = sum_exp(x / k); a + b }",
    ] {
        let spec: Spec = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        let naive = lower::lower(&Problem::of(&spec), "naive");
        for width in WIDTHS {
            let options = Options { width: Some(width), ..Options::default() };
            let kernel = compiler.compile_with(&spec, &options).expect("a kernel");
            for kind in [1, 2] {
                let memory = Memory::of(&spec, kind, 9, (4, 0));
                let (is, expected) = (memory.run(&kernel), memory.interpreted(&naive));
                let same = is.iter().zip(&expected).all(|(a, b)| a.bytes() == b.bytes());
                assert!(same, "{spec}, {width} bits, data {kind}");
            }
        }
    }
}
