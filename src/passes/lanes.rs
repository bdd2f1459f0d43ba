//! The loops that become vectors, and what their bodies read.

use super::vector_forms::VectorForms;
use cranefold_ir::analysis::{Access, is_straight, visit_accesses, visit_exprs};
use cranefold_ir::{Expr, Extent, Loop, LoopKind, LoopVar, Stmt};

/// The number of iterations of a loop that make a vector of `width` bits; `None` if its body is not straight or has no
/// vector form, or a vector would have one lane.
pub(super) fn lanes(l: &Loop, width: u32, forms: &mut VectorForms) -> Option<u64> {
    if l.kind != LoopKind::Parallel || !is_vector(l, forms) {
        return None;
    }
    let lanes = u64::from(width / 8) / forms.widest_bytes(&l.body);
    (lanes > 1).then_some(lanes)
}

/// The variable and the lanes of a vector, of one loop over lanes.
pub(super) fn lanes_of(stmt: &Stmt) -> Option<(LoopVar, u64)> {
    let Stmt::For(Loop { var, extent: Extent::Const(lanes), kind: LoopKind::Lanes, body }) = stmt else { return None };
    let is_one = !matches!(body.as_slice(), [Stmt::For(_)]);
    is_one.then_some((*var, *lanes))
}

/// Returns whether the iterations of a loop may be the lanes of a vector: the body is straight and has a vector form.
pub(super) fn is_vector(l: &Loop, forms: &mut VectorForms) -> bool {
    is_straight(&l.body) && has_unit_strides(l) && l.body.iter().all(|s| forms.has_form(s))
}

/// Returns true if the loop walks accumulators one element at a time. Buffers may be walked with any stride.
fn has_unit_strides(l: &Loop) -> bool {
    let mut ok = true;
    for stmt in &l.body {
        if let Stmt::Store { index, .. } = stmt {
            ok &= index.coefficient(l.var) != 0;
        }
        visit_accesses(stmt, &mut |_, access| {
            ok &= match access {
                Access::Read(index) => matches!(index.coefficient(l.var), 0 | 1),
                Access::Set(index) => index.coefficient(l.var) == 1,
                Access::Declared | Access::Combined | Access::Transposed | Access::Stored | Access::Selected => false,
            };
        });
    }
    ok
}

/// Returns true if a body reads elements of buffers.
pub(super) fn loads(body: &[Stmt]) -> bool {
    let mut found = false;
    visit_exprs(body, &mut |e| found |= matches!(e, Expr::Load(..)));
    found
}
