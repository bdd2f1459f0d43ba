//! Where an extreme element is, in slices that are searched by windows: what a walk over the elements says, at every
//! width, where most elements are equal, NaN, zeros of both signs or limits.

use cranefold::{Compiler, Input, Options, Output, Spec};
use cranefold_fuzz::data::Random;
use std::cmp::Ordering;

/// Around the shortest slice that is searched, around windows, and ragged ones.
const LENGTHS: &[usize] = &[511, 512, 513, 1024, 1535, 2047, 2048, 2049, 2200, 4099, 16400, 33333];

/// The place by a walk: `order` says how the second element compares with the first, NaN as the extreme.
fn place<T: Copy>(elements: &[T], last: bool, order: impl Fn(T, T) -> Ordering) -> i64 {
    let mut best = 0;
    for (n, &x) in elements.iter().enumerate().skip(1) {
        match order(elements[best], x) {
            Ordering::Greater => best = n,
            Ordering::Equal if last => best = n,
            _ => {}
        }
    }
    best as i64
}

fn floats(a: f64, b: f64, is_max: bool) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        _ if is_max => b.partial_cmp(&a).expect("numbers"),
        _ => a.partial_cmp(&b).expect("numbers"),
    }
}

fn integers(a: i128, b: i128, is_max: bool) -> Ordering {
    if is_max { b.cmp(&a) } else { a.cmp(&b) }
}

/// Rows of one element everywhere, but for some of a few others.
fn rows<T: Copy>(values: &[T], len: usize, random: &mut Random) -> Vec<T> {
    let mut row = vec![random.pick(values); len];
    for _ in 0..random.below(5) {
        let at = random.below(len as u64) as usize;
        row[at] = random.pick(values);
    }
    row
}

macro_rules! check {
    ($name:literal, $t:ty, $values:expr, $order:expr) => {
        let values: &[$t] = &$values;
        let mut random = Random::new(7);
        let compiler = Compiler::host().expect("this machine");
        for &len in LENGTHS {
            for (op, last) in [("argmax", false), ("argmax(last)", true), ("argmin", false), ("argmin(last)", true)] {
                let count = 6;
                let data: Vec<$t> = (0..count).flat_map(|_| rows(values, len, &mut random)).collect();
                let expected: Vec<i64> = data
                    .chunks(len)
                    .map(|row| place(row, last, |a, b| $order(a, b, op.starts_with("argmax"))))
                    .collect();
                let spec: Spec = format!("{op} {}[{count},{len}] axes=[1]", $name).parse().expect("a spec");
                for width in [None, Some(256), Some(128)] {
                    let kernel = compiler.compile_with(&spec, &Options { schedule: None, width }).expect("a kernel");
                    let mut places = vec![0i64; count];
                    kernel.run(&[Input::from(&data[..])], &mut [Output::from(&mut places[..])]).expect("a run");
                    assert_eq!(places, expected, "{spec} at {width:?}");
                }
            }
        }
    };
}

#[test]
fn places_of_floats() {
    let nan = [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324];
    check!("f64", f64, nan, floats);
    let nan = [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0, 1.0, -1.0, 1e-45, -1e-45];
    check!("f32", f32, nan, |a: f32, b: f32, is_max| floats(a.into(), b.into(), is_max));
    let bits = [0x7e00u16, 0xfe01, 0x7c00, 0xfc00, 0, 0x8000, 0x3c00, 0xbc00, 1, 0x8001];
    let of = |x: half::f16, y: half::f16, is_max| floats(x.to_f64(), y.to_f64(), is_max);
    check!("f16", half::f16, bits.map(half::f16::from_bits), of);
    let bits = [0x7fc0u16, 0xffc1, 0x7f80, 0xff80, 0, 0x8000, 0x3f80, 0xbf80, 1, 0x8001];
    let of = |x: half::bf16, y: half::bf16, is_max| floats(x.to_f64(), y.to_f64(), is_max);
    check!("bf16", half::bf16, bits.map(half::bf16::from_bits), of);
}

#[test]
fn places_of_integers() {
    check!("i8", i8, [i8::MIN, -1, 0, 1, i8::MAX], |a: i8, b: i8, is_max| integers(a.into(), b.into(), is_max));
    check!("u8", u8, [0, 1, 0x7f, 0x80, u8::MAX], |a: u8, b: u8, is_max| integers(a.into(), b.into(), is_max));
    check!("i16", i16, [i16::MIN, -1, 0, i16::MAX], |a: i16, b: i16, is_max| integers(a.into(), b.into(), is_max));
    check!("u32", u32, [0, 1, 1 << 31, u32::MAX], |a: u32, b: u32, is_max| integers(a.into(), b.into(), is_max));
    check!("bool", bool, [false, true], |a: bool, b: bool, is_max| integers(a.into(), b.into(), is_max));
    check!("u16", u16, [0, 1, 0x7fff, 0x8000, u16::MAX], |a: u16, b: u16, is_max| integers(a.into(), b.into(), is_max));
    check!("i32", i32, [i32::MIN, -1, 0, i32::MAX], |a: i32, b: i32, is_max| integers(a.into(), b.into(), is_max));
    check!("u64", u64, [0, 1, 1 << 63, u64::MAX], |a: u64, b: u64, is_max| integers(a.into(), b.into(), is_max));
    check!("i64", i64, [i64::MIN, -1, 0, i64::MAX], |a: i64, b: i64, is_max| integers(a.into(), b.into(), is_max));
}
