//! The command, as it is called: every verb, every refusal, files in and out, one or several, in any layout.

mod absurd;
mod bad_models;
mod emit;
mod explain;
mod files;
mod flags;
mod from;
mod layouts;
mod mistakes;
mod model;
mod pages;
mod photograph;
mod refused;
mod several;
mod shell;
mod stream;
#[cfg(target_os = "linux")]
mod terminal;
mod tune;
mod verbs;

use npyz::{Order, WriterBuilder};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a call of the command did.
#[derive(Debug)]
struct Done {
    code: Option<i32>,
    out: String,
    err: String,
}

/// Calls the command.
fn cranefold<S: AsRef<std::ffi::OsStr>>(args: &[S]) -> Done {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cranefold"));
    let done = command.args(args).stdin(Stdio::null()).output().expect("the command starts");
    let text = |bytes| String::from_utf8(bytes).expect("it prints UTF-8");
    Done { code: done.status.code(), out: text(done.stdout), err: text(done.stderr) }
}

/// Calls the command, which must succeed and say nothing on stderr but notes; gives what it printed.
fn works<S: AsRef<std::ffi::OsStr> + std::fmt::Debug>(args: &[S]) -> String {
    let done = cranefold(args);
    let said: Vec<&str> = done.err.lines().filter(|line| !line.starts_with("note: ")).collect();
    assert!(done.code == Some(0) && said.is_empty(), "{args:?} printed {}{}", done.out, done.err);
    done.out
}

/// Calls the command, which must exit with 2 and this message on stderr.
fn refuses<S: AsRef<std::ffi::OsStr> + std::fmt::Debug>(args: &[S], message: &str) {
    let done = cranefold(args);
    let expected = format!("error: {message}\n");
    assert_eq!((done.code, done.out.as_str()), (Some(2), ""), "{args:?}");
    let rest = done.err.strip_prefix(expected.as_str());
    let rest = rest.unwrap_or_else(|| panic!("{args:?}: {}, and not {expected}", done.err));
    // An error of a spec shows its line besides, and a caret under the place.
    let lines: Vec<&str> = rest.lines().collect();
    let is_place = lines.len() == 2 && lines.iter().all(|line| line.starts_with("  ")) && lines[1].trim() == "^";
    assert!(lines.is_empty() || is_place, "{args:?}: {rest}");
}

/// A folder of a test's own, empty.
fn folder(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("command").join(test);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("a folder");
    path
}

/// Writes an .npy file of these bytes; `descr` as in `<f4`.
fn write_npy(path: &Path, descr: &str, order: Order, shape: &[u64], bytes: &[u8]) {
    let dtype = npyz::DType::Plain(descr.parse().expect("a type string"));
    let options = npyz::WriteOptions::new_header_only().dtype(dtype).order(order).shape(shape);
    let mut file = options.writer(vec![]).write_header_only().expect("a header");
    file.extend(bytes);
    fs::write(path, file).expect("a file");
}

/// Reads an .npy file: type string, shape, bytes. It must be in C order.
fn read_npy(path: &Path) -> (String, Vec<u64>, Vec<u8>) {
    let file = fs::read(path).expect("a file");
    let mut rest = file.as_slice();
    let header = npyz::NpyHeader::from_reader(&mut rest).expect("a header");
    assert_eq!(header.order(), Order::C);
    (header.dtype().descr(), header.shape().to_vec(), rest.to_vec())
}

/// Arrays in a folder, and the command on them.
struct Files(PathBuf);

impl Files {
    fn of(test: &str) -> Files {
        Files(folder(test))
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a path of text").into()
    }

    fn write(&self, name: &str, descr: &str, shape: &[u64], bytes: &[u8]) -> String {
        let path = self.path(name);
        write_npy(Path::new(&path), descr, Order::C, shape, bytes);
        path
    }

    /// Runs a spec with every executor; gives the outputs, which must be the same.
    fn run(&self, spec: &str, outputs: usize, more: &[&str]) -> Vec<(String, Vec<u64>, Vec<u8>)> {
        let mut before = None;
        for executor in ["native", "interpreter", "reference"] {
            let paths: Vec<String> = (0..outputs).map(|n| self.path(&format!("out{n}.npy"))).collect();
            let mut args = vec!["run", spec, "--executor", executor];
            args.extend(paths.iter().flat_map(|path| ["--output", path.as_str()]));
            works(&[&args, more].concat());
            let arrays: Vec<_> = paths.iter().map(|path| read_npy(Path::new(path))).collect();
            assert!(before.is_none_or(|before| before == arrays), "{spec}: {executor} differs");
            before = Some(arrays);
        }
        before.expect("three executors")
    }
}

/// The bytes of little-endian elements.
macro_rules! bytes {
    ($elements:expr) => {
        $elements.into_iter().flat_map(|e| e.to_le_bytes()).collect::<Vec<u8>>()
    };
}
use bytes;
