//! What each verb prints.

use crate::{cranefold, folder, refuses, works};
use std::fs;
use std::process::{Command, Stdio};

#[test]
fn run_prints_what_a_person_wants() {
    let out = works(&["run", "mean f32[8,16,14,14] axes=[2,3]"]);
    let names: Vec<&str> = out.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(names, ["spec", "input", "output", "kernel", "compile", "run", "error"], "{out}");
    let line = |name: &str| out.lines().find(|line| line.starts_with(name)).unwrap()[9..].to_string();
    assert_eq!(line("spec"), "mean f32[8,16,14,14] axes=[2,3]");
    assert_eq!(line("input"), "98 KB of elements, random, seed 0");
    assert!(line("output").starts_with("f32[8,16] ") && line("output").ends_with(" ..."), "{out}");
    assert!(line("kernel").starts_with("width=") && line("kernel").contains(" bytes of code"), "{out}");
    let narrow = works(&["run", "mean f32[8,16,14,14] axes=[2,3]", "--width", "128"]);
    let kernel = narrow.lines().find(|line| line.starts_with("kernel")).unwrap();
    assert!(kernel.starts_with("kernel   width=128 ") && kernel.ends_with(" bytes of code"), "{narrow}");
    assert!(line("run").ends_with(" GB/s read and written"), "{out}");
    let error = line("error");
    assert!(error.contains(" at most against the reference, bound "), "{out}");
    assert!(error.ends_with("(all 128 outputs checked)"), "{out}");
}

/// The check reduces slices of their own, which keep the reduced axes as the whole does.
#[test]
fn results_that_keep_their_axes_are_checked() {
    for spec in [
        r#"sum f32[5,6], f32[1,1]:then axes=[1] keep_dims then="r0 + y0""#,
        r#"mean f16[2,5,6]@cab, f32[2,1,6]:then axes=[1] keep_dims then="r0 * y0 + d" -> f32@cab"#,
    ] {
        let out = works(&["run", spec]);
        let error = out.lines().find(|line| line.starts_with("error")).unwrap_or_else(|| panic!("{spec}: {out}"));
        assert!(error.contains("(all "), "{out}");
    }
}

/// Outputs of elements, of slices and totals of a region; a region too large for the reference is measured unchecked.
#[test]
fn all_outputs_of_a_region_are_checked() {
    let out = works(&[
        "run",
        "region x:f32[6,9], w:f32[9] axes=[1] { bf16(x - max(x)), sum(x * w), sum(mean(x), axes=[0]) }",
    ]);
    for (number, elements) in [54, 6, 1].into_iter().enumerate() {
        let error = out.lines().find(|line| line.starts_with(&format!("error {number}"))).unwrap();
        assert!(error.ends_with(&format!("(all {elements} outputs checked)")), "{out}");
    }
    let large = works(&["run", "region x:f32[4096,4096] axes=[1] { x * sum(x) }"]);
    assert!(large.lines().any(|line| line.starts_with("error") && line.contains("not checked")), "{large}");
}

/// A combiner of the user's that breaks its contract is no bug of ours: the law is named.
#[test]
fn combiners_that_break_their_contract_are_told() {
    let law = "the identity of phase 1 is not neutral: combined with (3.0) it gives (4.0)";
    let found = "contract, as `Combiner::check` finds: ";
    let neutral = r#"combiner(identity="1", lift="x0", combine="a0+b0", commutative) f32[1000]"#;
    refuses(&["run", neutral], &format!("a combiner breaks its {found}{law}"));
    // Inputs are named as they are in the spec.
    let squares = r#"combiner(identity="i64(0)", lift="i64(x1)*i64(k)", combine="a0 + b0 + a0*a0*b0") f32[70,30], i32[30] axes=[0] scalar k:i8"#;
    let done = cranefold(&["run", squares]);
    assert!(
        done.err.starts_with(&format!("error: a combiner breaks its {found}`combine` is not associative: ")),
        "{}",
        done.err
    );
    assert_eq!(done.code, Some(2));
    let page = works(&["explain", neutral]);
    assert!(page.ends_with(&format!("contract   broken, as `Combiner::check` finds: {law}\n")), "{page}");
    let table = works(&["bench", neutral, "--budget-ms", "0"]);
    assert!(table.contains(&format!("  its combiner breaks its {found}{law}\n")), "{table}");
    let kept = r#"combiner(identity="0", lift="x0", combine="a0+b0", commutative) f32[1000]"#;
    assert!(
        !works(&["explain", kept]).contains("contract")
            && !works(&["bench", kept, "--budget-ms", "0"]).contains("contract")
    );
}

/// Of results that are clamped, the error is that of what is written.
#[test]
fn errors_are_those_of_what_is_written() {
    let out = works(&["run", "sum f32[9,1000] axes=[1] map=\"x0*1e4\" trunc -> i8"]);
    assert!(out.contains("error    0 at most against the reference, bound 0 (all 9 outputs checked)"), "{out}");
}

fn output_line(args: &[&str]) -> String {
    let out = works(args);
    out.lines().find(|line| line.starts_with("output")).unwrap().to_string()
}

#[test]
fn executors_schedules_and_widths_agree() {
    let spec = "sum f32[40,300] axes=[0]";
    let expected = output_line(&["run", spec]);
    let ways: [&[&str]; 5] = [
        &["--executor", "interpreter"],
        &["--schedule", "width=0"],
        &["--schedule", "width=256 tile=i0:64 jam=4", "--threads", "1"],
        &["--width", "64"],
        &["--executor", "interpreter", "--width", "512", "--random", "0"],
    ];
    for way in ways {
        assert_eq!(output_line(&[&["run", spec], way].concat()), expected, "{way:?}");
    }
    assert_ne!(output_line(&["run", spec, "--random", "1"]), expected);
    // The reference rounds once, so for integers it is the same.
    let spec = "mean i32[40,300] axes=[0]";
    assert_eq!(output_line(&["run", spec, "--executor", "reference"]), output_line(&["run", spec]));
}

#[test]
fn every_kind_of_result_is_checked() {
    let says = |spec: &str| {
        let out = works(&["run", spec]);
        out.lines().find(|line| line.starts_with("error")).unwrap()[9..].to_string()
    };
    assert_eq!(says("sum i64[30,20] axes=[0]"), "none: equal to the reference (all 20 outputs checked)");
    assert_eq!(says("all bool[30,20] axes=[1] keep_dims"), "none: equal to the reference (all 30 outputs checked)");
    assert_eq!(says("max f16[30,20]@ba axes=[0]"), "0 at most against the reference, bound 0 (all 20 outputs checked)");
    assert_eq!(says("sum f32[0,2] axes=[0]"), "0 at most against the reference, bound 0 (all 2 outputs checked)");
    assert_eq!(says("sum f32[2,0] axes=[0]"), "none: equal to the reference (all 0 outputs checked)");
    assert!(says("log_sum_exp f64[30,20]@(-20,1) axes=[0]").contains("(all 20 outputs checked)"));
    assert!(says("prod bf16[300,20] axes=[0]").contains("(all 20 outputs checked)"));
    assert_eq!(says("argmax f32[30,20] axes=[1]"), "none: equal to the reference (all 30 outputs checked)");
    for (spec, outputs) in [
        ("softmax f32[30,20] axes=[1]", 600),
        ("layer_norm(eps=1e-5) f16[30,20], f16[20], f16[20] axes=[1]", 600),
        ("sum f32[30,20] axes=[0] apply=\"x0 / r0\" -> f64@ba", 600),
        ("var f32[30,20] axes=[0]", 20),
        ("sum f32[30,20], f32[20] axes=[1] scalar eps:f32 map=\"x0*x1\" then=\"r0 / (eps + 1) + d\"", 30),
    ] {
        assert!(says(spec).ends_with(&format!("(all {outputs} outputs checked)")), "{spec}: {}", says(spec));
    }
}

#[test]
fn dump_prints_a_stage_or_all() {
    let spec = "sum f32[1,6,12] axes=[2]";
    assert_eq!(works(&["dump", spec, "--stage", "spec"]), "sum f32[1,6,12] axes=[2]\n");
    assert!(works(&["dump", spec, "--stage", "schedule", "--schedule", "width=64"]).starts_with("width=64"));
    assert!(works(&["dump", spec, "--stage", "nest"]).starts_with("nest "));
    assert!(works(&["dump", spec, "--stage", "legalize", "--width", "64"]).starts_with("nest "));
    assert!(works(&["dump", spec, "--stage", "clif"]).contains("function "));
    // What is narrower than any machine's vectors has no wide functions.
    assert!(works(&["dump", "sum f32[9,999] axes=[1]", "--stage", "asm", "--width", "128"]).starts_with("function:\n"));
    assert!(!works(&["dump", "sum f32[9,999] axes=[1]", "--stage", "legalize", "--width", "128"]).contains("wide"));
    let all = works(&["dump", spec]);
    for stage in ["spec", "problem", "schedule", "nest", "legalize", "clif", "asm"] {
        assert!(all.contains(&format!("== {stage} ==")), "{stage}");
    }
}

#[test]
fn bench_prints_a_table() {
    let out = works(&["bench", "sum f32[64,64] axes=[1]", "max i8[1000]", "--width", "128"]);
    let mut lines = out.lines();
    assert!(lines.next().unwrap().starts_with("one core reads "), "{out}");
    let header = lines.find(|line| line.starts_with("case ")).unwrap();
    for column in ["compile", "native", "GB/s", "share", "loop", "interpreter", "x", "bits"] {
        assert!(header.contains(column), "{out}");
    }
    let rows: Vec<&str> = lines.collect();
    assert!(rows[0].starts_with("sum f32[64,64] axes=[1] ") && rows[0].ends_with("  interpreter"), "{out}");
    assert!(rows[1].starts_with("max i8[1000] ") && rows.len() == 2, "{out}");
}

/// A forced schedule is the one that is timed, and is refused beside all candidates and where it does not fit.
#[test]
fn bench_times_a_forced_schedule() {
    let out = works(&["bench", "sum f32[64,64] axes=[1]", "--schedule", "width=0", "--json"]);
    assert!(out.starts_with("{\"peer\":\"cranefold\""), "{out}");
    let no_tile = "tile=i7: the problem has no output loop i7; it has i0";
    refuses(&["bench", "sum f32[64,64] axes=[1]", "--schedule", "tile=i7:2"], no_tile);
    let both = ["bench", "sum f32[8]", "--schedule", "width=0", "--candidates"];
    refuses(&both, "the argument '--schedule <S>' cannot be used with '--candidates'");
}

/// Every kind of spec is compared with the interpreter's bits, and timed.
#[test]
fn bench_takes_every_kind_of_spec() {
    let specs = [
        "max,argmax f32[32,100] axes=[1]",
        "sum f32[64,51], f32[51] axes=[1] map=\"x0*x1\"",
        "mean f32[32,76], f32[32]:then axes=[1] scalar eps:f32 then=\"max(r0, eps) + y0\"",
        "sum f32[32,32] axes=[1] then=\"r0 + d\"",
        "softmax f32[38,12] axes=[1]",
        "sum f32[8,100] axes=[1] apply=\"x0 / r0\"",
        "combiner(identity=\"0\", lift=\"x0\", combine=\"a0 + b0\") f64[4,100] axes=[0]",
    ];
    let out = works(&[&["bench"], &specs[..]].concat());
    let rows: Vec<&str> = out.lines().skip_while(|line| !line.starts_with("case ")).skip(1).collect();
    assert_eq!(rows.len(), specs.len(), "{out}");
    assert!(rows.iter().all(|row| row.ends_with("  interpreter")), "{out}");
}

#[test]
fn bench_reads_specs_and_the_peers_cases() {
    let path = folder("bench_reads_specs_and_the_peers_cases").join("cases.txt");
    let lines = [
        "# a comment",
        "",
        "sum f32[32,32] axes=[1]   # a spec",
        "sum.i8.64x8.a0 sum i8 64x8 0 c grid",
        "var.f32.1024.a0 no_such_op f32 1024 0 c grid",
        "max.f32.6x8.a1.t max f32 6x8 1 t view",
    ];
    fs::write(&path, lines.join("\n")).unwrap();
    let path = path.to_str().unwrap();
    let out = works(&["bench", "--file", path, "--json", "--budget-ms", "0"]);
    let lines: Vec<serde_json::Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let text = |line: &serde_json::Value, key: &str| line[key].as_str().unwrap_or_default().to_string();
    let cases: Vec<String> = lines.iter().map(|line| text(line, "case")).collect();
    assert_eq!(cases, ["sum f32[32,32] axes=[1]", "sum.i8.64x8.a0", "var.f32.1024.a0", "max.f32.6x8.a1.t"]);
    for (line, bytes) in [(&lines[0], 4096), (&lines[1], 512), (&lines[3], 192)] {
        assert_eq!((text(line, "peer").as_str(), line["threads"].as_u64()), ("cranefold", Some(1)));
        assert_eq!(line["bytes"].as_u64(), Some(bytes));
        let [first, touch, median, min] =
            ["first_ns", "touch_ns", "median_ns", "min_ns"].map(|key| line[key].as_f64().unwrap());
        assert!(first > median && median >= min && min > 0.0 && touch > 0.0, "{line}");
    }
    assert_eq!(text(&lines[2], "skip"), "line 5: there is no op `no_such_op` yet");
    let table = works(&["bench", "--file", path]);
    assert!(table.contains("skipped: line 5: there is no op `no_such_op` yet"), "{table}");
}

#[test]
fn list_shows_the_op_table() {
    let out = works(&["list"]);
    let block = |op: &str| {
        let start = out.find(&format!("\n{op} = ")).unwrap_or_else(|| panic!("{op} in {out}"));
        out[start + 1..].split("\n\n").next().unwrap().trim_end().to_string()
    };
    assert_eq!(
        block("sum"),
        "sum = sum x\n  aliases   ReduceSum add reduce_sum reduction_sum\n  oneDNN    Sum\n  takes     integers and \
         floats\n  gives     a value\n  identity  i32: 0, f32: -0.0\n  nothing   i32: 0, f32: 0.0\n  axes=[]   a copy"
    );
    assert!(block("max").contains("identity  bool: false, i32: -2147483648, f32: -inf"), "{out}");
    assert!(block("max").contains("nothing   bool: false, i32: -2147483648, f32: -inf"), "{out}");
    assert!(block("mean").contains("nothing   i32: refused, f32: nan"), "{out}");
    assert!(block("log_sum_exp").contains("identity  f32: -inf\n  nothing   f32: -inf"), "{out}");
    let norm = block("lp_max(p,eps=0)");
    assert!(norm.contains("p         finite, at least 1, must be given\n  eps       finite\n"), "{out}");
    assert!(norm.ends_with("axes=[]   groups of one"), "{out}");
    assert_eq!(
        block("argmax([last])"),
        "argmax([last]) = position of the greatest x\n  aliases   ArgMax arg_max\n  takes     bool, integers and \
         floats\n  gives     a position, i64 or another integer type that holds it\n  last      a word, there or not\n  nothing   bool: refused, i32: \
         refused, f32: refused\n  axes=[]   groups of one"
    );
    assert!(
        block("count_nonzero").contains(
            "gives     a count, i64 or another integer type that holds it\n  nothing   bool: 0, i32: 0, f32: 0"
        ),
        "{out}"
    );
    assert!(block("var(ddof=0)").contains("ddof      finite, at least 0\n  nothing   f32: nan"), "{out}");
    assert_eq!(
        block("layer_norm(eps=0)"),
        "layer_norm(eps=0) = (x - mean x) * r * x1 + x2, r = 1 / sqrt(var x + eps)\n  aliases   LayerNormalization layernorm\n  \
         takes     floats\n  inputs    1 to 3; x1 and so on broadcast to x0\n  gives     a value at each position of \
         the slice\n  eps       finite, at least 0\n  axes=[]   groups of one"
    );
    for (op, line) in [
        ("all", "And"),
        ("any", "Or"),
        ("lp(p)", "p-norm"),
        ("std(ddof=0)", "Std"),
        ("l2_normalize_add(eps=0)", "l2_normalize of OpenVino, eps_mode add"),
        ("l2_normalize_max(eps=0)", "l2_normalize of OpenVino, eps_mode max; l2_normalize of TensorFlow"),
        ("l2_normalize_max_root(eps=0)", "l2_normalize of PyTorch"),
        ("median", "Median"),
        ("mode", "Mode"),
    ] {
        assert!(block(op).contains(&format!("\n  oneDNN    {line}\n")), "{op}: {out}");
    }
    for dtype in ["bool ", " i8 i16 i32 i64 u8 u16 u32 u64", " f16 bf16 f32 f64"] {
        assert!(out.contains(dtype), "{out}");
    }
}

#[test]
fn help_is_printed_on_stdout() {
    assert!(works(&["--help"]).contains("Usage: cranefold"));
    assert!(works(&["run", "--help"]).contains("--executor"));
    assert!(works(&["--version"]).starts_with("cranefold "));
}

/// A reader that leaves early is no failure, and no panic.
#[test]
fn a_closed_pipe_ends_the_command_quietly() {
    for args in [&["list"][..], &["dump", "sum f32[100,100] axes=[0]"], &["run", "sum f32[4]"], &["--help"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cranefold"));
        let mut child = command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let done = child.wait_with_output().unwrap();
        assert_eq!((done.status.code(), done.stderr.as_slice()), (Some(0), &b""[..]), "{args:?}");
    }
}

/// Control characters of an argument do not break its message into lines; what points at a place in a spec or an
/// expression has lines of its own, and no other control characters.
#[test]
fn messages_are_one_line_but_for_places() {
    for spec in ["sum\nf33[2]", "sum f32[2]\n\nfoo\tbar", "\u{1b}[31m", "\n"] {
        let done = cranefold(&["run", spec]);
        assert_eq!((done.code, done.err.lines().count()), (Some(2), 3), "{spec:?}: {}", done.err);
        assert!(!done.err.contains(|c: char| c.is_control() && c != '\n'), "{spec:?}: {}", done.err);
    }
    let done = cranefold(&["run", "sum f32[2] map=\"x0 *\n\tz\u{7f}\""]);
    let lines: Vec<&str> = done.err.lines().collect();
    assert_eq!((done.code, lines.len()), (Some(2), 3), "{}", done.err);
    assert!(!done.err.contains(|c: char| c.is_control() && c != '\n'), "{:?}", done.err);
    let done = cranefold(&["run", "sum f32[2]", "--input", "a\nb\u{1b}.npy"]);
    assert_eq!(done.err, "error: cannot read a\\nb\\u{1b}.npy: No such file or directory (os error 2)\n");
}
