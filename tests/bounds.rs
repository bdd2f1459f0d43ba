//! The derived bounds of `reference::check`: a plain f32 execution of the reduction tree keeps
//! within them on any input, and wrong results do not.

use cranefold::{Compiler, DType, Scalar, Spec};
use cranefold_reference as reference;

/// DESIGN's tree on an inner axis: 64 lanes, blocks of 64 steps, merged pairwise.
fn tree(terms: &[f32], identity: f32, combine: impl Fn(f32, f32) -> f32) -> f32 {
    tree_of(terms.chunks(4096).collect(), identity, combine)
}

/// The tree of these blocks.
fn tree_of(blocks: Vec<&[f32]>, identity: f32, combine: impl Fn(f32, f32) -> f32) -> f32 {
    let mut pending: Vec<[f32; 64]> = vec![];
    for (index, block) in blocks.iter().enumerate() {
        let mut lanes = [identity; 64];
        for (k, &term) in block.iter().enumerate() {
            lanes[k % 64] = combine(lanes[k % 64], term);
        }
        pending.push(lanes);
        let last = index + 1 == blocks.len();
        let merges = if last { pending.len() - 1 } else { (index + 1).trailing_zeros() as usize };
        for _ in 0..merges {
            let newer = pending.pop().expect("a block");
            let older = pending.pop().expect("a block");
            pending.push(std::array::from_fn(|lane| combine(older[lane], newer[lane])));
        }
    }
    let mut lanes = pending.pop().unwrap_or([identity; 64]).to_vec();
    while lanes.len() > 1 {
        let half = lanes.len() / 2;
        lanes = (0..half).map(|lane| combine(lanes[lane], lanes[lane + half])).collect();
    }
    lanes[0]
}

/// The ops with the formulas of the table, in f32 and with the standard library's functions.
fn execute(op: &str, x: &[f32]) -> f32 {
    let sum = |lift: &dyn Fn(f32) -> f32| tree(&x.iter().map(|&x| lift(x)).collect::<Vec<_>>(), -0.0, |a, b| a + b);
    let square = |x: f32| x * x;
    match op {
        "sum" => sum(&|x| x),
        "l1" => sum(&f32::abs),
        "sum_squares" => sum(&square),
        "l2" => sum(&square).sqrt(),
        "mean" => sum(&|x| x) / x.len() as f32,
        "log_sum" => sum(&|x| x).ln(),
        "prod" => tree(x, 1.0, |a, b| a * b),
        "lp(p=3)" => sum(&|x| x.abs() * x.abs() * x.abs()).powf(1.0 / 3.0),
        "lp_sum(p=2.5,eps=1e-3)" => (sum(&|x| x.abs().powf(2.5)) + 1e-3).powf(1.0 / 2.5),
        "lp_max(p=1.5,eps=10)" => {
            let s = sum(&|x| x.abs().powf(1.5));
            (if s < 10.0 { 10.0f32 } else { s }).powf(1.0 / 1.5)
        }
        "lp_power_p_sum(p=3,eps=-7)" => sum(&|x| x.abs() * x.abs() * x.abs()) - 7.0,
        "log_sum_exp" => {
            let max = x.iter().copied().fold(f32::NEG_INFINITY, |a, b| if a.is_nan() || a > b { a } else { b });
            if max.is_finite() { max + sum(&|x| (x - max).exp()).ln() } else { max }
        }
        _ => unreachable!("{op}"),
    }
}

const OPS: [&str; 12] = [
    "sum",
    "l1",
    "sum_squares",
    "l2",
    "mean",
    "log_sum",
    "prod",
    "lp(p=3)",
    "lp_sum(p=2.5,eps=1e-3)",
    "lp_max(p=1.5,eps=10)",
    "lp_power_p_sum(p=3,eps=-7)",
    "log_sum_exp",
];

/// A simple generator, the same in every run (Knuth's MMIX multiplier).
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 32) as u32
    }

    fn unit(&mut self) -> f32 {
        self.bits() as f32 / 2f32.powi(32)
    }

    /// Elements of one kind, from all bit patterns to nearly cancelling.
    fn elements(&mut self, kind: usize, length: usize) -> Vec<f32> {
        let special =
            [0.0, -0.0, 1.0, -1.0, f32::MIN_POSITIVE, 1e-45, f32::MAX, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
        let mut elements: Vec<f32> = (0..length)
            .map(|_| match kind {
                0 => self.unit(),
                1 => self.unit() - 0.5,
                2 => 1.0 + (self.unit() - 0.5) * 0.01,
                3 => (self.unit() - 0.5) * 1e3,
                4 => f32::from_bits(self.bits()),
                5 => f32::from_bits(self.bits() & 0xbfff_ffff),
                6 => special[self.bits() as usize % 10],
                _ => special[self.bits() as usize % 5],
            })
            .collect();
        if kind == 3 && length > 1 {
            let total: f32 = elements[1..].iter().sum();
            elements[0] = -total;
        }
        elements
    }
}

fn bytes(x: &[f32]) -> Vec<u8> {
    x.iter().flat_map(|x| x.to_ne_bytes()).collect()
}

#[test]
fn the_tree_keeps_within_the_bounds() {
    let mut random = Random(1);
    for length in [0, 1, 2, 3, 63, 64, 65, 500, 4095, 4097, 9000] {
        for kind in 0..8 {
            let x = random.elements(kind, length);
            for op in OPS {
                let spec: Spec = format!("{op} f32[{length}]").parse().unwrap();
                let exact = reference::reduce(&spec, &[&bytes(&x)]).unwrap();
                let mut got = Scalar::f32(execute(op, &x));
                if length == 0 && got.as_f64() == 0.0 {
                    got = Scalar::f32(0.0);
                }
                if got.is_nan() {
                    got = Scalar::nan(DType::F32);
                }
                reference::check(&spec, &exact[0][0], got)
                    .unwrap_or_else(|e| panic!("{spec}, inputs of kind {kind}: {e}"));
            }
        }
    }
}

/// The blocks of elements in a box that is one dim: 64 steps each, and the rest.
fn blocks_of(elements: &[f32]) -> std::slice::Chunks<'_, f32> {
    elements.chunks(64 * 64)
}

/// Blocks of the layout that walk memory as one do not show. Where they cut the axis each part is a box, of a block
/// that all share if it has few steps, else with blocks of its own that are numbered on: the bits are those of the
/// tree written here, within the bounds, whatever the padding holds.
#[test]
fn blocked_axes_are_reduced_box_by_box() {
    let (mut random, compiler) = (Random(4), Compiler::host().expect("this machine"));
    for length in [1, 15, 16, 17, 37, 100, 127, 1000, 4099, 4160, 9000, 20_003] {
        for tag in ["", "@A16a", "@A8a4a", "@(-64)64a+3", "@A2a1024a"] {
            let spec: Spec = format!("sum f32[{length}]{tag}").parse().unwrap();
            let operand = &spec.inputs()[0];
            for kind in 0..8 {
                let x = random.elements(kind, length);
                let mut blocks: Vec<&[f32]> = blocks_of(&x).collect();
                // A layout that runs backwards is walked from its end, a box of whole blocks block by block.
                let whole = length / 64 * 64;
                let turned: Vec<f32>;
                if tag.starts_with("@(-") {
                    let blocks_of_layout = x[..whole].chunks(64).rev();
                    turned = blocks_of_layout.flatten().chain(&x[whole..]).copied().collect();
                    blocks = match length.div_ceil(64) <= 64 {
                        true => vec![&turned],
                        false => blocks_of(&turned[..whole]).chain(blocks_of(&turned[whole..])).collect(),
                    };
                }
                let mut expected = tree_of(blocks, -0.0, |a, b| a + b);
                if expected.is_nan() {
                    expected = f32::NAN;
                }
                let mut input = vec![f32::NAN; operand.span_elems() as usize];
                x.iter().enumerate().for_each(|(i, &x)| input[operand.placement().index(&[i as u64]) as usize] = x);
                let mut got = [0.0f32];
                compiler.compile(&spec).unwrap().run_one(&input, &mut got).unwrap();
                assert_eq!(got[0].to_bits(), expected.to_bits(), "{spec}, inputs of kind {kind}");
                let exact = reference::reduce(&spec, &[&bytes(&input)]).unwrap();
                reference::check(&spec, &exact[0][0], Scalar::f32(got[0]))
                    .unwrap_or_else(|e| panic!("{spec}, inputs of kind {kind}: {e}"));
            }
        }
    }
}

/// The rounded exact result itself is always allowed.
#[test]
fn the_reference_allows_itself() {
    let mut random = Random(2);
    for output in ["f16", "bf16", "f32", "f64", "i8 trunc", "u32 round_half_even"] {
        for kind in 0..8 {
            let x = random.elements(kind, 100);
            for op in OPS.into_iter().chain(["max", "min"]) {
                let spec: Spec = format!("{op} f32[100] -> {output}").parse().unwrap();
                let exact = &reference::reduce(&spec, &[&bytes(&x)]).unwrap()[0][0];
                let rounded = exact.round(&spec);
                reference::check(&spec, exact, rounded)
                    .unwrap_or_else(|e| panic!("{spec}, inputs of kind {kind}: {e}"));
                let (error, bound) = (exact.error(&spec, rounded), exact.error_bound(&spec));
                assert!(error <= bound, "{spec}, inputs of kind {kind}: {error} {bound}");
            }
        }
    }
}

/// What becomes an integer is off by what it is off as one: 0 where it is clamped on both sides.
#[test]
fn errors_of_integer_outputs_are_of_integers() {
    let one = |text: &str, x: &[f32], got: Scalar| {
        let spec: Spec = text.parse().unwrap();
        let exact = &reference::reduce(&spec, &[&bytes(x)]).unwrap()[0][0];
        (exact.error(&spec, got), exact.error_bound(&spec))
    };
    let i8_of = |value| Scalar::int(cranefold::DType::I8, value);
    assert_eq!(one("sum f32[2] trunc -> i8", &[3e4, 5.0], i8_of(127)), (0.0, 0.0));
    assert_eq!(one("sum f32[2] trunc -> i8", &[-3e4, 5.0], i8_of(-128)), (0.0, 0.0));
    assert_eq!(one("sum f32[2] trunc -> i8", &[2.25, 5.5], i8_of(7)), (0.0, 0.0));
    assert_eq!(one("sum f32[2] trunc -> i8", &[2.25, 5.5], i8_of(5)), (2.0, 0.0));
    // Rounding may decide whether it is one integer or the next.
    assert_eq!(one("mean f32[3] trunc -> i8", &[0.1, 0.2, 20.7], i8_of(6)).1, 1.0);
}

#[test]
fn wrong_results_are_caught() {
    let mut random = Random(3);
    let refused = |text: &str, x: &[f32], got: f32| {
        let spec: Spec = text.parse().unwrap();
        let exact = &reference::reduce(&spec, &[&bytes(x)]).unwrap()[0][0];
        assert!(reference::check(&spec, exact, Scalar::f32(got)).is_err(), "{text} may not be {got}");
    };
    // One chain of additions drifts.
    let tenths = vec![0.1; 1_000_000];
    refused("sum f32[1000000]", &tenths, tenths.iter().sum());
    // Small integers are exact in every order.
    refused("sum f32[20000]", &vec![3.0; 20000], 60000.004);
    // An element left out, of many alike.
    let x = random.elements(2, 20000);
    let all = execute("sum", &x);
    refused("sum f32[20000]", &x, all - 1.0);
    refused("mean f32[20000]", &x, execute("mean", &x[1..]) * 19999.0 / 20000.0);
    refused("l2 f32[20000]", &x, execute("l2", &x[1..]));
    refused("log_sum_exp f32[20000]", &x, execute("log_sum_exp", &x) + 1e-4);
    // A mean by the reciprocal is in the bounds; by the wrong count it is not.
    refused("mean f32[20000]", &x, all / 19999.0);
    // Signs of zeros, and the classes.
    refused("sum f32[2]", &[-0.0, -0.0], 0.0);
    refused("l2 f32[2]", &[0.0, 0.0], 1e-45);
    refused("max f32[2]", &[1.0, 2.0], 2.0000002);
    refused("sum f32[2]", &[1.0, f32::INFINITY], f32::MAX);
    refused("sum f32[2]", &[1.0, f32::NAN], f32::INFINITY);
    refused("sum f32[2]", &[1.0, 2.0], f32::NAN);
    refused("l1 f32[2]", &[3e38, -3e38], f32::MAX);
    refused("log_sum f32[2]", &[1.0, 1.0], f32::NAN);
    refused("prod f32[2]", &[3.0, 5.0], 15.000002);
    // A NaN that is not canonical.
    let spec: Spec = "sum f32[1]".parse().unwrap();
    let exact = &reference::reduce(&spec, &[&bytes(&[f32::NAN])]).unwrap()[0][0];
    let error = reference::check(&spec, exact, Scalar::from_bits(DType::F32, 0xffc0_0000)).unwrap_err();
    assert_eq!(error.to_string(), "bits(0xffc00000) is not in nan to nan, expected nan");
}

/// The variance of elements far from 0: what looks once at them is caught, as is a mean that is rounded.
#[test]
fn wrong_variances_are_caught() {
    let mut random = Random(4);
    let x: Vec<f32> = (0..1 << 16).map(|_| 1e6 + 3.4641016 * (random.unit() - 0.5)).collect();
    let n = x.len() as f32;
    let spec: Spec = "var f32[65536]".parse().unwrap();
    let exact = &reference::reduce(&spec, &[&bytes(&x)]).unwrap()[0][0];
    let check = |got: f32| reference::check(&spec, exact, Scalar::f32(got));
    let sum = |terms: &dyn Fn(f32) -> f32| tree(&x.iter().map(|&x| terms(x)).collect::<Vec<_>>(), -0.0, |a, b| a + b);
    let mean = sum(&|x| x) / n;

    let one_look = sum(&|x| x * x) / n - mean * mean;
    assert!(check(one_look).is_err(), "{one_look}");
    // Not even in f64, where it is off by half.
    let wide = |f: &dyn Fn(f64) -> f64| x.iter().map(|&x| f(f64::from(x))).sum::<f64>() / f64::from(n);
    let wide_mean = wide(&|x| x);
    let one_look = wide(&|x| x * x) - wide_mean * wide_mean;
    assert!(check(one_look as f32).is_err(), "{one_look}");
    let right = wide(&|x| (x - wide_mean) * (x - wide_mean)) as f32;
    check(right).unwrap();
    assert!(exact.error_bound(&spec) < 4e-4, "{}", exact.error_bound(&spec));

    let uncorrected = sum(&|x| (x - mean - 0.05) * (x - mean - 0.05)) / n;
    assert!(check(uncorrected).is_err(), "{uncorrected}");
    assert!(check(right * n / (n - 100.0)).is_err(), "a wrong count");

    // Around 0 the bound is closer.
    let small: Vec<f32> = x.iter().map(|x| x - 1e6).collect();
    let exact = &reference::reduce(&spec, &[&bytes(&small)]).unwrap()[0][0];
    assert!(exact.error_bound(&spec) < 5e-5, "{}", exact.error_bound(&spec));
}

#[test]
fn buffers_that_do_not_fit_are_refused() {
    let spec: Spec = "sum f32[4,10]@(20,2) axes=[1]".parse().unwrap();
    let message = |inputs: &[&[u8]]| reference::reduce(&spec, inputs).unwrap_err().to_string();
    assert_eq!(message(&[]), "0 input buffers for a spec with 1");
    assert_eq!(message(&[&[0; 315]]), "input 0 has 315 bytes and needs 316");
    assert!(reference::reduce(&spec, &[&[0; 320]]).is_ok());
    let error = reference::run(&spec, &[&[0; 316]], &mut [&mut [0; 15]]).unwrap_err();
    assert_eq!(error.to_string(), "output 0 has 15 bytes and needs 16");
}
