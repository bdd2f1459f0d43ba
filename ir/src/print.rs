//! Nests as text. The grammar stands at the head of the [crate]; a verified nest printed and
//! parsed is the same nest. Printing takes any nest, also one the verifier refuses.

use crate::{Def, DefId, Expr, Extent, Index, Loop, LoopKind, Nest, Op, Stmt, Transpose};
use std::fmt::{self, Display, Formatter, Write};

impl Nest {
    /// A statement of this nest as text, without a newline at the end.
    pub fn show<'a>(&'a self, stmt: &'a Stmt) -> impl Display + 'a {
        fmt::from_fn(|f| write_stmt(f, &self.defs, stmt, 0))
    }

    /// A statement of this nest as text, a loop or a wide function without its body.
    pub fn show_head<'a>(&'a self, stmt: &'a Stmt) -> impl Display + 'a {
        fmt::from_fn(|f| match stmt {
            Stmt::For(l) => f.write_str(&l.head()),
            Stmt::Wide { .. } => f.write_str("wide"),
            _ => write_stmt(f, &self.defs, stmt, 0),
        })
    }

    /// An expression of this nest as text.
    pub fn show_expr<'a>(&'a self, expr: &'a Expr) -> impl Display + 'a {
        fmt::from_fn(|f| write_expr(f, &self.defs, expr))
    }

    /// The declaration of the `i`-th buffer as text.
    ///
    /// # Panics
    /// If there is none.
    pub fn show_buffer(&self, i: usize) -> impl Display {
        let buffer = &self.buffers[i];
        fmt::from_fn(move |f| write!(f, "{} x{i}: {}[{}]", buffer.role.name(), buffer.dtype, buffer.len))
    }
}

impl Display for Nest {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("nest ")?;
        write_quoted(f, &self.name)?;
        f.write_str(" {\n")?;
        for i in 0..self.buffers.len() {
            writeln!(f, "  {}", self.show_buffer(i))?;
        }
        for def in &self.defs {
            write_def(f, &self.defs, def, 1)?;
            f.write_char('\n')?;
        }
        for stmt in &self.body {
            write_stmt(f, &self.defs, stmt, 1)?;
            f.write_char('\n')?;
        }
        f.write_char('}')
    }
}

impl Display for Def {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_def(f, &[], self, 0)
    }
}

impl Display for Extent {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Extent::Const(n) => write!(f, "0..{n}"),
            Extent::Carry(var) => write!(f, "0..{var}"),
            Extent::From(var, lanes) => write!(f, "{var}..{lanes}"),
            Extent::Below(var, lanes) => write!(f, "0..{var} of {lanes}"),
        }
    }
}

impl Display for Index {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut separators = ["", "-"];
        let mut sign = |value: i64| {
            let [plus, minus] = std::mem::replace(&mut separators, [" + ", " - "]);
            if value < 0 { minus } else { plus }
        };
        for (var, c) in self.terms() {
            f.write_str(sign(c))?;
            if c.unsigned_abs() != 1 {
                write!(f, "{}*", c.unsigned_abs())?;
            }
            write!(f, "{var}")?;
        }
        if self.offset != 0 || self.is_constant() {
            write!(f, "{}{}", sign(self.offset), self.offset.unsigned_abs())?;
        }
        Ok(())
    }
}

/// Writes two spaces for each level.
fn indent(f: &mut Formatter<'_>, depth: usize) -> fmt::Result {
    (0..depth).try_for_each(|_| f.write_str("  "))
}

fn write_quoted(f: &mut Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            '\n' => f.write_str("\\n")?,
            c if c.is_control() => write!(f, "\\u{{{:x}}}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

fn write_list<T>(
    f: &mut Formatter<'_>,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    for (i, item) in items.into_iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        write(f, item)?;
    }
    Ok(())
}

fn write_def(f: &mut Formatter<'_>, defs: &[Def], def: &Def, depth: usize) -> fmt::Result {
    indent(f, depth)?;
    write!(f, "def {}(", def.name)?;
    write_list(f, def.params.iter().enumerate(), |f, (i, dtype)| write!(f, "v{i}: {dtype}"))?;
    f.write_str(") -> ")?;
    write_list(f, &def.results, |f, result| write!(f, "{}", result.dtype()))?;
    f.write_str(" {\n")?;
    for (i, value) in def.lets.iter().enumerate() {
        indent(f, depth + 1)?;
        write!(f, "let v{} = ", def.params.len() + i)?;
        write_expr(f, defs, value)?;
        f.write_char('\n')?;
    }
    indent(f, depth + 1)?;
    write_list(f, &def.results, |f, result| write_expr(f, defs, result))?;
    f.write_char('\n')?;
    indent(f, depth)?;
    f.write_char('}')
}

/// Writes the name of a definition; for an unknown one its id, which is no name in a nest that verifies.
fn write_def_name(f: &mut Formatter<'_>, defs: &[Def], id: DefId) -> fmt::Result {
    match defs.get(id.0 as usize) {
        Some(def) => f.write_str(&def.name),
        None => write!(f, "?{id}"),
    }
}

fn write_call(f: &mut Formatter<'_>, defs: &[Def], id: DefId, args: &[Expr]) -> fmt::Result {
    write_def_name(f, defs, id)?;
    write_args(f, defs, args)
}

fn write_args(f: &mut Formatter<'_>, defs: &[Def], args: &[Expr]) -> fmt::Result {
    f.write_char('(')?;
    write_list(f, args, |f, arg| write_expr(f, defs, arg))?;
    f.write_char(')')
}

fn write_expr(f: &mut Formatter<'_>, defs: &[Def], expr: &Expr) -> fmt::Result {
    match expr {
        Expr::Const(value) => write!(f, "{value}:{}", value.dtype()),
        Expr::Var(var, _) => write!(f, "{var}"),
        Expr::Load(buf, _, index) => write!(f, "{buf}[{index}]"),
        Expr::Read(acc, _, index) => write!(f, "{acc}[{index}]"),
        Expr::At(dtype, index) => write!(f, "{dtype}[{index}]"),
        Expr::Op(op, dtype, args) => {
            match op {
                Op::Cast => write!(f, "{dtype}")?,
                Op::Bits => write!(f, "bits_{dtype}")?,
                _ => f.write_str(op.name())?,
            }
            write_args(f, defs, args)
        }
        Expr::Call(def, _, args) => write_call(f, defs, *def, args),
    }
}

impl Loop {
    /// The loop's first line in text, without the brace: `for k2 in 0..63 seq`.
    pub fn head(&self) -> String {
        format!("for {} in {} {}", self.var, self.extent, self.kind.name())
    }
}

fn write_loop(f: &mut Formatter<'_>, defs: &[Def], l: &Loop, depth: usize) -> fmt::Result {
    f.write_str(&l.head())?;
    match l.body.as_slice() {
        [only] if l.kind == LoopKind::Lanes && !matches!(only, Stmt::For(_) | Stmt::Wide { .. }) => {
            f.write_str(" { ")?;
            write_stmt(f, defs, only, 0)?;
            f.write_str(" }")
        }
        body => write_body(f, defs, body, depth),
    }
}

fn write_body(f: &mut Formatter<'_>, defs: &[Def], body: &[Stmt], depth: usize) -> fmt::Result {
    if body.is_empty() {
        return f.write_str(" {}");
    }
    f.write_str(" {\n")?;
    for stmt in body {
        write_stmt(f, defs, stmt, depth + 1)?;
        f.write_char('\n')?;
    }
    indent(f, depth)?;
    f.write_char('}')
}

fn write_stmt(f: &mut Formatter<'_>, defs: &[Def], stmt: &Stmt, depth: usize) -> fmt::Result {
    indent(f, depth)?;
    match stmt {
        Stmt::For(l) => write_loop(f, defs, l, depth),
        Stmt::Acc { acc, dtype, len, init } => write!(f, "acc {acc}: {dtype}[{len}] = {init}"),
        Stmt::Let { var, value } => {
            write!(f, "let {var} = ")?;
            write_expr(f, defs, value)
        }
        Stmt::Call { vars, def, args } => {
            f.write_str("call ")?;
            write_list(f, vars, |f, var| write!(f, "{var}"))?;
            f.write_str(" = ")?;
            write_call(f, defs, *def, args)
        }
        Stmt::Set { acc, index, value } => {
            write!(f, "{acc}[{index}] = ")?;
            write_expr(f, defs, value)
        }
        Stmt::Store { buf, index, value } => {
            write!(f, "{buf}[{index}] = ")?;
            write_expr(f, defs, value)
        }
        Stmt::Carry { var, of } => write!(f, "carry {var} = {of}"),
        Stmt::Pick { var, value, most } => {
            write!(f, "pick {var} = ")?;
            write_expr(f, defs, value)?;
            write!(f, " to {most}")
        }
        Stmt::Misalign { var, buf, index, lanes } => write!(f, "misalign {var} = {buf}[{index}] in {lanes}"),
        Stmt::Rotate { acc, start, len, by } => {
            write!(f, "rotate {acc}[{start}..{}] by {by}", u128::from(*start) + u128::from(*len))
        }
        Stmt::Prefetch { buf, index, far } => write!(f, "prefetch {}{buf}[{index}]", if *far { "far " } else { "" }),
        Stmt::Merge { accs, def, blocks, elems } => {
            f.write_str("merge ")?;
            write_list(f, accs, |f, acc| write!(f, "{acc}"))?;
            f.write_str(" by ")?;
            write_def_name(f, defs, *def)?;
            write!(f, " over {blocks} of {elems}")
        }
        Stmt::Fold { accs, def, present, lanes, elems } => {
            f.write_str("fold ")?;
            write_list(f, accs, |f, acc| write!(f, "{acc}"))?;
            f.write_str(" by ")?;
            write_def_name(f, defs, *def)?;
            write!(f, " over {present} of {lanes} by {elems}")
        }
        Stmt::Select { vars, what, acc, len } => {
            f.write_str("select ")?;
            write_list(f, vars, |f, var| write!(f, "{var}"))?;
            write!(f, " = {what} of {acc} over {len}")
        }
        Stmt::Transpose(t) => {
            write!(f, "transpose {} = {}[{}] over ", t.acc, t.buf, t.first)?;
            write_columns(f, t)?;
            if t.within > 0 { write!(f, " within {}", t.within) } else { Ok(()) }
        }
        Stmt::TransposedStore(t) => {
            write!(f, "transpose {}[{}] = {} over ", t.buf, t.first, t.acc)?;
            write_columns(f, t)
        }
        Stmt::Wide { body } => {
            f.write_str("wide")?;
            write_body(f, defs, body, depth)
        }
    }
}

/// The runs, lanes and columns of a transpose.
fn write_columns(f: &mut Formatter<'_>, t: &Transpose) -> fmt::Result {
    if t.runs != 1 {
        write!(f, "{} by {}, ", t.runs, t.run_stride)?;
    }
    write!(f, "{} by {} at ", t.lanes, t.stride)?;
    write_list(f, &t.columns, |f, column| write!(f, "{column}"))
}
