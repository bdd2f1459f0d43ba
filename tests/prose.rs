//! The first lines of item docs are sentences about their item.
//!
//! The subject of such a line is the item's noun, so it does not begin with one of [`PRONOUNS`]. `prose.txt` counts the
//! lines that still do, by file; a count may only shrink. `BLESS=1 cargo test --release --test prose` lowers counts, and
//! follows files that have moved while the sum does not grow.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Words that stand for a noun or ask for one.
const PRONOUNS: [&str; 9] = ["What", "Whether", "How", "Where", "That", "Those", "Of", "As", "So"];

/// The folders of sources of all crates.
const FOLDERS: [&str; 10] = [
    "capi/src",
    "ceiling/src",
    "cli/src",
    "fuzz/src",
    "graph/src",
    "ir/src",
    "python/src",
    "reference/src",
    "spec/src",
    "src",
];

const COUNTS: &str = "tests/prose.txt";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust source under a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut found: Vec<PathBuf> = entries
        .flat_map(|path| match path.is_dir() {
            true => sources(&path),
            false => vec![path],
        })
        .filter(|path| path.extension().is_some_and(|e| e == "rs"))
        .collect();
    found.sort();
    found
}

/// The first lines of docs that begin with a pronoun, with their numbers.
fn pronouns(text: &str) -> Vec<(usize, &str)> {
    let mut found = vec![];
    let mut before = "";
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let doc = |line: &'_ str| ["///", "//!"].into_iter().find(|mark| line.starts_with(mark));
        let first = doc(line).filter(|mark| doc(before) != Some(mark));
        let word = first.and_then(|mark| line[mark.len()..].split_whitespace().next());
        if word.is_some_and(|word| PRONOUNS.contains(&word.trim_end_matches([',', '.', ':']))) {
            found.push((number + 1, line));
        }
        before = line;
    }
    found
}

/// The lines of every source, by its path from the root.
fn found() -> BTreeMap<String, Vec<String>> {
    let mut all = BTreeMap::new();
    for path in FOLDERS.iter().flat_map(|folder| sources(&root().join(folder))) {
        let text = fs::read_to_string(&path).expect("a source");
        let lines: Vec<String> = pronouns(&text).iter().map(|(number, line)| format!("{number}: {line}")).collect();
        let name = path.strip_prefix(root()).expect("a source of the workspace").to_string_lossy().replace('\\', "/");
        if !lines.is_empty() {
            all.insert(name, lines);
        }
    }
    all
}

fn allowed() -> BTreeMap<String, usize> {
    let text = fs::read_to_string(root().join(COUNTS)).expect("the counts");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let entry = |line: &str| {
        let (count, name) = line.split_once(' ').expect("a count and a file");
        (name.to_string(), count.parse().expect("a count"))
    };
    lines.map(entry).collect()
}

#[test]
fn docs_name_their_subject() {
    let (found, allowed) = (found(), allowed());
    if std::env::var_os("BLESS").is_some() {
        let (now, before) = (found.values().map(Vec::len).sum::<usize>(), allowed.values().sum::<usize>());
        assert!(now <= before, "{now} first lines begin with {}, and {before} are allowed", PRONOUNS.join(", "));
        let head = "# First lines of item docs that begin with a pronoun, by file. Counts only shrink.\n".to_string();
        let lines = found.iter().map(|(name, lines)| format!("{} {name}\n", lines.len()));
        fs::write(root().join(COUNTS), [head].into_iter().chain(lines).collect::<String>()).expect("a file");
        return;
    }
    let most = |name: &String| allowed.get(name).copied().unwrap_or(0);
    let too_many = found.iter().filter(|(name, lines)| lines.len() > most(name));
    let too_many: Vec<String> = too_many
        .map(|(name, lines)| format!("{name}: {} lines, {} allowed\n  {}", lines.len(), most(name), lines.join("\n  ")))
        .collect();
    assert!(too_many.is_empty(), "first lines that begin with {}:\n{}", PRONOUNS.join(", "), too_many.join("\n"));
    let lower = allowed.iter().filter(|(name, most)| found.get(*name).map_or(0, Vec::len) < **most);
    let lower: Vec<&String> = lower.map(|(name, _)| name).collect();
    assert!(lower.is_empty(), "{lower:?} have fewer now: BLESS=1 cargo test --release --test prose");
}

#[test]
fn a_first_line_is_the_first_of_its_doc() {
    let text = "//! What it is.\n//! So on.\n\n/// A thing.\n/// That is large.\nfn f() {\n    /// Whether, or not.\n    x\n}\n";
    let found: Vec<usize> = pronouns(text).into_iter().map(|(number, _)| number).collect();
    assert_eq!(found, [1, 7]);
}
