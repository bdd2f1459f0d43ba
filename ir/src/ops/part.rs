//! Reducers that others compute on their way: the mean as a pair, by a variance.

use super::{Method, Phase};
use crate::{DType, Def, Expr, Op, Var};
use std::borrow::Cow;

/// The places of a method's state in the state of another that computes it too; `None` if it does not. In each phase they
/// are the first values of the other's state, and its results the first of the other's. The methods have several phases:
/// a product has each monoid of a single phase once already.
pub(super) fn places(part: &Method, whole: &Method) -> Option<Vec<usize>> {
    let Method::Phases { phases: own, merge: own_merge, commutative: true, search: None, .. } = part else {
        return None;
    };
    let Method::Phases { phases, merge, commutative: true, search: None, .. } = whole else { return None };
    if own.len() < 2 || own.len() != phases.len() {
        return None;
    }
    let (mut places, mut results) = (vec![], 0);
    for (own, phase) in own.iter().zip(phases) {
        let values = phase.identity.len();
        let state: Vec<usize> = (0..own.identity.len()).collect();
        let elements = phase.lift.params.len().checked_sub(results)?;
        let taken: Vec<usize> = (0..elements).chain(places.iter().map(|place| elements + place)).collect();
        let after = |first: &[usize], n: usize, then: &[usize]| -> Vec<usize> {
            first.iter().copied().chain(then.iter().map(|place| n + place)).collect()
        };
        let first = |own: &Def| (0..own.results.len()).collect::<Vec<_>>();
        let closes = match (&own.close, &phase.close) {
            (Some(own), Some(def)) => computes(def, own, &after(&state, values, &[0]), &first(own)),
            (own, def) => own.is_none() && def.is_none(),
        };
        let is_computed = phase.identity.starts_with(&own.identity)
            && computes(&phase.lift, &own.lift, &taken, &first(&own.lift))
            && computes(&phase.combine, &own.combine, &after(&state, values, &state), &state)
            && computes(&step(phase), &step(own), &after(&state, values, &taken), &state)
            && closes;
        if !is_computed {
            return None;
        }
        let kept = |phase: &Phase| phase.close.as_ref().map_or(phase.identity.len(), |close| close.results.len());
        places.extend(results..results + kept(own));
        results += kept(phase);
    }
    let states: Vec<usize> = places.iter().copied().chain(places.iter().map(|place| results + place)).collect();
    computes(merge, own_merge, &states, &places).then_some(places)
}

/// Returns true if these results of a definition are those of another whose parameters are these of its own.
fn computes(def: &Def, part: &Def, params: &[usize], results: &[usize]) -> bool {
    let own: Vec<Expr> = def.params.iter().enumerate().map(|(i, &dtype)| Expr::Var(Var(i as u32), dtype)).collect();
    let of_part: Option<Vec<Expr>> = params.iter().map(|&i| own.get(i).cloned()).collect();
    let Some(of_part) = of_part.filter(|params| params.iter().map(Expr::dtype).eq(part.params.iter().copied())) else {
        return false;
    };
    let mut values = Values { params: own.len(), known: vec![] };
    let (all, part) = (values.results(def, own), values.results(part, of_part));
    part.len() == results.len() && part.iter().zip(results).all(|(value, &i)| all.get(i) == Some(value))
}

/// (state, parameters of lift) -> state: a lane's step to its next element.
fn step(phase: &Phase) -> Cow<'_, Def> {
    if let Some(update) = &phase.update {
        return Cow::Borrowed(update);
    }
    let state = phase.identity.iter().map(|part| part.dtype());
    let params: Vec<DType> = state.chain(phase.lift.params.iter().copied()).collect();
    Cow::Owned(Def::build("step", &params, |lets, args| {
        let (state, taken) = args.split_at(phase.identity.len());
        let lifted = lets.splice(&phase.lift, taken);
        lets.splice(&phase.combine, &[state, &lifted].concat())
    }))
}

/// The values of definitions, each operation on the same values once.
struct Values {
    /// The number of parameters, which come first.
    params: usize,
    known: Vec<Expr>,
}

impl Values {
    /// The results of a definition of these arguments.
    fn results(&mut self, def: &Def, mut values: Vec<Expr>) -> Vec<Expr> {
        for value in &def.lets {
            values.push(self.value(value, &values));
        }
        def.results.iter().map(|result| self.value(result, &values)).collect()
    }

    /// The variable of an expression, or the constant that it is.
    fn value(&mut self, e: &Expr, values: &[Expr]) -> Expr {
        match e {
            Expr::Const(_) => e.clone(),
            Expr::Var(v, _) => values[v.0 as usize].clone(),
            Expr::Op(op, dtype, args) => {
                let args = args.iter().map(|arg| self.value(arg, values)).collect();
                self.known(without_one(Expr::Op(*op, *dtype, args)))
            }
            Expr::Load(..) | Expr::Read(..) | Expr::At(..) | Expr::Call(..) => unreachable!("of no definition"),
        }
    }

    fn known(&mut self, e: Expr) -> Expr {
        let place = self.known.iter().position(|known| *known == e).unwrap_or(self.known.len());
        let value = Expr::Var(Var((self.params + place) as u32), e.dtype());
        if place == self.known.len() {
            self.known.push(e);
        }
        value
    }
}

/// A sum for a fused product of one, which rounds as the sum does.
fn without_one(e: Expr) -> Expr {
    match e {
        Expr::Op(Op::Fma, _, args) if args[1] == args[1].float(1.0) => args[0].clone().add(args[2].clone()),
        e => e,
    }
}
