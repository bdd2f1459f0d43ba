//! Expressions: the small language of the functions that a reduction applies to its elements.
//!
//! An [`Expression`] is read from text or built with Rust's operators, prints, and is typed into
//! nest expressions of a definition by [`Expression::build`]. The caller gives its names their values.
//!
//! ```
//! use cranefold_ir::expression::{Expression, name};
//! use cranefold_ir::{DType, Def, Scalar};
//!
//! let expression: Expression = "sqrt(r0 / 6272)".parse()?;
//! assert_eq!(expression, (name("r0") / 6272).sqrt());
//!
//! let mut typed = Ok(());
//! let def = Def::build("then", &[DType::F32], |lets, args| {
//!     match expression.build(lets, &[("r0", args[0].clone())], DType::F32) {
//!         Ok(result) => vec![result],
//!         Err(error) => {
//!             typed = Err(error);
//!             vec![]
//!         }
//!     }
//! });
//! typed?;
//! assert_eq!(def.eval(&[Scalar::f32(25088.0)]), [Scalar::f32(2.0)]);
//! # Ok::<(), cranefold_ir::expression::ExpressionError>(())
//! ```
//!
//! # Text
//!
//! White space only separates. Operators are listed from loosest to tightest; each joins expressions of the lines
//! below:
//!
//! ```text
//! list       = expression ("," expression)*
//! expression = expression "or" expression
//!            | expression "and" expression
//!            | "not" expression
//!            | expression ("==" | "!=" | "<" | "<=" | ">" | ">=") expression   does not chain
//!            | expression "|" expression                                        from the left
//!            | expression "^" expression                                        from the left
//!            | expression "&" expression                                        from the left
//!            | expression ("<<" | ">>") expression                             from the left
//!            | expression ("+" | "-") expression                               from the left
//!            | expression ("*" | "/") expression                               from the left
//!            | ("-" | "~") expression
//!            | number | name | "(" expression ")"
//!            | function "(" list ")"
//!            | dtype "(" expression ")"                                        a conversion
//! function   = "min" | "max" | "pow"                                           of two
//!            | "abs" | "sqrt" | "rsqrt" | "exp" | "log" | "expm1" | "log1p"    of one
//!            | "tanh" | "erf" | "floor" | "ceil" | "round" | "trunc" | "sign"  of one
//!            | "is_nan" | "is_inf" | "sigmoid" | "silu" | "softplus"           of one
//!            | "gelu" | "gelu_tanh"                                            of one
//!            | "fma" | "select"                                                of three
//! number     = digits | digits? "." digits? exponent? | digits exponent | "inf" | "nan"
//! exponent   = ("e" | "E") ("+" | "-")? digits
//! name       = [a-zA-Z_][a-zA-Z0-9_]*, but no word above and no dtype
//! ```
//!
//! A text has at most [`MAX_TEXT`] bytes; operations, and parentheses, nest at most [`MAX_DEPTH`]
//! deep, where `a + b + c` nests two deep.
//!
//! # Types
//!
//! The operands of an operation have one type; nothing is converted unless it is written.
//!
//! | operation | on | meaning |
//! | --- | --- | --- |
//! | `+ - *`, unary `-` | numbers | floats: IEEE 754, rounded once; integers: modulo 2^bits |
//! | `/` | floats | IEEE 754, rounded once |
//! | `/` | integers | towards zero; by zero 0, the least value by -1 itself; by a constant zero refused |
//! | `min max` | numbers | floats: IEEE 754-2019 minimum and maximum: NaN if either is NaN, -0 below +0 |
//! | `abs` | numbers | of the least integer itself |
//! | `sqrt` | f32 f64 | IEEE 754, rounded once |
//! | `exp log` | f32 f64 | [`math::exp`](crate::math::exp), [`math::log`](crate::math::log) |
//! | `expm1 log1p` | f32 f64 | e^a - 1, log(1 + a): [`math::expm1`](crate::math::expm1), [`math::log1p`](crate::math::log1p) |
//! | `tanh erf` | f32 f64 | [`math::tanh`](crate::math::tanh), [`math::erf`](crate::math::erf) |
//! | `floor ceil round trunc` | numbers | to an integer value: down, up, to nearest with ties to even, towards zero; a zero has the sign of a; integers: a |
//! | `sign` | numbers | -1 below zero, 1 above, else a: a zero or NaN |
//! | `is_nan is_inf` | floats | as bool |
//! | `pow(a, b)` | f32 f64 | IEEE 754's corner cases; a constant b of 0 to 8 multiplies as [`math::pow_int`](crate::math::pow_int), -1 divides, else [`math::pow`](crate::math::pow) |
//! | `pow(a, b)` | integers | modulo 2^bits; b is a constant, at least 0 |
//! | `fma(a, b, c)` | f32 f64 | a * b + c, rounded once |
//! | `select(c, a, b)` | bool, any, any | a where c is true, else b; both are evaluated |
//! | `== !=` | all | as numbers: NaN is unequal to all, -0 equals +0 |
//! | `< <= > >=` | numbers | |
//! | `and or not` | bool | |
//! | `& \| ^ ~` | integers, bool | bit by bit |
//! | `<< >>` | integers | the amount is of the same type, and counts modulo its bits; `>>` keeps the sign of a signed integer |
//! | `f32(a)` and other dtypes | any | floats to nearest even, once; integers modulo 2^bits; float to integer towards zero, clamped, NaN to 0; bool to 0 or 1; to bool `a != 0` |
//!
//! f16 and bf16 are types of memory: conversion, `select`, `is_nan` and `is_inf` are their only operations.
//!
//! These functions of f32 and f64 stand for an expression, whose operations they are, bit for bit:
//!
//! | function | expression |
//! | --- | --- |
//! | `rsqrt(x)` | `1 / sqrt(x)` |
//! | `sigmoid(x)` | `1 / (1 + exp(-x))` |
//! | `silu(x)` | `x * sigmoid(x)` |
//! | `softplus(x)` | `max(x, 0) + log1p(exp(-abs(x)))` |
//! | `gelu(x)` | `0.5 * x * (1 + erf(0.7071067811865476 * x))` |
//! | `gelu_tanh(x)` | `0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))` |
//!
//! So `sigmoid` is 0 below -88.8 in f32 (-709.8 in f64), where e^x is smaller than the least normal number, and `silu`
//! and both `gelu` are NaN at -inf, where they multiply it by 0.
//!
//! # Numbers
//!
//! A number has no type. It takes the type of the other operands: an integer type takes a number written
//! without point and exponent in its range; a float type takes the nearest value (of the nearest f64), but
//! no finite number that it would make infinite. Operations among numbers are done first:
//! `+ - * -a min max abs sign fma`, rounding and `pow` of integers exactly, where 128 bits hold the result; those on
//! bits of integers of 128 bits, and of nothing else (`~0` is -1, which no unsigned type takes); others in f64, so that `1/3` is 0.333... beside any type. (`-0` is the integer 0; `-0.0` is the float.) `select`
//! between two numbers is itself a number beside an operand with a type. A result that is still a number
//! takes a type that the caller gives.

mod arithmetic;
mod builder;
pub(crate) mod error;
mod fold;
pub(crate) mod lexer;
pub(crate) mod literal;
pub(crate) mod node;
pub(crate) mod parse;
mod power;
pub(crate) mod print;
mod rename;
mod sugar;
pub(crate) mod typing;

pub use builder::name;
pub use error::ExpressionError;
pub use fold::Folded;
pub use node::Operation;

use crate::{DType, Expr, Lets};
use error::Fault;
use node::{Kind, Node};
use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

/// The most bytes of a text.
pub const MAX_TEXT: usize = 10_000;

/// The greatest depth of operations and of parentheses.
///
/// It keeps every recursive walk over an expression within a small stack.
pub const MAX_DEPTH: usize = 100;

/// An expression of a user: over names, without types; the [module](self) defines its text and meaning.
///
/// Expressions of the same tree are equal, parsed or built and however they were spaced.
///
/// ```
/// use cranefold_ir::expression::{Expression, name};
///
/// let expression: Expression = "(x0*x0) + eps".parse()?;
/// assert_eq!(expression, name("x0") * name("x0") + name("eps"));
/// assert_eq!(expression.to_string(), "x0 * x0 + eps");
/// # Ok::<(), cranefold_ir::expression::ExpressionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Expression {
    pub(crate) root: Node,
    /// The text that the nodes' places refer to; none where the builder made the expression.
    pub(crate) text: Option<Arc<str>>,
}

impl PartialEq for Expression {
    fn eq(&self, other: &Expression) -> bool {
        self.root == other.root
    }
}

impl Eq for Expression {}

impl Hash for Expression {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.root.hash(state);
    }
}

/// # Errors
/// If the text departs from the grammar of the [module](self).
impl FromStr for Expression {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Expression, ExpressionError> {
        within_limit(text)?;
        let root = parse::one(text).map_err(|fault| fault.in_text(text))?;
        Expression { root, text: Some(text.into()) }.printable()
    }
}

impl Expression {
    /// One or more expressions, separated by commas. Their errors point into the whole text.
    ///
    /// ```
    /// use cranefold_ir::expression::Expression;
    ///
    /// let list = Expression::list("x0, max(x0, 0) + 1")?;
    /// assert_eq!(list.len(), 2);
    /// assert_eq!(list[1].to_string(), "max(x0, 0) + 1");
    /// # Ok::<(), cranefold_ir::expression::ExpressionError>(())
    /// ```
    ///
    /// # Errors
    /// If the text departs from the grammar of the [module](self).
    pub fn list(text: &str) -> Result<Vec<Expression>, ExpressionError> {
        within_limit(text)?;
        let roots = parse::list(text).map_err(|fault| fault.in_text(text))?;
        let text: Arc<str> = text.into();
        roots.into_iter().map(|root| Expression { root, text: Some(text.clone()) }.printable()).collect()
    }

    /// Types the expression and builds it as nest expressions: binds values in `lets` and returns the result.
    ///
    /// `names` are the values of names in the expression; `literal` is the type of a result of numbers
    /// alone. Nothing is evaluated twice: an operand that is used twice is bound.
    ///
    /// ```
    /// use cranefold_ir::{DType, Def, expression::Expression};
    ///
    /// let expression: Expression = "x0 * z1".parse()?;
    /// Def::build("map", &[DType::F32], |lets, args| {
    ///     let error = expression.build(lets, &[("x0", args[0].clone())], DType::F32).unwrap_err();
    ///     assert_eq!(error.to_string(), "unknown name `z1`; the names here are x0\n  x0 * z1\n       ^");
    ///     vec![]
    /// });
    /// # Ok::<(), cranefold_ir::expression::ExpressionError>(())
    /// ```
    ///
    /// # Errors
    /// If a name is unknown or the expression breaks a rule of the [module](self). Values bound before
    /// the error stay in `lets`. The error's place is in the expression's own text, else in the printed one.
    pub fn build(
        &self,
        lets: &mut Lets,
        names: &[(impl AsRef<str>, Expr)],
        literal: DType,
    ) -> Result<Expr, ExpressionError> {
        let placed = self.placed()?;
        let names = names.iter().map(|(name, value)| (name.as_ref(), value.clone())).collect();
        typing::build(&placed.root, lets, names, literal).map_err(|fault| placed.error(fault))
    }

    /// The names used, in the order of the text, and the column of the first use of each.
    ///
    /// ```
    /// use cranefold_ir::expression::Expression;
    ///
    /// let expression: Expression = "x1 * (x0 + x1)".parse()?;
    /// assert_eq!(expression.names(), [("x1".to_string(), 1), ("x0".to_string(), 7)]);
    /// # Ok::<(), cranefold_ir::expression::ExpressionError>(())
    /// ```
    pub fn names(&self) -> Vec<(String, usize)> {
        // An expression without a valid text has the columns of its errors.
        let placed = self.placed().unwrap_or(Cow::Borrowed(self));
        let mut names: Vec<(String, usize)> = Vec::new();
        placed.root.visit(&mut |node| {
            if let Kind::Name(name) = &node.kind
                && !names.iter().any(|(known, _)| known == name)
            {
                names.push((name.clone(), placed.error(Fault::new(node.at, "")).column));
            }
        });
        names
    }

    /// The message of the first call of the builder that no text can express.
    pub fn invalid(&self) -> Option<&str> {
        self.root.invalid()
    }

    /// Calls `f` on each name and its place in bytes, from left to right, as often as it stands there.
    pub(crate) fn each_name<'a>(&'a self, f: &mut impl FnMut(&'a str, usize)) {
        self.root.visit_names(f);
    }

    /// The names used, as often as they stand there, in the order of the text.
    ///
    /// ```
    /// use cranefold_ir::expression::Expression;
    ///
    /// let expression: Expression = "x1 * (x0 + x1)".parse()?;
    /// assert_eq!(expression.used(), ["x1", "x0", "x1"]);
    /// # Ok::<(), cranefold_ir::expression::ExpressionError>(())
    /// ```
    pub fn used(&self) -> Vec<&str> {
        let mut used = vec![];
        self.root.visit_names(&mut |name, _| used.push(name));
        used
    }

    /// Returns true if the expression uses this name.
    ///
    /// ```
    /// assert!(cranefold_ir::expression::name("d").sqrt().uses("d"));
    /// ```
    pub fn uses(&self, name: &str) -> bool {
        let mut found = false;
        self.root.visit(&mut |node| found |= matches!(&node.kind, Kind::Name(used) if used == name));
        found
    }

    /// A caller's own error at the first use of a name; at the beginning if it is not used.
    ///
    /// ```
    /// use cranefold_ir::expression::Expression;
    ///
    /// let expression: Expression = "x0 * x1".parse()?;
    /// let error = expression.error_at_name("x1", "x1 does not broadcast to x0");
    /// assert_eq!(error.to_string(), "x1 does not broadcast to x0\n  x0 * x1\n       ^");
    /// # Ok::<(), cranefold_ir::expression::ExpressionError>(())
    /// ```
    pub fn error_at_name(&self, name: &str, message: impl Into<String>) -> ExpressionError {
        let column = self.names().iter().find(|(used, _)| used == name).map_or(1, |(_, column)| *column);
        self.error_at(column, message)
    }

    /// A caller's own error at a column, in characters counted from 1.
    ///
    /// ```
    /// use cranefold_ir::expression::name;
    ///
    /// let error = name("x0").gt(name("x1")).error_at(1, "a sum takes no bool");
    /// assert_eq!(error.to_string(), "a sum takes no bool\n  x0 > x1\n  ^");
    /// ```
    pub fn error_at(&self, column: usize, message: impl Into<String>) -> ExpressionError {
        let text = self.text.as_deref().map_or_else(|| self.to_string(), str::to_string);
        ExpressionError { text, column, message: message.into() }
    }

    /// Returns the expression if its printed text has at most [`MAX_TEXT`] bytes.
    fn printable(self) -> Result<Expression, ExpressionError> {
        let given = self.to_string().len();
        match given > MAX_TEXT {
            true => {
                Err(self.error_at(1, format!("the expression prints as {given} bytes, and the limit is {MAX_TEXT}")))
            }
            false => Ok(self),
        }
    }

    /// The expression with places in a text: its own, else the printed one.
    fn placed(&self) -> Result<Cow<'_, Expression>, ExpressionError> {
        if self.text.is_some() {
            return Ok(Cow::Borrowed(self));
        }
        let text = self.to_string();
        if let Some(message) = self.root.invalid() {
            let at = text.find(&print::invalid(message)).unwrap_or(0);
            return Err(Fault::new(at, message).in_text(&text));
        }
        text.parse().map(Cow::Owned)
    }

    fn error(&self, fault: Fault) -> ExpressionError {
        fault.in_text(self.text.as_deref().unwrap_or_default())
    }
}

/// Refuses a text longer than [`MAX_TEXT`] bytes.
fn within_limit(text: &str) -> Result<(), ExpressionError> {
    match text.len() > MAX_TEXT {
        true => {
            Err(Fault::new(0, format!("the text has {} bytes, and the limit is {MAX_TEXT}", text.len())).in_text(text))
        }
        false => Ok(()),
    }
}

/// Returns true if the text may name a value in an expression: a word without another meaning in the language.
///
/// ```
/// use cranefold_ir::expression::is_name;
///
/// assert!(is_name("x0") && is_name("eps_2"));
/// assert!(!is_name("2x") && !is_name("min") && !is_name("f32") && !is_name("not"));
/// ```
pub fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !node::is_reserved(text)
}
