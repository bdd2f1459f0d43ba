//! Whether the parts of a problem fit together: asked of one that was read from text.

use super::{Operand, Problem, Work};
use cranefold_ir::{DType, ops};

impl Problem {
    /// Checks that the parts fit together, as those of a problem made from a spec do.
    pub(super) fn check(&self) -> Result<(), String> {
        let ([input], [output]) = (&self.inputs[..], &self.outputs[..]) else {
            return Err(format!(
                "{} inputs and {} outputs: one of each is taken",
                self.inputs.len(),
                self.outputs.len()
            ));
        };
        let truth = match &self.work {
            Work::Convert { truth, .. } => *truth,
            Work::Reduce { op, params, truth, accumulator, .. } => {
                let row = ops::find(op).expect("a row that was found");
                let dtype = if *truth { DType::Bool } else { input.dtype };
                if !row.takes(dtype) {
                    return Err(format!("`{op}` does not take {dtype}"));
                }
                if !matches!(accumulator, DType::F32 | DType::F64)
                    || (input.dtype, *accumulator) == (DType::F64, DType::F32)
                {
                    return Err(format!("{accumulator} is no accumulator of {}", input.dtype));
                }
                let given = params.iter().map(|&p| f64::from_bits(p)).zip(row.params);
                if let Some((value, param)) = given.into_iter().find(|(v, p)| !v.is_finite() || *v < p.at_least) {
                    return Err(format!(
                        "{}={value} of `{op}` is no finite value from {} on",
                        param.name, param.at_least
                    ));
                }
                *truth
            }
        };
        let bytes = [input.dtype, output.dtype] == [DType::U8; 2];
        if [input.dtype, output.dtype].contains(&DType::Bool) || (truth && !bytes) {
            return Err("truth values are u8 in memory".into());
        }
        let reduced = self.dims.iter().any(|d| d.reduced);
        let reduces = matches!(self.work, Work::Reduce { .. }) && self.count > 0 && output.len > 0;
        if reduced != reduces || (output.len == 0 && !self.dims.is_empty()) {
            return Err("there are reduction dims if and only if something is reduced".into());
        }
        for (name, operand, strides) in [
            ("x0", input, self.dims.iter().map(|d| d.input_strides[0]).collect::<Vec<_>>()),
            ("x1", output, self.dims.iter().map(|d| d.output_strides[0]).collect()),
        ] {
            self.check_bounds(name, operand, &strides)?;
        }
        Ok(())
    }

    /// Checks that every position lies in an operand that is touched.
    fn check_bounds(&self, name: &str, operand: &Operand, strides: &[i64]) -> Result<(), String> {
        let touched = operand.len > 0 && (name == "x1" || self.count > 0);
        let (mut low, mut high) = (i128::from(operand.origin), i128::from(operand.origin));
        let mut elements: u64 = 1;
        for (dim, &stride) in self.dims.iter().zip(strides) {
            let all = elements.checked_mul(dim.extent).filter(|&n| dim.extent > 0 && n <= i64::MAX as u64);
            elements = all.ok_or_else(|| format!("a dim of {} elements is empty or too large", dim.extent))?;
            let reach = i128::from(stride) * i128::from(dim.extent - 1);
            low += reach.min(0);
            high += reach.max(0);
        }
        match !touched || (low >= 0 && high < i128::from(operand.len) && operand.len <= i64::MAX as u64) {
            true => Ok(()),
            false => Err(format!("{name} has {} elements, and {low} to {high} are touched", operand.len)),
        }
    }
}
