//! Problems and nests in place of specs: what `dump` prints is read back, edited or not.

use crate::{Files, cranefold, folder, refuses, works};
use npyz::Order;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

const SPEC: &str = "sum f32[4,100000] axes=[1]";

/// Calls the command with a text on its standard input, which must succeed; gives what it printed.
fn fed(args: &[&str], text: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cranefold"));
    let mut child =
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the command starts");
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it reads");
    let done = child.wait_with_output().expect("it ends");
    assert_eq!(done.status.code(), Some(0), "{args:?}");
    String::from_utf8(done.stdout).expect("it prints UTF-8")
}

/// A line that begins so, without its name.
fn line<'a>(out: &'a str, name: &str) -> &'a str {
    let line = out.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name}: {out}"));
    &line[9..]
}

#[test]
fn every_stage_that_reads_back_runs() {
    let stages = ["nest", "reorder", "stream", "fold", "hoist", "outline", "vectorize", "unroll", "legalize"];
    for width in ["0", "128", "512"] {
        for stage in stages {
            let text = works(&["dump", SPEC, "--stage", stage]);
            let out = fed(&["run", "--from", "nest", "-", "--width", width], &text);
            assert_eq!(line(&out, "nest"), "sum f32 4x(100000) -> f32");
            assert_eq!(line(&out, "input"), "1.53 MB of elements, random, seed 0");
            assert!(
                line(&out, "output").starts_with("f32[4] 4") || line(&out, "output").starts_with("f32[4] 5"),
                "{out}"
            );
            assert_eq!(line(&out, "error"), "none: equal to the interpreter");
        }
        let problem = works(&["dump", SPEC, "--stage", "problem"]);
        let out = fed(&["run", "--from", "problem", "-", "--width", width], &problem);
        assert_eq!(line(&out, "problem"), "sum f32 4x(100000) -> f32");
        assert_eq!(line(&out, "error"), "none: equal to the interpreter");
    }
}

#[test]
fn problems_and_nests_are_dumped_and_explained() {
    let problem = works(&["dump", SPEC, "--stage", "problem"]);
    assert_eq!(fed(&["dump", "--from", "problem", "-", "--stage", "problem"], &problem), problem);
    let nest = works(&["dump", SPEC, "--stage", "nest"]);
    assert_eq!(fed(&["dump", "--from", "problem", "-", "--stage", "nest"], &problem), nest);
    assert_eq!(fed(&["dump", "--from", "nest", "-", "--stage", "nest"], &nest), nest);
    let legal = works(&["dump", SPEC, "--stage", "legalize"]);
    assert_eq!(fed(&["dump", "--from", "nest", "-", "--stage", "legalize"], &legal), legal);
    let page = works(&["explain", SPEC]);
    let of_problem = fed(&["explain", "--from", "problem", "-"], &problem);
    assert_eq!(of_problem, page.split_once('\n').expect("lines").1, "all but the line of the spec");
    assert!(fed(&["explain", "--from", "nest", "-"], &nest).starts_with("nest       sum f32 4x(100000) -> f32\n"));
}

#[test]
fn an_edited_nest_runs_on_files() {
    let files = Files::of("edited_nest");
    let path = |name: &str| files.0.join(name).display().to_string();
    let nest = works(&["dump", "sum f32[2,3] axes=[1]", "--stage", "nest"]);
    fs::write(path("nest.txt"), nest.replace("add", "mul").replace("= -0.0", "= 1.0")).expect("a file");
    let elements: Vec<u8> = [1f32, 2.0, 3.0, 4.0, 5.0, 6.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    crate::write_npy(Path::new(&path("x.npy")), "<f4", Order::C, &[6], &elements);
    let out =
        works(&["run", "--from", "nest", &path("nest.txt"), "--input", &path("x.npy"), "--output", &path("y.npy")]);
    assert_eq!(line(&out, "output"), "f32[2] 6.0 120.0");
    let (dtype, shape, bytes) = crate::read_npy(Path::new(&path("y.npy")));
    assert_eq!((dtype.as_str(), shape.as_slice()), ("'<f4'", &[2][..]));
    assert_eq!(bytes, [6f32, 120.0].map(f32::to_le_bytes).concat());
    let interpreted = works(&["run", "--from", "nest", &path("nest.txt"), "--executor", "interpreter"]);
    assert_eq!(line(&interpreted, "error"), "none: this is the interpreter");
    // An output that is read has an old file.
    let inout =
        "nest \"inout\" { in x0: f32[6] inout x1: f32[6] for i0 in 0..6 parallel { x1[i0] = add(x1[i0], x0[i0]) } }";
    fs::write(path("inout.txt"), inout).expect("a file");
    let x = path("x.npy");
    let out = works(&["run", "--from", "nest", &path("inout.txt"), "--input", &x, "--old", &x]);
    assert_eq!(line(&out, "output"), "f32[6] 2.0 4.0 6.0 8.0 10.0 12.0");
    let shape = format!("{x}: the file has shape [6], the buffer of x0 has shape [400000], padding and gaps included");
    fs::write(path("long.txt"), works(&["dump", SPEC, "--stage", "nest"])).expect("a file");
    refuses(&["run", "--from", "nest", &path("long.txt"), "--input", &x], &shape);
}

#[test]
fn what_does_not_read_is_shown() {
    let folder = folder("from_refused");
    let refused = |from: &str, text: &str, message: &str| {
        let path = folder.join("text").display().to_string();
        fs::write(&path, text).expect("a file");
        for verb in ["run", "dump", "explain"] {
            refuses(&[verb, "--from", from, &path], &message.replace("FILE", &path));
        }
    };
    let nest = "nest \"\" {\n  in x0: f32[4]\n  out x1: f32[4]\n  for i0 in 0..4 parallel { x1[i0] = ad(x0[i0], x0[i0]) }\n}\n";
    refused(
        "nest",
        nest,
        "FILE: no operation or definition is called `ad`, in line 4, column 38\n    \
         for i0 in 0..4 parallel { x1[i0] = ad(x0[i0], x0[i0]) }\n                                       ^",
    );
    refused(
        "nest",
        &nest.replace("ad(x0[i0], x0[i0])", "x0[i0 + 1]"),
        "the nest does not verify: index i0 + 1 may be 1 to 4, and x0 has 4 elements, in `x1[i0] = x0[i0 + 1]`",
    );
    let message = "these are the nests of several parts; `dump --threads 1` prints one nest";
    refused("nest", "part 0 of 2: 0 0\nnest", &format!("FILE: {message}, in line 1\n  part 0 of 2: 0 0\n  ^"));
    refused(
        "problem",
        "problem {\n  reduce sum in f32 over many\n}",
        "FILE: `many` is no number in range, in line 2\n    reduce sum in f32 over many\n    ^",
    );
    let absent = folder.join("absent").display().to_string();
    refuses(
        &["dump", "--from", "nest", &absent],
        &format!("cannot read {absent}: No such file or directory (os error 2)"),
    );
    let path = folder.join("nest").display().to_string();
    fs::write(&path, works(&["dump", SPEC, "--stage", "nest"])).expect("a file");
    let only = "is for specs: a problem and a nest have neither a reference nor names";
    refuses(&["run", "--from", "nest", &path, "--scalar", "s=1"], &format!("--scalar {only}"));
    refuses(&["run", "--from", "nest", &path, "--executor", "reference"], &format!("--executor reference {only}"));
    let moved = "`width=128 jam=4 in_flight=1` moves loops: a nest keeps its own, and takes width= and prefetch= alone";
    refuses(&["dump", "--from", "nest", &path, "--schedule", "jam=4"], moved);
    let stage = cranefold(&["dump", "--from", "nest", &path, "--stage", "tile"]);
    assert!(
        stage.err.starts_with("error: `tile` is no stage; the stages are schedule nest fold hoist "),
        "{}",
        stage.err
    );
}
