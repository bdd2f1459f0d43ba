//! What layouts may show: those of outputs nothing, those of inputs the order of a reduction alone.

use crate::cases;
use cranefold::spec::Operand;
use cranefold::{Compiler, DType, Layout, Problem, Scalar, Spec, SpecError};
use cranefold_fuzz::data::{Buffer, Random, elements};
use cranefold_fuzz::execute::{Memory, places, places_in};
use cranefold_fuzz::specs::{AxisPlace, Case, Form, layout};
use proptest::prelude::*;
use std::sync::LazyLock;

static COMPILER: LazyLock<Compiler> = LazyLock::new(|| Compiler::host().expect("this machine"));

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_layouts_of_outputs_do_not_show(case in cases(1500, 5), seed: u64) {
        check_outputs(&case, &mut Random::new(seed))?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_layouts_of_outputs_of_many_elements_do_not_show(case in cases(30_000, 4), seed: u64) {
        check_outputs(&case, &mut Random::new(seed))?;
    }
}

fn check_outputs(case: &Case, random: &mut Random) -> Result<(), TestCaseError> {
    let spec = case.spec();
    let Some(other) = with_other_outputs(&spec, random) else { return Ok(()) };
    let memory = Memory::of(&spec, case.kind, case.seed, case.offsets);
    let mut moved = Memory::of(&other, case.kind, case.seed, case.offsets);
    for (o, (from, to)) in memory.outputs.iter().zip(&mut moved.outputs).enumerate() {
        let dtype = spec.outputs()[o].dtype();
        for (from_place, to_place) in places(&spec, o).into_iter().zip(places(&other, o)) {
            Scalar::read(dtype, from.bytes(), from_place).write(to.bytes_mut(), to_place);
        }
    }
    let naive = |spec: &Spec, memory: &Memory| {
        let nest = cranefold::lower::lower(&Problem::of(spec), "naive");
        logical(spec, &memory.interpreted(&nest))
    };
    let native = |spec: &Spec, memory: &Memory| {
        let kernel = COMPILER.compile(spec).map_err(|e| TestCaseError::fail(e.to_string()))?;
        Ok::<_, TestCaseError>(logical(spec, &memory.run(&kernel)))
    };
    let expected = naive(&spec, &memory);
    prop_assert!(naive(&other, &moved) == expected, "naive nests of {spec} and {other} give other bits");
    prop_assert!(native(&spec, &memory)? == expected, "native code of {spec} gives other bits");
    prop_assert!(native(&other, &moved)? == expected, "native code of {other} gives other bits");
    Ok(())
}

/// The same spec, each output elsewhere; none where its blocks would make too many boxes.
fn with_other_outputs(spec: &Spec, random: &mut Random) -> Option<Spec> {
    let text = spec.to_string();
    let head = text.rsplit_once(" -> ").map_or(text.as_str(), |(head, _)| head);
    let output = |o: &Operand| {
        let layout = match random.below(5) {
            0 => Layout::any(),
            _ => some_layout(random, o.shape()),
        };
        let at = if layout.is_row_major() { "" } else { "@" };
        format!("{}{at}{layout}", o.dtype())
    };
    let outputs: Vec<String> = spec.outputs().iter().map(output).collect();
    built(&format!("{head} -> {}", outputs.join(", ")))
}

/// Any layout without repeated elements, most of them blocked.
fn some_layout(random: &mut Random, shape: &[u64]) -> Layout {
    let forms = [Form::RowMajor, Form::Tag, Form::Strides, Form::Blocked, Form::Blocked, Form::BlockedStrides];
    let form = random.pick(&forms);
    let axes: Vec<(u64, AxisPlace)> = shape.iter().map(|&extent| (extent, AxisPlace::some(random))).collect();
    layout(form, &axes, false)
}

fn built(text: &str) -> Option<Spec> {
    match text.parse::<Spec>() {
        Ok(spec) => Some(spec),
        Err(error) if matches!(error.kind(), SpecError::TooManyBoxes { .. }) => None,
        Err(error) => panic!("{text}: {error}"),
    }
}

/// The bits of all outputs in row-major order.
fn logical(spec: &Spec, outputs: &[Buffer]) -> Vec<Vec<u64>> {
    let one = |(o, output): (usize, &Buffer)| {
        let dtype = spec.outputs()[o].dtype();
        places(spec, o).into_iter().map(|place| Scalar::read(dtype, output.bytes(), place).bits()).collect()
    };
    outputs.iter().enumerate().map(one).collect()
}

/// Ops whose result no order of the elements can change, and types of elements.
const EXACT: &[(&str, &[DType])] = &[
    ("sum", &[DType::I8, DType::U16, DType::I32, DType::U64]),
    ("prod", &[DType::U8, DType::I64]),
    ("mean", &[DType::I8, DType::I64]),
    ("l1", &[DType::I16]),
    ("l2", &[DType::I32]),
    ("sum_squares", &[DType::I8]),
    ("min", &[DType::F16, DType::F32, DType::F64, DType::I8, DType::Bool]),
    ("max", &[DType::Bf16, DType::F32, DType::F64, DType::U64, DType::Bool]),
    ("linf", &[DType::F32, DType::I32]),
    ("ptp", &[DType::F32, DType::I16]),
    ("bit_xor", &[DType::U32, DType::Bool]),
    ("count_nonzero", &[DType::F32, DType::I8]),
    ("argmax", &[DType::F32, DType::F16, DType::I8]),
    ("argmax(last)", &[DType::F64, DType::U8]),
    ("argmin", &[DType::F64, DType::Bool]),
    ("argmin(last)", &[DType::F32, DType::I64]),
    ("median", &[DType::F32, DType::I8]),
    ("quantile(q=0.3)", &[DType::F64]),
    ("mode", &[DType::F16, DType::U8]),
    ("linf_normalize_max(eps=0.5)", &[DType::F32]),
    (
        r#"combiner(identity="i64(1), i64(0)", lift="i64(x0)*2 + 1, i64(x0) - i", combine="a0*b0, a1*b0 + b1")"#,
        &[DType::I32, DType::U8],
    ),
];

const EXTENTS: &[u64] = &[1, 2, 3, 5, 7, 8, 11, 16, 17, 33, 40, 65, 130];

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_layouts_of_inputs_do_not_show_in_exact_results(op in prop::sample::select(EXACT), kind in 0..8u8, seed: u64) {
        let random = &mut Random::new(seed);
        let dtype = random.pick(op.1);
        let mut left = 4000;
        let rank = 1 + random.below(4);
        let shape: Vec<u64> = (0..rank).map(|_| {
            let extent = random.pick(EXTENTS).min(left);
            left /= extent;
            extent
        }).collect();
        let all: Vec<u64> = (0..rank).collect();
        let axes: Vec<u64> = all.iter().copied().filter(|_| random.below(2) == 0).collect();
        let axes = if axes.is_empty() { vec![random.below(rank)] } else { axes };
        let keep = random.pick(&["", " keep_dims"]);
        let plain: Spec = format!("{} {dtype}{shape:?} axes={axes:?}{keep}", op.0).parse().expect("a spec");
        let layout = some_layout(random, &shape);
        let at = if layout.is_row_major() { "" } else { "@" };
        let Some(moved) = built(&format!("{} {dtype}{shape:?}{at}{layout} axes={axes:?}{keep}", op.0)) else {
            return Ok(());
        };
        let moved = with_other_outputs(&moved, random).unwrap_or(moved);
        let count = shape.iter().product::<u64>() as usize;
        let values = elements(dtype, count, kind, seed);
        let run = |spec: &Spec| {
            let mut memory = Memory::of(spec, kind, seed, (0, 0));
            for (n, place) in places_in(&spec.inputs()[0], &shape).into_iter().enumerate() {
                Scalar::read(dtype, &values, n).write(memory.inputs[0].bytes_mut(), place);
            }
            let kernel = COMPILER.compile(spec).map_err(|e| TestCaseError::fail(e.to_string()))?;
            Ok::<_, TestCaseError>(logical(spec, &memory.run(&kernel)))
        };
        prop_assert_eq!(run(&moved)?, run(&plain)?, "{} and {}, data {} of {}", moved, plain, kind, seed);
    }
}
