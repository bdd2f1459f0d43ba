//! Regions against closed values, their bounds, and the share of results without bounds.

use cranefold_ir::{DType, Scalar};
use cranefold_reference::{self as reference, Exact};
use cranefold_spec::Spec;

fn spec(text: &str) -> Spec {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn bytes(dtype: DType, values: &[f64]) -> Vec<u8> {
    let mut bytes = vec![0; values.len() * dtype.bytes() as usize];
    for (i, &value) in values.iter().enumerate() {
        let scalar = match dtype {
            DType::Bool => Scalar::bool(value != 0.0),
            _ if dtype.is_float() => Scalar::float(dtype, value),
            _ => Scalar::int(dtype, value as i128),
        };
        scalar.write(&mut bytes, i);
    }
    bytes
}

/// The spec of a text, and its exact results for these values of its inputs.
fn reduced(text: &str, inputs: &[&[f64]]) -> (Spec, Vec<Vec<Exact>>) {
    let spec = spec(text);
    let inputs: Vec<Vec<u8>> = spec.inputs().iter().zip(inputs).map(|(o, values)| bytes(o.dtype(), values)).collect();
    let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let exact = reference::reduce(&spec, &inputs).unwrap_or_else(|error| panic!("{text}: {error}"));
    (spec, exact)
}

/// The rounded results of an output.
fn rounded(spec: &Spec, exact: &[Exact]) -> Vec<f64> {
    let value = |scalar: Scalar| scalar.as_int().map_or(scalar.as_f64(), |value| value as f64);
    exact.iter().map(|exact| value(exact.round(spec))).collect()
}

/// Asserts that results are near these values, and that bounds allow them, but nothing ten bounds away.
fn assert_near(spec: &Spec, exact: &[Exact], want: &[f64], relative: f64) {
    assert_eq!(exact.len(), want.len(), "{spec}");
    for (exact, &want) in exact.iter().zip(want) {
        let got = exact.round(spec);
        let (far, bound) = ((got.as_f64() - want).abs(), exact.error_bound(spec));
        assert!(far <= relative * want.abs(), "{spec}: {got} is no {want}");
        assert!(exact.is_bounded(spec) && bound <= relative * want.abs(), "{spec}: {bound:e} around {want}");
        let dtype = got.dtype();
        assert_eq!(reference::check(spec, exact, Scalar::float(dtype, want)), Ok(()));
        let away = Scalar::float(dtype, want + 10.0 * bound.max(want.abs() * 1e-6));
        assert!(reference::check(spec, exact, away).is_err(), "{spec}: {away} is allowed for {want}");
    }
}

const ROWS: [f64; 8] = [0.5, -1.25, 3.0, 2.0, 1.0, 0.0, -4.0, 0.25];

/// Row by row, a function of the row.
fn by_row(function: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    ROWS.chunks(4).flat_map(function).collect()
}

#[test]
fn softmax_and_its_gradient() {
    let softmax = |row: &[f64]| {
        let sum: f64 = row.iter().map(|x| x.exp()).sum();
        row.iter().map(|x| x.exp() / sum).collect::<Vec<f64>>()
    };
    for text in ["m = max(x); e = exp(x - m); e / sum(e)", "m, s = sum_exp(x); exp(x - m) / s"] {
        let (spec, exact) = reduced(&format!("region x:f32[2,4] axes=[1] {{ {text} }}"), &[&ROWS]);
        assert_near(&spec, &exact[0], &by_row(softmax), 1e-5);
    }
    let text =
        "region x:f64[2,4], g:f64[2,4] axes=[1] { m = max(x); e = exp(x - m); y = e / sum(e); y * (g - sum(y * g)) }";
    let (spec, exact) = reduced(text, &[&ROWS, &[1.0, 0.0, 0.0, 2.0, 0.0, 3.0, 0.0, 0.0]]);
    let gradient = |row: usize, g: [f64; 4]| {
        let y = softmax(&ROWS[4 * row..][..4]);
        let sum: f64 = y.iter().zip(g).map(|(y, g)| y * g).sum();
        y.iter().zip(g).map(|(y, g)| y * (g - sum)).collect::<Vec<f64>>()
    };
    let want = [gradient(0, [1.0, 0.0, 0.0, 2.0]), gradient(1, [0.0, 3.0, 0.0, 0.0])].concat();
    assert_near(&spec, &exact[0], &want, 1e-13);
}

#[test]
fn layer_norm_of_a_large_mean() {
    let x: Vec<f64> = (0..64).map(|i| 1000.0 + f64::from((i * 37) % 11) / 4.0).collect();
    let mean = x.iter().sum::<f64>() / 64.0;
    let var = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 64.0;
    let want: Vec<f64> = x.iter().map(|x| (x - mean) / (var + 1e-5).sqrt()).collect();
    let (spec, exact) =
        reduced("region x:f32[64] axes=[0] { c = centered(x); r = 1 / sqrt(mean(c * c) + 1e-5); c * r, r }", &[&x]);
    for (exact, want) in exact[0].iter().zip(want) {
        let bound = exact.error_bound(&spec);
        assert!((exact.round(&spec).as_f64() - want).abs() < 1e-6 && bound < 2e-5, "{bound:e}");
    }
    assert_near(&spec, &exact[1], &[1.0 / (var + 1e-5).sqrt()], 1e-4);
}

#[test]
fn all_masked() {
    let text = "region x:f32[2,2], on:bool[2,2] axes=[1] {
        e = select(on, x, -inf)
        m, s = sum_exp(e)
        exp(e - m) / s, m, s, max(e), log_sum_exp(e), any(on), sum(i32(on))
    }";
    let (spec, exact) = reduced(text, &[&[1.0, f64::NAN, 5.0, f64::INFINITY], &[0.0, 0.0, 1.0, 0.0]]);
    let got: Vec<String> = exact.iter().map(|exact| format!("{:?}", rounded(&spec, exact))).collect();
    let inf = "[-inf, 5.0]";
    assert_eq!(got, ["[NaN, NaN, 1.0, 0.0]", inf, "[0.0, 1.0]", inf, inf, "[0.0, 1.0]", "[0.0, 1.0]"]);
}

#[test]
fn extents_of_zero() {
    let text = "region x:f32[3,0] axes=[1] { x * 2, sum(x), max(x), prod(x), sum(mean(x), axes=0) }";
    let (spec, exact) = reduced(text, &[&[]]);
    let got: Vec<String> = exact.iter().map(|exact| format!("{:?}", rounded(&spec, exact))).collect();
    let inf = f64::NEG_INFINITY;
    assert_eq!(got, ["[]", "[0.0, 0.0, 0.0]", &format!("{:?}", [inf; 3]), "[1.0, 1.0, 1.0]", "[NaN]"]);
    let text = "region x:f32[0,3,2] axes=[2] { s = max(sum(x), axes=0); x * 2, sum(x), 1 + s }";
    let (spec, exact) = reduced(text, &[&[]]);
    assert_eq!((exact[0].len(), exact[1].len()), (0, 0));
    assert_eq!(rounded(&spec, &exact[2]), [inf; 3]);
}

#[test]
fn cross_entropy_by_label_and_its_mean_over_valid_rows() {
    let text = "region x:f32[2,4], label:i64[2,1] axes=[1] {
        m, s = sum_exp(x)
        valid = label >= 0
        picked = sum(select(position(1) == label, x, 0))
        loss = select(valid, m + log(s) - picked, 0)
        loss, sum(loss, axes=0) / sum(select(valid, f32(1), 0), axes=0)
    }";
    let (spec, exact) = reduced(text, &[&ROWS, &[2.0, -1.0]]);
    let loss = ROWS[..4].iter().map(|x| x.exp()).sum::<f64>().ln() - 3.0;
    assert_near(&spec, &exact[0][..1], &[loss], 1e-4);
    assert_eq!(rounded(&spec, &exact[0])[1], 0.0);
    assert_near(&spec, &exact[1], &[loss], 1e-4);
}

#[test]
fn narrow_outputs_old_elements_and_scalars() {
    let spec = spec(
        "region x:f16[2,3] axes=[1] scalar k:f32 { keep = mean(x); bf16(x * k + old(0)), i8(round(x * 50.5)), u8(sum(x)), keep }",
    );
    let inputs = [bytes(DType::F16, &[1.0, 2.0, 3.0, -4.0, 5.0, 600.0]), bytes(DType::F32, &[0.5])];
    let mut outputs: Vec<Vec<u8>> = spec.outputs().iter().map(|o| vec![0; o.span_bytes() as usize]).collect();
    outputs[0] = bytes(DType::Bf16, &[8.0; 6]);
    let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let mut slices: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
    reference::run(&spec, &inputs, &mut slices).expect("buffers of the right length");
    let read = |k: usize| {
        let dtype = spec.outputs()[k].dtype();
        let value = |scalar: Scalar| scalar.as_int().map_or(scalar.as_f64(), |value| value as f64);
        (0..outputs[k].len() / dtype.bytes() as usize).map(|i| value(Scalar::read(dtype, &outputs[k], i))).collect()
    };
    let read: Vec<Vec<f64>> = (0..4).map(read).collect();
    assert_eq!(read[0], [8.5, 9.0, 9.5, 6.0, 10.5, 308.0]);
    assert_eq!(read[1], [50.0, 101.0, 127.0, -128.0, 127.0, 127.0]);
    assert_eq!(read[2], [6.0, 255.0]);
    assert_eq!(read[3], [2.0, f64::from(601f32 / 3.0)]);
}

#[test]
fn integers() {
    let text = "region x:i8[2,3], y:u64[3] axes=[1] {
        sum(x), prod(i64(x) * 4611686018427387904), min(x), argmax(x), sum(y), x / 3, bit_xor(x), count_nonzero(x)
    }";
    let (spec, exact) = reduced(text, &[&[-128.0, 127.0, 1.0, 3.0, 3.0, 0.0], &[0.0, 2f64.powi(63), 2f64.powi(63)]]);
    let got: Vec<Vec<f64>> = exact.iter().map(|exact| rounded(&spec, exact)).collect();
    let want: [&[f64]; 8] = [
        &[0.0, 6.0],
        &[0.0, 0.0],
        &[-128.0, 0.0],
        &[1.0, 0.0],
        &[0.0, 0.0],
        &[-42.0, 42.0, 0.0, 1.0, 1.0, 0.0],
        &[-2.0, 0.0],
        &[3.0, 2.0],
    ];
    assert_eq!(got, want);
}

#[test]
fn masks_that_rounding_decides_are_bounded_by_both_arms() {
    // exp(x) is one ulp or so off, so that the comparison may go either way.
    let text = "region x:f32[4] axes=[0] { e = exp(x); y = select(e > 2.7182817, x * 2, x); y, sum(y), sum(i32(e > 2.7182817)), e / (e - 2.7182817) }";
    let (spec, exact) = reduced(text, &[&[0.0, 1.0, 2.0, -1.0]]);
    assert!(exact[0][1].is_bounded(&spec) && exact[0][1].error_bound(&spec) == 1.0);
    assert_eq!(exact[0][2].error_bound(&spec), 0.0);
    for got in [1.0, 2.0] {
        assert_eq!(reference::check(&spec, &exact[0][1], Scalar::f32(got)), Ok(()));
    }
    assert!(exact[1][0].is_bounded(&spec) && exact[2][0].is_bounded(&spec) && !exact[3][1].is_bounded(&spec));
    for (got, allowed) in [(0, false), (1, true), (2, true), (3, false)] {
        assert_eq!(reference::check(&spec, &exact[2][0], Scalar::int(DType::I64, got)).is_ok(), allowed, "{got}");
    }
}

#[test]
fn an_infinity_by_what_may_be_zero_may_be_nan() {
    let text = "region x:f32[1], y:f32[1] axes=[0] { e = exp(x) - 2.7182817; e * y, fma(e, y, y), fma(y, e, x), 0 * y, e * 2 }";
    let (spec, exact) = reduced(text, &[&[1.0], &[f64::INFINITY]]);
    for (output, is_allowed) in [(0, true), (1, true), (2, true), (3, true), (4, false)] {
        let check = reference::check(&spec, &exact[output][0], Scalar::f32(f32::NAN));
        assert_eq!(check.is_ok(), is_allowed, "output {output}");
    }
    // Zero by an infinity is NaN and nothing else.
    assert!(reference::check(&spec, &exact[3][0], Scalar::f32(0.0)).is_err());
}
