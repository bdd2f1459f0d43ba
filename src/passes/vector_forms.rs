//! The vector forms of a nest's statements: the [table](crate::forms) of operations, with its conditions on operands
//! checked.

use crate::forms::{Form, counts, form};
use crate::vectors::Vectors;
use cranefold_ir::{DType, Def, DefId, Expr, Op, Stmt};

/// The vector forms of a nest's definitions.
pub(super) struct VectorForms<'a> {
    defs: &'a [Def],
    vectors: Vectors,
    /// The forms of the definitions that have been looked up.
    known: Vec<Option<OfDef>>,
}

#[derive(Clone, Copy)]
struct OfDef {
    has_form: bool,
    widest_bytes: u64,
}

impl<'a> VectorForms<'a> {
    pub(super) fn new(defs: &'a [Def], vectors: Vectors) -> VectorForms<'a> {
        VectorForms { defs, vectors, known: vec![None; defs.len()] }
    }

    /// The bits of the vectors.
    pub(super) fn bits(&self) -> u32 {
        self.vectors.bits
    }

    /// Returns whether the vectors leave lanes out by a mask.
    pub(super) fn has_masks(&self) -> bool {
        self.vectors.has_masks()
    }

    fn of_def(&mut self, id: DefId) -> OfDef {
        let (at, vectors) = (id.0 as usize, self.vectors);
        *self.known[at].get_or_insert_with(|| {
            let def = &self.defs[at];
            let mut of_def = OfDef { has_form: true, widest_bytes: 1 };
            def.lets.iter().chain(&def.results).for_each(|e| {
                e.visit(&mut |e| {
                    of_def.has_form &= has_form(e, Some(def), vectors);
                    of_def.widest_bytes = of_def.widest_bytes.max(lane_bytes(e.dtype()));
                })
            });
            of_def
        })
    }

    /// The bytes of the widest element type computed in a straight body, which limits the lanes. No lane computes a number
    /// that a definition does not use; an element that it does not use is read all the same.
    pub(super) fn widest_bytes(&mut self, body: &[Stmt]) -> u64 {
        let mut widest = 1;
        for stmt in body {
            match stmt {
                Stmt::Call { def, args, .. } => self.widen_by_call(*def, args, &mut widest),
                other => other.exprs().iter().for_each(|e| self.widen(e, &mut widest)),
            }
        }
        widest
    }

    fn widen(&mut self, e: &Expr, widest: &mut u64) {
        *widest = (*widest).max(lane_bytes(e.dtype()));
        match e {
            Expr::Call(def, _, args) => self.widen_by_call(*def, args, widest),
            other => other.args().iter().for_each(|arg| self.widen(arg, widest)),
        }
    }

    fn widen_by_call(&mut self, def: DefId, args: &[Expr], widest: &mut u64) {
        *widest = (*widest).max(self.of_def(def).widest_bytes);
        for (n, arg) in args.iter().enumerate() {
            let is_number = matches!(arg, Expr::Var(..) | Expr::At(..) | Expr::Const(_));
            if !is_number || lane_bytes(arg.dtype()) <= *widest || !self.defs[def.0 as usize].is_hint(n) {
                self.widen(arg, widest);
            }
        }
    }

    /// Returns true if every operation in the statement itself, and in the definitions it calls, has a vector form.
    pub(super) fn has_form(&mut self, stmt: &Stmt) -> bool {
        let called = |s: &mut Self| !matches!(stmt, Stmt::Call { def, .. } if !s.of_def(*def).has_form);
        called(self) && stmt.exprs().iter().all(|e| self.expr_has_form(e))
    }

    fn expr_has_form(&mut self, e: &Expr) -> bool {
        let called = |s: &mut Self| !matches!(e, Expr::Call(def, ..) if !s.of_def(*def).has_form);
        called(self) && has_form(e, None, self.vectors) && e.args().iter().all(|a| self.expr_has_form(a))
    }
}

fn lane_bytes(dtype: DType) -> u64 {
    if dtype == DType::Bool { 1 } else { dtype.bytes() }
}

/// Returns true if the operation of the expression has a vector form, its operands left aside; `def` is the definition
/// that holds the expression.
fn has_form(e: &Expr, def: Option<&Def>, vectors: Vectors) -> bool {
    let (op, result, args) = match e {
        Expr::Op(op, result, args) => (*op, *result, args),
        Expr::At(..) => return counts(vectors),
        _ => return true,
    };
    match form(vectors, op, result, args[0].dtype()) {
        Form::Absent => false,
        Form::Direct | Form::Defined => true,
        // The amount is the same for all lanes.
        Form::ByConstant => matches!(args[1], Expr::Const(_)),
        Form::OfOneSize => same_mask_bytes(args, def).is_some(),
        Form::OfKnownSize => mask_bytes(&args[0], def).is_some(),
    }
}

/// Returns true if these vectors have an instruction for an operation that is a call of a definition elsewhere.
pub(super) fn is_primitive(vectors: Vectors, op: Op, to: DType, from: DType) -> bool {
    form(Vectors::BASE, op, to, from) == Form::Defined && form(vectors, op, to, from) == Form::Direct
}

/// Returns true if an operation is a call of a definition in these vectors.
pub(super) fn is_defined(vectors: Vectors, op: Op, to: DType, from: DType) -> bool {
    form(vectors, op, to, from) == Form::Defined
}

/// The bytes of the lanes that a condition compares; `None` if its comparisons differ in size.
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
