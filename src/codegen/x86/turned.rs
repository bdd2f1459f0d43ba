//! Lanes that lie far apart in memory, beside whose elements others are loaded: blocks of a matrix whose columns become
//! vectors.
//!
//! ```text
//! for i0 in 0..16 lanes { a0[i0] = x0[1024*i0 + 4*k1] }
//! for i0 in 0..16 lanes { a0[i0 + 16] = x0[1024*i0 + 4*k1 + 1] }
//! for i0 in 0..16 lanes { a0[i0 + 32] = x0[1024*i0 + 4*k1 + 2] }
//! for i0 in 0..16 lanes { a0[i0 + 48] = x0[1024*i0 + 4*k1 + 3] }
//! ```
//!
//! Of loads like these, 16 bytes of a row are read at once: with N elements in 16 bytes, N loads that follow one another
//! are a *piece*. Row `r` goes into 16 bytes number `r / N` of vector `r mod N`. Then N rows by N columns are turned in
//! each 16 bytes of the N vectors: as many times as N has bits, elements of the first half of the vectors and of the
//! second half are interleaved, each time a rotation by one of the bits of an element's number, so that row and
//! column change places.
//!
//! What is read is what the loads name and nothing else. Pieces of one line of memory are made together, row by row, as
//! rows may push one another out of the cache, where they lie a power of two apart.

use super::machine::code::{Arg, Inst, Reg};
use super::machine::table::Opcode;
use super::{Generator, each_expr};
use crate::codegen::address::Access;
use crate::codegen::emit::Numbers;
use cranefold_ir::{BufId, BufferRole, DType, Expr, Extent, Index, LoopKind, Stmt};

/// Bytes of a row that are read at once.
const PIECE_BYTES: u64 = 16;

/// Bytes of a line of memory.
const LINE_BYTES: u64 = 64;

/// Loads of one body that are columns side by side.
pub(super) struct Block {
    buf: BufId,
    dtype: DType,
    /// The first one's index, without what moves with the lanes.
    first: Index,
    stride: i64,
    lanes: u64,
    /// Where pieces begin, in elements from the first.
    pieces: Vec<u64>,
    /// The columns of each piece by now.
    made: Option<Vec<Vec<Reg>>>,
}

/// The columns of one matrix.
struct Columns {
    buf: BufId,
    dtype: DType,
    terms: Index,
    stride: i64,
    lanes: u64,
    offsets: Vec<i64>,
}

impl<'a> Generator<'a> {
    /// The blocks among the loads of a body, those in its lanes.
    pub(super) fn blocks(&self, body: &'a [Stmt]) -> Vec<Block> {
        let mut all: Vec<Columns> = vec![];
        for stmt in body {
            let Stmt::For(l) = stmt else { continue };
            let (LoopKind::Lanes, Extent::Const(lanes)) = (l.kind, l.extent) else { continue };
            each_expr(&l.body, &mut |e| {
                let &Expr::Load(buf, dtype, ref index) = e else { return };
                let stride = index.coefficient(l.var);
                let is_input = self.around.nest.buffers[buf.0 as usize].role == BufferRole::In;
                if !is_input || lanes == 1 || matches!(stride, 0 | 1) || dtype.bytes() >= PIECE_BYTES {
                    return;
                }
                let terms = index.clone().plus(l.var, -stride).offset_by(-index.offset);
                let of = |c: &&mut Columns| c.buf == buf && c.stride == stride && c.lanes == lanes && c.terms == terms;
                match all.iter_mut().find(of) {
                    Some(columns) => columns.offsets.push(index.offset),
                    None => all.push(Columns { buf, dtype, terms, stride, lanes, offsets: vec![index.offset] }),
                }
            });
        }
        // A block has to fit the registers beside what else is in them.
        let most_vectors = if self.tier.is_512() { 16 } else { 8 };
        all.into_iter().flat_map(|columns| columns.blocks(most_vectors)).collect()
    }

    /// The lanes of a load, where it is a column of a block.
    pub(super) fn turned(&mut self, buf: BufId, start: &Index, from: &Access<Reg>) -> Option<Reg> {
        let (lanes, stride) = from.lanes?;
        let (n, piece, ahead) = self.turned.iter().enumerate().find_map(|(n, b)| {
            let ahead = start.offset - b.first.offset;
            let is_of = b.buf == buf && b.stride == stride && b.lanes == lanes && ahead >= 0;
            let in_piece = |&at: &u64| (at..at + b.columns()).contains(&(ahead as u64));
            let piece = b.pieces.iter().position(in_piece).filter(|_| is_of)?;
            (b.first.clone().offset_by(ahead) == *start).then_some((n, piece, ahead as u64))
        })?;
        if self.turned[n].made.is_none() {
            let made = self.made_of(n, from, ahead);
            self.turned[n].made = Some(made);
        }
        let block = &self.turned[n];
        Some(block.made.as_ref()?[piece][(ahead - block.pieces[piece]) as usize])
    }

    /// The columns of a block, by its pieces.
    fn made_of(&mut self, n: usize, from: &Access<Reg>, ahead: u64) -> Vec<Vec<Reg>> {
        let b = &self.turned[n];
        let (bytes, columns, stride, lanes) = (b.dtype.bytes(), b.columns(), b.stride, b.lanes);
        let pieces = b.pieces.clone();
        let (pointer, offset) = self.near(from.pointer, i64::from(from.offset_bytes) - (ahead * bytes) as i64);
        let mut vectors: Vec<Vec<Reg>> = vec![vec![]; pieces.len()];
        for row in 0..lanes {
            let (group, place) = (row / columns, (row % columns) as usize);
            for (&start, vectors) in pieces.iter().zip(&mut vectors) {
                let distance = (row as i64 * stride + start as i64) * bytes as i64;
                let (pointer, offset) = self.near(pointer, i64::from(offset) + distance);
                let to = self.vector();
                if group == 0 {
                    self.load_bytes(to, pointer, offset, PIECE_BYTES);
                    vectors.push(to);
                } else {
                    let (before, memory) = (self.full(vectors[place]), Arg::Mem(pointer, offset));
                    let args = [self.full(to), before, memory, Arg::Imm(group as i64)];
                    let code = Opcode::Vinserti128;
                    self.emit(Inst::new(code, &args));
                    vectors[place] = to;
                }
                self.stays_in_order();
            }
        }
        vectors.into_iter().map(|rows| self.columns_of(rows, columns as usize, bytes)).collect()
    }

    /// Rows by columns: of `count` vectors, or as many as have a row.
    fn columns_of(&mut self, mut vectors: Vec<Reg>, count: usize, bytes: u64) -> Vec<Reg> {
        // What fills the place of a row that there is not is in lanes that there are not.
        vectors.resize(count, vectors[0]);
        for _ in 0..count.ilog2() {
            let halves: Vec<(Reg, Reg)> = (0..count / 2).map(|n| (vectors[n], vectors[n + count / 2])).collect();
            vectors = halves
                .into_iter()
                .flat_map(|(a, b)| interleaved(bytes).map(|opcode| self.both(opcode, a, b)))
                .collect();
        }
        vectors
    }
}

impl Block {
    /// Columns of a piece.
    fn columns(&self) -> u64 {
        PIECE_BYTES / self.dtype.bytes()
    }
}

impl Columns {
    /// Pieces of those that follow one another, in blocks of at most a line and so many vectors.
    fn blocks(mut self, most_vectors: u64) -> Vec<Block> {
        self.offsets.sort_unstable();
        self.offsets.dedup();
        let in_piece = (PIECE_BYTES / self.dtype.bytes()) as usize;
        let in_block = (most_vectors as usize / in_piece).clamp(1, (LINE_BYTES / PIECE_BYTES) as usize);
        let runs = self.offsets.chunk_by(|a, b| a + 1 == *b).filter(|run| run.len() >= in_piece);
        let block = |starts: &[i64]| Block {
            buf: self.buf,
            dtype: self.dtype,
            first: self.terms.clone().offset_by(starts[0]),
            stride: self.stride,
            lanes: self.lanes,
            pieces: starts.iter().map(|start| (start - starts[0]) as u64).collect(),
            made: None,
        };
        let of_run = |run: &[i64]| {
            let mut starts: Vec<i64> = run.chunks_exact(in_piece).map(|piece| piece[0]).collect();
            if !run.len().is_multiple_of(in_piece) {
                // The last piece overlaps that before it.
                starts.push(run[run.len() - in_piece]);
            }
            starts.chunks(in_block).map(block).collect::<Vec<_>>()
        };
        runs.flat_map(of_run).collect()
    }
}

/// The instructions that interleave elements of the lower and of the upper halves of each 16 bytes.
fn interleaved(bytes: u64) -> [Opcode; 2] {
    match bytes {
        1 => [Opcode::Vpunpcklbw, Opcode::Vpunpckhbw],
        2 => [Opcode::Vpunpcklwd, Opcode::Vpunpckhwd],
        4 => [Opcode::Vpunpckldq, Opcode::Vpunpckhdq],
        _ => [Opcode::Vpunpcklqdq, Opcode::Vpunpckhqdq],
    }
}
