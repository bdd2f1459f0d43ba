//! What the README shows is what the program prints, and what it says to run is what is run.
//!
//! `BLESS=1 cargo test --test readme` rewrites the dumps, pages and headers in it.

use cranefold::{Compiler, Options, Reduction, Target, aot};
use std::fs;

const README: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
const DUMP: &str = "<!-- dump: ";
const EXPLAIN: &str = "<!-- explain: ";
const HEADER: &str = "<!-- header: ";
const FENCE: &str = "```";

/// The README with each dump and page made anew: a mark, then a fenced block. `<!-- dump: SPEC | STAGE -->`, where after
/// the stage may stand bits of vectors and what is in the first and the last line shown; `<!-- explain: SPEC | BITS -->`;
/// `<!-- header: SPEC | NAME | TRIPLE | FEATURES -->`.
fn with_dumps(readme: &str) -> String {
    let dumps = remade(readme, DUMP, "text", dumped);
    remade(&remade(&dumps, EXPLAIN, "text", explained), HEADER, "c", header)
}

/// The text with what stands in a block of this language after each of these marks made anew.
fn remade(text: &str, mark: &str, language: &str, make: fn(&[&str]) -> Option<String>) -> String {
    let mut parts = text.split(mark);
    let mut text = parts.next().expect("text before the first mark").to_string();
    for part in parts {
        let (request, rest) = part.split_once(" -->\n").expect("the mark ends");
        let block = rest.strip_prefix(&format!("{FENCE}{language}\n")).expect("a block after the mark");
        let (old, after) = block.split_once(&format!("{FENCE}\n")).expect("the block ends");
        let new = make(&request.split(" | ").collect::<Vec<_>>()).unwrap_or_else(|| old.into());
        text += &format!("{mark}{request} -->\n{FENCE}{language}\n{}\n{FENCE}\n{after}", new.trim_end());
    }
    text
}

/// A compiler of code that is the same on every machine, with vectors of so many bits; nothing where it is not known.
fn compiler(bits: Option<&&str>) -> Option<(Compiler, u32)> {
    // At 128 bits what the machine has does not show; wider code is for a machine that is none.
    match bits {
        None => Some((Compiler::host().expect("this machine"), 128)),
        Some(bits) => {
            let target = Target::new("x86_64-unknown-none", "x86-64-v4").ok()?;
            Some((Compiler::builder().target(target).build().expect("a compiler"), bits.parse().expect("bits")))
        }
    }
}

/// The header of a spec.
fn header(request: &[&str]) -> Option<String> {
    let &[spec, name, triple, features] = request else { panic!("{request:?}: four parts") };
    let target = Target::elsewhere(triple, features).expect("a target");
    let spec: Reduction = spec.parse().expect("a spec");
    Some(aot::emit(&target, &spec, &Options::default(), Some(name)).expect("an object").header)
}

/// The page of a spec.
fn explained(request: &[&str]) -> Option<String> {
    let (compiler, width) = compiler(request.get(1))?;
    let spec: Reduction = request[0].parse().expect("a spec");
    let options = Options { width: Some(width), ..Options::default() };
    Some(compiler.compile_with(&spec, &options).and_then(|kernel| kernel.explain()).expect("a page"))
}

/// What a request is answered with, the same on every machine; nothing where it is not known.
fn dumped(request: &[&str]) -> Option<String> {
    let (compiler, width) = compiler(request.get(2))?;
    let spec: Reduction = request[0].parse().expect("a spec");
    let options = Options { width: Some(width), ..Options::default() };
    let dump = compiler.compile_with(&spec, &options).and_then(|kernel| kernel.dump(request[1])).expect("a dump");
    let (Some(first), Some(last)) = (request.get(3), request.get(4)) else { return Some(dump) };
    let lines: Vec<&str> = dump.lines().skip_while(|line| !line.contains(first)).collect();
    let end = lines.iter().position(|line| line.contains(last)).expect("the last line");
    Some(lines[..=end].iter().map(|line| format!("{line}\n")).collect())
}

#[test]
fn dumps_are_current() {
    let readme = fs::read_to_string(README).expect("the README");
    let current = with_dumps(&readme);
    assert!(readme.contains(DUMP) && readme.contains(EXPLAIN), "the README shows a dump and a page");
    if std::env::var_os("BLESS").is_some() {
        fs::write(README, current).expect("the README can be written");
        return;
    }
    let different = readme.lines().zip(current.lines()).find(|(old, new)| old != new);
    assert!(readme == current, "a dump differs: {different:?}\nBLESS=1 cargo test --test readme");
}

#[test]
fn ci_runs_the_test_command() {
    let readme = fs::read_to_string(README).expect("the README");
    let ci = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/.ci/run")).expect("the script");
    let command = readme.lines().find(|l| l.starts_with("cargo test")).expect("a test command");
    assert!(ci.lines().any(|l| l == format!("step {command}")), "`{command}` is not what .ci/run calls");
}

/// The fenced block that a text starts with.
fn block(text: &str) -> &str {
    let text = text.strip_prefix(&format!("{FENCE}text\n")).expect("a block");
    text.split_once(FENCE).expect("the block ends").0
}

/// The specs shown are read and compiled.
#[test]
fn specs_are_read() {
    let readme = fs::read_to_string(README).expect("the README");
    let (_, section) = readme.split_once("## Specs\n\n").expect("a section of specs");
    let compiler = Compiler::host().expect("this machine");
    let marked = readme.split("<!-- specs -->\n").skip(1);
    let mut sections = 0;
    for specs in marked.chain([section]).map(block) {
        sections += 1;
        for line in specs.lines() {
            let spec = line.split("   ").next().expect("a spec before the remark");
            let read: Reduction = spec.parse().unwrap_or_else(|e| panic!("`{spec}`: {e}"));
            compiler.compile(&read).unwrap_or_else(|e| panic!("`{spec}`: {e}"));
            assert_eq!(read.to_string().parse(), Ok(read));
        }
    }
    assert_eq!(sections, 5);
}

/// What is shown to be refused is, in these words.
#[test]
fn refusals_are_current() {
    let readme = fs::read_to_string(README).expect("the README");
    let shown: Vec<(&str, &str)> =
        readme.split("<!-- refused: ").skip(1).map(|part| part.split_once(" -->\n").expect("the mark ends")).collect();
    assert!(!shown.is_empty());
    for (spec, text) in shown {
        let error = spec.parse::<Reduction>().expect_err("a refusal").to_string();
        assert_eq!(block(text).trim_end(), error, "{spec}");
    }
}

#[test]
fn the_table_of_ops_is_that_of_the_code() {
    let readme = fs::read_to_string(README).expect("the README");
    let cells = |line: &str| line.replace("\\|", "").split('|').map(|c| c.trim().to_string()).collect::<Vec<_>>();
    let rows = readme.lines().filter(|l| l.starts_with("| `")).map(cells);
    let rows: Vec<Vec<String>> = rows.filter(|cells| cells.len() == 8).collect();
    let mut named = 0;
    for row in cranefold::ops::ROWS {
        let cells = rows
            .iter()
            .find(|cells| cells[1].split(", ").any(|n| n.trim_matches('`').split('(').next() == Some(row.name)));
        let cells = cells.unwrap_or_else(|| panic!("`{}` is not in the README", row.name));
        let taken = [row.forms.truth.is_some(), row.forms.integer.is_some(), row.forms.float.is_some()];
        for (cell, takes) in cells[3..6].iter().zip(taken) {
            assert_eq!(cell == "✓", takes, "what `{}` takes", row.name);
        }
        named += 1;
    }
    assert_eq!(named, cranefold::ops::ROWS.len());
}
