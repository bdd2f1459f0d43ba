//! The law of texts: a text is refused with a short message that points into it, or reads, prints and reads back. Each
//! function returns true if the text was accepted.

use crate::nests;
use cranefold::ir::expression::Expression;
use cranefold::ir::{Def, Nest, verify};
use cranefold::lower::program::Program;
use cranefold::spec::onednn::{PostOp, Primitive};
use cranefold::spec::{Dims, MAX_TEXT};
use cranefold::{DType, Layout, Problem, Scalar, Schedule, Spec, SpecError, Target};
use std::fmt::{Debug, Display};
use std::str::FromStr;

/// The most bytes of a message. The longest messages name all ops, or all names of an expression.
const MOST_MESSAGE_BYTES: usize = 4000;

/// The bytes as text; invalid ones are replaced.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Checks that a value prints, and that its text reads as the same value and prints as the same text.
pub(crate) fn reads_back<T: FromStr + Display + PartialEq + Debug>(value: &T)
where
    T::Err: Display,
{
    let printed = value.to_string();
    match printed.parse::<T>() {
        Err(error) => panic!("what prints does not read: {error}\n{printed}"),
        Ok(again) => {
            assert!(again == *value, "reads back as another:\n{printed}\n{again}");
            assert_eq!(again.to_string(), printed, "prints in two ways");
        }
    }
}

/// Checks that a message is short, and that its line and column, if any, are in the text or just after it.
fn points_inside(message: &str, text: &str) {
    assert!(!message.trim().is_empty() && message.len() <= MOST_MESSAGE_BYTES, "{} bytes: {message}", message.len());
    let number_after = |word: &str| -> Option<usize> {
        let first = message.lines().next()?;
        let head = first.split_once(": ").map_or(first, |(head, _)| head);
        let digits = head.split(", ").find_map(|part| part.strip_prefix(word)?.strip_prefix(' '))?;
        digits.parse().ok()
    };
    let line = number_after("line").map(|n| {
        // At the end of a text that ends a line, the place is on the next line.
        let lines: Vec<&str> = text.split('\n').collect();
        assert!((1..=lines.len()).contains(&n), "line {n} of {}: {message}", lines.len());
        lines[n - 1]
    });
    if let Some(column) = number_after("column") {
        let chars = line.unwrap_or(text).chars().count();
        assert!((1..=chars + 1).contains(&column), "column {column} of {chars}: {message}");
    }
}

/// Checks that the message of a refusal points into the text; returns false, as the text is not accepted.
pub(crate) fn refused(error: &impl Display, text: &str) -> bool {
    points_inside(&error.to_string(), text);
    false
}

/// Checks that the message of a refusal is short; returns false, as the input is not accepted.
pub(crate) fn short(error: &impl Display) -> bool {
    let message = error.to_string();
    assert!(!message.trim().is_empty() && message.len() <= MOST_MESSAGE_BYTES, "{} bytes: {message}", message.len());
    false
}

/// The law of a [`Spec`], and of its [`Problem`].
pub fn spec(bytes: &[u8]) -> bool {
    spec_text(&text(bytes))
}

fn spec_text(text: &str) -> bool {
    match text.parse::<Spec>() {
        Err(error) => refused(&error, text),
        Ok(spec) => {
            reads_back(&spec);
            reads_back(&Problem::of(&spec));
            true
        }
    }
}

/// The law of a region, and of its [`Problem`]: whatever stands between its definitions, it is one spec and one problem,
/// and so has one signature.
pub fn region(bytes: &[u8]) -> bool {
    let text = text(bytes);
    let Ok(spec) = text.parse::<Spec>() else { return spec_text(&text) };
    reads_back(&spec);
    let (problem, printed) = (Problem::of(&spec), spec.to_string());
    reads_back(&problem);
    if spec.body().is_none() {
        return true;
    }
    for between in ["\n", " # ;{\r\n\t"] {
        let other = printed.replace("; ", between);
        if other.len() > MAX_TEXT {
            continue;
        }
        let again: Spec = other.parse().unwrap_or_else(|error| panic!("{error}\n{other}"));
        assert_eq!(again, spec, "reads as another:\n{other}");
        assert_eq!(Problem::of(&again).to_string(), problem.to_string(), "is another problem:\n{other}");
    }
    true
}

/// The law of a [`Problem`].
pub fn problem(bytes: &[u8]) -> bool {
    let text = text(bytes);
    match text.parse::<Problem>() {
        Err(error) => refused(&error, &text),
        Ok(problem) => {
            reads_back(&problem);
            true
        }
    }
}

/// The law of a [`Schedule`], and its check.
pub fn schedule(bytes: &[u8]) -> bool {
    let text = text(bytes);
    match text.parse::<Schedule>() {
        Err(error) => refused(&error, &text),
        Ok(schedule) => {
            reads_back(&schedule);
            for spec in ["sum f32[64,9000] axes=[1]", "softmax f16[7,3,50] axes=[0,2]", "median i8[9]", "sum f32[0]"] {
                let problem = Problem::of(&spec.parse().expect("a spec"));
                if let Err(error) = schedule.check(&problem) {
                    points_inside(&error.to_string(), &text);
                }
            }
            true
        }
    }
}

/// The law of a [`Nest`], with its verifier, and its interpreter if it verifies and is small.
pub fn nest(bytes: &[u8]) -> bool {
    let text = text(bytes);
    match text.parse::<Nest>() {
        Err(error) => refused(&error, &text),
        Ok(nest) => {
            reads_back(&nest);
            match verify(&nest) {
                Err(violations) => assert!(!violations.to_string().is_empty()),
                Ok(()) => nests::interpret(&nest),
            }
            true
        }
    }
}

/// The law of a [`Program`].
pub fn program(bytes: &[u8]) -> bool {
    let text = text(bytes);
    match text.parse::<Program>() {
        // Lines are counted within the nest that is wrong.
        Err(error) => {
            assert!(error.to_string().len() <= MOST_MESSAGE_BYTES, "{error}");
            false
        }
        Ok(program) => {
            reads_back(&program);
            true
        }
    }
}

/// The law of an [`Expression`], alone and in lists, with its typing, and its value if it types.
pub fn expression(bytes: &[u8]) -> bool {
    let text = text(bytes);
    let inside = |error: &cranefold::ir::expression::ExpressionError| {
        let chars = error.text.chars().count();
        assert!((1..=chars + 1).contains(&error.column), "column {} of {chars}: {error}", error.column);
        points_inside(&error.to_string(), &text);
    };
    let list = match Expression::list(&text) {
        Err(error) => {
            inside(&error);
            assert!(text.parse::<Expression>().is_err());
            return false;
        }
        Ok(list) => list,
    };
    if let [one] = &list[..] {
        assert_eq!(text.parse::<Expression>().as_ref(), Ok(one));
    }
    for expression in &list {
        reads_back(expression);
        expression.names().iter().for_each(|(name, _)| assert!(expression.uses(name)));
        let types =
            [("x0", DType::F32), ("x1", DType::I32), ("x2", DType::Bool), ("r0", DType::F64), ("n", DType::U64)];
        let params: Vec<DType> = types.iter().map(|&(_, dtype)| dtype).collect();
        for literal in [DType::F32, DType::I64] {
            let mut refused = None;
            let def = Def::build("expression", &params, |lets, args| {
                let names: Vec<_> = types.iter().zip(args).map(|(&(name, _), arg)| (name, arg.clone())).collect();
                match expression.build(lets, &names, literal) {
                    Ok(value) => vec![value],
                    Err(error) => {
                        refused = Some(error);
                        vec![]
                    }
                }
            });
            match refused {
                Some(error) => inside(&error),
                None => {
                    for bits in [0, 1, u64::MAX, 0x7fc0_0001_8000_0000] {
                        let args: Vec<Scalar> = params.iter().map(|&d| Scalar::from_bits(d, bits & ones(d))).collect();
                        assert_eq!(def.eval(&args).len(), 1);
                    }
                }
            }
        }
    }
    true
}

/// All bits of a type.
fn ones(dtype: DType) -> u64 {
    if dtype == DType::Bool { 1 } else { u64::MAX >> (64 - dtype.bits()) }
}

/// The law of a combiner, within a spec.
pub fn combiner(bytes: &[u8]) -> bool {
    spec_text(&format!("combiner({}) f32[8,3]@ba axes=[0]", text(bytes)))
}

/// The law of a [`Layout`] of an input and an output: within a spec, as a tag, and as the blocks of strides.
pub fn layout(bytes: &[u8]) -> bool {
    let text = text(bytes);
    let input = spec_text(&format!("sum f32[6,20,9,4]@{text} axes=[0]"));
    let output = spec_text(&format!("sum i32[6,20,9,4] axes=[2] keep_dims -> i32@{text}"));
    for layout in [Layout::tag(&text), Layout::blocked_strides([600, 30, 6, 1], &text)] {
        match layout {
            Err(error) => points_inside(&error.to_string(), &text),
            Ok(layout) => {
                let spec = Spec::builder("sum").input_at(DType::F32, &[6, 20, 9, 4], layout).axes([0]).build();
                spec.iter().for_each(reads_back);
            }
        }
    }
    input || output
}

/// The law of a [`DType`], and of a [`Scalar`] of that type.
pub fn value(bytes: &[u8]) -> bool {
    let text = text(bytes);
    let (dtype, value) = text.split_once(' ').unwrap_or((&text, ""));
    match dtype.parse::<DType>() {
        Err(error) => refused(&error, &text),
        Ok(dtype) => {
            reads_back(&dtype);
            let value = Scalar::parse(dtype, value);
            if let Some(value) = value {
                let again = Scalar::parse(dtype, &value.to_string());
                assert!(again == Some(value), "{dtype}: {value} reads back as {again:?}");
            }
            value.is_some()
        }
    }
}

/// The law of a [`Target`] of a triple and, on the next line, features.
pub fn isa(bytes: &[u8]) -> bool {
    let text = text(bytes);
    let (triple, features) = text.split_once('\n').unwrap_or((&text, ""));
    match Target::new(triple, features) {
        Err(error) => refused(&error, &text),
        Ok(target) => {
            assert!(target.vector_bits() <= 512);
            true
        }
    }
}

/// The law of a [`Primitive`] of words: the algorithm, types and layouts of source and destination, and a post-op with
/// its operand's type and layout.
pub fn onednn(bytes: &[u8]) -> bool {
    let text = text(bytes);
    let mut words = text.split(' ');
    let mut next = || words.next().unwrap_or("");
    let alg = next();
    let whole = [2, 20, 3, 3];
    let extents = [[2, 20, 1, 1], [2, 1, 3, 3], [1, 1, 1, 1], whole, [2, 20, -1, 3], [2, 20, 3, 4]];
    let of = |dtype: &str, layout: &str, dims| {
        let layout = Layout::tag(layout).unwrap_or_else(|_| Layout::row_major());
        Dims::new(dtype.parse().unwrap_or(DType::F32), dims).at(layout)
    };
    let src = of(next(), next(), &whole);
    let kept = &extents[text.len() % extents.len()];
    let dst = of(next(), next(), kept);
    let post = next();
    let operand = of(next(), next(), kept);
    let number = text.len() as f32 / 4.0 - 3.0;
    let primitive = Primitive::new(alg, src, dst).p(number).eps(number);
    let with_post = [
        primitive.clone().post_op(PostOp::eltwise(post, number, -number)),
        primitive.clone().post_op(PostOp::sum(number)).post_op(PostOp::binary(post, operand)),
        primitive,
    ];
    let mut accepted = false;
    for primitive in with_post {
        match primitive.translate() {
            Err(error @ SpecError::Syntax { .. }) => panic!("there is no text: {error}"),
            Err(error) => points_inside(&error.to_string(), &text),
            Ok(spec) => {
                reads_back(&spec);
                reads_back(&Problem::of(&spec));
                accepted = true;
            }
        }
    }
    accepted
}
