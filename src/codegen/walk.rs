//! The walk of a legal nest: statements and loops, in their order.
//!
//! - Each pattern of indices that moves with a loop has a pointer, moved once per iteration; constant parts of indices
//!   are offsets in the instructions (see [`address`](super::address)). Bytes exist only here and below.
//! - Accumulators with constant indices live in registers, the others in memory (see [`storage`](super::storage)). A
//!   register gets its initial value only where the value is needed there: reads before that are the constant.
//! - Definitions are inlined, and operations on constants are evaluated.

use super::Refused;
use super::accumulators::Halves;
use super::address::{Base, Pointers};
use super::emit::{Emit, Handles};
use super::storage::{Cell, Copies, Storage, Vector, set_before_read};
use cranefold_ir::{AccId, DType, Extent, Index, Loop, LoopVar, Nest, Scalar, Stmt, Var};
use rustc_hash::{FxHashMap, FxHashSet};

/// The state of a walk.
pub struct Walk<'a, E: Handles> {
    pub nest: &'a Nest,
    pub storage: &'a Storage,
    /// The type of each accumulator.
    pub types: FxHashMap<AccId, DType>,
    /// The registers of cells.
    pub registers: FxHashMap<(AccId, Cell), E::Register>,
    /// Declared cells whose registers do not hold their initial values yet; in order.
    pub fresh: Vec<((AccId, Cell), Scalar)>,
    /// The value of each bound variable.
    pub values: FxHashMap<Var, E::Value>,
    /// The counters of loops that need one, and the carries.
    pub counters: FxHashMap<LoopVar, E::Number>,
    pub(super) pointers: Pointers<E::Number>,
    /// The lanes of the current vector, of one loop or two.
    pub vector: Option<Vector>,
    /// The number of lanes that the nest has; the other lanes may hold anything.
    pub(super) lanes_written: u64,
    /// Halves of vectors that the current body of lanes has read.
    pub(super) halves: Vec<Halves<E::Value>>,
    /// Values of indices that are the same in all lanes, in the current body.
    pub(super) positions: FxHashMap<(DType, Index), E::Value>,
    /// The statements after the current one in its body, and in the bodies around it.
    pub(super) rest: Vec<&'a [Stmt]>,
    /// The accumulators that the open bodies declare, without bodies of lanes.
    pub(super) declared_here: Vec<FxHashSet<AccId>>,
    /// Accumulators that need no initial value.
    pub(super) set_before_read: FxHashSet<AccId>,
}

impl<'a, E: Emit<'a>> Walk<'a, E> {
    /// The walk of a body of a nest, at its start.
    pub fn new(nest: &'a Nest, storage: &'a Storage, body: &[Stmt]) -> Walk<'a, E> {
        let mut types = FxHashMap::default();
        nest.visit(&mut |s| {
            if let Stmt::Acc { acc, dtype, .. } = s {
                types.insert(*acc, *dtype);
            }
        });
        Walk {
            nest,
            storage,
            types,
            registers: FxHashMap::default(),
            fresh: vec![],
            values: FxHashMap::default(),
            counters: FxHashMap::default(),
            pointers: Pointers::default(),
            vector: None,
            lanes_written: 0,
            halves: vec![],
            positions: FxHashMap::default(),
            rest: vec![],
            declared_here: vec![FxHashSet::default()],
            set_before_read: set_before_read(body, |acc| !storage.cells.contains_key(&acc)),
        }
    }

    /// The loop and the number of the current vector's lanes.
    pub fn lane(&self) -> Option<(LoopVar, u64)> {
        self.vector.map(|vector| (vector.var, vector.lanes))
    }

    /// The statements of a body.
    pub fn body(&mut self, out: &mut E, body: &'a [Stmt]) -> Result<(), Refused> {
        let mut after = body;
        while let Some((stmt, mut rest)) = after.split_first() {
            let copies = self.copies(out, after);
            if let Some(copies) = &copies {
                rest = &after[copies.statements..];
            }
            after = rest;
            self.rest.push(rest);
            match stmt {
                _ if let Some(copies) = copies => self.copy(out, &copies)?,
                // The count of trailing ones of an index.
                Stmt::Carry { var, of } => {
                    let number = self.index_value(out, of);
                    let ones = out.trailing_ones(number);
                    self.bind_number(out, *var, ones, rest);
                }
                Stmt::Pick { var, value, most } => {
                    let value = self.expr(out, value, None, None)?;
                    let number = out.picked(value, *most)?;
                    self.bind_number(out, *var, number, rest);
                }
                Stmt::Misalign { var, buf, index, lanes } => {
                    let at = self.address(out, Base::Buf(*buf), index);
                    let bytes = self.nest.buffers[buf.0 as usize].dtype.bytes();
                    let number = out.misaligned(*buf, at, (*lanes, bytes))?;
                    self.bind_number(out, *var, number, rest);
                }
                _ => self.stmt(out, stmt)?,
            }
            self.rest.pop();
        }
        Ok(())
    }

    /// Binds a variable of indices to a number, for the statements of `scope`.
    pub fn bind_number(&mut self, out: &mut E, var: LoopVar, number: E::Number, scope: &[Stmt]) {
        self.counters.insert(var, number);
        self.enter(out, var, scope, Some(number));
    }

    fn stmt(&mut self, out: &mut E, stmt: &'a Stmt) -> Result<(), Refused> {
        match stmt {
            Stmt::For(l) => match Vector::of(l) {
                Some((vector, body)) => self.lanes(out, vector, body),
                None => self.counted(out, l),
            },
            Stmt::Acc { acc, dtype, len, init } => {
                self.declared_here.last_mut().expect("the outermost body").insert(*acc);
                self.declare(out, *acc, *dtype, *len, *init);
                Ok(())
            }
            Stmt::Let { var, value } => {
                let value = self.expr(out, value, None, None)?;
                self.bind(out, *var, value);
                Ok(())
            }
            Stmt::Call { vars, def, args } => {
                let results = self.call(out, self.nest.def(*def), args, None)?;
                vars.iter().zip(results).for_each(|(&var, value)| self.bind(out, var, value));
                Ok(())
            }
            Stmt::Set { acc, index, value } => self.set(out, *acc, index, value),
            Stmt::Store { buf, index, value } => {
                let value = self.expr(out, value, None, None)?;
                self.store(out, Base::Buf(*buf), index, value)
            }
            Stmt::Transpose(t) => self.transpose(out, t),
            Stmt::TransposedStore(t) => self.transposed_store(out, t),
            Stmt::Prefetch { buf, index, far } => {
                let at = self.address(out, Base::Buf(*buf), index);
                out.prefetch(at, *far);
                Ok(())
            }
            Stmt::Select { .. } | Stmt::Wide { .. } => out.outside(self, stmt),
            Stmt::Rotate { acc, start, len, by } => self.rotate(out, *acc, (*start, *len), *by),
            Stmt::Carry { .. } | Stmt::Pick { .. } | Stmt::Misalign { .. } => {
                unreachable!("they are bound in their body")
            }
            Stmt::Merge { .. } | Stmt::Fold { .. } => Err(Refused("a merge or fold that was not written out".into())),
        }
    }

    fn bind(&mut self, out: &mut E, var: Var, value: E::Value) {
        let value = out.kept(self, value);
        self.values.insert(var, value);
    }

    /// The copies with which a body begins, if registers hold the accumulator.
    fn copies(&self, out: &E, body: &'a [Stmt]) -> Option<Copies<'a>> {
        let copies = Copies::first_of(body)?;
        let in_registers = self.storage.cells.contains_key(&copies.acc);
        (in_registers && copies.are_permutations(self.types[&copies.acc], out.vectors())).then_some(copies)
    }

    fn copy(&mut self, out: &mut E, copies: &Copies<'a>) -> Result<(), Refused> {
        self.vector = out.begin_lanes(self, copies.vector, &[])?;
        self.lanes_written = copies.vector.lanes;
        let done = self.set_copies(out, copies);
        self.vector = None;
        self.halves.clear();
        out.end_lanes();
        done
    }

    fn lanes(&mut self, out: &mut E, vector: Vector, body: &'a [Stmt]) -> Result<(), Refused> {
        if vector.edge.is_some() {
            self.start_cells(out);
        }
        self.vector = out.begin_lanes(self, vector, body)?;
        self.lanes_written = vector.lanes;
        let done = self.body(out, body);
        self.vector = None;
        self.halves.clear();
        out.end_lanes();
        if vector.edge.is_some() {
            // A vector without lanes is left out, with what was made there.
            self.positions.clear();
        }
        done
    }

    /// A loop that runs as code.
    fn counted(&mut self, out: &mut E, l: &'a Loop) -> Result<(), Refused> {
        if l.extent == Extent::Const(0) {
            return Ok(());
        }
        let mut open = out.begin_loop(self, l);
        let pointers = self.enter(out, l.var, &l.body, None);
        out.enter_loop(self, l, &mut open)?;
        self.positions.clear();
        self.declared_here.push(FxHashSet::default());
        self.body(out, &l.body)?;
        self.fresh.clear();
        self.declared_here.pop();
        for (pointer, bytes) in pointers {
            out.bump(pointer, bytes);
        }
        out.end_loop(l, open);
        self.leave(l.var);
        self.positions.clear();
        Ok(())
    }
}
