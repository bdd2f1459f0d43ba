//! Random expressions, typed as the compiler types them.
//!
//! The operands of an operation have its type, so that every text is accepted. An operation never has numbers alone,
//! because those are computed when the expression is read.

use crate::data::Random;
use cranefold::DType::{self, *};

/// The names that an expression may use, with their types in expressions.
pub type Names = Vec<(String, DType)>;

/// The type of an element in expressions.
pub fn expression_type(dtype: DType, accumulator: DType) -> DType {
    match dtype {
        Bool => Bool,
        d if d.is_float() => accumulator,
        d if d.bytes() < 4 => I32,
        d => d,
    }
}

/// An expression of type `to` that names all of `must` and some of `names`; a constant if there are no names.
pub fn expression(random: &mut Random, names: &Names, must: &[String], to: DType) -> String {
    if names.is_empty() {
        return constant(random, to);
    }
    let depth = 1 + random.below(3) as u32;
    let mut text = of(random, names, to, depth);
    for name in must {
        if words(&text).any(|word| word == name.as_str()) {
            continue;
        }
        text = match to {
            Bool => format!("({text} or bool({name}))"),
            F16 | Bf16 => format!("{to}(f32({text}) - f32({name}))"),
            _ => format!("({text} {} {to}({name}))", random.pick(&["+", "-", "*"])),
        };
    }
    text
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
}

/// A value of a type, without names.
pub fn constant(random: &mut Random, to: DType) -> String {
    match to {
        Bool => random.pick(&["1 < 2", "bool(0)"]).to_string(),
        to => format!("{to}({})", number(random, to)),
    }
}

/// A number that has a value of the type in every position.
fn number(random: &mut Random, to: DType) -> &'static str {
    match to {
        F16 | Bf16 => random.pick(&["0", "1", "-0.0", "2.5", "inf"]),
        d if d.is_float() => {
            random.pick(&["0", "1", "2", "0.5", "-1.5", "1e-3", "100", "3", "-0.0", "inf", "nan", "1e30"])
        }
        d if d.is_signed() => random.pick(&["0", "1", "2", "3", "5", "7", "100", "-1", "-3"]),
        _ => random.pick(&["0", "1", "2", "3", "5", "7", "100", "127"]),
    }
}

fn not_zero(random: &mut Random, to: DType) -> &'static str {
    loop {
        let number = number(random, to);
        if number != "0" {
            return number;
        }
    }
}

/// The functions of one f32 or f64.
const FLOAT_FUNCTIONS: [&str; 13] = [
    "sqrt",
    "exp",
    "log",
    "expm1",
    "log1p",
    "tanh",
    "erf",
    "rsqrt",
    "sigmoid",
    "silu",
    "softplus",
    "gelu",
    "gelu_tanh",
];

const NUMBERS: [DType; 10] = [I8, U8, I16, U16, I32, U32, I64, U64, F32, F64];

fn of(random: &mut Random, names: &Names, to: DType, depth: u32) -> String {
    if depth == 0 {
        let same: Vec<&String> = names.iter().filter(|(_, d)| *d == to).map(|(name, _)| name).collect();
        return match same.is_empty() || random.below(8) == 0 {
            false => same[random.below(same.len() as u64) as usize].clone(),
            true => format!("{to}({})", names[random.below(names.len() as u64) as usize].0),
        };
    }
    let depth = depth - 1;
    match to {
        Bool => truth(random, names, depth),
        F16 | Bf16 => {
            let from = random.pick(&[F32, F64, I32]);
            format!("{to}({})", of(random, names, from, depth))
        }
        _ => value(random, names, to, depth),
    }
}

fn truth(random: &mut Random, names: &Names, depth: u32) -> String {
    let bool = |random: &mut Random| of(random, names, Bool, depth);
    match random.below(7) {
        0 => format!("({} {} {})", bool(random), random.pick(&["and", "&"]), bool(random)),
        1 => format!("({} {} {})", bool(random), random.pick(&["or", "|", "^"]), bool(random)),
        2 => format!("({}{})", random.pick(&["not ", "~"]), bool(random)),
        4 => {
            let from = random.pick(&[F32, F64, F16, Bf16]);
            format!("{}({})", random.pick(&["is_nan", "is_inf"]), of(random, names, from, depth))
        }
        3 => {
            let equal = random.pick(&["==", "!="]);
            format!("(({}) {equal} ({}))", bool(random), bool(random))
        }
        _ => {
            let of_type = some_type(random, names);
            let a = of(random, names, of_type, depth);
            let b = operand(random, names, of_type, depth);
            format!("({a} {} {b})", random.pick(&["==", "!=", "<", "<=", ">", ">="]))
        }
    }
}

/// A type of numbers, mostly the type of a name.
fn some_type(random: &mut Random, names: &Names) -> DType {
    let (_, dtype) = &names[random.below(names.len() as u64) as usize];
    if *dtype == Bool || random.below(4) == 0 { random.pick(&NUMBERS) } else { *dtype }
}

/// A number or an expression.
fn operand(random: &mut Random, names: &Names, to: DType, depth: u32) -> String {
    if random.below(3) == 0 { number(random, to).into() } else { of(random, names, to, depth) }
}

fn value(random: &mut Random, names: &Names, to: DType, depth: u32) -> String {
    let a = of(random, names, to, depth);
    let wide = matches!(to, F32 | F64);
    match random.below(18) {
        0 => format!("(-{a})"),
        1 => format!("abs({a})"),
        2 => format!("{}({a}, {})", random.pick(&["min", "max"]), operand(random, names, to, depth)),
        3 => {
            let condition = truth(random, names, depth.min(1));
            format!("select({condition}, {a}, {})", operand(random, names, to, depth))
        }
        4 => {
            let from = random.pick(&[Bool, I8, U16, I32, U32, I64, U64, F32, F64, F16, Bf16]);
            format!("{to}({})", of(random, names, from, depth))
        }
        5 if wide => format!("{}({a})", random.pick(&FLOAT_FUNCTIONS)),
        5 => format!("({a} {} {})", random.pick(&["<<", ">>"]), random.pick(&["0", "1", "3", "7"])),
        6 if wide => format!("fma({a}, {}, {})", operand(random, names, to, depth), operand(random, names, to, depth)),
        7 if wide && random.below(2) == 0 => format!("pow({a}, {})", operand(random, names, to, depth)),
        // An integer to the power of 0 is a constant, by which some expressions divide.
        7 => format!("pow({a}, {})", random.pick(&["1", "2", "3", "5"])),
        8 | 9 if to.is_int() && random.below(2) == 0 => format!("({a} / {})", not_zero(random, to)),
        8 | 9 => format!("({a} / {})", of(random, names, to, depth)),
        10 => format!("{}({a})", random.pick(&["floor", "ceil", "round", "trunc", "sign"])),
        11 if to.is_int() && random.below(4) == 0 => format!("(~{a})"),
        11 if to.is_int() => {
            let b = of(random, names, to, depth);
            format!("({a} {} {b})", random.pick(&["&", "|", "^", "<<", ">>"]))
        }
        12 => format!("({} {} {a})", number(random, to), random.pick(&["+", "-", "*"])),
        _ => format!("({a} {} {})", random.pick(&["+", "-", "*"]), operand(random, names, to, depth)),
    }
}
