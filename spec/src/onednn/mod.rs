//! oneDNN's reduction primitive, translated to a spec.
//!
//! | oneDNN | here |
//! | --- | --- |
//! | algorithm, p, eps | the reducer; norms alone have p and eps, as there |
//! | source and destination | the axes, `keep_dims` and both layouts ([`Spec::from_dims`]) |
//! | an integer destination | `saturate round_half_even`, as far as the types allow the words |
//! | post-ops | one `then` expression over the result, the old destination `d` and the operands `y0`, `y1`, ... |
//!
//! Post-ops are computed in f32, each rounded by itself, and their result is converted to the destination
//! once: to nearest even, and clamped if it is an integer. Before them the result of a float source is in
//! f32 (f64 for f64), the result of an integer source exact, then rounded to f32 once; a mean is divided in f32 for
//! an integer destination and in f64, before that rounding, for a float one; a product that post-ops take to an
//! integer destination is accumulated in f64. oneDNN itself accumulates integers in s32, so results differ if that
//! overflows, or if its x64 code accumulates in f32.
//!
//! NaN in `max`, `min`, `clip` and the like gives NaN; in oneDNN that depends on the implementation.

mod eltwise;

use super::check::MAX_OPERANDS;
use super::dims::{Dims, reduced_axes};
use super::{Rounding, Spec, SpecError};
use cranefold_ir::DType::{self, F32, F64, I8, U8};
use cranefold_ir::expression::{Expression, name};

/// The reduction algorithms, by oneDNN's names after `reduction_`.
const ALGORITHMS: &[&str] =
    &["max", "min", "sum", "mul", "mean", "norm_lp_max", "norm_lp_sum", "norm_lp_power_p_max", "norm_lp_power_p_sum"];

/// The binary post-ops, by oneDNN's names after `binary_`.
const BINARY: &[&str] = &["add", "mul", "max", "min", "div", "sub", "ge", "gt", "le", "lt", "eq", "ne"];

/// A reduction primitive: the arguments of oneDNN's `reduction::primitive_desc`.
///
/// ```
/// use cranefold_spec::Dims;
/// use cranefold_spec::onednn::{PostOp, Primitive};
/// use cranefold_spec::{DType, Layout};
///
/// let blocked = Layout::tag("nChw16c").expect("a tag");
/// let src = Dims::new(DType::I8, &[8, 20, 7, 7]).at(blocked);
/// let dst = Dims::new(DType::U8, &[8, 20, 1, 1]).at(Layout::any());
/// let spec = Primitive::new("reduction_max", src, dst)
///     .post_op(PostOp::sum(2.0))
///     .post_op(PostOp::eltwise("eltwise_relu", 0.0, 0.0))
///     .post_op(PostOp::binary("binary_mul", Dims::new(DType::F32, &[1, 20, 1, 1])))
///     .translate()?;
/// assert_eq!(
///     spec.to_string(),
///     "max i8[8,20,7,7]@aBcd16b, f32[1,20,1,1]:then axes=[2,3] keep_dims \
///      then=\"max(f32(r0) + 2 * f32(u8(d)), 0) * y0\" round_half_even -> u8@aBcd16b"
/// );
/// # Ok::<(), cranefold_spec::SpecError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Primitive<'a> {
    alg: &'a str,
    p: Option<f32>,
    eps: f32,
    src: Dims<'a>,
    dst: Dims<'a>,
    post_ops: Vec<PostOp<'a>>,
}

/// An operation on a result before it is written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum PostOp<'a> {
    /// `r + scale * (d - zero_point)`, d being the old element of the destination.
    Sum {
        /// The factor.
        scale: f32,
        /// The number subtracted from d.
        zero_point: i32,
        /// The type that d is read as, if it is not the destination's: i8 for u8, or u8 for i8.
        dtype: Option<DType>,
    },
    /// A function of the result.
    Eltwise {
        /// oneDNN's name, with `eltwise_` or without.
        alg: &'a str,
        /// Its first parameter.
        alpha: f32,
        /// Its second parameter.
        beta: f32,
    },
    /// An operation on the result and an operand.
    Binary {
        /// oneDNN's name, with `binary_` or without.
        alg: &'a str,
        /// The operand, each of whose dims is the destination's or 1.
        src1: Dims<'a>,
    },
}

impl<'a> PostOp<'a> {
    /// `r + scale * d`, d being the old element of the destination.
    pub fn sum(scale: f32) -> PostOp<'a> {
        PostOp::Sum { scale, zero_point: 0, dtype: None }
    }

    /// A function of the result s, by oneDNN's name, with `eltwise_` or without:
    ///
    /// | name | |
    /// | --- | --- |
    /// | `relu` | s above 0, else `alpha s`; `max(s, 0)` where alpha is 0 |
    /// | `elu` | s above 0, else `alpha (e^s - 1)` |
    /// | `abs square sqrt exp log tanh` | |
    /// | `linear` | `alpha s + beta` |
    /// | `pow` | `alpha s^beta` |
    /// | `clip clip_v2` | `min(max(s, alpha), beta)` |
    /// | `soft_relu` | `log(1 + e^(alpha s)) / alpha` |
    /// | `logistic` | `1 / (1 + e^-s)` |
    /// | `swish` | `s / (1 + e^(-alpha s))` |
    /// | `hardsigmoid` | `min(max(alpha s + beta, 0), 1)` |
    /// | `hardswish` | `s min(max(alpha s + beta, 0), 1)` |
    /// | `mish` | `s tanh(log(1 + e^s))` |
    /// | `gelu_tanh` | `s (1 + tanh(sqrt(2 / pi) (s + 0.044715 s^3))) / 2` |
    /// | `round` | to the nearest integer, ties to even; zeros are +0 |
    ///
    /// `gelu_erf` is refused: expressions have no error function. Forms for training (`relu_use_dst_for_bwd`)
    /// mean the same. Functions with an exponential, but for `exp`, are computed in f64 and rounded to f32 once.
    pub fn eltwise(alg: &'a str, alpha: f32, beta: f32) -> PostOp<'a> {
        PostOp::Eltwise { alg, alpha, beta }
    }

    /// An operation on the result and an operand, by oneDNN's name, with `binary_` or without: `add sub mul div
    /// max min`, or a comparison `ge gt le lt eq ne`, which gives 1 or 0.
    pub fn binary(alg: &'a str, src1: Dims<'a>) -> PostOp<'a> {
        PostOp::Binary { alg, src1 }
    }
}

impl<'a> Primitive<'a> {
    /// A primitive without post-ops. The algorithm is oneDNN's name, with the prefix `dnnl_reduction_`, `reduction_`
    /// or none, as in benchdnn.
    pub fn new(alg: &'a str, src: Dims<'a>, dst: Dims<'a>) -> Primitive<'a> {
        Primitive { alg, p: None, eps: 0.0, src, dst, post_ops: vec![] }
    }

    /// Sets the power of a norm, finite and at least 1; other algorithms ignore it.
    pub fn p(self, p: f32) -> Primitive<'a> {
        Primitive { p: Some(p), ..self }
    }

    /// Sets the epsilon of a norm, finite and 0 by default; other algorithms ignore it.
    pub fn eps(self, eps: f32) -> Primitive<'a> {
        Primitive { eps, ..self }
    }

    /// Adds a post-op after the earlier ones.
    pub fn post_op(mut self, post_op: PostOp<'a>) -> Primitive<'a> {
        self.post_ops.push(post_op);
        self
    }

    /// Translates the primitive to a spec.
    ///
    /// # Errors
    /// If a name is not oneDNN's or not supported, the bounds of a `clip` cross, the type of a sum does not fit the
    /// destination, there are more than 64 post-ops (oneDNN takes 32), a norm is of integers or its p is below 1 or
    /// not finite, or [`Spec::from_dims`] refuses the spec.
    pub fn translate(&self) -> Result<Spec, SpecError> {
        let (src, dst) = (self.src.dtype, self.dst.dtype);
        if self.post_ops.len() > MAX_OPERANDS {
            return Err(SpecError::TooManyParts { given: self.post_ops.len(), limit: MAX_OPERANDS });
        }
        let alg = known("reduction algorithm", self.alg, &["dnnl_reduction_", "reduction_"], ALGORITHMS)?;
        let (axes, count) = reduced_axes(&self.src, &self.dst)?;
        let by_expression = !self.post_ops.is_empty();
        // In expressions, results of integers are integers if the output is one.
        let integral = by_expression && src.is_int() && dst.is_int();
        let own_division = integral && alg == "mean" && count > 0;
        let own_product = integral && alg == "mul";

        let mut builder = Spec::builder(if own_division { "sum" } else { alg });
        if alg.starts_with("norm") {
            builder = self.p.iter().fold(builder, |b, &p| b.param("p", shortest(p)));
            builder = builder.param("eps", shortest(self.eps));
        }
        if own_product {
            builder = builder.map(name("x0").cast(F64));
        }
        builder = builder.input_at(src, &self.src.extents()?, self.src.layout.clone()).axes(axes).keep_dims(true);
        builder = builder.output_parts(Some(dst), Some(self.dst.layout.clone()));
        if dst.is_int() {
            builder = builder.round(Rounding::HalfEven);
            builder = if src.is_int() && !by_expression { builder.saturate() } else { builder };
        }
        if !by_expression {
            return builder.build();
        }

        let operands = self.operands();
        // True if the accumulator, and so floats in expressions, is f64.
        let wide = own_product || src == F64 || operands.iter().any(|src1| src1.dtype == F64);
        let result = match (own_product, own_division) {
            // In a product of integers NaN is infinity times zero, so it becomes 0.
            (true, _) => name("r0").abs().gt(0).select(name("r0"), 0).cast(F32),
            (_, true) => name("r0").cast(F32) / count,
            _ if wide || !src.is_float() => name("r0").cast(F32),
            _ => name("r0"),
        };
        let seen = Seen { wide, integer_result: (src.is_int() && !own_product).then(|| src.is_signed()), dst };
        let (mut value, mut next) = (result, 0);
        for post_op in &self.post_ops {
            value = match post_op {
                PostOp::Sum { scale, zero_point, dtype } => seen.sum(value, *scale, *zero_point, *dtype)?,
                PostOp::Eltwise { alg, alpha, beta } => eltwise::expression(alg, value, *alpha, *beta)?,
                PostOp::Binary { alg, src1 } => {
                    next += 1;
                    binary(alg, value, seen.float(&format!("y{}", next - 1), src1.dtype))?
                }
            };
        }
        for src1 in operands {
            builder = builder.then_input_at(src1.dtype, &src1.extents()?, src1.layout.clone());
        }
        builder.then(value).build()
    }

    /// The operands of binary post-ops.
    fn operands(&self) -> Vec<&Dims<'a>> {
        let mut operands = vec![];
        for post_op in &self.post_ops {
            if let PostOp::Binary { src1, .. } = post_op {
                operands.push(src1);
            }
        }
        operands
    }
}

/// The types of names in the expression.
struct Seen {
    /// True if floats are f64.
    wide: bool,
    /// True if the result is a signed integer; none if it is no integer.
    integer_result: Option<bool>,
    dst: DType,
}

impl Seen {
    /// A named value as an f32.
    fn float(&self, named: &str, dtype: DType) -> Expression {
        let is_f32 = dtype.is_float() && !self.wide;
        if is_f32 { name(named) } else { name(named).cast(F32) }
    }

    fn sum(
        &self,
        value: Expression,
        scale: f32,
        zero_point: i32,
        dtype: Option<DType>,
    ) -> Result<Expression, SpecError> {
        let given = dtype.unwrap_or(self.dst);
        let bytes = |d| matches!(d, I8 | U8);
        if given != self.dst && !(bytes(given) && bytes(self.dst)) {
            return Err(SpecError::SumType { given, destination: self.dst });
        }
        // Beside the result of integers an old integer is read in the result's type, where a negative one is large.
        let is_other = given != self.dst || self.integer_result.is_some_and(|signed| signed != given.is_signed());
        let mut old = match given.is_int() && is_other {
            true => name("d").cast(given).cast(F32),
            false => self.float("d", given),
        };
        if zero_point != 0 {
            old = old - zero_point;
        }
        Ok(value + if scale == 1.0 { old } else { number(scale) * old })
    }
}

fn binary(alg: &str, a: Expression, b: Expression) -> Result<Expression, SpecError> {
    Ok(match known("binary post-op", alg, &["dnnl_binary_", "binary_"], BINARY)? {
        "add" => a + b,
        "sub" => a - b,
        "mul" => a * b,
        "div" => a / b,
        "max" => a.max(b),
        "min" => a.min(b),
        "ge" => a.ge(b).cast(F32),
        "gt" => a.gt(b).cast(F32),
        "le" => a.le(b).cast(F32),
        "lt" => a.lt(b).cast(F32),
        "eq" => a.eq(b).cast(F32),
        _ => a.ne(b).cast(F32),
    })
}

/// Returns the name without its first prefix among these, if it is a known one.
fn known(
    what: &'static str,
    given: &str,
    prefixes: &[&str],
    names: &'static [&'static str],
) -> Result<&'static str, SpecError> {
    let bare = prefixes.iter().find_map(|prefix| given.strip_prefix(prefix)).unwrap_or(given);
    let found = names.iter().find(|name| name.eq_ignore_ascii_case(bare));
    let refused = || SpecError::OneDnnName { what, name: given.chars().take(40).collect(), names };
    found.copied().ok_or_else(refused)
}

/// The number for an operation with an f32, in few digits.
fn number(value: f32) -> Expression {
    literal(value, shortest(value))
}

/// The number for an operation with an f64, exact.
fn wide_number(value: f32) -> Expression {
    literal(value, value.into())
}

/// The value as an integer if it is a small one, else `otherwise`.
fn literal(value: f32, otherwise: f64) -> Expression {
    let small = value.fract() == 0.0 && value.abs() < 1e6 && (value != 0.0 || value.is_sign_positive());
    if small { Expression::from(value as i64) } else { Expression::from(otherwise) }
}

/// The f64 of the fewest digits that rounds to this f32: 0.1 rather than 0.10000000149.
fn shortest(value: f32) -> f64 {
    let short: f64 = value.to_string().parse().unwrap_or(f64::NAN);
    if short as f32 == value { short } else { value.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_exact() {
        for value in [0.1f32, -2.5, 1e-45, f32::MAX, 3.0, -0.0, f32::INFINITY, 16777217.0, 1.0 / 3.0] {
            assert_eq!((shortest(value) as f32).to_bits(), value.to_bits());
            let text = number(value).to_string();
            assert_eq!(text.parse::<Expression>().unwrap(), number(value), "{text}");
        }
        assert_eq!(number(0.1).to_string(), "0.1");
        assert_eq!(number(-3.0).to_string(), "-3");
        assert_eq!(number(-0.0).to_string(), "-0.0");
        assert_eq!(wide_number(0.1).to_string(), "0.10000000149011612");
        assert!(shortest(f32::NAN).is_nan());
    }
}
