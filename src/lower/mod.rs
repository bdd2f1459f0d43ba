//! Lowers a problem to a naive nest: obviously right, never clever.
//!
//! One loop for each output dim, outermost; inside, for each block of the tree, loops over its steps and lanes; then
//! the merge of the blocks, the fold of the lanes, finish and store. With several phases, each phase walks each block
//! and folds its lanes. A reduction that selects elements by their order gathers each slice instead. A search for one
//! element in a run walks windows instead of blocks (`search.rs`). If each position of the slice is written, a loop
//! over positions replaces the store (`after.rs`). If layouts cut the problem into boxes, each box of slices has its
//! loops, and in them each box of elements its blocks. A part has a share of the slices or of the blocks (`cut.rs`); if
//! blocks are divided, their states are stored, and a finish merges them (`states.rs`). The nest of a whole problem
//! with one phase:
//!
//! ```text
//! for i0 in 0..4 parallel {
//!   acc a0: f32[1600] = -0.0
//!   for b0 in 0..25 parallel {
//!     for k0 in 0..63 seq {
//!       for l0 in 0..64 parallel { a0[64*b0 + l0] = add(a0[64*b0 + l0], x0[100000*i0 + 4032*b0 + 64*k0 + l0]) }
//!     }
//!   }
//!   merge a0 by sum over 25 of 64
//!   fold a0 by sum over 64 of 64 by 1
//!   x1[i0] = canon(a0[0])
//! }
//! ```

#![warn(clippy::wildcard_enum_match_arm)]

mod after;
mod at;
mod cut;
pub mod program;
mod search;
mod states;
mod walk;

pub use cut::cut;

use crate::problem::search_windows::Windows;
use crate::problem::tree::Tree;
use crate::problem::{Dim, IndexBox, Offsets, OperandSpan, Padding, Problem};
use at::At;
use cranefold_ir::ops::{Form, Method, Phase, Reducer, in_memory};
use cranefold_ir::{
    AccId, BufId, Buffer, BufferRole, DType, Def, DefId, Expr, Index, Loop, LoopKind, LoopVar, Names, Nest, Over,
    Scalar, Stmt,
};
use std::ops::Range;

/// The share of a problem that a nest computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Share {
    /// The whole problem.
    Whole,
    /// Some of the slices.
    Slices {
        /// Boxes of slices, each with the number of the problem's box that contains it, and as many dims.
        boxes: Vec<(usize, IndexBox)>,
        /// True if the padding of outputs is written too.
        padding: bool,
    },
    /// Some blocks of every slice, an aligned subtree, whose merged states are stored among those of all parts.
    Blocks {
        /// The numbers of the blocks.
        blocks: Range<u64>,
        /// The number of the part.
        part: u64,
        /// The number of parts.
        parts: u64,
    },
    /// The finish after all parts of blocks: their states are merged and finished.
    Finish {
        /// The number of parts.
        parts: u64,
    },
}

/// The naive nest of a problem in its plain form, named `name`.
pub fn lower(problem: &Problem, name: &str) -> Nest {
    lower_share(problem, Form::Plain, name, &Share::Whole)
}

/// The naive nest of a share of a problem in one of its forms. Its buffers are those of the problem, then those of
/// states.
pub fn lower_share(problem: &Problem, form: Form, name: &str, share: &Share) -> Nest {
    let buffer = |role, o: &OperandSpan| Buffer { role, dtype: in_memory(o.dtype), len: o.len };
    let inputs = problem.inputs.iter().map(|i| buffer(BufferRole::In, &i.operand));
    let old = |o| if problem.reads_old(o) { BufferRole::InOut } else { BufferRole::Out };
    let outputs = problem.outputs.iter().enumerate().map(|(i, o)| buffer(old(i), o));
    let buffers = inputs.chain(outputs).chain(states::buffers(problem, form, share)).collect();
    let nest = Nest { name: name.into(), buffers, defs: vec![], body: vec![] };
    let boxes = match problem.gathers() {
        true => vec![in_a_row(problem)],
        false => problem.elements.clone(),
    };
    let mut lowering = Lowering { problem, form, share, boxes, gathered: None, nest, names: Names::default() };
    lowering.whole();
    lowering.nest
}

/// The box of a slice's elements after they have been brought into order.
fn in_a_row(problem: &Problem) -> IndexBox {
    let nowhere =
        Offsets { inputs: vec![0; problem.inputs.len()], outputs: vec![0; problem.outputs.len()], position: 0 };
    let along = Offsets { position: 1, ..nowhere.clone() };
    IndexBox { start: nowhere, dims: vec![Dim { extent: problem.count, stride: along }] }
}

struct Lowering<'a> {
    problem: &'a Problem,
    form: Form,
    share: &'a Share,
    /// The boxes of elements that the tree is over.
    boxes: Vec<IndexBox>,
    /// The elements of the slice in order, if they are gathered first.
    gathered: Option<State>,
    nest: Nest,
    names: Names,
}

/// The states of one reducer: an accumulator for each value of a state.
#[derive(Clone)]
struct State {
    accs: Vec<(AccId, DType)>,
}

impl State {
    fn read(&self, index: &Index) -> Vec<Expr> {
        self.accs.iter().map(|&(acc, dtype)| Expr::Read(acc, dtype, index.clone())).collect()
    }

    fn set(&self, index: &Index, values: Vec<Expr>) -> Vec<Stmt> {
        let set = |(&(acc, _), value): (&(AccId, DType), Expr)| Stmt::Set { acc, index: index.clone(), value };
        self.accs.iter().zip(values).map(set).collect()
    }

    fn ids(&self) -> Vec<AccId> {
        self.accs.iter().map(|&(acc, _)| acc).collect()
    }
}

impl<'p> Lowering<'p> {
    /// A loop over `body`, which gets the variable as an index. A single iteration makes no loop, except over blocks,
    /// so that the body of a loop over blocks is a whole block.
    fn repeat(
        &mut self,
        over: Over,
        extent: u64,
        kind: LoopKind,
        body: impl FnOnce(&mut Self, Index) -> Vec<Stmt>,
    ) -> Vec<Stmt> {
        match extent {
            0 => vec![],
            1 if over != Over::Block => body(self, Index::default()),
            _ => {
                let var = self.names.loop_over(over);
                let body = body(self, Index::term(var, 1));
                vec![Stmt::For(Loop::new(var, extent, kind, body))]
            }
        }
    }

    /// Loops over the slices, and over the padding of outputs.
    fn whole(&mut self) {
        let (problem, share) = (self.problem, self.share);
        // A schedule names these loops, so they are numbered before all other loops.
        let loops = problem.output_loops();
        loops.iter().flatten().for_each(|&var| assert_eq!(self.names.loop_over(Over::Output), var));
        let mut body = vec![];
        let boxes: Vec<(usize, &IndexBox)> = match share {
            Share::Slices { boxes, .. } => boxes.iter().map(|(number, slices)| (*number, slices)).collect(),
            Share::Whole | Share::Blocks { .. } | Share::Finish { .. } => problem.slices.iter().enumerate().collect(),
        };
        let mut before = 0;
        for (number, slices) in boxes {
            body.extend(self.slices(&slices.dims, &loops[number], At::of(&slices.start).at_slice(before)));
            before += slices.positions();
        }
        for padding in problem.padding.iter().filter(|_| share.pads()) {
            body.extend(self.pad(padding));
        }
        self.nest.body = body;
    }

    fn slices(&mut self, dims: &[Dim], vars: &[LoopVar], at: At) -> Vec<Stmt> {
        let (Some((d, dims)), Some((&var, vars))) = (dims.split_first(), vars.split_first()) else {
            return self.element(&at);
        };
        let inner = dims.iter().map(|d| d.extent).product();
        let body = self.slices(dims, vars, at.along(&d.stride, 0, &Index::term(var, 1)).past_slices(inner, var));
        vec![Stmt::For(Loop::new(var, d.extent, LoopKind::Parallel, body))]
    }

    /// Loops that write zeros to padding.
    fn pad(&mut self, padding: &Padding) -> Vec<Stmt> {
        let vars: Vec<LoopVar> = padding.dims.iter().map(|_| self.names.loop_over(Over::Output)).collect();
        let dims = padding.dims.iter().zip(&vars);
        let index = dims.clone().fold(Index::constant(padding.start), |sum, (&(_, by), &var)| sum.plus(var, by));
        let zero = Scalar::zero(in_memory(self.problem.outputs[padding.output].dtype));
        let store = Stmt::Store { buf: self.output_buffer(padding.output), index, value: zero.into() };
        let around = |body, (&(extent, _), &var): (&(u64, i64), &LoopVar)| {
            vec![Stmt::For(Loop::new(var, extent, LoopKind::Parallel, body))]
        };
        dims.rev().fold(vec![store], around)
    }

    /// All statements for the slice at a position.
    fn element(&mut self, at: &At) -> Vec<Stmt> {
        let Some(reducer) = self.problem.reducer_in(self.form) else {
            let def = self.problem.conversion().expect("a conversion where nothing is reduced");
            let value = vec![self.load(0, at)];
            let (mut stmts, values) = self.apply(&def, value);
            stmts.extend(self.store(values, at));
            return stmts;
        };
        if self.problem.count == 0 {
            let nothing = reducer.nothing.iter().map(|&s| s.into()).collect();
            return self.finish(&reducer, nothing, None, at);
        }
        match &reducer.method {
            Method::Select { lift, what } => self.select(&reducer, lift, what, at),
            Method::Phases { phases, merge, search, .. } => {
                let tree = Tree::of(self.problem, &reducer.method);
                if let Some(search) = search
                    && matches!(self.share, Share::Whole | Share::Slices { .. })
                    && let Some(windows) = Windows::of(self.problem, &reducer, &tree)
                {
                    return self.search(&reducer, phases, search, (&tree, &windows), at);
                }
                let mut body = if self.problem.gathers() { self.gather(at) } else { vec![] };
                body.extend(match phases.as_slice() {
                    [phase] if phase.close.is_none() => self.one_phase(&reducer, phase, &tree, at),
                    phases => self.phases(&reducer, phases, merge, &tree, at),
                });
                body
            }
        }
    }

    /// The statements of one phase: lanes stay apart while blocks merge, and fold at the end.
    fn one_phase(&mut self, reducer: &Reducer, phase: &Phase, tree: &Tree, at: &At) -> Vec<Stmt> {
        let lanes = tree.lanes_present();
        let merge = self.nest.define(phase.combine.clone());
        let blocks = self.share.states(tree);
        let (state, mut body) = self.accumulate(&phase.identity, blocks * lanes);
        body.extend(self.taken(&state, lanes, at));
        body.extend(self.blocks(tree, at, &mut |this, at, block, blocks| {
            let base = block.times(lanes as i64);
            this.steps(tree, at, blocks, &mut |this, at, lane| {
                let element = base.add(lane);
                let x = this.loads(at);
                this.take(phase, &state, &element, x)
            })
        }));
        if blocks > 1 {
            body.push(Stmt::Merge { accs: state.ids(), def: merge, blocks, elems: lanes });
        }
        if let Share::Blocks { .. } = self.share {
            body.extend(self.given(&state, lanes, at));
            return body;
        }
        body.extend(fold(&state, merge, lanes, tree.lanes));
        let values = state.read(&Index::default());
        body.extend(self.finish(reducer, values, None, at));
        body
    }

    /// The statements of several phases: each folds its lanes at the end of a block.
    fn phases(&mut self, reducer: &Reducer, phases: &[Phase], merge: &Def, tree: &Tree, at: &At) -> Vec<Stmt> {
        let parts = merge.results.iter().map(Expr::dtype);
        let merge = self.nest.define(merge.clone());
        // A block's state is overwritten before it is read, so its initial value does not matter.
        let zeros: Vec<Scalar> = parts.map(|d| Scalar::from_bits(d, 0)).collect();
        let blocks = self.share.states(tree);
        let (states, mut body) = self.accumulate(&zeros, blocks);
        body.extend(self.taken(&states, 1, at));
        let (kept, more) = self.keep(reducer, phases, tree);
        body.extend(more);
        body.extend(self.blocks(tree, at, &mut |this, at, block, blocks| {
            let mut body = vec![];
            let mut results: Vec<Expr> = vec![];
            for (n, phase) in phases.iter().enumerate() {
                let lanes = blocks.lanes(tree);
                let combine = this.nest.define(phase.combine.clone());
                let (state, acc) = this.accumulate(&phase.identity, lanes);
                body.extend(acc);
                body.extend(this.steps(tree, at, blocks, &mut |this, at, lane| {
                    let mut args = this.loads(at);
                    args.extend(results.iter().cloned());
                    let Some(kept) = kept.as_ref().filter(|k| k.phase == n) else {
                        return this.take(phase, &state, lane, args);
                    };
                    let index = at.element();
                    let (mut stmts, lifted) = this.apply(&phase.lift, args);
                    let values: Vec<Expr> = lifted.into_iter().map(|value| this.bind(value, &mut stmts)).collect();
                    stmts.extend(kept.state.set(&index, values.clone()));
                    stmts.extend(this.combine(&phase.combine, &state, lane, values));
                    stmts
                }));
                body.extend(fold(&state, combine, lanes, tree.lanes));
                let folded = state.read(&Index::default());
                results.extend(match &phase.close {
                    None => folded,
                    Some(close) => {
                        let count = blocks.elements(tree);
                        this.close(close, folded, count, &mut body)
                    }
                });
            }
            assert_eq!(states.accs.len(), results.len(), "a block's state is the results of all phases");
            body.extend(states.set(block, results));
            body
        }));
        if blocks > 1 {
            body.push(Stmt::Merge { accs: states.ids(), def: merge, blocks, elems: 1 });
        }
        if let Share::Blocks { .. } = self.share {
            body.extend(self.given(&states, 1, at));
            return body;
        }
        let values = states.read(&Index::default());
        body.extend(self.finish(reducer, values, kept.as_ref(), at));
        body
    }

    /// Keeps the results of a phase that later phases read, in accumulators of one element.
    fn close(&mut self, close: &Def, folded: Vec<Expr>, count: u64, body: &mut Vec<Stmt>) -> Vec<Expr> {
        let dtype = *close.params.last().expect("the number of elements");
        let count = Scalar::int(dtype, count.into()).into();
        let zeros: Vec<Scalar> = close.results.iter().map(|r| Scalar::from_bits(r.dtype(), 0)).collect();
        let (kept, accs) = self.accumulate(&zeros, 1);
        body.extend(accs);
        let (stmts, values) = self.apply(close, [folded, vec![count]].concat());
        body.extend(stmts);
        body.extend(kept.set(&Index::default(), values));
        kept.read(&Index::default())
    }

    /// Accumulators for the values of a state, `len` elements each.
    fn accumulate(&mut self, identity: &[Scalar], len: u64) -> (State, Vec<Stmt>) {
        let mut accs = vec![];
        let mut stmts = vec![];
        for &init in identity {
            let acc = self.names.acc();
            accs.push((acc, init.dtype()));
            stmts.push(Stmt::Acc { acc, dtype: init.dtype(), len, init });
        }
        (State { accs }, stmts)
    }

    /// The statements by which a lane takes its next element.
    fn take(&mut self, phase: &Phase, state: &State, lane: &Index, element: Vec<Expr>) -> Vec<Stmt> {
        if let Some(update) = &phase.update {
            let (mut stmts, values) = self.apply(update, [state.read(lane), element].concat());
            stmts.extend(state.set(lane, values));
            return stmts;
        }
        let (mut stmts, lifted) = self.apply(&phase.lift, element);
        stmts.extend(self.combine(&phase.combine, state, lane, lifted));
        stmts
    }

    /// The value, bound to a variable unless it is one.
    fn bind(&mut self, value: Expr, stmts: &mut Vec<Stmt>) -> Expr {
        if let Expr::Var(..) = value {
            return value;
        }
        let (var, dtype) = (self.names.var(), value.dtype());
        stmts.push(Stmt::Let { var, value });
        Expr::Var(var, dtype)
    }

    /// `state[index] = combine(state[index], lifted)`.
    fn combine(&mut self, combine: &Def, state: &State, index: &Index, lifted: Vec<Expr>) -> Vec<Stmt> {
        let (mut stmts, values) = self.apply(combine, [state.read(index), lifted].concat());
        stmts.extend(state.set(index, values));
        stmts
    }

    /// The results of a definition: inline if it is simple, else by a call.
    fn apply(&mut self, def: &Def, args: Vec<Expr>) -> (Vec<Stmt>, Vec<Expr>) {
        self.nest.apply(&mut self.names, def, args)
    }

    fn load(&self, input: usize, at: &At) -> Expr {
        let operand = &self.problem.inputs[input].operand;
        Expr::Load(BufId(input as u32), in_memory(operand.dtype), at.input(input))
    }

    /// The first arguments of lifts: the element of each mapped input, and its position if lifts take it.
    fn loads(&self, at: &At) -> Vec<Expr> {
        let types = self.problem.types();
        let position = self.problem.takes_position.then(|| Expr::At(types.position(), at.position()));
        let elements = match &self.gathered {
            Some(gathered) => gathered.read(&at.position()),
            None => types.mapped.iter().map(|&i| self.load(i, at)).collect(),
        };
        elements.into_iter().chain(position).collect()
    }
}

fn fold(state: &State, def: DefId, present: u64, lanes: u64) -> Option<Stmt> {
    (present > 1).then(|| Stmt::Fold { accs: state.ids(), def, present, lanes, elems: 1 })
}
