//! Nests that are given: what a dump prints after any stage, and what someone has edited, gives code with the bits of the
//! interpreter.

use cranefold::ir::{Nest, verify};
use cranefold::lower::lower;
use cranefold::passes::{PASSES, RunsOn};
use cranefold::schedule::{Bounds, Decided};
use cranefold::{Compiler, Error, Input, Options, Output, Problem, Schedule, ScheduleError, Spec, Vectors, pipeline};
use cranefold_fuzz::nests::{agrees, native};

const WIDTHS: [u32; 4] = [512, 256, 128, 0];

/// Ops, element types and layouts whose nests differ.
const SPECS: &[&str] = &[
    "sum f32[4,9000] axes=[1]",
    "sum f32[40,30] axes=[0]",
    "sum i8[9,1000] axes=[1] -> i32",
    "mean f16[3,700] axes=[1]",
    "var bf16[5,3,77] axes=[0,2]",
    "max f32[7,300] axes=[1]",
    "min i64[3,70]@ba axes=[1]",
    "argmax f32[6,500] axes=[1]",
    "argmin i16[500,6] axes=[0]",
    "prod u8[3,200] axes=[1]",
    "any bool[4,130] axes=[1]",
    "l2 f64[20,7]@(7,1) axes=[0]",
    "log_sum_exp f32[3,200] axes=[1]",
    "softmax f32[5,67] axes=[1]",
    "median i8[3,99] axes=[1]",
    "mode f32[40]",
    "layer_norm f32[4,48] axes=[1]",
    "sum, max f32[4,5]@ba axes=[1]",
    "mean f32[2,20,7]@aBc16b axes=[0,2] -> @any",
    "sum f32[4,5], f32[1]:then scalar s:f32 axes=[1] then=\"r0*s + y0 + d\" -> f16",
    "combiner(identity=\"0, i64(0)\", lift=\"f32(x0), i\", combine=\"a0+b0, b1\", finish=\"a1, a0/n\", commutative) f32[900]",
    "sum f32[0,4] axes=[0]",
    "argmax f32[20,2,5,3] axes=[1,3]",
    "softmax bf16[23,2,6,2] axes=[1,3]",
    "max i8[60,3,4] axes=[1]",
    "var f64[9,16,5] axes=[1]",
    "softmax f32[9,16,3] axes=[1]",
];

fn compiler() -> Compiler {
    Compiler::host().expect("this machine")
}

fn problem(spec: &str) -> Problem {
    Problem::of(&spec.parse::<Spec>().unwrap_or_else(|e| panic!("{spec}: {e}")))
}

fn at_most(width: u32) -> Options {
    Options { schedule: None, width: Some(width) }
}

/// The nests of a spec after each stage, in vectors of so many bits, those that are equal once.
fn stages(spec: &str, width: u32) -> Vec<(&'static str, Nest)> {
    let decided = Decided::of(problem(spec), None, Bounds::new(Vectors::WIDEST).at_most(width)).expect("a choice");
    let mut stages: Vec<(&str, Nest)> = vec![];
    for (stage, mut program) in pipeline::stages(&decided).unwrap_or_else(|e| panic!("{spec}: {e}")) {
        let nest = program.nests.remove(0);
        if stages.last().is_none_or(|(_, last)| *last != nest) {
            stages.push((stage, nest));
        }
    }
    stages
}

/// The code of a nest, read from its text, in vectors of every width.
fn is_made(compiler: &Compiler, what: &str, text: &str) {
    let nest: Nest = text.parse().unwrap_or_else(|e| panic!("{what}: {e}\n{text}"));
    verify(&nest).unwrap_or_else(|e| panic!("{what}: {e}\n{nest}"));
    for (seed, width) in WIDTHS.into_iter().enumerate() {
        for kind in [5, seed as u8] {
            match native(compiler, &nest, &at_most(width), kind, seed as u64) {
                Ok(true) => {}
                Ok(false) => panic!("{what}: {width} bits have no form\n{nest}"),
                Err(error) => panic!("{what}: {error}\n{nest}"),
            }
        }
    }
}

#[test]
fn the_nest_of_every_stage_is_made_native() {
    let compiler = compiler();
    for spec in SPECS {
        for width in WIDTHS {
            for (stage, nest) in stages(spec, width) {
                is_made(&compiler, &format!("{spec}, {width} bits, after {stage}"), &nest.to_string());
            }
        }
    }
}

#[test]
fn problems_are_made_native() {
    let compiler = compiler();
    for spec in SPECS {
        let problem: Problem = problem(spec).to_string().parse().expect("a problem reads back");
        let naive = lower(&problem, "naive");
        for (seed, width) in WIDTHS.into_iter().enumerate() {
            let kernel = compiler.compile_problem(&problem, &at_most(width)).unwrap_or_else(|e| panic!("{spec}: {e}"));
            agrees(&kernel, &naive, 5, seed as u64).unwrap_or_else(|e| panic!("{spec}, {width} bits: {e}"));
        }
    }
}

/// The code of a spec's problem is the spec's.
#[test]
fn a_problem_shares_the_code_of_its_specs() {
    let compiler = compiler();
    let spec: Spec = "sum f32[64,65] axes=[1]".parse().expect("a spec");
    let of_spec = compiler.compile(&spec).expect("a kernel");
    let of_problem = compiler.compile_problem(&Problem::of(&spec), &Options::default()).expect("a kernel");
    assert!(of_problem.shares_code(&of_spec));
    assert_eq!((of_problem.spec(), of_spec.spec()), (None, Some(&spec)));
    let again = compiler.compile_problem(&Problem::of(&spec), &Options::default()).expect("a kernel");
    assert_eq!(again.keyed_spec(), of_problem.keyed_spec());
    assert_eq!(compiler.statistics().compiles, 1);
}

/// A text and its replacement.
type Edit = (&'static str, &'static str);

/// A spec, a stage of its nest, and text of it replaced by other text, wherever it stands.
const EDITS: &[(&str, &str, &[Edit])] = &[
    // Another order of loops, and of elements.
    (
        "sum f32[40,30] axes=[0]",
        "nest",
        &[
            ("for k1 in 0..20 seq", "@"),
            ("for l2 in 0..2 parallel", "for k1 in 0..20 seq"),
            ("@", "for l2 in 0..2 parallel"),
        ],
    ),
    (
        "sum f32[40,30] axes=[0]",
        "nest",
        &[("for k1 in 0..20 seq", "for k1 in 0..10 seq"), ("+ 30*l2]", "- 30*l2 + 300]")],
    ),
    // Fewer elements of each slice.
    ("sum f32[4,40] axes=[1]", "nest", &[("in 0..40", "in 0..24"), ("over 40", "over 24")]),
    // Another operation.
    ("sum f32[4,9000] axes=[1]", "nest", &[("add", "max")]),
    ("sum f32[4,9000] axes=[1]", "legalize", &[("add", "sub")]),
    ("sum i8[9,1000] axes=[1] -> i32", "legalize", &[("add", "sub")]),
    ("max f32[7,300] axes=[1]", "unroll", &[("max", "mul")]),
    // Loops that were parallel in order.
    ("sum f32[4,9000] axes=[1]", "nest", &[("parallel", "seq")]),
    ("softmax f32[5,67] axes=[1]", "nest", &[("parallel", "seq")]),
    // Lanes as loops, and other lanes than vectors have.
    ("sum f32[4,9000] axes=[1]", "legalize", &[("lanes", "parallel")]),
    ("var bf16[5,3,77] axes=[0,2]", "legalize", &[("lanes", "seq")]),
    // Other types of the elements.
    ("sum f32[4,9000] axes=[1]", "nest", &[("f32", "f64")]),
    ("sum f32[4,9000] axes=[1]", "legalize", &[("f32", "f64")]),
    // A combination that does not commute.
    ("sum f32[4,9000] axes=[1]", "nest", &[("add(v0, v1)", "sub(v0, v1)")]),
    ("sum f32[4,9000] axes=[1]", "stream", &[("add(v0, v1)", "sub(v0, v1)")]),
];

#[test]
fn nests_that_were_edited_are_made_native() {
    let compiler = compiler();
    for (spec, stage, edits) in EDITS {
        for width in WIDTHS {
            let Some((_, nest)) = stages(spec, width).into_iter().rev().find(|(name, _)| name == stage) else {
                continue;
            };
            let text = edits.iter().fold(nest.to_string(), |text, (from, to)| text.replace(from, to));
            is_made(&compiler, &format!("{spec}, {width} bits, after {stage}, {edits:?}"), &text);
        }
    }
}

/// Nests that no spec has. The bits of a vector form that no op and no expression uses are compared here alone.
const OTHERS: &[&str] = &[
    // Lanes that are no power of two, more than vectors have, and in a tile.
    "nest \"\" { in x0: f32[21] out x1: f32[21] for l0 in 0..21 lanes { x1[l0] = neg(x0[l0]) } }",
    "nest \"\" { in x0: u8[7] out x1: u8[7] for l0 in 0..7 lanes { x1[l0] = add(x0[l0], 3:u8) } }",
    "nest \"\" { in x0: f32[13] out x1: f32[13] wide { for l0 in 0..13 lanes { x1[l0] = sqrt(x0[l0]) } } }",
    "nest \"\" { in x0: f32[40] out x1: f32[40] acc a0: f32[40] = 1.0 wide { for l0 in 0..5 lanes { for l1 in 0..8 lanes { a0[8*l0 + l1] = x0[8*l0 + l1] } } for e2 in 0..40 parallel { x1[e2] = a0[e2] } } }",
    // Significands from 1/2 to 2, times powers of two of the ranges that the operations take.
    "nest \"\" { in x0: u32[80] in x1: u8[80] out x2: f32[80] for l0 in 0..80 parallel { x2[l0] = scale(bits_f32(add(and(x0[l0], 2164260863:u32), 1056964608:u32)), sub(nearest(mul(f32(x1[l0]), 1.9765625:f32)), 252.0:f32)) } }",
    "nest \"\" { in x0: u32[80] in x1: u8[80] out x2: f32[80] for l0 in 0..80 parallel { x2[l0] = scale_down(bits_f32(add(and(x0[l0], 2164260863:u32), 1056964608:u32)), neg(f32(and(x1[l0], 127:u8)))) } }",
    // Lanes without a form in vectors.
    "nest \"\" { in x0: i32[8] out x1: i32[8] for l0 in 0..8 lanes { x1[l0] = div(x0[l0], 3:i32) } }",
    "nest \"\" { in x0: f32[32] out x1: f32[8] acc a0: f32[32] = 0.0 for e1 in 0..32 parallel { a0[e1] = x0[e1] } for l0 in 0..8 lanes { x1[l0] = a0[3*l0 + 1] } }",
    // Loops that never run name what there is not.
    "nest \"\" { in x0: f32[4] out x1: f32[4] for i0 in 0..0 parallel { let v0 = x0[1000000000000] x1[i0] = v0 } x1[0] = x0[3] }",
    "nest \"\" { in x0: f32[4] out x1: f32[4] acc a0: f32[1] = 2.0 for k0 in 0..0 seq { a0[0] = add(a0[0], x0[k0]) } for e1 in 0..0 parallel { x1[e1] = a0[0] } x1[2] = a0[0] }",
    // A merge without loops over blocks, of two accumulators, and more than its result read after it; a fold likewise.
    "nest \"\" { in x0: i32[33] out x1: i32[33] def f(v0: i32, v1: i32) -> i32 { sub(v0, v1) } acc a0: i32[33] = 0 for e0 in 0..33 parallel { a0[e0] = x0[e0] } merge a0 by f over 11 of 3 for e1 in 0..33 parallel { x1[e1] = a0[e1] } }",
    "nest \"\" { in x0: f32[10] out x1: f32[10] def f(v0: f32, v1: i8, v2: f32, v3: i8) -> f32, i8 { sub(v0, v2), sub(v3, v1) } acc a0: f32[10] = 0.0 acc a1: i8[10] = 7 for e0 in 0..10 seq { a0[e0] = x0[e0] } merge a0, a1 by f over 5 of 2 x1[0] = a0[0] x1[1] = f32(a1[1]) }",
    "nest \"\" { in x0: f32[21] out x1: f32[21] def f(v0: f32, v1: f32) -> f32 { sub(v0, v1) } acc a0: f32[21] = 0.0 for e0 in 0..21 seq { a0[e0] = x0[e0] } fold a0 by f over 7 of 8 by 3 for e1 in 0..21 parallel { x1[e1] = a0[e1] } }",
    "nest \"\" { in x0: f32[21] out x1: f32[21] def f(v0: f32, v1: f32) -> f32 { sub(v0, v1) } acc a0: f32[21] = 0.0 for b2 in 0..3 seq { for e0 in 0..21 seq { a0[e0] = add(a0[e0], x0[e0]) } fold a0 by f over 7 of 8 by 3 x1[b2] = a0[2] } }",
    // What is carried and picked by any letter, and read after a tile.
    "nest \"\" { in x0: f32[64] out x1: f32[64] for i0 in 0..7 seq { carry e5 = i0 for k1 in 0..64 parallel { x1[k1] = add(x0[k1], f32(i32[e5])) } x1[0] = x0[e5] } }",
    "nest \"\" { in x0: u8[64] out x1: f32[64] pick l9 = x0[0] to 31 for e1 in 0..32 parallel { x1[e1] = f32(x0[l9 + e1]) } x1[40] = f32(x0[l9]) }",
    // The same variable picked and carried in loops of one iteration, and in jammed ones.
    "nest \"\" { in x0: i32[64] out x1: i32[64] for i0 in 0..1 parallel { pick s0 = x0[0] to 3 x1[s0] = x0[1] } for i0 in 0..1 parallel { pick s0 = x0[1] to 3 x1[s0 + 8] = x0[s0] } for k1 in 0..3 seq { carry s0 = k1 x1[s0 + 16] = x0[s0] } }",
    "nest \"\" { in x0: i32[64] out x1: i32[64] for j0 in 0..3 seq { carry q1 = j0 x1[q1] = x0[j0] misalign s2 = x0[j0] in 16 x1[s2 + 3] = x0[q1] for j3 in 0..2 seq { pick s4 = x0[j0] to 7 x1[s4 + 8] = x0[s4] } } }",
    // Numbers of one letter again in another loop; an output that is read.
    "nest \"\" { in x0: f32[64] inout x1: f32[64] for i0 in 0..64 parallel { x1[i0] = add(x1[i0], x0[i0]) } for i0 in 0..32 parallel { x1[2*i0] = mul(x1[2*i0 + 1], x0[i0]) } for i0 in 0..8 seq { x1[i0 + 1] = add(x1[i0], x1[i0 + 2]) } }",
    // Rows that are many, in any order of the indices.
    "nest \"\" { in x0: f32[900] out x1: f32[1] acc a0: f32[3] = 0.0 for j0 in 0..300 seq { a0[0] = add(a0[0], x0[3*j0]) a0[2] = sub(a0[0], x0[3*j0 + 2]) a0[0] = mul(a0[2], 0.5:f32) } x1[0] = add(a0[0], a0[2]) }",
    // Transposes that no pass makes: more lanes than a vector has, few, odd, backwards, on the spot, apart, and of each size.
    "nest \"\" { in x0: f32[200] out x1: f32[128] acc a0: f32[128] = 0.0 transpose a0 = x0[0] over 64 by 3 at 0, 2 for e1 in 0..128 parallel { x1[e1] = a0[e1] } }",
    "nest \"\" { in x0: f32[200] out x1: f32[128] wide { acc a0: f32[128] = 0.0 transpose a0 = x0[0] over 64 by 3 at 0, 2 within 200 for e1 in 0..128 parallel { x1[e1] = a0[e1] } } }",
    "nest \"\" { in x0: f64[64] out x1: f64[12] wide { acc a0: f64[20] = 2.0 transpose a0 = x0[60] over 3 by -7 at 0, 1, 3 for e1 in 0..12 parallel { x1[e1] = a0[e1] } } }",
    "nest \"\" { in x0: i8[64] out x1: i8[35] wide { acc a0: i8[35] = 1 transpose a0 = x0[5] over 7 by 5 at 0, 1, 2, 3, 4 for l1 in 0..35 lanes { x1[l1] = a0[l1] } } }",
    "nest \"\" { in x0: u16[64] out x1: u16[6] wide { acc a0: u16[6] = 1 transpose a0 = x0[9] over 2 by 0 at 0, 1, 40 for l1 in 0..6 lanes { x1[l1] = a0[l1] } } }",
    "nest \"\" { in x0: i64[64] out x1: i64[16] for i0 in 0..2 parallel { acc a0: i64[8] = 1 transpose a0 = x0[30*i0] over 4 by 1 at 0, 20 for e1 in 0..8 parallel { x1[8*i0 + e1] = a0[e1] } } }",
    "nest \"\" { in x0: f16[400] out x1: f16[1] acc a0: f16[1] = 1.0 transpose a0 = x0[399] over 1 by 3 at 0 x1[0] = a0[0] }",
    // Transposed stores of the same kinds: backwards, apart, and to an output that is read.
    "nest \"\" { in x0: f32[64] out x1: f32[64] acc a0: f32[12] = 0.0 for e0 in 0..12 parallel { a0[e0] = x0[e0] } transpose x1[60] = a0 over 3 by -7 at 0, 1, 3 }",
    "nest \"\" { in x0: f32[16] inout x1: f32[64] for i0 in 0..2 parallel { acc a0: f32[8] = 0.0 for e0 in 0..8 lanes { a0[e0] = add(x1[32*i0 + e0], x0[8*i0 + e0]) } transpose x1[32*i0] = a0 over 4 by 2 at 0, 1 } }",
    // Places in lines of any length, lanes of other sizes than the line's, and rotations of any elements.
    "nest \"\" { in x0: f32[64] out x1: f32[8] wide { misalign s0 = x0[3] in 4 acc a0: f32[8] = 0.0 for l1 in s0..4 lanes { a0[l1] = x0[l1 - s0 + 3] } for l1 in 0..s0 of 4 lanes { a0[l1 + 4] = x0[l1 - s0 + 7] } rotate a0[1..6] by s0 for e2 in 0..8 parallel { x1[e2] = a0[e2] } } }",
    "nest \"\" { in x0: f32[64] out x1: f64[16] wide { misalign s0 = x0[0] in 16 acc a0: f64[16] = 0.0 for l1 in s0..16 lanes { a0[l1] = f64(x0[l1]) } rotate a0[0..16] by s0 for e2 in 0..16 parallel { x1[e2] = a0[e2] } } }",
    "nest \"\" { in x0: i8[64] out x1: i32[1] misalign s0 = x0[1] in 64 x1[0] = i32[s0] }",
    // A prefetch of memory that is nobody's.
    "nest \"\" { in x0: f32[64] out x1: f32[1] prefetch x0[4611686018427387904] wide { for k0 in 0..3 seq { prefetch x0[-99999999999*k0 - 7] prefetch far x0[99999999999*k0] } x1[0] = x0[0] } }",
    // No statement, no output, no input.
    "nest \"\" { }",
    "nest \"\" { in x0: f32[4] }",
    "nest \"\" { out x0: i16[5] for i0 in 0..5 parallel { x0[i0] = i16[3*i0 + 1] } }",
    "nest \"\" { out x0: f64[0] }",
];

#[test]
fn nests_of_no_spec_are_made_native() {
    let compiler = compiler();
    OTHERS.iter().for_each(|text| is_made(&compiler, text, text));
}

/// Columns of every distance are stored in every number of lanes and size of element.
#[test]
fn columns_of_any_distance_are_stored() {
    let compiler = compiler();
    for dtype in ["i8", "bf16", "f32", "f64"] {
        for (lanes, distance) in (2..=17).flat_map(|d| [1, 3, 4, 6, 8, 15, 16, 31, 32, 64].map(|lanes| (lanes, d))) {
            let len = lanes * distance;
            let columns: Vec<String> = (0..distance).map(|c| c.to_string()).collect();
            let text = format!(
                "nest \"\" {{ in x0: {dtype}[{len}] out x1: {dtype}[{}] wide {{ acc a0: {dtype}[{len}] = 0.0 \
                 for e0 in 0..{len} lanes {{ a0[e0] = x0[e0] }} \
                 transpose x1[5] = a0 over {lanes} by {distance} at {} }} }}",
                len + 9,
                columns.join(", ")
            );
            let text = if dtype == "i8" { text.replace("= 0.0", "= 0") } else { text };
            is_made(&compiler, &format!("{lanes} lanes of {dtype} by {distance}"), &text);
        }
    }
}

/// The bits of a nest that somebody has written depend on no address: an element's place in its line is 0 there.
/// Lanes that come in runs, of accumulators in registers and in memory, some of whose elements nothing else names.
#[test]
fn rows_are_loaded_and_stored_in_runs() {
    let text = |dtype: &str, zero: &str, [runs, run_stride, lanes, stride]: [u64; 4], columns: &str| {
        format!(
            "nest \"\" {{ in x0: {dtype}[512] out x1: {dtype}[96] out x2: {dtype}[512] out x3: {dtype}[512]
            wide {{
              acc a0: {dtype}[96] = {zero}
              transpose a0 = x0[3] over {runs} by {run_stride}, {lanes} by {stride} at {columns}
              for k1 in 0..96 seq {{ for l0 in 0..1 lanes {{ x1[k1 + l0] = a0[k1 + l0] }} }}
              acc a1: {dtype}[96] = {zero}
              for l0 in 0..7 lanes {{ a1[l0 + 5] = x0[l0] }}
              transpose x2[0] = a1 over {runs} by {run_stride}, {lanes} by {stride} at {columns}
              acc a2: {dtype}[96] = {zero}
              transpose a2 = x0[0] over {runs} by {run_stride}, {lanes} by {stride} at {columns}
              for l0 in 0..8 lanes {{ a2[l0] = x0[l0 + 8] }}
              transpose x3[1] = a2 over {runs} by {run_stride}, {lanes} by {stride} at {columns}
            }} }}"
        )
    };
    let compiler = compiler();
    for (dtype, zero) in [("f32", "0.0"), ("f64", "7.0"), ("bf16", "1.0"), ("i8", "-3")] {
        for (over, columns) in [
            ([4, 16, 4, 2], "0, 1, 8, 9"),
            ([5, 24, 6, 2], "0, 1"),
            ([3, 125, 5, 1], "0, 5, 10"),
            ([3, 20, 2, 3], "0, 4"),
            ([2, 40, 3, 7], "0, 1, 2, 3, 4, 5, 6"),
        ] {
            let nest = text(dtype, zero, over, columns);
            is_made(&compiler, &format!("{dtype} over {over:?} at {columns}"), &nest);
        }
    }
}

/// The same lanes, one run behind the other in an accumulator, are permuted in registers: of any number of lanes, from any
/// element on, read in vectors that begin and end elsewhere, partly set by something else, and from memory.
#[test]
fn copies_of_lanes_are_made() {
    let compiler = compiler();
    for (dtype, zero) in [("f32", "0.5"), ("f64", "7.0"), ("i32", "-3"), ("u64", "9"), ("i16", "5")] {
        for (lanes, runs, start) in (1..=9).flat_map(|lanes| [(lanes, 2, 0), (lanes, 5, 1), (lanes, 16, 3)]) {
            let pieces: String = (0..runs)
                .map(|run| format!("for e0 in 0..{lanes} lanes {{ a1[e0 + {}] = a0[e0 + 1] }}\n", start + run * lanes))
                .collect();
            let loaded = pieces.replace("a1[", "a2[").replace("a0[e0 + 1]", "x0[e0 + 40]");
            let bytes = if dtype.ends_with("64") { 8 } else { 4 };
            for vector in [32 / bytes, 64 / bytes] {
                let read = |acc: &str, out: &str| -> String {
                    let one = |at| format!("for e0 in 0..{vector} lanes {{ {out}[e0 + {at}] = {acc}[e0 + {at}] }}\n");
                    (0..160).step_by(vector).map(one).collect()
                };
                let text = format!(
                    "nest \"\" {{ in x0: {dtype}[64] out x1: {dtype}[160] out x2: {dtype}[160]
                    wide {{
                      acc a0: {dtype}[{}] = {zero}
                      for e0 in 0..{lanes} lanes {{ a0[e0 + 1] = x0[e0 + 3] }}
                      acc a1: {dtype}[160] = {zero}
                      {pieces}{}
                      acc a2: {dtype}[160] = {zero}
                      {loaded}{}
                    }} }}",
                    lanes + 1,
                    read("a1", "x1"),
                    read("a2", "x2")
                );
                is_made(&compiler, &format!("{runs} copies of {lanes} lanes of {dtype} by {vector}"), &text);
            }
        }
    }
}

/// The last nest of rows that are joined is what runs: given again, it changes no more.
#[test]
fn runs_stay_as_they_are_given() {
    let compiler = compiler();
    for spec in ["argmax f32[85,25,5] axes=[1]", "sum f64[42,2,4,2] axes=[1,3]", "max bf16[42,2,4,2] axes=[1,3]"] {
        let kernel = compiler.compile_with(&spec.parse().expect("a spec"), &at_most(512)).expect("a kernel");
        let last = kernel.dump("prefetch").expect("a stage");
        let again = compiler.compile_nest(&last.parse().expect("a nest"), &at_most(512)).expect("a kernel");
        assert_eq!(again.dump("prefetch").expect("a stage"), last, "{spec}");
    }
}

#[test]
fn a_place_in_a_line_is_no_address() {
    let text = "nest \"\" { in x0: f32[80] out x1: i32[1] out x2: f32[16] wide { misalign s0 = x0[0] in 16 \
        x1[0] = i32[s0] acc a0: f32[16] = 0.0 for l1 in s0..16 lanes { a0[l1] = x0[l1] } rotate a0[0..16] by s0 \
        for e2 in 0..16 parallel { x2[e2] = a0[e2] } } }";
    let nest: Nest = text.parse().unwrap_or_else(|e| panic!("{e}"));
    for width in WIDTHS {
        let kernel = compiler().compile_nest(&nest, &at_most(width)).unwrap_or_else(|e| panic!("{width}: {e}"));
        let memory: Vec<f32> = (0u8..96).map(f32::from).collect();
        for start in 0..16 {
            let x = &memory[start..start + 80];
            let (mut place, mut y) = ([7i32], [0f32; 16]);
            kernel
                .run(&[Input::from(x)], &mut [Output::from(&mut place[..]), Output::from(&mut y[..])])
                .expect("a call");
            assert_eq!((place, &y[..]), ([0], &x[..16]), "{width} bits, {start} elements on");
        }
    }
}

/// More accumulators than a stack holds lie in scratch memory.
#[test]
fn accumulators_fit_the_stack() {
    let accs: String = (0..600).map(|n| format!("acc a{n}: f32[50000] = 0.0\n")).collect();
    let sets: String = (0..600).map(|n| format!("a{n}[k0] = add(a{n}[k0], x0[k0])\n")).collect();
    let sums: String = (0..600).map(|n| format!("x1[0] = add(x1[0], a{n}[7])\n")).collect();
    let text =
        format!("nest \"\" {{ in x0: f32[64] inout x1: f32[1] {accs} for k0 in 0..64 seq {{ {sets} }} {sums} }}");
    let nest: Nest = text.parse().expect("a nest");
    assert_eq!(native(&compiler(), &nest, &at_most(128), 3, 1), Ok(true));
}

#[test]
fn nests_that_are_refused_say_why() {
    let compiler = compiler();
    let refused = |text: &str, options: &Options| {
        let nest: Nest = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        compiler.compile_nest(&nest, options).expect_err("a refusal")
    };
    let plain = Options::default();
    let outside = refused("nest \"\" { in x0: f32[4] out x1: f32[4] x1[0] = x0[4] }", &plain);
    let message = "the nest does not verify: index 4 may be 4, and x0 has 4 elements, in `x1[0] = x0[4]`";
    assert_eq!(outside.to_string(), message);
    let order = refused("nest \"\" { out x0: f32[4] in x1: f32[4] x0[0] = x1[0] }", &plain);
    assert_eq!(order.to_string(), "x1 is an input and stands after x0, which is written: inputs come first");
    let large = refused(
        "nest \"\" { in x0: u64[1] out x1: f64[1] acc a0: f64[4611686018427387904] = 0.0 pick s0 = x0[0] to 3 a0[s0] = 1.0:f64 x1[0] = a0[1] }",
        &plain,
    );
    assert_eq!(
        large.to_string(),
        "code generation has no form for an accumulator of 4611686018427387904 elements of f64"
    );
    let sum = "nest \"\" { in x0: f32[4] out x1: f32[1] x1[0] = x0[0] }";
    let schedule: Schedule = "width=128 jam=4".parse().expect("a schedule");
    let forced = Options { schedule: Some(schedule.clone()), width: None };
    assert_eq!(refused(sum, &forced), Error::Schedule(ScheduleError::OfNest(Box::new(schedule))));
    let problem = Problem { count: 7, ..problem("sum f32[4,6] axes=[1]") };
    let error = compiler.compile_problem(&problem, &plain).expect_err("a refusal");
    assert_eq!(error.to_string(), "the problem is wrong: the boxes of elements have not 7 elements");
}

#[test]
fn a_nest_is_dumped_and_explained() {
    let compiler = compiler();
    let (_, naive) = stages("sum f32[4,9000] axes=[1]", 512).swap_remove(0);
    let kernel = compiler.compile_nest(&naive, &at_most(128)).expect("a kernel");
    assert_eq!(kernel.dump("nest").as_deref(), Ok(naive.to_string().as_str()));
    assert_eq!(kernel.dump("schedule").as_deref(), Ok("width=128 jam=1 in_flight=1"));
    let passes = PASSES.iter().filter(|pass| pass.runs_on != RunsOn::Lowered).map(|pass| pass.name);
    let names =
        ["schedule", "nest"].into_iter().chain(passes).chain(["clif", "asm", "all"]).collect::<Vec<_>>().join(" ");
    for name in ["spec", "problem", "tile", "stream"] {
        let error = kernel.dump(name).expect_err("no stage");
        assert_eq!(error.to_string(), format!("`{name}` is no stage; the stages are {names}"));
    }
    let all = kernel.dump("all").expect("all stages");
    let stages: Vec<&str> = all.lines().filter_map(|line| line.strip_prefix("== ")?.split(" ==").next()).collect();
    assert_eq!(stages.join(" "), names.trim_end_matches(" all"));
    let page = kernel.explain().expect("a page");
    assert!(page.starts_with("nest       sum f32 4x(9000) -> f32\nsignature  the nest, 128 bits, version"), "{page}");
    assert!(page.contains("moves      144,000 bytes read, 16 written\n"), "{page}");
    // The last nest is what runs: given again, it changes no more.
    let last = kernel.dump("prefetch").expect("a stage");
    let again = compiler.compile_nest(&last.parse().expect("a nest"), &at_most(128)).expect("a kernel");
    assert_eq!(again.dump("prefetch").expect("a stage"), last);
    assert_eq!(again.code(), kernel.code());
}
