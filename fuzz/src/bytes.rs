//! Numbers drawn from bytes.

/// Bytes from which numbers are drawn one after the other; once they are used up, zeros.
pub struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    /// All of these bytes.
    pub fn new(bytes: &'a [u8]) -> Bytes<'a> {
        Bytes(bytes)
    }

    fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or(0)
    }

    /// 64 bits, of eight bytes.
    pub fn bits(&mut self) -> u64 {
        u64::from_le_bytes([(); 8].map(|()| self.byte()))
    }

    /// A number below `n`, which is at most 256, of one byte.
    pub fn below(&mut self, n: u64) -> u64 {
        u64::from(self.byte()) % n
    }

    /// One of these, of which there are at most 256; of no bytes the first.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    /// True for every other byte.
    pub fn flag(&mut self) -> bool {
        self.one_in(2)
    }

    /// True for one of `n` bytes, and not of none.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == n - 1
    }
}
