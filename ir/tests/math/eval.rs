//! Evaluates a definition on many inputs at once, one operation at a time over a block of values.

use cranefold_ir::{DType, Def, Expr, Op, Scalar};

/// How many inputs one block holds.
pub const BLOCK: usize = 1024;

/// A definition as a list of operations on columns of bits.
pub struct Program {
    steps: Vec<Step>,
    columns: Vec<Vec<u64>>,
    params: usize,
    results: Vec<usize>,
}

struct Step {
    op: Op,
    dtype: DType,
    /// Type of the first operand.
    of: DType,
    args: Vec<usize>,
    to: usize,
}

impl Program {
    pub fn new(def: &Def) -> Program {
        let mut p = Program { steps: vec![], columns: vec![], params: def.params.len(), results: vec![] };
        let mut vars: Vec<usize> = def.params.iter().map(|_| p.column(0)).collect();
        for value in &def.lets {
            let at = p.add(value, &vars);
            vars.push(at);
        }
        p.results = def.results.iter().map(|r| p.add(r, &vars)).collect();
        p
    }

    /// How many operations there are, not counting those that only change a value's type.
    pub fn ops(&self) -> usize {
        self.steps.iter().filter(|s| s.op != Op::Bits).count()
    }

    fn column(&mut self, value: u64) -> usize {
        self.columns.push(vec![value; BLOCK]);
        self.columns.len() - 1
    }

    fn add(&mut self, e: &Expr, vars: &[usize]) -> usize {
        match e {
            Expr::Const(s) => self.column(s.bits()),
            Expr::Var(v, _) => vars[v.0 as usize],
            Expr::Op(op, dtype, args) => {
                let of = args[0].dtype();
                let args = args.iter().map(|a| self.add(a, vars)).collect();
                let to = self.column(0);
                self.steps.push(Step { op: *op, dtype: *dtype, of, args, to });
                to
            }
            other => panic!("{other:?} in a definition"),
        }
    }

    /// Evaluates at most `BLOCK` inputs; `inputs[i][k]` are the bits of parameter `i` of input `k`.
    pub fn run(&mut self, inputs: &[&[u64]]) {
        assert_eq!(inputs.len(), self.params);
        for (column, input) in self.columns.iter_mut().zip(inputs) {
            column[..input.len()].copy_from_slice(input);
        }
        for s in &self.steps {
            let mut out = std::mem::take(&mut self.columns[s.to]);
            let a = |i: usize| self.columns[s.args[i]].as_slice();
            step(s, &mut out, &a);
            self.columns[s.to] = out;
        }
    }

    /// The bits of result `i` of the last run.
    pub fn result(&self, i: usize) -> &[u64] {
        &self.columns[self.results[i]]
    }
}

/// Evaluates one set of arguments with `Op::eval` alone, the definition of the operations.
pub fn eval(def: &Def, args: &[Scalar]) -> Vec<Scalar> {
    fn go(e: &Expr, vars: &[Scalar]) -> Scalar {
        match e {
            Expr::Const(s) => *s,
            Expr::Var(v, _) => vars[v.0 as usize],
            Expr::Op(op, d, args) => op.eval(*d, &args.iter().map(|a| go(a, vars)).collect::<Vec<_>>()),
            other => panic!("{other:?} in a definition"),
        }
    }
    assert_eq!(def.params, args.iter().map(|a| a.dtype()).collect::<Vec<_>>());
    let mut vars = args.to_vec();
    for value in &def.lets {
        vars.push(go(value, &vars));
    }
    def.results.iter().map(|r| go(r, &vars)).collect()
}

/// `eval` of a definition with one result.
pub fn eval1(def: &Def, args: &[Scalar]) -> Scalar {
    eval(def, args)[0]
}

fn map1<'a>(out: &mut [u64], a: &dyn Fn(usize) -> &'a [u64], f: impl Fn(u64) -> u64) {
    out.iter_mut().zip(a(0)).for_each(|(o, &x)| *o = f(x));
}

fn map2<'a>(out: &mut [u64], a: &dyn Fn(usize) -> &'a [u64], f: impl Fn(u64, u64) -> u64) {
    out.iter_mut().zip(a(0)).zip(a(1)).for_each(|((o, &x), &y)| *o = f(x, y));
}

fn map3<'a>(out: &mut [u64], a: &dyn Fn(usize) -> &'a [u64], f: impl Fn(u64, u64, u64) -> u64) {
    out.iter_mut().zip(a(0)).zip(a(1)).zip(a(2)).for_each(|(((o, &x), &y), &z)| *o = f(x, y, z));
}

/// The float operations for one type; the last arm is `$else`.
macro_rules! floats {
    ($op:expr, $out:expr, $a:expr, $float:ty, $uint:ty, $else:expr) => {{
        let f = |x: u64| <$float>::from_bits(x as $uint);
        let b = |x: $float| u64::from(x.to_bits());
        match $op {
            Op::Add => map2($out, $a, |x, y| b(f(x) + f(y))),
            Op::Sub => map2($out, $a, |x, y| b(f(x) - f(y))),
            Op::Mul => map2($out, $a, |x, y| b(f(x) * f(y))),
            Op::Div => map2($out, $a, |x, y| b(f(x) / f(y))),
            Op::Lt => map2($out, $a, |x, y| u64::from(f(x) < f(y))),
            Op::Le => map2($out, $a, |x, y| u64::from(f(x) <= f(y))),
            Op::Eq => map2($out, $a, |x, y| u64::from(f(x) == f(y))),
            Op::Ne => map2($out, $a, |x, y| u64::from(f(x) != f(y))),
            Op::Fma => map3($out, $a, |x, y, z| b(f(x).mul_add(f(y), f(z)))),
            Op::Abs => map1($out, $a, |x| b(f(x).abs())),
            Op::Neg => map1($out, $a, |x| b(-f(x))),
            _ => $else,
        }
    }};
}

fn step<'a>(s: &Step, out: &mut [u64], a: &dyn Fn(usize) -> &'a [u64]) {
    let slow = |out: &mut [u64]| {
        let types: Vec<DType> = match s.op {
            Op::Select => vec![DType::Bool, s.dtype, s.dtype],
            _ => vec![s.of; s.args.len()],
        };
        for (k, o) in out.iter_mut().enumerate() {
            let args: Vec<Scalar> = types.iter().enumerate().map(|(i, &d)| Scalar::from_bits(d, a(i)[k])).collect();
            *o = s.op.eval(s.dtype, &args).bits();
        }
    };
    let mask = u64::MAX >> (64 - s.of.bits());
    let unsigned = matches!(s.of, DType::U16 | DType::U32 | DType::U64);
    let amount = u64::from(s.of.bits() - 1);
    match (s.op, s.of, s.dtype) {
        (Op::Select, ..) => map3(out, a, |c, x, y| if c != 0 { x } else { y }),
        (Op::Bits, ..) => map1(out, a, |x| x),
        (Op::Cast, DType::F32, DType::F64) => map1(out, a, |x| f64::from(f32::from_bits(x as u32)).to_bits()),
        (Op::Cast, DType::F64, DType::F32) => map1(out, a, |x| u64::from((f64::from_bits(x) as f32).to_bits())),
        (Op::Cast, _, DType::U16 | DType::U32 | DType::U64) if unsigned => {
            let to = u64::MAX >> (64 - s.dtype.bits());
            map1(out, a, |x| x & to);
        }
        (op, DType::F32, _) => floats!(op, out, a, f32, u32, slow(out)),
        (op, DType::F64, _) => floats!(op, out, a, f64, u64, slow(out)),
        (Op::And, ..) => map2(out, a, |x, y| x & y),
        (Op::Or, ..) => map2(out, a, |x, y| x | y),
        (Op::Xor, ..) => map2(out, a, |x, y| x ^ y),
        (Op::Add, ..) => map2(out, a, |x, y| x.wrapping_add(y) & mask),
        (Op::Sub, ..) => map2(out, a, |x, y| x.wrapping_sub(y) & mask),
        (Op::Shl, ..) => map2(out, a, |x, y| (x << (y & amount)) & mask),
        (Op::Shr, ..) if unsigned => map2(out, a, |x, y| x >> (y & amount)),
        (Op::Min, ..) if unsigned => map2(out, a, |x, y| x.min(y)),
        (Op::Lt, ..) if unsigned => map2(out, a, |x, y| u64::from(x < y)),
        (Op::Shr, DType::I32, _) => map2(out, a, |x, y| u64::from(((x as i32) >> (y & amount)) as u32)),
        (Op::Shr, DType::I64, _) => map2(out, a, |x, y| ((x as i64) >> (y & amount)) as u64),
        _ => slow(out),
    }
}
