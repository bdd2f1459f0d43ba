//! The commands that the README and the pages of `docs/` show do what is shown.

use crate::{bytes, folder, works, write_npy};
use npyz::Order;
use std::fs;
use std::path::Path;
use std::process::Command;

fn pages() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the root");
    let docs = fs::read_dir(root.join("docs")).expect("the pages").map(|entry| entry.expect("an entry").path());
    let pages = docs.filter(|path| path.extension().is_some_and(|e| e == "md")).chain([root.join("README.md")]);
    pages.map(|path| fs::read_to_string(path).expect("a page")).collect()
}

/// The words of a line as a shell splits it: by spaces, but for those between quotes.
pub fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (vec![], None::<String>, None);
    for c in line.chars() {
        match (quote, c) {
            (None, '"' | '\'') => (quote, word) = (Some(c), Some(word.unwrap_or_default())),
            (Some(q), _) if c == q => quote = None,
            (None, ' ') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.into_iter().chain(word).collect()
}

/// The commands in blocks of code, without `cranefold`; lines that end in `\` go on.
pub fn commands() -> Vec<Vec<String>> {
    let mut all = vec![];
    for page in pages() {
        let page = page.replace("\\\n", " ");
        for block in page.split("```").skip(1).step_by(2).filter(|block| !is_for_a_shell(block)) {
            let lines = block.lines().filter_map(|line| {
                line.strip_prefix("cranefold ").or_else(|| line.strip_prefix("cargo run --release -- "))
            });
            all.extend(lines.map(words));
        }
    }
    all
}

/// Returns whether the lines of a block feed one another, by files or by pipes.
fn is_for_a_shell(block: &str) -> bool {
    block.starts_with("sh\n") && block.lines().any(|line| line.contains(" | cranefold "))
}

/// Blocks of lines that feed one another are run as a whole.
#[test]
fn pipes_shown_work() {
    let folder = folder("pipes_shown_work");
    let command = Path::new(env!("CARGO_BIN_EXE_cranefold"));
    let path = format!("{}:{}", command.parent().expect("a folder").display(), std::env::var("PATH").expect("a path"));
    let mut count = 0;
    for page in pages() {
        for block in page.split("```").skip(1).step_by(2).filter(|block| is_for_a_shell(block)) {
            let script = block.strip_prefix("sh\n").expect("a script");
            let done = Command::new("sh").args(["-ec", script]).current_dir(&folder).env("PATH", &path).output();
            let done = done.expect("a shell");
            let out = String::from_utf8_lossy(&done.stdout);
            assert!(
                done.status.success() && done.stderr.is_empty(),
                "{script}: {}",
                String::from_utf8_lossy(&done.stderr)
            );
            assert!(out.contains("\nerror    none: equal to the interpreter\n"), "{script}: {out}");
            count += 1;
        }
    }
    assert_eq!(count, 1);
}

/// Each is run in a folder with the arrays it names.
#[test]
fn commands_shown_work() {
    let folder = folder("commands_shown_work");
    let commands = commands();
    assert!(commands.len() >= 5, "{commands:?}");
    fs::write(folder.join("norm.txt"), model()).expect("a file");
    for command in commands {
        let raw = command.iter().any(|word| word == "--raw");
        let floats = |n: usize| vec![1.0f32; n];
        if raw {
            write_npy(&folder.join("x.npy"), "<f4", Order::C, &[12544], &bytes!(floats(12544)));
        } else {
            write_npy(&folder.join("x.npy"), "<f4", Order::C, &[64, 512], &bytes!(floats(64 * 512)));
        }
        write_npy(&folder.join("w.npy"), "<f4", Order::C, &[512], &bytes!(floats(512)));
        write_npy(&folder.join("big.npy"), "<f4", Order::C, &[1_000_000], &bytes!(floats(1_000_000)));
        write_npy(&folder.join("out.npy"), "<f4", Order::C, &[64], &bytes!(floats(64)));
        let is_file = |word: &str| {
            [".npy", ".o", ".h", ".html", ".svg", "norm.txt", "schedules.txt"].iter().any(|end| word.ends_with(end))
        };
        let place = |word: String| if is_file(&word) { folder.join(word).display().to_string() } else { word };
        works(&command.into_iter().map(place).collect::<Vec<_>>());
    }
}

/// The graph that the page of models begins with.
fn model() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/models.md");
    let page = fs::read_to_string(page).expect("a page");
    let (_, block) = page.split_once("```text\ngraph {\n").expect("a graph");
    let (text, _) = block.split_once("```").expect("the end of the block");
    format!("graph {{\n{text}")
}

/// The plan that the page of models shows is that of its graph.
#[test]
fn the_plan_shown_is_made() {
    let file = folder("the_plan_shown_is_made").join("norm.txt");
    fs::write(&file, model()).expect("a file");
    let plan = works(&["model", "plan", file.to_str().expect("a path in UTF-8"), "--bind", "N=64"]);
    let shown = pages().into_iter().any(|page| page.contains(&format!("```text\n{plan}```\n")));
    assert!(shown, "{plan}");
}

/// The run in the first screen of the README: its lines that no machine changes.
#[test]
fn the_first_run_is_as_shown() {
    let readme = pages().pop().expect("the README");
    let (_, block) = readme.split_once("```text\nspec ").expect("the first run");
    let shown = |name: &str| {
        let line = block.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no line {name}"));
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let run = commands()
        .into_iter()
        .find(|words| words[0] == "run" && words.len() == 2 && block.trim_start().starts_with(&words[1]))
        .expect("a run");
    let out = works(&run);
    for name in ["input", "output"] {
        let printed = out.lines().find(|line| line.starts_with(name)).expect("a line");
        assert_eq!(printed.split_whitespace().collect::<Vec<_>>().join(" "), shown(name));
    }
}
