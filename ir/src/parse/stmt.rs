//! Statements.

use super::lexer::Token;
use super::{MAX_DEPTH, Parser, Result, number_after};
use crate::{AccId, BufId, Extent, Index, Loop, LoopKind, Selection, Stmt, Transpose, Var};

impl Parser<'_> {
    /// Parses statements and the brace that closes their body and their scope.
    pub(super) fn stmts(&mut self) -> Result<Vec<Stmt>> {
        let (vars, accs) = (self.vars.mark(), self.accs.mark());
        let mut body = Vec::new();
        while !self.accept("}")? {
            body.push(self.stmt()?);
        }
        self.vars.leave(vars);
        self.accs.leave(accs);
        Ok(body)
    }

    fn stmt(&mut self) -> Result<Stmt> {
        let Token::Word(word) = self.token else {
            return Err(self.expected("a statement"));
        };
        match word {
            "for" => self.for_stmt(),
            "acc" => self.acc(),
            "let" => self.let_stmt(),
            "call" => self.call_stmt(),
            "carry" => {
                self.bump()?;
                let var = self.loop_var()?;
                self.expect("=")?;
                Ok(Stmt::Carry { var, of: self.index()? })
            }
            "pick" => {
                self.bump()?;
                let var = self.loop_var()?;
                self.expect("=")?;
                let value = self.expr()?;
                self.expect_word("to")?;
                Ok(Stmt::Pick { var, value, most: self.count()? })
            }
            "misalign" => {
                self.bump()?;
                let var = self.loop_var()?;
                self.expect("=")?;
                let buf = BufId(self.numbered('x', "a buffer")?);
                let index = self.subscript()?;
                self.expect_word("in")?;
                Ok(Stmt::Misalign { var, buf, index, lanes: self.count()? })
            }
            "rotate" => self.rotate(),
            "prefetch" => {
                self.bump()?;
                let far = self.is_word("far");
                if far {
                    self.bump()?;
                }
                let buf = BufId(self.numbered('x', "a buffer")?);
                Ok(Stmt::Prefetch { buf, index: self.subscript()?, far })
            }
            "merge" => self.merge(),
            "fold" => self.fold(),
            "select" => self.select(),
            "transpose" => self.transpose(),
            "wide" => {
                self.check_depth()?;
                self.bump()?;
                Ok(Stmt::Wide { body: self.body()? })
            }
            _ => self.write_stmt(word),
        }
    }

    fn check_depth(&self) -> Result<()> {
        match self.loop_depth == MAX_DEPTH {
            true => Err(self.error(self.at, format!("loops nest more than {MAX_DEPTH} deep"))),
            false => Ok(()),
        }
    }

    /// Parses the body of a loop or a wide function.
    fn body(&mut self) -> Result<Vec<Stmt>> {
        self.expect("{")?;
        self.loop_depth += 1;
        let body = self.stmts();
        self.loop_depth -= 1;
        body
    }

    fn for_stmt(&mut self) -> Result<Stmt> {
        self.check_depth()?;
        self.bump()?;
        let var = self.loop_var()?;
        self.expect_word("in")?;
        let extent = self.range()?;
        let kinds = [LoopKind::Parallel, LoopKind::Seq, LoopKind::Lanes];
        let kind = kinds.into_iter().find(|kind| self.is_word(kind.name()));
        let kind = kind.ok_or_else(|| self.expected("`parallel`, `seq` or `lanes`"))?;
        self.bump()?;
        Ok(Stmt::For(Loop { var, extent, kind, body: self.body()? }))
    }

    /// `0..16`, `0..q0`, `s0..16` or `0..s0 of 16`.
    fn range(&mut self) -> Result<Extent> {
        if let Token::Word(_) = self.token {
            let var = self.loop_var()?;
            self.expect("..")?;
            return Ok(Extent::From(var, self.count()?));
        }
        if self.token != Token::Number("0") {
            return Err(self.expected("`0`"));
        }
        self.bump()?;
        self.expect("..")?;
        let Token::Word(_) = self.token else { return Ok(Extent::Const(self.count()?)) };
        let var = self.loop_var()?;
        if !self.is_word("of") {
            return Ok(Extent::Carry(var));
        }
        self.bump()?;
        Ok(Extent::Below(var, self.count()?))
    }

    fn rotate(&mut self) -> Result<Stmt> {
        self.bump()?;
        let acc = self.acc_id()?;
        self.expect("[")?;
        let start = self.count()?;
        self.expect("..")?;
        let end_at = self.at;
        let end = self.count()?;
        let len = end.checked_sub(start).ok_or_else(|| self.error(end_at, format!("{end} is below {start}")))?;
        self.expect("]")?;
        self.expect_word("by")?;
        Ok(Stmt::Rotate { acc, start, len, by: self.loop_var()? })
    }

    fn acc(&mut self) -> Result<Stmt> {
        self.bump()?;
        let acc = self.acc_id()?;
        self.expect(":")?;
        let (dtype, len) = self.array()?;
        self.expect("=")?;
        let init = self.value_of(dtype)?;
        self.accs.bind(acc, dtype);
        Ok(Stmt::Acc { acc, dtype, len, init })
    }

    fn let_stmt(&mut self) -> Result<Stmt> {
        self.bump()?;
        let var = self.var()?;
        self.expect("=")?;
        let value = self.expr()?;
        self.vars.bind(var, value.dtype());
        Ok(Stmt::Let { var, value })
    }

    fn call_stmt(&mut self) -> Result<Stmt> {
        self.bump()?;
        let vars = self.vars()?;
        self.expect("=")?;
        let at = self.at;
        let def = self.def_id()?;
        let args = self.args()?;
        let results = &self.defs[def.0 as usize].results;
        if results.len() != vars.len() {
            let message = format!("the definition gives {} results, not {}", results.len(), vars.len());
            return Err(self.error(at, message));
        }
        for (&var, result) in vars.iter().zip(results) {
            self.vars.bind(var, result.dtype());
        }
        Ok(Stmt::Call { vars, def, args })
    }

    fn merge(&mut self) -> Result<Stmt> {
        self.bump()?;
        let accs = self.acc_ids()?;
        self.expect_word("by")?;
        let def = self.def_id()?;
        self.expect_word("over")?;
        let blocks = self.count()?;
        self.expect_word("of")?;
        Ok(Stmt::Merge { accs, def, blocks, elems: self.count()? })
    }

    fn fold(&mut self) -> Result<Stmt> {
        self.bump()?;
        let accs = self.acc_ids()?;
        self.expect_word("by")?;
        let def = self.def_id()?;
        self.expect_word("over")?;
        let present = self.count()?;
        self.expect_word("of")?;
        let lanes = self.count()?;
        self.expect_word("by")?;
        Ok(Stmt::Fold { accs, def, present, lanes, elems: self.count()? })
    }

    fn select(&mut self) -> Result<Stmt> {
        self.bump()?;
        let vars = self.vars()?;
        self.expect("=")?;
        let at = self.at;
        let what = if self.is_word("mode") {
            self.bump()?;
            Selection::Mode
        } else if self.is_word("nth") {
            self.bump()?;
            let mut positions = vec![self.count()?];
            while self.accept(",")? {
                positions.push(self.count()?);
            }
            Selection::Nth(positions)
        } else {
            return Err(self.expected("`nth` or `mode`"));
        };
        self.expect_word("of")?;
        let acc_at = self.at;
        let acc = self.acc_id()?;
        let dtype = self.accs.get(acc).ok_or_else(|| self.error(acc_at, format!("{acc} is not declared here")))?;
        let results = what.results(dtype);
        if results.len() != vars.len() {
            let message = format!("the selection gives {} results, not {}", results.len(), vars.len());
            return Err(self.error(at, message));
        }
        for (&var, result) in vars.iter().zip(results) {
            self.vars.bind(var, result);
        }
        self.expect_word("over")?;
        Ok(Stmt::Select { vars, what, acc, len: self.count()? })
    }

    fn transpose(&mut self) -> Result<Stmt> {
        self.bump()?;
        let is_store = matches!(self.token, Token::Word(word) if number_after('x', word).is_some());
        let (acc, buf, first) = if is_store {
            let (buf, first) = self.element_of_buffer()?;
            self.expect("=")?;
            (self.declared_acc()?, buf, first)
        } else {
            let acc = self.declared_acc()?;
            self.expect("=")?;
            let (buf, first) = self.element_of_buffer()?;
            (acc, buf, first)
        };
        self.expect_word("over")?;
        let mut lanes = self.strided()?;
        let mut runs = (1, 0);
        if self.accept(",")? {
            runs = std::mem::replace(&mut lanes, self.strided()?);
        }
        if runs.0 == 1 {
            runs.1 = 0;
        }
        self.expect_word("at")?;
        let mut columns = vec![self.count()?];
        while self.accept(",")? {
            columns.push(self.count()?);
        }
        let within = if !is_store && self.is_word("within") {
            self.bump()?;
            self.count()?
        } else {
            0
        };
        let ((lanes, stride), (runs, run_stride)) = (lanes, runs);
        let transpose = Transpose { acc, buf, first, lanes, stride, runs, run_stride, columns, within };
        Ok(if is_store { Stmt::TransposedStore(transpose) } else { Stmt::Transpose(transpose) })
    }

    /// A count and the elements between two of them: `16 by 3`.
    fn strided(&mut self) -> Result<(u64, i64)> {
        let count = self.count()?;
        self.expect_word("by")?;
        let at = self.at;
        let sign = if self.accept("-")? { -1 } else { 1 };
        let stride = self.count()?;
        let stride =
            i64::try_from(stride).map_err(|_| self.error(at, format!("{stride} elements are above 2^63 - 1")))?;
        Ok((count, sign * stride))
    }

    fn declared_acc(&mut self) -> Result<AccId> {
        let at = self.at;
        let acc = self.acc_id()?;
        if self.accs.get(acc).is_none() {
            return Err(self.error(at, format!("{acc} is not declared here")));
        }
        Ok(acc)
    }

    fn element_of_buffer(&mut self) -> Result<(BufId, Index)> {
        Ok((BufId(self.numbered('x', "a buffer")?), self.subscript()?))
    }

    /// Parses `a0[index] = expr` or `x0[index] = expr`.
    fn write_stmt(&mut self, word: &str) -> Result<Stmt> {
        let target = (number_after('a', word), number_after('x', word));
        if target == (None, None) {
            return Err(self.expected("a statement"));
        }
        self.bump()?;
        let index = self.subscript()?;
        self.expect("=")?;
        let value = self.expr()?;
        Ok(match target {
            (Some(acc), _) => Stmt::Set { acc: AccId(acc), index, value },
            (None, buf) => Stmt::Store { buf: BufId(buf.unwrap_or_default()), index, value },
        })
    }

    fn vars(&mut self) -> Result<Vec<Var>> {
        let mut vars = vec![self.var()?];
        while self.accept(",")? {
            vars.push(self.var()?);
        }
        Ok(vars)
    }

    fn acc_ids(&mut self) -> Result<Vec<AccId>> {
        let mut accs = vec![self.acc_id()?];
        while self.accept(",")? {
            accs.push(self.acc_id()?);
        }
        Ok(accs)
    }

    fn acc_id(&mut self) -> Result<AccId> {
        self.numbered('a', "an accumulator").map(AccId)
    }

    fn var(&mut self) -> Result<Var> {
        self.numbered('v', "a value's name such as `v0`").map(Var)
    }
}
