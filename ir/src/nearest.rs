//! The name that a misspelt one may have meant, for messages.

use crate::DType;

/// The words `: did you mean `NAME`?` with the nearest of some names to a word; nothing if none is near.
///
/// ```
/// use cranefold_ir::nearest::meant;
///
/// assert_eq!(meant("keepdims", ["axes", "keep_dims"]), ": did you mean `keep_dims`?");
/// assert_eq!(meant("wish", ["axes", "keep_dims"]), "");
/// ```
pub fn meant<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let lower = word.to_ascii_lowercase();
    // A slip of the finger in each three letters, and two letters at the ends that are not there.
    let most = word.len().div_ceil(3).min(3);
    let distance = |name: &'a str| (strsim::damerau_levenshtein(&lower, &name.to_ascii_lowercase()), name);
    let near = names.into_iter().filter(|name| name.len().abs_diff(word.len()) <= most).map(distance);
    // Of two at one distance the first in order is meant.
    let nearest = near.filter(|&(distance, name)| distance <= most && distance < name.len()).min_by_key(|&(d, _)| d);
    nearest.map_or(String::new(), |(_, name)| format!(": did you mean `{name}`?"))
}

/// Words of other libraries that have no meaning here, and what takes their place.
const REMEDIES: [(&[&str], &str); 8] = [
    (&["where", "if_else", "ifelse"], "write `select(condition, yes, no)`"),
    (&["relu"], "write `max(x0, 0)`"),
    (&["unbiased"], "write `ddof=1` for true and `ddof=0` for false"),
    (&["np", "numpy", "jnp", "torch", "tf"], "names stand without that of a library: `sum f32[4,5]`"),
    (&["tensor", "array", "ndarray"], "an operand is its type and its shape: `f32[4,5]`"),
    (&["percentile"], "write `quantile(q=0.5)`, with q from 0 to 1"),
    (&["cumsum", "cumprod", "cummax", "cummin"], "an op gives one value of a slice; running values are not supported"),
    (
        &["dot", "matmul", "einsum"],
        "a sum of products is `sum f32[4,1,8], f32[1,5,8] axes=[2] map=\"x0*x1\"`, much slower than a library of matrices",
    ),
];

/// The words that take the place of a word that other libraries have and specs have not.
///
/// ```
/// use cranefold_ir::nearest::remedy;
///
/// assert_eq!(remedy("relu"), Some("write `max(x0, 0)`"));
/// assert_eq!(remedy("sum"), None);
/// ```
pub fn remedy(word: &str) -> Option<&'static str> {
    let lower = word.to_ascii_lowercase();
    REMEDIES.iter().find(|(words, _)| words.contains(&lower.as_str())).map(|&(_, remedy)| remedy)
}

/// The words of [`meant`] for a misspelt element type, of which the names in other libraries are known too.
///
/// ```
/// use cranefold_ir::nearest::meant_dtype;
///
/// assert_eq!(meant_dtype("float32"), ": did you mean `f32`?");
/// assert_eq!(meant_dtype("half"), ": did you mean `f16`?");
/// assert_eq!(meant_dtype("f33"), ": did you mean `f32`?");
/// ```
pub fn meant_dtype(word: &str) -> String {
    let names = || DType::ALL.into_iter().map(DType::name);
    let own = match word.to_ascii_lowercase().as_str() {
        "half" => "f16".into(),
        "float" | "single" => "f32".into(),
        "double" => "f64".into(),
        "int" => "i32".into(),
        "long" => "i64".into(),
        "byte" => "u8".into(),
        "boolean" | "pred" => "bool".into(),
        other => other.replace("bfloat", "bf").replace("float", "f").replace("uint", "u").replace("int", "i"),
    };
    match names().find(|name| *name == own) {
        Some(name) => format!(": did you mean `{name}`?"),
        None => meant(word, names()),
    }
}
