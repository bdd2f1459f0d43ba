//! The loop of each instruction.
//!
//! Cranelift carries a number, the source location, from each instruction to its machine code. Here it is 0 outside all
//! loops, else the loop's number plus one. It changes no code.

use super::Generator;
use cranelift_codegen::ir::{Function, SourceLoc};

/// A loop of the function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopName {
    /// The name.
    pub name: String,
    /// The number of the loop around it.
    pub around: Option<u32>,
}

/// The loop of a source location; `None` outside all loops.
pub fn loop_at(location: SourceLoc) -> Option<u32> {
    // Code that Cranelift adds, such as the prologue, has no location.
    if location.is_default() { None } else { location.bits().checked_sub(1) }
}

fn location(of: Option<u32>) -> SourceLoc {
    SourceLoc::new(of.map_or(0, |number| number + 1))
}

/// Removes the locations, which would show in the function's text.
pub fn forget(function: &mut Function) {
    function.srclocs.clear();
}

impl Generator<'_> {
    /// Gives the next instructions to a new loop; returns the loop around it.
    pub(super) fn enter_place(&mut self, name: String) -> Option<u32> {
        let around = loop_at(self.builder.srcloc());
        let number = self.loops.len() as u32;
        self.loops.push(LoopName { name, around });
        self.builder.set_srcloc(location(Some(number)));
        around
    }

    /// Gives the next instructions to the loop around again.
    pub(super) fn leave_place(&mut self, around: Option<u32>) {
        self.builder.set_srcloc(location(around));
    }
}
