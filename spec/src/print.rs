//! The spec as one line of text; [`text`](super::text) has the grammar.

use super::check::default_accumulator;
use super::{Operand, Order, Role, Spec};
use crate::layout::list;
use std::fmt;

/// The canonical one-line text, which parses back to an equal spec.
impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.body.is_some() {
            return f.write_str(&super::region::text(self));
        }
        write_list(f, &self.reducers)?;
        let operands = self.inputs.iter().filter(|o| matches!(o.role, Role::Element | Role::Then));
        f.write_str(" ")?;
        write_list(f, operands.map(OperandText))?;
        if self.reduced.contains(&false) {
            write!(f, " axes={}", list(&self.axes(), '[', ']'))?;
        }
        if self.keep_dims {
            f.write_str(" keep_dims")?;
        }
        if self.lift {
            f.write_str(" empty_axes=lift")?;
        }
        for input in &self.inputs {
            if let Role::Scalar(name) = &input.role {
                write!(f, " scalar {name}:{}", input.dtype)?;
            }
        }
        if let Some(map) = &self.map {
            write!(f, " map=\"{map}\"")?;
        }
        if !self.then.is_empty() {
            f.write_str(" then=\"")?;
            write_list(f, &self.then)?;
            f.write_str("\"")?;
        }
        if let Some(apply) = &self.apply {
            write!(f, " apply=\"{apply}\"")?;
        }
        if let Some(acc) = self.accumulator
            && acc != default_accumulator(&self.inputs)
        {
            write!(f, " acc={acc}")?;
        }
        if self.order != Order::Memory {
            write!(f, " order={}", self.order.word())?;
        }
        if self.saturate {
            f.write_str(" saturate")?;
        }
        if let Some(rounding) = self.rounding {
            write!(f, " {}", rounding.word())?;
        }
        let types = self.default_outputs() != self.outputs.iter().map(|o| o.dtype).collect::<Vec<_>>();
        if types || self.outputs.iter().any(|o| !o.layout.is_row_major()) {
            f.write_str(" -> ")?;
            write_list(f, self.outputs.iter().map(|o| OutputText(o, types || self.outputs.len() > 1)))?;
        }
        Ok(())
    }
}

fn write_list(f: &mut fmt::Formatter<'_>, items: impl IntoIterator<Item = impl fmt::Display>) -> fmt::Result {
    for (i, item) in items.into_iter().enumerate() {
        write!(f, "{}{item}", if i > 0 { ", " } else { "" })?;
    }
    Ok(())
}

struct OperandText<'a>(&'a Operand);

impl fmt::Display for OperandText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Operand { role, dtype, shape, layout, .. } = self.0;
        let at = if layout.is_row_major() { "" } else { "@" };
        let then = if *role == Role::Then { ":then" } else { "" };
        write!(f, "{dtype}{}{at}{layout}{then}", list(shape, '[', ']'))
    }
}

/// An output, with its type or without.
struct OutputText<'a>(&'a Operand, bool);

impl fmt::Display for OutputText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.1 {
            write!(f, "{}", self.0.dtype)?;
        }
        match &self.0.layout {
            layout if layout.is_row_major() => Ok(()),
            layout => write!(f, "@{layout}"),
        }
    }
}
