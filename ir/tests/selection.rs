//! Selections in the interpreter: results by table, and what their terms depend on.

use cranefold_ir::eval::{Bits, Terms, run};
use cranefold_ir::*;

/// The results of `what` over values in the text form of `dtype`, as text.
fn select(dtype: &str, what: &str, values: &str) -> String {
    let dtype: DType = dtype.parse().unwrap();
    let values: Vec<Scalar> =
        values.split(' ').map(|v| Scalar::parse(dtype, v).unwrap_or_else(|| panic!("{v}"))).collect();
    let mut input = vec![0; values.len() * dtype.bytes() as usize];
    values.iter().enumerate().for_each(|(i, v)| v.write(&mut input, i));
    let n = values.len();
    let (vars, stores, counted) = match what {
        "mode" => ("v0, v1", "x1[0] = v0 x2[0] = v1", true),
        one if !one.contains(',') => ("v0", "x1[0] = v0", false),
        _ => ("v0, v1, v2", "x1[0] = v0 x1[1] = v1 x1[2] = v2", false),
    };
    let zero = Scalar::from_bits(dtype, 0);
    let nest: Nest = format!(
        "nest \"\" {{ in x0: {dtype}[{n}] out x1: {dtype}[3] out x2: i64[1] acc a0: {dtype}[{n}] = {zero}
         for l0 in 0..{n} parallel {{ a0[l0] = x0[l0] }} select {vars} = {what} of a0 over {n} {stores} }}"
    )
    .parse()
    .unwrap();
    verify(&nest).unwrap();
    let (mut output, mut count) = (vec![0; 3 * dtype.bytes() as usize], [0; 8]);
    run(&nest, &mut Bits { inputs: vec![&input], outputs: vec![&mut output, &mut count] });
    let result = |i| Scalar::read(dtype, &output, i).to_string();
    if counted {
        return format!("{} x {}", result(0), i64::from_ne_bytes(count));
    }
    (0..vars.split(',').count()).map(result).collect::<Vec<_>>().join(" ")
}

#[test]
fn nth_takes_places_in_order() {
    let cases = [
        ("i8", "nth 0", "127", "127"),
        ("i8", "nth 0, 2, 4", "0 127 -128 -1 1", "-128 0 127"),
        ("u8", "nth 0, 2, 4", "0 127 128 255 1", "0 127 255"),
        (
            "i64",
            "nth 1, 1, 0",
            "9223372036854775807 -9223372036854775808",
            concat!("9223372036854775807 ", "9223372036854775807 -9223372036854775808"),
        ),
        (
            "u64",
            "nth 2, 1, 0",
            "18446744073709551615 9007199254740993 9007199254740992",
            "18446744073709551615 9007199254740993 9007199254740992",
        ),
        ("f32", "nth 0, 1, 2", "0.0 -0.0 0.0", "-0.0 0.0 0.0"),
        ("f64", "nth 0, 1, 3", "inf nan -inf 5e-324", "-inf 5e-324 nan"),
        ("f32", "nth 1, 2, 3", "bits(0xffc00001) inf bits(0x7f800001) bits(0xff800001)", "nan nan nan"),
        ("f16", "nth 0, 1, 2", "65504.0 bits(0xfc01) -65504.0", "-65504.0 65504.0 nan"),
        ("bf16", "nth 0, 1, 2", "1.0 -1.0 bits(0xff81)", "-1.0 1.0 nan"),
    ];
    for (dtype, what, values, expected) in cases {
        assert_eq!(select(dtype, what, values), expected, "{dtype} {what} of {values}");
    }
}

#[test]
fn mode_is_the_least_of_the_most_frequent() {
    let cases = [
        ("i32", "3", "3 x 1"),
        ("i32", "3 2 1", "1 x 1"),
        ("i8", "1 -1 1 -1 0", "-1 x 2"),
        ("u8", "255 1 255 1 0", "1 x 2"),
        ("f32", "-0.0 5.0", "0.0 x 1"),
        ("f32", "0.0 -1.0 -0.0 -1.0 -0.0", "0.0 x 3"),
        ("f64", "nan inf nan", "nan x 2"),
        ("f32", "bits(0x7fc00001) inf bits(0xff800001)", "nan x 2"),
        ("f32", "bits(0x7fc00001) inf bits(0xff800001) inf", "inf x 2"),
        ("f16", "bits(0xfe00)", "nan x 1"),
        ("bf16", "-inf 1.0 -inf", "-inf x 2"),
    ];
    for (dtype, values, expected) in cases {
        assert_eq!(select(dtype, "mode", values), expected, "{dtype} mode of {values}");
    }
}

/// The terms of a nest that sets four elements to those of the input at `places` and selects twice.
fn terms(places: [u64; 4], first: &str, second: &str) -> Vec<Option<u128>> {
    let sets: String = (0..4).map(|i| format!("a0[{i}] = x0[{}] ", places[i])).collect();
    let nest: Nest = format!(
        "nest \"\" {{ in x0: i64[9] out x1: i64[4] acc a0: i64[4] = 0 {sets}
         select v0, v1 = {first} of a0 over 4 select v2, v3 = {second} of a0 over 4
         x1[0] = v0 x1[1] = v1 x1[2] = v2 x1[3] = v3 }}"
    )
    .parse()
    .unwrap();
    verify(&nest).unwrap();
    Terms::of(&nest).remove(0)
}

#[test]
fn terms_depend_on_the_elements_and_not_on_their_places() {
    let base = terms([1, 2, 3, 3], "nth 1, 2", "mode");
    assert_eq!(base, terms([3, 1, 3, 2], "nth 1, 2", "mode"));
    for other in [[1, 2, 2, 3], [1, 2, 3, 4], [1, 1, 3, 3]] {
        let other = terms(other, "nth 1, 2", "mode");
        assert!(base.iter().zip(&other).all(|(a, b)| a != b));
    }
    // Of the same elements each result has a term of its own, whatever it is selected together with.
    let distinct: std::collections::HashSet<_> = base.iter().collect();
    assert_eq!(distinct.len(), 4);
    let turned = terms([1, 2, 3, 3], "mode", "nth 2, 0");
    assert_eq!([turned[0], turned[1], turned[2]], [base[2], base[3], base[1]]);
    assert!(!distinct.contains(&turned[3]));
}
