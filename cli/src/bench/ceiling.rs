//! The hand-written loops to which a case is compared.

use crate::buffer::Buffer;
use crate::failure::Failure;
use crate::timing::Timed;
use cranefold::ops;
use cranefold::{DType, Problem, Spec};
use cranefold_ceiling::{HandLoop, loops};
use std::cmp;
use std::hint::black_box;

/// The loops for a case, which are one operation in one or several forms, and the input that they read.
#[derive(Debug)]
pub struct Ceiling {
    loops: Vec<HandLoop>,
    /// The number of the input.
    input: usize,
    /// Bytes that are reduced by themselves: the whole input, or for sums of columns the rows of one matrix.
    part_bytes: usize,
    /// Bytes of a row of the matrix.
    row_bytes: usize,
}

impl Ceiling {
    /// The loops nearest to the first reducer of a case, on the widest vectors of this machine; `None` if none is near,
    /// several inputs are reduced, or the input has gaps, which loops would read.
    pub fn of(spec: &Spec) -> Option<Ceiling> {
        let [input] = spec.mapped()[..] else { return None };
        let operand = &spec.inputs()[input];
        let size = operand.dtype().bytes();
        let dense = operand.span_elems() == operand.elems();
        if !dense || operand.elems() == 0 || spec.map().is_some() || spec.is_identity() {
            return None;
        }
        let problem = Problem::of(spec);
        let [walk] = &problem.walks[..] else { return None };
        let row_bytes = walk.beside * size;
        let [elements] = &walk.elements[..] else { return None };
        let rows_of_one = elements.dims.last().map_or(1, |dim| dim.extent);
        let what = |columns: bool| what(spec, operand.dtype(), columns).map(widest).filter(|loops| !loops.is_empty());
        let columns = walk.beside > 1 && row_bytes >= LEAST_ROW;
        let loops = what(columns)?;
        let part_bytes = if columns { row_bytes * rows_of_one } else { operand.span_bytes() };
        let bytes = |bytes: u64| usize::try_from(bytes).ok();
        Some(Ceiling { loops, input, part_bytes: bytes(part_bytes)?, row_bytes: bytes(row_bytes)? })
    }

    /// A pass of each loop over the inputs.
    ///
    /// # Errors
    /// [`Failure::Memory`].
    pub fn calls<'a>(&self, inputs: &'a [Buffer]) -> Result<Vec<Box<Timed<'a>>>, Failure> {
        let part_bytes = self.part_bytes;
        let call = |&hand: &HandLoop| {
            let bytes = inputs[self.input].bytes();
            let mut columns = Buffer::zeroed(if hand.takes_columns() { self.row_bytes as u64 } else { 0 })?;
            let call: Box<Timed<'a>> = Box::new(move || {
                for part in black_box(bytes).chunks(part_bytes) {
                    black_box(hand.run(part, columns.bytes_mut()));
                }
                Ok(())
            });
            Ok(call)
        };
        self.loops.iter().map(call).collect()
    }

    /// The fastest loop by name, given the median of each.
    pub fn fastest(&self, medians_ns: impl Iterator<Item = f64>) -> Option<(String, f64)> {
        let (hand, ns) = self.loops.iter().zip(medians_ns).min_by(|a, b| a.1.total_cmp(&b.1))?;
        Some((hand.name(), ns))
    }
}

/// The least bytes of a row, which are a vector: shorter rows are summed whole instead of by columns.
const LEAST_ROW: u64 = 64;

/// The operation of the nearest loops: the same one, or one of the same cost. A maximum costs as much as a minimum or
/// the position of either, a sum as much as the root of it.
fn what(spec: &Spec, dtype: DType, columns: bool) -> Option<&'static str> {
    let ops::OpCall::Row { name, .. } = spec.reducers().first()? else { return None };
    let is_sum = matches!(*name, "sum" | "mean" | "log_sum");
    let is_like_a_sum = is_sum || matches!(*name, "prod" | "l1" | "l2" | "sum_squares");
    let is_extreme = matches!(*name, "max" | "min" | "argmax" | "argmin");
    let accumulator = spec.accumulator().unwrap_or(dtype);
    let output = spec.outputs()[0].dtype();
    if columns {
        return match dtype {
            DType::F32 if is_like_a_sum && accumulator == DType::F32 => Some("f32 outer sum"),
            DType::F64 if is_like_a_sum => Some("f64 outer sum"),
            _ => None,
        };
    }
    match (dtype, accumulator) {
        (DType::F32, _) if is_extreme => Some("f32 max exact"),
        (DType::F32, DType::F32) => match *name {
            _ if is_sum => Some("f32 sum"),
            "prod" => Some("f32 prod"),
            "l1" => Some("f32 l1"),
            "l2" | "sum_squares" => Some("f32 sum_squares"),
            "log_sum_exp" => Some("f32 log_sum_exp"),
            "var" | "std" => Some("f32 var"),
            _ => None,
        },
        (DType::F64, _) => match *name {
            _ if is_sum => Some("f64 sum"),
            _ if is_extreme => Some("f64 max exact"),
            "prod" => Some("f64 prod"),
            "l1" => Some("f64 l1"),
            "l2" | "sum_squares" => Some("f64 sum_squares"),
            _ => None,
        },
        // Their time is the time of widening.
        (DType::F16, DType::F32) if is_like_a_sum => Some("f16 sum"),
        (DType::Bf16, DType::F32) if is_like_a_sum => Some("bf16 sum"),
        (DType::I8, _) if matches!(*name, "sum" | "mean") => Some("i8 sum"),
        (DType::U8, _) if matches!(*name, "sum" | "mean") => Some("u8 sum"),
        (DType::I32 | DType::U32, _) if *name == "sum" && output.bits() == 32 => Some("i32 sum"),
        _ => None,
    }
}

/// The loops of an operation on the widest vectors.
fn widest(what: &str) -> Vec<HandLoop> {
    let loops: Vec<HandLoop> = loops().into_iter().filter(|hand| hand.what() == what).collect();
    let bits = loops.iter().map(HandLoop::bits).fold(0, cmp::max);
    loops.into_iter().filter(|hand| hand.bits() == bits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The operation of the loops, and the bytes of a part and of a row.
    fn held_against(spec: &str) -> Option<(&'static str, usize, usize)> {
        let ceiling = Ceiling::of(&spec.parse().expect("a spec"))?;
        Some((ceiling.loops[0].what(), ceiling.part_bytes, ceiling.row_bytes))
    }

    #[test]
    fn cases_are_held_against_the_nearest_row() {
        if loops().is_empty() {
            assert_eq!(held_against("sum f32[64]"), None);
            return;
        }
        for (spec, what) in [
            ("sum f32[64]", "f32 sum"),
            ("mean f32[8,16] axes=[1]", "f32 sum"),
            ("mean f32[2,16,4,4]@acdb axes=[1]", "f32 sum"),
            ("sum f32[64,2] axes=[0]", "f32 sum"),
            ("l2 f64[64]", "f64 sum_squares"),
            ("argmin f32[64]", "f32 max exact"),
            ("min f64[64]", "f64 max exact"),
            ("log_sum_exp f32[64]", "f32 log_sum_exp"),
            ("var f32[64]", "f32 var"),
            ("sum i8[64] -> i32", "i8 sum"),
            ("mean u8[64] -> f32", "u8 sum"),
            ("mean bf16[64]", "bf16 sum"),
            ("max,argmax f32[64]", "f32 max exact"),
        ] {
            let bytes = spec.parse::<Spec>().unwrap().inputs()[0].span_bytes() as usize;
            assert_eq!(held_against(spec).map(|(what, part, _)| (what, part)), Some((what, bytes)), "{spec}");
        }
        for (spec, what, part, row) in [
            ("sum f32[8,16] axes=[0]", "f32 outer sum", 512, 64),
            ("sum f32[8,4,4,4] axes=[0]", "f32 outer sum", 2048, 256),
            ("mean f64[3,8,16] axes=[1]", "f64 outer sum", 1024, 128),
            ("mean f64[3,8,16] axes=[0,1]", "f64 outer sum", 3072, 128),
        ] {
            assert_eq!(held_against(spec), Some((what, part, row)), "{spec}");
        }
        for spec in [
            "softmax f32[8,16] axes=[1]",
            "max f32[8,16] axes=[0]",
            "sum f32[8,8]@(16,1) axes=[1]",
            "sum f32[8,8], f32[8] axes=[1] map=\"x0*x1\"",
            "sum f32[64] acc=f64",
            "sum i64[64]",
        ] {
            assert_eq!(held_against(spec), None, "{spec}");
        }
    }
}
