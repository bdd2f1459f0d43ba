//! Truth values.

use super::exact::{Exact, Value};

/// Reduces truth values.
pub fn reduce(name: &str, mut elements: impl Iterator<Item = bool>) -> Exact {
    Exact::certain(Value::Bool(match name {
        "any" | "max" | "bit_or" => elements.any(|truth| truth),
        "all" | "min" | "bit_and" => elements.all(|truth| truth),
        "bit_xor" => elements.filter(|&truth| truth).count() % 2 == 1,
        _ => unreachable!("{name} takes no bool"),
    }))
}
