//! Memory for arrays.

use crate::failure::Failure;
use memmap2::MmapMut;

/// Bytes, zeros at first, that start at a page or a little after, on huge pages where the system gives them, so that
/// what is timed on it can be compared with the peers, whose arrays are such.
#[derive(Debug)]
pub struct Buffer {
    memory: MmapMut,
    /// Where in the memory the first byte is.
    start: usize,
    len: usize,
}

impl Buffer {
    /// So many zero bytes.
    ///
    /// # Errors
    /// [`Failure::Memory`] if the system does not give them.
    pub fn zeroed(bytes: u64) -> Result<Buffer, Failure> {
        let refused = |error| Failure::Memory { bytes, error };
        let len = usize::try_from(bytes).map_err(|_| refused(std::io::ErrorKind::OutOfMemory.into()))?;
        let memory = MmapMut::map_anon(len.max(1)).map_err(refused)?;
        // It is only advice: a system that does not take it makes runs slower, not wrong.
        #[cfg(target_os = "linux")]
        let _ = memory.advise(memmap2::Advice::HugePage);
        Ok(Buffer { memory, start: 0, len })
    }

    /// The same bytes, so many after the start of a page.
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
