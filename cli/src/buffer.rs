//! Memory for arrays.

use crate::failure::Failure;
use memmap2::MmapMut;

/// Zeroed bytes that start at a page or a little after, on huge pages if the system gives them. Times on such memory
/// compare with those of the peers, whose arrays lie in the same way.
#[derive(Debug)]
pub struct Buffer {
    memory: MmapMut,
    /// The place of the first byte in the memory.
    start: usize,
    len: usize,
}

impl Buffer {
    /// A buffer of `bytes` zero bytes.
    ///
    /// # Errors
    /// [`Failure::Memory`] if the system does not give them.
    pub fn zeroed(bytes: u64) -> Result<Buffer, Failure> {
        let refused = |error| Failure::Memory { bytes, error };
        let len = usize::try_from(bytes).map_err(|_| refused(std::io::ErrorKind::OutOfMemory.into()))?;
        let memory = MmapMut::map_anon(len.max(1)).map_err(refused)?;
        // A system may ignore the advice, which makes runs slower, not wrong.
        #[cfg(target_os = "linux")]
        let _ = memory.advise(memmap2::Advice::HugePage);
        Ok(Buffer { memory, start: 0, len })
    }

    /// A copy that begins `start` bytes after the start of a page.
    ///
    /// # Errors
    /// As [`zeroed`](Self::zeroed).
    pub fn moved(&self, start: u64) -> Result<Buffer, Failure> {
        let whole = Buffer::zeroed(start + self.len as u64)?;
        let mut moved = Buffer { start: start as usize, len: self.len, ..whole };
        moved.bytes_mut().copy_from_slice(self.bytes());
        Ok(moved)
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }

    /// The bytes.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }
}
