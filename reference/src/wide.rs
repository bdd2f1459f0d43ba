//! 256-bit integers, with the operations that the reference needs.

use std::cmp::Ordering;

/// An unsigned integer below 2^256.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct U256 {
    // The order of the fields makes the derived comparison numeric.
    high: u128,
    low: u128,
}

impl U256 {
    /// `high * 2^128 + low`.
    pub const fn new(high: u128, low: u128) -> U256 {
        U256 { high, low }
    }

    /// The upper 128 bits.
    pub const fn high(self) -> u128 {
        self.high
    }

    /// The lower 128 bits.
    pub const fn low(self) -> u128 {
        self.low
    }

    /// The full product.
    pub fn product(a: u128, b: u128) -> U256 {
        let half = |x: u128| (x >> 64, x & u128::from(u64::MAX));
        let ((a1, a0), (b1, b0)) = (half(a), half(b));
        // None of these sums of a product and two 64-bit numbers exceeds 128 bits.
        let low = a0 * b0;
        let mid = a1 * b0 + (low >> 64);
        let (mid1, mid0) = half(mid);
        let cross = a0 * b1 + mid0;
        U256 { high: a1 * b1 + mid1 + (cross >> 64), low: (cross << 64) | (low & u128::from(u64::MAX)) }
    }

    /// The sum.
    ///
    /// # Panics
    /// If it exceeds 256 bits.
    pub fn plus(self, other: U256) -> U256 {
        let (low, carry) = self.low.overflowing_add(other.low);
        let high = self.high.checked_add(other.high).and_then(|h| h.checked_add(u128::from(carry)));
        U256 { high: high.expect("a sum below 2^256"), low }
    }

    /// The difference.
    ///
    /// # Panics
    /// If `other` is greater.
    pub fn minus(self, other: U256) -> U256 {
        assert!(self >= other, "a difference that is not negative");
        let (low, borrow) = self.low.overflowing_sub(other.low);
        U256 { high: self.high - other.high - u128::from(borrow), low }
    }

    /// Shifted left; bits that leave are lost, as all do from 256 on.
    pub fn shifted_left(self, by: u32) -> U256 {
        match by {
            0 => self,
            1..128 => U256 { high: (self.high << by) | (self.low >> (128 - by)), low: self.low << by },
            128..256 => U256 { high: self.low << (by - 128), low: 0 },
            _ => U256::default(),
        }
    }

    /// Shifted right; bits that leave are lost, as all do from 256 on.
    pub fn shifted_right(self, by: u32) -> U256 {
        match by {
            0 => self,
            1..128 => U256 { high: self.high >> by, low: (self.low >> by) | (self.high << (128 - by)) },
            128..256 => U256 { high: 0, low: self.high >> (by - 128) },
            _ => U256::default(),
        }
    }

    /// The number of leading zero bits.
    pub fn leading_zeros(self) -> u32 {
        if self.high != 0 { self.high.leading_zeros() } else { 128 + self.low.leading_zeros() }
    }

    /// Quotient and remainder, bit by bit.
    ///
    /// # Panics
    /// If `divisor` is 0 or at least 2^127.
    pub fn divided_by(self, divisor: u128) -> (U256, u128) {
        assert!(divisor != 0 && divisor < 1 << 127, "a divisor in range");
        let (mut quotient, mut remainder) = (U256::default(), 0u128);
        for bit in (0..256).rev() {
            remainder = (remainder << 1) | (self.shifted_right(bit).low & 1);
            quotient = quotient.shifted_left(1);
            if remainder >= divisor {
                remainder -= divisor;
                quotient.low |= 1;
            }
        }
        (quotient, remainder)
    }

    /// The floor of the square root, bit by bit.
    pub fn square_root(self) -> u128 {
        let mut root = 0u128;
        for bit in (0..128).rev() {
            let tried = root | (1 << bit);
            if U256::product(tried, tried) <= self {
                root = tried;
            }
        }
        root
    }
}

/// An integer of magnitude below 2^256. Zero is not negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Integer {
    negative: bool,
    magnitude: U256,
}

impl Integer {
    /// The integer of this magnitude, with this sign unless it is zero.
    pub fn new(negative: bool, magnitude: U256) -> Integer {
        Integer { negative: negative && magnitude != U256::default(), magnitude }
    }

    /// Returns true below zero.
    pub const fn is_negative(self) -> bool {
        self.negative
    }

    /// The absolute value.
    pub const fn magnitude(self) -> U256 {
        self.magnitude
    }

    /// The sum.
    pub fn plus(self, other: Integer) -> Integer {
        let (a, b) = (self.magnitude, other.magnitude);
        if self.negative == other.negative {
            Integer::new(self.negative, a.plus(b))
        } else if a >= b {
            Integer::new(self.negative, a.minus(b))
        } else {
            Integer::new(other.negative, b.minus(a))
        }
    }

    /// The quotient by a positive count, towards zero or to nearest, ties to even.
    pub fn divided_by(self, count: u64, half_even: bool) -> Integer {
        let (mut quotient, rest) = self.magnitude.divided_by(u128::from(count));
        let up = match (rest * 2).cmp(&u128::from(count)) {
            Ordering::Less => false,
            Ordering::Equal => quotient.low() & 1 == 1,
            Ordering::Greater => true,
        };
        if half_even && up {
            quotient = quotient.plus(U256::new(0, 1));
        }
        Integer::new(self.negative, quotient)
    }

    /// The value modulo 2^128, in two's complement.
    pub fn wrapped(self) -> i128 {
        let low = self.magnitude.low() as i128;
        if self.negative { low.wrapping_neg() } else { low }
    }

    /// The nearest value between the two, which fit 65 bits.
    pub fn clamped(self, low: i128, high: i128) -> i128 {
        let limit = 1u128 << 100;
        let magnitude = if self.magnitude >= U256::new(0, limit) { limit } else { self.magnitude.low() } as i128;
        (if self.negative { -magnitude } else { magnitude }).clamp(low, high)
    }
}

impl From<i128> for Integer {
    fn from(value: i128) -> Integer {
        Integer::new(value < 0, U256::new(0, value.unsigned_abs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BIG: U256 = U256::new(0x1234_5678_9abc_def0_1234, u128::MAX - 12345);

    #[test]
    fn products_divide_back() {
        for (a, b) in [(u128::MAX, 3u128), (u128::MAX, (1 << 127) - 1), (0, 7), (1 << 64, 1 << 64)] {
            let (q, r) = U256::product(a, b).plus(U256::new(0, 1)).divided_by(b);
            assert_eq!((q, r), (U256::new(0, a), 1), "{a} {b}");
        }
        let (q, r) = BIG.divided_by(1_000_003);
        let back = U256::product(q.low(), 1_000_003).plus(U256::product(q.high(), 1_000_003).shifted_left(128));
        assert_eq!(back.plus(U256::new(0, r)), BIG);
    }

    #[test]
    fn roots_are_floors() {
        for x in [U256::default(), U256::new(0, 35), U256::new(0, 36), BIG, U256::new(u128::MAX, u128::MAX)] {
            let root = x.square_root();
            assert!(U256::product(root, root) <= x);
            assert!(root == u128::MAX || U256::product(root + 1, root + 1) > x);
        }
    }

    #[test]
    fn shifts_and_differences() {
        assert_eq!(BIG.shifted_left(40).shifted_right(40), BIG);
        assert_eq!(BIG.shifted_left(140).shifted_right(140).low(), BIG.low() & ((1 << 116) - 1));
        assert_eq!(BIG.plus(BIG).minus(BIG), BIG);
        assert_eq!(U256::new(1, 0).leading_zeros(), 127);
    }

    #[test]
    fn integers_round_and_wrap() {
        let int = |v: i128| Integer::from(v);
        assert_eq!(int(-7).divided_by(2, false), int(-3));
        assert_eq!(int(-7).divided_by(2, true), int(-4));
        assert_eq!(int(-5).divided_by(2, true), int(-2));
        assert_eq!(int(5).plus(int(-9)), int(-4));
        assert_eq!(int(-1).wrapped(), -1);
        assert_eq!(int(i128::MIN).clamped(-128, 127), -128);
        assert_eq!(Integer::new(false, BIG).clamped(0, 255), 255);
    }
}
