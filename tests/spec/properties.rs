//! Random requests and random text.

use cranefold::spec::{Builder, Rounding};
use cranefold::{DType, Layout, Reduction, ops};
use proptest::prelude::*;

fn layouts(rank: usize) -> impl Strategy<Value = Layout> {
    let tag = Just((0..rank as u8).map(|axis| char::from(b'a' + axis)).collect::<Vec<char>>()).prop_shuffle();
    let tag = tag.prop_map(|letters| match letters.is_empty() {
        true => Layout::RowMajor,
        false => Layout::tag(&letters.into_iter().collect::<String>()).expect("a permutation"),
    });
    let strides = prop::collection::vec(-40i64..40, rank).prop_map(Layout::strides);
    prop_oneof![Just(Layout::RowMajor), tag, strides]
}

/// Requests of every op, most of them valid.
fn requests() -> impl Strategy<Value = Builder> {
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
            let mut request = Reduction::builder(op).input_at(dtype, &shape, layout);
            let named = ops::find(op).expect("a row").params.iter().zip([p, eps]);
            for (param, value) in named {
                request = request.param(param.name, value);
            }
            if let Some(axes) = axes {
                request = request.axes(axes.into_iter().map(|axis| if negative { axis - rank } else { axis }));
            }
            if keep {
                request = request.keep_dims();
            }
            request = match lift {
                None => request,
                Some(true) => request.empty_axes_lift(),
                Some(false) => request.empty_axes_identity(),
            };
            request = match round {
                1 => request.round(Rounding::Trunc),
                2 => request.round(Rounding::HalfEven),
                _ => request,
            };
            if let Some(acc) = acc.filter(|acc| acc.is_float()) {
                request = request.accumulator(acc);
            }
            if let Some(out) = out {
                request = request.output(out);
            }
            match out_layout {
                Some(layout) => request.output_layout(layout),
                None => request,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn requests_print_and_read_back(request in requests()) {
        // Requests that are refused are the concern of other tests.
        if let Ok(spec) = request.build() {
            let text = spec.to_string();
            prop_assert_eq!(text.parse::<Reduction>(), Ok(spec), "{}", text);
        }
    }

    #[test]
    fn arbitrary_text_never_panics(text in ".*") {
        let _ = text.parse::<Reduction>();
    }

    #[test]
    fn text_of_the_right_words_never_panics(
        words in prop::collection::vec(prop::sample::select(vec![
            "sum", "lp", "max", "f32", "i8", "bool", "[", "]", "(", ")", "@", ",", "=", "-", "->", " ", "  ", "0", "1", "2",
            "64", "9223372036854775807", "-9223372036854775808", "axes", "keep_dims", "acc", "empty_axes", "lift", "saturate",
            "trunc", "ab", "ba", "p", "eps", "inf", "1e-6", ".", "é", "\u{0}", "\n",
        ]), 0..24)
    ) {
        if let Ok(spec) = words.concat().parse::<Reduction>() {
            prop_assert_eq!(spec.to_string().parse(), Ok(spec));
        }
    }
}

#[test]
fn most_random_requests_of_a_kind_are_valid() {
    // So that the round trip above is not vacuous.
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut valid = 0;
    for _ in 0..1000 {
        valid += usize::from(requests().new_tree(&mut runner).expect("a request").current().build().is_ok());
    }
    assert!(valid > 50, "{valid} of 1000");
}
