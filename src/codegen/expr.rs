//! The walk of expressions and definitions.

use super::Refused;
use super::address::Base;
use super::emit::Emit;
use super::walk::Walk;
use cranefold_ir::{DType, Def, Expr, Op, Scalar, Var};
use smallvec::SmallVec;

/// A thing for each operand of an operation.
type OfOperands<T> = SmallVec<[T; 3]>;

impl<'a, E: Emit<'a>> Walk<'a, E> {
    /// The value of an expression, in a definition over `params`; written to `to` if it is given and that costs
    /// nothing.
    pub fn expr(
        &mut self,
        out: &mut E,
        e: &Expr,
        params: Option<&[E::Value]>,
        to: Option<E::Register>,
    ) -> Result<E::Value, Refused> {
        match (e, params) {
            (Expr::Const(s), _) => Ok(out.constant(*s)),
            (Expr::Var(Var(v), _), Some(params)) => Ok(params[*v as usize]),
            (Expr::Var(var, _), None) => {
                self.values.get(var).copied().ok_or_else(|| Refused(format!("{var} from elsewhere")))
            }
            (Expr::Op(op, dtype, args), _) => {
                if let Some(value) = out.pattern(self, e, params, to)? {
                    return Ok(value);
                }
                let args = args.iter().map(|a| self.expr(out, a, params, None));
                let args = args.collect::<Result<OfOperands<_>, _>>()?;
                self.op(out, *op, *dtype, &args, to)
            }
            (_, Some(_)) => Err(Refused("a definition that reads memory".into())),
            (Expr::Load(buf, _, index), None) => self.load(out, Base::Buf(*buf), index),
            (Expr::Read(acc, _, index), None) => self.read(out, *acc, index),
            (Expr::At(dtype, index), None) => self.at(out, *dtype, index),
            (Expr::Call(def, _, args), None) => Ok(self.call(out, self.nest.def(*def), args, to)?.remove(0)),
        }
    }

    /// Inlines a definition; writes a single result to `to` if it is given.
    pub(super) fn call(
        &mut self,
        out: &mut E,
        def: &Def,
        args: &[Expr],
        to: Option<E::Register>,
    ) -> Result<Vec<E::Value>, Refused> {
        let mut values = Vec::with_capacity(args.len() + def.lets.len());
        for (arg, uses) in args.iter().zip(uses(def)) {
            let value = self.expr(out, arg, None, None)?;
            values.push(if uses <= 1 { value } else { out.reused(value) });
        }
        for value in &def.lets {
            let value = self.expr(out, value, Some(&values), None)?;
            values.push(out.reused(value));
        }
        let to = to.filter(|_| def.results.len() == 1);
        def.results.iter().map(|r| self.expr(out, r, Some(&values), to)).collect()
    }

    /// An operation on values. It is evaluated if all are constants, replaced by one operand if the other is neutral,
    /// and a division by a power of two becomes a multiplication.
    pub(super) fn op(
        &mut self,
        out: &mut E,
        op: Op,
        result: DType,
        args: &[E::Value],
        to: Option<E::Register>,
    ) -> Result<E::Value, Refused> {
        let known: OfOperands<Option<Scalar>> = args.iter().map(E::known).collect();
        if let Some(constants) = known.iter().copied().collect::<Option<OfOperands<Scalar>>>() {
            return Ok(out.constant(op.eval(result, &constants)));
        }
        match known[..] {
            [Some(s), _] if op.is_neutral(s) => Ok(args[1]),
            [_, Some(s)] if op.is_neutral(s) => Ok(args[0]),
            [_, Some(s)] if op == Op::Div => match exact_reciprocal(s) {
                Some(reciprocal) => self.op(out, Op::Mul, result, &[args[0], out.constant(reciprocal)], to),
                None => out.op(op, result, args, to),
            },
            _ => out.op(op, result, args, to),
        }
    }
}

/// The number of times that a definition names each of its parameters.
fn uses(def: &Def) -> SmallVec<[usize; 8]> {
    let mut uses = SmallVec::from_elem(0, def.params.len());
    let mut count = |e: &Expr| {
        if let Expr::Var(Var(v), _) = e
            && let Some(uses) = uses.get_mut(*v as usize)
        {
            *uses += 1;
        }
    };
    def.lets.iter().chain(&def.results).for_each(|e| e.visit(&mut count));
    uses
}

/// The reciprocal of a power of two: multiplying by it gives the bits of the division, and is faster.
fn exact_reciprocal(by: Scalar) -> Option<Scalar> {
    let (fraction, least) = match by.dtype() {
        DType::F32 => (by.bits() & 0x007f_ffff, f64::from(f32::MIN_POSITIVE)),
        DType::F64 => (by.bits() & 0x000f_ffff_ffff_ffff, f64::MIN_POSITIVE),
        _ => return None,
    };
    let reciprocal = Scalar::float(by.dtype(), 1.0 / by.as_f64());
    let normal = |s: Scalar| s.as_f64().is_finite() && s.as_f64().abs() >= least;
    (fraction == 0 && normal(by) && normal(reciprocal)).then_some(reciprocal)
}
