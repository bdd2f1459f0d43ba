//! A reduction's bits are its own: no sibling in a region or in a spec of several ops changes them, and neither do
//! outputs that are left out.

use super::list;
use cranefold::ir::region::Body;
use cranefold::ops::{ROWS, Row};
use cranefold::spec::{Operand, Role};
use cranefold::{Compiler, DType, Spec};
use cranefold_fuzz::data::Buffer;
use cranefold_fuzz::execute::Memory;

/// A call of a row: its text in specs of ops, that in regions, and the number of its results.
struct Call {
    ops: String,
    region: String,
    results: usize,
    /// True if it stands alone in specs of ops.
    selects: bool,
}

/// Calls of all rows that stand in regions: with every parameter, and without those that have defaults.
fn calls() -> Vec<Call> {
    let call = |row: &Row, value: f64| {
        let params: Vec<String> = row.params.iter().map(|p| format!("{}={value}", p.name)).collect();
        let list = params.join(",");
        Call {
            ops: if params.is_empty() { row.name.to_string() } else { format!("{}({list})", row.name) },
            region: format!("{}(x{})", row.name, params.iter().map(|p| format!(", {p}")).collect::<String>()),
            results: row.results.len(),
            selects: row.selects,
        }
    };
    let rows = ROWS.iter().filter(|row| row.takes(DType::F32) && !row.applies);
    rows.flat_map(|row| {
        let values: &[f64] = match row.name {
            "quantile" => &[0.3],
            _ if row.params.is_empty() => &[1.0],
            "lp" | "lp_max" | "lp_sum" | "lp_power_p_max" | "lp_power_p_sum" => &[3.0],
            _ => &[0.0, 1.0],
        };
        values.iter().map(move |&value| call(row, value))
    })
    .collect()
}

/// The text of the region of some calls over one operand.
fn region_of(calls: &[&Call], operand: &str, axes: &str) -> String {
    let (mut definitions, mut outputs) = (String::new(), vec![]);
    for (c, call) in calls.iter().enumerate() {
        let names: Vec<String> = (0..call.results).map(|r| format!("v{c}_{r}")).collect();
        definitions += &format!("{} = {}; ", names.join(", "), call.region);
        outputs.extend(names);
    }
    format!("region x:{operand} axes={axes} {{ {definitions}{} }}", outputs.join(", "))
}

/// The outputs of a spec over random elements of like magnitude.
fn run(compiler: &Compiler, text: &str) -> Vec<Buffer> {
    let spec: Spec = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
    let kernel = compiler.compile(&spec).unwrap_or_else(|e| panic!("{text}: {e}"));
    Memory::of(&spec, 3, 5, (0, 0)).run(&kernel)
}

/// Checks that all pairs of calls, as a region and as a spec of ops, have the bits of each call alone.
fn check_pairs(operand: &str, axis: usize, both_orders: bool) {
    let compiler = Compiler::builder().most_kernels(16).build().expect("a compiler");
    let (calls, axes) = (calls(), format!("[{axis}]"));
    let ops_of = |calls: &[&Call]| {
        let ops: Vec<&str> = calls.iter().map(|call| call.ops.as_str()).collect();
        format!("{} {operand} axes={axes}", ops.join(", "))
    };
    let alone: Vec<[Vec<Buffer>; 2]> = calls
        .iter()
        .map(|call| [ops_of(&[call]), region_of(&[call], operand, &axes)].map(|text| run(&compiler, &text)))
        .collect();
    let mut wrong = vec![];
    for (i, a) in calls.iter().enumerate() {
        for (j, b) in calls.iter().enumerate().filter(|&(j, _)| j > i || (both_orders && j < i)) {
            let texts = [ops_of(&[a, b]), region_of(&[a, b], operand, &axes)].into_iter().enumerate();
            for (form, text) in texts.skip(usize::from(a.selects || b.selects)) {
                let expected = alone[i][form].iter().chain(&alone[j][form]);
                let found = run(&compiler, &text);
                assert_eq!(found.len(), a.results + b.results);
                if found.iter().zip(expected).any(|(found, expected)| found.bytes() != expected.bytes()) {
                    wrong.push(text);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} pairs have other bits, the first {:#?}", wrong.len(), &wrong[..wrong.len().min(20)]);
}

#[test]
fn pairs_have_the_bits_of_each_alone() {
    check_pairs("f32[3,1000]", 1, true);
    for extent in [1, 63, 64, 65, 5000] {
        check_pairs(&format!("f32[3,{extent}]"), 1, false);
    }
}

#[test]
fn pairs_of_other_types_have_the_bits_of_each_alone() {
    for dtype in ["f64", "bf16"] {
        for extent in [65, 1000] {
            check_pairs(&format!("{dtype}[3,{extent}]"), 1, false);
        }
    }
}

#[test]
fn pairs_over_an_outer_axis_have_the_bits_of_each_alone() {
    for dtype in ["f32", "f64", "bf16"] {
        check_pairs(&format!("{dtype}[1000,37]"), 0, false);
    }
}

/// Operands and axes whose elements lie in memory in another order than in the slice.
const ORDERS: &[(&str, &str)] = &[
    ("f32[5,7,9]@cba", "[0,1]"),
    ("f32[70,35]@ba", "[0,1]"),
    ("f32[3,67]@aB16b", "[1]"),
    ("f32[70,35]@AB16b4a4b", "[0]"),
    ("f32[70,35]@AB16b4a4b", "[0,1]"),
    ("f32[5,131]@(-131,-1)+654", "[0,1]"),
    ("f32[5,6,131]@(0,131,1)", "[0,2]"),
    ("f32[6,1,300]@(-2,7,-12)+3600", "[0,2]"),
];

#[test]
fn siblings_that_take_positions_do_not_change_the_order() {
    let compiler = Compiler::builder().most_kernels(16).build().expect("a compiler");
    let of = ["sum", "mean", "max", "argmax", "argmin", "var", "log_sum_exp", "mean_pair", "median", "prod"];
    let calls: Vec<Call> =
        calls().into_iter().filter(|call| of.contains(&call.ops.split('(').next().unwrap_or(""))).collect();
    for (operand, axes) in ORDERS {
        let run = |calls: &[&Call]| run(&compiler, &region_of(calls, operand, axes));
        let alone: Vec<Vec<Buffer>> = calls.iter().map(|call| run(&[call])).collect();
        for (i, a) in calls.iter().enumerate() {
            for (j, b) in calls.iter().enumerate().filter(|&(j, _)| j != i) {
                let (found, expected) = (run(&[a, b]), alone[i].iter().chain(&alone[j]));
                let same = found.iter().zip(expected).all(|(found, expected)| found.bytes() == expected.bytes());
                assert!(same, "{}", region_of(&[a, b], operand, axes));
            }
        }
    }
}

/// Returns true if a text has a word.
fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == word)
}

/// The text of the region with some of its outputs, without the definitions and operands that only others need.
fn with_outputs(spec: &Spec, body: &Body, kept: &[usize]) -> String {
    let (definitions, outputs) = body.texts();
    let mut text: String = kept.iter().map(|&o| outputs[o].as_str()).collect::<Vec<_>>().join(", ");
    for definition in definitions.iter().rev() {
        let (names, _) = definition.split_once(" = ").expect("names and a value");
        if names.split(", ").any(|name| has_word(&text, name)) {
            text = format!("{definition}; {text}");
        }
    }
    for (new, old) in kept.iter().enumerate() {
        text = text.replace(&format!("old({old})"), &format!("old({new})"));
    }
    let used = body.inputs.iter().zip(spec.inputs()).filter(|(input, _)| has_word(&text, &input.name));
    let (scalars, operands): (Vec<_>, Vec<_>) = used.partition(|(_, o)| matches!(o.role(), Role::Scalar(_)));
    let operand = |(name, o): (&str, &Operand)| {
        let at = if o.layout().is_row_major() { String::new() } else { format!("@{}", o.layout()) };
        format!("{name}:{}{:?}{at}", o.dtype(), o.shape())
    };
    let operands: Vec<String> = operands.iter().map(|(input, o)| operand((&input.name, o))).collect();
    let scalars: String = scalars.iter().map(|(i, o)| format!(" scalar {}:{}", i.name, o.dtype())).collect();
    let order = spec.order().word();
    format!("region {} axes={:?}{scalars} order={order} {{ {text} }}", operands.join(", "), spec.axes())
}

/// The memory of a region with some of the outputs of another: the same elements in operands of the same name, and the
/// same old elements.
fn memory_of(part: &Spec, body: &Body, whole: &Memory, kept: &[usize]) -> Memory {
    let names = part.body().expect("a region").inputs.iter().map(|input| &input.name);
    let place = |name: &String| body.inputs.iter().position(|input| input.name == *name).expect("an input of both");
    Memory {
        inputs: names.map(|name| whole.inputs[place(name)].clone()).collect(),
        outputs: kept.iter().map(|&o| whole.outputs[o].clone()).collect(),
    }
}

#[test]
fn outputs_that_are_left_out_change_no_bit_of_the_others() {
    let compiler = Compiler::host().expect("a compiler");
    let mut checked = 0;
    for (name, spec) in list().into_iter().filter(|(_, spec)| spec.outputs().len() > 1) {
        let body = spec.body().expect("a region");
        let memory = Memory::of(&spec, 3, 5, (0, 0));
        let all = memory.run(&compiler.compile(&spec).expect("a kernel"));
        for subset in 1..(1 << all.len()) - 1 {
            let kept: Vec<usize> = (0..all.len()).filter(|o| subset >> o & 1 == 1).collect();
            let text = with_outputs(&spec, body, &kept);
            let part: Spec = text.parse().unwrap_or_else(|e| panic!("{name}: {e}\n{text}"));
            assert_eq!(part.shape(), spec.shape(), "{name}: {text}");
            let kernel = compiler.compile(&part).unwrap_or_else(|e| panic!("{name}: {e}\n{text}"));
            let found = memory_of(&part, body, &memory, &kept).run(&kernel);
            for (found, &o) in found.iter().zip(&kept) {
                assert_eq!(found.bytes(), all[o].bytes(), "{name}: output {o} alone has other bits\n{text}");
            }
            checked += 1;
        }
    }
    assert!(checked > 50, "{checked} subsets");
}

/// Rows of one block, whose deviation takes the sum of the mean beside it; the same over windows and columns; and rows of
/// several blocks, the last of which is shorter, where each deviation has its own and a sum takes the lanes of another.
#[test]
fn a_first_phase_that_a_sibling_has_is_computed_once() {
    let compiler = Compiler::host().expect("a compiler");
    for (operand, axes, outputs, visits) in [
        ("f32[5,768]", "[1]", "centered(x), std(x)", 3),
        ("f64[5,300]", "[1]", "centered(x), std(x)", 3),
        ("bf16[4,100,6]", "[1]", "centered(x), std(x)", 3),
        ("f32[2,3,400,2]", "[0,2]", "centered(x), std(x)", 6),
        ("f32[3,70000]", "[1]", "centered(x), std(x)", 8),
        ("f32[3,70000]", "[1]", "centered(x), sum(x)", 4),
        ("f32[3,70000]", "[1]", "sum(x), std(x)", 4),
        ("f64[2,3,9000]", "[0,2]", "mean(x), var(x)", 4),
    ] {
        let spec: Spec = format!("region x:{operand} axes={axes} {{ {outputs} }}").parse().expect(operand);
        let kernel = compiler.compile(&spec).expect(operand);
        let nest = kernel.dump("nest").expect("a nest");
        // The visit that writes has no steps.
        let steps = nest.lines().filter(|line| line.trim_start().starts_with("for k")).count();
        assert_eq!(steps, visits, "{spec}\n{nest}");
        let found = Memory::of(&spec, 3, 7, (0, 0)).run(&kernel);
        for (found, output) in found.iter().zip(outputs.split(", ")) {
            let alone: Spec = format!("region x:{operand} axes={axes} {{ {output} }}").parse().expect(output);
            let alone = Memory::of(&alone, 3, 7, (0, 0)).run(&compiler.compile(&alone).expect(output));
            assert_eq!(found.bytes(), alone[0].bytes(), "{spec}: {output}");
        }
    }
}
