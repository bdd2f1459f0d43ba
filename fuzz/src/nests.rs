//! Nests of any text, interpreted where that takes little time and memory.

use cranefold::ir::eval::{self, Bits};
use cranefold::ir::{BufferRole, Expr, Extent, Nest, Stmt};

/// The most statements, expressions and elements of an execution.
const MOST_WORK: u64 = 100_000;

/// The most bytes of buffers.
const MOST_BYTES: u64 = 1 << 16;

/// Interprets a nest that verifies, if it is small.
pub(crate) fn interpret(nest: &Nest) {
    let bytes = nest.buffers.iter().map(|b| b.len.saturating_mul(b.dtype.bytes()));
    if bytes.fold(0, u64::saturating_add) > MOST_BYTES || work(nest) > MOST_WORK {
        return;
    }
    let mut buffers: Vec<Vec<u8>> =
        nest.buffers.iter().map(|b| (0..b.len * b.dtype.bytes()).map(|i| (i * 37 + 11) as u8).collect()).collect();
    let (inputs, outputs): (Vec<_>, Vec<_>) =
        nest.buffers.iter().zip(&mut buffers).partition(|(b, _)| b.role == BufferRole::In);
    // The domain's inputs come before its outputs; a nest whose buffers do not is for the verifier alone.
    let first_output = nest.buffers.iter().take_while(|b| b.role == BufferRole::In).count();
    if first_output != inputs.len() {
        return;
    }
    let inputs = inputs.into_iter().map(|(_, bytes)| &bytes[..]).collect();
    let outputs = outputs.into_iter().map(|(_, bytes)| &mut bytes[..]).collect();
    eval::run(nest, &mut Bits { inputs, outputs });
}

/// About how much there is to do.
fn work(nest: &Nest) -> u64 {
    let mut defs: Vec<u64> = vec![];
    for def in &nest.defs {
        let of = total(def.lets.iter().chain(&def.results).map(|e| of_expr(e, &defs)));
        defs.push(of.saturating_add(1));
    }
    of_body(&nest.body, &defs)
}

fn of_body(body: &[Stmt], defs: &[u64]) -> u64 {
    total(body.iter().map(|s| of_stmt(s, defs)))
}

fn of_stmt(stmt: &Stmt, defs: &[u64]) -> u64 {
    let inside = of_body(stmt.body(), defs);
    let own = match stmt {
        Stmt::For(l) => match l.extent {
            Extent::Const(n) | Extent::From(_, n) | Extent::Below(_, n) => {
                return n.saturating_mul(inside.saturating_add(1)).saturating_add(1);
            }
            // A number of ones of 64 bits, or what was picked.
            Extent::Carry(_) => return inside.saturating_add(1).saturating_mul(64),
        },
        Stmt::Acc { len, .. } => *len,
        Stmt::Call { def, .. } => defs[def.0 as usize],
        Stmt::Merge { accs, def, blocks, elems } => {
            states(accs.len(), *elems).saturating_mul(*blocks).saturating_mul(defs[def.0 as usize])
        }
        Stmt::Fold { accs, def, lanes, elems, .. } => {
            states(accs.len(), *elems).saturating_mul(*lanes).saturating_mul(defs[def.0 as usize])
        }
        Stmt::Select { len, .. } => len.saturating_mul(16),
        _ => 0,
    };
    let exprs = total(stmt.exprs().iter().map(|e| of_expr(e, defs)));
    1u64.saturating_add(own).saturating_add(inside).saturating_add(exprs)
}

fn states(accs: usize, elems: u64) -> u64 {
    (accs as u64).saturating_mul(elems)
}

fn of_expr(expr: &Expr, defs: &[u64]) -> u64 {
    let called = match expr {
        Expr::Call(def, ..) => defs[def.0 as usize],
        _ => 1,
    };
    total(expr.args().iter().map(|e| of_expr(e, defs))).saturating_add(called)
}

fn total(of: impl Iterator<Item = u64>) -> u64 {
    of.fold(0, u64::saturating_add)
}
