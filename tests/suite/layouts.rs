//! Every set of axes over layouts that are permuted, padded, backwards and broadcast.

use super::{Execute, data, run};
use cranefold::{DType, Reduction, Scalar};

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
                let spec: Reduction =
                    format!("sum i32[3,4,5]{tag} axes={axes:?}{keep} -> i64").parse().expect("a spec");
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
            let spec: Reduction = format!("sum i32[{shape}]@{order} axes={axes:?} -> i64").parse().expect("a spec");
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
