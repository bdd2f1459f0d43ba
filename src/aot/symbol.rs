//! The name of the function.

use crate::keyed::hash;
use crate::results::RESULTS_VERSION;
use crate::spec::Spec;

/// The most characters before the hash of a name.
const MOST_READ: usize = 80;

/// The name of a reduction: ops, type and shape of input 0, and a hash of the whole spec.
///
/// The name of a spec is the same on every target; specs whose bits may differ have different names.
pub fn of(spec: &Spec) -> String {
    let input = &spec.inputs()[0];
    let ops: Vec<String> = spec.recipe().name().split(", ").map(str::to_string).collect();
    let dims: Vec<String> = input.shape().iter().map(u64::to_string).collect();
    let shape = if dims.is_empty() { "scalar".into() } else { dims.join("x") };
    let read: String = format!("{}_{}_{shape}", ops.join("_"), input.dtype()).chars().take(MOST_READ).collect();
    let hash = hash(format_args!("{spec} results={RESULTS_VERSION}"));
    format!("cranefold_{read}_{:08x}", hash as u32)
}

/// Returns true if a name is an identifier of C and no keyword of C99 or C++.
pub fn is_identifier(name: &str) -> bool {
    let is_start = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(is_start) && name.chars().all(|c| is_start(c) || c.is_ascii_digit()) && !KEYWORDS.contains(&name)
}

/// The keywords of C99 and of C++ that have the form of an identifier.
const KEYWORDS: [&str; 86] = [
    "_Bool",
    "_Complex",
    "_Imaginary",
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "char16_t",
    "char32_t",
    "class",
    "compl",
    "const",
    "const_cast",
    "constexpr",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "public",
    "register",
    "reinterpret_cast",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn name(spec: &str) -> String {
        of(&spec.parse().expect("a spec"))
    }

    #[test]
    fn names_say_the_reduction_and_differ_with_it() {
        assert!(name("sum f32[4,100] axes=[1]").starts_with("cranefold_sum_f32_4x100_"));
        assert!(name("max,argmax f16[2,3] axes=[1]").starts_with("cranefold_max_argmax_f16_2x3_"));
        assert!(name("lp_max(p=3,eps=1e-6) f32[] axes=[]").starts_with("cranefold_lp_max_f32_scalar_"));
        let long = name(&format!("sum f32[{}]", ["1"; 40].join(",")));
        assert_eq!(long.len(), "cranefold_".len() + MOST_READ + "_01234567".len());
        let all = [
            "sum f32[4,100] axes=[1]",
            "sum f32[4,100] axes=[0]",
            "sum f32[4,100] axes=[1] acc=f64",
            "sum f32[4,100]@ba axes=[1]",
            "sum f32[4,100] axes=[1] keep_dims",
        ];
        let names: std::collections::HashSet<String> = all.map(name).into();
        assert_eq!(names.len(), all.len());
        assert!(names.iter().all(|name| is_identifier(name)));
    }

    #[test]
    fn identifiers_are_those_of_c() {
        assert!(["f", "_f", "F9", "row_means", "int_"].into_iter().all(is_identifier));
        assert!(
            !["", "9f", "a-b", "a b", "é", "a\0", "int", "class", "_Bool", "asm", "xor"].into_iter().any(is_identifier)
        );
    }
}
