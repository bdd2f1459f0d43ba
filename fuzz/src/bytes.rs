//! Numbers drawn from bytes.

/// Bytes from which numbers are drawn one after the other; zeros follow the last byte.
pub struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    /// The source of these bytes.
    pub fn new(bytes: &'a [u8]) -> Bytes<'a> {
        Bytes(bytes)
    }

    fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or(0)
    }

    /// A number of 64 bits, drawn from eight bytes.
    pub fn bits(&mut self) -> u64 {
        u64::from_le_bytes([(); 8].map(|()| self.byte()))
    }

    /// A number below `n`, which is at most 256, drawn from one byte.
    pub fn below(&mut self, n: u64) -> u64 {
        u64::from(self.byte()) % n
    }

    /// One of at most 256 values; the first one if no bytes are left.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    /// A truth value drawn from one byte; false if none are left.
    pub fn flag(&mut self) -> bool {
        self.one_in(2)
    }

    /// True for one byte value in `n`; false if no bytes are left.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == n - 1
    }
}
