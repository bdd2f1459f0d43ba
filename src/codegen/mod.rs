//! Legal nest -> machine code, by two generators under one roof.
//!
//! | module | contents |
//! | --- | --- |
//! | [`storage`] | the place of each accumulator: registers, the frame, scratch memory |
//! | [`clif`] | legal nest -> Cranelift function, with vectors of 128 bits |
//! | [`x86`] | tile -> machine code of x86-64, with vectors of 256 or 512 bits |
//! | [`marks`] | the loop that each instruction belongs to, for the disassembly |

pub mod clif;
pub mod marks;
pub mod storage;
pub mod x86;
