//! Texts from which inputs are made: those of the golden files and of the lists of specs, and the texts that the
//! compiler makes of these.

use crate::data::Random;
use crate::regions::RegionCase;
use cranefold::schedule::{Bounds, Decided, choose};
use cranefold::{DType, Problem, Schedule, Spec, Vectors, ops, pipeline};
use std::fs;
use std::path::Path;

/// The most bytes of a text: long texts are slow to read, and exercise little more than short ones.
const MOST_BYTES: usize = 4000;

/// The golden files.
fn goldens() -> Vec<String> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden");
    let paths_in = |dir: &Path| {
        let entries = fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
        let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
        paths.sort();
        paths
    };
    let files = paths_in(&golden).into_iter().flat_map(|stage| paths_in(&stage));
    files.map(|path| fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))).collect()
}

/// The values of a key in golden files.
fn said(key: &str) -> Vec<String> {
    let lines = goldens().into_iter().flat_map(|g| g.lines().map(str::to_string).collect::<Vec<_>>());
    unique(lines.filter_map(|line| Some(line.strip_prefix(key)?.strip_prefix(':')?.trim().to_string())))
}

/// The sections of golden files that begin with `start`.
fn sections(start: &str) -> Vec<String> {
    let goldens = goldens();
    let texts = goldens.iter().flat_map(|golden| golden.split("---- ").skip(1)).filter_map(|s| s.split_once('\n'));
    unique(texts.map(|(_, text)| text.to_string()).filter(|t| t.starts_with(start) && t.len() <= MOST_BYTES))
}

fn unique(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut texts: Vec<String> = texts.collect();
    texts.sort();
    texts.dedup();
    texts
}

/// A file of the workspace.
fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Every op alone, specs of many parts, and the specs of the golden files, the benches, the README and the docs.
pub fn specs() -> Vec<String> {
    let alone = ops::ROWS.iter().map(|row| {
        let params: Vec<String> = row.params.iter().map(|p| format!("{}=0.5", p.name)).collect();
        let params = if params.is_empty() { String::new() } else { format!("({})", params.join(",")) };
        format!("{}{params} f32[4,6] axes=[1]", row.name)
    });
    let parts = [
        "sum, max, mean f32[4,5]@ba:then",
        "mean i32[4,5]@(8,1)+3 axes=[-1] keep_dims round_half_even -> i32@(4,4)",
        "sum i8[4,5], i8[5] axes=[1] empty_axes=lift map=\"x0*x1\" saturate -> i16",
        "sum f32[4,5], f32[1]:then scalar s:f32 axes=[1] then=\"r0*s + y0 + d\" -> f16",
        "max, sum f32[4,5] axes=[1] apply=\"(x0 - r0) / r1\"",
        "sum f64[3,20,7]@aBc16b axes=[0,2] acc=f64 -> @any",
        "sum f32[3,20,7]@(140,7,1)4b axes=[2] -> f64@(1,3)",
        "lp_sum(p=3,eps=1e-6) u8[2,2] axes=[] trunc -> i64",
        "combiner(identity=\"0, i64(0)\", lift=\"f32(x0), i\", combine=\"a0+b0, b1\", finish=\"a1, a0/n\", commutative) f32[9]",
        "argmax(last), median, quantile(q=0.3) f32[70,3] axes=[0]",
    ];
    let pages =
        ["README.md", "docs/specs.md", "docs/layouts.md", "docs/expressions-and-combiners.md"].map(file).join("\n");
    let shown = pages.split(['`', '"', '\n']).filter(|t| t.len() < 300 && t.parse::<Spec>().is_ok());
    let workloads = file("benches/workloads.txt");
    let workloads = workloads.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let listed = shown.chain(workloads).chain(parts).map(str::to_string);
    unique(listed.chain(alone).chain(said("spec")))
}

/// Regions of models, regions that are refused, and random ones.
pub fn regions() -> Vec<String> {
    let list = file("tests/regions/list.txt");
    let of_models = list.split("\n\n").filter_map(|paragraph| Some(paragraph.split_once('\n')?.1.to_string()));
    let refused = file("spec/tests/regions/refused.txt");
    let refused = refused.split("\n\n").map(|case| {
        let lines: Vec<&str> = case.lines().filter_map(|line| line.strip_prefix("> ")).collect();
        lines.join("\n")
    });
    let made = (0..100).map(|seed| {
        let mut random = Random::new(seed);
        let bytes: Vec<u8> = (0..RegionCase::BYTES).map(|_| random.below(256) as u8).collect();
        RegionCase::of(&bytes, 2000).text
    });
    unique(of_models.chain(refused).chain(made).filter(|text| text.starts_with("region ")))
}

/// The problems of golden files and of small specs.
pub fn problems() -> Vec<String> {
    let made = small().into_iter().map(|spec| Problem::of(&spec).to_string());
    unique(made.chain(sections("problem")).filter(|text| text.len() <= MOST_BYTES))
}

/// The specs whose texts are accepted.
fn small() -> Vec<Spec> {
    specs().iter().filter_map(|text| text.parse().ok()).collect()
}

/// The schedules of golden files, and the schedules that are chosen for specs.
pub fn schedules() -> Vec<String> {
    let every = "width=512 tile=i0:16 tile=i1:4@blocks jam=4 in_flight=2 interleave=2 prefetch=512 align=64 transpose=off gather=128 nontemporal=on write=last parts=4@blocks";
    let chosen = small().into_iter().map(|spec| choose(&Problem::of(&spec), 512).to_string());
    unique(said("schedule").into_iter().chain([every.to_string()]).chain(chosen))
}

/// The nests of golden files, and of statements that these have in few places.
pub fn nests() -> Vec<String> {
    let lines = [
        "misalign s0 = x0[3] in 16 acc a0: f32[32] = 0.0 for l1 in s0..16 lanes { a0[l1] = add(a0[l1], x0[l1 - s0 + 3]) } \
         for l1 in 0..s0 of 16 lanes { a0[l1 + 16] = x0[l1 - s0 + 19] } rotate a0[0..32] by s0 \
         for e2 in 0..32 parallel { x1[e2] = a0[e2] }",
        "for k0 in 0..3 seq { misalign s1 = x0[16*k0] in 16 prefetch x0[16*k0 - s1 + 1024] \
         for l2 in s1..16 lanes { x1[16*k0 + l2] = neg(x0[16*k0 + l2 - s1]) } }",
        "misalign s0 = x0[1] in 8 pick s1 = i32[s0] to 7 x1[s0] = x0[s1] x1[s1 + 8] = f32(i32[s0])",
    ];
    let transposes = [
        "acc a0: f32[48] = 0.0 transpose a0 = x0[0] over 16 by 3 at 0, 1, 2 within 64 \
         for l1 in 0..48 lanes { x1[l1] = a0[l1] }",
        "for i0 in 0..2 parallel { acc a1: f32[24] = 1.0 transpose a1 = x0[16*i0 + 30] over 4 by -9 at 0, 1, 2, 3 \
         for e2 in 0..16 parallel { x1[16*i0 + e2] = a1[e2] } }",
        "acc a0: f32[40] = 0.0 transpose a0 = x0[2] over 20 by 2 at 0, 7 x1[0] = a0[39]",
    ];
    let made = lines.iter().chain(&transposes).flat_map(|body| {
        let nest = |body: String| format!("nest \"\" {{ in x0: f32[64] out x1: f32[64] {body} }}");
        [
            nest(body.to_string()),
            nest(format!("wide {{ {body} }}")),
            nest(body.replace("f32", "f64")).replace("f32", "f64"),
        ]
    });
    unique(sections("nest").into_iter().chain(made))
}

/// Nests and problems.
pub fn texts() -> Vec<String> {
    unique(nests().into_iter().chain(problems()))
}

/// Programs of several parts, and nests.
pub fn programs() -> Vec<String> {
    let made = ["sum f32[28000]", "var f32[9000]", "sum f32[40,30] axes=[0]", "max i8[3,9000] axes=[1]"].map(|spec| {
        let problem = Problem::of(&spec.parse().expect("a spec"));
        let of_parts = |parts| -> Option<String> {
            let schedule: Schedule = format!("width=0 parts={parts}").parse().expect("a schedule");
            let decided = Decided::of(problem.clone(), Some(&schedule), Bounds::new(Vectors::WIDEST)).ok()?;
            Some(pipeline::lowered(&decided).to_string())
        };
        ["2", "3@blocks", "4"].into_iter().filter_map(of_parts).collect::<Vec<_>>()
    });
    let parts = sections("part").into_iter().chain(sections("nest").into_iter().filter(|t| t.len() < 600));
    unique(made.into_iter().flatten().chain(parts).filter(|text| text.len() <= MOST_BYTES))
}

/// Expressions, and lists of them.
pub fn expressions() -> Vec<String> {
    let some = [
        "fma(x0, 2, -r0) or not (x2 and x1 <= 3)",
        "select(x0 > 1e-3, pow(x0, 2.5), sqrt(abs(r0)) / 3)",
        "i64(x1) * 9223372036854775807 - pow(x1, 7)",
        "min(exp(x0), log(r0)), max(1/3, .5), inf, nan, -0.0",
        "bf16(x0) == f16(r0), u8(x1) / 3, -x1 / (2 - 5)",
        "x0 + x0 - x0 * x0 / x0 != 1e308 * 10",
    ];
    let specs = specs();
    let quoted = specs.iter().flat_map(|spec| spec.split('"').skip(1).step_by(2));
    unique(quoted.chain(some).map(str::to_string))
}

/// Texts between the parentheses of combiners.
pub fn combiners() -> Vec<String> {
    let some = [
        r#"identity="0", lift="x0", combine="a0+b0""#,
        r#"identity="f32(1), i64(0)", lift="f32(x0), i", combine="a0*b0, max(a1, b1)", finish="a0 / n, a1", commutative"#,
        r#"identity="f32(0)", lift="f32(x0)", combine="a0+b0", close="a0/n", identity="f64(0)", lift="f64(x0 - r0)", combine="a0+b0", merge="a0+b0, a1+b1", finish="a1""#,
        r#"identity="1 < 2", lift="x0 > 0", combine="a0 and b0", commutative"#,
    ];
    let specs = specs();
    let own = specs.iter().filter_map(|s| Some(s.strip_prefix("combiner(")?.split_once(") ")?.0));
    unique(own.chain(some).map(str::to_string))
}

/// Texts after the `@` of a spec.
pub fn layouts() -> Vec<String> {
    let some = [
        "dcba",
        "aBcd16b",
        "ABcd4a16b4a",
        "nChw8c",
        "NHWC",
        "any",
        "(60,20,5,1)+7",
        "(1,2,6,24)4a2b",
        "+9",
        "(-60,0,5,1)",
    ];
    let specs = specs();
    let found = specs.iter().flat_map(|s| s.split('@').skip(1)).filter_map(|rest| rest.split([' ', ':']).next());
    unique(found.chain(some).map(str::to_string))
}

/// Types and their values.
pub fn values() -> Vec<String> {
    let some = ["f32 1.5", "f16 65504.0", "bf16 nan", "f64 -inf", "i8 -128", "u64 18446744073709551615", "bool true"];
    let nans = DType::ALL.iter().map(|d| format!("{d} bits(0x7fc00001)"));
    unique(some.map(str::to_string).into_iter().chain(nans))
}

/// Triples and features.
pub fn isas() -> Vec<String> {
    let some = [
        "x86_64-unknown-linux-gnu\nx86-64-v3",
        "x86_64-unknown-none\nx86-64-v4",
        "x86_64-apple-darwin\nhas_avx2,has_fma has_bmi1",
        "aarch64-unknown-linux-gnu\n",
        "riscv64gc-unknown-linux-gnu\nhas_v",
        "s390x-unknown-linux-gnu\n",
        "x86_64-unknown-linux-gnu\nhas_avx512f,has_f16c,has_avx512bw",
    ];
    some.map(str::to_string).to_vec()
}

/// Primitives of oneDNN: algorithm, types and layouts of source and destination, post-op with its operand's type and
/// layout.
pub fn primitives() -> Vec<String> {
    let algorithms = ["max", "reduction_sum", "mul", "dnnl_reduction_mean", "norm_lp_max", "norm_lp_power_p_sum"];
    let post = [
        "relu f32 abcd",
        "eltwise_gelu_tanh f32 any",
        "binary_add f32 nChw16c",
        "sub i8 acdb",
        "sum u8 abcd",
        "pow f32 a",
    ];
    let both = algorithms.iter().zip(post);
    unique(both.flat_map(|(a, p)| {
        let types = [
            "f32 nchw f32 nchw",
            "s8 nChw16c u8 any",
            "i8 acdb i32 (3,3,1,1)",
            "f16 abcd f64 abcd",
            "bf16 any f32 abcd",
        ];
        types.map(|t| format!("{a} {t} {p}"))
    }))
}

/// Specs, regions, schedules with a spec on the next line, and problems.
pub fn compilations() -> Vec<String> {
    let specs = specs().into_iter().chain(regions()).filter(|text| text.len() < 400 && !text.contains('\n'));
    let specs: Vec<String> = specs.collect();
    let schedules = schedules();
    let forced = specs.iter().enumerate().map(|(n, spec)| format!("{}\n{spec}", schedules[n % schedules.len()]));
    let problems = problems().into_iter().step_by(8);
    unique(specs.iter().cloned().chain(forced).chain(problems))
}

/// Graphs of every kind of node.
pub fn graphs() -> Vec<String> {
    let bodies = [
        "y = softmax(x) axes=[1]",
        "y = layer_norm(x, w) eps=1e-5 axes=[1]",
        "m = mean(x) axes=[1] keep_dims; y = map(x, m) \"(x0 - x1) * 2\"",
        "t = transpose(x) perm=[1,0]; r: f32[2,12] = reshape(t); y = sum(r) axes=[0]",
        "l: f32[2,3] = slice(x) start=[0,5] step=[2,-2]; y = concat(l, l) axis=0",
        "i: i64[4,1] = const [0, 1, -1, 7]; y = pick(x, i) axis=1",
        "p: i64[4,6] = position axis=1; y = map(x, p) \"select(x1 > 2, x0, -inf)\"",
        "b: f32[2,4,6] = broadcast(x); c: f16[2,4,6] = cast(b); y = max(c) axes=[0,2]",
        "a: i32[6] = argmax(x) last=1.0 axes=[0]; s: u8[6] = cast(a) saturate; y = sum(s) axes=[0]",
        "o: f32[4,3] = opaque(x, w) op=\"Mat\\\"Mul\" alpha=1.5 k.1=[1,2] name=\"x\" n=3; y = group_norm(o) groups=1.0",
        "i: i32[4] = const splat 1; y = cross_entropy_mean(x, i) ignore=0.0",
    ];
    let graph = |body: &&str| format!("graph {{ x: f32[4,6] = input; w: f32[6] = input; {body}; return y, w }}");
    bodies.iter().map(graph).collect()
}

/// The plans of these graphs.
pub fn plans() -> Vec<String> {
    let plan = |text: String| {
        let graph: cranefold_graph::Graph = text.parse().unwrap_or_else(|error| panic!("{error}: {text}"));
        let plan = cranefold_graph::fuse(&graph, &cranefold_graph::FuseOptions::default());
        plan.unwrap_or_else(|error| panic!("{error}: {text}")).to_string()
    };
    graphs().into_iter().map(plan).collect()
}
