//! Every row of the table by name, in every form it has, and what stands beside rows: several outputs
//! from one pass, combiners, maps and what follows. In plain layouts, and in blocks that cut axes.

use cranefold::ir::Nest;
use cranefold::ir::eval::Terms;
use cranefold::ops::{Form, ROWS};
use cranefold::problem::IndexBox;
use cranefold::schedule::{Bounds, Decided, choose_in};
use cranefold::{Compiler, DType, Options, Problem, Schedule, Spec, Vectors, pipeline};
use cranefold_fuzz::execute::{Memory, is_written};
use std::collections::HashMap;

/// Ops, the first input's type, and what follows the first input. Each row has a case without expressions for each
/// kind of elements that it takes.
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
    ("sum_exp", &["f16", "f32", "f64"], ""),
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
    ("mean_pair", &["f16", "f32", "f64"], ""),
    ("sum_exp", &["bf16", "f32", "f64"], ""),
    ("std(ddof=1)", &["f16", "f64"], ""),
    ("mean_pair", &["bf16", "f32", "f64"], ""),
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
    ("sum_exp, mean_pair", &["f32"], ""),
    ("min, max", &["f32", "i16"], ""),
    ("log_sum_exp, max", &["f32"], ""),
    ("argmin, argmax(last), ptp", &["f16"], ""),
    ("sum, l1, count_nonzero", &["i32"], ""),
    // Expressions around rows.
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

/// Shapes in blocks and axes; the layout of outputs of what is left, and of those that have an element at each
/// position.
const BLOCKED: &[(&str, &str, &str, &str)] = &[
    // The reduced axis is cut, then the kept one, then both, then the reduced axis and an end of the kept one.
    ("[3,11]@aB8b", "axes=[1]", "", "@ba"),
    ("[70,11]@aB8b", "axes=[0]", "@A4a", "@AB2a4b"),
    ("[11,19]@AB8a8b", "axes=[1] keep_dims", "@any", "@any"),
    ("[19,3,11]@AbC8a8c", "axes=[0,1]", "@(-3)+2", "@(-60,17,3)2c+1"),
    // Only outputs are blocked.
    ("[11,67]", "axes=[1]", "@A8a", "@aB16b"),
    ("[67,2,13]@(26,13,1)", "axes=[0]", "@Ba4b", "@BAC8a4c4b"),
    // Blocks in blocks, in turns.
    ("[21,37]@AB4b2a4b", "axes=[0]", "@A2a8a", "@BA4a16b"),
    ("[3,300]@AB4b2a16b", "axes=[1]", "@any", "@any"),
    // Blocks that run backwards, with gaps; and one that holds more than the axis.
    ("[37,3]@(-8,50)8a+3", "axes=[0]", "@A2a+1", "@(18,64)16a"),
    ("[5,11]@AB16b8a", "", "", "@aB16b"),
];

const FORCED: &[&str] =
    &["width=64 jam=3 in_flight=2", "width=256 tile=i0:3 jam=2", "width=1024 tile=i0:16 jam=2 in_flight=3"];

/// Every case in every shape.
fn specs() -> impl Iterator<Item = Spec> {
    let plain = SHAPES.iter().map(|&(shape, axes)| (shape, axes, "", ""));
    CASES.iter().flat_map(move |(ops, dtypes, rest)| {
        let shapes = plain.clone().chain(BLOCKED.iter().copied());
        let types = shapes.flat_map(|shape| dtypes.iter().map(move |dtype| (shape, dtype)));
        types.map(move |((shape, axes, left, each), dtype)| {
            let text = format!("{ops} {dtype}{shape}{rest} {axes}");
            let spec: Spec = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            match if spec.applies() { each } else { left } {
                "" => spec,
                layout => {
                    let outputs = vec![layout; spec.outputs().len()].join(", ");
                    let text = format!("{text} -> {outputs}");
                    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
                }
            }
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

/// One of the schedules that the problem takes: a tile in each box, where there are several.
fn forced(problem: &Problem, n: usize) -> Option<Schedule> {
    let mut loops = 0;
    let tile = |slices: &IndexBox| {
        loops += slices.dims.len();
        let inner = n % slices.dims.len().max(1) + 1;
        (!slices.dims.is_empty()).then(|| format!(" tile=i{}:{}", loops - inner, [2, 5, 1 << 20][n % 3]))
    };
    let tiles: String = problem.slices.iter().filter_map(tile).collect();
    let boxes = format!("width={}{tiles} jam=2 in_flight={}", [128, 0, 512][n / 3 % 3], n % 4 + 1);
    let parsed = FORCED.iter().cycle().skip(n).take(FORCED.len()).copied();
    let texts = (problem.slices.len() > 1).then_some(boxes.as_str()).into_iter().chain(parsed);
    texts.map(|text| text.parse().expect("a schedule")).find(|schedule: &Schedule| schedule.check(problem).is_ok())
}

#[test]
fn every_row_gives_the_same_bits_by_interpreter_and_native_code() {
    let compiler = Compiler::host().expect("this machine");
    specs().enumerate().for_each(|(n, spec)| bits_are_equal(&compiler, &spec, n));
}

pub fn bits_are_equal(compiler: &Compiler, spec: &Spec, n: usize) {
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

/// Elements from the start of a line of memory to that of an input.
const PLACES: [u64; 5] = [1, 6, 15, 31, 63];

pub fn terms_are_kept(spec: &Spec, n: usize) {
    let problem = Problem::of(spec);
    // Terms of another form are others.
    for form in [Form::Plain, Form::Direct] {
        if form == Form::Plain || problem.reducer_in(form).is_some() {
            terms_of_form_are_kept(spec, &problem, form, n);
        }
    }
}

fn terms_of_form_are_kept(spec: &Spec, problem: &Problem, form: Form, n: usize) {
    // A value that is kept between visits is a definition of its own, whose name is part of a term.
    let mut naives: HashMap<Vec<String>, _> = HashMap::new();
    let forced = forced(problem, n).map(|schedule| Schedule { form, ..schedule });
    let forced = forced.filter(|schedule| schedule.check(problem).is_ok());
    for schedule in forced.into_iter().chain([128, 256, 512].map(|width| choose_in(problem, form, width))) {
        let decided = Decided::of(problem.clone(), Some(&schedule), Bounds::new(Vectors::WIDEST));
        let stages =
            pipeline::stages(&decided.expect("a schedule that fits")).unwrap_or_else(|e| panic!("{spec}: {e}"));
        let mut before = None;
        for (stage, program) in stages {
            let [nest] = <[Nest; 1]>::try_from(program.nests).expect("one part");
            if before.as_ref() == Some(&nest) {
                continue;
            }
            // `Terms` panics where an element is stored twice.
            let terms = Terms::of(&nest);
            let naive = naives.entry(schedule.keep.clone()).or_insert_with(|| {
                for (o, terms) in terms.iter().enumerate() {
                    let stored: Vec<bool> = terms.iter().map(Option::is_some).collect();
                    assert_eq!(stored, is_written(spec, o), "{spec}, output {o}");
                }
                terms.clone()
            });
            assert!(*naive == terms, "{spec}: other terms after {stage}, {schedule}");
            if nest.to_string().contains("misalign ") {
                for place in PLACES {
                    let same = *naive == Terms::of_misaligned(&nest, place);
                    assert!(same, "{spec}: other terms after {stage}, {schedule}, {place} elements into a line");
                }
            }
            before = Some(nest);
        }
    }
}
