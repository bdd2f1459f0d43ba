//! Makes vectors of parallel loops.

use super::lanes::{lanes, loads};
use super::short::{GROUP, SHORT};
use super::vector_forms::VectorForms;
use crate::schedule::{Schedule, Transform};
use crate::vectors::Vectors;
use cranefold_ir::analysis::{Zone, is_straight, renamed, rewrite_zones, substitute, visit_exprs};
use cranefold_ir::{AccId, Expr, Extent, Index, Loop, LoopKind, LoopVar, Names, Nest, Over, Scalar, Stmt};
use rustc_hash::FxHashMap;

/// Splits an innermost parallel loop into vectors of the schedule's width, and the remainder into vectors of half as
/// many lanes, down to one:
///
/// ```text
/// for l0 in 0..49 parallel { a0[l0] = add(a0[l0], x0[l0]) }
/// ->  (width=128)
/// for l2 in 0..12 parallel { for l0 in 0..4 lanes { a0[4*l2 + l0] = add(a0[4*l2 + l0], x0[4*l2 + l0]) } }
/// a0[48] = add(a0[48], x0[48])
/// ```
///
/// The widest type in the body decides how many lanes fill a vector. A loop with an operation that has no vector form
/// stays scalar. The accumulators that it reads are copied first, and only the copies live in memory.
///
/// In a wide function, a single remaining element is a vector of one lane; with masks, the whole remainder is one
/// masked vector:
///
/// ```text
/// wide { for l0 in 0..49 parallel { a0[l0] = add(a0[l0], x0[l0]) } }
/// ->  (width=512, vectors of 512 bits)
/// wide {
///   for l2 in 0..3 parallel { for l0 in 0..16 lanes { a0[16*l2 + l0] = add(a0[16*l2 + l0], x0[16*l2 + l0]) } }
///   for l0 in 0..1 lanes { a0[l0 + 48] = add(a0[l0 + 48], x0[l0 + 48]) }
/// }
/// ```
///
/// A loop over outputs around fewer lanes than a wide vector has is joined with them:
///
/// ```text
/// for e0 in 0..16 parallel { for e1 in 0..8 lanes { a1[8*e0 + e1] = add(a0[16*e0 + e1], a0[16*e0 + e1 + 8]) } }
/// ->
/// for e2 in 0..8 parallel {
///   for e0 in 0..2 lanes { for e1 in 0..8 lanes { a1[8*e0 + e1 + 16*e2] = add(a0[16*e0 + e1 + 32*e2], ..) } }
/// }
/// ```
///
/// Outside wide functions, the width is 128 bits if the target has wide vectors, 0 if it has none, else the schedule's.
///
/// Legal because the loops are parallel.
pub fn vectorize(nest: Nest, schedule: &Schedule, vectors: Vectors) -> Nest {
    let mut names = Names::after(&nest);
    let is_wide = vectors.are_wide();
    let width_outside = match vectors {
        Vectors::NONE => 0,
        _ if is_wide => Vectors::BASE.bits,
        _ => schedule.width,
    };
    let rest_in_wide = if vectors.has_masks() { Rest::Masked } else { Rest::Lanes };
    let mut outside = VectorForms::new(&nest.defs, Vectors::BASE);
    let mut inside = VectorForms::new(&nest.defs, vectors);
    let mut of_states = lanes_of_outputs(&nest, schedule.width, &mut inside);
    let mut of_steps = FxHashMap::default();
    lanes_of_steps(&nest.body, false, schedule.width, &mut inside, &mut of_steps);
    of_states.extend(of_steps);
    let body = rewrite_zones(nest.body, Zone::Outside, &mut |stmt, zone| {
        let Stmt::For(l) = stmt else { return None };
        if l.kind != LoopKind::Parallel {
            return None;
        }
        match (zone, is_straight(&l.body)) {
            (Zone::Wide, true) => lanes(l, schedule.width, &mut inside).map(|lanes| {
                let of_registers = most_of_states(l, &of_states);
                let lanes = lanes.min(of_registers.unwrap_or_else(|| most_lanes(l, schedule)));
                if of_registers.is_some() {
                    record_lanes(&l.body, lanes, &mut of_states);
                }
                split(l.take(), lanes, rest_in_wide, &mut names)
            }),
            (Zone::Wide, false) => {
                let outputs = outputs_in_vector(l, schedule.width, &mut inside)?;
                Some(vec![joined(l.take(), outputs, &mut names)])
            }
            (Zone::Outside, true) => match lanes(l, width_outside, &mut outside) {
                Some(lanes) => Some(split(l.take(), lanes, Rest::Scalar, &mut names)),
                // Beside wide functions, accumulators live in memory anyway.
                None if is_wide => None,
                None => Some(scalar(l.take(), width_outside, &mut names)),
            },
            (Zone::Outside, false) => None,
        }
    });
    Nest { body, ..nest }
}

/// The number of outputs whose lanes fill one vector of accumulators; `None` if the lanes do not fit, are not set side
/// by side, or are read further apart than twice that.
fn outputs_in_vector(l: &Loop, width: u32, forms: &mut VectorForms) -> Option<u64> {
    let ([Stmt::For(inner)], Extent::Const(extent)) = (l.body.as_slice(), l.extent) else { return None };
    let (LoopKind::Lanes, Extent::Const(lanes)) = (inner.kind, inner.extent) else { return None };
    let vector = u64::from(width.min(forms.bits()) / 8) / forms.widest_bytes(&inner.body);
    let outputs = vector / lanes;
    let is_whole = outputs > 1 && outputs * lanes == vector && extent.is_multiple_of(outputs);
    let own = lanes as i64;
    let mut fits = is_whole && is_straight(&inner.body);
    let mut walks = |index: &Index, strides: &[i64]| {
        fits &= index.coefficient(inner.var) == 1 && strides.contains(&index.coefficient(l.var));
    };
    visit_exprs(&inner.body, &mut |e| match e {
        Expr::Read(_, _, index) => walks(index, &[own, 2 * own]),
        Expr::Load(_, _, index) | Expr::At(_, index) => walks(index, &[]),
        Expr::Const(_) | Expr::Var(..) | Expr::Op(..) | Expr::Call(..) => {}
    });
    inner.body.iter().for_each(|s| match s {
        Stmt::Set { index, .. } => walks(index, &[own]),
        Stmt::Store { index, .. } => walks(index, &[]),
        Stmt::Let { .. } | Stmt::Call { .. } | Stmt::For(_) | Stmt::Wide { .. } | Stmt::Acc { .. } => {}
        Stmt::Carry { .. }
        | Stmt::Pick { .. }
        | Stmt::Misalign { .. }
        | Stmt::Rotate { .. }
        | Stmt::Prefetch { .. } => {}
        Stmt::Merge { .. }
        | Stmt::Fold { .. }
        | Stmt::Select { .. }
        | Stmt::Transpose(_)
        | Stmt::TransposedStore(_) => {}
    });
    fits.then_some(outputs)
}

/// The loop with `outputs` of its iterations in one vector.
fn joined(l: Loop, outputs: u64, names: &mut Names) -> Stmt {
    let Extent::Const(extent) = l.extent else { return Stmt::For(l) };
    let vectors = names.loop_over(l.var.over);
    let at = Index::term(vectors, outputs as i64).plus(l.var, 1);
    let vector = Loop::new(l.var, outputs, LoopKind::Lanes, substitute(l.body, l.var, &at));
    Stmt::For(Loop::new(vectors, extent / outputs, LoopKind::Parallel, vec![Stmt::For(vector)]))
}

/// The most lanes that a loop's vectors have where no loop that adds elements tells. Loops over elements have at most a tile's
/// lanes where the lanes of its outputs fold, so that narrow types need not be put together into wider vectors.
fn most_lanes(l: &Loop, schedule: &Schedule) -> u64 {
    let of_outputs = schedule.tiles.iter().filter(|tile| tile.transform != Transform::Rows);
    let tiles = of_outputs.map(|tile| tile.by).filter(|by| by.is_power_of_two() && *by >= FEWEST_LANES);
    if l.var.over == Over::Element { tiles.min().unwrap_or(u64::MAX) } else { u64::MAX }
}

/// Records the lanes of the vectors in which loops inside loops over steps write each accumulator, the fewest of several.
fn lanes_of_steps(
    body: &[Stmt],
    in_steps: bool,
    width: u32,
    forms: &mut VectorForms,
    of_steps: &mut FxHashMap<AccId, u64>,
) {
    for stmt in body {
        match stmt {
            Stmt::For(l) if in_steps && l.kind == LoopKind::Parallel && is_straight(&l.body) => {
                let Some(lanes) = lanes(l, width, forms) else { continue };
                record_lanes(&l.body, lanes, of_steps);
            }
            Stmt::For(l) => lanes_of_steps(&l.body, in_steps || l.var.over == Over::Step, width, forms, of_steps),
            Stmt::Wide { body } => lanes_of_steps(body, in_steps, width, forms, of_steps),
            Stmt::Acc { .. } | Stmt::Let { .. } | Stmt::Call { .. } | Stmt::Set { .. } | Stmt::Store { .. } => {}
            Stmt::Carry { .. } | Stmt::Pick { .. } | Stmt::Misalign { .. } | Stmt::Rotate { .. } => {}
            Stmt::Prefetch { .. } | Stmt::Merge { .. } | Stmt::Fold { .. } | Stmt::Select { .. } => {}
            Stmt::Transpose(_) | Stmt::TransposedStore(_) => {}
        }
    }
}

/// The lanes of the vectors in which loops over outputs that read elements write each accumulator, the most of several: such
/// loops are steps of slices that have too few for a loop. Lanes of less than a vector count where they halve evenly.
fn lanes_of_outputs(nest: &Nest, width: u32, forms: &mut VectorForms) -> FxHashMap<AccId, u64> {
    let mut of_outputs = FxHashMap::default();
    nest.visit(&mut |s| {
        let Stmt::For(l) = s else { return };
        let (Over::Output, Extent::Const(extent)) = (l.var.over, l.extent) else { return };
        if l.kind != LoopKind::Parallel || !is_straight(&l.body) || !loads(&l.body) {
            return;
        }
        let Some(whole) = lanes(l, width, forms) else { return };
        if extent >= whole || extent.is_power_of_two() {
            let lanes = whole.min(extent);
            written(&l.body).for_each(|acc| {
                let most: &mut u64 = of_outputs.entry(acc).or_default();
                *most = lanes.max(*most);
            });
        }
    });
    of_outputs
}

/// Records the lanes of the vectors in which a loop with this body writes accumulators, the fewest of several.
fn record_lanes(body: &[Stmt], lanes: u64, of_states: &mut FxHashMap<AccId, u64>) {
    for acc in written(body) {
        let fewest = of_states.entry(acc).or_insert(lanes);
        *fewest = lanes.min(*fewest);
    }
}

/// The accumulators that a straight body sets.
fn written(body: &[Stmt]) -> impl Iterator<Item = AccId> {
    body.iter().filter_map(|s| if let Stmt::Set { acc, .. } = s { Some(*acc) } else { None })
}

/// The most lanes of a loop over elements whose accumulators loops over steps or outputs write too, or are copies of such;
/// `None` of other loops. Vectors of more lanes would be registers of which every step reads and writes a part:
///
/// ```text
/// for k0 in 0..16 seq { for l1 in 0..8 parallel { a0[l1] = min(a0[l1], select(le(x0[8*k0 + l1], v0), ..)) } }   # u32, f64
/// for e2 in 0..16 parallel { a1[e2] = a0[e2] }                                                                # 8 lanes
/// for e2 in 0..14 parallel { a1[e2] = min(a1[e2], a1[e2 + 14]) }                                              # 8 lanes
/// ```
fn most_of_states(l: &Loop, of_states: &FxHashMap<AccId, u64>) -> Option<u64> {
    if l.var.over != Over::Element {
        return None;
    }
    let mut most: Option<u64> = None;
    let mut see = |acc: AccId| most = [most, of_states.get(&acc).copied()].into_iter().flatten().min();
    l.body.iter().for_each(|s| {
        if let Stmt::Set { acc, .. } = s {
            see(*acc)
        }
    });
    visit_exprs(&l.body, &mut |e| {
        if let Expr::Read(acc, ..) = e {
            see(*acc)
        }
    });
    most
}

/// The fewest lanes of a tile that limits the lanes of a fold.
const FEWEST_LANES: u64 = 8;

/// The form of the iterations after the last whole vector.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// One masked vector of as many lanes.
    Masked,
    /// Vectors of half as many lanes each time, down to one.
    Lanes,
    /// Vectors as in `Lanes`, but a scalar for the last element, unless it is in vectors already.
    Scalar,
}

fn split(l: Loop, lanes: u64, rest: Rest, names: &mut Names) -> Vec<Stmt> {
    let Extent::Const(extent) = l.extent else { return vec![Stmt::For(l)] };
    let vectors = extent / lanes;
    let mut out = vec![];
    let vector = |body, lanes| Stmt::For(Loop::new(l.var, lanes, LoopKind::Lanes, body));
    if vectors > 0 {
        let main = names.loop_over(l.var.over);
        let at = Index::term(main, lanes as i64).plus(l.var, 1);
        let body = vec![vector(substitute(l.body.clone(), l.var, &at), lanes)];
        out.extend(grouped(Loop::new(main, vectors, LoopKind::Parallel, body), names));
    }
    let mut done = vectors * lanes;
    let mut part = if rest == Rest::Masked { extent - done } else { lanes / 2 };
    while part > 0 {
        if extent - done >= part {
            let body = renamed(l.body.clone(), names);
            if part > 1 || rest != Rest::Scalar || stays_in_registers(&body, l.var) {
                let at = Index::term(l.var, 1).offset_by(done as i64);
                out.push(vector(substitute(body, l.var, &at), part));
            } else {
                out.extend(substitute(body, l.var, &Index::constant(done as i64)));
            }
            done += part;
        }
        part /= 2;
    }
    out
}

/// The most operands in the body of an output loop that does little.
const LIGHT: usize = 8;

fn is_light(body: &[Stmt]) -> bool {
    let mut operands = 0;
    visit_exprs(body, &mut |_| operands += 1);
    operands <= LIGHT
}

/// A loop over groups of `GROUP` vectors, where each vector does so little that the end of the loop costs as much: a
/// loop over positions, or over outputs that one row streams through. `unroll` writes the groups out.
fn grouped(l: Loop, names: &mut Names) -> Vec<Stmt> {
    let Extent::Const(extent) = l.extent else { return vec![Stmt::For(l)] };
    let (groups, rest) = (extent / GROUP, extent % GROUP);
    let streams = l.var.over == Over::Output && extent > SHORT && is_light(&l.body);
    if !(l.var.over == Over::Position || streams) || groups < 2 {
        return vec![Stmt::For(l)];
    }
    let outer = names.loop_over(l.var.over);
    let at = Index::term(outer, GROUP as i64).plus(l.var, 1);
    let inner = Loop::new(l.var, GROUP, LoopKind::Parallel, substitute(l.body.clone(), l.var, &at));
    let mut out = vec![Stmt::For(Loop::new(outer, groups, LoopKind::Parallel, vec![Stmt::For(inner)]))];
    if rest > 0 {
        let at = Index::term(l.var, 1).offset_by((groups * GROUP) as i64);
        let body = renamed(substitute(l.body, l.var, &at), names);
        out.push(Stmt::For(Loop::new(l.var, rest, LoopKind::Parallel, body)));
    }
    out
}

/// Returns true if a single iteration stays a vector: it is part of a fold, whose lanes are in vectors already.
fn stays_in_registers(body: &[Stmt], var: LoopVar) -> bool {
    let mut memory = false;
    visit_exprs(body, &mut |e| memory |= matches!(e, Expr::Load(..) | Expr::At(..)));
    var.over == Over::Element && !memory && body.iter().all(|s| !matches!(s, Stmt::Store { .. }))
}

/// A loop that stays scalar; if it only reads accumulators and is too long to be unrolled, it reads copies of them.
fn scalar(l: Loop, width: u32, names: &mut Names) -> Vec<Stmt> {
    let Extent::Const(extent) = l.extent else { return vec![Stmt::For(l)] };
    let only_reads = l.body.iter().all(|s| !matches!(s, Stmt::Set { .. }));
    if extent <= SHORT || !only_reads {
        return vec![Stmt::For(l)];
    }
    let mut copies: Vec<(Expr, AccId)> = vec![];
    let body = l.body.into_iter().map(|s| {
        s.map_exprs(&mut |e| {
            e.rewrite(&mut |e| {
                let Expr::Read(_, dtype, index) = &e else { return e };
                if index.coefficient(l.var) == 0 {
                    return e;
                }
                let known = copies.iter().find(|(original, _)| *original == e).map(|&(_, acc)| acc);
                let acc = known.unwrap_or_else(|| {
                    copies.push((e.clone(), names.acc()));
                    copies.last().expect("just pushed").1
                });
                Expr::Read(acc, *dtype, Index::term(l.var, 1))
            })
        })
    });
    let scalar = Stmt::For(Loop { body: body.collect(), ..l });
    let mut out = vec![];
    for (original, acc) in copies {
        let var = names.loop_over(l.var.over);
        let at = Index::term(var, 1);
        let Expr::Read(from, dtype, index) = original else { unreachable!("reads are copied") };
        out.push(Stmt::Acc { acc, dtype, len: extent, init: Scalar::from_bits(dtype, 0) });
        let value = Expr::Read(from, dtype, index.clone().substituted(l.var, &at));
        let copy = Loop::new(var, extent, LoopKind::Parallel, vec![Stmt::Set { acc, index: at, value }]);
        match lanes(&copy, width, &mut VectorForms::new(&[], Vectors::BASE)) {
            Some(lanes) => out.extend(split(copy, lanes, Rest::Scalar, names)),
            None => out.push(Stmt::For(copy)),
        }
    }
    out.push(scalar);
    out
}
