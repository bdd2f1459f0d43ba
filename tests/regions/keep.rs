//! Element values that are kept between visits: the same bits as computed again, at every width and layout.

use super::list;
use cranefold::{Compiler, Options, Problem, Schedule, ScheduleError, Spec};
use cranefold_fuzz::execute::Memory;
use std::iter;

/// Specs with a value that is kept: rows of one block and of several, columns, boxes, several values, phases, bytes.
const KEPT: &[&str] = &[
    "softmax f32[5,129] axes=[1]",
    "softmax f32[3,9001] axes=[1]",
    "softmax f64[3,700] axes=[1]",
    "softmax bf16[3,70] axes=[1]",
    "softmax f32[67,37] axes=[0]",
    "softmax f32[3,37]@aB16b axes=[1]",
    "softmax f32[4,100]@ba axes=[1]",
    "softmax f32[2,3,5,7] axes=[1,3]",
    "log_softmax f32[3,77] axes=[1]",
    "region x:f32[3,300] axes=[1] { t = tanh(x); v = var(t); (t - mean(t)) / sqrt(v + 1e-5) }",
    "region x:f32[3,300], w:f32[300] axes=[1] { a = exp(x * w); b = log1p(a); b / sum(b) + a / max(a), sum(a * b) }",
    "region x:f32[6,70], w:f32[70] axes=[1] { e = exp(x - max(x)); p = e / sum(e); p * (w - sum(p * w)) }",
    "region x:f32[5,40] axes=[1] { i = position(1); e = exp(x * f32(i)); e / sum(e) }",
    // `b` is read by the visits of `c`, and by those of `a` once `a` is not kept.
    "region x:f64[4,33,4] order=logical { b = floor(x / x) * x; a = select(position(0) < 3, b, 0) * x; \
     c = centered(b * 2); d = centered(a); c, d, max(b * x) }",
    "region x:f32[3,300] axes=[1] { b = exp(x); a = log1p(b); c = centered(a); d = centered(b * c); c, d, max(a) }",
];

/// The names of the values that may be kept.
fn names(problem: &Problem) -> Vec<String> {
    problem.keepable(|_| true).into_iter().map(|value| value.name).collect()
}

fn outputs(compiler: &Compiler, spec: &Spec, schedule: &Schedule, kind: u8) -> Vec<Vec<u8>> {
    let options = Options { schedule: Some(schedule.clone()), ..Options::default() };
    let kernel = compiler.compile_with(spec, &options).unwrap_or_else(|e| panic!("{spec}, {schedule}: {e}"));
    assert_eq!(kernel.schedule(), schedule);
    let found = Memory::of(spec, kind, 7, (0, 0)).run(&kernel);
    found.iter().map(|buffer| buffer.bytes().to_vec()).collect()
}

#[test]
fn kept_values_change_no_bit() {
    let compiler = Compiler::host().expect("a compiler");
    let mut specs: Vec<Spec> = KEPT.iter().map(|text| text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))).collect();
    specs.extend(list().into_iter().map(|(_, spec)| spec));
    let mut kept = 0;
    for (n, spec) in specs.iter().enumerate() {
        let problem = Problem::of(spec);
        let names = names(&problem);
        assert!(n >= KEPT.len() || !names.is_empty(), "nothing of {spec} is kept");
        for (kind, width) in [(0, 512), (1, 256), (2, 128), (0, 0)] {
            let again: Schedule = format!("width={width}").parse().expect("a schedule");
            let mut expected = None;
            // All, and each alone.
            let alone = names.iter().filter(|_| names.len() > 1).map(|name| vec![name.clone()]);
            for some in iter::once(names.clone()).chain(alone) {
                let keep = Schedule { keep: some, ..again.clone() };
                if names.is_empty() || keep.check(&problem).is_err() {
                    continue;
                }
                assert_eq!(keep.to_string().parse(), Ok(keep.clone()));
                let expected = expected.get_or_insert_with(|| outputs(&compiler, spec, &again, kind));
                assert_eq!(outputs(&compiler, spec, &keep, kind), *expected, "{spec}, {keep}");
                kept += 1;
            }
        }
    }
    assert!(kept > 60, "{kept} comparisons");
}

#[test]
fn names_and_bytes_are_checked() {
    let check = |spec: &str, keep: &str| {
        let schedule: Schedule = format!("width=128 keep={keep}").parse().expect("a schedule");
        schedule.check(&Problem::of(&spec.parse::<Spec>().expect("a spec")))
    };
    assert_eq!(check("softmax f32[5,129] axes=[1]", "v1"), Ok(()));
    let none = |given: &str, values: &str| ScheduleError::NoKept { given: given.into(), values: values.into() };
    assert_eq!(check("softmax f32[5,129] axes=[1]", "v0"), Err(none("v0", "v1")));
    assert_eq!(check("sum f32[5,129] axes=[1]", "v1"), Err(none("v1", "none")));
    let limit = Schedule::MAX_KEPT_BYTES;
    let too_large = ScheduleError::KeptTooLarge { given: "v1".into(), bytes: 4 * 131_073, limit };
    assert_eq!(check("softmax f32[2,131073] axes=[1]", "v1"), Err(too_large));
    for text in ["keep=", "keep=v1,", "keep=v1,v1", "keep=a-b"] {
        assert!(matches!(text.parse::<Schedule>(), Err(ScheduleError::Unknown(_))), "{text}");
    }
}

/// Values that a load is as cheap as are computed again, and so are those of slices that do not fit.
#[test]
fn the_cost_chooses_what_is_kept() {
    let keep = |spec: &str| cranefold::schedule::choose(&Problem::of(&spec.parse::<Spec>().expect("a spec")), 512).keep;
    assert_eq!(keep("softmax f32[64,1000] axes=[1]"), ["v1"]);
    assert_eq!(keep("softmax f32[384,128] axes=[0]"), ["v1"]);
    assert!(keep("softmax f32[2,1000000] axes=[1]").is_empty());
    assert!(keep("layer_norm f32[64,1000], f32[1000], f32[1000] axes=[1]").is_empty());
}
