//! The frame that wide functions share with the code around them.
//!
//! First come the counters and values that wide functions take from outside, 8 bytes each, then the accumulators in
//! memory, each at a multiple of 64 bytes, and then each wide function's own part. A nest without wide functions has no
//! such frame: its accumulators are slots of the function.

use super::{Cell, SCRATCH_ALIGN, Scratch};
use cranefold_ir::{AccId, DType, Expr, Extent, Index, Loop, LoopVar, Nest, Stmt, Var};
use rustc_hash::{FxHashMap, FxHashSet};

/// Places in the frame, in bytes from its start.
#[derive(Debug, Default)]
pub struct Frame {
    /// Counters of loops, and carries.
    pub counters: FxHashMap<LoopVar, u64>,
    /// Values.
    pub values: FxHashMap<Var, u64>,
    /// Accumulators.
    pub accs: FxHashMap<AccId, u64>,
    /// Bytes of the frame, a multiple of [`SCRATCH_ALIGN`].
    pub bytes: u64,
}

impl Frame {
    /// The frame of a nest with wide functions; empty if there are none.
    pub fn of(nest: &Nest, cells: &FxHashMap<AccId, Vec<Cell>>, scratch: &Scratch) -> Frame {
        let mut frame = Frame::default();
        let mut has_wide = false;
        nest.visit(&mut |s| has_wide |= matches!(s, Stmt::Wide { .. }));
        if !has_wide {
            return frame;
        }
        let mut around = Around::default();
        around.body(&nest.body, &mut frame);
        nest.visit(&mut |s| {
            let Stmt::Acc { acc, dtype, len, .. } = s else { return };
            if !cells.contains_key(acc) && !scratch.offsets.contains_key(acc) {
                let at = frame.bytes.next_multiple_of(SCRATCH_ALIGN);
                frame.accs.insert(*acc, at);
                frame.bytes = at + len * dtype.bytes();
            }
        });
        frame.bytes = frame.bytes.next_multiple_of(SCRATCH_ALIGN);
        frame
    }

    fn place(&mut self) -> u64 {
        self.bytes += 8;
        self.bytes - 8
    }
}

/// The variables bound around the wide functions.
#[derive(Default)]
struct Around {
    loops: Vec<LoopVar>,
    values: FxHashSet<Var>,
}

impl Around {
    fn body(&mut self, body: &[Stmt], frame: &mut Frame) {
        let loops = self.loops.len();
        for stmt in body {
            match stmt {
                Stmt::For(l) => {
                    self.loops.push(l.var);
                    self.body(&l.body, frame);
                    self.loops.pop();
                }
                Stmt::Carry { var, .. } | Stmt::Pick { var, .. } | Stmt::Misalign { var, .. } => self.loops.push(*var),
                Stmt::Let { var, .. } => {
                    self.values.insert(*var);
                }
                Stmt::Call { vars, .. } | Stmt::Select { vars, .. } => self.values.extend(vars),
                Stmt::Wide { body } => self.wide(body, frame),
                _ => {}
            }
        }
        self.loops.truncate(loops);
    }

    /// Adds places for the outer variables that the wide function names, loops from the outside in.
    fn wide(&self, body: &[Stmt], frame: &mut Frame) {
        if self.loops.is_empty() && self.values.is_empty() {
            return;
        }
        let named = Named::of(body);
        for var in self.loops.iter().filter(|v| named.loops.contains(v)) {
            if !frame.counters.contains_key(var) {
                let at = frame.place();
                frame.counters.insert(*var, at);
            }
        }
        for (var, _) in named.values {
            if self.values.contains(&var) && !frame.values.contains_key(&var) {
                let at = frame.place();
                frame.values.insert(var, at);
            }
        }
    }
}

/// The variables that statements name, at any depth, and do not bind themselves.
struct Named {
    loops: FxHashSet<LoopVar>,
    /// The values in order, with their types.
    values: Vec<(Var, DType)>,
}

impl Named {
    fn of(body: &[Stmt]) -> Named {
        let (mut loops, mut values): (FxHashSet<LoopVar>, Vec<(Var, DType)>) = Default::default();
        let (mut bound_loops, mut bound_values): (FxHashSet<LoopVar>, FxHashSet<Var>) = Default::default();
        let mut index = |i: &Index| loops.extend(i.terms().map(|(v, _)| v));
        body.iter().for_each(|s| {
            s.visit(&mut |s| {
                match s {
                    Stmt::Set { index: i, .. } | Stmt::Store { index: i, .. } | Stmt::Carry { of: i, .. } => index(i),
                    Stmt::Transpose(t) | Stmt::TransposedStore(t) => index(&t.first),
                    Stmt::Misalign { index: i, .. } | Stmt::Prefetch { index: i, .. } => index(i),
                    Stmt::Rotate { by, .. } => index(&Index::term(*by, 1)),
                    Stmt::For(Loop { extent: Extent::Carry(var), .. })
                    | Stmt::For(Loop { extent: Extent::From(var, _) | Extent::Below(var, _), .. }) => {
                        index(&Index::term(*var, 1));
                    }
                    _ => {}
                }
                match s {
                    Stmt::For(l) => bound_loops.extend([l.var]),
                    Stmt::Carry { var, .. } | Stmt::Pick { var, .. } | Stmt::Misalign { var, .. } => {
                        bound_loops.extend([*var]);
                    }
                    Stmt::Let { var, .. } => bound_values.extend([*var]),
                    Stmt::Call { vars, .. } => bound_values.extend(vars),
                    _ => {}
                }
                for e in s.exprs() {
                    e.visit(&mut |e| match e {
                        Expr::Load(_, _, i) | Expr::Read(_, _, i) | Expr::At(_, i) => index(i),
                        Expr::Var(var, dtype) if !values.contains(&(*var, *dtype)) => values.push((*var, *dtype)),
                        _ => {}
                    });
                }
            })
        });
        loops.retain(|var| !bound_loops.contains(var));
        values.retain(|(var, _)| !bound_values.contains(var));
        Named { loops, values }
    }
}

/// The variables that a wide function takes from outside, each with its place in the frame.
#[derive(Debug)]
pub struct Taken {
    /// Counters and carries, from the outside in.
    pub counters: Vec<(LoopVar, u64)>,
    /// Values.
    pub values: Vec<(Var, DType, u64)>,
}

impl Frame {
    /// The variables that a wide function takes.
    pub fn taken(&self, body: &[Stmt]) -> Taken {
        if self.counters.is_empty() && self.values.is_empty() {
            return Taken { counters: vec![], values: vec![] };
        }
        let named = Named::of(body);
        let counters = self.counters.iter().filter(|(v, _)| named.loops.contains(v));
        let mut counters: Vec<(LoopVar, u64)> = counters.map(|(&v, &at)| (v, at)).collect();
        counters.sort_by_key(|&(_, at)| at);
        let value = |(var, dtype)| self.values.get(&var).map(|&at| (var, dtype, at));
        Taken { counters, values: named.values.into_iter().filter_map(value).collect() }
    }
}
