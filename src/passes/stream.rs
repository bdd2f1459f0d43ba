//! Merges blocks as they are done, with a stack of states.

use super::sums::mentions;
use crate::schedule::Schedule;
use crate::vectors::Vectors;
use cranefold_ir::{
    AccId, DType, Def, Expr, Extent, Index, Loop, LoopKind, LoopVar, Names, Nest, Over, Scalar, Stmt, tree,
};

/// Keeps the states of finished blocks on a stack, one level for each power of two, in place of all
/// states at once:
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
/// Legal because `merge` means just this order (see [`cranefold_ir::tree`]).
pub fn stream(mut nest: Nest, _: &Schedule, _: Vectors) -> Nest {
    let mut names = Names::after(&nest);
    let body = std::mem::take(&mut nest.body);
    nest.body = in_body(body, &mut nest, &mut names);
    nest
}

fn in_body(body: Vec<Stmt>, nest: &mut Nest, names: &mut Names) -> Vec<Stmt> {
    let inner = |stmt| match stmt {
        Stmt::For(l) => Stmt::For(Loop { body: in_body(l.body, nest, names), ..l }),
        other => other,
    };
    streamed(body.into_iter().map(inner).collect(), nest, names)
}

/// A body whose inner bodies are done. It may hold several merges, one after the other, each of what stands
/// between the one before and itself.
fn streamed(mut body: Vec<Stmt>, nest: &mut Nest, names: &mut Names) -> Vec<Stmt> {
    let Some(at) = body.iter().position(|s| matches!(s, Stmt::Merge { .. })) else { return body };
    let Stmt::Merge { accs, def, blocks, elems } = body.remove(at) else { unreachable!("just found") };
    let state = Streamed::new(&body, accs, nest.def(def).clone(), (blocks, elems), names);
    let rest = body.split_off(at);
    let mut out = vec![];
    let mut has_stacks = false;
    for stmt in body {
        match stmt {
            Stmt::Acc { acc, .. } if state.parts.iter().any(|p| p.all == acc) => {}
            Stmt::For(l) if l.var.over == Over::Block && state.is_in(&l.body) => {
                if !std::mem::replace(&mut has_stacks, true) {
                    out.extend(state.declare_stacks());
                }
                out.push(Stmt::For(state.blocks(l, nest, names)));
            }
            other => out.push(other),
        }
    }
    out.extend(state.drain(nest, names));
    out.extend(streamed(rest, nest, names));
    out
}

/// One part of the state.
struct Part {
    /// The accumulator that held all blocks; of the result, once drained.
    all: AccId,
    /// The state of the current block.
    block: AccId,
    /// The stack.
    stack: AccId,
    dtype: DType,
    init: Scalar,
}

struct Streamed {
    parts: Vec<Part>,
    def: Def,
    blocks: u64,
    elems: u64,
}

impl Streamed {
    fn new(body: &[Stmt], accs: Vec<AccId>, def: Def, (blocks, elems): (u64, u64), names: &mut Names) -> Streamed {
        let part = |all: AccId| {
            let declared = body.iter().find_map(|s| match s {
                Stmt::Acc { acc, dtype, init, .. } if *acc == all => Some((*dtype, *init)),
                _ => None,
            });
            let (dtype, init) = declared.expect("a merged accumulator is declared beside its merge");
            Part { all, block: names.acc(), stack: names.acc(), dtype, init }
        };
        Streamed { parts: accs.into_iter().map(part).collect(), def, blocks, elems }
    }

    /// Whether a body has to do with the state; that of a sum of integers whose blocks were joined has not.
    fn is_in(&self, body: &[Stmt]) -> bool {
        self.parts.iter().any(|p| body.iter().any(|s| mentions(s, p.all)))
    }

    fn declare_stacks(&self) -> Vec<Stmt> {
        let levels = u64::from(self.blocks.ilog2()) + 1;
        let stack = |p: &Part| Stmt::Acc { acc: p.stack, dtype: p.dtype, len: levels * self.elems, init: p.init };
        self.parts.iter().map(stack).collect()
    }

    /// A loop over blocks: in order now, each block's state pushed when it is done.
    fn blocks(&self, l: Loop, nest: &mut Nest, names: &mut Names) -> Loop {
        let is_outer = matches!(l.body.first(), Some(Stmt::For(inner)) if inner.var.over == Over::Block);
        let body = if is_outer {
            let inner = l.body.into_iter().map(|s| match s {
                Stmt::For(inner) if self.is_in(&inner.body) => Stmt::For(self.blocks(inner, nest, names)),
                other => other,
            });
            inner.collect()
        } else {
            self.block(l.body, nest, names)
        };
        Loop { kind: LoopKind::Seq, body, ..l }
    }

    fn block(&self, body: Vec<Stmt>, nest: &mut Nest, names: &mut Names) -> Vec<Stmt> {
        let inner = loops_over_blocks(&body);
        let in_flight: u64 = inner.iter().map(|&(_, extent)| extent).product();
        let mut number = None;
        let mut to_block = |acc: &mut AccId, index: Index| -> Index {
            let Some(part) = self.parts.iter().find(|p| p.all == *acc) else { return index };
            *acc = part.block;
            let elems = self.elems as i64;
            let mut block = Index::constant(index.offset.div_euclid(elems));
            let mut element = Index::constant(index.offset.rem_euclid(elems));
            for (var, c) in index.terms() {
                match var.over {
                    Over::Block if inner.iter().all(|&(v, _)| v != var) => block = block.plus(var, c / elems),
                    _ => element = element.plus(var, c),
                }
            }
            number = Some(block);
            element
        };
        let body = rename(body, &mut to_block);
        let number = number.expect("a block writes its state");
        let mut out: Vec<Stmt> = self.parts.iter().map(|p| self.declare(p.block, p, in_flight)).collect();
        out.extend(body);
        for b in 0..in_flight as i64 {
            out.extend(self.push(number.clone().offset_by(b), b * self.elems as i64, nest, names));
        }
        // Each group of blocks has its own.
        super::renamed(out, names)
    }

    fn declare(&self, acc: AccId, part: &Part, states: u64) -> Stmt {
        Stmt::Acc { acc, dtype: part.dtype, len: states * self.elems, init: part.init }
    }

    /// Merges a block just done, whose state starts at `start`, with as many levels as its number
    /// carries, and stores it.
    fn push(&self, number: Index, start: i64, nest: &mut Nest, names: &mut Names) -> Vec<Stmt> {
        let (carry, level) = (names.loop_over(Over::Level), names.loop_over(Over::Level));
        let merge = self.merge(|p| p.block, start, Index::term(level, self.elems as i64), nest, names);
        let merges = Loop { var: level, extent: Extent::Carry(carry), kind: LoopKind::Seq, body: vec![merge] };
        let copy = self.copy(
            |p, e| (p.stack, Index::term(carry, self.elems as i64).add(&e)),
            |p, e| (p.block, e.offset_by(start)),
            names,
        );
        vec![Stmt::Carry { var: carry, of: number }, Stmt::For(merges), copy]
    }

    /// What is left on the stack, from the newest to the oldest.
    fn drain(&self, nest: &mut Nest, names: &mut Names) -> Vec<Stmt> {
        let mut out: Vec<Stmt> = self.parts.iter().map(|p| self.declare(p.all, p, 1)).collect();
        for (n, level) in tree::levels(self.blocks).enumerate() {
            let start = Index::constant(i64::from(level) * self.elems as i64);
            out.push(match n {
                0 => self.copy(|p, e| (p.all, e), |p, e| (p.stack, start.add(&e)), names),
                _ => self.merge(|p| p.all, 0, start, nest, names),
            });
        }
        out
    }

    /// `newer[start + e] = merge(stack[level + e], newer[start + e])` for every element.
    fn merge(
        &self,
        newer: impl Fn(&Part) -> AccId,
        start: i64,
        level: Index,
        nest: &mut Nest,
        names: &mut Names,
    ) -> Stmt {
        let element = names.loop_over(Over::Element);
        let (on_stack, e) = (level.plus(element, 1), Index::term(element, 1).offset_by(start));
        let older = self.parts.iter().map(|p| Expr::Read(p.stack, p.dtype, on_stack.clone()));
        let newest = self.parts.iter().map(|p| Expr::Read(newer(p), p.dtype, e.clone()));
        let args = older.chain(newest).collect();
        let (mut body, values) = nest.apply(names, &self.def, args);
        for (part, value) in self.parts.iter().zip(values) {
            body.push(Stmt::Set { acc: newer(part), index: e.clone(), value });
        }
        Stmt::For(Loop::new(element, self.elems, LoopKind::Parallel, body))
    }

    /// `to[e] = from[e]` for every element.
    fn copy(
        &self,
        to: impl Fn(&Part, Index) -> (AccId, Index),
        from: impl Fn(&Part, Index) -> (AccId, Index),
        names: &mut Names,
    ) -> Stmt {
        let var: LoopVar = names.loop_over(Over::Element);
        let e = Index::term(var, 1);
        let set = |p: &Part| {
            let ((acc, index), (source, at)) = (to(p, e.clone()), from(p, e.clone()));
            Stmt::Set { acc, index, value: Expr::Read(source, p.dtype, at) }
        };
        let body = self.parts.iter().map(set).collect();
        Stmt::For(Loop::new(var, self.elems, LoopKind::Parallel, body))
    }
}

/// The loops over blocks in a body: of blocks in flight together.
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

/// The body with each access of an accumulator renamed.
fn rename(body: Vec<Stmt>, f: &mut impl FnMut(&mut AccId, Index) -> Index) -> Vec<Stmt> {
    let mut stmt = |s: Stmt| -> Stmt {
        let s = s.map_exprs(&mut |e| {
            e.rewrite(&mut |e| match e {
                Expr::Read(mut acc, dtype, index) => {
                    let index = f(&mut acc, index);
                    Expr::Read(acc, dtype, index)
                }
                e => e,
            })
        });
        match s {
            Stmt::Set { mut acc, index, value } => {
                let index = f(&mut acc, index);
                Stmt::Set { acc, index, value }
            }
            other => other,
        }
    };
    super::rewrite(body, &mut |s, out| out.push(stmt(s)))
}
