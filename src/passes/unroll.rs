//! Unrolls short loops.

use super::lanes::loads;
use super::short::{GROUP, SHORT};
use crate::schedule::Schedule;
use crate::vectors::Vectors;
use cranefold_ir::analysis::{
    Access, Zone, is_elementwise, renamed, rewrite_zones, substitute, touched, visit_accesses, visit_exprs,
};
use cranefold_ir::work::{Work, one_each};
use cranefold_ir::{AccId, Def, Expr, Extent, Index, Loop, LoopKind, LoopVar, Names, Nest, Op, Over, Stmt};
use rustc_hash::{FxHashMap, FxHashSet};

/// The most operations that an unrolled parallel loop has. With more, keeping accumulators in memory costs little
/// beside the operations, and a loop keeps the code small and quick to compile.
const PARALLEL_OPS: u64 = 80;

/// The most operations of an unrolled parallel loop of one group of vectors, whose chains of operations then run side
/// by side. A Zen 4 computes a `tanh` of 33 operations 6 % faster that way, and `gelu_tanh` 12 %.
const GROUP_OPS: u64 = 240;

/// The most operations of an unrolled loop that ends slices, if the states of their steps fit the registers: as a loop, it
/// would find them in memory, and so would each step. `var` over 14 rows of 96 columns took 1.5 times as long.
const ENDING_OPS: u64 = 240;

/// The most iterations of an unrolled loop over elements that runs seldom.
const COLD: u64 = 2;

/// The most copies of the same lanes that are written out, and the most vectors that they fill: each vector of them becomes one
/// permutation. `argmax` of bf16[277,36,3] over axis 1 took 12.4 us with a loop that stored 32 copies of three lanes, and 4.2
/// without.
const MOST_COPIES: u64 = 64;
const COPIED_VECTORS: u64 = 8;

/// The most operations of a loop over lanes of which each line of memory is read once where it is unrolled.
const LINE_OPS: u64 = 512;

/// The most vectors of states that a loop over lanes writes where it is written out rather than unrolled by a line of
/// memory. More than there are registers: what is left over is kept in memory, as all of it would be in a loop.
const MOST_STATES: u64 = 84;

/// The most operations in a step of a wide function whose steps are unrolled in groups.
const LIGHT_OPS: u64 = 8;

/// The most operations that an unrolled loop over steps has.
const STEP_OPS: u64 = 32;

/// Unrolls loops of one iteration, loops over jammed steps, short loops over steps, and short parallel loops that hold
/// no selection and no loop of scalar or sequential code:
///
/// ```text
/// for l2 in 0..2 parallel { for l0 in 0..4 lanes { a0[4*l2 + l0] = add(a0[4*l2 + l0], x0[4*l2 + l0]) } }
/// ->
/// for l0 in 0..4 lanes { a0[l0] = add(a0[l0], x0[l0]) }
/// for l0 in 0..4 lanes { a0[l0 + 4] = add(a0[l0 + 4], x0[l0 + 4]) }
/// ```
///
/// In a wide function, four steps become one iteration if a step does little. A loop over lanes, or over lanes and outputs
/// that were joined, is unrolled by the elements in a line of memory where its elements are neighbours in an input and the
/// outputs inside it lie apart; the generator of wide vectors then reads each line once:
///
/// ```text
/// for l2 in 0..64 parallel { for i0 in 0..16 lanes { a0[i0 + 16*l2] = x0[1024*i0 + l2] } }
/// ->
/// for l2 in 0..4 parallel {
///   for i0 in 0..16 lanes { a0[i0 + 256*l2] = x0[1024*i0 + 16*l2] }
///   ..
///   for i0 in 0..16 lanes { a0[i0 + 256*l2 + 240] = x0[1024*i0 + 16*l2 + 15] }
/// }
/// ```
///
/// It is written out whole if it is short enough for its states to live in registers, or most of them; a loop over
/// positions is if it is no longer than a line. `dy - exp(y) * sum(dy)` of rows of 10 took three times as long where each
/// position was loaded and stored by itself. So is a loop whose vectors are loaded in parts, each of which ends where that of
/// the next iteration begins: `load_rows` sees all of them then. `log(sum(exp(x)))` of f32[1365,6,2] over axis 1 took twice as
/// long with the parts of each row by themselves.
///
/// Accumulators whose every index has become constant live in registers. A loop that ends slices is therefore unrolled even
/// if it does much, where the states of their steps fit, and so is a longer loop over copies of the same lanes, each vector of
/// which is one permutation. A loop over elements of accumulators to which no element of an input is added runs seldom and
/// stays a loop. Folds that several outputs share run often.
///
/// Legal because the order of iterations does not change.
pub fn unroll(nest: Nest, _: &Schedule, vectors: Vectors) -> Nest {
    let mut names = Names::after(&nest);
    let hot = Hot::of(&nest);
    let mut bound: FxHashMap<LoopVar, u64> = FxHashMap::default();
    nest.visit(&mut |s| {
        if !matches!(s, Stmt::For(_)) {
            s.bound_loop_var().iter().for_each(|var| *bound.entry(*var).or_default() += 1);
        }
    });
    let body = rewrite_zones(nest.body, Zone::Outside, &mut |stmt, zone| {
        let Stmt::For(l) = stmt else { return None };
        let Extent::Const(n @ 1..) = l.extent else { return None };
        if rebinds(&l.body, n, &bound) {
            None
        } else if is_short(l, n, &nest.defs, &hot, vectors) {
            Some(write_out(l.take(), n, &mut names))
        } else if zone == Zone::Wide && is_light(l, n, &nest.defs) {
            Some(in_groups(l.take(), n, GROUP, &mut names))
        } else if zone == Zone::Wide && crosses_lanes(l, &[Over::Lane, Over::Output]) && n > SHORT {
            let fits = n < 4 * SHORT && n * vectors_set(&l.body) <= MOST_STATES;
            Some(if fits { write_out(l.take(), n, &mut names) } else { in_groups(l.take(), n, SHORT, &mut names) })
        } else if zone == Zone::Wide && is_line(l, n) && n.saturating_mul(ops(&l.body, &nest.defs)) <= LINE_OPS {
            Some(write_out(l.take(), n, &mut names))
        } else {
            None
        }
    });
    Nest { body, ..nest }
}

/// Returns whether `n` copies of a body may bind a variable of a carry, a pick or a place where it is bound already.
fn rebinds(body: &[Stmt], n: u64, bound: &FxHashMap<LoopVar, u64>) -> bool {
    let others = body.iter().filter(|s| !matches!(s, Stmt::For(_)));
    others.filter_map(Stmt::bound_loop_var).any(|var| n > 1 || bound.get(&var) > Some(&1))
}

/// The accumulators of elements with their copies and sums, and the loops inside loops over steps.
#[derive(Default)]
struct Hot {
    /// The accumulators, with the bytes of each.
    accs: FxHashMap<AccId, u64>,
    /// The variables of the loops.
    loops: FxHashSet<LoopVar>,
}

impl Hot {
    fn of(nest: &Nest) -> Hot {
        let mut hot = Hot::default();
        let mut bytes: FxHashMap<AccId, u64> = FxHashMap::default();
        // The accumulators that loads alone fill.
        let mut rows: FxHashSet<AccId> = FxHashSet::default();
        nest.visit(&mut |s| {
            if let Stmt::Acc { acc, dtype, len, .. } = s {
                bytes.insert(*acc, len * dtype.bytes());
            }
            if let Stmt::For(l) = s
                && l.var.over == Over::Step
            {
                hot.accs.extend(touched(&l.body).into_iter().map(|acc| (acc, 0)));
                let mut see = |s: &Stmt| hot.loops.extend(if let Stmt::For(l) = s { Some(l.var) } else { None });
                l.body.iter().for_each(|s| s.visit(&mut see));
            }
            if let Stmt::For(l) = s
                && l.kind == LoopKind::Lanes
            {
                let touched = touched(&l.body);
                if let [Stmt::Set { acc, value: Expr::Load(..), .. }] = &l.body[..] {
                    rows.insert(*acc);
                }
                if loads(&l.body) || touched.iter().any(|acc| rows.contains(acc)) {
                    hot.accs.extend(touched.into_iter().map(|acc| (acc, 0)));
                }
            }
            if let Stmt::Set { acc, index, value } = s
                && made_of(index, value).is_some_and(|of| hot.accs.contains_key(&of))
            {
                hot.accs.insert(*acc, 0);
            }
        });
        hot.accs.iter_mut().for_each(|(acc, all)| *all = bytes.get(acc).copied().unwrap_or(0));
        hot
    }

    /// Returns true if a loop outside of steps touches states of steps, declared before it, and all of those fit the
    /// registers.
    fn ends_steps(&self, l: &Loop, target: Vectors) -> bool {
        let vector_bytes = u64::from(target.bits / 8).max(1);
        let states: u64 =
            touched(&l.body).iter().filter_map(|acc| self.accs.get(acc)).map(|b| b.div_ceil(vector_bytes)).sum();
        let declares = l.body.iter().any(|s| matches!(s, Stmt::Acc { .. }));
        !declares && !self.loops.contains(&l.var) && (1..=target.registers()).contains(&states)
    }
}

/// The accumulator whose element at the same place an element is set to, or whose element in a narrower type is added to it.
fn made_of(index: &Index, value: &Expr) -> Option<AccId> {
    if let Expr::Read(of, _, at) = value {
        return (index == at).then_some(*of);
    }
    let Expr::Op(Op::Add, _, args) = value else { return None };
    let [Expr::Read(_, _, own), Expr::Op(Op::Cast, _, cast)] = args.as_slice() else { return None };
    let Expr::Read(of, ..) = &cast[0] else { return None };
    (own == index).then_some(*of)
}

fn is_short(l: &Loop, n: u64, defs: &[Def], hot: &Hot, target: Vectors) -> bool {
    let vectors = || {
        l.body.iter().all(|s| match s {
            Stmt::For(inner) => inner.kind == LoopKind::Lanes,
            Stmt::Acc { .. } => matches!(l.var.over, Over::Output | Over::Step | Over::Lane | Over::Position),
            Stmt::Let { .. } | Stmt::Call { .. } | Stmt::Set { .. } | Stmt::Store { .. } => true,
            Stmt::Wide { .. }
            | Stmt::Carry { .. }
            | Stmt::Pick { .. }
            | Stmt::Misalign { .. }
            | Stmt::Rotate { .. }
            | Stmt::Prefetch { .. } => false,
            Stmt::Merge { .. }
            | Stmt::Fold { .. }
            | Stmt::Select { .. }
            | Stmt::Transpose(_)
            | Stmt::TransposedStore(_) => false,
        })
    };
    let shared = matches!(&l.body[..], [Stmt::For(inner)] if matches!(inner.body[..], [Stmt::For(_)]));
    let ops = || n.saturating_mul(ops(&l.body, defs));
    match (l.kind, l.var.over) {
        (LoopKind::Lanes, _) => false,
        _ if n == 1 => true,
        (_, Over::Jam) if n > Schedule::MAX_JAM => false,
        (_, Over::Jam) => l.body.iter().all(|s| !matches!(s, Stmt::Wide { .. })),
        (_, Over::Step) => vectors() && ops() <= STEP_OPS,
        (LoopKind::Parallel, Over::Element) if fills_vectors(l, n, target) => true,
        (LoopKind::Parallel, Over::Element) if !shared && is_cold(&l.body, &hot.accs) => n <= COLD && vectors(),
        (LoopKind::Parallel, Over::Lane | Over::Element | Over::Block | Over::Position) => {
            n <= SHORT && vectors() && (ops() <= PARALLEL_OPS || n <= GROUP && ops() <= GROUP_OPS)
        }
        // A tile's output loop is unrolled: it has vectors inside, and perhaps a state of its own.
        (LoopKind::Parallel, Over::Output) => {
            let is_tile = l.body.iter().all(|s| matches!(s, Stmt::For(_) | Stmt::Acc { .. }));
            let of_inputs = is_of_inputs(&l.body);
            let most = match of_inputs {
                _ if hot.ends_steps(l, target) => ENDING_OPS,
                true if n <= GROUP => GROUP_OPS,
                _ => PARALLEL_OPS,
            };
            n <= SHORT && (is_tile || of_inputs) && vectors() && ops() <= most && fit_registers(&l.body, n, target)
        }
        _ => false,
    }
}

/// Returns true for a loop over copies of the same lanes of an accumulator, one behind the other, that fill a few vectors.
fn fills_vectors(l: &Loop, n: u64, target: Vectors) -> bool {
    let [Stmt::For(inner)] = &l.body[..] else { return false };
    let (LoopKind::Lanes, Extent::Const(lanes)) = (inner.kind, inner.extent) else { return false };
    let [Stmt::Set { index, value: Expr::Read(_, dtype, from), .. }] = &inner.body[..] else { return false };
    let are_copies = from.coefficient(l.var) == 0 && from.coefficient(inner.var) == 1;
    let follow = index.coefficient(l.var) == lanes as i64 && index.coefficient(inner.var) == 1;
    let joined = target.joined_lanes(dtype.bytes()).unwrap_or(0);
    are_copies && follow && lanes < joined && n <= MOST_COPIES && n * lanes <= COPIED_VECTORS * joined
}

/// Returns true for a loop over lanes, behind values of an input, that computes outputs of inputs alone.
fn is_of_inputs(body: &[Stmt]) -> bool {
    let Some((Stmt::For(lanes), values)) = body.split_last() else { return false };
    lanes.kind == LoopKind::Lanes && is_elementwise(&lanes.body) && is_elementwise(values)
}

/// Returns true if the states that `n` iterations declare fit the registers together: all are live at once.
fn fit_registers(body: &[Stmt], n: u64, target: Vectors) -> bool {
    let vector_bytes = u64::from(target.bits / 8);
    let of = |s: &Stmt| {
        let Stmt::Acc { dtype, len, .. } = s else { return 0 };
        (len * dtype.bytes()).div_ceil(vector_bytes)
    };
    n * body.iter().map(of).sum::<u64>() <= target.registers()
}

/// Returns true if the body touches no accumulator of a loop over steps.
fn is_cold(body: &[Stmt], hot: &FxHashMap<AccId, u64>) -> bool {
    let mut is_hot = hot.is_empty();
    for stmt in body {
        visit_accesses(stmt, &mut |acc, access| {
            is_hot |= matches!(access, Access::Read(_) | Access::Set(_) | Access::Transposed | Access::Stored)
                && hot.contains_key(&acc);
        });
    }
    !is_hot
}

/// The operations in the body, with the operations of the definitions it calls and its copies of accumulators.
fn ops(body: &[Stmt], defs: &[Def]) -> u64 {
    let mut copies = 0;
    body.iter().for_each(|s| {
        s.visit(&mut |s| {
            if let Stmt::Set { value, .. } | Stmt::Store { value, .. } = s {
                copies += u64::from(value.args().is_empty() && !matches!(value, Expr::Load(..)));
            }
        })
    });
    copies + Work::new(defs, one_each).body(body)
}

/// Returns true if a step in a wide function does so little that the end of the loop costs as much.
fn is_light(l: &Loop, n: u64, defs: &[Def]) -> bool {
    let vectors = l.body.iter().all(|s| matches!(s, Stmt::For(inner) if inner.kind == LoopKind::Lanes));
    if l.var.over != Over::Step || !vectors || n < 2 * GROUP {
        return false;
    }
    // A position would be computed in each step instead of once per loop.
    let mut counts = false;
    visit_exprs(&l.body, &mut |e| counts |= matches!(e, Expr::At(..)));
    !counts && ops(&l.body, defs) <= LIGHT_OPS
}

/// Returns true if a loop over lanes, outputs or positions may be written out so that each line of memory is read and written once.
fn is_line(l: &Loop, n: u64) -> bool {
    crosses_lanes(l, &[Over::Lane, Over::Output]) || n <= SHORT && crosses_lanes(l, &[Over::Position])
}

/// Returns true for a loop over one of these whose elements are neighbours in an input in which the vectors inside the loop, or
/// their parts, lie apart.
fn crosses_lanes(l: &Loop, over: &[Over]) -> bool {
    if !over.contains(&l.var.over) || l.kind != LoopKind::Parallel {
        return false;
    }
    let loops = l.body.iter().filter(|s| !matches!(s, Stmt::Let { .. } | Stmt::Acc { .. }));
    let lanes = |s: &Stmt| {
        let Stmt::For(inner) = s else { return None };
        (inner.kind == LoopKind::Lanes).then_some(inner.var)
    };
    let Some(inner) = loops.map(lanes).collect::<Option<Vec<LoopVar>>>() else { return false };
    let is_part = |s: &Stmt| matches!(s, Stmt::For(inner) if is_next_part(inner, l.var));
    let mut crosses = l.body.iter().filter(|s| is_part(s)).count() > 1;
    visit_exprs(&l.body, &mut |e| {
        if let Expr::Load(_, _, index) = e {
            let apart = inner.iter().any(|&var| !matches!(index.coefficient(var), 0 | 1));
            // Loops inside take the elements between two iterations.
            crosses |= apart && (1..=inner.len() as i64).contains(&index.coefficient(l.var));
        }
    });
    crosses
}

/// Returns true for a loop over lanes that loads a part of a vector, which ends where that of the next iteration begins.
fn is_next_part(lanes: &Loop, around: LoopVar) -> bool {
    let ([Stmt::Set { value: Expr::Load(_, _, index), .. }], Extent::Const(n)) = (&lanes.body[..], lanes.extent) else {
        return false;
    };
    index.coefficient(lanes.var) == 1 && u64::try_from(index.coefficient(around)) == Ok(n)
}

/// The vectors that the loops of a body write to accumulators.
fn vectors_set(body: &[Stmt]) -> u64 {
    let mut vectors = 0;
    body.iter().for_each(|s| s.visit(&mut |s| vectors += u64::from(matches!(s, Stmt::Set { .. }))));
    vectors
}

/// The loop unrolled by `group`, and its left-over iterations.
fn in_groups(l: Loop, n: u64, group: u64, names: &mut Names) -> Vec<Stmt> {
    let mut body = vec![];
    for i in 0..group {
        let at = Index::term(l.var, group as i64).offset_by(i as i64);
        body.extend(renamed(substitute(l.body.clone(), l.var, &at), names));
    }
    let (groups, rest) = (n / group, n % group);
    let mut out = vec![Stmt::For(Loop { extent: Extent::Const(groups), body, ..l })];
    for i in n - rest..n {
        out.extend(renamed(substitute(l.body.clone(), l.var, &Index::constant(i as i64)), names));
    }
    out
}

fn write_out(l: Loop, n: u64, names: &mut Names) -> Vec<Stmt> {
    let mut out = Vec::with_capacity(n as usize * l.body.len());
    for i in 0..n - 1 {
        let body = substitute(l.body.clone(), l.var, &Index::constant(i as i64));
        out.extend(renamed(body, names));
    }
    out.extend(substitute(l.body, l.var, &Index::constant(n as i64 - 1)));
    out
}
