//! Objects for other machines, linked by their C compiler and run under an emulator, give the bits that the interpreter
//! gives here: `specs.txt` on aarch64, riscv64 and s390x, where the highest byte comes first.
//!
//! `.ci/cross` installs what they need and runs them. Those of x86-64 run wherever they can: there with `cc`, at each
//! width that the machine has.
#![cfg(target_os = "linux")]

mod driver;

use cranefold::aot::{self, Object};
use cranefold::lower::lower;
use cranefold::{Options, Problem, Spec, Target};
use cranefold_fuzz::data::Buffer;
use cranefold_fuzz::execute::Memory;
use driver::Kernel;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The kinds of data of each spec; see `data.rs`.
const KINDS: [u8; 5] = [0, 1, 2, 4, 5];

/// A machine that objects are for.
struct Machine {
    triple: &'static str,
    features: &'static str,
    /// What compiles C for it.
    compiler: &'static str,
    /// What runs its programs, and how: once each.
    emulators: &'static [&'static [&'static str]],
    big_endian: bool,
}

const AARCH64: Machine = Machine {
    triple: "aarch64-unknown-linux-gnu",
    features: "",
    compiler: "aarch64-linux-gnu-gcc",
    emulators: &[&["qemu-aarch64"]],
    big_endian: false,
};

/// With vector registers of the least bits, and of more.
const RISCV64: Machine = Machine {
    triple: "riscv64gc-unknown-linux-gnu",
    features: "has_v",
    compiler: "riscv64-linux-gnu-gcc",
    emulators: &[&["qemu-riscv64", "-cpu", "rv64,v=true,vlen=128"], &["qemu-riscv64", "-cpu", "rv64,v=true,vlen=256"]],
    big_endian: false,
};

const S390X: Machine = Machine {
    triple: "s390x-unknown-linux-gnu",
    features: "",
    compiler: "s390x-linux-gnu-gcc",
    emulators: &[&["qemu-s390x", "-cpu", "max"]],
    big_endian: true,
};

const X86_64: Machine =
    Machine { triple: "x86_64-unknown-linux-gnu", features: "", compiler: "cc", emulators: &[&[]], big_endian: false };

fn specs() -> Vec<Spec> {
    let lines = include_str!("specs.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.parse().unwrap_or_else(|e| panic!("{line}: {e}"))).collect()
}

/// A folder of a test's own, empty.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cross").join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("a folder");
    path
}

/// Runs a command, which must succeed; gives what it said on stderr.
fn works(command: &mut Command) -> String {
    let done = command.stdin(Stdio::null()).output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{command:?}: {}\n{said}", done.status);
    said
}

/// The elements in the machine's order of bytes, or back.
fn turned(machine: &Machine, bytes: &[u8], element_bytes: u64) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if machine.big_endian {
        bytes.chunks_exact_mut(element_bytes as usize).for_each(<[u8]>::reverse);
    }
    bytes
}

/// Emits all objects, links them with a driver, runs it on each kind of data and compares all outputs with the
/// interpreter's. Says how many specs gave equal bits.
fn gives_our_bits(machine: &Machine, options: &Options) {
    let Machine { triple, features, .. } = *machine;
    let width = options.width.map_or(String::new(), |width| format!(" width={width}"));
    let name = format!("{triple} {features}{width}").trim().to_string();
    let target = Target::elsewhere(triple, features).unwrap_or_else(|e| panic!("{e}"));
    let folder = folder(&name.replace(' ', "-"));
    let path = |name: &str| folder.join(name);
    let specs = specs();

    let mut objects = vec![];
    let emit = |(n, spec): (usize, &Spec)| {
        let Object { bytes, header, symbol, scratch_bytes } =
            aot::emit(&target, spec, options, None).unwrap_or_else(|e| panic!("{spec} for {name}: {e}"));
        fs::write(path(&format!("k{n}.o")), bytes).expect("an object");
        fs::write(path(&format!("k{n}.h")), header).expect("a header");
        objects.push(format!("k{n}.o"));
        Kernel { header: format!("k{n}.h"), symbol, has_scratch: scratch_bytes > 0, spec: spec.clone() }
    };
    let kernels: Vec<Kernel> = specs.iter().enumerate().map(emit).collect();
    fs::write(path("driver.c"), driver::program(&kernels, KINDS.len())).expect("a driver");
    // Warnings of the linker go to stderr, as about a stack that were executable.
    let mut compiler = Command::new(machine.compiler);
    compiler.args(["-O1", "-std=c99", "-Wall", "-Wextra", "-Werror", "-o", "driver", "driver.c"]);
    if machine.emulators.iter().any(|emulator| !emulator.is_empty()) {
        // The emulator has no libraries of that machine's.
        compiler.arg("-static");
    }
    let said = works(compiler.args(&objects).arg("-lm").current_dir(&folder));
    assert!(said.is_empty(), "{name}: {said}");

    let (mut input, mut expected) = (vec![], vec![]);
    for (n, spec) in specs.iter().enumerate() {
        let nest = lower(&Problem::of(spec), "meaning");
        for kind in KINDS {
            let memory = Memory::of(spec, kind, n as u64, (0, 0));
            let operands = spec.inputs().iter().zip(&memory.inputs).chain(spec.outputs().iter().zip(&memory.outputs));
            operands.for_each(|(o, buffer)| input.extend(turned(machine, buffer.bytes(), o.dtype().bytes())));
            expected.push(memory.interpreted(&nest));
        }
    }
    fs::write(path("input"), input).expect("the data");

    for emulator in machine.emulators {
        let mut words = emulator.iter().map(std::ffi::OsStr::new).collect::<Vec<_>>();
        let program = path("driver");
        words.push(program.as_os_str());
        works(Command::new(words[0]).args(&words[1..]).args([path("input"), path("output")]));
        let output = fs::read(path("output")).expect("the outputs");
        let different = compare(machine, &specs, &expected, &output);
        let by = emulator.join(" ");
        assert!(
            different.is_empty(),
            "{name} {by}: {} of {} differ:\n{}",
            different.len(),
            specs.len(),
            different.join("\n")
        );
        println!("cross: {name}: {} specs, {} kinds of data: equal bits {by}", specs.len(), KINDS.len());
    }
}

/// The specs whose outputs differ, each with the first element that does.
fn compare(machine: &Machine, specs: &[Spec], expected: &[Vec<Buffer>], output: &[u8]) -> Vec<String> {
    let mut rest = output;
    let mut different = vec![];
    for (n, spec) in specs.iter().enumerate() {
        let mut first = None;
        for (kind, expected) in KINDS.iter().zip(&expected[n * KINDS.len()..]) {
            for (o, (operand, expected)) in spec.outputs().iter().zip(expected).enumerate() {
                let size = operand.dtype().bytes() as usize;
                let (got, after) = rest.split_at(expected.bytes().len());
                rest = after;
                let got = turned(machine, got, size as u64);
                let elements = got.chunks(size).zip(expected.bytes().chunks(size)).enumerate();
                let place = elements.into_iter().find(|(_, (got, expected))| got != expected);
                first = first.or(place.map(|(at, (got, expected))| {
                    format!("{spec}: data {kind}, output {o} at {at}: {got:02x?} instead of {expected:02x?}")
                }));
            }
        }
        different.extend(first);
    }
    assert!(rest.is_empty(), "{} bytes more than outputs", rest.len());
    different
}

#[test]
fn the_page_says_how_many() {
    let (page, count) = (include_str!("../../docs/reliability.md"), specs().len());
    assert!(count >= 100 && page.contains(&format!("`.ci/cross` runs {count} specs with")), "{count}");
}

#[test]
#[ignore = "needs a cross compiler and an emulator: run .ci/cross"]
fn aarch64() {
    gives_our_bits(&AARCH64, &Options::default());
}

#[test]
#[ignore = "needs a cross compiler and an emulator: run .ci/cross"]
fn riscv64() {
    gives_our_bits(&RISCV64, &Options::default());
    // Without vectors.
    let emulators: &[&[&str]] = &[&["qemu-riscv64", "-cpu", "rv64,v=false"]];
    gives_our_bits(&Machine { features: "", emulators, ..RISCV64 }, &Options::default());
}

#[test]
#[ignore = "needs a cross compiler and an emulator: run .ci/cross"]
fn s390x() {
    gives_our_bits(&S390X, &Options::default());
    gives_our_bits(&Machine { features: "arch13", ..S390X }, &Options::default());
}

/// With the least features, and at each width that this machine has.
#[test]
#[cfg(target_arch = "x86_64")]
fn x86_64() {
    if Command::new(X86_64.compiler).arg("--version").output().is_err() {
        println!("cross: skipped: there is no `{}` to link with", X86_64.compiler);
        return;
    }
    let has = |features: &str| Target::new(X86_64.triple, features).is_ok();
    for (features, widths) in [("", &[None][..]), ("x86-64-v3", &[None]), ("x86-64-v4", &[None, Some(256), Some(128)])]
    {
        for &width in widths {
            if has(features) {
                gives_our_bits(&Machine { features, ..X86_64 }, &Options { width, ..Options::default() });
            }
        }
    }
}
