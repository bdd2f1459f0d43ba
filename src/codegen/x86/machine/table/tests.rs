//! Tests of every row against the names of its forms in iced, and against the encoder and the decoder.

use super::super::bytes;
use super::*;
use iced_x86::{Code, Decoder, DecoderOptions, Encoder, Instruction, OpKind, Register};

/// The operands of an instruction, by the name that iced gives it: `EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er`.
struct Named {
    mnemonic: String,
    operands: Vec<String>,
    /// True if it takes a mask that merges, `k1z`, or one that only holds lanes back, `k1`.
    merges: bool,
    holds: bool,
}

impl Named {
    fn of(code: Code) -> Named {
        let name = format!("{code:?}");
        let plain = name.trim_start_matches("EVEX_").trim_start_matches("VEX_");
        let mut words = plain.split('_').map(str::to_string);
        let mnemonic = words.next().expect("a mnemonic");
        let words: Vec<String> = words.filter(|w| !matches!(w.as_str(), "er" | "sae" | "64")).collect();
        let has = |word: &str| words.iter().any(|w| w == word);
        let (merges, holds) = (has("k1z"), has("k1"));
        let operands = words.into_iter().filter(|w| !matches!(w.as_str(), "k1z" | "k1")).collect();
        Named { mnemonic, operands, merges, holds }
    }

    fn number(&self) -> Number {
        match (self.operands.last().map(String::as_str), self.mnemonic.as_str()) {
            (Some("imm8"), _) => Number::Byte,
            (Some("imm64"), _) => Number::Bits64,
            (Some("imm32"), "Mov") => Number::Bits32,
            (Some("imm32"), _) => Number::Signed32,
            _ => Number::Absent,
        }
    }

    /// The operand that may be memory, and the bytes of an element if memory may hold one instead of a vector.
    fn memory(&self) -> Option<(usize, Option<u64>)> {
        // `zmmm512b32`, `xmmm8`, `r32m8`, `rm64`, `km64` and `m256` may be memory; `zmm` and `r32` are registers.
        let may = |w: &String| w.contains("mmm") || !w.contains("mm") && w.contains('m');
        let at = self.operands.iter().position(may)?;
        let bits = self.operands[at].rsplit_once('b').and_then(|(_, bits)| bits.parse::<u64>().ok());
        Some((at, bits.map(|bits| bits / 8)))
    }

    /// Bytes of the lanes of a mask, from the last letters of the mnemonic.
    fn lane_bytes(&self) -> Option<u64> {
        let m = self.mnemonic.as_str();
        // An interleaving is named by its operands and its result: `Vpunpcklbw` makes words of bytes.
        if let Some(of) = m.strip_prefix("Vpunpck").map(|rest| &rest[1..]) {
            return ["bw", "wd", "dq", "qdq"].iter().position(|o| *o == of).map(|n| 1 << n);
        }
        if let Some(bits) = m.strip_prefix("Vmovdqu").or_else(|| m.strip_prefix("Vmovdqa")) {
            return bits.parse::<u64>().ok().map(|bits| bits / 8);
        }
        let letters = m.trim_end_matches("x2").trim_end_matches("x4");
        // A conversion to 32 bits is named by the four of them in 128 bits.
        let sizes = [
            ("2dq", 4),
            ("2udq", 4),
            ("ps", 4),
            ("pd", 8),
            ("32", 4),
            ("64", 8),
            ("b", 1),
            ("w", 2),
            ("d", 4),
            ("q", 8),
        ];
        sizes.iter().find(|(end, _)| letters.ends_with(end)).map(|(_, bytes)| *bytes)
    }
}

fn forms() -> impl Iterator<Item = (Opcode, &'static Row, Form, bool)> {
    let of = |&opcode: &Opcode| {
        let row = opcode.row();
        let avx2 = row.avx2.map(|form| (opcode, row, form, false));
        avx2.into_iter().chain(row.avx512.map(|form| (opcode, row, form, true)))
    };
    Opcode::ALL.iter().flat_map(of)
}

#[test]
fn every_opcode_has_its_row_and_a_form() {
    for (n, opcode) in Opcode::ALL.iter().enumerate() {
        assert_eq!(*opcode as usize, n);
        assert!(opcode.row().avx2.is_some() || opcode.row().avx512.is_some(), "{opcode:?}");
    }
}

#[test]
fn shapes_are_those_of_the_forms() {
    for (opcode, row, form, _) in forms() {
        let named = Named::of(form.code);
        // `Retnq` has no operands; a jump's is its target.
        assert_eq!(named.operands.len(), row.shape.operands, "operands of {opcode:?}: {:?}", form.code);
        assert_eq!(named.number(), row.shape.number, "number of {opcode:?}");
    }
}

#[test]
fn flags_are_those_of_the_forms() {
    for (opcode, row, form, _) in forms() {
        let mut instruction = Instruction::default();
        instruction.set_code(form.code);
        // A shift by nothing would keep them.
        if row.shape.number == Number::Byte {
            instruction.set_immediate8(1);
        }
        let (reads, changes) = (instruction.rflags_read() != 0, instruction.rflags_modified() != 0);
        let expected = match row.shape.flags {
            Flags::Keeps => (false, false),
            Flags::Sets => (false, true),
            Flags::Reads => (true, false),
        };
        assert_eq!((reads, changes), expected, "flags of {opcode:?}");
    }
}

#[test]
fn masks_are_those_of_the_forms() {
    for (opcode, row, form, is_512) in forms().filter(|form| form.3) {
        let named = Named::of(form.code);
        match row.masking {
            Masking::Merges(bytes) => {
                assert!(named.merges && is_512, "{opcode:?}");
                assert_eq!(named.lane_bytes(), Some(bytes), "lanes of {opcode:?}");
                let whole = |w: &String| w.starts_with("zmm");
                assert!(whole(&named.operands[0]), "{opcode:?} makes a part of a vector");
            }
            Masking::Picks => assert!(named.merges && named.mnemonic.contains("blendm"), "{opcode:?}"),
            Masking::Holds => assert!(named.holds && named.operands[0] == "kr", "{opcode:?}"),
            Masking::Unmasked => {}
        }
    }
}

#[test]
fn memory_is_that_of_the_forms() {
    for (opcode, row, form, is_512) in forms() {
        let named = Named::of(form.code);
        let registers = named.operands.len() - usize::from(row.shape.number != Number::Absent);
        match (row.memory, named.memory()) {
            (Memory::Registers, _) => {}
            (Memory::Address, Some(_)) | (Memory::Plain, Some(_)) => {}
            (Memory::Whole, Some((at, None))) => assert_eq!(at + 1, registers, "{opcode:?}"),
            (Memory::Each(bytes), Some((at, each))) => {
                assert_eq!(at + 1, registers, "{opcode:?}");
                assert_eq!(each, is_512.then_some(bytes), "{opcode:?}");
            }
            (memory, found) => panic!("{opcode:?}: {memory:?}, but {found:?}"),
        }
    }
}

/// The register number `n` of the kind that a word names; `None` if it names no kind.
fn register(word: &str, n: u32) -> Option<Register> {
    let first = match word {
        w if w.starts_with("zmm") => Register::ZMM0,
        w if w.starts_with("ymm") => Register::YMM0,
        w if w.starts_with("xmm") => Register::XMM0,
        w if w.starts_with('k') => Register::K1,
        w if w.starts_with("r32") || w.starts_with("rm32") => Register::EAX,
        w if w.starts_with("r64") || w.starts_with("rm64") => Register::RAX,
        _ => return None,
    };
    Some(first + n)
}

#[test]
fn forms_of_jumps_and_without_operands_encode() {
    for (opcode, _, form, _) in forms() {
        let named = Named::of(form.code);
        let mut i = Instruction::default();
        i.set_code(form.code);
        match named.operands.first() {
            None => {}
            Some(first) if first.starts_with("rel32") => i.set_op_kind(0, OpKind::NearBranch64),
            Some(_) => continue,
        }
        let (bytes, _) = own(&form, &i);
        i.set_near_branch64(bytes.len() as u64);
        assert_eq!(bytes, encoded(&i), "{opcode:?}");
    }
}

#[test]
fn instructions_of_frames_encode() {
    use super::super::encoding::encoding;
    use iced_x86::MemoryOperand;
    let below = |bytes: i64| MemoryOperand::with_base_displ(Register::RSP, -bytes);
    let touch = |bytes: i64| Instruction::with2(Code::Mov_rm8_imm8, below(bytes), 0);
    let and = Instruction::with2(Code::And_rm64_imm8, Register::RSI, -64);
    for (code, instruction) in
        [(Code::Mov_rm8_imm8, touch(8)), (Code::Mov_rm8_imm8, touch(4096)), (Code::And_rm64_imm8, and)]
    {
        let (instruction, mut bytes) = (instruction.expect("an instruction"), vec![]);
        bytes::write(&encoding(code), &instruction, &mut bytes);
        assert_eq!(bytes, encoded(&instruction), "{code:?}");
    }
}

/// The bytes of an instruction, and the place of a distance in them.
fn own(form: &Form, instruction: &Instruction) -> (Vec<u8>, Option<usize>) {
    let mut own = vec![];
    let place = bytes::write(&form.encoding, instruction, &mut own);
    (own, place)
}

/// The bytes of an instruction as the encoder of `iced_x86` writes them.
fn encoded(instruction: &Instruction) -> Vec<u8> {
    let mut encoder = Encoder::new(64);
    encoder.encode(instruction, 0).unwrap_or_else(|e| panic!("{instruction:?}: {e}"));
    encoder.take_buffer()
}

/// The instruction with registers of each kind of number, numbers of each sign, and each kind of address.
fn with_other_operands(first: Instruction, named: &Named, in_memory: bool) -> Vec<Instruction> {
    let mut all = vec![];
    let vectors = if format!("{:?}", first.code()).starts_with("EVEX") { 32 } else { 16 };
    for step in [0, 3, 7, 8, 13, 17, 31] {
        let mut i = first;
        for (at, word) in (0..).zip(&named.operands) {
            match i.op_kind(at) {
                OpKind::Register => {
                    let most = match word.as_bytes()[0] {
                        b'k' => 7,
                        b'r' => 16,
                        _ => vectors,
                    };
                    i.set_op_register(at, register(word, (step + 5 * at) % most).expect("a register"));
                }
                OpKind::Immediate8 => i.set_immediate8((step * 9) as u8),
                OpKind::Immediate32 => i.set_immediate32(step.wrapping_mul(0x1234_5677)),
                OpKind::Immediate32to64 => i.set_immediate32to64(-i64::from(step) * 99),
                OpKind::Immediate64 => i.set_immediate64(u64::from(step).wrapping_mul(0x0123_4567_89ab_cdef)),
                _ => {}
            }
        }
        if i.op_mask() != Register::None {
            i.set_op_mask(Register::K1 + step % 7);
            i.set_zeroing_masking(named.merges && !in_memory && step > 7);
        }
        if !in_memory {
            all.push(i);
            continue;
        }
        for base in 0..16 {
            i.set_memory_base(Register::RAX + base);
            for offset in [0i64, 4, 8, 16, 31, 32, 64, -64, 127, -128, 128, -129, 4096, 8128, -8192, 1 << 20] {
                i.set_memory_displacement64(offset as u64);
                i.set_memory_displ_size(u32::from(offset != 0));
                all.push(i);
            }
            i.set_memory_displacement64(0);
            i.set_memory_displ_size(1);
            all.push(i);
        }
    }
    all
}

#[test]
fn forms_encode_and_decode() {
    for (opcode, row, form, is_512) in forms().filter(|form| form.1.shape.operands > 0) {
        let named = Named::of(form.code);
        if named.operands[0].starts_with("rel32") {
            continue;
        }
        let memory = named.memory().filter(|_| row.memory != Memory::Registers);
        let always = |at: usize| register(&named.operands[at], 0).is_none();
        for in_memory in [false, true] {
            if in_memory && memory.is_none() || !in_memory && memory.is_some_and(|(at, _)| always(at)) {
                continue;
            }
            let mut i = Instruction::default();
            i.set_code(form.code);
            for (n, word) in named.operands.iter().enumerate() {
                let at = n as u32;
                match row.shape.number {
                    Number::Byte if n + 1 == named.operands.len() => i.set_op_kind(at, OpKind::Immediate8),
                    Number::Signed32 if n + 1 == named.operands.len() => i.set_op_kind(at, OpKind::Immediate32to64),
                    Number::Bits32 if n + 1 == named.operands.len() => i.set_op_kind(at, OpKind::Immediate32),
                    Number::Bits64 if n + 1 == named.operands.len() => i.set_op_kind(at, OpKind::Immediate64),
                    _ if in_memory && memory.is_some_and(|(place, _)| place == n) => {
                        i.set_op_kind(at, OpKind::Memory);
                        i.set_memory_base(Register::RSI);
                        i.set_is_broadcast(is_512 && matches!(row.memory, Memory::Each(_)));
                    }
                    _ => {
                        i.set_op_kind(at, OpKind::Register);
                        i.set_op_register(at, register(word, at).unwrap_or_else(|| panic!("{word} of {opcode:?}")));
                    }
                }
            }
            if is_512 && matches!(row.masking, Masking::Merges(_) | Masking::Picks | Masking::Holds) {
                i.set_op_mask(Register::K5);
            }
            let bytes = encoded(&i);
            for i in with_other_operands(i, &named, in_memory) {
                assert_eq!(own(&form, &i).0, encoded(&i), "{opcode:?}: {i:?}");
            }
            if in_memory {
                // Memory behind the code, here at the end of the instruction.
                i.set_memory_base(Register::RIP);
                i.set_memory_displ_size(8);
                let (bytes, place) = own(&form, &i);
                i.set_memory_displacement64(bytes.len() as u64);
                assert_eq!(bytes, encoded(&i), "{opcode:?}");
                let place = place.expect("a distance");
                assert_eq!(bytes[place..place + 4], [0; 4], "{opcode:?}");
            }
            let decoded = Decoder::new(64, &bytes, DecoderOptions::NONE).decode();
            assert_eq!((decoded.code(), decoded.op_count()), (form.code, row.shape.operands as u32), "{opcode:?}");
            if let (true, Memory::Each(each)) = (in_memory, row.memory) {
                let read = decoded.memory_size().size() as u64;
                assert_eq!(read, if is_512 { each } else { 32 }, "{opcode:?}");
            }
        }
    }
}
