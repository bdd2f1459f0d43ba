//! Nest expressions and the definitions they call.
//!
//! A nest expression is scalar. It is evaluated once for each iteration of the loops around it; inside
//! a `lanes` loop its value is a vector.

#![warn(clippy::wildcard_enum_match_arm)]

use crate::{AccId, BufId, DType, DefId, Index, Op, Scalar, Var};
use smallvec::SmallVec;

/// A typed nest expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expr {
    /// A constant.
    Const(Scalar),
    /// A value bound by `let`, or a parameter of a definition.
    Var(Var, DType),
    /// An element of a buffer.
    Load(BufId, DType, Index),
    /// An element of an accumulator.
    Read(AccId, DType, Index),
    /// The value of an index, as an integer of this type.
    At(DType, Index),
    /// An operation, with the type of its result.
    Op(Op, DType, Vec<Expr>),
    /// A call of a definition with one result, of this type.
    Call(DefId, DType, Vec<Expr>),
}

impl Expr {
    /// The type of the value.
    pub fn dtype(&self) -> DType {
        match self {
            Expr::Const(s) => s.dtype(),
            Expr::Var(_, d) | Expr::Load(_, d, _) | Expr::Read(_, d, _) | Expr::At(d, _) => *d,
            Expr::Op(_, d, _) | Expr::Call(_, d, _) => *d,
        }
    }

    /// The operands, in order.
    pub fn args(&self) -> &[Expr] {
        match self {
            Expr::Op(_, _, args) | Expr::Call(_, _, args) => args,
            Expr::Const(_) | Expr::Var(..) | Expr::Load(..) | Expr::Read(..) | Expr::At(..) => &[],
        }
    }

    /// The expression with `f` applied to it and, before that, to all its operands.
    pub fn rewrite(self, f: &mut impl FnMut(Expr) -> Expr) -> Expr {
        let mut all = |args: Vec<Expr>| args.into_iter().map(|a| a.rewrite(f)).collect();
        let whole = match self {
            Expr::Op(op, d, args) => Expr::Op(op, d, all(args)),
            Expr::Call(def, d, args) => Expr::Call(def, d, all(args)),
            leaf @ (Expr::Const(_) | Expr::Var(..) | Expr::Load(..) | Expr::Read(..) | Expr::At(..)) => leaf,
        };
        f(whole)
    }

    /// Calls `f` on all operands below the expression, innermost first, and then on it, to change them.
    pub fn each_mut(&mut self, f: &mut impl FnMut(&mut Expr)) {
        if let Expr::Op(_, _, args) | Expr::Call(_, _, args) = self {
            args.iter_mut().for_each(|arg| arg.each_mut(f));
        }
        f(self);
    }

    /// Calls `f` on every index in the expression, to change it.
    pub fn each_index_mut(&mut self, f: &mut impl FnMut(&mut Index)) {
        match self {
            Expr::Load(_, _, index) | Expr::Read(_, _, index) | Expr::At(_, index) => f(index),
            Expr::Op(_, _, args) | Expr::Call(_, _, args) => args.iter_mut().for_each(|arg| arg.each_index_mut(f)),
            Expr::Const(_) | Expr::Var(..) => {}
        }
    }

    /// The expression of a definition with `values` in place of its parameters and bound values.
    pub fn with_vars(self, values: &[Expr]) -> Expr {
        self.rewrite(&mut |e| match e {
            Expr::Var(v, _) => values[v.0 as usize].clone(),
            Expr::Const(_) | Expr::Load(..) | Expr::Read(..) | Expr::At(..) | Expr::Op(..) | Expr::Call(..) => e,
        })
    }

    /// Calls `f` on the expression and on all operands below it.
    pub fn visit<'a>(&'a self, f: &mut impl FnMut(&'a Expr)) {
        f(self);
        self.args().iter().for_each(|a| a.visit(f));
    }

    /// An operation whose result has the type of its last operand, or `bool` for a comparison.
    ///
    /// # Panics
    /// If the operation does not accept the operands' types.
    pub fn op(op: Op, args: Vec<Expr>) -> Expr {
        let is_comparison = matches!(op, Op::Eq | Op::Ne | Op::Lt | Op::Le);
        let result = if is_comparison { DType::Bool } else { args.last().expect("operands").dtype() };
        Expr::typed(op, result, args)
    }

    /// An operation with a given result type.
    ///
    /// # Panics
    /// If the operation does not accept the types.
    pub fn typed(op: Op, result: DType, args: Vec<Expr>) -> Expr {
        let types: SmallVec<[DType; 3]> = args.iter().map(Expr::dtype).collect();
        assert!(op.accepts(result, &types), "{} does not take {types:?} to {result}", op.name());
        Expr::Op(op, result, args)
    }

    /// Conversion to `dtype`; the expression itself where it has that type.
    pub fn cast(self, dtype: DType) -> Expr {
        if self.dtype() == dtype { self } else { Expr::typed(Op::Cast, dtype, vec![self]) }
    }

    /// The same bits read as `dtype`; the expression itself where it has that type.
    pub fn bits(self, dtype: DType) -> Expr {
        if self.dtype() == dtype { self } else { Expr::typed(Op::Bits, dtype, vec![self]) }
    }

    /// `if self then yes else no`; both are evaluated.
    pub fn select(self, yes: Expr, no: Expr) -> Expr {
        Expr::op(Op::Select, vec![self, yes, no])
    }

    /// `self * b + c`, rounded once.
    pub fn fma(self, b: Expr, c: Expr) -> Expr {
        Expr::op(Op::Fma, vec![self, b, c])
    }

    /// A float constant of the type of `self`.
    pub fn float(&self, value: f64) -> Expr {
        Expr::Const(Scalar::float(self.dtype(), value))
    }

    /// An integer constant of the type of `self`.
    pub fn int(&self, value: i128) -> Expr {
        Expr::Const(Scalar::int(self.dtype(), value))
    }

    /// The condition that this is a NaN.
    pub fn is_nan(self) -> Expr {
        self.clone().ne(self)
    }
}

impl From<Scalar> for Expr {
    fn from(s: Scalar) -> Expr {
        Expr::Const(s)
    }
}

/// Makes a method for each operation, of its name.
macro_rules! methods {
    (unary $($unary:ident $uop:ident)*; binary $($binary:ident $bop:ident)*) => {
        #[allow(clippy::should_implement_trait, missing_docs, reason = "named as the operations of the `op` module")]
        impl Expr {
            $(pub fn $unary(self) -> Expr { Expr::op(Op::$uop, vec![self]) })*
            $(pub fn $binary(self, other: Expr) -> Expr { Expr::op(Op::$bop, vec![self, other]) })*
        }
    };
}

methods! {
    unary neg Neg abs Abs sqrt Sqrt nearest Nearest not Not clz Clz;
    binary add Add sub Sub mul Mul mul_high MulHigh div Div scale Scale scale_down ScaleDown min Min max Max and And or Or xor Xor shl Shl shr Shr
        eq Eq ne Ne lt Lt le Le
}

/// A named sequence of nest expressions with parameters and one or more results.
///
/// Lift, combine and finish of a reducer are definitions, and so are `exp` and the sequences that
/// stand for operations a target lacks. A call means its body with the arguments in place of the
/// parameters, lane by lane in a `lanes` loop. A definition calls no other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Def {
    /// The name, unique in a nest: a word, then optionally a dot and the types it is for.
    pub name: String,
    /// The parameters' types; parameter `i` is `Var(i)`.
    pub params: Vec<DType>,
    /// Values bound in order; the first is `Var(params.len())`, and so on.
    pub lets: Vec<Expr>,
    /// The results.
    pub results: Vec<Expr>,
}

impl Def {
    /// Builds a definition: `body` gets a place to bind values and the parameters, and returns the results.
    pub fn build(name: impl Into<String>, params: &[DType], body: impl FnOnce(&mut Lets, &[Expr]) -> Vec<Expr>) -> Def {
        let args: Vec<Expr> = params.iter().enumerate().map(|(i, &d)| Expr::Var(Var(i as u32), d)).collect();
        let mut lets = Lets { first: params.len() as u32, exprs: Vec::new() };
        let results = body(&mut lets, &args);
        Def { name: name.into(), params: params.to_vec(), lets: lets.exprs, results }
    }

    /// Returns true if the other definition differs in its name at most.
    pub fn does_the_same(&self, other: &Def) -> bool {
        (&self.params, &self.lets, &self.results) == (&other.params, &other.lets, &other.results)
    }

    /// Returns true if no result depends on a parameter: it is unused, or only the third operand of [`Op::DivBy`].
    pub fn is_hint(&self, parameter: usize) -> bool {
        let is_it = |e: &Expr| matches!(e, Expr::Var(v, _) if v.0 as usize == parameter);
        let (mut uses, mut hints) = (0, 0);
        self.lets.iter().chain(&self.results).for_each(|e| {
            e.visit(&mut |e| {
                uses += usize::from(is_it(e));
                hints += usize::from(matches!(e, Expr::Op(Op::DivBy, _, args) if is_it(&args[2])));
            })
        });
        uses == hints
    }

    /// Returns true if inlining a call repeats no operation: one result, no values bound, and each parameter
    /// used at most once.
    pub fn is_simple(&self) -> bool {
        if !self.lets.is_empty() || self.results.len() != 1 {
            return false;
        }
        let mut uses: SmallVec<[u32; 8]> = SmallVec::from_elem(0, self.params.len());
        for result in &self.results {
            result.visit(&mut |e| {
                if let Expr::Var(v, _) = e {
                    uses[v.0 as usize] += 1;
                }
            });
        }
        uses.iter().all(|&n| n <= 1)
    }

    /// The result of a simple definition with `args` in place of the parameters.
    pub fn inline(&self, args: &[Expr]) -> Expr {
        debug_assert!(self.is_simple());
        self.results[0].clone().with_vars(args)
    }
}

/// The values bound so far in a definition being built.
#[derive(Debug)]
pub struct Lets {
    first: u32,
    exprs: Vec<Expr>,
}

impl Lets {
    /// Binds a value, so that it is computed once however often it is used.
    pub fn bind(&mut self, value: Expr) -> Expr {
        let var = Expr::Var(Var(self.first + self.exprs.len() as u32), value.dtype());
        self.exprs.push(value);
        var
    }

    /// Inlines the body of `def` with `args` in place of its parameters; returns its results.
    pub fn splice(&mut self, def: &Def, args: &[Expr]) -> Vec<Expr> {
        let mut values: Vec<Expr> = Vec::with_capacity(args.len() + def.lets.len());
        for arg in args {
            let bound = if arg.args().is_empty() { arg.clone() } else { self.bind(arg.clone()) };
            values.push(bound);
        }
        let replace = |e: &Expr, values: &[Expr]| e.clone().with_vars(values);
        for value in &def.lets {
            let value = replace(value, &values);
            values.push(self.bind(value));
        }
        def.results.iter().map(|r| replace(r, &values)).collect()
    }
}
