//! Regions built by hand.

use super::*;
use crate::exact::{Allowed, Value as Result};
use cranefold_ir::DType::{F32, I32};
use cranefold_ir::ops::find;
use cranefold_ir::region::{BodyInput, Reach};
use cranefold_spec::layout::Layout;

fn expression(text: &str) -> Expression {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn definition(names: &[&str], value: Value) -> Definition {
    Definition { names: names.iter().map(|name| name.to_string()).collect(), value }
}

fn computed(name: &str, text: &str) -> Definition {
    definition(&[name], Value::Expression(expression(text)))
}

fn reduced(names: &[&str], op: &str, of: &str, over: Option<Vec<usize>>) -> Definition {
    let row = find(op).unwrap_or_else(|| panic!("no row {op}"));
    let params: Vec<f64> = row.params.iter().map(|param| param.default.unwrap_or(2.0)).collect();
    let call = OpCall::row(row, &params);
    definition(names, Value::Reduction(Reduction { call, of: expression(of), over }))
}

/// An operand that is broadcast to the region's shape, right-aligned.
struct Given {
    dtype: DType,
    shape: Vec<u64>,
    placement: Placement,
    bytes: Vec<u8>,
}

fn given(dtype: DType, shape: &[u64], values: &[f64]) -> Given {
    let placement = Layout::row_major().resolve(shape, dtype.bytes()).expect("a layout");
    let size = dtype.bytes() as usize;
    let mut bytes = vec![0; values.len() * size];
    for (i, &value) in values.iter().enumerate() {
        let scalar = if dtype.is_float() { Scalar::float(dtype, value) } else { Scalar::int(dtype, value as i128) };
        scalar.write(&mut bytes, i);
    }
    Given { dtype, shape: shape.into(), placement, bytes }
}

impl Given {
    fn operand(&self, shape: &[u64]) -> Operand<'_> {
        let missing = shape.len() - self.shape.len();
        let axis = |axis: usize| axis.checked_sub(missing).filter(|&own| self.shape[own] == shape[axis]);
        Operand {
            dtype: self.dtype,
            count: self.shape.iter().product::<u64>() as usize,
            placement: &self.placement,
            axes: (0..shape.len()).map(axis).collect(),
            bytes: &self.bytes,
        }
    }
}

/// The results of a region over inputs `x0`, `x1` and so on, with the last axis reduced.
fn results(shape: &[u64], inputs: &[Given], definitions: Vec<Definition>, outputs: &[&str]) -> Vec<Vec<Exact>> {
    let input =
        |(i, given): (usize, &Given)| BodyInput { name: format!("x{i}"), dtype: given.dtype, reach: Reach::Element };
    let body = Body {
        inputs: inputs.iter().enumerate().map(input).collect(),
        definitions,
        outputs: outputs.iter().map(|text| expression(text)).collect(),
        accumulator: F32,
    };
    let none = given(F32, &[], &[]);
    let region = Region {
        body: &body,
        shape: shape.into(),
        reduced: (1..=shape.len()).map(|axis| axis == shape.len()).collect(),
        inputs: inputs.iter().map(|input| input.operand(shape)).collect(),
        outputs: outputs.iter().map(|_| none.operand(shape)).collect(),
    };
    evaluate(&region).expect("an arm")
}

fn float(exact: &Exact) -> f64 {
    let Result::Float(value) = exact.value else { panic!("{exact:?}") };
    value.to_f64()
}

/// Half the width of the bounds.
fn error(exact: &Exact) -> f64 {
    let Allowed::Between { low, high, nan: false } = exact.allowed() else { return f64::INFINITY };
    high.plus(low.minus()).to_f64() / 2.0
}

#[test]
fn softmax_has_tight_bounds() {
    let x = [0.5, -1.25, 3.0, 2.0, 1.0, 0.0];
    let definitions = vec![reduced(&["m"], "max", "x0", None), reduced(&["s"], "sum", "exp(x0 - m)", None)];
    let exact = results(&[2, 3], &[given(F32, &[2, 3], &x)], definitions, &["exp(x0 - m) / s", "s"]);
    for row in 0..2 {
        let sum: f64 = x[3 * row..][..3].iter().map(|x| x.exp()).sum();
        for i in 3 * row..3 * row + 3 {
            let (want, got) = (x[i].exp() / sum, &exact[0][i]);
            assert!((float(got) - want).abs() < 1e-6 && error(got) < 3e-6 * want, "{i} {want} {got:?}");
        }
        assert!(error(&exact[1][row]) < 1e-5);
    }
}

#[test]
fn variance_is_never_below_zero_and_norms_are_bounded() {
    let x: Vec<f64> = (0..8).map(|i| 1000.0 + f64::from(i % 3)).collect();
    let definitions =
        vec![reduced(&["c", "e"], "mean", "x0", None), computed("d", "x0 - c"), reduced(&["v"], "mean", "d * d", None)];
    let exact = results(&[8], &[given(F32, &[8], &x)], definitions, &["v", "d / sqrt(v + 1e-5)"]);
    assert!(!exact[0][0].allowed().ends(|x| x).eq(&Allowed::Anything));
    assert!(exact[1].iter().all(|exact| error(exact) < 1.0), "{:?}", exact[1]);
}

#[test]
fn totals_reduce_the_slices() {
    let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0];
    let definitions = || {
        vec![
            reduced(&["s"], "sum", "x0", None),
            reduced(&["t"], "sum", "s", Some(vec![0])),
            computed("u", "t * 2"),
            definition(&["p"], Value::Position(1)),
        ]
    };
    let exact = results(&[2, 3, 2], &[given(I32, &[2, 3, 2], &x.map(|x| x))], definitions(), &["u", "s", "p * 10"]);
    let ints = |exact: &[Exact]| exact.iter().map(|e| format!("{:?}", e.value)).collect::<Vec<_>>();
    let whole = |values: &[i128]| {
        values.iter().map(|&v| format!("{:?}", Result::Int(crate::Integer::from(v)))).collect::<Vec<_>>()
    };
    assert_eq!(ints(&exact[0]), whole(&[36, 52, 68]));
    assert_eq!(ints(&exact[1]), whole(&[3, 7, 11, 15, 19, 23]));
    assert_eq!(ints(&exact[2]), whole(&[0, 10, 20, 0, 10, 20]));
    // No slices: the totals are of nothing, and there are as many.
    let exact = results(&[0, 3, 2], &[given(I32, &[0, 3, 2], &[])], definitions(), &["u", "s"]);
    assert_eq!((ints(&exact[0]), exact[1].len()), (whole(&[0, 0, 0]), 0));
}
