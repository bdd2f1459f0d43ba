//! The README and the pages of `docs/` show what the program prints, and link to what exists.
//!
//! A comment on a line of its own marks a block that is made again and compared:
//!
//! | mark | the block after it |
//! | --- | --- |
//! | `dump: SPEC \| STAGE` | a dump; then may follow the bits of vectors, a word of the first line and one of the last line shown |
//! | `explain: SPEC \| BITS` | an explain page |
//! | `header: SPEC \| NAME \| TRIPLE \| FEATURES` | a C header |
//! | `refused: SPEC` | the error of a spec |
//! | `head: FILE \| WORD` | the block of a Rust file's head that begins with this rule of a grammar |
//! | `table: FILE \| WORD` | the table of a Rust file's head whose first cell is this word |
//! | `specs` | specs, each of which compiles and reads back |
//!
//! `BLESS=1 cargo test --release --test readme` rewrites them.

use cranefold::passes::{PASSES, Pass};
use cranefold::{Compiler, DType, Options, Spec, Target, aot};
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The most lines of the README: a page that a newcomer reads once.
const MOST_LINES: usize = 250;

const FENCE: &str = "```";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(root().join(&path)).unwrap_or_else(|e| panic!("{}: {e}", path.as_ref().display()))
}

/// The README and the pages, as paths from the root.
fn pages() -> Vec<PathBuf> {
    let folder = fs::read_dir(root().join("docs")).expect("the folder of the pages");
    let names = folder.map(|entry| entry.expect("an entry").file_name());
    let pages =
        names.map(|name| Path::new("docs").join(name)).filter(|path| path.extension().is_some_and(|e| e == "md"));
    let mut pages: Vec<PathBuf> = pages.chain([PathBuf::from("README.md")]).collect();
    pages.sort();
    pages
}

/// The kind and the parts of a mark.
fn mark(line: &str) -> Option<(&str, Vec<&str>)> {
    let inside = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?;
    let (kind, words) = inside.split_once(": ").unwrap_or((inside, ""));
    Some((kind, words.split(" | ").map(str::trim).collect()))
}

/// The page with each marked block made again.
fn remade(page: &str) -> String {
    let mut lines = page.lines().peekable();
    let mut new = String::new();
    let mut add = |line: &str| new += &format!("{line}\n");
    while let Some(line) = lines.next() {
        add(line);
        let Some((kind, words)) = mark(line) else { continue };
        if kind == "table" {
            while lines.next_if(|line| line.starts_with('|')).is_some() {}
            add(table(words[0], words[1]).trim_end());
            continue;
        }
        let open = lines.next_if(|line| line.starts_with(FENCE)).unwrap_or_else(|| panic!("no block after {line}"));
        add(open);
        let old: Vec<&str> = lines.by_ref().take_while(|line| *line != FENCE).collect();
        let made = match kind {
            "dump" => dumped(&words),
            "explain" => explained(&words),
            "header" => Some(header(&words)),
            "refused" => Some(refusal(&words)),
            "head" => Some(head(words[0], words[1])),
            "specs" => None,
            _ => panic!("no block is made by {line}"),
        };
        add(made.unwrap_or(old.join("\n")).trim_end());
        add(FENCE);
    }
    new
}

/// A compiler of code that is the same on every machine, with vectors of so many bits; nothing where it is not known.
fn compiler(bits: Option<&&str>) -> Option<(Compiler, u32)> {
    // At 128 bits the features of the machine do not show; wider code is for a machine that is none.
    match bits {
        None => Some((Compiler::host().expect("this machine"), 128)),
        Some(bits) => {
            let target = Target::new("x86_64-unknown-none", "x86-64-v4").ok()?;
            Some((Compiler::builder().target(target).build().expect("a compiler"), bits.parse().expect("bits")))
        }
    }
}

fn spec(text: &str) -> Spec {
    text.parse().unwrap_or_else(|e| panic!("`{text}`: {e}"))
}

fn header(words: &[&str]) -> String {
    let &[text, name, triple, features] = words else { panic!("{words:?}: four parts") };
    let target = Target::elsewhere(triple, features).expect("a target");
    aot::emit(&target, &spec(text), &Options::default(), Some(name)).expect("an object").header
}

fn refusal(words: &[&str]) -> String {
    words[0].parse::<Spec>().expect_err("a refusal").to_string()
}

fn explained(words: &[&str]) -> Option<String> {
    let (compiler, width) = compiler(words.get(1))?;
    let options = Options { width: Some(width), ..Options::default() };
    let kernel = compiler.compile_with(&spec(words[0]), &options);
    Some(kernel.and_then(|kernel| kernel.explain()).expect("a page"))
}

/// The dump of a spec, the same on every machine; nothing where it is not known.
fn dumped(words: &[&str]) -> Option<String> {
    let (compiler, width) = compiler(words.get(2))?;
    let options = Options { width: Some(width), ..Options::default() };
    let kernel = compiler.compile_with(&spec(words[0]), &options);
    let dump = kernel.and_then(|kernel| kernel.dump(words[1])).expect("a dump");
    let (Some(first), Some(last)) = (words.get(3), words.get(4)) else { return Some(dump) };
    let lines: Vec<&str> = dump.lines().skip_while(|line| !line.contains(first)).collect();
    let end = lines.iter().position(|line| line.contains(last)).expect("the last line");
    Some(lines[..=end].iter().map(|line| format!("{line}\n")).collect())
}

/// The lines of a Rust file's head.
fn head_lines(file: &str) -> Vec<String> {
    let text = read(file);
    let lines = text.lines().filter_map(|line| line.strip_prefix("//!"));
    lines.map(|line| line.strip_prefix(' ').unwrap_or(line).to_string()).collect()
}

/// The block of a file's head that begins with the rule of this name.
fn head(file: &str, name: &str) -> String {
    let text = head_lines(file).join("\n");
    let open = format!("{FENCE}text\n");
    let blocks = text.split(&open).skip(1).map(|rest| rest.split(FENCE).next().expect("an end"));
    let is_rule = |block: &&str| block.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with("= "));
    let found = { blocks }.find(is_rule).unwrap_or_else(|| panic!("{file} has no grammar of {name}"));
    found.to_string()
}

/// The table of a file's head whose first cell is this, without links of rustdoc.
fn table(file: &str, first: &str) -> String {
    let lines = head_lines(file);
    let rows = lines.iter().skip_while(|line| !line.starts_with(&format!("| {first} |")));
    let rows: Vec<String> = rows.take_while(|line| line.starts_with('|')).map(|line| without_links(line)).collect();
    assert!(rows.len() > 2, "{file} has no table of {first}");
    rows.join("\n")
}

/// `` [`a`](b) `` and `` [`a`] `` as `` `a` ``.
fn without_links(line: &str) -> String {
    let mut parts = line.split("[`");
    let mut text = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let (name, rest) = part.split_once("`]").expect("a link ends");
        let rest = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or(rest, |(_, rest)| rest);
        text += &format!("`{name}`{rest}");
    }
    text
}

#[test]
fn marked_blocks_are_current() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut different = vec![];
    for path in pages() {
        let page = read(&path);
        let current = remade(&page);
        let line = page.lines().zip(current.lines()).position(|(old, new)| old != new);
        if bless {
            fs::write(root().join(&path), current).expect("the page can be written");
        } else if page != current {
            different.push(format!("{}:{}", path.display(), line.unwrap_or(page.lines().count()) + 1));
        }
    }
    assert!(different.is_empty(), "{different:?}\nBLESS=1 cargo test --release --test readme");
}

#[test]
fn the_readme_is_one_page() {
    let lines = read("README.md").lines().count();
    assert!(lines <= MOST_LINES, "the README has {lines} lines, above the limit of {MOST_LINES}");
}

#[test]
fn ci_runs_the_test_command() {
    let readme = read("README.md");
    let command = readme.lines().find(|l| l.starts_with("cargo test")).expect("a test command");
    let command = command.split("  ").next().expect("a command before the remark");
    let is_step = |l: &&str| l.starts_with("step ") && l.ends_with(command);
    assert!(read(".ci/run").lines().any(|l| is_step(&l)), "`{command}` is not what .ci/run calls");
}

/// The specs shown are read and compiled.
#[test]
fn specs_are_read() {
    let compiler = Compiler::host().expect("this machine");
    let mut blocks = 0;
    for path in pages() {
        for part in read(&path).split("<!-- specs -->\n").skip(1) {
            let block = part.strip_prefix(&format!("{FENCE}text\n")).expect("a block");
            blocks += 1;
            for line in block.lines().take_while(|line| *line != FENCE) {
                let text = line.split("   ").next().expect("a spec before the remark");
                let read = spec(text);
                compiler.compile(&read).unwrap_or_else(|e| panic!("`{text}`: {e}"));
                assert_eq!(read.to_string().parse(), Ok(read));
            }
        }
    }
    assert_eq!(blocks, 7);
}

#[test]
fn the_table_of_ops_is_that_of_the_code() {
    let page = read("docs/specs.md");
    let cells = |line: &str| line.replace("\\|", "").split('|').map(|c| c.trim().to_string()).collect::<Vec<_>>();
    let rows = page.lines().filter(|l| l.starts_with("| `")).map(cells);
    let rows: Vec<Vec<String>> = rows.filter(|cells| cells.len() == 8).collect();
    for row in cranefold::ops::ROWS {
        let cells = rows
            .iter()
            .find(|cells| cells[1].split(", ").any(|n| n.trim_matches('`').split('(').next() == Some(row.name)));
        let cells = cells.unwrap_or_else(|| panic!("`{}` is not in docs/specs.md", row.name));
        let taken = [DType::Bool, DType::I32, DType::F32].map(|dtype| row.takes(dtype));
        for (cell, takes) in cells[3..6].iter().zip(taken) {
            assert_eq!(cell == "✓", takes, "the types that `{}` takes", row.name);
        }
    }
}

#[test]
fn the_table_of_passes_is_that_of_the_code() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/internals.md");
    let page = fs::read_to_string(path).expect("the page");
    let (before, table) = page.split_once("| pass | effect |").expect("the table of passes");
    let (head, rest) = table.split_once("| --- | --- | --- | --- |\n").expect("the head of the table");
    let (_, after) = rest.split_once("\n\n").expect("text after the table");
    let row = |pass: &Pass| format!("| `{}` | {} | {} | {} |", pass.name, pass.summary, pass.because, pass.relies_on);
    let rows: Vec<String> = PASSES.iter().map(row).collect();
    let rows = rows.join("\n");
    let current = format!("{before}| pass | effect |{head}| --- | --- | --- | --- |\n{rows}\n\n{after}");
    if std::env::var_os("BLESS").is_some() {
        fs::write(path, &current).expect("the page");
    }
    assert!(page == current, "the table of passes in docs/internals.md is not that of PASSES; BLESS=1 rewrites it");
}

/// The text without its blocks of code.
fn prose(page: &str) -> String {
    let mut inside = false;
    let mut keep = |line: &&str| {
        let is_fence = line.starts_with(FENCE);
        inside ^= is_fence;
        !inside && !is_fence
    };
    page.lines().filter(|line| keep(line)).map(|line| format!("{line}\n")).collect()
}

/// The definitions `[label]: target` of a page.
fn definitions(prose: &str) -> BTreeMap<String, String> {
    let lines = prose.lines().filter_map(|line| line.strip_prefix('[')?.split_once("]: "));
    lines.map(|(label, target)| (label.to_string(), target.to_string())).collect()
}

/// The labels and targets of links in a text: `[a][label]` and `[a](target)`.
fn links(prose: &str) -> (Vec<String>, Vec<String>) {
    let between = |open: &str, close: char| {
        let parts = prose.split(open).skip(1).filter_map(|rest| rest.split_once(close));
        parts.map(|(inside, _)| inside.to_string()).collect::<Vec<_>>()
    };
    (between("][", ']'), between("](", ')'))
}

/// The anchor of a heading, as GitHub makes it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase().replace(' ', "-");
    kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
}

/// Every link goes to a file, and to a heading in it.
#[test]
fn links_go_somewhere() {
    let mut wrong = vec![];
    for path in pages() {
        let prose = prose(&read(&path));
        let defined = definitions(&prose);
        let (labels, inline) = links(&prose);
        // A picture is a link whose text is the label of none.
        let missing = labels.iter().filter(|label| !defined.contains_key(*label));
        wrong.extend(missing.map(|label| format!("{}: no [{label}]", path.display())));
        let unused = defined.keys().filter(|label| !labels.contains(label));
        wrong.extend(unused.map(|label| format!("{}: [{label}] is not used", path.display())));
        for target in defined.values().chain(&inline).filter(|target| !target.starts_with("http")) {
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let folder = path.parent().expect("a folder");
            let file = if file.is_empty() { path.clone() } else { folder.join(file) };
            if !root().join(&file).is_file() {
                wrong.push(format!("{}: there is no {target}", path.display()));
            } else if !heading.is_empty() {
                let text = self::prose(&read(&file));
                let headings = text.lines().filter(|line| line.starts_with('#'));
                if !{ headings }.any(|line| anchor(line.trim_start_matches('#')) == heading) {
                    wrong.push(format!("{}: no heading {target}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each page is linked from the README or the list of pages, and is a module of the rendered documentation.
#[test]
fn every_page_is_listed() {
    let lists = definitions(&read("docs/README.md"));
    let readme = definitions(&read("README.md"));
    let modules = read("src/docs.rs");
    for path in pages().iter().filter(|path| path.starts_with("docs")) {
        let name = path.file_name().expect("a name").to_string_lossy().to_string();
        let is_linked = lists.values().any(|target| *target == name) || readme.values().any(|t| Path::new(t) == path);
        assert!(is_linked, "{name} is not linked");
        assert!(name == "README.md" || modules.contains(&format!("\"{name}\";")), "src/docs.rs lacks {name}");
    }
}

/// Files named in the text exist: words in backquotes that begin with a folder of the repository.
#[test]
fn files_named_exist() {
    let folders = fs::read_dir(root()).expect("the root").map(|entry| entry.expect("an entry"));
    let folders = folders.filter(|entry| entry.path().is_dir()).map(|entry| entry.file_name());
    let folders: HashSet<String> = folders.map(|name| name.to_string_lossy().to_string()).collect();
    let mut missing = vec![];
    for path in pages() {
        for word in prose(&read(&path)).split('`').skip(1).step_by(2) {
            let (folder, rest) = word.split_once('/').unwrap_or_default();
            let is_path = rest.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_./-".contains(c));
            if folders.contains(folder) && is_path && !root().join(word).exists() {
                missing.push(format!("{}: {word}", path.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// The pictures are those that their script draws.
#[test]
fn pictures_are_drawn() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pictures");
    fs::create_dir_all(&folder).expect("a folder");
    let script = root().join("docs/pictures/draw.py");
    let Ok(done) = Command::new("python3").arg(script).arg(&folder).output() else {
        eprintln!("skipped: there is no python3");
        return;
    };
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    for name in ["pipeline.svg", "tree.svg", "rustdoc.md"] {
        let drawn = fs::read_to_string(folder.join(name)).expect("a picture");
        assert!(drawn == read(format!("docs/pictures/{name}")), "{name} differs: python3 docs/pictures/draw.py");
    }
}
