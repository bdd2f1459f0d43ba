//! The evaluation of primitives in real arithmetic: floats in `f64`, integers and conversions as they are written.
//!
//! It walks indices straight from the definitions and is slow. It folds constants, and the oracle of plans stands on it.

use crate::data::Data;
use crate::infer::seen;
use crate::op::Op;
use crate::shape::{row_major, shown};
use cranefold_ir::DType::{self, Bool, F64, I64, U64};
use cranefold_ir::expression::{Expression, Folded, Operation, name};
use cranefold_ir::ops::Integers;
use cranefold_ir::{Def, Scalar};

/// A tensor of an evaluation: floats in `f64`, integers exact.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// The element type of the graph's value; a float stands as `f64`, unrounded.
    pub dtype: DType,
    /// The extents.
    pub shape: Vec<u64>,
    /// The elements, row-major.
    pub elements: Vec<Scalar>,
}

type Result<T> = std::result::Result<T, String>;

/// The most elements of a value that is evaluated.
const MAX_EVALUATED: u64 = 1 << 26;

impl Tensor {
    /// The elements of a constant.
    pub fn of(data: &Data) -> Tensor {
        let elements = (0..data.len()).map(|i| wide(data.at(i))).collect();
        Tensor { dtype: data.dtype(), shape: data.shape().to_vec(), elements }
    }

    /// The elements, rounded to their type.
    pub fn data(&self) -> Data {
        let values: Vec<Scalar> = self.elements.iter().map(|&value| narrow(value, self.dtype)).collect();
        Data::of(self.dtype, &self.shape, &values).unwrap_or_else(|_| unreachable!("a tensor has its elements"))
    }
}

pub(crate) fn wide(value: Scalar) -> Scalar {
    if value.dtype().is_float() { Scalar::f64(value.as_f64()) } else { value }
}

fn narrow(value: Scalar, dtype: DType) -> Scalar {
    if dtype.is_float() { Scalar::float(dtype, value.as_f64()) } else { value }
}

/// Refuses results of more elements than are evaluated.
pub(crate) fn too_large(types: &[(DType, &[u64])]) -> Result<()> {
    match types.iter().find(|(_, shape)| shape.iter().product::<u64>() > MAX_EVALUATED) {
        Some(large) => Err(format!("{} has more than {MAX_EVALUATED} elements", shown(large.1))),
        None => Ok(()),
    }
}

/// The results of a primitive.
pub(crate) fn node_values(op: &Op, given: &[&Tensor], types: &[(DType, &[u64])]) -> Result<Vec<Tensor>> {
    let (dtype, shape) = types[0];
    too_large(types)?;
    let from = |f: &mut dyn FnMut(&[u64]) -> Scalar| {
        let mut elements = vec![];
        each(shape, &mut |index| elements.push(f(index)));
        vec![Tensor { dtype, shape: shape.to_vec(), elements }]
    };
    let x = given.first().copied();
    let x = || x.ok_or("an operand is missing");
    Ok(match op {
        Op::Constant(data) => vec![Tensor::of(data)],
        Op::Map(formula) => vec![mapped(formula, given, dtype, shape)?],
        Op::Cast { to, saturate } => {
            let x = x()?;
            let convert = |&value: &Scalar| converted(value, *to, *saturate);
            vec![Tensor { dtype: *to, shape: x.shape.clone(), elements: x.elements.iter().map(convert).collect() }]
        }
        Op::Reshape(_) => vec![Tensor { shape: shape.to_vec(), ..x()?.clone() }],
        Op::Transpose(perm) => {
            let (x, strides) = (x()?, row_major(&x()?.shape));
            from(&mut |index| {
                x.elements[index.iter().zip(perm).map(|(i, &axis)| i * strides[axis]).sum::<u64>() as usize]
            })
        }
        Op::Broadcast(_) => {
            let x = x()?;
            from(&mut |index| x.elements[stretched(index, &x.shape)])
        }
        Op::Slice(ranges) => {
            let (x, strides) = (x()?, row_major(&x()?.shape));
            let at = |(&i, (range, stride)): (&u64, (&crate::Range, &u64))| {
                (range.start as i64 + i as i64 * range.step) as u64 * stride
            };
            from(&mut |index| x.elements[index.iter().zip(ranges.iter().zip(&strides)).map(at).sum::<u64>() as usize])
        }
        Op::Concat(axis) => from(&mut |index| {
            let mut index = index.to_vec();
            for tensor in given {
                if index[*axis] < tensor.shape[*axis] {
                    let strides = row_major(&tensor.shape);
                    return tensor.elements[index.iter().zip(&strides).map(|(i, s)| i * s).sum::<u64>() as usize];
                }
                index[*axis] -= tensor.shape[*axis];
            }
            Scalar::zero(dtype)
        }),
        Op::Position { axis, .. } => from(&mut |index| Scalar::int(I64, index[*axis].into())),
        Op::Pick(axis) => {
            let [x, places] = given else { return Err("two operands are needed".into()) };
            let (strides, own) = (row_major(&x.shape), row_major(&places.shape));
            from(&mut |index| {
                let place = index.iter().zip(&own).map(|(i, s)| i * s).sum::<u64>() as usize;
                let extent = i128::from(x.shape[*axis]);
                let place = places.elements[place].as_int().unwrap_or(-1);
                let place = if place < 0 { place + extent } else { place };
                if !(0..extent).contains(&place) {
                    return wide(Scalar::zero(dtype));
                }
                let mut index = index.to_vec();
                index[*axis] = place as u64;
                x.elements[index.iter().zip(&strides).map(|(i, s)| i * s).sum::<u64>() as usize]
            })
        }
        Op::Reduce { call, axes, .. } => reduced(call, axes, x()?, types)?,
        Op::Opaque { op, .. } => return Err(format!("`{op}` is an operation of the host")),
        Op::Input | Op::Normalize { .. } | Op::Composite { .. } => return Err("this is no primitive".into()),
    })
}

/// Calls `f` on each index of a shape, in row-major order.
pub(crate) fn each(shape: &[u64], f: &mut dyn FnMut(&[u64])) {
    if shape.contains(&0) {
        return;
    }
    let mut index = vec![0; shape.len()];
    loop {
        f(&index);
        let mut axis = shape.len();
        loop {
            if axis == 0 {
                return;
            }
            axis -= 1;
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
}

/// The place of an index of a larger shape in one that broadcasts to it.
pub(crate) fn stretched(index: &[u64], shape: &[u64]) -> usize {
    let own = &index[index.len() - shape.len()..];
    let strides = row_major(shape);
    let at =
        own.iter().zip(shape).zip(&strides).map(|((&i, &extent), stride)| if extent == 1 { 0 } else { i * stride });
    at.sum::<u64>() as usize
}

/// A float to an integer towards zero, clamped; integers modulo 2^bits or clamped; to a float rounded once.
fn converted(value: Scalar, to: DType, saturate: bool) -> Scalar {
    match (value.as_int(), to) {
        (_, Bool) => Scalar::bool(value.as_int().map_or(value.as_f64() != 0.0, |int| int != 0)),
        (_, to) if to.is_float() => match value.as_int() {
            Some(int) => wide(Scalar::int(to, int)),
            None => wide(Scalar::float(to, value.as_f64())),
        },
        (Some(int), to) => match to.int_range().filter(|_| saturate) {
            Some((least, greatest)) => Scalar::int(to, int.clamp(least, greatest)),
            None => Scalar::int(to, int),
        },
        (None, to) => crate::data::scalar(to, value.as_f64()),
    }
}

fn mapped(formula: &Expression, given: &[&Tensor], dtype: DType, shape: &[u64]) -> Result<Tensor> {
    let types: Vec<DType> = given.iter().map(|x| seen(x.dtype, F64)).collect();
    let def = formula_def(&in_f64(formula), &types, F64)?;
    let mut elements = vec![];
    each(shape, &mut |index| {
        let arg = |(x, &dtype): (&&Tensor, &DType)| {
            let value = x.elements[stretched(index, &x.shape)];
            value.as_int().map_or(value, |int| Scalar::int(dtype, int))
        };
        let args: Vec<Scalar> = given.iter().zip(&types).map(arg).collect();
        let value = def.eval(&args)[0];
        elements.push(match dtype.is_float() && value.dtype().is_float() {
            true => value,
            false => converted(value, dtype, false),
        });
    });
    Ok(Tensor { dtype, shape: shape.to_vec(), elements })
}

/// The formula with each conversion to a narrower float followed by one to `f64`, so that all floats are `f64`.
fn in_f64(formula: &Expression) -> Expression {
    formula.fold(&mut |folded: Folded<Expression>| match folded {
        Folded::Int(value) => Expression::number(value),
        Folded::Real(value) => Expression::from(value),
        Folded::Name(text) => name(text),
        Folded::Apply(Operation::Cast(dtype), args) if dtype.is_float() => {
            Expression::of(Operation::Cast(DType::F64), [Expression::of(Operation::Cast(dtype), args)])
        }
        Folded::Apply(operation, args) => Expression::of(operation, args),
    })
}

/// A formula over `x0`, `x1`, … of these types.
pub(crate) fn formula_def(formula: &Expression, types: &[DType], literal: DType) -> Result<Def> {
    let mut error = None;
    let def = Def::build("map", types, |lets, args| {
        let names: Vec<(String, _)> = args.iter().enumerate().map(|(i, arg)| (format!("x{i}"), arg.clone())).collect();
        match formula.build(lets, &names, literal) {
            Ok(value) => vec![value],
            Err(fault) => {
                error = Some(fault.to_string());
                vec![]
            }
        }
    });
    error.map_or(Ok(def), Err)
}

fn reduced(
    call: &cranefold_ir::ops::OpCall,
    axes: &[usize],
    x: &Tensor,
    types: &[(DType, &[u64])],
) -> Result<Vec<Tensor>> {
    let row = call.as_row().ok_or("a combiner is no reduction of graphs")?;
    let strides = row_major(&x.shape);
    let kept: Vec<usize> = (0..x.shape.len()).filter(|axis| !axes.contains(axis)).collect();
    let extents = |axes: &[usize]| axes.iter().map(|&axis| x.shape[axis]).collect::<Vec<u64>>();
    let place = |axes: &[usize], index: &[u64]| axes.iter().zip(index).map(|(&a, i)| i * strides[a]).sum::<u64>();
    let mut results: Vec<Tensor> =
        types.iter().map(|(dtype, shape)| Tensor { dtype: *dtype, shape: shape.to_vec(), elements: vec![] }).collect();
    let mut fault = None;
    each(&extents(&kept), &mut |outer| {
        let start = place(&kept, outer);
        let mut slice = vec![];
        each(&extents(axes), &mut |inner| slice.push(x.elements[(start + place(axes, inner)) as usize]));
        match slice_values(row.name, row.integers, &call.params(), &slice, x.dtype) {
            Ok(values) => {
                for (tensor, value) in results.iter_mut().zip(values) {
                    let exact = tensor.dtype.is_float() && value.dtype().is_float();
                    let value = if exact { value } else { converted(value, tensor.dtype, false) };
                    tensor.elements.push(value);
                }
            }
            Err(reason) => fault = Some(reason),
        }
    });
    fault.map_or(Ok(results), Err)
}

/// The results of a row over a slice, by its name.
fn slice_values(row: &str, kind: Integers, params: &[f64], slice: &[Scalar], input: DType) -> Result<Vec<Scalar>> {
    if ["argmax", "argmin", "count_nonzero"].contains(&row) {
        return position(row, params, slice).map(|place| vec![Scalar::int(I64, place as i128)]);
    }
    if input == Bool {
        let mut bits = slice.iter().map(|value| value.bits() != 0);
        let truth = match row {
            "any" | "max" | "bit_or" => bits.any(|bit| bit),
            "all" | "min" | "bit_and" => bits.all(|bit| bit),
            "bit_xor" => bits.filter(|&bit| bit).count() % 2 == 1,
            _ => return Err(format!("`{row}` takes no bool")),
        };
        return Ok(vec![Scalar::bool(truth)]);
    }
    if input.is_int() && kind != Integers::Refused {
        return integers(row, slice, input).map(|value| vec![value]);
    }
    let values: Vec<f64> = slice.iter().map(|value| value.as_f64()).collect();
    floats(row, params, &values).map(|values| values.into_iter().map(Scalar::f64).collect())
}

pub(crate) fn position(row: &str, params: &[f64], slice: &[Scalar]) -> Result<usize> {
    if row == "count_nonzero" {
        return Ok(slice.iter().filter(|v| v.as_int().map_or(v.as_f64() != 0.0, |int| int != 0)).count());
    }
    let last = params.first() == Some(&1.0);
    let better = |a: Scalar, b: Scalar| {
        let order = match (a.as_int(), b.as_int()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => match (a.is_nan(), b.is_nan()) {
                (true, true) => std::cmp::Ordering::Equal,
                (true, false) => return true,
                (false, true) => return false,
                _ => a.as_f64().partial_cmp(&b.as_f64()).unwrap_or(std::cmp::Ordering::Equal),
            },
        };
        let order = if row == "argmin" { order.reverse() } else { order };
        order.is_gt() || last && order.is_eq()
    };
    let best = (1..slice.len()).fold(0, |best, i| if better(slice[i], slice[best]) { i } else { best });
    if slice.is_empty() { Err(format!("`{row}` of nothing")) } else { Ok(best) }
}

fn integers(row: &str, slice: &[Scalar], input: DType) -> Result<Scalar> {
    let wide = if input.is_signed() { I64 } else { U64 };
    let values = slice.iter().map(|value| value.as_int().unwrap_or_default());
    let modular = |f: fn(i128, i128) -> i128, start: i128| {
        values
            .clone()
            .fold(Scalar::int(wide, start), |all, v| Scalar::int(wide, f(all.as_int().unwrap_or_default(), v)))
    };
    let (least, greatest) = input.int_range().unwrap_or_default();
    Ok(match row {
        "sum" => modular(|a, v| a + v, 0),
        "prod" => modular(|a, v| a.wrapping_mul(v), 1),
        "l1" => modular(|a, v| a + v.abs(), 0),
        "sum_squares" => modular(|a, v| a.wrapping_add(v.wrapping_mul(v)), 0),
        "min" => Scalar::int(input, values.min().unwrap_or(greatest)),
        "max" => Scalar::int(input, values.max().unwrap_or(least)),
        "bit_and" => Scalar::int(input, values.fold(-1, |a, v| a & v)),
        "bit_or" => Scalar::int(input, values.fold(0, |a, v| a | v)),
        "bit_xor" => Scalar::int(input, values.fold(0, |a, v| a ^ v)),
        _ => return Err(format!("`{row}` takes no integers")),
    })
}

pub(crate) fn floats(row: &str, params: &[f64], x: &[f64]) -> Result<Vec<f64>> {
    let n = x.len() as f64;
    let sum = |f: &dyn Fn(f64) -> f64| {
        // Two floats hold the sum, so that its error is far below that of f32.
        let (total, rest) = x.iter().map(|&v| f(v)).fold((-0.0, 0.0), |(total, rest): (f64, f64), v| {
            let next = total + v;
            let lost = if total.abs() >= v.abs() { (total - next) + v } else { (v - next) + total };
            (next, rest + lost)
        });
        let total = if x.is_empty() { 0.0 } else { total };
        if total.is_finite() && rest != 0.0 { total + rest } else { total }
    };
    let nan = x.iter().any(|v| v.is_nan());
    let extreme =
        |start: f64, f: &dyn Fn(f64, f64) -> f64| if nan { f64::NAN } else { x.iter().fold(start, |a, &v| f(a, v)) };
    let (max, min) = (extreme(f64::NEG_INFINITY, &f64::max), extreme(f64::INFINITY, &f64::min));
    let mean = sum(&|v| v) / n;
    let var = |ddof: f64| if n == 0.0 { f64::NAN } else { sum(&|v| (v - mean) * (v - mean)) / (n - ddof) };
    let power = |p: f64| sum(&|v: f64| v.abs().powf(p));
    let param = |i: usize| params.get(i).copied().unwrap_or_default();
    let sorted = || {
        let mut sorted = x.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted
    };
    let quantile = |q: f64| {
        let (sorted, at) = (sorted(), q * (n - 1.0));
        if nan || x.is_empty() {
            return f64::NAN;
        }
        let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
        if low == high { low } else { low + (high - low) * at.fract() }
    };
    let exps = |m: f64| if m == f64::NEG_INFINITY { 0.0 } else { sum(&|v: f64| (v - m).exp()) };
    Ok(vec![match row {
        "sum" => sum(&|v| v),
        "prod" => x.iter().product(),
        "min" => min,
        "max" => max,
        "mean" => mean,
        "l1" => sum(&f64::abs),
        "l2" => sum(&|v| v * v).sqrt(),
        "sum_squares" => sum(&|v| v * v),
        "log_sum" => sum(&|v| v).ln(),
        "log_sum_exp" => match max {
            _ if x.is_empty() => f64::NEG_INFINITY,
            m if m.is_infinite() || m.is_nan() => m,
            m => m + exps(m).ln(),
        },
        "sum_exp" => return Ok(vec![max, if max == f64::INFINITY { f64::NAN } else { exps(max) }]),
        "lp" => power(param(0)).powf(1.0 / param(0)),
        "lp_max" => power(param(0)).max(param(1)).powf(1.0 / param(0)),
        "lp_sum" => (power(param(0)) + param(1)).powf(1.0 / param(0)),
        "lp_power_p_max" => power(param(0)).max(param(1)),
        "lp_power_p_sum" => power(param(0)) + param(1),
        "linf" => extreme(0.0, &|a, v| a.max(v.abs())),
        "ptp" => max - min,
        "var" => var(param(0)),
        "std" => var(param(0)).sqrt(),
        "mean_pair" => return Ok(vec![mean, 0.0]),
        "median" => quantile(0.5),
        "median_low" if nan || x.is_empty() => f64::NAN,
        "median_low" => sorted()[(x.len() - 1) / 2],
        "quantile" => quantile(param(0)),
        _ => return Err(format!("the evaluation has no `{row}`")),
    }])
}
