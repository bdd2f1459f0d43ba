//! The loop nest: data only.

#![warn(clippy::wildcard_enum_match_arm)]

use crate::{DType, Def, Expr, Index, Scalar, Selection};
use std::borrow::Cow;
use std::fmt;

/// A program over buffers: loops, accumulators and stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nest {
    /// The name for people: the spec or the problem that the nest computes.
    pub name: String,
    /// Inputs and outputs; `BufId(i)` is the `i`-th.
    pub buffers: Vec<Buffer>,
    /// Definitions; `DefId(i)` is the `i`-th.
    pub defs: Vec<Def>,
    /// The statements.
    pub body: Vec<Stmt>,
}

/// Memory that belongs to the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// The access: read or written. A written buffer overlaps no other.
    pub role: BufferRole,
    /// Element type; never `bool`, which is `u8` in memory.
    pub dtype: DType,
    /// Length in elements.
    pub len: u64,
}

impl Buffer {
    /// Length in bytes; `u64::MAX` for more.
    pub fn bytes(&self) -> u64 {
        self.len.saturating_mul(self.dtype.bytes())
    }
}

/// The access of a nest to a buffer: read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each variant is its own name")]
pub enum BufferRole {
    In,
    Out,
    /// An output whose old elements are read before they are written.
    InOut,
    /// An output whose whole vectors are written past the caches, where they begin at multiples of their bytes and the
    /// generator has such stores.
    Nontemporal,
}

impl BufferRole {
    /// Every role.
    pub const ALL: [BufferRole; 4] = [BufferRole::In, BufferRole::Out, BufferRole::InOut, BufferRole::Nontemporal];

    /// The word in text.
    pub const fn name(self) -> &'static str {
        match self {
            BufferRole::In => "in",
            BufferRole::Out => "out",
            BufferRole::InOut => "inout",
            BufferRole::Nontemporal => "nontemporal",
        }
    }
}

/// A statement. Its fields are the parts of the text form in each variant's description.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant's text form names its fields")]
pub enum Stmt {
    /// `for`: a loop.
    For(Loop),
    /// `acc a0: f32[64] = -0`: makes an accumulator of `len` elements, all equal to `init`, that
    /// lives to the end of its body.
    Acc { acc: AccId, dtype: DType, len: u64, init: Scalar },
    /// `let v0 = expr`: binds a value for the statements after it in this body and the loops there.
    Let { var: Var, value: Expr },
    /// `call v0, v1 = name(args)`: binds all results of a definition.
    Call { vars: Vec<Var>, def: DefId, args: Vec<Expr> },
    /// `a0[index] = expr`: writes one element of an accumulator.
    Set { acc: AccId, index: Index, value: Expr },
    /// `y0[index] = expr`: writes one element of an output.
    Store { buf: BufId, index: Index, value: Expr },
    /// `carry q0 = index`: q0 is the number of trailing ones of the index: the number of merges of block
    /// `index` (from 0), once complete, with earlier states.
    Carry { var: LoopVar, of: Index },
    /// `pick s0 = expr to 3072`: s0 is the value of an integer, read without a sign, or 3072 if that is less.
    Pick { var: LoopVar, value: Expr, most: u64 },
    /// `misalign s0 = x0[index] in 16`: s0 is the number of elements from the last start of a line of 16 of them to that
    /// element; a line begins at a multiple of its bytes. It is 0 where elements do not lie at multiples of their size, in
    /// the interpreter of values, and in the code of a nest that a caller gives, whose bits then depend on no address.
    Misalign { var: LoopVar, buf: BufId, index: Index, lanes: u64 },
    /// `rotate a0[0..64] by s0`: element i of these becomes the element s0 further, modulo their number.
    Rotate { acc: AccId, start: u64, len: u64, by: LoopVar },
    /// `prefetch x0[index]`: asks for the line of memory that the element lies in; `prefetch far x0[index]` leaves out the
    /// first-level cache, for what is loaded later. No value depends on it, and the element may lie outside of the buffer.
    Prefetch { buf: BufId, index: Index, far: bool },
    /// `merge a0, a1 by name over 25 of 64`: the accumulators hold the states of 25 blocks, 64
    /// elements each, block after block. Combines them, element by element, in the order of the
    /// reduction tree (see [`crate::tree`]) into the first 64 elements.
    Merge { accs: Vec<AccId>, def: DefId, blocks: u64, elems: u64 },
    /// `fold a0, a1 by name over 49 of 64 by 2`: the accumulators hold the states of 49 of 64
    /// lanes, 2 elements each, lane after lane. Combines lanes by halving (lane l with lane l + 32,
    /// then l + 16 and so on, absent ones left out) into the first 2 elements.
    Fold { accs: Vec<AccId>, def: DefId, present: u64, lanes: u64, elems: u64 },
    /// `select v0, v1 = nth 124, 249 of a0 over 250`: binds all results of a selection from the first
    /// 250 elements of an accumulator that is declared in the same body. It may move the elements about,
    /// so afterwards only selections from as many elements take the accumulator.
    Select { vars: Vec<Var>, what: Selection, acc: AccId, len: u64 },
    /// `transpose a0 = x0[index] over 16 by 6 at 0, 1, 2`: sets columns of a matrix in an input side by side;
    /// `over 4 by 16, 4 by 2 at 0, 1` those of rows that come in runs.
    Transpose(Transpose),
    /// `transpose x1[index] = a0 over 16 by 3 at 0, 1, 2`: writes runs of an accumulator to columns of a matrix in an
    /// output.
    TransposedStore(Transpose),
    /// `wide { ... }`: statements that the generator of wide vectors compiles; their meaning is the same
    /// without it. Their names end with it.
    Wide { body: Vec<Stmt> },
}

/// Columns of a matrix in a buffer beside runs of elements of an accumulator, column by column. A load sets the runs:
///
/// ```text
/// a[lanes * c + l] = x[first + stride * l + columns[c]]      for each lane l and each column c
/// ```
///
/// Where the lanes of a column come in several runs, which lie apart:
///
/// ```text
/// a[lanes * (runs * c + r) + l] = x[first + run_stride * r + stride * l + columns[c]]      for each run r besides
/// ```
///
/// It may read any element between those that it names, and the `within` elements from `first` on, so that it takes few
/// loads of whole vectors. A store goes the other way, and writes the elements that it names:
///
/// ```text
/// x[first + run_stride * r + stride * l + columns[c]] = a[lanes * (runs * c + r) + l]      column by column, run by run
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transpose {
    /// The accumulator, in which the columns lie one after the other.
    pub acc: AccId,
    /// The input, or the output of a store.
    pub buf: BufId,
    /// The element at which the matrix begins.
    pub first: Index,
    /// The rows of the matrix: each is a lane of the columns' vectors.
    pub lanes: u64,
    /// Elements from a row to the next.
    pub stride: i64,
    /// The runs of so many lanes in a column.
    pub runs: u64,
    /// Elements from a run to the next; 0 for one run.
    pub run_stride: i64,
    /// The distance of each column from the first element, in elements, ascending from 0.
    pub columns: Vec<u64>,
    /// The elements from the first one on that a load may read; 0 in a store.
    pub within: u64,
}

impl Transpose {
    /// The least and the greatest distance of a named element from the first, in elements.
    pub fn span(&self) -> (i128, i128) {
        let [last_row, last_run] = [(self.stride, self.lanes), (self.run_stride, self.runs)]
            .map(|(stride, count)| i128::from(stride) * i128::from(count.saturating_sub(1)));
        let [least, greatest] =
            [self.columns.first(), self.columns.last()].map(|c| i128::from(c.copied().unwrap_or(0)));
        (last_row.min(0) + last_run.min(0) + least, last_row.max(0) + last_run.max(0) + greatest)
    }

    /// The elements of a column.
    pub fn column_elements(&self) -> u64 {
        self.lanes.saturating_mul(self.runs)
    }

    /// The elements of the accumulator.
    pub fn elements(&self) -> u64 {
        self.column_elements().saturating_mul(self.columns.len() as u64)
    }
}

/// A loop over `0..extent`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The variable.
    pub var: LoopVar,
    /// The range.
    pub extent: Extent,
    /// The dependence of its iterations.
    pub kind: LoopKind,
    /// The statements.
    pub body: Vec<Stmt>,
}

/// The trip count of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extent {
    /// `0..16`.
    Const(u64),
    /// `0..q0`, where `carry` binds the variable.
    Carry(LoopVar),
    /// `s0..16` of a loop over lanes, where `misalign` in as many lanes binds the variable: the others are left out.
    From(LoopVar, u64),
    /// `0..s0 of 16` of such a loop: the lanes that the one above leaves out.
    Below(LoopVar, u64),
}

impl Extent {
    /// The lanes of the vector whose lanes these are, left out or not; none where it is no loop over lanes.
    pub fn lanes(self) -> Option<u64> {
        match self {
            Extent::Const(lanes) | Extent::From(_, lanes) | Extent::Below(_, lanes) => Some(lanes),
            Extent::Carry(_) => None,
        }
    }
}

/// The dependence of a loop's iterations, and the way they are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoopKind {
    /// Iterations write different elements: any order, any number at a time.
    Parallel,
    /// Iterations write the same accumulator elements: in order.
    Seq,
    /// Parallel, of an extent that is known but for lanes left out, and executed together: each value in the body is a
    /// vector of [`Extent::lanes`]. The body holds only `let`, calls, sets and stores; or it is another such loop, and the vectors
    /// have the lanes of both, the inner one's side by side.
    Lanes,
}

/// The induction variable of a loop: its range's kind and a number. Prints as `i0`, `k1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoopVar {
    /// The kind of the range.
    pub over: Over,
    /// The number that tells it from other variables over the same kind of range.
    pub id: u32,
}

/// The kind of a loop's range; its letter begins the names of its variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Over {
    /// `i`: positions of the output.
    Output,
    /// `b`: blocks of the reduction tree.
    Block,
    /// `k`: steps of a block.
    Step,
    /// `j`: steps taken in one visit of an accumulator.
    Jam,
    /// `l`: lanes of a step.
    Lane,
    /// `e`: elements of accumulator states.
    Element,
    /// `q`: levels of the stack of block states.
    Level,
    /// `p`: positions of a slice, each of which has its own outputs.
    Position,
    /// `s`: no range; a start that `pick` binds.
    Start,
}

impl Over {
    /// Each kind with its letter.
    pub const LETTERS: [(Over, char); 9] = [
        (Over::Output, 'i'),
        (Over::Block, 'b'),
        (Over::Step, 'k'),
        (Over::Jam, 'j'),
        (Over::Lane, 'l'),
        (Over::Element, 'e'),
        (Over::Level, 'q'),
        (Over::Position, 'p'),
        (Over::Start, 's'),
    ];
}

impl fmt::Display for LoopVar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, letter) = Over::LETTERS.into_iter().find(|(o, _)| *o == self.over).expect("a letter each");
        write!(f, "{letter}{}", self.id)
    }
}

/// Declares ids, which print as in text: `a0`, `v0`.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $letter:literal)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($letter, "{}"), self.0)
            }
        }
    )*};
}

ids! {
    /// A buffer, by its place in [`Nest::buffers`]. Prints as `x0`: inputs and outputs are numbered together.
    BufId "x"
    /// An accumulator.
    AccId "a"
    /// A value bound by `let`.
    Var "v"
    /// A definition, by its place in [`Nest::defs`]. The text of a nest has its name instead.
    DefId "d"
}

impl Loop {
    /// A loop with a constant number of iterations.
    pub fn new(var: LoopVar, extent: u64, kind: LoopKind, body: Vec<Stmt>) -> Loop {
        Loop { var, extent: Extent::Const(extent), kind, body }
    }

    /// The loop with its statements, which leaves none behind.
    pub fn take(&mut self) -> Loop {
        Loop { body: std::mem::take(&mut self.body), ..*self }
    }
}

impl LoopKind {
    /// The word in text.
    pub const fn name(self) -> &'static str {
        match self {
            LoopKind::Parallel => "parallel",
            LoopKind::Seq => "seq",
            LoopKind::Lanes => "lanes",
        }
    }
}

impl Stmt {
    /// The statement with `f` applied to each expression directly in it, not in nested bodies.
    pub fn map_exprs(self, f: &mut impl FnMut(Expr) -> Expr) -> Stmt {
        match self {
            Stmt::Let { var, value } => Stmt::Let { var, value: f(value) },
            Stmt::Call { vars, def, args } => Stmt::Call { vars, def, args: args.into_iter().map(f).collect() },
            Stmt::Set { acc, index, value } => Stmt::Set { acc, index, value: f(value) },
            Stmt::Store { buf, index, value } => Stmt::Store { buf, index, value: f(value) },
            Stmt::Pick { var, value, most } => Stmt::Pick { var, value: f(value), most },
            other @ (Stmt::For(_) | Stmt::Wide { .. } | Stmt::Acc { .. } | Stmt::Carry { .. }) => other,
            other @ Stmt::Prefetch { .. } => other,
            other @ (Stmt::Merge { .. }
            | Stmt::Fold { .. }
            | Stmt::Select { .. }
            | Stmt::Transpose(_)
            | Stmt::TransposedStore(_)) => other,
            other @ (Stmt::Misalign { .. } | Stmt::Rotate { .. }) => other,
        }
    }

    /// The expressions directly in it.
    pub fn exprs(&self) -> &[Expr] {
        match self {
            Stmt::Let { value, .. }
            | Stmt::Set { value, .. }
            | Stmt::Store { value, .. }
            | Stmt::Pick { value, .. } => std::slice::from_ref(value),
            Stmt::Call { args, .. } => args,
            Stmt::For(_) | Stmt::Wide { .. } | Stmt::Acc { .. } | Stmt::Carry { .. } | Stmt::Prefetch { .. } => &[],
            Stmt::Merge { .. }
            | Stmt::Fold { .. }
            | Stmt::Select { .. }
            | Stmt::Transpose(_)
            | Stmt::TransposedStore(_) => &[],
            Stmt::Misalign { .. } | Stmt::Rotate { .. } => &[],
        }
    }

    /// The expressions directly in it, to be changed.
    pub fn exprs_mut(&mut self) -> &mut [Expr] {
        match self {
            Stmt::Let { value, .. }
            | Stmt::Set { value, .. }
            | Stmt::Store { value, .. }
            | Stmt::Pick { value, .. } => std::slice::from_mut(value),
            Stmt::Call { args, .. } => args,
            Stmt::For(_) | Stmt::Wide { .. } | Stmt::Acc { .. } | Stmt::Carry { .. } | Stmt::Prefetch { .. } => &mut [],
            Stmt::Merge { .. }
            | Stmt::Fold { .. }
            | Stmt::Select { .. }
            | Stmt::Transpose(_)
            | Stmt::TransposedStore(_) => &mut [],
            Stmt::Misalign { .. } | Stmt::Rotate { .. } => &mut [],
        }
    }

    /// Calls `f` on every index in the statement, at any depth, to change it.
    pub fn each_index_mut(&mut self, f: &mut impl FnMut(&mut Index)) {
        match self {
            Stmt::For(Loop { body, .. }) | Stmt::Wide { body } => body.iter_mut().for_each(|s| s.each_index_mut(f)),
            Stmt::Let { value, .. } | Stmt::Pick { value, .. } => value.each_index_mut(f),
            Stmt::Call { args, .. } => args.iter_mut().for_each(|arg| arg.each_index_mut(f)),
            Stmt::Set { index, value, .. } | Stmt::Store { index, value, .. } => {
                f(index);
                value.each_index_mut(f);
            }
            Stmt::Carry { of: index, .. } | Stmt::Prefetch { index, .. } | Stmt::Misalign { index, .. } => f(index),
            Stmt::Transpose(t) | Stmt::TransposedStore(t) => f(&mut t.first),
            Stmt::Acc { .. } | Stmt::Rotate { .. } => {}
            Stmt::Merge { .. } | Stmt::Fold { .. } | Stmt::Select { .. } => {}
        }
    }

    /// The loop variable that it binds: a loop for its body, a carry or a pick for the statements after it.
    pub fn bound_loop_var(&self) -> Option<LoopVar> {
        match self {
            Stmt::For(l) => Some(l.var),
            Stmt::Carry { var, .. } | Stmt::Pick { var, .. } | Stmt::Misalign { var, .. } => Some(*var),
            Stmt::Wide { .. } | Stmt::Acc { .. } | Stmt::Let { .. } | Stmt::Call { .. } | Stmt::Set { .. } => None,
            Stmt::Store { .. } | Stmt::Merge { .. } | Stmt::Fold { .. } | Stmt::Select { .. } => None,
            Stmt::Transpose(_) | Stmt::TransposedStore(_) | Stmt::Prefetch { .. } | Stmt::Rotate { .. } => None,
        }
    }

    /// The statement with `f` applied to each one directly in it.
    pub fn map_body(self, f: &mut impl FnMut(Stmt) -> Stmt) -> Stmt {
        self.with_body(|body| body.into_iter().map(f).collect())
    }

    /// The statement with `f` applied to its body, if it is a loop or a wide function.
    pub fn with_body(mut self, f: impl FnOnce(Vec<Stmt>) -> Vec<Stmt>) -> Stmt {
        if let Some(body) = self.body_mut() {
            *body = f(std::mem::take(body));
        }
        self
    }

    /// The statements of a loop or a wide function.
    pub fn body_mut(&mut self) -> Option<&mut Vec<Stmt>> {
        match self {
            Stmt::For(Loop { body, .. }) | Stmt::Wide { body } => Some(body),
            Stmt::Acc { .. } | Stmt::Let { .. } | Stmt::Call { .. } | Stmt::Set { .. } | Stmt::Store { .. } => None,
            Stmt::Carry { .. } | Stmt::Pick { .. } | Stmt::Misalign { .. } | Stmt::Prefetch { .. } => None,
            Stmt::Rotate { .. } => None,
            Stmt::Merge { .. }
            | Stmt::Fold { .. }
            | Stmt::Select { .. }
            | Stmt::Transpose(_)
            | Stmt::TransposedStore(_) => None,
        }
    }

    /// The values that it binds for the statements after it.
    pub fn bound_vars(&self) -> &[Var] {
        match self {
            Stmt::Let { var, .. } => std::slice::from_ref(var),
            Stmt::Call { vars, .. } | Stmt::Select { vars, .. } => vars,
            Stmt::For(_) | Stmt::Wide { .. } | Stmt::Acc { .. } | Stmt::Set { .. } | Stmt::Store { .. } => &[],
            Stmt::Carry { .. } | Stmt::Pick { .. } | Stmt::Merge { .. } | Stmt::Fold { .. } => &[],
            Stmt::Transpose(_) | Stmt::TransposedStore(_) => &[],
            Stmt::Misalign { .. } | Stmt::Rotate { .. } | Stmt::Prefetch { .. } => &[],
        }
    }

    /// The accumulators that it may change by itself, without the statements in its body.
    pub fn changed_accs(&self) -> &[AccId] {
        match self {
            Stmt::Transpose(t) => std::slice::from_ref(&t.acc),
            Stmt::Acc { acc, .. } | Stmt::Set { acc, .. } | Stmt::Select { acc, .. } | Stmt::Rotate { acc, .. } => {
                std::slice::from_ref(acc)
            }
            Stmt::Merge { accs, .. } | Stmt::Fold { accs, .. } => accs,
            Stmt::For(_) | Stmt::Wide { .. } | Stmt::Let { .. } | Stmt::Call { .. } | Stmt::Store { .. } => &[],
            Stmt::Carry { .. } | Stmt::Pick { .. } | Stmt::Misalign { .. } | Stmt::Prefetch { .. } => &[],
            Stmt::TransposedStore(_) => &[],
        }
    }

    /// Calls `f` on this statement and every one nested in it.
    pub fn visit<'a>(&'a self, f: &mut impl FnMut(&'a Stmt)) {
        f(self);
        self.body().iter().for_each(|s| s.visit(f));
    }

    /// The statements of a loop or a wide function; none of another.
    pub fn body(&self) -> &[Stmt] {
        match self {
            Stmt::For(l) => &l.body,
            Stmt::Wide { body } => body,
            Stmt::Acc { .. } | Stmt::Let { .. } | Stmt::Call { .. } | Stmt::Set { .. } | Stmt::Store { .. } => &[],
            Stmt::Carry { .. } | Stmt::Pick { .. } | Stmt::Misalign { .. } | Stmt::Prefetch { .. } => &[],
            Stmt::Rotate { .. } => &[],
            Stmt::Merge { .. }
            | Stmt::Fold { .. }
            | Stmt::Select { .. }
            | Stmt::Transpose(_)
            | Stmt::TransposedStore(_) => &[],
        }
    }
}

impl Nest {
    /// The definition that a call names.
    pub fn def(&self, id: DefId) -> &Def {
        &self.defs[id.0 as usize]
    }

    /// The id of `def` among the definitions, added where it is new. If another definition has its name, a number
    /// follows the name: `finish_2`.
    pub fn define(&mut self, def: Def) -> DefId {
        self.known(&def).unwrap_or_else(|name| self.push_def(Def { name, ..def }))
    }

    /// The definition that does the same as another under its name.
    ///
    /// # Errors
    /// The name for the new definition if there is none.
    fn known(&self, def: &Def) -> Result<DefId, String> {
        let mut name = Cow::Borrowed(def.name.as_str());
        for number in 2.. {
            match self.defs.iter().position(|d| d.name == name) {
                None => break,
                Some(known) if self.defs[known].does_the_same(def) => return Ok(DefId(known as u32)),
                Some(_) => name = numbered(&def.name, number).into(),
            }
        }
        Err(name.into_owned())
    }

    fn push_def(&mut self, def: Def) -> DefId {
        self.defs.push(def);
        DefId(self.defs.len() as u32 - 1)
    }

    /// Calls `f` on every statement.
    pub fn visit<'a>(&'a self, f: &mut impl FnMut(&'a Stmt)) {
        self.body.iter().for_each(|s| s.visit(f));
    }

    /// The results of a definition for `args`: inlined if it is simple, else of a call. Calls
    /// with several results are statements, which must precede the use of the results.
    pub fn apply(&mut self, names: &mut Names, def: &Def, args: Vec<Expr>) -> (Vec<Stmt>, Vec<Expr>) {
        if def.is_simple() {
            return (vec![], vec![def.inline(&args)]);
        }
        let id = self.known(def).unwrap_or_else(|name| self.push_def(Def { name, ..def.clone() }));
        if let [result] = def.results.as_slice() {
            return (vec![], vec![Expr::Call(id, result.dtype(), args)]);
        }
        let vars: Vec<Var> = def.results.iter().map(|_| names.var()).collect();
        let values = vars.iter().zip(&def.results).map(|(&v, r)| Expr::Var(v, r.dtype())).collect();
        (vec![Stmt::Call { vars, def: id, args }], values)
    }
}

/// The name with a number after its word: `exp_2.f32`.
fn numbered(name: &str, number: usize) -> String {
    match name.split_once('.') {
        Some((word, types)) => format!("{word}_{number}.{types}"),
        None => format!("{name}_{number}"),
    }
}

/// The next unused names of a nest.
#[derive(Clone, Debug, Default)]
pub struct Names {
    accs: u32,
    vars: u32,
    loops: u32,
}

impl Names {
    /// The names that follow all names in `nest`.
    pub fn after(nest: &Nest) -> Names {
        let mut names = Names::default();
        let mut take = |s: &Stmt| {
            if let Stmt::Acc { acc, .. } = s {
                names.accs = names.accs.max(acc.0 + 1);
            }
            s.bound_vars().iter().for_each(|v| names.vars = names.vars.max(v.0 + 1));
            s.bound_loop_var().iter().for_each(|v| names.loops = names.loops.max(v.id + 1));
        };
        nest.body.iter().for_each(|s| s.visit(&mut take));
        names
    }

    /// A new accumulator.
    pub fn acc(&mut self) -> AccId {
        self.accs += 1;
        AccId(self.accs - 1)
    }

    /// A new value.
    pub fn var(&mut self) -> Var {
        self.vars += 1;
        Var(self.vars - 1)
    }

    /// A new loop variable.
    pub fn loop_over(&mut self, over: Over) -> LoopVar {
        self.loops += 1;
        LoopVar { over, id: self.loops - 1 }
    }
}
