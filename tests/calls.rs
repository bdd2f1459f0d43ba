//! What is refused and how it is said, what is left alone then, and what kernels and compilers promise
//! to threads and to those that outlive them.

use cranefold::{
    CallError, Compiler, DType, Element, Error, Input, Kernel, Options, Output, Problem, Schedule, Spec, Target,
    Vectors,
};
use cranefold_fuzz::data;
use std::sync::Barrier;

fn spec(text: &str) -> Spec {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn host() -> Compiler {
    Compiler::host().expect("this machine")
}

fn compiler_for(target: Target) -> Compiler {
    Compiler::builder().target(target).build().expect("a compiler")
}

fn kernel(text: &str) -> Kernel {
    host().compile(&spec(text)).unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// Calls `sum f32[2,3] axes=[1]` and gives the refusal; checks that nothing was written.
fn refusal<T: Element, U: Element + PartialEq + std::fmt::Debug>(input: &[T], before: &[U]) -> String {
    let mut output = before.to_vec();
    let error = kernel("sum f32[2,3] axes=[1]").run_one(input, &mut output).expect_err("a refusal");
    assert_eq!(output, before, "{error}");
    error.to_string()
}

#[test]
fn buffers_of_another_type_or_length_are_refused() {
    let (x, y) = (&[1.0f32; 6], &[7.0f32; 2]);
    assert_eq!(refusal(&[1.0f64; 6], y), "input 0 is f64, the kernel `sum f32[2,3] axes=[1]` takes f32");
    assert_eq!(refusal(&[1i32; 6], y), "input 0 is i32, the kernel `sum f32[2,3] axes=[1]` takes f32");
    assert_eq!(refusal(x, &[7u32; 2]), "output 0 is u32, the kernel `sum f32[2,3] axes=[1]` takes f32");
    assert_eq!(refusal(x, &[true; 2]), "output 0 is bool, the kernel `sum f32[2,3] axes=[1]` takes f32");
    assert_eq!(refusal(&x[..5], y), "input 0 has 5 elements, the kernel `sum f32[2,3] axes=[1]` takes 6");
    assert_eq!(refusal::<f32, f32>(&[], y), "input 0 has 0 elements, the kernel `sum f32[2,3] axes=[1]` takes 6");
    assert_eq!(refusal(x, &[7.0f32]), "output 0 has 1 elements, the kernel `sum f32[2,3] axes=[1]` takes 2");
    // Of several faults the first in order is told: inputs before outputs, type before length.
    assert_eq!(refusal(&[1u8; 5], &[7u8; 3]), "input 0 is u8, the kernel `sum f32[2,3] axes=[1]` takes f32");
}

#[test]
fn other_numbers_of_buffers_are_refused() {
    let kernel = kernel("sum f32[2,3] axes=[1]");
    let x = [1.0f32; 6];
    let (mut y, mut z) = ([7.0f32; 2], [7.0f32; 2]);
    let input = || Input::from(&x[..]);
    let message = |result: Result<(), CallError>| result.expect_err("a refusal").to_string();
    assert_eq!(
        message(kernel.run(&[], &mut [Output::from(&mut y[..])])),
        "0 inputs were given, the kernel `sum f32[2,3] axes=[1]` takes 1"
    );
    let twice = message(kernel.run(&[input(), input()], &mut [Output::from(&mut y[..])]));
    assert_eq!(twice, "2 inputs were given, the kernel `sum f32[2,3] axes=[1]` takes 1");
    assert_eq!(
        message(kernel.run(&[input()], &mut [])),
        "0 outputs were given, the kernel `sum f32[2,3] axes=[1]` takes 1"
    );
    let two = message(kernel.run(&[input()], &mut [Output::from(&mut y[..]), Output::from(&mut z[..])]));
    assert_eq!(two, "2 outputs were given, the kernel `sum f32[2,3] axes=[1]` takes 1");
    assert_eq!((y, z), ([7.0; 2], [7.0; 2]));
}

#[test]
fn bytes_that_are_no_whole_elements_are_refused() {
    let kernel = kernel("sum f32[2,3] axes=[1]");
    let (x, mut y) = ([0u8; 25], [7u8; 9]);
    let mut call = |x: usize, y_bytes: usize, input: &[u8]| {
        let inputs = [Input::from_bytes(DType::F32, &input[..x])];
        kernel.run(&inputs, &mut [Output::from_bytes(DType::F32, &mut y[..y_bytes])]).map_err(|e| e.to_string())
    };
    for (bytes, elements) in [(0, 0), (4, 1), (20, 5)] {
        assert_eq!(
            call(bytes, 8, &x),
            Err(format!("input 0 has {elements} elements, the kernel `sum f32[2,3] axes=[1]` takes 6"))
        );
    }
    for bytes in [1, 21, 22, 23] {
        assert_eq!(call(bytes, 8, &x), Err(format!("input 0 has {bytes} bytes, no whole number of f32 elements of 4")));
    }
    for bytes in [5, 7] {
        assert_eq!(
            call(24, bytes, &x),
            Err(format!("output 0 has {bytes} bytes, no whole number of f32 elements of 4"))
        );
    }
    assert_eq!(call(24, 8, &x), Ok(()));
    assert_eq!(y, [0, 0, 0, 0, 0, 0, 0, 0, 7]);
}

/// A buffer may be longer than the span; what follows the span stays.
#[test]
fn longer_buffers_are_taken() {
    let kernel = kernel("sum f32[2,3] axes=[1]");
    let (x, mut y) = ([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, f32::NAN, 8.0], [7.0f32; 5]);
    kernel.run(&[Input::from(&x)], &mut [Output::from(&mut y)]).expect("longer buffers");
    assert_eq!(y, [6.0, 15.0, 7.0, 7.0, 7.0]);
    let two = Compiler::builder().threads(2).build().expect("this machine");
    let kernel = two.compile(&spec("sum f32[3000000]")).expect("a kernel");
    assert!(kernel.parts() > 1);
    let (x, mut y) = (vec![1.0f32; 3_000_001], [7.0f32; 2]);
    kernel.run_on(&cranefold::Serial, &[Input::from(&x)], &mut [Output::from(&mut y)]).expect("longer buffers");
    assert_eq!(y, [3e6, 7.0]);
}

/// An error names the kernel, cut if it is long, and scalars and operands of regions by their names.
#[test]
fn errors_name_kernel_and_operand() {
    let region = kernel("region x:f32[2,3], h:f32[2,3] axes=[1] scalar eps:f64 { y = x + h; f64(sum(y)) + eps }");
    let x = [1.0f32; 6];
    let mut y = [7.0f64; 2];
    let mut message = |eps: Input<'_>| {
        let inputs = [Input::from(&x), Input::from(&x), eps];
        region.run(&inputs, &mut [Output::from(&mut y)]).expect_err("a refusal").to_string()
    };
    let text = "region x:f32[2,3], h:f32[2,3] axes=[1] scalar eps:f64 { y = x + h; f64(sum(y)) + eps }";
    let cut = &region.spec().expect("a spec").to_string();
    let cut = if cut.chars().count() > 100 { format!("{}...", cut[..100].trim_end()) } else { cut.clone() };
    assert_eq!(message(Input::scalar(1.0f32)), format!("input 2 (eps) is f32, the kernel `{cut}` takes f64"), "{text}");
    assert_eq!(message(Input::from(&[0.0f64; 0])), format!("input 2 (eps) has 0 elements, the kernel `{cut}` takes 1"));
}

/// Values, arrays, lists, raw pointers: every way to name a buffer gives the same bits, and argument lists may be made on one
/// thread and used on another.
#[test]
#[allow(unsafe_code, reason = "makes an input of a raw pointer")]
fn buffers_of_every_kind() {
    fn assert_send_sync<T: Send + Sync>(_: &T) {}
    let kernel = kernel("region x:f32[2,3] axes=[1] scalar k:f32 { x * k, sum(x) * k }");
    let list: Vec<f32> = (0..6).map(|i| i as f32).collect();
    let array: [f32; 6] = std::array::from_fn(|i| i as f32);
    let bytes: Vec<u8> = list.iter().flat_map(|x| x.to_ne_bytes()).collect();
    // SAFETY: the pointer is that of a list which outlives the input.
    let raw = unsafe { Input::from_raw(DType::F32, list.as_ptr().cast(), 6) };
    let k = Input::scalar(3.0f32);
    let inputs = [
        [Input::from(&list), k],
        [Input::from(&array), k],
        [Input::from(&list[..]), Input::from(&[3.0f32])],
        [Input::from_bytes(DType::F32, &bytes), k],
        [raw, k],
    ];
    assert_send_sync(&inputs);
    std::thread::scope(|scope| {
        for inputs in &inputs {
            let kernel = &kernel;
            scope.spawn(move || {
                let (mut all, mut sums) = (vec![0.0f32; 6], [0.0f32; 2]);
                let mut outputs = [Output::from(&mut all), Output::from(&mut sums)];
                assert_send_sync(&outputs);
                kernel.run(inputs, &mut outputs).expect("a call");
                assert_eq!((all, sums), (vec![0.0, 3.0, 6.0, 9.0, 12.0, 15.0], [9.0, 36.0]));
            });
        }
    });
    // A value of each type is the bytes of its element.
    let types = [
        (Input::scalar(true), "bool"),
        (Input::scalar(-3i8), "i8"),
        (Input::scalar(7u16), "u16"),
        (Input::scalar(-9i64), "i64"),
        (Input::scalar(2.5f64), "f64"),
        (Input::scalar(half::bf16::ONE), "bf16"),
        (Input::scalar(half::f16::ONE), "f16"),
    ];
    let expected: [&[u8]; 7] = [
        &[1],
        &(-3i8).to_ne_bytes(),
        &7u16.to_ne_bytes(),
        &(-9i64).to_ne_bytes(),
        &2.5f64.to_ne_bytes(),
        &half::bf16::ONE.to_ne_bytes(),
        &half::f16::ONE.to_ne_bytes(),
    ];
    for ((input, dtype), bytes) in types.into_iter().zip(expected) {
        let copy = host().compile(&spec(&format!("max {dtype}[1] axes=[]"))).expect("a kernel");
        let mut out = vec![9u8; bytes.len()];
        let dtype = dtype.parse().expect("a dtype");
        copy.run(&[input], &mut [Output::from_bytes(dtype, &mut out)]).expect("a call");
        assert_eq!(out, bytes, "{dtype}");
    }
}

#[test]
fn schedules_that_do_not_fit_are_refused() {
    let text = |text: &str| text.parse::<Schedule>().expect_err("no schedule").to_string();
    let unknown = |word: &str| {
        for written in ["width=BITS", "tile=LOOP:ITERATIONS[@across|@rows|@blocks|@runs|@folds|@lanes]"] {
            if word.split('=').next() == written.split('=').next() {
                return format!("`{word}` is no decision of a schedule: it is written `{written}`");
            }
        }
        format!(
            "`{word}` is no decision of a schedule; they are width=BITS form=plain|direct tile=LOOP:ITERATIONS[@across|@rows|@blocks|@runs|@folds|@lanes] jam=STEPS in_flight=BLOCKS interleave=ITERATIONS prefetch=BYTES align=BYTES transpose=on|off gather=ELEMENTS nontemporal=on|off keep=VALUES write=first|last parts=PARTS[@blocks]"
        )
    };
    for word in [
        "fast",
        "width",
        "width=",
        "width=x",
        "width=-1",
        "width=4294967296",
        "tile=i0",
        "tile=i:4",
        "tile=k0:4",
        "tile=i0:-4",
    ] {
        assert_eq!(text(word), unknown(word));
    }
    assert_eq!(text(&"é".repeat(1000)), unknown(&"é".repeat(60)));
    assert_eq!(text("width=96"), "width=96 is none of 0 (scalar), 64, 128, 256, 512 and 1024 bits");
    assert_eq!(text("jam=0"), "jam=0 is outside 1 to 64");
    assert_eq!(text("jam=65"), "jam=65 is outside 1 to 64");
    assert_eq!(text("in_flight=0"), "in_flight=0 is outside 1 to 16");
    assert_eq!(text("in_flight=17"), "in_flight=17 is outside 1 to 16");
    assert_eq!(text("in_flight=2 in_flight=2"), "`in_flight` of the schedule is given twice");
    assert_eq!(text("tile=i3:0"), "tile=i3:0 has no iterations");
    assert_eq!(text("jam=1 jam=1"), "`jam` of the schedule is given twice");
    assert_eq!(
        text("tile=i0:4@blocks in_flight=2"),
        "tile=i0:4@blocks takes outputs together, and in_flight=2 several blocks at once: only one may be"
    );
    assert_eq!(
        text("tile=i0:4@runs in_flight=2"),
        "tile=i0:4@runs takes outputs together, and in_flight=2 several blocks at once: only one may be"
    );
    assert_eq!(text("tile=i0:4@lines"), unknown("tile=i0:4@lines"));
    assert_eq!(text("width=0 jam=1 width=0"), "`width` of the schedule is given twice");

    let forced = |text: &str, schedule: &str| {
        let schedule = Some(schedule.parse().expect("a schedule"));
        let error = host().compile_with(&spec(text), &Options { schedule, width: None }).expect_err("a refusal");
        assert!(matches!(error, Error::Schedule(_)), "{error:?}");
        error.to_string()
    };
    let tile = "tile=i2:4 jam=1";
    assert_eq!(
        forced("sum f32[8,9,10] axes=[0]", "tile=i1:4"),
        "tile=i1: the problem has no output loop i1; it has i0"
    );
    assert_eq!(forced("sum f32[8,9,10] axes=[1]", tile), "tile=i2: the problem has no output loop i2; it has i0 i1");
    assert_eq!(forced("sum f32[8,9,10]", tile), "tile=i2: the problem has no output loop i2; it has none");
    assert_eq!(forced("sum f32[0,9,10] axes=[1]", tile), "tile=i2: the problem has no output loop i2; it has none");
    assert_eq!(
        forced("sum f32[64,100000] axes=[0]", "tile=i0:100000"),
        "the schedule keeps 1200000 bytes of state, above the limit of 262144"
    );
    // Numbers that no arithmetic may overflow on.
    assert_eq!(
        forced("sum f32[64,9223372036854775]@(0,0) axes=[0] -> @(1)", "tile=i0:18446744073709551615"),
        "the schedule keeps 7083549724304467200 bytes of state, above the limit of 262144"
    );
    let error =
        host().compile_with(&spec("sum f32[8]"), &Options { schedule: None, width: Some(129) }).expect_err("a refusal");
    assert_eq!(error.to_string(), "width=129 is none of 0 (scalar), 64, 128, 256, 512 and 1024 bits");
}

#[test]
fn a_schedule_fits_what_has_nothing_to_reduce_or_to_write() {
    for text in ["sum f32[0,3] axes=[1]", "sum f32[3,0] axes=[1]", "sum f32[0]", "sum f32[]", "max i8[4] axes=[]"] {
        let schedule = Some("width=64 jam=3 in_flight=5".parse().expect("a schedule"));
        let kernel = host().compile_with(&spec(text), &Options { schedule, width: None });
        assert!(kernel.is_ok(), "{text}: {kernel:?}");
    }
}

/// A schedule that is chosen can be forced: it keeps to the limits, and reads back.
#[test]
fn chosen_schedules_can_be_forced() {
    let (mut moved, mut among_runs) = (0, 0);
    for channels in [2u64, 3, 17, 64, 93, 100, 186, 187, 1000] {
        for (batch, side) in [(64, 56), (256, 28), (2048, 24), (512, 14), (4096, 12), (10_000, 7), (16, 112)] {
            for (op, axes) in
                [("sum", "0,2,3"), ("var", "0,2,3"), ("max", "0,2"), ("argmax", "0,3"), ("sum", "1"), ("l2", "2,3")]
            {
                for layout in ["", "@nhwc", "@nChw16c"] {
                    let problem = Problem::of(&spec(&format!(
                        "{op} f32[{batch},{channels},{side},{side}]{layout} axes=[{axes}]"
                    )));
                    let schedule = cranefold::schedule::choose(&problem, 128);
                    assert_eq!(schedule.check(&problem), Ok(()), "{schedule} for {problem}");
                    assert_eq!(schedule.to_string().parse(), Ok(schedule.clone()));
                    moved += usize::from(schedule.to_string().contains("@blocks"));
                    among_runs += usize::from(schedule.to_string().contains("@runs"));
                }
            }
        }
    }
    assert!(moved > 20 && among_runs > 5, "{moved} tiles move into blocks, {among_runs} among runs");
}

#[test]
fn a_schedule_built_by_hand_is_checked_too() {
    let problem = Problem::of(&spec("sum f32[8,9] axes=[0]"));
    let message = |schedule: Schedule| schedule.check(&problem).expect_err("a refusal").to_string();
    let good: Schedule = "width=128 tile=i0:4 jam=2".parse().expect("a schedule");
    assert_eq!(good.check(&problem), Ok(()));
    assert_eq!(
        message(Schedule { width: 7, ..good.clone() }),
        "width=7 is none of 0 (scalar), 64, 128, 256, 512 and 1024 bits"
    );
    assert_eq!(message(Schedule { jam: u64::MAX, ..good.clone() }), "jam=18446744073709551615 is outside 1 to 64");
    let tiles = good.tiles.iter().map(|&t| cranefold::schedule::Tile { by: 0, ..t }).collect();
    assert_eq!(message(Schedule { tiles, ..good.clone() }), "tile=i0:0 has no iterations");
    let twice = good.tiles.iter().chain(&good.tiles).copied().collect();
    assert_eq!(
        message(Schedule { tiles: twice, ..good }),
        "tile=i0 and tile=i0 are loops over the same outputs, of which one is tiled"
    );
}

#[test]
fn targets_that_cannot_be_are_refused() {
    let message = |triple: &str, features: &str| Target::new(triple, features).expect_err("a refusal").to_string();
    assert_eq!(message("nowhere", ""), "no target `nowhere`: Unrecognized architecture: nowhere");
    assert!(message("wasm32-unknown-unknown", "").starts_with("no target `wasm32-unknown-unknown`: "));
    assert!(message("x86_64-unknown-linux-gnu", "has_magic").contains("no feature `has_magic`"));
    let long = message(&"x".repeat(1000), "");
    assert!(long.starts_with(&format!("no target `{}`: ", "x".repeat(80))), "{long}");
    // Cranelift's reasons repeat what they were given.
    assert!(long.len() < 600 && message("x86_64-unknown-linux-gnu", &"x".repeat(100_000)).len() < 600);
}

/// Vectors follow from the features, of a preset too.
#[test]
#[cfg(target_arch = "x86_64")]
fn vectors_of_targets() {
    let vectors = |features: &str| Target::new("x86_64-unknown-none", features).expect("a target").vectors();
    let avx2 = "has_avx2 has_fma has_bmi1 has_f16c";
    let avx512 = format!("{avx2} has_avx512f has_avx512dq has_avx512vl has_avx512bw");
    let cases = [
        (String::new(), 128, false),
        ("has_avx2 has_fma has_bmi1".into(), 128, false),
        (avx2.into(), 256, false),
        (format!("{avx2} has_avx_vnni"), 256, true),
        (format!("{avx2} has_avx512vnni"), 256, false),
        (avx512.replace(" has_avx512bw", ""), 256, false),
        (format!("{avx512} has_avx_vnni"), 512, false),
        (format!("{avx512} has_avx512vnni"), 512, true),
        (format!("{avx2} has_avx512vbmi"), 256, false),
        ("x86-64-v2".into(), 128, false),
        ("x86-64-v3".into(), 256, false),
        ("haswell".into(), 256, false),
        ("x86-64-v4".into(), 512, false),
    ];
    assert_eq!(vectors("icelake-server"), Vectors::WIDEST);
    let bytes = vectors("x86-64-v4 has_avx512vbmi");
    assert_eq!(bytes, Vectors { byte_permutes: true, ..vectors("x86-64-v4") });
    let slow = vectors("x86-64-v4 intel");
    assert_eq!(slow, Vectors { intel: true, ..vectors("x86-64-v4") });
    assert_eq!(vectors("intel x86-64-v3"), vectors("x86-64-v3"), "vectors of 512 bits alone");
    for (features, bits, dot) in cases {
        assert_eq!(vectors(&features), Vectors { bits, dot, ..Vectors::BASE }, "{features}");
    }
}

/// Tests for x86-64 with Linux, whose features are known by name here.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod on_x86_64_linux {
    use super::*;

    const TARGET: &str = "x86_64-unknown-linux-gnu";

    #[test]
    fn features_that_this_machine_lacks_are_refused() {
        let known = [
            ("has_ssse3", is_x86_feature_detected!("ssse3")),
            ("has_sse41", is_x86_feature_detected!("sse4.1")),
            ("has_avx", is_x86_feature_detected!("avx")),
            ("has_avx2", is_x86_feature_detected!("avx2")),
            ("has_fma", is_x86_feature_detected!("fma")),
            ("has_f16c", is_x86_feature_detected!("f16c")),
            ("has_avx512bw", is_x86_feature_detected!("avx512bw")),
            ("has_avx512dq", is_x86_feature_detected!("avx512dq")),
            ("has_avx512vbmi", is_x86_feature_detected!("avx512vbmi")),
        ];
        for (name, detected) in known {
            match Target::new(TARGET, name) {
                Ok(target) => assert!(detected && target.is_host(), "{name}"),
                Err(error) => {
                    assert!(!detected, "{name}: {error}");
                    let lacks = format!("no target `{TARGET}`: this machine lacks the feature `{name}`");
                    assert_eq!(error.to_string(), lacks);
                }
            }
        }
        // Of a preset the feature that is lacking is named.
        match Target::new(TARGET, "x86-64-v4") {
            Ok(target) => assert_eq!(target.vector_bits(), 512),
            Err(error) => assert!(error.to_string().ends_with("of `x86-64-v4`"), "{error}"),
        }
        // Of a foreign system any known feature may be asked for.
        let foreign = Target::new("x86_64-apple-darwin", "has_avx512vbmi has_fma,has_avx").expect("a target");
        assert!(!foreign.is_host());
        assert_eq!(foreign.to_string(), "x86_64-apple-darwin has_avx512vbmi,has_fma,has_avx");
    }

    #[test]
    fn a_foreign_kernel_is_compiled_and_not_run() {
        let target = Target::new("x86_64-apple-darwin", "").expect("a target");
        let kernel = compiler_for(target).compile(&spec("sum f32[2,3] axes=[1]")).expect("a kernel");
        assert!(!kernel.code().is_empty());
        assert!(kernel.dump("all").is_ok());
        let mut y = [7.0f32; 2];
        let error = kernel.run_one(&[1.0f32; 6], &mut y).expect_err("a refusal");
        assert_eq!(error.to_string(), "the kernel is for x86_64-apple-darwin, not for this machine");
        assert_eq!(y, [7.0; 2]);
        // Buffers are checked all the same.
        let error = kernel.run_one(&[1.0f32; 5], &mut y).expect_err("a refusal");
        assert_eq!(error.to_string(), "input 0 has 5 elements, the kernel `sum f32[2,3] axes=[1]` takes 6");
    }

    /// The least machine of its kind: no SSE3, no FMA, so that fma and rounding are calls.
    #[test]
    fn the_least_instruction_set_gives_the_same_bits() {
        let (host, least) = (host(), compiler_for(Target::new(TARGET, "").expect("a target")));
        for row in cranefold::ops::ROWS {
            for dtype in DType::ALL.into_iter().filter(|&d| row.takes(d)) {
                let param = |param: &cranefold::ops::Param| match param.name {
                    "p" => "p=2.5".to_string(),
                    name if param.is_flag => name.into(),
                    name => format!("{name}=0.5"),
                };
                let params: Vec<String> = row.params.iter().map(param).collect();
                let params = if params.is_empty() { String::new() } else { format!("({})", params.join(",")) };
                let counts = row.results.contains(&cranefold::ops::ResultKind::Count);
                for output in if counts && row.results.len() == 1 {
                    &["", "-> i32", "-> u64", "-> u8"]
                } else if row.results.len() > 1 {
                    &[""]
                } else {
                    outputs(dtype)
                } {
                    same_bits(&host, &least, &format!("{}{params} {dtype}[3,133] axes=[1] {output}", row.name));
                }
                for rest in ["[67,21] axes=[0]", "[3,19,5] axes=[1]"] {
                    let output = if dtype.is_float() && row.results.len() == 1 && !counts { "-> f32" } else { "" };
                    same_bits(&host, &least, &format!("{}{params} {dtype}{rest} {output}", row.name));
                }
            }
        }
    }

    fn same_bits(host: &Compiler, least: &Compiler, text: &str) {
        let spec = spec(text);
        let kernels = [host, least].map(|c| c.compile(&spec).expect("a kernel"));
        for kind in [1, 2, 3] {
            let operand = &spec.inputs()[0];
            let input = data::elements(operand.dtype(), operand.span_elems() as usize, kind, 99);
            let [on_host, on_least] = kernels.each_ref().map(|kernel| run(kernel, &input));
            assert!(on_host == on_least, "{spec}, data {kind}");
        }
    }

    fn run(kernel: &Kernel, input: &[u8]) -> Vec<Vec<u8>> {
        let (from, to) = (
            kernel.spec().expect("a kernel of a spec").inputs()[0].dtype(),
            kernel.spec().expect("a kernel of a spec").outputs(),
        );
        let mut outputs: Vec<Vec<u8>> = to.iter().map(|o| vec![0; o.span_bytes() as usize]).collect();
        let mut outs: Vec<Output> =
            to.iter().zip(&mut outputs).map(|(o, bytes)| Output::from_bytes(o.dtype(), bytes)).collect();
        kernel.run(&[Input::from_bytes(from, input)], &mut outs).expect("the right buffers");
        outputs
    }

    /// Outputs whose conversions differ in instructions.
    fn outputs(input: DType) -> &'static [&'static str] {
        match input {
            DType::Bool => &[""],
            _ if input.is_float() => &[
                "trunc -> i32",
                "round_half_even -> u64",
                "round_half_even -> i8",
                "-> f16",
                "-> bf16",
                "-> f32",
                "-> f64",
            ],
            _ => &["", "saturate", "-> f32", "-> u64", "-> bf16"],
        }
    }
}

#[test]
fn threads_that_ask_for_one_kernel_compile_it_once() {
    // The same problem in other words each.
    let words = ["sum f32[64,65] axes=[1]", "sum f32[64,65,1] axes=[1,2] keep_dims", "sum f32[8,8,5,13] axes=[-1,-2]"];
    for round in 0..20 {
        let compiler = host();
        let barrier = Barrier::new(8);
        let kernels: Vec<Kernel> = std::thread::scope(|scope| {
            let ask = |n: usize| {
                let (compiler, barrier, spec) = (&compiler, &barrier, spec(words[(n + round) % words.len()]));
                move || {
                    barrier.wait();
                    compiler.compile(&spec).expect("a kernel")
                }
            };
            let threads: Vec<_> = (0..8).map(|n| scope.spawn(ask(n))).collect();
            threads.into_iter().map(|t| t.join().expect("no panic")).collect()
        });
        let counted = compiler.statistics();
        assert_eq!((counted.compiles, counted.hits + counted.misses, counted.kernels), (1, 8, 1));
        assert!(kernels.iter().all(|k| k.shares_code(&kernels[0])), "one code for all");
    }
}

#[test]
fn what_changes_the_code_is_told_apart() {
    let compiler = host();
    let spec = spec("sum f32[64,65] axes=[0]");
    let forced = |text: &str| Options { schedule: Some(text.parse().expect("a schedule")), width: None };
    let all = [
        Options::default(),
        Options { schedule: None, width: Some(0) },
        forced("width=128 tile=i0:16 jam=1"),
        forced("width=128 tile=i0:16 jam=2"),
    ];
    for (n, options) in all.iter().enumerate() {
        let again = [(); 2].map(|()| compiler.compile_with(&spec, options).expect("a kernel"));
        assert!(again[0].shares_code(&again[1]));
        assert_eq!(compiler.statistics().kernels, n as u64 + 1, "{options:?}");
    }
    // A width above the target's is the target's; a refusal is not kept.
    compiler.compile_with(&spec, &Options { schedule: None, width: Some(1024) }).expect("a kernel");
    // Nor does a width change the code of a schedule that is narrow itself.
    for width in [0, 128, 512] {
        let options = Options { width: Some(width), ..forced("width=128 tile=i0:16 jam=1") };
        assert_eq!(compiler.compile_with(&spec, &options).expect("a kernel").vectors(), Vectors::BASE);
    }
    for _ in 0..2 {
        assert!(compiler.compile_with(&spec, &forced("tile=i1:4")).is_err());
    }
    assert_eq!(compiler.statistics().kernels, 4);
}

#[test]
fn kernels_outlive_their_compiler_and_run_on_any_thread() {
    fn shared<T: Send + Sync + Clone + 'static>(_: &T) {}
    let kernel = kernel("sum f32[4,1000] axes=[1]");
    shared(&kernel);
    // The compiler is gone; clones run at once, the last after the others.
    let threads: Vec<_> = (0..8u8)
        .map(|n| {
            let kernel = kernel.clone();
            std::thread::spawn(move || {
                for _ in 0..200 {
                    let mut y = [0.0f32; 4];
                    kernel.run_one(&[f32::from(n); 4000], &mut y).expect("the right buffers");
                    assert_eq!(y, [1000.0 * f32::from(n); 4]);
                }
            })
        })
        .collect();
    drop(kernel);
    threads.into_iter().for_each(|t| t.join().expect("no panic"));
}

#[test]
fn the_stages_are_named_where_there_is_no_such_stage() {
    let error = kernel("sum f32[8]").dump("lexer").expect_err("no stage").to_string();
    let names: Vec<&str> = cranefold::inspect::dump::stage_names().chain(["all"]).collect();
    assert_eq!(error, format!("`lexer` is no stage; the stages are {}", names.join(" ")));
}
