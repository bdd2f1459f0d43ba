//! What follows the reduction of a slice: finish, and the outputs at each of its positions.

use super::walk::EachElement;
use super::{Lowering, State};
use crate::problem::{Dim, Problem};
use crate::tree::Tree;
use cranefold_ir::ops::{Apply, Phase, Reducer, Source, in_memory};
use cranefold_ir::{BufId, Def, Expr, Index, LoopKind, Over, Selection, Stmt};

/// The lifted values of a slice of one block, for the outputs at each position.
pub(super) struct Kept {
    /// The phase they are of.
    pub phase: usize,
    pub state: State,
}

impl Kept {
    /// The place of the element at a position of the problem's dims: row-major over the reduction dims.
    pub fn index(&self, problem: &Problem, at: &[Index]) -> Index {
        let reduced = problem.dims.iter().zip(at).filter(|(d, _)| d.reduced);
        reduced.fold(Index::default(), |sum, (d, p)| sum.times(d.extent as i64).add(p))
    }
}

impl<'p> Lowering<'p> {
    /// Room for the lifted values that outputs at each position take, where the slice is one block.
    pub(super) fn keep(&mut self, reducer: &Reducer, phases: &[Phase], tree: &Tree) -> (Option<Kept>, Vec<Stmt>) {
        let Some(phase) = reducer.apply.as_ref().and_then(|a| a.lifted) else { return (None, vec![]) };
        // Positions of the outputs must be those of the reduction.
        let extents =
            |dims: &[Dim]| dims.iter().filter(|d| d.reduced && d.extent > 1).map(|d| d.extent).collect::<Vec<_>>();
        if tree.blocks() > 1 || extents(&self.problem.dims) != extents(&self.problem.slice) {
            return (None, vec![]);
        }
        let (state, stmts) = self.accumulate(&phases[phase].identity, self.problem.count);
        (Some(Kept { phase, state }), stmts)
    }

    /// Finishes a state and writes the outputs.
    pub(super) fn finish(
        &mut self,
        reducer: &Reducer,
        state: Vec<Expr>,
        kept: Option<&Kept>,
        at: &[Index],
    ) -> Vec<Stmt> {
        let mut args = state;
        for source in &reducer.reads {
            args.push(match *source {
                Source::Input(i) => self.load(i, at),
                Source::Old(o) => {
                    let (buf, index) = self.place(o, at);
                    Expr::Load(buf, in_memory(self.problem.outputs[o].dtype), index)
                }
            });
        }
        let (mut stmts, values) = self.apply(&reducer.finish, args);
        let Some(apply) = &reducer.apply else {
            stmts.extend(self.store(values, at));
            return stmts;
        };
        // Kept in accumulators, for the loops over positions are others.
        let zeros: Vec<_> = values.iter().map(|v| cranefold_ir::Scalar::zero(v.dtype())).collect();
        let (results, accs) = self.accumulate(&zeros, 1);
        let mut body = accs;
        body.extend(stmts);
        body.extend(results.set(&Index::default(), values));
        let results = results.read(&Index::default());
        body.extend(
            self.positions(0, vec![], &mut |this, positions| {
                this.output(reducer, apply, &results, kept, at, positions)
            }),
        );
        body
    }

    /// Loops over the positions of a slice.
    fn positions(
        &mut self,
        dim: usize,
        mut at: Vec<Index>,
        each: &mut dyn FnMut(&mut Self, &[Index]) -> Vec<Stmt>,
    ) -> Vec<Stmt> {
        let Some(d) = self.problem.slice.get(dim) else { return each(self, &at) };
        self.repeat(Over::Position, d.extent, LoopKind::Parallel, |this, p| {
            at.push(p);
            this.positions(dim + 1, at, each)
        })
    }

    /// The outputs at one position of the slice.
    fn output(
        &mut self,
        reducer: &Reducer,
        apply: &Apply,
        results: &[Expr],
        kept: Option<&Kept>,
        at: &[Index],
        positions: &[Index],
    ) -> Vec<Stmt> {
        let slice = &self.problem.slice;
        let element = |this: &Self, input: usize| {
            let operand = &this.problem.inputs[input].operand;
            let outer = this.parallel(at, |d| d.input_strides[input]);
            let index =
                slice.iter().zip(positions).fold(outer, |sum, (d, p)| sum.add(&p.times(d.input_strides[input])));
            Expr::Load(BufId(input as u32), in_memory(operand.dtype), index.offset_by(operand.origin))
        };
        let mut args: Vec<Expr> = apply.inputs.iter().map(|&i| element(self, i)).collect();
        let mut stmts = vec![];
        if let Some(phase) = apply.lifted {
            match kept {
                Some(kept) => {
                    let extents = slice.iter().zip(positions);
                    let index = extents.fold(Index::default(), |sum, (d, p)| sum.times(d.extent as i64).add(p));
                    args.extend(kept.state.read(&index));
                }
                None => {
                    let lift = &reducer.method.phases()[phase].lift;
                    let mapped = self.problem.types().mapped;
                    let mut lifted: Vec<Expr> = mapped.iter().map(|&i| element(self, i)).collect();
                    let earlier = lift.params.len() - lifted.len();
                    lifted.extend(results[..earlier].iter().cloned());
                    let (more, values) = self.apply(lift, lifted);
                    stmts.extend(more);
                    args.extend(values);
                }
            }
        }
        args.extend(results.iter().cloned());
        let (more, values) = self.apply(&apply.def, args);
        stmts.extend(more);
        for (o, value) in values.into_iter().enumerate() {
            let outer = self.parallel(at, |d| d.output_strides[o]).offset_by(self.problem.outputs[o].origin);
            let index = slice.iter().zip(positions).fold(outer, |sum, (d, p)| sum.add(&p.times(d.output_strides[o])));
            stmts.push(Stmt::Store { buf: self.output_buffer(o), index, value });
        }
        stmts
    }

    /// The part of an index that the parallel dims make.
    fn parallel(&self, at: &[Index], stride: impl Fn(&Dim) -> i64) -> Index {
        let dims = self.problem.dims.iter().zip(at).filter(|(d, _)| !d.reduced);
        dims.fold(Index::default(), |sum, (d, p)| sum.add(&p.times(stride(d))))
    }

    fn output_buffer(&self, output: usize) -> BufId {
        BufId((self.problem.inputs.len() + output) as u32)
    }

    /// The buffer of an output and the index of a position in it.
    fn place(&self, output: usize, at: &[Index]) -> (BufId, Index) {
        let strides: Vec<i64> = self.problem.dims.iter().map(|d| d.output_strides[output]).collect();
        (self.output_buffer(output), Self::index(&strides, self.problem.outputs[output].origin, at))
    }

    /// Writes the outputs at a position.
    pub(super) fn store(&self, values: Vec<Expr>, at: &[Index]) -> Vec<Stmt> {
        let store = |(o, value): (usize, Expr)| {
            let (buf, index) = self.place(o, at);
            Stmt::Store { buf, index, value }
        };
        values.into_iter().enumerate().map(store).collect()
    }

    /// Gathers the lifted elements and selects among them.
    pub(super) fn select(&mut self, reducer: &Reducer, lift: &Def, what: &Selection, at: &[Index]) -> Vec<Stmt> {
        let dtype = lift.results[0].dtype();
        let (slice, mut body) = self.accumulate(&[cranefold_ir::Scalar::zero(dtype)], self.problem.count);
        body.extend(self.gather(0, at.to_vec(), Index::default(), &mut |this, at, index| {
            let elements = this.loads(at);
            let (mut stmts, values) = this.apply(lift, elements);
            stmts.extend(slice.set(index, values));
            stmts
        }));
        let types = what.results(dtype);
        let vars: Vec<_> = types.iter().map(|_| self.names.var()).collect();
        let state = vars.iter().zip(types).map(|(&var, dtype)| Expr::Var(var, dtype)).collect();
        body.push(Stmt::Select { vars, what: what.clone(), acc: slice.accs[0].0, len: self.problem.count });
        body.extend(self.finish(reducer, state, None, at));
        body
    }

    /// Loops over the elements of a slice, each with its place in it.
    fn gather(&mut self, dim: usize, at: Vec<Index>, index: Index, each: &mut EachElement<'p, '_>) -> Vec<Stmt> {
        let Some(d) = self.problem.dims.get(dim) else { return each(self, &at, &index) };
        if !d.reduced {
            return self.gather(dim + 1, at, index, each);
        }
        let extent = d.extent;
        self.repeat(Over::Position, extent, LoopKind::Parallel, |this, p| {
            let mut at = at;
            at[dim] = p.clone();
            this.gather(dim + 1, at, index.times(extent as i64).add(&p), each)
        })
    }
}
