//! Text that is no text of ours, and sizes that nothing has: every parser, and every way to make a spec without one,
//! answers in bounded time, memory and stack, and with a short message.

use cranefold::ir::expression::{Expression, name};
use cranefold::ir::{Nest, Scalar};
use cranefold::layout::Layout;
use cranefold::lower::program::Program;
use cranefold::ops::{self, Combiner};
use cranefold::schedule::Parts;
use cranefold::spec::Dims;
use cranefold::spec::onednn::{PostOp, Primitive};
use cranefold::{Compiler, DType, Options, Problem, Schedule, Spec, Target};
use std::alloc::{GlobalAlloc, System};
use std::cell::Cell;
use std::fmt::Display;
use std::time::{Duration, Instant};

/// Bytes of the stack on which each case runs.
const STACK: usize = 512 << 10;

/// What a case may take. Without optimisation, and on a machine that does other things, time is another.
const TIME: Duration = Duration::from_millis(if cfg!(debug_assertions) { 20_000 } else { 1000 });

/// Bytes that a case may hold at once: that much whatever the text is, and some for each byte of it.
const MEMORY: u64 = 64 << 20;
const MEMORY_OF_A_BYTE: u64 = 64;

/// The longest message, in bytes: that of an expression shows all of it, with a mark below.
const MESSAGE: usize = 25_000;

thread_local! {
    static HELD: Cell<i64> = const { Cell::new(0) };
    static MOST: Cell<i64> = const { Cell::new(0) };
}

/// Counts what each thread holds.
struct Counted;

fn count(bytes: i64) {
    // A thread that ends frees memory when these are gone.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        MOST.with(|most| most.set(most.get().max(held.get())));
    });
}

// SAFETY: the system's allocator, with numbers beside it that need no memory.
#[allow(unsafe_code, reason = "an allocator is unsafe to be")]
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: std::alloc::Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: std::alloc::Layout) {
        count(-(layout.size() as i64));
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// What a case gave: nothing, or the message of its refusal.
type Answer = Result<(), String>;

fn answer<T, E: Display>(result: Result<T, E>) -> Answer {
    result.map(drop).map_err(|error| error.to_string())
}

/// Does something within the bounds; a stack that overflows ends the process, and names the thread, which has this name.
fn bounded(name: &str, text_bytes: usize, case: impl FnOnce() -> Answer + Send) -> Answer {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name(name.into()).stack_size(STACK);
        let run = || {
            let (start, before) = (Instant::now(), HELD.get());
            MOST.set(before);
            let answer = case();
            (answer, start.elapsed(), (MOST.get() - before) as u64)
        };
        let done = thread.spawn_scoped(scope, run).expect("a thread").join();
        let (answer, time, bytes) = done.unwrap_or_else(|_| panic!("{name} panics"));
        assert!(time < TIME, "{name} takes {time:?}");
        assert!(bytes < MEMORY + MEMORY_OF_A_BYTE * text_bytes as u64, "{name} takes {bytes} bytes");
        if let Err(message) = &answer {
            let shown: String = message.chars().take(200).collect();
            assert!(message.len() < MESSAGE, "{name} says {} bytes: {shown}", message.len());
        }
        answer
    })
}

/// A parser: its name, and what it makes of a text.
type Parser = (&'static str, fn(&str) -> Answer);

const X86: &str = "x86_64-unknown-linux-gnu";

const PARSERS: &[Parser] = &[
    ("spec", |text| answer(text.parse::<Spec>())),
    ("problem", |text| answer(text.parse::<Problem>())),
    ("schedule", |text| answer(text.parse::<Schedule>())),
    ("parts", |text| answer(text.parse::<Parts>())),
    ("program", |text| answer(text.parse::<Program>())),
    ("nest", |text| answer(text.parse::<Nest>())),
    ("expression", |text| answer(text.parse::<Expression>())),
    ("expressions", |text| answer(Expression::list(text))),
    ("combiner", |text| answer(Combiner::new("0", text, "a0 + b0"))),
    ("dtype", |text| answer(text.parse::<DType>())),
    ("integer", |text| Scalar::parse(DType::I64, text).map(drop).ok_or_else(|| "no integer".into())),
    ("float", |text| Scalar::parse(DType::F64, text).map(drop).ok_or_else(|| "no float".into())),
    ("half", |text| Scalar::parse(DType::F16, text).map(drop).ok_or_else(|| "no half".into())),
    ("tag", |text| answer(Layout::tag(text))),
    ("blocks", |text| answer(Layout::blocked_strides([1, 1], text))),
    ("op", |text| ops::find(text).map(drop).ok_or_else(|| "no op".into())),
    ("triple", |text| answer(Target::new(text, ""))),
    ("features", |text| answer(Target::new(X86, text))),
    ("oneDNN's algorithm", |text| {
        answer(Primitive::new(text, Dims::new(DType::F32, &[8]), Dims::new(DType::F32, &[1])).translate())
    }),
    ("oneDNN's post-op", |text| answer(with_post_ops(vec![PostOp::eltwise(text, 0.0, 0.0)]))),
    ("stage", |text| {
        let spec: Spec = "sum f32[8]".parse::<Spec>().map_err(|e| e.to_string())?;
        let kernel = Compiler::host().and_then(|host| host.compile(&spec)).map_err(|e| e.to_string())?;
        answer(kernel.dump(text))
    }),
];

fn with_post_ops(post_ops: Vec<PostOp>) -> Result<Spec, cranefold::SpecError> {
    let primitive = Primitive::new("reduction_sum", Dims::new(DType::F32, &[8]), Dims::new(DType::F32, &[1]));
    post_ops.into_iter().fold(primitive, Primitive::post_op).translate()
}

const MILLION: usize = 1_000_000;

/// A piece of text again and again, to about a million bytes.
fn many(piece: &str) -> String {
    piece.repeat(MILLION / piece.len())
}

/// For every parser.
fn texts_for_all() -> Vec<String> {
    let pieces = [
        "a",
        "Z",
        "_",
        "0",
        "9",
        "-",
        "+",
        "*",
        ".",
        ",",
        ";",
        ":",
        "=",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "<",
        "\"",
        "'",
        "\\",
        "/",
        "@",
        "#",
        " ",
        "\n",
        "\0",
        "\t",
        "é",
        "\u{10ffff}",
        "a,",
        "a ",
        "1,",
        "1 ",
        "-1,",
        "a(",
        "(a",
        "a[",
        "a\n",
        "a=",
        "a=1 ",
        "1e",
        "1.",
        "x0+",
        "x0, ",
        "-(",
        "not ",
        "x0 and ",
        "select(",
        "f32(",
        "f32[1]",
        "f32[1],",
        "0x",
        "inf ",
        "nan",
        "2a",
        "@a",
        "->",
        "-> f32 ",
        "part 0 of 1:\n",
        "}\n",
    ];
    let mut texts: Vec<String> = pieces.iter().map(|piece| many(piece)).collect();
    texts.push(String::new());
    texts.push(format!("1e{}", "9".repeat(MILLION)));
    texts.push(format!("0.{}1", "0".repeat(MILLION)));
    texts.push(format!("bits(0x{})", "f".repeat(MILLION)));
    texts
}

#[test]
fn every_parser_answers_any_text() {
    let mut tried = 0;
    for text in texts_for_all() {
        for (parser, parse) in PARSERS {
            let shown: String = text.chars().take(12).collect();
            // White space alone is a schedule of nothing said, and no features.
            let _ = bounded(&format!("{parser} of {shown:?} and so on"), text.len(), || parse(&text));
            tried += 1;
        }
    }
    assert!(tried > 60 * 20, "{tried} texts");
}

/// Lists of so many numbers, with commas.
fn numbers(count: usize, number: &str) -> String {
    vec![number; count].join(",")
}

/// Texts that begin well: parser, what is absurd in it, text.
fn texts_of_one() -> Vec<(&'static str, &'static str, String)> {
    let deep = |open: &str, close: &str, n: usize| format!("{}x0{}", open.repeat(n), close.repeat(n));
    let spec = |what: &'static str, text: String| ("spec", what, text);
    let nest = |what: &'static str, text: String| ("nest", what, format!("nest \"n\" {{ {text} }}"));
    let problem = |what: &'static str, text: String| ("problem", what, format!("problem {{\n{text}\n}}"));
    let two = "9223372036854775808";
    let most = "18446744073709551615";
    let signed = "9223372036854775807";
    let problem_head = "reduce sum in f32 over 4\nin x0: f32[4]\nout x1: f32[1]\n";
    vec![
        spec("rank", format!("sum f32[{}] axes=[0]", numbers(100_000, "1"))),
        spec("rank", format!("sum f32[{}] axes=[0]", numbers(40_000, "1"))),
        spec("rank", format!("sum f32[{}] axes=[0]", numbers(65, "1"))),
        spec("axes", format!("sum f32[2] axes=[{}]", numbers(40_000, "0"))),
        spec("strides", format!("sum f32[2]@({})", numbers(40_000, "1"))),
        spec("extent", format!("sum f32[{two}]")),
        spec("extent", format!("sum f32[{most}]")),
        spec("extent", format!("sum f32[{signed}]")),
        spec("extent", format!("sum f32[{}]", "9".repeat(90_000))),
        spec("product", "sum f32[4294967296,4294967296] axes=[0]".into()),
        spec("product", format!("sum i8[{signed},3] axes=[0]")),
        spec("product", format!("sum f32[0,{signed},{signed}]")),
        spec("product", format!("sum f32[{}]", numbers(64, "2"))),
        spec("product", format!("sum f32[{}]", numbers(64, signed))),
        spec("stride", format!("sum f32[3]@({signed})")),
        spec("stride", format!("sum f32[3]@(-{two})")),
        spec("stride", format!("sum f32[3,3]@(-{two},{signed}) axes=[0]")),
        spec("offset", format!("sum f32[3]+{signed}")),
        spec("offset", format!("sum f32[3]@a+{signed}")),
        spec("offset", format!("sum f32[3]@a+{most}")),
        spec("blocks", format!("sum f32[3]@A{}", "65536a".repeat(10_000))),
        spec("blocks", format!("sum f32[3]@A{}", "2a".repeat(64))),
        spec("blocks", format!("sum f32[3]@A{}", "2a".repeat(40_000))),
        spec("block", "sum f32[3]@A18446744073709551616a".into()),
        spec("boxes", "sum f32[1000003]@A2a -> @any".into()),
        spec("boxes", "max f32[1000003,1000003]@AB65536a65536b axes=[0] -> @A65535a".into()),
        spec("ops", format!("{} f32[2]", vec!["sum"; 20_000].join(","))),
        spec("ops", format!("{} f32[2]", vec!["sum"; 65].join(","))),
        spec("parameters", format!("lp({}) f32[2]", vec!["p=2"; 20_000].join(","))),
        spec("parameter", format!("lp(p={}) f32[2]", "9".repeat(90_000))),
        spec("parameter", "lp(p=1e999999999) f32[2]".into()),
        spec("inputs", format!("sum {} map=\"x0\"", vec!["f32[1]"; 12_000].join(","))),
        spec("inputs", format!("sum {} map=\"x0\"", vec!["f32[1]@a+1"; 9_000].join(","))),
        spec("scalars", format!("sum f32[2] {} map=\"x0\"", "scalar k:f32 ".repeat(7_000))),
        spec("outputs", format!("sum f32[2] -> {}", vec!["f32"; 20_000].join(","))),
        spec("outputs", format!("sum f32[2] -> {}", vec!["f32@a+1"; 11_000].join(","))),
        spec("expressions", format!("sum f32[2] then=\"{}\"", vec!["r0"; 2_500].join(","))),
        spec("expression", format!("sum f32[2] map=\"{}\"", "x0+".repeat(30_000))),
        spec("expression", format!("sum f32[2] map=\"{}\"", deep("(", ")", 45_000))),
        spec("expression", format!("sum f32[2] map=\"{}\"", deep("(", ")", 4_900))),
        spec("expression", format!("sum f32[2] map=\"{}x0\"", "-".repeat(9_900))),
        spec("words", format!("sum f32[2] {}", "keep_dims ".repeat(9_000))),
        spec("combiner", format!("combiner({}) f32[2]", vec!["identity=\"0\""; 7_000].join(","))),
        spec("combiner", format!("combiner(identity=\"{}\") f32[2]", numbers(4_000, "0"))),
        ("expression", "parentheses", deep("(", ")", 100_000)),
        ("expression", "parentheses", deep("(", ")", 4_900)),
        ("expression", "calls", deep("abs(", ")", 1_900)),
        ("expression", "signs", format!("{}x0", "-".repeat(9_900))),
        ("expression", "nots", format!("{}x0", "not ".repeat(2_400))),
        ("expression", "terms", format!("{}x0", "x0+".repeat(3_300))),
        ("expression", "arguments", format!("max({}x0)", "x0,".repeat(3_300))),
        ("expression", "number", "9".repeat(9_900)),
        ("expression", "number", format!("1e{}", "9".repeat(9_000))),
        ("expressions", "their number", vec!["x0"; 3_000].join(",")),
        ("combiner", "parentheses", deep("(", ")", 4_900)),
        ("schedule", "tiles", "tile=i0:4 ".repeat(100_000)),
        ("schedule", "number", format!("jam={most}")),
        ("schedule", "number", format!("tile=i{most}:4")),
        ("schedule", "number", format!("tile=i0:{most}9")),
        ("schedule", "number", format!("in_flight={}", "9".repeat(MILLION))),
        ("parts", "number", format!("{most}9")),
        ("parts", "number", format!("{}@blocks", "9".repeat(MILLION))),
        ("tag", "letters", "abcdefghijklmnopqrstuvwxyz".repeat(1000)),
        ("tag", "blocks", format!("A{}", "2a".repeat(500_000))),
        ("tag", "block", format!("A{}a", "9".repeat(MILLION))),
        ("blocks", "their number", "2a".repeat(500_000)),
        ("features", "their number", "has_sse3 ".repeat(100_000)),
        ("features", "one", format!("has_{}", "a".repeat(MILLION))),
        ("triple", "parts", vec!["x86_64"; 100_000].join("-")),
        ("triple", "system", format!("x86_64-unknown-{}", "a".repeat(MILLION))),
        problem("inputs", format!("reduce sum in f32 over 4\n{}", "in x0: f32[4]\n".repeat(60_000))),
        problem(
            "length",
            format!(
                "reduce sum in f32 over {most}\nin x0: f32[{most}]\nout x1: f32[{most}]\nslices at 0 -> 0\nelements at 0\ndim {most}: {signed}"
            ),
        ),
        problem(
            "dims",
            format!("{problem_head}slices at 0 -> 0\n{}elements at 0\ndim 4: 1", "dim 1: 0 -> 0\n".repeat(60_000)),
        ),
        problem("dims", format!("{problem_head}slices at 0 -> 0\nelements at 0\n{}", "dim 2: 1\n".repeat(100_000))),
        problem(
            "dims",
            format!(
                "{problem_head}slices at 0 -> 0\nelements at 0\n{}",
                format!("dim {most}: {signed}\n").repeat(30_000)
            ),
        ),
        problem("boxes", format!("{problem_head}{}elements at 0\ndim 4: 1", "slices at 0 -> 0\n".repeat(60_000))),
        problem("boxes", format!("{problem_head}slices at 0 -> 0\n{}", "elements at 0\ndim 4: 1\n".repeat(40_000))),
        problem(
            "padding",
            format!(
                "{problem_head}slices at 0 -> 0\nelements at 0\ndim 4: 1\n{}",
                "padding of x1 at 0\n".repeat(50_000)
            ),
        ),
        problem("outputs", format!("reduce sum in f32 over 4\nin x0: f32[4]\n{}", "out x1: f32[1]\n".repeat(60_000))),
        problem("numbers of a box", format!("{problem_head}slices at {} -> 0", numbers(400_000, "0"))),
        problem("expressions", format!("reduce sum in f32 over 4\n{}", "then \"r0\"\n".repeat(90_000))),
        problem("ops", format!("reduce {} in f32 over 4\nin x0: f32[4]", vec!["sum"; 200_000].join(", "))),
        problem("beside", format!("{problem_head}beside {most}\nslices at 0 -> 0\nelements at 0\ndim 4: 1")),
        nest("loops", format!("{}{}", "for i0 in 0..1 seq { ".repeat(40_000), "}".repeat(40_000))),
        nest("loops beside one another", "for i0 in 0..1 seq { }".repeat(40_000)),
        nest("wide functions", format!("{}{}", "wide { ".repeat(100_000), "}".repeat(100_000))),
        nest("buffers", (0..60_000).map(|n| format!("in x{n}: f32[1] ")).collect()),
        nest("length", format!("in x0: f32[{most}] out x1: f32[{most}]")),
        nest("length", format!("in x0: f32[{most}9]")),
        nest("definitions", "def f(v0: f32) -> f32 { v0 }".repeat(30_000)),
        nest("results", format!("def f(v0: f32) -> {} {{ v0 }}", vec!["f32"; 200_000].join(","))),
        nest(
            "values",
            format!(
                "def f(v0: f32) -> f32 {{ {} v0 }}",
                (1..40_000).map(|n| format!("let v{n} = v0 ")).collect::<String>()
            ),
        ),
        nest("expression", format!("def f(v0: f32) -> f32 {{ {}v0{} }}", "abs(".repeat(100_000), ")".repeat(100_000))),
        nest("arguments", format!("def f(v0: f32) -> f32 {{ add({}v0) }}", "v0,".repeat(300_000))),
        nest(
            "index",
            format!(
                "in x0: f32[4] def f() -> f32 {{ x0[{}] }}",
                (0..120_000).map(|n| format!("+ i{n} ")).collect::<String>().trim_start_matches('+')
            ),
        ),
        nest(
            "index",
            format!(
                "in x0: f32[4] def f() -> f32 {{ x0[{}] }}",
                (0..120_000).rev().map(|n| format!("+ i{n} ")).collect::<String>().trim_start_matches('+')
            ),
        ),
        nest("index", format!("in x0: f32[4] def f() -> f32 {{ x0[{}*i0 + {signed}*i0] }}", signed)),
        nest("index", format!("in x0: f32[4] def f() -> f32 {{ x0[{most}] }}")),
        nest("accumulators", format!("merge {} by f over 1 of 1", vec!["a0"; 300_000].join(","))),
        nest("accumulator", format!("acc a0: f32[{most}] = 0.0")),
        nest(
            "merge",
            format!("def f(v0: f32, v1: f32) -> f32 {{ v0 }} acc a0: f32[1] = 0.0 merge a0 by f over {most} of {most}"),
        ),
        nest("loop variable", format!("for i{most} in 0..1 seq {{ }}")),
        nest("select", format!("acc a0: f32[1] = 0.0 select v0 = nth {} of a0 over 4", numbers(300_000, "1"))),
        nest("number", format!("acc a0: i64[1] = {}", "9".repeat(900_000))),
        ("nest", "name", format!("nest \"{}\" {{ }}", "\\u{0000000000000000000000061}".repeat(30_000))),
        ("nest", "name", format!("nest \"{}", "\\u{".repeat(300_000))),
        ("nest", "comments", "# a\n".repeat(250_000)),
        ("program", "parts", format!("{}nest \"n\" {{ }}", "part 0 of 1:\n".repeat(70_000))),
        ("program", "starts", format!("part 0 of 1: {}\nnest \"n\" {{ }}", "1 ".repeat(400_000))),
        ("program", "parts", "part 0 of 1:\nnest \"n\" { }\n".repeat(35_000)),
        ("program", "a number", format!("part {} of 1:\nnest \"n\" {{ }}", "9".repeat(MILLION))),
        ("program", "finishes", format!("part 0 of 1:\nnest \"n\" {{ }}{}", "\nfinish\n".repeat(100_000))),
    ]
}

#[test]
fn texts_that_begin_well_are_answered_too() {
    let texts = texts_of_one();
    assert!(texts.len() > 100, "{}", texts.len());
    let failed: Vec<String> = texts
        .iter()
        .filter_map(|(name, what, text)| {
            let (_, parse) = PARSERS.iter().find(|(parser, _)| parser == name).expect("a parser");
            let case = || bounded(&format!("{name}: {what}"), text.len(), || parse(text));
            std::panic::catch_unwind(case).err().map(|_| format!("{name}: {what}"))
        })
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

type Case<'a> = Box<dyn FnOnce() -> Answer + Send + 'a>;

#[test]
fn specs_without_text_are_answered_too() {
    let sum = || Spec::builder("sum");
    let f32 = DType::F32;
    let (ones, zeros) = (vec![1u64; 100_000], vec![0i64; 100_000]);
    let many_inputs = |n: usize| (0..n).fold(sum(), |builder, _| builder.input(f32, &[1]));
    let deep = |n: usize| (0..n).fold(name("x0"), |expression, _| -expression);
    let wide = |n: usize| (0..n).fold(name("x0"), |expression, _| expression.clone() * expression);
    let post_op = |alg: &'static str, n: usize| with_post_ops(vec![PostOp::eltwise(alg, 0.5, 0.5); n]);
    let names =
        ["elu", "square", "tanh", "pow", "soft_relu", "swish", "hardswish", "mish", "gelu_tanh", "round", "clip"];
    let long = "a".repeat(MILLION);
    let one = |builder: cranefold::spec::Builder| builder.input(f32, &[2]).build();
    let cases: Vec<(&str, Case)> = vec![
        ("rank", Box::new(|| answer(sum().input(f32, &ones).build()))),
        ("rank of strides", Box::new(|| answer(sum().input_at(f32, &[2], Layout::strides(zeros.clone())).build()))),
        ("rank of both", Box::new(|| answer(sum().input_at(f32, &ones, Layout::strides(zeros.clone())).build()))),
        ("axes", Box::new(|| answer(sum().input(f32, &[2]).axes(zeros.clone()).build()))),
        ("axis", Box::new(|| answer(sum().input(f32, &[2]).axes([i64::MIN]).build()))),
        ("extents", Box::new(|| answer(sum().input(f32, &[u64::MAX; 64]).build()))),
        ("extent", Box::new(|| answer(sum().input(f32, &[u64::MAX]).build()))),
        ("extent", Box::new(|| answer(sum().input(f32, &[1u64 << 63]).build()))),
        ("product", Box::new(|| answer(sum().input(f32, &[1u64 << 32, 1 << 32]).build()))),
        ("none of a product", Box::new(|| answer(sum().input(f32, &[u64::MAX, 0, u64::MAX]).build()))),
        ("offset", Box::new(|| answer(sum().input_at(f32, &[2], Layout::row_major().offset(u64::MAX)).build()))),
        ("strides", Box::new(|| answer(sum().input_at(f32, &[2, 2], Layout::strides([i64::MIN, i64::MIN])).build()))),
        (
            "strides of outputs",
            Box::new(|| answer(sum().input(f32, &[2, 2]).axes([0]).output_layout(Layout::strides([i64::MIN])).build())),
        ),
        ("inputs", Box::new(|| answer(many_inputs(100_000).build()))),
        ("inputs in a map", Box::new(|| answer(many_inputs(100_000).map("x0").build()))),
        ("reducers", Box::new(|| answer((0..100_000).fold(sum(), |b, _| b.reducer("sum")).input(f32, &[2]).build()))),
        ("outputs", Box::new(|| answer((0..100_000).fold(sum(), |b, _| b.output(f32)).input(f32, &[2]).build()))),
        ("scalars", Box::new(|| answer(one((0..100_000).fold(sum(), |b, _| b.scalar("k", f32)))))),
        ("parameters", Box::new(|| answer(one((0..100_000).fold(sum(), |b, _| b.param("p", 1.0)))))),
        ("name of an op", Box::new(|| answer(one(Spec::builder(&long))))),
        ("name of a parameter", Box::new(|| answer(one(sum().param(&long, 1.0))))),
        ("name of a scalar", Box::new(|| answer(one(sum().scalar(&long, f32))))),
        ("name in an expression", Box::new(|| answer(one(sum().map(name(&long)))))),
        ("text of an expression", Box::new(|| answer(one(sum().map(long.as_str()))))),
        ("deep expression", Box::new(|| answer(one(sum().map(deep(100_000)))))),
        ("wide expression", Box::new(|| answer(one(sum().map(wide(20)))))),
        ("number in an expression", Box::new(|| answer(one(sum().map(name("x0") * f64::MAX * f64::MIN_POSITIVE))))),
        ("post-ops", Box::new(|| answer(with_post_ops(vec![PostOp::sum(1.0); 100_000])))),
        ("threads", Box::new(|| answer(Compiler::builder().threads(usize::MAX).build()))),
        (
            "width",
            Box::new(|| {
                let options = Options { schedule: None, width: Some(u32::MAX) };
                answer(
                    Compiler::host()
                        .and_then(|host| host.compile_with(&"sum f32[8]".parse().expect("a spec"), &options)),
                )
            }),
        ),
    ];
    for (what, case) in cases {
        let _ = bounded(what, 2 * MILLION, case);
    }
    for alg in names {
        for n in [3, 10, 30, 100_000] {
            let _ = bounded(&format!("{n} post-ops of {alg}"), 64 * n, || answer(post_op(alg, n)));
        }
    }
}

/// A sum of terms that nests little.
fn balanced(terms: &[String]) -> String {
    match terms {
        [one] => one.clone(),
        _ => format!("({} + {})", balanced(&terms[..terms.len() / 2]), balanced(&terms[terms.len() / 2..])),
    }
}

/// What is allowed and as large as can be is compiled, or refused, in bounded time.
#[test]
fn the_largest_specs_compile() {
    let compiler = Compiler::host().expect("this machine");
    let twos = numbers(61, "2");
    let every_other = (0..61).step_by(2).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    let terms = |n: usize| (1..n).map(|k| format!("x0*{k}.5")).collect::<Vec<_>>();
    let specs = [
        "sum f32[2305843009213693951]".to_string(),
        "max i8[9223372036854775807]".into(),
        "median i8[9223372036854775807]".into(),
        "softmax i8[9223372036854775807]".into(),
        "argmax f32[3037000499,759250124] axes=[0]".into(),
        "log_sum_exp f32[759250124,3037000499] axes=[1]".into(),
        "var f64[2,576460752303423487] axes=[0]".into(),
        format!("sum i8[{twos}] axes=[{every_other}]"),
        format!("var f16[{}] axes=[{every_other}]", twos.replacen("2,2", "2", 1) + ",1"),
        format!(
            "sum f32[{twos},1,1,1]@({}) axes=[{every_other}]",
            (0..64).map(|n| (n * 7 % 64).to_string()).collect::<Vec<_>>().join(",")
        ),
        format!(
            "sum {} map=\"{}\"",
            vec!["f32[4096]"; 64].join(","),
            balanced(&(0..64).map(|n| format!("x{n}")).collect::<Vec<_>>())
        ),
        format!("sum f32[4096] map=\"{}\"", balanced(&terms(400))),
        format!("sum f32[4096] then=\"{}\"", vec!["r0"; 63].join(",")),
        format!("{} f32[4096]", vec!["sum"; 64].join(",")),
        "sum f32[65535]@A2a65536a -> @any".into(),
    ];
    for spec in &specs {
        let shown: String = spec.chars().take(60).collect();
        let case =
            || answer(spec.parse::<Spec>()).and_then(|()| answer(compiler.compile(&spec.parse().expect("again"))));
        let (start, done) = (Instant::now(), bounded(&shown, spec.len(), case));
        println!(
            "{:?} {shown}: {}",
            start.elapsed(),
            done.err().unwrap_or_default().chars().take(200).collect::<String>()
        );
    }
}

/// What the limits of parsers without a limit of their text are called.
#[test]
fn limits_are_said() {
    let texts = texts_of_one();
    for (name, what, message) in [
        ("problem", "inputs", "line 67: there are more than 64 inputs"),
        ("problem", "outputs", "line 68: there are more than 64 outputs"),
        ("problem", "boxes", "line 69: there are more than 64 boxes"),
        ("problem", "expressions", "line 67: there are more than 64 expressions"),
        ("problem", "ops", "line 2: there are more than 64 ops"),
    ] {
        let (_, parse) = PARSERS.iter().find(|(parser, _)| *parser == name).expect("a parser");
        let (.., text) = texts.iter().find(|(n, w, _)| (*n, *w) == (name, what)).expect("a text");
        assert_eq!(parse(text), Err(message.into()), "{name}: {what}");
    }
}
