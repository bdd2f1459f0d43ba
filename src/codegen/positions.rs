//! Values of indices: a scalar, or a vector where the index moves with the lanes.

use super::Refused;
use super::emit::Emit;
use super::walk::Walk;
use cranefold_ir::{DType, Index, Op, Scalar};

impl<'a, E: Emit<'a>> Walk<'a, E> {
    /// The value of an index in a type.
    pub(super) fn at(&mut self, out: &mut E, dtype: DType, index: &Index) -> Result<E::Value, Refused> {
        let offset = Scalar::int(dtype, index.offset.into());
        if index.is_constant() {
            return Ok(out.constant(offset));
        }
        let moving = self.lane().map(|(var, lanes)| (var, lanes, index.coefficient(var))).filter(|&(.., c)| c != 0);
        let Some((var, lanes, c)) = moving else {
            let start = index.clone().offset_by(-index.offset);
            return match out.counted(dtype, &start, 0, 1) {
                Some(counted) if index.offset == 0 => Ok(counted),
                Some(counted) => {
                    let offset = out.constant(offset);
                    self.op(out, Op::Add, dtype, &[counted, offset], None)
                }
                None => self.position(out, dtype, index),
            };
        };
        // The indices of one loop's lanes differ by constants.
        let first = index.clone().plus(var, -c).offset_by(-index.offset);
        if let Some(counted) = out.counted(dtype, &first, c, lanes) {
            let offset = out.constant(offset);
            return self.op(out, Op::Add, dtype, &[counted, offset], None);
        }
        let steps = out.steps(dtype, index.offset, c, lanes)?;
        if first.is_constant() {
            return Ok(steps);
        }
        let start = self.position(out, dtype, &first)?;
        out.op(Op::Add, dtype, &[start, steps], None)
    }

    /// The value of an index that is the same in all lanes.
    pub fn position(&mut self, out: &mut E, dtype: DType, index: &Index) -> Result<E::Value, Refused> {
        let key = (dtype, index.clone());
        if let Some(&known) = self.positions.get(&key) {
            return Ok(known);
        }
        let number = self.index_value(out, index);
        let value = out.position(dtype, number)?;
        self.positions.insert(key, value);
        Ok(value)
    }

    /// The number that an index has.
    pub(super) fn index_value(&mut self, out: &mut E, index: &Index) -> E::Number {
        index.terms().fold(out.number(index.offset), |sum, (var, c)| out.plus_scaled(sum, self.counters[&var], c))
    }
}
