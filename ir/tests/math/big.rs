//! Integers of 256 bits, written to be obviously right, and interesting values for limbs.

use std::cmp::Ordering;

/// Two's complement, low limb first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Big(pub [u64; 4]);

impl Big {
    pub const ZERO: Big = Big([0; 4]);

    /// Limbs extended by their sign or by zeros.
    pub fn of(limbs: &[u64], signed: bool) -> Big {
        let negative = signed && limbs[limbs.len() - 1] >> 63 == 1;
        let mut all = [if negative { u64::MAX } else { 0 }; 4];
        all[..limbs.len()].copy_from_slice(limbs);
        Big(all)
    }

    pub fn int(value: i128) -> Big {
        Big::of(&[value as u64, (value >> 64) as u64], true)
    }

    pub fn add(self, other: Big) -> Big {
        let mut carry = 0u128;
        Big(std::array::from_fn(|i| {
            let sum = u128::from(self.0[i]) + u128::from(other.0[i]) + carry;
            carry = sum >> 64;
            sum as u64
        }))
    }

    pub fn neg(self) -> Big {
        Big(self.0.map(|l| !l)).add(Big::int(1))
    }

    pub fn sub(self, other: Big) -> Big {
        self.add(other.neg())
    }

    pub fn mul(self, other: Big) -> Big {
        let mut sum = [0u64; 4];
        for i in 0..4 {
            let mut carry = 0u128;
            for j in 0..4 - i {
                let at = u128::from(sum[i + j]) + u128::from(self.0[i]) * u128::from(other.0[j]) + carry;
                sum[i + j] = at as u64;
                carry = at >> 64;
            }
        }
        Big(sum)
    }

    pub fn is_negative(self) -> bool {
        self.0[3] >> 63 == 1
    }

    pub fn abs(self) -> Big {
        if self.is_negative() { self.neg() } else { self }
    }

    /// Order of signed numbers.
    pub fn cmp(self, other: Big) -> Ordering {
        let key = |b: Big| [(b.0[3] ^ 1 << 63), b.0[2], b.0[1], b.0[0]];
        key(self).cmp(&key(other))
    }

    pub fn bit(self, i: usize) -> bool {
        self.0[i / 64] >> (i % 64) & 1 == 1
    }

    /// Quotient and remainder of a number that is not negative, one bit at a time.
    pub fn div_rem(self, n: u64) -> (Big, Big) {
        let n = Big::of(&[n], false);
        let (mut q, mut r) = (Big::ZERO, Big::ZERO);
        for i in (0..256).rev() {
            r = r.add(r).add(Big::int(i128::from(self.bit(i))));
            if r.cmp(n) != Ordering::Less {
                r = r.sub(n);
                q.0[i / 64] |= 1 << (i % 64);
            }
        }
        (q, r)
    }

    /// The nearest f64, ties to even.
    pub fn to_f64(self) -> f64 {
        if self.is_negative() {
            return -self.neg().to_f64();
        }
        let Some(top) = (0..256).rev().find(|&i| self.bit(i)) else { return 0.0 };
        let significand = (0..53).fold(0u64, |s, i| s << 1 | u64::from(i <= top && self.bit(top - i)));
        let half = top >= 53 && self.bit(top - 53);
        let beyond = top > 53 && (0..top - 53).any(|i| self.bit(i));
        let rounded = significand + u64::from(half && (beyond || significand & 1 == 1));
        rounded as f64 * 2f64.powi(top as i32 - 52)
    }
}

/// Pseudo-random numbers.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed * 2 + 1)
    }

    pub fn bits(&mut self) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A limb that is often at or near a limit.
    pub fn limb(&mut self) -> u64 {
        const LIMITS: [u64; 12] = [
            0,
            0,
            1,
            2,
            u64::MAX,
            u64::MAX - 1,
            1 << 63,
            (1 << 63) - 1,
            1 << 32,
            (1 << 32) - 1,
            (1 << 32) + 1,
            1 << 53,
        ];
        let r = self.bits();
        match r % 4 {
            0 => LIMITS[(r >> 8) as usize % LIMITS.len()],
            1 => self.bits() >> (r >> 8 & 63),
            2 => !(self.bits() >> (r >> 8 & 63)),
            _ => self.bits(),
        }
    }

    pub fn limbs(&mut self, k: usize) -> Vec<u64> {
        (0..k).map(|_| self.limb()).collect()
    }
}
