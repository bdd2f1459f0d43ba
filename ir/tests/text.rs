//! The text form: what is printed reads back, and what is no nest is refused with its place.

mod random;

use cranefold_ir::*;
use proptest::prelude::*;

/// A nest with every kind of statement, in the form it prints in.
const EVERYTHING: &str = r#"nest "everything \"quoted\" \\ \n \u{7}" {
  in x0: f32[400000]
  out x1: f32[4]
  in x2: f16[8]
  out x3: i32[4]
  def exp_shift(v0: f32, v1: f32) -> f32 {
    let v2 = sub(v0, v1)
    select(lt(v2, -0.0:f32), v2, nan:f32)
  }
  def merge(v0: f32, v1: f32, v2: f32, v3: f32) -> f32, f32 {
    max(v0, v2), add(v1, v3)
  }
  def three.1() -> i32 {
    3:i32
  }
  for i0 in 0..4 parallel {
    acc a0: f32[1600] = -0.0
    acc a1: f32[1600] = -inf
    for b0 in 0..25 parallel {
      for k0 in 0..64 seq {
        for l0 in 0..64 lanes { a0[64*b0 + l0] = add(a0[64*b0 + l0], x0[4096*b0 + 62*k0 + l0 + 1]) }
      }
      for l0 in 0..64 lanes {
        let v4 = bits_u32(a0[64*b0 + l0])
        let v5 = select(eq(v4, 4294967295:u32), true:bool, false:bool)
        a1[64*b0 - l0 + 63] = exp_shift(f32(x2[3]), select(v5, bits(0x7fc00001):f32, 1e-45:f32))
      }
    }
    for b1 in 0..25 seq {
      carry q0 = b1 + 1
      for q1 in 0..q0 seq {
        call v6 = exp_shift(a0[q0 - q1 - 1], 3.4028235e38:f32)
        for e0 in 0..0 seq {}
        for e0 in 0..2 seq {
          a0[-e0 + 1] = v6
        }
      }
    }
    call v0, v1 = merge(a0[0], a1[0], f32(bits(0x7e01):f16), 1.5:f32)
    merge a0, a1 by merge over 25 of 64
    fold a0, a1 by merge over 49 of 64 by 2
    acc a2: bf16[1000] = 0.0
    select v7, v8, v9 = nth 499, 500, 999 of a2 over 1000
    select v10, v11 = mode of a2 over 1000
    wide {
      for e1 in 0..3 lanes { a0[e1] = a1[e1] }
    }
    wide {}
    x1[i0] = v0
    x3[i0] = div(three.1(), -7:i32)
  }
}"#;

fn error(text: &str) -> String {
    text.parse::<Nest>().expect_err("should not parse").to_string()
}

#[test]
fn a_nest_with_everything_prints_as_it_is_written() {
    let nest: Nest = EVERYTHING.parse().unwrap();
    assert_eq!(nest.to_string(), EVERYTHING);
    assert_eq!(nest.to_string().parse(), Ok(nest.clone()));
    verify(&nest).unwrap();
    assert_eq!(nest.name, "everything \"quoted\" \\ \n \u{7}");
}

#[test]
fn white_space_and_comments_only_separate() {
    let nest: Nest = EVERYTHING.parse().unwrap();
    let header_end = EVERYTHING.find('{').unwrap();
    let header_end = header_end + EVERYTHING[header_end..].find(" {\n").unwrap() + 2;
    let (head, rest) = EVERYTHING.split_at(header_end);
    let one_line = format!("{head}{}", rest.replace('\n', " "));
    assert_eq!(one_line.parse(), Ok(nest.clone()));
    let commented = format!("# first\n{}\n# last", rest_commented(head, rest));
    assert_eq!(commented.parse(), Ok(nest));
}

fn rest_commented(head: &str, rest: &str) -> String {
    format!("{head}{}", rest.replace('\n', "#}{\"\n\r\t"))
}

#[test]
fn statements_expressions_definitions_and_indices_print_alone() {
    let nest: Nest = EVERYTHING.parse().unwrap();
    let Stmt::For(outer) = &nest.body[0] else { panic!("a loop") };
    assert_eq!(nest.show_head(&nest.body[0]).to_string(), "for i0 in 0..4 parallel");
    let wide_function = Stmt::Wide { body: vec![] };
    assert_eq!(
        [nest.show_head(&wide_function).to_string(), nest.show(&wide_function).to_string()],
        ["wide", "wide {}"]
    );
    assert_eq!(nest.show(&outer.body[0]).to_string(), "acc a0: f32[1600] = -0.0");
    let Stmt::For(blocks) = &outer.body[2] else { panic!("a loop") };
    let steps = "for k0 in 0..64 seq {\n  for l0 in 0..64 lanes { a0[64*b0 + l0] = \
                 add(a0[64*b0 + l0], x0[4096*b0 + 62*k0 + l0 + 1]) }\n}";
    assert_eq!(nest.show(&blocks.body[0]).to_string(), steps);
    assert_eq!(nest.defs[2].to_string(), "def three.1() -> i32 {\n  3:i32\n}");
    assert_eq!(nest.show_expr(&nest.defs[1].results[1]).to_string(), "add(v1, v3)");
    assert_eq!(nest.show_buffer(1).to_string(), "out x1: f32[4]");
}

#[test]
fn indices_print_in_the_order_of_the_variables() {
    let var = |over, id| LoopVar { over, id };
    let (i, l) = (var(Over::Output, 0), var(Over::Lane, 2));
    let print = |index: Index| index.to_string();
    assert_eq!(print(Index::default()), "0");
    assert_eq!(print(Index::constant(-5)), "-5");
    assert_eq!(print(Index::term(l, -1)), "-l2");
    assert_eq!(print(Index::term(l, -3).plus(i, 1).offset_by(-7)), "i0 - 3*l2 - 7");
    assert_eq!(print(Index::term(i, i64::MIN).offset_by(i64::MIN)), "-9223372036854775808*i0 - 9223372036854775808");
}

#[test]
fn indices_are_sums() {
    let nest: Nest = "nest \"\" { out x0: u8[9] x0[3 + 2*i0 - i0 + 4 - 0*k1 - i0 - 7] = 1:u8 }".parse().unwrap();
    let Stmt::Store { index, .. } = &nest.body[0] else { panic!("a store") };
    assert_eq!(*index, Index::constant(0));
}

#[test]
fn a_nest_that_does_not_verify_prints_too() {
    let call = Expr::Call(DefId(7), DType::F32, vec![]);
    let body = vec![Stmt::Store { buf: BufId(3), index: Index::default(), value: call }];
    let nest = Nest { name: String::new(), buffers: vec![], defs: vec![], body };
    assert_eq!(nest.to_string(), "nest \"\" {\n  x3[0] = ?d7()\n}");
}

#[test]
fn syntax_errors_have_a_place() {
    let cases = [
        ("", "line 1, column 1: expected `nest`, found the end"),
        ("nest x {}", "line 1, column 6: expected the name in quotes, found `x`"),
        ("nest \"x", "line 1, column 6: the quoted text does not end on its line"),
        ("nest \"\\q\" {}", "line 1, column 7: unknown escape; there are `\\\"`, `\\\\`, `\\n` and `\\u{hex}`"),
        ("nest \"é\" {}\n  $", "line 2, column 3: unexpected character '$'"),
        ("nest \"é\" ü", "line 1, column 10: unexpected character 'ü'"),
        ("nest \"\" {} nest", "line 1, column 12: expected the end, found `nest`"),
        ("nest \"\" {", "line 1, column 10: expected a statement, found the end"),
        ("nest \"\" {\n in x1: f32[4]\n}", "line 2, column 5: expected `x0`, found `x1`"),
        ("nest \"\" { in x0: f33[4] }", "line 1, column 18: expected a dtype, found `f33`"),
        ("nest \"\" { in x0: f32[-4] }", "line 1, column 22: expected a count, found `-`"),
        (
            "nest \"\" { in x0: f32[18446744073709551616] }",
            "line 1, column 22: expected a count below 2^64, found `18446744073709551616`",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(error(text), message);
    }
}

#[test]
fn errors_in_statements_have_a_place() {
    let cases = [
        ("for i0 in 1..4 seq {}", "11: expected `0`, found `1`"),
        ("for i0 in 0..4 {}", "16: expected `parallel`, `seq` or `lanes`, found `{`"),
        ("for y0 in 0..4 seq {}", "5: expected a loop variable, found `y0`"),
        ("i0 = 3", "1: expected a statement, found `i0`"),
        ("acc a0: i8[4] = 300", "17: `300` is no value of i8"),
        ("acc a0: f32[4] = -nan", "18: `-nan` is no value of f32"),
        ("acc a0: f32[4] = bits(0x1_0)", "18: `bits(0x1_0)` is no value of f32"),
        ("let v0 = v1", "10: v1 is not bound here"),
        ("for i0 in 0..4 seq { let v0 = 1:u8 } let v1 = v0", "47: v0 is not bound here"),
        ("let v0 = a0[0]", "10: a0 is not declared here"),
        ("let v0 = x9[0]", "10: there is no buffer x9"),
        ("let v0 = y9[0]", "10: `y9` is neither a buffer nor an accumulator nor a type"),
        ("let v0 = 1", "11: expected `:`, found `}`"),
        ("let v0 = sum", "10: expected an expression, found `sum`"),
        ("let v0 = sum(1:u8)", "10: no operation or definition is called `sum`"),
        ("let v0 = cast(1:u8)", "10: no operation or definition is called `cast`"),
        ("let v0 = add(1:u8, 1:u16)", "10: add does not take (u8, u16)"),
        ("let v0 = add()", "10: add does not take ()"),
        ("let v0 = f32(1.0:f32)", "10: f32 does not take (f32)"),
        ("let v0 = bits_f64(1.0:f32)", "10: bits_f64 does not take (f32)"),
        ("let v0 = two(1:u8)", "10: `two` gives 2 results; `call` binds them"),
        ("call v0 = two(1:u8)", "11: the definition gives 2 results, not 1"),
        ("call v0 = add(1:u8, 2:u8)", "11: no operation or definition is called `add`"),
        ("x0[9223372036854775808] = 1:u8", "4: the number does not fit 64 bits"),
        ("x0[9223372036854775807*i0 + i0] = 1:u8", "29: the number does not fit 64 bits"),
        ("x0[i0*3] = 1:u8", "6: expected `]`, found `*`"),
        ("carry q0 = +1", "12: expected a number or a loop variable, found `+`"),
        ("merge a0 over 3 of 4", "10: expected `by`, found `over`"),
        ("acc a0: u8[4] = 0 select v0 = least of a0 over 4", "31: expected `nth` or `mode`, found `least`"),
        ("acc a0: u8[4] = 0 select v0 = nth of a0 over 4", "35: expected a count, found `of`"),
        ("acc a0: u8[4] = 0 select v0 = nth 1, 2 of a0 over 4", "31: the selection gives 2 results, not 1"),
        ("acc a0: u8[4] = 0 select v0 = mode of a0 over 4", "31: the selection gives 2 results, not 1"),
        ("select v0 = nth 0 of a0 over 4", "22: a0 is not declared here"),
        ("wide let v0 = 1:u8", "6: expected `{`, found `let`"),
        ("wide { let v0 = 1:u8 } let v1 = v0", "33: v0 is not bound here"),
        ("wide { acc a0: u8[1] = 0 } let v1 = a0[0]", "37: a0 is not declared here"),
        ("acc a0: u8[4] = 0 select v0 = nth 0 of a0 let v1 = v1", "43: expected `over`, found `let`"),
    ];
    for (stmt, message) in cases {
        let text = format!("nest \"\" {{ out x0: u8[4] def two(v0: u8) -> u8, u8 {{ v0, v0 }}\n{stmt}}}");
        assert_eq!(error(&text), format!("line 2, column {message}"), "{stmt}");
    }
}

#[test]
fn errors_in_definitions_have_a_place() {
    let cases = [
        ("def f(v1: u8) -> u8 { v0 }", "7: expected `v0`, found `v1`"),
        ("def f(v0: u8) -> u8 { let v2 = v0 v2 }", "27: expected `v1`, found `v2`"),
        ("def f(v0: u8) -> u8 { v0, v0 }", "25: expected `}`, found `,`"),
        ("def f(v0: u8) -> u8, u8 { v0 }", "30: expected `,`, found `}`"),
        ("def f(v0: u8) -> u16 { v0 }", "24: the result is u8, not u16 as declared"),
        ("def f(v0: u8) -> u8 { f(v0) }", "23: no operation or definition is called `f`"),
    ];
    for (def, message) in cases {
        assert_eq!(error(&format!("nest \"\" {{\n{def}}}")), format!("line 2, column {message}"), "{def}");
    }
}

#[test]
fn depth_is_limited() {
    let loops = |n: usize| {
        let open: String = (0..n).map(|i| format!("for k{i} in 0..1 seq {{ ")).collect();
        format!("nest \"\" {{ {open} {} }}", "}".repeat(n))
    };
    let exprs = |n: usize| format!("nest \"\" {{ let v0 = {}1:u8{} }}", "neg(".repeat(n - 1), ")".repeat(n - 1));
    for text in [loops(MAX_DEPTH), exprs(MAX_DEPTH)] {
        verify(&text.parse().unwrap()).unwrap();
    }
    assert!(error(&loops(MAX_DEPTH + 1)).ends_with("loops nest more than 200 deep"));
    assert!(error(&exprs(MAX_DEPTH + 1)).ends_with("expressions nest more than 200 deep"));
    assert!(error(&exprs(1_000_000)).ends_with("expressions nest more than 200 deep"));
}

/// Pieces of the grammar, so that random text gets past the first token.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "nest",
        "\"",
        "\\u{",
        "{",
        "}",
        "in",
        "out",
        "def",
        "for",
        "acc",
        "let",
        "call",
        "carry",
        "merge",
        "fold",
        "select",
        "nth",
        "mode",
        "by",
        "over",
        "of",
        "seq",
        "lanes",
        "0",
        "..",
        "0..4",
        "x0",
        "a0",
        "v0",
        "i0",
        "q0",
        "f32",
        "bits",
        "bits(",
        "0x7f",
        "nan",
        "-",
        "*",
        "+",
        "[",
        "]",
        "(",
        ")",
        ":",
        ",",
        "=",
        "->",
        "1e",
        "1e-",
        "#",
        "\n",
        "é",
        "add",
        "99999999999999999999",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|p| format!("nest \"\" {{ in x0: f32[4] {}", p.join(" ")))
}

/// That text of any kind is refused or read, and what is read prints as text that reads the same.
fn survives(text: &str) {
    if let Ok(nest) = text.parse::<Nest>() {
        let _ = verify(&nest);
        assert_eq!(nest.to_string().parse(), Ok(nest));
    }
}

proptest! {
    #[test]
    fn random_nests_read_back(nest in random::nest()) {
        let text = nest.to_string();
        let read = text.parse::<Nest>();
        prop_assert_eq!(read.as_ref(), Ok(&nest), "{}", text);
        let _ = verify(&nest);
    }

    #[test]
    fn arbitrary_text_does_not_panic(text in any::<String>()) {
        survives(&text);
        survives(&format!("nest \"{text}\" {{ {text} }}"));
    }

    #[test]
    fn arbitrary_tokens_do_not_panic(text in pieces()) {
        survives(&text);
    }

    #[test]
    fn damaged_nests_do_not_panic(at in 0..EVERYTHING.len(), len in 0..12usize, from in 0..EVERYTHING.len()) {
        let end = (at + len).min(EVERYTHING.len());
        let other = &EVERYTHING[from..(from + len).min(EVERYTHING.len())];
        survives(&format!("{}{other}{}", &EVERYTHING[..at], &EVERYTHING[end..]));
        survives(&EVERYTHING[..at]);
    }
}
