//! A node while it is lowered: its operands and attributes.

use super::messages::{AttributeValue, Node};
use crate::front::{Lower, Operand, Stop};
use crate::{DType, resolve_axis};
use rustc_hash::FxHashMap;

/// The results of a lowered node, as many as it has outputs.
pub(super) type Results = Result<Vec<Operand>, Stop>;

/// A node of the model and what its op may ask of it.
pub(super) struct Cx<'r, 'a> {
    pub lower: &'r mut Lower,
    pub node: &'r Node<'a>,
    /// The version of the operator set that the node's op belongs to.
    pub version: i64,
    /// The attributes of the call of the function in which the node stands.
    pub call: &'r FxHashMap<&'a str, AttributeValue<'a>>,
    /// The operands; none for optional ones that are left out.
    pub inputs: Vec<Option<Operand>>,
    /// True if the values may have the names of the file: outside of functions.
    pub is_named: bool,
    /// True if a reduction takes the node's results, perhaps through element-wise ops and views.
    pub feeds_reduction: bool,
    /// The types and shapes of the node's outputs, as far as the file says them.
    pub said: Vec<Option<(DType, Vec<u64>)>>,
}

impl<'r, 'a> Cx<'r, 'a> {
    /// The name of an output; none if the graph chooses one.
    pub fn name(&self, output: usize) -> &'a str {
        match self.is_named {
            true => self.node.outputs.get(output).copied().unwrap_or(""),
            false => "",
        }
    }

    /// Returns true if the node has this output.
    pub fn has_output(&self, output: usize) -> bool {
        self.node.outputs.get(output).is_some_and(|name| !name.is_empty())
    }

    /// An operand that the op needs.
    pub fn input(&self, place: usize) -> Result<Operand, Stop> {
        self.optional(place).ok_or_else(|| Stop::Wrong(format!("input {place} is missing")))
    }

    /// An operand that may be left out.
    pub fn optional(&self, place: usize) -> Option<Operand> {
        self.inputs.get(place).cloned().flatten()
    }

    /// All operands, none of which may be left out.
    pub fn all(&self) -> Result<Vec<Operand>, Stop> {
        (0..self.inputs.len()).map(|place| self.input(place)).collect()
    }

    /// An attribute; a reference takes the value that the call of the function gives.
    pub fn attribute(&self, name: &str) -> Option<&'r AttributeValue<'a>> {
        let found = self.node.attributes.iter().find(|attribute| attribute.name == name)?;
        let value = match found.reference {
            "" => &found.value,
            reference => self.call.get(reference)?,
        };
        (*value != AttributeValue::None).then_some(value)
    }

    fn wrong(&self, name: &str, needed: &str) -> Stop {
        Stop::Wrong(format!("attribute `{name}` is not {needed}"))
    }

    pub fn int(&self, name: &str) -> Result<Option<i64>, Stop> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::Int(value)) => Ok(Some(*value)),
            Some(_) => Err(self.wrong(name, "an integer")),
        }
    }

    pub fn int_or(&self, name: &str, default: i64) -> Result<i64, Stop> {
        Ok(self.int(name)?.unwrap_or(default))
    }

    /// An integer that means yes or no.
    pub fn flag(&self, name: &str, default: bool) -> Result<bool, Stop> {
        Ok(self.int(name)?.map_or(default, |value| value != 0))
    }

    pub fn float_or(&self, name: &str, default: f32) -> Result<f32, Stop> {
        match self.attribute(name) {
            None => Ok(default),
            Some(AttributeValue::Float(value)) => Ok(*value),
            Some(_) => Err(self.wrong(name, "a float")),
        }
    }

    /// An attribute as a number beside the first operand: its `f32` beside an `f64`, else the shortest decimal that is the
    /// same `f32`.
    pub fn decimal_or(&self, name: &str, default: f32) -> Result<f64, Stop> {
        let value = self.float_or(name, default)?;
        if self.input(0)?.dtype()? == DType::F64 {
            return Ok(f64::from(value));
        }
        Ok(value.to_string().parse().unwrap_or(f64::from(value)))
    }

    pub fn ints(&self, name: &str) -> Result<Option<Vec<i64>>, Stop> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::Ints(values)) => Ok(Some(values.clone())),
            Some(_) => Err(self.wrong(name, "a list of integers")),
        }
    }

    pub fn text_or(&self, name: &str, default: &str) -> Result<String, Stop> {
        match self.attribute(name) {
            None => Ok(default.into()),
            Some(AttributeValue::Text(text)) => Ok(String::from_utf8_lossy(text).into_owned()),
            Some(_) => Err(self.wrong(name, "a text")),
        }
    }

    /// The integers of an operand that must be known when the file is read; none if it is left out.
    pub fn known_ints(&self, place: usize, name: &str) -> Result<Option<Vec<i64>>, Stop> {
        let Some(operand) = self.optional(place) else { return Ok(None) };
        let known = operand.known().ok_or_else(|| {
            Stop::Opaque(format!("`{name}` is computed when the model runs; shapes and axes have to be known before"))
        })?;
        let ints = known.ints().ok_or_else(|| format!("`{name}` has no integers, but {}", known.dtype().name()))?;
        Ok(Some(ints))
    }

    /// The integers of an attribute, or from a version on of an operand.
    pub fn ints_of(&self, name: &str, place: usize, since: i64) -> Result<Option<Vec<i64>>, Stop> {
        match self.version >= since {
            true => self.known_ints(place, name),
            false => self.ints(name),
        }
    }

    /// An axis of the first operand, given as an attribute.
    pub fn axis(&self, default: i64) -> Result<usize, Stop> {
        let rank = self.input(0)?.rank()?;
        Ok(resolve_axis(self.int_or("axis", default)?, rank)?)
    }

    /// The axes of the first operand from one on, which may be its rank.
    pub fn axes_from(&self, default: i64) -> Result<Vec<usize>, Stop> {
        let (rank, axis) = (self.input(0)?.rank()?, self.int_or("axis", default)?);
        let from = if axis == rank as i64 { rank } else { resolve_axis(axis, rank)? };
        Ok((from..rank).collect())
    }

    /// A formula of the operands as the node's only result.
    pub fn map(&mut self, formula: &str, inputs: &[&Operand]) -> Results {
        let name = self.name(0);
        Ok(vec![self.lower.map(name, formula, inputs)?])
    }
}
