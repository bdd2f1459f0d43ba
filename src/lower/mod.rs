//! Problem -> nest: obviously right, never clever.
//!
//! One loop for each output dim, outermost; inside, for each block of the tree, loops over its steps
//! and lanes; then the merge of the blocks, the fold of the lanes, finish and store:
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

mod walk;

use crate::problem::Problem;
use crate::tree::Tree;
use cranefold_ir::ops::Reducer;
use cranefold_ir::{
    AccId, BufId, Buffer, BufferRole, DType, Def, DefId, Expr, Index, Loop, LoopKind, Names, Nest, Over, Scalar, Stmt,
};

/// The naive nest of a problem, named `name`.
pub fn lower(problem: &Problem, name: &str) -> Nest {
    let buffer = |role| move |o: &crate::problem::Operand| Buffer { role, dtype: o.dtype, len: o.len };
    let inputs = problem.inputs.iter().map(buffer(BufferRole::In));
    let outputs = problem.outputs.iter().map(buffer(BufferRole::Out));
    let nest = Nest { name: name.into(), buffers: inputs.chain(outputs).collect(), defs: vec![], body: vec![] };
    let mut lowering = Lowering { problem, nest, names: Names::default() };
    if problem.outputs.iter().all(|o| o.len > 0) {
        lowering.whole();
    }
    lowering.nest
}

struct Lowering<'a> {
    problem: &'a Problem,
    nest: Nest,
    names: Names,
}

/// The states of one reducer: the accumulators of its parts.
struct State {
    accs: Vec<(AccId, DType)>,
}

impl State {
    fn read(&self, index: &Index) -> Vec<Expr> {
        self.accs.iter().map(|&(acc, dtype)| Expr::Read(acc, dtype, index.clone())).collect()
    }

    fn ids(&self) -> Vec<AccId> {
        self.accs.iter().map(|&(acc, _)| acc).collect()
    }
}

impl<'p> Lowering<'p> {
    /// A loop over `body`, which gets the variable as an index. There is none for a single
    /// iteration, except over blocks, so that the body of a loop over blocks is a whole block.
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

    /// Loops over all output dims; `at` is the position in each dim of the problem (0 where reduced).
    fn whole(&mut self) {
        let body = self.outputs(0, vec![]);
        self.nest.body = body;
    }

    fn outputs(&mut self, dim: usize, mut at: Vec<Index>) -> Vec<Stmt> {
        let Some(d) = self.problem.dims.get(dim) else { return self.element(&at) };
        if d.reduced {
            at.push(Index::default());
            return self.outputs(dim + 1, at);
        }
        self.repeat(Over::Output, d.extent, LoopKind::Parallel, |this, i| {
            at.push(i);
            this.outputs(dim + 1, at)
        })
    }

    /// Everything for the output element at a position.
    fn element(&mut self, at: &[Index]) -> Vec<Stmt> {
        let Some(reducer) = self.problem.reducer() else {
            let def = self.problem.conversion().expect("a conversion where nothing is reduced");
            let value = vec![self.load(0, at)];
            return self.finish(&def, value, at);
        };
        if self.problem.count == 0 {
            let values: Vec<Expr> = reducer.over_nothing.iter().map(|&s| s.into()).collect();
            return self.store(values, at);
        }
        let tree = Tree::of(self.problem, reducer.state_bytes());
        if reducer.phases.len() == 1 { self.one_phase(&reducer, &tree, at) } else { self.phases(&reducer, &tree, at) }
    }

    /// One phase: lanes are kept while blocks merge and fold at the end.
    fn one_phase(&mut self, reducer: &Reducer, tree: &Tree, at: &[Index]) -> Vec<Stmt> {
        let phase = &reducer.phases[0];
        let lanes = self.lanes_present(tree);
        let merge = self.nest.define(phase.combine.clone());
        let (state, mut body) = self.accumulate(&phase.identity, tree.blocks() * lanes);
        body.extend(self.blocks(tree, at, &mut |this, at, block, blocks| {
            let base = block.times(lanes as i64);
            this.steps(tree, at, blocks, &mut |this, at, lane| {
                let element = base.add(lane);
                let x = this.loads(at);
                let lifted = this.apply(&phase.lift, x);
                this.update(&phase.combine, &state, &element, lifted)
            })
        }));
        if tree.blocks() > 1 {
            body.push(Stmt::Merge { accs: state.ids(), def: merge, blocks: tree.blocks(), elems: lanes });
        }
        body.extend(fold(&state, merge, lanes, tree.lanes));
        let values = state.read(&Index::default());
        body.extend(self.finish(&reducer.finish, values, at));
        body
    }

    /// Several phases: each folds its lanes when the block has been walked.
    fn phases(&mut self, reducer: &Reducer, tree: &Tree, at: &[Index]) -> Vec<Stmt> {
        let merge = self.nest.define(reducer.merge.clone());
        let parts = reducer.merge.results.iter().map(Expr::dtype);
        // A block's state is overwritten before it is read: any value will do.
        let zeros: Vec<Scalar> = parts.map(|d| Scalar::from_bits(d, 0)).collect();
        let (states, mut body) = self.accumulate(&zeros, tree.blocks());
        body.extend(self.blocks(tree, at, &mut |this, at, block, blocks| {
            let mut body = vec![];
            let mut results: Vec<Expr> = vec![];
            for phase in &reducer.phases {
                let lanes = this.lanes_of_block(tree, blocks);
                let combine = this.nest.define(phase.combine.clone());
                let (state, acc) = this.accumulate(&phase.identity, lanes);
                body.extend(acc);
                body.extend(this.steps(tree, at, blocks, &mut |this, at, lane| {
                    let mut args = this.loads(at);
                    args.extend(results.iter().cloned());
                    let lifted = this.apply(&phase.lift, args);
                    this.update(&phase.combine, &state, lane, lifted)
                }));
                body.extend(fold(&state, combine, lanes, tree.lanes));
                let folded = state.read(&Index::default());
                results.extend(match &phase.close {
                    None => folded,
                    Some(close) => {
                        let count = this.elements_of_block(tree, blocks);
                        this.close(close, folded, count, &mut body)
                    }
                });
            }
            assert_eq!(states.accs.len(), results.len(), "a block's state is the results of all phases");
            for (&(acc, _), value) in states.accs.iter().zip(results) {
                body.push(Stmt::Set { acc, index: block.clone(), value });
            }
            body
        }));
        if tree.blocks() > 1 {
            body.push(Stmt::Merge { accs: states.ids(), def: merge, blocks: tree.blocks(), elems: 1 });
        }
        let values = states.read(&Index::default());
        body.extend(self.finish(&reducer.finish, values, at));
        body
    }

    /// Keeps what a phase gives later ones in accumulators of one element.
    fn close(&mut self, close: &Def, folded: Vec<Expr>, count: u64, body: &mut Vec<Stmt>) -> Vec<Expr> {
        let dtype = *close.params.last().expect("the number of elements");
        let count = Scalar::int(dtype, count.into()).into();
        let zeros: Vec<Scalar> = close.results.iter().map(|r| Scalar::from_bits(r.dtype(), 0)).collect();
        let (kept, accs) = self.accumulate(&zeros, 1);
        body.extend(accs);
        let (stmts, values) = self.apply(close, [folded, vec![count]].concat());
        body.extend(stmts);
        for (&(acc, _), value) in kept.accs.iter().zip(values) {
            body.push(Stmt::Set { acc, index: Index::default(), value });
        }
        kept.read(&Index::default())
    }

    /// Accumulators for the parts of a state, `len` elements each.
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

    /// `state[index] = combine(state[index], lifted)`.
    fn update(&mut self, combine: &Def, state: &State, index: &Index, lifted: (Vec<Stmt>, Vec<Expr>)) -> Vec<Stmt> {
        let (mut stmts, lifted) = lifted;
        let (more, values) = self.apply(combine, [state.read(index), lifted].concat());
        stmts.extend(more);
        for (&(acc, _), value) in state.accs.iter().zip(values) {
            stmts.push(Stmt::Set { acc, index: index.clone(), value });
        }
        stmts
    }

    /// The results of a definition: written out where it is simple, else a call.
    fn apply(&mut self, def: &Def, args: Vec<Expr>) -> (Vec<Stmt>, Vec<Expr>) {
        self.nest.apply(&mut self.names, def, args)
    }

    /// The index in an operand of a position.
    fn index(strides: &[i64], origin: i64, at: &[Index]) -> Index {
        at.iter().zip(strides).fold(Index::constant(origin), |sum, (p, &s)| sum.add(&p.times(s)))
    }

    fn load(&self, input: usize, at: &[Index]) -> Expr {
        let operand = &self.problem.inputs[input];
        let strides: Vec<i64> = self.problem.dims.iter().map(|d| d.input_strides[input]).collect();
        Expr::Load(BufId(input as u32), operand.dtype, Self::index(&strides, operand.origin, at))
    }

    fn loads(&self, at: &[Index]) -> Vec<Expr> {
        (0..self.problem.inputs.len()).map(|i| self.load(i, at)).collect()
    }

    fn finish(&mut self, def: &Def, values: Vec<Expr>, at: &[Index]) -> Vec<Stmt> {
        let (mut stmts, values) = self.apply(def, values);
        stmts.extend(self.store(values, at));
        stmts
    }

    fn store(&self, values: Vec<Expr>, at: &[Index]) -> Vec<Stmt> {
        let inputs = self.problem.inputs.len();
        let store = |(o, value): (usize, Expr)| {
            let operand = &self.problem.outputs[o];
            let strides: Vec<i64> = self.problem.dims.iter().map(|d| d.output_strides[o]).collect();
            let buf = BufId((inputs + o) as u32);
            Stmt::Store { buf, index: Self::index(&strides, operand.origin, at), value }
        };
        values.into_iter().enumerate().map(store).collect()
    }
}

fn fold(state: &State, def: DefId, present: u64, lanes: u64) -> Option<Stmt> {
    (present > 1).then(|| Stmt::Fold { accs: state.ids(), def, present, lanes, elems: 1 })
}
