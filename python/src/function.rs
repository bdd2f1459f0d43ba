//! The functions as regions: the text of each, by the element types of a call.
//!
//! | name | value |
//! | --- | --- |
//! | `T` | the element type of the array |
//! | `R` | the element type of the result: asked for, or by the rules of the array API |
//! | `W` | the accumulator of floats: f64 if `T` or `R` is f64, else f32 |
//! | `x` | the element, converted to `R` where the caller asked for it, then to `W` |
//! | `mask` | true for elements that take part: those of `where=`, and no NaN in the variants `nan*` |

use crate::dtype::name;
use cranefold::DType;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

macro_rules! functions {
    ($($variant:ident $name:literal,)*) => {
        /// A function.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Function { $($variant,)* }

        impl Function {
            /// All functions, each at its number.
            pub const ALL: &[Function] = &[$(Function::$variant,)*];

            /// The name, as the caller knows it.
            pub fn name(self) -> &'static str {
                match self { $(Function::$variant => $name,)* }
            }
        }
    };
}

functions! {
    Sum "sum", Prod "prod", Max "max", Min "min", Mean "mean", Var "var", Std "std",
    ArgMax "argmax", ArgMin "argmin", Any "any", All "all", CountNonzero "count_nonzero",
    Norm "vector_norm", Ptp "ptp", Median "median", Quantile "quantile", LogSumExp "logsumexp", Average "average",
    Softmax "softmax", LogSoftmax "log_softmax", LayerNorm "layer_norm", RmsNorm "rms_norm", Normalize "normalize",
}

impl Function {
    /// The caller's name of the parameter.
    pub fn parameter(self) -> &'static str {
        use Function::*;
        match self {
            Var | Std => "ddof",
            Quantile => "q",
            Norm => "ord",
            _ => "eps",
        }
    }

    /// The caller's name of the first further array.
    pub fn weight(self) -> &'static str {
        if self == Function::Average { "weights" } else { "weight" }
    }

    /// Returns true if the function writes an element for each of the array.
    pub fn writes_elements(self) -> bool {
        use Function::*;
        matches!(self, Softmax | LogSoftmax | LayerNorm | RmsNorm | Normalize)
    }

    /// Returns true if there is no value of nothing.
    pub fn needs_elements(self) -> bool {
        use Function::*;
        matches!(self, Max | Min | ArgMax | ArgMin | Ptp)
    }

    /// Returns true if the result has the element type that the caller asks for.
    pub fn takes_dtype(self) -> bool {
        use Function::*;
        matches!(self, Sum | Prod | Mean | Var | Std)
    }
}

/// A call, as far as its text depends on it.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub function: Function,
    /// True for the variant that leaves NaN out.
    pub skips_nan: bool,
    pub dtype: DType,
    /// The element type asked for.
    pub result: Option<DType>,
    pub has_mask: bool,
    pub has_initial: bool,
    /// `ddof`, `q`, `ord` or `eps`.
    pub parameter: f64,
    /// `ord` of `normalize`.
    pub second: f64,
    /// The element types of weight and bias.
    pub others: [Option<DType>; 2],
    /// The number of elements of a slice.
    pub count: i64,
    /// True for positions that are right also where the greatest element is -inf, or the least inf, and a NaN is before it.
    pub finds_infinities: bool,
}

/// The text of a call's body, and what stands before it.
#[derive(Clone, Debug)]
pub struct Text {
    /// Definitions and outputs.
    pub definitions: String,
    /// Each output, with its element type.
    pub outputs: Vec<(String, DType)>,
    /// True if floats accumulate in f64 though no input is one.
    pub in_f64: bool,
    /// The element type of the scalar `init`, if there is one.
    pub initial: Option<DType>,
    /// The op whose spec says the same, if its code is faster than that of the region.
    pub row: Option<&'static str>,
    /// True if the second output is for us alone: it says which slices have no result.
    pub tells_nothing: bool,
}

/// Returns true for u8, u16, u32 and u64.
fn is_unsigned(dtype: DType) -> bool {
    matches!(dtype, DType::U8 | DType::U16 | DType::U32 | DType::U64)
}

/// The type that holds both of two types of floats; of integers f64 stands for it.
fn wider(one: DType, other: DType) -> DType {
    let float = |dtype: DType| if dtype.is_float() { dtype } else { DType::F64 };
    let (one, other) = (float(one), float(other));
    match (one, other) {
        (one, other) if one == other => one,
        (one, other) if one.bytes() == other.bytes() => DType::F32,
        (one, other) => {
            if one.bytes() > other.bytes() {
                one
            } else {
                other
            }
        }
    }
}

impl Asked {
    /// The element type of the result.
    fn result(&self) -> PyResult<DType> {
        use Function::*;
        let float = if self.dtype.is_float() { self.dtype } else { DType::F64 };
        let natural = match self.function {
            Sum | Prod if self.dtype.is_float() => self.dtype,
            Sum | Prod if is_unsigned(self.dtype) => DType::U64,
            Sum | Prod | ArgMax | ArgMin | CountNonzero => DType::I64,
            Max | Min | Ptp => self.dtype,
            Any | All => DType::Bool,
            Average => self.others[0].map_or(float, |weight| wider(self.dtype, weight)),
            _ => float,
        };
        match self.result {
            None => Ok(natural),
            Some(result) if self.function.takes_dtype() => {
                let fits = match self.function {
                    Sum | Prod => result != DType::Bool,
                    _ => result.is_float(),
                };
                let kinds = if matches!(self.function, Sum | Prod) { "a number" } else { "a float" };
                match fits {
                    true => Ok(result),
                    false => Err(PyTypeError::new_err(format!(
                        "dtype={} is refused for {}: the result is {kinds}",
                        name(result),
                        self.function.name()
                    ))),
                }
            }
            Some(_) => Err(PyTypeError::new_err(format!("{} takes no dtype", self.function.name()))),
        }
    }

    /// The text of the call.
    ///
    /// # Errors
    /// `TypeError` for element types that the function refuses, `ValueError` for parameters out of range.
    pub fn text(&self) -> PyResult<Text> {
        use Function::*;
        let (dtype, result) = (self.dtype, self.result()?);
        let is_float = dtype.is_float();
        // One operand of f64 makes f64 of the accumulators of all.
        let has_f64 = dtype == DType::F64 || result == DType::F64 || self.others.contains(&Some(DType::F64));
        let wide = if has_f64 { DType::F64 } else { DType::F32 };
        self.check_parameters(wide)?;
        let skips_nan = self.skips_nan && is_float;
        if dtype == DType::Bool && matches!(self.function, Ptp) {
            return Err(PyTypeError::new_err("ptp of bool is refused: truth values are not subtracted"));
        }
        // Positions, extremes and truth values keep the type of the element.
        let x = match self.function {
            Max | Min | ArgMax | ArgMin | Ptp | Any | All | CountNonzero => "x0".into(),
            Sum | Prod if result.is_float() => self.element(result, wide),
            Sum | Prod if is_float && is_unsigned(result) => format!("u64({})", self.narrowed(result, DType::U64)),
            Sum | Prod if is_float => format!("i64({})", self.narrowed(result, DType::I64)),
            Sum | Prod if dtype == DType::Bool => "i64(x0)".into(),
            Sum | Prod => "x0".into(),
            _ => self.element(result, wide),
        };
        // An expression of floats has the type W; other results have types of their own.
        let out = |value: &str| match result.is_float() && result == wide {
            true => value.to_string(),
            false => format!("{result}({value})"),
        };
        let mask = match (self.has_mask, skips_nan) {
            (false, false) => None,
            (true, false) => Some("x1"),
            (false, true) => Some("not is_nan(x0)"),
            (true, true) => Some("x1 and not is_nan(x0)"),
        };
        let masked = |value: &str, fill: &str| match mask {
            None => value.to_string(),
            Some(mask) => format!("select({mask}, {value}, {fill})"),
        };
        let parameter = format!("{:?}", self.parameter);
        let mut text = Text {
            definitions: String::new(),
            outputs: vec![],
            in_f64: wide == DType::F64 && dtype != DType::F64 && (result.is_float() || is_float),
            initial: None,
            row: None,
            tells_nothing: false,
        };
        let value = match self.function {
            Sum | Prod => {
                let (op, fill, sign) = if self.function == Sum { ("sum", "0", "+") } else { ("prod", "1", "*") };
                let value = format!("{op}({})", masked(&x, fill));
                match (self.has_initial, result.is_float()) {
                    (false, _) => out(&value),
                    (true, true) => {
                        text.initial = Some(wide);
                        out(&format!("({value} {sign} init)"))
                    }
                    (true, false) => {
                        let total = if is_unsigned(result) { DType::U64 } else { DType::I64 };
                        text.initial = Some(total);
                        out(&format!("({total}({value}) {sign} init)"))
                    }
                }
            }
            Max | Min => {
                let (op, worst) = if self.function == Max { ("max", "-inf") } else { ("min", "inf") };
                if self.has_initial {
                    text.initial = Some(if is_float { wide } else { dtype });
                }
                // In a region integers of 8 and 16 bits are i32 before they are compared.
                if mask.is_none() && !self.has_initial && !is_float && dtype.bytes() <= 2 {
                    text.row = Some(op);
                }
                let value = match (mask, self.has_initial) {
                    (None, false) => format!("{op}(x0)"),
                    (None, true) => format!("{op}({op}(x0), init)"),
                    // Where all elements are left out, `init` is what is left.
                    (Some(_), true) if dtype == DType::Bool => {
                        let join = if self.function == Max { "or" } else { "and" };
                        format!("{op}({}) {join} init", masked("x0", "init"))
                    }
                    (Some(_), true) => format!("{op}({op}({}), init)", masked("x0", "init")),
                    (Some(mask), false) if skips_nan && !self.has_mask => {
                        format!("select(any({mask}), {op}({}), nan)", masked("x0", worst))
                    }
                    (Some(_), false) => {
                        return Err(PyValueError::new_err(format!(
                            "{} with where= needs initial=: the mask may select nothing, which has no {op}imum",
                            self.function.name()
                        )));
                    }
                };
                let value = match (mask, self.has_initial) {
                    (None, true) if dtype == DType::Bool => {
                        format!("{op}(x0) {} init", if self.function == Max { "or" } else { "and" })
                    }
                    _ => value,
                };
                if dtype == DType::Bool || result == wide { value } else { format!("{result}({value})") }
            }
            Mean => match mask {
                None => out(&format!("mean({x})")),
                Some(mask) => out(&format!("sum({}) / {wide}(sum(i64({mask})))", masked(&x, "0"))),
            },
            Var | Std => {
                let op = if self.function == Var { "var" } else { "std" };
                match mask {
                    None => out(&format!("{op}({x}, ddof={parameter})")),
                    Some(mask) => {
                        text.definitions = self.masked_moments(mask, &x, wide);
                        let value = format!("m2 / max(count - {parameter}, 0)");
                        out(&if op == "std" { format!("sqrt({value})") } else { value })
                    }
                }
            }
            ArgMax | ArgMin => {
                let (op, best, worst) =
                    if self.function == ArgMax { ("argmax", "max", "-inf") } else { ("argmin", "min", "inf") };
                match mask {
                    None => format!("{op}(x0)"),
                    Some(mask) if !self.finds_infinities => format!("{op}(select({mask}, x0, {worst}))"),
                    Some(mask) => {
                        text.definitions = format!("best = {best}(select({mask}, x0, {worst})); ");
                        text.outputs = vec![("argmax(x0 == best)".into(), DType::I64)];
                        text.outputs.push(("all(is_nan(x0))".into(), DType::Bool));
                        text.tells_nothing = true;
                        return Ok(text);
                    }
                }
            }
            Any | All => {
                let value = if dtype == DType::Bool { "x0" } else { "(x0 != 0)" };
                match (self.function, mask) {
                    (Any, None) => format!("any({value})"),
                    (Any, Some(mask)) => format!("any({mask} and {value})"),
                    (_, None) => format!("all({value})"),
                    (_, Some(mask)) => format!("all(not {mask} or {value})"),
                }
            }
            CountNonzero => "count_nonzero(x0)".into(),
            Norm => out(&norm(&x, self.parameter, wide)),
            Ptp if is_float => out("ptp(x0)"),
            Ptp => format!("{dtype}(max(x0) - min(x0))"),
            Median => out(&format!("median({x})")),
            Quantile => {
                check_q(self.parameter)?;
                out(&format!("quantile({x}, q={parameter})"))
            }
            LogSumExp => out(&format!("log_sum_exp({x})")),
            Average => {
                let weight = other("x1", self.others[0], wide);
                text.in_f64 &= self.others[0] != Some(DType::F64);
                text.definitions = format!("weight = {weight}; total = sum(weight); ");
                text.outputs = vec![(out(&format!("sum({x} * weight) / total")), result), (out("total"), result)];
                return Ok(text);
            }
            Softmax => {
                text.definitions = format!("x = {x}; m = max(x); e = exp(x - m); ");
                out("e / sum(e)")
            }
            LogSoftmax => {
                text.definitions = format!("x = {x}; m = max(x); d = x - m; ");
                out("d - log(sum(exp(d)))")
            }
            LayerNorm => {
                text.definitions = format!("x = {x}; c = centered(x); r = 1 / sqrt(var(x) + {parameter}); ");
                self.scaled(&out, "c * r", wide)
            }
            RmsNorm => {
                text.definitions = format!("x = {x}; r = 1 / sqrt(mean(x * x) + {parameter}); ");
                self.scaled(&out, "x * r", wide)
            }
            Normalize => {
                let norm = norm("x", self.second, wide);
                text.definitions = format!("x = {x}; ");
                out(&format!("x / max({norm}, {parameter})"))
            }
        };
        if matches!(self.function, LayerNorm | RmsNorm) {
            text.in_f64 &= !self.others.contains(&Some(DType::F64));
        }
        text.outputs = vec![(value, result)];
        Ok(text)
    }

    /// Refuses parameters that are NaN, or beyond the type that the function computes in.
    fn check_parameters(&self, wide: DType) -> PyResult<()> {
        use Function::*;
        let most = if wide == DType::F64 { f64::MAX } else { f64::from(f32::MAX) };
        let refused = |text: String| Err(PyValueError::new_err(text));
        let within = |name: &str, value: f64| match value {
            _ if value.is_nan() => refused(format!("{name} is NaN")),
            _ if value.is_finite() && value.abs() > most => {
                refused(format!("{name} is {value:e}, beyond the greatest {}, {most:e}", self::name(wide)))
            }
            _ => Ok(()),
        };
        let order = |value: f64| match value.recip().abs() > most && value != 0.0 {
            true => refused(format!("ord is {value:e}, and 1 / ord is beyond the greatest {}", self::name(wide))),
            false => within("ord", value),
        };
        match self.function {
            Var | Std if !(0.0..=most).contains(&self.parameter) => {
                refused(format!("ddof must be between 0 and {most:e}, {:?} given", self.parameter))
            }
            Norm => order(self.parameter),
            LayerNorm | RmsNorm => within("eps", self.parameter),
            Normalize => within("eps", self.parameter).and_then(|()| order(self.second)),
            _ => Ok(()),
        }
    }

    /// Definitions of `count` and `m2`: how many elements a mask keeps, and the sum of their squared deviations.
    ///
    /// Hidden elements are filled with the rounded mean of the others, and the whole slice goes through the variance
    /// without a mask, which an all-true mask therefore has to the bit. With n kept and h hidden elements the fill adds
    /// δ² n h / (n + h), where δ is the mean less the fill; the mean of the filled slice is n δ / (n + h) above the fill.
    fn masked_moments(&self, mask: &str, x: &str, wide: DType) -> String {
        // The variance is divided by n - ddof: by 1, or by a power of two where n - 1 is no float.
        let rounded = |count: f64| if wide == DType::F64 { count } else { f64::from(count as f32) };
        let below =
            |count: f64| if wide == DType::F64 { count.next_down() } else { f64::from((count as f32).next_down()) };
        let all = rounded(self.count.max(1) as f64);
        let ddof = if rounded(all - 1.0) == all { below(all) } else { rounded(all - 1.0) };
        let freedom = all - ddof;
        format!(
            "kept = {mask}; value = {x}; count = {wide}(sum(i64(kept))); hidden = {wide}(sum(i64(not kept))); \
             fill = sum(select(kept, value, 0)) / count; filled = select(kept, value, fill); \
             whole = var(filled, ddof={ddof:?}) * {freedom:?}; centre, rest = mean_pair(filled); \
             above = centre - fill + rest; excess = above * above * hidden / count * {all:?}; \
             m2 = select(hidden > 0, max(whole - excess, 0), whole); "
        )
    }

    /// The normalised element times the weight, plus the bias.
    fn scaled(&self, out: &impl Fn(&str) -> String, value: &str, wide: DType) -> String {
        let weighted = match self.others[0] {
            None => value.to_string(),
            weight => format!("{value} * {}", other("x1", weight, wide)),
        };
        let number = if self.others[0].is_some() { "x2" } else { "x1" };
        out(&match self.others[1] {
            None => weighted,
            bias => format!("{weighted} + {}", other(number, bias, wide)),
        })
    }

    /// The element in the accumulator's type, after its conversion to the type asked for.
    fn element(&self, result: DType, wide: DType) -> String {
        let cast = self.narrowed(result, wide);
        match self.dtype.is_float() && cast == "x0" {
            true => cast,
            false => format!("{wide}({cast})"),
        }
    }

    /// The element after its conversion to the type asked for, where that type is not `wide` itself.
    fn narrowed(&self, result: DType, wide: DType) -> String {
        match self.result.is_some() && result != wide && result != self.dtype {
            true => format!("{result}(x0)"),
            false => "x0".into(),
        }
    }
}

/// Refuses a q that is NaN or out of range.
///
/// # Errors
/// `ValueError`.
pub fn check_q(q: f64) -> PyResult<()> {
    match (0.0..=1.0).contains(&q) {
        true => Ok(()),
        false => Err(PyValueError::new_err(format!("q must be between 0 and 1, {q} given"))),
    }
}

/// A further operand in the accumulator's type.
fn other(operand: &str, dtype: Option<DType>, wide: DType) -> String {
    match dtype.is_some_and(DType::is_float) {
        true => operand.to_string(),
        false => format!("{wide}({operand})"),
    }
}

/// The norm of an order.
fn norm(x: &str, order: f64, wide: DType) -> String {
    if order == f64::INFINITY {
        format!("linf({x})")
    } else if order == f64::NEG_INFINITY {
        format!("min(abs({x}))")
    } else if order == 0.0 {
        format!("{wide}(count_nonzero({x}))")
    } else if order == 1.0 {
        format!("l1({x})")
    } else if order == 2.0 {
        format!("l2({x})")
    } else if order > 1.0 {
        format!("lp({x}, p={order:?})")
    } else {
        format!("pow(sum(pow(abs({x}), {order:?})), 1 / ({order:?}))")
    }
}
