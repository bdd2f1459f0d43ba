//! Problems of blocked layouts: which are one, and which texts are none.

use cranefold::ops::Form;
use cranefold::schedule::{choose, choose_form};
use cranefold::{Problem, Schedule, Spec};

fn problem(text: &str) -> Problem {
    Problem::of(&text.parse::<Spec>().unwrap_or_else(|error| panic!("{text}: {error}")))
}

/// Whole blocks are no more than further dims.
#[test]
fn whole_blocks_are_the_dims_of_a_plain_layout() {
    for (blocked, plain) in [
        (
            "combiner(identity=\"1\", lift=\"x0\", combine=\"a0*b0\") f32[16]@A4a",
            "combiner(identity=\"1\", lift=\"x0\", combine=\"a0*b0\") f32[16]",
        ),
        (
            "combiner(identity=\"1\", lift=\"x0\", combine=\"a0*b0\") f32[10]@(5)5a",
            "combiner(identity=\"1\", lift=\"x0\", combine=\"a0*b0\") f32[10]",
        ),
        ("sum f32[4,32]@aB16b axes=[1]", "sum f32[4,32] axes=[1]"),
        ("sum f32[4,48]@aB4b4b axes=[1]", "sum f32[4,48] axes=[1]"),
        ("max f32[5,12]@(-12,4)4b+3 axes=[0]", "max f32[5,12]@(-12,1)+3 axes=[0]"),
        ("sum f32[8,32,7,7]@nChw16c axes=[2,3] -> @any", "sum f32[8,2,49,16] axes=[2]"),
        ("sum f32[8,32,7,7]@nChw16c axes=[0,2,3] keep_dims -> @any", "sum f32[8,2,49,16] axes=[0,2]"),
        ("sum f32[8,32,7,7]@nChw16c axes=[1]", "sum f32[8,2,49,16] axes=[1,3]"),
        ("sum f32[32,32]@AB16a16b axes=[1]", "sum f32[2,2,16,16] axes=[1,3]"),
        ("sum f32[8,32,7] axes=[0] -> @Ab16a", "sum f32[8,2,16,7] axes=[0] -> @acb"),
        ("argmax f32[8,32,7]@aBc16b axes=[1]", "argmax f32[8,2,16,7]@abdc axes=[1,2]"),
        ("softmax f32[3,16,2]@aBc8b axes=[1] -> @any", "softmax f32[3,2,2,8] axes=[1,3]"),
        ("mean f32[8,32], f32[32]@A8a axes=[0] map=\"x0*x1\"", "mean f32[8,32], f32[32] axes=[0] map=\"x0*x1\""),
    ] {
        assert_eq!(problem(blocked), problem(plain), "{blocked} and {plain}");
    }
    let (blocked, plain) = ("argmax f32[8,32,7]@aBc16b axes=[1]", "argmax f32[8,2,16,7]@acbd axes=[1,2]");
    assert_ne!(problem(blocked), problem(plain), "positions are in another order");
}

/// Positions of an op that takes none do not show, nor does a dim of one position.
#[test]
fn what_boxes_leave_out_does_not_show() {
    for (one, other) in [
        ("sum f32[4,33]@aB16b axes=[1]", "sum f32[4,33]@(48,1) axes=[1]"),
        (
            "combiner(identity=\"1\", lift=\"x0\", combine=\"a0*b0\") f32[10]@A4a",
            "combiner(identity=\"1\", lift=\"x0\", combine=\"a0*b0\") f32[10]",
        ),
        ("sum f32[4,1,33]@aBc16b axes=[2]", "sum f32[4,33]@(528,16) axes=[1]"),
        ("sum f32[3,20]@aB8b axes=[1]", "sum f32[1,3,1,20]@abcD8d axes=[3]"),
        ("sum f32[3,20]@aB8b axes=[1] keep_dims", "sum f32[3,20]@aB8b axes=[1]"),
    ] {
        let (one, other) = (problem(one), problem(other));
        let same = one.slices == other.slices && one.walks == other.walks;
        assert!(same, "{one} and {other}");
    }
}

/// A line of the problem of a spec, another in its place, and the refusal.
const MALFORMED: &[(&str, &str, &str)] = &[
    ("  slices at 0 -> 0", "  slices 0 -> 0", "line 9: boxes are written `slices at 0 -> 0`"),
    (
        "  slices at 0 -> 0",
        "  slices at 0",
        "line 9: slices and positions have an arrow before the outputs, elements have none",
    ),
    ("  slices at 0 -> 0", "  slices at 0, 0 -> 0", "line 9: there is one number for each operand"),
    ("  slices at 0 -> 0", "  slices at 0 -> 0, 0", "line 9: there is one number for each operand"),
    (
        "  slices at 0 -> 0",
        "  slices at -> 0",
        "line 9: slices and positions have an arrow before the outputs, elements have none",
    ),
    ("  slices at 0 -> 0", "  slices at x -> 0", "line 9: `x` is no number in range"),
    (
        "  slices at 0 -> 0",
        "  slices at 9223372036854775808 -> 0",
        "line 9: `9223372036854775808` is no number in range",
    ),
    ("  slices at 0 -> 0", "  slices at 0 -> 0 position", "line 9: `0 position` is no number in range"),
    ("  slices at 0 -> 0", "  slices at -1 -> 0", "line 25: x0 has 120 elements, and -1 to 118 are touched"),
    (
        "  slices at 0 -> 0",
        "  slices at 9223372036854775807 -> 0",
        "line 25: x0 has 120 elements, and 9223372036854775807 to 9223372036854775926 are touched",
    ),
    ("  slices at 0 -> 0", "  slices at 0 -> -1", "line 25: x1 has 144 elements, and -1 to 138 are touched"),
    ("  slices at 0 -> 0", "  box at 0 -> 0", "line 9: `box` is not expected here"),
    ("    dim 3: 40 -> 48", "    dim 3 40 -> 48", "line 10: a dim is written `dim 72: 240 -> 1`"),
    ("    dim 3: 40 -> 48", "    dim -3: 40 -> 48", "line 10: `-3` is no number in range"),
    (
        "    dim 3: 40 -> 48",
        "    dim 0: 40 -> 48",
        "line 25: a dim has from 2 to 9223372036854775807 positions, 0 given",
    ),
    (
        "    dim 3: 40 -> 48",
        "    dim 18446744073709551615: 0 -> 0",
        "line 25: a dim has from 2 to 9223372036854775807 positions, 18446744073709551615 given",
    ),
    ("    dim 3: 40 -> 48", "    dim 4: 40 -> 48", "line 25: x0 has 120 elements, and 0 to 159 are touched"),
    (
        "    dim 3: 40 -> 48",
        "    dim 3: 40",
        "line 10: slices and positions have an arrow before the outputs, elements have none",
    ),
    (
        "    dim 3: 40 -> 48",
        "    dim 3: -9223372036854775808 -> 0",
        "line 25: x0 has 120 elements, and -18446744073709551616 to 39 are touched",
    ),
    (
        "  elements at 0",
        "  elements at 0 -> 0",
        "line 13: slices and positions have an arrow before the outputs, elements have none",
    ),
    ("  elements at 0", "  elements at 2", "line 25: x0 has 120 elements, and 2 to 121 are touched"),
    ("  elements at 0", "  elements at 0\n  elements at 0", "line 26: the boxes of elements have not 20 elements"),
    ("    dim 20: 2", "    dim 19: 2", "line 25: the boxes of elements have not 20 elements"),
    (
        "    dim 20: 2",
        "    dim 20: 2 -> 0",
        "line 14: slices and positions have an arrow before the outputs, elements have none",
    ),
    ("  positions at 32 -> 32", "  positions at 33 -> 32", "line 25: x0 has 120 elements, and 0 to 120 are touched"),
    ("  positions at 32 -> 32", "  positions at 32 -> 37", "line 25: x1 has 144 elements, and 0 to 144 are touched"),
    ("    dim 4: 2 -> 1", "", "line 25: the boxes of positions have not 20 positions"),
    ("  beside 2", "  beside", "line 15: `` is no number in range"),
    ("  beside 2", "  beside two", "line 15: `two` is no number in range"),
    ("  beside 2", "  beside -2", "line 15: `-2` is no number in range"),
    ("  beside 2", "  beside 0", "line 25: `beside 0` is outside 1 to 6"),
    ("  beside 2", "  beside 7", "line 25: `beside 7` is outside 1 to 6"),
    ("  beside 2", "  beside 2\n  beside 2", "line 16: `beside` is given twice"),
    ("    dim 3: 40 -> 48", "    dim 3: 40 -> 1", "line 25: stride 1 in x1 writes a place twice"),
    ("    dim 3: 48", "    dim 3: 3", "line 25: stride 3 in x1 writes a place twice"),
    ("  slices at 0 -> 0", "  slices at 0 -> 0 position 1", "line 25: only boxes of elements have a position"),
    ("  padding of x1 at 36", "  padding at 36", "line 21: padding is written `padding of x1 at 17`"),
    ("  padding of x1 at 36", "  padding of x0 at 36", "line 21: padding is written `padding of x1 at 17`"),
    ("  padding of x1 at 36", "  padding of x1", "line 21: padding is written `padding of x1 at 17`"),
    ("  padding of x1 at 36", "  padding of y at 36", "line 21: padding is written `padding of x1 at 17`"),
    ("  padding of x1 at 36", "  padding of xé at 36", "line 21: `é` is no number in range"),
    ("  padding of x1 at 36", "  padding of x2 at 36", "line 25: there is no output x2 that has padding"),
    ("  padding of x1 at 36", "  padding of x1 at 37", "line 25: x1 has 144 elements, and 37 to 144 are touched"),
    ("  padding of x1 at 36", "  padding of x1 at 36 -> 0", "line 21: `36 -> 0` is no number in range"),
    ("    dim 3: 48", "    dim 3: 48 -> 0", "line 22: `48 -> 0` is no number in range"),
    ("    dim 3: 48", "    dim 0: 48", "line 25: a dim has from 2 to 9223372036854775807 positions, 0 given"),
    ("    dim 3: 48", "  in x9: f32[1]", "line 22: `in` stands before the boxes"),
    ("    dim 3: 48", "  takes position", "line 22: `takes` stands before the boxes"),
    (
        "  out x1: f32[144]",
        "  out x1: f32[144]\n  takes position",
        "line 26: `takes position` stands if and only if an op takes it",
    ),
    ("  out x1: f32[144]", "  out x1: f32[143]", "line 25: x1 has 143 elements, and 36 to 143 are touched"),
];

/// Narrow values fill vectors of 512 bits by the outputs of a tile, where slices are short or few outputs lie between them;
/// wide columns are asked for ahead.
#[test]
fn choices_follow_the_widths_and_places_of_values() {
    for (text, schedule) in [
        // Rows.
        ("sum f32[4000,10] axes=[1]", "width=512 tile=i0:16 jam=1 in_flight=1"),
        ("sum i8[4000,10] axes=[1]", "width=512 tile=i0:64 jam=1 in_flight=1"),
        ("max bf16[4000,10] axes=[1]", "width=512 tile=i0:32 jam=1 in_flight=1"),
        ("argmax bf16[4000,10] axes=[1]", "width=512 form=direct tile=i0:32 jam=1 in_flight=1"),
        ("log_softmax bf16[4000,10] axes=[1]", "width=512 tile=i0:16 jam=1 in_flight=1"),
        // Rows that end inside a line are written through the caches; pieces of rows that a tile visits twice are asked for.
        ("rms_norm bf16[12000,16,196] axes=[1]", "width=512 tile=i1:196 jam=1 in_flight=1"),
        (
            "rms_norm bf16[12000,16,192] axes=[1]",
            "width=512 tile=i1:192 jam=1 in_flight=1 prefetch=32768 nontemporal=on",
        ),
        ("var f64[8000,16,196] axes=[1]", "width=512 tile=i1:48 jam=1 in_flight=1 prefetch=32768"),
        ("var f32[20000,1000] axes=[0]", "width=512 tile=i0:1000 jam=1 in_flight=1"),
        ("log_sum_exp f32[64,128,1024] axes=[1]", "width=512 tile=i1:1024 jam=1 in_flight=1 prefetch=32768"),
        // A few outputs between the elements of slices: in registers, in rows whose states are those of a single step, and in
        // the direct form where the phases of the plain one would wait for folds.
        ("max i8[3000,4,4] axes=[1]", "width=512 tile=i0:16@rows jam=1 in_flight=1"),
        ("max bf16[3000,2,4] axes=[1]", "width=512 tile=i0:8@rows jam=1 in_flight=1"),
        ("max bf16[3000,4,4] axes=[1]", "width=512 tile=i0:8@rows jam=1 in_flight=1"),
        ("max bf16[555,9,6] axes=[1]", "width=512 tile=i0:5@rows jam=1 in_flight=1"),
        ("argmax bf16[555,9,6] axes=[1]", "width=512 form=direct tile=i0:5@rows jam=1 in_flight=1"),
        ("argmax bf16[277,36,3] axes=[1]", "width=512 form=direct tile=i1:3 jam=1 in_flight=1"),
        ("argmax bf16[10,200,14] axes=[1]", "width=512 tile=i1:14 jam=1 in_flight=1"),
        ("argmax f32[138,36,6] axes=[1]", "width=512 form=direct tile=i1:6 jam=1 in_flight=1"),
        ("max i8[3000,5,4] axes=[1]", "width=512 tile=i0:16@rows jam=1 in_flight=1"),
        ("sum f32[1168,7,2] axes=[1]", "width=512 tile=i0:16@across jam=1 in_flight=1"),
        // Written by their results: in rows, and by columns that are visited twice.
        (
            "region x:f32[606,9,3] axes=[1] { m, s = sum_exp(x); x - m - log(s) }",
            "width=512 tile=i0:10@rows jam=1 in_flight=1",
        ),
        (
            "region x:f32[682,4,6], y:f32[682,4,6] axes=[1] { d = sum(x * y); x * (y - d) }",
            "width=512 tile=i1:6 jam=1 in_flight=1",
        ),
        ("argmax f32[200,16,5] axes=[1]", "width=512 form=direct tile=i0:3@rows jam=1 in_flight=1"),
        ("argmax f32[336,16,3] axes=[1]", "width=512 form=direct tile=i0:5@rows jam=1 in_flight=1"),
        // Windows.
        ("max i8[100,14,2,6,2] axes=[2,4]", "width=512 tile=i0:10@rows jam=1 in_flight=1"),
        ("sum i8[200,24,2,14,2] axes=[2,4]", "width=512 tile=i0:4@rows jam=1 in_flight=1"),
        ("sum bf16[200,24,2,20,2] axes=[2,4]", "width=512 tile=i0:2@rows jam=1 in_flight=1"),
        ("mean i8[100,14,2,6,2] axes=[2,4]", "width=512 form=direct tile=i0:5@rows jam=1 in_flight=1"),
        // Runs that begin late, side by side, and rows of runs whose states registers do not hold.
        ("max i8[68,256,144] axes=[0,2]", "width=512 tile=i0:7@lanes jam=1 in_flight=1"),
        ("max i8[20,40,200] axes=[0,2]", "width=512 jam=1 in_flight=1 align=64"),
        ("max bf16[500,16,9] axes=[0,2]", "width=512 tile=i0:16@lanes jam=1 in_flight=1"),
        ("max bf16[7990,56,9] axes=[0,2]", "width=512 form=direct tile=i0:56@lanes jam=1 in_flight=1"),
        // Several steps in each visit of the states of such rows, in one phase where the caches hold the data.
        ("argmax f32[7990,56,9] axes=[0,2]", "width=512 form=direct tile=i0:56@lanes jam=4 in_flight=1"),
        ("sum f32[64,56,9] axes=[0,2]", "width=512 tile=i0:56@lanes jam=4 in_flight=1"),
        // Runs whole pages apart, beside others, and runs a line further apart.
        ("var f32[100,64,16] axes=[0,2]", "width=512 tile=i0:64@lanes jam=4 in_flight=1"),
        ("var f32[100,65,16] axes=[0,2]", "width=512 jam=1 in_flight=1 interleave=2"),
        // Groups of a few channels in each pixel, in rows of several images; of more, beside one another in each image.
        ("var f32[40,49,4,4] axes=[1,3]", "width=512 tile=i0:4@rows jam=1 in_flight=1"),
        ("var f32[40,49,4,8] axes=[1,3]", "width=512 tile=i1:4@lanes jam=1 in_flight=1"),
        (
            "region x:f32[42,16,8,3], y:f32[42,16,8,3] axes=[1,3] { sum(x * y) / (l2(x) * l2(y)) }",
            "width=512 tile=i0:2@rows jam=1 in_flight=1",
        ),
        // Groups that are visited again, whose elements each visit would bring into the order of rows.
        (
            "region x:f64[4,1024,4,4] axes=[1,3] { c = centered(x); c / sqrt(mean(c * c) + 1e-5) }",
            "width=512 tile=i1:4@lanes jam=1 in_flight=1",
        ),
        // Windows whose rows leave lanes empty, and those of which several vectors hide each other's operations.
        ("log_softmax f32[13,24,2,20,2] axes=[2,4]", "width=512 tile=i0:2@rows jam=1 in_flight=1"),
        ("layer_norm f32[170,24,2,20,2] axes=[2,4]", "width=512 tile=i1:16 jam=1 in_flight=1"),
        ("log_softmax bf16[2094,8,2,4,2] axes=[2,4]", "width=512 tile=i0:12@rows jam=1 in_flight=1"),
        // Short rows whose vectors do, and those of which three crowd the registers.
        ("log_softmax f32[50417,2] axes=[1]", "width=512 tile=i0:48 jam=1 in_flight=1"),
        ("rms_norm f64[617,5] axes=[1]", "width=512 tile=i0:24 jam=1 in_flight=1"),
        ("log_softmax f32[2000,8] axes=[1]", "width=512 tile=i0:16 jam=1 in_flight=1"),
        // Windows whose lanes do not halve.
        ("mean f32[8,16,4,7,4,7] axes=[3,5]", "width=512 jam=1 in_flight=1"),
        // Columns that are visited twice, of most of the last cache, of less, and of one line.
        ("argmax f32[1193,16,196] axes=[1]", "width=512 form=direct tile=i1:112 jam=1 in_flight=1 prefetch=32768"),
        ("argmax f32[600,16,196] axes=[1]", "width=512 form=direct tile=i1:112 jam=1 in_flight=1"),
        ("argmax f32[1000,3,1000] axes=[1]", "width=512 form=direct tile=i1:16 jam=1 in_flight=1"),
        // Of those whose second visit the first-level cache serves, unless most of the last cache is read.
        ("argmax i16[64,1000] axes=[0]", "width=512 tile=i0:128 jam=1 in_flight=1"),
        ("argmax f32[8,128,1000] axes=[1]", "width=512 form=direct tile=i1:64 jam=1 in_flight=1"),
        ("argmax f64[100,64,256] axes=[1]", "width=512 tile=i1:64 jam=1 in_flight=1 prefetch=32768"),
        // Few columns beside the weights of their rows: column by column, but for integers of which registers hold rows.
        ("region x:f32[4000,3], w:f32[4000,1] axes=[0] { sum(x * w) }", "width=512 tile=i0:3@runs jam=1 in_flight=1"),
        (
            "region x:f32[4000,8], w:f32[4000,1] axes=[0] { sum(x * w) }",
            "width=512 tile=i0:8 jam=1 in_flight=1 align=64",
        ),
        ("region x:i32[4000,7], w:i32[4000,1] axes=[0] { sum(x * w) }", "width=512 tile=i0:7 jam=1 in_flight=1"),
        // Rows that are searched by windows have their positions on the bits.
        ("argmax f32[8,1000] axes=[1]", "width=512 jam=1 in_flight=1 interleave=2"),
        ("argmax f32[800,100] axes=[1]", "width=512 form=direct tile=i0:16@folds jam=1 in_flight=1"),
    ] {
        assert_eq!(choose(&problem(text), 512).to_string(), schedule, "{text}");
    }
}

/// The form is a decision: it reads back in a schedule, and what has none is refused.
#[test]
fn the_form_is_a_word_of_the_schedule() {
    let chosen = choose(&problem("max f32[8,1000] axes=[1] then=\"r0 * 2\""), 512);
    assert_eq!(chosen.to_string(), "width=512 form=direct jam=1 in_flight=1 align=64");
    assert_eq!(chosen.to_string().parse(), Ok(chosen));
    // Of two elements each vector favours it; beside another reducer and of other types there is none.
    assert_eq!(choose_form(&problem("min f32[8,2] axes=[1]"), 128), Form::Direct);
    let forced: Schedule = "form=direct".parse().expect("a schedule");
    for (text, work) in [
        ("max i16[8,2] axes=[1]", "`max` of i16"),
        ("argmax f64[8,2] axes=[1]", "`argmax` of f64"),
        ("mean f32[8,2] axes=[1]", "`mean` of f32"),
        ("mean i8[8,257] axes=[1]", "`mean` of i8"),
        ("max f64[8,2] axes=[1]", "`max` of f64"),
        ("min,max f32[8,2] axes=[1]", "a region"),
        ("sum f32[8,2] axes=[1]", "`sum` of f32"),
    ] {
        let problem = problem(text);
        assert_eq!(choose_form(&problem, 512), Form::Plain, "{text}");
        let error = forced.check(&problem).expect_err("no form").to_string();
        assert_eq!(error, format!("form=direct: {work} has no such form"), "{text}");
    }
    assert_eq!("form=direct".parse::<Schedule>().map(|s| s.check(&problem("max f32[8,9] axes=[1]"))), Ok(Ok(())));
}

#[test]
fn malformed_boxes_are_refused() {
    let text = problem("region x:f32[3,20,2] axes=[1] { m, s = sum_exp(x); exp(x - m) / s @aBc8b }").to_string();
    assert_eq!(text.lines().count(), 25, "{text}");
    let mut failed = vec![];
    for (line, other, message) in MALFORMED {
        let lines: Vec<&str> = text.lines().map(|l| if l == *line { *other } else { l }).collect();
        assert_eq!(text.lines().filter(|l| l == line).count(), 1, "{line}");
        match lines.join("\n").parse::<Problem>() {
            Err(error) if error.to_string() == *message => {}
            Err(error) => failed.push(format!("{line} -> {other}: {error}")),
            Ok(_) => failed.push(format!("{line} -> {other}: accepted")),
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn axes_over_which_nothing_is_reduced_leave_no_trace() {
    let cases = [
        ("x:f32[2,6,4,8], m:f32[2,1,4,1]", "1,3", "(x - m) / m, exp(x)"),
        ("x:f32[4,6], m:f32[1,6]", "0", "old(0) + x * m"),
        ("x:bf16[4,6], h:f32[4,1]", "1", "bf16(x + h), f32(position(1))"),
        ("x:f32[4,1], h:f32[1,6]", "0", "x + h"),
    ];
    for (inputs, axes, body) in cases {
        let of = |axes: &str| problem(&format!("region {inputs} axes=[{axes}] {{ {body} }}"));
        assert_eq!(of(axes), of(""), "{inputs} over {axes}: {body}");
    }
    // A value of the slice is another one where nothing is reduced.
    let of_slices = |axes: &str| problem(&format!("region x:f32[4,6], m:f32[4,1] axes=[{axes}] {{ x * m, m }}"));
    assert_ne!(of_slices("1"), of_slices(""));
}
