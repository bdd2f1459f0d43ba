//! The arms of the oracle: one for every row of the op table, of every type of elements that the row takes.

use cranefold_ir::DType;
use cranefold_ir::ops::{ROWS, Row};
use cranefold_reference as reference;
use cranefold_spec::Spec;

/// A spec of the row over two elements, with its parameters where they have to be given.
fn spec(row: &Row, dtype: DType) -> Spec {
    let given = row.params.iter().filter(|param| param.default.is_none());
    let given: Vec<String> = given.map(|param| format!("{}={}", param.name, param.at_least + 0.5)).collect();
    let given = if given.is_empty() { String::new() } else { format!("({})", given.join(",")) };
    let text = format!("{}{given} {}[2]", row.name, dtype.name());
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

#[test]
fn every_row_has_an_arm_of_every_type() {
    let mut missing = vec![];
    for row in ROWS {
        for dtype in DType::ALL.into_iter().filter(|&dtype| row.takes(dtype)) {
            let spec = spec(row, dtype);
            let input = vec![0; 2 * dtype.bytes() as usize];
            missing.extend(reference::reduce(&spec, &[&input]).err().map(|error| format!("{spec}: {error}")));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
