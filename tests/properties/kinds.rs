//! Random regions are of all kinds: each kind is a fair share of them.

use cranefold::ir::region::Value;
use cranefold::spec::{Order, Role};
use cranefold::{DType, Spec};
use cranefold_fuzz::data::Random;
use cranefold_fuzz::regions::RegionCase;
use std::collections::BTreeMap;

/// The number of random regions.
const REGIONS: u64 = 1000;

/// The kinds that a region is of.
fn kinds(spec: &Spec) -> Vec<String> {
    let body = spec.body().expect("a region");
    let mut kinds = vec![];
    let mut add = |is: bool, kind: &str| kinds.extend(is.then(|| kind.to_string()));
    let stages = body.stages().reductions.len();
    add(stages >= 2, "two stages");
    add(stages >= 4, "four stages");
    let operands = || spec.inputs().iter().filter(|input| *input.role() == Role::Element);
    add(operands().any(|input| input.shape() != spec.shape()), "a broadcast");
    add(operands().any(|input| !input.layout().is_row_major()), "a layout");
    add(operands().any(|input| !input.placement().blocks.is_empty()), "a layout in blocks");
    add(operands().any(|input| input.placement().strides.iter().any(|&stride| stride < 0)), "an axis backwards");
    add(spec.inputs().iter().any(|input| matches!(input.role(), Role::Scalar(_))), "a scalar");
    add(spec.order() == Order::Logical, "order=logical");
    add(spec.accumulator() == Some(DType::F64), "f64 accumulators");
    add(spec.keep_dims(), "keep_dims");
    add(spec.rank() >= 3, "three axes");
    add((0..spec.outputs().len()).any(|o| spec.reads_old(o)), "old elements");
    add((0..spec.outputs().len()).any(|o| spec.may_replace(o, 0)), "an output in the place of an input");
    let is_total = |value: &Value| matches!(value, Value::Reduction(reduction) if reduction.over.is_some());
    add(body.definitions.iter().any(|d| is_total(&d.value)), "totals");
    add(body.definitions.iter().any(|d| matches!(d.value, Value::Position(_))), "positions");
    let selects = |call: &cranefold::ir::ops::OpCall| call.as_row().is_some_and(|row| row.selects);
    add(spec.reducers().iter().any(selects), "selections");
    for dtype in [DType::F32, DType::F64, DType::Bf16, DType::F16, DType::I8, DType::I32, DType::I64, DType::Bool] {
        add(operands().any(|input| input.dtype() == dtype), &format!("inputs of {dtype}"));
    }
    for dtype in [DType::F32, DType::Bf16, DType::I8, DType::I64] {
        add(spec.outputs().iter().any(|output| output.dtype() == dtype), &format!("outputs of {dtype}"));
    }
    kinds
}

#[test]
fn random_regions_are_of_all_kinds() {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for seed in 0..REGIONS {
        let mut random = Random::new(seed);
        let bytes: Vec<u8> = (0..RegionCase::BYTES).map(|_| random.below(256) as u8).collect();
        kinds(&RegionCase::of(&bytes, 1500).spec()).into_iter().for_each(|kind| *counts.entry(kind).or_insert(0) += 1);
    }
    for (kind, count) in &counts {
        println!("{:5.1} % of random regions have {kind}", 100.0 * *count as f64 / REGIONS as f64);
        assert!(count * 50 >= REGIONS, "{count} of {REGIONS} random regions have {kind}");
    }
    assert_eq!(counts.len(), KINDS, "{:?}", counts.keys());
}

/// The number of kinds.
const KINDS: usize = 28;
