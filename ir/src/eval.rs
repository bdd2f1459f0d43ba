//! The interpreter of nests: one obvious walk, in any domain of values.
//!
//! In the domain [`Bits`] a value is a [`Scalar`] and the walk computes what native code computes,
//! bit for bit. In the domain [`Terms`] a value is the hash of the term that made it (a leaf is an
//! input element, a node an operation over terms), so that two nests with equal terms combine the
//! same elements in the same order: passes are proved with it, not only sampled. A term of
//! a sum of integers has no order, since its bits depend on none.

#![warn(clippy::wildcard_enum_match_arm)]

mod terms;

pub use terms::{Term, Terms};

use crate::tree;
use crate::{
    AccId, BufId, BufferRole, DType, Def, DefId, Expr, Extent, Index, Loop, LoopVar, Nest, Op, Over, Scalar, Selection,
    Stmt, Transpose, Var,
};

/// Values and the memory behind buffers.
pub trait Domain {
    /// A value.
    type Value: Copy;
    /// A constant.
    fn constant(&mut self, value: Scalar) -> Self::Value;
    /// The element of an input, or the old one of an output.
    fn load(&mut self, buf: BufId, dtype: DType, index: usize) -> Self::Value;
    /// Writes an element of an output.
    fn store(&mut self, buf: BufId, index: usize, value: Self::Value);
    /// An operation.
    fn op(&mut self, op: Op, result: DType, args: &[Self::Value]) -> Self::Value;
    /// A definition, as a whole; `None` where its body is to be evaluated.
    fn call(&mut self, _def: &Def, _args: &[Self::Value]) -> Option<Vec<Self::Value>> {
        None
    }
    /// The number of elements from the start of a line of memory to that of a buffer: see [`Stmt::Misalign`]. `None` where
    /// there are no lines: the place of each element is 0.
    fn misaligned(&self, _buf: BufId) -> Option<u64> {
        None
    }
    /// A number from 0 to `most` for a value: see [`Stmt::Pick`].
    fn pick(&mut self, value: Self::Value, most: u64) -> u64;
    /// The results of a selection from a slice of elements of `dtype`.
    fn select(&mut self, what: &Selection, dtype: DType, slice: &[Self::Value]) -> Vec<Self::Value>;
}

/// Runs a nest.
///
/// # Panics
/// If an index lies outside its buffer or accumulator, which [`verify`](crate::verify) rules out.
pub fn run<D: Domain>(nest: &Nest, domain: &mut D) {
    let mut machine =
        Machine { nest, domain, loops: Vec::new(), vars: Vec::new(), accs: Vec::new(), types: Vec::new() };
    machine.body(&nest.body);
}

/// The domain of a part of a program: its buffers begin later than the whole's.
#[derive(Debug)]
pub struct Moved<'d, D> {
    /// The domain of the whole.
    pub domain: &'d mut D,
    /// For each buffer, the number of its elements before the part.
    pub starts: &'d [u64],
}

impl<D: Domain> Domain for Moved<'_, D> {
    type Value = D::Value;

    fn constant(&mut self, value: Scalar) -> D::Value {
        self.domain.constant(value)
    }

    fn load(&mut self, buf: BufId, dtype: DType, index: usize) -> D::Value {
        self.domain.load(buf, dtype, index + self.starts[buf.0 as usize] as usize)
    }

    fn store(&mut self, buf: BufId, index: usize, value: D::Value) {
        self.domain.store(buf, index + self.starts[buf.0 as usize] as usize, value);
    }

    fn op(&mut self, op: Op, result: DType, args: &[D::Value]) -> D::Value {
        self.domain.op(op, result, args)
    }

    fn call(&mut self, def: &Def, args: &[D::Value]) -> Option<Vec<D::Value>> {
        self.domain.call(def, args)
    }

    fn misaligned(&self, buf: BufId) -> Option<u64> {
        Some(self.domain.misaligned(buf)? + self.starts[buf.0 as usize])
    }

    fn pick(&mut self, value: D::Value, most: u64) -> u64 {
        self.domain.pick(value, most)
    }

    fn select(&mut self, what: &Selection, dtype: DType, slice: &[D::Value]) -> Vec<D::Value> {
        self.domain.select(what, dtype, slice)
    }
}

/// A domain whose buffers begin inside of lines of memory.
#[derive(Debug)]
pub struct Misaligned<'d, D> {
    /// The domain of buffers that begin anywhere.
    pub domain: &'d mut D,
    /// For each buffer, how many elements after the start of a line it begins.
    pub elements: &'d [u64],
}

impl<D: Domain> Domain for Misaligned<'_, D> {
    type Value = D::Value;

    fn constant(&mut self, value: Scalar) -> D::Value {
        self.domain.constant(value)
    }

    fn load(&mut self, buf: BufId, dtype: DType, index: usize) -> D::Value {
        self.domain.load(buf, dtype, index)
    }

    fn store(&mut self, buf: BufId, index: usize, value: D::Value) {
        self.domain.store(buf, index, value);
    }

    fn op(&mut self, op: Op, result: DType, args: &[D::Value]) -> D::Value {
        self.domain.op(op, result, args)
    }

    fn call(&mut self, def: &Def, args: &[D::Value]) -> Option<Vec<D::Value>> {
        self.domain.call(def, args)
    }

    fn misaligned(&self, buf: BufId) -> Option<u64> {
        Some(self.elements[buf.0 as usize])
    }

    fn pick(&mut self, value: D::Value, most: u64) -> u64 {
        self.domain.pick(value, most)
    }

    fn select(&mut self, what: &Selection, dtype: DType, slice: &[D::Value]) -> Vec<D::Value> {
        self.domain.select(what, dtype, slice)
    }
}

struct Machine<'a, D: Domain> {
    nest: &'a Nest,
    domain: &'a mut D,
    loops: Vec<i64>,
    vars: Vec<Option<D::Value>>,
    accs: Vec<Vec<D::Value>>,
    /// The types of the accumulators.
    types: Vec<Option<DType>>,
}

/// The element of a table, which grows to hold it.
fn slot<T: Clone>(table: &mut Vec<T>, index: usize, empty: T) -> &mut T {
    if table.len() <= index {
        table.resize(index + 1, empty);
    }
    &mut table[index]
}

fn place(var: LoopVar) -> usize {
    var.id as usize * Over::LETTERS.len() + var.over as usize
}

impl<D: Domain> Machine<'_, D> {
    fn body(&mut self, body: &[Stmt]) {
        body.iter().for_each(|s| self.stmt(s));
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::For(l) => self.run_loop(l),
            Stmt::Wide { body } => self.body(body),
            Stmt::Transpose(t) => self.transpose(t),
            Stmt::TransposedStore(t) => self.transposed_store(t),
            Stmt::Acc { acc, dtype, len, init } => {
                *slot(&mut self.types, acc.0 as usize, None) = Some(*dtype);
                let init = self.domain.constant(*init);
                *slot(&mut self.accs, acc.0 as usize, Vec::new()) = vec![init; *len as usize];
            }
            Stmt::Let { var, value } => {
                let value = self.expr(value);
                *slot(&mut self.vars, var.0 as usize, None) = Some(value);
            }
            Stmt::Call { vars, def, args } => {
                let args: Vec<_> = args.iter().map(|a| self.expr(a)).collect();
                let results = call(self.domain, self.nest.def(*def), &args);
                for (var, result) in vars.iter().zip(results) {
                    *slot(&mut self.vars, var.0 as usize, None) = Some(result);
                }
            }
            Stmt::Set { acc, index, value } => {
                let value = self.expr(value);
                let index = self.index(index);
                self.accs[acc.0 as usize][index] = value;
            }
            Stmt::Store { buf, index, value } => {
                let value = self.expr(value);
                let index = self.index(index);
                assert_ne!(self.nest.buffers[buf.0 as usize].role, BufferRole::In, "a store to an input");
                self.domain.store(*buf, index, value);
            }
            Stmt::Carry { var, of } => {
                let ones = self.index(of).trailing_ones();
                *slot(&mut self.loops, place(*var), 0) = i64::from(ones);
            }
            Stmt::Pick { var, value, most } => {
                let value = self.expr(value);
                let number = self.domain.pick(value, *most).min(*most);
                *slot(&mut self.loops, place(*var), 0) = number as i64;
            }
            Stmt::Misalign { var, buf, index, lanes } => {
                let element = self.domain.misaligned(*buf).map_or(0, |start| start as i64 + self.value_of(index));
                *slot(&mut self.loops, place(*var), 0) = element.rem_euclid(*lanes as i64);
            }
            Stmt::Rotate { acc, start, len, by } => {
                let by = self.loops[place(*by)].rem_euclid(*len as i64) as usize;
                self.accs[acc.0 as usize][*start as usize..][..*len as usize].rotate_left(by);
            }
            Stmt::Prefetch { .. } => {}
            Stmt::Merge { accs, def, blocks, elems } => {
                for (older, newer) in tree::merges(*blocks) {
                    self.combine(*def, accs, older * elems, newer * elems, *elems);
                }
            }
            Stmt::Fold { accs, def, present, lanes, elems } => {
                for (half, count) in tree::folds(*lanes, *present) {
                    self.combine(*def, accs, 0, half * elems, count * elems);
                }
            }
            Stmt::Select { vars, what, acc, len } => {
                let dtype = self.types[acc.0 as usize].expect("a declared accumulator");
                let results = self.domain.select(what, dtype, &self.accs[acc.0 as usize][..*len as usize]);
                for (var, result) in vars.iter().zip(results) {
                    *slot(&mut self.vars, var.0 as usize, None) = Some(result);
                }
            }
        }
    }

    fn transpose(&mut self, t: &Transpose) {
        let first = self.value_of(&t.first);
        let dtype = self.nest.buffers[t.buf.0 as usize].dtype;
        for (c, &column) in t.columns.iter().enumerate() {
            for n in 0..t.column_elements() {
                let (run, lane) = ((n / t.lanes) as i64, (n % t.lanes) as i64);
                let at = first + t.run_stride * run + t.stride * lane + column as i64;
                let value = self.domain.load(t.buf, dtype, usize::try_from(at).expect("an index below zero"));
                self.accs[t.acc.0 as usize][c * t.column_elements() as usize + n as usize] = value;
            }
        }
    }

    fn transposed_store(&mut self, t: &Transpose) {
        let first = self.value_of(&t.first);
        for (c, &column) in t.columns.iter().enumerate() {
            for n in 0..t.column_elements() {
                let (run, lane) = ((n / t.lanes) as i64, (n % t.lanes) as i64);
                let at = first + t.run_stride * run + t.stride * lane + column as i64;
                let value = self.accs[t.acc.0 as usize][c * t.column_elements() as usize + n as usize];
                self.domain.store(t.buf, usize::try_from(at).expect("an index below zero"), value);
            }
        }
    }

    /// Combines the `count` states from element `newer` on into those from element `older` on.
    fn combine(&mut self, def: DefId, accs: &[AccId], older: u64, newer: u64, count: u64) {
        for e in 0..count {
            let states = |machine: &Self, start: u64| -> Vec<_> {
                accs.iter().map(|a| machine.accs[a.0 as usize][(start + e) as usize]).collect()
            };
            let args = [states(self, older), states(self, newer)].concat();
            let results = call(self.domain, self.nest.def(def), &args);
            for (acc, result) in accs.iter().zip(results) {
                self.accs[acc.0 as usize][(older + e) as usize] = result;
            }
        }
    }

    fn run_loop(&mut self, l: &Loop) {
        let range = match l.extent {
            Extent::Const(n) => 0..n as i64,
            Extent::Carry(var) | Extent::Below(var, _) => 0..self.loops[place(var)],
            Extent::From(var, n) => self.loops[place(var)]..n as i64,
        };
        for i in range {
            *slot(&mut self.loops, place(l.var), 0) = i;
            self.body(&l.body);
        }
    }

    fn index(&self, index: &Index) -> usize {
        usize::try_from(self.value_of(index)).expect("an index below zero")
    }

    fn value_of(&self, index: &Index) -> i64 {
        index.terms().fold(index.offset, |sum, (var, c)| sum + c * self.loops[place(var)])
    }

    fn expr(&mut self, expr: &Expr) -> D::Value {
        match expr {
            Expr::Const(s) => self.domain.constant(*s),
            Expr::Var(var, _) => self.vars[var.0 as usize].expect("a bound value"),
            Expr::Load(buf, dtype, index) => {
                let index = self.index(index);
                self.domain.load(*buf, *dtype, index)
            }
            Expr::Read(acc, _, index) => self.accs[acc.0 as usize][self.index(index)],
            Expr::At(dtype, index) => {
                let value = self.value_of(index);
                self.domain.constant(Scalar::int(*dtype, value.into()))
            }
            Expr::Op(op, dtype, args) => match args.as_slice() {
                [a] => {
                    let args = [self.expr(a)];
                    self.domain.op(*op, *dtype, &args)
                }
                [a, b] => {
                    let args = [self.expr(a), self.expr(b)];
                    self.domain.op(*op, *dtype, &args)
                }
                args => {
                    let args: Vec<_> = args.iter().map(|a| self.expr(a)).collect();
                    self.domain.op(*op, *dtype, &args)
                }
            },
            Expr::Call(def, _, args) => {
                let args: Vec<_> = args.iter().map(|a| self.expr(a)).collect();
                call(self.domain, self.nest.def(*def), &args)[0]
            }
        }
    }
}

impl Def {
    /// The results for these arguments.
    ///
    /// ```
    /// use cranefold_ir::{DType, Scalar, math};
    ///
    /// assert_eq!(math::exp(DType::F32).eval(&[Scalar::f32(0.0)]), [Scalar::f32(1.0)]);
    /// ```
    pub fn eval(&self, args: &[Scalar]) -> Vec<Scalar> {
        call(&mut Bits { inputs: vec![], outputs: vec![] }, self, args)
    }
}

/// The results of a definition: the domain's own, else by its body.
fn call<D: Domain>(domain: &mut D, def: &Def, args: &[D::Value]) -> Vec<D::Value> {
    if let Some(results) = domain.call(def, args) {
        return results;
    }
    let mut values = args.to_vec();
    for value in &def.lets {
        let value = in_def(domain, value, &values);
        values.push(value);
    }
    def.results.iter().map(|r| in_def(domain, r, &values)).collect()
}

fn in_def<D: Domain>(domain: &mut D, expr: &Expr, values: &[D::Value]) -> D::Value {
    match expr {
        Expr::Const(s) => domain.constant(*s),
        Expr::Var(Var(v), _) => values[*v as usize],
        Expr::Op(op, dtype, args) => {
            let args: Vec<_> = args.iter().map(|a| in_def(domain, a, values)).collect();
            domain.op(*op, *dtype, &args)
        }
        Expr::Load(..) | Expr::Read(..) | Expr::At(..) | Expr::Call(..) => {
            unreachable!("a definition has parameters only")
        }
    }
}

/// The domain of values, computed as by native code. Buffers are bytes, one slice for each buffer of the nest.
#[derive(Debug)]
pub struct Bits<'a> {
    /// The inputs, in the order of the nest's buffers.
    pub inputs: Vec<&'a [u8]>,
    /// The outputs, in the order of the nest's buffers, after the inputs.
    pub outputs: Vec<&'a mut [u8]>,
}

impl Domain for Bits<'_> {
    type Value = Scalar;

    fn constant(&mut self, value: Scalar) -> Scalar {
        value
    }

    fn load(&mut self, buf: BufId, dtype: DType, index: usize) -> Scalar {
        let at = buf.0 as usize;
        match at.checked_sub(self.inputs.len()) {
            None => Scalar::read(dtype, self.inputs[at], index),
            Some(output) => Scalar::read(dtype, self.outputs[output], index),
        }
    }

    fn store(&mut self, buf: BufId, index: usize, value: Scalar) {
        value.write(self.outputs[buf.0 as usize - self.inputs.len()], index);
    }

    fn op(&mut self, op: Op, result: DType, args: &[Scalar]) -> Scalar {
        op.eval(result, args)
    }

    fn pick(&mut self, value: Scalar, most: u64) -> u64 {
        value.bits().min(most)
    }

    fn select(&mut self, what: &Selection, _: DType, slice: &[Scalar]) -> Vec<Scalar> {
        what.eval(slice)
    }
}
