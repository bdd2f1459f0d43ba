//! The same spec in other words is the same problem, and so shares its code.
//!
//! The words are changed one by one: an axis of one element is added, an axis is split into two
//! factors, reduced axes are kept or dropped in the output, axes change places with their strides.

use cranefold::{DType, Layout, Problem, Spec};
use cranefold_fuzz::data::Random;
use proptest::prelude::*;

/// An axis with the strides that both operands have along it.
#[derive(Clone, Copy, Debug)]
struct Axis {
    extent: u64,
    reduced: bool,
    input: i64,
    output: i64,
}

/// A spec whose layouts are given by strides.
#[derive(Clone, Debug)]
struct Words {
    op: &'static str,
    dtype: DType,
    axes: Vec<Axis>,
    keep_dims: bool,
}

impl Words {
    fn spec(&self) -> Spec {
        let shape: Vec<u64> = self.axes.iter().map(|a| a.extent).collect();
        let strides: Vec<i64> = self.axes.iter().map(|a| a.input).collect();
        let kept = self.axes.iter().filter(|a| self.keep_dims || !a.reduced).map(|a| a.output);
        let reduced: Vec<i64> = (0..).zip(&self.axes).filter(|(_, a)| a.reduced).map(|(i, _)| i).collect();
        let mut builder = Spec::builder(self.op)
            .input_at(self.dtype, &shape, Layout::strides(strides))
            .output_layout(Layout::strides(kept.collect::<Vec<i64>>()))
            .axes(reduced);
        if self.keep_dims {
            builder = builder.keep_dims(true);
        }
        builder.build().expect("a valid spec")
    }

    /// An axis of one element, kept or reduced, with strides that mean nothing.
    fn add_unit_axis(&mut self, random: &mut Random) {
        let strides = [0, 1, -7, i64::MAX];
        let mut stride = || strides[random.below(4) as usize];
        let (input, output) = (stride(), stride());
        let at = random.below(self.axes.len() as u64 + 1) as usize;
        self.axes.insert(at, Axis { extent: 1, reduced: random.below(2) == 0, input, output });
    }

    /// An axis of n = a * b elements as two of a and b.
    fn split_axis(&mut self, random: &mut Random) {
        let at = random.below(self.axes.len() as u64) as usize;
        let axis = self.axes[at];
        let factors: Vec<u64> = (2..axis.extent).filter(|f| axis.extent.is_multiple_of(*f)).collect();
        if factors.is_empty() {
            return;
        }
        let inner = factors[random.below(factors.len() as u64) as usize];
        let (input, output) = (axis.input * inner as i64, axis.output * inner as i64);
        self.axes[at] = Axis { extent: axis.extent / inner, input, output, ..axis };
        self.axes.insert(at + 1, Axis { extent: inner, ..axis });
    }

    /// Two axes change places. Those of equal strides keep their order, which the tree goes by.
    fn exchange_axes(&mut self, random: &mut Random) {
        let [a, b] = [(); 2].map(|()| random.below(self.axes.len() as u64) as usize);
        let ties = |axes: &[Axis]| {
            let long: Vec<i64> = axes.iter().filter(|a| a.extent > 1).map(|a| a.input.abs()).collect();
            long.iter().enumerate().any(|(i, s)| long[..i].contains(s))
        };
        if !ties(&self.axes) {
            self.axes.swap(a, b);
        }
    }
}

/// Specs with at least one reduced axis.
fn words() -> impl Strategy<Value = Words> {
    let extent = prop::sample::select(vec![1u64, 2, 3, 4, 6, 7, 12, 30, 36, 64, 65, 100, 128, 210]);
    let axis = (extent, any::<bool>(), 0..3i64, (any::<bool>(), any::<bool>(), prop::bool::weighted(0.1)), any::<u8>());
    let what = prop::sample::select(vec![
        ("sum", DType::F32),
        ("max", DType::F16),
        ("log_sum_exp", DType::F64),
        ("l1", DType::I8),
    ]);
    (what, prop::collection::vec(axis, 1..6), any::<bool>()).prop_map(|((op, dtype), drawn, keep_dims)| {
        let (mut input, mut output) = (1, 1);
        let mut axes: Vec<(u8, Axis)> = vec![];
        for (n, (extent, reduced, gap, (in_back, out_back, repeats), key)) in drawn.into_iter().enumerate() {
            let sign = |back| if back { -1 } else { 1 };
            let reduced = reduced || n == 0;
            let axis = Axis {
                extent,
                reduced,
                input: if repeats { 0 } else { sign(in_back) * input },
                output: sign(out_back) * output,
            };
            if !repeats {
                input = input * extent as i64 + gap;
            }
            if !reduced {
                output = output * extent as i64 + gap / 2;
            }
            axes.push((key, axis));
        }
        axes.sort_by_key(|&(key, _)| key);
        Words { op, dtype, axes: axes.into_iter().map(|(_, axis)| axis).collect(), keep_dims }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn other_words_are_the_same_problem(words in words(), seed: u64, changes in 1..8usize) {
        let spec = words.spec();
        let mut random = Random::new(seed);
        let mut other = words;
        for _ in 0..changes {
            match random.below(4) {
                0 => other.add_unit_axis(&mut random),
                1 => other.split_axis(&mut random),
                2 => other.exchange_axes(&mut random),
                _ => other.keep_dims = !other.keep_dims,
            }
        }
        let other = other.spec();
        prop_assert_eq!(Problem::of(&spec), Problem::of(&other), "{} and {}", spec, other);
    }

    #[test]
    fn another_problem_is_not_the_same(words in words(), seed: u64) {
        // So that the property above is not that all problems are equal.
        let spec = words.spec();
        let mut other = words;
        let moved: Vec<usize> = (0..other.axes.len()).filter(|&i| other.axes[i].extent > 1 && other.axes[i].input != 0).collect();
        if moved.is_empty() {
            return Ok(());
        }
        other.axes[moved[(seed % moved.len() as u64) as usize]].input *= 1000;
        prop_assert_ne!(Problem::of(&spec), Problem::of(&other.spec()), "{}", spec);
    }
}
