//! Code for machines with less than this one: SSE alone, AVX without AVX2, AVX2 without what goes with it.
//!
//! Each set of features is compiled for; where this machine has it, the code is run, and all give the same bits.
#![cfg(target_arch = "x86_64")]

use cranefold::spec::Operand;
use cranefold::{Compiler, Input, Kernel, Output, Spec, Target};
use cranefold_fuzz::data;

/// Features, and the bits of the vectors that follow from them.
const FEATURES: [(&str, u32); 10] = [
    // SSE2.
    ("", 128),
    ("has_sse3 has_ssse3 has_sse41 has_sse42", 128),
    ("has_sse3 has_ssse3 has_sse41 has_sse42 has_avx", 128),
    ("has_sse3 has_ssse3 has_sse41 has_sse42 has_avx has_fma", 128),
    // AVX2 without the conversions of halves.
    ("has_sse3 has_ssse3 has_sse41 has_sse42 has_avx has_avx2 has_fma has_bmi1", 128),
    ("x86-64-v3", 256),
    // AVX-512 without operations on bytes.
    ("x86-64-v3 has_avx512f has_avx512dq has_avx512vl", 256),
    ("x86-64-v4", 512),
    // Permutations of bytes.
    ("x86-64-v4 has_avx512vbmi", 512),
    // Exponentials with masks, and quotients made of products alone.
    ("x86-64-v4 intel", 512),
];

const SPECS: [&str; 25] = [
    "sum f32[3,1000] axes=[1]",
    "sum f32[200,37] axes=[0]",
    "sum f64[3,1000] axes=[1]",
    "max f32[3,1000] axes=[1]",
    "min f64[200,37] axes=[0]",
    "max f16[3,1000] axes=[1]",
    "sum f16[3,1000] axes=[1]",
    "mean bf16[200,37] axes=[0]",
    "sum f16[3,1000] axes=[1] acc=f64 -> bf16",
    "sum i8[3,1000] axes=[1] -> i32",
    "mean u8[200,37] axes=[0] -> f32",
    "prod i64[3,1000] axes=[1]",
    "mean i64[3,1000] axes=[1]",
    "l2 i32[3,1000] axes=[1]",
    "any bool[3,1000] axes=[1]",
    "max,argmax f32[3,1000] axes=[1]",
    "argmin i64[200,37] axes=[0]",
    "count_nonzero f16[3,1000] axes=[1]",
    "var f32[3,1000] axes=[1]",
    "log_sum_exp f32[3,1000] axes=[1]",
    "softmax f64[7,129] axes=[1]",
    "region x:f32[40,768] axes=[1] { c = centered(x); c / std(x) * 2 + 1, exp(x * 40) }",
    "region x:f32[300,64] axes=[0] { e = exp(x - max(x)); x / l2(x), e / sum(e) }",
    "region x:f64[300,24] axes=[0] { x / l2(x) }",
    "median i16[3,1000] axes=[1]",
];

fn parse(spec: &str) -> Spec {
    spec.parse().unwrap_or_else(|e| panic!("{spec}: {e}"))
}

#[test]
fn every_set_of_features_is_compiled_for() {
    for (features, bits) in FEATURES {
        let target = Target::new("x86_64-unknown-none", features).expect("a target");
        assert_eq!(target.vector_bits(), bits, "{features}");
        let compiler = Compiler::builder().target(target).build().expect("a compiler");
        for spec in SPECS {
            let kernel = compiler.compile(&parse(spec)).unwrap_or_else(|e| panic!("{spec} for {features}: {e}"));
            let (facts, asm) = (kernel.facts(), kernel.dump("asm").expect("assembly"));
            assert!(
                facts.wide_functions.vector_bits == 0 || facts.wide_functions.vector_bits == bits,
                "{spec}: {facts:?}"
            );
            assert!(bits > 128 || facts.wide_functions.count == 0, "{spec}: {facts:?}");
            let has = |register: &str| asm.contains(register);
            assert!(bits >= 256 || !has("ymm"), "{spec} for `{features}`\n{asm}");
            assert!(bits >= 512 || !has("zmm"), "{spec} for `{features}`\n{asm}");
            // Without AVX no instruction has its encoding.
            let is_avx = |line: &str| line.split(":  ").nth(1).is_some_and(|code| code.trim_start().starts_with('v'));
            assert!(features.contains("avx") || features.contains("x86") || !asm.lines().any(is_avx), "{spec}\n{asm}");
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn every_set_of_features_that_this_machine_has_gives_the_same_bits() {
    same_bits(&SPECS.map(parse));
}

/// Columns of bytes are transposed in steps that depend on the features: in pieces of 16 bytes, by pairs of bytes, or by bytes;
/// what is stored in columns is too.
#[test]
#[cfg(target_os = "linux")]
fn every_set_of_features_moves_bytes_alike() {
    let rows = |n: u64| {
        let ops = ["sum i8", "mean u8", "argmax i8", "l2 i8", "all bool"].into_iter();
        ops.map(move |op| format!("{op}[150,{n}] axes=[1]")).chain([format!("min i8[40,5,{n}] axes=[1]")])
    };
    let windows = [4, 6, 20].into_iter().map(|n| format!("max i8[9,5,2,{n},2] axes=[2,4]"));
    let specs: Vec<Spec> = (2..=16).flat_map(rows).chain(windows).map(|text| parse(&text)).collect();
    same_bits(&specs);
}

#[cfg(target_os = "linux")]
fn same_bits(specs: &[Spec]) {
    let host = Compiler::host().expect("this machine");
    // What is lacking is refused, with the feature's name: see `calls.rs`.
    let targets = FEATURES.iter().filter_map(|(features, _)| Target::new("x86_64-unknown-linux-gnu", features).ok());
    let compilers: Vec<Compiler> =
        targets.map(|target| Compiler::builder().target(target).build().expect("a compiler")).collect();
    assert!(!compilers.is_empty(), "SSE2 is everywhere");
    for spec in specs {
        let input = |operand: &Operand, kind| data::elements(operand.dtype(), operand.span_elems() as usize, kind, 3);
        for kind in [0, 1, 2, 4] {
            let input = input(&spec.inputs()[0], kind);
            let expected = run(&host.compile(spec).expect("a kernel"), &input);
            for compiler in &compilers {
                let got = run(&compiler.compile(spec).expect("a kernel"), &input);
                assert!(got == expected, "{spec} for {}, data {kind}", compiler.target());
            }
        }
    }
}

#[cfg(target_os = "linux")]
fn run(kernel: &Kernel, input: &[u8]) -> Vec<Vec<u8>> {
    let spec = kernel.spec().expect("a kernel of a spec");
    let mut outputs: Vec<Vec<u8>> = spec.outputs().iter().map(|o| vec![0; o.span_bytes() as usize]).collect();
    let operands = spec.outputs().iter().zip(&mut outputs);
    let mut outs: Vec<Output> = operands.map(|(o, bytes)| Output::from_bytes(o.dtype(), bytes)).collect();
    kernel.run(&[Input::from_bytes(spec.inputs()[0].dtype(), input)], &mut outs).expect("the right buffers");
    outputs
}

#[test]
fn code_for_other_machines_is_made_but_not_run() {
    let (spec, native) = (parse("softmax f32[7,129] axes=[1]"), "x86_64-unknown-linux-gnu");
    for (triple, features, bits) in [
        ("aarch64-unknown-linux-gnu", "", 128),
        ("riscv64gc-unknown-linux-gnu", "", 0),
        ("riscv64gc-unknown-linux-gnu", "has_v", 128),
        ("s390x-unknown-linux-gnu", "", 128),
        ("s390x-unknown-linux-gnu", "arch13", 128),
        // Whatever this machine has.
        (native, "", 128),
        (native, "x86-64-v4", 512),
    ] {
        let target = Target::elsewhere(triple, features).expect("a target");
        assert_eq!((target.vector_bits(), target.is_host()), (bits, false), "{target}");
        let compiler = Compiler::builder().target(target).build().expect("a compiler");
        let kernel = compiler.compile(&spec).unwrap_or_else(|e| panic!("{triple} {features}: {e}"));
        assert!(!kernel.code().is_empty());
        let mut data = [0.0f32; 7 * 129];
        let refusal = kernel.run_in_place(&mut Output::from(&mut data[..]), &[]).expect_err("a refusal").to_string();
        let shown = format!("{triple} {features}");
        assert_eq!(refusal, format!("the kernel is for {}, not for this machine", shown.trim_end()));
    }
    // The least of RISC-V's vectors are of 128 bits, which Cranelift asks for by a name of its own.
    let vectors = Target::elsewhere("riscv64gc-unknown-linux-gnu", "has_v").expect("a target");
    assert!(vectors.features().contains(&"has_zvl128b"));
}
