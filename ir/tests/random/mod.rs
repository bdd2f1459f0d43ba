//! Random nests that are well typed, so that they parse; most break rules of the verifier.

use cranefold_ir::*;
use proptest::prelude::*;

/// Numbers that a proptest strategy drew, handed out one by one; zeros when they run out, so that
/// every choice made of them comes to an end.
struct Choices(std::vec::IntoIter<u64>);

impl Choices {
    fn below(&mut self, n: usize) -> usize {
        (self.0.next().unwrap_or(0) % n as u64) as usize
    }

    fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    fn number(&mut self) -> u64 {
        self.0.next().unwrap_or(0)
    }
}

/// What is in scope.
#[derive(Clone, Default)]
struct Scope {
    vars: Vec<(Var, DType)>,
    accs: Vec<(AccId, DType)>,
    carries: Vec<LoopVar>,
}

pub fn nest() -> impl Strategy<Value = Nest> {
    (any::<String>(), prop::collection::vec(any::<u64>(), 0..600)).prop_map(|(name, numbers)| {
        let mut choices = Choices(numbers.into_iter());
        Generator::new(&mut choices, name).nest()
    })
}

struct Generator<'a> {
    choices: &'a mut Choices,
    nest: Nest,
    next_id: u32,
}

impl<'a> Generator<'a> {
    fn new(choices: &'a mut Choices, name: String) -> Generator<'a> {
        Generator { choices, nest: Nest { name, buffers: vec![], defs: vec![], body: vec![] }, next_id: 0 }
    }

    fn nest(mut self) -> Nest {
        for _ in 0..self.choices.below(4) {
            let role = self.choices.of(&BufferRole::ALL);
            let buffer = Buffer { role, dtype: self.choices.of(&DType::ALL), len: self.choices.number() };
            self.nest.buffers.push(buffer);
        }
        for i in 0..self.choices.below(4) {
            let def = self.def(i);
            self.nest.defs.push(def);
        }
        self.nest.body = self.body(&mut Scope::default(), 0);
        self.nest
    }

    fn def(&mut self, i: usize) -> Def {
        let name = self.choices.of(&["merge", "for", "v0", "inf", "exp.f32", "_x.1.y_"]);
        let params: Vec<DType> = (0..self.choices.below(4)).map(|_| self.choices.of(&DType::ALL)).collect();
        let mut vars: Vec<(Var, DType)> = (0..).map(Var).zip(params.iter().copied()).collect();
        let mut lets = vec![];
        for _ in 0..self.choices.below(3) {
            let value = self.expr(&Scope { vars: vars.clone(), ..Scope::default() }, 0, true);
            vars.push((Var(vars.len() as u32), value.dtype()));
            lets.push(value);
        }
        let scope = Scope { vars, ..Scope::default() };
        let results = (0..1 + self.choices.below(3)).map(|_| self.expr(&scope, 0, true)).collect();
        Def { name: format!("{name}{i}"), params, lets, results }
    }

    fn body(&mut self, scope: &mut Scope, depth: usize) -> Vec<Stmt> {
        (0..self.choices.below(5)).map(|_| self.stmt(scope, depth)).collect()
    }

    fn stmt(&mut self, scope: &mut Scope, depth: usize) -> Stmt {
        self.next_id += 1;
        let id = self.next_id;
        let def = |c: &mut Choices, nest: &Nest| DefId(c.below(nest.defs.len()) as u32);
        match self.choices.below(16) {
            0 | 1 if depth < 5 => {
                let extent = match scope.carries.as_slice() {
                    [] if self.choices.below(4) == 0 => Extent::From(self.loop_var(), self.choices.number()),
                    [] if self.choices.below(4) == 0 => Extent::Below(self.loop_var(), self.choices.number()),
                    [] => Extent::Const(self.choices.number()),
                    carries => Extent::Carry(self.choices.of(carries)),
                };
                let kind = self.choices.of(&[LoopKind::Parallel, LoopKind::Seq, LoopKind::Lanes]);
                let body = self.body(&mut scope.clone(), depth + 1);
                Stmt::For(Loop { var: self.loop_var(), extent, kind, body })
            }
            10 if depth < 5 => Stmt::Wide { body: self.body(&mut scope.clone(), depth + 1) },
            2 => {
                let dtype = self.choices.of(&DType::ALL);
                scope.accs.push((AccId(id), dtype));
                Stmt::Acc { acc: AccId(id), dtype, len: self.choices.number(), init: self.scalar(dtype) }
            }
            3 if !self.nest.defs.is_empty() => {
                let def = def(self.choices, &self.nest);
                let args = self.nest.def(def).params.clone().iter().map(|_| self.expr(scope, 0, false)).collect();
                let mut vars = vec![];
                for (i, result) in self.nest.def(def).results.iter().enumerate() {
                    let var = Var(1000 + 10 * id + i as u32);
                    scope.vars.push((var, result.dtype()));
                    vars.push(var);
                }
                Stmt::Call { vars, def, args }
            }
            4 if !scope.accs.is_empty() => {
                let (acc, _) = self.choices.of(&scope.accs);
                Stmt::Set { acc, index: self.index(), value: self.expr(scope, 0, false) }
            }
            5 => {
                let buf = BufId(self.choices.below(9) as u32);
                Stmt::Store { buf, index: self.index(), value: self.expr(scope, 0, false) }
            }
            6 => {
                let var = self.loop_var();
                scope.carries.push(var);
                Stmt::Carry { var, of: self.index() }
            }
            11 => {
                let value = self.expr(scope, 0, false);
                Stmt::Pick { var: self.loop_var(), value, most: self.choices.number() }
            }
            13 => {
                let (buf, lanes) = (BufId(self.choices.below(9) as u32), self.choices.number());
                Stmt::Misalign { var: self.loop_var(), buf, index: self.index(), lanes }
            }
            14 => {
                let start = u64::from(u32::MAX).min(self.choices.number());
                let len = u64::from(u32::MAX).min(self.choices.number());
                Stmt::Rotate { acc: AccId(self.choices.below(9) as u32), start, len, by: self.loop_var() }
            }
            12 => {
                let (buf, far) = (BufId(self.choices.below(9) as u32), self.choices.below(2) == 1);
                Stmt::Prefetch { buf, index: self.index(), far }
            }
            7 if !self.nest.defs.is_empty() => {
                let def = def(self.choices, &self.nest);
                let accs = (0..=self.choices.below(3)).map(|i| AccId(i as u32)).collect();
                let [m, n, elems] = [(); 3].map(|()| self.choices.number());
                match self.choices.below(2) {
                    0 => Stmt::Merge { accs, def, blocks: m, elems },
                    _ => Stmt::Fold { accs, def, present: m, lanes: n, elems },
                }
            }
            8 if !scope.accs.is_empty() => {
                let (acc, dtype) = self.choices.of(&scope.accs);
                let what = match self.choices.below(4) {
                    0 => Selection::Mode,
                    n => Selection::Nth((0..n).map(|_| self.choices.number()).collect()),
                };
                let mut vars = vec![];
                for (i, result) in (0..).zip(what.results(dtype)) {
                    let var = Var(1000 + 10 * id + i);
                    scope.vars.push((var, result));
                    vars.push(var);
                }
                Stmt::Select { vars, what, acc, len: self.choices.number() }
            }
            15 if !scope.accs.is_empty() && !self.nest.buffers.is_empty() => {
                let (acc, _) = self.choices.of(&scope.accs);
                let columns = (0..=self.choices.below(3)).map(|_| self.choices.number()).collect();
                let stride = self.choices.number() as i64;
                let is_store = self.choices.below(2) == 0;
                let runs = self.choices.of(&[1, 1, 0, 2, 1 << 40]);
                let transpose = Transpose {
                    acc,
                    buf: BufId(self.choices.below(self.nest.buffers.len()) as u32),
                    first: self.index(),
                    lanes: self.choices.number(),
                    stride: self.choices.of(&[stride.max(-i64::MAX), 3, -3]),
                    runs,
                    run_stride: if runs == 1 { 0 } else { self.choices.of(&[24, 5, -7, i64::MAX]) },
                    columns,
                    within: if is_store { 0 } else { self.choices.of(&[0, 12, u64::MAX]) },
                };
                if is_store { Stmt::TransposedStore(transpose) } else { Stmt::Transpose(transpose) }
            }
            _ => {
                let value = self.expr(scope, 0, false);
                scope.vars.push((Var(id), value.dtype()));
                Stmt::Let { var: Var(id), value }
            }
        }
    }

    fn loop_var(&mut self) -> LoopVar {
        let (over, _) = self.choices.of(&Over::LETTERS);
        LoopVar { over, id: self.choices.of(&[0, 1, 2, u32::MAX]) }
    }

    fn index(&mut self) -> Index {
        let coefficient = |c: &mut Choices| {
            let any = c.number() as i64;
            c.of(&[1, -1, 64, -3, i64::MAX, i64::MIN, any])
        };
        let mut index = Index::constant(coefficient(self.choices));
        for _ in 0..self.choices.below(4) {
            let var = self.loop_var();
            if index.coefficient(var) == 0 {
                index = index.plus(var, coefficient(self.choices));
            }
        }
        index
    }

    fn scalar(&mut self, dtype: DType) -> Scalar {
        let bits = self.choices.number();
        // Small values and high bits, so that subnormals, infinities and NaNs occur.
        let shift = self.choices.of(&[0, 32, 48, 56]);
        let bits = self.choices.of(&[bits, bits >> shift, !0 << (dtype.bits() - 1), 0x7f80_0001, 0x7c01, 0xff81]);
        Scalar::from_bits(dtype, bits)
    }

    fn leaf(&mut self, scope: &Scope, in_def: bool) -> Expr {
        match self.choices.below(4) {
            0 if !scope.vars.is_empty() => {
                let (var, dtype) = self.choices.of(&scope.vars);
                Expr::Var(var, dtype)
            }
            1 if !in_def && !self.nest.buffers.is_empty() => {
                let i = self.choices.below(self.nest.buffers.len());
                Expr::Load(BufId(i as u32), self.nest.buffers[i].dtype, self.index())
            }
            2 if !scope.accs.is_empty() => {
                let (acc, dtype) = self.choices.of(&scope.accs);
                Expr::Read(acc, dtype, self.index())
            }
            _ => {
                let dtype = self.choices.of(&DType::ALL);
                Expr::Const(self.scalar(dtype))
            }
        }
    }

    fn expr(&mut self, scope: &Scope, depth: usize, in_def: bool) -> Expr {
        if depth > 4 || self.choices.below(3) == 0 {
            return self.leaf(scope, in_def);
        }
        let simple: Vec<DefId> = (0u32..)
            .map(DefId)
            .zip(&self.nest.defs)
            .filter(|(_, d)| !in_def && d.results.len() == 1)
            .map(|(id, _)| id)
            .collect();
        if !simple.is_empty() && self.choices.below(3) == 0 {
            let id = self.choices.of(&simple);
            let n = self.choices.below(3);
            let args = (0..n).map(|_| self.expr(scope, depth + 1, in_def)).collect();
            return Expr::Call(id, self.nest.def(id).results[0].dtype(), args);
        }
        let op = self.choices.of(&Op::ALL);
        let first = self.expr(scope, depth + 1, in_def);
        let other = self.scalar(first.dtype());
        let args = match op {
            Op::Select => vec![Expr::Const(Scalar::bool(true)), other.into(), first],
            _ if op.arity() == 1 => vec![first],
            _ if op.arity() == 2 => vec![first, other.into()],
            _ => vec![other.into(), first, other.into()],
        };
        let types: Vec<DType> = args.iter().map(Expr::dtype).collect();
        let start = self.choices.below(DType::ALL.len());
        let result = (0..DType::ALL.len()).map(|i| DType::ALL[(start + i) % DType::ALL.len()]);
        match result.into_iter().find(|&d| op.accepts(d, &types)) {
            Some(result) => Expr::Op(op, result, args),
            None => self.leaf(scope, in_def),
        }
    }
}
