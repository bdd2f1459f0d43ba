//! The grammars of problem and schedule have every word that the printers print, and no other.

use cranefold::ir::ops::Form;
use cranefold::ir::{LoopVar, Over};
use cranefold::schedule::{Divided, Parts, Tile, Transform};
use cranefold::{Problem, Schedule, Spec};
use std::collections::BTreeSet;

/// The words between double quotes in the grammar at the head of a file, which begins with this rule.
fn quoted(file: &str, rule: &str) -> BTreeSet<String> {
    let head: String = file.lines().filter_map(|l| l.strip_prefix("//!")).map(|l| format!("{}\n", l.trim())).collect();
    let blocks = head.split("```text\n").skip(1).map(|rest| rest.split("```").next().expect("an end"));
    let is_rule = |block: &&str| block.strip_prefix(rule).is_some_and(|rest| rest.trim_start().starts_with("= "));
    let grammar = { blocks }.find(is_rule).expect("a grammar").to_string();
    // A quote between single ones is not a word.
    let grammar = grammar.replace("'\"'", "");
    let words = grammar.split('"').skip(1).step_by(2).map(|word| word.trim_start_matches('@').to_string());
    words.filter(|word| word.len() > 1 && word.starts_with(|c: char| c.is_ascii_alphabetic())).collect()
}

/// Specs whose problems have every line, word and section.
const SPECS: [&str; 16] = [
    "sum f32[8,20,7,7]@nChw16c axes=[2,3] keep_dims -> @any",
    "mean f32[32,768], f32[32]:then axes=[1] then=\"max(r0, 0) + y0\"",
    "sum f32[64,512], f32[512] axes=[1] map=\"x0*x1\"",
    "min,max f32[8,100] axes=[1] apply=\"(x0 - r0) / (r1 - r0)\"",
    "max,argmax f32[2,3000] axes=[1]",
    "softmax f32[4,100]@ba axes=[1]",
    "max f32[8,1000] axes=[1]",
    "sum f32[4,10] axes=[] round_half_even -> i8",
    "sum i32[4,10] axes=[] saturate -> i8",
    "sum i16[64,64] axes=[0] saturate",
    "mean i32[64,64] axes=[0] round_half_even",
    "argmax f32[8,20]@aB16b axes=[1]",
    "sum i32[4,10] axes=[1] map=\"x0 * 2\" then=\"r0 + 1\"",
    "sum i32[4,10] axes=[1] apply=\"i64(x0) - r0\"",
    "sum f32[8,20]@ba order=logical",
    "region x:f32[8,20], y:f32[8,1] axes=[1] scalar s:f32 { p = sum(select(position(1) < 3, x, y * s)); p, sum(p, axes=[0]) }",
];

#[test]
fn the_grammar_of_problems_has_the_words_of_the_printer() {
    let mut words = BTreeSet::new();
    let problem = |spec: &str| Problem::of(&spec.parse::<Spec>().unwrap_or_else(|e| panic!("`{spec}`: {e}")));
    // Partial results of several trees are those of parts of a problem.
    let part = Problem { only: vec![0], ..problem("region x:f32[8,20] axes=[1] { sum(x), argmax(x) }") };
    for problem in SPECS.map(problem).into_iter().chain([part]) {
        let mut in_body = false;
        for line in problem.to_string().lines() {
            in_body = (in_body || line.trim() == "body") && line.trim() != "end";
            if in_body && line.trim() != "body" {
                continue;
            }
            // Neither expressions, nor the ops of `reduce`, nor types.
            let line = line.split('"').next().expect("the start");
            let head = line.trim().strip_prefix("reduce ").map(|rest| rest.rsplit_once(" in ").expect("a type").1);
            words.extend(head.map(|_| ["reduce".to_string(), "in".to_string()]).into_iter().flatten());
            let all = head.unwrap_or(line).split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            words.extend(all.filter(|w| w.len() > 1 && w.parse::<cranefold::DType>().is_err()).map(str::to_string));
        }
    }
    words.retain(|word| word.chars().all(|c| c.is_ascii_alphabetic() || c == '_'));
    assert_eq!(words, quoted(include_str!("../src/problem/mod.rs"), "problem"));
}

#[test]
fn the_grammar_of_schedules_has_the_words_of_the_printer() {
    let var = LoopVar { over: Over::Output, id: 0 };
    let tile = |transform| Tile { var, by: 2, transform };
    let tiles = [
        Transform::Steps,
        Transform::Across,
        Transform::Rows,
        Transform::Blocks,
        Transform::Runs,
        Transform::SharedFolds,
        Transform::Lanes,
    ]
    .map(tile)
    .into();
    let (form, parts) = (Form::Direct, Parts { count: 2, of: Divided::Blocks });
    let schedule = Schedule {
        width: 512,
        form,
        tiles,
        jam: 2,
        in_flight: 2,
        interleave: 2,
        prefetch: 64,
        align: 64,
        transpose: false,
        gather: 4096,
        nontemporal: true,
        keep: vec!["v".into()],
        write_first: true,
        parts,
    };
    let text = schedule.to_string();
    let words =
        text.split(|c: char| !c.is_ascii_alphabetic() && c != '_').filter(|word| word.len() > 1).map(str::to_string);
    // The plain form, transposes and outputs written last print as nothing.
    let words: BTreeSet<String> = words.chain(["plain", "on", "last"].map(str::to_string)).collect();
    assert_eq!(words, quoted(include_str!("../src/schedule.rs"), "schedule"));
}
