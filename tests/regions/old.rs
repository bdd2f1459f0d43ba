//! `old(k)` and `d` are the elements that outputs held before the call, wherever and whenever they are read.

use cranefold::{Compiler, Options, Problem, Scalar, Spec, lower};
use cranefold_fuzz::data::elements;
use cranefold_fuzz::execute::{Memory, places};
use cranefold_reference as reference;

/// Regions whose outputs read their own old elements, and those of others; and integers, which have the type of the first
/// result after reducers.
const REGIONS: &[&str] = &[
    "region x:f32[8,100] axes=[1] { sum(x) + old(0), max(x) * 2 }",
    "region x:f32[8,100] axes=[1] { sum(x) + old(1), max(x) - old(0) }",
    "region x:f32[8,100] axes=[1] { x + old(1), x * 2 + old(0) }",
    "region x:f32[8,100] axes=[1] { x + old(0), sum(x) + old(1) }",
    "region x:f32[8,100] axes=[1] { x + old(1), max(x) }",
    "region x:f32[100,8] axes=[0] { x + old(1), max(x) }",
    "region x:f32[8,100] axes=[1] { m = max(x); x - m + old(2), m + old(1), sum(x) + old(1) }",
    "region x:f32[8,100] axes=[1] { s = sum(x); s + old(0), sum(s, axes=[0]) + old(1) }",
    "region x:f32[8,100] axes=[1] { s = sum(x); s, sum(s + old(0), axes=[0]) }",
    "region x:bf16[8,100] axes=[1] { bf16(x + f32(old(0))), bf16(sum(x)) }",
    "argmax f32[8,100] axes=[1] then=\"f32(d)\" trunc -> u64",
    "argmax f32[8,100] axes=[1] then=\"f64(d) - f64(r0)\" -> f64",
    "argmax f32[8,100] axes=[1] then=\"f64(d) / 4, r0 + d\" trunc -> u64, i64",
    "argmax f32[8,100] axes=[1] scalar k:u32 then=\"f32(d) / (f32(k) + 1)\" trunc -> u64",
    "argmax f64[9,31,1] axes=[2] scalar k:u32 then=\"(f32(k) + f32(d)) / select(bool(r0) != bool(k), f32(r0), 1)\" trunc -> u64",
];

#[test]
fn old_elements_are_those_before_the_call() {
    let compiler = Compiler::host().expect("a compiler");
    let mut wrong = vec![];
    for text in REGIONS {
        let spec: Spec = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        let mut memory = Memory::of(&spec, 3, 5, (0, 0));
        for (o, operand) in spec.outputs().iter().enumerate() {
            // Integers of all bits, so that a type of the same size shows.
            let kind = if operand.dtype().is_int() { 0 } else { 3 };
            let old = elements(operand.dtype(), operand.span_elems() as usize, kind, 40 + o as u64);
            memory.outputs[o].bytes_mut().copy_from_slice(&old);
        }
        let inputs: Vec<&[u8]> = memory.inputs.iter().map(|b| b.bytes()).collect();
        let old: Vec<&[u8]> = memory.outputs.iter().map(|b| b.bytes()).collect();
        let exact = reference::reduce_over(&spec, &inputs, &old).expect("the right buffers");
        let naive = memory.interpreted(&lower::lower(&Problem::of(&spec), "naive"));
        for width in [0, 128, 256, 512] {
            let options = Options { width: Some(width), ..Options::default() };
            let kernel = compiler.compile_with(&spec, &options).unwrap_or_else(|e| panic!("{text}: {e}"));
            for (o, (found, naive)) in memory.run(&kernel).iter().zip(&naive).enumerate() {
                let other = found.bytes() != naive.bytes();
                let dtype = spec.outputs()[o].dtype();
                let mut all = places(&spec, o).into_iter().zip(&exact[o]);
                let is_refused = all.any(|(place, exact)| {
                    reference::check(&spec, exact, Scalar::read(dtype, found.bytes(), place)).is_err()
                });
                if other || is_refused {
                    wrong.push(format!(
                        "output {o} of {text} at {width} bits: other bits {other}, refused {is_refused}"
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
