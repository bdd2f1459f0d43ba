//! Whether the parts of a problem fit together: asked of one that was read from text.

use super::{Dim, Operand, Problem, Work};
use cranefold_ir::DType;
use cranefold_ir::ops::{Output, in_memory};

impl Problem {
    /// Checks that the parts fit together, as those of a problem made from a spec do.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.inputs.is_empty() || self.outputs.is_empty() {
            return Err("there is an input and an output".into());
        }
        match &self.work {
            Work::Convert { .. } => self.check_convert()?,
            Work::Reduce(_) => self.check_reduce()?,
        }
        let reduced = self.dims.iter().any(|d| d.reduced);
        let written = self.outputs.iter().any(|o| o.len > 0);
        let reduces = matches!(self.work, Work::Reduce { .. }) && self.count > 0 && written;
        if reduced != reduces || (!written && !self.dims.is_empty()) {
            return Err("there are reduction dims if and only if something is reduced".into());
        }
        let product = |dims: &mut dyn Iterator<Item = &Dim>| dims.fold(1u64, |n, d| n.saturating_mul(d.extent));
        if reduced && product(&mut self.dims.iter().filter(|d| d.reduced)) != self.count {
            return Err(format!("the reduction dims have not {} elements", self.count));
        }
        if reduced && self.applies() && product(&mut self.slice.iter()) != self.count {
            return Err(format!("the dims of the slice have not {} elements", self.count));
        }
        if !self.slice.is_empty() && !self.applies() {
            return Err("a slice is for outputs at each position".into());
        }
        for (i, input) in self.inputs.iter().enumerate() {
            let dims = if input.mapped { &self.dims[..] } else { &[] };
            self.check_bounds(&format!("x{i}"), &input.operand, dims, self.count > 0 && input.mapped, |d| {
                d.input_strides[i]
            })?;
        }
        for (o, output) in self.outputs.iter().enumerate() {
            let parallel = self.dims.iter().filter(|d| !d.reduced);
            let dims: Vec<Dim> = parallel.chain(&self.slice).cloned().collect();
            let name = format!("x{}", self.inputs.len() + o);
            self.check_bounds(&name, output, &dims, true, |d| d.output_strides[o])?;
        }
        let parallel: Vec<Dim> = self.dims.iter().filter(|d| !d.reduced).chain(&self.slice).cloned().collect();
        for (i, input) in self.inputs.iter().enumerate().filter(|(_, i)| !i.mapped || self.applies()) {
            self.check_bounds(&format!("x{i}"), &input.operand, &parallel, self.count > 0, |d| d.input_strides[i])?;
        }
        Ok(())
    }

    fn check_convert(&self) -> Result<(), String> {
        let ([input], [output]) = (&self.inputs[..], &self.outputs[..]) else {
            return Err("`convert` has one input and one output".into());
        };
        match (input.operand.dtype == DType::Bool) == (output.dtype == DType::Bool) {
            true => Ok(()),
            false => Err("bool converts to bool only, and only bool does".into()),
        }
    }

    fn check_reduce(&self) -> Result<(), String> {
        let Work::Reduce(recipe) = &self.work else { return Ok(()) };
        let types = self.types();
        let element = recipe.element(&types.inputs).map_err(|e| e.to_string())?;
        if types.mapped.is_empty() {
            return Err("no input is marked `in`".into());
        }
        if let Some(row) = recipe.calls.iter().filter_map(|c| c.as_row()).find(|row| !row.takes(element)) {
            return Err(format!("`{}` does not take {element}", row.name));
        }
        let wide = types.inputs.iter().any(|(_, d)| *d == DType::F64) || element == DType::F64;
        if !matches!(recipe.accumulator, DType::F32 | DType::F64) || (wide && recipe.accumulator == DType::F32) {
            return Err(format!("{} is no accumulator of {element}", recipe.accumulator));
        }
        let given: Vec<Option<DType>> = types.outputs.iter().map(|&d| Some(d)).collect();
        let values = recipe.values(&types.inputs, &given).map_err(|e| e.to_string())?;
        if values.len() != self.outputs.len() {
            return Err(format!("there are {} results for {} outputs", values.len(), self.outputs.len()));
        }
        for (&(kind, value), &output) in values.iter().zip(&types.outputs) {
            let bool_mismatch = (value == DType::Bool) != (output == DType::Bool);
            let no_count = kind == Output::Count && !matches!(output, DType::I32 | DType::I64);
            if bool_mismatch || no_count {
                return Err(format!("{output} is no output for {value}"));
            }
        }
        if recipe.takes_position() != self.position.is_some() {
            return Err("there is a position if and only if an op takes it".into());
        }
        recipe.reducer(&types).map(|_| ()).map_err(|e| e.to_string())
    }

    /// Checks that every position lies in an operand that is touched.
    fn check_bounds(
        &self,
        name: &str,
        operand: &Operand,
        dims: &[Dim],
        touched: bool,
        stride: impl Fn(&Dim) -> i64,
    ) -> Result<(), String> {
        let touched = touched && operand.len > 0;
        let (mut low, mut high) = (i128::from(operand.origin), i128::from(operand.origin));
        let mut elements: u64 = in_memory(operand.dtype).bytes();
        for dim in dims {
            let all = elements.checked_mul(dim.extent).filter(|&n| dim.extent > 0 && n <= i64::MAX as u64);
            elements = all.ok_or_else(|| format!("a dim of {} elements is empty or too large", dim.extent))?;
            let reach = i128::from(stride(dim)) * i128::from(dim.extent - 1);
            low += reach.min(0);
            high += reach.max(0);
        }
        match !touched || (low >= 0 && high < i128::from(operand.len) && operand.len <= i64::MAX as u64) {
            true => Ok(()),
            false => Err(format!("{name} has {} elements, and {low} to {high} are touched", operand.len)),
        }
    }
}
