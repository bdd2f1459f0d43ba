//! Two loops, one directly inside the other, that walk memory as one.

use cranefold_ir::Loop;
use cranefold_ir::analysis::visit_indices;

/// Returns true if every index in the inner loop, of `n` iterations, steps through both loops as through one.
pub(super) fn walks_as_one(outer: &Loop, inner: &Loop, n: u64) -> bool {
    let mut all = true;
    visit_indices(&inner.body, &mut |i| all &= i.coefficient(outer.var) == n as i64 * i.coefficient(inner.var));
    all
}
