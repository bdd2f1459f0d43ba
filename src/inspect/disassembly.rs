//! Machine code of x86-64 as text, of both generators alike.

use crate::codegen::marks::Mark;
use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};
use std::fmt::Write;

/// The code of a function and its marks. Places are offsets in bytes, ascending.
#[derive(Clone, Copy, Debug)]
pub struct MarkedCode<'a> {
    /// Code, then constants.
    pub bytes: &'a [u8],
    /// Bytes of code.
    pub code_bytes: usize,
    /// The name of each loop.
    pub loops: &'a [&'a str],
    /// The places where loops begin and end.
    pub marks: &'a [(usize, Mark)],
    /// The places of addresses that the loader fills in, with the names they refer to.
    pub addresses: &'a [(usize, String)],
}

/// A line for each instruction, with its offset in bytes, between the names of loops; then the constants:
///
/// ```text
///      0:  mov rax,[rdi]
///   ; for i0 in 0..4 parallel
///      3:    mov rdx,0  ; wide 0
///      d:    call rdx
/// ```
pub fn disassembly(part: &MarkedCode) -> String {
    let mut text = Text::default();
    let mut formatter = IntelFormatter::new();
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_rip_relative_addresses(true);
    options.set_branch_leading_zeros(false);
    options.set_show_branch_size(false);
    let mut decoder = Decoder::new(64, &part.bytes[..part.code_bytes], DecoderOptions::NONE);
    let mut marks = part.marks.iter();
    let mut addresses = part.addresses.iter().peekable();
    while decoder.can_decode() {
        let instruction = decoder.decode();
        let (start, end) = (instruction.ip() as usize, instruction.next_ip() as usize);
        while let Some((_, mark)) = marks.as_slice().first().filter(|(at, _)| *at <= start) {
            text.mark(*mark, part.loops);
            marks.next();
        }
        let mut code = String::new();
        formatter.format(&instruction, &mut code);
        while let Some((_, name)) = addresses.next_if(|(at, _)| *at < end) {
            code += &format!("  ; {name}");
        }
        text.code(start, &code);
    }
    marks.for_each(|(_, mark)| text.mark(*mark, part.loops));
    let constants = part.bytes.len() - part.code_bytes;
    if constants > 0 {
        text.code(part.code_bytes, &format!("; {constants} bytes of constants"));
    }
    text.lines
}

/// Lines of text, and the loops that are open.
#[derive(Default)]
struct Text<'a> {
    lines: String,
    open: Vec<&'a str>,
}

impl<'a> Text<'a> {
    fn mark(&mut self, mark: Mark, loops: &[&'a str]) {
        let (indent, line) = match mark {
            Mark::Enter(number) => {
                let name = loops[number as usize];
                self.open.push(name);
                (self.open.len(), name.to_string())
            }
            Mark::Leave => {
                let name = self.open.pop().expect("an open loop");
                (self.open.len() + 1, format!("end of {name}"))
            }
        };
        writeln!(self.lines, "{}; {line}", "  ".repeat(indent)).expect("a string takes all text");
    }

    fn code(&mut self, at: usize, code: &str) {
        let indent = "  ".repeat(self.open.len());
        writeln!(self.lines, "{at:6x}:  {indent}{code}").expect("a string takes all text");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::marks::marks;

    #[test]
    fn instructions_have_offsets_loops_and_names_of_addresses() {
        // mov rax, imm64; add eax, 1; jne -5; ret; a constant.
        let bytes = [&[0x48, 0xb8][..], &[0; 8], &[0x83, 0xc0, 1, 0x75, 0xfb, 0xc3, 7, 7]].concat();
        let around = [None, Some(0)];
        let pieces = [(10, None), (13, Some(1)), (15, Some(0)), (16, None)];
        let marks = marks(pieces.into_iter(), &around);
        let addresses = [(2, "wide 0".to_string())];
        let part =
            MarkedCode { bytes: &bytes, code_bytes: 16, loops: &["a", "b"], marks: &marks, addresses: &addresses };
        let lines = [
            "     0:  mov rax,0  ; wide 0",
            "  ; a",
            "    ; b",
            "     a:      add eax,1",
            "    ; end of b",
            "     d:    jne 0xa",
            "  ; end of a",
            "     f:  ret",
            "    10:  ; 2 bytes of constants",
            "",
        ];
        assert_eq!(disassembly(&part), lines.join("\n"));
    }
}
