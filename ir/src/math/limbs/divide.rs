//! Division by a constant.

use super::{add, constant, held, magnitude, negate_if};
use crate::DType::U64;
use crate::{Expr, Lets};

/// Quotient and remainder of an unsigned a by n.
///
/// The top limb is divided by [`Op::Div`](crate::Op::Div). Each lower limb, below the remainder so
/// far, is divided by two products with a reciprocal of n: N. Möller and T. Granlund,
/// "Improved division by invariant integers" (2011), algorithm 4. 25 operations a limb.
///
/// # Panics
/// If n is 0.
pub fn divide_unsigned(lets: &mut Lets, a: &[Expr], n: u64) -> (Vec<Expr>, Expr) {
    assert!(n > 0, "division by zero");
    let (top, below) = a.split_last().expect("a limb");
    let top = held(lets, top);
    let q = lets.bind(top.clone().div(constant(n)));
    let mut remainder = lets.bind(top.sub(q.clone().mul(constant(n))));
    let mut quotient = vec![q];
    for limb in below.iter().rev() {
        let (q, r) = divide_two_limbs(lets, &remainder, limb, n);
        quotient.push(q);
        remainder = r;
    }
    quotient.reverse();
    (quotient, remainder)
}

/// Quotient and remainder of high 2^64 + low by n, where high < n.
fn divide_two_limbs(lets: &mut Lets, high: &Expr, low: &Expr, n: u64) -> (Expr, Expr) {
    // d = n 2^s has its first bit set; v = floor((2^128 - 1) / d) - 2^64.
    let s = n.leading_zeros();
    let d = constant(n << s);
    let v = constant((u128::MAX / u128::from(n << s)) as u64);
    let shift = |amount: u32| constant(u64::from(amount));
    let low = held(lets, low);
    let (u1, u0) = match s {
        0 => (high.clone(), low),
        _ => (lets.bind(high.clone().shl(shift(s)).or(low.clone().shr(shift(64 - s)))), lets.bind(low.shl(shift(s)))),
    };
    // The candidate q is the upper limb of v u1 + (u1, u0), plus 1; it is too great by at most 1,
    // too small by at most 1.
    let q0 = lets.bind(v.clone().mul(u1.clone()).add(u0.clone()));
    let carry = q0.clone().lt(u0.clone()).cast(U64);
    let q = lets.bind(v.mul_high(u1.clone()).add(u1).add(carry).add(constant(1)));
    let r = lets.bind(u0.sub(q.clone().mul(d.clone())));
    let over = lets.bind(q0.lt(r.clone()).cast(U64));
    let q = q.sub(over.clone());
    let r = lets.bind(r.add(over.mul(d.clone())));
    let under = lets.bind(d.clone().le(r.clone()).cast(U64));
    let q = lets.bind(q.add(under.clone()));
    let r = lets.bind(r.sub(under.mul(d)).shr(shift(s)));
    (q, r)
}

/// a / n, truncated towards zero; the quotient has as many limbs as a.
///
/// Signed, by 1,000,003: 12, 47 and 86 operations for 1, 2 and 3 limbs.
///
/// # Panics
/// If n is 0.
pub fn divide(lets: &mut Lets, a: &[Expr], n: u64, signed: bool) -> Vec<Expr> {
    by_magnitude(lets, a, signed, |lets, a| divide_unsigned(lets, a, n).0)
}

/// a / n, rounded to the nearest integer, ties to even; the quotient has as many limbs as a.
///
/// # Panics
/// If n is 0.
pub fn divide_half_even(lets: &mut Lets, a: &[Expr], n: u64, signed: bool) -> Vec<Expr> {
    by_magnitude(lets, a, signed, |lets, a| {
        let (q, r) = divide_unsigned(lets, a, n);
        // Comparing r with n - r: 2 r may not fit.
        let left = lets.bind(constant(n).sub(r.clone()));
        let odd = q[0].clone().and(constant(1)).ne(constant(0));
        let up = left.clone().lt(r.clone()).or(left.eq(r).and(odd));
        let mut one = vec![constant(0); a.len()];
        one[0] = lets.bind(up.cast(U64));
        add(lets, &q, &one)
    })
}

/// `f` of the magnitude of a, with the sign of a.
fn by_magnitude(
    lets: &mut Lets,
    a: &[Expr],
    signed: bool,
    f: impl FnOnce(&mut Lets, &[Expr]) -> Vec<Expr>,
) -> Vec<Expr> {
    if !signed {
        return f(lets, a);
    }
    let (negative, size) = magnitude(lets, a);
    let result = f(lets, &size);
    negate_if(lets, &negative, &result)
}
