//! Calls of one input and one output: where there is one part and no scratch memory, the code is entered at once.

use super::{Input, Output, is_default_environment};
use crate::kernel::code::Compiled;
use crate::link::Entry;
use crate::request::{Expected, Request};

/// The function that a call enters, and what its buffers have to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Direct {
    entry: Entry,
    input: Expected,
    output: Expected,
}

impl Direct {
    /// That of a request, if its calls are so.
    pub fn of(request: &Request, compiled: &Compiled) -> Option<Direct> {
        let ([input], [output]) = request.expected() else { return None };
        Some(Direct { entry: compiled.direct()?, input: *input, output: *output })
    }

    /// Runs the code, if the buffers are those of the spec.
    #[inline]
    pub fn run(&self, input: &Input<'_>, output: &mut Output<'_>) -> bool {
        if !self.input.is(input.dtype, input.bytes) || !self.output.is(output.dtype, output.bytes) {
            return false;
        }
        debug_assert!(is_default_environment(), "the floating-point environment is not the default one");
        let buffers = [input.start.cast_mut(), output.start];
        // SAFETY: one pointer for each buffer, to as many elements of its type as the spec says (checked above); a shared
        // borrow of the input and a unique one of the output. The code was made for this problem on this machine, and reads
        // no more pointers.
        unsafe { (self.entry)(buffers.as_ptr()) };
        true
    }
}
