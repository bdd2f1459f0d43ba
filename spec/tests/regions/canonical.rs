//! The canonical form: one for all spellings, and never another value.

use super::{REGIONS, spec};
use cranefold_ir::region::Body;

fn canonical(text: &str) -> Body {
    spec(text).body().expect("a body").canonical()
}

/// Each line has the canonical text of bodies over two operands, then bodies that have it.
const SAME: &[(&str, &[&str])] = &[
    ("x0 * x0 + x1", &["x * x + y", "(x*x)+y", "a = x; b = a; c = b * a; c + y", "y2 = y; q = x * x; q + y2"]),
    // A value that is used several times is a definition, however it was written.
    (
        "v0 = x0 - x1\nv0 * v0, v0",
        &["(x - y) * (x - y), x - y", "d = x - y; d * d, d", "d = x - y; e = x - y; d * e, x - y"],
    ),
    // So is every reduction, once for all stages.
    (
        "v0 = max(x0)\nv1 = exp(x0 - v0)\nv2 = sum(v1)\nv1 / v2, v0 + x1",
        &[
            "exp(x - max(x)) / sum(exp(x - max(x))), max(x) + y",
            "m = max(x); e = exp(x - m); s = sum(e); e / s, m + y",
            "n = max(x); m = max(x); e = exp(x - m); e / sum(exp(x - n)), n + y",
        ],
    ),
    // Names follow the outputs, not the definitions.
    ("v0 = sum(x0)\nv1 = max(x0)\nv0, v1, x1", &["b = max(x); a = sum(x); a, b, y", "sum(x), max(x), y"]),
    // Numbers are computed, and stand where they are used.
    ("x0 * 0.5 + x1 - 48", &["h = 1 / 2; x * h + y - extent(0) * extent(1)", "x * (1/2) + y - 6 * 8"]),
    ("x0 * 12 + x1", &["n = 3 << 2; x * n + y", "x * (8 | 4) + y", "x * (3 * 4) + y"]),
    ("x0 + -2, x0 * x1", &["n = -2; x + n, x * y", "x + (1 - 3), x * y"]),
    // A choice between numbers has the type that it takes.
    (
        "v0 = f32(select(x0 > x1, 1, 0))\nx0 * v0 + v0",
        &["k = select(x > y, 1, 0); x * k + k", "x * select(x > y, 1, 0) + select(x > y, 1, 0)"],
    ),
    // Nothing else is changed.
    ("x0 + x1 - x0", &["x + y - x"]),
    ("x0 + x1 + 1, x1 + x0 + 1", &["x + y + 1, y + x + 1"]),
    ("x0 * 1 + 0 + x1", &["x * 1 + 0 + y"]),
    ("v0 = x0 * x1\nv0 - v0", &["x * y - x * y"]),
    ("v0 = position(1)\nv1 = old(0)\nf32(v0) * x0 + f32(v1), x1", &["p = position(-1); f32(p) * x + f32(old(0)), y"]),
];

#[test]
fn spellings_of_the_same_values() {
    for (expected, bodies) in SAME {
        for body in *bodies {
            let text = format!("region x:f32[6,8], y:f32[6,8] axes=[1] {{ {body} }}");
            let found = canonical(&text);
            assert_eq!(found.to_string(), *expected, "{body}");
            assert_eq!(found.canonical(), found, "{body}");
            let other = text.replace("x:", "left:").replace("y:", "up:");
            let rename =
                |c: &str| ["x", "y"].iter().zip(["left", "up"]).fold(c.to_string(), |t, (a, b)| words(&t, a, b));
            let other = other.split_once('{').map(|(head, body)| format!("{head}{{{}", rename(body)));
            assert_eq!(canonical(&other.expect("a brace")), found, "{body}");
        }
    }
}

/// The text with one word in place of another.
fn words(text: &str, from: &str, to: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let ends = |at: usize| !text[..at].ends_with(is_part) && !text[at + from.len()..].starts_with(is_part);
    let mut new = String::new();
    let mut last = 0;
    for (at, _) in text.match_indices(from).filter(|(at, _)| ends(*at)) {
        new.push_str(&text[last..at]);
        new.push_str(to);
        last = at + from.len();
    }
    new + &text[last..]
}

#[test]
fn different_values_differ() {
    let all: Vec<Body> = SAME
        .iter()
        .map(|(_, bodies)| canonical(&format!("region x:f32[6,8], y:f32[6,8] axes=[1] {{ {} }}", bodies[0])))
        .collect();
    for (i, a) in all.iter().enumerate() {
        assert!(all[..i].iter().all(|b| a != b), "{a}");
    }
}

#[test]
fn canonical_forms_read_back_and_have_the_same_types() {
    for (name, text) in REGIONS {
        let spec = spec(text);
        let body = spec.body().expect("a body");
        let canonical = body.canonical();
        let read =
            Body::parse(&canonical.to_string(), canonical.inputs.clone(), &canonical.reduced, canonical.accumulator);
        assert_eq!(read.as_ref(), Ok(&canonical), "{name}\n{canonical}");
        assert_eq!(canonical.canonical(), canonical, "{name}");
        let types = |body: &Body| body.types().unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(types(&canonical).outputs, types(body).outputs, "{name}");
        assert_eq!(canonical.reaches().outputs, body.reaches().outputs, "{name}");
        assert_eq!(canonical.stages().reductions.len(), body.stages().reductions.len(), "{name}");
    }
}

#[test]
fn axes_that_nothing_names_are_forgotten() {
    let flat = canonical("region x:f32[8,768] axes=[1] { x / sum(x) }");
    let deep = canonical("region x:f32[2,4,24,32] axes=[2,3] { x / sum(x) }");
    assert_eq!((&flat, flat.reduced.len()), (&deep, 0));
    let named = canonical("region x:f32[2,4,24] axes=[2] { x * f32(position(1)) / sum(x) }");
    assert_eq!(named.reduced, [false, false]);
}

#[test]
fn large_expressions_are_cut() {
    // A chain of definitions that is inlined would be deeper than an expression may be.
    let chain: String = (1..900).map(|i| format!("a{i} = sqrt(a{} + {i}); ", i - 1)).collect();
    let text = format!("region x:f32[6,8] axes=[1] {{ a0 = abs(x); {chain} a899 / sum(a899) }}");
    let canonical = canonical(&text);
    let read = Body::parse(&canonical.to_string(), canonical.inputs.clone(), &[], canonical.accumulator);
    assert_eq!(read.as_ref(), Ok(&canonical));
    assert!(canonical.definitions.len() > 10, "{canonical}");
    canonical.types().expect("types");
    // Doubling makes many uses and few values.
    let chain: String = (1..900).map(|i| format!("a{i} = a{} + a{}; ", i - 1, i - 1)).collect();
    let text = format!("region x:f32[6,8] axes=[1] {{ a0 = x; {chain} sum(a899) }}");
    assert_eq!(self::canonical(&text).definitions.len(), 899);
    let chain: String = (1..90).map(|i| format!("a{i} = select(x > {i}, a{}, a{}); ", i - 1, i - 1)).collect();
    let text = format!("region x:f32[6,8] axes=[1] {{ a0 = select(x > 0, 1, 2); {chain} sum(a89) }}");
    assert!(self::canonical(&text).to_string().len() < 10_000);
}
