//! Random specs and random text.

use cranefold::spec::{Builder, Rounding};
use cranefold::{DType, Layout, Spec, ops};
use proptest::prelude::*;

fn layouts(rank: usize) -> impl Strategy<Value = Layout> {
    let tag = Just((0..rank as u8).map(|axis| char::from(b'a' + axis)).collect::<Vec<char>>()).prop_shuffle();
    let tag = tag.prop_map(|letters| match letters.is_empty() {
        true => Layout::row_major(),
        false => Layout::tag(&letters.into_iter().collect::<String>()).expect("a permutation"),
    });
    let strides = prop::collection::vec(-40i64..40, rank).prop_map(Layout::strides);
    prop_oneof![Just(Layout::row_major()), tag, strides]
}

/// Specs of every op, most of them valid.
fn builders() -> impl Strategy<Value = Builder> {
    let extent = prop::sample::select(vec![0u64, 1, 2, 3, 7, 64, 65, 1 << 40]);
    let input = prop::collection::vec(extent, 0..7).prop_flat_map(|shape| {
        let rank = shape.len();
        let axes = prop::option::of(prop::collection::btree_set(0..rank.max(1) as i64, 0..=rank));
        (Just(shape), layouts(rank), axes, any::<bool>(), prop::option::of(layouts(rank)))
    });
    let dtype = || prop::sample::select(DType::ALL.to_vec());
    let op = prop::sample::select(ops::ROWS.iter().map(|row| row.name).collect::<Vec<_>>());
    let params = (prop::sample::select(vec![1.0, 2.0, 3.0, 2.5, 0.1 + 0.7 + 1.0]), any::<f64>());
    let words = (any::<bool>(), prop::option::of(any::<bool>()), 0..3, prop::option::of(dtype()));
    (op, params, dtype(), input, prop::option::of(dtype()), words).prop_map(
        |(op, (p, eps), dtype, (shape, layout, axes, negative, out_layout), out, (keep, lift, round, acc))| {
            let rank = shape.len() as i64;
            let mut builder = Spec::builder(op).input_at(dtype, &shape, layout);
            let named = ops::find(op).expect("a row").params.iter().zip([p, eps]);
            for (param, value) in named {
                builder = builder.param(param.name, value);
            }
            if let Some(axes) = axes {
                let counted = axes.into_iter().map(|axis| if negative { axis - rank } else { axis });
                builder = builder.axes(counted.collect::<Vec<i64>>());
            }
            if keep {
                builder = builder.keep_dims(true);
            }
            builder = match lift {
                None => builder,
                Some(true) => builder.empty_axes_lift(),
                Some(false) => builder.empty_axes_identity(),
            };
            builder = match round {
                1 => builder.round(Rounding::Trunc),
                2 => builder.round(Rounding::HalfEven),
                _ => builder,
            };
            if let Some(acc) = acc.filter(|acc| acc.is_float()) {
                builder = builder.accumulator(acc);
            }
            if let Some(out) = out {
                builder = builder.output(out);
            }
            match out_layout {
                Some(layout) => builder.output_layout(layout),
                None => builder,
            }
        },
    )
}

/// Specs of several ops, inputs, outputs and expressions, many of them valid.
fn compositions() -> impl Strategy<Value = String> {
    let one_of = |words: &'static [&'static str]| prop::sample::select(words.to_vec());
    // Most words are refused in most company, so there are few.
    let some_of = |share, words| prop::option::weighted(share, one_of(words)).prop_map(Option::unwrap_or_default);
    let ops = &[
        "sum",
        "max",
        "mean",
        "any",
        "argmax(last)",
        "var(ddof=1)",
        "count_nonzero",
        "ptp",
        "bit_xor",
        "softmax",
        "layer_norm",
        r#"combiner(identity="0", lift="f32(x0)", combine="a0+b0")"#,
        r#"combiner(identity="0, i64(0)", lift="f32(x0), i", combine="a0+b0, b1", finish="a1, a0/n", commutative)"#,
    ];
    let ops = prop::collection::vec(one_of(ops), 1..3);
    let inputs = &[
        "f32[4,5]",
        "f16[4,5]@ba",
        "i32[4,5]",
        "bool[4,5]",
        "i8[4,5], i8[5]",
        "f32[4,5], f32[5]",
        "f64[4,5], f32[1]:then",
        "u8[4,5], i64[]:then",
    ];
    let axes = one_of(&["", "axes=[1]", "axes=[0] keep_dims", "axes=[]", "axes=[1] empty_axes=lift"]);
    let map = some_of(
        0.4,
        &[r#"map="x0*x0""#, r#"map="x0*x1""#, r#"map="x0 > 0""#, r#"map="f32(x0)/k" scalar k:f32"#, r#"map="-x0""#],
    );
    let after = &[
        r#"then="r0""#,
        r#"then="r0, r0""#,
        r#"then="r0+d""#,
        r#"then="r0, f32(r1)""#,
        r#"then="f32(r0)*s" scalar s:f32"#,
        r#"then="r0 + y0""#,
        r#"then="r0 > r1, i32(r0)""#,
        r#"apply="x0/r0""#,
        r#"apply="f32(x0) - f32(r0)""#,
    ];
    let words = some_of(0.15, &["acc=f64", "saturate", "trunc", "round_half_even"]);
    let out = &["-> f32", "-> f64, i64", "-> i32", "-> f16, f32", "-> i64@(2)", "-> @(3), i32", "-> bool"];
    let (inputs, after, out) = (one_of(inputs), some_of(0.5, after), some_of(0.2, out));
    (ops, inputs, axes, map, after, words, out).prop_map(|(ops, inputs, axes, map, after, words, out)| {
        [&ops.join(","), inputs, axes, map, after, words, out].join(" ")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn specs_print_and_read_back(builder in builders()) {
        // Builders that are refused are the concern of other tests.
        if let Ok(spec) = builder.build() {
            let text = spec.to_string();
            prop_assert_eq!(&text.parse::<Spec>(), &Ok(spec.clone()), "{}", text);
            prop_assert_eq!(spec.to_builder().build(), Ok(spec), "{}", text);
        }
    }

    /// The canonical text means the same and is its own, and what is built of it fits.
    #[test]
    fn compositions_print_and_read_back(text in compositions()) {
        if let Ok(spec) = text.parse::<Spec>() {
            let canonical = spec.to_string();
            let again: Spec = canonical.parse().unwrap_or_else(|e| panic!("`{text}` as `{canonical}`: {e}"));
            prop_assert_eq!(again.to_string(), canonical);
            prop_assert_eq!(&again, &spec, "{}", text);
            prop_assert_eq!(&spec.to_builder().build(), &Ok(again.clone()), "{}", text);
            let types = |spec: &Spec| spec.outputs().iter().map(|o| o.dtype()).collect::<Vec<_>>();
            prop_assert_eq!(types(&again), types(&spec));
            prop_assert_eq!(cranefold::Problem::of(&spec).outputs.len(), spec.outputs().len());
            // It is a problem whose parts fit together.
            let problem = cranefold::Problem::of(&spec);
            prop_assert_eq!(problem.to_string().parse::<cranefold::Problem>(), Ok(problem), "{}", text);
        }
    }

    #[test]
    fn arbitrary_text_never_panics(text in ".*") {
        let _ = text.parse::<Spec>();
    }

    #[test]
    fn text_of_the_right_words_never_panics(
        words in prop::collection::vec(prop::sample::select(vec![
            "sum", "lp", "max", "f32", "i8", "bool", "[", "]", "(", ")", "@", ",", "=", "-", "->", " ", "  ", "0", "1", "2",
            "64", "9223372036854775807", "-9223372036854775808", "axes", "keep_dims", "acc", "empty_axes", "lift", "saturate",
            "trunc", "ab", "ba", "p", "eps", "inf", "1e-6", ".", "é", "\u{0}", "\n", "\"", "map=\"", "then=\"", "apply=\"",
            "x0", "x1", "r0", "y0", "d", "+", "/", ":then", "scalar ", ":", "argmax", "softmax", "var", "last", "combiner(",
            "identity=\"0\"", "lift=\"x0\"", "combine=\"a0+b0\"", "commutative", "sqrt(", "select(",
        ]), 0..24)
    ) {
        if let Ok(spec) = words.concat().parse::<Spec>() {
            prop_assert_eq!(spec.to_string().parse(), Ok(spec));
        }
    }
}

#[test]
fn most_random_specs_of_a_kind_are_valid() {
    // So that the round trip above is not vacuous.
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut valid = 0;
    for _ in 0..1000 {
        valid += usize::from(builders().new_tree(&mut runner).expect("a builder").current().build().is_ok());
    }
    assert!(valid > 50, "{valid} of 1000");
    let mut compositions_valid = 0;
    for _ in 0..1000 {
        let text = compositions().new_tree(&mut runner).expect("a builder").current();
        compositions_valid += usize::from(text.parse::<Spec>().is_ok());
    }
    assert!(compositions_valid > 100, "{compositions_valid} of 1000 compositions");
}
