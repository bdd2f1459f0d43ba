//! Files of measured schedules: a line is taken where it fits, changes no bit, and no other text changes anything.

use cranefold::schedules::{Measurement, append};
use cranefold::{Compiler, Error, Kernel, Schedule, Spec};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const SPEC: &str = "sum f32[64,1000] axes=[1]";

/// A file of this test process, which is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("cranefold-{}-{name}.schedules", std::process::id()));
        let _ = fs::remove_file(&path);
        Scratch(path)
    }

    fn write(&self, bytes: impl AsRef<[u8]>) -> &Path {
        fs::write(&self.0, bytes).expect("a file");
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn spec() -> Spec {
    SPEC.parse().expect("a spec")
}

fn schedule(text: &str) -> Schedule {
    text.parse().expect("a schedule")
}

fn line(text: &str) -> Measurement {
    Measurement::new(&Compiler::host().expect("this machine").keyed(&spec()), schedule(text), 1234)
}

/// The kernel of a compiler with this file.
fn kernel(path: &Path) -> Kernel {
    let compiler = Compiler::builder().schedules(path).build().expect("a file that can be read");
    compiler.compile(&spec()).expect("a kernel")
}

fn chosen() -> Kernel {
    Compiler::host().expect("this machine").compile(&spec()).expect("a kernel")
}

fn bits(kernel: &Kernel) -> Vec<u32> {
    let x: Vec<f32> = (0..64_000).map(|n| (n as f32 * 0.37).sin() * 1e3).collect();
    let mut y = vec![0.0f32; 64];
    kernel.run_one(&x, &mut y).expect("a call");
    y.into_iter().map(f32::to_bits).collect()
}

/// A random number from each number (splitmix64).
fn random(seed: u64) -> u64 {
    let z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[test]
fn a_line_is_taken_and_changes_no_bit() {
    let file = Scratch::new("taken");
    for text in
        ["width=128", "width=0 jam=3", "width=128 jam=2 in_flight=2", "width=64 parts=5", "width=0 parts=4@blocks"]
    {
        if schedule(text).check(&cranefold::Problem::of(&spec())).is_err() {
            continue;
        }
        append(&file.0, &line(text)).expect("a line");
        let kernel = kernel(&file.0);
        assert_eq!(*kernel.schedule(), schedule(text), "the last line counts");
        assert_eq!(bits(&kernel), bits(&chosen()), "{text}");
        assert!(kernel.explain().expect("a page").contains("of a line of the schedule file"));
    }
    // The signature is the compiler's own, so that other specs, and forced schedules, are as they were.
    let compiler = Compiler::builder().schedules(&file.0).build().expect("a compiler");
    let other: Spec = "sum f32[64,1001] axes=[1]".parse().expect("a spec");
    let by_itself = Compiler::host().expect("this machine").compile(&other).expect("a kernel");
    assert_eq!(compiler.compile(&other).expect("a kernel").schedule(), by_itself.schedule());
    let options = cranefold::Options { schedule: Some(schedule("width=128 jam=4")), width: None };
    let forced = compiler.compile_with(&spec(), &options).expect("a kernel");
    assert_eq!(*forced.schedule(), schedule("width=128 jam=4"));
}

#[test]
fn lines_read_back() {
    let measured = line("width=128 jam=2 tile=i0:8");
    assert_eq!(measured.to_string().parse(), Ok(measured.clone()));
    for text in ["", " ", "|||||", "a | b | c | d | e | f", &measured.to_string()[1..], &format!("{measured} | 7")] {
        assert!(text.parse::<Measurement>().is_err(), "{text}");
    }
}

#[test]
fn what_is_stale_foreign_or_torn_is_ignored() {
    let (file, good) = (Scratch::new("stale"), line("width=0 jam=3"));
    let taken = |text: String| kernel(file.write(text)).schedule().clone();
    let (ours, none) = (good.schedule.clone(), chosen().schedule().clone());
    assert_ne!(ours, none);
    assert_eq!(taken(format!("{good}\n")), ours);
    let version = Measurement { results_version: good.results_version + 1, ..good.clone() };
    let features = Measurement { features: "x86_64-unknown-none has_sse3".into(), ..good.clone() };
    let threads = Measurement { threads: 2, ..good.clone() };
    let signature = Measurement { signature: good.signature ^ 1, ..good.clone() };
    for foreign in [version, features, threads, signature] {
        assert_eq!(taken(format!("{foreign}\n")), none, "{foreign}");
        assert_eq!(taken(format!("{good}\n{foreign}\n")), ours, "{foreign}");
    }
    // A schedule of another problem does not fit, and the line before counts.
    let other = Measurement { schedule: schedule("width=0 tile=i7:2"), ..good.clone() };
    assert_eq!(taken(format!("{good}\n{other}\n")), ours);
    assert_eq!(taken(format!("{other}\n")), none);
    // Each torn line, at the end of the file and before a whole one.
    let text = good.to_string();
    for end in 0..=text.len() {
        assert_eq!(taken(text[..end].to_string()), none, "{end}");
    }
    for end in (0..text.len()).step_by(7) {
        fs::write(&file.0, &text[..end]).expect("a file");
        append(&file.0, &good).expect("a line");
        assert_eq!(*kernel(&file.0).schedule(), ours, "{end}");
    }
}

#[test]
fn random_bytes_change_nothing() {
    let (file, none) = (Scratch::new("random"), chosen());
    for seed in 0..40 {
        let bytes: Vec<u8> = (0..4000).map(|n| random(seed << 32 | n) as u8).collect();
        assert_eq!(kernel(file.write(&bytes)).schedule(), none.schedule());
    }
    // A line with some bytes changed may be another line, but gives the same bits.
    let (text, expected) = (format!("{}\n", line("width=0 jam=3")).into_bytes(), bits(&none));
    for seed in 0..300 {
        let mut bytes = text.clone();
        for n in 0..1 + seed % 3 {
            let at = random(seed << 8 | n) as usize % bytes.len();
            bytes[at] = b"0123456789=|@ ijwx\n\xff"[random(seed << 16 | n) as usize % 20];
        }
        assert_eq!(bits(&kernel(file.write(&bytes))), expected, "{}", String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_and_none_is_an_empty_one() {
    let error = Compiler::builder().schedules(std::env::temp_dir()).build().expect_err("a folder");
    assert!(matches!(error, Error::Schedules { .. }) && error.to_string().contains(" cannot be read: "), "{error}");
    assert_eq!(kernel(&Scratch::new("none").0).schedule(), chosen().schedule());
}

/// The lines that each process adds.
const LINES: u64 = 2000;

#[test]
fn processes_that_append_at_once_lose_no_line() {
    let file = Scratch::new("appended");
    let this = std::env::current_exe().expect("a test");
    let start = |number: usize| {
        let mut program = Command::new(&this);
        program.args(["--exact", "a_process_that_appends"]);
        program.env("CRANEFOLD_FILE", &file.0).env("CRANEFOLD_NUMBER", number.to_string()).spawn().expect("a child")
    };
    let children: Vec<_> = (1..=3).map(start).collect();
    for mut child in children {
        assert!(child.wait().expect("a child").success());
    }
    let text = fs::read_to_string(&file.0).expect("a file");
    // One that sees half of another's line begins a new one, which leaves an empty line.
    let whole = text.lines().filter(|line| !line.is_empty());
    let lines: Vec<Measurement> = whole.map(|line| line.parse().expect("a whole line")).collect();
    for number in 1..=3 {
        let ns: Vec<u64> = lines.iter().filter(|line| line.signature == number).map(|line| line.ns).collect();
        assert_eq!(ns, (0..LINES).collect::<Vec<_>>(), "in order");
    }
}

/// One of the processes above; alone it does nothing.
#[test]
fn a_process_that_appends() {
    let Ok(path) = std::env::var("CRANEFOLD_FILE") else { return };
    let number = std::env::var("CRANEFOLD_NUMBER").expect("a number").parse().expect("a number");
    let line = line("width=128 jam=2");
    for ns in 0..LINES {
        append(Path::new(&path), &Measurement { signature: number, ns, ..line.clone() }).expect("a line");
    }
}
