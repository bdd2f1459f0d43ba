//! Selections, from the text of a nest through every pass to native code, compared with the interpreter bit by bit.
//!
//! The nests are written here, each with one selection.
#![allow(unsafe_code, reason = "enters code with pointers of its own, guard bytes around them")]

use super::{Code, Memory, compile, generate};
use crate::inspect::assembly::{clif, clif_text};
use crate::passes::PASSES;
use crate::schedule::Schedule;
use crate::target::Target;
use crate::vectors::Vectors;
use cranefold_ir::eval::{Bits, Terms, run};
use cranefold_ir::{DType, Nest, Scalar, verify};
use cranelift_codegen::verify_function;
use std::alloc::Layout;

/// Element types in memory.
fn types() -> impl Iterator<Item = DType> {
    DType::ALL.into_iter().filter(|&d| d != DType::Bool)
}

/// A random number from each number (splitmix64).
fn random(seed: u64) -> u64 {
    let z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// The kinds of elements: any bits; corners only; few values, with many equal; ascending; all equal.
const KINDS: u64 = 5;

fn elements(dtype: DType, count: u64, kind: u64, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; (count * dtype.bytes()) as usize];
    for i in 0..count {
        let r = random(seed ^ (i << 20));
        let value = match kind {
            0 => Scalar::from_bits(dtype, r),
            1 => corner(dtype, r),
            2 => Scalar::int(dtype, i128::from(r % 7)),
            3 => Scalar::int(dtype, i128::from(i / 3)),
            _ => corner(dtype, seed),
        };
        value.write(&mut bytes, i as usize);
    }
    bytes
}

/// Zeros, ones, limits, subnormals, infinities and NaNs of both signs and several payloads.
fn corner(dtype: DType, r: u64) -> Scalar {
    let sign = 1u64 << (dtype.bits() - 1);
    if !dtype.is_float() {
        return Scalar::from_bits(dtype, [0, 1, !0, sign, sign - 1, sign + 1][(r % 6) as usize]);
    }
    let inf = Scalar::highest(dtype).bits();
    let magnitudes = [0, 1, inf - 1, inf, inf + 1, Scalar::nan(dtype).bits(), sign - 1, Scalar::int(dtype, 1).bits()];
    Scalar::from_bits(dtype, magnitudes[(r % 8) as usize] | (sign * (r >> 8 & 1)))
}

/// A nest with, for each of `outer` times `inner` rows of `len` elements, three positions of the order, the mode and
/// the number of its occurrences.
fn selections(dtype: DType, (outer, inner): (u64, u64), len: u64) -> Nest {
    let rows = outer * inner;
    let zero = Scalar::from_bits(dtype, 0);
    let (low, high, last) = ((len - 1) / 2, len / 2, len - 1);
    let text = format!(
        "nest \"selections\" {{
           in x0: {dtype}[{n}]
           out x1: {dtype}[{rows4}]
           out x2: i64[{rows}]
           for i0 in 0..{outer} parallel {{ for i1 in 0..{inner} parallel {{
             acc a0: {dtype}[{len}] = {zero}
             for l0 in 0..{len} parallel {{ a0[l0] = x0[{plane}*i0 + {len}*i1 + l0] }}
             select v0, v1, v2 = nth {low}, {high}, {last} of a0 over {len}
             acc a1: {dtype}[{len}] = {zero}
             for l1 in 0..{len} parallel {{ a1[l1] = x0[{plane}*i0 + {len}*i1 + l1] }}
             select v3, v4 = mode of a1 over {len}
             x1[{row4}*i0 + 4*i1] = v0 x1[{row4}*i0 + 4*i1 + 1] = v1 x1[{row4}*i0 + 4*i1 + 2] = v2
             x1[{row4}*i0 + 4*i1 + 3] = v3
             x2[{inner}*i0 + i1] = v4
           }} }}
         }}",
        n = rows * len,
        rows4 = rows * 4,
        row4 = inner * 4,
        plane = inner * len,
    );
    text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// The nest after every pass, verified after each; if `terms` is set, its terms stay the same.
fn legal(nest: &Nest, schedule: &Schedule, terms: bool) -> Nest {
    verify(nest).unwrap();
    let naive = terms.then(|| Terms::of(nest));
    PASSES.iter().fold(nest.clone(), |nest, pass| {
        let after = (pass.run)(nest, schedule, Vectors::BASE);
        verify(&after).unwrap_or_else(|e| panic!("after {}: {e}\n{after}", pass.name));
        assert!(naive.as_ref().is_none_or(|naive| *naive == Terms::of(&after)), "after {}\n{after}", pass.name);
        after
    })
}

fn schedules() -> [Schedule; 4] {
    let tiled = "width=128 tile=i0:2 jam=2 in_flight=2";
    ["width=0", "width=128", tiled, "width=64 tile=i1:2"].map(|s| s.parse().unwrap())
}

fn native(nest: &Nest) -> Code {
    let target = Target::host().unwrap();
    compile([nest].into_iter(), Vectors::BASE, target.isa(), Some(&Memory::default())).unwrap().remove(0)
}

/// Buffers for the outputs of a nest, filled with bytes that no result has by chance.
fn outputs(nest: &Nest) -> Vec<Vec<u8>> {
    nest.buffers[1..].iter().map(|b| vec![0xa5; (b.len * b.dtype.bytes()) as usize]).collect()
}

fn interpreted(nest: &Nest, input: &[u8]) -> Vec<Vec<u8>> {
    let mut outputs = outputs(nest);
    let written = outputs.iter_mut().map(Vec::as_mut_slice).collect();
    run(nest, &mut Bits { inputs: vec![input], outputs: written });
    outputs
}

/// Runs code with scratch memory of exactly its size between guard bytes.
fn called(code: &Code, nest: &Nest, input: &[u8]) -> Vec<Vec<u8>> {
    const GUARD: usize = super::SCRATCH_ALIGN as usize;
    let mut outputs = outputs(nest);
    let bytes = code.scratch_bytes() as usize;
    let layout = Layout::from_size_align(bytes + 2 * GUARD, GUARD).unwrap();
    // SAFETY: the layout has bytes.
    let memory = unsafe { std::alloc::alloc(layout) };
    assert!(!memory.is_null());
    // SAFETY: all of the memory, just allocated.
    unsafe { memory.write_bytes(0xc3, layout.size()) };
    let mut pointers = vec![input.as_ptr().cast_mut()];
    pointers.extend(outputs.iter_mut().map(|o| o.as_mut_ptr()));
    // SAFETY: within the memory.
    pointers.push(unsafe { memory.add(GUARD) });
    // SAFETY: the buffers have the lengths the nest declares, and the scratch memory follows them.
    unsafe { code.entry().unwrap()(pointers.as_ptr()) };
    // SAFETY: all of the memory, initialised above, which the code has returned from.
    let after = unsafe { std::slice::from_raw_parts(memory, layout.size()) };
    assert!(after[..GUARD].iter().chain(&after[GUARD + bytes..]).all(|&b| b == 0xc3), "outside of scratch memory");
    // SAFETY: allocated above with this layout, and used no more.
    unsafe { std::alloc::dealloc(memory, layout) };
    outputs
}

#[test]
fn selections_have_the_same_bits_on_every_executor() {
    for dtype in types() {
        for len in [1, 2, 3, 7, 8, 64, 65, 1000] {
            let nest = selections(dtype, (2, 3), len);
            for schedule in schedules() {
                let legal = legal(&nest, &schedule, len <= 65);
                let code = native(&legal);
                assert_eq!(code.scratch_bytes(), 0);
                for kind in 0..KINDS {
                    for seed in 0..3 {
                        let input = elements(dtype, 6 * len, kind, random(len + 1000 * seed));
                        let expected = interpreted(&nest, &input);
                        assert_eq!(interpreted(&legal, &input), expected, "{dtype} {len} {kind} {schedule}");
                        assert_eq!(called(&code, &nest, &input), expected, "{dtype} {len} {kind} {schedule}");
                    }
                }
            }
        }
    }
}

#[test]
fn long_slices_lie_in_scratch_memory() {
    for dtype in types() {
        let len = 100_000;
        let nest = selections(dtype, (2, 1), len);
        let code = native(&legal(&nest, &schedules()[1], false));
        // The code has both accumulators of a row, and no further ones for the other row.
        assert_eq!(code.scratch_bytes(), 2 * (len * dtype.bytes()).next_multiple_of(64));
        for kind in 0..KINDS {
            let input = elements(dtype, 2 * len, kind, 77 + kind);
            assert_eq!(called(&code, &nest, &input), interpreted(&nest, &input), "{dtype} {kind}");
        }
    }
}

#[test]
fn scratch_memory_begins_above_the_limit_and_is_shared_by_bodies_that_never_run_at_once() {
    let scratch = |body: &str| {
        let nest: Nest = format!("nest \"\" {{ in x0: u8[9] out x1: u8[9] {body} }}").parse().unwrap();
        native(&legal(&nest, &schedules()[0], false)).scratch_bytes()
    };
    let one = |a: u32, len: u64| {
        format!("acc a{a}: u8[{len}] = 7 a{a}[0] = x0[{a}] select v{a} = nth 0 of a{a} over {len} x1[{a}] = v{a}",)
    };
    assert_eq!(scratch(&one(0, 65_536)), 0);
    assert_eq!(scratch(&one(0, 65_537)), 65_600);
    assert_eq!(scratch(&format!("{} {}", one(0, 65_537), one(1, 70_000))), 65_600 + 70_016);
    let apart = format!("for k0 in 0..1 seq {{ {} }} for k1 in 0..1 seq {{ {} }}", one(0, 65_537), one(1, 70_000));
    let apart: Nest = format!("nest \"\" {{ in x0: u8[9] out x1: u8[9] {apart} }}").parse().unwrap();
    assert_eq!(native(&apart).scratch_bytes(), 70_016);
    // An accumulator without selections may be larger in the frame, and is not limited in registers.
    let walked = |len: u64| {
        format!("acc a0: u8[{len}] = 7 for k0 in 0..{len} seq {{ a0[k0] = add(a0[k0], x0[0]) }} x1[0] = a0[9]")
    };
    assert_eq!(scratch(&walked(262_144)), 0);
    assert_eq!(scratch(&walked(262_145)), 262_208);
    assert_eq!(scratch("acc a0: u8[1000000] = 7 a0[999999] = x0[1] x1[0] = a0[999999]"), 0);
}

#[test]
fn a_slice_survives_a_selection_for_the_next() {
    for dtype in types() {
        let len = 129;
        let zero = Scalar::from_bits(dtype, 0);
        let nest: Nest = format!(
            "nest \"\" {{ in x0: {dtype}[{len}] out x1: {dtype}[4] out x2: i64[2]
             acc a0: {dtype}[{len}] = {zero} for l0 in 0..{len} parallel {{ a0[l0] = x0[l0] }}
             select v0 = nth 100 of a0 over {len} select v1, v2 = mode of a0 over {len}
             select v3 = nth 60 of a0 over {len} select v4, v5 = mode of a0 over {len}
             x1[0] = v0 x1[1] = v1 x1[2] = v3 x1[3] = v4 x2[0] = v2 x2[1] = v5 }}"
        )
        .parse()
        .unwrap();
        let code = native(&legal(&nest, &schedules()[1], true));
        for kind in 0..KINDS {
            let input = elements(dtype, len, kind, 5 + kind);
            assert_eq!(called(&code, &nest, &input), interpreted(&nest, &input), "{dtype} {kind}");
        }
    }
}

#[test]
fn results_of_selections_are_values_like_others() {
    // The accumulators in registers live across calls; results are converted, compared and hoisted.
    let nest: Nest = "nest \"\" { in x0: f32[400] out x1: f64[4] out x2: i32[4]
        acc a1: f32[1] = 1.5
        for i0 in 0..4 seq {
          acc a0: f32[100] = 0 for l0 in 0..100 parallel { a0[l0] = x0[100*i0 + l0] }
          select v0, v1 = nth 49, 50 of a0 over 100
          let v2 = mul(add(v0, v1), 0.5:f32)
          a1[0] = add(a1[0], v2)
          x1[i0] = f64(a1[0])
          x2[i0] = select(lt(v0, v1), 1:i32, 0:i32)
        } }"
    .parse()
    .unwrap();
    let code = native(&legal(&nest, &schedules()[1], true));
    let values = (0..400).map(|i| (random(i) % 1000) as f32);
    let input: Vec<u8> = values.flat_map(f32::to_ne_bytes).collect();
    assert_eq!(called(&code, &nest, &input), interpreted(&nest, &input));
}

#[test]
fn a_selection_is_a_call_by_name_on_every_target() {
    let nest = legal(&selections(DType::Bf16, (2, 1), 70_000), &schedules()[1], false);
    for triple in ["x86_64-unknown-linux-gnu", "x86_64-pc-windows-msvc", "x86_64-apple-darwin"] {
        let target = Target::new(triple, "").unwrap();
        let function = clif(&nest, Vectors::BASE, target.isa()).unwrap().unwrap();
        verify_function(&function, &**target.isa()).unwrap();
        let text = clif_text(&nest, Vectors::BASE, target.isa()).unwrap();
        let functions = ["; u1:10 is cranefold_nth_bf16\n", "; u1:23 is cranefold_mode_bf16\n"];
        assert_eq!(text, functions.concat() + &function.to_string());
        let calls = |name: &str| text.matches(name).count();
        assert_eq!((calls("= u1:"), calls("    call fn"), calls("= call fn")), (2, 1, 1), "{text}");
        assert!(!compile([&nest].into_iter(), Vectors::BASE, target.isa(), None).unwrap()[0].bytes().is_empty());
    }
}

/// The names of loops are for the dump alone.
#[test]
fn source_locations_change_no_code() {
    let target = Target::host().unwrap();
    for len in [3, 129, 70_000] {
        for schedule in schedules() {
            let nest = legal(&selections(DType::F32, (2, 3), len), &schedule, false);
            let with = generate(&nest, Vectors::BASE, target.isa()).unwrap().function.unwrap();
            let without = clif(&nest, Vectors::BASE, target.isa()).unwrap().unwrap();
            assert!(without.to_string().len() < with.to_string().len(), "locations stand in the text");
            let [with, without] = [with, without].map(|function| {
                let mut context = cranelift_codegen::Context::for_function(function);
                context.compile(&**target.isa(), &mut Default::default()).unwrap().code_buffer().to_vec()
            });
            assert_eq!(with, without);
        }
    }
}

/// Codes that call one another run wherever they lie, and are told without their addresses.
#[test]
fn code_is_the_same_in_all_memory() {
    let target = Target::host().unwrap();
    for dtype in [DType::F32, DType::I8] {
        let nest = selections(dtype, (2, 3), 100);
        let legal = legal(&nest, &schedules()[1], false);
        let input = elements(dtype, 600, 0, 1);
        let memories = [Memory::default(), Memory::of_whole_pages(), Memory::refused()];
        let codes = memories.map(|memory| {
            let mut codes =
                compile([&legal, &legal].into_iter(), target.vectors(), target.isa(), Some(&memory)).unwrap();
            assert!(codes[0].places()[0].0 < codes[1].places()[0].0, "one behind the other");
            assert_eq!(called(&codes[1], &nest, &input), interpreted(&nest, &input));
            codes.swap_remove(0)
        });
        let kept = compile([&legal].into_iter(), target.vectors(), target.isa(), None).unwrap();
        for code in &codes {
            assert_eq!(called(code, &nest, &input), interpreted(&nest, &input));
            assert_eq!((code.bytes(), code.len()), (kept[0].bytes(), kept[0].len()));
        }
        assert!(codes[0].memory_bytes() < 4096 && codes[1..].iter().all(|code| code.memory_bytes() % 4096 == 0));
    }
}
