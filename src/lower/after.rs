//! The statements after the reduction of a slice: finish, and the outputs at each of its positions.

use super::{At, Lowering, Place, Slice};
use crate::problem::{Dim, SliceWalk};
use cranefold_ir::ops::{Apply, Computation, Ending, Source, in_memory};
use cranefold_ir::{BufId, Def, Expr, Index, LoopKind, Over, Scalar, Selection, Stmt};

/// A function that makes the statements of a position in a slice.
type EachPosition<'p, 'f> = dyn FnMut(&mut Lowering<'p>, &At) -> Vec<Stmt> + 'f;

impl<'p> Lowering<'p> {
    /// The elements that are read beside the slice.
    pub(super) fn sources(&self, sources: &[Source], at: &At) -> Vec<Expr> {
        let element = |source: &Source| match *source {
            Source::Input(i) => self.load(i, at),
            Source::Old(o) => self.old(o, at),
        };
        sources.iter().map(element).collect()
    }

    fn old(&self, output: usize, at: &At) -> Expr {
        let dtype = in_memory(self.problem.outputs[output].dtype);
        match self.operands.outputs[output] {
            Place::Buffer(buffer) => Expr::Load(buffer, dtype, at.output(output)),
            Place::Scratch(acc) => Expr::Read(acc, dtype, at.output(output)),
        }
    }

    /// The statements and the results of a computation on values of the slice.
    pub(super) fn ending(&mut self, ending: &Ending, slice: &Slice, at: &At) -> (Vec<Stmt>, Vec<Expr>) {
        let args = slice.take(&ending.takes).into_iter().chain(self.sources(&ending.reads, at)).collect();
        self.apply(&ending.def, args)
    }

    /// Appends statements and returns the values that they compute: in accumulators of one element where loops follow,
    /// which are outside the scope of the statements' own.
    pub(super) fn held(
        &mut self,
        stmts: Vec<Stmt>,
        values: Vec<Expr>,
        loops_follow: bool,
        body: &mut Vec<Stmt>,
    ) -> Vec<Expr> {
        if !loops_follow {
            body.extend(stmts);
            return values;
        }
        let zeros: Vec<_> = values.iter().map(|v| Scalar::zero(v.dtype())).collect();
        let (held, accs) = self.accumulate(&zeros, 1);
        body.extend(accs);
        body.extend(stmts);
        body.extend(held.set(&Index::default(), values));
        held.read(&Index::default())
    }

    /// Writes the outputs of a slice and those at each of its positions.
    /// Where outputs at positions read what outputs of the slice held, these are written last.
    pub(super) fn outputs(&mut self, computation: &Computation, mut slice: Slice, at: &At) -> Vec<Stmt> {
        let mut last = vec![];
        match (&computation.outputs, &computation.apply) {
            (Some(outputs), apply) => {
                let (stmts, values) = self.ending(outputs, &slice, at);
                let stored = self.store(values, &outputs.results, at);
                slice.body.extend(stmts);
                match apply.as_ref().is_some_and(|apply| apply.old.iter().any(|o| outputs.results.contains(o))) {
                    true => last = stored,
                    false => slice.body.extend(stored),
                }
            }
            (None, None) => {
                let all: Vec<usize> = (0..slice.values.len()).collect();
                let values = slice.take(&all);
                slice.body.extend(self.store(values, &all, at));
            }
            (None, Some(_)) => {}
        }
        if let Some(apply) = computation.apply.as_ref().filter(|_| self.written_first.is_none()) {
            let values = slice.take(&apply.takes);
            let computed = self.begin_keeping(&apply.inputs, &mut slice);
            self.visit.computed = computed;
            let mut before = 0;
            for region in &self.problem.positions {
                let each = &mut |this: &mut Self, at: &At| this.output(apply, &values, at);
                let positions = self.positions(&region.dims, at.entering(&region.start, before), each);
                slice.body.extend(positions);
                before += region.positions();
            }
        }
        slice.body.extend(last);
        slice.body
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
    fn output(&mut self, apply: &Apply, values: &[Expr], at: &At) -> Vec<Stmt> {
        let (mut stmts, mut args) = self.elements(&apply.inputs, at);
        args.extend(apply.old.iter().map(|&o| self.old(o, at)));
        args.extend(values.iter().cloned());
        let (applied, values) = self.apply(&apply.def, args);
        stmts.extend(applied);
        stmts.extend(self.store(values, &apply.outputs, at));
        stmts
    }

    /// The first arguments of lifts, after statements that compute some, and the statements that write the outputs at the
    /// position if the visit does. A value that both need is computed once.
    pub(super) fn loads_and_stores(&mut self, at: &At) -> ((Vec<Stmt>, Vec<Expr>), Vec<Stmt>) {
        let computation = self.computation.clone().filter(|_| self.visit.writes);
        let Some(apply) = computation.as_ref().and_then(|computation| computation.apply.as_ref()) else {
            return (self.loads(at), vec![]);
        };
        let inputs = [&self.visit.inputs[..], &apply.inputs].concat();
        let (stmts, mut elements) = self.elements(&inputs, at);
        let args = elements.split_off(self.visit.inputs.len());
        let (mut stores, values) = self.apply(&apply.def, args);
        stores.extend(self.store(values, &apply.outputs, at));
        ((stmts, self.arguments(elements, at)), stores)
    }

    pub(super) fn output_buffer(&self, output: usize) -> BufId {
        BufId((self.problem.inputs.len() + output) as u32)
    }

    /// Writes outputs, by their numbers, at a position.
    pub(super) fn store(&self, values: Vec<Expr>, outputs: &[usize], at: &At) -> Vec<Stmt> {
        let store = |(value, &o): (Expr, &usize)| {
            let index = at.output(o);
            match self.operands.outputs[o] {
                Place::Buffer(buf) => Stmt::Store { buf, index, value },
                Place::Scratch(acc) => Stmt::Set { acc, index, value },
            }
        };
        values.into_iter().zip(outputs).map(store).collect()
    }

    /// Gathers the lifted elements and selects among them; returns the results.
    pub(super) fn select(&mut self, lift: &Def, what: &Selection, slice: &mut Slice, at: &At) -> Vec<Expr> {
        let dtype = lift.results[0].dtype();
        let (elements, mut body) = self.accumulate(&[Scalar::zero(dtype)], self.problem.count);
        let mut before = 0;
        for region in self.visit.boxes.clone() {
            body.extend(self.positions(&region.dims, at.entering(&region.start, before), &mut |this, at| {
                let (mut stmts, args) = this.loads(at);
                let (lifted, values) = this.apply(lift, args);
                stmts.extend(lifted);
                stmts.extend(elements.set(&at.element(), values));
                stmts
            }));
            before += region.positions();
        }
        let types = what.results(dtype);
        let vars: Vec<_> = types.iter().map(|_| self.names.var()).collect();
        let state = vars.iter().zip(types).map(|(&var, dtype)| Expr::Var(var, dtype)).collect();
        body.push(Stmt::Select { vars, what: what.clone(), acc: elements.accs[0].0, len: self.problem.count });
        slice.body.extend(body);
        state
    }

    /// Brings the elements of a slice into the order of their positions, once for all visits of a walk that read the same inputs.
    pub(super) fn gather(&mut self, number: usize, walk: &SliceWalk, slice: &mut Slice, at: &At) {
        let inputs = self.visit.inputs.clone();
        if let Some((.., gathered)) = self.gathered.iter().find(|(n, of, _)| (*n, of) == (number, &inputs)) {
            self.visit.gathered = Some(gathered.clone());
            return;
        }
        let problem = self.problem;
        let dtype =
            |i: usize| problem.inputs.get(i).map_or(problem.index_type(), |input| in_memory(input.operand.dtype));
        let zeros: Vec<_> = inputs.iter().map(|&i| Scalar::zero(dtype(i))).collect();
        let (elements, mut body) = self.accumulate(&zeros, problem.count);
        for region in &walk.elements {
            body.extend(self.positions(&region.dims, at.entering(&region.start, 0), &mut |this, at| {
                elements.set(&at.position(), inputs.iter().map(|&i| this.load(i, at)).collect())
            }));
        }
        slice.body.extend(body);
        self.gathered.push((number, inputs, elements.clone()));
        self.visit.gathered = Some(elements);
    }
}
