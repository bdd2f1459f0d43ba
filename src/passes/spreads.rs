//! Values spread over the elements of a row, so that loops which walk other memory as one read these as well.

use cranefold_ir::analysis::{Band, partition};
use cranefold_ir::{AccId, BufId, Expr, Index, Loop, LoopVar, Names, Over, Scalar, Stmt};

/// Values that the elements of rows read, each spread over an accumulator with an element for each of a row's.
#[derive(Clone, Default)]
pub(super) struct Spreads {
    found: Vec<Spread>,
}

/// A value, with the loops over a row of elements that read it.
#[derive(Clone)]
struct Spread {
    value: Expr,
    acc: AccId,
    row: Band,
}

/// The values that may be read before the rows.
pub(super) struct Fixed<'f> {
    /// Accumulators that nothing changes while rows are walked.
    pub acc: &'f dyn Fn(AccId) -> bool,
    /// Buffers that nothing is stored to.
    pub buffer: &'f dyn Fn(BufId) -> bool,
    /// Loops around all rows; their variables may stand in an index, beside those of the row.
    pub around: &'f dyn Fn(LoopVar) -> bool,
}

impl Spreads {
    /// The statements of a row with spread values in place of those that do not walk memory as its loops do: elements of
    /// accumulators and inputs, and numbers of positions. These are the same in all rows, and spread with `numbers`.
    pub fn replace(
        &mut self,
        body: Vec<Stmt>,
        row: &Band,
        fixed: &Fixed,
        numbers: &mut Spreads,
        names: &mut Names,
    ) -> Vec<Stmt> {
        let of_row = |var: LoopVar| row.loops.iter().any(|&(v, _)| v == var);
        let mut one = |e: Expr| {
            let (Expr::Read(.., index) | Expr::Load(.., index) | Expr::At(_, index)) = &e else { return e };
            let (own, rest) = partition(index, of_row);
            let is_around = rest.terms().all(|(var, _)| (fixed.around)(var));
            if own.is_constant() || walks_as_row(&own, row) {
                return e;
            }
            match &e {
                Expr::Read(acc, ..) if (fixed.acc)(*acc) && is_around => self.read(&e, row, names),
                Expr::Load(buffer, ..) if (fixed.buffer)(*buffer) && is_around => self.read(&e, row, names),
                Expr::At(dtype, _) if dtype.is_int() => {
                    Expr::At(*dtype, rest).add(numbers.read(&Expr::At(*dtype, own), row, names))
                }
                Expr::Read(..) | Expr::Load(..) | Expr::At(..) => e,
                Expr::Const(_) | Expr::Var(..) | Expr::Op(..) | Expr::Call(..) => e,
            }
        };
        each_expr(body, &mut one)
    }

    /// The element of a value spread over a row, or over a longer one.
    fn read(&mut self, value: &Expr, row: &Band, names: &mut Names) -> Expr {
        let known = self.found.iter().find(|known| known.begins_with(value, row)).map(|known| known.acc);
        let acc = known.unwrap_or_else(|| {
            let acc = names.acc();
            // The loops that spread it run once, whatever those of the row run over.
            let loops = row.loops.iter().map(|&(_, extent)| (names.loop_over(Over::Element), extent)).collect();
            let spread = Band { loops };
            self.found.push(Spread { value: in_loops(value, row, &spread), acc, row: spread });
            acc
        });
        Expr::Read(acc, value.dtype(), row.position())
    }

    /// The statements that spread the values, to stand before the rows.
    pub fn stmts(self) -> Vec<Stmt> {
        let mut out = vec![];
        for Spread { value, acc, row } in self.found {
            let dtype = value.dtype();
            out.push(Stmt::Acc { acc, dtype, len: row.count(), init: Scalar::zero(dtype) });
            out.extend(row.around(vec![Stmt::Set { acc, index: row.position(), value }]));
        }
        out
    }
}

impl Spread {
    /// Returns true if the first elements are those of a value over a row with as many outputs.
    fn begins_with(&self, value: &Expr, row: &Band) -> bool {
        let ([(_, extent), inner @ ..], [(_, fewer), others @ ..]) = (&self.row.loops[..], &row.loops[..]) else {
            return false;
        };
        let are_extents = inner.iter().map(|&(_, extent)| extent).eq(others.iter().map(|&(_, extent)| extent));
        are_extents && fewer <= extent && in_loops(value, row, &self.row) == self.value
    }
}

/// The value with the variables of the loops of one band in place of those of another.
fn in_loops(value: &Expr, from: &Band, to: &Band) -> Expr {
    let mut value = value.clone();
    for (&(from, _), &(to, _)) in from.loops.iter().zip(&to.loops) {
        value.each_index_mut(&mut |index| index.substitute(from, &Index::term(to, 1)));
    }
    value
}

/// The statements, and those in their loops, with `f` applied to each part of their expressions.
fn each_expr(body: Vec<Stmt>, f: &mut impl FnMut(Expr) -> Expr) -> Vec<Stmt> {
    let mut mapped = |stmt| {
        if let Stmt::For(l) = stmt {
            return Stmt::For(Loop { body: each_expr(l.body, f), ..l });
        }
        stmt.map_exprs(&mut |e| e.rewrite(f))
    };
    body.into_iter().map(&mut mapped).collect()
}

/// Returns true if an index of a row's variables steps through its loops as through one.
pub(super) fn walks_as_row(index: &Index, row: &Band) -> bool {
    let position = row.position();
    let step = row.loops.last().map_or(0, |&(var, _)| index.coefficient(var));
    row.loops.iter().all(|&(var, _)| index.coefficient(var) == step * position.coefficient(var))
}
