//! Whole vector loads, and shuffles of lanes.

use super::{ClifValue, Generator, Number, Val, Walk, vector_type};
use crate::codegen::address::Access;
use crate::codegen::emit::Shuffles;
use crate::vectors::Vectors;
use cranelift_codegen::ir::InstBuilder;

impl<'a> Shuffles<'a> for Generator<'a> {
    fn vectors(&self) -> Vectors {
        if self.vectors == Vectors::NONE { Vectors::NONE } else { Vectors::BASE }
    }

    fn load_whole(&mut self, walk: &Walk<'a>, from: Access<Number>, _: [u64; 2]) -> ClifValue {
        let pointer = self.value_of(from.pointer);
        let flags = self.load_flags(from.base, walk.nest);
        let value = self.builder.ins().load(vector_type(from.dtype), flags, pointer, from.offset_bytes);
        ClifValue::Val(Val { value, dtype: from.dtype, lanes: 16 / from.dtype.bytes() })
    }

    fn load_piece(
        &mut self,
        walk: &Walk<'a>,
        from: Access<Number>,
        skipped: u64,
        _: Option<(ClifValue, u64)>,
    ) -> ClifValue {
        let piece = self.load_whole(walk, from, [0; 2]);
        if skipped == 0 { piece } else { self.lanes_of([piece; 2], |i, lanes| (i + skipped) % lanes) }
    }

    fn interleaved(&mut self, vectors: [ClifValue; 2]) -> [ClifValue; 2] {
        [0, 1].map(|upper| self.lanes_of(vectors, |i, lanes| i % 2 * lanes + upper * lanes / 2 + i / 2))
    }

    fn evens_and_odds(&mut self, vectors: [ClifValue; 2], _: u64) -> [ClifValue; 2] {
        [0, 1].map(|odd| self.lanes_of(vectors, |i, _| 2 * i + odd))
    }

    fn by_turns(&mut self, vectors: [ClifValue; 2], _: u64) -> [ClifValue; 2] {
        self.interleaved(vectors)
    }

    fn blended(&mut self, vectors: [ClifValue; 2], second: &[bool]) -> ClifValue {
        self.lanes_of(vectors, |i, lanes| if second[i as usize] { lanes + i } else { i })
    }

    fn chosen(&mut self, vectors: [ClifValue; 2], order: &[u64]) -> ClifValue {
        self.lanes_of(vectors, |i, _| order[i as usize])
    }

    fn permuted(&mut self, vector: ClifValue, order: &[u64]) -> ClifValue {
        self.lanes_of([vector; 2], |i, _| order[i as usize])
    }
}

impl Generator<'_> {
    /// The vector whose lane `i` is lane `from(i, lanes)` of two vectors, with the lanes of the second numbered on.
    fn lanes_of(&mut self, vectors: [ClifValue; 2], from: impl Fn(u64, u64) -> u64) -> ClifValue {
        let lanes = |operand: &ClifValue| if let ClifValue::Val(v) = operand { v.lanes } else { 1 };
        let lanes = vectors.iter().map(lanes).max().expect("two");
        let [a, b] = vectors.map(|operand| self.vector(operand, lanes));
        let value = self.pick_lanes(a.value, b.value, a.dtype, |i| from(i, lanes));
        ClifValue::Val(Val { value, ..a })
    }
}
