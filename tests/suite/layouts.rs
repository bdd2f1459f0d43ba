//! Every set of axes over layouts that are permuted, padded, backwards, broadcast and blocked.

use super::{Execute, data, run};
use cranefold::{DType, Scalar, Spec};

const SHAPE: [i64; 3] = [3, 4, 5];

/// Layouts of the input, with their strides and index of the first element.
const LAYOUTS: &[(&str, [i64; 3], i64)] = &[
    ("", [20, 5, 1], 0),
    ("@abc", [20, 5, 1], 0),
    ("@cba", [1, 3, 12], 0),
    ("@bca", [1, 15, 3], 0),
    ("@(20,-5,1)", [20, -5, 1], 15),
    ("@(-40,2,-9)", [-40, 2, -9], 116),
    ("@(0,5,1)", [0, 5, 1], 0),
    ("@(0,0,0)", [0, 0, 0], 0),
    ("@(1,1,1)", [1, 1, 1], 0),
    ("@(1,-1,0)", [1, -1, 0], 3),
];

/// Sums of integers, whose order cannot show, against three loops.
pub fn check(execute: Execute) {
    for &(tag, strides, origin) in LAYOUTS {
        for set in 0..8 {
            for keep in ["", " keep_dims"] {
                let axes: Vec<usize> = (0..3).filter(|axis| set >> axis & 1 == 1).collect();
                let spec: Spec = format!("sum i32[3,4,5]{tag} axes={axes:?}{keep} -> i64").parse().expect("a spec");
                let values: Vec<i64> = (0..spec.inputs()[0].span_elems() as i64).map(|i| i * i - 7).collect();
                let mut expected = vec![0; spec.outputs()[0].elems() as usize];
                for index in 0..60 {
                    let at = [index / 20, index / 5 % 4, index % 5];
                    let from = origin + (0..3).map(|axis| at[axis] * strides[axis]).sum::<i64>();
                    let kept = (0..3).filter(|axis| !axes.contains(axis));
                    let to = kept.fold(0, |to, axis| to * SHAPE[axis] + at[axis]);
                    expected[to as usize] += values[from as usize];
                }
                let input = values.iter().map(|&v| Scalar::int(DType::I32, v.into()));
                let got = data::scalars(DType::I64, &run(execute, &spec, &[data::bytes(DType::I32, input)])[0]);
                let got: Vec<i64> = got.into_iter().map(|v| v.bits() as i64).collect();
                assert_eq!(got, expected, "{spec}");
            }
        }
    }
}

/// Extents of which no block below is a divisor but one.
const BLOCKED_SHAPE: [usize; 3] = [5, 7, 6];

/// The place of an element in a buffer.
type At = fn([usize; 3]) -> usize;

/// Blocked layouts of the input, the length of the buffer and the place of each element.
const BLOCKED: &[(&str, usize, At)] = &[
    ("@aBc4b", 240, |[a, b, c]| ((a * 2 + b / 4) * 6 + c) * 4 + b % 4),
    ("@ABc2a4b", 288, |[a, b, c]| (((a / 2) * 2 + b / 4) * 6 + c) * 8 + a % 2 * 4 + b % 4),
    ("@BcA4b2a", 288, |[a, b, c]| (((b / 4) * 6 + c) * 3 + a / 2) * 8 + b % 4 * 2 + a % 2),
    ("@CaB2c2b2c", 320, |[a, b, c]| (((c / 4) * 5 + a) * 4 + b / 2) * 8 + c / 2 % 2 * 4 + b % 2 * 2 + c % 2),
    ("@abC8c+5", 285, |[a, b, c]| 5 + (a * 7 + b) * 8 + c),
    ("@(80,-40,4)4b+3", 387, |[a, b, c]| 43 + 80 * a - 40 * (b / 4) + 4 * c + b % 4),
    ("@(-2,6,42)2a", 252, |[a, b, c]| 4 - 2 * (a / 2) + a % 2 + 6 * b + 42 * c),
];

/// The place of an element of the output in its buffer.
type PlaceOf = dyn Fn(&[usize]) -> usize;

/// A layout of the output: the tag, the length of the buffer and the place of each element.
struct Output {
    tag: String,
    len: usize,
    at: Box<PlaceOf>,
    /// Elements before the first.
    before: usize,
}

/// Layouts of an output of these extents.
fn outputs(extents: &[usize]) -> Vec<Output> {
    let n = extents.to_vec();
    let row_major = move |at: &[usize]| n.iter().zip(at).fold(0, |place, (n, i)| place * n + i);
    let elems: usize = extents.iter().product();
    let mut all = vec![Output { tag: String::new(), len: elems, at: Box::new(row_major), before: 0 }];
    let letters = ["", "a", "ab", "abc"][extents.len()];
    let Some((&first, others)) = extents.split_first() else { return all };
    let rest = others.to_vec();
    let inner: usize = rest.iter().product();
    // The first axis in blocks of 4: its blocks outermost, its elements innermost.
    let at =
        move |at: &[usize]| at[1..].iter().zip(&rest).fold(at[0] / 4, |place, (i, n)| place * n + i) * 4 + at[0] % 4;
    let tag = format!("@A{}4a", &letters[1..]);
    all.push(Output { tag, len: first.div_ceil(4) * inner * 4, at: Box::new(at), before: 0 });
    // The last axis in blocks of 2, the others before in backward order, after two elements of another.
    let (last, n) = (extents.len() - 1, extents.to_vec());
    let at = move |at: &[usize]| {
        2 + (0..last).rev().fold(at[last] / 2, |place, axis| place * n[axis] + at[axis]) * 2 + at[last] % 2
    };
    let backwards: String = letters.chars().rev().skip(1).collect();
    let letter = &letters[last..];
    let tag = format!("@{}{backwards}2{letter}+2", letter.to_uppercase());
    let len = 2 + extents[last].div_ceil(2) * 2 * extents[..last].iter().product::<usize>();
    all.push(Output { tag, len, at: Box::new(at), before: 2 });
    if extents.len() > 1 {
        // The first two in blocks of 2 and 4, the blocks of the second in those of the first.
        let n = extents.to_vec();
        let at = move |at: &[usize]| {
            let (a, b) = (at[0], at[1]);
            let blocks = (a / 2) * n[1].div_ceil(4) + b / 4;
            at[2..].iter().zip(&n[2..]).fold(blocks, |place, (i, n)| place * n + i) * 8 + a % 2 * 4 + b % 4
        };
        let len = first.div_ceil(2) * extents[1].div_ceil(4) * 8 * extents[2..].iter().product::<usize>();
        all.push(Output { tag: format!("@AB{}2a4b", &letters[2..]), len, at: Box::new(at), before: 0 });
    }
    all
}

/// Sums in and out of blocks, against three loops. Input padding holds NaN, or what is no element; output padding
/// becomes zero, what lies before the first element stays.
pub fn check_blocked(execute: Execute) {
    for &(tag, len, place) in BLOCKED {
        for set in 0..8 {
            for keep in [false, true] {
                let axes: Vec<usize> = (0..3).filter(|axis| set >> axis & 1 == 1).collect();
                let kept: Vec<usize> = (0..3).filter(|axis| keep && set > 0 || !axes.contains(axis)).collect();
                let extent = |axis: &usize| if axes.contains(axis) { 1 } else { BLOCKED_SHAPE[*axis] };
                let extents: Vec<usize> = kept.iter().map(extent).collect();
                for output in outputs(&extents) {
                    let words = format!("{tag} axes={axes:?}{}", if keep { " keep_dims" } else { "" });
                    for (dtype, padding) in [(DType::F32, f64::NAN), (DType::I32, 1e6)] {
                        let spec = format!("sum {dtype}[5,7,6]{words} -> {dtype}{}", output.tag);
                        let spec: Spec = spec.parse().unwrap_or_else(|error| panic!("{spec}: {error}"));
                        let lens = [spec.inputs()[0].span_elems(), spec.outputs()[0].span_elems()];
                        assert_eq!(lens, [len as u64, output.len as u64], "{spec}");
                        let scalar = |value: f64| match dtype {
                            DType::F32 => Scalar::f32(value as f32),
                            _ => Scalar::int(dtype, value as i128),
                        };
                        let mut input = vec![scalar(padding); len];
                        let mut expected = vec![0.0; output.len];
                        expected[..output.before].fill(9.0);
                        for index in 0..5 * 7 * 6 {
                            let at = [index / 42, index / 6 % 7, index % 6];
                            let value = (index * index % 61) as f64 - 30.0;
                            input[place(at)] = scalar(value);
                            let to: Vec<usize> =
                                kept.iter().map(|axis| if axes.contains(axis) { 0 } else { at[*axis] }).collect();
                            expected[(output.at)(&to)] += value;
                        }
                        let old = data::bytes(dtype, vec![scalar(9.0); output.len]);
                        let got = execute(&spec, &[data::bytes(dtype, input)], vec![old]);
                        let got: Vec<f64> = data::scalars(dtype, &got[0]).into_iter().map(Scalar::as_f64).collect();
                        assert_eq!(got, expected, "{spec}");
                    }
                }
            }
        }
    }
}

/// Sums of 16 to 20 axes of two elements, packed in three orders: bit `a` of an element's logical index
/// is its position along axis `rank - 1 - a`.
pub fn check_high_ranks(execute: Execute) {
    for rank in [16usize, 17, 20] {
        let shape = vec!["2"; rank].join(",");
        let letters: String = ('a'..).take(rank).collect();
        let backwards: String = letters.chars().rev().collect();
        let odd_first: String = letters.chars().skip(1).step_by(2).chain(letters.chars().step_by(2)).collect();
        for order in [letters.as_str(), &backwards, &odd_first] {
            let axes: Vec<usize> = (0..rank).filter(|axis| axis % 3 != 1 || *axis == rank - 1).collect();
            let spec: Spec = format!("sum i32[{shape}]@{order} axes={axes:?} -> i64").parse().expect("a spec");
            let strides = spec.inputs()[0].strides().to_vec();
            let values: Vec<i64> = (0..1i64 << rank).map(|i| i * i % 1009 - 500).collect();
            let mut expected = vec![0i64; spec.outputs()[0].elems() as usize];
            for index in 0..1usize << rank {
                let at = |axis: usize| index >> (rank - 1 - axis) & 1;
                let from: i64 = (0..rank).map(|axis| at(axis) as i64 * strides[axis]).sum();
                let kept = (0..rank).filter(|axis| !axes.contains(axis));
                expected[kept.fold(0, |to, axis| 2 * to + at(axis))] += values[from as usize];
            }
            let input = values.iter().map(|&v| Scalar::int(DType::I32, v.into()));
            let got = data::scalars(DType::I64, &run(execute, &spec, &[data::bytes(DType::I32, input)])[0]);
            assert_eq!(got.into_iter().map(|v| v.bits() as i64).collect::<Vec<_>>(), expected, "{spec}");
        }
    }
}
