//! `old(k)` is the element that output k held before the call, wherever and whenever it is read.

use cranefold::ir::DType;
use cranefold::{Compiler, Options, Problem, Scalar, Spec, lower};
use cranefold_fuzz::data::elements;
use cranefold_fuzz::execute::{Memory, places};
use cranefold_reference as reference;

/// Regions whose outputs read their own old elements, and those of others.
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
];

#[test]
fn old_elements_are_those_before_the_call() {
    let compiler = Compiler::host().expect("a compiler");
    let mut wrong = vec![];
    for text in REGIONS {
        let spec: Spec = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        let mut memory = Memory::of(&spec, 3, 5, (0, 0));
        for (o, operand) in spec.outputs().iter().enumerate() {
            assert!(matches!(operand.dtype(), DType::F32 | DType::Bf16));
            let old = elements(operand.dtype(), operand.span_elems() as usize, 3, 40 + o as u64);
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
