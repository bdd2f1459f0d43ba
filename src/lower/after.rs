//! The statements after the reduction of a slice: finish, and the outputs at each of its positions.

use super::{At, Lowering, State};
use crate::problem::Dim;
use crate::problem::tree::Tree;
use cranefold_ir::ops::{Apply, Phase, Reducer, Source, in_memory};
use cranefold_ir::{BufId, Def, Expr, Index, LoopKind, Over, Scalar, Selection, Stmt};

/// A function that makes the statements of a position in a slice.
type EachPosition<'p, 'f> = dyn FnMut(&mut Lowering<'p>, &At) -> Vec<Stmt> + 'f;

/// The lifted values of a slice of one block, for the outputs at each position, in the order of the box.
pub(super) struct Kept {
    /// The phase of the values.
    pub phase: usize,
    pub state: State,
}

impl<'p> Lowering<'p> {
    /// Accumulators for the lifted values that outputs at each position read, if the slice is one block.
    pub(super) fn keep(&mut self, reducer: &Reducer, phases: &[Phase], tree: &Tree) -> (Option<Kept>, Vec<Stmt>) {
        let Some(phase) = reducer.apply.as_ref().and_then(|a| a.lifted) else { return (None, vec![]) };
        // The positions of the outputs must be those of the reduction.
        let alike = |(e, p): (&Dim, &Dim)| {
            let mut mapped = self.problem.inputs.iter().zip(&e.stride.inputs).zip(&p.stride.inputs);
            e.extent == p.extent && mapped.all(|((input, e), p)| !input.mapped || e == p)
        };
        let same = match (&self.problem.elements[..], &self.problem.positions[..]) {
            ([e], [p]) => e.dims.len() == p.dims.len() && e.dims.iter().zip(&p.dims).all(alike),
            _ => false,
        };
        if tree.blocks() > 1 || !same {
            return (None, vec![]);
        }
        let (state, stmts) = self.accumulate(&phases[phase].identity, self.problem.count);
        (Some(Kept { phase, state }), stmts)
    }

    /// Finishes a state and writes the outputs.
    pub(super) fn finish(&mut self, reducer: &Reducer, state: Vec<Expr>, kept: Option<&Kept>, at: &At) -> Vec<Stmt> {
        let mut args = state;
        for source in &reducer.reads {
            args.push(match *source {
                Source::Input(i) => self.load(i, at),
                Source::Old(o) => {
                    Expr::Load(self.output_buffer(o), in_memory(self.problem.outputs[o].dtype), at.output(o))
                }
            });
        }
        let (mut stmts, values) = self.apply(&reducer.finish, args);
        let Some(apply) = &reducer.apply else {
            stmts.extend(self.store(values, at));
            return stmts;
        };
        // The values go into accumulators, because the loops over positions are outside their scope.
        let zeros: Vec<_> = values.iter().map(|v| cranefold_ir::Scalar::zero(v.dtype())).collect();
        let (results, accs) = self.accumulate(&zeros, 1);
        let mut body = accs;
        body.extend(stmts);
        body.extend(results.set(&Index::default(), values));
        let results = results.read(&Index::default());
        for region in &self.problem.positions {
            let each = &mut |this: &mut Self, at: &At| this.output(reducer, apply, &results, kept, at);
            body.extend(self.positions(&region.dims, at.entering(&region.start), each));
        }
        body
    }

    /// Loops over the positions in the dims of a box.
    fn positions(&mut self, dims: &[Dim], at: At, each: &mut EachPosition<'p, '_>) -> Vec<Stmt> {
        let Some((d, dims)) = dims.split_first() else { return each(self, &at) };
        let inner = dims.iter().map(|d| d.extent).product();
        self.repeat(Over::Position, d.extent, LoopKind::Parallel, |this, p| {
            this.positions(dims, at.along(&d.stride, inner, &p), each)
        })
    }

    /// The statements of the outputs at one position of the slice.
    fn output(
        &mut self,
        reducer: &Reducer,
        apply: &Apply,
        results: &[Expr],
        kept: Option<&Kept>,
        at: &At,
    ) -> Vec<Stmt> {
        let mut args: Vec<Expr> = apply.inputs.iter().map(|&i| self.load(i, at)).collect();
        let mut stmts = vec![];
        if let Some(phase) = apply.lifted {
            match kept {
                Some(kept) => args.extend(kept.state.read(&at.element())),
                None => {
                    let lift = &reducer.method.phases()[phase].lift;
                    let mapped = self.problem.types().mapped;
                    let mut lifted: Vec<Expr> = mapped.iter().map(|&i| self.load(i, at)).collect();
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
        stmts.extend(self.store(values, at));
        stmts
    }

    pub(super) fn output_buffer(&self, output: usize) -> BufId {
        BufId((self.problem.inputs.len() + output) as u32)
    }

    /// Writes the outputs at a position.
    pub(super) fn store(&self, values: Vec<Expr>, at: &At) -> Vec<Stmt> {
        let store = |(o, value)| Stmt::Store { buf: self.output_buffer(o), index: at.output(o), value };
        values.into_iter().enumerate().map(store).collect()
    }

    /// Gathers the lifted elements and selects among them.
    pub(super) fn select(&mut self, reducer: &Reducer, lift: &Def, what: &Selection, at: &At) -> Vec<Stmt> {
        let dtype = lift.results[0].dtype();
        let (slice, mut body) = self.accumulate(&[Scalar::zero(dtype)], self.problem.count);
        let mut before = 0;
        for region in self.boxes.clone() {
            body.extend(self.positions(&region.dims, at.entering(&region.start), &mut |this, at| {
                let elements = this.loads(at);
                let (mut stmts, values) = this.apply(lift, elements);
                stmts.extend(slice.set(&at.element().offset_by(before), values));
                stmts
            }));
            before += region.positions() as i64;
        }
        let types = what.results(dtype);
        let vars: Vec<_> = types.iter().map(|_| self.names.var()).collect();
        let state = vars.iter().zip(types).map(|(&var, dtype)| Expr::Var(var, dtype)).collect();
        body.push(Stmt::Select { vars, what: what.clone(), acc: slice.accs[0].0, len: self.problem.count });
        body.extend(self.finish(reducer, state, None, at));
        body
    }

    /// Brings the elements of a slice into order.
    pub(super) fn gather(&mut self, at: &At) -> Vec<Stmt> {
        let problem = self.problem;
        let mapped = problem.types().mapped;
        let zeros = mapped.iter().map(|&i| Scalar::zero(in_memory(problem.inputs[i].operand.dtype)));
        let (slice, mut body) = self.accumulate(&zeros.collect::<Vec<_>>(), problem.count);
        for region in &problem.elements {
            body.extend(self.positions(&region.dims, at.entering(&region.start), &mut |this, at| {
                slice.set(&at.position(), mapped.iter().map(|&i| this.load(i, at)).collect())
            }));
        }
        self.gathered = Some(slice);
        body
    }
}
