//! The names of a region's values, and the words that no value may have.

use crate::DType;
use crate::expression::is_name;
use crate::expression::lexer::cut;
use crate::expression::node::Operation;
use crate::ops::{ROWS, Row};

/// The words of regions that are neither ops nor functions.
const WORDS: [&str; 12] = [
    "region",
    "axes",
    "scalar",
    "keep_dims",
    "acc",
    "order",
    "memory",
    "logical",
    "position",
    "extent",
    "old",
    "centered",
];

/// The row of an op by its own name: regions have one spelling for each.
pub(super) fn row(name: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.name == name)
}

/// Returns the reason that a value may not have this name, in words; none for a good name.
///
/// ```
/// use cranefold_ir::region::refused_name;
///
/// assert_eq!(refused_name("mean").as_deref(), Some("`mean` is an op and cannot be a name"));
/// assert_eq!(refused_name("average"), None);
/// ```
pub fn refused_name(name: &str) -> Option<String> {
    let what = match name {
        _ if row(name).is_some() => "is an op and cannot be a name",
        _ if name.parse::<DType>().is_ok() => "is a dtype and cannot be a name",
        _ if Operation::call(name).is_some() => "is a function and cannot be a name",
        _ if WORDS.contains(&name) || ["or", "and", "not", "inf", "nan"].contains(&name) => {
            "is a word of regions and cannot be a name"
        }
        _ if !is_name(name) => "is no name: letters, digits and underscores, no digit first",
        _ => return None,
    };
    Some(format!("`{}` {what}", cut(name)))
}

/// Returns the message for a called word that is neither an op nor a function.
pub(super) fn unknown_call(word: &str) -> String {
    let shown = cut(word);
    let starts = |words: &[&str]| words.iter().any(|w| word.starts_with(w));
    if starts(&["cumsum", "cumprod", "cummax", "cummin", "cumulative", "scan", "prefix_", "exclusive_scan"]) {
        return format!("`{shown}`: scans are not supported; a region has reductions, and a value for each position");
    }
    if starts(&["f8", "fp8", "float8", "e4m3", "e5m2"]) {
        return format!("`{shown}`: floats of 8 bits are not supported");
    }
    if starts(&["segment", "scatter", "bincount", "group"]) {
        return format!("`{shown}`: segments and groups are not supported; a slice is reduced whole");
    }
    if let Some(row) = crate::ops::find(word) {
        return format!("`{shown}` is written `{}` in regions", row.name);
    }
    let functions = Operation::FUNCTIONS.iter().map(|op| op.text());
    let words = ["position", "extent", "old", "centered"];
    let all: Vec<&str> = functions.chain(words).chain(ROWS.iter().map(|row| row.name)).collect();
    match nearest(word, all.iter().copied()) {
        Some(near) => format!("unknown function `{shown}`; did you mean `{near}`?"),
        None => format!("unknown function `{shown}`; there are the functions of expressions, the dtypes, and the ops"),
    }
}

/// The nearest of some names, if one is near: a third of the letters may differ.
pub(super) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = name.len() / 3;
    let near = names.map(|known| (distance(name, known, most), known)).filter(|(distance, _)| *distance <= most);
    near.min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

/// The number of letters to insert, remove, change or exchange with their neighbours; above `most` any number above it.
fn distance(a: &str, b: &str, most: usize) -> usize {
    if a.len().abs_diff(b.len()) > most || a.len() > 40 {
        return most + 1;
    }
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = match (i, j) {
                (0, n) | (n, 0) => n,
                _ => {
                    let change = usize::from(a[i - 1] != b[j - 1]);
                    let least = (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(rows[i - 1][j - 1] + change);
                    let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                    if swapped { least.min(rows[i - 2][j - 2] + 1) } else { least }
                }
            };
        }
    }
    rows[a.len()][b.len()]
}
