//! Values spread over the elements of a row, so that loops which walk other memory as one read these as well.

use cranefold_ir::analysis::{Band, partition};
use cranefold_ir::{AccId, BufId, Expr, Index, Loop, LoopVar, Names, Over, Scalar, Stmt};

/// Values that the elements of rows read, each spread over an accumulator with an element for each of a row's.
#[derive(Default)]
pub(super) struct Spreads {
    found: Vec<Spread>,
}

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
    /// accumulators and inputs, and numbers of positions.
    pub fn replace(&mut self, body: Vec<Stmt>, row: &Band, fixed: &Fixed, names: &mut Names) -> Vec<Stmt> {
        let of_row = |var: LoopVar| row.loops.iter().any(|&(v, _)| v == var);
        let mut one = |e: Expr| {
            let (Expr::Read(.., index) | Expr::Load(.., index) | Expr::At(_, index)) = &e else { return e };
            let (own, rest) = partition(index, of_row);
            let is_around = rest.terms().all(|(var, _)| (fixed.around)(var));
            if own.is_constant() || walks_as_row(&own, row) {
                return e;
            }
            let (value, base) = match &e {
                Expr::Read(acc, ..) if (fixed.acc)(*acc) && is_around => (e.clone(), None),
                Expr::Load(buffer, ..) if (fixed.buffer)(*buffer) && is_around => (e.clone(), None),
                Expr::At(dtype, _) if dtype.is_int() => (Expr::At(*dtype, own), Some(Expr::At(*dtype, rest))),
                Expr::Read(..) | Expr::Load(..) | Expr::At(..) => return e,
                Expr::Const(_) | Expr::Var(..) | Expr::Op(..) | Expr::Call(..) => return e,
            };
            let spread = Expr::Read(self.of(&value, row, names), value.dtype(), row.position());
            match base {
                Some(base) => base.add(spread),
                None => spread,
            }
        };
        each_expr(body, &mut one)
    }

    /// The accumulator of a value spread over a row, or over a longer one.
    fn of(&mut self, value: &Expr, row: &Band, names: &mut Names) -> AccId {
        if let Some(known) = self.found.iter().find(|known| known.begins_with(value, row)) {
            return known.acc;
        }
        let acc = names.acc();
        self.found.push(Spread { value: value.clone(), acc, row: row.clone() });
        acc
    }

    /// The statements that spread the values, to stand before the rows.
    pub fn stmts(self, names: &mut Names) -> Vec<Stmt> {
        let mut out = vec![];
        for Spread { value, acc, row } in self.found {
            let dtype = value.dtype();
            out.push(Stmt::Acc { acc, dtype, len: row.count(), init: Scalar::zero(dtype) });
            // These loops run once, whatever those of the row run over.
            let vars: Vec<(LoopVar, u64)> =
                row.loops.iter().map(|&(_, extent)| (names.loop_over(Over::Element), extent)).collect();
            let loops = Band { loops: vars.clone() };
            let mut set = Stmt::Set { acc, index: row.position(), value };
            for (&(from, _), &(to, _)) in row.loops.iter().zip(&vars) {
                set.each_index_mut(&mut |index| index.substitute(from, &Index::term(to, 1)));
            }
            out.extend(loops.around(vec![set]));
        }
        out
    }
}

impl Spread {
    /// Returns true if the first elements are those of a value over a row with as many outputs.
    fn begins_with(&self, value: &Expr, row: &Band) -> bool {
        let ([(outer, extent), inner @ ..], [(other, fewer), others @ ..]) = (&self.row.loops[..], &row.loops[..])
        else {
            return false;
        };
        let mut renamed = value.clone();
        renamed.each_index_mut(&mut |index| index.substitute(*other, &Index::term(*outer, 1)));
        inner == others && fewer <= extent && renamed == self.value
    }
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
