//! Files whose headers or lines say what nothing is: one line on stderr, soon, and nothing of the size that they say.

use crate::{cranefold, folder};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// What a call may take; nearly all of it is the start of a process.
const TIME: Duration = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 2 });

/// The longest line on stderr, in bytes.
const MESSAGE: usize = 25_000;

fn refused(path: &Path, bytes: &[u8], args: &[&str]) {
    fs::write(path, bytes).expect("a file");
    let shown: String = String::from_utf8_lossy(bytes).chars().take(120).collect();
    let start = Instant::now();
    let done = cranefold(args);
    assert!(start.elapsed() < TIME, "{shown}: {:?}", start.elapsed());
    assert_eq!(done.code, Some(2), "{shown}: {}", done.err.chars().take(500).collect::<String>());
    assert!(done.err.starts_with("error: ") && done.err.len() < MESSAGE, "{shown}: {} bytes", done.err.len());
}

#[test]
fn headers() {
    let path = folder("absurd_headers").join("a.npy");
    let name = path.to_str().expect("a path of text");
    let of_version =
        |version: u8, len: &[u8], text: &str| [b"\x93NUMPY", &[version, 0][..], len, text.as_bytes()].concat();
    let short = |text: &str| of_version(1, &(text.len().min(65_535) as u16).to_le_bytes(), text);
    let long = |text: &str| of_version(3, &(text.len() as u32).to_le_bytes(), text);
    let shape = |extents: &str| format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({extents}), }}");
    let nines = "9".repeat(3000);
    for spec in ["sum f32[2]", "sum f32[4294967296,4294967296]", "sum i8[9223372036854775807]"] {
        for extents in [
            "18446744073709551615,",
            "18446744073709551616,",
            "9223372036854775808,",
            "9223372036854775807,",
            "4294967296, 4294967296",
            "4294967296, 4294967296, 4294967296",
            "0, 18446744073709551615, 18446744073709551615",
            &nines,
            &"1,".repeat(1500),
            &"1,".repeat(400_000),
        ] {
            for file in [short(&shape(extents)), long(&shape(extents))] {
                refused(&path, &file, &["run", spec, "--input", name]);
            }
        }
    }
    for piece in
        ["(", "[", "{", "'", "\"", "[(", "{'a':", "-", "9", " ", "\\", "\0", "é", "'descr'", "[('x','<f4'),", "(1,"]
    {
        for bytes in [1, 60_000, 1_000_000] {
            let text = piece.repeat(bytes / piece.len());
            for file in [short(&text), long(&text), [b"\x93NUMPY\x02\x00\xff\xff\xff\xff", text.as_bytes()].concat()] {
                refused(&path, &file, &["run", "sum f32[2]", "--input", name]);
            }
        }
    }
}

#[test]
fn lines() {
    let path = folder("absurd_lines").join("cases.txt");
    let name = path.to_str().expect("a path of text");
    let million = |piece: &str| piece.repeat(1_000_000 / piece.len());
    for line in [
        million("a"),
        million("a "),
        million("9"),
        million("("),
        million("sum f32[2] "),
        format!("a sum f32 {}1 0 c grid", million("1x")),
        format!("a sum f32 {}x 0 c grid", million("1x")),
        format!("a sum f32 8 {}0 c grid", million("0,")),
        format!("a sum f32 8 0 {} grid", million("a")),
        format!("a sum {} 8 0 c grid", million("f32")),
        "a sum f32 18446744073709551615 0 s2 grid".into(),
        "a sum f32 4294967296x4294967296 0 t grid".into(),
        "a sum f32 9223372036854775807x3 0 pad grid".into(),
    ] {
        refused(&path, line.as_bytes(), &["bench", "--file", name]);
    }
}
