//! What random specs have found, kept: each broke a law once.

use crate::rows::{bits_are_equal, terms_are_kept};
use cranefold::{Compiler, Problem, Spec};

const BROKEN: &[&str] = &[
    // An element that a definition does not use, of a type that fills fewer lanes than the rest.
    "region x:f32[4,2] axes=[1] { a = argmax(x); b = count_nonzero(x); c = min(select(x > 0, position(1), 7)); a, b, c }",
    // A value of the slice that only some totals take.
    "region x0:i64[3,1,2], x1:f32[3,5,2] axes=[1] order=logical { v0 = x0 == 1; v2 = sum(x1); v3 = select(v0, 0, 1); v4 = sum(-select(v0, 0, v2) * v3, axes=[0,2]); v5 = sum(v3, axes=[0,2]); v4 / v5 }",
    // Truth values in the state of a combiner.
    r#"combiner(identity="bool(0), 0", lift="x0 > 0, x0", combine="a0 or b0, max(a1, b1)") f32[3,70] axes=[1]"#,
    r#"combiner(identity="1 < 2", lift="x0 > 0", combine="a0 == b0", close="a0, n", merge="a0 == b0, a1 + b1", finish="a0, a1") f32[70]"#,
    // Results of a combiner where expressions follow, of another type than the elements.
    r#"combiner(identity="i64(0)", lift="i64(x0)", combine="a0 + b0") f32[70] then="r0 + i64(1)" -> i64"#,
    // Integers reduced from f64.
    r#"sum, max f64[3,70] axes=[1] map="i32(x0) + i32(x0 * 0.5)""#,
    // A map that is right with the accumulator that is said.
    r#"sum f32[70] scalar k:u8 map="x0 * f64(k)" acc=f64"#,
    // What a division by the number of elements less one is does not depend on the shape.
    r#"combiner(identity="i64(0)", lift="i64(x0)", combine="a0 + b0", finish="a0 / (i64(n) - 1)", commutative) i32[3,1] axes=[1] -> i64"#,
    // Positions in loops that walk memory as one.
    r#"linf, argmin i32[70,5] axes=[0]"#,
    // A truth value that is known outside of the lanes.
    r#"argmin bool[70]@(0) -> i32"#,
    // A combiner of one phase that closes, beside another op.
    r#"combiner(identity="0", lift="x0", combine="a0 + b0", close="a0/n, n", merge="(a0*a1 + b0*b1)/(a1 + b1), a1 + b1", finish="a0 + a1", commutative), sum f32[9]"#,
    // The least and the greatest of nothing are not one state.
    r#"min, max f16[0]"#,
    r#"max, ptp, argmax f16[0,0] axes=[0]"#,
    r#"max, ptp f16[0]"#,
    // A scalar of the map is no further input of the row.
    r#"rms_norm(eps=0.5) f32[4] scalar k:f32 map="x0 - k""#,
];

#[test]
fn what_was_broken_holds() {
    let compiler = Compiler::host().expect("this machine");
    for (n, text) in BROKEN.iter().enumerate() {
        let spec: Spec = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(spec.to_string().parse(), Ok(spec.clone()));
        let problem = Problem::of(&spec);
        assert_eq!(problem.to_string().parse(), Ok(problem));
        terms_are_kept(&spec, n);
        (0..4).for_each(|more| bits_are_equal(&compiler, &spec, n + more));
    }
}

#[test]
fn what_was_accepted_is_refused() {
    let refused = |text: &str| text.parse::<Spec>().expect_err(text).kind().to_string();
    let nothing = "`mean` of integers over nothing has no integer value: reduced axis 0 has extent 0";
    assert_eq!(refused(r#"mean i32[0] then="r0 > 3""#), nothing);
}
