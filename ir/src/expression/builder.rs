//! Expressions made in Rust.

use super::Expression;
use super::literal::Literal;
use super::node::{Kind, Node, Operation};
use crate::DType;
use std::ops;

/// The expression that is one name.
///
/// [`Expression::build`] refuses a text that is no name (see [`is_name`](super::is_name)).
///
/// ```
/// use cranefold_ir::expression::name;
///
/// let mean = name("r0") / 6272;
/// assert_eq!((mean.clone() * mean - 0.5).to_string(), "r0 / 6272 * (r0 / 6272) - 0.5");
/// ```
pub fn name(name: impl AsRef<str>) -> Expression {
    leaf(super::parse::name(name.as_ref()).unwrap_or_else(Kind::Invalid))
}

fn leaf(kind: Kind) -> Expression {
    Expression { root: Node::leaf(kind, 0), text: None }
}

fn apply(operation: Operation, args: impl IntoIterator<Item = Expression>) -> Expression {
    let args = args.into_iter().map(|arg| arg.root).collect();
    let root = Node::apply(operation, args, 0).unwrap_or_else(|message| Node::leaf(Kind::Invalid(message), 0));
    Expression { root, text: None }
}

impl Expression {
    /// An operation of these operands.
    ///
    /// [`Expression::build`] refuses a wrong number of operands, and one that nests too deep.
    ///
    /// ```
    /// use cranefold_ir::expression::{Expression, Operation, name};
    ///
    /// assert_eq!(Expression::of(Operation::Add, [name("a"), 1.into()]).to_string(), "a + 1");
    /// ```
    pub fn of(operation: Operation, operands: impl IntoIterator<Item = Expression>) -> Expression {
        let operands: Vec<Expression> = operands.into_iter().collect();
        if operands.len() != operation.arity() {
            let message =
                format!("`{}` takes {} operands, {} given", operation.text(), operation.arity(), operands.len());
            return leaf(Kind::Invalid(message));
        }
        apply(operation, operands)
    }

    /// An integer as it is written, without a type.
    ///
    /// ```
    /// use cranefold_ir::expression::Expression;
    ///
    /// assert_eq!(Expression::number(-3).to_string(), "-3");
    /// ```
    pub fn number(value: i128) -> Expression {
        let magnitude = leaf(Kind::Number(Literal::Int(value.checked_abs().unwrap_or(i128::MAX))));
        if value < 0 { -magnitude } else { magnitude }
    }
}

/// Numbers are written as they are; a negative one is the negation of its magnitude, as in text.
macro_rules! from_integers {
    ($($int:ty)*) => {
        $(impl From<$int> for Expression {
            fn from(value: $int) -> Expression {
                let value = i128::from(value);
                let magnitude = leaf(Kind::Number(Literal::Int(value.abs())));
                if value < 0 { -magnitude } else { magnitude }
            }
        })*
    };
}

from_integers!(i8 i16 i32 i64 u8 u16 u32 u64);

/// A real number, even where it is whole: beside an integer operand it is refused.
impl From<f64> for Expression {
    fn from(value: f64) -> Expression {
        let magnitude = leaf(Kind::Number(Literal::Real(if value.is_nan() { f64::NAN } else { value.abs() })));
        if value.is_sign_negative() && !value.is_nan() { -magnitude } else { magnitude }
    }
}

/// Operators between expressions, and between an expression and a number on either side.
macro_rules! operators {
    ($($op:ident $method:ident;)*) => {
        $(
            impl<R: Into<Expression>> ops::$op<R> for Expression {
                type Output = Expression;

                fn $method(self, other: R) -> Expression {
                    apply(Operation::$op, [self, other.into()])
                }
            }
            operators!(numbers $op $method i8 i16 i32 i64 u8 u16 u32 u64 f64);
        )*
    };
    (numbers $op:ident $method:ident $($number:ty)*) => {
        $(impl ops::$op<Expression> for $number {
            type Output = Expression;

            fn $method(self, other: Expression) -> Expression {
                apply(Operation::$op, [Expression::from(self), other])
            }
        })*
    };
}

operators! {
    Add add;
    Sub sub;
    Mul mul;
    Div div;
    BitAnd bitand;
    BitOr bitor;
    BitXor bitxor;
    Shl shl;
    Shr shr;
}

impl ops::Neg for Expression {
    type Output = Expression;

    fn neg(self) -> Expression {
        apply(Operation::Neg, [self])
    }
}

impl ops::Not for Expression {
    type Output = Expression;

    fn not(self) -> Expression {
        apply(Operation::Not, [self])
    }
}

/// Makes a method for each function of the text, of its name.
macro_rules! methods {
    (unary { $($unary:ident $uop:ident $utext:literal;)* } binary { $($binary:ident $bop:ident $btext:literal;)* }) => {
        #[allow(clippy::should_implement_trait, reason = "a comparison makes an expression, not a bool")]
        impl Expression {
            $(
                #[doc = concat!("`", $utext, "`")]
                #[doc = concat!("\n```\nuse cranefold_ir::expression::name;\n\nassert_eq!(name(\"a\").", stringify!($unary),
                    "().to_string(), \"", $utext, "\");\n```")]
                pub fn $unary(self) -> Expression {
                    apply(Operation::$uop, [self])
                }
            )*
            $(
                #[doc = concat!("`", $btext, "`")]
                #[doc = concat!("\n```\nuse cranefold_ir::expression::name;\n\nassert_eq!(name(\"a\").", stringify!($binary),
                    "(name(\"b\")).to_string(), \"", $btext, "\");\n```")]
                pub fn $binary(self, other: impl Into<Expression>) -> Expression {
                    apply(Operation::$bop, [self, other.into()])
                }
            )*
        }
    };
}

methods! {
    unary {
        sqrt Sqrt "sqrt(a)";
        exp Exp "exp(a)";
        log Log "log(a)";
        abs Abs "abs(a)";
        expm1 Expm1 "expm1(a)";
        log1p Log1p "log1p(a)";
        tanh Tanh "tanh(a)";
        erf Erf "erf(a)";
        floor Floor "floor(a)";
        ceil Ceil "ceil(a)";
        round Round "round(a)";
        trunc Trunc "trunc(a)";
        sign Sign "sign(a)";
        is_nan IsNan "is_nan(a)";
        is_inf IsInf "is_inf(a)";
        rsqrt Rsqrt "rsqrt(a)";
        sigmoid Sigmoid "sigmoid(a)";
        silu Silu "silu(a)";
        softplus Softplus "softplus(a)";
        gelu Gelu "gelu(a)";
        gelu_tanh GeluTanh "gelu_tanh(a)";
        bit_not BitNot "~a";
    }
    binary {
        min Min "min(a, b)";
        max Max "max(a, b)";
        pow Pow "pow(a, b)";
        eq Eq "a == b";
        ne Ne "a != b";
        lt Lt "a < b";
        le Le "a <= b";
        gt Gt "a > b";
        ge Ge "a >= b";
        and And "a and b";
        or Or "a or b";
    }
}

impl Expression {
    /// `fma(self, b, c)`: self * b + c, rounded once.
    ///
    /// ```
    /// use cranefold_ir::expression::name;
    ///
    /// assert_eq!(name("a").fma(2, name("c")).to_string(), "fma(a, 2, c)");
    /// ```
    pub fn fma(self, b: impl Into<Expression>, c: impl Into<Expression>) -> Expression {
        apply(Operation::Fma, [self, b.into(), c.into()])
    }

    /// `select(self, yes, no)`: yes where self is true, else no.
    ///
    /// ```
    /// use cranefold_ir::expression::name;
    ///
    /// assert_eq!(name("a").gt(0).select(name("a"), 0.5).to_string(), "select(a > 0, a, 0.5)");
    /// ```
    pub fn select(self, yes: impl Into<Expression>, no: impl Into<Expression>) -> Expression {
        apply(Operation::Select, [self, yes.into(), no.into()])
    }

    /// The conversion to `dtype`.
    ///
    /// ```
    /// use cranefold_ir::{DType, expression::name};
    ///
    /// assert_eq!(name("a").cast(DType::F32).to_string(), "f32(a)");
    /// ```
    pub fn cast(self, dtype: DType) -> Expression {
        apply(Operation::Cast(dtype), [self])
    }
}
