//! `run --memory`: files in shards have the bits of files in memory.

use crate::{bytes, folder, read_npy, refuses, works, write_npy};
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
        &format!("{x}: the file has shape [6], input 0 has shape [7]"),
    );
    refuses(&["run", logical, "--memory", "1M"], "--memory streams files: give each input by --input");
}
