//! Every row of the table by name, in every form it has, and what stands beside rows: several outputs
//! from one pass, combiners, maps and what follows.

use crate::execute::{Memory, is_written};
use cranefold::ir::eval::Terms;
use cranefold::ops::ROWS;
use cranefold::schedule::choose;
use cranefold::{Compiler, DType, Options, Problem, Reduction, Schedule, pipeline};

/// Ops, the first input's type, and what follows the first input.
const CASES: &[(&str, &[&str], &str)] = &[
    ("sum", &["f16", "f32", "f64", "i8", "i64"], ""),
    ("prod", &["f32", "u8", "i64"], ""),
    ("min", &["bool", "f16", "f64", "i8", "u64"], ""),
    ("max", &["bool", "bf16", "f32", "f64", "u16", "i64"], ""),
    ("mean", &["f32", "i32"], ""),
    ("any", &["bool"], ""),
    ("all", &["bool"], ""),
    ("l1", &["f32", "i8"], ""),
    ("l2", &["f64", "i16"], ""),
    ("sum_squares", &["f32", "u8"], ""),
    ("log_sum", &["f32"], ""),
    ("log_sum_exp", &["f16", "f32", "f64"], ""),
    ("lp(p=3)", &["f32"], ""),
    ("lp(p=2.5)", &["f64"], ""),
    ("lp_max(p=3,eps=0.5)", &["f32"], ""),
    ("lp_sum(p=2,eps=0.5)", &["f32"], ""),
    ("lp_power_p_max(p=4,eps=0.5)", &["f16"], ""),
    ("lp_power_p_sum(p=1,eps=0.5)", &["f64"], ""),
    ("linf", &["f16", "f32", "f64", "i8", "u32"], ""),
    ("ptp", &["bf16", "f32", "f64", "i8", "i64"], ""),
    ("count_nonzero", &["bool", "bf16", "f64", "i8", "u64"], ""),
    ("bit_and", &["bool", "i8"], ""),
    ("bit_or", &["bool", "u64"], ""),
    ("bit_xor", &["bool", "i32"], ""),
    ("argmax", &["bool", "f16", "f32", "f64", "i8", "u64"], ""),
    ("argmax(last)", &["bool", "f32", "i16"], ""),
    ("argmin", &["bool", "bf16", "f32", "f64", "u8", "i64"], ""),
    ("argmin(last)", &["f64", "i32"], ""),
    ("var", &["bf16", "f32", "f64"], ""),
    ("var(ddof=1)", &["f32"], ""),
    ("std(ddof=1)", &["f16", "f64"], ""),
    ("median", &["f16", "f32", "f64", "i8", "i64"], ""),
    ("median_low", &["bf16", "f64", "u16"], ""),
    ("quantile(q=0.3)", &["f16", "f32", "f64"], ""),
    ("mode", &["f16", "f32", "f64", "i8", "u64"], ""),
    ("l1_normalize_add(eps=0.5)", &["f32"], ""),
    ("l1_normalize_max(eps=0.5)", &["f16"], ""),
    ("linf_normalize_add(eps=0.5)", &["f32"], ""),
    ("linf_normalize_max(eps=0.5)", &["f64"], ""),
    ("l2_normalize_add(eps=0.5)", &["f32"], ""),
    ("l2_normalize_max(eps=0.5)", &["f32"], ""),
    ("l2_normalize_max_root(eps=0.5)", &["bf16"], ""),
    ("softmax", &["f16", "f32", "f64"], ""),
    ("log_softmax", &["f32", "f64"], ""),
    ("layer_norm(eps=0.5)", &["f32", "f64"], ""),
    ("layer_norm(eps=0.5)", &["f32"], ", f16[1]"),
    ("layer_norm", &["f16"], ", f32[1], i8[1]"),
    ("rms_norm(eps=0.5)", &["f32"], ""),
    ("rms_norm", &["f64"], ", f32[1]"),
    ("standardize(ddof=1)", &["f32"], ""),
    // Several outputs from one pass.
    ("max, argmax", &["f32", "i8"], ""),
    ("mean, var", &["f32", "f64"], ""),
    ("min, max", &["f32", "i16"], ""),
    ("log_sum_exp, max", &["f32"], ""),
    ("argmin, argmax(last), ptp", &["f16"], ""),
    ("sum, l1, count_nonzero", &["i32"], ""),
    // Formulas around rows.
    ("sum", &["f32"], ", f32[1] map=\"x0*x1\""),
    ("mean", &["f16"], ", i8[]:then scalar k:f32 then=\"max(r0, 0) + f32(y0)*k, d + r0\""),
    ("var", &["f32"], " apply=\"x0 / sqrt(r0)\""),
    ("softmax", &["f32"], " scalar k:f32 map=\"x0*k\""),
    // Combiners.
    (
        "combiner(identity=\"0, 0\", lift=\"x0, x0*x0\", combine=\"a0 + b0, a1 + b1\", finish=\"a1/n - a0*a0/n/n\", commutative)",
        &["f32", "f64"],
        "",
    ),
    ("combiner(identity=\"1, 0\", lift=\"x0, x1\", combine=\"a0*b0, a1*b0 + b1\")", &["f32"], ", f32[1]"),
    (
        "combiner(identity=\"-inf\", lift=\"x0\", combine=\"max(a0, b0)\", identity=\"0\", lift=\"exp(x0 - r0)\", combine=\"a0 + b0\", merge=\"max(a0, b0), a1*exp(a0 - max(a0, b0)) + b1*exp(b0 - max(a0, b0))\", finish=\"a0 + log(a1)\", commutative)",
        &["f32"],
        "",
    ),
];

/// The shape of input 0 and the axes: inner, outer, middle, apart and all; one block and several.
const SHAPES: &[(&str, &str)] = &[
    ("[3,67]", "axes=[1]"),
    ("[2,2100]", "axes=[1]"),
    ("[67,3]", "axes=[0]"),
    ("[700,3]", "axes=[0]"),
    ("[67,33]@(-40,1)", "axes=[0]"),
    ("[2,70,17]", "axes=[1]"),
    ("[5,3,33]", "axes=[0,2]"),
    ("[33,66]", ""),
];

const FORCED: &[&str] =
    &["width=64 rows=3 blocks=2", "width=256 tile=i0:3 rows=2", "width=1024 tile=i0:16 rows=2 blocks=3"];

fn specs() -> impl Iterator<Item = Reduction> {
    CASES.iter().flat_map(|(ops, dtypes, rest)| {
        dtypes.iter().flat_map(move |dtype| {
            SHAPES.iter().map(move |(shape, axes)| {
                let text = format!("{ops} {dtype}{shape}{rest} {axes}");
                text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
            })
        })
    })
}

#[test]
fn every_row_has_a_case_in_each_of_its_forms() {
    let forms = [(DType::Bool, "bool"), (DType::I32, "integers"), (DType::F32, "floats")];
    let kind = |dtype: &str| match dtype.parse::<DType>().expect("a dtype") {
        DType::Bool => "bool",
        d if d.is_int() => "integers",
        _ => "floats",
    };
    for row in ROWS {
        for (dtype, word) in forms.into_iter().filter(|(dtype, _)| row.takes(*dtype)) {
            let has = |(ops, dtypes, rest): &&(&str, &[&str], &str)| {
                let name = ops.split('(').next() == Some(row.name) && rest.split(' ').all(|w| !w.contains('='));
                name && dtypes.iter().any(|d| kind(d) == word)
            };
            assert!(CASES.iter().any(|case| has(&case)), "`{}` of {word}, as {dtype}, has no case", row.name);
        }
    }
}

/// One of the schedules that the problem takes.
fn forced(problem: &Problem, n: usize) -> Option<Schedule> {
    let parsed = FORCED.iter().cycle().skip(n).take(FORCED.len()).map(|text| text.parse().expect("a schedule"));
    parsed.into_iter().find(|schedule: &Schedule| schedule.check(problem).is_ok())
}

#[test]
fn every_row_gives_the_same_bits_by_interpreter_and_native_code() {
    let compiler = Compiler::host().expect("this machine");
    specs().enumerate().for_each(|(n, spec)| bits_are_equal(&compiler, &spec, n));
}

pub fn bits_are_equal(compiler: &Compiler, spec: &Reduction, n: usize) {
    let problem = Problem::of(spec);
    let naive = cranefold::lower::lower(&problem, "naive");
    let kind = [3, 5][n % 2];
    let memory = Memory::of(spec, kind, n as u64, (0, 0));
    let expected = memory.interpreted(&naive);
    let widths = [None, Some(0), Some(64)].map(|width| Options { schedule: None, width });
    let forced = forced(&problem, n).map(|s| Options { schedule: Some(s), width: None });
    for options in widths.into_iter().chain(forced) {
        let kernel = compiler.compile_with(spec, &options).expect("a kernel");
        let outputs = memory.run(&kernel);
        let same = outputs.iter().zip(&expected).all(|(a, b)| a.bytes() == b.bytes());
        assert!(same, "{spec}: other bits, {options:?}, data {kind} of {n}");
    }
}

#[test]
fn every_row_keeps_its_terms() {
    specs().enumerate().for_each(|(n, spec)| terms_are_kept(&spec, n));
}

pub fn terms_are_kept(spec: &Reduction, n: usize) {
    let problem = Problem::of(spec);
    let mut naive = None;
    for schedule in forced(&problem, n).into_iter().chain([choose(&problem, 128)]) {
        let stages = pipeline::stages(&problem, &schedule).unwrap_or_else(|e| panic!("{spec}: {e}"));
        let mut before = None;
        for (stage, nest) in stages {
            if before.as_ref() == Some(&nest) {
                continue;
            }
            // `Terms` panics where an element is stored twice.
            let terms = Terms::of(&nest);
            let naive = naive.get_or_insert_with(|| {
                for (o, terms) in terms.iter().enumerate() {
                    let stored: Vec<bool> = terms.iter().map(Option::is_some).collect();
                    assert_eq!(stored, is_written(spec, o), "{spec}, output {o}");
                }
                terms.clone()
            });
            assert!(*naive == terms, "{spec}: other terms after {stage}, {schedule}");
            before = Some(nest);
        }
    }
}
