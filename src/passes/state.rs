//! The accumulators of a state, and the combination of two states.

use cranefold_ir::{AccId, DType, Def, Expr, Index, Names, Nest, Scalar, Stmt};
use rustc_hash::FxHashMap;

/// One accumulator of the state.
#[derive(Clone, Copy)]
pub(super) struct StateAcc {
    pub acc: AccId,
    pub dtype: DType,
    pub init: Scalar,
}

impl StateAcc {
    /// The declaration of the accumulator with `len` elements.
    pub(super) fn declare(&self, len: u64) -> Stmt {
        Stmt::Acc { acc: self.acc, dtype: self.dtype, len, init: self.init }
    }

    fn read(&self, at: &Index) -> Expr {
        Expr::Read(self.acc, self.dtype, at.clone())
    }
}

/// The accumulators that the nest declares.
pub(super) fn accumulators(nest: &Nest) -> FxHashMap<AccId, StateAcc> {
    let mut values = FxHashMap::default();
    nest.visit(&mut |s| {
        if let Stmt::Acc { acc, dtype, init, .. } = s {
            values.insert(*acc, StateAcc { acc: *acc, dtype: *dtype, init: *init });
        }
    });
    values
}

/// `to[at] = def(from[lower], from[upper])`.
pub(super) fn combined(
    def: &Def,
    from: &[StateAcc],
    [lower, upper]: [&Index; 2],
    to: &[StateAcc],
    at: &Index,
    nest: &mut Nest,
    names: &mut Names,
) -> Vec<Stmt> {
    let args = from.iter().map(|p| p.read(lower)).chain(from.iter().map(|p| p.read(upper))).collect();
    let (mut body, values) = nest.apply(names, def, args);
    body.extend(to.iter().zip(values).map(|(p, value)| Stmt::Set { acc: p.acc, index: at.clone(), value }));
    body
}
