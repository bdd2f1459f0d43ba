//! What `explain` prints, for every kind of spec.

use crate::{cranefold, refuses, works};

const NAMES: [&str; 9] = ["problem", "signature", "moves", "operations", "level", "tree", "order", "schedule", "code"];

/// The page of a spec at 128 bits, which is the same on every machine but for the bytes of code.
fn page(spec: &str) -> String {
    works(&["explain", spec, "--width", "128"])
}

fn line(page: &str, name: &str) -> String {
    let line = page.lines().find(|line| line.split(' ').next() == Some(name));
    line.unwrap_or_else(|| panic!("{name} in {page}"))[11..].to_string()
}

/// Each page has all lines in order, and none is empty.
#[test]
fn every_kind_of_spec_is_explained() {
    for spec in [
        "sum f32[64,128] axes=[1]",
        "sum f32[128,64] axes=[0]",
        "sum f32[6,128,5,60] axes=[0,2,3]",
        "sum f32[100000,2] axes=[1]",
        "sum f32[]",
        "sum f32[4,5] axes=[] -> f64",
        "max i8[]",
        "sum f32[0,3] axes=[0]",
        "sum f32[3,0] axes=[0]",
        "sum f32[0]",
        "argmax f16[3,1000] axes=[1]",
        "max,argmax f32[32,1000] axes=[1]",
        "mean i32[40,300] axes=[0] round_half_even",
        "mean f32[3,20,7,7]@aBcd16b axes=[2,3] keep_dims -> @aBcd16b",
        "max f32[3,20,7,7]@aBcd16b axes=[1]",
        "sum f32[40,30]@(-100,2) axes=[1]",
        "softmax f32[38,128] axes=[1]",
        "layer_norm(eps=1e-5) f16[8,76], f16[76], f16[76] axes=[1]",
        "median f32[30,99] axes=[1]",
        "quantile(q=0.3) f32[99,30] axes=[0]",
        "mode i64[30,9] axes=[1]",
        "sum f32[64,51], f32[51] axes=[1] scalar eps:f32 map=\"x0*x1\" then=\"r0 + eps + d\"",
        "combiner(identity=\"1, 0\", lift=\"x0, x1\", combine=\"a0*b0, a1*b0+b1\") f32[4,100], f32[4,100] axes=[1]",
        "log_sum_exp f64[30,20] axes=[0]",
        "all bool[30,20] axes=[1]",
    ] {
        for width in [&[][..], &["--width", "128"], &["--width", "0"]] {
            let page = works(&[&["explain", spec], width].concat());
            let mut lines = page.lines();
            let first = lines.next().expect("a line").to_string();
            assert_eq!(works(&["dump", spec, "--stage", "spec"]), first + "\n");
            let names: Vec<&str> =
                lines.clone().filter_map(|line| line.split(' ').next().filter(|n| !n.is_empty())).collect();
            // Regions with several visits have a line for each.
            let last: &[&str] = if page.contains("\nvisits ") { &["predicted", "visits"] } else { &["predicted"] };
            assert_eq!(names, [&NAMES[..], last].concat(), "{page}");
            assert_eq!(last.len() == 2, spec.starts_with("softmax") || spec.starts_with("layer_norm"), "{page}");
            assert!(
                lines.all(|line| line.len() > 11 && line.is_char_boundary(11) && !line[10..].starts_with("  ")),
                "{page}"
            );
        }
    }
}

#[test]
fn a_page_has_the_figures_of_its_problem() {
    let inner = page("sum f32[64,1,128] axes=[2]");
    assert_eq!(line(&inner, "problem"), "sum f32 64x(128) -> f32");
    assert_eq!(line(&inner, "signature"), "the problem, 128 bits, version 4 of the results");
    assert_eq!(line(&inner, "moves"), "32,768 bytes read, 256 written");
    assert_eq!(line(&inner, "level"), "second-level cache: 33,024 bytes, at most 1,048,576");
    assert_eq!(line(&inner, "tree"), "64 lanes; 2 steps in one block");
    assert!(line(&inner, "order").starts_with("outputs i0 in 0..64 > "), "{inner}");
    assert!(line(&inner, "schedule").starts_with("width=128 "), "{inner}");
    assert!(line(&inner, "code").starts_with("Cranelift, at most 128 bits: "), "{inner}");
    assert!(line(&inner, "predicted").contains(" GB/s: "), "{inner}");
    // An addition for each element, and those that fold the lanes of each row.
    let operations: f64 =
        line(&inner, "operations").split(',').nth(2).expect("a share")[1..5].parse().expect("a number");
    assert!((1.0..2.0).contains(&operations), "{inner}");

    let blocks = page("sum f32[1000,1000] axes=[0]");
    assert_eq!(line(&blocks, "tree"), "1 lane; 1000 steps in 16 blocks of at most 64");
    assert!(line(&blocks, "order").contains("blocks b"), "{blocks}");
    assert_eq!(line(&page("sum f32[9] axes=[] -> f64"), "tree"), "none: elements are converted one by one");
    assert_eq!(line(&page("sum f32[0,3] axes=[0]"), "tree"), "none: there is nothing to reduce");
    assert_eq!(line(&page("sum f32[3,0] axes=[0]"), "operations"), "none: elements are only moved");
    let stages = line(&page("softmax f32[38,128] axes=[1]"), "tree");
    assert_eq!(stages, "stage 0, max: 16 lanes; 8 steps in one block");
    let selected = page("median f32[30,99] axes=[1]");
    assert_eq!(line(&selected, "tree"), "none: elements are selected from each slice");
    assert!(line(&selected, "order").contains(" > selection from 99 elements"), "{selected}");
    assert!(line(&selected, "code").contains("a function of the host"), "{selected}");
    assert!(line(&page("sum f32[1000000000000,1000] axes=[1]"), "level").starts_with("memory: "));
}

#[test]
fn what_is_forced_is_said() {
    let forced = works(&["explain", "sum f32[256,64] axes=[0]", "--schedule", "width=128 tile=i0:32 jam=4"]);
    assert_eq!(line(&forced, "schedule"), "width=128 tile=i0:32 jam=4 in_flight=1");
    assert!(forced.contains("\n           forced; vectors are of 128 bits\n"), "{forced}");
    assert!(line(&forced, "signature").contains(", the schedule, "), "{forced}");
    let narrow = page("sum f32[256,64] axes=[0]");
    assert!(narrow.contains("\n           128 bits: "), "{narrow}");
    let scalar = works(&["explain", "sum f32[256,64] axes=[0]", "--width", "0"]);
    assert!(scalar.contains("\n           scalar code: no vectors are allowed\n"), "{scalar}");
}

#[test]
fn measured_time_stands_beside_what_is_expected() {
    for spec in ["sum f32[64,64] axes=[1]", "softmax f32[16,16] axes=[1]", "sum f32[3,0] axes=[0]", "sum f32[]"] {
        let page = works(&["explain", spec, "--measure"]);
        let last = page.lines().last().expect("a line");
        assert!(last.starts_with("measured   ") && last.contains(" (median of "), "{page}");
        assert!(last.contains(" % of ") && last.contains("; compiled in "), "{page}");
    }
}

#[test]
fn wrong_arguments_are_refused_as_elsewhere() {
    for more in
        [&["sum f32[2,3] axes=[5]"][..], &["sum f32[2]", "--width", "100"], &["sum f32[2]", "--schedule", "fast"]]
    {
        let message = cranefold(&[&["dump"], more].concat()).err;
        refuses(&[&["explain"], more].concat(), message["error: ".len()..].trim_end());
    }
    refuses(&["explain"], "the following required arguments were not provided: <SPEC>");
}
