//! Means and Euclidean norms of narrow integers, whose totals are divided and rooted in few bits: exact for every number
//! of elements, at every width, for rows and for columns.

use cranefold::{Compiler, Input, Options, Output, Spec};
use cranefold_fuzz::data::Random;

const WIDTHS: [u32; 4] = [512, 256, 128, 0];
const SLICES: usize = 70;

/// Slices of `count` numbers from `low` to `high`: constant ones at both ends, totals beside multiples of the count, and
/// random ones.
fn slices(low: i64, high: i64, count: usize) -> Vec<Vec<i64>> {
    let mut random = Random::new(count as u64);
    let one = |slice: usize| match slice {
        0 => vec![low; count],
        1 => vec![high; count],
        _ if slice.is_multiple_of(3) => {
            (0..count).map(|_| low + random.below((high - low + 1) as u64) as i64).collect()
        }
        _ => {
            let whole = low + random.below((high - low + 1) as u64) as i64;
            let mut all = vec![whole; count];
            // The total is a multiple and a few more or less, or about half the count more.
            let steps = if slice % 3 == 1 { random.below(3) as usize } else { count / 2 + random.below(2) as usize };
            let by = if random.below(2) == 0 { 1 } else { -1 };
            all.iter_mut().take(steps).for_each(|x| *x = (*x + by).clamp(low, high));
            all
        }
    };
    (0..SLICES).map(one).collect()
}

/// The quotient towards zero, or the nearest one, ties to even.
fn quotient(total: i64, count: i64, half_even: bool) -> i64 {
    let (floor, rest) = (total.div_euclid(count), total.rem_euclid(count));
    match half_even {
        false => total / count,
        true => floor + i64::from(2 * rest > count || 2 * rest == count && floor % 2 != 0),
    }
}

/// The root towards zero, or the nearest one.
fn root(total: i64, half_even: bool) -> i64 {
    let floor = total.isqrt();
    floor + i64::from(half_even && total > floor * floor + floor)
}

/// Checks an op on integers of type `$from` with results of type `$to`.
macro_rules! check {
    ($compiler:expr, $from:ident, $to:ident, $counts:expr, $rounding:literal) => {
        let half_even = $rounding != "";
        for count in $counts {
            let count: usize = count;
            let slices = slices($from::MIN.into(), $from::MAX.into(), count);
            let rows: Vec<$from> = slices.iter().flatten().map(|&x| x as $from).collect();
            let columns: Vec<$from> = (0..count).flat_map(|n| slices.iter().map(move |s| s[n] as $from)).collect();
            for op in ["mean", "l2"] {
                let expected = |slice: &Vec<i64>| match op {
                    "mean" => quotient(slice.iter().sum(), count as i64, half_even),
                    _ => root(slice.iter().map(|x| x * x).sum(), half_even),
                };
                let of_output = |x: i64| x.clamp($to::MIN.into(), $to::MAX.into()) as $to;
                let expected: Vec<$to> = slices.iter().map(|slice| of_output(expected(slice))).collect();
                for (shape, data) in [
                    (format!("[{SLICES},{count}] axes=[1]"), &rows),
                    (format!("[{count},{SLICES}] axes=[0]"), &columns),
                ] {
                    let text = format!("{op} {}{shape} {} -> {}", stringify!($from), $rounding, stringify!($to));
                    let spec: Spec = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
                    for width in WIDTHS {
                        let options = Options { width: Some(width), ..Options::default() };
                        let kernel = $compiler.compile_with(&spec, &options).expect("a kernel");
                        let mut found = vec![0 as $to; SLICES];
                        kernel
                            .run(&[Input::from(data.as_slice())], &mut [Output::from(found.as_mut_slice())])
                            .expect("a run");
                        assert_eq!(found, expected, "{text} at {width} bits");
                    }
                }
            }
        }
    };
}

/// Numbers of elements: all small ones, and those about the most of totals in 16 bits.
fn counts() -> impl Iterator<Item = usize> {
    (1..=40).chain([48, 63, 64, 65, 96, 100, 126, 127, 128, 129, 191, 200, 254, 255, 256, 257, 300])
}

#[test]
fn of_bytes() {
    let compiler = Compiler::host().expect("a compiler");
    check!(compiler, i8, i8, counts(), "");
    check!(compiler, u8, u8, counts(), "");
    check!(compiler, i8, i8, counts().step_by(4), "round_half_even");
    check!(compiler, u8, u8, counts().step_by(4), "round_half_even");
}

#[test]
fn to_other_types() {
    let compiler = Compiler::host().expect("a compiler");
    check!(compiler, i8, u8, counts().step_by(3), "");
    check!(compiler, u8, i8, counts().step_by(3), "");
    check!(compiler, i8, i32, counts().step_by(3), "");
    check!(compiler, u8, i64, counts().step_by(5), "");
}

#[test]
fn of_16_bits() {
    let compiler = Compiler::host().expect("a compiler");
    check!(compiler, i16, i16, counts().step_by(5), "");
    check!(compiler, u16, u16, counts().step_by(5), "");
    check!(compiler, u16, i16, counts().step_by(5), "round_half_even");
}

/// A float of 32 bits is the quotient or the root, rounded once.
#[test]
fn to_floats() {
    let compiler = Compiler::host().expect("a compiler");
    for count in counts() {
        let slices = slices(0, 255, count);
        let bytes: Vec<u8> = slices.iter().flatten().map(|&x| x as u8).collect();
        for op in ["sum", "mean", "l2"] {
            let expected = |slice: &Vec<i64>| {
                let total = slice.iter().map(|x| if op == "l2" { x * x } else { *x }).sum::<i64>() as f64;
                // Exact in f64, but for the quotient and the root, of which f64 has more than twice the bits.
                match op {
                    "sum" => total as f32,
                    "mean" => (total / count as f64) as f32,
                    _ => total.sqrt() as f32,
                }
            };
            let expected: Vec<f32> = slices.iter().map(expected).collect();
            let text = format!("{op} u8[{SLICES},{count}] axes=[1] -> f32");
            let spec: Spec = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
            for width in WIDTHS {
                let options = Options { width: Some(width), ..Options::default() };
                let kernel = compiler.compile_with(&spec, &options).expect("a kernel");
                let mut found = vec![0f32; SLICES];
                kernel.run_one(&bytes, &mut found).expect("a run");
                assert_eq!(found, expected, "{text} at {width} bits");
            }
        }
    }
}
