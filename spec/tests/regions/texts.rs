//! Regions that read, and their canonical texts.

use cranefold_spec::Spec;

/// The spec of a text.
pub fn spec(text: &str) -> Spec {
    text.parse().unwrap_or_else(|error| panic!("{text}\n{error}"))
}

/// Regions of models, and the canonical text of each where it differs.
const REGIONS: &[(&str, &str)] = &[(
    "region x:f32[8,768] axes=[-1] {\n  m = max(x)   # the greatest\n  e = exp(x-m)\n\n  e / sum(e), m\n}",
    "region x:f32[8,768] axes=[1] { m = max(x); e = exp(x - m); e / sum(e), m }",
)];

#[test]
fn regions_read_back() {
    for (text, canonical) in REGIONS {
        let spec = spec(text);
        assert_eq!(spec.to_string(), if canonical.is_empty() { *text } else { canonical });
        assert_eq!(spec.to_string().parse::<Spec>().as_ref(), Ok(&spec), "{text}");
    }
}
