//! The corners of regions, bit for bit on the interpreter and on kernels of every width; the reference allows them too.

use cranefold::lower::lower;
use cranefold::{Compiler, DType, Options, Problem, Scalar, Spec};
use cranefold_fuzz::bits::is_allowed;
use cranefold_fuzz::data::Buffer;
use cranefold_fuzz::execute::Memory;

/// A region, its inputs and its outputs, each operand's elements between `;`. `3*7` stands for three sevens.
type Corner = (&'static str, &'static str, &'static str);

const SOFTMAX: &str =
    "region x:f32[2,3] axes=[1] { m, s = sum_exp(x); exp(x - m) / s, m, s, m + log(s), max(x), log_sum_exp(x) }";
const CROSS_ENTROPY: &str = "region x:f32[5,2], label:i64[5,1] axes=[1] {
  m, s = sum_exp(x)
  picked = sum(select(position(1) == label, x, 0))
  valid = label != -100
  loss = select(valid, m + log(s) - picked, 0)
  total = sum(loss, axes=[0])
  count = sum(f32(valid), axes=[0])
  loss, total / count, count
}";
const GRADIENT: &str = "region x:f32[5,2], label:i64[5,1] axes=[1] scalar count:f32 {
  m, s = sum_exp(x)
  p = exp(x - m) / s
  select(label != -100, (p - select(position(1) == label, 1, 0)) / count, 0)
}";
const LAYER_NORM: &str = "region x:f32[1,3] axes=[1] { c = centered(x); c / sqrt(mean(c * c) + 1e-5), c, mean(x) }";
const MASKED: &str = "region x:f32[3,4], mask:bool[3,4] axes=[1] {
  n = sum(f32(mask))
  m = sum(select(mask, x, 0)) / n
  d = select(mask, x - m, 0)
  m, sum(d * d) / n, n
}";
const CAUSAL: &str = "region x:f32[2,3] axes=[1] {
  y = select(position(1) <= position(0), x, -inf)
  m, s = sum_exp(y)
  exp(y - m) / s, m
}";
const QUANTISED: &str =
    "region x:f32[6] axes=[0] scalar scale:f32 { i8(round(x / scale)), u8(round(x / scale)), i64(x / scale), max(x) }";

/// Infinities and NaN.
const SPECIAL: &[Corner] = &[
    // All masked, and all but one.
    (SOFTMAX, "3*-inf 0 -inf -inf", "3*nan 1 0 0 ; -inf 0 ; 0 1 ; -inf 0 ; -inf 0 ; -inf 0"),
    // One NaN or +inf makes the row NaN, and no other row.
    (SOFTMAX, "-inf nan 2 5 5 -inf", "3*nan 0.5 0.5 0 ; nan 5 ; nan 2 ; nan 5.6931472 ; nan 5 ; nan 5.6931472"),
    (SOFTMAX, "1 inf 2 -inf -7 -inf", "3*nan 0 1 0 ; inf -7 ; nan 1 ; nan -7 ; inf -7 ; inf -7"),
    (SOFTMAX, "inf -inf inf -0 -inf -inf", "3*nan 1 0 0 ; inf -0 ; nan 1 ; nan 0 ; inf -0 ; inf 0"),
    ("region x:f32[2,200] axes=[1] { m, s = sum_exp(x); m, s }", "200*-inf 199*-inf 3", "-inf 3 ; 0 1"),
    ("region x:f32[2,70] axes=[0] { m, s = sum_exp(x); m, s }", "70*-inf 70*-inf", "70*-inf ; 70*0"),
    ("region x:f64[2] { m, s = sum_exp(x); exp(x - m) / s, m, s }", "-inf -inf", "nan nan ; -inf ; 0"),
    ("region x:bf16[2] { m, s = sum_exp(x); bf16(exp(x - m) / s), s }", "-inf -inf", "nan nan ; 0"),
    (CAUSAL, "1 nan inf 2 2 nan", "1 0 0 0.5 0.5 0 ; 1 2"),
    (LAYER_NORM, "1 nan 2", "3*nan ; 3*nan ; nan"),
    (LAYER_NORM, "1 inf 2", "3*nan ; 3*nan ; inf"),
    (LAYER_NORM, "-inf inf 2", "3*nan ; 3*nan ; nan"),
    (LAYER_NORM, "-inf -inf -inf", "3*nan ; 3*nan ; -inf"),
    (LAYER_NORM, "5 5 5", "3*0 ; 3*0 ; 5"),
    // The mean of subnormal elements, -3.7 of the least, is rounded to one of them.
    ("region x:f32[15] { centered(select(position(0) < 4, exp(x), 1.5) * x) }", "15*-4e-45", "4*1e-45 11*0"),
    (
        "region x:f32[3,3] axes=[1] { m = max(x); m, argmax(x), sum(i64(x == m)) }",
        "1 nan nan -inf -inf -inf 2 inf inf",
        "nan -inf inf ; 1 0 1 ; 0 3 2",
    ),
    ("region x:f32[3] axes=[0] { x / max(l2(x), 1e-12), l2(x) }", "0 -0 0", "0 -0 0 ; 0"),
    ("region x:f32[3] axes=[0] { x / max(l2(x), 1e-12), l2(x) }", "0 -inf 1", "0 nan 0 ; inf"),
    // A NaN makes the totals NaN.
    (
        "region x:f32[3,2] axes=[1] { s = sum(x); s, sum(s, axes=[0]), max(s, axes=[0]) }",
        "1 2 nan 1 3 3",
        "3 nan 6 ; nan ; nan",
    ),
    (
        "region x:f32[3,2] axes=[1] { s = sum(x); s, sum(s, axes=[0]), max(s, axes=[0]) }",
        "1 2 inf 1 3 3",
        "3 inf 6 ; inf ; inf",
    ),
];

/// The untaken arm of a choice, conversions that do not fit, division by zero.
const CHOICES: &[Corner] = &[
    ("region x:f32[5] axes=[0] { y = select(x > 0, log(x), 0); y, sum(y) }", "-1 0 1 nan -inf", "5*0 ; 0"),
    ("region x:f32[4] axes=[0] { y = select(x != 0, 1 / x, 2); y, sum(y) }", "0 -0 2 -4", "2 2 0.5 -0.25 ; 4.25"),
    ("region x:f32[4] axes=[0] { sum(select(is_nan(x) or is_inf(x), 0, x)) }", "nan inf -inf 3", "3"),
    ("region x:f32[2,2] axes=[1] { s = sum(x); sum(select(is_nan(s), 0, s), axes=[0]) }", "nan 1 2 3", "5"),
    ("region x:f32[2] axes=[0] { s = sum(x); select(s == 0, x, x / s), s }", "3 -3", "3 -3 ; 0"),
    (MASKED, "nan inf -inf 1 nan 2 inf 4 4*7 ; 5*false true false true 4*true", "nan 3 7 ; nan 1 0 ; 0 2 4"),
    (
        QUANTISED,
        "1 -1 0 nan inf -inf ; 0",
        "127 -128 0 0 127 -128 ; 255 0 0 0 255 0 ; 9223372036854775807 -9223372036854775808 0 0 9223372036854775807 -9223372036854775808 ; nan",
    ),
    (QUANTISED, "0.5 1.5 2.5 -0.5 127.5 -128.5 ; 1", "0 2 2 0 127 -128 ; 0 2 2 0 128 0 ; 0 1 2 0 127 -128 ; 127.5"),
    (
        QUANTISED,
        "1 -1 0 300 -300 3 ; -0",
        "-128 127 0 -128 127 -128 ; 0 255 0 0 255 0 ; -9223372036854775808 9223372036854775807 0 -9223372036854775808 9223372036854775807 -9223372036854775808 ; 300",
    ),
];

/// Labels: in range, beyond the classes, negative, ignored.
const LABELS: &[Corner] = &[
    (CROSS_ENTROPY, "10*0 ; 5*-100", "5*0 ; nan ; 0"),
    (CROSS_ENTROPY, "3 -inf 3 -inf 3 -inf 3 -inf 3 -inf ; 0 2 -1 -100 -99", "0 3 3 0 3 ; 2.25 ; 4"),
    (
        CROSS_ENTROPY,
        "3 -inf nan 1 -inf -inf inf 0 3 -inf ; 1 -100 -100 -100 9223372036854775807",
        "inf 0 0 0 3 ; inf ; 2",
    ),
    (
        GRADIENT,
        "0 0 nan nan 0 0 5 -inf 5 -inf ; 0 -100 2 -9223372036854775808 0 ; 2",
        "-0.25 0.25 0 0 0.25 0.25 0.5 0 0 0",
    ),
    (GRADIENT, "8*0 -inf -inf ; 4*-100 0 ; 0", "8*0 2*nan"),
];

/// Axes of no elements.
const EMPTY: &[Corner] = &[
    ("region x:f32[0,3] axes=[1] { max(x), x * 2, sum_squares(x) }", "", " ; ; "),
    (
        "region x:f32[0,3] axes=[1] { s = sum(x); s, sum(s, axes=[0]), max(s, axes=[0]), mean(s, axes=[0]), prod(s, axes=[0]) }",
        "",
        " ; 0 ; -inf ; nan ; 1",
    ),
    (
        "region x:f32[2,0] axes=[1] { sum(x), max(x), min(x), mean(x), prod(x), var(x), l2(x), log_sum_exp(x), x - max(x) }",
        "",
        "0 0 ; -inf -inf ; inf inf ; nan nan ; 1 1 ; nan nan ; 0 0 ; -inf -inf ; ",
    ),
    ("region x:f32[2,0] axes=[1] { m, s = sum_exp(x); exp(x - m) / s, m, s }", "", " ; -inf -inf ; 0 0"),
    ("region x:f32[2,0] axes=[1] { c = centered(x); c, sum(c * c) }", "", " ; 0 0"),
    ("region x:f32[2,0] axes=[1] { s = sum(x); exp(s), sum(exp(s), axes=[0]) }", "", "1 1 ; 2"),
    ("region x:i32[2,0] axes=[1] { max(x), min(x), sum(x), x }", "", "2*-2147483648 ; 2*2147483647 ; 0 0 ; "),
    ("region x:i8[2,0], w:i8[2,1] axes=[1] { sum(x) + i64(w), x + w }", " ; 3 4", "3 4 ; "),
    ("region x:bool[2,0] axes=[1] { any(x), all(x) }", "", "2*false ; 2*true"),
    ("region x:f32[0,0] axes=[1] { s = max(x); s, sum(s, axes=[0]), x }", "", " ; 0 ; "),
    ("region x:f32[2,0,3] axes=[1] { max(x), sum(x) }", "", "6*-inf ; 6*0"),
    ("region x:f32[2,0,3] axes=[0,2] { max(x), x }", "", " ; "),
    ("region x:f32[0,3], label:i64[0,1] axes=[1] { hit = argmax(x) == label; mean(f32(hit), axes=[0]) }", " ; ", "nan"),
    (
        "region x:f32[1,1], w:f32[1] axes=[1] { c = centered(x); c * w, max(x), argmax(x), var(x), std(x) }",
        "3 ; 2",
        "0 ; 3 ; 0 ; 0 ; 0",
    ),
];

/// Regions that have no value.
const REFUSED: &[&str] =
    &["region x:f32[2,0] axes=[1] { argmax(x) }", "region x:f32[0,2] axes=[1] { s = sum(x); argmax(s, axes=[0]) }"];

/// Elements from text.
fn parse(dtype: DType, text: &str) -> Vec<Scalar> {
    let mut values = vec![];
    for word in text.split_whitespace() {
        let (times, value) = word.split_once('*').unwrap_or(("1", word));
        let value = Scalar::parse(dtype, value).unwrap_or_else(|| panic!("`{value}` is no {dtype}"));
        values.extend(std::iter::repeat_n(value, times.parse().expect("a count")));
    }
    values
}

fn buffer(dtype: DType, text: &str) -> Buffer {
    let values = parse(dtype, text);
    let mut buffer = Buffer::new(values.len() * dtype.bytes() as usize, 0);
    values.iter().enumerate().for_each(|(index, value)| value.write(buffer.bytes_mut(), index));
    buffer
}

/// The faults of a corner.
fn faults(compiler: &Compiler, (text, inputs, outputs): Corner) -> Vec<String> {
    let spec: Spec = match text.parse() {
        Ok(spec) => spec,
        Err(e) => return vec![format!("{text}: {e}")],
    };
    let ins: Vec<Buffer> =
        spec.inputs().iter().zip(inputs.split(';')).map(|(operand, text)| buffer(operand.dtype(), text)).collect();
    let outs = spec.outputs().iter().map(|operand| Buffer::new(operand.span_bytes() as usize, 0)).collect();
    let memory = Memory { inputs: ins, outputs: outs };
    for (operand, buffer) in spec.inputs().iter().zip(&memory.inputs) {
        assert_eq!(operand.span_bytes() as usize, buffer.bytes().len(), "{text}: {inputs}");
    }
    assert_eq!(outputs.split(';').count(), spec.outputs().len(), "{text}: {outputs}");
    let naive = lower(&Problem::of(&spec), "region");
    let mut found = vec![("interpreter".to_string(), memory.interpreted(&naive))];
    for width in [512, 256, 128, 0] {
        let options = Options { width: Some(width), ..Options::default() };
        match compiler.compile_with(&spec, &options) {
            Ok(kernel) => found.push((format!("{width} bits"), memory.run(&kernel))),
            Err(e) => return vec![format!("{text}: {e}")],
        }
    }
    let disallowed = is_allowed(&spec, &memory, &found[0].1).err();
    let mut faults: Vec<String> = disallowed.map(|fault| format!("{spec} of {inputs}: {fault}")).into_iter().collect();
    for (executor, buffers) in found {
        for (o, (buffer, text)) in buffers.iter().zip(outputs.split(';')).enumerate() {
            let dtype = spec.outputs()[o].dtype();
            let expected = parse(dtype, text);
            let count = buffer.bytes().len() / dtype.bytes() as usize;
            let got: Vec<Scalar> = (0..count).map(|index| Scalar::read(dtype, buffer.bytes(), index)).collect();
            if got != expected {
                let show = |values: &[Scalar]| values.iter().map(Scalar::to_string).collect::<Vec<_>>().join(" ");
                let (got, expected) = (show(&got), show(&expected));
                faults.push(format!("{spec} of {inputs}: output {o} by {executor} is {got} and not {expected}"));
            }
        }
    }
    faults
}

fn check(corners: &[Corner]) {
    let compiler = Compiler::host().expect("a compiler");
    let faults: Vec<String> = corners.iter().flat_map(|&corner| faults(&compiler, corner)).collect();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn infinities_and_nan() {
    check(SPECIAL);
}

#[test]
fn the_arm_not_taken_never_shows() {
    check(CHOICES);
}

/// Values beside positions that are no `i32`, and modulo 2^32 would be one of the positions.
const BESIDE_POSITIONS: &[Corner] = &[
    (
        "region x:f32[6,3], n:i64[6,1] axes=[1] {
          p = position(1)
          sum(select(p < n, x, 0)), sum(select(p == n, x, 0)), sum(select(n <= p, x, 0)), sum(select(p != n - 1, x, 0))
        }",
        "18*1 ; 1 4294967297 -4294967295 9223372036854775807 -9223372036854775808 2147483648",
        "1 3 0 3 0 3 ; 1 0 0 0 0 0 ; 2 0 3 0 3 0 ; 2 3 3 3 3 3",
    ),
    (
        "region x:f32[2,3] axes=[1] { p = position(1); f32(p * 2147483648) * x, sum(select(position(0) < p, f32(p), x)) }",
        "1 1 1 2 2 2",
        "0 2147483648 4294967296 0 4294967296 8589934592 ; 4 6",
    ),
];

#[test]
fn values_beside_positions_keep_all_bits() {
    check(BESIDE_POSITIONS);
}

#[test]
fn labels_beyond_the_classes_and_ignored_ones() {
    check(LABELS);
}

#[test]
fn axes_of_no_elements() {
    check(EMPTY);
}

#[test]
fn positions_in_nothing_are_refused() {
    for text in REFUSED {
        let error = text.parse::<Spec>().expect_err(text).to_string();
        assert!(error.contains("argmax"), "{text}: {error}");
    }
}
