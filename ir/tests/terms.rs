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
fn a_negative_number_takes_away() {
    assert_eq!(sum("i32", &["i32(x0[1])", "6:i32", "-1:i32"]), sum("i32", &["i32(x0[1])", "5:i32"]));
    assert_eq!(sum("i32", &["-6:i32", "6:i32"]), term("i32", "0:i32"));
    assert_ne!(term("i32", "-1:i32"), term("i32", "1:i32"));
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
        &["i32(x0[1])", "i32(x0[2])", "i32(u8(x0[3]))"],
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
fn a_cast_of_a_sum_that_its_type_holds_is_the_sum_of_casts() {
    let wide = sum("i32", &["i32(x0[1])", "i32(x0[2])", "i32(x0[3])", "-7:i32"]);
    let narrow = "add(add(i16(x0[1]), i16(x0[2])), add(i16(x0[3]), -7:i16))";
    assert_eq!(wide, term("i32", &format!("i32({narrow})")));
    assert_eq!(wide, term("i32", &format!("i32(i64({narrow}))")));
    // A negative number is its own modulo 2^64.
    let modulo = sum("u64", &["u64(x0[1])", "u64(x0[2])"]);
    assert_eq!(modulo, term("u64", "u64(add(i16(x0[1]), i16(x0[2])))"));
    assert_ne!(modulo, term("u64", "u64(u16(add(i16(x0[1]), i16(x0[2]))))"));
    assert_ne!(modulo, term("u64", "add(u64(u32(x0[1])), u64(u32(x0[2])))"));
    assert_ne!(wide, term("i32", &format!("i32(u16({narrow}))")));
    assert_ne!(wide, term("i32", &format!("i32(f32({narrow}))")));
    assert_ne!(wide, term("i32", "i32(add(add(i16(x0[1]), i16(x0[2])), i16(x0[3])))"));
}

/// 256 bytes of -128 make -32768, one more makes 32767 of i16. Sums that lose bits on the way do not lose them.
#[test]
fn a_sum_that_may_lose_bits_is_no_sum_of_casts() {
    let sum = |dtype: &str, count: u64| {
        let text = format!(
            "nest \"\" {{ in x0: i8[300] out x1: i64[1] acc a0: {dtype}[1] = 0
             for k0 in 0..{count} seq {{ a0[0] = add(a0[0], {dtype}(x0[k0])) }} x1[0] = i64(a0[0]) }}"
        );
        Terms::of(&text.parse().unwrap_or_else(|e| panic!("{text}: {e}")))
    };
    for (count, same) in [(2, true), (255, true), (256, true), (257, false), (300, false)] {
        assert_eq!(sum("i32", count) == sum("i16", count), same, "{count} bytes");
    }
    let less = "i32(add(add(add(x0[1], 100:i8), 100:i8), -100:i8))";
    assert_ne!(term("i32", less), term("i32", "add(i32(x0[1]), 100:i32)"));
    assert_eq!(term("i32", "i32(add(add(100:i8, 100:i8), -100:i8))"), term("i32", "100:i32"));
}

#[test]
fn sums_of_floats_have_an_order() {
    assert_ne!(sum("f32", &["x1[1]", "x1[2]"]), sum("f32", &["x1[2]", "x1[1]"]));
    assert_ne!(sum("f32", &["x1[1]", "x1[2]", "x1[3]"]), term("f32", "add(x1[1], add(x1[2], x1[3]))"));
    assert_ne!(sum("f32", &["a1[0]", "x1[2]"]), term("f32", "x1[2]"));
}

/// A ring of two vectors of four lanes that loads lines, with what stands after the loop.
fn by_lines(after: &str) -> Nest {
    let text = format!(
        r#"nest "" {{
          in x0: f32[24]
          out x1: f32[8]
          misalign s0 = x0[0] in 4
          acc a0: f32[8] = 0.0
          for l1 in s0..4 lanes {{ a0[l1] = add(a0[l1], x0[l1 - s0]) }}
          for l1 in 0..4 lanes {{ a0[l1 + 4] = add(a0[l1 + 4], x0[l1 - s0 + 4]) }}
          for k2 in 0..2 seq {{
            for l1 in 0..4 lanes {{ a0[l1] = add(a0[l1], x0[8*k2 + l1 - s0 + 8]) }}
            for l1 in 0..4 lanes {{ a0[l1 + 4] = add(a0[l1 + 4], x0[8*k2 + l1 - s0 + 12]) }}
          }}
          {after}
          for e3 in 0..8 parallel {{ x1[e3] = a0[e3] }}
        }}"#
    );
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// The place of an input in its line shows in no term where the ring is moved back, and in some where it is not.
#[test]
fn a_place_in_a_line_shows_in_no_term() {
    let vectors: Nest = r#"nest "" {
        in x0: f32[24]
        out x1: f32[8]
        acc a0: f32[8] = 0.0
        for k2 in 0..3 seq { for l1 in 0..8 lanes { a0[l1] = add(a0[l1], x0[8*k2 + l1]) } }
        for e3 in 0..8 parallel { x1[e3] = a0[e3] }
    }"#
    .parse()
    .expect("a nest");
    let last = "for l1 in 0..s0 of 4 lanes { a0[l1] = add(a0[l1], x0[l1 - s0 + 24]) }";
    let whole = by_lines(&format!("{last} rotate a0[0..8] by s0"));
    let faulty =
        [by_lines(last), by_lines("rotate a0[0..8] by s0"), by_lines(&format!("{last} rotate a0[0..4] by s0"))];
    verify(&whole).expect("a nest that verifies");
    let expected = Terms::of(&vectors);
    for place in 0..4 {
        assert_eq!(Terms::of_misaligned(&whole, place), expected, "place {place}");
        for nest in &faulty {
            assert_eq!(Terms::of_misaligned(nest, place) == expected, place == 0, "place {place}\n{nest}");
        }
    }
}
