//! Which loop each instruction is of.
//!
//! Cranelift carries a number from each instruction to the machine code made of it, the source location: here 0
//! outside of all loops, else one more than the loop's. It changes no code.

use super::Generator;
use cranelift_codegen::ir::{Function, SourceLoc};

/// A loop of the function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopName {
    /// The name.
    pub name: String,
    /// The number of the one around it.
    pub around: Option<u32>,
}

/// The loop of a source location: nothing outside of all.
pub fn loop_at(location: SourceLoc) -> Option<u32> {
    // What Cranelift adds, such as the prologue, has no location.
    if location.is_default() { None } else { location.bits().checked_sub(1) }
}

fn location(of: Option<u32>) -> SourceLoc {
    SourceLoc::new(of.map_or(0, |number| number + 1))
}

/// Forgets the locations, which would stand in the function's text.
pub fn forget(function: &mut Function) {
    function.srclocs.clear();
}

impl Generator<'_> {
    /// Instructions are of a loop from now on; gives the one around it.
    pub(super) fn enter_place(&mut self, name: String) -> Option<u32> {
        let around = loop_at(self.builder.srcloc());
        let number = self.loops.len() as u32;
        self.loops.push(LoopName { name, around });
        self.builder.set_srcloc(location(Some(number)));
        around
    }

    /// Instructions are of the loop around again.
    pub(super) fn leave_place(&mut self, around: Option<u32>) {
        self.builder.set_srcloc(location(around));
    }
}
