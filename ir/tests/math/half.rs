//! Conversions of the 16-bit floats against `Op::Cast`, which `Scalar` computes another way.

use crate::accuracy::stride;
use crate::eval::{BLOCK, Program};
use cranefold_ir::math::*;
use cranefold_ir::{DType, Def, Op, Scalar};
use half::{bf16, f16};

/// Runs `def` over `inputs` and calls `check` with each input and result.
fn run(def: &Def, inputs: impl Iterator<Item = u64>, mut check: impl FnMut(u64, u64)) {
    let mut program = Program::new(def);
    let mut inputs = inputs.peekable();
    let mut block = Vec::with_capacity(BLOCK);
    while inputs.peek().is_some() {
        block.clear();
        block.extend(inputs.by_ref().take(BLOCK));
        program.run(&[&block]);
        block.iter().zip(program.result(0)).for_each(|(&x, &y)| check(x, y));
    }
}

/// Asserts that `def` from `from` to `to` is `Op::Cast`, with the canonical NaN when narrowing.
fn check_cast(def: &Def, from: DType, to: DType, inputs: impl Iterator<Item = u64>) {
    assert_eq!(def.name, format!("{to}.{from}"));
    run(def, inputs, |x, y| {
        let x = Scalar::from_bits(from, x);
        let want = Op::Cast.eval(to, &[x]);
        let got = Scalar::from_bits(to, y);
        if x.is_nan() && from.bits() < to.bits() {
            assert!(got.is_nan(), "{} {:#x}", def.name, x.bits());
        } else {
            let want = if x.is_nan() { Scalar::nan(to) } else { want };
            assert_eq!(got, want, "{} {:#x}", def.name, x.bits());
        }
    });
}

#[test]
fn widening_is_exact_on_all_halves() {
    check_cast(&f32_from_f16(), DType::F16, DType::F32, 0..1 << 16);
    check_cast(&f64_from_f16(), DType::F16, DType::F64, 0..1 << 16);
    check_cast(&f32_from_bf16(), DType::Bf16, DType::F32, 0..1 << 16);
    check_cast(&f64_from_bf16(), DType::Bf16, DType::F64, 0..1 << 16);
}

/// For each half: itself, the ties above and below it and neighbours of these, in `from`.
fn around_halves(half: DType, from: DType) -> impl Iterator<Item = u64> {
    let step = 1u64 << (from.significand_bits().unwrap() - half.significand_bits().unwrap());
    (0..1u64 << 16).flat_map(move |h| {
        let at = Scalar::float(from, Scalar::from_bits(half, h).as_f64()).bits();
        // Where the half is subnormal the ties are further away in bits of `from`: next half's mean.
        let next = Scalar::float(from, Scalar::from_bits(half, (h + 1) & 0xffff).as_f64());
        let here = Scalar::from_bits(from, at);
        let mean = Scalar::float(from, (here.as_f64() + next.as_f64()) / 2.0).bits();
        [at, at.wrapping_add(step / 2), mean]
            .into_iter()
            .flat_map(|c| (0..7).map(move |d| c.wrapping_add(d).wrapping_sub(3)))
            .chain([at.wrapping_add(step / 4), at.wrapping_add(3 * step / 4), at.wrapping_add(step - 1)])
    })
}

/// Pseudo-random bits.
fn random() -> impl Iterator<Item = u64> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    })
}

#[test]
fn narrowing_rounds_to_nearest_even_around_every_half() {
    for (def, half, from) in [
        (f16_from_f32(), DType::F16, DType::F32),
        (bf16_from_f32(), DType::Bf16, DType::F32),
        (f16_from_f64(), DType::F16, DType::F64),
        (bf16_from_f64(), DType::Bf16, DType::F64),
    ] {
        let mask = u64::MAX >> (64 - from.bits());
        check_cast(&def, from, half, around_halves(half, from).map(|b| b & mask));
    }
}

/// Doubles within the range of the halves and just outside, and doubles that are one bit away
/// from an f32 tie, where rounding twice goes wrong.
fn doubles() -> impl Iterator<Item = u64> {
    let n = if cfg!(debug_assertions) { 1 << 14 } else { 1 << 21 };
    random().take(n).flat_map(|r| {
        let sign = r & 1 << 63;
        let near_f16 = sign | (1023 - 30 + (r >> 8) % 50) << 52 | r & 0xf_ffff_ffff_ffff;
        let near_bf16 = sign | (1023 - 140 + (r >> 8) % 272) << 52 | r & 0xf_ffff_ffff_ffff;
        let twice16 = near_f16 & !0x3ff_ffff_ffff | 0x200_0000_0000;
        let twicebf = near_bf16 & !0x1fff_ffff_ffff | 0x1000_0000_0000;
        [r, near_f16, near_bf16, twice16 - 1, twice16, twice16 + 1, twicebf - 1, twicebf, twicebf + 1]
    })
}

#[test]
fn doubles_are_rounded_once() {
    check_cast(&f16_from_f64(), DType::F64, DType::F16, doubles());
    check_cast(&bf16_from_f64(), DType::F64, DType::Bf16, doubles());
}

/// Against the crate `half`, which is quicker than `Scalar`.
fn check_f32s(stride: usize) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            run(&f16_from_f32(), (0..1 << 32).step_by(stride), |x, y| {
                let want = f16::from_f32(f32::from_bits(x as u32));
                assert_eq!(y, if want.is_nan() { 0x7e00 } else { u64::from(want.to_bits()) }, "{x:#x}");
            });
        });
        run(&bf16_from_f32(), (0..1 << 32).step_by(stride), |x, y| {
            let want = bf16::from_f32(f32::from_bits(x as u32));
            assert_eq!(y, if want.is_nan() { 0x7fc0 } else { u64::from(want.to_bits()) }, "{x:#x}");
        });
        run(&f32_through_bf16(), (0..1 << 32).step_by(stride), |x, y| {
            let want = bf16::from_f32(f32::from_bits(x as u32)).to_f32();
            assert_eq!(y, if want.is_nan() { 0x7fc0_0000 } else { u64::from(want.to_bits()) }, "{x:#x}");
        });
    });
}

#[test]
fn f32s_are_rounded_as_half_does() {
    check_f32s(stride(1) as usize);
}

#[test]
fn they_are_as_short_as_documented() {
    let ops = |def| Program::new(&def).ops();
    assert_eq!(ops(f32_through_bf16()), 7);
    assert_eq!([ops(f32_from_f16()), ops(f32_from_bf16()), ops(f64_from_f16()), ops(f64_from_bf16())], [9, 2, 10, 3]);
    assert_eq!([ops(f16_from_f32()), ops(bf16_from_f32()), ops(f16_from_f64()), ops(bf16_from_f64())], [18, 8, 18, 18]);
}
