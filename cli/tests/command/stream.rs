//! `run --memory`: files in shards have the bits of files in memory.

use crate::{bytes, cranefold, folder, read_npy, refuses, works, write_npy};
use npyz::Order;

/// Boxes of rows, ranges of the reduced axis, several outputs, inputs that are broadcast, and positions.
#[test]
fn files_in_shards_have_the_bits_of_files_in_memory() {
    let folder = folder("files_in_shards_have_the_bits_of_files_in_memory");
    let path = |name: &str| folder.join(name).display().to_string();
    let elements: Vec<f32> = (0..1_200_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 * 0.001).collect();
    for (shape, axes, op) in [
        (&[1_200_000][..], "0", "sum"),
        (&[120_000, 10][..], "0", "mean,max"),
        (&[10, 120_000][..], "1", "argmax"),
        (&[300, 40, 100][..], "0,2", "sum"),
        (&[300, 40, 100][..], "1,2", "var"),
    ] {
        write_npy(folder.join("x.npy").as_path(), "<f4", Order::C, shape, &bytes!(elements.clone()));
        let extents: Vec<String> = shape.iter().map(u64::to_string).collect();
        let spec = format!("{op} f32[{}] axes=[{axes}] order=logical", extents.join(","));
        let outputs = op.split(',').count();
        let run = |names: &[&str], more: &[&str]| {
            let mut args = vec!["run".to_string(), spec.clone(), "--input".into(), path("x.npy")];
            args.extend(names[..outputs].iter().flat_map(|name| ["--output".to_string(), path(name)]));
            args.extend(more.iter().map(|word| word.to_string()));
            works(&args)
        };
        run(&["a.npy", "b.npy"], &[]);
        let told = run(&["c.npy", "d.npy"], &["--memory", "256M", "--threads", "2"]);
        assert!(told.contains(" shards in "), "{told}");
        for (whole, shards) in [("a.npy", "c.npy"), ("b.npy", "d.npy")].into_iter().take(outputs) {
            assert_eq!(read_npy(&folder.join(whole)), read_npy(&folder.join(shards)), "{spec}");
        }
    }
}

/// Bounds of 1 to 16 MB: boxes of columns, ranges that end inside blocks, and elements of the other byte order.
#[test]
fn small_bounds_of_memory_have_the_same_bits() {
    let folder = folder("small_bounds_of_memory_have_the_same_bits");
    let path = |name: &str| folder.join(name).display().to_string();
    let elements: Vec<f32> = (0..2_400_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 * 0.001).collect();
    let little: Vec<u8> = bytes!(elements.clone());
    let big: Vec<u8> = elements.iter().flat_map(|x| x.to_be_bytes()).collect();
    for (shape, axes, op) in [
        (&[80, 30_000][..], "0", "sum"),
        (&[8, 80, 3750][..], "1", "mean,max"),
        (&[80, 6, 5000][..], "0,2", "argmax"),
        (&[3, 800_000][..], "1", "var"),
    ] {
        write_npy(folder.join("x.npy").as_path(), "<f4", Order::C, shape, &little);
        write_npy(folder.join("big.npy").as_path(), ">f4", Order::C, shape, &big);
        let extents: Vec<String> = shape.iter().map(u64::to_string).collect();
        let spec = format!("{op} f32[{}] axes=[{axes}] order=logical", extents.join(","));
        let outputs = op.split(',').count();
        let run = |input: &str, to: &str, more: &[&str]| -> Vec<Vec<u8>> {
            let mut args = vec!["run".to_string(), spec.clone(), "--input".into(), path(input)];
            let names: Vec<String> = (0..outputs).map(|n| format!("{to}{n}.npy")).collect();
            args.extend(names.iter().flat_map(|name| ["--output".to_string(), path(name)]));
            args.extend(more.iter().map(|word| word.to_string()));
            works(&args);
            names.iter().map(|name| std::fs::read(folder.join(name)).expect("an output")).collect()
        };
        let whole = run("x.npy", "whole", &[]);
        for memory in ["1M", "2M", "16M"] {
            for (input, threads) in [("x.npy", "1"), ("big.npy", "2")] {
                let parts = run(input, "parts", &["--memory", memory, "--threads", threads]);
                assert!(parts == whole, "{spec} in {memory} with {threads} threads");
            }
        }
    }
}

/// Ctrl-C while a file is read: nothing is written, and nothing stays beside.
#[test]
#[cfg(unix)]
fn an_interrupt_leaves_no_output() {
    use std::os::unix::process::ExitStatusExt;
    let folder = folder("an_interrupt_leaves_no_output");
    // A file of zeros that takes seconds to read, and no room.
    write_npy(folder.join("x.npy").as_path(), "<f4", Order::C, &[8_000_000_000], &[]);
    let file = std::fs::File::options().write(true).open(folder.join("x.npy")).expect("the file");
    let header = file.metadata().expect("its length").len();
    file.set_len(header + 32_000_000_000).expect("a sparse file");
    std::fs::write(folder.join("out.npy"), b"old").expect("a file");
    let path = |name: &str| folder.join(name).display().to_string();
    let [x, out] = ["x.npy", "out.npy"].map(path);
    let args = ["run", "sum f32[8000000000] order=logical", "--input", &x, "--memory", "16M", "--output", &out];
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_cranefold"));
    let mut child = command.args(args).spawn().expect("the command");
    std::thread::sleep(std::time::Duration::from_millis(300));
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    assert!(killed.success());
    // A shell shows this as 130.
    assert_eq!(child.wait().expect("its end").signal(), Some(2));
    assert_eq!(std::fs::read(folder.join("out.npy")).expect("the old file"), b"old");
    let mut names: Vec<_> =
        std::fs::read_dir(&folder).expect("the folder").map(|e| e.expect("a file").file_name()).collect();
    names.sort();
    assert_eq!(names, ["out.npy", "x.npy"]);
}

#[test]
fn files_that_are_not_streamed_are_refused() {
    let folder = folder("files_that_are_not_streamed_are_refused");
    let path = |name: &str| folder.join(name).display().to_string();
    let x = path("x.npy");
    write_npy(folder.join("x.npy").as_path(), "<f4", Order::C, &[6], &bytes!([1.0f32; 6]));
    let run = |spec: &str, more: &[&str], message: &str| {
        let out = path("out.npy");
        let args = [&["run", spec, "--input", x.as_str(), "--output", out.as_str()], more].concat();
        refuses(&args, message);
        assert!(!folder.join("out.npy").exists());
    };
    run(
        "sum f32[6]",
        &["--memory", "1M"],
        "there are no shards of elements of this reduction: its order is that of memory: ask for `order=logical`",
    );
    let logical = "sum f32[6] order=logical";
    run(logical, &["--memory", "1Q"], "--memory 1Q: a number of bytes such as 64M, with K, M, G or nothing after it");
    run(logical, &["--memory", "5"], "--memory 5: the least is 1M");
    run(logical, &["--memory", "1M", "--raw"], "--memory streams files, and has no --raw");
    run(
        "sum f32[7] order=logical",
        &["--memory", "1M"],
        &format!("{x}: the file has shape [6], input 0 has shape [7]; a file has the shape of its operand"),
    );
    refuses(&["run", logical, "--memory", "1M"], "--memory streams files: give each input by --input");
    write_npy(folder.join("f.npy").as_path(), "<f4", Order::Fortran, &[3, 2], &bytes!([1.0f32; 6]));
    let fortran = path("f.npy");
    let args = ["run", "sum f32[3,2] axes=[0] order=logical", "--memory", "1M", "--input", &fortran];
    let remedy = "save it after `numpy.ascontiguousarray`, or read it without --memory";
    let why = "the file is in Fortran order, and a file is streamed in C order";
    refuses(&args, &format!("{fortran}: {why}: {remedy}"));
    let args = ["run", "sum f32[2,3000000] axes=[0,1] order=logical", "--memory", "1M", "--input"];
    write_npy(folder.join("g.npy").as_path(), "<f4", Order::C, &[2, 3_000_000], &vec![0; 24_000_000]);
    let done = cranefold(&[&args[..], &[&path("g.npy"), "--threads", "1"]].concat());
    assert_eq!(done.code, Some(2), "{}", done.err);
    let least = "--memory is too small: 1 MB, and the least for this spec and --threads 1 is 11";
    assert!(done.err.contains(least), "{}", done.err);
}
