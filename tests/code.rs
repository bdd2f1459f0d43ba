//! What is said of a kernel's code: facts, and the assembly with the names of loops.
#![cfg(target_arch = "x86_64")]

use cranefold::kernel::{StepLoops, WideFunctions};
use cranefold::{Compiler, Kernel, Options, Spec, Target};
use std::collections::BTreeSet;

/// A target with all there is, which is no machine: what it says is the same everywhere.
fn compiler() -> Compiler {
    compiler_for("x86_64-unknown-none", "x86-64-v4")
}

fn compiler_for(triple: &str, features: &str) -> Compiler {
    let target = Target::new(triple, features).expect("a target");
    Compiler::builder().target(target).build().expect("a compiler")
}

fn kernel(compiler: &Compiler, spec: &str, width: u32) -> Kernel {
    let spec: Spec = spec.parse().unwrap_or_else(|e| panic!("{spec}: {e}"));
    compiler.compile_with(&spec, &Options { schedule: None, width: Some(width) }).expect("a kernel")
}

const SPECS: [&str; 12] = [
    "sum f32[4,100000] axes=[1]",
    "sum f32[300,40] axes=[0]",
    "max f16[8,1000] axes=[1]",
    "mean i64[8,1000] axes=[1]",
    "sum i8[70,7,7] axes=[1,2]",
    "argmax i64[8,1000] axes=[1]",
    "l2 i32[5,300] axes=[1]",
    "median f32[4,3000] axes=[1]",
    "mode i16[4,3000] axes=[1]",
    "softmax f32[38,129] axes=[1]",
    "log_sum_exp bf16[3,999] axes=[1]",
    "sum f32[2,3] axes=[1]",
];

/// The loops that a nest counts.
fn counted(nest: &str) -> BTreeSet<String> {
    let heads = nest.lines().map(str::trim).filter(|line| line.starts_with("for "));
    let heads = heads.map(|line| line.split(" {").next().expect("a head").to_string());
    heads.filter(|head| !head.ends_with(" lanes")).collect()
}

/// The loops whose code an assembly shows; checks that each that begins ends.
fn shown(asm: &str) -> BTreeSet<String> {
    let mut open: Vec<&str> = vec![];
    let mut names = BTreeSet::new();
    for line in asm.lines() {
        if let Some(name) = line.trim_start().strip_prefix("; end of ") {
            assert_eq!(open.pop(), Some(name), "{asm}");
        } else if let Some(name) = line.trim_start().strip_prefix("; ") {
            open.push(name);
            if name.starts_with("for ") {
                names.insert(name.to_string());
            }
        } else if line.ends_with(':') {
            assert!(open.is_empty(), "{asm}");
        }
    }
    assert!(open.is_empty(), "{asm}");
    names
}

/// The assembly is of the kernel's own bytes: a dump whose bytes differ is an error.
#[test]
fn the_assembly_has_both_parts_and_every_loop() {
    let host = Compiler::host().expect("this machine");
    for compiler in [&compiler(), &host] {
        for spec in SPECS {
            for width in [0, 128, 256, 512] {
                let kernel = kernel(compiler, spec, width);
                let asm = kernel.dump("asm").unwrap_or_else(|e| panic!("{spec}: {e}"));
                let nest = kernel.dump("prefetch").expect("a nest");
                assert!(!asm.contains("(bad)"), "{spec}\n{asm}");
                let wide_functions = asm.lines().filter(|line| line.starts_with("wide ")).count() as u64;
                assert_eq!(wide_functions, kernel.facts().wide_functions.count, "{spec}\n{asm}");
                // Cranelift's function calls all wide functions; without it there is one, which is all.
                let is_cranelift = asm.starts_with("function:\n     0:  push rbp\n");
                assert!(is_cranelift || asm.starts_with("wide 0:\n") && wide_functions == 1, "{spec}\n{asm}");
                let calls = asm.lines().filter(|line| line.contains("  ; wide ")).count() as u64;
                assert_eq!(calls, if is_cranelift { wide_functions } else { 0 }, "{spec}\n{asm}");
                assert_eq!(shown(&asm), counted(&nest), "{spec}, {width}\n{nest}\n{asm}");
            }
        }
    }
}

/// A core follows a few dozen misses at once, so that a row of prefetches would make the loads behind it wait.
#[test]
fn prefetches_stand_between_loads() {
    let spec: Spec = "region x:f32[64,56,56] axes=[1,2] { mean(max(x, 0)) }".parse().expect("a spec");
    for (distance, instruction) in [(8192, "prefetcht0 "), (32768, "prefetcht1 ")] {
        let schedule = format!("width=512 prefetch={distance}").parse().expect("a schedule");
        let options = Options { schedule: Some(schedule), width: None };
        let asm = compiler().compile_with(&spec, &options).expect("a kernel").dump("asm").expect("assembly");
        let reads =
            asm.lines().filter(|line| line.contains(": ") && (line.contains("prefetch") || line.contains("[r")));
        let asks: Vec<bool> = reads.map(|line| line.contains(instruction)).collect();
        assert!(asks.contains(&true) && asks.windows(2).all(|two| two != [true, true]), "{asm}");
    }
}

#[test]
fn the_assembly_says_what_is_called() {
    let asm = |compiler: &Compiler, spec: &str| kernel(compiler, spec, 128).dump("asm").expect("assembly");
    assert!(asm(&compiler(), "median f32[4,3000] axes=[1]").contains("  ; cranefold_nth_f32\n"));
    assert!(asm(&compiler(), "mode i16[4,3000] axes=[1]").contains("  ; cranefold_mode_i16\n"));
    // Without the instruction, a fused operation is a call.
    let least = compiler_for("x86_64-unknown-none", "");
    assert!(asm(&least, "log_sum_exp f32[100]").contains("  ; fmaf\n"));
    assert!(asm(&least, "log_sum_exp f64[100]").contains("  ; fma\n"));
    assert!(!asm(&compiler(), "log_sum_exp f32[100]").contains("fmaf"));
}

#[test]
fn facts_say_which_part_came_from_where() {
    let compiler = compiler();
    let facts = |spec: &str, width: u32| {
        let kernel = kernel(&compiler, spec, width);
        let facts = kernel.facts();
        assert_eq!(facts.code_bytes, kernel.code().len() as u64);
        facts
    };
    for bits in [256, 512] {
        let wide = facts("sum f32[4,100000] axes=[1]", bits);
        assert_eq!((wide.wide_functions.count, wide.wide_functions.vector_bits), (1, bits));
        assert_eq!(wide.wide_functions.code_bytes, wide.code_bytes, "all is one wide function");
        assert_eq!(wide.step_loops, StepLoops { in_wide: 2, outside: 0 });
        assert!(wide.step_loops.are_in_wide());
    }
    let narrow = facts("sum f32[4,100000] axes=[1]", 128);
    assert_eq!(narrow.wide_functions, WideFunctions { count: 0, code_bytes: 0, vector_bits: 0 });
    assert_eq!(narrow.step_loops, StepLoops { in_wide: 0, outside: 2 });
    // What has no wide form is Cranelift's, though other parts are wide.
    let mixed = facts("l2 i64[8,3000] axes=[1]", 512);
    assert!(!mixed.step_loops.are_in_wide(), "{mixed:?}");
    assert!(mixed.wide_functions.code_bytes < mixed.code_bytes, "{mixed:?}");
    // All is written out.
    let short = facts("sum f32[2,3] axes=[1]", 512);
    assert_eq!((short.wide_functions.count, short.step_loops), (0, StepLoops { in_wide: 0, outside: 0 }));
    assert!(short.step_loops.are_in_wide());
}

/// Rows of a few elements, views with holes and blocks of a matrix are loaded as vectors, not element by element.
#[test]
fn strided_lanes_are_loaded_as_vectors() {
    let specs = [
        "sum f32[4096,2] axes=[1]",
        "sum f32[4096,3] axes=[1]",
        "max f32[4096,7] axes=[1]",
        "sum f64[4096,5] axes=[1]",
        "mean f16[4096,4] axes=[1]",
        "all bool[4096,8] axes=[1]",
        "argmax f32[4096,3] axes=[1]",
        "sum f32[1024,1024]@(2048,2) axes=[1]",
        "sum f32[1024,1024], f32[1024,1024]@ba axes=[1] map=\"x0*x1\"",
        "sum f32[1024,1024], f32[1024,1024]@ba axes=[0] map=\"x0*x1\"",
        "max f64[1024,1024], f64[1024,1024]@ba axes=[0] map=\"x0-x1\"",
    ];
    let compiler = compiler();
    for (spec, width) in specs.into_iter().flat_map(|spec| [(spec, 256), (spec, 512)]) {
        let asm = kernel(&compiler, spec, width).dump("asm").expect("the assembly");
        assert!(!asm.contains("vpinsr"), "{spec}, {width} bits\n{asm}");
    }
}

/// Each of two loops one after the other, over whole tiles and over what is left, keeps constants in registers of its own.
#[test]
fn constants_are_loaded_before_each_loop() {
    let spec: Spec = "sum bf16[1024,1000] axes=[0]".parse().expect("a spec");
    let options = Options { schedule: Some("width=512 tile=i0:192".parse().expect("a schedule")), width: None };
    let asm = compiler().compile_with(&spec, &options).expect("a kernel").dump("asm").expect("the assembly");
    let mut depth = 0;
    let mut masks = vec![];
    for line in asm.lines().map(str::trim) {
        depth += i32::from(line.starts_with("; for k")) - i32::from(line.starts_with("; end of for k"));
        masks.extend(line.contains("kmovq").then_some(depth));
    }
    assert!(asm.matches("; for k").count() == 2 && !masks.is_empty() && masks.iter().all(|&depth| depth == 0), "{asm}");
}

/// Values of a few slices are spread over rows in registers, by a permutation for each vector whose lanes stand
/// otherwise than in the vector before, and no scratch memory is read.
#[test]
fn values_are_spread_in_registers() {
    let compiler = compiler();
    for (spec, permutations) in [
        ("l2_normalize f32[300,16,3] axes=[1]", 3),
        ("l2_normalize f32[300,16,2] axes=[1]", 1),
        ("l2_normalize f64[300,16,3] axes=[1]", 6),
    ] {
        let asm = kernel(&compiler, spec, 512).dump("asm").expect("the assembly");
        assert_eq!(asm.matches("vperm").count(), permutations, "{spec}\n{asm}");
        assert!(!asm.contains("[rsi"), "{spec}: scratch memory\n{asm}");
    }
}

/// In a loop over steps the maxima of one accumulator look for NaN once in two elements and put it in once; and their values
/// stay in registers, of rows and of columns.
#[test]
fn maxima_of_floats_look_for_nan_together_and_stay_in_registers() {
    let compiler = compiler();
    let asm = kernel(&compiler, "max f32[4096]", 512).dump("asm").expect("the assembly");
    let steps = asm.split("; for k0 in").nth(1).and_then(|rest| rest.split("; end of for k0").next()).expect("steps");
    let count = |name| steps.matches(name).count();
    assert_eq!(["vrangeps", "vcmpordps", "vpblendmd"].map(count), [16, 12, 4], "{steps}");
    for (spec, width) in [
        ("max f32[4096]", 512),
        ("max f32[4096,3] axes=[1]", 256),
        ("max f32[3,4096] axes=[0]", 256),
        ("max f32[64,256] axes=[0]", 512),
        ("max f64[4096]", 256),
        ("max f64[1024,1024] axes=[0]", 512),
    ] {
        let asm = kernel(&compiler, spec, width).dump("asm").expect("the assembly");
        let moved = |line: &&str| line.contains("[rsi") && (line.contains("vmovdqu") || line.contains("kmov"));
        let in_loops = asm.split("; for ").skip(1).map(|l| l.split("; end of").next().expect("a loop"));
        let moves = in_loops.map(|l| l.lines().filter(moved).count()).sum::<usize>();
        assert_eq!(moves, 0, "{spec}, {width} bits\n{asm}");
    }
}
