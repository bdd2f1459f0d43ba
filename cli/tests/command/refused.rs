//! Every command that is refused, with its message. Those of specs are tested with the library; some are
//! here to show that they come through.

use crate::{cranefold, folder, refuses, write_npy};
use npyz::Order;
use std::fs;

#[test]
fn command_lines() {
    let cases: [(&[&str], &str); 10] = [
        (
            &[],
            "'cranefold' requires a subcommand but one was not provided [subcommands: run, dump, explain, bench, tune, emit, list, doctor, completions, man, model]",
        ),
        (&["walk"], "unrecognized subcommand 'walk': `cranefold --help` lists the commands"),
        (&["run"], "the following required arguments were not provided: <SPEC>"),
        (&["run", "sum", "f32[2]"], "unexpected argument 'f32[2]' found: a spec is one argument, in quotes"),
        (&["run", "sum f32[2]", "--fast"], "unexpected argument '--fast' found"),
        (
            &["run", "sum f32[2]", "--executor", "gpu"],
            "invalid value 'gpu' for '--executor <EXECUTOR>' [possible values: native, interpreter, reference]",
        ),
        (
            &["run", "sum f32[2]", "--random", "-"],
            "invalid value '-' for '--random <SEED>': a whole number of 0 or more is expected",
        ),
        (
            &["run", "sum f32[2]", "--input", "a.npy", "--random", "1"],
            "the argument '--input <F.npy>' cannot be used with '--random <SEED>'",
        ),
        (&["bench"], "bench needs a SPEC, or a file of them by --file"),
        (&["bench", "sum f32[2]", "--file", "a"], "the argument '[SPEC]...' cannot be used with '--file <F>'"),
    ];
    for (args, message) in cases {
        refuses(args, message);
    }
}

#[test]
fn arguments() {
    let cases: [(&[&str], &str); 21] = [
        (&["run", "sum f32[2,3] axes=[3]"], "axis 3 is out of range for rank 2: its axes are -2 to 1"),
        (&["dump", "sum f32[2,3] axes=[0,0]"], "axis 0 is listed twice for rank 2"),
        (&["bench", "any f32[2]"], "`any` does not take f32; it takes bool"),
        (&["run", "sum f32[2]", "--threads", "1025"], "threads=1025 is outside 1 to 1024"),
        (&["dump", "sum f32[2]", "--threads", "0"], "threads=0 is outside 1 to 1024"),
        (&["bench", "sum f32[2]", "--threads", "0"], "threads=0 is outside 1 to 1024"),
        (&["run", "sum f32[2]", "--width", "100"], "width=100 is none of 0 (scalar), 64, 128, 256, 512 and 1024 bits"),
        (&["dump", "sum f32[2]", "--width", "1"], "width=1 is none of 0 (scalar), 64, 128, 256, 512 and 1024 bits"),
        (&["bench", "sum f32[2]", "--width", "7"], "width=7 is none of 0 (scalar), 64, 128, 256, 512 and 1024 bits"),
        (
            &["dump", "sum f32[2]", "--schedule", "width=5"],
            "width=5 is none of 0 (scalar), 64, 128, 256, 512 and 1024 bits",
        ),
        (
            &["run", "sum f32[2]", "--schedule", ""],
            "the schedule is empty: it names a decision, as `width=512` does; the chosen one is used where none is given",
        ),
        (
            &["dump", "sum f32[2]", "--schedule", "  "],
            "the schedule is empty: it names a decision, as `width=512` does; the chosen one is used where none is given",
        ),
        (
            &["run", "sum f32[2,3] axes=[1]", "--schedule", "tile=i7:4"],
            "tile=i7: the problem has no output loop i7; it has i0",
        ),
        (
            &["run", "sum f32[2,3] axes=[1]", "--schedule", "tile=i7:4", "--executor", "interpreter"],
            "tile=i7: the problem has no output loop i7; it has i0",
        ),
        (
            &["run", "sum f32[2]", "--executor", "reference", "--width", "64"],
            "the reference executor has no width: it is for native and interpreter",
        ),
        (
            &["run", "sum f32[2]", "--executor", "reference", "--schedule", "jam=2"],
            "the reference executor has no schedule: it is for native and interpreter",
        ),
        (
            &["run", "sum f32[2]", "--input", "a.npy", "--input", "b.npy"],
            "2 files by --input, and the spec has 1: one for each, in order",
        ),
        (
            &["run", "sum f32[2]", "--output", "a.npy", "--output", "b.npy"],
            "2 files by --output, and the spec has 1: one for each, in order",
        ),
        (
            &["run", "sum f32[2]", "--input", "/no/such.npy"],
            "cannot read /no/such.npy: No such file or directory (os error 2)",
        ),
        (
            &["run", "sum f32[2]", "--output", "/no/such.npy"],
            "cannot write /no/such.npy: No such file or directory (os error 2)",
        ),
        (&["bench", "--file", "/no/such.txt"], "cannot read /no/such.txt: No such file or directory (os error 2)"),
    ];
    for (args, message) in cases {
        refuses(args, message);
    }
    let starts = |args: &[&str], message: &str| {
        let done = cranefold(args);
        // One line, or with that of a spec and a caret.
        assert!(done.code == Some(2) && [1, 3].contains(&done.err.lines().count()), "{args:?}: {}", done.err);
        assert!(done.err.starts_with(&format!("error: {message}")), "{args:?}: {}", done.err);
    };
    starts(&["dump", "sum f32[2]", "--stage", "wish"], "`wish` is no stage; the stages are spec problem ");
    starts(&["run", "sum f32[2]", "--schedule", "faster"], "`faster` is no decision of a schedule; they are width=");
    starts(&["run", "sum u8[1000000000000000000]"], "no memory for 1000000000000000000 bytes: ");
}

#[test]
fn files_that_are_another_array() {
    let folder = folder("files_that_are_another_array");
    let path = folder.join("a.npy");
    let name = path.to_str().unwrap();
    let run = |spec: &str, message: &str| {
        let output = folder.join("out.npy");
        let args = ["run", spec, "--input", name, "--output", output.to_str().unwrap()];
        refuses(&args, &message.replace("FILE", name));
        assert!(!output.exists(), "a failing run wrote its output");
    };
    write_npy(&path, "<f4", Order::C, &[2, 3], &[0; 24]);
    run(
        "sum f64[2,3]",
        "FILE: the file holds `<f4`, input 0 is f64, which is `<f8` in a file; the spec may have f32, or `array.astype(\"float64\")` converts the array",
    );
    run(
        "sum i32[2,3]",
        "FILE: the file holds `<f4`, input 0 is i32, which is `<i4` in a file; the spec may have f32, or `array.astype(\"int32\")` converts the array",
    );
    run(
        "any bool[2,3]",
        "FILE: the file holds `<f4`, input 0 is bool, which is `|b1` in a file; the spec may have f32, or `array.astype(\"bool\")` converts the array",
    );
    run(
        "sum bf16[2,3]",
        "FILE: the file holds `<f4`, input 0 is bf16, which is `<u2` in a file; the bits of bf16 are those of u2",
    );
    run("sum f32[3,2]", "FILE: the file has shape [2,3], input 0 has shape [3,2]; a file has the shape of its operand");
    run("sum f32[6]", "FILE: the file has shape [2,3], input 0 has shape [6]; a file has the shape of its operand");
    write_npy(&path, "<f4", Order::C, &[2, 3], &[0; 23]);
    run("sum f32[2,3]", "FILE: 23 bytes of elements follow the header, 24 belong to shape [2,3]");
    write_npy(&path, "<f4", Order::C, &[2, 3], &[0; 25]);
    run("sum f32[2,3]", "FILE: more than 24 bytes of elements follow the header, 24 belong to shape [2,3]");
    write_npy(&path, "<i2", Order::C, &[2], &[1, 0, 2, 0]);
    run(
        "sum i16[2]@(0)",
        "FILE: input 0 keeps elements of the file in one place by its strides, but the file's are different",
    );
    write_npy(&path, "<f4", Order::C, &[1 << 40, 1 << 40, 2], &[]);
    run(
        "sum f32[2,3]",
        "FILE: the file has shape [1099511627776,1099511627776,2], input 0 has shape [2,3]; a file has the shape of its operand",
    );
}

#[test]
fn files_that_are_no_array() {
    let folder = folder("files_that_are_no_array");
    let path = folder.join("a.npy");
    let name = path.to_str().unwrap();
    let header = |text: &str| {
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((text.len() as u16).to_le_bytes());
        file.extend(text.bytes());
        file
    };
    let files: Vec<(Vec<u8>, &str)> = vec![
        (vec![], "not a .npy file: "),
        (b"# not an array".to_vec(), "not a .npy file: "),
        (b"\x93NUMPY\x09\x00\x10\x00".to_vec(), "not a .npy file: "),
        (b"\x93NUMPY\x01\x00\xff\xff{".to_vec(), "not a .npy file: "),
        (header("{'descr': '<f4', 'fortran_order': False}"), "not a .npy file: "),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}"), "not a .npy file: "),
        (header(&"(".repeat(60_000)), "not a .npy file: "),
        (header(&"(".repeat(4_000)), "not a .npy file: "),
        (header("{'descr': '|O', 'fortran_order': False, 'shape': (2,)}"), "the file holds `|O`, "),
        (header("{'descr': '<c8', 'fortran_order': False, 'shape': (2,)}"), "the file holds `<c8`, "),
        (
            header("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (2,)}"),
            "the file holds `[('x', '<f4'), ]`, ",
        ),
    ];
    for (bytes, message) in files {
        fs::write(&path, &bytes).unwrap();
        let done = cranefold(&["run", "sum f32[2]", "--input", name]);
        let start: String = String::from_utf8_lossy(&bytes).chars().take(80).collect();
        assert_eq!((done.code, done.err.lines().count()), (Some(2), 1), "{start}: {}", done.err);
        assert!(done.err.starts_with(&format!("error: {name}: {message}")), "{start}: {}", done.err);
    }
    let folder = folder.to_str().unwrap();
    refuses(&["run", "sum f32[2]", "--input", folder], &format!("cannot read {folder}: Is a directory (os error 21)"));
}

#[test]
fn files_of_cases() {
    let path = folder("files_of_cases").join("cases.txt");
    let name = path.to_str().unwrap();
    let cases = [
        ("a sum f33 8 0 c grid", "`a sum f33 8 0 c grid` is no case: `f33` is no dtype: did you mean `f32`?; "),
        ("a sum f32 8x 0 c grid", "`a sum f32 8x 0 c grid` is no case: `8x` is no shape such as 6x12x10"),
        ("a sum f32 8 1 c grid", "axis 1 is out of range for rank 1: its axes are -1 to 0"),
        ("sum f32[2", "column 10: expected "),
        ("a b c", "column 3: unknown word `b`; "),
        ("no_such_op f32[3]", "unknown op `no_such_op`; the ops are "),
    ];
    for (line, message) in cases {
        fs::write(&path, format!("sum f32[2]\n# second\n{line}\n")).unwrap();
        let done = cranefold(&["bench", "--file", name]);
        assert_eq!((done.code, done.out.as_str()), (Some(2), ""), "{line}");
        assert!(done.err.starts_with(&format!("error: {name}:3: {message}")), "{line}: {}", done.err);
    }
}
