//! The vectors that code is made of.

/// The widest vectors of a target, or those a kernel is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Vectors {
    /// Bits of a vector: 128 on every target but RISC-V without its V extension, by Cranelift alone; 256 where x86-64
    /// has AVX2, FMA, F16C and BMI1; 512 where it has AVX-512 F, BW, DQ and VL besides.
    pub bits: u32,
    /// Whether products of bytes are summed by one instruction at these bits (VNNI).
    pub dot: bool,
}

impl Vectors {
    /// None: all is done by scalars.
    pub const NONE: Vectors = Vectors { bits: 0, dot: false };

    /// What every target with vectors has.
    pub const BASE: Vectors = Vectors { bits: 128, dot: false };

    /// The widest there are: nests may be made for them on any machine.
    pub const WIDEST: Vectors = Vectors { bits: 512, dot: true };

    /// The widest of these that a schedule of `width` bits fills. Of narrower ones than these it is not known
    /// whether they have `dot`, and they are taken to have none.
    ///
    /// ```
    /// use cranefold::Vectors;
    ///
    /// assert_eq!(Vectors::WIDEST.at_most(1024), Vectors { bits: 512, dot: true });
    /// assert_eq!(Vectors::WIDEST.at_most(256), Vectors { bits: 256, dot: false });
    /// assert_eq!(Vectors::WIDEST.at_most(64), Vectors::BASE);
    /// assert_eq!(Vectors::NONE.at_most(512), Vectors::NONE);
    /// ```
    pub fn at_most(self, width: u32) -> Vectors {
        match [512, 256].into_iter().find(|&bits| width >= bits && self.bits >= bits) {
            Some(bits) => Vectors { bits, dot: self.dot && bits == self.bits },
            None if self == Vectors::NONE => Vectors::NONE,
            None => Vectors::BASE,
        }
    }
}
