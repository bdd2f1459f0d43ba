//! Expressions that are refused, with the place, and the builder's way to write them.

use cranefold::ir::expression::{Expression, name};
use cranefold::ops::Combiner;
use cranefold::{DType, Spec};

/// A spec, and the lines of its refusal.
const REFUSED: &[(&str, &[&str])] = &[
    // Outside the grammar.
    (r#"sum f32[2] map="x0 +""#, &["map: expected a value, found the end", "  x0 +", "      ^"]),
    (r#"sum f32[2] map="""#, &["map: expected a value, found the end", "  ", "  ^"]),
    (r#"sum f32[2] then="r0, ""#, &["then: expected a value, found the end", "  r0,", "     ^"]),
    (r#"sum f32[2] apply="(x0 / r0""#, &["apply: expected `)`, found the end", "  (x0 / r0", "          ^"]),
    // Unknown names.
    (r#"sum f32[2,3] map="x0*z0""#, &["map: unknown name `z0`; the names here are x0", "  x0*z0", "     ^"]),
    (r#"sum f32[2,3] map="x0*r0""#, &["map: unknown name `r0`; the names here are x0", "  x0*r0", "     ^"]),
    (r#"sum f32[2,3] map="x0+d""#, &["map: unknown name `d`; the names here are x0", "  x0+d", "     ^"]),
    (r#"sum f32[2,3] then="r0 + r1""#, &["then: unknown name `r1`; the names here are r0, d", "  r0 + r1", "       ^"]),
    (
        r#"sum f32[2,3] scalar eps:f32 then="r0 / (eps + Eps)""#,
        &["then: unknown name `Eps`; the names here are eps, r0, d", "  r0 / (eps + Eps)", "              ^"],
    ),
    (r#"sum f32[2,3] apply="x0 + d""#, &["apply: unknown name `d`; the names here are x0, r0", "  x0 + d", "       ^"]),
    // All names that are there, used or not, and none that is refused.
    (
        r#"sum f32[2], f32[2], f32[]:then scalar k:f32 map="x0*z" then="r0+y0""#,
        &["map: unknown name `z`; the names here are x0, x1, k", "  x0*z", "     ^"],
    ),
    (
        r#"sum,max f32[2], f32[]:then, i8[]:then scalar k:f32 then="r0+z""#,
        &["then: unknown name `z`; the names here are y0, y1, k, r0, r1, d", "  r0+z", "     ^"],
    ),
    (
        r#"sum f32[2], f32[2], f32[]:then scalar k:f32 apply="x0/z""#,
        &["apply: unknown name `z`; the names here are x0, x1, k, r0", "  x0/z", "     ^"],
    ),
    (
        r#"combiner(identity="0", lift="x0*z", combine="a0+b0") f32[2], f32[2], f32[]:then scalar k:f32"#,
        &["lift: unknown name `z`; the names here are x0, x1, k, i", "  x0*z", "     ^"],
    ),
    (
        r#"combiner(identity="0", lift="x0", combine="a0+b0", identity="0", lift="z", combine="a0+b0", merge="a0+b0, a1+b1") f32[2]"#,
        &["lift: unknown name `z`; the names here are x0, i, r0", "  z", "  ^"],
    ),
    // What each may read.
    (
        r#"sum f32[2] then="r0 + x0""#,
        &["then: `x0` is an element; `then` reads results and inputs marked `:then`", "  r0 + x0", "       ^"],
    ),
    (
        r#"sum f32[2], f32[]:then map="x0*y0" then="r0+y0""#,
        &["map: `y0` is marked `:then`, and only `then` reads it", "  x0*y0", "     ^"],
    ),
    (
        r#"sum f32[2], f32[]:then apply="x0*y0/r0""#,
        &["apply: `y0` is marked `:then`, and only `then` reads it", "  x0*y0/r0", "     ^"],
    ),
    // Types.
    (
        r#"sum f32[2] map="x0 and x0""#,
        &["map: `and` takes bool, not f32; convert, as in `bool(x0)`", "  x0 and x0", "     ^"],
    ),
    (
        r#"sum f32[2], i32[2] map="x0 * x1""#,
        &["map: `x0` is f32 and `x1` is i32; convert, as in `f32(x1)`", "  x0 * x1", "     ^"],
    ),
    (
        r#"sum f32[2], f64[2] map="f32(x0) * x1""#,
        &["map: `f32(x0)` is f32 and `x1` is f64; convert, as in `f64(f32(x0))`", "  f32(x0) * x1", "          ^"],
    ),
    (
        r#"max,argmax f32[2] then="r0 * r1""#,
        &["then: `r0` is f32 and `r1` is i64; convert, as in `f32(r1)`", "  r0 * r1", "     ^"],
    ),
    (
        r#"sum f32[2] then="d + r0" trunc -> i8"#,
        &["then: `d` is i32 and `r0` is f32; convert, as in `f32(d)`", "  d + r0", "    ^"],
    ),
    (
        r#"sum i32[2] map="sqrt(x0)""#,
        &["map: `sqrt` takes f32 and f64, not i32; convert, as in `f32(x0)`", "  sqrt(x0)", "  ^"],
    ),
    // Shapes.
    (
        r#"sum f32[2,3], f32[2] map="x0*x1""#,
        &["map: x1 of shape [2] does not broadcast to x0 of shape [2,3]", "  x0*x1", "     ^"],
    ),
    (
        r#"sum f32[3], f32[2,3] map="x1*x0""#,
        &["map: x1 of shape [2,3] does not broadcast to x0 of shape [3]", "  x1*x0", "  ^"],
    ),
    (
        r#"sum f32[2,1], f32[2,3] map="x0*x1""#,
        &["map: x1 of shape [2,3] does not broadcast to x0 of shape [2,1]", "  x0*x1", "     ^"],
    ),
    (
        r#"sum f32[2,3], f32[2] axes=[1] apply="x0/r0*x1""#,
        &["apply: x1 of shape [2] does not broadcast to x0 of shape [2,3]", "  x0/r0*x1", "        ^"],
    ),
    (
        r#"mean f32[32,768], f32[31]:then axes=[1] then="r0 + y0""#,
        &["then: y0 of shape [31] does not broadcast to the output's shape [32]", "  r0 + y0", "       ^"],
    ),
    (
        r#"mean f32[32,768], f32[32]:then axes=[1] keep_dims then="r0 + y0""#,
        &["then: y0 of shape [32] does not broadcast to the output's shape [32,1]", "  r0 + y0", "       ^"],
    ),
    (
        r#"mean f32[2], f32[1]:then then="r0, r0 + y0""#,
        &["then: y0 of shape [1] does not broadcast to the output's shape []", "  r0, r0 + y0", "           ^"],
    ),
    // Constants.
    (r#"sum i32[2,3] map="x0 / 0""#, &["map: division by zero", "  x0 / 0", "       ^"]),
    (r#"sum i32[2,3] then="r0 / (2-2)""#, &["then: division by zero", "  r0 / (2-2)", "         ^"]),
    (
        r#"sum i8[2] map="x0 + 3000000000""#,
        &["map: `3000000000` is out of range for i32: -2147483648 to 2147483647", "  x0 + 3000000000", "       ^"],
    ),
    // Combiners.
    (
        r#"combiner(identity="0", lift="x0", combine="a0 + c0") f32[2]"#,
        &["combine: unknown name `c0`; the names here are a0, b0", "  a0 + c0", "       ^"],
    ),
    (
        r#"combiner(identity="x0", lift="x0", combine="a0+b0") f32[2]"#,
        &["identity: unknown name `x0`; there are no names here", "  x0", "  ^"],
    ),
    (
        r#"combiner(identity="0", lift="x0", combine="a0+b0", finish="a1") f32[2]"#,
        &["finish: unknown name `a1`; the names here are a0, n", "  a1", "  ^"],
    ),
    (
        r#"combiner(identity="0", lift="x0 +", combine="a0+b0") f32[2]"#,
        &["column 24: lift: expected a value, found the end", "  x0 +", "      ^"],
    ),
    (r#"combiner f32[2]"#, &["column 10: expected `(`, found `f32`"]),
    (r#"combiner() f32[2]"#, &["column 10: expected a field of the combiner, found `)`"]),
    (
        r#"combiner(identity=0) f32[2]"#,
        &[
            "column 19: expected `\"`, found `0`: an expression stands in double quotes, and in a shell the whole spec in single ones, as in 'identity=\"..\"'",
        ],
    ),
    (r#"combiner(lift="x0", combine="a0+b0") f32[2]"#, &["column 10: the combiner has no `identity`"]),
    (r#"combiner(finish="1") f32[2]"#, &["column 10: the combiner has no `identity`"]),
    (r#"combiner(identity="0", combine="a0+b0") f32[2]"#, &["column 24: the combiner has no `lift`"]),
    (r#"combiner(identity="0", lift="x0") f32[2]"#, &["column 24: the combiner has no `combine`"]),
    (
        r#"combiner(identity="0", lift="x0", combine="a0+b0", close="a0/n") f32[2]"#,
        &["column 52: the combiner has no `merge`"],
    ),
    (
        r#"combiner(identity="0", lift="x0", combine="a0+b0", merge="a0+b0") f32[2]"#,
        &["column 52: `merge` is for several phases or one with `close`; the blocks of one phase merge by `combine`"],
    ),
    (
        r#"combiner(identity="0", lift="x0", lift="x0", combine="a0+b0") f32[2]"#,
        &["column 35: the combiner has `lift` twice"],
    ),
    (
        r#"combiner(identity="0", lift="x0", combine="a0+b0", commutative, commutative) f32[2]"#,
        &["column 65: the combiner has `commutative` twice"],
    ),
    (
        r#"combiner(identity="0", lift="x0", combine="a0+b0", wish="1") f32[2]"#,
        &["column 52: `wish` is no field of a combiner; they are identity, lift, combine, close, merge, finish and \
           commutative"],
    ),
    (
        r#"combiner(identity="0", lift="x0, x0", combine="a0+b0") f32[2]"#,
        &["`lift` of the combiner gives 2 values where the state has 1"],
    ),
    (
        r#"combiner(identity="0, 0", lift="x0, x0", combine="a0+b0") f32[2]"#,
        &["`combine` of the combiner gives 1 value where the state has 2"],
    ),
    (
        r#"combiner(identity="i32(0)", lift="x0", combine="a0+b0") f32[2]"#,
        &["value 0 of `lift` of the combiner is f32 where the state has i32"],
    ),
    (
        r#"combiner(identity="0, i64(0)", lift="x0, i", combine="a0+b0, a1 > b1") f32[2]"#,
        &["value 1 of `combine` of the combiner is bool where the state has i64"],
    ),
    (
        r#"combiner(identity="0", lift="x0", combine="a0+b0") f32[2] map="x0*x0""#,
        &["`map` does not stand with a combiner, whose `lift` reads the inputs itself"],
    ),
    (
        r#"combiner(identity="0", lift="x0*y0", combine="a0+b0") f32[2], f32[]:then"#,
        &["`y0` is marked `:then`, and only `then` reads it"],
    ),
    (
        r#"combiner(identity="0", lift="x0*x1", combine="a0+b0") f32[2,3], f32[2]"#,
        &["x1 of shape [2] does not broadcast to x0 of shape [2,3]"],
    ),
    (r#"combiner(identity="0", lift="x0", combine="a0+b0") f32[2], f32[2]"#, &["input `x1` is not used"]),
];

#[test]
fn refusals_show_the_place() {
    for &(text, lines) in REFUSED {
        let error = text.parse::<Spec>().err().unwrap_or_else(|| panic!("`{text}` is accepted"));
        assert_eq!(error.kind().to_string().split('\n').collect::<Vec<_>>(), lines, "{text}");
    }
}

/// What the builder makes of operators is what text says, and prints the same.
#[test]
fn builders_are_text() {
    let sum = || Spec::builder("sum").input(DType::F32, &[64, 512]).axes([1]);
    let (x0, x1, r0, y0) = (|| name("x0"), || name("x1"), || name("r0"), || name("y0"));
    for (builder, text) in [
        (sum().map(x0() * x0()), r#"sum f32[64,512] axes=[1] map="x0 * x0""#),
        (
            sum().input(DType::F32, &[512]).map(x0() * x1()).then(r0().sqrt()),
            r#"sum f32[64,512], f32[512] axes=[1] map="x0 * x1" then="sqrt(r0)""#,
        ),
        (
            sum().then_input(DType::F32, &[64]).then(r0().max(0) + y0()),
            r#"sum f32[64,512], f32[64]:then axes=[1] then="max(r0, 0) + y0""#,
        ),
        (
            sum().scalar("eps", DType::F32).then(r0() / (r0() + name("eps"))),
            r#"sum f32[64,512] axes=[1] scalar eps:f32 then="r0 / (r0 + eps)""#,
        ),
        (sum().then(r0() + name("d")), r#"sum f32[64,512] axes=[1] then="r0 + d""#),
        (sum().apply(x0() / r0()), r#"sum f32[64,512] axes=[1] apply="x0 / r0""#),
        (
            sum().reducer("max").then(vec![r0() / 512, -name("r1")]),
            r#"sum, max f32[64,512] axes=[1] then="r0 / 512, -r1""#,
        ),
        (
            sum().reducer("argmax").param("last", 1.0).output(DType::F32).output(DType::I32),
            r#"sum, argmax(last) f32[64,512] axes=[1] -> f32, i32"#,
        ),
        (Spec::builder("any").input(DType::F32, &[8]).map(x0().gt(0)), r#"any f32[8] map="x0 > 0""#),
    ] {
        let built = builder.build().unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(built.to_string(), text);
        assert_eq!(text.parse(), Ok(built), "{text}");
    }
}

#[test]
fn combiners_are_text() {
    let spread = Combiner::new("0, 0", "x0, x0*x0", "a0 + b0, a1 + b1").unwrap();
    let spread = spread.finish("a1 - a0*a0").unwrap().commutative();
    let built = Spec::own(spread.clone()).input(DType::F32, &[4, 100]).axes([1]).build().unwrap();
    let text = r#"combiner(identity="0, 0", lift="x0, x0 * x0", combine="a0 + b0, a1 + b1", finish="a1 - a0 * a0", commutative) f32[4,100] axes=[1]"#;
    assert_eq!(built.to_string(), text);
    assert_eq!(text.parse(), Ok(built));
    let both = Spec::builder("max").own(spread).input(DType::F32, &[8]).build().unwrap();
    assert_eq!(both.to_string().parse(), Ok(both));
}

/// The places of what operators built are in the text it prints as.
#[test]
fn refusals_of_builders_show_the_place() {
    let refuse = |expression: Expression| {
        let built = Spec::builder("sum").input(DType::F32, &[2]).map(expression).build();
        built.unwrap_err().to_string()
    };
    assert_eq!(refuse(name("x0") * name("z")), "map: unknown name `z`; the names here are x0\n  x0 * z\n       ^");
    assert_eq!(
        refuse(name("x0").and(name("x0"))),
        "map: `and` takes bool, not f32; convert, as in `bool(x0)`\n  x0 and x0\n     ^"
    );
    let two = Spec::builder("sum").input(DType::F32, &[2]).map(vec![name("x0"), name("x0")]).build();
    assert_eq!(two.unwrap_err().to_string(), "`map` is one expression, 2 given");
}
