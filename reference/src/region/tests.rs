//! Regions built by hand.

use super::*;
use crate::exact::{Allowed, Value as Result};
use cranefold_ir::DType::{Bf16, F16, F32, I8, I32};
use cranefold_ir::ops::find;
use cranefold_ir::region::{BodyInput, Reach};
use cranefold_ir::{Def, Expr};
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
    fn operand(&self, shape: &[u64]) -> Placed<'_> {
        let missing = shape.len() - self.shape.len();
        let axis = |axis: usize| axis.checked_sub(missing).filter(|&own| self.shape[own] == shape[axis]);
        Placed {
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
    let none = given(F32, &[], &[]);
    let old: Vec<&Given> = outputs.iter().map(|_| &none).collect();
    results_over(shape, inputs, definitions, outputs, &old)
}

/// The results over old elements of the outputs.
fn results_over(
    shape: &[u64],
    inputs: &[Given],
    definitions: Vec<Definition>,
    outputs: &[&str],
    old: &[&Given],
) -> Vec<Vec<Exact>> {
    let input =
        |(i, given): (usize, &Given)| BodyInput { name: format!("x{i}"), dtype: given.dtype, reach: Reach::Element };
    let body = Body {
        inputs: inputs.iter().enumerate().map(input).collect(),
        reduced: (1..=shape.len()).map(|axis| axis == shape.len()).collect(),
        definitions,
        outputs: outputs.iter().map(|text| expression(text)).collect(),
        accumulator: F32,
    };
    let region = Region {
        body: &body,
        shape: shape.into(),
        reduced: (1..=shape.len()).map(|axis| axis == shape.len()).collect(),
        inputs: inputs.iter().map(|input| input.operand(shape)).collect(),
        outputs: old.iter().map(|old| old.operand(shape)).collect(),
    };
    evaluate(&region).expect("an arm")
}

fn float_of(exact: &Exact) -> f64 {
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
            assert!((float_of(got) - want).abs() < 1e-6 && error(got) < 3e-6 * want, "{i} {want} {got:?}");
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

/// The results as text: numbers, `true` and `false`; bounds follow a value that is not the only one.
fn shown(exact: &[Exact]) -> Vec<String> {
    let one = |exact: &Exact| {
        let value = match exact.value {
            Result::Float(value) => value.to_f64().to_string(),
            Result::Int(value) => Real::from(value).to_f64().to_string(),
            Result::Bool(value) => value.to_string(),
        };
        let certain = matches!(exact.allowed(), Allowed::Between { low, high, nan: false } if low == high);
        if certain { value } else { format!("{value} +- {}", error(exact)) }
    };
    exact.iter().map(one).collect()
}

#[test]
fn slices_without_a_number_above_minus_infinity() {
    let inf = f64::INFINITY;
    let x = [-inf, -inf, 0.0, f64::NAN, 0.0, inf, -inf, 2.0];
    let definitions = vec![reduced(&["m"], "max", "x0", None), reduced(&["s"], "sum", "exp(x0 - m)", None)];
    let exact = results(&[4, 2], &[given(F32, &[4, 2], &x)], definitions, &["m", "s", "exp(x0 - m) / s"]);
    assert_eq!(shown(&exact[0]), ["-inf", "NaN", "inf", "2"]);
    assert_eq!(shown(&exact[1]), ["NaN", "NaN", "NaN", "1"]);
    assert_eq!(shown(&exact[2]), ["NaN", "NaN", "NaN", "NaN", "NaN", "NaN", "0", "1"]);
}

#[test]
fn slices_of_nothing() {
    let definitions = vec![
        reduced(&["s"], "sum", "x0", None),
        reduced(&["m"], "max", "x0", None),
        reduced(&["p"], "prod", "x0 * x0", None),
        reduced(&["n"], "count_nonzero", "x0 > 1", None),
    ];
    let exact = results(&[2, 0], &[given(F32, &[2, 0], &[])], definitions, &["x0 - m", "s", "m", "p + s", "n"]);
    let text: Vec<Vec<String>> = exact.iter().map(|exact| shown(exact)).collect();
    assert_eq!(text, [&[][..], &["0", "0"], &["-inf", "-inf"], &["1", "1"], &["0", "0"]].map(|t| t.to_vec()));
}

#[test]
fn the_arm_not_taken_never_shows() {
    let definitions = vec![
        definition(&["i"], Value::Position(1)),
        definition(&["r"], Value::Position(0)),
        computed("e", "select(i <= r, x0, -inf)"),
        computed("safe", "select(x0 > 0, log(x0), 0)"),
        reduced(&["s"], "sum", "select(i <= r, safe, 0)", None),
        reduced(&["any"], "any", "i > r and x0 < 0", None),
    ];
    let x = [1.0, -3.0, 1.0, f64::NAN, 1.0, 1.0];
    let exact = results(&[3, 2], &[given(F32, &[3, 2], &x)], definitions, &["e", "s", "any", "i * 10 + r"]);
    assert_eq!(shown(&exact[0]), ["1", "-inf", "1", "NaN", "1", "1"]);
    assert_eq!(shown(&exact[1]), ["0", "0", "0"]);
    assert_eq!(shown(&exact[2]), ["true", "false", "false"]);
    assert_eq!(shown(&exact[3]), ["0", "10", "1", "11", "2", "12"]);
}

#[test]
fn integers_wrap_at_64_bits_and_keep_their_types() {
    let x = [-128.0, 127.0, 100.0, 27.0];
    let definitions = vec![
        reduced(&["s"], "sum", "x0 * 16777216", None),
        reduced(&["p"], "prod", "i64(x0) * 4294967296", None),
        reduced(&["m"], "min", "x0", None),
        reduced(&["a"], "argmax", "x0", None),
    ];
    let x = [given(I8, &[2, 2], &x)];
    let exact = results(&[2, 2], &x, definitions, &["s", "p", "m - 1", "a", "i8(x0 + 1)", "u8(f32(x0) * 3)"]);
    // -128 * 2^24 is the least i32; the others are within it.
    assert_eq!(shown(&exact[0]), ["-16777216", "2130706432"]);
    assert_eq!(shown(&exact[1]), ["0", "0"]);
    assert_eq!(shown(&exact[2]), ["-129", "26"]);
    assert_eq!(shown(&exact[3]), ["1", "0"]);
    assert_eq!(shown(&exact[4]), ["-127", "-128", "101", "28"]);
    assert_eq!(shown(&exact[5]), ["0", "255", "255", "81"]);
}

#[test]
fn old_elements_scalars_and_narrow_outputs() {
    let inputs =
        [given(F16, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), given(F32, &[], &[0.5]), given(Bf16, &[3], &[2.0; 3])];
    let definitions = vec![
        definition(&["o"], Value::Old(0)),
        definition(&["q"], Value::Old(1)),
        reduced(&["s"], "sum", "x0", None),
        reduced(&["t"], "mean", "s", Some(vec![0])),
        definition(&["u"], Value::Old(2)),
    ];
    let old = [given(Bf16, &[2, 3], &[8.0; 6]), given(F32, &[2, 1], &[10.0, 20.0]), given(F32, &[], &[1.0])];
    let outputs = ["bf16(x0 * x1 + o + x2 / 3)", "s + q", "u + t * x1", "x1 * 4"];
    let none = given(F32, &[2, 1], &[]);
    let exact = results_over(&[2, 3], &inputs, definitions, &outputs, &[&old[0], &old[1], &old[2], &none]);
    // 0.5 + 8 + 0.6667 to eight bits, and so on.
    assert_eq!(shown(&exact[0]), ["9.1875", "9.6875", "10.1875", "10.6875", "11.1875", "11.6875"]);
    assert_eq!(shown(&exact[1]), ["16", "35"]);
    assert_eq!(shown(&exact[2]), ["6.25"]);
    assert_eq!(shown(&exact[3]), ["2", "2"]);
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) % limit as u64) as usize
    }

    fn of<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn values(&mut self, count: usize) -> Vec<f64> {
        (0..count).map(|_| self.below(4001) as f64 / 1000.0 - 2.0).collect()
    }
}

/// The reductions of random regions, all of one or two floats.
const OPS: [&str; 16] = [
    "sum",
    "mean",
    "max",
    "min",
    "var",
    "std",
    "l1",
    "l2",
    "sum_squares",
    "log_sum_exp",
    "ptp",
    "prod",
    "linf",
    "median",
    "sum_exp",
    "mean_pair",
];

/// The expressions of random regions over names A, B and C.
const EXPRESSIONS: [&str; 19] = [
    "A + B * C",
    "A - B",
    "exp(A - max(A, B))",
    "select(A > B, A, C)",
    "A / sqrt(B * B + 1e-5)",
    "log(abs(A) + 1)",
    "sqrt(abs(A))",
    "A / B",
    "min(A, C) * 0.5",
    "pow(A, 2) - pow(B, 3)",
    "1 / (1 + exp(-A))",
    "f32(A > B)",
    "f32(i32(A * 8) / 3 - i32(B))",
    "fma(A, A, B)",
    "tanh(A) * erf(B)",
    "gelu(A) - silu(B)",
    "softplus(A)",
    "round(A * 4) + floor(B)",
    "select(is_inf(exp(A)), sign(B), log1p(abs(C)))",
];

/// Random definitions over rows of `x0` and the row `x1`, and their names.
fn random_definitions(random: &mut Random) -> (Vec<Definition>, Vec<String>) {
    let mut names: Vec<String> = vec!["x0".into(), "x1".into()];
    let mut definitions = vec![];
    for i in 0..3 + random.below(14) {
        // The later of two, so that chains are long.
        let later = |random: &mut Random| random.below(names.len()).max(random.below(names.len()));
        let [a, b, c] = [0; 3].map(|_| names[later(random)].clone());
        let (name, rest) = (format!("v{i}"), format!("w{i}"));
        let op = random.of(&OPS);
        let of = if random.below(2) == 0 { a.clone() } else { format!("{a} * {b}") };
        match random.below(10) {
            0..4 if op == "sum_exp" || op == "mean_pair" => {
                definitions.push(reduced(&[&name, &rest], op, &of, None));
                let both = format!("both{i}");
                let text = if op == "sum_exp" { "exp(A - M) / S" } else { "A - M - S" };
                definitions.push(computed(&both, &text.replace('A', &of).replace('M', &name).replace('S', &rest)));
                names.extend([rest, both]);
            }
            0..4 => definitions.push(reduced(&[&name], op, &of, None)),
            _ => {
                let text = random.of(&EXPRESSIONS);
                let text = text.replace('A', &a).replace('B', &b).replace('C', &c);
                definitions.push(computed(&name, &text));
            }
        }
        names.push(name);
    }
    (definitions, names.split_off(2))
}

/// The definitions as text.
fn written(definitions: &[Definition]) -> String {
    let one = |definition: &Definition| {
        let value = match &definition.value {
            Value::Expression(expression) => expression.to_string(),
            Value::Reduction(reduction) => {
                format!("{}({})", reduction.call.as_row().expect("a row").name, reduction.of)
            }
            other => format!("{other:?}"),
        };
        format!("{} = {value}; ", definition.names.join(", "))
    };
    definitions.iter().map(one).collect()
}

/// The values of names in a slice in f32: as many as elements, or one.
type Plain = HashMap<String, Vec<f32>>;

/// An expression in f32 at a position of the slice, by the interpreter of nests.
fn plain_value(expression: &Expression, names: &Plain, position: usize) -> f32 {
    let used: Vec<String> = expression.names().into_iter().map(|(name, _)| name).collect();
    let values: Vec<Scalar> =
        used.iter().map(|name| &names[name]).map(|v| Scalar::f32(v[position % v.len()])).collect();
    let def = Def::build("expression", &vec![F32; used.len()], |lets, args| {
        let names: Vec<(&str, Expr)> = used.iter().map(String::as_str).zip(args.iter().cloned()).collect();
        vec![expression.build(lets, &names, F32).unwrap_or_else(|error| panic!("{error}"))]
    });
    def.eval(&values)[0].as_f64() as f32
}

/// The results of a reduction in f32, element by element.
fn plain_reduction(op: &str, x: &[f32]) -> Vec<f32> {
    let n = x.len() as f32;
    let sum = |term: &dyn Fn(f32) -> f32| x.iter().fold(0.0, |sum, &x| sum + term(x));
    let greatest = |x: &mut dyn Iterator<Item = f32>| {
        x.fold(f32::NEG_INFINITY, |a, b| if a.is_nan() || b.is_nan() { f32::NAN } else { a.max(b) })
    };
    let max = greatest(&mut x.iter().copied());
    let min = -greatest(&mut x.iter().map(|x| -x));
    let mean = sum(&|x| x) / n;
    let rest = sum(&|x| x - mean) / n;
    // Rounding the mean adds the square of its error, which the rest takes back.
    let var = sum(&|x| (x - mean) * (x - mean)) / n - rest * rest;
    let var = if var < 0.0 { 0.0 } else { var };
    let mut sorted = x.to_vec();
    sorted.sort_by(f32::total_cmp);
    let (low, high) = (sorted[(x.len() - 1) / 2], sorted[x.len() / 2]);
    vec![match op {
        "sum" => sum(&|x| x),
        "mean" => mean,
        "max" => max,
        "min" => min,
        "var" => var,
        "std" => var.sqrt(),
        "l1" => sum(&f32::abs),
        "l2" => sum(&|x| x * x).sqrt(),
        "sum_squares" => sum(&|x| x * x),
        "log_sum_exp" if !max.is_finite() => max,
        "log_sum_exp" => max + sum(&|x| (x - max).exp()).ln(),
        "ptp" => max - min,
        "prod" => x.iter().product(),
        "linf" => greatest(&mut x.iter().map(|x| x.abs())),
        "median" if x.iter().any(|x| x.is_nan()) => f32::NAN,
        "median" => low / 2.0 + high / 2.0,
        "sum_exp" if max == f32::NEG_INFINITY => return vec![max, 0.0],
        "sum_exp" => return vec![max, sum(&|x| (x - max).exp())],
        "mean_pair" => return vec![mean, rest],
        _ => unreachable!("{op}"),
    }]
}

/// The values of all names in the slice in f32.
fn plain(definitions: &[Definition], mut names: Plain, count: usize) -> Plain {
    for definition in definitions {
        match &definition.value {
            Value::Expression(expression) => {
                let values = (0..count).map(|position| plain_value(expression, &names, position)).collect();
                names.insert(definition.names[0].clone(), values);
            }
            Value::Reduction(reduction) => {
                let values: Vec<f32> =
                    (0..count).map(|position| plain_value(&reduction.of, &names, position)).collect();
                let results = plain_reduction(reduction.call.as_row().expect("a row").name, &values);
                names.extend(definition.names.iter().cloned().zip(results.into_iter().map(|result| vec![result])));
            }
            Value::Position(_) | Value::Old(_) => unreachable!("not in random definitions"),
        }
    }
    names
}

/// Returns true if a result in f32 is allowed.
fn allows(exact: &Exact, got: f32) -> bool {
    let Allowed::Between { low, high, nan } = exact.allowed() else { return true };
    let [low, high] = [low, high].map(|end| end.to_float(F32).as_f64() as f32);
    low <= got && got <= high || got.is_nan() && (nan || low.is_nan())
}

#[test]
fn random_regions_in_f32_are_within_bounds_that_are_few_times_infinite() {
    let (mut all, mut unbounded, mut bounded) = (0, 0, 0);
    for seed in 0..600 {
        let mut random = Random(seed);
        let n = 1 + random.below(9);
        let (x, y) = (random.values(2 * n), random.values(n));
        let inputs = [given(F32, &[2, n as u64], &x), given(F32, &[n as u64], &y)];
        let (definitions, names) = random_definitions(&mut random);
        let outputs: Vec<&str> = names.iter().map(String::as_str).collect();
        let exact = results(&[2, n as u64], &inputs, definitions.clone(), &outputs);
        for row in 0..2 {
            let float = |values: &[f64]| values.iter().map(|&x| x as f32).collect::<Vec<f32>>();
            let names = [("x0".to_string(), float(&x[row * n..][..n])), ("x1".to_string(), float(&y))];
            let got = plain(&definitions, names.into(), n);
            for (name, exact) in outputs.iter().zip(&exact) {
                let each = exact.len() / 2;
                for (exact, &got) in exact[row * each..][..each].iter().zip(&got[*name]) {
                    all += 1;
                    assert!(
                        allows(exact, got),
                        "seed {seed}: {name} = {got:e} is not allowed by {exact:?} in {}",
                        written(&definitions)
                    );
                    let error = error(exact);
                    unbounded += usize::from(!error.is_finite() && float_of(exact).is_finite());
                    if error.is_finite() && got.is_finite() {
                        let unit = error.max(f64::from(got).abs() * 1e-7).max(1e-30);
                        let away = (f64::from(got) + 10.0 * unit) as f32;
                        assert!(!allows(exact, away), "seed {seed}: {name} = {away:e} is allowed by {exact:?}");
                        bounded += 1;
                    }
                }
            }
        }
    }
    println!("{unbounded} of {all} results are unbounded, {bounded} finite and bounded");
    assert!(unbounded * 20 < all && bounded * 10 > all * 8, "{unbounded} {bounded} {all}");
}
