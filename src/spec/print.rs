//! The request as one line of text; [`text`](super::text) has the grammar.

use super::build::default_accumulator;
use super::{Reducer, Reduction};
use crate::layout::{Layout, list};
use std::fmt;

/// The op with its parameters, those at their defaults left out: `lp_max(p=3)`.
impl fmt::Display for Reducer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row.name)?;
        let given: Vec<String> = self
            .row
            .params
            .iter()
            .zip(self.params())
            .filter(|(param, value)| param.default != Some(*value))
            .map(|(param, value)| format!("{}={}", param.name, number(value)))
            .collect();
        if given.is_empty() { Ok(()) } else { write!(f, "({})", given.join(",")) }
    }
}

/// The shortest digits that read back, without `.0`.
fn number(value: f64) -> String {
    let digits = format!("{value:?}");
    digits.strip_suffix(".0").map(str::to_string).unwrap_or(digits)
}

/// The canonical one-line text, which parses back to an equal request.
impl fmt::Display for Reduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [reducer] = &self.reducers[..] else { unreachable!("validated") };
        let (input, output) = (&self.inputs[0], &self.outputs[0]);
        write!(f, "{reducer} {}{}", input.dtype, Reduction::place_text(&input.shape, &input.layout))?;
        if self.reduced.contains(&false) {
            write!(f, " axes={}", list(&self.axes(), '[', ']'))?;
        }
        if self.keep_dims {
            f.write_str(" keep_dims")?;
        }
        if self.lift {
            f.write_str(" empty_axes=lift")?;
        }
        if let Some(acc) = self.accumulator
            && acc != default_accumulator(input.dtype)
        {
            write!(f, " acc={acc}")?;
        }
        if self.saturate {
            f.write_str(" saturate")?;
        }
        if let Some(rounding) = self.rounding {
            write!(f, " {}", rounding.word())?;
        }
        let (dtype, layout) = (output.dtype != input.dtype, output.layout != Layout::RowMajor);
        if dtype || layout {
            f.write_str(" -> ")?;
        }
        if dtype {
            write!(f, "{}", output.dtype)?;
        }
        if layout {
            write!(f, "@{}", output.layout)?;
        }
        Ok(())
    }
}
