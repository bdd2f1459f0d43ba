//! Passes tested from text: a nest before one pass, and the nest expected after it.
//!
//! A file of `tests/passes/<pass>/`:
//!
//! ```text
//! # Why the case exists; these lines are kept.
//! schedule: width=128 tile=i0:4     optional: else the default schedule
//! vectors: 512                      optional: the bits of the target's vectors, else 128; `512 intel` as well
//! ---- before
//! nest "" {
//! ---- after
//! nest "" {
//! ```
//!
//! A pass that finds nothing to do says `---- after: as before`; each pass has such a case, and two in which it fires.
//! `BLESS=1 cargo test --test passes` rewrites what stands after; that both nests verify, and have equal terms, is asserted
//! all the same.

use cranefold::ir::eval::Terms;
use cranefold::ir::{Nest, verify};
use cranefold::passes::{PASSES, Pass};
use cranefold::{Schedule, Vectors};
use std::fs;
use std::path::{Path, PathBuf};

const BLESS: &str = "BLESS=1 cargo test --test passes";
const BEFORE: &str = "---- before\n";
const AFTER: &str = "---- after\n";
const STAYS: &str = "---- after: as before\n";

/// A file in parts.
struct Case {
    head: String,
    before: Nest,
    /// The nest after the pass; none where it stays as it was.
    after: Option<Nest>,
}

impl Case {
    fn parse(path: &Path) -> Case {
        let name = path.display();
        let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{name}: {e}"));
        let (head, rest) = text.split_once(BEFORE).unwrap_or_else(|| panic!("{name} has no `{}`", BEFORE.trim()));
        assert!(head.starts_with("# "), "{name} does not say why it exists");
        let before = rest.split("---- after").next().expect("text before the mark");
        let before: Nest = before.parse().unwrap_or_else(|e| panic!("{name}, before: {e}"));
        verify(&before).unwrap_or_else(|e| panic!("{name}, before: {e}"));
        Case { head: head.into(), before, after: None }
    }

    /// The value of a line of the head.
    fn value(&self, key: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).map(str::trim)
    }

    /// The case with the nest that the pass makes.
    fn after(mut self, pass: &Pass) -> Case {
        let schedule: Schedule =
            self.value("schedule").map_or_else(Schedule::default, |s| s.parse().expect("a schedule"));
        let mut words = self.value("vectors").unwrap_or("128").split(' ');
        let bits = words.next().and_then(|bits| bits.parse().ok()).expect("bits of vectors");
        let intel = words.next().is_some_and(|word| word == "intel");
        let vectors = Vectors { intel, ..Vectors::WIDEST.at_most(bits) };
        let after = (pass.run)(self.before.clone(), &schedule, vectors);
        self.after = (after != self.before).then_some(after);
        self
    }

    fn print(&self) -> String {
        let after = self.after.as_ref().map_or(STAYS.to_string(), |after| format!("{AFTER}{after}\n"));
        format!("{}{BEFORE}{}\n{after}", self.head, self.before)
    }
}

fn files_of(pass: &Pass) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/passes").join(pass.name);
    let entries = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

#[test]
fn each_pass_does_to_the_text_what_its_file_says() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut wrong = vec![];
    for pass in PASSES {
        let (mut fires, mut stays) = (0, 0);
        for path in files_of(pass) {
            let (name, case) = (path.display(), Case::parse(&path).after(pass));
            match &case.after {
                Some(after) => {
                    verify(after).unwrap_or_else(|e| panic!("{name}, after: {e}\n{after}"));
                    let before = Terms::of(&case.before);
                    // An input of bytes begins at any of the places in a line.
                    let places = if after.to_string().contains("misalign ") { 64 } else { 1 };
                    for place in 0..places {
                        let after_terms = Terms::of_misaligned(after, place);
                        assert_eq!(before, after_terms, "{name}: other terms at place {place} of a line\n{after}");
                    }
                    fires += 1;
                }
                None => stays += 1,
            }
            if case.print() != fs::read_to_string(&path).expect("just read") {
                match bless {
                    true => fs::write(&path, case.print()).expect("the file is written"),
                    false => wrong.push(format!("{name} is not what the pass gives:\n{}", case.print())),
                }
            }
        }
        assert!(fires >= 2 && stays >= 1, "{}: it fires in {fires} cases, and does nothing in {stays}", pass.name);
    }
    assert!(wrong.is_empty(), "{}\n`{BLESS}` rewrites the files", wrong.join("\n"));
}
