//! Expressions and indices.

use super::lexer::{Token, cut};
use super::{MAX_DEPTH, Parser, Result, loop_var, number_after};
use crate::{AccId, BufId, DType, Expr, Index, LoopVar, Op, Scalar, Var};
use std::collections::BTreeMap;

impl Parser<'_> {
    pub(super) fn expr(&mut self) -> Result<Expr> {
        if self.expr_depth == MAX_DEPTH {
            return Err(self.error(self.at, format!("expressions nest more than {MAX_DEPTH} deep")));
        }
        self.expr_depth += 1;
        let expr = self.expr_here();
        self.expr_depth -= 1;
        expr
    }

    fn expr_here(&mut self) -> Result<Expr> {
        let at = self.at;
        let Token::Word(word) = self.token else {
            return self.constant();
        };
        if matches!(word, "inf" | "nan" | "true" | "false" | "bits") {
            // Of these only `bits` may have a bracket after it in a constant, and no definition has its name;
            // the others are calls where one follows.
            self.bump()?;
            return if word != "bits" && self.is("(") { self.call(at, word) } else { self.constant_after(at, word) };
        }
        self.bump()?;
        if self.is("(") {
            self.call(at, word)
        } else if self.is("[") {
            self.element(at, word)
        } else if let Some(id) = number_after('v', word) {
            let dtype = self.vars.get(Var(id)).ok_or_else(|| self.error(at, format!("v{id} is not bound here")))?;
            Ok(Expr::Var(Var(id), dtype))
        } else {
            Err(self.error(at, format!("expected an expression, found `{}`", cut(word))))
        }
    }

    fn element(&mut self, at: usize, word: &str) -> Result<Expr> {
        if let Some(id) = number_after('x', word) {
            let buffer = self.buffers.get(id as usize);
            let dtype = buffer.ok_or_else(|| self.error(at, format!("there is no buffer x{id}")))?.dtype;
            Ok(Expr::Load(BufId(id), dtype, self.subscript()?))
        } else if let Some(id) = number_after('a', word) {
            let dtype =
                self.accs.get(AccId(id)).ok_or_else(|| self.error(at, format!("a{id} is not declared here")))?;
            Ok(Expr::Read(AccId(id), dtype, self.subscript()?))
        } else if let Ok(dtype) = word.parse() {
            Ok(Expr::At(dtype, self.subscript()?))
        } else {
            Err(self.error(at, format!("`{}` is neither a buffer nor an accumulator nor a type", cut(word))))
        }
    }

    /// Parses the operands that follow the name at `at`, of an operation or a definition.
    fn call(&mut self, at: usize, name: &str) -> Result<Expr> {
        if let Some((op, result)) = operation(name) {
            let args = self.args()?;
            let types: Vec<DType> = args.iter().map(Expr::dtype).collect();
            let result = match op {
                Op::Eq | Op::Ne | Op::Lt | Op::Le => Some(DType::Bool),
                _ => result.or(types.last().copied()),
            };
            return match result {
                Some(result) if op.accepts(result, &types) => Ok(Expr::Op(op, result, args)),
                _ => Err(self.error(at, does_not_take(name, &types))),
            };
        }
        let def = self.find_def(at, name)?;
        let args = self.args()?;
        match self.defs[def.0 as usize].results.as_slice() {
            [result] => Ok(Expr::Call(def, result.dtype(), args)),
            results => {
                let message = format!("`{}` gives {} results; `call` binds them", cut(name), results.len());
                Err(self.error(at, message))
            }
        }
    }

    pub(super) fn args(&mut self) -> Result<Vec<Expr>> {
        self.expect("(")?;
        let mut args = Vec::new();
        if self.accept(")")? {
            return Ok(args);
        }
        loop {
            args.push(self.expr()?);
            if !self.accept(",")? {
                break;
            }
        }
        self.expect(")")?;
        Ok(args)
    }

    fn constant(&mut self) -> Result<Expr> {
        let at = self.at;
        let text = self.value("an expression")?;
        self.typed(at, &text)
    }

    fn constant_after(&mut self, at: usize, word: &str) -> Result<Expr> {
        let text = self.value_after(word)?;
        self.typed(at, &text)
    }

    fn typed(&mut self, at: usize, text: &str) -> Result<Expr> {
        self.expect(":")?;
        let dtype = self.dtype()?;
        Ok(Expr::Const(self.scalar(at, dtype, text)?))
    }

    fn scalar(&self, at: usize, dtype: DType, text: &str) -> Result<Scalar> {
        Scalar::parse(dtype, text).ok_or_else(|| self.error(at, format!("`{}` is no value of {dtype}", cut(text))))
    }

    /// Parses a value of a known type.
    pub(super) fn value_of(&mut self, dtype: DType) -> Result<Scalar> {
        let at = self.at;
        let text = self.value("a value")?;
        self.scalar(at, dtype, &text)
    }

    /// Takes the text of a value, in the form of `Scalar::parse`.
    fn value(&mut self, what: &str) -> Result<String> {
        let sign = if self.accept("-")? { "-" } else { "" };
        let (Token::Number(text) | Token::Word(text)) = self.token else {
            return Err(self.expected(if sign.is_empty() { what } else { "a number" }));
        };
        self.bump()?;
        Ok(format!("{sign}{}", self.value_after(text)?))
    }

    /// Takes the rest of a value's text after its first word or number.
    fn value_after(&mut self, word: &str) -> Result<String> {
        if word != "bits" {
            return Ok(word.to_string());
        }
        self.expect("(")?;
        let Token::Number(hex) = self.token else {
            return Err(self.expected("a hexadecimal number"));
        };
        self.bump()?;
        self.expect(")")?;
        Ok(format!("bits({hex})"))
    }

    pub(super) fn subscript(&mut self) -> Result<Index> {
        self.expect("[")?;
        let index = self.index()?;
        self.expect("]")?;
        Ok(index)
    }

    pub(super) fn index(&mut self) -> Result<Index> {
        let mut negative = self.accept("-")?;
        // The map is ordered, so that an index takes each term at its end.
        let (mut offset, mut terms) = (0i64, BTreeMap::<LoopVar, i64>::new());
        loop {
            let at = self.at;
            let (magnitude, var) = self.term()?;
            let signed = if negative { -i128::from(magnitude) } else { i128::from(magnitude) };
            let sum = var.map_or(&mut offset, |var| terms.entry(var).or_default());
            let fits = i64::try_from(signed).ok().and_then(|term| sum.checked_add(term));
            *sum = fits.ok_or_else(|| self.error(at, "the number does not fit 64 bits"))?;
            if self.is("+") || self.is("-") {
                negative = self.is("-");
                self.bump()?;
            } else {
                return Ok(terms.into_iter().fold(Index::constant(offset), |index, (var, c)| index.plus(var, c)));
            }
        }
    }

    fn term(&mut self) -> Result<(u64, Option<LoopVar>)> {
        if let Token::Number(_) = self.token {
            let count = self.count()?;
            let var = if self.accept("*")? { Some(self.loop_var()?) } else { None };
            return Ok((count, var));
        }
        match self.token {
            Token::Word(word) if loop_var(word).is_some() => Ok((1, Some(self.loop_var()?))),
            _ => Err(self.expected("a number or a loop variable")),
        }
    }
}

/// The operation of a name in text, with the result type if that is part of the name.
fn operation(name: &str) -> Option<(Op, Option<DType>)> {
    if let Ok(dtype) = name.parse() {
        return Some((Op::Cast, Some(dtype)));
    }
    if let Some(dtype) = name.strip_prefix("bits_").and_then(|n| n.parse().ok()) {
        return Some((Op::Bits, Some(dtype)));
    }
    let op = Op::ALL.into_iter().find(|op| op.name() == name)?;
    (!matches!(op, Op::Cast | Op::Bits)).then_some((op, None))
}

fn does_not_take(name: &str, types: &[DType]) -> String {
    let types: Vec<&str> = types.iter().map(|d| d.name()).collect();
    match types.len() {
        0..=4 => format!("{name} does not take ({})", types.join(", ")),
        n => format!("{name} does not take {n} operands"),
    }
}
