//! Symbolic dims: the names that a text or a model gives to extents, and the numbers that the caller binds them to.

use crate::error::{GraphError, cut};
use std::collections::{BTreeMap, BTreeSet};

/// The most names that a message lists.
const LISTED: usize = 16;

/// Refuses extents that are bound to names which are none of the symbolic dims `known`.
pub(crate) fn check_bound(bound: &BTreeMap<String, u64>, known: &BTreeSet<String>) -> Result<(), GraphError> {
    let Some(wrong) = bound.keys().find(|name| !known.contains(*name)) else { return Ok(()) };
    let listed: Vec<String> = known.iter().take(LISTED).map(|name| format!("`{}`", cut(name))).collect();
    let has = match (known.len(), listed.join(", ")) {
        (0, _) => "all dims are static".to_string(),
        (count, listed) if count > LISTED => format!("there are {listed} and {} more", count - LISTED),
        (1, listed) => format!("there is {listed}"),
        (_, listed) => format!("there are {listed}"),
    };
    Err(GraphError::Call(format!("there is no symbolic dim `{}`: {has}", cut(wrong))))
}
