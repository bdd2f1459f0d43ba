//! Golden files: what each stage makes of a spec, as text that people read.
//!
//! A file of `tests/golden/<stage>/`:
//!
//! ```text
//! # Why the case exists; these lines are kept.
//! spec: sum f32[4,100] axes=[1]
//! schedule: width=128 jam=1         optional: forces the schedule, so that the cost model does not show
//! count: for 3, lanes 2             optional: how often words occur in the last section
//! vectors: 512                      optional: the bits of the target's vectors, else 128
//! hide: defs                        optional: leaves definitions out of nests
//! ---- tile                         a stage, then its text; the last is the stage of the folder
//! nest "..." {
//! ```
//!
//! A file of a refusal has a line `error: MESSAGE` and no section. `BLESS=1 cargo test --test golden`
//! rewrites sections and messages, and adds a section that is missing; counts are asserted all the same.

use cranefold::ir::{Nest, verify};
use cranefold::schedule::{Bounds, Decided};
use cranefold::{Compiler, Kernel, Options, Problem, Schedule, Spec, Target, Vectors, inspect::dump, pipeline};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

const BLESS: &str = "BLESS=1 cargo test --test golden";

/// A golden file in parts.
#[derive(Default)]
struct Golden {
    /// The lines before the first section but that of the error.
    head: Vec<String>,
    error: Option<String>,
    sections: Vec<(String, String)>,
}

impl Golden {
    fn parse(text: &str) -> Golden {
        let mut golden = Golden::default();
        for line in text.lines() {
            if let Some(stage) = line.strip_prefix("---- ") {
                golden.sections.push((stage.into(), String::new()));
            } else if let Some((_, text)) = golden.sections.last_mut() {
                text.push_str(line);
                text.push('\n');
            } else if let Some(message) = line.strip_prefix("error:") {
                golden.error = Some(message.trim().into());
            } else {
                golden.head.push(line.into());
            }
        }
        golden
    }

    fn print(&self) -> String {
        let head = self.head.iter().map(|line| format!("{line}\n"));
        let error = self.error.iter().map(|message| format!("error: {message}\n"));
        let sections = self.sections.iter().map(|(stage, text)| format!("---- {stage}\n{text}"));
        head.chain(error).chain(sections).collect()
    }

    fn value(&self, key: &str) -> Option<&str> {
        self.head.iter().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).map(str::trim)
    }

    fn spec(&self) -> Result<Spec, Box<dyn std::error::Error>> {
        let text = self.value("spec").ok_or("there is no line `spec:`")?;
        // The line of the spec stands above; its message alone is kept.
        Ok(text.parse::<Spec>().map_err(|error| error.kind().clone())?)
    }

    fn schedule(&self) -> Result<Option<Schedule>, Box<dyn std::error::Error>> {
        Ok(self.value("schedule").map(str::parse).transpose()?)
    }

    /// The nests for the vectors named, which this machine need not have.
    fn nests(&self, bits: &str) -> Result<HashMap<&'static str, String>, Box<dyn std::error::Error>> {
        let (problem, width) = (Problem::of(&self.spec()?), bits.parse()?);
        let bounds = Bounds::new(Vectors { bits: width, ..Vectors::BASE });
        let stages = pipeline::stages(&Decided::of(problem, self.schedule()?.as_ref(), bounds)?)?;
        Ok(stages.into_iter().map(|(stage, program)| (stage, program.to_string())).collect())
    }

    fn kernel(&self) -> Result<Kernel, Box<dyn std::error::Error>> {
        let (spec, schedule) = (self.spec()?, self.schedule()?);
        let target = Target::new("x86_64-unknown-linux-gnu", "")?;
        Ok(Compiler::builder().target(target).build()?.compile_with(&spec, &Options { schedule, width: None })?)
    }

    fn text(&self, stage: &str) -> Result<String, Box<dyn std::error::Error>> {
        match self.value("vectors") {
            Some(bits) => Ok(self.nests(bits)?.remove(stage).ok_or("no nest")?),
            None => {
                let kernel = self.kernel()?;
                Ok(kernel.dump(stage).unwrap_or_else(|e| e.to_string()))
            }
        }
    }

    /// What the file should be.
    fn made_again(&self, stage: &str) -> Golden {
        let mut again = Golden { head: self.head.clone(), ..Golden::default() };
        let mut stages: Vec<&str> = self.sections.iter().map(|(stage, _)| stage.as_str()).collect();
        if stages.last() != Some(&stage) {
            stages.push(stage);
        }
        for stage in stages {
            let text = match self.text(stage) {
                Err(error) => {
                    return Golden { head: self.head.clone(), error: Some(error.to_string()), sections: vec![] };
                }
                Ok(text) => text,
            };
            let text = if self.value("hide") == Some("defs") { without_defs(&text) } else { text };
            again.sections.push((stage.into(), format!("{}\n", text.trim_end())));
        }
        again
    }

    /// Checks the counts, and that nests are nests.
    fn check(&self) -> Result<(), String> {
        if !self.head.first().is_some_and(|line| line.starts_with("# ")) {
            return Err("the file does not begin with a line `# ` that says why it exists".into());
        }
        for (_, text) in self.sections.iter().filter(|(_, t)| t.starts_with("nest ") && self.value("hide").is_none()) {
            let nest: Nest = text.parse().map_err(|e| format!("{e}\n{text}"))?;
            verify(&nest).map_err(|e| e.to_string())?;
        }
        let Some(counts) = self.value("count") else { return Ok(()) };
        let (_, text) = self.sections.last().ok_or("there is nothing to count in")?;
        for count in counts.split(',') {
            let (word, expected) = count.trim().split_once(' ').ok_or("a count is written `for 3`")?;
            let found = text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| *w == word).count();
            if found.to_string() != expected {
                return Err(format!("`{word}` occurs {found} times, and should {expected} times\n{text}"));
            }
        }
        Ok(())
    }
}

fn without_defs(nest: &str) -> String {
    let mut inside = false;
    let keep = |line: &&str| {
        inside |= line.starts_with("  def ");
        let keep = !inside;
        inside &= *line != "  }";
        keep
    };
    nest.lines().filter(keep).map(|line| format!("{line}\n")).collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<PathBuf> = read.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).expect("a name")
}

/// Lines taken out with `-`, put in with `+`, and two lines around them.
fn difference(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    // The longest common subsequence of what follows each pair of lines.
    let mut common = vec![vec![0; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            let skip = common[i + 1][j].max(common[i][j + 1]);
            common[i][j] = if old[i] == new[j] { common[i + 1][j + 1] + 1 } else { skip };
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, vec![]);
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push((' ', old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || i < old.len() && common[i + 1][j] >= common[i][j + 1] {
            lines.push(('-', old[i]));
            i += 1;
        } else {
            lines.push(('+', new[j]));
            j += 1;
        }
    }
    let near = |at: usize| lines[at.saturating_sub(2)..lines.len().min(at + 3)].iter().any(|(sign, _)| *sign != ' ');
    let shown = (0..lines.len()).filter(|&at| near(at)).map(|at| format!("    {}{}\n", lines[at].0, lines[at].1));
    shown.collect()
}

#[test]
#[cfg(target_arch = "x86_64")]
fn every_stage_is_as_the_golden_files_show_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let bless = std::env::var_os("BLESS").is_some();
    let mut failures = vec![];
    for folder in entries(&root) {
        let stage = name(&folder);
        assert!(dump::stage_names().any(|known| known == stage), "tests/golden/{stage} is no stage");
        for path in entries(&folder) {
            let file = format!("tests/golden/{stage}/{}", name(&path));
            let text = fs::read_to_string(&path).expect("a golden file");
            let golden = Golden::parse(&text);
            let again = golden.made_again(stage);
            if bless && again.print() != text {
                fs::write(&path, again.print()).expect("a file that can be written");
            } else if again.print() != text {
                failures.push(format!("{file} differs:\n{}", difference(&text, &again.print())));
            }
            again.check().unwrap_or_else(|message| failures.push(format!("{file}: {message}")));
        }
    }
    assert!(failures.is_empty(), "{}\n\nif this is as it should be: {BLESS}", failures.join("\n"));
}

#[test]
fn every_stage_has_cases() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for stage in dump::stage_names().filter(|&stage| stage != "asm") {
        let cases = entries(&root.join(stage)).len();
        assert!(cases >= 3, "{cases} cases for {stage}");
    }
}

#[test]
fn a_difference_shows_lines_and_what_is_near() {
    let shown = difference("a\nb\nc\nd\ne\nf\ng", "a\nb\nc\nd\nE\nf\ng\nh");
    assert_eq!(shown, "     c\n     d\n    -e\n    +E\n     f\n     g\n    +h\n");
}
