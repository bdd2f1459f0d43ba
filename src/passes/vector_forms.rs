//! Which operations have a vector form in the code generator's 128 bits, on every target it has.

use cranefold_ir::{DType, Def, Expr, Op, Stmt};

/// Bits of the code generator's vectors, on every target it has.
pub const VECTOR_BITS: u32 = 128;

/// The bytes of the widest element type computed in the body: it decides how many lanes fit.
pub(super) fn widest_bytes(body: &[Stmt], defs: &[Def]) -> u64 {
    let mut widest = 1;
    let mut take =
        |e: &Expr, _: Option<&Def>| widest = widest.max(if e.dtype() == DType::Bool { 1 } else { e.dtype().bytes() });
    each_expr(body, defs, &mut take);
    widest
}

/// Whether every operation in the body, in the definitions it calls too, has a vector form.
pub(super) fn has_vector_form(body: &[Stmt], defs: &[Def]) -> bool {
    let mut all = true;
    each_expr(body, defs, &mut |e, def| {
        if let Expr::Op(op, result, args) = e {
            all &= op_has_vector_form(*op, *result, args, def);
        }
    });
    all
}

/// Calls `f` on every expression in the body, and on those in the definitions it calls.
fn each_expr(body: &[Stmt], defs: &[Def], f: &mut impl FnMut(&Expr, Option<&Def>)) {
    let mut called = vec![];
    for stmt in body {
        if let Stmt::Call { def, .. } = stmt {
            called.push(*def);
        }
        for e in stmt.exprs() {
            e.visit(&mut |e| {
                f(e, None);
                if let Expr::Call(def, ..) = e {
                    called.push(*def);
                }
            });
        }
    }
    for def in called {
        let def = &defs[def.0 as usize];
        def.lets.iter().chain(&def.results).for_each(|e| e.visit(&mut |e| f(e, Some(def))));
    }
}

/// Whether the operation has a vector form; `def` is where it stands.
fn op_has_vector_form(op: Op, result: DType, args: &[Expr], def: Option<&Def>) -> bool {
    let from = args[0].dtype();
    match op {
        Op::Neg | Op::Abs | Op::Sqrt | Op::Not | Op::Add | Op::Sub | Op::And | Op::Or | Op::Xor => true,
        Op::Nearest | Op::Fma | Op::Bits => true,
        Op::Clz | Op::MulHigh => false,
        Op::Mul => !matches!(from, DType::I8 | DType::U8),
        Op::Div => from.is_float(),
        Op::Min | Op::Max => from.is_float() || from.bytes() < 8,
        // One amount for all lanes.
        Op::Shl | Op::Shr => matches!(args[1], Expr::Const(_)) && from.bytes() > 1,
        Op::Eq | Op::Ne | Op::Lt | Op::Le => true,
        Op::Select => mask_bytes(&args[0], def) == Some(result.bytes()),
        Op::Cast => cast_has_vector_form(result, from),
    }
}

fn cast_has_vector_form(to: DType, from: DType) -> bool {
    let is_half = |d| matches!(d, DType::F16 | DType::Bf16);
    match (from, to) {
        (DType::Bool, _) => false,
        _ if from.is_int() && to.is_int() => true,
        // Halves are converted through integers of 32 bits.
        _ if is_half(from) && is_half(to) => false,
        _ if is_half(from) || is_half(to) => from == DType::F32 || to == DType::F32,
        (DType::F32, DType::F64) | (DType::F64, DType::F32) => true,
        (DType::I8 | DType::I16 | DType::I32 | DType::U8 | DType::U16, DType::F32) => true,
        (DType::I32, DType::F64) => true,
        _ => false,
    }
}

/// The size of what a condition compares, which is that of its lanes; `None` where it is not one size.
fn mask_bytes(condition: &Expr, def: Option<&Def>) -> Option<u64> {
    match condition {
        Expr::Op(Op::Eq | Op::Ne | Op::Lt | Op::Le, _, args) => Some(args[0].dtype().bytes()),
        Expr::Op(Op::And | Op::Or | Op::Xor | Op::Not, _, args) => {
            let first = mask_bytes(&args[0], def)?;
            args.iter().all(|a| mask_bytes(a, def) == Some(first)).then_some(first)
        }
        Expr::Var(v, _) => {
            let def = def?;
            mask_bytes(def.lets.get((v.0 as usize).checked_sub(def.params.len())?)?, Some(def))
        }
        _ => None,
    }
}
