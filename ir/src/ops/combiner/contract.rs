//! The check of a combiner's contract.

use super::Combiner;
use crate::ops::recipe::{Recipe, RecipeError, Types, in_memory};
use crate::ops::{Method, OpCall, Phase};
use crate::{DType, Def, Scalar};

impl Combiner {
    /// Tries the contract on states of some elements: the identity element changes no state, combining is
    /// associative, and commutative if declared so. Floats may differ by a relative error of 1e-4, since
    /// their addition is not associative to the bit.
    ///
    /// # Errors
    /// The first states that break it, or a field that is refused.
    pub fn check(&self, inputs: &[DType], accumulator: DType) -> Result<(), RecipeError> {
        let call = OpCall::Own(self.clone());
        let recipe = Recipe::simple(call, accumulator);
        let mapped = (0..inputs.len()).collect();
        let outputs = vec![accumulator; self.outputs()];
        let named = inputs.iter().enumerate().map(|(i, &d)| (format!("x{i}"), d)).collect();
        let types = Types { inputs: named, mapped, outputs, count: 8, index: DType::I64, narrow: false };
        let reducer = self.reducer(&recipe, &types, &types.outputs)?;
        let mut earlier: Vec<Vec<Scalar>> = vec![];
        for (k, phase) in reducer.method.phases().iter().enumerate() {
            let states = samples(phase, inputs, recipe.takes_position().then(|| types.position()), &earlier);
            for state in &states {
                for neutral in [
                    phase.combine.eval(&[phase.identity.as_slice(), state].concat()),
                    phase.combine.eval(&[state.as_slice(), &phase.identity].concat()),
                ] {
                    if !close(&neutral, state) {
                        let (state, result) = (show(state), show(&neutral));
                        return Err(RecipeError::Identity { phase: k + 1, state, result });
                    }
                }
            }
            contract("combine", &phase.combine, &states, self.commutative)?;
            let closed = |state: &Vec<Scalar>| match &phase.close {
                None => state.clone(),
                Some(def) => def.eval(&[state.as_slice(), &[Scalar::int(accumulator, 1)]].concat()),
            };
            let results: Vec<Vec<Scalar>> = states.iter().map(closed).collect();
            earlier = match earlier.is_empty() {
                true => results,
                false => earlier.into_iter().zip(results).map(|(e, r)| [e, r].concat()).collect(),
            };
        }
        match &reducer.method {
            Method::Phases { phases, merge, .. } if phases.len() > 1 => {
                contract("merge", merge, &earlier, self.commutative)
            }
            _ => Ok(()),
        }
    }
}

/// States of single elements.
fn samples(phase: &Phase, inputs: &[DType], position: Option<DType>, earlier: &[Vec<Scalar>]) -> Vec<Vec<Scalar>> {
    const VALUES: [f64; 8] = [3.0, 0.5, 7.0, 1.0, 2.25, 12.0, 0.0, 5.0];
    let one = |n: usize| {
        let value = |d: DType, v: f64| {
            let d = in_memory(d);
            if d.is_int() {
                Scalar::int(d, v as i128)
            } else {
                Scalar::float(d, if n.is_multiple_of(2) { v } else { -v })
            }
        };
        let elements = inputs.iter().enumerate().map(|(i, &d)| value(d, VALUES[(n + 3 * i) % VALUES.len()]));
        let position = position.map(|d| Scalar::int(d, n as i128));
        let earlier = earlier.get(n).cloned().unwrap_or_default();
        phase.lift.eval(&elements.chain(position).chain(earlier).collect::<Vec<_>>())
    };
    (0..VALUES.len()).map(one).collect()
}

/// Refuses a definition that does not combine these states associatively, or in any order where it is `commutative`.
fn contract(field: &'static str, def: &Def, states: &[Vec<Scalar>], commutative: bool) -> Result<(), RecipeError> {
    let both = |a: &[Scalar], b: &[Scalar]| def.eval(&[a, b].concat());
    for (i, a) in states.iter().enumerate() {
        for (j, b) in states.iter().enumerate() {
            let (left, right) = (both(a, b), both(b, a));
            if commutative && !close(&left, &right) {
                let (a, b, left, right) = (show(a), show(b), show(&left), show(&right));
                let sides = format!("{a} + {b} = {left}, {b} + {a} = {right}");
                return Err(RecipeError::Commutativity { field, sides });
            }
            let c = &states[(3 * i + 5 * j + 1) % states.len()];
            let (left, right) = (both(&both(a, b), c), both(a, &both(b, c)));
            if !close(&left, &right) {
                let (a, b, c, left, right) = (show(a), show(b), show(c), show(&left), show(&right));
                let sides = format!("({a} + {b}) + {c} = {left}, {a} + ({b} + {c}) = {right}");
                return Err(RecipeError::Associativity { field, sides });
            }
        }
    }
    Ok(())
}

/// Returns true if states are equal but for rounding.
fn close(a: &[Scalar], b: &[Scalar]) -> bool {
    a.iter().zip(b).all(|(a, b)| {
        let (x, y) = (a.as_f64(), b.as_f64());
        a.bits() == b.bits() || a.as_int().is_none() && (x == y || (x - y).abs() <= 1e-4 * x.abs().max(y.abs()))
    })
}

fn show(state: &[Scalar]) -> String {
    format!("({})", state.iter().map(Scalar::to_string).collect::<Vec<_>>().join(", "))
}
