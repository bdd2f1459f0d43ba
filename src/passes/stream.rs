//! Merges blocks as they are done, on a stack of states.

use crate::schedule::Schedule;
use crate::vectors::Vectors;
use cranefold_ir::analysis::{map_elements, mentions, partition, renamed, split_block};
use cranefold_ir::{
    AccId, DType, Def, Expr, Extent, Index, Loop, LoopKind, LoopVar, Names, Nest, Over, Scalar, Stmt, tree,
};

/// Keeps the states of finished blocks on a stack with one level for each power of two, instead of all states at once:
///
/// ```text
/// acc a0: f32[1600] = -0.0
/// for b1 in 0..25 parallel { S(a0[64*b1 + ..]) }
/// merge a0 by sum over 25 of 64
/// ->
/// acc a1: f32[320] = -0.0
/// for b1 in 0..25 seq {
///   acc a2: f32[64] = -0.0
///   S(a2[..])
///   carry q2 = b1
///   for q3 in 0..q2 seq { for e4 in 0..64 parallel { a2[e4] = sum(a1[64*q3 + e4], a2[e4]) } }
///   for e5 in 0..64 parallel { a1[64*q2 + e5] = a2[e5] }
/// }
/// acc a0: f32[64] = -0.0
/// for e6 in 0..64 parallel { a0[e6] = a1[e6] }                            # level 0
/// for e7 in 0..64 parallel { a0[e7] = sum(a1[e7 + 192], a0[e7]) }         # level 3
/// for e8 in 0..64 parallel { a0[e8] = sum(a1[e8 + 256], a0[e8]) }         # level 4
/// ```
///
/// Where loops over outputs stand between loops over blocks, each output has its own elements on every level, and
/// pushes its own blocks:
///
/// ```text
/// for b1 in 0..64 parallel { for i0 in 0..20 parallel { for b2 in 0..4 parallel { S(a0[1280*b1 + 320*b2 + 16*i0 + ..]) } } }
/// merge a0 by sum over 256 of 320
/// ->
/// for b1 in 0..64 seq {
///   for i0 in 0..20 parallel {
///     for b2 in 0..4 seq {
///       acc a2: f32[16] = -0.0
///       S(a2[..])
///       carry q3 = 4*b1 + b2
///       for q4 in 0..q3 seq { for e5 in 0..16 parallel { a2[e5] = sum(a1[320*q4 + 16*i0 + e5], a2[e5]) } }
///       for e6 in 0..16 parallel { a1[320*q3 + 16*i0 + e6] = a2[e6] }
///     }
///   }
/// }
/// ```
///
/// Where a block's lanes are walked directly around outputs that cross vectors, loops over its state walk the same rows, if
/// registers hold them all: `for e4 in 0..4 parallel { for e5 in 0..12 parallel { a2[12*e4 + e5] = .. } }`.
///
/// Legal because `merge` means just this order for each element (see [`cranefold_ir::tree`]).
pub fn stream(mut nest: Nest, _: &Schedule, vectors: Vectors) -> Nest {
    let mut names = Names::after(&nest);
    let body = std::mem::take(&mut nest.body);
    nest.body = in_body(body, &mut nest, vectors, &mut names);
    nest
}

fn in_body(body: Vec<Stmt>, nest: &mut Nest, vectors: Vectors, names: &mut Names) -> Vec<Stmt> {
    let inner = |stmt| {
        let Stmt::For(l) = stmt else { return stmt };
        Stmt::For(Loop { body: in_body(l.body, nest, vectors, names), ..l })
    };
    streamed(body.into_iter().map(inner).collect(), nest, vectors, names)
}

/// A body whose inner bodies are done. It may hold several merges, each of which merges the loops before it that use its
/// state; a loop may have the blocks of several.
fn streamed(mut body: Vec<Stmt>, nest: &mut Nest, vectors: Vectors, names: &mut Names) -> Vec<Stmt> {
    let Some(at) = body.iter().position(|s| matches!(s, Stmt::Merge { .. })) else { return body };
    let Stmt::Merge { accs, def, blocks, elems } = body.remove(at) else { unreachable!("just found") };
    let state = Streamed::new(&body, accs, nest.def(def).clone(), (blocks, elems), vectors, names);
    let rest = body.split_off(at);
    let mut out = vec![];
    let mut has_stacks = false;
    for stmt in body {
        match stmt {
            Stmt::Acc { acc, .. } if state.values.iter().any(|p| p.all == acc) => {}
            Stmt::For(l) if holds_blocks(&l) && state.is_in(&l.body) => {
                if !std::mem::replace(&mut has_stacks, true) {
                    out.extend(state.declare_stacks());
                }
                out.push(Stmt::For(state.blocks(l, &Outputs::ALL, nest, names)));
            }
            other @ (Stmt::For(_) | Stmt::Wide { .. } | Stmt::Acc { .. } | Stmt::Let { .. }) => out.push(other),
            other @ (Stmt::Call { .. } | Stmt::Set { .. } | Stmt::Store { .. } | Stmt::Carry { .. }) => out.push(other),
            other @ (Stmt::Pick { .. } | Stmt::Merge { .. } | Stmt::Fold { .. } | Stmt::Select { .. }) => {
                out.push(other)
            }
            other @ (Stmt::Transpose(_) | Stmt::TransposedStore(_)) => out.push(other),
            other @ (Stmt::Misalign { .. } | Stmt::Rotate { .. } | Stmt::Prefetch { .. }) => out.push(other),
        }
    }
    out.extend(state.drain(nest, names));
    out.extend(rest);
    streamed(out, nest, vectors, names)
}

/// One value of the state.
struct StreamedValue {
    /// The accumulator that held the states of all blocks; after the drain it holds the result.
    all: AccId,
    /// The accumulator of the current block's state.
    block: AccId,
    /// The stack.
    stack: AccId,
    dtype: DType,
    init: Scalar,
}

impl StreamedValue {
    fn declare(&self, acc: AccId, len: u64) -> Stmt {
        Stmt::Acc { acc, dtype: self.dtype, len, init: self.init }
    }
}

/// The loops over outputs between loops over blocks, around a block.
struct Outputs {
    vars: Vec<LoopVar>,
    /// The number of outputs that the loops walk.
    count: u64,
}

impl Outputs {
    /// No loops: a block has the elements of all outputs.
    const ALL: Outputs = Outputs { vars: vec![], count: 1 };

    /// These loops with one more inside them.
    fn within(&self, l: &Loop) -> Outputs {
        let Extent::Const(extent) = l.extent else { unreachable!("loops over outputs are constant") };
        Outputs { vars: self.vars.iter().copied().chain([l.var]).collect(), count: self.count * extent }
    }
}

/// A block just done.
struct Done<'i> {
    number: Index,
    rows: Rows,
    /// The start of the block's state among the blocks in flight.
    start: i64,
    /// The block's first element on each level of the stack.
    first: &'i Index,
}

/// The elements of a state, and how many of them loops walk one behind the other.
#[derive(Clone, Copy)]
struct Rows {
    elems: u64,
    of: u64,
}

impl Rows {
    /// One row.
    fn one(elems: u64) -> Rows {
        Rows { elems, of: elems }
    }

    /// A loop over the elements by rows.
    fn walk(self, names: &mut Names, body: impl FnOnce(Index, &mut Names) -> Vec<Stmt>) -> Stmt {
        let element = names.loop_over(Over::Element);
        if self.of == self.elems {
            let body = body(Index::term(element, 1), names);
            return Stmt::For(Loop::new(element, self.elems, LoopKind::Parallel, body));
        }
        let row = names.loop_over(Over::Element);
        let body = body(Index::term(row, self.of as i64).plus(element, 1), names);
        let inner = Stmt::For(Loop::new(element, self.of, LoopKind::Parallel, body));
        Stmt::For(Loop::new(row, self.elems / self.of, LoopKind::Parallel, vec![inner]))
    }
}

struct Streamed {
    values: Vec<StreamedValue>,
    def: Def,
    blocks: u64,
    elems: u64,
    vectors: Vectors,
}

impl Streamed {
    fn new(
        body: &[Stmt],
        accs: Vec<AccId>,
        def: Def,
        (blocks, elems): (u64, u64),
        vectors: Vectors,
        names: &mut Names,
    ) -> Streamed {
        let part = |all: AccId| {
            let declared = body.iter().find_map(|s| {
                let Stmt::Acc { acc, dtype, init, .. } = s else { return None };
                (*acc == all).then_some((*dtype, *init))
            });
            let (dtype, init) = declared.expect("a merged accumulator is declared beside its merge");
            StreamedValue { all, block: names.acc(), stack: names.acc(), dtype, init }
        };
        Streamed { values: accs.into_iter().map(part).collect(), def, blocks, elems, vectors }
    }

    /// The rows by which a block's state is walked: those of loops over lanes directly around outputs, if they cross vectors
    /// and registers hold all of them. Every loop walks these rows then, so that each has registers of its own: where others
    /// walked vectors across them, all lay in memory.
    fn rows(&self, body: &[Stmt], elems: u64) -> Rows {
        let mut found = vec![];
        body.iter().for_each(|s| {
            s.visit(&mut |s| {
                if let Stmt::For(l) = s {
                    found.extend(self.row_of(l));
                }
            })
        });
        let vector_bytes = u64::from(self.vectors.bits / 8).max(1);
        let bytes = |of: u64| self.values.iter().map(move |p| of * p.dtype.bytes());
        let cross = |of: u64| bytes(of).any(|row| row % vector_bytes > 0 && vector_bytes % row > 0);
        let fit = |of: u64| {
            let registers: u64 = bytes(of).map(|row| row.div_ceil(vector_bytes)).sum();
            elems / of * registers <= self.vectors.state_registers()
        };
        match found.first() {
            Some(&of) if self.vectors.are_wide() && found.iter().all(|other| *other == of) => {
                let of_rows = elems.is_multiple_of(of) && cross(of) && fit(of);
                if of_rows { Rows { elems, of } } else { Rows::one(elems) }
            }
            _ => Rows::one(elems),
        }
    }

    /// The number of outputs in the rows that a loop over lanes walks, if they lie one behind the other in the state.
    fn row_of(&self, l: &Loop) -> Option<u64> {
        let [Stmt::For(inner)] = l.body.as_slice() else { return None };
        let Extent::Const(outputs @ 2..) = inner.extent else { return None };
        let is_elsewhere = |s: &Stmt| {
            let Stmt::Set { acc, index, .. } = s else { return false };
            let is_row = index.coefficient(l.var) == outputs as i64 && index.coefficient(inner.var) == 1;
            self.values.iter().any(|p| p.all == *acc) && !is_row
        };
        let are_lanes = l.var.over == Over::Lane && inner.var.over == Over::Output;
        (are_lanes && !inner.body.iter().any(is_elsewhere)).then_some(outputs)
    }

    /// Returns true if a body uses the state. The body of a joined integer sum does not.
    fn is_in(&self, body: &[Stmt]) -> bool {
        self.values.iter().any(|p| body.iter().any(|s| mentions(s, p.all)))
    }

    fn declare_stacks(&self) -> Vec<Stmt> {
        let levels = u64::from(self.blocks.ilog2()) + 1;
        self.values.iter().map(|p| p.declare(p.stack, levels * self.elems)).collect()
    }

    /// A sequential loop over blocks that pushes the state of each block when it is done; or a loop over outputs around
    /// such loops.
    fn blocks(&self, l: Loop, around: &Outputs, nest: &mut Nest, names: &mut Names) -> Loop {
        let (kind, around) = match l.var.over == Over::Output {
            true => (l.kind, &around.within(&l)),
            false => (LoopKind::Seq, around),
        };
        let is_outer = matches!(l.body.first(), Some(Stmt::For(inner)) if holds_blocks(inner));
        let body = if is_outer {
            let inner = l.body.into_iter().map(|s| match s {
                Stmt::For(inner) if self.is_in(&inner.body) => Stmt::For(self.blocks(inner, around, nest, names)),
                other @ (Stmt::For(_) | Stmt::Wide { .. } | Stmt::Acc { .. } | Stmt::Let { .. }) => other,
                other @ (Stmt::Call { .. } | Stmt::Set { .. } | Stmt::Store { .. } | Stmt::Carry { .. }) => other,
                other @ (Stmt::Pick { .. } | Stmt::Merge { .. } | Stmt::Fold { .. } | Stmt::Select { .. }) => other,
                other @ (Stmt::Transpose(_) | Stmt::TransposedStore(_)) => other,
                other @ (Stmt::Misalign { .. } | Stmt::Rotate { .. } | Stmt::Prefetch { .. }) => other,
            });
            inner.collect()
        } else {
            self.block(l.body, around, nest, names)
        };
        Loop { kind, body, ..l }
    }

    fn block(&self, body: Vec<Stmt>, around: &Outputs, nest: &mut Nest, names: &mut Names) -> Vec<Stmt> {
        let inner = loops_over_blocks(&body);
        let rows = self.rows(&body, self.elems / around.count);
        let in_flight: u64 = inner.iter().map(|&(_, extent)| extent).product();
        let mut place = None;
        let of_blocks = |var: LoopVar| var.over == Over::Block && inner.iter().all(|&(v, _)| v != var);
        let body = map_elements(body, &mut |acc, index| {
            let Some(part) = self.values.iter().find(|p| p.all == acc) else { return (acc, index) };
            let (block, of_all) = split_block(&index, self.elems, of_blocks);
            let (first, element) = partition(&of_all, |var| around.vars.contains(&var));
            place = Some((block, first));
            (part.block, element)
        });
        let (number, first) = place.expect("a block writes its state");
        let elems = self.elems / around.count;
        let mut out: Vec<Stmt> = self.values.iter().map(|p| p.declare(p.block, in_flight * elems)).collect();
        out.extend(body);
        for b in 0..in_flight {
            let number = number.clone().offset_by(b as i64);
            let done = Done { number, rows, start: (b * elems) as i64, first: &first };
            out.extend(self.push(done, nest, names));
        }
        // Each group of blocks declares its own names.
        renamed(out, names)
    }

    /// Merges the state of a finished block with as many levels as its number carries, and stores the result.
    fn push(&self, done: Done, nest: &mut Nest, names: &mut Names) -> Vec<Stmt> {
        let Done { number, rows, start, first } = done;
        let (carry, level) = (names.loop_over(Over::Level), names.loop_over(Over::Level));
        let on_level = |var| first.clone().plus(var, self.elems as i64);
        let merge = self.merge((|p| p.block, start), on_level(level), rows, nest, names);
        let merges = Loop { var: level, extent: Extent::Carry(carry), kind: LoopKind::Seq, body: vec![merge] };
        let stored = on_level(carry);
        let copy = self.copy(rows, |p, e| (p.stack, stored.add(&e)), |p, e| (p.block, e.offset_by(start)), names);
        vec![Stmt::Carry { var: carry, of: number }, Stmt::For(merges), copy]
    }

    /// Statements that merge the states left on the stack, from the newest to the oldest.
    fn drain(&self, nest: &mut Nest, names: &mut Names) -> Vec<Stmt> {
        let mut out: Vec<Stmt> = self.values.iter().map(|p| p.declare(p.all, self.elems)).collect();
        for (n, level) in tree::levels(self.blocks).enumerate() {
            let start = Index::constant(i64::from(level) * self.elems as i64);
            out.push(match n {
                0 => self.copy(Rows::one(self.elems), |p, e| (p.all, e), |p, e| (p.stack, start.add(&e)), names),
                _ => self.merge((|p| p.all, 0), start, Rows::one(self.elems), nest, names),
            });
        }
        out
    }

    /// `newer[start + e] = merge(stack[older + e], newer[start + e])` for the elements of rows.
    fn merge(
        &self,
        (newer, start): (impl Fn(&StreamedValue) -> AccId, i64),
        older: Index,
        rows: Rows,
        nest: &mut Nest,
        names: &mut Names,
    ) -> Stmt {
        rows.walk(names, |element, names| {
            let (on_stack, e) = (older.add(&element), element.offset_by(start));
            let older = self.values.iter().map(|p| Expr::Read(p.stack, p.dtype, on_stack.clone()));
            let newest = self.values.iter().map(|p| Expr::Read(newer(p), p.dtype, e.clone()));
            let args = older.chain(newest).collect();
            let (mut body, values) = nest.apply(names, &self.def, args);
            for (part, value) in self.values.iter().zip(values) {
                body.push(Stmt::Set { acc: newer(part), index: e.clone(), value });
            }
            body
        })
    }

    /// `to[e] = from[e]` for the elements of rows.
    fn copy(
        &self,
        rows: Rows,
        to: impl Fn(&StreamedValue, Index) -> (AccId, Index),
        from: impl Fn(&StreamedValue, Index) -> (AccId, Index),
        names: &mut Names,
    ) -> Stmt {
        rows.walk(names, |e, _| {
            let set = |p: &StreamedValue| {
                let ((acc, index), (source, at)) = (to(p, e.clone()), from(p, e.clone()));
                Stmt::Set { acc, index, value: Expr::Read(source, p.dtype, at) }
            };
            self.values.iter().map(set).collect()
        })
    }
}

/// Returns true for a loop over blocks, and for a loop over outputs around one.
fn holds_blocks(l: &Loop) -> bool {
    let inner = || matches!(l.body.first(), Some(Stmt::For(inner)) if holds_blocks(inner));
    l.var.over == Over::Block || l.var.over == Over::Output && inner()
}

/// The loops over blocks in a body, which are the blocks in flight.
fn loops_over_blocks(body: &[Stmt]) -> Vec<(LoopVar, u64)> {
    let mut loops: Vec<(LoopVar, u64)> = vec![];
    body.iter().for_each(|s| {
        s.visit(&mut |s| {
            if let Stmt::For(Loop { var, extent: Extent::Const(n), .. }) = s
                && var.over == Over::Block
                && !loops.contains(&(*var, *n))
            {
                loops.push((*var, *n));
            }
        })
    });
    loops
}
