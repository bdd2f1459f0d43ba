//! Several inputs and outputs, scalars, old destinations, and what is refused of them.

use crate::{Files, bytes, folder, read_npy, refuses, works};
use std::fs;
use std::path::Path;

#[test]
fn every_output_has_a_file() {
    let files = Files::of("every_output_has_a_file");
    let input = files.write("a.npy", "<f4", &[2, 3], &bytes!([1.0f32, 5.0, 2.0, -1.0, -4.0, -1.0]));
    let outputs = files.run("max,argmax f32[2,3] axes=[1]", 2, &["--input", &input]);
    assert_eq!(outputs[0], ("'<f4'".into(), vec![2], bytes!([5.0f32, -1.0])));
    assert_eq!(outputs[1], ("'<i8'".into(), vec![2], bytes!([1i64, 0])));
    let outputs = files.run("max,argmax(last) f32[2,3] axes=[1] keep_dims -> f64, i32@(7,1)", 2, &["--input", &input]);
    assert_eq!(outputs[0], ("'<f8'".into(), vec![2, 1], bytes!([5.0f64, -1.0])));
    assert_eq!(outputs[1], ("'<i4'".into(), vec![2, 1], bytes!([1i32, 2])));
}

/// All outputs have files of their own, or none is written.
#[test]
fn outputs_are_written_together_or_not_at_all() {
    let files = Files::of("outputs_are_written_together_or_not_at_all");
    let folder = files.0.to_str().expect("text").to_string();
    let (spec, x) = ("max,argmax f32[2]", files.write("x.npy", "<f4", &[2], &bytes!([1.0f32, 2.0])));
    let (first, new) = (files.path("first.npy"), files.path("new.npy"));
    fs::write(&first, "before").expect("a file");
    let refused = |outputs: [&str; 2], message: &str| {
        refuses(&["run", spec, "--input", &x, "--output", outputs[0], "--output", outputs[1]], message);
        assert_eq!(fs::read_to_string(&first).expect("a file"), "before");
        assert!(!Path::new(&new).exists(), "{outputs:?}");
    };
    let twice = |path: &str| format!("{path} is output 0 and output 1: they are two files");
    refused([&first, &first], &twice(&first));
    refused([&new, &new], &twice(&new));
    let spelled = format!("{folder}/../outputs_are_written_together_or_not_at_all/./new.npy");
    refused([&new, &spelled], &twice(&new));
    refused([&new, &x], &format!("{x} is input 0 and output 1: they are two files"));
    let missing = "/no/such/k.npy";
    refused([&first, missing], &format!("cannot write {missing}: No such file or directory (os error 2)"));
    refused([&new, &folder], &format!("cannot write {folder}: it is a directory: write the name of a file in it"));
    #[cfg(target_os = "linux")]
    {
        let (linked, hard) = (files.path("linked.npy"), files.path("hard.npy"));
        std::os::unix::fs::symlink(&first, &linked).expect("a link");
        fs::hard_link(&first, &hard).expect("a link");
        refused([&linked, &first], &twice(&linked));
        refused([&first, &hard], &twice(&first));
        // Nothing can be made in a folder of the system's.
        let denied = "/proc/self/k.npy";
        refused([&first, denied], &format!("cannot write {denied}: No such file or directory (os error 2)"));
        fs::remove_file(linked).and_then(|()| fs::remove_file(hard)).expect("links");
        // A stream may take several.
        works(&["run", spec, "--input", &x, "--output", "/dev/null", "--output", "/dev/null"]);
    }
    works(&["run", spec, "--input", &x, "--output", &first, "--output", &new]);
    assert_eq!((read_npy(Path::new(&first)).2, read_npy(Path::new(&new)).2), (bytes!([2.0f32]), bytes!([1i64])));
    let mut left: Vec<_> = fs::read_dir(&files.0).expect("a folder").map(|f| f.expect("a file").file_name()).collect();
    left.sort();
    assert_eq!(left, ["first.npy", "new.npy", "x.npy"]);
}

#[test]
fn every_input_has_a_file() {
    let files = Files::of("every_input_has_a_file");
    let x = files.write("x.npy", "<f4", &[2, 3], &bytes!([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]));
    let w = files.write("w.npy", "<f4", &[3], &bytes!([1.0f32, 10.0, 100.0]));
    let b = files.write("b.npy", "<f4", &[2], &bytes!([0.5f32, -0.5]));
    let spec = "sum f32[2,3]@ba, f32[3], f32[2]:then axes=[1] scalar s:f32 map=\"x0*x1\" then=\"s * r0 + y0\"";
    let inputs = ["--input", &x, "--input", &w, "--input", &b, "--scalar", "s=2"];
    assert_eq!(files.run(spec, 1, &inputs)[0].2, bytes!([2.0 * 321.0 + 0.5, 2.0 * 654.0 - 0.5f32]));
    // The last axis of a normalisation by column sums, in a layout of its own.
    let spec = "sum f32[2,3] axes=[0] apply=\"x0 / r0\" -> @ba";
    let quotients = bytes!([1.0f32 / 5.0, 2.0 / 7.0, 3.0 / 9.0, 4.0 / 5.0, 5.0 / 7.0, 6.0 / 9.0]);
    assert_eq!(files.run(spec, 1, &["--input", &x])[0], ("'<f4'".into(), vec![2, 3], quotients));
}

#[test]
fn scalars_have_values_of_their_type() {
    let files = Files::of("scalars_have_values_of_their_type");
    let x = files.write("x.npy", "<f4", &[1], &bytes!([8.0f32]));
    let run = |dtype: &str, then: &str, value: &str| {
        let spec = format!("sum f32[1] scalar s:{dtype} then=\"{then}\"");
        files.run(&spec, 1, &["--input", &x, "--scalar", &format!("s={value}")]).remove(0).2
    };
    for value in ["0.5", ".5", "5e-1", "+0.5", " 0.5 "] {
        assert_eq!(run("f32", "r0 * s", value), bytes!([4.0f32]), "{value}");
        assert_eq!(run("f16", "r0 * s", value), bytes!([4.0f32]), "{value}");
    }
    assert_eq!(run("f32", "r0 * s", "-inf"), bytes!([f32::NEG_INFINITY]));
    assert_eq!(run("f32", "r0 * s", "nan"), bytes!([f32::NAN]));
    assert_eq!(run("u8", "r0 * f32(s)", "255"), bytes!([2040.0f32]));
    assert_eq!(run("bool", "select(s, r0, 0)", "true"), bytes!([8.0f32]));
    assert_eq!(run("bool", "select(s, r0, 0)", "false"), bytes!([0.0f32]));
}

#[test]
fn random_inputs_take_given_scalars_and_draw_others() {
    let spec = "sum f32[4,8] axes=[1] scalar gain:f32 scalar shift:i32 then=\"r0 * gain + f32(shift)\"";
    let line = |more: &[&str]| {
        let out = works(&[&["run", spec], more].concat());
        out.lines().find(|line| line.starts_with("input")).expect("a line").to_string()
    };
    assert_eq!(
        line(&["--scalar", "shift=-3", "--scalar", "gain=0.5"]),
        "input    136 B of elements, random, seed 0, gain=0.5, shift=-3"
    );
    let drawn = line(&["--scalar", "gain=0.5"]);
    assert_eq!(drawn, line(&["--scalar", "gain=0.5"]));
    assert_ne!(drawn, line(&["--scalar", "gain=0.5", "--random", "1"]));
}

#[test]
fn what_run_prints_of_several_outputs() {
    let out = works(&["run", "min,max f32[2,40] axes=[1]"]);
    let names: Vec<&str> = out.lines().map(|line| line[..9].trim_end()).collect();
    let expected = ["spec", "input", "output 0", "output 1", "kernel", "compile", "run", "error 0", "error 1"];
    assert_eq!(names, expected, "{out}");
    let right = "0 at most against the reference, bound 0 (all 2 outputs checked)";
    assert!(out.lines().skip(7).all(|line| line[9..] == *right), "{out}");
}

/// What is read is what the file holds, however often the kernel is timed; without a file it is zero.
#[test]
fn old_destinations_are_read_once() {
    let files = Files::of("old_destinations_are_read_once");
    let x = files.write("x.npy", "<f4", &[2, 2], &bytes!([1.0f32, 2.0, 3.0, 4.0]));
    let old = files.write("old.npy", "<f4", &[2], &bytes!([100.0f32, 200.0]));
    let spec = "sum f32[2,2] axes=[1] then=\"r0 + d\"";
    assert_eq!(files.run(spec, 1, &["--input", &x])[0].2, bytes!([3.0f32, 7.0]));
    assert_eq!(files.run(spec, 1, &["--input", &x, "--old", &old])[0].2, bytes!([103.0f32, 207.0]));
    // The file that was read may be the one that is written.
    let args = ["run", spec, "--input", &x, "--old", &old, "--output", &old];
    works(&args);
    works(&args);
    assert_eq!(read_npy(Path::new(&old)).2, bytes!([106.0f32, 214.0]));
    // Of several outputs, those that are read have files.
    let old = files.write("old2.npy", "<f8", &[2], &bytes!([1.0f64, 2.0]));
    let spec = "sum,max f32[2,2] axes=[1] then=\"r0 + r1, r1 * d\" -> f32, f64";
    let outputs = files.run(spec, 2, &["--input", &x, "--old", &old]);
    assert_eq!((&outputs[0].2, &outputs[1].2), (&bytes!([5.0f32, 11.0]), &bytes!([2.0f64, 8.0])));
}

#[test]
fn what_is_refused_of_scalars() {
    let spec = "sum f32[2] scalar eps:f32 scalar k:u8 then=\"r0 / (eps + f32(k))\"";
    for (scalars, message) in [
        (&["eps"][..], "`eps` is no scalar: NAME=VALUE is expected"),
        (&["delta=1"], "the spec has no scalar `delta`; it has eps, k"),
        (&["eps=1", "eps=2"], "scalar `eps` is given twice"),
        (&["eps=x"], "scalar `eps`: `x` is no f32"),
        (&["eps="], "scalar `eps`: `` is no f32"),
        (&["eps=1e39"], "scalar `eps`: 1e39 overflows f32"),
        (&["eps=-1e999"], "scalar `eps`: -1e999 overflows f32"),
        (&["k=1.5"], "scalar `k`: `1.5` is no u8, which is an integer from 0 to 255"),
        (&["k=256"], "scalar `k`: `256` is no u8, which is an integer from 0 to 255"),
        (&["k=true"], "scalar `k`: `true` is no u8, which is an integer from 0 to 255"),
    ] {
        let args = scalars.iter().flat_map(|scalar| ["--scalar", scalar]);
        refuses(&["run", spec].into_iter().chain(args).collect::<Vec<_>>(), message);
    }
    refuses(&["run", "sum f32[2]", "--scalar", "eps=1"], "the spec has no scalar `eps`; it has none");
    let spec = "sum f32[2] scalar on:bool then=\"select(on, r0, 0)\"";
    refuses(&["run", spec, "--scalar", "on=1"], "scalar `on`: `1` is no bool, which is true or false");
    // Files are not looked for before the scalars are there.
    refuses(&["run", spec, "--input", "/no/such.npy"], "scalar `on` is not given: --scalar on=VALUE");
}

#[test]
fn what_is_refused_of_files() {
    let files = Files::of("what_is_refused_of_files");
    let x = files.write("x.npy", "<f4", &[2, 3], &[0; 24]);
    let y = files.write("y.npy", "<f4", &[3], &[0; 12]);
    let spec = "sum f32[2,3], f32[3], f32[2]:then axes=[1] scalar s:f32 map=\"x0*x1\" then=\"r0 + y0 + s\"";
    let run = |inputs: &[&str], more: &[&str], message: &str| {
        let inputs = inputs.iter().flat_map(|path| ["--input", path]);
        let args: Vec<&str> =
            ["run", spec, "--scalar", "s=1"].into_iter().chain(inputs).chain(more.iter().copied()).collect();
        refuses(&args, message);
    };
    run(&[&x], &[], "1 files by --input, and the spec has 3: one for each, in order");
    run(&[&x, &y, &y, &y], &[], "4 files by --input, and the spec has 3: one for each, in order");
    run(
        &[&x, &x, &y],
        &[],
        &format!("{x}: the file has shape [2,3], input 1 has shape [3]; a file has the shape of its operand"),
    );
    run(
        &[&x, &y, &y],
        &[],
        &format!("{y}: the file has shape [3], input y0 has shape [2]; a file has the shape of its operand"),
    );
    run(
        &[&x, &y, &y],
        &["--old", &y],
        &format!("{y}: the file has shape [3], input y0 has shape [2]; a file has the shape of its operand"),
    );
    run(
        &[&x, &y, &y],
        &["--output", &y, "--output", &y],
        "2 files by --output, and the spec has 1: one for each, in order",
    );
    refuses(
        &["run", "sum f32[2]", "--old", &x],
        "1 files by --old, and the spec reads 0 old outputs, which an expression does by `d`",
    );
    refuses(
        &["run", "min,max f32[2]", "--output", &x],
        "1 files by --output, and the spec has 2: one for each, in order",
    );
    refuses(
        &["run", "min,max f32[2] then=\"r0 + d, r1\"", "--old", &x, "--old", &x],
        "2 files by --old, and the spec reads 1 old outputs, which an expression does by `d`",
    );
    refuses(
        &["run", "min,max f32[2] then=\"r0, r1 + d\"", "--old", &x],
        &format!("{x}: the file has shape [2,3], output 1 has shape []; a file has the shape of its operand"),
    );
}

/// An expression that is refused is shown, with a caret under the place.
#[test]
fn places_in_expressions_are_shown() {
    for verb in ["run", "dump", "bench"] {
        refuses(
            &[verb, "sum f32[2,3] axes=[1] map=\"x0 * z0\""],
            "map: unknown name `z0`; the names here are x0\n  x0 * z0\n       ^",
        );
    }
    let path = folder("places_in_expressions_are_shown").join("cases.txt");
    std::fs::write(&path, "sum f32[2]\nsum f32[2] then=\"r0 +\"\n").expect("a file");
    refuses(
        &["bench", "--file", path.to_str().expect("a path of text")],
        &format!("{}:2: then: expected a value, found the end\n  r0 +\n      ^", path.display()),
    );
}
