//! The naive nests of partial results: they reduce blocks to states, merge states and finish them.
//!
//! Each nest goes through the same passes as a kernel's. A NaN is made canonical before it is stored in a state: its
//! bits differ between instruction sets, and the bytes of a state must not.

use crate::lower::program::from_start;
use crate::lower::{Counted, Share, lower_share};
use crate::problem::Problem;
use crate::problem::blocks::{Stored, StoredGroup};
use cranefold_ir::ops::Form;
use cranefold_ir::{BufId, Buffer, BufferRole, DType, Expr, Index, Loop, LoopKind, Names, Nest, Over, Stmt, math};
use std::ops::Range;

/// The one of two merged states that the result replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    Older,
    Newer,
}

/// The nest that stores the state of a range of blocks, on buffers cut to the elements that it touches, and the starts
/// of those. The buffers are those of the problem, then one for each value of the state, then one for each number that is
/// counted from the first block on.
pub fn of_blocks(problem: &Problem, name: &str, blocks: Range<u64>, counted: Counted) -> (Nest, Vec<u64>) {
    let share = Share::Blocks { blocks, part: 0, parts: 1, counted };
    let mut nest = lower_share(problem, Form::Plain, name, &share);
    let mut names = Names::after(&nest);
    let body = std::mem::take(&mut nest.body);
    nest.body = body.into_iter().map(|stmt| canonical(stmt, &mut nest, &mut names)).collect();
    from_start(nest)
}

/// The statement with every stored NaN made canonical.
fn canonical(stmt: Stmt, nest: &mut Nest, names: &mut Names) -> Stmt {
    match stmt {
        Stmt::For(mut l) => {
            l.body = l.body.into_iter().map(|stmt| canonical(stmt, nest, names)).collect();
            Stmt::For(l)
        }
        Stmt::Store { buf, index, value } => Stmt::Store { buf, index, value: canonical_value(value, nest, names) },
        other => other,
    }
}

fn canonical_value(value: Expr, nest: &mut Nest, names: &mut Names) -> Expr {
    if !value.dtype().is_float() {
        return value;
    }
    let (_, mut values) = nest.apply(names, &math::canon(value.dtype()), vec![value]);
    values.remove(0)
}

/// The nest that merges two states of some slices, value by value, group after group. Its buffers are those of the
/// state that is read, then those of the state that the result replaces:
///
/// ```text
/// for i0 in 0..len parallel { x1[i0] = canon(combine(x0[i0], x1[i0])) }
/// ```
pub fn merge(stored: &Stored, name: &str, slices: u64, keep: Keep) -> Nest {
    let values: Vec<(DType, u64)> = stored.values().collect();
    let buffer = |role| values.iter().map(move |&(dtype, lanes)| Buffer { role, dtype, len: slices * lanes });
    let buffers: Vec<Buffer> = buffer(BufferRole::In).chain(buffer(BufferRole::InOut)).collect();
    let mut nest = Nest { name: format!("{name}, merge"), buffers, defs: vec![], body: vec![] };
    let mut names = Names::default();
    let mut first = 0;
    for group in &stored.groups {
        let read = first..first + group.types().len();
        first = read.end;
        if slices > 0 {
            let kept = values.len() + read.start..values.len() + read.end;
            let merged = merge_group(group, slices * group.lanes, (read, kept, keep), &mut nest, &mut names);
            nest.body.push(merged);
        }
    }
    nest
}

/// The loop that merges `len` states of a group, from the buffers in `read` into those in `kept`.
fn merge_group(
    group: &StoredGroup,
    len: u64,
    (read, kept, keep): (Range<usize>, Range<usize>, Keep),
    nest: &mut Nest,
    names: &mut Names,
) -> Stmt {
    let var = names.loop_over(Over::Output);
    let buffer = |buf: usize| BufId(buf as u32);
    let load = |(buf, dtype)| Expr::Load(buffer(buf), dtype, Index::term(var, 1));
    let (read, newest) = (read.zip(group.types()).map(load), kept.clone().zip(group.types()).map(load));
    let args = match keep {
        Keep::Newer => read.chain(newest).collect(),
        Keep::Older => newest.chain(read).collect(),
    };
    let (mut body, values) = nest.apply(names, &group.merge, args);
    for (buf, value) in kept.zip(values) {
        let value = canonical_value(value, nest, names);
        body.push(Stmt::Store { buf: buffer(buf), index: Index::term(var, 1), value });
    }
    Stmt::For(Loop::new(var, len, LoopKind::Parallel, body))
}

/// The nest that finishes the state of all blocks. Its buffers are those of the problem, empty if they are not read,
/// then one for each value of the state, if there are blocks.
pub fn finish(problem: &Problem, name: &str, has_blocks: bool) -> Nest {
    let share = if has_blocks { Share::Finish { parts: 1 } } else { Share::Whole };
    let mut nest = lower_share(problem, Form::Plain, &format!("{name}, finish"), &share);
    let (touched, _) = from_start(nest.clone());
    let pairs = nest.buffers.iter_mut().zip(touched.buffers);
    pairs.filter(|(_, touched)| touched.len == 0).for_each(|(buffer, _)| buffer.len = 0);
    nest
}
