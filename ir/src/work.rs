//! The work of a body: its operations, each with a weight.
//!
//! Every count of the operations of a loop or a reducer is made here, by one rule: an operation inside a definition
//! counts wherever the definition is called, and a load or a constant is no operation. [`visits`] counts what the
//! interpreter does with a nest, loads and constants too.

use crate::{DType, Def, DefId, Expr, Extent, Nest, Op, Stmt};

/// The weight 1 of every operation but reading bits as another type, which has weight 0.
pub fn one_each(op: Op, _: DType) -> u64 {
    u64::from(op != Op::Bits)
}

/// A counter of work, over the definitions of a nest.
#[derive(Clone, Copy, Debug)]
pub struct Work<'a, W> {
    defs: &'a [Def],
    weight: W,
}

impl<'a, W: Fn(Op, DType) -> u64> Work<'a, W> {
    /// A counter of work; `weight` gets an operation and the type of its result.
    ///
    /// ```
    /// use cranefold_ir::work::{Work, one_each};
    /// use cranefold_ir::{DType, Expr, Nest};
    ///
    /// let text = "nest \"\" { in x0: f32[4] out x1: f32[4] for i0 in 0..4 parallel { x1[i0] = add(mul(x0[i0], x0[i0]), x0[i0]) } }";
    /// let nest: Nest = text.parse()?;
    /// assert_eq!(Work::new(&nest.defs, one_each).body(&nest.body), 2);
    /// # Ok::<(), cranefold_ir::ParseError>(())
    /// ```
    pub fn new(defs: &'a [Def], weight: W) -> Work<'a, W> {
        Work { defs, weight }
    }

    /// The work of an expression.
    pub fn expr(&self, expr: &Expr) -> u64 {
        let mut work = 0u64;
        expr.visit(&mut |e| {
            work = work.saturating_add(match e {
                Expr::Op(op, dtype, _) => (self.weight)(*op, *dtype),
                Expr::Call(def, ..) => self.def(&self.defs[def.0 as usize]),
                _ => 0,
            });
        });
        work
    }

    /// The work of one call of a definition.
    pub fn def(&self, def: &Def) -> u64 {
        def.lets.iter().chain(&def.results).map(|e| self.expr(e)).fold(0, u64::saturating_add)
    }

    /// The work of a statement, without the statements in its body.
    pub fn stmt(&self, stmt: &Stmt) -> u64 {
        let called = if let Stmt::Call { def, .. } = stmt { self.def(&self.defs[def.0 as usize]) } else { 0 };
        stmt.exprs().iter().map(|e| self.expr(e)).fold(called, u64::saturating_add)
    }

    /// The work of statements and of all statements in them, each once.
    pub fn body(&self, body: &[Stmt]) -> u64 {
        let mut work = 0u64;
        body.iter().for_each(|s| s.visit(&mut |s| work = work.saturating_add(self.stmt(s))));
        work
    }
}

/// The statements, expressions and elements that the interpreter visits in a nest that verifies, about.
///
/// ```
/// use cranefold_ir::Nest;
/// use cranefold_ir::work::visits;
///
/// let text = "nest \"\" { in x0: f32[4] out x1: f32[4] for i0 in 0..4 parallel { x1[i0] = neg(x0[i0]) } }";
/// let nest: Nest = text.parse()?;
/// // The loop, and in each iteration the iteration, the statement, the operation and the load.
/// assert_eq!(visits(&nest), 1 + 4 * 4);
/// # Ok::<(), cranefold_ir::ParseError>(())
/// ```
pub fn visits(nest: &Nest) -> u64 {
    let mut visits = Visits { defs: vec![] };
    for def in &nest.defs {
        let of = total(def.lets.iter().chain(&def.results).map(|e| visits.expr(e)));
        visits.defs.push(of.saturating_add(1));
    }
    visits.body(&nest.body)
}

/// The visits of each definition.
struct Visits {
    defs: Vec<u64>,
}

impl Visits {
    fn body(&self, body: &[Stmt]) -> u64 {
        total(body.iter().map(|s| self.stmt(s)))
    }

    fn stmt(&self, stmt: &Stmt) -> u64 {
        let inside = self.body(stmt.body());
        let exprs = total(stmt.exprs().iter().map(|e| self.expr(e)));
        let states = |accs: usize, elems: u64| (accs as u64).saturating_mul(elems);
        let own = match stmt {
            Stmt::For(l) => {
                let times = match l.extent {
                    Extent::Const(n) | Extent::From(_, n) | Extent::Below(_, n) => n,
                    // A number of ones of 64 bits.
                    Extent::Carry(_) => 64,
                };
                return inside.saturating_add(1).saturating_mul(times).saturating_add(1);
            }
            Stmt::Call { def, .. } => self.def(*def),
            Stmt::Merge { accs, def, blocks: times, elems } | Stmt::Fold { accs, def, present: times, elems, .. } => {
                states(accs.len(), *elems).saturating_mul(*times).saturating_mul(self.def(*def))
            }
            Stmt::Select { len, .. } => len.saturating_mul(16),
            Stmt::Transpose(t) | Stmt::TransposedStore(t) => t.elements(),
            Stmt::Acc { len, .. } | Stmt::Rotate { len, .. } => *len,
            Stmt::Wide { .. } | Stmt::Let { .. } | Stmt::Set { .. } | Stmt::Store { .. } | Stmt::Carry { .. } => 0,
            Stmt::Pick { .. } | Stmt::Misalign { .. } | Stmt::Prefetch { .. } => 0,
        };
        1u64.saturating_add(own).saturating_add(inside).saturating_add(exprs)
    }

    fn expr(&self, expr: &Expr) -> u64 {
        let called = if let Expr::Call(def, ..) = expr { self.def(*def) } else { 1 };
        total(expr.args().iter().map(|e| self.expr(e))).saturating_add(called)
    }

    fn def(&self, id: DefId) -> u64 {
        self.defs[id.0 as usize]
    }
}

fn total(of: impl Iterator<Item = u64>) -> u64 {
    of.fold(0, u64::saturating_add)
}
