//! Post-ops as `then` expressions: their text, and their values against the reference.

use crate::problem::{Problem, Tensor, dtype};
use crate::run::{Tally, run};
use cranefold::DType;
use cranefold_fuzz::data::Buffer;

/// [17,...] channels from i8 or another type, in blocks of 8.
fn problem(alg: &str, types: &str, post_ops: &str) -> Problem {
    let (from, to) = types.split_once("->").expect("two types");
    Problem {
        alg: alg.into(),
        p: 2.0,
        eps: 0.5,
        src: Tensor::new(dtype(from), &[3, 17, 4, 2], "aBcd8b"),
        dst: Tensor::new(dtype(to), &[3, 17, 1, 1], "any"),
        post_ops: post_ops.into(),
    }
}

#[test]
fn they_are_one_expression() {
    for (alg, types, post_ops, expected) in [
        ("sum", "f32->f32", "", " -> @"),
        ("sum", "s8->s32", "", " saturate round_half_even -> i32@"),
        ("mean", "u8->u8", "", " saturate round_half_even -> @"),
        ("max", "s8->f32", "", " -> f32@"),
        ("sum", "f32->s8", "", " round_half_even -> i8@"),
        ("sum", "f16->f16", "sum+linear:2:1", " then=\"2 * (r0 + d) + 1\" -> @"),
        ("sum", "f32->s8", "sum:0.5:-3", " then=\"r0 + 0.5 * (f32(d) - -3)\" round_half_even -> i8@"),
        ("sum", "s8->s32", "sum", " then=\"f32(r0) + f32(d)\" round_half_even -> i32@"),
        ("max", "u8->s32", "sum:2", " then=\"f32(r0) + 2 * f32(i32(d))\" round_half_even -> i32@"),
        ("max", "s8->f32", "sum:2", " then=\"f32(r0) + 2 * d\" -> f32@"),
        ("max", "u8->u8", "sum:1:0:s8", " then=\"f32(r0) + f32(i8(d))\" round_half_even -> u8@"),
        ("mean", "s8->s8", "relu", " then=\"max(f32(r0) / 8, 0)\" round_half_even -> i8@"),
        ("mean", "s8->f32", "relu:0.1", " then=\"select(f32(r0) > 0, f32(r0), 0.1 * f32(r0))\" -> @"),
        (
            "mul",
            "s8->s8",
            "abs",
            " map=\"f64(x0)\" then=\"abs(f32(select(abs(r0) > 0, r0, 0)))\" acc=f64 round_half_even -> ",
        ),
        ("mul", "s8->f32", "abs", " then=\"abs(f32(r0))\" -> @"),
        ("sum", "f64->f32", "sum+add:f32", " then=\"f32(r0) + f32(d) + f32(y0)\" -> f32@"),
        ("sum", "f32->f32", "add:s8:per_oc+gt:f16", " then=\"f32(r0 + f32(y0) > y1)\" -> @"),
    ] {
        let spec = problem(alg, types, post_ops).translate().unwrap_or_else(|e| panic!("{post_ops}: {e}"));
        let printed = spec.to_string();
        assert!(printed.contains(expected), "{alg} {types} {post_ops}: {printed}");
        assert_eq!(printed.parse(), Ok(spec));
    }
}

/// Forms for training, and all prefixes, mean the same.
#[test]
fn names_have_prefixes() {
    let spec = |post_ops: &str| problem("max", "f32->f32", post_ops).translate().expect("a spec");
    assert_eq!(spec("relu_use_dst_for_bwd:0.5"), spec("relu:0.5"));
    assert_eq!(spec("dnnl_eltwise_tanh_use_dst_for_bwd"), spec("eltwise_tanh"));
    assert_eq!(spec("eltwise_SWISH:2"), spec("swish:2"));
    for alg in ["sum", "reduction_sum", "dnnl_reduction_sum", "SUM"] {
        assert_eq!(problem(alg, "f32->f32", "").translate(), problem("sum", "f32->f32", "").translate());
    }
}

const CHAINS: &[&str] = &[
    "relu",
    "relu:0.25",
    "relu:-3",
    "tanh",
    "elu:1",
    "elu:0.3",
    "square",
    "abs",
    "sqrt",
    "linear:-0.5:3",
    "soft_relu:1",
    "soft_relu:-1",
    "soft_relu:0.5",
    "hardsigmoid:0.2:0.5",
    "logistic",
    "exp",
    "gelu_tanh",
    "swish:1",
    "swish:-0.75",
    "log",
    "clip:-1:1",
    "clip_v2:0:inf",
    "pow:1:0.5",
    "pow:-2:3",
    "pow:1:-1",
    "round",
    "mish",
    "hardswish:0.1666667:0.5",
    "sum",
    "sum:0.25:7",
    "add:f32:per_tensor:aBcd8b",
    "sub:bf16:per_oc:acdb",
    "mul:f16:per_tensor:ABcd4a4b",
    "div:f32:per_oc",
    "max:s8:per_tensor",
    "min:u8:per_tensor:aBcd8b",
    "ge:f32:per_tensor+add:s32:per_tensor",
    "gt:s32:per_tensor",
    "le:f32",
    "lt:f32:per_tensor",
    "eq:s8:per_tensor",
    "ne:s8:per_tensor+sum",
    "swish:1+mul:f32:per_oc+sum:2+tanh",
    "linear:0.01:0+elu:2+linear:100:0+round+sum:1:1",
];

#[test]
fn chains_agree_with_the_reference() {
    let mut tally = Tally::default();
    for (c, chain) in (0..).zip(CHAINS) {
        let mut types = vec!["f32->f32", "bf16->f16", "f16->s8", "s8->s8", "u8->s32", "s8->f32", "f64->f64", "s32->u8"];
        if chain.starts_with("sum") {
            types.extend(["u8->s8", "s8->u8", "s32->s32"]);
        }
        for (t, types) in (0..).zip(types) {
            let alg = ["sum", "max", "mean", "min", "mul"][(c + t) as usize % 5];
            match problem(alg, types, chain).translate() {
                Ok(spec) => (0..3).for_each(|n| tally.check(&spec, 3 * (c + t) + n)),
                Err(error) => tally.fail(format!("{alg} {types} {chain}: {error}")),
            }
        }
    }
    assert!(tally.conclude() > 1000);
}

/// The old bytes of an integer destination read as the other sign.
#[test]
fn old_bytes_of_the_other_sign() {
    let mut tally = Tally::default();
    for (types, other) in [("s8->s8", "u8"), ("u8->u8", "s8"), ("s8->u8", "s8"), ("f32->u8", "s8"), ("u8->s8", "u8")] {
        for n in 0..6 {
            let spec = problem("max", types, &format!("sum:1:3:{other}")).translate().expect("a spec");
            tally.check(&spec, n);
        }
    }
    tally.conclude();
}

/// Products far beyond every integer: they clamp, and a zero among them wins.
#[test]
fn products_that_no_integer_holds() {
    let problem = Problem {
        alg: "mul".into(),
        p: 1.0,
        eps: 0.0,
        src: Tensor::new(DType::I8, &[3, 401], "ab"),
        dst: Tensor::new(DType::I8, &[3, 1], "ab"),
        post_ops: "linear:1:5".into(),
    };
    let mut elements = [127i8; 3 * 401];
    elements[400] = 0;
    elements[401] = -1;
    let input = Buffer::holding(&elements.map(i8::cast_unsigned), 0);
    let mut output = [Buffer::new(3, 0)];
    run(&problem.translate().expect("a spec"), &[input], &mut output).expect("a kernel");
    assert_eq!(output[0].bytes(), [5, -128i8 as u8, 127]);
}
