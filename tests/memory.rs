//! Code memory: how it is protected, and what happens where there is no more.
//!
//! One test, for limits and mappings are those of the process.
#![cfg(target_os = "linux")]

use cranefold::{Compiler, Error, Kernel, Spec};
use rlimit::Resource;
use std::fs;

fn spec(number: usize) -> Spec {
    format!("sum f32[{},3] axes=[1]", number + 2).parse().expect("a spec")
}

fn assert_right(kernel: &Kernel) {
    let rows = kernel.spec().expect("a kernel of a spec").inputs()[0].shape()[0] as usize;
    let x: Vec<f32> = (0..3 * rows).map(|n| n as f32).collect();
    let mut y = vec![0.0f32; rows];
    kernel.run_one(&x, &mut y).expect("the right buffers");
    assert_eq!(y, x.chunks(3).map(|row| row.iter().sum()).collect::<Vec<f32>>());
}

/// The process's mappings: their protections.
fn protections() -> Vec<String> {
    let maps = fs::read_to_string("/proc/self/maps").expect("Linux tells");
    maps.lines().map(|line| line.split(' ').nth(1).expect("a protection").to_string()).collect()
}

/// Bytes of address space.
fn address_space() -> u64 {
    let status = fs::read_to_string("/proc/self/statm").expect("Linux tells");
    status.split(' ').next().expect("a number").parse::<u64>().expect("a number") * 4096
}

#[test]
fn code_memory() {
    let compiler = Compiler::host().expect("this machine");
    let mut kernels: Vec<Kernel> = (0..200).map(|n| compiler.compile(&spec(n)).expect("a kernel")).collect();
    kernels.iter().for_each(assert_right);
    let executable = protections().iter().filter(|p| p.contains('x')).count();
    assert!(executable > 0 && protections().iter().all(|p| !(p.contains('w') && p.contains('x'))));

    // Every second code is dropped, and its memory taken again.
    let held: Vec<Kernel> = kernels.drain(..).step_by(2).collect();
    compiler.clear();
    held.iter().for_each(assert_right);
    kernels.extend((200..300).map(|n| compiler.compile(&spec(n)).expect("a kernel")));
    kernels.iter().chain(&held).for_each(assert_right);
    assert!(protections().iter().all(|p| !(p.contains('w') && p.contains('x'))));

    // No more memory: an error, after which all is as before.
    let (soft, hard) = rlimit::getrlimit(Resource::AS).expect("a limit");
    rlimit::setrlimit(Resource::AS, address_space() + (1 << 20), hard).expect("a lower limit");
    let before = compiler.statistics();
    let refused = (300..8000).find_map(|n| match compiler.compile(&spec(n)) {
        Ok(kernel) => {
            kernels.push(kernel);
            None
        }
        Err(error) => Some((n, error)),
    });
    let during = compiler.statistics();
    rlimit::setrlimit(Resource::AS, soft, hard).expect("the limit that was");
    let (number, error) = refused.expect("a megabyte is not enough");
    assert!(matches!(error, Error::Memory(_)), "{error}");
    assert!(error.to_string().starts_with("no executable memory: "), "{error}");
    assert_eq!((during.failures, during.kernels), (before.failures + 1, before.kernels + number as u64 - 300));
    kernels.iter().chain(&held).for_each(assert_right);
    assert_right(&compiler.compile(&spec(number)).expect("memory, now"));
}
