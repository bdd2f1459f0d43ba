//! Exact wide integers.
//!
//! An integer of 64 k bits is a list of k expressions of type `U64`, the low one first; signed
//! integers are in two's complement. The function's name or its argument `signed` tells
//! the two apart. Sums, differences and products are modulo 2^(64 k), as the element operations
//! are modulo 2^bits. Everything is exact and there is no branch, so these serve as lift,
//! combine and finish of totals that 64 bits do not hold.
//!
//! The functions write into a definition being built and bind values that they use more than once; they
//! take expressions of any size.

mod convert;
mod divide;
mod product;
mod root;

pub use convert::{clamp, to_f64};
pub use divide::{divide, divide_half_even, divide_unsigned};
pub use product::{multiply, saturating_clamp, saturating_of, saturating_product, square};
pub use root::{root_floor, root_nearest};

use crate::DType::{I64, U64};
use crate::{Expr, Lets, Scalar};

/// An integer of any type as k limbs: extended by its sign if the type is signed, else by zeros.
///
/// # Panics
/// If `x` is no integer or k is 0.
pub fn widen(lets: &mut Lets, x: &Expr, k: usize) -> Vec<Expr> {
    assert!(x.dtype().is_int() && k > 0, "{k} limbs of {}", x.dtype());
    let signed = x.dtype().is_signed();
    let low = if signed { x.clone().cast(I64).bits(U64) } else { x.clone().cast(U64) };
    let low = held(lets, &low);
    let mut limbs = vec![low.clone()];
    if k > 1 {
        let rest = if signed { held(lets, &sign_mask(&low)) } else { constant(0) };
        limbs.resize(k, rest);
    }
    limbs
}

/// a + b modulo 2^(64 k).
///
/// # Panics
/// If the numbers of limbs differ.
pub fn add(lets: &mut Lets, a: &[Expr], b: &[Expr]) -> Vec<Expr> {
    assert_eq!(a.len(), b.len(), "limbs");
    let mut carry: Option<Expr> = None;
    let mut sum = Vec::new();
    let top = a.len() - 1;
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        let last = i == top;
        let a = if last { a.clone() } else { held(lets, a) };
        let s = held(lets, &a.clone().add(b.clone()));
        let over = (!last).then(|| s.clone().lt(a));
        let (s, over) = match carry {
            None => (s, over),
            Some(carry) => {
                let t = lets.bind(s.add(carry.clone()));
                // Only one of the two additions can carry.
                (t.clone(), over.map(|o| o.or(t.lt(carry))))
            }
        };
        carry = over.map(|o| lets.bind(o.cast(U64)));
        sum.push(s);
    }
    sum
}

/// a - b modulo 2^(64 k).
///
/// # Panics
/// If the numbers of limbs differ.
pub fn subtract(lets: &mut Lets, a: &[Expr], b: &[Expr]) -> Vec<Expr> {
    assert_eq!(a.len(), b.len(), "limbs");
    let mut borrow: Option<Expr> = None;
    let mut difference = Vec::new();
    let top = a.len() - 1;
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        let last = i == top;
        let [a, b] = [held(lets, a), held(lets, b)];
        let d = held(lets, &a.clone().sub(b.clone()));
        let under = (!last).then(|| a.lt(b));
        let (d, under) = match borrow {
            None => (d, under),
            Some(borrow) => {
                let under = under.map(|u| u.or(d.clone().lt(borrow.clone())));
                (lets.bind(d.sub(borrow)), under)
            }
        };
        borrow = under.map(|u| lets.bind(u.cast(U64)));
        difference.push(d);
    }
    difference
}

/// -a modulo 2^(64 k).
pub fn negate(lets: &mut Lets, a: &[Expr]) -> Vec<Expr> {
    let zero = vec![constant(0); a.len()];
    subtract(lets, &zero, a)
}

/// The condition that a, signed, is below zero: one operation.
pub fn is_negative(a: &[Expr]) -> Expr {
    let top = a.last().expect("a limb").clone().bits(I64);
    top.clone().lt(top.int(0))
}

/// -a where `condition` holds, else a.
pub fn negate_if(lets: &mut Lets, condition: &Expr, a: &[Expr]) -> Vec<Expr> {
    // -a is not(a) + 1: the mask is all ones or zeros.
    let flag = held(lets, &condition.clone().cast(U64));
    let mask = held(lets, &flag.clone().neg());
    let flipped: Vec<Expr> = a.iter().map(|l| l.clone().xor(mask.clone())).collect();
    let mut one = vec![constant(0); a.len()];
    one[0] = flag;
    add(lets, &flipped, &one)
}

/// The condition that a, signed, is below zero, and its magnitude, unsigned; right for -2^(64 k - 1) too.
pub fn magnitude(lets: &mut Lets, a: &[Expr]) -> (Expr, Vec<Expr>) {
    let a: Vec<Expr> = a.iter().map(|l| held(lets, l)).collect();
    let negative = held(lets, &is_negative(&a));
    let magnitude = negate_if(lets, &negative, &a);
    (negative, magnitude)
}

/// The condition a < b.
///
/// # Panics
/// If the numbers of limbs differ.
pub fn less(lets: &mut Lets, a: &[Expr], b: &[Expr], signed: bool) -> Expr {
    assert_eq!(a.len(), b.len(), "limbs");
    let top = a.len() - 1;
    let mut less: Option<Expr> = None;
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        let dtype = if signed && i == top { I64 } else { U64 };
        let [a, b] = [a, b].map(|l| held(lets, &l.clone().bits(dtype)));
        less = Some(match less {
            None => a.lt(b),
            Some(below) => a.clone().lt(b.clone()).or(a.eq(b).and(below)),
        });
    }
    less.expect("a limb")
}

/// The condition a = b.
///
/// # Panics
/// If the numbers of limbs differ.
pub fn equal(a: &[Expr], b: &[Expr]) -> Expr {
    assert_eq!(a.len(), b.len(), "limbs");
    let limbs = a.iter().zip(b).map(|(a, b)| a.clone().eq(b.clone()));
    limbs.reduce(Expr::and).expect("a limb")
}

/// a where `condition` holds, else b.
///
/// # Panics
/// If the numbers of limbs differ.
pub fn select(lets: &mut Lets, condition: &Expr, a: &[Expr], b: &[Expr]) -> Vec<Expr> {
    assert_eq!(a.len(), b.len(), "limbs");
    let condition = held(lets, condition);
    a.iter().zip(b).map(|(a, b)| condition.clone().select(a.clone(), b.clone())).collect()
}

/// The limbs of a number known when the definition is built, in two's complement.
pub fn constants(value: i128, k: usize) -> Vec<Expr> {
    (0..k).map(|i| constant((value >> (64 * i).min(127)) as u64)).collect()
}

fn constant(limb: u64) -> Expr {
    Scalar::from_bits(U64, limb).into()
}

/// All ones where the top bit of `limb` is set, else zero.
fn sign_mask(limb: &Expr) -> Expr {
    let limb = limb.clone().bits(I64);
    limb.clone().shr(limb.int(63)).bits(U64)
}

/// The value of `e` under a name, bound only if it has none.
fn held(lets: &mut Lets, e: &Expr) -> Expr {
    if e.args().is_empty() { e.clone() } else { lets.bind(e.clone()) }
}
