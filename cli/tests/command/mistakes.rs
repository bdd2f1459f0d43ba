//! A hundred mistakes, each with its message and exit code.
//!
//! `tests/mistakes.txt` holds them: a line `$ ARGUMENTS` as a shell reads it, the exit code, then what the command prints on
//! the standard error. `BLESS=1 cargo test` writes codes and messages.

use crate::pages::words;
use crate::{cranefold, folder, write_npy};
use npyz::Order;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

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
    fs::write(folder.join("cases.txt"), "sum f32[4]\nmeen f32[4]\n").expect("a file");
    folder
}

#[test]
fn mistakes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the root").join("tests/mistakes.txt");
    let golden = fs::read_to_string(&path).expect("the golden file");
    let folder = arrays();
    let place = format!("{}/", folder.display());
    let entries = || fs::read_dir(&folder).expect("the folder").map(|e| e.expect("an entry").file_name());
    let before = entries().count();
    let mut found = String::new();
    let mut count = 0;
    for line in golden.lines() {
        if line.starts_with('#') {
            found += &format!("{line}\n");
        }
        let Some(typed) = line.strip_prefix("$ cranefold") else { continue };
        let is_file = |word: &str| [".npy", ".npz", ".txt", ".html", ".o", ".h"].iter().any(|end| word.ends_with(end));
        let args: Vec<String> = words(typed.trim_start())
            .into_iter()
            .map(|word| if is_file(&word) && !word.starts_with('/') { format!("{place}{word}") } else { word })
            .collect();
        let done = cranefold(&args);
        let said = done.err.replace(&place, "");
        let _ = write!(found, "\n{line}\n{}\n{said}", done.code.expect("an exit code"));
        assert!(done.out.is_empty(), "{line} printed {}", done.out);
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
