//! The accumulators that need their initial value.
//!
//! An accumulator in memory is not filled at its declaration if every element is set before any is read. This is
//! recognised if the first statement after the declaration that names the accumulator is a loop (with loops inside)
//! that sets all elements, one per iteration, and reads none.

use cranefold_ir::{AccId, Expr, Extent, LoopVar, Stmt};
use rustc_hash::FxHashSet;

/// The accumulators declared in the body, at any depth, that are in memory and are set before they are read.
pub fn set_before_read(body: &[Stmt], is_in_memory: impl Fn(AccId) -> bool) -> FxHashSet<AccId> {
    let mut found = FxHashSet::default();
    each_body(body, &mut |body| {
        for (n, stmt) in body.iter().enumerate() {
            if let Stmt::Acc { acc, len, .. } = stmt
                && is_in_memory(*acc)
                && let Some(first) = body[n + 1..].iter().find(|s| names(s, *acc))
                && sets_all(first, *acc, *len)
            {
                found.insert(*acc);
            }
        }
    });
    found
}

fn each_body<'a>(body: &'a [Stmt], f: &mut impl FnMut(&'a [Stmt])) {
    f(body);
    for stmt in body {
        match stmt {
            Stmt::For(l) => each_body(&l.body, f),
            Stmt::Wide { body } => each_body(body, f),
            _ => {}
        }
    }
}

/// Returns true if a statement names the accumulator, at any depth.
fn names(stmt: &Stmt, of: AccId) -> bool {
    let mut found = false;
    stmt.visit(&mut |s| {
        found |= match s {
            Stmt::Set { acc, .. } | Stmt::Select { acc, .. } | Stmt::Rotate { acc, .. } => *acc == of,
            Stmt::Transpose(t) | Stmt::TransposedStore(t) => t.acc == of,
            Stmt::Merge { accs, .. } | Stmt::Fold { accs, .. } => accs.contains(&of),
            _ => false,
        };
        s.exprs().iter().for_each(|e| found |= reads(e, of));
    });
    found
}

fn reads(expr: &Expr, of: AccId) -> bool {
    let mut found = false;
    expr.visit(&mut |e| found |= matches!(e, Expr::Read(acc, ..) if *acc == of));
    found
}

/// Returns true if a statement sets every element and reads none.
fn sets_all(stmt: &Stmt, of: AccId, len: u64) -> bool {
    let mut sets: Vec<Places> = vec![];
    if !collect(stmt, of, &mut vec![], &mut sets) {
        return false;
    }
    // Sets that differ only by constants count as more digits.
    let Some(first) = sets.first() else { return false };
    let same: Vec<i64> = sets.iter().filter(|s| s.digits == first.digits).map(|s| s.offset).collect();
    if same.len() < sets.len() {
        return false;
    }
    let mut offsets = same;
    offsets.sort_unstable();
    offsets.dedup();
    let start = offsets[0];
    let Some(mut digits) = digits_of(offsets) else { return false };
    digits.extend(&first.digits);
    start == 0 && counts_to(digits, len)
}

/// The coefficients and extents of loops that would take these offsets, which are in order, from the first on.
fn digits_of(mut offsets: Vec<i64>) -> Option<Vec<(i64, u64)>> {
    let mut digits = vec![];
    while let [first, second, ..] = offsets[..] {
        let unit = second - first;
        let run = offsets.windows(2).take_while(|w| w[1] - w[0] == unit).count() + 1;
        let is_alike = |part: &[i64]| part.len() == run && (0..run).all(|n| part[n] == part[0] + unit * n as i64);
        if !offsets.chunks(run).all(is_alike) {
            return None;
        }
        digits.push((unit, run as u64));
        offsets = offsets.into_iter().step_by(run).collect();
    }
    Some(digits)
}

/// The elements that a set takes as its loops run: an offset, and a coefficient and extent for each loop.
struct Places {
    offset: i64,
    digits: Vec<(i64, u64)>,
}

/// Gathers the sets of an accumulator; returns false if a set is too complicated, or the accumulator is read.
fn collect(stmt: &Stmt, of: AccId, loops: &mut Vec<(LoopVar, u64)>, sets: &mut Vec<Places>) -> bool {
    if stmt.exprs().iter().any(|e| reads(e, of)) {
        return false;
    }
    match stmt {
        Stmt::For(l) => {
            let Extent::Const(extent) = l.extent else { return !names(stmt, of) };
            loops.push((l.var, extent));
            let done = l.body.iter().all(|s| collect(s, of, loops, sets));
            loops.pop();
            done
        }
        Stmt::Set { acc, index, .. } if *acc == of => {
            let digit = |(var, c): (LoopVar, i64)| Some((c, loops.iter().find(|(v, _)| *v == var)?.1));
            let digits: Option<Vec<(i64, u64)>> = index.terms().map(digit).collect();
            let Some(digits) = digits else { return false };
            sets.push(Places { offset: index.offset, digits });
            true
        }
        Stmt::Wide { body } => body.iter().all(|s| collect(s, of, loops, sets)),
        Stmt::Merge { .. }
        | Stmt::Fold { .. }
        | Stmt::Select { .. }
        | Stmt::Transpose(_)
        | Stmt::TransposedStore(_)
        | Stmt::Rotate { .. } => !names(stmt, of),
        _ => true,
    }
}

/// Returns true if sums of multiples of the coefficients, each up to its extent, take every value below `len`: each
/// coefficient then counts, like a digit, in units of all smaller ones.
fn counts_to(mut digits: Vec<(i64, u64)>, len: u64) -> bool {
    digits.sort_unstable();
    let mut unit = 1;
    for (c, extent) in digits {
        if c != unit as i64 {
            return false;
        }
        unit *= extent;
    }
    unit == len
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranefold_ir::Nest;

    fn found(body: &str) -> bool {
        let text = format!("nest \"\" {{ in x0: f32[64] out x1: f32[64] acc a0: f32[64] = 0.0 {body} }}");
        let nest: Nest = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        set_before_read(&nest.body, |_| true).contains(&AccId(0))
    }

    #[test]
    fn loops_that_set_every_element() {
        assert!(found("for e0 in 0..64 parallel { a0[e0] = x0[e0] }"));
        assert!(found("for e0 in 0..16 parallel { for e1 in 0..4 lanes { a0[4*e0 + e1] = x0[e1] } }"));
        let four = |n| format!("for e1 in 0..4 lanes {{ a0[16*k0 + e1 + {n}] = 1.0:f32 }} ");
        let all = [0, 4, 8, 12].map(four).concat();
        assert!(found(&format!("for k0 in 0..4 seq {{ {all} }}")));
        let grid = [0, 8, 32, 40].map(|n| format!("for e1 in 0..4 lanes {{ a0[16*k0 + 4*k1 + e1 + {n}] = 1.0:f32 }} "));
        let grid = format!("for k0 in 0..2 seq {{ for k1 in 0..2 seq {{ {} }} }}", grid.concat());
        assert!(found(&grid));
        // Other statements come first; a later read does not count.
        assert!(found("x1[0] = x0[0] for e0 in 0..64 parallel { a0[e0] = x0[e0] } x1[1] = a0[3]"));
    }

    #[test]
    fn what_leaves_an_element_or_reads_one() {
        assert!(!found("for e0 in 0..63 parallel { a0[e0] = x0[e0] }"));
        assert!(!found("for e0 in 0..32 parallel { a0[2*e0] = x0[e0] }"));
        assert!(!found("for e0 in 0..64 parallel { a0[e0] = add(a0[e0], x0[e0]) }"));
        assert!(!found("x1[0] = a0[0] for e0 in 0..64 parallel { a0[e0] = x0[e0] }"));
        assert!(!found("a0[0] = x0[0] for e0 in 0..64 parallel { a0[e0] = x0[e0] }"));
        let three = [0, 4, 8].map(|n| format!("for e1 in 0..4 lanes {{ a0[16*k0 + e1 + {n}] = 1.0:f32 }} ")).concat();
        assert!(!found(&format!("for k0 in 0..4 seq {{ {three} }}")));
        let gap = [0, 4, 12].map(|n| format!("for e1 in 0..4 lanes {{ a0[16*k0 + e1 + {n}] = 1.0:f32 }} ")).concat();
        assert!(!found(&format!("for k0 in 0..4 seq {{ {gap} }}")));
        // The extent of this loop is not known.
        assert!(!found("for b0 in 0..2 seq { carry q1 = b0 for q2 in 0..q1 seq { a0[q2] = 1.0:f32 } }"));
    }
}
