//! Every loop that this machine can run computes what scalar code does.

use cranefold_ceiling::{HandLoop, loops, row_loops};
use half::{bf16, f16};

/// Lengths in elements: one, around vectors and groups of them, around a block of 4 KB, several blocks.
const LENGTHS: [usize; 12] = [1, 2, 7, 16, 31, 64, 127, 128, 257, 1023, 1025, 5000];

/// Numbers in [0, 1), by a linear congruential generator.
fn random(count: usize) -> impl Iterator<Item = f64> {
    let next = |x: &mut u32| {
        *x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some(f64::from(*x >> 8) * 2f64.powi(-24))
    };
    std::iter::repeat_n((), count).scan(12345u32, move |x, ()| next(x))
}

/// Random elements: floats in [-0.5, 0.5), or about 1 for products; integers over their range.
fn elements(hand: &HandLoop, count: usize) -> Vec<f64> {
    let is_product = hand.what().ends_with("prod");
    let element = |x: f64| match hand.input() {
        "f32" if is_product => f64::from(0.99 + 0.02 * x as f32),
        "f32" => f64::from(x as f32 - 0.5),
        "f64" if is_product => 0.99 + 0.02 * x,
        "f64" => x - 0.5,
        "bf16" => bf16::from_f64(x - 0.5).to_f64(),
        "f16" => f16::from_f64(x - 0.5).to_f64(),
        "i8" => (256.0 * x).floor() - 128.0,
        "u8" => (256.0 * x).floor(),
        "i32" => ((x - 0.5) * 2f64.powi(20)).floor(),
        other => panic!("a loop of {other}"),
    };
    random(count).map(element).collect()
}

fn bytes(hand: &HandLoop, elements: &[f64]) -> Vec<u8> {
    let bytes = |&x: &f64| match hand.input() {
        "f32" => (x as f32).to_le_bytes().to_vec(),
        "f64" => x.to_le_bytes().to_vec(),
        "bf16" => bf16::from_f64(x).to_le_bytes().to_vec(),
        "f16" => f16::from_f64(x).to_le_bytes().to_vec(),
        "i8" => (x as i8).to_le_bytes().to_vec(),
        "u8" => vec![x as u8],
        "i32" => (x as i32).to_le_bytes().to_vec(),
        other => panic!("a loop of {other}"),
    };
    elements.iter().flat_map(bytes).collect()
}

/// What a loop is to give, and how far it may be off.
fn expected(hand: &HandLoop, elements: &[f64], columns: usize) -> (f64, f64) {
    let n = elements.len() as f64;
    let (_, op) = hand.what().split_once(' ').expect("a type and an operation");
    let sum = |f: &dyn Fn(f64) -> f64| elements.iter().map(|&x| f(x)).sum::<f64>();
    let value = match op {
        "sum" | "sum vpdpbusd" => sum(&|x| x),
        "l1" => sum(&f64::abs),
        "sum_squares" => sum(&|x| x * x),
        "prod" => elements.iter().product(),
        "max" | "max exact" => elements.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        "log_sum_exp" | "log_sum_exp rough" => sum(&f64::exp).ln(),
        "var" | "var in blocks" => {
            let mean = sum(&|x| x) / n;
            sum(&|x| (x - mean).powi(2)) / n
        }
        "outer sum" => elements.chunks_exact(columns).map(|row| row[0]).sum(),
        other => panic!("a loop of {other}"),
    };
    let off = match (hand.input(), op) {
        (_, "max" | "max exact") | ("i8" | "u8" | "i32", _) => 0.0,
        ("f64", _) => 1e-12 * n,
        (_, "prod") => 1e-6 * n * value,
        _ => 1e-6 * n.max(10.0),
    };
    (value, off)
}

#[test]
fn rows_compute_what_they_say() {
    for hand in loops() {
        for count in LENGTHS {
            let elements = elements(&hand, count);
            // One byte further on than a buffer starts.
            let shifted = [&[0], &bytes(&hand, &elements)[..]].concat();
            for columns in [1, 3, 100, 333].into_iter().filter(|&c| c <= count) {
                let (value, off) = expected(&hand, &elements, columns);
                let mut sums = vec![0xff; shifted[1..].len() / count * columns];
                let got = hand.run(&shifted[1..], &mut sums);
                assert!((got - value).abs() <= off, "{} of {count} by {columns}: {got}, not {value}", hand.name());
            }
        }
    }
}

/// NaN wherever it is, of either sign and any payload; zeros by their sign; infinities; all negative.
#[test]
fn exact_maxima_are_exact() {
    let cases: [(&[f64], f64); 10] = [
        (&[-0.0], -0.0),
        (&[-0.0, 0.0, -0.0], 0.0),
        (&[-1.0, -0.0], -0.0),
        (&[-1.0, -2.0, f64::NEG_INFINITY], -1.0),
        (&[f64::NEG_INFINITY], f64::NEG_INFINITY),
        (&[f64::INFINITY, 1.0], f64::INFINITY),
        (&[1.0, f64::NAN, 2.0], f64::NAN),
        (&[-f64::NAN, -1.0], f64::NAN),
        (&[f64::NAN, f64::INFINITY], f64::NAN),
        (&[1e-40, -1e-40], 1e-40),
    ];
    for hand in loops().iter().filter(|hand| hand.what().ends_with("max exact")) {
        for (special, value) in cases {
            // The last element of a case fills up before, between and after.
            for count in LENGTHS.into_iter().filter(|&count| count >= special.len()) {
                for start in [0, (count - special.len()) / 2, count - special.len()] {
                    let mut elements = vec![special[special.len() - 1]; count];
                    elements[start..start + special.len()].copy_from_slice(special);
                    let value = if hand.input() == "f32" { f64::from(value as f32) } else { value };
                    let got = hand.run(&bytes(hand, &elements), &mut []);
                    let same = got.to_bits() == value.to_bits() || got.is_nan() && value.is_nan();
                    assert!(same, "{} of {special:?} among {count}: {got}", hand.name());
                }
            }
        }
    }
}

/// What log_sum_exp makes of NaN and infinities, and of elements of any size.
#[test]
fn log_sum_exp_takes_all_inputs() {
    let cases: [(&[f64], f64); 7] = [
        (&[f64::NEG_INFINITY], f64::NEG_INFINITY),
        (&[f64::NEG_INFINITY, 3.0], 3.0),
        (&[f64::INFINITY, 3.0], f64::INFINITY),
        (&[f64::NAN, 3.0], f64::NAN),
        (&[f64::NAN, f64::INFINITY], f64::NAN),
        (&[1e30, -1e30], 1e30),
        (&[100.0, 99.0], 100.0 + (1.0 + (-1f64).exp()).ln()),
    ];
    for hand in loops().iter().filter(|hand| hand.what() == "f32 log_sum_exp") {
        for (special, value) in cases {
            for count in LENGTHS.into_iter().filter(|&count| count >= special.len()) {
                let mut elements = vec![f64::NEG_INFINITY; count];
                elements[count - special.len()..].copy_from_slice(special);
                let got = hand.run(&bytes(hand, &elements), &mut []);
                let same = got == f64::from(value as f32)
                    || got.is_nan() && value.is_nan()
                    || (got / value - 1.0).abs() < 1e-6;
                assert!(same, "{} of {special:?} among {count}: {got}", hand.name());
            }
        }
    }
}

/// The sum of each column is written, whatever was there.
#[test]
fn outer_sums_are_written() {
    for hand in loops().iter().filter(|hand| hand.takes_columns()) {
        for columns in [1, 7, 33, 64, 300] {
            let elements = elements(hand, 11 * columns);
            let mut sums = bytes(hand, &vec![f64::NAN; columns]);
            hand.run(&bytes(hand, &elements), &mut sums);
            let sums: Vec<f64> = match hand.input() {
                "f32" => sums.as_chunks().0.iter().map(|&x| f32::from_le_bytes(x).into()).collect(),
                _ => sums.as_chunks().0.iter().map(|&x| f64::from_le_bytes(x)).collect(),
            };
            for (column, sum) in sums.iter().enumerate() {
                let (value, off) = expected(hand, &elements[column..], columns);
                // The rows from here on are one fewer, but for what is left of the last.
                let value = if column == 0 { value } else { value + elements[10 * columns + column] };
                assert!((sum - value).abs() <= off, "{} of column {column}: {sum}, not {value}", hand.name());
            }
        }
    }
}

#[test]
fn a_row_is_named_once() {
    let mut names: Vec<String> = loops().iter().map(HandLoop::name).collect();
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
}

/// A row of each formula in f64.
fn row_of(what: &str, x: &[f64], w: &[f64], b: &[f64]) -> Vec<f64> {
    let n = x.len() as f64;
    let of = |f: &dyn Fn(usize) -> f64| (0..x.len()).map(f).collect::<Vec<f64>>();
    match what {
        "softmax" => {
            let m = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = x.iter().map(|x| (x - m).exp()).sum();
            of(&|i| (x[i] - m).exp() / sum)
        }
        "layer_norm" => {
            let mean = x.iter().sum::<f64>() / n;
            let var = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
            of(&|i| (x[i] - mean) / (var + 1e-5).sqrt() * w[i] + b[i])
        }
        "rms_norm" => {
            let mean = x.iter().map(|x| x * x).sum::<f64>() / n;
            of(&|i| x[i] / (mean + 1e-6).sqrt() * w[i])
        }
        "int8" => {
            let greatest = x.iter().map(|x| x.abs()).fold(0.0, f64::max);
            of(&|i| x[i] * 127.0 / greatest)
        }
        other => panic!("rows of {other}"),
    }
}

#[test]
fn rows_are_written() {
    let f32s = |values: &[f64]| values.iter().flat_map(|&x| (x as f32).to_le_bytes()).collect::<Vec<u8>>();
    for rows in row_loops() {
        for (count, columns) in [(3, 1), (2, 16), (3, 67), (2, 768)] {
            let random: Vec<f64> = random((count + 2) * columns).map(|x| f64::from(x as f32 - 0.5)).collect();
            let (x, weights) = random.split_at(count * columns);
            let (w, b) = weights.split_at(columns);
            let is_bytes = rows.what() == "int8";
            let mut out = vec![0xff; count * columns * if is_bytes { 1 } else { 4 }];
            rows.run(&f32s(x), [&f32s(w), &f32s(b)], &mut out);
            let got: Vec<f64> = match is_bytes {
                true => out.iter().map(|&x| f64::from(x as i8)).collect(),
                false => out.as_chunks().0.iter().map(|&x| f32::from_le_bytes(x).into()).collect(),
            };
            let expected = x.chunks(columns).flat_map(|x| row_of(rows.what(), x, w, b));
            let off = if is_bytes { 0.501 } else { 2e-5 };
            for (at, (got, expected)) in got.iter().zip(expected).enumerate() {
                let name = (rows.what(), rows.bits());
                assert!((got - expected).abs() <= off, "{name:?} of {columns} at {at}: {got}, not {expected}");
            }
        }
    }
}
