//! The cache: bounds, statistics, what is shared and what lives on.

use cranefold::compiler::Statistics;
use cranefold::{Compiler, Error, Kernel, Options, Spec, Target};
use std::collections::HashSet;

fn spec(text: &str) -> Spec {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// Specs of as many problems.
fn specs(count: usize) -> impl Iterator<Item = Spec> {
    (0..count).map(|n| spec(&format!("sum f32[{},3] axes=[1]", n + 2)))
}

fn is_right(kernel: &Kernel) -> bool {
    let [slices, row] = kernel.spec().expect("a kernel of a spec").inputs()[0].shape() else { panic!("two axes") };
    let x: Vec<f32> = (0..slices * row).map(|n| n as f32).collect();
    let mut y = vec![0.0f32; *slices as usize];
    kernel.run_one(&x, &mut y).expect("the right buffers");
    y == x.chunks(*row as usize).map(|row| row.iter().sum()).collect::<Vec<f32>>()
}

#[test]
fn as_many_codes_are_kept_as_was_said() {
    for most in [1, 2, 7, 40] {
        let compiler = Compiler::builder().most_kernels(most).build().expect("a compiler");
        let kernels: Vec<Kernel> = specs(100).map(|s| compiler.compile(&s).expect("a kernel")).collect();
        let told = compiler.statistics();
        assert!(told.kernels as usize <= most && told.kernels > 0, "{most}: {told:?}");
        assert_eq!((told.compiles, told.misses, told.hits, told.failures), (100, 100, 0, 0), "{most}");
        assert_eq!(told.evictions + told.kernels, 100, "{most}");
        // What was let go of lives on with its kernel.
        assert!(kernels.iter().all(is_right));
    }
}

#[test]
fn as_many_bytes_are_kept_as_was_said() {
    let most = 64 << 10;
    let compiler = Compiler::builder().most_code_bytes(most).build().expect("a compiler");
    let kernels: Vec<Kernel> = specs(100).map(|s| compiler.compile(&s).expect("a kernel")).collect();
    let told = compiler.statistics();
    assert!(told.code_bytes <= most && told.code_bytes >= most / 4, "{told:?}");
    let each = kernels.iter().map(|kernel| kernel.facts().memory_bytes);
    assert!(each.clone().all(|bytes| bytes > 0 && bytes.is_multiple_of(64)), "whole lines");
    assert!(
        kernels.iter().all(|k| k.facts().memory_bytes - k.facts().code_bytes < 3 * 64),
        "each function wastes less than a line"
    );
    // Code of more than all that is kept is made for each spec.
    let compiler = Compiler::builder().most_code_bytes(100).build().expect("a compiler");
    for n in 1..=3 {
        assert!(is_right(&compiler.compile(&spec("sum f32[5,3] axes=[1]")).expect("a kernel")));
        let told = compiler.statistics();
        assert_eq!((told.compiles, told.kernels, told.code_bytes, told.evictions), (n, 0, 0, n));
    }
}

#[test]
fn what_is_asked_for_often_stays() {
    let compiler = Compiler::builder().most_kernels(16).build().expect("a compiler");
    let often = spec("max f32[100,3] axes=[1]");
    compiler.compile(&often).expect("a kernel");
    for other in specs(400) {
        for _ in 0..100 {
            compiler.compile(&often).expect("a kernel");
        }
        compiler.compile(&other).expect("a kernel");
    }
    let told = compiler.statistics();
    assert!(told.compiles < 400 + 20, "{told:?}");
}

#[test]
fn problems_share_code_and_each_kernel_keeps_its_spec() {
    let compiler = Compiler::host().expect("this machine");
    let words = ["sum f32[64,65] axes=[1]", "sum f32[64,65,1] axes=[1,2] keep_dims", "sum f32[8,8,5,13] axes=[-1,-2]"];
    let kernels = words.map(|text| compiler.compile(&spec(text)).expect("a kernel"));
    assert!(kernels.iter().all(|k| k.shares_code(&kernels[0])));
    assert!(kernels.iter().all(|k| k.keyed_spec().signature() == kernels[0].keyed_spec().signature()));
    assert_eq!(kernels.map(|k| k.spec().cloned()), words.map(|text| Some(spec(text))));
    // Again, from what this thread keeps in front of the cache.
    let again = words.map(|text| compiler.compile(&spec(text)).expect("a kernel"));
    assert_eq!(again.map(|k| k.spec().cloned()), words.map(|text| Some(spec(text))));
    let told: Statistics = compiler.statistics();
    assert_eq!((told.compiles, told.hits, told.misses, told.kernels), (1, 5, 1, 1));
}

#[test]
fn keyed_specs_find_code_without_compiling() {
    let compiler = Compiler::host().expect("this machine");
    let all: Vec<Spec> = specs(20).collect();
    let keyed: Vec<_> = all.iter().map(|s| compiler.keyed(s)).collect();
    assert!(keyed.iter().all(|r| compiler.get(r).is_none()));
    assert_eq!(compiler.statistics().compiles, 0);
    for keyed in &keyed {
        assert!(is_right(&compiler.compile_keyed(keyed).expect("a kernel")));
        assert_eq!(compiler.get(keyed).expect("it is ready").spec(), keyed.spec());
    }
    // Another thread finds it too, and so does an equal keyed spec.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert!(keyed.iter().all(|r| compiler.get(r).is_some_and(|k| is_right(&k))));
            assert!(all.iter().all(|s| compiler.get(&compiler.keyed(s)).is_some()));
        });
    });
    assert_eq!(compiler.statistics().compiles, 20);
    compiler.clear();
    assert!(keyed.iter().all(|r| compiler.get(r).is_none()), "neither in the cache nor in front of it");
    assert_eq!(compiler.statistics().kernels, 0);
    assert!(is_right(&compiler.compile_keyed(&keyed[0]).expect("a kernel")));
}

#[test]
fn what_is_evicted_is_gone_from_every_front() {
    let compiler = Compiler::builder().most_kernels(8).build().expect("a compiler");
    let first = compiler.keyed(&spec("max f32[100,3] axes=[1]"));
    let memory = compiler.compile_keyed(&first).expect("a kernel").facts().memory_bytes;
    assert!(memory > 0);
    // Each thread has it in its front.
    for _ in 0..8 {
        std::thread::scope(|scope| scope.spawn(|| assert!(compiler.get(&first).is_some())).join().expect("no panic"));
    }
    // Others are asked for as often.
    for s in specs(200) {
        (0..10).for_each(|_| drop(compiler.compile(&s).expect("a kernel")));
    }
    assert!(compiler.statistics().evictions > 150);
    for _ in 0..8 {
        std::thread::scope(|scope| scope.spawn(|| assert!(compiler.get(&first).is_none())).join().expect("no panic"));
    }
}

#[test]
fn signatures_are_told_apart_and_stable() {
    let compiler = Compiler::host().expect("this machine");
    let hashes: HashSet<u128> = specs(2000).map(|s| compiler.keyed(&s).signature().hash()).collect();
    assert_eq!(hashes.len(), 2000);
    // Of a target that is the same everywhere; the text of the problem and the version of the results are in it.
    let target = Target::new("x86_64-unknown-none", "x86-64-v3").expect("a target");
    let compiler = Compiler::builder().target(target).build().expect("a compiler");
    let rows = spec("sum f32[4,1000] axes=[1]");
    let keyed = compiler.keyed(&rows);
    assert_eq!(keyed.signature().to_string(), "b707641e73185dfad0a528386d6c1170");
    let forced = Options { schedule: Some("width=128 jam=1".parse().expect("a schedule")), width: None };
    let forced = compiler.keyed_with(&rows, &forced).expect("a keyed spec");
    assert_ne!(forced.signature(), keyed.signature());
    assert_eq!(forced.spec(), keyed.spec());
}

/// Whatever changes code changes the signature: one feature (VNNI) among them. The same features in other words do not.
#[test]
fn signatures_hold_the_features_of_the_target() {
    let keyed = |target: Target| {
        let compiler = Compiler::builder().target(target).build().expect("a compiler");
        compiler.keyed(&spec("sum i8[4,1000] axes=[1] -> i32"))
    };
    let of = |features: &str| keyed(Target::elsewhere("x86_64-unknown-linux-gnu", features).expect("a target"));
    let (plain, dot) = (of("x86-64-v4"), of("x86-64-v4 has_avx512vnni"));
    assert_ne!(plain.signature(), dot.signature());
    assert_ne!(plain.signature().hash(), dot.signature().hash());
    assert!(!plain.signature().bounds.vectors.dot && dot.signature().bounds.vectors.dot);
    assert_eq!(of("has_avx512vnni,x86-64-v4").signature(), dot.signature());
    for features in ["x86-64-v4 intel", "x86-64-v4 has_avx512vbmi"] {
        assert_ne!(plain.signature().hash(), of(features).signature().hash(), "{features}");
    }
    // This machine by its name and by its features.
    let host = Target::host().expect("this machine");
    let named = Target::new(&host.triple(), &host.features().join(" ")).expect("a target");
    assert_eq!((named.canonical(), named.vectors()), (host.canonical(), host.vectors()));
    assert_eq!(keyed(named).signature(), keyed(host).signature());
}

#[test]
fn a_keyed_spec_for_another_target_is_refused() {
    let least = Compiler::builder().target(Target::new("x86_64-unknown-none", "").expect("a target"));
    let keyed = least.build().expect("a compiler").keyed(&spec("sum f32[8]"));
    let compiler = Compiler::host().expect("this machine");
    let message = compiler.compile_keyed(&keyed).expect_err("a refusal").to_string();
    assert!(message.starts_with("no target `x86_64-unknown-none`: the compiler is for "), "{message}");
    assert_eq!(compiler.statistics().kernels, 0);
}

#[test]
fn a_failure_leaves_nothing_behind() {
    let compiler = Compiler::host().expect("this machine");
    let spec = spec("sum f32[64,65] axes=[1]");
    let wrong = Options { schedule: Some("tile=i1:4".parse().expect("a schedule")), width: None };
    for n in 1..=3 {
        assert!(matches!(compiler.compile_with(&spec, &wrong), Err(Error::Schedule(_))));
        let told = compiler.statistics();
        assert_eq!((told.compiles, told.failures, told.kernels, told.code_bytes), (n, n, 0, 0));
    }
    compiler.compile(&spec).expect("a kernel");
    assert_eq!(compiler.statistics().kernels, 1);
}

#[cfg(unix)]
#[test]
fn code_has_names_for_perf() {
    let compiler = Compiler::builder().perf_map().build().expect("a compiler");
    let kernel = compiler.compile(&spec("sum f32[4,100000] axes=[1]")).expect("a kernel");
    let map = std::fs::read_to_string(format!("/tmp/perf-{}.map", std::process::id())).expect("a map");
    let lines: Vec<(u64, u64, &str)> = map
        .lines()
        .map(|line| {
            let words: Vec<&str> = line.splitn(3, ' ').collect();
            let number = |text| u64::from_str_radix(text, 16).expect("a hexadecimal number");
            (number(words[0]), number(words[1]), words[2])
        })
        .collect();
    let facts = kernel.facts();
    let all_is_wide = facts.wide_functions.code_bytes == facts.code_bytes;
    assert_eq!(lines.len() as u64, facts.wide_functions.count + u64::from(!all_is_wide));
    assert_eq!(lines[0].2, "cranefold::sum_f32_4xr100000_to_f32");
    assert!(lines[1..].iter().zip(0..).all(|(line, n)| line.2 == format!("{}::wide{n}", lines[0].2)), "{map}");
    assert_eq!(lines.iter().map(|line| line.1).sum::<u64>(), facts.code_bytes);
    std::fs::remove_file(format!("/tmp/perf-{}.map", std::process::id())).expect("the map");
}
