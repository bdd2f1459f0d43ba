//! Recognition of integer sums, whose value does not depend on the order.

use cranefold_ir::analysis::reads;
use cranefold_ir::{AccId, Def, Expr, Index, Op, Var};

/// Returns true if a definition is the addition of two integers.
pub(super) fn is_sum(def: &Def) -> bool {
    let is = |e: &Expr, n| matches!(e, Expr::Var(Var(v), _) if *v == n);
    matches!(def.results.as_slice(), [Expr::Op(Op::Add, dtype, args)]
        if dtype.is_int() && def.lets.is_empty() && def.params.len() == 2 && is(&args[0], 0) && is(&args[1], 1))
}

/// The integer that setting an element of an accumulator adds to it; `None` if the statement does anything else.
pub(super) fn added<'a>(acc: AccId, index: &Index, value: &'a Expr) -> Option<&'a Expr> {
    let Expr::Op(Op::Add, dtype, args) = value else { return None };
    let is_element = matches!(&args[0], Expr::Read(a, _, at) if *a == acc && at == index);
    (dtype.is_int() && is_element && !reads(&args[1], acc)).then_some(&args[1])
}
