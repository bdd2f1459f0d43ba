//! What is refused, with its place.

use crate::def_of;
use cranefold_ir::DType;
use cranefold_ir::expression::{Expression, MAX_DEPTH, MAX_TEXT, name};

/// The names of the tables here: `x0 x1` are f32, the others are called by their type.
const NAMES: [(&str, DType); 9] = [
    ("x0", DType::F32),
    ("x1", DType::F32),
    ("d64", DType::F64),
    ("h", DType::F16),
    ("b16", DType::Bf16),
    ("i", DType::I32),
    ("i8_", DType::I8),
    ("u", DType::U8),
    ("t", DType::Bool),
];

fn error(text: &str) -> String {
    let built = text.parse().and_then(|expression: Expression| def_of(&expression, &NAMES, DType::F32));
    built.map(|def| def.to_string()).expect_err(text).to_string()
}

/// Each case is a message, the text, and the caret under it.
fn refuses(cases: &[[&str; 3]]) {
    for [message, text, caret] in cases {
        assert_eq!(error(text), format!("{message}\n  {text}\n  {caret}"));
    }
}

#[test]
fn what_is_no_expression() {
    refuses(&[
        ["expected a value, found the end", "", "^"],
        ["expected a value, found the end", "x0 +", "    ^"],
        ["expected a value, found `)`", "x0 + )", "     ^"],
        ["expected a value, found `*`", "x0 + * x1", "     ^"],
        ["expected a value, found `and`", "and x0", "^"],
        ["expected an operator, found `x1`", "x0 x1", "   ^"],
        ["expected an operator, found `,`", "x0, x1", "  ^"],
        ["expected `)`, found the end", "(x0", "   ^"],
        ["expected `,` or `)`, found the end", "min(x0", "      ^"],
        ["expected a value, found `)`", "min(x0, )", "        ^"],
        ["comparisons do not chain; join two of them by `and`", "0 < x0 < 1", "       ^"],
        ["comparisons do not chain; join two of them by `and`", "(0 < x0) == t != t", "              ^"],
        ["`not` binds less tightly than what stands before it; put it in parentheses", "1 + not t", "    ^"],
        ["`not` binds less tightly than what stands before it; put it in parentheses", "-not t", " ^"],
        ["`=` means nothing here; write `==`", "x0 = 1", "   ^"],
        ["`&&` means nothing here; write `and`", "t && t", "  ^"],
        ["`||` means nothing here; write `or`", "t || t", "  ^"],
        ["expected a value, found `&`", "& i", "^"],
        ["expected a value, found `<`", "i << < 1", "     ^"],
        ["expected an operator, found `~`", "i ~ i", "  ^"],
        ["comparisons do not chain; join two of them by `and`", "x0 > 1 & x1 > 2", "            ^"],
        ["`not` binds less tightly than what stands before it; put it in parentheses", "~not t", " ^"],
        ["a name cannot be `floor`, a function of 1 operand", "floor + 1", "^"],
        ["`!` means nothing here; write `not`", "!t", "^"],
        ["`%` means nothing here; write `a - b * floor(a / b)`", "x0 % 2", "   ^"],
        ["`**` means nothing here; write `pow(a, b)`", "x0**2", "  ^"],
        ["`²` means nothing here; write `pow(a, 2)`", "x0²", "  ^"],
        ["an expression has no indices: `x0` is the element itself", "x0[0]", "  ^"],
        ["unexpected character 'é'", "é", "^"],
        ["`–` means nothing here; write `-`", "x0 – x1", "   ^"],
        ["`2x` is no number", "2x", "^"],
        ["`2x0` is no number; a product is `2*x0`", "2x0", "^"],
        ["`.exp` is no number; a function stands without the name of a library: `exp`", "x0 + .exp", "     ^"],
        ["`1.5.2` is no number", "x0 + 1.5.2", "     ^"],
        ["`.` is no number", ".", "^"],
        ["`1e` is no number", "1e", "^"],
        ["`1e+` is no number", "1e+ x0", "^"],
        ["`1e400` is beyond the greatest f64; infinity is `inf`", "-1e400", " ^"],
        ["a name cannot be `min`, a function of 2 operands", "min + 1", "^"],
        ["a name cannot be `f32`, a conversion of 1 operand", "f32", "^"],
        [
            "unknown function `sin`; there are min, max, abs, sqrt, exp, log, pow, fma, select, expm1, log1p, tanh, erf, \
             floor, ceil, round, trunc, sign, is_nan, is_inf, rsqrt, sigmoid, silu, softplus, gelu, gelu_tanh and the \
             dtypes",
            "1 + sin(x0)",
            "    ^",
        ],
        ["`min` is a function of 2 operands; here are 3", "min(x0, x1, 2)", "^"],
        ["`sqrt` is a function of 1 operand; here are 0", "sqrt()", "^"],
        ["`f32` is a conversion of 1 operand; here are 2", "f32(x0, x1)", "^"],
    ]);
}

#[test]
fn what_does_not_type() {
    refuses(&[
        ["unknown name `z1`; the names here are x0, x1, d64, h, b16, i, i8_, u, t", "x0 * z1", "     ^"],
        ["`x0` is f32 and `d64` is f64; convert, as in `f64(x0)`", "x0 + d64", "   ^"],
        ["`i` is i32 and `x0 * x1` is f32; convert, as in `f32(i)`", "min(i, x0*x1)", "^"],
        ["`x0` is f32 and `h` is f16; convert, as in `f32(h)`", "x0 * h", "   ^"],
        ["`h` is f16 and `b16` is bf16; convert, as in `f32(h)` and `f32(b16)`", "h * b16", "  ^"],
        ["`x0` is f32 and `x0 > 1` is bool; convert, as in `f32(x0 > 1)`", "x0 * (x0 > 1)", "   ^"],
        ["`i` is i32 and `x0` is f32; convert, as in `f32(i)`", "select(t, i, x0)", "^"],
        ["`x0` is f32 and `i` is i32; convert, as in `f32(i)`", "fma(x0, 2, i)", "^"],
        [
            "the operand is f32 and `i` is i32; convert, as in `f32(i)`",
            "x0 * x0 + x1 * x1 + x0 * x1 * 2.5 < i",
            "                                  ^",
        ],
        ["`*` has no form for f16; convert, as in `f32(h)`", "h * h", "  ^"],
        ["`-` has no form for bf16; convert, as in `f32(b16)`", "1 + -b16", "    ^"],
        ["`>` has no form for f16; convert, as in `f32(h)`", "h > 0", "  ^"],
        ["`sqrt` takes f32 and f64, not i32; convert, as in `f32(i)`", "sqrt(i)", "^"],
        ["`fma` takes f32 and f64, not i32; convert, as in `f32(i)`", "fma(i, 2, 3)", "^"],
        ["`erf` takes f32 and f64, not i32; convert, as in `f32(i)`", "erf(i)", "^"],
        ["`tanh` has no form for f16; convert, as in `f32(h)`", "tanh(h)", "^"],
        ["`gelu` takes f32 and f64, not bool; convert, as in `f32(t)`", "gelu(t)", "^"],
        ["`floor` takes numbers, not bool; convert, as in `f32(t)`", "floor(t)", "^"],
        ["`sign` has no form for bf16; convert, as in `f32(b16)`", "sign(b16)", "^"],
        ["`is_nan` takes floats, not i32; convert, as in `f32(i)`", "is_nan(i)", "^"],
        ["`is_inf` takes floats, not bool; convert, as in `f32(t)`", "is_inf(t)", "^"],
        ["`^` takes integers and bool, not f32; a power is `pow(a, b)`", "x0 ^ 2", "   ^"],
        ["unknown name `x9`; the names here are x0, x1, d64, h, b16, i, i8_, u, t; for `x9` give 10 inputs", "x9", "^"],
        ["`&` takes integers and bool, not f32; convert, as in `i32(x0)`", "x0 & x1", "   ^"],
        ["`~` takes integers and bool, not f64; convert, as in `i32(d64)`", "~d64", "^"],
        ["`|` has no form for f16; convert, as in `i32(h)`", "h | h", "  ^"],
        ["`<<` takes integers, not bool; convert, as in `i32(t)`", "t << t", "  ^"],
        ["`>>` takes integers, not f32; convert, as in `i32(x0)`", "x0 >> 1", "   ^"],
        ["`1.5` is no integer, and `&` takes integers", "1.5 & 3", "    ^"],
        ["`0.5` is no integer, and `~` takes integers", "~(1/2)", "^"],
        ["the amount `-1` of a shift of a number is out of range 0 to 127", "1 << -1", "  ^"],
        ["the amount `128` of a shift of a number is out of range 0 to 127", "1 >> 128", "  ^"],
        ["`1 << 127` is beyond 128 bits", "1 << 127", "  ^"],
        ["`-1` is out of range for u8: 0 to 255", "u & ~0", "    ^"],
        ["`i` is i32 and `u` is u8; convert, as in `i32(u)`", "i << u", "  ^"],
        ["`1` is a number, and bool is wanted", "t & 1", "    ^"],
        ["`+` takes numbers, not bool; convert, as in `f32(t)`", "t + t", "  ^"],
        ["`<` takes numbers, not bool; convert, as in `f32(t)`", "t < t", "  ^"],
        ["`abs` takes numbers, not bool; convert, as in `f32(t)`", "abs(t)", "^"],
        ["`and` takes bool, not f32; convert, as in `bool(x0)`", "x0 and x1", "   ^"],
        ["`not` takes bool, not i32; convert, as in `bool(i)`", "not i", "^"],
        ["`select` takes a bool first, not f32; convert, as in `bool(x0)`", "select(x0, 1, 2)", "       ^"],
        ["`1` is a number, and bool is wanted", "t and 1", "      ^"],
        ["`1` is a number, and bool is wanted", "1 or 2", "^"],
        ["`1` is a number, and bool is wanted", "select(1, x0, x1)", "       ^"],
        ["`1` is a number, and bool is wanted", "t == 1", "     ^"],
        ["`0.5` is no integer, and `i` is i32; convert, as in `f32(i)`", "i * 0.5", "    ^"],
        ["`2.0` is no integer, and `i` is i32; convert, as in `f32(i)`", "2.0 * i", "^"],
        ["`inf` is no integer, and `i` is i32; convert, as in `f32(i)`", "min(i, inf)", "       ^"],
        ["`0.5` is no integer, and `i` is i32; convert, as in `f32(i)`", "i * (1/2)", "      ^"],
        ["`0.5` is no integer, and `i` is i32; convert, as in `f32(i)`", "i * select(t, 1, 0.5)", "    ^"],
        ["`128` is out of range for i8: -128 to 127", "i8_ + 128", "      ^"],
        ["`-129` is out of range for i8: -128 to 127", "i8_ > -129", "      ^"],
        ["`-1` is out of range for u8: 0 to 255", "u * -1", "    ^"],
        ["`300` is out of range for i8: -128 to 127", "i8(300)", "   ^"],
        ["`1e39` is beyond the greatest f32", "x0 * 1e39", "     ^"],
        ["`70000` is beyond the greatest f16", "f16(70000)", "    ^"],
        ["`1e39` is beyond the greatest f32", "1e39", "^"],
        ["division by zero", "i / 0", "    ^"],
        ["division by zero", "i / (2 - 2)", "       ^"],
        ["division by zero", "i / i32(0)", "    ^"],
        ["division by zero", "i / (i32(3) - 3)", "            ^"],
        ["division by zero", "x0 * (1 / 0)", "          ^"],
        [
            "the exponent of a power of i32 is a constant of at least 0; convert, as in `f32(i)`",
            "pow(i, -1)",
            "       ^",
        ],
        [
            "the exponent of a power of i32 is a constant of at least 0; convert, as in `f32(i)`",
            "pow(i, i)",
            "       ^",
        ],
        ["`0.5` is no integer, and `i` is i32; convert, as in `f32(i)`", "pow(i, 0.5)", "       ^"],
    ]);
}

#[test]
fn errors_of_a_list_point_into_the_whole_text() {
    assert_eq!(
        Expression::list("x0, x1 +, 2").unwrap_err().to_string(),
        "expected a value, found `,`\n  x0, x1 +, 2\n          ^"
    );
    assert_eq!(Expression::list("x0,").unwrap_err().to_string(), "expected a value, found the end\n  x0,\n     ^");
    assert_eq!(Expression::list("").unwrap_err().to_string(), "expected a value, found the end\n  \n  ^");
    let list = Expression::list("x0, (x1 + z)").unwrap();
    let error = def_of(&list[1], &[("x1", DType::F32)], DType::F32).unwrap_err();
    assert_eq!(error.to_string(), "unknown name `z`; the names here are x1\n  x0, (x1 + z)\n            ^");
    assert_eq!(list[1].error_at_name("x1", "no").column, 6);
    assert_eq!(list[1].names(), [("x1".to_string(), 6), ("z".to_string(), 11)]);
}

#[test]
fn errors_of_built_expressions_point_into_their_text() {
    let expression = (name("x0") + name("z")) * 2;
    let error = def_of(&expression, &[("x0", DType::F32)], DType::F32).unwrap_err();
    assert_eq!(error.to_string(), "unknown name `z`; the names here are x0\n  (x0 + z) * 2\n        ^");
    assert_eq!(expression.error_at_name("z", "m").to_string(), "m\n  (x0 + z) * 2\n        ^");
    assert_eq!(expression.error_at_name("y", "m").to_string(), "m\n  (x0 + z) * 2\n  ^");
    // What was read and then built upon points into the new text.
    let built = "x0   +   z".parse::<Expression>().unwrap() * 2;
    let error = def_of(&built, &[("x0", DType::F32)], DType::F32).unwrap_err();
    assert_eq!(error.text, "(x0 + z) * 2");
    let error = def_of(&name("x0"), &[], DType::F32).unwrap_err();
    assert_eq!(error.to_string(), "unknown name `x0`; there are no names here\n  x0\n  ^");
}

#[test]
fn what_only_a_builder_can_ask_for_is_refused() {
    let build = |expression: Expression| def_of(&expression, &[("x", DType::F32)], DType::F32).unwrap_err();
    let error = build(1 + name("2x"));
    assert_eq!(error.message, "\"2x\" is no name: letters, digits and underscores");
    assert_eq!((error.text.get(4..5), error.column), (Some("<"), 5));
    assert_eq!(build(name("min")).message, "min has a meaning of its own and cannot be a name");
    let deep = (0..1_000_000).fold(name("x"), |sum, _| sum + 1);
    assert_eq!(build(deep).message, format!("the expression nests more than {MAX_DEPTH} deep"));
    let wide = |doublings: usize| (0..doublings).fold(name("x"), |sum, _| sum.clone() * sum);
    assert!(build(wide(12)).message.ends_with("bytes, and the limit is 10000"), "{}", build(wide(12)));
    assert_eq!(build(wide(13)).message, format!("the expression has more than {MAX_TEXT} nodes"));
    let long = name("x".repeat(MAX_TEXT + 1));
    assert_eq!(build(long.clone()).message, "the text has 10001 bytes, and the limit is 10000");
    assert_eq!(long.names()[0].1, 1);
}

#[test]
fn limits_are_held_without_a_crash() {
    let sum = |n: usize| vec!["x0"; n].join("+");
    assert!(def_of(&sum(MAX_DEPTH + 1).parse().unwrap(), &NAMES, DType::F32).is_ok());
    let message = format!("the expression nests more than {MAX_DEPTH} deep");
    let refused = |text: String| text.parse::<Expression>().unwrap_err();
    assert_eq!((refused(sum(MAX_DEPTH + 2)).message, refused(sum(MAX_DEPTH + 2)).column), (message.clone(), 303));
    assert!(format!("{}x0{}", "(".repeat(MAX_DEPTH), ")".repeat(MAX_DEPTH)).parse::<Expression>().is_ok());
    for prefix in ["(", "-", "~", "not ", "gelu(", "sqrt(", "t or not t == -x0*(", "min(1, "] {
        assert_eq!(refused(prefix.repeat(9_000 / prefix.len())).message, message, "{prefix}");
    }
    let long = refused(" ".repeat(MAX_TEXT + 1));
    assert_eq!(long.message, "the text has 10001 bytes, and the limit is 10000");
    assert_eq!(
        refused("9".repeat(MAX_TEXT)).message.len(),
        "`` is beyond the greatest f64; infinity is `inf`".len() + 40
    );
}

#[test]
fn long_texts_are_shown_around_the_place() {
    let text = format!("{} + ? + {}", vec!["x0"; 30].join(" + "), vec!["x1"; 30].join(" + "));
    let shown = text.parse::<Expression>().unwrap_err().to_string();
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[1].starts_with("  ...") && lines[1].ends_with("..."), "{shown}");
    assert!(lines[1].len() < 140, "{shown}");
    assert_eq!(lines[1].chars().nth(lines[2].len() - 1), Some('?'), "{shown}");
    assert_eq!(error("x0 +\n\t? x1").lines().nth(1), Some("  x0 +  ? x1"));
}
