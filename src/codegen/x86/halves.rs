//! Lanes of two loops: parts of the vectors of several outputs side by side.
//!
//! ```text
//! for e0 in 0..2 lanes { for e1 in 0..8 lanes { a1[8*e0 + e1] = add(a0[16*e0 + e1], a0[16*e0 + e1 + 8]) } }
//! ```
//!
//! What is read are the lower halves of two vectors that follow one another, and the upper ones: their even and their odd
//! elements, if an element is as many lanes as the inner loop has.

use super::address::Base;
use super::machine::code::Reg;
use super::{Generator, Lanes, Place, Refused, Val};
use crate::codegen::storage::Lanes as At;
use cranefold_ir::{AccId, DType, Index};

/// The lower and the upper halves of two vectors.
pub(super) struct Halves {
    pub(super) acc: AccId,
    /// Where the first vector starts.
    start: Index,
    halves: [Reg; 2],
}

impl<'a> Generator<'a> {
    /// Where the lanes that an index names are in an accumulator.
    pub(super) fn place(&self, index: &Index) -> Result<At, Refused> {
        let Some(vector) = self.vector else { return Ok(At::Run(index.clone())) };
        vector.place(index).ok_or_else(|| Refused(format!("lanes of two loops at {index}")))
    }

    /// Lanes of two loops are of accumulators.
    pub(super) fn one_loop(&self, base: Base) -> Result<(), Refused> {
        match (base, self.vector) {
            (Base::Buf(buf), Some(vector)) if vector.outer.is_some() => {
                Err(Refused(format!("lanes of two loops in {buf}")))
            }
            _ => Ok(()),
        }
    }

    /// The lower or the upper halves, of `half` lanes, of the groups of two vectors.
    pub(super) fn read_halves(
        &mut self,
        acc: AccId,
        dtype: DType,
        start: &Index,
        half: u64,
        upper: bool,
    ) -> Result<Val, Refused> {
        let lanes = self.vector.map_or(0, |vector| vector.lanes);
        if lanes * dtype.bytes() != self.tier.bytes() {
            return Err(Refused(format!("halves of {lanes} lanes of {dtype}")));
        }
        let known = self.halves.iter().find(|h| h.acc == acc && h.start == *start).map(|h| h.halves);
        let halves = match known {
            Some(halves) => halves,
            None => {
                let first = self.read_run(acc, dtype, start)?;
                let second = self.read_run(acc, dtype, &start.clone().offset_by(lanes as i64))?;
                let (first, second) = (self.reg(first), self.reg(second));
                let halves = self.even_and_odd(first, second, half * dtype.bytes(), lanes / half);
                self.halves.push(Halves { acc, start: start.clone(), halves });
                halves
            }
        };
        let place = Place::Reg(halves[usize::from(upper)]);
        Ok(Val { place, dtype, lanes: Lanes::First(lanes), bytes: dtype.bytes() })
    }
}
