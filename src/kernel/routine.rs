//! A nest's code that is called with slices: the checks stand in for those of a kernel.

use super::{FEW, is_default_environment, scratch};
use crate::error::CallError;
use crate::link::Code;
use crate::target::Target;
use cranefold_ir::{BufferRole, Nest};

/// The code of a nest.
#[derive(Debug)]
pub(crate) struct Routine {
    code: Code,
    /// Of each buffer.
    takes: Vec<Takes>,
    target: Target,
}

/// What a routine takes for a buffer.
#[derive(Debug)]
struct Takes {
    writes: bool,
    bytes: usize,
}

/// A buffer of a call.
#[derive(Debug)]
pub(crate) enum Memory<'a> {
    Read(&'a [u8]),
    Write(&'a mut [u8]),
}

impl Routine {
    /// Code that was made of this nest.
    pub fn new(nest: &Nest, code: Code, target: &Target) -> Routine {
        let takes = nest.buffers.iter().map(|b| Takes {
            writes: b.role != BufferRole::In,
            bytes: usize::try_from(b.len.saturating_mul(b.dtype.bytes())).unwrap_or(usize::MAX),
        });
        Routine { code, takes: takes.collect(), target: target.clone() }
    }

    /// Runs the code on a buffer for each of the nest's, each as long as that or longer.
    ///
    /// # Errors
    /// [`CallError::Foreign`] if the code is for another machine, [`CallError::Scratch`] if there is no memory to work in:
    /// nothing is written then.
    ///
    /// # Panics
    /// If there is another number of buffers, one is shorter, or one that is written may only be read: a bug of ours.
    pub fn run<'a>(&self, buffers: impl IntoIterator<Item = Memory<'a>>) -> Result<(), CallError> {
        let entry = self.code.entry().ok_or_else(|| CallError::Foreign { target: self.target.to_string() })?;
        let mut own = scratch(self.code.scratch_bytes())?;
        let mut takes = self.takes.iter();
        let mut list = Vec::with_capacity(FEW.max(self.takes.len() + 1));
        for buffer in buffers {
            let takes = takes.next().expect("as many buffers as the nest has");
            let (start, bytes, may_write) = match buffer {
                Memory::Read(bytes) => (bytes.as_ptr().cast_mut(), bytes.len(), false),
                Memory::Write(bytes) => (bytes.as_mut_ptr(), bytes.len(), true),
            };
            let fits = bytes >= takes.bytes && (may_write || !takes.writes || takes.bytes == 0);
            assert!(fits, "{bytes} bytes for buffer {}, which takes {takes:?}", list.len());
            list.push(start);
        }
        assert!(takes.next().is_none(), "as many buffers as the nest has");
        list.push(own.as_mut_ptr().cast());
        debug_assert!(is_default_environment(), "the floating-point environment is not the default one");
        // SAFETY: the code was made of the nest on this machine. For each buffer of it there is a pointer to as many bytes
        // or more, borrowed as long as this call runs: those that are written by this call alone. The last goes to as much
        // scratch memory as the code takes, which nothing else knows.
        unsafe { entry(list.as_ptr()) };
        Ok(())
    }
}
