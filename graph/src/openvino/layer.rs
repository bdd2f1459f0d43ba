//! A layer while it is lowered: its operands and attributes.

use super::net::{Layer, shortened};
use crate::front::{Lower, Operand, Stop};
use crate::{DType, resolve_axis};

/// The results of a lowered layer, as many as it has output ports.
pub(super) type Results = Result<Vec<Operand>, Stop>;

/// A layer of the model and what its op may ask of it.
pub(super) struct Cx<'r> {
    pub lower: &'r mut Lower,
    pub layer: &'r Layer,
    /// The number of the set of ops.
    pub opset: u32,
    /// The operands in the order of the input ports.
    pub inputs: Vec<Operand>,
    /// The name of the first result; others have none.
    pub name: &'r str,
    /// True if a reduction takes the results, perhaps through formulas and views.
    pub feeds_reduction: bool,
}

/// The element type of a name.
pub(super) fn dtype(name: &str) -> Option<DType> {
    Some(match name {
        "boolean" => DType::Bool,
        "f16" => DType::F16,
        "bf16" => DType::Bf16,
        "f32" => DType::F32,
        "f64" => DType::F64,
        "i8" => DType::I8,
        "i16" => DType::I16,
        "i32" => DType::I32,
        "i64" => DType::I64,
        "u8" => DType::U8,
        "u16" => DType::U16,
        "u32" => DType::U32,
        "u64" => DType::U64,
        _ => return None,
    })
}

/// The element type of a port's `precision`.
pub(super) fn precision(name: &str) -> Option<DType> {
    match name {
        "FP16" => Some(DType::F16),
        "BF16" => Some(DType::Bf16),
        "FP32" => Some(DType::F32),
        "FP64" => Some(DType::F64),
        "BOOL" => Some(DType::Bool),
        other => dtype(&other.to_ascii_lowercase()),
    }
}

impl Cx<'_> {
    /// An operand that the op needs.
    pub fn input(&self, place: usize) -> Result<Operand, Stop> {
        self.optional(place).ok_or_else(|| Stop::Wrong(format!("input {place} is missing")))
    }

    pub fn optional(&self, place: usize) -> Option<Operand> {
        self.inputs.get(place).cloned()
    }

    pub fn text_or(&self, name: &str, default: &str) -> String {
        self.layer.data.get(name).map_or(default, String::as_str).to_ascii_lowercase()
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, Stop> {
        let Some(text) = self.layer.data.get(name) else { return Ok(None) };
        let wrong = || Stop::Wrong(format!("attribute {name}={:?} is no number", shortened(text)));
        text.trim().parse().map(Some).map_err(|_| wrong())
    }

    pub fn int_or(&self, name: &str, default: i64) -> Result<i64, Stop> {
        Ok(self.number(name)?.unwrap_or(default))
    }

    /// A float, which the file has as the decimal of an `f32`.
    pub fn float(&self, name: &str) -> Result<Option<f32>, Stop> {
        self.number(name)
    }

    pub fn float_or(&self, name: &str, default: f32) -> Result<f32, Stop> {
        Ok(self.float(name)?.unwrap_or(default))
    }

    /// A float as the shortest decimal that is the same `f32`.
    pub fn decimal(&self, name: &str) -> Result<f64, Stop> {
        let value = self.float(name)?.ok_or_else(|| format!("attribute `{name}` is missing"))?;
        Ok(value.to_string().parse().unwrap_or(f64::from(value)))
    }

    pub fn flag(&self, name: &str, default: bool) -> Result<bool, Stop> {
        match self.layer.data.get(name).map(|text| text.to_ascii_lowercase()).as_deref() {
            None => Ok(default),
            Some("true" | "1") => Ok(true),
            Some("false" | "0") => Ok(false),
            Some(other) => Err(Stop::Wrong(format!("attribute {name}={:?} is no truth value", shortened(other)))),
        }
    }

    /// Integers with commas between them.
    pub fn ints(&self, name: &str) -> Result<Vec<i64>, Stop> {
        let text = self.layer.data.get(name).map_or("", String::as_str);
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        let wrong = |item: &str| Stop::Wrong(format!("attribute {name} has {:?}, no integer", shortened(item)));
        items.map(|item| item.parse().map_err(|_| wrong(item))).collect()
    }

    /// The integers of an operand that must be known when the file is read.
    pub fn known_ints(&self, place: usize, name: &str) -> Result<Vec<i64>, Stop> {
        let known = self.input(place)?.known().ok_or_else(|| {
            Stop::Opaque(format!("`{name}` is computed when the model runs; shapes and axes have to be known before"))
        })?;
        Ok(known.ints().ok_or_else(|| format!("`{name}` has no integers, but {}", known.dtype().name()))?)
    }

    /// One integer of an operand that must be known.
    pub fn known_int(&self, place: usize, name: &str) -> Result<i64, Stop> {
        match self.known_ints(place, name)?[..] {
            [one] => Ok(one),
            ref several => Err(Stop::Wrong(format!("`{name}` has {} numbers, not one", several.len()))),
        }
    }

    /// An axis of the first operand, given as an attribute.
    pub fn axis(&self, default: i64) -> Result<usize, Stop> {
        Ok(resolve_axis(self.int_or("axis", default)?, self.input(0)?.rank()?)?)
    }

    /// The axes of the first operand that another one names; one may be named twice.
    pub fn axes(&self, place: usize) -> Result<Vec<usize>, Stop> {
        let rank = self.input(0)?.rank()?;
        let named = self.known_ints(place, "axes")?;
        let mut axes: Vec<usize> = match rank {
            0 => vec![],
            _ => named.iter().map(|&axis| resolve_axis(axis, rank)).collect::<Result<_, _>>()?,
        };
        axes.sort_unstable();
        axes.dedup();
        Ok(axes)
    }

    /// A formula of the operands as the only result.
    pub fn map(&mut self, formula: &str, inputs: &[&Operand]) -> Results {
        Ok(vec![self.lower.map(self.name, formula, inputs)?])
    }
}

pub(super) fn as_i64(axes: &[usize]) -> Vec<i64> {
    axes.iter().map(|&axis| axis as i64).collect()
}
