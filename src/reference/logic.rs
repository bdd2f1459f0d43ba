//! Truth values.

use super::exact::{Exact, Value};
use cranefold_ir::Scalar;

/// Reduces truth values.
pub fn reduce(name: &str, mut elements: impl Iterator<Item = Scalar>) -> Exact {
    let is_true = |s: Scalar| s.bits() != 0;
    Exact::certain(Value::Bool(match name {
        "any" | "max" => elements.any(is_true),
        "all" | "min" => elements.all(is_true),
        _ => unreachable!("{name} takes no bool"),
    }))
}
