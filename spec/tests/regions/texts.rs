//! Regions that read, and their canonical texts.

use super::{REGIONS, spec};
use cranefold_spec::Spec;

#[test]
fn regions_read_back() {
    for (name, text) in REGIONS {
        let spec = spec(text);
        let printed = spec.to_string();
        assert!(!printed.contains(['\n', '#', '$']), "{name}: {printed}");
        let again: Spec = printed.parse().unwrap_or_else(|error| panic!("{name}\n{error}"));
        assert_eq!((&again, again.to_string()), (&spec, printed), "{name}");
        assert_eq!(spec.to_builder().build().as_ref(), Ok(&spec), "{name}");
        let body = spec.body().expect("a body");
        let reads =
            cranefold_ir::region::Body::parse(&body.to_string(), body.inputs.clone(), &body.reduced, body.accumulator);
        assert_eq!(reads.as_ref(), Ok(body), "{name}");
    }
}

#[test]
fn the_canonical_text_of_a_spec() {
    for (text, canonical) in [
        (
            "region x:f32[8,768]@ab, h:f32[8,768] order=memory axes=[-1] acc=f32 {\n  m = max(x)   # the greatest\n  e = exp(x-m);\n\n  e / sum((e)) @any,\n m, h\n}  # end",
            "region x:f32[8,768]@ab, h:f32[8,768] axes=[1] { m = max(x); e = exp(x - m); e / sum(e), m, h }",
        ),
        // A number is read where its name stands; extents are numbers.
        (
            "region f32[4,6] axes=[0,1] { n = extent(-1) * extent(0); k = -n; sum(x0) / n + k, x0 * 2 }",
            "region x0:f32[4,6] { sum(x0) / 24 + -24, x0 * 2 }",
        ),
        // A reduction of one value, a comparison of two; parameters; simpler rows of the same meaning.
        (
            "region x:f32[4,6], y:f32[6] axes=0 { max(max(x), min(x, y)), var(x, ddof=1), lp(x, p=2), argmin(x,last=0) }",
            "region x:f32[4,6], y:f32[6] axes=[0] { max(max(x), min(x, y)), var(x, ddof=1), l2(x), argmin(x) }",
        ),
        // Words have one order, and those that say nothing go.
        (
            "region x:f64[4,6] scalar k:f64 acc=f64 keep_dims axes=[] { x * k }",
            "region x:f64[4,6] axes=[] scalar k:f64 { x * k }",
        ),
        (
            "region x:f64[4,6] order=logical scalar k:f64 keep_dims axes=[1,0] { sum(x * k) }",
            "region x:f64[4,6] keep_dims scalar k:f64 order=logical { sum(x * k) }",
        ),
        (
            "region x:f32[4,6] axes=[1] { s = sum(x); sum(s, axes=-2), s }",
            "region x:f32[4,6] axes=[1] { s = sum(x); sum(s, axes=[0]), s }",
        ),
        ("region x:f32[4,6] axes=[1] { d = 2 * centered(x * x); d, centered(position(1) + 0 == 1) }", ""),
        (
            "region x:f32[4,6] axes=[1] { d = 2 * centered(x * x); d / max(abs(centered(f32(position(1))))), centered(x) }",
            "region x:f32[4,6] axes=[1] { d = 2 * centered(x * x); d / max(abs(centered(f32(position(1))))), centered(x) }",
        ),
    ] {
        if canonical.is_empty() {
            assert!(text.parse::<Spec>().is_err(), "{text}");
            continue;
        }
        let spec = spec(text);
        assert_eq!(spec.to_string(), canonical);
        assert_eq!(super::spec(canonical), spec);
    }
}

#[test]
fn words_of_regions_stand_in_specs_of_ops_too() {
    let spec: Spec = "sum f32[4,5] order=logical axes=[1]".parse().expect("a spec");
    assert_eq!(spec.to_string(), "sum f32[4,5] axes=[1] order=logical");
    assert_eq!((spec.shape(), spec.body()), (&[4, 5][..], None));
    assert_ne!(spec, self::spec("sum f32[4,5] axes=[1]"));
    assert_eq!(self::spec("sum f32[4,5] order=memory").to_string(), "sum f32[4,5]");
}

#[test]
fn a_centered_value_is_computed_once() {
    let spec = spec("region x:f32[4,6] axes=[1] { d = 2 * centered(x * x); d, centered(x) }");
    let body = spec.body().expect("a body").canonical();
    assert_eq!(
        body.to_string(),
        "v0 = x0 * x0\nv1, v2 = mean_pair(v0)\nv3, v4 = mean_pair(x0)\n2 * (v0 - v1 - v2), x0 - v3 - v4"
    );
    let error = "region x:f32[8,3] axes=[1] { centered(sum(x)) }".parse::<Spec>().expect_err("a refusal");
    let message = "`centered` of a value of the slice: `axes=` names the kept axes that a total reduces";
    assert_eq!(error.to_string().lines().next(), Some(message));
}
