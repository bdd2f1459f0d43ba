//! Terms: what they tell apart, and what they do not.

use cranefold_ir::eval::Terms;
use cranefold_ir::{Nest, verify};
use std::collections::HashSet;

/// The term of an expression over `x0: i8[200]`, `x1: f32[200]` and accumulators that hold 0 and -0.0.
fn term(dtype: &str, expr: &str) -> u128 {
    let text = format!(
        "nest \"\" {{ in x0: i8[200] in x1: f32[200] out x2: {dtype}[1]
         acc a0: i32[1] = 0 acc a1: f32[1] = -0.0 x2[0] = {expr} }}"
    );
    let nest: Nest = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
    verify(&nest).unwrap();
    Terms::of(&nest)[0][0].expect("it is stored")
}

fn sum(dtype: &str, of: &[&str]) -> u128 {
    let all = of[1..].iter().fold(of[0].to_string(), |sum, x| format!("add({sum}, {x})"));
    term(dtype, &all)
}

#[test]
fn sums_of_integers_have_no_order() {
    let base = sum("i32", &["i32(x0[1])", "i32(x0[2])", "i32(x0[3])"]);
    assert_eq!(base, sum("i32", &["i32(x0[3])", "i32(x0[1])", "i32(x0[2])"]));
    assert_eq!(base, term("i32", "add(i32(x0[2]), add(i32(x0[3]), i32(x0[1])))"));
    assert_eq!(base, sum("i32", &["a0[0]", "i32(x0[1])", "0:i32", "i32(x0[2])", "i32(x0[3])"]));
}

#[test]
fn an_element_dropped_doubled_or_foreign_shows() {
    let base = sum("i32", &["i32(x0[1])", "i32(x0[2])", "i32(x0[3])"]);
    let others: [&[&str]; 7] = [
        &["i32(x0[1])", "i32(x0[2])"],
        &["i32(x0[1])", "i32(x0[2])", "i32(x0[3])", "i32(x0[3])"],
        &["i32(x0[1])", "i32(x0[2])", "i32(x0[2])"],
        &["i32(x0[1])", "i32(x0[2])", "i32(x0[4])"],
        &["i32(x0[1])", "i32(x0[2])", "i32(x0[3])", "1:i32"],
        &["i32(x0[0])", "i32(x0[2])", "i32(x0[4])"],
        &["i32(x0[1])", "i32(x0[2])", "i32(i16(x0[3]))"],
    ];
    let distinct: HashSet<u128> = others.iter().map(|of| sum("i32", of)).chain([base]).collect();
    assert_eq!(distinct.len(), others.len() + 1);
}

#[test]
fn equal_sums_are_sums_of_the_same_elements() {
    // Places whose sums are equal, as would be those of a hash that is linear in the place.
    let leaves: Vec<u128> = (0..200).map(|n| term("i32", &format!("i32(x0[{n}])"))).collect();
    let pairs = (0..200).flat_map(|a| (0..=a).map(move |b| (a, b)));
    let sums: HashSet<u128> = pairs.map(|(a, b)| leaves[a].wrapping_add(leaves[b])).collect();
    assert_eq!(sums.len(), 200 * 201 / 2);
}

#[test]
fn what_is_around_a_sum_has_an_order() {
    let (a, b) = ("add(i32(x0[1]), i32(x0[2]))", "i32(x0[3])");
    assert_ne!(term("i32", &format!("sub({a}, {b})")), term("i32", &format!("sub({b}, {a})")));
    assert_ne!(term("i32", &format!("mul({a}, {b})")), term("i32", &format!("mul({b}, {a})")));
    // A cast of a sum is none of casts: it may have lost bits.
    assert_ne!(term("i32", "i32(add(x0[1], x0[2]))"), term("i32", "add(i32(x0[1]), i32(x0[2]))"));
}

#[test]
fn sums_of_floats_have_an_order() {
    assert_ne!(sum("f32", &["x1[1]", "x1[2]"]), sum("f32", &["x1[2]", "x1[1]"]));
    assert_ne!(sum("f32", &["x1[1]", "x1[2]", "x1[3]"]), term("f32", "add(x1[1], add(x1[2], x1[3]))"));
    assert_ne!(sum("f32", &["a1[0]", "x1[2]"]), term("f32", "x1[2]"));
}
