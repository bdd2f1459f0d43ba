//! Text: what is read, what is printed, and that the builder says the same.

use cranefold_ir::DType;
use cranefold_ir::expression::{Expression, name};
use proptest::prelude::*;
use std::collections::HashSet;

fn read(text: &str) -> Expression {
    text.parse().unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn texts_print_in_one_form() {
    let same = [
        ("x0*x1", "x0 * x1"),
        ("(((x0)))", "x0"),
        ("a+b-c", "a + b - c"),
        ("a+(b-c)", "a + (b - c)"),
        ("(a*b)/c*(d/e)", "a * b / c * (d / e)"),
        ("(a+b)*c", "(a + b) * c"),
        ("a--b", "a - -b"),
        ("--a", "--a"),
        ("-(a*b)", "-(a * b)"),
        ("(-a)*b", "-a * b"),
        ("-a", "-a"),
        ("a<b or c==d and not e", "a < b or c == d and not e"),
        ("(a or b) and c", "(a or b) and c"),
        ("not (a and b)", "not (a and b)"),
        ("(not a) and b", "not a and b"),
        ("not not a", "not not a"),
        ("(not a)==b", "(not a) == b"),
        ("not (a==b)", "not a == b"),
        ("(a<b)==c", "(a < b) == c"),
        ("a or (b or c)", "a or (b or c)"),
        (" select( a>0 ,\n\ta, -a )", "select(a > 0, a, -a)"),
        ("fma(f32(a),b,1e-6)", "fma(f32(a), b, 1e-6)"),
        ("bf16(a)+bool(a)", "bf16(a) + bool(a)"),
        ("1e3+.5+1.+007+1E+2+1e-07", "1000.0 + 0.5 + 1.0 + 7 + 100.0 + 1e-7"),
        ("99999999999999999999999999999999999999999", "1e41"),
        ("inf - nan", "inf - nan"),
        ("min_ + f32x + _1", "min_ + f32x + _1"),
        ("not_a+android", "not_a + android"),
        ("a|b^c&d<<1+e", "a | b ^ c & d << 1 + e"),
        ("((a|b)^c)&d", "((a | b) ^ c) & d"),
        ("(a&b)<<(c>>d)", "(a & b) << (c >> d)"),
        ("a<<b>>c", "a << b >> c"),
        ("a<b|c", "a < b | c"),
        ("(a<b)|c", "(a < b) | c"),
        ("~a*-~b", "~a * -~b"),
        ("~(a+b)", "~(a + b)"),
        ("not a&b", "not a & b"),
        ("gelu(x)+is_nan ( y )", "gelu(x) + is_nan(y)"),
        ("erf_+tanhx", "erf_ + tanhx"),
    ];
    for (text, printed) in same {
        assert_eq!(read(text).to_string(), printed);
        assert_eq!(read(printed), read(text), "{text}");
    }
}

#[test]
fn numbers_differ_where_their_kind_does() {
    assert_ne!(read("2"), read("2.0"));
    assert_eq!(read("nan"), Expression::from(-f64::NAN));
    let set: HashSet<Expression> = ["x + 1", "x  +  1", "(x) + 1", "x + 1.0"].into_iter().map(read).collect();
    assert_eq!(set.len(), 2);
}

#[test]
fn the_builder_says_what_the_text_says() {
    let n = name;
    let same = [
        ("x0 * x1", n("x0") * n("x1")),
        ("sqrt(r0 / 6272)", (n("r0") / 6272).sqrt()),
        ("2 * x - 0.5 + -3 / x", 2 * n("x") - 0.5 + -3 / n("x")),
        ("1 - -x", 1 - -n("x")),
        ("-1.5", Expression::from(-1.5)),
        ("-0.0 + -9223372036854775808", Expression::from(-0.0) + i64::MIN),
        ("18446744073709551615", u64::MAX.into()),
        ("inf", f64::INFINITY.into()),
        ("max(min(abs(x), 1), 0)", n("x").abs().min(1).max(0)),
        ("exp(log(x))", n("x").log().exp()),
        ("pow(x, 2.5)", n("x").pow(2.5)),
        ("x == 1 and x != 2 or not x < 3", n("x").eq(1).and(n("x").ne(2)).or(!n("x").lt(3))),
        ("select(x <= 1, x > 2, x >= 3)", n("x").le(1).select(n("x").gt(2), n("x").ge(3))),
        ("fma(x, y, 1) + i8(x)", n("x").fma(n("y"), 1) + n("x").cast(DType::I8)),
        ("i & 7 | i << 2 ^ ~i >> 1", (n("i") & 7) | (n("i") << 2) ^ (n("i").bit_not() >> 1)),
        ("1 << i", 1 << n("i")),
        ("tanh(erf(expm1(log1p(x))))", n("x").log1p().expm1().erf().tanh()),
        ("floor(x) + ceil(x) + round(x) + trunc(x)", n("x").floor() + n("x").ceil() + n("x").round() + n("x").trunc()),
        ("select(is_nan(x) or is_inf(x), 0, sign(x))", n("x").is_nan().or(n("x").is_inf()).select(0, n("x").sign())),
        ("gelu(x) * gelu_tanh(x)", n("x").gelu() * n("x").gelu_tanh()),
        ("silu(x) * sigmoid(softplus(rsqrt(x)))", n("x").silu() * n("x").rsqrt().softplus().sigmoid()),
    ];
    for (text, built) in same {
        assert_eq!(read(text), built);
        assert_eq!(built.to_string(), text);
    }
}

/// Expressions of every kind of node.
fn expressions() -> impl Strategy<Value = Expression> {
    let leaf = prop_oneof![
        "[a-z_][a-z0-9_]{0,3}".prop_filter("a name", |s| cranefold_ir::expression::is_name(s)).prop_map(name),
        any::<i64>().prop_map(Expression::from),
        any::<u8>().prop_map(Expression::from),
        any::<f64>().prop_map(Expression::from),
    ];
    leaf.prop_recursive(8, 64, 3, |inner| {
        (0usize..45, inner.clone(), inner.clone(), inner).prop_map(|(pick, a, b, c)| match pick {
            0 => a + b,
            1 => a - b,
            2 => a * b,
            3 => a / b,
            4 => -a,
            5 => !a,
            6 => a.sqrt(),
            7 => a.exp(),
            8 => a.log(),
            9 => a.abs(),
            10 => a.min(b),
            11 => a.max(b),
            12 => a.pow(b),
            13 => a.eq(b),
            14 => a.ne(b),
            15 => a.lt(b),
            16 => a.ge(b),
            17 => a.and(b),
            18 => a.or(b),
            19 => a.fma(b, c),
            20 => a.select(b, c),
            21 => a & b,
            22 => a | b,
            23 => a ^ b,
            24 => a << b,
            25 => a >> b,
            26 => a.bit_not(),
            27 => a.expm1(),
            28 => a.log1p(),
            29 => a.tanh(),
            30 => a.erf(),
            31 => a.floor(),
            32 => a.ceil(),
            33 => a.round(),
            34 => a.trunc(),
            35 => a.sign(),
            36 => a.is_nan(),
            37 => a.is_inf(),
            38 => a.rsqrt(),
            39 => a.sigmoid(),
            40 => a.silu(),
            41 => a.softplus(),
            42 => a.gelu(),
            43 => a.gelu_tanh(),
            _ => a.cast(DType::ALL[b.to_string().len() % DType::ALL.len()]),
        })
    })
}

/// Words that are nearly expressions.
fn nearly() -> impl Strategy<Value = String> {
    let words = [
        "x", "i", "t", "1", "0", "2.5", "inf", "+", "-", "*", "/", "(", ")", ",", "min(", "pow(", "select(", "f16(",
        "i8(", "bool(", "sqrt(", "not", "and", "or", "<", "==", "é", "1e", "&", "|", "^", "~", "<<", ">>", "erf(",
        "gelu(", "floor(", "is_nan(", "sign(",
    ];
    proptest::collection::vec(proptest::sample::select(words.to_vec()), 0..24).prop_map(|w| w.join(" "))
}

/// Typing refuses or gives a definition that verifies and evaluates; it never panics.
fn types_or_refuses(expression: &Expression) {
    let names = [("x", DType::F32), ("i", DType::I32), ("t", DType::Bool), ("b", DType::I8), ("d", DType::F64)];
    for literal in DType::ALL {
        if let Ok(def) = crate::def_of(expression, &names, literal) {
            crate::verified(&def);
            let args: Vec<_> = names.iter().map(|(_, d)| cranefold_ir::Scalar::lowest(*d)).collect();
            def.eval(&args);
        }
    }
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(expression in expressions()) {
        let text = expression.to_string();
        let back = text.parse::<Expression>();
        prop_assert_eq!(back.as_ref(), Ok(&expression));
        prop_assert_eq!(back.unwrap().to_string(), text);
        types_or_refuses(&expression);
    }

    #[test]
    fn no_text_panics(text in "\\PC*") {
        let _ = Expression::list(&text).map_err(|e| e.to_string());
    }

    #[test]
    fn what_is_nearly_a_expression_is_typed_or_refused(text in nearly()) {
        match text.parse::<Expression>() {
            Ok(expression) => types_or_refuses(&expression),
            Err(error) => prop_assert!(error.column <= text.chars().count() + 1),
        }
    }
}
