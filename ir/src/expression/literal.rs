//! Untyped numbers, which take the type of other operands.

use super::arithmetic;
use super::lexer::cut;
use super::node::Operation;
use crate::{DType, Scalar};
use std::fmt;
use std::hash::{Hash, Hasher};

/// A number as written, or the result of an operation among numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Literal {
    Int(i128),
    Real(f64),
}

use Literal::{Int, Real};

impl Literal {
    /// The key of equality and hash: a NaN equals itself, -0 differs from 0.
    fn key(self) -> (bool, i128) {
        match self {
            Int(value) => (false, value),
            Real(value) => (true, i128::from(value.to_bits())),
        }
    }

    pub(crate) fn value(self) -> f64 {
        match self {
            Int(value) => value as f64,
            Real(value) => value,
        }
    }

    pub(crate) fn is_zero(self) -> bool {
        self.value() == 0.0
    }

    /// Reads a number without sign; the error is the message.
    pub(crate) fn parse(text: &str) -> Result<Literal, String> {
        if text.bytes().all(|b| b.is_ascii_digit())
            && let Ok(value) = text.parse()
        {
            return Ok(Int(value));
        }
        match text.parse() {
            Ok(value) if f64::is_finite(value) => Ok(Real(value)),
            Ok(_) => Err(format!("`{}` is beyond the greatest f64; infinity is `inf`", cut(text))),
            Err(_) => Err(format!("`{}` is no number{}", cut(text), meant(text))),
        }
    }

    /// The number in a type; the error says why it does not fit.
    pub(crate) fn of_type(self, dtype: DType) -> Result<Scalar, String> {
        match (self, dtype.int_range()) {
            _ if dtype == DType::Bool => Err(format!("`{self}` is a number, and bool is wanted")),
            (Int(value), Some((low, high))) if value < low || value > high => {
                Err(format!("`{self}` is out of range for {dtype}: {low} to {high}"))
            }
            (Int(value), Some(_)) => Ok(Scalar::int(dtype, value)),
            (Real(_), Some(_)) => Err(format!("`{self}` is no integer, and {dtype} is wanted")),
            (Int(value), None) => self.finite(Scalar::int(dtype, value)),
            (Real(value), None) if value.is_nan() => Ok(Scalar::nan(dtype)),
            (Real(value), None) => self.finite(Scalar::float(dtype, value)),
        }
    }

    fn finite(self, rounded: Scalar) -> Result<Scalar, String> {
        if rounded.as_f64().is_infinite() && self.value().is_finite() {
            return Err(format!("`{self}` is beyond the greatest {}", rounded.dtype()));
        }
        Ok(rounded)
    }

    /// The number converted to a type: as [`of_type`](Literal::of_type), but also a real number to an integer, as
    /// floats are, and any number to a bool.
    pub(crate) fn cast(self, dtype: DType) -> Result<Scalar, String> {
        match self {
            _ if dtype == DType::Bool => Ok(Scalar::bool(!self.is_zero())),
            Real(value) if dtype.is_int() => {
                Ok(arithmetic::constant(Operation::Cast(dtype), vec![Scalar::f64(value).into()]))
            }
            _ => self.of_type(dtype),
        }
    }

    /// The result of an operation on the bits of numbers, which are integers of any size; the error is the message.
    pub(super) fn bitwise(operation: Operation, args: &[Literal]) -> Result<Literal, String> {
        let mut ints = [0; 2];
        for (int, arg) in ints.iter_mut().zip(args) {
            *int = match arg {
                Int(value) => *value,
                Real(_) => return Err(format!("`{arg}` is no integer, and `{}` takes integers", operation.text())),
            };
        }
        let [a, b] = ints;
        let amount = || match u32::try_from(b) {
            Ok(amount) if amount < 128 => Ok(amount),
            _ => Err(format!("the amount `{b}` of a shift of a number is out of range 0 to 127")),
        };
        Ok(Int(match operation {
            Operation::BitNot => !a,
            Operation::BitAnd => a & b,
            Operation::BitOr => a | b,
            Operation::BitXor => a ^ b,
            Operation::Shr => a >> amount()?,
            _ => {
                let by = amount()?;
                let shifted = a << by;
                if shifted >> by != a {
                    return Err(format!("`{a} << {b}` is beyond 128 bits"));
                }
                shifted
            }
        }))
    }

    /// The result of an operation among numbers.
    pub(crate) fn fold(operation: Operation, args: &[Literal]) -> Folded {
        exact(operation, args).unwrap_or_else(|| {
            let args = args.iter().map(|arg| Scalar::f64(arg.value()).into()).collect();
            let result = arithmetic::constant(operation, args);
            match result.dtype() {
                DType::Bool => Folded::Truth(result.bits() != 0),
                _ => Folded::Number(Real(result.as_f64())),
            }
        })
    }
}

/// The words for what a malformed number may mean: a product, as `2x0`, or a name of a library, as `.exp` of `math.exp`.
fn meant(text: &str) -> String {
    let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, name) = text.split_at(at);
    let is_name = name.len() > 1 && !name.contains('.') && !name.to_ascii_lowercase().starts_with('e');
    match number {
        "." if !name.is_empty() => format!("; a function stands without the name of a library: `{}`", cut(name)),
        _ if is_name && number.parse::<f64>().is_ok() => format!("; a product is `{}*{}`", cut(number), cut(name)),
        _ => String::new(),
    }
}

/// The result of constant folding: a number, or the truth of a comparison.
pub(crate) enum Folded {
    Number(Literal),
    Truth(bool),
}

/// Returns the result of an operation among integers where it is exact, else `None`.
fn exact(operation: Operation, args: &[Literal]) -> Option<Folded> {
    let mut ints = args.iter().map(|arg| match arg {
        Int(value) => Some(*value),
        Real(_) => None,
    });
    let a = ints.next()??;
    let (b, c) = (ints.next().unwrap_or(Some(0))?, ints.next().unwrap_or(Some(0))?);
    let value = match operation {
        Operation::Neg => a.checked_neg()?,
        Operation::Abs => a.checked_abs()?,
        Operation::Floor | Operation::Ceil | Operation::Round | Operation::Trunc => a,
        Operation::Sign => a.signum(),
        Operation::Add => a.checked_add(b)?,
        Operation::Sub => a.checked_sub(b)?,
        Operation::Mul => a.checked_mul(b)?,
        Operation::Min => a.min(b),
        Operation::Max => a.max(b),
        Operation::Pow => a.checked_pow(u32::try_from(b).ok()?)?,
        Operation::Fma => a.checked_mul(b)?.checked_add(c)?,
        Operation::Eq => return Some(Folded::Truth(a == b)),
        Operation::Ne => return Some(Folded::Truth(a != b)),
        Operation::Lt => return Some(Folded::Truth(a < b)),
        Operation::Le => return Some(Folded::Truth(a <= b)),
        Operation::Gt => return Some(Folded::Truth(a > b)),
        Operation::Ge => return Some(Folded::Truth(a >= b)),
        _ => return None,
    };
    Some(Folded::Number(Int(value)))
}

impl PartialEq for Literal {
    fn eq(&self, other: &Literal) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Literal {}

impl Hash for Literal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Int(value) => write!(f, "{value}"),
            Real(value) if value.is_nan() => f.write_str("nan"),
            Real(value) => write!(f, "{value:?}"),
        }
    }
}
