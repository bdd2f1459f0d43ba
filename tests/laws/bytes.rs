//! Sums of bytes, which wide vectors take several at a time: the same bits from the interpreter and from every
//! width, also where all bytes are at a limit; and the same terms after every pass.

use crate::rows::terms_are_kept;
use cranefold::{Compiler, Options, Problem, Spec};
use cranefold_fuzz::execute::Memory;

/// Ops, what follows the type, and what follows the shape: states of 32 and of 64 bits, of one part and of two.
const CASES: &[(&str, &str, &str)] = &[
    ("sum", "i8", "-> i32"),
    ("sum", "i8", "-> i64"),
    ("sum", "i8", "-> u64"),
    ("sum", "i8", "-> u32"),
    ("sum", "u8", "-> i32"),
    ("sum", "u8", "-> u32"),
    ("sum", "u8", "-> u64"),
    ("sum", "u8", "-> i64"),
    ("sum", "i8", "saturate"),
    ("sum", "u8", "-> f32"),
    ("sum", "i8", "-> i16"),
    ("mean", "i8", ""),
    ("mean", "u8", "round_half_even"),
    ("l1", "i8", "-> i64"),
    ("sum, argmax", "i8", "-> i32, i64"),
    ("sum, sum_squares", "u8", "-> u32, u64"),
];

/// Lengths around the steps that are taken at once, around blocks, and ragged ones; several rows; what is not inner.
const SHAPES: &[&str] = &[
    "[31]",
    "[127]",
    "[255]",
    "[256]",
    "[257]",
    "[320]",
    "[1023]",
    "[1024]",
    "[2047]",
    "[2049]",
    "[4095]",
    "[4096]",
    "[4097]",
    "[8193]",
    "[20011]",
    "[3,1000] axes=[1]",
    "[5,1024] axes=[1]",
    "[4,4161] axes=[1]",
    "[2,3,2500] axes=[0,2]",
    "[3,1031]@(-1100,1) axes=[1]",
    "[3,1031]@(1100,-1) axes=[1]",
    "[2,900]@(2000,2) axes=[1]",
    "[300,5] axes=[0]",
    "[700,64] axes=[0]",
];

fn specs() -> impl Iterator<Item = Spec> {
    CASES.iter().flat_map(|(ops, dtype, rest)| {
        SHAPES.iter().map(move |shape| {
            let (rest, outputs) = rest.split_once("->").map_or((*rest, String::new()), |(r, o)| (r, format!("->{o}")));
            let text = format!("{ops} {dtype}{shape} {rest} {outputs}");
            text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
        })
    })
}

#[test]
fn sums_of_bytes_have_the_same_bits_everywhere() {
    let compiler = Compiler::host().expect("this machine");
    for (n, spec) in specs().enumerate() {
        let naive = cranefold::lower::lower(&Problem::of(&spec), "naive");
        // Any bytes; the limits and what is next to them; and every byte the same limit.
        let mut memories = [0, 1].map(|kind| Memory::of(&spec, kind, n as u64, (n % 16, 0))).to_vec();
        memories.extend([0x00, 0x7f, 0x80, 0xff].map(|byte| {
            let mut memory = Memory::of(&spec, 0, 0, (3, 0));
            memory.inputs[0].bytes_mut().fill(byte);
            memory
        }));
        let kernels = [None, Some(0), Some(128), Some(256), Some(512)].map(|width| {
            let options = Options { schedule: None, width };
            compiler.compile_with(&spec, &options).expect("a kernel")
        });
        for (m, memory) in memories.iter().enumerate() {
            let expected = memory.interpreted(&naive);
            for kernel in &kernels {
                let outputs = memory.run(kernel);
                let same = outputs.iter().zip(&expected).all(|(a, b)| a.bytes() == b.bytes());
                assert!(same, "{spec}: other bits, {}, memory {m}", kernel.schedule());
                assert!(outputs.iter().all(|o| o.guards_hold()), "{spec}: writes outside, {}", kernel.schedule());
            }
        }
    }
}

#[test]
fn sums_of_bytes_keep_their_terms() {
    specs().enumerate().for_each(|(n, spec)| terms_are_kept(&spec, n));
}
