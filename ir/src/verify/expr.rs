//! The rules of expressions.

use super::conflict::{Access, Target};
use super::{Site, Verifier};
use crate::{BufferRole, DType, Def, DefId, Expr, Index, MAX_DEPTH, Op};

impl<'a> Verifier<'a> {
    pub(super) fn expr(&mut self, expr: &'a Expr) {
        self.expr_at(expr, 1);
    }

    fn expr_at(&mut self, expr: &'a Expr, depth: usize) {
        if depth > MAX_DEPTH {
            return self.report(format!("expressions nest more than {MAX_DEPTH} deep"));
        }
        expr.args().iter().for_each(|arg| self.expr_at(arg, depth + 1));
        let in_def = matches!(self.place, Site::Def(..));
        match expr {
            Expr::Const(_) => {}
            Expr::Var(var, dtype) => match self.vars.get(var).copied() {
                None => self.report(format!("{var} is not bound here")),
                Some(bound) => self.same_type(*dtype, bound, var),
            },
            Expr::Load(..) | Expr::Read(..) | Expr::At(..) | Expr::Call(..) if in_def => {
                self.report("a definition uses only its parameters and values bound before, and calls no other");
            }
            Expr::Load(buf, dtype, index) => match self.nest.buffers.get(buf.0 as usize) {
                None => self.report(format!("there is no buffer {buf}")),
                Some(buffer) => {
                    if matches!(buffer.role, BufferRole::Out | BufferRole::Nontemporal) {
                        self.report(format!("{buf} is an output and is not read"));
                    }
                    self.same_type(*dtype, buffer.dtype, buf);
                    self.within(index, buffer.len, buf);
                    if buffer.role == BufferRole::InOut {
                        self.access(Target::Buf(*buf), 0, false, index);
                    }
                }
            },
            Expr::Read(acc, dtype, index) => {
                let Some(info) = self.unselected(*acc) else { return };
                self.same_type(*dtype, info.dtype, acc);
                self.within(index, info.len, acc);
                self.access(Target::Acc(*acc), info.depth, false, index);
            }
            Expr::At(dtype, index) => self.value_of_index(*dtype, index),
            Expr::Op(op, result, args) => self.operation(*op, *result, args),
            Expr::Call(id, dtype, args) => {
                let Some(def) = self.call(*id, args) else { return };
                match def.results.as_slice() {
                    [one] => self.same_type(*dtype, one.dtype(), &def.name),
                    results => self.report(format!(
                        "{} gives {} results, and an expression takes one",
                        def.name,
                        results.len()
                    )),
                }
            }
        }
    }

    fn operation(&mut self, op: Op, result: DType, args: &[Expr]) {
        let types: Vec<DType> = args.iter().map(Expr::dtype).collect();
        if !op.accepts(result, &types) {
            let types: Vec<&str> = types.iter().map(|d| d.name()).collect();
            self.report(format!("{} does not take ({}) to {result}", op.name(), types.join(", ")));
        }
    }

    /// Checks that the value of an index fits the type.
    fn value_of_index(&mut self, dtype: DType, index: &Index) {
        let Some((lowest, highest)) = dtype.int_range().filter(|_| dtype != DType::Bool) else {
            return self.report(format!("the value of an index is no {dtype}"));
        };
        if !self.index(index) || self.bindings.never_runs() {
            return;
        }
        match self.bindings.bounds(index) {
            Some((least, greatest)) if least >= lowest && greatest <= highest => {}
            _ => self.report(format!("the value of index {index} may not fit {dtype}")),
        }
    }

    /// Checks a call, but for its results; returns the definition.
    pub(super) fn call(&mut self, id: DefId, args: &[Expr]) -> Option<&'a Def> {
        let Some(def) = self.nest.defs.get(id.0 as usize) else {
            self.report(format!("there is no definition {id}"));
            return None;
        };
        if args.len() != def.params.len() {
            self.report(format!("{} takes {} arguments, not {}", def.name, def.params.len(), args.len()));
        }
        for (i, (arg, &param)) in args.iter().zip(&def.params).enumerate() {
            if arg.dtype() != param {
                self.report(format!("argument {i} of {} is {}, not {param}", def.name, arg.dtype()));
            }
        }
        Some(def)
    }

    fn same_type(&mut self, used: DType, declared: DType, what: impl std::fmt::Display) {
        if used != declared {
            self.report(format!("{what} is {declared}, and is used as {used}"));
        }
    }

    /// Checks that an index stays within `what`, which has `len` elements.
    pub(super) fn within(&mut self, index: &Index, len: u64, what: impl std::fmt::Display) {
        self.span_within(index, (0, 0), len, what);
    }

    /// Checks that an index plus each distance of `span` stays within `what`, which has `len` elements.
    pub(super) fn span_within(&mut self, index: &Index, span: (i128, i128), len: u64, what: impl std::fmt::Display) {
        if !self.index(index) || self.bindings.never_runs() {
            return;
        }
        match self.bindings.bounds(index) {
            Some((least, greatest)) => {
                let (least, greatest) = (least + span.0, greatest + span.1);
                if least < 0 || greatest >= i128::from(len) {
                    let range = if least == greatest { format!("{least}") } else { format!("{least} to {greatest}") };
                    self.report(format!("index {index} may be {range}, and {what} has {len} elements"));
                }
            }
            None => self.report(format!("index {index} may overflow")),
        }
    }

    /// Checks that the variables of an index are bound; returns true if they are.
    pub(super) fn index(&mut self, index: &Index) -> bool {
        let unbound: Vec<_> = index.terms().map(|(var, _)| var).filter(|var| !self.bindings.is_bound(*var)).collect();
        for var in &unbound {
            self.report(format!("{var} is not bound here"));
        }
        unbound.is_empty()
    }

    /// Notes an access for the rule of parallel loops.
    pub(super) fn access(&mut self, target: Target, decl_depth: usize, write: bool, index: &Index) {
        let Site::Stmt(stmt) = self.place else { return };
        if let (false, Some(terms)) = (self.bindings.never_runs(), self.bindings.terms(index)) {
            self.accesses.push(Access { target, decl_depth, write, offset: index.offset, terms, stmt });
        }
    }
}
