//! Expressions over [`Known`] values, by the rules of [`cranefold_ir::expression`].
//!
//! Bounds take the operands of an operation to be independent, but for two cases. Operands of the same text are one
//! value: `c * c` is never below zero. And `e - c - r`, where c and r are the two parts of a mean, is `e` less this
//! mean: each part alone is off by more than both together.

use super::known::{Known, integer};
use super::moments::Moments;
use super::real::Real;
use cranefold_ir::DType::{self, Bool, F32, F64, I32};
use cranefold_ir::expression::{Expression, Folded, Operation};
use std::cmp::Ordering;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

/// Values by their names.
pub type Names = Vec<(String, Known)>;

/// A named value.
#[derive(Clone, Debug)]
pub struct NamedValue {
    /// The value.
    pub known: Known,
    /// The mean that it is a part of.
    pub part: Option<Rc<PartOfMean>>,
}

/// A part of a mean, which is the sum of two values.
#[derive(Clone, Copy, Debug)]
pub struct PartOfMean {
    /// The number that both parts have in common.
    pub mean: usize,
    /// True for the part that is rounded first, false for the rest.
    pub first: bool,
    /// The mean itself.
    pub moments: Moments,
}

/// An element as expressions see it: a float in the accumulator's type, an integer in at least 32 bits.
pub fn seen(element: Known, accumulator: DType) -> Known {
    match element.dtype {
        Bool => element,
        d if d.is_float() => element.cast(accumulator),
        d if d.bytes() < 4 => element.cast(I32),
        _ => element,
    }
}

/// The value of an expression; `literal` is the type of a result of numbers alone.
pub fn evaluate(expression: &Expression, names: &Names, literal: DType) -> Known {
    let named = |name: &str| {
        let (_, known) = names.iter().find(|(known, _)| known == name)?;
        Some(NamedValue { known: *known, part: None })
    };
    evaluate_with(expression, &named, literal)
}

/// Evaluates as [`evaluate`] does, with the names' values from a function.
pub fn evaluate_with(expression: &Expression, named: &dyn Fn(&str) -> Option<NamedValue>, literal: DType) -> Known {
    let value = expression.fold(&mut |folded: Folded<(Term, u64)>| match folded {
        Folded::Int(value) => (Term::Int(value), hash(value)),
        Folded::Real(value) => (Term::Real(Known::exactly(F64, Real::from(value))), hash(value.to_bits())),
        Folded::Name(name) => {
            let named = named(name).unwrap_or_else(|| panic!("the spec has refused `{name}`"));
            let term = match named.part {
                Some(part) => Term::Part(named.known, part),
                None => Term::Typed(named.known),
            };
            (term, hash(name))
        }
        Folded::Apply(operation, args) => {
            let (args, texts): (Vec<Term>, Vec<u64>) = args.into_iter().unzip();
            let same = texts.len() == 2 && texts[0] == texts[1];
            let with_itself = args[0].typed().filter(|_| same).and_then(|known| known.with_itself(operation));
            (with_itself.map_or_else(|| term(operation, args, literal), Term::Typed), hash((operation, texts)))
        }
    });
    value.0.of(literal)
}

/// The hash of a text's structure: equal texts have equal hashes.
fn hash(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// A value with a type, or one that takes the type of the other operand.
#[derive(Clone)]
enum Term {
    Typed(Known),
    Int(i128),
    /// A value computed from untyped numbers, in f64.
    Real(Known),
    /// One of two numbers, by a condition.
    Choice(Known, Box<[Term; 2]>),
    /// A part of a mean.
    Part(Known, Rc<PartOfMean>),
    /// The difference of a value and the first part of a mean.
    Beyond {
        difference: Known,
        value: Known,
        part: Rc<PartOfMean>,
    },
}

impl Term {
    fn typed(&self) -> Option<Known> {
        match self {
            Term::Typed(known) | Term::Part(known, _) | Term::Beyond { difference: known, .. } => Some(*known),
            Term::Int(_) | Term::Real(_) | Term::Choice(..) => None,
        }
    }

    fn dtype(&self) -> Option<DType> {
        self.typed().map(|known| known.dtype)
    }

    fn of(self, dtype: DType) -> Known {
        match self {
            Term::Typed(known) | Term::Part(known, _) | Term::Beyond { difference: known, .. } => known,
            // To a float it is rounded once.
            Term::Int(value) if dtype.is_float() => {
                Known::exactly(dtype, Real::from(integer(value).to_float(dtype).as_f64()))
            }
            Term::Int(value) => Known::exactly(dtype, integer(value)),
            Term::Real(known) => known.cast(dtype),
            Term::Choice(condition, arms) => {
                let [yes, no] = *arms;
                condition.select(yes.of(dtype), no.of(dtype))
            }
        }
    }
}

/// The difference of a value and a mean, by its first part and then by its second; none for other operands.
fn beyond(args: &[Term]) -> Option<Term> {
    Some(match args {
        [Term::Beyond { value, part, .. }, Term::Part(_, rest)] if part.mean == rest.mean && !rest.first => {
            Term::Typed(part.moments.deviation(*value))
        }
        [from, Term::Part(known, part)] if part.first => {
            let value = from.typed()?;
            Term::Beyond { difference: value.less(*known), value, part: part.clone() }
        }
        _ => return None,
    })
}

fn term(operation: Operation, args: Vec<Term>, literal: DType) -> Term {
    if let Some(difference) = beyond(&args).filter(|_| operation == Operation::Sub) {
        return difference;
    }
    let typed = |args: &[Term]| args.iter().find_map(Term::dtype);
    match operation {
        Operation::Cast(to) => {
            let value = args.into_iter().next().expect("an operand");
            Term::Typed(match value {
                Term::Int(value) if to == Bool => Known::truth(value != 0),
                Term::Int(_) => value.of(to),
                Term::Choice(condition, arms) => {
                    let [yes, no] = arms.map(|arm| term(operation, vec![arm], literal).of(to));
                    condition.select(yes, no)
                }
                Term::Real(known) | Term::Typed(known) | Term::Part(known, _) => known.cast(to),
                Term::Beyond { difference, .. } => difference.cast(to),
            })
        }
        Operation::Select => {
            let [condition, yes, no] = <[Term; 3]>::try_from(args).unwrap_or_else(|_| unreachable!("three operands"));
            let condition = condition.of(Bool);
            match (typed(&[yes.clone(), no.clone()]), condition.is_true()) {
                (Some(dtype), _) => Term::Typed(condition.select(yes.of(dtype), no.of(dtype))),
                (None, Some(truth)) => {
                    if truth {
                        yes
                    } else {
                        no
                    }
                }
                (None, None) => Term::Choice(condition, Box::new([yes, no])),
            }
        }
        Operation::And | Operation::Or | Operation::Not => {
            Term::Typed(apply(operation, &args.into_iter().map(|arg| arg.of(Bool)).collect::<Vec<_>>()))
        }
        _ => {
            let choices = args.iter().any(|arg| matches!(arg, Term::Choice(..)));
            match typed(&args) {
                Some(dtype) => {
                    Term::Typed(apply(operation, &args.into_iter().map(|arg| arg.of(dtype)).collect::<Vec<_>>()))
                }
                None if choices => {
                    Term::Typed(apply(operation, &args.into_iter().map(|arg| arg.of(literal)).collect::<Vec<_>>()))
                }
                None => numbers(operation, &args),
            }
        }
    }
}

/// An operation among numbers: exact where 128 bits hold the result of integers, else in f64.
fn numbers(operation: Operation, args: &[Term]) -> Term {
    let ints: Option<Vec<i128>> = args.iter().map(|a| if let Term::Int(v) = a { Some(*v) } else { None }).collect();
    if let Some(exact) = ints.and_then(|ints| exact(operation, &ints)) {
        return exact;
    }
    let args: Vec<Known> = args.iter().map(|arg| arg.clone().of(F64)).collect();
    let value = apply(operation, &args);
    if value.dtype == Bool { Term::Typed(value) } else { Term::Real(value) }
}

fn exact(operation: Operation, args: &[i128]) -> Option<Term> {
    if let Some(holds) = comparison(operation) {
        return Some(Term::Typed(Known::truth(holds(Some(args[0].cmp(&args[1]))))));
    }
    let value = match (operation, args) {
        (Operation::Neg, [a]) => a.checked_neg(),
        (Operation::Abs, [a]) => a.checked_abs(),
        (Operation::Add, [a, b]) => a.checked_add(*b),
        (Operation::Sub, [a, b]) => a.checked_sub(*b),
        (Operation::Mul, [a, b]) => a.checked_mul(*b),
        (Operation::Min, [a, b]) => Some(*a.min(b)),
        (Operation::Max, [a, b]) => Some(*a.max(b)),
        (Operation::Pow, [a, b]) => u32::try_from(*b).ok().and_then(|b| a.checked_pow(b)),
        (Operation::Fma, [a, b, c]) => a.checked_mul(*b).and_then(|p| p.checked_add(*c)),
        (Operation::Floor | Operation::Ceil | Operation::Round | Operation::Trunc, [a]) => Some(*a),
        (Operation::Sign, [a]) => Some(a.signum()),
        (Operation::BitNot, [a]) => Some(-1 - a),
        (Operation::BitAnd, [a, b]) => Some(a & b),
        (Operation::BitOr, [a, b]) => Some(a | b),
        (Operation::BitXor, [a, b]) => Some(a ^ b),
        (Operation::Shl, [a, b]) => Some(a << b),
        (Operation::Shr, [a, b]) => Some(a >> b),
        _ => None,
    };
    value.map(Term::Int)
}

/// The predicate of a comparison on the order of its operands, which is none beside a NaN.
fn comparison(operation: Operation) -> Option<fn(Option<Ordering>) -> bool> {
    Some(match operation {
        Operation::Eq => |order| order == Some(Ordering::Equal),
        Operation::Ne => |order| order != Some(Ordering::Equal),
        Operation::Lt => |order| order == Some(Ordering::Less),
        Operation::Gt => |order| order == Some(Ordering::Greater),
        Operation::Le => |order| matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Operation::Ge => |order| matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        _ => return None,
    })
}

/// An operation on values of one type.
fn apply(operation: Operation, args: &[Known]) -> Known {
    if let Some(holds) = comparison(operation) {
        return args[0].compare(args[1], holds);
    }
    match (operation, args) {
        (Operation::Or, [a, b]) => a.or(*b),
        (Operation::And, [a, b]) => a.and(*b),
        (Operation::Not, [a]) => a.not(),
        (Operation::Add, [a, b]) => a.plus(*b),
        (Operation::Sub, [a, b]) => a.less(*b),
        (Operation::Mul, [a, b]) => a.times(*b),
        (Operation::Div, [a, b]) => a.over(*b),
        (Operation::Neg, [a]) => a.minus(),
        (Operation::Min, [a, b]) => a.min(*b),
        (Operation::Max, [a, b]) => a.max(*b),
        (Operation::Pow, [a, b]) => a.power(*b),
        (Operation::Abs, [a]) => a.abs(),
        (Operation::Sqrt, [a]) => a.root(),
        (Operation::Exp, [a]) => a.exp(),
        (Operation::Log, [a]) => a.ln(),
        (Operation::Fma, [a, b, c]) => a.fused(*b, *c),
        (Operation::BitNot, [a]) => a.bits(*a, |a, _| !a),
        (Operation::BitAnd, [a, b]) => a.bits(*b, |a, b| a & b),
        (Operation::BitOr, [a, b]) => a.bits(*b, |a, b| a | b),
        (Operation::BitXor, [a, b]) => a.bits(*b, |a, b| a ^ b),
        (Operation::Shl, [a, b]) => a.bits(*b, |x, y| x << a.amount(y)),
        (Operation::Shr, [a, b]) => a.bits(*b, |x, y| x >> a.amount(y)),
        (_, [a]) => function(operation, *a),
        _ => unreachable!("{operation:?} of {} operands", args.len()),
    }
}

/// A function of one float, or a rounding of an integer.
fn function(operation: Operation, a: Known) -> Known {
    let number = |value: f64| Known::exactly(F64, Real::from(value)).cast(a.dtype);
    let one = number(1.0);
    match operation {
        Operation::Expm1 => a.exp_less_one(),
        Operation::Log1p => a.ln_of_one_plus(),
        Operation::Tanh => a.tanh(),
        Operation::Erf => a.erf(),
        Operation::Floor => a.rounded_by(Real::floor),
        Operation::Ceil => a.rounded_by(|x| x.minus().floor().minus()),
        Operation::Round => a.rounded_by(Real::nearest_even),
        Operation::Trunc => a.rounded_by(Real::whole),
        Operation::Sign => a.sign(),
        Operation::IsNan => a.is_nan(),
        Operation::IsInf => a.is_infinite(),
        Operation::Rsqrt => one.over(a.root()),
        Operation::Sigmoid => one.over(one.plus(a.minus().exp())),
        Operation::Silu => a.times(function(Operation::Sigmoid, a)),
        Operation::Softplus => a.max(number(0.0)).plus(a.abs().minus().exp().ln_of_one_plus()),
        Operation::Gelu => {
            let inner = number(std::f64::consts::FRAC_1_SQRT_2).times(a);
            number(0.5).times(a).times(one.plus(inner.erf()))
        }
        Operation::GeluTanh => {
            let cube = number(0.044715).times(a).times(a).times(a);
            let inner = number((2.0 / std::f64::consts::PI).sqrt()).times(a.plus(cube));
            number(0.5).times(a).times(one.plus(inner.tanh()))
        }
        _ => unreachable!("{operation:?} of 1 operand"),
    }
}

/// The type of an expression of numbers alone after reducers whose first result has this type.
pub fn literal_after(first: Option<DType>) -> DType {
    first.filter(|&d| d != Bool).unwrap_or(F32)
}
