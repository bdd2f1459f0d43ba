//! Which operations have a vector form, by the bits of the vectors.
//!
//! Vectors of 128 bits are Cranelift's, the same on every target it has. Those of 256 and 512 bits stand in tiles,
//! where a scalar is a vector of which one lane counts: there an operation has this form or none.

use crate::vectors::Vectors;
use cranefold_ir::{DType, Def, DefId, Expr, Op, Stmt};

/// What vectors of some bits can do with the definitions of a nest.
pub(super) struct Forms<'a> {
    defs: &'a [Def],
    bits: u32,
    /// What is known of each definition by now.
    known: Vec<Option<OfDef>>,
}

#[derive(Clone, Copy)]
struct OfDef {
    has_form: bool,
    widest_bytes: u64,
}

impl<'a> Forms<'a> {
    pub(super) fn new(defs: &'a [Def], vectors: Vectors) -> Forms<'a> {
        Forms { defs, bits: vectors.bits, known: vec![None; defs.len()] }
    }

    /// The bits of the vectors.
    pub(super) fn bits(&self) -> u32 {
        self.bits
    }

    fn of_def(&mut self, id: DefId) -> OfDef {
        let (at, bits) = (id.0 as usize, self.bits);
        *self.known[at].get_or_insert_with(|| {
            let def = &self.defs[at];
            let mut of_def = OfDef { has_form: true, widest_bytes: 1 };
            def.lets.iter().chain(&def.results).for_each(|e| {
                e.visit(&mut |e| {
                    of_def.has_form &= has_form(e, Some(def), bits);
                    of_def.widest_bytes = of_def.widest_bytes.max(lane_bytes(e.dtype()));
                })
            });
            of_def
        })
    }

    /// The bytes of the widest element type computed in a straight body: it decides how many lanes fit.
    pub(super) fn widest_bytes(&mut self, body: &[Stmt]) -> u64 {
        let mut widest = 1;
        for stmt in body {
            if let Stmt::Call { def, .. } = stmt {
                widest = widest.max(self.of_def(*def).widest_bytes);
            }
            stmt.exprs().iter().for_each(|e| {
                e.visit(&mut |e| {
                    widest = widest.max(lane_bytes(e.dtype()));
                    if let Expr::Call(def, ..) = e {
                        widest = widest.max(self.of_def(*def).widest_bytes);
                    }
                })
            });
        }
        widest
    }

    /// Whether every operation directly in the statement, in the definitions it calls too, has a vector form.
    pub(super) fn has_form(&mut self, stmt: &Stmt) -> bool {
        let called = |s: &mut Self| !matches!(stmt, Stmt::Call { def, .. } if !s.of_def(*def).has_form);
        called(self) && stmt.exprs().iter().all(|e| self.expr_has_form(e))
    }

    fn expr_has_form(&mut self, e: &Expr) -> bool {
        let called = |s: &mut Self| !matches!(e, Expr::Call(def, ..) if !s.of_def(*def).has_form);
        called(self) && has_form(e, None, self.bits) && e.args().iter().all(|a| self.expr_has_form(a))
    }
}

fn lane_bytes(dtype: DType) -> u64 {
    if dtype == DType::Bool { 1 } else { dtype.bytes() }
}

/// Whether the expression has a form, its operands left aside; `def` is where it stands.
fn has_form(e: &Expr, def: Option<&Def>, bits: u32) -> bool {
    match e {
        Expr::Op(op, result, args) if bits == Vectors::BASE.bits => base_form(*op, *result, args, def),
        Expr::Op(op, result, args) => wide_form(*op, *result, args, def, bits),
        Expr::At(dtype, _) => bits == Vectors::BASE.bits || dtype.bytes() >= 4,
        _ => true,
    }
}

/// Of 128 bits.
fn base_form(op: Op, result: DType, args: &[Expr], def: Option<&Def>) -> bool {
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
        Op::Cast => base_cast(result, from),
    }
}

fn base_cast(to: DType, from: DType) -> bool {
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

/// Of 256 and 512 bits. A condition is a mask of 512 bits by itself, but of 256 a vector with lanes of the size of
/// what was compared.
fn wide_form(op: Op, result: DType, args: &[Expr], def: Option<&Def>, bits: u32) -> bool {
    let from = args[0].dtype();
    let has_masks = bits >= 512;
    match op {
        Op::Neg | Op::Abs | Op::Add | Op::Sub | Op::Sqrt | Op::Nearest | Op::Fma | Op::Min | Op::Max => true,
        Op::Bits | Op::Eq | Op::Ne | Op::Lt | Op::Le => true,
        Op::Clz | Op::MulHigh => false,
        Op::Mul => from.is_float() || from.bytes() > 1,
        Op::Div => from.is_float(),
        Op::Not | Op::And | Op::Or | Op::Xor if from == DType::Bool => {
            has_masks || same_mask_bytes(args, def).is_some()
        }
        Op::Not | Op::And | Op::Or | Op::Xor => true,
        Op::Shl | Op::Shr => matches!(args[1], Expr::Const(_)) && from.bytes() > 1,
        Op::Select => has_masks || mask_bytes(&args[0], def) == Some(result.bytes()),
        Op::Cast if from == DType::Bool => result.is_int() && (has_masks || mask_bytes(&args[0], def).is_some()),
        Op::Cast => wide_cast(result, from, has_masks),
    }
}

fn wide_cast(to: DType, from: DType, is_512: bool) -> bool {
    use DType::{Bf16, F16, F32, F64, I64, U32, U64};
    match (from, to) {
        _ if from.is_int() && to.is_int() => true,
        (F16 | Bf16 | F64, F32) | (F32, F16 | Bf16 | F64) => true,
        (U32 | I64 | U64, F32 | F64) => is_512,
        (_, F32 | F64) => from.is_int(),
        _ => false,
    }
}

/// Whether vectors of these bits convert a half by an instruction, so that no definition stands for it.
pub(super) fn converts_half(to: DType, from: DType, bits: u32) -> bool {
    use DType::{Bf16, F16, F32};
    bits > Vectors::BASE.bits && matches!((from, to), (F16 | Bf16, F32) | (F32, F16))
}

/// The size of what a condition compares, which is that of its lanes; `None` where it is not one size.
fn mask_bytes(condition: &Expr, def: Option<&Def>) -> Option<u64> {
    match condition {
        Expr::Op(Op::Eq | Op::Ne | Op::Lt | Op::Le, _, args) => Some(args[0].dtype().bytes()),
        Expr::Op(Op::And | Op::Or | Op::Xor | Op::Not, _, args) => same_mask_bytes(args, def),
        Expr::Var(v, _) => {
            let def = def?;
            mask_bytes(def.lets.get((v.0 as usize).checked_sub(def.params.len())?)?, Some(def))
        }
        _ => None,
    }
}

fn same_mask_bytes(conditions: &[Expr], def: Option<&Def>) -> Option<u64> {
    let first = mask_bytes(&conditions[0], def)?;
    conditions.iter().all(|c| mask_bytes(c, def) == Some(first)).then_some(first)
}
