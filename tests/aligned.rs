//! Inputs that begin anywhere: loops that read whole vectors read lines of memory instead, with the same bits.
#![cfg(target_arch = "x86_64")]

use cranefold::ops::ROWS;
use cranefold::{Compiler, DType, Options, Problem, Spec, Target, lower};
use cranefold_fuzz::execute::Memory;

/// Bytes of a line.
const LINE: usize = 64;

/// Rows that begin anywhere in a line, longer than two iterations of any loop, with a rest.
const ROWS_OF: &str = "[2,2085] axes=[1]";

/// What more is read beside a row: of another input that begins elsewhere, and rows that all begin as the first does.
const OTHERS: [&str; 6] = [
    "sum f32[2,2085], f32[2,2085] axes=[1] map=\"x0*x1\"",
    "sum f64[2,2085], f64[2085] axes=[1] map=\"x0*x1\"",
    "max i32[2,2085], i32[2085] axes=[1] map=\"x0-x1\"",
    "sum i16[2,2085], i16[2085] axes=[1] map=\"x0*x1\"",
    "sum f32[3,2048] axes=[1]",
    "sum u8[3,4096] axes=[1]",
];

fn specs() -> impl Iterator<Item = Spec> {
    let of_rows = ROWS.iter().flat_map(|row| {
        let spec = move |dtype: DType| format!("{} {dtype}{ROWS_OF}", row.name).parse().ok();
        DType::ALL.into_iter().filter_map(spec)
    });
    of_rows.chain(OTHERS.map(|spec| spec.parse().expect("a spec")))
}

/// Returns whether a loop of a nest loads lines.
fn reads_lines(nest: &str) -> bool {
    nest.contains("misalign ")
}

#[test]
fn rows_have_the_interpreters_bits_wherever_they_begin() {
    let compiler = Compiler::host().expect("this machine");
    let mut by_lines = 0;
    for spec in specs() {
        let kernel = compiler.compile(&spec).expect("a kernel");
        by_lines += usize::from(reads_lines(&kernel.dump("align").expect("a nest")));
        let naive = lower::lower(&Problem::of(&spec), "naive");
        for kind in [1, 2] {
            let expected = Memory::of(&spec, kind, 5, (0, 0)).interpreted(&naive);
            for offset in 0..LINE {
                let mut memory = Memory::of(&spec, kind, 5, (offset, 0));
                // The other input begins elsewhere.
                let elsewhere = Memory::of(&spec, kind, 5, ((7 * offset + 12) % LINE, 0));
                for (input, other) in memory.inputs.iter_mut().zip(elsewhere.inputs).skip(1) {
                    *input = other;
                }
                let same = memory.run(&kernel).iter().zip(&expected).all(|(a, b)| a.bytes() == b.bytes());
                assert!(same, "{spec}, {offset} bytes after the start of a line, data {kind}");
            }
        }
    }
    assert!(by_lines >= 50 || compiler.vectors().bits < 512, "{by_lines} kernels read lines");
}

/// Where a cache is what a loop waits for, it reads lines; no other loop pays for what that takes.
#[test]
fn loops_that_wait_for_a_cache_read_lines() {
    let target = Target::new("x86_64-unknown-none", "x86-64-v4").expect("a target");
    let compiler = Compiler::builder().target(target).build().expect("a compiler");
    let nest = |spec: &str, width: u32| {
        let spec: Spec = spec.parse().unwrap_or_else(|e| panic!("{spec}: {e}"));
        let options = Options { schedule: None, width: Some(width) };
        compiler.compile_with(&spec, &options).expect("a kernel").dump("align").expect("a nest")
    };
    let by_lines = [
        "sum f32[4096]",
        "sum f64[100000]",
        "sum i32[64,1001] axes=[1]",
        "mean f32[7,1001] axes=[1]",
        "l1 f32[4096]",
        "l2 f64[4096]",
        "prod f32[4096]",
        "max f32[4096]",
        "max i16[8192]",
        "any bool[16384]",
        "sum i8[16384]",
        "sum f32[4096], f32[4096] map=\"x0*x1\"",
    ];
    for spec in by_lines {
        let nest = nest(spec, 512);
        assert!(reads_lines(&nest), "{spec}\n{nest}");
    }
    // They wait for their operations, have half vectors, or are too short.
    for spec in ["var f32[4096]", "log_sum_exp f32[4096]", "sum f16[8192]", "sum f32[1000,256] axes=[1]"] {
        let nest = nest(spec, 512);
        assert!(!reads_lines(&nest), "{spec}\n{nest}");
    }
    assert!(!reads_lines(&nest("sum f32[4096]", 256)), "vectors of 32 bytes");
    assert!(!reads_lines(&nest("sum f32[10000000]", 512)), "from memory nothing is gained");
}
