//! The vectors that code is made of.

/// The sets of vector instructions that code is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Set {
    /// No vectors.
    Scalars,
    /// Cranelift's vectors, of 128 bits at most, on every target.
    Portable,
    /// 256 bits, on x86-64-v3.
    Avx2,
    /// 512 bits, with masks, on x86-64-v4.
    Avx512,
}

/// The vectors of a target or of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Vectors {
    /// Bits of a vector: 256 where x86-64 has AVX2, FMA, F16C and BMI1; 512 where it has AVX-512 F, BW, DQ and VL
    /// besides; else 128, made by Cranelift alone; 0 on RISC-V without its V extension.
    pub bits: u32,
    /// True if one instruction sums products of bytes at these bits (VNNI).
    pub dot: bool,
    /// True if one instruction permutes the bytes of a vector (VBMI).
    pub byte_permutes: bool,
    /// True for Intel's cores, which take longer than others for three things: a division of these many bits takes the time
    /// of twenty other operations, so that quotients by one number are made of products alone; a result that is rounded to a
    /// subnormal number takes 150 cycles, so that exponentials are masked where they are 0; and memory comes late, so that it
    /// is asked for near ahead wherever it is walked. No bit of a result depends on it.
    pub intel: bool,
}

impl Vectors {
    /// No vectors: code is scalar.
    pub const NONE: Vectors = Vectors { bits: 0, dot: false, byte_permutes: false, intel: false };

    /// The vectors of every target with vectors.
    pub const BASE: Vectors = Vectors { bits: 128, dot: false, byte_permutes: false, intel: false };

    /// The widest vectors of any target; nests may be made for them on any machine.
    pub const WIDEST: Vectors = Vectors { bits: 512, dot: true, byte_permutes: true, intel: false };

    /// The instruction set of these vectors. Other modules ask for it, or for what follows from it, and do not compare
    /// bits.
    pub(crate) fn set(self) -> Set {
        match self.bits {
            512.. => Set::Avx512,
            256.. => Set::Avx2,
            128.. => Set::Portable,
            _ => Set::Scalars,
        }
    }

    /// Returns true if a mask may leave lanes out of an instruction.
    pub(crate) fn has_masks(self) -> bool {
        self.set() == Set::Avx512
    }

    /// The elements of `bytes` bytes in a vector, if instructions join the end of one vector and the beginning of another:
    /// of groups of four bytes, and in AVX-512 of any.
    pub(crate) fn joined_lanes(self, bytes: u64) -> Option<u64> {
        let joins = match self.set() {
            Set::Avx512 => true,
            Set::Avx2 => bytes >= 4,
            Set::Scalars | Set::Portable => false,
        };
        joins.then(|| u64::from(self.bits / 8) / bytes)
    }

    /// Returns the number of vector registers; for targets of Cranelift's vectors, a lower bound.
    pub(crate) fn registers(self) -> u64 {
        match self.set() {
            Set::Avx512 => 32,
            Set::Scalars | Set::Portable | Set::Avx2 => 16,
        }
    }

    /// The registers that states of rows may take, three quarters: the others are for elements and constants.
    pub(crate) fn state_registers(self) -> u64 {
        self.registers() * 3 / 4
    }

    /// Returns true if the generator of wide vectors makes them, in wide functions.
    pub(crate) fn are_wide(self) -> bool {
        matches!(self.set(), Set::Avx2 | Set::Avx512)
    }

    /// The widest of these vectors that a schedule of `width` bits fills. Narrower vectors than these are taken to have
    /// no `dot`, as it is not known, no permutations of bytes, and no slow division.
    ///
    /// ```
    /// use cranefold::Vectors;
    ///
    /// assert_eq!(Vectors::WIDEST.at_most(1024), Vectors::WIDEST);
    /// let narrower = Vectors { bits: 256, ..Vectors::BASE };
    /// assert_eq!(Vectors::WIDEST.at_most(256), narrower);
    /// assert_eq!(Vectors::WIDEST.at_most(64), Vectors::BASE);
    /// assert_eq!(Vectors::NONE.at_most(512), Vectors::NONE);
    /// ```
    pub fn at_most(self, width: u32) -> Vectors {
        match [512, 256].into_iter().find(|&bits| width >= bits && self.bits >= bits) {
            Some(bits) if bits == self.bits => self,
            Some(bits) => Vectors { bits, ..Vectors::BASE },
            None if self == Vectors::NONE => Vectors::NONE,
            None => Vectors::BASE,
        }
    }
}
