//! The verifier: for each rule a nest that breaks it and nothing else.

use cranefold_ir::*;

/// Declarations and definitions for the statements of the cases.
const HEAD: &str = "nest \"\" {
  in x0: f32[64]
  out x1: f32[64]
  out x2: i32[64]
  in x3: i32[64]
  def one(v0: f32) -> f32 { neg(v0) }
  def two(v0: f32) -> f32, f32 { v0, v0 }
  def join(v0: f32, v1: f32) -> f32 { add(v0, v1) }
  def join2(v0: f32, v1: i32, v2: f32, v3: i32) -> f32, i32 { add(v0, v2), add(v1, v3) }
";

fn nest(stmts: &str) -> Nest {
    format!("{HEAD}{stmts}}}").parse().unwrap_or_else(|e| panic!("{stmts}: {e}"))
}

fn found(nest: &Nest) -> Vec<String> {
    verify(nest).err().map_or(vec![], |v| v.0.iter().map(Violation::to_string).collect())
}

/// Each case: statements, the message, the statement it names.
#[track_caller]
fn breaks(cases: &[(&str, &str, &str)]) {
    for (stmts, message, statement) in cases {
        assert_eq!(found(&nest(stmts)), [format!("{message}, in `{statement}`")], "{stmts}");
    }
}

#[track_caller]
fn holds(cases: &[&str]) {
    for stmts in cases {
        assert!(found(&nest(stmts)).is_empty(), "{stmts}: {:?}", found(&nest(stmts)));
    }
}

/// A nest of these statements, which need not be well typed.
fn raw(body: Vec<Stmt>) -> Nest {
    Nest { body, ..nest("") }
}

fn store(value: Expr) -> Stmt {
    Stmt::Store { buf: BufId(1), index: Index::default(), value }
}

#[test]
fn buffers_and_accumulators_have_types_of_memory_and_of_operations() {
    let bool_buffer: Nest = "nest \"\" { out x0: bool[1] }".parse().unwrap();
    assert_eq!(found(&bool_buffer), ["a buffer is not of type bool, which is u8 in memory, in `out x0: bool[1]`"]);
    breaks(&[(
        "acc a0: bool[1] = true",
        "an accumulator is not of type bool, which is u8 in memory",
        "acc a0: bool[1] = true",
    )]);
    holds(&["acc a0: f16[1] = 0 acc a1: bf16[1] = 0 let v0 = f32(a0[0])"]);
    let acc = Stmt::Acc { acc: AccId(0), dtype: DType::F32, len: 1, init: Scalar::f64(0.0) };
    assert_eq!(found(&raw(vec![acc])), ["the initial value is f64, not f32, in `acc a0: f32[1] = 0.0`"]);
}

#[test]
fn expressions_have_the_types_of_what_they_name() {
    let one = || Expr::Const(Scalar::f32(1.0));
    let cases = [
        (Expr::Var(Var(7), DType::F32), "v7 is not bound here, in `x1[0] = v7`"),
        (Expr::Load(BufId(9), DType::F32, Index::default()), "there is no buffer x9, in `x1[0] = x9[0]`"),
        (Expr::Load(BufId(3), DType::F32, Index::default()), "x3 is i32, and is used as f32, in `x1[0] = x3[0]`"),
        (Expr::Read(AccId(0), DType::F32, Index::default()), "a0 is not declared here, in `x1[0] = a0[0]`"),
        (Expr::Call(DefId(9), DType::F32, vec![]), "there is no definition d9, in `x1[0] = ?d9()`"),
        (Expr::Call(DefId(0), DType::F32, vec![]), "one takes 1 arguments, not 0, in `x1[0] = one()`"),
        (
            Expr::Call(DefId(1), DType::F32, vec![one()]),
            "two gives 2 results, and an expression takes one, in `x1[0] = two(1.0:f32)`",
        ),
        (
            Expr::Op(Op::Add, DType::F32, vec![one(), Scalar::f64(1.0).into()]),
            "add does not take (f32, f64) to f32, in `x1[0] = add(1.0:f32, 1.0:f64)`",
        ),
        (
            Expr::Op(Op::Neg, DType::F32, vec![one(), one()]),
            "neg does not take (f32, f32) to f32, in `x1[0] = neg(1.0:f32, 1.0:f32)`",
        ),
    ];
    for (expr, message) in cases {
        assert_eq!(found(&raw(vec![store(expr)])), [message]);
    }
    let v0 = Stmt::Let { var: Var(0), value: Scalar::f64(1.0).into() };
    let used = store(Expr::Var(Var(0), DType::F32));
    assert_eq!(found(&raw(vec![v0, used])), ["v0 is f64, and is used as f32, in `x1[0] = v0`"]);
    let call = store(Expr::Call(DefId(0), DType::F64, vec![one()]).cast(DType::F32));
    assert_eq!(found(&raw(vec![call])), ["one is f32, and is used as f64, in `x1[0] = f32(one(1.0:f32))`"]);
    let a0 = Stmt::Acc { acc: AccId(0), dtype: DType::F64, len: 1, init: Scalar::f64(0.0) };
    let read = store(Expr::Read(AccId(0), DType::F32, Index::default()));
    assert_eq!(found(&raw(vec![a0, read])), ["a0 is f64, and is used as f32, in `x1[0] = a0[0]`"]);
}

#[test]
fn the_value_of_an_index_fits_its_type() {
    let message = "the value of index 100*i0 may not fit i8";
    breaks(&[
        ("for i0 in 0..3 seq { let v0 = i8[100*i0] }", message, "let v0 = i8[100*i0]"),
        ("let v0 = f32[1]", "the value of an index is no f32", "let v0 = f32[1]"),
        ("let v0 = i32[i0]", "i0 is not bound here", "let v0 = i32[i0]"),
    ]);
    holds(&["for i0 in 0..3 seq { let v0 = i8[63*i0 + 1] }", "for i0 in 0..3 seq { let v0 = u64[100*i0] }"]);
}

#[test]
fn calls_pass_what_the_definition_takes() {
    breaks(&[
        ("call v0 = one(1:i32)", "argument 0 of one is i32, not f32", "call v0 = one(1:i32)"),
        ("call v0, v1 = two()", "two takes 1 arguments, not 0", "call v0, v1 = two()"),
        ("let v0 = one(1:i32)", "argument 0 of one is i32, not f32", "let v0 = one(1:i32)"),
    ]);
    let call = |def| Stmt::Call { vars: vec![Var(0)], def: DefId(def), args: vec![Scalar::f32(0.0).into()] };
    assert_eq!(found(&raw(vec![call(1)])), ["two gives 2 results, not 1, in `call v0 = two(0.0:f32)`"]);
    assert_eq!(found(&raw(vec![call(8)])), ["there is no definition d8, in `call v0 = ?d8(0.0:f32)`"]);
}

#[test]
fn definitions_keep_their_rules() {
    let with = |name: &str, lets: Vec<Expr>, results: Vec<Expr>| {
        let def = Def { name: name.into(), params: vec![DType::F32], lets, results };
        found(&Nest { name: String::new(), buffers: vec![], defs: vec![def], body: vec![] })
    };
    let v = |i| Expr::Var(Var(i), DType::F32);
    for name in ["", "A", "1a", "a.", ".a", "a..b", "a b", "é"] {
        let message = "the name is no word of lower-case letters, digits and underscores with dots inside";
        assert_eq!(with(name, vec![], vec![v(0)]), [format!("{message}, in `def {name}`")]);
    }
    for name in ["add", "f32", "bits_u8", "bits_", "cast", "bits"] {
        let message = "the name is that of an operation or a dtype";
        assert_eq!(with(name, vec![], vec![v(0)]), [format!("{message}, in `def {name}`")]);
    }
    assert!(with("bits_x.f32.0", vec![v(0)], vec![v(1), v(0)]).is_empty());
    assert_eq!(with("f", vec![], vec![]), ["a definition has at least one result, in `def f`"]);
    assert_eq!(with("f", vec![v(1)], vec![v(0)]), ["v1 is not bound here, in `def f: let v1 = v1`"]);
    assert_eq!(with("f", vec![], vec![v(2)]), ["v2 is not bound here, in `def f: v2`"]);
    let twice: Nest = "nest \"\" { def f() -> u8 { 1:u8 } def f() -> u8 { 2:u8 } }".parse().unwrap();
    assert_eq!(found(&twice), ["another definition has this name, in `def f`"]);
    let message = "a definition uses only its parameters and values bound before, and calls no other";
    assert_eq!(
        with("f", vec![], vec![Expr::Call(DefId(0), DType::F32, vec![v(0)])]),
        [format!("{message}, in `def f: f(v0)`")]
    );
    let load: Nest = "nest \"\" { in x0: u8[1] def f() -> u8 { x0[0] } }".parse().unwrap();
    assert_eq!(found(&load), [format!("{message}, in `def f: x0[0]`")]);
}

#[test]
fn values_and_accumulators_have_one_place_and_a_scope() {
    breaks(&[
        ("let v0 = 1:u8 let v0 = 2:u8", "v0 is bound a second time", "let v0 = 2:u8"),
        ("call v0, v0 = two(0.0:f32)", "v0 is bound a second time", "call v0, v0 = two(0.0:f32)"),
        (
            "for i0 in 0..2 seq { let v0 = 1:u8 } for i0 in 0..2 seq { let v0 = 1:u8 }",
            "v0 is bound a second time",
            "let v0 = 1:u8",
        ),
        ("acc a0: u8[1] = 0 acc a0: u8[1] = 1", "a0 is declared a second time", "acc a0: u8[1] = 1"),
        ("a0[0] = 1:u8", "a0 is not declared here", "a0[0] = 1:u8"),
        ("for i0 in 0..2 seq { acc a0: u8[1] = 0 } a0[0] = 1:u8", "a0 is not declared here", "a0[0] = 1:u8"),
    ]);
    let bind = Stmt::Let { var: Var(0), value: Scalar::f32(1.0).into() };
    let var = LoopVar { over: Over::Step, id: 0 };
    let inner = Stmt::For(Loop::new(var, 2, LoopKind::Seq, vec![bind]));
    let after = store(Expr::Var(Var(0), DType::F32));
    assert_eq!(found(&raw(vec![inner, after])), ["v0 is not bound here, in `x1[0] = v0`"]);
}

#[test]
fn loop_variables_have_a_scope() {
    breaks(&[
        ("for i0 in 0..2 seq { for i0 in 0..2 seq {} }", "i0 is bound already", "for i0 in 0..2 seq"),
        ("for q0 in 0..2 seq { carry q0 = 0 }", "q0 is bound already", "carry q0 = 0"),
        ("for i0 in 0..2 seq {} x1[i0] = 0.0:f32", "i0 is not bound here", "x1[i0] = 0.0:f32"),
        ("x1[0] = x0[k1]", "k1 is not bound here", "x1[0] = x0[k1]"),
        ("carry q0 = b0", "b0 is not bound here", "carry q0 = b0"),
        ("for k0 in 0..q0 seq {}", "the extent q0 is not bound by carry here", "for k0 in 0..q0 seq"),
        (
            "pick s0 = 1:i32 to 3 for k0 in 0..s0 seq {}",
            "the extent s0 is not bound by carry here",
            "for k0 in 0..s0 seq",
        ),
        ("pick s0 = 1:i32 to 3 pick s0 = 1:i32 to 3", "s0 is bound already", "pick s0 = 1:i32 to 3"),
        (
            "for q0 in 0..2 seq { for k0 in 0..q0 seq {} }",
            "the extent q0 is not bound by carry here",
            "for k0 in 0..q0 seq",
        ),
        (
            "for b0 in 0..2 seq { carry q0 = b0 } for k0 in 0..q0 seq {}",
            "the extent q0 is not bound by carry here",
            "for k0 in 0..q0 seq",
        ),
    ]);
    holds(&["for i0 in 0..2 seq { x1[i0] = 0.0:f32 } for i0 in 0..3 seq { x1[i0] = 0.0:f32 }"]);
}

#[test]
fn depth_is_limited() {
    let var = |id| LoopVar { over: Over::Step, id };
    let loops = |n| (0..n).fold(vec![], |body, id| vec![Stmt::For(Loop::new(var(id), 1, LoopKind::Seq, body))]);
    let exprs = |n| vec![store((1..n).fold(Scalar::f32(0.0).into(), |e, _| Expr::neg(e)))];
    let n = MAX_DEPTH as u32;
    assert!(found(&raw(loops(n))).is_empty() && found(&raw(exprs(n))).is_empty());
    assert_eq!(found(&raw(loops(n + 1))), ["loops nest more than 200 deep, in `for k0 in 0..1 seq`"]);
    let wide_function = |n| vec![Stmt::Wide { body: loops(n) }];
    assert!(found(&raw(wide_function(n - 1))).is_empty());
    assert_eq!(found(&raw(wide_function(n))), ["loops nest more than 200 deep, in `for k0 in 0..1 seq`"]);
    let [violation] = &found(&raw(exprs(n + 1)))[..] else { panic!("one violation") };
    assert!(violation.starts_with("expressions nest more than 200 deep, in `x1[0] = neg(neg("));
}

#[test]
fn memory_is_used_by_role_and_type() {
    breaks(&[
        ("let v0 = x1[0]", "x1 is an output and is not read", "let v0 = x1[0]"),
        ("x0[0] = 0.0:f32", "x0 is an input and is not written", "x0[0] = 0.0:f32"),
        ("x9[0] = 0.0:f32", "there is no buffer x9", "x9[0] = 0.0:f32"),
        ("x1[0] = 0:i32", "x1 is f32, and i32 is written to it", "x1[0] = 0:i32"),
        ("acc a0: i32[1] = 0 a0[0] = 0.0:f32", "a0 is i32, and f32 is written to it", "a0[0] = 0.0:f32"),
    ]);
}

#[test]
fn indices_stay_inside() {
    breaks(&[
        ("let v0 = x0[64]", "index 64 may be 64, and x0 has 64 elements", "let v0 = x0[64]"),
        ("x1[-1] = 0.0:f32", "index -1 may be -1, and x1 has 64 elements", "x1[-1] = 0.0:f32"),
        ("acc a0: u8[0] = 0 a0[0] = 1:u8", "index 0 may be 0, and a0 has 0 elements", "a0[0] = 1:u8"),
        ("acc a0: u8[2] = 0 let v0 = a0[2]", "index 2 may be 2, and a0 has 2 elements", "let v0 = a0[2]"),
        (
            "for i0 in 0..9 seq { for k0 in 0..8 seq { let v0 = x0[8*i0 - k0] } }",
            "index 8*i0 - k0 may be -7 to 64, and x0 has 64 elements",
            "let v0 = x0[8*i0 - k0]",
        ),
        (
            "for i0 in 0..18446744073709551615 seq { for k0 in 0..18446744073709551615 seq { \
             let v0 = x0[9223372036854775807*i0 + 9223372036854775807*k0] } }",
            "index 9223372036854775807*i0 + 9223372036854775807*k0 may overflow",
            "let v0 = x0[9223372036854775807*i0 + 9223372036854775807*k0]",
        ),
    ]);
    holds(&[
        "for i0 in 0..8 seq { for k0 in 0..8 seq { let v0 = x0[8*i0 - k0 + 7] } }",
        "for i0 in 0..0 seq { let v0 = x0[99] x1[i0 - 7] = v0 carry q0 = -1 }",
    ]);
}

#[test]
fn carries_are_bounded_by_the_bits_of_their_index() {
    let within = |blocks: u64, index: &str| {
        let text = format!(
            "acc a0: u8[8] = 0 for b0 in 0..{blocks} seq {{ carry q0 = b0 for q1 in 0..q0 seq {{ a0[{index}] = 1:u8 }} }}"
        );
        found(&nest(&text))
    };
    // Of the indices up to 254 the greatest carry is 7 (of 127), of 255 it is 8.
    assert!(within(255, "q0").is_empty());
    assert_eq!(within(256, "q0"), ["index q0 may be 1 to 8, and a0 has 8 elements, in `a0[q0] = 1:u8`"]);
    assert!(within(256, "q1").is_empty());
    assert_eq!(within(512, "q1"), ["index q1 may be 0 to 8, and a0 has 8 elements, in `a0[q1] = 1:u8`"]);
    // The loop's variable and its extent go together, and in the loop the extent is positive.
    assert!(within(256, "q0 - q1 - 1").is_empty());
    assert!(within(256, "q0 - 1").is_empty());
    assert_eq!(within(256, "q0 - q1"), ["index q0 - q1 may be 1 to 8, and a0 has 8 elements, in `a0[q0 - q1] = 1:u8`"]);
    // With one block nothing is carried, and the loop over it does nothing.
    assert!(within(1, "q0 + 99").is_empty());
    breaks(&[
        (
            "for b0 in 0..4 seq { carry q0 = b0 - 1 }",
            "index b0 - 1 may be -1, and carry takes none below 0",
            "carry q0 = b0 - 1",
        ),
        (
            "for b0 in 0..2 seq { carry q0 = b0 for q1 in 0..q0 seq {} x1[q0 - 1] = 0.0:f32 }",
            "index q0 - 1 may be -1 to 0, and x1 has 64 elements",
            "x1[q0 - 1] = 0.0:f32",
        ),
    ]);
}

#[test]
fn places_in_lines_are_bounded() {
    breaks(&[
        ("misalign s0 = x0[0] in 12", "a line of 12 lanes is no power of two up to 64", "misalign s0 = x0[0] in 12"),
        ("misalign s0 = x9[0] in 16", "there is no buffer x9", "misalign s0 = x9[0] in 16"),
        ("misalign s0 = x0[64] in 16", "index 64 may be 64, and x0 has 64 elements", "misalign s0 = x0[64] in 16"),
        (
            "misalign s0 = x0[0] in 16 for l1 in s0..8 lanes { x1[l1] = 0.0:f32 }",
            "the extent s0 is not bound by misalign in 8 here",
            "for l1 in s0..8 lanes",
        ),
        (
            "misalign s0 = x0[0] in 16 for k1 in 0..s0 of 16 seq {}",
            "only a lanes loop leaves lanes out",
            "for k1 in 0..s0 of 16 seq",
        ),
        (
            "misalign s0 = x0[0] in 16 for l1 in 0..16 lanes { x1[l1] = x0[l1 - s0] }",
            "index l1 - s0 may be -15 to 15, and x0 has 64 elements",
            "x1[l1] = x0[l1 - s0]",
        ),
        (
            "misalign s0 = x0[0] in 16 acc a0: f32[16] = 0.0 rotate a0[1..17] by s0",
            "a0 has 16 elements, and 16 from 1 on are rotated",
            "rotate a0[1..17] by s0",
        ),
        (
            "misalign s0 = x0[0] in 16 acc a0: f32[16] = 0.0 rotate a0[4..4] by s0",
            "there is no element to rotate",
            "rotate a0[4..4] by s0",
        ),
        ("acc a0: f32[16] = 0.0 rotate a0[0..16] by s0", "s0 is not bound here", "rotate a0[0..16] by s0"),
        (
            "acc a0: f32[16] = 0.0 pick s0 = 9:i32 to 3 rotate a0[0..16] by s0",
            "s0 is not bound by misalign here",
            "rotate a0[0..16] by s0",
        ),
        (
            "acc a0: f32[16] = 0.0 for k0 in 0..3 seq { rotate a0[0..16] by k0 }",
            "k0 is not bound by misalign here",
            "rotate a0[0..16] by k0",
        ),
        (
            "acc a0: f32[16] = 0.0 for b0 in 0..3 seq { carry q0 = b0 rotate a0[0..16] by q0 }",
            "q0 is not bound by misalign here",
            "rotate a0[0..16] by q0",
        ),
        (
            "acc a0: f32[16] = 0.0 misalign s0 = x0[0] in 16 for i1 in 0..2 parallel { rotate a0[0..16] by s0 }",
            "iterations of i1 write the same elements of a0",
            "rotate a0[0..16] by s0",
        ),
        ("prefetch x9[0]", "there is no buffer x9", "prefetch x9[0]"),
        ("prefetch far x9[0]", "there is no buffer x9", "prefetch far x9[0]"),
    ]);
    holds(&[
        "misalign s0 = x0[0] in 16
        for l1 in s0..16 lanes { x1[l1] = x0[l1 - s0] }
        for l1 in 0..s0 of 16 lanes { x1[l1 + 48] = x0[l1 - s0 + 64] }",
        "for i1 in 0..2 parallel { misalign s0 = x0[i1] in 16 acc a0: f32[16] = 0.0 rotate a0[0..16] by s0 }",
        "prefetch x0[100000] prefetch far x0[-9]",
    ]);
}

#[test]
fn what_is_picked_is_bounded() {
    breaks(&[
        ("pick s0 = x0[0] to 3", "what is picked is an integer, and at most 2^63 - 1", "pick s0 = x0[0] to 3"),
        (
            "pick s0 = 9:i32 to 64 x1[s0] = 0.0:f32",
            "index s0 may be 0 to 64, and x1 has 64 elements",
            "x1[s0] = 0.0:f32",
        ),
    ]);
    holds(&["pick s0 = -1:i32 to 60 for k0 in 0..4 seq { x1[k0 + s0] = x0[s0] }"]);
}

#[test]
fn lanes_loops_are_flat_or_two() {
    let message = "a lanes loop holds only let, call, sets and stores, or one lanes loop of such";
    breaks(&[
        ("for l0 in 0..4 lanes { for k0 in 0..1 seq {} }", message, "for k0 in 0..1 seq"),
        ("for l0 in 0..4 lanes { acc a0: u8[1] = 0 }", message, "acc a0: u8[1] = 0"),
        ("for l0 in 0..4 lanes { carry q0 = l0 }", message, "carry q0 = l0"),
        (
            "for l0 in 0..2 lanes { for l1 in 0..2 lanes { for l2 in 0..2 lanes { x1[4*l0 + 2*l1 + l2] = x0[l2] } } }",
            message,
            "for l2 in 0..2 lanes",
        ),
        (
            "for l0 in 0..2 lanes { for l1 in 0..2 lanes { x1[2*l0 + l1] = x0[l1] } x1[l0 + 8] = x0[l0] }",
            message,
            "for l1 in 0..2 lanes",
        ),
        (
            "acc a0: f32[4] = 0 for l0 in 0..1 lanes { merge a0 by join over 2 of 2 }",
            message,
            "merge a0 by join over 2 of 2",
        ),
        ("for l0 in 0..0 lanes {}", "a lanes loop has a constant extent of at least 1", "for l0 in 0..0 lanes"),
        (
            "carry q0 = 3 for l0 in 0..q0 lanes {}",
            "a lanes loop has a constant extent of at least 1",
            "for l0 in 0..q0 lanes",
        ),
    ]);
    let select = nest("for l0 in 0..1 lanes { acc a0: u8[1] = 0 select v0 = nth 0 of a0 over 1 }");
    let told = ["acc a0: u8[1] = 0", "select v0 = nth 0 of a0 over 1"].map(|s| format!("{message}, in `{s}`"));
    assert_eq!(found(&select), told);
    holds(&[
        "for l0 in 0..4 lanes { call v0, v1 = two(x0[l0]) let v2 = add(v0, v1) x1[l0] = v2 }",
        "for l0 in 0..4 lanes { for l1 in 0..2 lanes { x1[2*l0 + l1] = add(x0[4*l0 + l1], x0[4*l0 + l1 + 2]) } }",
    ]);
}

#[test]
fn wide_functions_are_a_scope_of_loops_and_simple_statements() {
    let message = "nothing in a wide function merges, folds or selects";
    breaks(&[
        ("wide { wide {} }", "a wide function stands in a wide function", "wide"),
        (
            "wide { for k0 in 0..2 seq { wide { x1[0] = 0.0:f32 } } }",
            "a wide function stands in a wide function",
            "wide",
        ),
        (
            "for l0 in 0..1 lanes { wide {} }",
            "a lanes loop holds only let, call, sets and stores, or one lanes loop of such",
            "wide",
        ),
        ("acc a0: f32[4] = 0 wide { merge a0 by join over 2 of 2 }", message, "merge a0 by join over 2 of 2"),
        (
            "acc a0: f32[4] = 0 wide { for k0 in 0..2 seq { fold a0 by join over 2 of 2 by 1 } }",
            message,
            "fold a0 by join over 2 of 2 by 1",
        ),
        ("wide { acc a0: u8[1] = 0 select v0 = nth 0 of a0 over 1 }", message, "select v0 = nth 0 of a0 over 1"),
        ("wide { acc a0: u8[1] = 0 } a0[0] = 1:u8", "a0 is not declared here", "a0[0] = 1:u8"),
        ("wide { carry q0 = 1 } x1[q0] = 0.0:f32", "q0 is not bound here", "x1[q0] = 0.0:f32"),
        (
            "for i0 in 0..2 parallel { wide { x1[0] = 0.0:f32 } }",
            "iterations of i0 may write the same element of x1",
            "x1[0] = 0.0:f32",
        ),
    ]);
    let bind = Stmt::Let { var: Var(0), value: Scalar::f32(1.0).into() };
    let after = store(Expr::Var(Var(0), DType::F32));
    let scope = raw(vec![Stmt::Wide { body: vec![bind] }, after]);
    assert_eq!(found(&scope), ["v0 is not bound here, in `x1[0] = v0`"]);
    holds(&[
        "acc a0: f32[4] = 0 let v0 = 1.0:f32
         wide { carry q0 = 2 for i0 in 0..4 lanes { a0[i0] = v0 } for k1 in 0..q0 seq { a0[0] = x0[k1] } }
         wide { for i0 in 0..4 parallel { x1[i0] = a0[i0] } }
         merge a0 by join over 2 of 2",
        "for i0 in 0..2 parallel { wide { acc a0: f32[1] = 0 a0[0] = x0[i0] x1[i0] = a0[0] } }",
    ]);
}

#[test]
fn iterations_of_parallel_loops_write_different_elements() {
    let write = |var| format!("iterations of {var} may write the same element of x1");
    let conflicts = [
        ("for i0 in 0..4 parallel { x1[0] = 0.0:f32 }", "i0", "x1[0] = 0.0:f32"),
        ("for l0 in 0..4 lanes { x1[0] = 0.0:f32 }", "l0", "x1[0] = 0.0:f32"),
        ("for i0 in 0..4 parallel { for i1 in 0..5 seq { x1[4*i0 + i1] = 0.0:f32 } }", "i0", "x1[4*i0 + i1] = 0.0:f32"),
        ("for i0 in 0..9 parallel { for i1 in 0..5 seq { x1[i0 + 8*i1] = 0.0:f32 } }", "i0", "x1[i0 + 8*i1] = 0.0:f32"),
        ("for k0 in 0..4 seq { for i0 in 0..4 parallel { x1[k0] = 0.0:f32 } }", "i0", "x1[k0] = 0.0:f32"),
        ("carry q0 = 7 for i0 in 0..q0 parallel { x1[q0] = 0.0:f32 }", "i0", "x1[q0] = 0.0:f32"),
    ];
    for (stmts, var, statement) in conflicts {
        assert_eq!(found(&nest(stmts)), [format!("{}, in `{statement}`", write(var))], "{stmts}");
    }
    // Two statements that overlap are told once each.
    let overlap = "for i0 in 0..4 parallel { x1[2*i0] = 0.0:f32 x1[2*i0 + 2] = 0.0:f32 }";
    let told = [("x1[2*i0]"), ("x1[2*i0 + 2]")].map(|s| format!("{}, in `{s} = 0.0:f32`", write("i0")));
    assert_eq!(found(&nest(overlap)), told);
    holds(&[
        "for i0 in 0..1 parallel { x1[0] = 0.0:f32 }",
        "for i0 in 0..0 parallel { x1[0] = 0.0:f32 }",
        "for i0 in 0..4 seq { x1[0] = 0.0:f32 }",
        "for i0 in 0..4 parallel { acc a0: u8[1] = 0 a0[0] = 1:u8 }",
        "for i0 in 0..4 parallel { for i1 in 0..4 parallel { x1[4*i0 + i1] = 0.0:f32 } }",
        "for i0 in 0..4 parallel { for i1 in 0..4 parallel { x1[i0 - 4*i1 + 12] = 0.0:f32 } }",
        // Strides 2 and 3 do not nest, and yet the elements 0, 2, 3, 5 differ.
        "for i0 in 0..2 parallel { for i1 in 0..2 parallel { x1[2*i0 + 3*i1] = 0.0:f32 } }",
        // Padded rows of padded planes, in an order of their own.
        "for i0 in 0..2 parallel { for i1 in 0..2 parallel { for i2 in 0..2 parallel { \
         x1[i0 + 2*i1 + 5*i2] = 0.0:f32 } } }",
        // Main loop and rest; unrolled by two; the two halves of a butterfly.
        "for i0 in 0..4 parallel { for l0 in 0..8 lanes { x1[16*i0 + l0] = 0.0:f32 } \
         for l1 in 0..4 lanes { x1[16*i0 + l1 + 8] = 0.0:f32 } }",
        "for i0 in 0..4 parallel { x1[2*i0] = 0.0:f32 x1[2*i0 + 1] = 0.0:f32 }",
        "for i0 in 0..4 parallel { x1[i0] = 0.0:f32 x1[i0 + 4] = 0.0:f32 }",
        "for k0 in 0..4 seq { for i0 in 0..4 parallel { x1[16*k0 + i0] = 0.0:f32 } }",
    ]);
}

#[test]
fn iterations_of_parallel_loops_read_nothing_that_others_write() {
    let acc = "acc a0: f32[64] = 0";
    breaks(&[
        (
            &format!("{acc} for b0 in 0..4 parallel {{ a0[b0] = a0[b0 + 1] }}"),
            "iterations of b0 may read and write the same element of a0",
            "a0[b0] = a0[b0 + 1]",
        ),
        (
            &format!("{acc} for l0 in 0..4 lanes {{ a0[l0] = a0[0] }}"),
            "iterations of l0 may read and write the same element of a0",
            "a0[l0] = a0[0]",
        ),
    ]);
    holds(&[
        &format!("{acc} for l0 in 0..4 lanes {{ a0[l0] = add(a0[l0], a0[l0 + 4]) }}"),
        &format!("{acc} for l0 in 0..4 lanes {{ x1[l0] = a0[0] }}"),
        // A stack of block states, its levels outermost.
        &format!(
            "acc a1: f32[16] = 0 {acc} for b0 in 0..15 seq {{ carry q0 = b0 for e0 in 0..4 parallel {{
             for q1 in 0..q0 seq {{ for l0 in 0..4 lanes {{ a1[4*e0 + l0] = add(a0[16*q1 + 4*e0 + l0], a1[4*e0 + l0]) }} }}
             for l1 in 0..4 lanes {{ a0[16*q0 + 4*e0 + l1] = a1[4*e0 + l1] }} }} }}"
        ),
    ]);
}

#[test]
fn merging_and_folding_need_states_and_a_definition_for_them() {
    let a = "acc a0: f32[8] = 0 acc a1: i32[8] = 0";
    let cases = [
        ("merge a0, a0 by join2 over 2 of 4", &["a0 stands there twice", JOIN2_FLOATS][..]),
        ("merge a2 by join over 2 of 4", &["a2 is not declared here"]),
        ("merge a0 by join over 3 of 3", &["a0 has 8 elements, and 3 * 3 are needed"]),
        ("fold a0 by join over 3 of 4 by 3", &["a0 has 8 elements, and 3 * 3 are needed"]),
        ("merge a0 by join over 0 of 4", &["there is no block to merge"]),
        ("fold a0 by join over 0 of 4 by 1", &["0 of 4 lanes cannot be present"]),
        ("fold a0 by join over 5 of 4 by 1", &["5 of 4 lanes cannot be present"]),
        ("fold a0 by join over 3 of 6 by 1", &["the number of lanes, 6, is no power of two"]),
        ("merge a0 by one over 2 of 4", &["one does not combine two states (f32) into one"]),
        ("merge a1 by join over 2 of 4", &["join does not combine two states (i32) into one"]),
        ("merge a1, a0 by join2 over 2 of 4", &["join2 does not combine two states (i32, f32) into one"]),
    ];
    for (stmt, messages) in cases {
        let expected: Vec<String> = messages.iter().map(|m| format!("{m}, in `{stmt}`")).collect();
        assert_eq!(found(&nest(&format!("{a} {stmt}"))), expected);
    }
    let merge = Stmt::Merge { accs: vec![], def: DefId(9), blocks: 1, elems: 1 };
    assert_eq!(found(&raw(vec![merge])), ["there is no definition d9, in `merge  by ?d9 over 1 of 1`"]);
    breaks(&[(
        &format!("{a} for i0 in 0..2 parallel {{ merge a0 by join over 2 of 4 }}"),
        "iterations of i0 write the same elements of a0",
        "merge a0 by join over 2 of 4",
    )]);
    holds(&[
        &format!("{a} merge a0, a1 by join2 over 2 of 4 fold a0, a1 by join2 over 3 of 4 by 2"),
        &format!("{a} for i0 in 0..2 seq {{ merge a0 by join over 2 of 4 }}"),
        "for i0 in 0..2 parallel { acc a0: f32[8] = 0 merge a0 by join over 2 of 4 }",
    ]);
}

const JOIN2_FLOATS: &str = "join2 does not combine two states (f32, f32) into one";

#[test]
fn a_selection_has_elements_positions_and_an_accumulator_of_its_body() {
    let a = "acc a0: f32[8] = 0";
    let lost = "a0 has been selected from, and the order of its elements is lost";
    let cases = [
        ("select v0, v1 = mode of a0 over 0", "there is no element to select from"),
        ("select v0 = nth 0 of a0 over 0", "there is no element to select from"),
        ("select v0 = nth 0 of a0 over 9", "a0 has 8 elements, and 9 are needed"),
        ("select v0, v1 = nth 7, 8 of a0 over 8", "there is no position 8 among 8 elements"),
        ("select v0, v1, v2, v3 = nth 0, 1, 2, 3 of a0 over 8", "a selection has 1 to 3 positions, not 4"),
        ("select v0, v0 = nth 0, 1 of a0 over 8", "v0 is bound a second time"),
    ];
    for (stmt, message) in cases {
        breaks(&[(&format!("{a} {stmt}"), message, stmt)]);
    }
    let nth = "select v0 = nth 3 of a0 over 8";
    let after = [
        ("let v1 = a0[0]", lost),
        ("a0[0] = 0.0:f32", lost),
        ("merge a0 by join over 2 of 4", lost),
        ("select v1 = nth 0 of a0 over 7", "a0 has been selected from by 8 elements, not 7"),
    ];
    for (stmt, message) in after {
        breaks(&[(&format!("{a} {nth} {stmt}"), message, stmt)]);
    }
    let outside = "a0 is declared outside of this body";
    for kind in ["seq", "parallel"] {
        breaks(&[(&format!("{a} for i0 in 0..2 {kind} {{ {nth} }}"), outside, nth)]);
    }
    holds(&[
        &format!("{a} {nth}"),
        &format!("{a} {nth} select v1, v2 = mode of a0 over 8 x1[0] = v1 x2[0] = i32(v2)"),
        &format!(
            "for i0 in 0..2 parallel {{ {a} for l0 in 0..8 lanes {{ a0[l0] = x0[8*i0 + l0] }} {nth} x1[i0] = v0 }}"
        ),
        &format!("for i0 in 0..0 parallel {{ {a} {nth} }}"),
        &format!("{a} select v0, v1, v2 = nth 7, 0, 7 of a0 over 8"),
    ]);
    let select = |vars: Vec<Var>, what, acc| Stmt::Select { vars, what, acc: AccId(acc), len: 1 };
    let none = select(vec![Var(0)], Selection::Nth(vec![0]), 9);
    assert_eq!(found(&raw(vec![none])), ["a9 is not declared here, in `select v0 = nth 0 of a9 over 1`"]);
    let acc = Stmt::Acc { acc: AccId(0), dtype: DType::F32, len: 1, init: Scalar::f32(0.0) };
    let few = select(vec![Var(0)], Selection::Mode, 0);
    let message = "the selection gives 2 results, not 1, in `select v0 = mode of a0 over 1`";
    assert_eq!(found(&raw(vec![acc.clone(), few])), [message]);
    let empty = select(vec![], Selection::Nth(vec![]), 0);
    let message = "a selection has 1 to 3 positions, not 0, in `select  = nth  of a0 over 1`";
    assert_eq!(found(&raw(vec![acc, empty])), [message]);
}

#[test]
fn every_violation_is_told() {
    let nest = nest("x1[64] = 0.0:f32 for i0 in 0..2 parallel { x1[0] = 0:i32 }");
    let violations = verify(&nest).unwrap_err();
    assert_eq!(
        violations.to_string(),
        "index 64 may be 64, and x1 has 64 elements, in `x1[64] = 0.0:f32`\n\
         x1 is f32, and i32 is written to it, in `x1[0] = 0:i32`\n\
         iterations of i0 may write the same element of x1, in `x1[0] = 0:i32`"
    );
}

/// Two accesses `c[0]*i0 + c[1]*i1 + c[2]*i2 + c[3]` in loops k0 (around), i0 (parallel), i1 (in it):
/// whether different iterations of i0 meet, by trying all.
fn meet(a: &[i64; 4], b: &[i64; 4], extents: [i64; 3]) -> bool {
    let at = |c: &[i64; 4], k: i64, i: i64, j: i64| c[0] * k + c[1] * i + c[2] * j + c[3];
    let [n, m, p] = extents;
    let elements = |c, k, i| (0..p).map(move |j| at(c, k, i, j));
    let pairs = |k| (0..m).flat_map(move |i| (0..m).filter(move |&i2| i2 != i).map(move |i2| (k, i, i2)));
    (0..n).flat_map(pairs).any(|(k, i, i2)| {
        elements(a, k, i).any(|e| elements(b, k, i2).any(|e2| e == e2) || elements(a, k, i2).any(|e2| e == e2))
            || elements(b, k, i).any(|e| elements(b, k, i2).any(|e2| e == e2))
    })
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(4000))]
    #[test]
    fn what_is_proved_of_parallel_loops_is_true(
        a in proptest::array::uniform4(-6i64..7),
        same in proptest::array::uniform3(0..3u8),
        shift in proptest::array::uniform4(-2i64..3),
        extents in proptest::array::uniform3(1i64..5),
    ) {
        // Mostly only the constants differ, as in real nests.
        let b = [0, 1, 2, 3].map(|i| if i < 3 && same[i] > 0 { a[i] } else { a[i] + shift[i] });
        let index = |c: &[i64; 4]| {
            let var = |over, id| LoopVar { over, id };
            Index::constant(c[3] + 99)
                .plus(var(Over::Step, 0), c[0])
                .plus(var(Over::Output, 0), c[1])
                .plus(var(Over::Output, 1), c[2])
        };
        let [n, m, p] = extents;
        let nest: Nest = format!(
            "nest \"\" {{ out x0: u8[999] for k0 in 0..{n} seq {{ for i0 in 0..{m} parallel {{ for i1 in 0..{p} seq {{
             x0[{}] = 1:u8 x0[{}] = 1:u8 }} }} }} }}",
            index(&a),
            index(&b)
        )
        .parse()
        .unwrap();
        proptest::prop_assert!(verify(&nest).is_err() || !meet(&a, &b, extents));
    }
}

#[test]
fn numbers_have_room_in_a_table() {
    breaks(&[
        ("let v1048576 = 1:f32", "v1048576 is numbered above 1048575", "let v1048576 = 1.0:f32"),
        ("acc a4294967295: f32[1] = 0", "a4294967295 is numbered above 1048575", "acc a4294967295: f32[1] = 0.0"),
        ("for i1048576 in 0..2 seq { }", "i1048576 is numbered above 1048575", "for i1048576 in 0..2 seq"),
    ]);
    holds(&["let v1048575 = 1:f32 acc a1048575: f32[1] = 0 for i1048575 in 0..2 seq { }"]);
}

/// A loop that is split, and whose rest stands beside it, writes other elements than its neighbours.
#[test]
fn parts_of_a_split_loop_are_one_range() {
    let whole = "for i27 in 0..2 parallel { for i1 in 0..2 parallel { for p6 in 0..2 parallel { for p7 in 0..9 parallel { \
        x0[16*p6 - 33*p7 - 8*i0 - i1 - 2*i27 + 280] = 1.0:f32 } } } }";
    let parts = "for p6 in 0..2 parallel { for p30 in 0..4 parallel { for p7 in 0..2 parallel { \
        x0[16*p6 - 33*p7 - 66*p30 - 8*i0 + 276] = 1.0:f32 } } }";
    let text = format!("nest \"\" {{ out x0: f32[300] for i0 in 0..2 parallel {{ {whole} {parts} }} }}");
    let nest: Nest = text.parse().expect("a nest");
    verify(&nest).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn transposing() {
    let a = "acc a0: f32[12] = 0.0";
    holds(&[
        &format!("{a} transpose a0 = x0[8] over 4 by 3 at 0, 1, 2 x1[0] = a0[11]"),
        &format!(
            "for i0 in 0..4 parallel {{ {a} transpose a0 = x0[12*i0] over 4 by 3 at 0, 2 within 28 x1[i0] = a0[7] }}"
        ),
        &format!("{a} transpose a0 = x0[63] over 4 by -3 at 0 x1[0] = a0[3]"),
        &format!("for i0 in 0..0 parallel {{ {a} transpose a0 = x0[64] over 4 by 3 at 0 }}"),
        "acc a0: f32[64] = 0.0 transpose a0 = x0[0] over 64 by 1 at 0 x1[0] = a0[63]",
        &format!("{a} transpose a0 = x0[0] over 3 by 24, 2 by 5 at 0, 9 x1[0] = a0[11]"),
        &format!("{a} transpose a0 = x0[63] over 2 by -24, 3 by -2 at 0 x1[0] = a0[5]"),
        &format!("for i0 in 0..5 parallel {{ {a} transpose x1[12*i0] = a0 over 4 by 3 at 0, 1, 2 }}"),
        &format!("for i0 in 0..2 parallel {{ {a} transpose x1[2*i0] = a0 over 4 by 4 at 0, 1 }}"),
        &format!("for i0 in 0..2 parallel {{ {a} transpose x1[24*i0] = a0 over 2 by 12, 2 by 3 at 0, 1, 2 }}"),
        &format!("for i0 in 0..2 seq {{ {a} transpose x1[i0 + 9] = a0 over 4 by -3 at 0, 1, 2 }}"),
    ]);
    let cases = [
        ("transpose a0 = x0[60] over 4 by 3 at 0", "index 60 may be 60 to 69, and x0 has 64 elements"),
        ("transpose a0 = x0[0] over 4 by -3 at 0", "index 0 may be -9 to 0, and x0 has 64 elements"),
        ("transpose a0 = x0[0] over 4 by 3 at 0 within 65", "index 0 may be 0 to 64, and x0 has 64 elements"),
        ("transpose a0 = x0[0] over 3 by 24, 2 by 5 at 0, 11", "index 0 may be 0 to 64, and x0 has 64 elements"),
        ("transpose a0 = x0[0] over 2 by -24, 3 by 2 at 0", "index 0 may be -24 to 4, and x0 has 64 elements"),
        ("transpose a0 = x0[0] over 2 by 4, 7 by 1 at 0", "a0 has 12 elements, and 14 are needed"),
        ("transpose a0 = x0[0] over 0 by 4, 7 by 1 at 0", "there is no lane or no column"),
        ("transpose a0 = x0[0] over 8 by 3 at 0, 1", "a0 has 12 elements, and 16 are needed"),
        ("transpose a0 = x0[0] over 0 by 3 at 0", "there is no lane or no column"),
        ("transpose a0 = x0[0] over 4 by 3 at 0, 1, 1", "the columns do not ascend from 0"),
        ("transpose a0 = x1[0] over 4 by 3 at 0", "x1 is no input"),
        ("transpose a0 = x0[0] over 4 by 9223372036854775807 at 0", "9223372036854775807 elements are above 2^62 - 1"),
        ("transpose a0 = x0[k9] over 4 by 3 at 0", "k9 is not bound here"),
        ("transpose x1[0] = a0 over 2 by 0, 4 by 1 at 0", "2 lanes write the same element of x1"),
        ("transpose x0[0] = a0 over 4 by 3 at 0", "x0 is an input and is not written"),
        ("transpose x1[0] = a0 over 4 by 33 at 0", "index 0 may be 0 to 99, and x1 has 64 elements"),
        ("transpose x1[0] = a0 over 8 by 3 at 0, 1", "a0 has 12 elements, and 16 are needed"),
        ("transpose x1[0] = a0 over 4 by 0 at 0", "4 lanes write the same element of x1"),
        ("transpose x1[k9] = a0 over 4 by 3 at 0", "k9 is not bound here"),
    ];
    for (stmt, message) in cases {
        breaks(&[(&format!("{a} {stmt}"), message, stmt)]);
    }
    let stmt = "transpose a0 = x0[0] over 4 by 3 at 0";
    breaks(&[
        (&format!("{a} for k0 in 0..2 seq {{ {stmt} }}"), "a0 is declared outside of this body", stmt),
        (&format!("acc a0: i32[12] = 0 {stmt}"), "a0 is i32, and x0 is f32", stmt),
        (
            "acc a0: f32[65] = 0.0 transpose a0 = x0[0] over 65 by 0 at 0",
            "65 lanes are more than 64",
            "transpose a0 = x0[0] over 65 by 0 at 0",
        ),
    ]);
    let both = "iterations of i0 may write the same element of x1";
    for (stride, columns, first) in [(3, "0, 1, 2", "11*i0"), (2, "0, 1", "i0"), (4, "0, 3", "3*i0")] {
        let stmt = format!("transpose x1[{first}] = a0 over 4 by {stride} at {columns}");
        breaks(&[(&format!("for i0 in 0..4 parallel {{ {a} {stmt} }}"), both, &stmt)]);
    }
    for (runs, first) in [("2 by 12, 2 by 3", "6*i0"), ("2 by 12, 2 by 3", "12*i0"), ("2 by 11, 2 by 3", "5*i0")] {
        let stmt = format!("transpose x1[{first}] = a0 over {runs} at 0, 1, 2");
        breaks(&[(&format!("for i0 in 0..3 parallel {{ {a} {stmt} }}"), both, &stmt)]);
    }
}
