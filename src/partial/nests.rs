//! The naive nests of partial results: they reduce blocks to states, merge states and finish them.
//!
//! Each nest goes through the same passes as a kernel's. A NaN is made canonical before it is stored in a state: its
//! bits differ between instruction sets, and the bytes of a state must not.

use crate::lower::program::from_start;
use crate::lower::{Share, lower_share};
use crate::problem::Problem;
use crate::problem::blocks::Stored;
use cranefold_ir::ops::Form;
use cranefold_ir::{Buffer, BufferRole, Expr, Index, Loop, LoopKind, Names, Nest, Over, Stmt, math};
use std::ops::Range;

/// The one of two merged states that the result replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    Older,
    Newer,
}

/// The nest that stores the state of a range of blocks, on buffers cut to the elements that it touches, and the starts
/// of those. The buffers are those of the problem, then one for each value of the state.
pub fn of_blocks(problem: &Problem, name: &str, blocks: Range<u64>) -> (Nest, Vec<u64>) {
    let mut nest = lower_share(problem, Form::Plain, name, &Share::Blocks { blocks, part: 0, parts: 1 });
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

/// The nest that merges two states of `len` slices and lanes, value by value. Its buffers are those of the state that
/// is read, then those of the state that the result replaces:
///
/// ```text
/// for i0 in 0..len parallel { x1[i0] = canon(combine(x0[i0], x1[i0])) }
/// ```
pub fn merge(stored: &Stored, name: &str, len: u64, keep: Keep) -> Nest {
    let types = stored.types();
    let buffer = |role| types.iter().map(move |&dtype| Buffer { role, dtype, len });
    let buffers: Vec<Buffer> = buffer(BufferRole::In).chain(buffer(BufferRole::InOut)).collect();
    let mut nest = Nest { name: format!("{name}, merge"), buffers, defs: vec![], body: vec![] };
    if len == 0 {
        return nest;
    }
    let mut names = Names::default();
    let var = names.loop_over(Over::Output);
    let at = |buf: usize| Expr::Load(cranefold_ir::BufId(buf as u32), types[buf % types.len()], Index::term(var, 1));
    let (read, kept) = (0..types.len(), types.len()..2 * types.len());
    let args = match keep {
        Keep::Newer => read.chain(kept.clone()).map(at).collect(),
        Keep::Older => kept.clone().chain(read).map(at).collect(),
    };
    let (mut body, values) = nest.apply(&mut names, &stored.merge, args);
    for (buf, value) in kept.zip(values) {
        let value = canonical_value(value, &mut nest, &mut names);
        body.push(Stmt::Store { buf: cranefold_ir::BufId(buf as u32), index: Index::term(var, 1), value });
    }
    nest.body = vec![Stmt::For(Loop::new(var, len, LoopKind::Parallel, body))];
    nest
}

/// The nest that finishes the state of all blocks. Its buffers are those of the problem, empty if they are not read,
/// then one for each value of the state, if there are blocks.
pub fn finish(problem: &Problem, name: &str, blocks: u64) -> Nest {
    let share = if blocks == 0 { Share::Whole } else { Share::Finish { parts: 1 } };
    let mut nest = lower_share(problem, Form::Plain, &format!("{name}, finish"), &share);
    let (touched, _) = from_start(nest.clone());
    let pairs = nest.buffers.iter_mut().zip(touched.buffers);
    pairs.filter(|(_, touched)| touched.len == 0).for_each(|(buffer, _)| buffer.len = 0);
    nest
}
