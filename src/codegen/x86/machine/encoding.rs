//! The encodings of machine instructions, from the notation of the processor's manuals.
//!
//! An encoding is a row of the table in `encoding/rows.rs`:
//!
//! ```text
//! EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8 = "EVEX.512.66.0F.W0 72 /6 ib", "VMI", 64, 4;
//! ```
//!
//! The opcode stands in the manuals' notation. A letter for each operand, in order, names the field that holds it:
//!
//! | letter | field |
//! | --- | --- |
//! | `R` | `reg` of the ModRM byte |
//! | `V` | `vvvv` of the prefix |
//! | `M` | `rm` of the ModRM byte, a register or memory |
//! | `O` | the last three bits of the opcode |
//! | `S` | the upper half of a byte behind the instruction |
//! | `I` | a number behind the instruction |
//! | `D` | the distance to the target of a jump |
//!
//! The first number of an EVEX instruction is the bytes of its operand in memory, of which an offset of one byte counts
//! multiples; the second one the bytes of an element that it may broadcast.

mod rows;

pub use rows::encoding;

/// The kind of the prefix of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// REX, or none.
    Legacy,
    /// VEX, of two or three bytes.
    Vex,
    /// EVEX, of four bytes.
    Evex,
}

/// The encoding of an instruction.
#[derive(Clone, Copy, Debug)]
pub struct Encoding {
    pub prefix: Prefix,
    /// The opcode map: 0, then those of the escape bytes 0F, 0F 38 and 0F 3A.
    pub map: u8,
    /// The number of the mandatory prefix in VEX: none, 66, F3 and F2.
    pub mandatory: u8,
    /// The bit W: operands of 64 bits.
    pub w: bool,
    /// The vector length: 128, 256 or 512 bits.
    pub length: u8,
    pub opcode: u8,
    /// The byte behind the opcode that is no ModRM byte of operands.
    pub second: Option<u8>,
    /// The part of the opcode in `reg` of the ModRM byte.
    pub digit: u8,
    /// The bytes of the number behind the instruction.
    pub number_bytes: u8,
    /// The letter of each operand.
    pub operands: &'static [u8],
    /// The bytes of an EVEX operand in memory.
    pub memory_bytes: u8,
    /// The bytes of an element that is broadcast from memory.
    pub element_bytes: u8,
}

impl Encoding {
    /// The encoding in the manuals' notation.
    const fn of(notation: &'static str, operands: &'static str, memory_bytes: u8, element_bytes: u8) -> Encoding {
        let mut encoding = Encoding {
            prefix: Prefix::Legacy,
            map: 0,
            mandatory: 0,
            w: false,
            length: 0,
            opcode: 0,
            second: None,
            digit: 0,
            number_bytes: 0,
            operands: operands.as_bytes(),
            memory_bytes,
            element_bytes,
        };
        let text = notation.as_bytes();
        let (mut at, mut has_opcode) = (0, false);
        while at < text.len() {
            let end = end_of_word(text, at);
            let (_, rest) = text.split_at(at);
            let (word, _) = rest.split_at(end - at);
            (encoding, has_opcode) = encoding.with(word, has_opcode);
            at = end + 1;
        }
        encoding
    }

    /// The encoding with a word of the notation; and true once the opcode is known.
    const fn with(self, word: &[u8], has_opcode: bool) -> (Encoding, bool) {
        let more = match word {
            b"VEX" => Encoding { prefix: Prefix::Vex, ..self },
            b"EVEX" => Encoding { prefix: Prefix::Evex, ..self },
            b"128" | b"L0" | b"W0" | b"WIG" => self,
            b"256" | b"L1" => Encoding { length: 1, ..self },
            b"512" => Encoding { length: 2, ..self },
            b"W1" | b"o64" => Encoding { w: true, ..self },
            b"0F" if !has_opcode && self.map == 0 => Encoding { map: 1, ..self },
            b"0F38" => Encoding { map: 2, ..self },
            b"0F3A" => Encoding { map: 3, ..self },
            b"66" if !has_opcode && self.map == 0 => Encoding { mandatory: 1, ..self },
            b"F3" if !has_opcode && self.map == 0 => Encoding { mandatory: 2, ..self },
            b"F2" if !has_opcode && self.map == 0 => Encoding { mandatory: 3, ..self },
            b"ib" | b"/is4" => Encoding { number_bytes: 1, ..self },
            b"id" | b"cd" => Encoding { number_bytes: 4, ..self },
            b"io" => Encoding { number_bytes: 8, ..self },
            b"/r" | b"rd" | b"ro" => self,
            [b'/', digit] => Encoding { digit: *digit - b'0', ..self },
            [high, low] => {
                let byte = hex(*high) << 4 | hex(*low);
                match has_opcode {
                    true => return (Encoding { second: Some(byte), ..self }, true),
                    false => return (Encoding { opcode: byte, ..self }, true),
                }
            }
            _ => panic!("a word of the manuals' notation"),
        };
        (more, has_opcode)
    }
}

/// The end of the word that begins at a place.
const fn end_of_word(text: &[u8], mut at: usize) -> usize {
    while at < text.len() && !matches!(text[at], b' ' | b'.' | b'+') {
        at += 1;
    }
    at
}

const fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'A'..=b'F' => digit - b'A' + 10,
        _ => panic!("a hexadecimal digit"),
    }
}
