//! Addresses: a pointer for each pattern of indices, moved by the loops that its index depends on.

use super::Refused;
use super::emit::{Emit, Numbers};
use super::walk::Walk;
use cranefold_ir::{AccId, BufId, DType, Expr, Index, LoopVar, Stmt};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// The memory that an address lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Base {
    Buf(BufId),
    Acc(AccId),
}

/// A base and the terms of an index whose variables are bound, outermost first.
type Pattern = (Base, Terms);

/// The terms of an index.
type Terms = SmallVec<[(LoopVar, i64); 4]>;

/// Elements in memory.
#[derive(Clone, Copy, Debug)]
pub struct Access<N> {
    pub base: Base,
    pub dtype: DType,
    /// The address of the element or of lane 0: a pointer, and bytes after it.
    pub pointer: N,
    pub offset_bytes: i32,
    /// The lanes of a vector and the elements from each to the next; `None` is one element, the same in all lanes.
    pub lanes: Option<(u64, i64)>,
}

impl<N: Copy> Access<N> {
    /// The element `elements` elements after this one.
    pub(super) fn behind(self, out: &mut impl Numbers<Number = N>, elements: i64) -> Access<N> {
        let bytes = i64::from(self.offset_bytes) + elements * self.dtype.bytes() as i64;
        let (pointer, offset_bytes) = out.near(self.pointer, bytes);
        Access { pointer, offset_bytes, ..self }
    }
}

/// The pointers in scope.
pub struct Pointers<N> {
    scope: Vec<LoopVar>,
    moving: FxHashMap<Pattern, N>,
}

impl<N> Default for Pointers<N> {
    fn default() -> Pointers<N> {
        Pointers { scope: vec![], moving: FxHashMap::default() }
    }
}

impl<N> Pointers<N> {
    /// The terms of an index over variables in scope, outermost first.
    fn terms(&self, index: &Index) -> Terms {
        self.scope.iter().map(|&v| (v, index.coefficient(v))).filter(|&(_, c)| c != 0).collect()
    }
}

impl<'a, E: Emit<'a>> Walk<'a, E> {
    /// Makes a pointer for each pattern in the body that moves with `var`. If the variable has a value (a carry, an
    /// open counter), the pointer is at that value; else it is at the start of the loop, and moves by the returned
    /// bytes.
    pub(super) fn enter(
        &mut self,
        out: &mut E,
        var: LoopVar,
        body: &[Stmt],
        value: Option<E::Number>,
    ) -> Vec<(E::Number, i64)> {
        self.pointers.scope.push(var);
        let mut bumps = vec![];
        for (base, terms) in self.patterns(body, var) {
            let (&(_, c), outer) = terms.split_last().expect("a term in the variable");
            let start = self.pointer(out, base, outer);
            let bytes = c * self.dtype_of(base).bytes() as i64;
            let pointer = out.pointer(start, value.map(|value| (value, bytes)));
            self.pointers.moving.insert((base, terms), pointer);
            bumps.push((pointer, bytes));
        }
        bumps
    }

    /// Ends the scope of a loop variable, and of carry variables bound in its body.
    pub(super) fn leave(&mut self, var: LoopVar) {
        while self.pointers.scope.pop().is_some_and(|v| v != var) {}
    }

    /// The type of the elements.
    fn dtype_of(&self, base: Base) -> DType {
        match base {
            Base::Buf(buf) => self.nest.buffers[buf.0 as usize].dtype,
            Base::Acc(acc) => self.types[&acc],
        }
    }

    /// The pointer of a pattern, and the bytes from that pointer to the pattern's start.
    fn pointer(&mut self, out: &mut E, base: Base, terms: &[(LoopVar, i64)]) -> (E::Number, i64) {
        match terms {
            [] => out.base(base),
            _ => (self.pointers.moving[&(base, Terms::from_slice(terms))], 0),
        }
    }

    /// The patterns, over bound variables, of the body's accesses that move with `var`, without those in wide
    /// functions.
    fn patterns(&self, body: &[Stmt], var: LoopVar) -> BTreeSet<Pattern> {
        let mut patterns = BTreeSet::new();
        let mut take = |base: Base, index: &Index| {
            if index.coefficient(var) != 0 {
                patterns.insert((base, self.pointers.terms(index)));
            }
        };
        let in_memory = |acc: &AccId| !self.storage.cells.contains_key(acc);
        let mut see = |s: &Stmt| {
            for e in s.exprs() {
                e.visit(&mut |e| match e {
                    Expr::Load(buf, _, index) => take(Base::Buf(*buf), index),
                    Expr::Read(acc, _, index) if in_memory(acc) => take(Base::Acc(*acc), index),
                    _ => {}
                });
            }
            match s {
                Stmt::Transpose(t) | Stmt::TransposedStore(t) => take(Base::Buf(t.buf), &t.first),
                Stmt::Store { buf, index, .. } | Stmt::Prefetch { buf, index, .. } => take(Base::Buf(*buf), index),
                Stmt::Misalign { buf, index, .. } => take(Base::Buf(*buf), index),
                Stmt::Set { acc, index, .. } if in_memory(acc) => take(Base::Acc(*acc), index),
                _ => {}
            }
        };
        body.iter().for_each(|s| visit_outside(s, &mut see));
        patterns
    }

    /// The elements in memory that an index names.
    pub(super) fn access(&mut self, out: &mut E, base: Base, index: &Index) -> Result<Access<E::Number>, Refused> {
        if let (Base::Buf(buf), Some(_)) = (base, self.vector.and_then(|vector| vector.outer)) {
            return Err(Refused(format!("lanes of two loops in {buf}")));
        }
        let dtype = self.dtype_of(base);
        let lanes = self.lane().map(|(var, lanes)| (lanes, index.coefficient(var))).filter(|&(_, stride)| stride != 0);
        let (pointer, offset_bytes) = self.address(out, base, index);
        Ok(Access { base, dtype, pointer, offset_bytes, lanes })
    }

    /// The address of the element of lane 0.
    pub fn address(&mut self, out: &mut E, base: Base, index: &Index) -> (E::Number, i32) {
        let terms = self.pointers.terms(index);
        let (pointer, start) = self.pointer(out, base, &terms);
        out.near(pointer, start + index.offset * self.dtype_of(base).bytes() as i64)
    }

    /// The value of elements in memory.
    pub(super) fn load(&mut self, out: &mut E, base: Base, index: &Index) -> Result<E::Value, Refused> {
        let access = self.access(out, base, index)?;
        out.load(self, access)
    }

    /// Writes elements to memory.
    pub(super) fn store(&mut self, out: &mut E, base: Base, index: &Index, value: E::Value) -> Result<(), Refused> {
        let access = self.access(out, base, index)?;
        out.store(access, value)
    }
}

/// Calls `f` on the statement and on every one nested in it, but not in wide functions.
fn visit_outside(stmt: &Stmt, f: &mut impl FnMut(&Stmt)) {
    match stmt {
        Stmt::Wide { .. } => {}
        Stmt::For(l) => {
            f(stmt);
            l.body.iter().for_each(|s| visit_outside(s, f));
        }
        _ => f(stmt),
    }
}
