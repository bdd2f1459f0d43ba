//! Outputs that no cache holds: whole vectors are written past the caches, with the same bits.
#![cfg(target_arch = "x86_64")]

use cranefold::{Compiler, Input, Options, Output, Problem, Schedule, Spec, Spinning, Target, lower, schedule};
use cranefold_fuzz::execute::Memory;

/// Bytes of a line.
const LINE: usize = 64;

/// Outputs of vectors of a whole line, of a half and of a quarter; rows that begin at lines, and rows that do not; outputs
/// beside others, and over what was read.
const SPECS: [&str; 8] = [
    "region x:f32[3,256] axes=[1] { m = max(x); e = exp(x - m); e / sum(e) }",
    "region x:f32[3,203] axes=[1] { c = centered(x); c * rsqrt(mean(c * c) + 1e-5) }",
    "region x:bf16[5,192] axes=[1] { bf16(x * rsqrt(mean(x * x) + 1e-6)) }",
    "region x:f64[2,130] axes=[1] { m = mean(x); x - m, m, x * 2 }",
    "region x:f32[4,128] axes=[1] { i8(round(x / max(abs(x)) * 127)) }",
    "region x:f32[64,40] axes=[0] { x - mean(x) }",
    "region x:f32[700] axes=[] { exp(x) }",
    "sum f32[6,5,64] axes=[1]",
];

fn forced(width: u32) -> Options {
    options(&format!("width={width} nontemporal=on"))
}

fn options(schedule: &str) -> Options {
    Options { schedule: Some(schedule.parse().expect("a schedule")), width: None }
}

#[test]
fn outputs_have_the_interpreters_bits_wherever_they_begin() {
    let compiler = Compiler::host().expect("this machine");
    for text in SPECS {
        let spec: Spec = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        let naive = lower::lower(&Problem::of(&spec), "naive");
        for width in [128, 256, 512] {
            let kernel = compiler.compile_with(&spec, &forced(width)).expect("a kernel");
            assert!(kernel.dump("nest").expect("a nest").contains("nontemporal x1: "), "{spec}");
            let bytes = kernel.outputs().map(|(dtype, _)| dtype.bytes() as usize).max().expect("an output");
            for offset in (0..=LINE).step_by(bytes) {
                let memory = Memory::of(&spec, 2, 5, (12, offset));
                let (is, expected) = (memory.run(&kernel), memory.interpreted(&naive));
                let same = is.iter().zip(&expected).all(|(a, b)| a.bytes() == b.bytes());
                assert!(same, "{spec}, {width} bits, outputs {offset} bytes after the start of a line");
            }
        }
    }
}

/// Each part writes its own outputs, on a thread of its own.
#[test]
fn parts_write_past_the_caches() {
    let compiler = Compiler::builder().threads(2).build().expect("a compiler");
    let executor = Spinning::new(2).expect("threads");
    let spec: Spec = "region x:f32[37,128] axes=[1] { x * rsqrt(mean(x * x)) }".parse().expect("a spec");
    let kernel = compiler.compile_with(&spec, &options("width=512 nontemporal=on parts=3")).expect("a kernel");
    let x: Vec<f32> = (0..37 * 128).map(|i| i as f32 / 128.0 - 17.0).collect();
    let [mut serial, mut parallel] = [vec![0f32; x.len()], vec![0f32; x.len()]];
    kernel.run_one(&x, &mut serial).expect("a result");
    for _ in 0..50 {
        parallel.fill(0.0);
        kernel.run_on(&executor, &[Input::from(&x[..])], &mut [Output::from(&mut parallel[..])]).expect("a result");
        assert_eq!(parallel, serial);
    }
}

#[test]
fn outputs_take_the_place_of_inputs() {
    let compiler = Compiler::host().expect("this machine");
    let spec: Spec = SPECS[0].parse().expect("a spec");
    let kernel = compiler.compile_with(&spec, &forced(512)).expect("a kernel");
    let memory = Memory::of(&spec, 2, 5, (0, 0));
    let expected = memory.run(&kernel);
    let mut over = memory;
    over.outputs[0].bytes_mut().copy_from_slice(over.inputs[0].bytes());
    let is = over.run_over(&kernel, &[Some(0)]);
    assert_eq!(is[0].bytes(), expected[0].bytes());
}

/// Written past the caches is what they would not hold until it is read: outputs of each element, beside inputs.
#[test]
fn what_no_cache_holds_is_written_past_the_caches() {
    let chosen = |text: &str, width: u32| -> Schedule {
        schedule::choose(&Problem::of(&text.parse::<Spec>().expect("a spec")), width)
    };
    let rows = |rows: u64| format!("region x:f32[{rows},1024] axes=[1] {{ x * rsqrt(mean(x * x)) }}");
    assert!(chosen(&rows(8192), 512).nontemporal && chosen(&rows(8192), 256).nontemporal);
    assert!(!chosen(&rows(8192), 128).nontemporal, "Cranelift has no such store");
    assert!(!chosen(&rows(1024), 512).nontemporal);
    // 12.6 and 16.8 MB.
    assert!(!chosen(&rows(1536), 512).nontemporal && chosen(&rows(2048), 512).nontemporal);
    assert!(chosen("region x:f32[8388608] axes=[] { exp(x) }", 512).nontemporal);
    assert!(!chosen("region x:f32[1048576] axes=[] { exp(x) }", 512).nontemporal);
    assert!(!chosen("sum f32[8192,4096] axes=[1]", 512).nontemporal);
}

/// Rows that end within a line keep to the caches, unless they are long; columns follow one another.
#[test]
fn rows_that_end_within_a_line_are_written_through_the_caches() {
    let chosen = |shape: &str, axis: usize, ending: &str| -> bool {
        let text = format!("region x:{shape} axes=[{axis}] {{ m = max(x); {ending} }}");
        schedule::choose(&Problem::of(&text.parse::<Spec>().expect("a spec")), 512).nontemporal
    };
    assert!(chosen("f32[60000,208]", 1, "x - m"));
    assert!(!chosen("f32[60000,200]", 1, "x - m"));
    assert!(!chosen("f64[120000,12]", 1, "x - m"));
    assert!(!chosen("f32[60000,208]", 1, "x - m, bf16(x + m)"), "each output counts: rows of 416 bytes");
    assert!(chosen("f32[1500,8004]", 1, "x - m"));
    assert!(chosen("f32[64,3000,36]", 1, "x - m"));
}

/// Whole vectors alone are stored that way, after a test of the address, and before a fence.
#[test]
fn machine_code_tests_addresses_and_ends_with_a_fence() {
    let target = Target::new("x86_64-unknown-none", "x86-64-v4").expect("a target");
    let compiler = Compiler::builder().target(target).build().expect("a compiler");
    let asm = |text: &str, options: &Options| {
        let spec: Spec = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        compiler.compile_with(&spec, options).expect("a kernel").dump("asm").expect("a listing")
    };
    for (text, width, vector, tests) in
        [(SPECS[0], 512, "zmm", ",0x3f"), (SPECS[0], 256, "ymm", ",0x1f"), (SPECS[2], 512, "ymm", ",0x1f")]
    {
        let listing = asm(text, &forced(width));
        let is_store = |line: &&str| line.contains("vmovntps ") && line.contains(vector);
        let number = listing.lines().filter(is_store).count();
        let tested = listing.lines().filter(|line| line.contains("test r") && line.contains(tests)).count();
        assert!(number > 0 && number == tested, "{text}, {width} bits\n{listing}");
        let end: Vec<&str> = listing.lines().filter(|line| line.contains("sfence")).collect();
        assert_eq!(end.len(), 1, "{text}, {width} bits\n{listing}");
    }
    for text in [SPECS[4], "sum f32[6,500] axes=[1]"] {
        assert!(!asm(text, &forced(512)).contains("vmovnt"), "{text}");
    }
    assert!(!asm(SPECS[0], &Options::default()).contains("vmovnt"));
}
