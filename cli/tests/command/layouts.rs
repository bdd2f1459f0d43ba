//! Layouts: logical arrays whatever the layout, and buffers as they lie in memory.

use crate::{Files, bytes, read_npy, refuses, works};

/// The elements of a file of f32.
fn floats((descr, shape, bytes): &(String, Vec<u64>, Vec<u8>)) -> (Vec<u64>, Vec<f32>) {
    assert_eq!(descr, "'<f4'");
    let elements = bytes.as_chunks::<4>().0.iter().map(|e| f32::from_le_bytes(*e));
    (shape.clone(), elements.collect())
}

fn line(args: &[&str], name: &str) -> String {
    let out = works(args);
    out.lines().find(|line| line.starts_with(name)).expect("a line").to_string()
}

#[test]
fn every_layout_is_the_same_logical_array() {
    let files = Files::of("every_layout_is_the_same_logical_array");
    let elements = (0..2 * 21 * 3).map(|i: i32| i * i % 101 - 50);
    let x = files.write("x.npy", "<i4", &[2, 21, 3], &bytes!(elements));
    for axes in ["axes=[1]", "axes=[0,2] keep_dims", "axes=[2]"] {
        let expected = files.run(&format!("sum i32[2,21,3] {axes}"), 1, &["--input", &x]);
        for layout in ["nCw16c", "cBA2a4b2b", "aBc8b+5", "(400,24,8)8b", "(1,-8,300)+2", "+7"] {
            for output in ["", " -> @any", " -> @any+3"] {
                let spec = format!("sum i32[2,21,3]@{layout} {axes}{output}");
                assert_eq!(files.run(&spec, 1, &["--input", &x]), expected, "{spec}");
            }
        }
    }
    let expected = files.run("sum i32[2,21,3] axes=[1]", 1, &["--input", &x]);
    for output in ["@bA16a", "@BA2b2a", "@(40,2)2b+1", "@Ba8b4b+9"] {
        let spec = format!("sum i32[2,21,3]@Bac8b axes=[1] -> {output}");
        assert_eq!(files.run(&spec, 1, &["--input", &x]), expected, "{spec}");
    }
}

#[test]
fn random_elements_are_the_same_in_every_layout() {
    let output = |layout: &str| {
        let spec = format!("sum i32[3,20]{layout} axes=[1]");
        line(&["run", &spec], "output")
    };
    for layout in ["@ba", "@aB16b", "@BA4b2a+3", "@(100,-2)"] {
        assert_eq!(output(layout), output(""), "{layout}");
    }
}

/// Random inputs hold what would show between their elements, and outputs what is no zero in their padding.
#[test]
fn padding_is_not_read_and_is_made_zero() {
    for spec in [
        "max f32[8,20,7,7]@nChw16c axes=[2,3] keep_dims -> @any",
        "min,max i8[8,20]@aB16b axes=[1]",
        "min,max i8[8,20]@Ab16a axes=[0] keep_dims -> @any, @any",
        "any bool[8,20]@aB16b axes=[1]",
        "all bool[8,20]@aB16b axes=[1] keep_dims -> @any",
        "prod i64[8,20]@(50,8)8b+3 axes=[1] -> @(3)+2",
        "argmax f16[3,20]@aB8b axes=[1] keep_dims -> i32@aB4b",
        "softmax f32[3,20]@Ba8b axes=[1] -> @aB16b+7",
        "median f32[3,20]@aB8b axes=[1] -> @A4a",
    ] {
        for executor in ["native", "interpreter"] {
            let error = line(&["run", spec, "--executor", executor], "error");
            assert!(error.contains("(all "), "{spec}: {error}");
        }
    }
}

#[test]
fn the_output_line_says_the_layout() {
    let shown = |spec: &str| line(&["run", spec], "output")[9..].split(' ').next().expect("a word").to_string();
    assert_eq!(shown("sum f32[8,20,7,7]@nChw16c axes=[2,3] keep_dims -> @any"), "f32[8,20,1,1]@aBcd16b");
    assert_eq!(shown("sum f32[8,20,7,7]@nChw16c axes=[2,3]"), "f32[8,20]");
    assert_eq!(shown("sum f32[8,20] axes=[1] -> @(2)+1"), "f32[8]@(2)+1");
    let spec = "sum f32[8,20,7,7]@nhwc axes=[2,3] keep_dims -> @any";
    assert_eq!(works(&["dump", spec, "--stage", "spec"]), "sum f32[8,20,7,7]@acdb axes=[2,3] keep_dims -> @acdb\n");
}

#[test]
fn raw_files_hold_padding() {
    let files = Files::of("raw_files_hold_padding");
    let nan = f32::NAN;
    let x = files.write("x.npy", "<f4", &[8], &bytes!([1.0, 2.0, 3.0, nan, 4.0, 5.0, 6.0, nan]));
    let raw = |spec: &str| floats(&files.run(spec, 1, &["--raw", "--input", &x])[0]);
    assert_eq!(raw("sum f32[2,3]@aB2b axes=[1]"), (vec![2], vec![6.0, 15.0]));
    assert_eq!(raw("sum f32[2,3]@aB2b axes=[1] keep_dims -> @any"), (vec![4], vec![6.0, 0.0, 15.0, 0.0]));
    assert_eq!(raw("sum f32[2,3]@aB2b axes=[0] -> @any"), (vec![4], vec![5.0, 7.0, 9.0, 0.0]));
    assert_eq!(raw("sum f32[2,3]@aB2b axes=[0] -> @(2)+1"), (vec![6], vec![0.0, 5.0, 0.0, 7.0, 0.0, 9.0]));
    // A gap after each row, and one element before the first.
    let x = files.write("gaps.npy", "<f4", &[7], &bytes!([nan, 1.0, 2.0, nan, nan, 3.0, 4.0]));
    let spec = "sum f32[2,2]@(4,1)+1 axes=[1]";
    assert_eq!(floats(&files.run(spec, 1, &["--raw", "--input", &x])[0]), (vec![2], vec![3.0, 7.0]));
    // A scalar has no file, and an array of rank 0 has one element.
    let x = files.write("one.npy", "<f4", &[1], &bytes!([3.0f32]));
    let spec = "sum f32[] scalar s:f32 then=\"r0 * s\"";
    let outputs = files.run(spec, 1, &["--raw", "--input", &x, "--scalar", "s=2"]);
    assert_eq!(floats(&outputs[0]), (vec![1], vec![6.0]));
    let x = files.write("none.npy", "<f4", &[0], &[]);
    let outputs = files.run("sum f32[0,3]@aB2b axes=[0] -> @any", 1, &["--raw", "--input", &x]);
    assert_eq!(floats(&outputs[0]), (vec![4], vec![0.0; 4]));
}

/// A buffer that one call has written is read by the next, and means the logical array.
#[test]
fn raw_files_go_from_call_to_call() {
    let files = Files::of("raw_files_go_from_call_to_call");
    let elements = bytes!((0..2 * 5 * 3).map(|i| i as f32));
    let flat = files.write("flat.npy", "<f4", &[30], &elements);
    let (blocked, back) = (files.path("blocked.npy"), files.path("back.npy"));
    let copy = |spec: &str, from: &str, to: &str| {
        works(&["run", spec, "--raw", "--input", from, "--output", to]);
        read_npy(to.as_ref())
    };
    assert_eq!(copy("sum f32[2,5,3] axes=[] -> @cAB2a4b", &flat, &blocked).1, [48]);
    let read_back = copy("sum f32[2,5,3]@cAB2a4b axes=[] -> @abc", &blocked, &back);
    assert_eq!(read_back, ("'<f4'".into(), vec![30], elements));
}

#[test]
fn raw_outputs_keep_their_gaps() {
    let files = Files::of("raw_outputs_keep_their_gaps");
    let x = files.write("x.npy", "<f4", &[4], &bytes!([1.0f32, 2.0, 3.0, 4.0]));
    let old = files.write("old.npy", "<f4", &[5], &bytes!([9.0f32; 5]));
    let padded = files.write("padded.npy", "<f4", &[5], &bytes!([f32::NAN, 7.0, f32::NAN, 7.0, 7.0]));
    let run = |spec: &str, old: &[&str]| {
        let old = old.iter().flat_map(|path| ["--old", path]);
        let args: Vec<&str> = ["--raw", "--input", &x].into_iter().chain(old).collect();
        floats(&files.run(spec, 1, &args)[0]).1
    };
    let spec = "sum f32[2,2] axes=[1] -> @(3)+1";
    assert_eq!(run(spec, &[]), [0.0, 3.0, 0.0, 0.0, 7.0]);
    assert_eq!(run(spec, &[&old]), [9.0, 3.0, 9.0, 9.0, 7.0]);
    let spec = "sum f32[2,2] axes=[1] then=\"r0 + d\" -> @(3)+1";
    assert_eq!(run(spec, &[]), [0.0, 3.0, 0.0, 0.0, 7.0]);
    assert_eq!(run(spec, &[&old]), [9.0, 12.0, 9.0, 9.0, 16.0]);
    // What stands before the offset stays; padding becomes zero.
    let spec = "sum f32[2,2] axes=[1] keep_dims -> @aB2b+1";
    let got = run(spec, &[&padded]);
    assert!(got[0].is_nan() && got[1..] == [3.0, 0.0, 7.0, 0.0], "{got:?}");
    let spec = "sum f32[2,2] axes=[1] keep_dims then=\"r0 + d\" -> @aB2b+1";
    let got = run(spec, &[&padded]);
    assert!(got[0].is_nan() && got[1..] == [10.0, 0.0, 14.0, 0.0], "{got:?}");
}

#[test]
fn what_is_refused_of_raw_files() {
    let files = Files::of("what_is_refused_of_raw_files");
    let x = files.write("x.npy", "<f4", &[2, 3], &[0; 24]);
    let flat = files.write("flat.npy", "<f4", &[6], &[0; 24]);
    let run = |spec: &str, more: &[&str], message: &str| refuses(&[&["run", spec, "--raw"], more].concat(), message);
    let buffer = |path: &str, given: &str, operand: &str, expected: &str| {
        let expected = format!("the buffer of {operand} has shape {expected}, padding and gaps included");
        format!("{path}: the file has shape {given}, {expected}")
    };
    run("sum f32[2,3]", &["--input", &x], &buffer(&x, "[2,3]", "input 0", "[6]"));
    run("sum f32[2,3]@aB2b", &["--input", &flat], &buffer(&flat, "[6]", "input 0", "[8]"));
    run("sum f32[2,3]@+1", &["--input", &flat], &buffer(&flat, "[6]", "input 0", "[7]"));
    run(
        "sum i32[6]",
        &["--input", &flat],
        &format!(
            "{flat}: the file holds `<f4`, input 0 is i32, which is `<i4` in a file; the spec may have f32, or `array.astype(\"int32\")` converts the array"
        ),
    );
    run("sum f32[3] -> @+7", &["--old", &flat], &buffer(&flat, "[6]", "output 0", "[8]"));
    run("min,max f32[3]", &["--old", &flat], "1 files by --old, and the spec has 2: one for each, in order");
    let short = files.write("short.npy", "<f4", &[8], &[0; 24]);
    let message = format!("{short}: 24 bytes of elements follow the header, 32 belong to shape [8]");
    run("sum f32[2,3]@aB2b", &["--input", &short], &message);
}

#[test]
fn layouts_that_cannot_be_are_refused() {
    for (spec, message) in [
        ("sum f32[2,3]@nchw", "input 0: layout tag `abcd` (`nchw`) names 4 axes for rank 2"),
        ("sum f32[2,3]@any", "input 0: layout `any` is the layout of input 0, kept by an output, and of nothing else"),
        (
            "sum f32[2,3]@aB16",
            "column 14: layout tag `aB16` is neither one of each of the letters from `a` on nor a name such as `nchw`",
        ),
        ("sum f32[2,3]+1", "column 13: expected a space, found `+`"),
    ] {
        for verb in ["run", "dump", "bench"] {
            refuses(&[verb, spec], message);
        }
    }
}
