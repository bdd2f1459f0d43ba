//! The program of a problem: the nests that together compute it.
//!
//! A program has parts, which run in any order and at once, and then perhaps a finish. Parts are ordinary nests over
//! the buffers of the problem; parts whose nests differ only in the starts of their buffers share one nest. The buffers
//! of a part are cut to the elements that it touches. If blocks are divided, the buffers of states follow those of the
//! problem: parts write them, the finish reads them.
//! # Text
//! The text of a program of one part is its nest. Else each nest follows the parts that run it, each of which has the
//! starts of its buffers, in elements:
//!
//! ```text
//! part 0 of 3: 0 0
//! part 1 of 3: 4096 1
//! nest "..." { ... }
//! part 2 of 3: 8192 2
//! nest "..." { ... }
//! finish
//! nest "..." { ... }
//! ```

use cranefold_ir::eval::{self, Domain};
use cranefold_ir::{Buffer, BufferRole, Expr, Extent, Index, LoopVar, Nest, Stmt};
use rustc_hash::FxHashMap;
use std::fmt;
use std::str::FromStr;

/// The nests that compute a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The nests of parts; no two are equal.
    pub nests: Vec<Nest>,
    /// The parts, at least one.
    pub parts: Vec<Part>,
    /// The nest that runs after all parts.
    pub finish: Option<Nest>,
}

/// A part: a nest, and the starts of its buffers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The number of its nest.
    pub nest: usize,
    /// For each buffer of the nest, its start in the program's buffer, in elements.
    pub starts: Vec<u64>,
}

impl Program {
    /// A program of one part.
    pub fn of(nest: Nest) -> Program {
        let starts = vec![0; nest.buffers.len()];
        Program { nests: vec![nest], parts: vec![Part { nest: 0, starts }], finish: None }
    }

    /// A program of these parts, each of which uses the program's own buffers.
    pub(crate) fn of_parts(parts: impl Iterator<Item = Nest>, finish: Option<Nest>) -> Program {
        let mut program = Program { nests: vec![], parts: vec![], finish };
        for nest in parts {
            let (nest, starts) = from_start(nest);
            let known = program.nests.iter().position(|n| *n == nest);
            let number = known.unwrap_or(program.nests.len());
            if known.is_none() {
                program.nests.push(nest);
            }
            program.parts.push(Part { nest: number, starts });
        }
        program
    }

    /// Every nest; the finish comes last.
    pub fn all_nests(&self) -> impl Iterator<Item = &Nest> {
        self.nests.iter().chain(&self.finish)
    }

    /// The program with `f` applied to each nest.
    ///
    /// # Errors
    /// The errors of `f`.
    pub fn try_map<E>(self, mut f: impl FnMut(Nest) -> Result<Nest, E>) -> Result<Program, E> {
        let nests = self.nests.into_iter().map(&mut f).collect::<Result<_, E>>()?;
        let finish = self.finish.map(f).transpose()?;
        Ok(Program { nests, finish, ..self })
    }

    /// The buffers of states, which follow those of the problem.
    pub fn states(&self) -> &[Buffer] {
        let Some(finish) = &self.finish else { return &[] };
        // Outputs stand between inputs and states.
        let after = finish.buffers.iter().rposition(|b| b.role != BufferRole::In).map_or(0, |last| last + 1);
        &finish.buffers[after..]
    }

    /// Interprets the program: all parts, the last first, then the finish.
    ///
    /// The domain has the buffers of the problem, then those of the states, as outputs.
    pub fn interpret<D: Domain>(&self, domain: &mut D) {
        for Part { nest, starts } in self.parts.iter().rev() {
            eval::run(&self.nests[*nest], &mut eval::Moved { domain, starts });
        }
        if let Some(finish) = &self.finish {
            eval::run(finish, domain);
        }
    }
}

/// The nest on buffers cut to the elements that it touches, with their starts: it verifies within these.
pub(crate) fn from_start(nest: Nest) -> (Nest, Vec<u64>) {
    let mut spans = Spans { of: vec![None; nest.buffers.len()], extents: FxHashMap::default() };
    nest.body.iter().for_each(|s| spans.stmt(s));
    let spans: Vec<(i64, u64)> = spans
        .of
        .into_iter()
        .map(|span| span.map_or((0, 0), |(least, most)| (least, (most - least + 1) as u64)))
        .collect();
    let within = |(b, &(at, len)): (Buffer, &(i64, u64))| {
        assert!(at >= 0 && at as u64 + len <= b.len, "a part stays within the buffers of the whole");
        Buffer { len, ..b }
    };
    let buffers = nest.buffers.into_iter().zip(&spans).map(within).collect();
    let starts: Vec<i64> = spans.into_iter().map(|(at, _)| at).collect();
    let body = nest.body.into_iter().map(|s| moved(s, &starts)).collect();
    (Nest { buffers, body, ..nest }, starts.into_iter().map(|at| at as u64).collect())
}

/// The least and the greatest index in each buffer that the nest touches.
struct Spans {
    of: Vec<Option<(i64, i64)>>,
    /// The extents of the open loops and of picked starts.
    extents: FxHashMap<LoopVar, u64>,
}

impl Spans {
    fn stmt(&mut self, stmt: &Stmt) {
        if let Stmt::For(l) = stmt {
            let Extent::Const(extent) = l.extent else { unreachable!("loops of a naive nest are constant") };
            self.extents.insert(l.var, extent);
        }
        if let Stmt::Pick { var, most, .. } = stmt {
            self.extents.insert(*var, most + 1);
        }
        if let Stmt::Store { buf, index, .. } = stmt {
            self.access(buf.0, index);
        }
        stmt.exprs().iter().for_each(|e| self.expr(e));
        stmt.body().iter().for_each(|s| self.stmt(s));
    }

    fn expr(&mut self, expr: &Expr) {
        if let Expr::Load(buf, _, index) = expr {
            self.access(buf.0, index);
        }
        expr.args().iter().for_each(|e| self.expr(e));
    }

    fn access(&mut self, buf: u32, index: &Index) {
        let (mut least, mut most) = (index.offset, index.offset);
        for (var, c) in index.terms() {
            let reach = c * (self.extents[&var] as i64 - 1);
            (least, most) = (least + reach.min(0), most + reach.max(0));
        }
        let span = &mut self.of[buf as usize];
        *span = Some(span.map_or((least, most), |(l, m)| (l.min(least), m.max(most))));
    }
}

/// The statement on buffers that start later.
fn moved(stmt: Stmt, starts: &[i64]) -> Stmt {
    let load = |e| match e {
        Expr::Load(buf, dtype, index) => Expr::Load(buf, dtype, index.offset_by(-starts[buf.0 as usize])),
        Expr::Const(_) | Expr::Var(..) | Expr::Read(..) | Expr::At(..) | Expr::Op(..) | Expr::Call(..) => e,
    };
    match stmt.map_exprs(&mut |e| e.rewrite(&mut { load })) {
        Stmt::For(mut l) => {
            l.body = l.body.into_iter().map(|s| moved(s, starts)).collect();
            Stmt::For(l)
        }
        Stmt::Store { buf, index, value } => {
            Stmt::Store { buf, index: index.offset_by(-starts[buf.0 as usize]), value }
        }
        Stmt::Misalign { var, buf, index, lanes } => {
            Stmt::Misalign { var, buf, index: index.offset_by(-starts[buf.0 as usize]), lanes }
        }
        Stmt::Prefetch { buf, index, far } => {
            Stmt::Prefetch { buf, index: index.offset_by(-starts[buf.0 as usize]), far }
        }
        Stmt::Wide { body } => Stmt::Wide { body: body.into_iter().map(|s| moved(s, starts)).collect() },
        other @ (Stmt::Acc { .. } | Stmt::Let { .. } | Stmt::Call { .. } | Stmt::Set { .. }) => other,
        other @ (Stmt::Carry { .. } | Stmt::Pick { .. } | Stmt::Rotate { .. }) => other,
        other @ (Stmt::Merge { .. }
        | Stmt::Fold { .. }
        | Stmt::Select { .. }
        | Stmt::Transpose(_)
        | Stmt::TransposedStore(_)) => other,
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let ([nest], [part], None) = (&self.nests[..], &self.parts[..], &self.finish)
            && part.starts.iter().all(|&start| start == 0)
        {
            return write!(f, "{nest}");
        }
        let count = self.parts.len();
        for (number, nest) in self.nests.iter().enumerate() {
            for (n, part) in self.parts.iter().enumerate().filter(|(_, part)| part.nest == number) {
                let starts: Vec<String> = part.starts.iter().map(u64::to_string).collect();
                writeln!(f, "part {n} of {count}: {}", starts.join(" "))?;
            }
            writeln!(f, "{}", nest.to_string().trim_end())?;
        }
        match &self.finish {
            Some(nest) => writeln!(f, "finish\n{}", nest.to_string().trim_end()),
            None => Ok(()),
        }
    }
}

/// A text that is no program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ProgramError(String);

impl FromStr for Program {
    type Err = ProgramError;

    fn from_str(text: &str) -> Result<Program, ProgramError> {
        let nest = |text: &str| text.parse::<Nest>().map_err(|e| ProgramError(e.to_string()));
        let Some((parts, finish)) = split(text) else { return nest(text).map(Program::of) };
        let mut program = Program { nests: vec![], parts: vec![], finish: finish.map(nest).transpose()? };
        let count: usize = parts.iter().map(|(heads, _)| heads.len()).sum();
        let mut numbered: Vec<(usize, Part)> = vec![];
        for (heads, text) in parts {
            let read = nest(&text)?;
            for head in heads {
                let shown = || head.chars().take(60).collect::<String>();
                let wrong = || ProgramError(format!("`{}` is no part of this program", shown()));
                let (number, of, starts) = head_of(&head).ok_or_else(wrong)?;
                if starts.len() != read.buffers.len() || of != count {
                    return Err(wrong());
                }
                numbered.push((number, Part { nest: program.nests.len(), starts }));
            }
            program.nests.push(read);
        }
        numbered.sort_by_key(|(number, _)| *number);
        if numbered.iter().enumerate().any(|(at, (number, _))| at != *number) {
            return Err(ProgramError("the parts are not numbered from 0 on".into()));
        }
        program.parts = numbered.into_iter().map(|(_, part)| part).collect();
        Ok(program)
    }
}

/// For each nest, the lines of the parts that run it, and its text.
type Parts = Vec<(Vec<String>, String)>;

/// The nests of parts and the nest of the finish; `None` if the text names no parts.
fn split(text: &str) -> Option<(Parts, Option<&str>)> {
    let (parts, finish) = match text.split_once("\nfinish\n") {
        Some((parts, finish)) => (parts, Some(finish)),
        None => (text, None),
    };
    let mut found: Parts = vec![];
    let mut after_nest = true;
    for line in parts.lines() {
        if line.starts_with("part ") {
            if std::mem::take(&mut after_nest) {
                found.push((vec![], String::new()));
            }
            found.last_mut()?.0.push(line.into());
        } else {
            after_nest = true;
            let (_, nest) = found.last_mut()?;
            nest.push_str(line);
            nest.push('\n');
        }
    }
    Some((found, finish)).filter(|(found, _)| !found.is_empty())
}

/// The number of a part, the number of parts, and the starts of the part's buffers.
fn head_of(line: &str) -> Option<(usize, usize, Vec<u64>)> {
    let (head, starts) = line.strip_prefix("part ")?.split_once(':')?;
    let (number, count) = head.split_once(" of ")?;
    let (number, count) = (number.parse().ok()?, count.parse().ok()?);
    Some((number, count, starts.split_whitespace().map(|n| n.parse().ok()).collect::<Option<_>>()?))
}
