//! Every flag that the command's help names is in a test, or in an example of the pages that a test runs.

use crate::pages::commands;
use crate::{folder, refuses, works};
use std::fs;
use std::path::Path;

/// The words of the lines of a help that name something: the commands, or the flags.
fn named(help: &str, is_name: impl Fn(&str) -> bool) -> Vec<String> {
    let lines = help.lines().filter(|line| line.starts_with("  "));
    let words = lines.map(|line| line.trim_start().split([' ', '=', ',']).find(|word| word.len() > 2));
    words.flatten().filter(|word| is_name(word)).map(str::to_string).collect()
}

/// The commands under some words, each with the flags of its help.
fn verbs(under: &[String]) -> Vec<(Vec<String>, Vec<String>)> {
    let help = works(&[under, &["--help".to_string()]].concat());
    if let Some((_, list)) = help.split_once("Commands:\n") {
        let list = list.split("\n\n").next().expect("a list");
        let list = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   ")).collect::<Vec<_>>();
        let names = named(&list.join("\n"), |_| true);
        assert!(names.len() > 3, "{names:?}");
        return names.into_iter().flat_map(|name| verbs(&[under, &[name]].concat())).collect();
    }
    let flags = named(&help, |word| word.starts_with("--") && word != "--help");
    vec![(under.to_vec(), flags)]
}

/// The text of each function of the tests.
fn functions() -> Vec<String> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command");
    let files = fs::read_dir(tests).expect("the tests").map(|entry| entry.expect("an entry").path());
    let texts: Vec<String> = files.map(|file| fs::read_to_string(file).expect("a test")).collect();
    texts.iter().flat_map(|text| text.split("\n}\n")).map(str::to_string).collect()
}

#[test]
fn every_flag_is_tested() {
    let (functions, examples) = (functions(), commands());
    let mut count = 0;
    for (verb, flags) in verbs(&[]) {
        for flag in flags {
            let quoted = |text: &str, word: &String| text.contains(&format!("\"{word}\""));
            let is_in_test = functions.iter().any(|text| verb.iter().chain([&flag]).all(|word| quoted(text, word)));
            let is_shown = examples.iter().any(|words| words.starts_with(&verb) && words.contains(&flag));
            assert!(is_in_test || is_shown, "no test and no example has `{} {flag}`", verb.join(" "));
            count += 1;
        }
    }
    assert!(count > 60, "the help has {count} flags");
}

/// The place of data in a page, from which kernels are timed.
#[test]
fn data_are_timed_off_their_alignment() {
    let row = works(&["bench", "sum f32[64]", "--offset", "4", "--budget-ms", "0"]);
    assert!(row.lines().last().is_some_and(|line| line.starts_with("sum f32[64]")), "{row}");
    let far = "invalid value '64' for '--offset <BYTES>': 64 is not in 0..64";
    refuses(&["bench", "sum f32[64]", "--offset", "64"], far);
}

/// A schedule of a file is the one whose stages are printed.
#[test]
fn stages_are_those_of_a_schedule_file() {
    let file = folder("stages_are_those_of_a_schedule_file").join("s.txt");
    let path = file.to_str().expect("text");
    let spec = "sum f32[64,64] axes=[0]";
    works(&["tune", spec, "--file", path, "--budget", "0.01"]);
    let line = fs::read_to_string(&file).expect("the file");
    let schedule = works(&["dump", spec, "--stage", "schedule", "--schedules", path]);
    assert!(line.contains(schedule.trim_end()), "{schedule} is not in {line}");
}
