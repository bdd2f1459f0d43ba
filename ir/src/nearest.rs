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
