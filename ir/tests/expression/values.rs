//! What expressions compute.

use crate::{def_of, scalar, value, verified};
use cranefold_ir::expression::Expression;
use cranefold_ir::{DType, Def, Expr, Scalar, Var};
use proptest::prelude::*;

/// Each case is an expression, values of its names `a b c` and its value.
fn gives(cases: &[(&str, &str, &str)]) {
    for (text, args, want) in cases {
        let args: Vec<Scalar> = args.split_whitespace().map(scalar).collect();
        let named: Vec<(&str, Scalar)> = ["a", "b", "c"].into_iter().zip(args).collect();
        assert_eq!(value(text, &named), scalar(want), "{text} of {named:?}");
    }
}

#[test]
fn numbers_take_the_type_they_meet() {
    gives(&[
        ("a * 2", "1.5:f32", "3.0:f32"),
        ("2 * a", "3:i64", "6:i64"),
        ("a + 1/3", "0.0:f64", "0.3333333333333333:f64"),
        ("a * (1/3)", "1.0:f32", "0.33333334:f32"),
        ("a + 255", "1:u8", "0:u8"),
        ("a - -128", "0:i8", "-128:i8"),
        ("a - 9223372036854775808", "9223372036854775809:u64", "1:u64"),
        ("min(a, -0)", "0.0:f32", "0.0:f32"),
        ("min(a, -0.0)", "0.0:f32", "-0.0:f32"),
        ("max(a, nan)", "1.0:f32", "nan:f32"),
        ("min(a, inf)", "1.0:f64", "1.0:f64"),
        ("a == 16777217", "16777216.0:f32", "true:bool"),
        ("a * (100000000000 * 100000000000 - 9999999999999999999999)", "7:i8", "7:i8"),
        ("a * 1e-46", "1.0:f32", "0.0:f32"),
        ("2", "", "2.0:f32"),
        ("7/2", "", "3.5:f32"),
        ("pow(2, 10) + pow(2, -1) + fma(2, 3, 4)", "", "1034.5:f32"),
        ("pow(2.5, 2) + sqrt(16) + abs(-3) + min(1, 2.5) - max(1, 2)", "", "12.25:f32"),
        ("exp(0) + log(1) - -1", "", "2.0:f32"),
        ("1 < 2 and 2 >= 2.5 or 0.1 + 0.2 != 0.3", "", "true:bool"),
        ("nan == nan", "", "false:bool"),
        ("1.0 / 0", "", "inf:f32"),
        ("inf - inf", "", "nan:f32"),
        ("select(1 < 2, 3, 4)", "", "3.0:f32"),
        ("a * select(1 < 2, 3, 4)", "2:i8", "6:i8"),
        ("a * select(a > 2, 3, select(a > 1, 4, 5))", "2:i8", "8:i8"),
        ("select(a > 2, 3, 4) + 1", "3:i8", "4.0:f32"),
        ("select(a > 2, 3, 4)", "3:i8", "3.0:f32"),
        ("f16(select(a > 2, 3, 4))", "3:i8", "3.0:f16"),
        ("bool(select(a > 2, 3, 0))", "2:i8", "false:bool"),
    ]);
}

#[test]
fn numbers_alone_take_the_given_type() {
    let eval = |text: &str, literal| {
        let def = def_of(&text.parse().unwrap(), &[], literal)?;
        Ok::<Scalar, cranefold_ir::expression::ExpressionError>(def.eval(&[])[0])
    };
    assert_eq!(eval("3 * 4", DType::I8).unwrap(), scalar("12:i8"));
    assert_eq!(eval("1/3", DType::F64).unwrap(), scalar("0.3333333333333333:f64"));
    assert_eq!(eval("0.1", DType::Bf16).unwrap(), Scalar::float(DType::Bf16, 0.1));
    assert_eq!(eval("1/3", DType::I8).unwrap_err().message, "`0.3333333333333333` is no integer, and i8 is wanted");
    assert_eq!(eval("1", DType::Bool).unwrap_err().message, "`1` is a number, and bool is wanted");
}

#[test]
fn integers_wrap_and_divide_without_a_fault() {
    gives(&[
        ("a + b", "127:i8 1:i8", "-128:i8"),
        ("a * b", "16:i8 17:i8", "16:i8"),
        ("a - b", "0:u16 1:u16", "65535:u16"),
        ("-a", "-128:i8", "-128:i8"),
        ("-a", "1:u32", "4294967295:u32"),
        ("abs(a)", "-128:i8", "-128:i8"),
        ("abs(a)", "-7:i64", "7:i64"),
        ("abs(a)", "200:u8", "200:u8"),
        ("min(a, b) - max(a, b)", "-5:i32 3:i32", "-8:i32"),
        ("a / b", "-7:i32 2:i32", "-3:i32"),
        ("a / b", "7:i32 -2:i32", "-3:i32"),
        ("a / b", "7:i32 0:i32", "0:i32"),
        ("a / b", "-2147483648:i32 -1:i32", "-2147483648:i32"),
        ("a / b", "-2147483648:i32 -2147483648:i32", "1:i32"),
        ("a / b", "-9223372036854775808:i64 -1:i64", "-9223372036854775808:i64"),
        ("a / b", "18446744073709551615:u64 2:u64", "9223372036854775807:u64"),
        ("a / b", "3:u8 0:u8", "0:u8"),
        ("a / -1", "-128:i8", "-128:i8"),
        ("a / 1", "-128:i8", "-128:i8"),
        ("a / 255", "254:u8", "0:u8"),
        ("a / -3", "-128:i8", "42:i8"),
        ("7 / a", "-2:i16", "-3:i16"),
        ("pow(a, 0)", "0:i32", "1:i32"),
        ("pow(a, 1)", "-5:i32", "-5:i32"),
        ("pow(a, 5)", "-3:i32", "-243:i32"),
        ("pow(a, 7)", "3:u8", "139:u8"),
        ("pow(a, 13)", "-3:i64", "-1594323:i64"),
        ("pow(a, i8(3))", "2:i8", "8:i8"),
    ]);
}

#[test]
fn floats_follow_ieee_754() {
    gives(&[
        ("a / b", "1.0:f32 0.0:f32", "inf:f32"),
        ("a / b", "-1.0:f64 0.0:f64", "-inf:f64"),
        ("a / 0", "0.0:f32", "nan:f32"),
        ("min(a, b)", "0.0:f32 -0.0:f32", "-0.0:f32"),
        ("max(a, b)", "-0.0:f64 0.0:f64", "0.0:f64"),
        ("max(a, b)", "nan:f32 1.0:f32", "nan:f32"),
        ("-a", "0.0:f32", "-0.0:f32"),
        ("abs(a)", "-inf:f64", "inf:f64"),
        ("sqrt(a)", "-1.0:f32", "nan:f32"),
        ("sqrt(a)", "-0.0:f32", "-0.0:f32"),
        ("exp(a)", "-inf:f32", "0.0:f32"),
        ("log(a)", "0.0:f64", "-inf:f64"),
        ("fma(a, a, -1)", "1.0000001:f32", "2.3841858e-7:f32"),
        ("a == b", "0.0:f32 -0.0:f32", "true:bool"),
        ("a == a", "nan:f32", "false:bool"),
        ("a != a", "nan:f32", "true:bool"),
        ("a > b", "2.0:f32 1.0:f32", "true:bool"),
        ("a >= b", "nan:f32 1.0:f32", "false:bool"),
        ("a <= b", "1.0:f32 1.0:f32", "true:bool"),
    ]);
}

#[test]
fn functions_have_their_corners() {
    gives(&[
        ("tanh(a)", "-0.0:f32", "-0.0:f32"),
        ("tanh(a)", "-inf:f64", "-1.0:f64"),
        ("erf(a)", "inf:f32", "1.0:f32"),
        ("erf(a)", "nan:f32", "nan:f32"),
        ("expm1(a)", "1e-30:f32", "1e-30:f32"),
        ("log1p(a)", "-1.0:f64", "-inf:f64"),
        ("log1p(a)", "-1.5:f64", "nan:f64"),
        ("floor(a)", "-0.0:f32", "-0.0:f32"),
        ("floor(a)", "-0.5:f32", "-1.0:f32"),
        ("ceil(a)", "-0.5:f64", "-0.0:f64"),
        ("trunc(a)", "-0.5:f32", "-0.0:f32"),
        ("trunc(a)", "-2.7:f32", "-2.0:f32"),
        ("round(a)", "2.5:f32", "2.0:f32"),
        ("round(a)", "-3.5:f64", "-4.0:f64"),
        ("round(a)", "-0.5:f64", "-0.0:f64"),
        ("floor(a) + ceil(a) + round(a) + trunc(a)", "-7:i8", "-28:i8"),
        ("sign(a)", "-0.0:f32", "-0.0:f32"),
        ("sign(a)", "-3.5:f64", "-1.0:f64"),
        ("sign(a)", "nan:f64", "nan:f64"),
        ("sign(a)", "-128:i8", "-1:i8"),
        ("sign(a)", "200:u8", "1:u8"),
        ("sign(a)", "0:u64", "0:u64"),
        ("is_nan(a)", "nan:f16", "true:bool"),
        ("is_nan(a)", "inf:bf16", "false:bool"),
        ("is_inf(a)", "-inf:f16", "true:bool"),
        ("is_inf(a)", "nan:f64", "false:bool"),
        ("is_inf(a)", "-inf:f32", "true:bool"),
        ("sigmoid(a)", "-inf:f32", "0.0:f32"),
        ("sigmoid(a)", "inf:f32", "1.0:f32"),
        ("sigmoid(a)", "-1e30:f32", "0.0:f32"),
        ("sigmoid(a)", "0.0:f64", "0.5:f64"),
        ("silu(a)", "-1e30:f64", "-0.0:f64"),
        ("softplus(a)", "-inf:f32", "0.0:f32"),
        ("softplus(a)", "1000.0:f32", "1000.0:f32"),
        ("softplus(a)", "nan:f32", "nan:f32"),
        ("gelu(a)", "-20.0:f32", "-0.0:f32"),
        ("gelu(a)", "20.0:f32", "20.0:f32"),
        ("gelu_tanh(a)", "inf:f64", "inf:f64"),
        ("rsqrt(a)", "0.0:f32", "inf:f32"),
        ("rsqrt(a)", "4.0:f64", "0.5:f64"),
        ("floor(-2.5) + ceil(2.5) + round(2.5) + trunc(-2.5) + sign(-3) + floor(7)", "", "6.0:f32"),
        ("is_nan(nan) and is_inf(-inf) and not is_nan(1)", "", "true:bool"),
        ("tanh(0) + erf(inf) + sigmoid(0)", "", "1.5:f32"),
    ]);
}

#[test]
fn bits_of_integers() {
    gives(&[
        ("a & b | c", "12:i32 10:i32 1:i32", "9:i32"),
        ("a ^ b", "12:u8 10:u8", "6:u8"),
        ("~a", "0:u8", "255:u8"),
        ("~a", "5:i64", "-6:i64"),
        ("a << 3", "33:u8", "8:u8"),
        ("a >> 1", "-5:i32", "-3:i32"),
        ("a >> 1", "4294967295:u32", "2147483647:u32"),
        ("a << b", "1:i32 33:i32", "2:i32"),
        ("a >> b", "-128:i8 -1:i8", "-1:i8"),
        ("a << b", "1:u64 18446744073709551615:u64", "9223372036854775808:u64"),
        ("1 << a", "5:i16", "32:i16"),
        ("a << b", "-3:i16 -1:i16", "-32768:i16"),
        ("a >> b", "-9223372036854775808:i64 62:i64", "-2:i64"),
        ("a >> b", "-1:i32 0:i32", "-1:i32"),
        ("a >> b", "4000000000:u32 4294967295:u32", "1:u32"),
        ("a << b", "3:u16 14:u16", "49152:u16"),
        ("a & b", "true:bool false:bool", "false:bool"),
        ("a | b ^ a", "true:bool false:bool", "true:bool"),
        ("~a", "true:bool", "false:bool"),
        ("(a > 1) & (b > 1)", "2.0:f32 0.0:f32", "false:bool"),
        ("a & 0 - 1", "7:i8", "7:i8"),
        ("a + (1 << 4 | 3 ^ 6 & ~1)", "0:i32", "21:i32"),
        ("a == -7 >> 1", "-4:i32", "true:bool"),
    ]);
}

/// That sugar has the bits of the expression it stands for, also of a constant.
#[test]
fn sugar_is_its_expression() {
    let sugar = [
        ("rsqrt(a)", "1 / sqrt(a)"),
        ("sigmoid(a)", "1 / (1 + exp(-a))"),
        ("silu(a)", "a * sigmoid(a)"),
        ("softplus(a)", "max(a, 0) + log1p(exp(-abs(a)))"),
        ("gelu(a)", "0.5 * a * (1 + erf(0.7071067811865476 * a))"),
        ("gelu_tanh(a)", "0.5 * a * (1 + tanh(0.7978845608028654 * (a + 0.044715 * a * a * a)))"),
    ];
    let numbers = [0.0, -0.0, 0.3, -0.7, 1.5, -3.0, 20.0, -40.0, -88.5, 100.0, -800.0, 1e30, -1e-40, f64::NAN];
    for (short, long) in sugar {
        for dtype in [DType::F32, DType::F64] {
            for x in numbers.into_iter().chain([f64::INFINITY, f64::NEG_INFINITY]) {
                let x = Scalar::float(dtype, x);
                let (a, b) = (value(short, &[("a", x)]), value(long, &[("a", x)]));
                assert!(a == b || a.is_nan() && b.is_nan(), "{short} of {x}: {a}, not {b}");
            }
        }
    }
}

#[test]
fn truth_has_its_operations() {
    gives(&[
        ("a and not b or c", "true:bool true:bool false:bool", "false:bool"),
        ("a == b", "true:bool false:bool", "false:bool"),
        ("a != b", "true:bool false:bool", "true:bool"),
        ("not a == b", "false:bool false:bool", "false:bool"),
        ("select(a, b, c)", "true:bool false:bool true:bool", "false:bool"),
        ("select(a, b, c)", "false:bool false:bool true:bool", "true:bool"),
        ("select(a, b, c)", "true:bool 1.5:f16 nan:f16", "1.5:f16"),
        ("select(a, b, 2)", "false:bool 1.5:bf16", "2.0:bf16"),
        ("select(a, b, 2)", "false:bool 1:i8", "2:i8"),
        ("f32(a) + f32(b)", "true:bool false:bool", "1.0:f32"),
        ("f16(a)", "true:bool", "1.0:f16"),
        ("bool(a)", "nan:f32", "true:bool"),
        ("bool(a)", "-0.0:f16", "false:bool"),
        ("bool(a)", "3:u8", "true:bool"),
        ("bool(a)", "true:bool", "true:bool"),
    ]);
}

#[test]
fn conversions_are_written() {
    gives(&[
        ("i32(a)", "-2.9:f32", "-2:i32"),
        ("i8(a)", "300.0:f32", "127:i8"),
        ("u8(a)", "-1.0:f64", "0:u8"),
        ("i32(a)", "nan:f32", "0:i32"),
        ("i8(a)", "300:i32", "44:i8"),
        ("f32(a)", "16777217:i32", "16777216.0:f32"),
        ("f16(a)", "65520.0:f32", "inf:f16"),
        ("f16(a)", "2049:i32", "2048.0:f16"),
        ("bf16(a)", "1.00390625:f64", "1.0:bf16"),
        ("bf16(a)", "1.5:f16", "1.5:bf16"),
        ("i64(a)", "1.5:bf16", "1:i64"),
        ("f64(a) * 2", "1.5:f16", "3.0:f64"),
        ("i32(2.7) + a", "0:i32", "2:i32"),
        ("u8(-0.5) + a", "0:u8", "0:u8"),
        ("bool(0.5)", "", "true:bool"),
    ]);
}

#[test]
fn what_is_used_twice_is_evaluated_once() {
    let count = |text: &str| {
        let expression: Expression = text.parse().unwrap();
        // A value that is not yet bound.
        let value = |a: &Expr| a.clone().shr(a.int(1));
        let mut uses = 0;
        let def = Def::build("f", &[DType::I32, DType::F32], |lets, args| {
            let names = [("a", value(&args[0])), ("x", args[1].clone())];
            vec![expression.build(lets, &names, DType::F32).unwrap()]
        });
        let value = value(&Expr::Var(Var(0), DType::I32));
        def.lets.iter().chain(&def.results).for_each(|e| e.visit(&mut |e| uses += usize::from(*e == value)));
        uses
    };
    let texts = ["a", "a * a", "a / a + a", "pow(a, 5)", "pow(f32(a), x)", "f32(a) + x", "gelu(f32(a))", "sign(a)"];
    assert_eq!(texts.map(count), [1; 8]);
}

#[test]
fn short_expressions_bind_nothing() {
    let lets = |text: &str| {
        let names = [("x0", DType::F32), ("x1", DType::F32)];
        def_of(&text.parse().unwrap(), &names, DType::F32).unwrap().lets.len()
    };
    assert_eq!(
        ["x0 * x1", "x0 * x0", "max(sqrt(x0 / 6272) + x1, 0)", "select(x0 > 0, x0, 0.1 * x0)"].map(lets),
        [0; 4]
    );
}

/// The definition of `pow(a, b)`, or of one with a number as the exponent.
fn power(text: &str, dtype: DType) -> Def {
    let def = def_of(&text.parse().unwrap(), &[("a", dtype), ("b", dtype)], dtype).unwrap();
    verified(&def);
    def
}

fn close_f64(got: f64, want: f64, ulps: u64) -> bool {
    (got.is_nan() && want.is_nan())
        || (got.is_sign_negative() == want.is_sign_negative() && got.to_bits().abs_diff(want.to_bits()) <= ulps)
}

fn close_f32(got: f32, want: f32, ulps: u32) -> bool {
    (got.is_nan() && want.is_nan())
        || (got.is_sign_negative() == want.is_sign_negative() && got.to_bits().abs_diff(want.to_bits()) <= ulps)
}

/// Bases and exponents at which powers change their kind.
const CORNERS: [f64; 29] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.0,
    -2.0,
    3.0,
    -3.0,
    1.5,
    -1.5,
    4.0,
    5.0,
    7.0,
    8.0,
    9.0,
    -8.0,
    -9.0,
    1e30,
    -1e30,
    1e-40,
    -1e-40,
    9007199254740991.0,
    -9007199254740993.0,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    f64::MAX,
];

/// That the exponent as a number and as an operand give what the standard library's power gives.
#[test]
fn powers_have_the_corner_cases_of_ieee_754() {
    let (pow32, pow64) = (power("pow(a, b)", DType::F32), power("pow(a, b)", DType::F64));
    for y in CORNERS {
        let text = Expression::from(y).to_string();
        let number64 = power(&format!("pow(a, {text})"), DType::F64);
        let number32 =
            (!(y as f32).is_infinite() || y.is_infinite()).then(|| power(&format!("pow(a, {text})"), DType::F32));
        for x in CORNERS {
            let args = [Scalar::f64(x), Scalar::f64(y)];
            for def in [&pow64, &number64] {
                let got = def.eval(&args)[0].as_f64();
                assert!(close_f64(got, x.powf(y), 8), "pow({x}, {y}) = {got}, not {}", x.powf(y));
            }
            let (x, y) = (x as f32, y as f32);
            for def in [Some(&pow32), number32.as_ref()].into_iter().flatten() {
                let got = def.eval(&[Scalar::f32(x), Scalar::f32(y)])[0].as_f64() as f32;
                assert!(close_f32(got, x.powf(y), 8), "pow({x}, {y}) = {got}, not {}", x.powf(y));
            }
        }
    }
}

proptest! {
    #[test]
    fn powers_are_near_those_of_the_standard_library(x in any::<f64>(), y in -40.0..40.0f64, n in -40i32..40) {
        let (x32, y32) = (x as f32, y as f32);
        for (y, y32) in [(y, y32), (f64::from(n), n as f32)] {
            let got = power("pow(a, b)", DType::F64).eval(&[Scalar::f64(x), Scalar::f64(y)])[0].as_f64();
            prop_assert!(close_f64(got, x.powf(y), 2), "pow({x}, {y}) = {got}, not {}", x.powf(y));
            let got = power("pow(a, b)", DType::F32).eval(&[Scalar::f32(x32), Scalar::f32(y32)])[0].as_f64() as f32;
            prop_assert!(close_f32(got, x32.powf(y32), 2), "pow({x32}, {y32}) = {got}, not {}", x32.powf(y32));
        }
    }

    #[test]
    fn powers_by_multiplication_keep_the_sign(x in any::<f32>(), n in 0i32..=8) {
        let got = power(&format!("pow(a, {n})"), DType::F32).eval(&[Scalar::f32(x); 2])[0].as_f64() as f32;
        let want = f64::from(x).powi(n) as f32;
        // n - 1 roundings, and more of a product that is subnormal: only its size is compared.
        let near = close_f32(got, want, 8) || (got - want).abs() < f32::MIN_POSITIVE || want.abs() > 1e38;
        prop_assert!(near && (got.is_nan() || got.is_sign_negative() == want.is_sign_negative()), "{x}^{n} = {got}, not {want}");
    }

    #[test]
    fn integers_divide_as_the_standard_library_wraps(a in any::<i64>(), b in any::<i64>(), small in -3i64..=3) {
        for dtype in DType::ALL.into_iter().filter(|d| d.is_int()) {
            for b in [b, small] {
                let (a, b) = (Scalar::int(dtype, a.into()), Scalar::int(dtype, b.into()));
                let (x, y) = (a.as_int().unwrap(), b.as_int().unwrap());
                let want = Scalar::int(dtype, x.checked_div(y).unwrap_or(0));
                prop_assert_eq!(value("a / b", &[("a", a), ("b", b)]), want);
                if y != 0 {
                    prop_assert_eq!(value(&format!("a / {y}"), &[("a", a)]), want);
                }
            }
        }
    }
}
