//! The hoist of operations on the results alone out of `apply`, which runs at each position.

use super::{Apply, Reducer};
use crate::{DType, Def, Expr, Var};

/// Hoists the operations of `apply` on the results alone into finish, as further results:
///
/// ```text
/// finish: (s) -> s                        apply: (x, s) -> x / sqrt(max(s, eps))
/// ->
/// finish: (s) -> s, sqrt(max(s, eps))     apply: (x, s, n) -> x / n
/// ```
///
/// The operations are the same, and so are the bits.
pub(super) fn once(reducer: Reducer) -> Reducer {
    let Some(apply) = &reducer.apply else { return reducer };
    let elements = apply.def.params.len() - reducer.finish.results.len();
    let mut found = Invariants { first: elements, varying: vec![], moved: vec![] };
    let def = found.without(&apply.def, &reducer.finish);
    if found.moved.is_empty() {
        return reducer;
    }
    let finish = Def::build("finish", &reducer.finish.params, |lets, args| {
        let mut values = lets.splice(&reducer.finish, args);
        values.iter_mut().filter(|v| !v.args().is_empty()).for_each(|v| *v = lets.bind(v.clone()));
        // The values bound by `apply` are in order, each before its uses.
        let mut bound: Vec<Option<Expr>> = vec![None; apply.def.lets.len()];
        let base = apply.def.params.len();
        let written = |e: &Expr, values: &[Expr], bound: &[Option<Expr>]| {
            e.clone().rewrite(&mut |e| match e {
                Expr::Var(Var(v), _) if (v as usize) < base => values[v as usize - elements].clone(),
                Expr::Var(Var(v), _) => bound[v as usize - base].clone().expect("bound before"),
                e => e,
            })
        };
        for (n, value) in apply.def.lets.iter().enumerate() {
            if !found.varying[n] {
                let value = written(value, &values, &bound);
                bound[n] = Some(lets.bind(value));
            }
        }
        let further: Vec<Expr> = found.moved.iter().map(|e| written(e, &values, &bound)).collect();
        values.into_iter().chain(further).collect()
    });
    let apply = Some(Apply { def, ..apply.clone() });
    Reducer { finish, apply, ..reducer }
}

/// The operations of a definition that do not depend on its first parameters.
struct Invariants {
    /// The number of parameters that vary with the position.
    first: usize,
    /// For each bound value, true if it varies with the position.
    varying: Vec<bool>,
    /// The operations that do not vary, as the definition has them.
    moved: Vec<Expr>,
}

impl Invariants {
    fn varies(&self, e: &Expr, base: usize) -> bool {
        let mut varies = false;
        e.visit(&mut |e| {
            if let Expr::Var(Var(v), _) = e {
                let v = *v as usize;
                varies |= if v < base { v < self.first } else { self.varying[v - base] };
            }
        });
        varies
    }

    /// The definition with a parameter in place of each operation that does not vary.
    fn without(&mut self, def: &Def, finish: &Def) -> Def {
        let base = def.params.len();
        for value in &def.lets {
            // Truth values have no memory type to be kept in.
            let stays = self.varies(value, base) || value.dtype() == DType::Bool;
            self.varying.push(stays);
        }
        let lets: Vec<Expr> = (0..def.lets.len())
            .map(|n| if self.varying[n] { self.replaced(&def.lets[n], base) } else { def.lets[n].clone() })
            .collect();
        let results: Vec<Expr> = def.results.iter().map(|e| self.replaced(e, base)).collect();
        debug_assert_eq!(base, self.first + finish.results.len());
        let params: Vec<_> = def.params.iter().copied().chain(self.moved.iter().map(Expr::dtype)).collect();
        let kept: Vec<usize> = (0..lets.len()).filter(|&n| self.varying[n]).collect();
        // The remaining values are numbered after the new parameters.
        let renumbered = |e: &Expr| {
            e.clone().rewrite(&mut |e| match e {
                Expr::Var(Var(v), dtype) if v as usize >= base && (v as usize) < base + lets.len() => {
                    let place = kept.iter().position(|&n| n == v as usize - base).expect("a value that varies");
                    Expr::Var(Var((params.len() + place) as u32), dtype)
                }
                Expr::Var(Var(v), dtype) if v as usize >= base => Expr::Var(Var(v - lets.len() as u32), dtype),
                e => e,
            })
        };
        let lets = kept.iter().map(|&n| renumbered(&lets[n])).collect();
        let results = results.iter().map(renumbered).collect();
        Def { name: def.name.clone(), params, lets, results }
    }

    /// The expression with a new variable, numbered after all values of the definition, in place of each
    /// largest operation that does not vary.
    fn replaced(&mut self, e: &Expr, base: usize) -> Expr {
        let bound = self.varying.len();
        if !self.varies(e, base) && e.dtype() != DType::Bool {
            let is_value = matches!(e, Expr::Var(Var(v), _) if (*v as usize) < base);
            if matches!(e, Expr::Const(_)) || is_value {
                return e.clone();
            }
            let known = self.moved.iter().position(|m| m == e);
            let place = known.unwrap_or_else(|| {
                self.moved.push(e.clone());
                self.moved.len() - 1
            });
            return Expr::Var(Var((base + bound + place) as u32), e.dtype());
        }
        match e {
            Expr::Op(op, dtype, args) => Expr::Op(*op, *dtype, args.iter().map(|a| self.replaced(a, base)).collect()),
            other => other.clone(),
        }
    }
}
