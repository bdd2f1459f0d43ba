//! The table of machine instructions: one row for each, with all that the machine passes and the encoder need.
//!
//! A row has no defaults: an instruction without a complete one cannot be named.
//!
//! | column | meaning |
//! | --- | --- |
//! | name | the mnemonic, with a suffix that distinguishes its forms |
//! | [`Shape`] | the operands, the use of the first one, the number in the instruction, the flags |
//! | [`Masking`] | the effect of a mask, in AVX-512 |
//! | [`Memory`] | the operands that may be memory, and constants there |
//! | AVX2, AVX-512 | the instruction in each, if there is one, and the cycles until its result is there |
//!
//! Cycles are the figures of list scheduling. Many a 1 stands for a few; other figures were not measured. A new row
//! takes the figure of rows of its kind.

#[cfg(test)]
mod tests;

use super::encoding::encoding;
use super::row::*;
use iced_x86::Code::*;

/// Makes an opcode and a row of each line.
macro_rules! table {
    ($($name:ident = $shape:ident, $masking:expr, $memory:expr,
        [$($avx2:ident: $c2:literal)?], [$($avx512:ident: $c512:literal)?];)*) => {
        /// A machine instruction.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "the names are those of the processor's manuals")]
        pub enum Opcode {
            $($name,)*
        }

        impl Opcode {
            /// All, in the order of the table.
            pub const ALL: &[Opcode] = &[$(Opcode::$name,)*];

            /// The facts of the instruction.
            pub fn row(self) -> &'static Row {
                use Masking::{Holds, Merges, Picks, Unmasked};
                use Memory::{Address, Each, Plain, Registers, Whole};
                static ROWS: &[Row] = &[$(Row {
                    shape: $shape,
                    masking: $masking,
                    memory: $memory,
                    avx2: form!($($avx2: $c2)?),
                    avx512: form!($($avx512: $c512)?),
                },)*];
                &ROWS[self as usize]
            }
        }
    };
}

/// A form, or none.
macro_rules! form {
    () => {
        None
    };
    ($code:ident: $cycles:literal) => {
        Some(Form { code: $code, encoding: encoding($code), cycles: $cycles })
    };
}

table! {
    // Arithmetic on lanes.
    Vaddps = BINARY, Merges(4), Each(4), [VEX_Vaddps_ymm_ymm_ymmm256: 4], [EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er: 4];
    Vaddpd = BINARY, Merges(8), Each(8), [VEX_Vaddpd_ymm_ymm_ymmm256: 4], [EVEX_Vaddpd_zmm_k1z_zmm_zmmm512b64_er: 4];
    Vsubps = BINARY, Merges(4), Each(4), [VEX_Vsubps_ymm_ymm_ymmm256: 4], [EVEX_Vsubps_zmm_k1z_zmm_zmmm512b32_er: 4];
    Vsubpd = BINARY, Merges(8), Each(8), [VEX_Vsubpd_ymm_ymm_ymmm256: 4], [EVEX_Vsubpd_zmm_k1z_zmm_zmmm512b64_er: 4];
    Vmulps = BINARY, Merges(4), Each(4), [VEX_Vmulps_ymm_ymm_ymmm256: 4], [EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er: 4];
    Vmulpd = BINARY, Merges(8), Each(8), [VEX_Vmulpd_ymm_ymm_ymmm256: 4], [EVEX_Vmulpd_zmm_k1z_zmm_zmmm512b64_er: 4];
    Vdivps = BINARY, Merges(4), Each(4), [VEX_Vdivps_ymm_ymm_ymmm256: 13], [EVEX_Vdivps_zmm_k1z_zmm_zmmm512b32_er: 13];
    Vdivpd = BINARY, Merges(8), Each(8), [VEX_Vdivpd_ymm_ymm_ymmm256: 13], [EVEX_Vdivpd_zmm_k1z_zmm_zmmm512b64_er: 13];
    Vminps = BINARY, Merges(4), Each(4), [VEX_Vminps_ymm_ymm_ymmm256: 1], [EVEX_Vminps_zmm_k1z_zmm_zmmm512b32_sae: 1];
    Vminpd = BINARY, Merges(8), Each(8), [VEX_Vminpd_ymm_ymm_ymmm256: 1], [EVEX_Vminpd_zmm_k1z_zmm_zmmm512b64_sae: 1];
    Vmaxps = BINARY, Merges(4), Each(4), [VEX_Vmaxps_ymm_ymm_ymmm256: 1], [EVEX_Vmaxps_zmm_k1z_zmm_zmmm512b32_sae: 1];
    Vmaxpd = BINARY, Merges(8), Each(8), [VEX_Vmaxpd_ymm_ymm_ymmm256: 1], [EVEX_Vmaxpd_zmm_k1z_zmm_zmmm512b64_sae: 1];
    Vpaddb = BINARY, Merges(1), Whole, [VEX_Vpaddb_ymm_ymm_ymmm256: 1], [EVEX_Vpaddb_zmm_k1z_zmm_zmmm512: 1];
    Vpaddw = BINARY, Merges(2), Whole, [VEX_Vpaddw_ymm_ymm_ymmm256: 1], [EVEX_Vpaddw_zmm_k1z_zmm_zmmm512: 1];
    Vpaddd = BINARY, Merges(4), Each(4), [VEX_Vpaddd_ymm_ymm_ymmm256: 1], [EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32: 1];
    Vpaddq = BINARY, Merges(8), Each(8), [VEX_Vpaddq_ymm_ymm_ymmm256: 1], [EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64: 1];
    Vpsubb = BINARY, Merges(1), Whole, [VEX_Vpsubb_ymm_ymm_ymmm256: 1], [EVEX_Vpsubb_zmm_k1z_zmm_zmmm512: 1];
    Vpsubw = BINARY, Merges(2), Whole, [VEX_Vpsubw_ymm_ymm_ymmm256: 1], [EVEX_Vpsubw_zmm_k1z_zmm_zmmm512: 1];
    Vpsubd = BINARY, Merges(4), Each(4), [VEX_Vpsubd_ymm_ymm_ymmm256: 1], [EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32: 1];
    Vpsubq = BINARY, Merges(8), Each(8), [VEX_Vpsubq_ymm_ymm_ymmm256: 1], [EVEX_Vpsubq_zmm_k1z_zmm_zmmm512b64: 1];
    Vpmullw = BINARY, Merges(2), Whole, [VEX_Vpmullw_ymm_ymm_ymmm256: 1], [EVEX_Vpmullw_zmm_k1z_zmm_zmmm512: 1];
    Vpmulhw = BINARY, Merges(2), Whole, [VEX_Vpmulhw_ymm_ymm_ymmm256: 1], [EVEX_Vpmulhw_zmm_k1z_zmm_zmmm512: 1];
    Vpmulld = BINARY, Merges(4), Each(4), [VEX_Vpmulld_ymm_ymm_ymmm256: 1], [EVEX_Vpmulld_zmm_k1z_zmm_zmmm512b32: 4];
    Vpmullq = BINARY, Merges(8), Each(8), [], [EVEX_Vpmullq_zmm_k1z_zmm_zmmm512b64: 4];
    Vpmuludq = BINARY, Unmasked, Each(8), [VEX_Vpmuludq_ymm_ymm_ymmm256: 1], [];
    Vpmuldq = BINARY, Merges(8), Each(8), [], [EVEX_Vpmuldq_zmm_k1z_zmm_zmmm512b64: 1];
    Vpminsb = BINARY, Merges(1), Whole, [VEX_Vpminsb_ymm_ymm_ymmm256: 1], [EVEX_Vpminsb_zmm_k1z_zmm_zmmm512: 1];
    Vpminsw = BINARY, Merges(2), Whole, [VEX_Vpminsw_ymm_ymm_ymmm256: 1], [EVEX_Vpminsw_zmm_k1z_zmm_zmmm512: 1];
    Vpminsd = BINARY, Merges(4), Each(4), [VEX_Vpminsd_ymm_ymm_ymmm256: 1], [EVEX_Vpminsd_zmm_k1z_zmm_zmmm512b32: 1];
    Vpminsq = BINARY, Merges(8), Each(8), [], [EVEX_Vpminsq_zmm_k1z_zmm_zmmm512b64: 1];
    Vpminub = BINARY, Merges(1), Whole, [VEX_Vpminub_ymm_ymm_ymmm256: 1], [EVEX_Vpminub_zmm_k1z_zmm_zmmm512: 1];
    Vpminuw = BINARY, Merges(2), Whole, [VEX_Vpminuw_ymm_ymm_ymmm256: 1], [EVEX_Vpminuw_zmm_k1z_zmm_zmmm512: 1];
    Vpminud = BINARY, Merges(4), Each(4), [VEX_Vpminud_ymm_ymm_ymmm256: 1], [EVEX_Vpminud_zmm_k1z_zmm_zmmm512b32: 1];
    Vpminuq = BINARY, Merges(8), Each(8), [], [EVEX_Vpminuq_zmm_k1z_zmm_zmmm512b64: 1];
    Vpmaxsb = BINARY, Merges(1), Whole, [VEX_Vpmaxsb_ymm_ymm_ymmm256: 1], [EVEX_Vpmaxsb_zmm_k1z_zmm_zmmm512: 1];
    Vpmaxsw = BINARY, Merges(2), Whole, [VEX_Vpmaxsw_ymm_ymm_ymmm256: 1], [EVEX_Vpmaxsw_zmm_k1z_zmm_zmmm512: 1];
    Vpmaxsd = BINARY, Merges(4), Each(4), [VEX_Vpmaxsd_ymm_ymm_ymmm256: 1], [EVEX_Vpmaxsd_zmm_k1z_zmm_zmmm512b32: 1];
    Vpmaxsq = BINARY, Merges(8), Each(8), [], [EVEX_Vpmaxsq_zmm_k1z_zmm_zmmm512b64: 1];
    Vpmaxub = BINARY, Merges(1), Whole, [VEX_Vpmaxub_ymm_ymm_ymmm256: 1], [EVEX_Vpmaxub_zmm_k1z_zmm_zmmm512: 1];
    Vpmaxuw = BINARY, Merges(2), Whole, [VEX_Vpmaxuw_ymm_ymm_ymmm256: 1], [EVEX_Vpmaxuw_zmm_k1z_zmm_zmmm512: 1];
    Vpmaxud = BINARY, Merges(4), Each(4), [VEX_Vpmaxud_ymm_ymm_ymmm256: 1], [EVEX_Vpmaxud_zmm_k1z_zmm_zmmm512b32: 1];
    Vpmaxuq = BINARY, Merges(8), Each(8), [], [EVEX_Vpmaxuq_zmm_k1z_zmm_zmmm512b64: 1];
    Vpabsb = UNARY, Merges(1), Plain, [VEX_Vpabsb_ymm_ymmm256: 1], [EVEX_Vpabsb_zmm_k1z_zmmm512: 1];
    Vpabsw = UNARY, Merges(2), Plain, [VEX_Vpabsw_ymm_ymmm256: 1], [EVEX_Vpabsw_zmm_k1z_zmmm512: 1];
    Vpabsd = UNARY, Merges(4), Plain, [VEX_Vpabsd_ymm_ymmm256: 1], [EVEX_Vpabsd_zmm_k1z_zmmm512b32: 1];
    Vpabsq = UNARY, Merges(8), Plain, [], [EVEX_Vpabsq_zmm_k1z_zmmm512b64: 1];
    Vsqrtps = UNARY, Merges(4), Plain, [VEX_Vsqrtps_ymm_ymmm256: 1], [EVEX_Vsqrtps_zmm_k1z_zmmm512b32_er: 1];
    Vsqrtpd = UNARY, Merges(8), Plain, [VEX_Vsqrtpd_ymm_ymmm256: 1], [EVEX_Vsqrtpd_zmm_k1z_zmmm512b64_er: 1];
    Vroundps = UNARY_BY, Merges(4), Plain,
        [VEX_Vroundps_ymm_ymmm256_imm8: 1], [EVEX_Vrndscaleps_zmm_k1z_zmmm512b32_imm8_sae: 1];
    Vroundpd = UNARY_BY, Merges(8), Plain,
        [VEX_Vroundpd_ymm_ymmm256_imm8: 1], [EVEX_Vrndscalepd_zmm_k1z_zmmm512b64_imm8_sae: 1];
    Vscalefps = BINARY, Merges(4), Each(4), [], [EVEX_Vscalefps_zmm_k1z_zmm_zmmm512b32_er: 4];
    Vscalefpd = BINARY, Merges(8), Each(8), [], [EVEX_Vscalefpd_zmm_k1z_zmm_zmmm512b64_er: 4];
    Vrangeps = BINARY_BY, Merges(4), Each(4), [], [EVEX_Vrangeps_zmm_k1z_zmm_zmmm512b32_imm8_sae: 1];
    Vrangepd = BINARY_BY, Merges(8), Each(8), [], [EVEX_Vrangepd_zmm_k1z_zmm_zmmm512b64_imm8_sae: 1];
    Vfixupimmps = ONTO_BY, Merges(4), Each(4), [], [EVEX_Vfixupimmps_zmm_k1z_zmm_zmmm512b32_imm8_sae: 4];
    Vfixupimmpd = ONTO_BY, Merges(8), Each(8), [], [EVEX_Vfixupimmpd_zmm_k1z_zmm_zmmm512b64_imm8_sae: 4];

    // `to = a * b + c`, rounded once; the digits say which operands are the factors and which is added.
    Vfmadd132ps = ONTO, Merges(4), Each(4),
        [VEX_Vfmadd132ps_ymm_ymm_ymmm256: 4], [EVEX_Vfmadd132ps_zmm_k1z_zmm_zmmm512b32_er: 4];
    Vfmadd132pd = ONTO, Merges(8), Each(8),
        [VEX_Vfmadd132pd_ymm_ymm_ymmm256: 4], [EVEX_Vfmadd132pd_zmm_k1z_zmm_zmmm512b64_er: 4];
    Vfmadd213ps = ONTO, Merges(4), Each(4),
        [VEX_Vfmadd213ps_ymm_ymm_ymmm256: 4], [EVEX_Vfmadd213ps_zmm_k1z_zmm_zmmm512b32_er: 4];
    Vfmadd213pd = ONTO, Merges(8), Each(8),
        [VEX_Vfmadd213pd_ymm_ymm_ymmm256: 4], [EVEX_Vfmadd213pd_zmm_k1z_zmm_zmmm512b64_er: 4];
    Vfmadd231ps = ONTO, Merges(4), Each(4),
        [VEX_Vfmadd231ps_ymm_ymm_ymmm256: 4], [EVEX_Vfmadd231ps_zmm_k1z_zmm_zmmm512b32_er: 4];
    Vfmadd231pd = ONTO, Merges(8), Each(8),
        [VEX_Vfmadd231pd_ymm_ymm_ymmm256: 4], [EVEX_Vfmadd231pd_zmm_k1z_zmm_zmmm512b64_er: 4];

    // `to = to * a - b`, and `to = to - a * b`, rounded once.
    Vfmsub213ps = ONTO, Merges(4), Each(4),
        [VEX_Vfmsub213ps_ymm_ymm_ymmm256: 4], [EVEX_Vfmsub213ps_zmm_k1z_zmm_zmmm512b32_er: 4];
    Vfmsub213pd = ONTO, Merges(8), Each(8),
        [VEX_Vfmsub213pd_ymm_ymm_ymmm256: 4], [EVEX_Vfmsub213pd_zmm_k1z_zmm_zmmm512b64_er: 4];
    Vfnmadd231ps = ONTO, Merges(4), Each(4),
        [VEX_Vfnmadd231ps_ymm_ymm_ymmm256: 4], [EVEX_Vfnmadd231ps_zmm_k1z_zmm_zmmm512b32_er: 4];
    Vfnmadd231pd = ONTO, Merges(8), Each(8),
        [VEX_Vfnmadd231pd_ymm_ymm_ymmm256: 4], [EVEX_Vfnmadd231pd_zmm_k1z_zmm_zmmm512b64_er: 4];

    // Sums of products of bytes and of halves, and of differences of bytes. `Vpsadbw` subtracts zeros, which cost no memory.
    Vpmaddubsw = BINARY, Merges(2), Whole,
        [VEX_Vpmaddubsw_ymm_ymm_ymmm256: 1], [EVEX_Vpmaddubsw_zmm_k1z_zmm_zmmm512: 1];
    Vpmaddwd = BINARY, Merges(4), Whole, [VEX_Vpmaddwd_ymm_ymm_ymmm256: 1], [EVEX_Vpmaddwd_zmm_k1z_zmm_zmmm512: 1];
    Vpdpbusd = ONTO, Merges(4), Plain, [], [EVEX_Vpdpbusd_zmm_k1z_zmm_zmmm512b32: 1];
    Vpsadbw = BINARY, Unmasked, Plain, [VEX_Vpsadbw_ymm_ymm_ymmm256: 1], [EVEX_Vpsadbw_zmm_zmm_zmmm512: 1];

    // Bits. `Zero` has one register as all its operands, and depends on none.
    Vpand = BINARY, Merges(4), Each(4), [VEX_Vpand_ymm_ymm_ymmm256: 1], [EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32: 1];
    Vpor = BINARY, Merges(4), Each(4), [VEX_Vpor_ymm_ymm_ymmm256: 1], [EVEX_Vpord_zmm_k1z_zmm_zmmm512b32: 1];
    Vpxor = BINARY, Merges(4), Each(4), [VEX_Vpxor_ymm_ymm_ymmm256: 1], [EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32: 1];
    Vpandn = BINARY, Unmasked, Whole, [VEX_Vpandn_ymm_ymm_ymmm256: 1], [];
    Zero = ONTO, Unmasked, Plain, [VEX_Vpxor_ymm_ymm_ymmm256: 1], [EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32: 1];
    Vpsllw = UNARY_BY, Merges(2), Registers, [VEX_Vpsllw_ymm_ymm_imm8: 1], [EVEX_Vpsllw_zmm_k1z_zmmm512_imm8: 1];
    Vpslld = UNARY_BY, Merges(4), Registers, [VEX_Vpslld_ymm_ymm_imm8: 1], [EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8: 1];
    Vpsllq = UNARY_BY, Merges(8), Registers, [VEX_Vpsllq_ymm_ymm_imm8: 1], [EVEX_Vpsllq_zmm_k1z_zmmm512b64_imm8: 1];
    Vpsrlw = UNARY_BY, Merges(2), Registers, [VEX_Vpsrlw_ymm_ymm_imm8: 1], [EVEX_Vpsrlw_zmm_k1z_zmmm512_imm8: 1];
    Vpsrld = UNARY_BY, Merges(4), Registers, [VEX_Vpsrld_ymm_ymm_imm8: 1], [EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8: 1];
    Vpsrlq = UNARY_BY, Merges(8), Registers, [VEX_Vpsrlq_ymm_ymm_imm8: 1], [EVEX_Vpsrlq_zmm_k1z_zmmm512b64_imm8: 1];
    Vpsraw = UNARY_BY, Merges(2), Registers, [VEX_Vpsraw_ymm_ymm_imm8: 1], [EVEX_Vpsraw_zmm_k1z_zmmm512_imm8: 1];
    Vpsrad = UNARY_BY, Merges(4), Registers, [VEX_Vpsrad_ymm_ymm_imm8: 1], [EVEX_Vpsrad_zmm_k1z_zmmm512b32_imm8: 1];
    Vpsraq = UNARY_BY, Merges(8), Registers, [], [EVEX_Vpsraq_zmm_k1z_zmmm512b64_imm8: 1];
    VpslldCount = BINARY, Merges(4), Plain, [], [EVEX_Vpslld_zmm_k1z_zmm_xmmm128: 1];
    VpsrldCount = BINARY, Merges(4), Plain, [], [EVEX_Vpsrld_zmm_k1z_zmm_xmmm128: 1];

    // Comparisons: into lanes of zeros or ones in AVX2, into masks in AVX-512.
    Vcmpps = BINARY_BY, Holds, Each(4),
        [VEX_Vcmpps_ymm_ymm_ymmm256_imm8: 1], [EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae: 4];
    Vcmppd = BINARY_BY, Holds, Each(8),
        [VEX_Vcmppd_ymm_ymm_ymmm256_imm8: 1], [EVEX_Vcmppd_kr_k1_zmm_zmmm512b64_imm8_sae: 4];
    Vpcmpeqb = BINARY, Unmasked, Whole, [VEX_Vpcmpeqb_ymm_ymm_ymmm256: 1], [];
    Vpcmpeqw = BINARY, Unmasked, Whole, [VEX_Vpcmpeqw_ymm_ymm_ymmm256: 1], [];
    Vpcmpeqd = BINARY, Unmasked, Each(4), [VEX_Vpcmpeqd_ymm_ymm_ymmm256: 1], [];
    Vpcmpeqq = BINARY, Unmasked, Each(8), [VEX_Vpcmpeqq_ymm_ymm_ymmm256: 1], [];
    Vpcmpgtb = BINARY, Holds, Whole, [VEX_Vpcmpgtb_ymm_ymm_ymmm256: 1], [EVEX_Vpcmpgtb_kr_k1_zmm_zmmm512: 1];
    Vpcmpgtw = BINARY, Holds, Whole, [VEX_Vpcmpgtw_ymm_ymm_ymmm256: 1], [EVEX_Vpcmpgtw_kr_k1_zmm_zmmm512: 1];
    Vpcmpgtd = BINARY, Holds, Each(4), [VEX_Vpcmpgtd_ymm_ymm_ymmm256: 1], [EVEX_Vpcmpgtd_kr_k1_zmm_zmmm512b32: 1];
    Vpcmpgtq = BINARY, Holds, Each(8), [VEX_Vpcmpgtq_ymm_ymm_ymmm256: 1], [EVEX_Vpcmpgtq_kr_k1_zmm_zmmm512b64: 1];
    Vpcmpb = BINARY_BY, Holds, Whole, [], [EVEX_Vpcmpb_kr_k1_zmm_zmmm512_imm8: 1];
    Vpcmpw = BINARY_BY, Holds, Whole, [], [EVEX_Vpcmpw_kr_k1_zmm_zmmm512_imm8: 1];
    Vpcmpd = BINARY_BY, Holds, Each(4), [], [EVEX_Vpcmpd_kr_k1_zmm_zmmm512b32_imm8: 1];
    Vpcmpq = BINARY_BY, Holds, Each(8), [], [EVEX_Vpcmpq_kr_k1_zmm_zmmm512b64_imm8: 1];
    Vpcmpub = BINARY_BY, Holds, Whole, [], [EVEX_Vpcmpub_kr_k1_zmm_zmmm512_imm8: 1];
    Vpcmpuw = BINARY_BY, Holds, Whole, [], [EVEX_Vpcmpuw_kr_k1_zmm_zmmm512_imm8: 1];
    Vpcmpud = BINARY_BY, Holds, Each(4), [], [EVEX_Vpcmpud_kr_k1_zmm_zmmm512b32_imm8: 1];
    Vptestmd = BINARY, Holds, Each(4), [], [EVEX_Vptestmd_kr_k1_zmm_zmmm512b32: 3];
    Vpcmpuq = BINARY_BY, Holds, Each(8), [], [EVEX_Vpcmpuq_kr_k1_zmm_zmmm512b64_imm8: 1];

    // Selections.
    Vpblendmb = BINARY, Picks, Whole, [], [EVEX_Vpblendmb_zmm_k1z_zmm_zmmm512: 1];
    Vpblendmw = BINARY, Picks, Whole, [], [EVEX_Vpblendmw_zmm_k1z_zmm_zmmm512: 1];
    Vpblendmd = BINARY, Picks, Each(4), [], [EVEX_Vpblendmd_zmm_k1z_zmm_zmmm512b32: 1];
    Vpblendmq = BINARY, Picks, Each(8), [], [EVEX_Vpblendmq_zmm_k1z_zmm_zmmm512b64: 1];
    Vpblendvb = TERNARY, Unmasked, Plain, [VEX_Vpblendvb_ymm_ymm_ymmm256_ymm: 1], [];
    Vpblendw = BINARY_BY, Unmasked, Whole, [VEX_Vpblendw_ymm_ymm_ymmm256_imm8: 1], [];
    Vpblendd = BINARY_BY, Unmasked, Whole, [VEX_Vpblendd_ymm_ymm_ymmm256_imm8: 1], [];

    // Conversions. A result of half a register takes no mask of whole ones.
    Vcvtps2pd = UNARY, Merges(8), Plain, [VEX_Vcvtps2pd_ymm_xmmm128: 1], [EVEX_Vcvtps2pd_zmm_k1z_ymmm256b32_sae: 1];
    Vcvtph2ps = UNARY, Merges(4), Plain, [VEX_Vcvtph2ps_ymm_xmmm128: 1], [EVEX_Vcvtph2ps_zmm_k1z_ymmm256_sae: 4];
    Vcvtdq2ps = UNARY, Merges(4), Plain, [VEX_Vcvtdq2ps_ymm_ymmm256: 1], [EVEX_Vcvtdq2ps_zmm_k1z_zmmm512b32_er: 1];
    Vcvtdq2pd = UNARY, Merges(8), Plain, [VEX_Vcvtdq2pd_ymm_xmmm128: 1], [EVEX_Vcvtdq2pd_zmm_k1z_ymmm256b32_er: 1];
    Vcvtudq2ps = UNARY, Merges(4), Plain, [], [EVEX_Vcvtudq2ps_zmm_k1z_zmmm512b32_er: 1];
    Vcvtudq2pd = UNARY, Merges(8), Plain, [], [EVEX_Vcvtudq2pd_zmm_k1z_ymmm256b32_er: 1];
    Vcvtqq2pd = UNARY, Merges(8), Plain, [], [EVEX_Vcvtqq2pd_zmm_k1z_zmmm512b64_er: 1];
    Vcvtuqq2pd = UNARY, Merges(8), Plain, [], [EVEX_Vcvtuqq2pd_zmm_k1z_zmmm512b64_er: 1];
    Vcvtpd2ps = UNARY, Unmasked, Plain, [VEX_Vcvtpd2ps_xmm_ymmm256: 1], [EVEX_Vcvtpd2ps_ymm_k1z_zmmm512b64_er: 1];
    Vcvtqq2ps = UNARY, Unmasked, Plain, [], [EVEX_Vcvtqq2ps_ymm_k1z_zmmm512b64_er: 1];
    Vcvtuqq2ps = UNARY, Unmasked, Plain, [], [EVEX_Vcvtuqq2ps_ymm_k1z_zmmm512b64_er: 1];
    Vcvtps2dq = UNARY, Merges(4), Plain, [VEX_Vcvtps2dq_ymm_ymmm256: 1], [EVEX_Vcvtps2dq_zmm_k1z_zmmm512b32_er: 1];
    Vcvtps2udq = UNARY, Merges(4), Plain, [], [EVEX_Vcvtps2udq_zmm_k1z_zmmm512b32_er: 1];
    Vcvtps2qq = UNARY, Merges(8), Plain, [], [EVEX_Vcvtps2qq_zmm_k1z_ymmm256b32_er: 1];
    Vcvtps2uqq = UNARY, Merges(8), Plain, [], [EVEX_Vcvtps2uqq_zmm_k1z_ymmm256b32_er: 1];
    Vcvtpd2dq = UNARY, Unmasked, Plain, [VEX_Vcvtpd2dq_xmm_ymmm256: 1], [EVEX_Vcvtpd2dq_ymm_k1z_zmmm512b64_er: 1];
    Vcvtpd2udq = UNARY, Unmasked, Plain, [], [EVEX_Vcvtpd2udq_ymm_k1z_zmmm512b64_er: 1];
    Vcvtpd2qq = UNARY, Merges(8), Plain, [], [EVEX_Vcvtpd2qq_zmm_k1z_zmmm512b64_er: 1];
    Vcvtpd2uqq = UNARY, Merges(8), Plain, [], [EVEX_Vcvtpd2uqq_zmm_k1z_zmmm512b64_er: 1];
    Vcvttps2dq = UNARY, Merges(4), Plain, [VEX_Vcvttps2dq_ymm_ymmm256: 1], [EVEX_Vcvttps2dq_zmm_k1z_zmmm512b32_sae: 1];
    Vcvttps2udq = UNARY, Merges(4), Plain, [], [EVEX_Vcvttps2udq_zmm_k1z_zmmm512b32_sae: 1];
    Vcvttps2qq = UNARY, Merges(8), Plain, [], [EVEX_Vcvttps2qq_zmm_k1z_ymmm256b32_sae: 1];
    Vcvttps2uqq = UNARY, Merges(8), Plain, [], [EVEX_Vcvttps2uqq_zmm_k1z_ymmm256b32_sae: 1];
    Vcvttpd2dq = UNARY, Unmasked, Plain, [VEX_Vcvttpd2dq_xmm_ymmm256: 1], [EVEX_Vcvttpd2dq_ymm_k1z_zmmm512b64_sae: 1];
    Vcvttpd2udq = UNARY, Unmasked, Plain, [], [EVEX_Vcvttpd2udq_ymm_k1z_zmmm512b64_sae: 1];
    Vcvttpd2qq = UNARY, Merges(8), Plain, [], [EVEX_Vcvttpd2qq_zmm_k1z_zmmm512b64_sae: 1];
    Vcvttpd2uqq = UNARY, Merges(8), Plain, [], [EVEX_Vcvttpd2uqq_zmm_k1z_zmmm512b64_sae: 1];
    Vcvtps2ph = UNARY_BY, Unmasked, Plain,
        [VEX_Vcvtps2ph_xmmm128_ymm_imm8: 1], [EVEX_Vcvtps2ph_ymmm256_k1z_zmm_imm8_sae: 1];
    Vpmovsxbw = UNARY, Merges(2), Plain, [VEX_Vpmovsxbw_ymm_xmmm128: 1], [EVEX_Vpmovsxbw_zmm_k1z_ymmm256: 1];
    Vpmovsxbd = UNARY, Merges(4), Plain, [VEX_Vpmovsxbd_ymm_xmmm64: 1], [EVEX_Vpmovsxbd_zmm_k1z_xmmm128: 1];
    Vpmovsxbq = UNARY, Merges(8), Plain, [VEX_Vpmovsxbq_ymm_xmmm32: 1], [EVEX_Vpmovsxbq_zmm_k1z_xmmm64: 1];
    Vpmovsxwd = UNARY, Merges(4), Plain, [VEX_Vpmovsxwd_ymm_xmmm128: 1], [EVEX_Vpmovsxwd_zmm_k1z_ymmm256: 1];
    Vpmovsxwq = UNARY, Merges(8), Plain, [VEX_Vpmovsxwq_ymm_xmmm64: 1], [EVEX_Vpmovsxwq_zmm_k1z_xmmm128: 1];
    Vpmovsxdq = UNARY, Merges(8), Plain, [VEX_Vpmovsxdq_ymm_xmmm128: 1], [EVEX_Vpmovsxdq_zmm_k1z_ymmm256: 1];
    Vpmovzxbw = UNARY, Merges(2), Plain, [VEX_Vpmovzxbw_ymm_xmmm128: 1], [EVEX_Vpmovzxbw_zmm_k1z_ymmm256: 1];
    Vpmovzxbd = UNARY, Merges(4), Plain, [VEX_Vpmovzxbd_ymm_xmmm64: 1], [EVEX_Vpmovzxbd_zmm_k1z_xmmm128: 1];
    Vpmovzxbq = UNARY, Merges(8), Plain, [VEX_Vpmovzxbq_ymm_xmmm32: 1], [EVEX_Vpmovzxbq_zmm_k1z_xmmm64: 1];
    Vpmovzxwd = UNARY, Merges(4), Plain, [VEX_Vpmovzxwd_ymm_xmmm128: 1], [EVEX_Vpmovzxwd_zmm_k1z_ymmm256: 1];
    Vpmovzxwq = UNARY, Merges(8), Plain, [VEX_Vpmovzxwq_ymm_xmmm64: 1], [EVEX_Vpmovzxwq_zmm_k1z_xmmm128: 1];
    Vpmovzxdq = UNARY, Merges(8), Plain, [VEX_Vpmovzxdq_ymm_xmmm128: 1], [EVEX_Vpmovzxdq_zmm_k1z_ymmm256: 1];
    Vpmovqd = UNARY, Unmasked, Plain, [], [EVEX_Vpmovqd_ymmm256_k1z_zmm: 1];
    Vpmovqw = UNARY, Unmasked, Plain, [], [EVEX_Vpmovqw_xmmm128_k1z_zmm: 1];
    Vpmovqb = UNARY, Unmasked, Plain, [], [EVEX_Vpmovqb_xmmm64_k1z_zmm: 1];
    Vpmovdw = UNARY, Unmasked, Plain, [], [EVEX_Vpmovdw_ymmm256_k1z_zmm: 1];
    Vpmovdb = UNARY, Unmasked, Plain, [], [EVEX_Vpmovdb_xmmm128_k1z_zmm: 1];
    Vpmovsdw = UNARY, Unmasked, Plain, [], [EVEX_Vpmovsdw_ymmm256_k1z_zmm: 1];
    Vpmovsdb = UNARY, Unmasked, Plain, [], [EVEX_Vpmovsdb_xmmm128_k1z_zmm: 1];
    Vpmovusdw = UNARY, Unmasked, Plain, [], [EVEX_Vpmovusdw_ymmm256_k1z_zmm: 1];
    Vpmovusdb = UNARY, Unmasked, Plain, [], [EVEX_Vpmovusdb_xmmm128_k1z_zmm: 1];
    Vpmovwb = UNARY, Unmasked, Plain, [], [EVEX_Vpmovwb_ymmm256_k1z_zmm: 1];

    // Lanes in another order.
    Vpunpcklbw = BINARY, Merges(1), Whole,
        [VEX_Vpunpcklbw_ymm_ymm_ymmm256: 1], [EVEX_Vpunpcklbw_zmm_k1z_zmm_zmmm512: 1];
    Vpunpcklwd = BINARY, Merges(2), Whole,
        [VEX_Vpunpcklwd_ymm_ymm_ymmm256: 1], [EVEX_Vpunpcklwd_zmm_k1z_zmm_zmmm512: 1];
    Vpunpckldq = BINARY, Merges(4), Each(4),
        [VEX_Vpunpckldq_ymm_ymm_ymmm256: 1], [EVEX_Vpunpckldq_zmm_k1z_zmm_zmmm512b32: 1];
    Vpunpcklqdq = BINARY, Merges(8), Each(8),
        [VEX_Vpunpcklqdq_ymm_ymm_ymmm256: 1], [EVEX_Vpunpcklqdq_zmm_k1z_zmm_zmmm512b64: 1];
    Vpunpckhbw = BINARY, Merges(1), Whole,
        [VEX_Vpunpckhbw_ymm_ymm_ymmm256: 1], [EVEX_Vpunpckhbw_zmm_k1z_zmm_zmmm512: 1];
    Vpunpckhwd = BINARY, Merges(2), Whole,
        [VEX_Vpunpckhwd_ymm_ymm_ymmm256: 1], [EVEX_Vpunpckhwd_zmm_k1z_zmm_zmmm512: 1];
    Vpunpckhdq = BINARY, Merges(4), Each(4),
        [VEX_Vpunpckhdq_ymm_ymm_ymmm256: 1], [EVEX_Vpunpckhdq_zmm_k1z_zmm_zmmm512b32: 1];
    Vpunpckhqdq = BINARY, Merges(8), Each(8),
        [VEX_Vpunpckhqdq_ymm_ymm_ymmm256: 1], [EVEX_Vpunpckhqdq_zmm_k1z_zmm_zmmm512b64: 1];
    VpunpcklwdXmm = BINARY, Unmasked, Plain, [VEX_Vpunpcklwd_xmm_xmm_xmmm128: 1], [];
    VpunpckldqXmm = BINARY, Unmasked, Plain, [VEX_Vpunpckldq_xmm_xmm_xmmm128: 1], [];
    VpunpcklqdqXmm = BINARY, Unmasked, Plain, [VEX_Vpunpcklqdq_xmm_xmm_xmmm128: 1], [];
    Vpshufb = BINARY, Merges(1), Whole, [VEX_Vpshufb_ymm_ymm_ymmm256: 1], [EVEX_Vpshufb_zmm_k1z_zmm_zmmm512: 1];
    Vshufps = BINARY_BY, Unmasked, Plain, [VEX_Vshufps_ymm_ymm_ymmm256_imm8: 1], [];
    Vpermb = BINARY, Merges(1), Plain, [], [EVEX_Vpermb_zmm_k1z_zmm_zmmm512: 4];
    Vpermw = BINARY, Merges(2), Plain, [], [EVEX_Vpermw_zmm_k1z_zmm_zmmm512: 4];
    Vpermd = BINARY, Merges(4), Plain, [VEX_Vpermd_ymm_ymm_ymmm256: 1], [EVEX_Vpermd_zmm_k1z_zmm_zmmm512b32: 4];
    Vpermq = BINARY, Merges(8), Plain, [], [EVEX_Vpermq_zmm_k1z_zmm_zmmm512b64: 4];
    VpermqBy = UNARY_BY, Unmasked, Plain, [VEX_Vpermq_ymm_ymmm256_imm8: 1], [];
    Vpermt2b = ONTO, Merges(1), Plain, [], [EVEX_Vpermt2b_zmm_k1z_zmm_zmmm512: 4];
    Vpermt2w = ONTO, Merges(2), Plain, [], [EVEX_Vpermt2w_zmm_k1z_zmm_zmmm512: 4];
    Vpermt2d = ONTO, Merges(4), Plain, [], [EVEX_Vpermt2d_zmm_k1z_zmm_zmmm512b32: 4];
    Vpermt2q = ONTO, Merges(8), Plain, [], [EVEX_Vpermt2q_zmm_k1z_zmm_zmmm512b64: 4];
    Valignd = BINARY_BY, Merges(4), Plain, [], [EVEX_Valignd_zmm_k1z_zmm_zmmm512b32_imm8: 4];
    Vpalignr = BINARY_BY, Unmasked, Plain, [], [EVEX_Vpalignr_zmm_k1z_zmm_zmmm512_imm8: 4];
    Vpsrldq = UNARY_BY, Unmasked, Registers, [VEX_Vpsrldq_xmm_xmm_imm8: 1], [EVEX_Vpsrldq_xmm_xmmm128_imm8: 1];
    Groups = BINARY_BY, Merges(8), Plain,
        [VEX_Vperm2i128_ymm_ymm_ymmm256_imm8: 1], [EVEX_Vshufi64x2_zmm_k1z_zmm_zmmm512b64_imm8: 1];
    Vinserti128 = BINARY_BY, Merges(4), Plain,
        [VEX_Vinserti128_ymm_ymm_xmmm128_imm8: 1], [EVEX_Vinserti32x4_zmm_k1z_zmm_xmmm128_imm8: 1];
    Vextracti128 = UNARY_BY, Unmasked, Plain,
        [VEX_Vextracti128_xmmm128_ymm_imm8: 1], [EVEX_Vextracti32x4_xmmm128_k1z_zmm_imm8: 1];
    Vpinsrb = BINARY_BY, Unmasked, Plain, [VEX_Vpinsrb_xmm_xmm_r32m8_imm8: 1], [EVEX_Vpinsrb_xmm_xmm_r32m8_imm8: 1];
    Vpinsrw = BINARY_BY, Unmasked, Plain, [VEX_Vpinsrw_xmm_xmm_r32m16_imm8: 1], [EVEX_Vpinsrw_xmm_xmm_r32m16_imm8: 1];
    Vpinsrd = BINARY_BY, Unmasked, Plain, [VEX_Vpinsrd_xmm_xmm_rm32_imm8: 1], [EVEX_Vpinsrd_xmm_xmm_rm32_imm8: 1];
    Vpinsrq = BINARY_BY, Unmasked, Plain, [VEX_Vpinsrq_xmm_xmm_rm64_imm8: 1], [EVEX_Vpinsrq_xmm_xmm_rm64_imm8: 1];
    Vpextrb = UNARY_BY, Unmasked, Plain, [VEX_Vpextrb_r32m8_xmm_imm8: 1], [EVEX_Vpextrb_r32m8_xmm_imm8: 1];
    Vpextrw = UNARY_BY, Unmasked, Plain, [VEX_Vpextrw_r32m16_xmm_imm8: 1], [EVEX_Vpextrw_r32m16_xmm_imm8: 1];
    Vpextrd = UNARY_BY, Unmasked, Plain, [VEX_Vpextrd_rm32_xmm_imm8: 1], [EVEX_Vpextrd_rm32_xmm_imm8: 1];
    Vpextrq = UNARY_BY, Unmasked, Plain, [VEX_Vpextrq_rm64_xmm_imm8: 1], [EVEX_Vpextrq_rm64_xmm_imm8: 1];

    // An element in all lanes: of a vector or of memory, or of a general register.
    Vpbroadcastb = UNARY, Merges(1), Plain, [VEX_Vpbroadcastb_ymm_xmmm8: 1], [EVEX_Vpbroadcastb_zmm_k1z_xmmm8: 1];
    Vpbroadcastw = UNARY, Merges(2), Plain, [VEX_Vpbroadcastw_ymm_xmmm16: 1], [EVEX_Vpbroadcastw_zmm_k1z_xmmm16: 1];
    Vpbroadcastd = UNARY, Merges(4), Plain, [VEX_Vpbroadcastd_ymm_xmmm32: 1], [EVEX_Vpbroadcastd_zmm_k1z_xmmm32: 1];
    Vpbroadcastq = UNARY, Merges(8), Plain, [VEX_Vpbroadcastq_ymm_xmmm64: 1], [EVEX_Vpbroadcastq_zmm_k1z_xmmm64: 1];
    VpbroadcastbOf = UNARY, Merges(1), Registers, [], [EVEX_Vpbroadcastb_zmm_k1z_r32: 1];
    VpbroadcastwOf = UNARY, Merges(2), Registers, [], [EVEX_Vpbroadcastw_zmm_k1z_r32: 1];
    VpbroadcastdOf = UNARY, Merges(4), Registers, [], [EVEX_Vpbroadcastd_zmm_k1z_r32: 1];
    VpbroadcastqOf = UNARY, Merges(8), Registers, [], [EVEX_Vpbroadcastq_zmm_k1z_r64: 1];

    // Moves of vectors, and of their first bytes. Those to memory end in `Store`.
    Vmovdqa = UNARY, Merges(8), Plain, [VEX_Vmovdqa_ymm_ymmm256: 1], [EVEX_Vmovdqa64_zmm_k1z_zmmm512: 1];
    VmovdquXmm = UNARY, Unmasked, Plain, [VEX_Vmovdqu_xmm_xmmm128: 1], [EVEX_Vmovdqu32_xmm_k1z_xmmm128: 1];
    VmovdquYmm = UNARY, Unmasked, Plain, [VEX_Vmovdqu_ymm_ymmm256: 1], [EVEX_Vmovdqu32_ymm_k1z_ymmm256: 1];
    Vmovdqu8 = UNARY, Merges(1), Plain, [], [EVEX_Vmovdqu8_zmm_k1z_zmmm512: 1];
    Vmovdqu16 = UNARY, Merges(2), Plain, [], [EVEX_Vmovdqu16_zmm_k1z_zmmm512: 1];
    Vmovdqu32 = UNARY, Merges(4), Plain, [], [EVEX_Vmovdqu32_zmm_k1z_zmmm512: 1];
    Vmovdqu64 = UNARY, Merges(8), Plain, [], [EVEX_Vmovdqu64_zmm_k1z_zmmm512: 1];
    VmovdquXmmStore = UNARY, Unmasked, Plain, [VEX_Vmovdqu_xmmm128_xmm: 1], [EVEX_Vmovdqu32_xmmm128_k1z_xmm: 1];
    VmovdquYmmStore = UNARY, Unmasked, Plain, [VEX_Vmovdqu_ymmm256_ymm: 1], [EVEX_Vmovdqu32_ymmm256_k1z_ymm: 1];
    Vmovdqu8Store = UNARY, Merges(1), Plain, [], [EVEX_Vmovdqu8_zmmm512_k1z_zmm: 1];
    Vmovdqu16Store = UNARY, Merges(2), Plain, [], [EVEX_Vmovdqu16_zmmm512_k1z_zmm: 1];
    Vmovdqu32Store = UNARY, Merges(4), Plain, [], [EVEX_Vmovdqu32_zmmm512_k1z_zmm: 1];
    Vmovdqu64Store = UNARY, Merges(8), Plain, [], [EVEX_Vmovdqu64_zmmm512_k1z_zmm: 1];
    VmovntpsYmm = UNARY, Unmasked, Plain, [VEX_Vmovntps_m256_ymm: 1], [EVEX_Vmovntps_m256_ymm: 1];
    VmovntpsZmm = UNARY, Unmasked, Plain, [], [EVEX_Vmovntps_m512_zmm: 1];
    Vpmaskmovd = BINARY, Unmasked, Plain, [VEX_Vpmaskmovd_ymm_ymm_m256: 1], [];
    Vmovd = UNARY, Unmasked, Plain, [VEX_Vmovd_xmm_rm32: 1], [EVEX_Vmovd_xmm_rm32: 1];
    VmovdStore = UNARY, Unmasked, Plain, [VEX_Vmovd_rm32_xmm: 1], [EVEX_Vmovd_rm32_xmm: 1];
    Vmovq = UNARY, Unmasked, Plain, [VEX_Vmovq_xmm_xmmm64: 1], [EVEX_Vmovq_xmm_xmmm64: 1];
    VmovqStore = UNARY, Unmasked, Plain, [VEX_Vmovq_xmmm64_xmm: 1], [EVEX_Vmovq_xmmm64_xmm: 1];
    VmovqOf = UNARY, Unmasked, Plain, [VEX_Vmovq_xmm_rm64: 1], [];
    VmovqTo = UNARY, Unmasked, Plain, [VEX_Vmovq_rm64_xmm: 1], [EVEX_Vmovq_rm64_xmm: 1];
    Vpmovmskb = UNARY, Unmasked, Registers, [VEX_Vpmovmskb_r32_ymm: 1], [];

    // Masks.
    Kandq = BINARY, Unmasked, Registers, [], [VEX_Kandq_kr_kr_kr: 1];
    Korq = BINARY, Unmasked, Registers, [], [VEX_Korq_kr_kr_kr: 1];
    Kxorq = BINARY, Unmasked, Registers, [], [VEX_Kxorq_kr_kr_kr: 1];
    Knotq = UNARY, Unmasked, Registers, [], [VEX_Knotq_kr_kr: 1];
    Kmovq = UNARY, Unmasked, Plain, [], [VEX_Kmovq_kr_km64: 1];
    KmovqStore = UNARY, Unmasked, Plain, [], [VEX_Kmovq_m64_kr: 1];
    KmovqOf = UNARY, Unmasked, Registers, [], [VEX_Kmovq_kr_r64: 1];
    KmovqTo = UNARY, Unmasked, Registers, [], [VEX_Kmovq_r64_kr: 1];

    // Addresses, counters and jumps. Of those with a number in the instruction the name ends in `By`.
    Mov = UNARY, Unmasked, Plain, [Mov_r64_rm64: 1], [Mov_r64_rm64: 1];
    MovStore = UNARY, Unmasked, Plain, [Mov_rm64_r64: 1], [Mov_rm64_r64: 1];
    MovBy32 = NUMBER_32, Unmasked, Registers, [Mov_r32_imm32: 1], [Mov_r32_imm32: 1];
    MovBy64 = NUMBER_64, Unmasked, Registers, [Mov_r64_imm64: 1], [Mov_r64_imm64: 1];
    Lea = UNARY, Unmasked, Address, [Lea_r64_m: 1], [Lea_r64_m: 1];
    Add = COUNT, Unmasked, Plain, [Add_rm64_r64: 1], [Add_rm64_r64: 1];
    AddBy = COUNT_BY, Unmasked, Plain, [Add_rm64_imm32: 1], [Add_rm64_imm32: 1];
    Sub = COUNT, Unmasked, Plain, [Sub_r64_rm64: 1], [Sub_r64_rm64: 1];
    SubBy = COUNT_BY, Unmasked, Plain, [Sub_rm64_imm32: 1], [Sub_rm64_imm32: 1];
    And = COUNT, Unmasked, Plain, [And_r64_rm64: 1], [And_r64_rm64: 1];
    AndBy = COUNT_BY, Unmasked, Plain, [And_rm64_imm32: 1], [And_rm64_imm32: 1];
    Neg = NEGATE, Unmasked, Plain, [Neg_rm64: 1], [Neg_rm64: 1];
    ShrBy = SHIFT, Unmasked, Plain, [Shr_rm64_imm8: 1], [Shr_rm64_imm8: 1];
    Imul = COUNT, Unmasked, Plain, [Imul_r64_rm64: 1], [Imul_r64_rm64: 1];
    ImulBy = MULTIPLY, Unmasked, Plain, [Imul_r64_rm64_imm32: 1], [Imul_r64_rm64_imm32: 1];
    Tzcnt = BIT, Unmasked, Plain, [Tzcnt_r64_rm64: 1], [Tzcnt_r64_rm64: 1];
    Cmovne = CHOOSE, Unmasked, Plain, [Cmovne_r64_rm64: 1], [Cmovne_r64_rm64: 1];
    Cmp = TEST, Unmasked, Plain, [Cmp_rm64_r64: 1], [Cmp_rm64_r64: 1];
    CmpBy = TEST_BY, Unmasked, Plain, [Cmp_rm64_imm32: 1], [Cmp_rm64_imm32: 1];
    Test = TEST, Unmasked, Plain, [Test_rm64_r64: 1], [Test_rm64_r64: 1];
    TestBy = TEST_BY, Unmasked, Plain, [Test_rm64_imm32: 1], [Test_rm64_imm32: 1];
    Prefetcht0 = HINT, Unmasked, Address, [Prefetcht0_m8: 1], [Prefetcht0_m8: 1];
    Prefetcht1 = HINT, Unmasked, Address, [Prefetcht1_m8: 1], [Prefetcht1_m8: 1];
    Je = JUMP_IF, Unmasked, Registers, [Je_rel32_64: 1], [Je_rel32_64: 1];
    Jne = JUMP_IF, Unmasked, Registers, [Jne_rel32_64: 1], [Jne_rel32_64: 1];
    Jb = JUMP_IF, Unmasked, Registers, [Jb_rel32_64: 1], [Jb_rel32_64: 1];
    Jmp = JUMP, Unmasked, Registers, [Jmp_rel32_64: 1], [Jmp_rel32_64: 1];
    Push = SAVE, Unmasked, Registers, [Push_r64: 1], [Push_r64: 1];
    Pop = RESTORE, Unmasked, Registers, [Pop_r64: 1], [Pop_r64: 1];
    Ret = BARE, Unmasked, Registers, [Retnq: 1], [Retnq: 1];
    Sfence = BARE, Unmasked, Registers, [Sfence: 1], [Sfence: 1];
    Vzeroupper = BARE, Unmasked, Registers, [VEX_Vzeroupper: 1], [VEX_Vzeroupper: 1];
}

/// The three instructions of `a * b + c`, by the operand that the result replaces.
#[derive(Clone, Copy, Debug)]
pub struct Fma {
    /// `to = x * y + to`.
    pub adds_to: Opcode,
    /// `to = x * to + y`.
    pub multiplies: Opcode,
    /// `to = to * y + x`.
    pub multiplies_by_last: Opcode,
}

/// Returns those of f64, or of f32.
pub fn fma(double: bool) -> Fma {
    use Opcode::*;
    let [adds_to, multiplies, multiplies_by_last] = match double {
        true => [Vfmadd231pd, Vfmadd213pd, Vfmadd132pd],
        false => [Vfmadd231ps, Vfmadd213ps, Vfmadd132ps],
    };
    Fma { adds_to, multiplies, multiplies_by_last }
}
