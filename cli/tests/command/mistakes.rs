//! Mistakes at the command line, each with its message and exit code.
//!
//! `tests/mistakes.txt` holds them: a line `$ ARGUMENTS` as a shell reads it, the exit code, then what the command prints on
//! the standard error. `BLESS=1 cargo test` writes codes and messages.

use crate::bad_models;
use crate::pages::words;
use crate::{folder, write_npy};
use npyz::Order;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The arrays that the mistakes are made with.
fn arrays() -> PathBuf {
    let folder = folder("mistakes");
    let array = |name: &str, descr: &str, shape: &[u64], bytes: usize| {
        write_npy(&folder.join(name), descr, Order::C, shape, &vec![0; bytes]);
    };
    array("x.npy", "<f4", &[64, 512], 64 * 512 * 4);
    array("short.npy", "<f4", &[64, 512], 100);
    array("double.npy", "<f8", &[64, 512], 64 * 512 * 8);
    fs::write(folder.join("empty.npy"), "").expect("a file");
    fs::write(folder.join("text.npy"), "1 2 3\n").expect("a file");
    fs::write(folder.join("archive.npy"), b"PK\x03\x04").expect("a file");
    fs::write(folder.join("empty.npz"), "").expect("a file");
    let whole = fs::read(folder.join("x.npy")).expect("a file");
    fs::write(folder.join("cut.npy"), &whole[..40]).expect("a file");
    fs::write(folder.join("problem.txt"), "problem\n  wish\n").expect("a file");
    fs::write(folder.join("nest.txt"), "nest \"\" {\n  in x0: f33[4]\n}\n").expect("a file");
    array("ints.npy", "<i8", &[64, 512], 64 * 512 * 8);
    array("complex.npy", "<c8", &[64, 512], 64 * 512 * 8);
    array("three.npy", "<f4", &[3], 12);
    array("flat.npy", "<f4", &[64 * 512], 64 * 512 * 4);
    fs::create_dir(folder.join("folder")).expect("a folder");
    fs::write(folder.join("schedules.txt"), "width=512\n").expect("a file");
    fs::write(folder.join("graph.txt"), GRAPH).expect("a file");
    fs::write(folder.join("model.onnx"), "no model").expect("a file");
    bad_models::write(&folder);
    fs::write(folder.join("cases.txt"), "sum f32[4]\nmeen f32[4]\n").expect("a file");
    folder
}

/// A model with a batch of any size.
const GRAPH: &str = "graph {\n  x: f32[N,512] = input\n  m: f32[N,1] = mean(x) axes=[1] keep_dims\n  return m\n}\n";

#[test]
fn mistakes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the root").join("tests/mistakes.txt");
    let golden = fs::read_to_string(&path).expect("the golden file");
    let folder = arrays();
    let entries = || fs::read_dir(&folder).expect("the folder").map(|e| e.expect("an entry").file_name());
    let before = entries().count();
    let mut found = String::new();
    let mut count = 0;
    for line in golden.lines() {
        if line.starts_with('#') {
            found += &format!("{line}\n");
        }
        let Some(typed) = line.strip_prefix("$ cranefold") else { continue };
        let mut command = Command::new(env!("CARGO_BIN_EXE_cranefold"));
        let done = command.args(words(typed.trim_start())).current_dir(&folder).stdin(Stdio::null()).output();
        let done = done.expect("the command starts");
        let said = String::from_utf8(done.stderr).expect("UTF-8");
        let _ = write!(found, "\n{line}\n{}\n{said}", done.status.code().expect("an exit code"));
        assert!(done.stdout.is_empty(), "{line} printed {}", String::from_utf8_lossy(&done.stdout));
        count += 1;
    }
    assert!(count >= 100, "{count} mistakes");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &found).expect("a file to write");
        return;
    }
    assert!(found == golden, "BLESS=1 writes:\n{found}");
    let left: Vec<_> = entries().collect();
    assert_eq!(left.len(), before, "a mistake left a file: {left:?}");
}
