//! A spec of ops and the region that it stands for are one problem with one signature.

use cranefold::ops::ROWS;
use cranefold::{Compiler, DType, Problem, Spec};

/// Specs of ops, and regions.
const PAIRS: &[(&str, &str)] = &[
    ("sum f32[8,9] axes=[1]", "region x:f32[8,9] axes=[1] { sum(x) }"),
    ("sum f32[8,9] axes=[1] order=logical", "region x:f32[8,9] axes=[1] order=logical { s = sum(x); s }"),
    ("sum f16[8,9] axes=[1]", "region x:f16[8,9] axes=[1] { f16(sum(x)) }"),
    ("sum bf16[8,9] axes=[1] -> f32", "region x:bf16[8,9] axes=[1] { sum(x) }"),
    ("mean f64[8,9] axes=[0]", "region x:f64[8,9] axes=[0] { mean(x) }"),
    ("sum f32[8,9] axes=[1] acc=f64", "region x:f32[8,9] axes=[1] acc=f64 { f32(sum(x)) }"),
    ("sum f32[8,9]@ba axes=[1]", "region x:f32[8,9]@ba axes=[1] { sum(x) }"),
    ("sum,argmax f32[8,9] axes=[1]", "region x:f32[8,9] axes=[1] { sum(x), argmax(x) }"),
    ("median f32[8,9] axes=[1]", "region x:f32[8,9] axes=[1] { median(x) }"),
    ("lp_sum(p=3,eps=0.5) f32[8,9] axes=[1]", "region x:f32[8,9] axes=[1] { lp_sum(x, p=3, eps=0.5) }"),
    ("max f32[8,9] axes=[1] map=\"x0 * 2\"", "region x:f32[8,9] axes=[1] { max(x * 2) }"),
    ("sum f32[8,9], f32[8,9] axes=[1] map=\"x0 * x1\"", "region a:f32[8,9], b:f32[8,9] axes=[1] { sum(a * b) }"),
    (
        "sum f16[8,9], i8[8,9] axes=[1] map=\"x0 * f32(x1)\"",
        "region a:f16[8,9], b:i8[8,9] axes=[1] { f16(sum(a * f32(b))) }",
    ),
    ("argmax f32[8,9] axes=[1] map=\"abs(x0)\"", "region x:f32[8,9] axes=[1] { argmax(abs(x)) }"),
    ("sum f32[8,9] axes=[1] then=\"sqrt(r0)\"", "region x:f32[8,9] axes=[1] { sqrt(sum(x)) }"),
    (
        "mean,var f32[8,9] axes=[1] then=\"1 / sqrt(r1 + 1e-5), r0\"",
        "region x:f32[8,9] axes=[1] { m = mean(x); 1 / sqrt(var(x) + 1e-5), m }",
    ),
    ("sum bf16[8,9] axes=[1] then=\"d * 0.5 + r0\"", "region x:bf16[8,9] axes=[1] { bf16(old(0) * 0.5 + sum(x)) }"),
    (
        "sum f32[8,9] scalar s:f32 axes=[1] map=\"x0 * s\" then=\"r0 / s\"",
        "region x:f32[8,9] axes=[1] scalar s:f32 { sum(x * s) / s }",
    ),
    ("max f32[8,9] axes=[1] apply=\"x0 - r0\"", "region x:f32[8,9] axes=[1] { x - max(x) }"),
    ("softmax f32[8,9] axes=[1]", "region x:f32[8,9] axes=[1] { m = max(x); e = exp(x - m); e / sum(e) }"),
    (
        "layer_norm(eps=1e-5) f32[8,9], f32[9], f32[9] axes=[1]",
        "region x:f32[8,9], w:f32[9], b:f32[9] axes=[1] { centered(x) * (1 / sqrt(var(x) + 1e-5)) * w + b }",
    ),
    // Broadcasts, slices of one element, and one slice.
    ("sum f32[8,9], f32[9] axes=[1] map=\"x0 * x1\"", "region a:f32[8,9], b:f32[9] axes=[1] { sum(a * b) }"),
    ("sum f32[8,9], f32[8,1] axes=[1] map=\"x0 * x1\"", "region a:f32[8,9], b:f32[8,1] axes=[1] { sum(a * b) }"),
    ("sum f32[8,9], f32[1] axes=[1] map=\"x0 * x1\"", "region a:f32[8,9], b:f32[1] axes=[1] { sum(a * b) }"),
    ("sum f32[8,9], f32[] axes=[1] map=\"x0 * x1\"", "region a:f32[8,9], b:f32[] axes=[1] { sum(a * b) }"),
    ("sum f32[8,1], f32[8,1] axes=[1] map=\"x0 * x1\"", "region a:f32[8,1], b:f32[8,1] axes=[1] { sum(a * b) }"),
    ("sum f32[8,1], f32[1] axes=[1] map=\"x0 * x1\"", "region a:f32[8,1], b:f32[1] axes=[1] { sum(a * b) }"),
    ("sum f32[1,9], f32[1,1] axes=[1] map=\"x0 * x1\"", "region a:f32[1,9], b:f32[1,1] axes=[1] { sum(a * b) }"),
    ("sum f32[1,1], f32[1,1] axes=[0,1] map=\"x0 * x1\"", "region a:f32[1,1], b:f32[1,1] axes=[0,1] { sum(a * b) }"),
    ("sum f32[8,9], f32[8]:then axes=[1] then=\"r0 + y0\"", "region x:f32[8,9], y:f32[8,1] axes=[1] { sum(x) + y }"),
    ("sum f32[1,9], f32[1]:then axes=[1] then=\"r0 + y0\"", "region x:f32[1,9], y:f32[1,1] axes=[1] { sum(x) + y }"),
    ("sum f32[8,9], f32[]:then axes=[0,1] then=\"r0 + y0\"", "region x:f32[8,9], y:f32[] axes=[0,1] { sum(x) + y }"),
    (
        "max f32[8,1], f32[8,1] axes=[1] apply=\"x0 - r0 * x1\"",
        "region x:f32[8,1], y:f32[8,1] axes=[1] { x - max(x) * y }",
    ),
    (
        "rms_norm f32[8,9], f32[8,1] axes=[1]",
        "region x:f32[8,9], w:f32[8,1] axes=[1] { x * (1 / sqrt(mean(x * x) + 0)) * w }",
    ),
];

#[test]
fn a_spec_of_ops_is_its_region() {
    let compiler = Compiler::host().expect("a compiler");
    let mut wrong = vec![];
    for &(ops, region) in PAIRS {
        let [ops, region]: [Spec; 2] = [ops, region].map(|text| text.parse().unwrap_or_else(|e| panic!("{text}: {e}")));
        let [a, b] = [&ops, &region].map(|spec| compiler.keyed(spec).signature().clone());
        if a != b {
            wrong.push(format!("{ops}\n{}\n{region}\n{}", Problem::of(&ops), Problem::of(&region)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every row, alone and of elements of every type that it takes in a region.
#[test]
fn a_row_alone_is_its_region() {
    let mut pairs = 0;
    for row in ROWS.iter().filter(|row| !row.applies) {
        let names: Vec<String> = (0..row.results.len()).map(|n| format!("v{n}")).collect();
        let params: String = row
            .params
            .iter()
            .map(|p| {
                format!(
                    ", {}={}",
                    p.name,
                    if p.is_flag {
                        "1"
                    } else if row.name == "quantile" {
                        "0.3"
                    } else {
                        "3"
                    }
                )
            })
            .collect();
        for dtype in DType::ALL {
            let region = format!(
                "region x:{dtype}[5,7] axes=[1] {{ {} = {}(x{params}); {} }}",
                names.join(", "),
                row.name,
                names.join(", ")
            );
            let Ok(region) = region.parse::<Spec>() else { continue };
            let outputs: Vec<String> = region.outputs().iter().map(|o| o.dtype().to_string()).collect();
            let given: Vec<String> = row
                .params
                .iter()
                .map(|p| {
                    if p.is_flag {
                        p.name.to_string()
                    } else {
                        format!("{}={}", p.name, if row.name == "quantile" { "0.3" } else { "3" })
                    }
                })
                .collect();
            let given = if given.is_empty() { String::new() } else { format!("({})", given.join(",")) };
            let ops = format!("{}{given} {dtype}[5,7] axes=[1] -> {}", row.name, outputs.join(", "));
            let Ok(ops) = ops.parse::<Spec>() else { panic!("{ops}: {}", ops.parse::<Spec>().unwrap_err()) };
            assert_eq!(Problem::of(&ops), Problem::of(&region), "{ops}\n{region}");
            pairs += 1;
        }
    }
    assert!(pairs > 150, "{pairs} pairs");
}
