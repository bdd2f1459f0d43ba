//! The example that reduces a file in several processes.

use cranefold::{Compiler, Scalar, Spec};
use std::path::PathBuf;
use std::process::Command;

/// The example, built as this test is.
fn example() -> PathBuf {
    let this = std::env::current_exe().expect("this test");
    let profile = this.ancestors().nth(2).expect("the folder of the profile");
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--offline", "--example", "processes"]);
    build.args(if cfg!(debug_assertions) { None } else { Some("--release") });
    build.arg("--target-dir").arg(profile.parent().expect("the folder of targets"));
    build.current_dir(env!("CARGO_MANIFEST_DIR"));
    assert!(build.status().expect("cargo").success());
    profile.join("examples").join("processes")
}

#[test]
fn a_file_larger_than_the_budget_is_reduced_to_the_same_bits() {
    let elems = 16 << 20;
    let text = format!("mean,max f32[{elems}]");
    let values: Vec<f32> = (0..elems).map(|i: u32| (i.wrapping_mul(2654435761) >> 8) as f32 / 1e4 - 800.0).collect();
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_ne_bytes()).collect();
    let file = std::env::temp_dir().join(format!("cranefold-processes-{}.bin", std::process::id()));
    std::fs::write(&file, &bytes).expect("a file");
    let run = |spec: &str, budget: &str| {
        let mut command = Command::new(example());
        command.arg(spec).arg(&file).args(["3", budget]);
        let output = command.output().expect("the example");
        let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("text"));
        (out, err)
    };
    let (out, err) = run(&text, "1M");
    let (_, too_few) = run("sum f32[5]", "1M");
    let (_, too_little) = run(&text, "1000");
    std::fs::remove_file(&file).expect("the file");

    let spec: Spec = text.parse().expect("a spec");
    let kernel = Compiler::host().expect("this machine").compile(&spec).expect("a kernel");
    let (mut mean, mut max) = ([0.0f32], [0.0f32]);
    let outputs = &mut [(&mut mean[..]).into(), (&mut max[..]).into()];
    kernel.run(&[(&values[..]).into()], outputs).expect("the right buffers");
    let shown: Vec<&str> = out.lines().collect();
    assert_eq!(shown[1..3], [mean[0], max[0]].map(|x| Scalar::f32(x).to_string()), "{out}{err}");
    // Each process reads its part, and never has it in memory at once.
    let told: Vec<&str> = err.lines().collect();
    assert_eq!(told.len(), 3, "{err}");
    let number = |line: &str, after: &str| -> u64 {
        let rest = line.split_once(after).unwrap_or_else(|| panic!("no `{after}`: {line}")).1;
        rest.trim_start().split(|c: char| !c.is_ascii_digit()).next().expect("a number").parse().expect("a number")
    };
    let read: u64 = told.iter().map(|line| number(line, ": ")).sum();
    assert_eq!(read, bytes.len() as u64);
    if cfg!(target_os = "linux") {
        let peaks = told.iter().copied().chain([shown[3]]).map(|line| number(line, "peak memory"));
        let most_kb = peaks.max().expect("processes");
        assert!(most_kb << 10 < bytes.len() as u64 / 2, "{most_kb} kB of memory");
    }
    assert!(too_few.contains("has 67108864 bytes, and the input of sum f32[5] 20"), "{too_few}");
    assert!(too_little.contains("reads 16384 bytes, more than 1000"), "{too_little}");
}
