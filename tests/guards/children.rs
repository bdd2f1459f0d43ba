//! Processes that share the cases out. What one was at is in a file, so that it is known when a fault ends it.

use crate::cases::{Case, ops};
use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// What tells a process its share: `NUMBER/OF/FILE`.
const SHARE: &str = "CRANEFOLD_GUARDS";

/// How often what was done.
pub type Tally = BTreeMap<String, u64>;

/// The cases of one process: each whose number has this remainder.
pub struct Share {
    number: usize,
    of: usize,
    path: PathBuf,
    at: File,
}

impl Share {
    /// That of this process, if it is one of those.
    pub fn of_this_process() -> Option<Share> {
        let text = env::var(SHARE).ok()?;
        let mut words = text.splitn(3, '/');
        let mut number = || words.next().and_then(|word| word.parse().ok()).expect("a number");
        let (number, of) = (number(), number());
        let path: PathBuf = words.next().expect("a path").into();
        let at = File::create(&path).expect("a file");
        Some(Share { number, of, path, at })
    }

    pub fn cases(&self, count: usize) -> impl Iterator<Item = usize> + use<> {
        (self.number..count).step_by(self.of)
    }

    /// Notes what is done next: a case, and what of it.
    pub fn begin(&mut self, case: usize, what: &str) {
        let line = format!("{case} {what:<60}");
        self.at.rewind().and_then(|()| self.at.write_all(line.as_bytes())).expect("a note");
    }

    /// Notes what was done.
    pub fn finish(self, tally: &Tally) {
        let lines: String = tally.iter().map(|(what, count)| format!("{count} {what}\n")).collect();
        fs::write(done(&self.path), lines).expect("a file");
    }
}

fn done(path: &Path) -> PathBuf {
    path.with_extension("done")
}

/// Runs a test of this program in as many processes as there are processors; gives what they did together.
///
/// # Panics
/// If one fails: it names what that was at.
pub fn run(test: &str) -> Tally {
    let of = std::thread::available_parallelism().map_or(1, usize::from);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let start = |number: usize| {
        let path = folder.join(format!("guards-{}-{number}", std::process::id()));
        let mut command = Command::new(env::current_exe().expect("this program"));
        command.args(["--exact", test, "--nocapture"]).stdout(Stdio::null());
        command.env(SHARE, format!("{number}/{of}/{}", path.display()));
        (path, command.spawn().expect("a process"))
    };
    let children: Vec<(PathBuf, Child)> = (0..of).map(start).collect();
    let (mut tally, mut failed) = (Tally::new(), vec![]);
    for (path, mut child) in children {
        let status = child.wait().expect("its end");
        match fs::read_to_string(done(&path)) {
            Ok(lines) if status.success() => lines.lines().for_each(|line| {
                let (count, what) = line.split_once(' ').expect("a count");
                *tally.entry(what.into()).or_default() += count.parse::<u64>().expect("a count");
            }),
            _ => failed.push(format!("{status}: {}", was_at(&path))),
        }
        let _ = (fs::remove_file(done(&path)), fs::remove_file(&path));
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    tally
}

/// What a process was at when it ended.
fn was_at(path: &Path) -> String {
    let noted = fs::read_to_string(path).unwrap_or_default();
    let Some((number, what)) = noted.split_once(' ') else { return "before the first case".into() };
    let case = Case::of(&ops(), number.parse().expect("a number"));
    format!("case {number}: {}, {}, forced {}", case.spec, what.trim_end(), case.schedule)
}
