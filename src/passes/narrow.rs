//! Adds small integers in a narrower type, a block of steps at a time.

use super::sums::added;
use crate::schedule::{Schedule, narrow_bytes};
use crate::vectors::Vectors;
use cranefold_ir::analysis::{mentions, partition, renamed, rewrite, substitute};
use cranefold_ir::{AccId, DType, Expr, Extent, Index, Loop, LoopKind, LoopVar, Names, Nest, Op, Over, Scalar, Stmt};

/// The fewest steps whose sum in a narrower type gains more than its addition to the state costs.
const FEW_STEPS: u64 = 8;

/// Sums integers of one or two bytes in integers twice as wide as they are, where the state is at least twice as wide as
/// that, so many steps at a time as fit whatever the elements are. Vectors then have at least twice as many lanes, and sums
/// are converted instead of elements:
///
/// ```text
/// for k1 in 0..768 seq { for i0 in 0..64 parallel { a0[i0] = add(a0[i0], i32(x0[64*k1 + i0])) } }
/// ->
/// for k2 in 0..3 seq {
///   acc a1: i16[64] = 0
///   for k1 in 0..256 seq { for i0 in 0..64 parallel { a1[i0] = add(a1[i0], i16(x0[64*k1 + i0 + 16384*k2])) } }
///   for e3 in 0..64 parallel { a0[e3] = add(a0[e3], i32(a1[e3])) }
/// }
/// ```
///
/// 256 bytes of -128 make -32768, the least of i16; of unsigned bytes 128 fit. Steps that fill no block are one of their own.
///
/// Legal where the loop over steps does nothing to the accumulator but add one such integer to each of some neighbouring
/// elements. Integer addition is exact modulo 2^bits, and no sum of a block leaves the narrower type.
pub fn narrow(mut nest: Nest, _: &Schedule, _: Vectors) -> Nest {
    let is_small = |dtype: DType| dtype.is_int() && dtype.bytes() <= 2;
    if !nest.buffers.iter().any(|buffer| is_small(buffer.dtype)) {
        return nest;
    }
    let mut names = Names::after(&nest);
    let body = std::mem::take(&mut nest.body);
    nest.body = rewrite(body, &mut |stmt| {
        let Stmt::For(l) = stmt else { return None };
        in_blocks(l, &mut names)
    });
    nest
}

/// The loops that replace a loop over steps; `None` if it adds no small integers, or has too few steps.
fn in_blocks(l: &Loop, names: &mut Names) -> Option<Vec<Stmt>> {
    let (Over::Step, LoopKind::Seq, Extent::Const(steps)) = (l.var.over, l.kind, l.extent) else { return None };
    if steps < FEW_STEPS {
        return None;
    }
    let sums: Vec<Sum> = candidates(&l.body).into_iter().filter_map(|acc| Sum::of(acc, l)).collect();
    let most = sums.iter().map(Sum::most_steps).min()?;
    let block = block(steps, most);
    if block < FEW_STEPS {
        return None;
    }
    let (whole, rest) = (steps / block, steps % block);
    let mut out = match whole {
        1 => narrowed(l, &sums, (&Index::term(l.var, 1), block), names),
        _ => {
            let blocks = names.loop_over(Over::Step);
            let at = Index::term(blocks, block as i64).plus(l.var, 1);
            let body = narrowed(l, &sums, (&at, block), names);
            vec![Stmt::For(Loop::new(blocks, whole, LoopKind::Seq, body))]
        }
    };
    let after = Index::term(l.var, 1).offset_by((whole * block) as i64);
    match rest {
        0 => {}
        1..FEW_STEPS => {
            let body = substitute(l.body.clone(), l.var, &after);
            out.extend(renamed(vec![Stmt::For(Loop::new(l.var, rest, LoopKind::Seq, body))], names));
        }
        _ => out.extend(narrowed(l, &sums, (&after, rest), names)),
    }
    Some(out)
}

/// The steps of a block: the most that divide all, or as many as fit if those are less than half.
fn block(steps: u64, most: u64) -> u64 {
    let even = (most / 2..=most.min(steps)).rev().find(|&block| block > 0 && steps.is_multiple_of(block));
    even.unwrap_or(most.min(steps))
}

/// The accumulators that statements set, each once.
fn candidates(body: &[Stmt]) -> Vec<AccId> {
    let mut all = vec![];
    body.iter().for_each(|s| {
        s.visit(&mut |s| {
            if let Stmt::Set { acc, .. } = s
                && !all.contains(acc)
            {
                all.push(*acc);
            }
        });
    });
    all
}

/// The steps of a loop as one block: its sums in narrower accumulators, which are added to the states after it. The first
/// part of `at` is the step that the loop's variable stands for, the second the number of steps.
fn narrowed(l: &Loop, sums: &[Sum], (at, steps): (&Index, u64), names: &mut Names) -> Vec<Stmt> {
    let (mut before, mut after) = (vec![], vec![]);
    let mut body = substitute(l.body.clone(), l.var, at);
    for sum in sums {
        let acc = names.acc();
        before.push(Stmt::Acc { acc, dtype: sum.narrow, len: sum.len, init: Scalar::from_bits(sum.narrow, 0) });
        body = rewrite(body, &mut |stmt| sum.set_in(acc, stmt).map(|set| vec![set]));
        let element = names.loop_over(Over::Element);
        let index = sum.outside.clone().plus(element, 1);
        let value = Expr::Read(acc, sum.narrow, Index::term(element, 1)).cast(sum.dtype);
        let value = Expr::Read(sum.acc, sum.dtype, index.clone()).add(value);
        let set = Stmt::Set { acc: sum.acc, index, value };
        after.push(Stmt::For(Loop::new(element, sum.len, LoopKind::Parallel, vec![set])));
    }
    before.extend(renamed(vec![Stmt::For(Loop::new(l.var, steps, LoopKind::Seq, body))], names));
    before.extend(after);
    before
}

/// A sum of small integers in a loop over steps.
struct Sum {
    acc: AccId,
    dtype: DType,
    /// The type of the elements, and the one in which a block of them is summed.
    element: DType,
    narrow: DType,
    /// The terms of the index whose variables stand outside of the loop, and its constant.
    outside: Index,
    /// The terms of the index whose variables stand inside.
    inside: Index,
    /// The neighbouring elements that a step adds to.
    len: u64,
    /// The additions to an element in a step.
    times: u64,
}

impl Sum {
    /// The sum that a loop makes in an accumulator; `None` if it does anything else to it.
    fn of(acc: AccId, l: &Loop) -> Option<Sum> {
        let mut loops = vec![];
        let set = only_set(acc, &l.body, &mut loops)?;
        let Stmt::Set { index, value, .. } = set else { return None };
        let Expr::Op(Op::Cast, dtype, args) = added(acc, index, value)? else { return None };
        let Expr::Load(_, element, _) = &args[0] else { return None };
        let narrow = if narrow_bytes(element.bytes(), dtype.bytes())? == 2 { DType::I16 } else { DType::I32 };
        if !element.is_int() || !dtype.is_int() || index.coefficient(l.var) != 0 {
            return None;
        }
        let is_inside = |var: LoopVar| loops.iter().any(|&(inner, ..)| inner == var);
        let (inside, outside) = partition(index, is_inside);
        let mut terms: Vec<(LoopVar, i64)> = inside.terms().collect();
        terms.sort_by_key(|&(_, c)| c);
        let mut len = 1u64;
        for (var, c) in terms {
            // Each loop walks the neighbours of those that the loops before it walk.
            if c != len as i64 {
                return None;
            }
            len = len.saturating_mul(loops.iter().find(|&&(inner, _)| inner == var)?.1);
        }
        let others = loops.iter().filter(|&&(var, _)| inside.coefficient(var) == 0);
        let times = others.map(|&(_, extent)| extent).fold(1, u64::saturating_mul);
        (len > 0 && times > 0).then_some(Sum {
            acc,
            dtype: *dtype,
            element: *element,
            narrow,
            outside,
            inside,
            len,
            times,
        })
    }

    /// The steps whose sum fits, whatever the elements are.
    fn most_steps(&self) -> u64 {
        let ends = |dtype: DType| dtype.int_range().expect("an integer");
        let ((least, most), (lowest, highest)) = (ends(self.element), ends(self.narrow));
        let additions = if least < 0 { (lowest / least).min(highest / most) } else { highest / most };
        additions as u64 / self.times
    }

    /// The statement with the narrower accumulator, if it is the one that adds to the sum.
    fn set_in(&self, acc: AccId, stmt: &Stmt) -> Option<Stmt> {
        let Stmt::Set { acc: set, index, value } = stmt else { return None };
        let Some(Expr::Op(Op::Cast, _, args)) = added(self.acc, index, value).filter(|_| *set == self.acc) else {
            return None;
        };
        let value = Expr::Read(acc, self.narrow, self.inside.clone()).add(args[0].clone().cast(self.narrow));
        Some(Stmt::Set { acc, index: self.inside.clone(), value })
    }
}

/// The one statement that mentions an accumulator, with the variables and extents of the loops around it in `loops`; `None`
/// if there are more, or if it stands in anything but loops of constant extents.
fn only_set<'a>(acc: AccId, body: &'a [Stmt], loops: &mut Vec<(LoopVar, u64)>) -> Option<&'a Stmt> {
    let mut mentioned = body.iter().filter(|s| mentions(s, acc));
    let (one, None) = (mentioned.next()?, mentioned.next()) else { return None };
    let Stmt::For(l) = one else { return Some(one) };
    let Extent::Const(extent) = l.extent else { return None };
    loops.push((l.var, extent));
    only_set(acc, &l.body, loops)
}
