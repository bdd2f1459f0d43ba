//! Square roots.

use super::{add, constant, constants, held, less, multiply, select, subtract, to_f64, widen};
use crate::DType::{F64, I64, U64};
use crate::{Expr, Lets, Scalar};

/// floor(sqrt(a)) of an unsigned a of 1, 2 or 3 limbs, in 1, 1 or 2 limbs.
///
/// 10, 120 and 177 operations.
///
/// # Panics
/// If a has another number of limbs.
pub fn root_floor(lets: &mut Lets, a: &[Expr]) -> Vec<Expr> {
    let (mut root, _) = root_and_rest(lets, a);
    root.truncate(a.len() - a.len() / 2);
    root
}

/// The integer nearest to sqrt(a), of an unsigned a of 1, 2 or 3 limbs, in 1, 2 or 2 limbs.
///
/// It is the floor s, or s + 1 where a - s^2 > s; no root of an integer is half-way.
///
/// # Panics
/// If a has another number of limbs.
pub fn root_nearest(lets: &mut Lets, a: &[Expr]) -> Vec<Expr> {
    let (root, rest) = root_and_rest(lets, a);
    let mut wide = root.clone();
    wide.resize(rest.len(), constant(0));
    let up = less(lets, &wide, &rest, false);
    let mut one = constants(0, root.len());
    one[0] = up.cast(U64);
    add(lets, &root, &one)
}

/// s = floor(sqrt(a)) in 1 limb for 1, in 2 limbs for 2 or 3, and a - s^2 in as many limbs as a.
fn root_and_rest(lets: &mut Lets, a: &[Expr]) -> (Vec<Expr>, Vec<Expr>) {
    let a: Vec<Expr> = a.iter().map(|l| held(lets, l)).collect();
    match a.len() {
        1 => short_root(lets, &a[0]),
        2 | 3 => long_root(lets, &a),
        k => panic!("no square root of {k} limbs"),
    }
}

/// The root of one limb: the root of the nearest f64, rounded, is the floor or one more, since the root has 32
/// bits and the rounding of `a` to f64 changes it by less than 2^-21.
fn short_root(lets: &mut Lets, a: &Expr) -> (Vec<Expr>, Vec<Expr>) {
    let guess = a.clone().cast(F64).sqrt().cast(U64);
    let guess = lets.bind(guess.min(constant(u64::from(u32::MAX))));
    let square = guess.clone().mul(guess.clone());
    let s = lets.bind(guess.sub(a.clone().lt(square).cast(U64)));
    let rest = lets.bind(a.clone().sub(s.clone().mul(s.clone())));
    (vec![s], vec![rest])
}

/// The root of two or three limbs, by a step of Newton's method: y = s0 + e / (2 g) with e = a - s0^2 exact.
///
/// g is the root of the nearest f64, s0 = g cut to an integer. With R = sqrt(a), s0 is off by
/// delta, which is at most 1 where R < 2^53 and below R 2^-52 elsewhere, and y is
/// R - delta^2 / (2 R) but for the rounding of e / (2 g), so between floor(R) - 2^-6 and R + 2^-6
/// as long as R < 2^96. So y - 1 - 2^-5 rounded to nearest is floor(R) or one less, which one
/// comparison decides. If a is 0 the step is a NaN and counts as 0.
fn long_root(lets: &mut Lets, a: &[Expr]) -> (Vec<Expr>, Vec<Expr>) {
    let float = |v: f64| Expr::from(Scalar::f64(v));
    let guess = to_f64(lets, a, false);
    let guess = lets.bind(guess.sqrt());
    let high = lets.bind(guess.clone().mul(float(2f64.powi(-64))).cast(U64));
    let high_part = high.clone().cast(F64).mul(float(2f64.powi(64)));
    let low = lets.bind(guess.clone().sub(high_part).cast(U64));
    let s0 = vec![low, high];
    let square = square_of_two(lets, &s0, a.len());
    let e = subtract(lets, a, &square);
    let e = to_f64(lets, &e, true);
    let step = e.div(guess.clone().add(guess)).sub(float(1.0 + 1.0 / 32.0)).nearest().cast(I64);
    let step = widen(lets, &step, 2);
    let s = add(lets, &s0, &step);
    let square = square_of_two(lets, &s, a.len());
    let rest = subtract(lets, a, &square);
    // If rest >= 2 s + 1 the root is one more, and the rest 2 s + 1 less.
    let mut twice = add(lets, &s, &s);
    twice.resize(a.len(), constant(0));
    let more = less(lets, &twice, &rest, false);
    let more = lets.bind(more);
    let one = lets.bind(more.clone().cast(U64));
    let s = add(lets, &s, &[one, constant(0)]);
    twice[0] = twice[0].clone().or(constant(1));
    let less_rest = subtract(lets, &rest, &twice);
    (s, select(lets, &more, &less_rest, &rest))
}

/// The square of two limbs modulo 2^(64 k), k = 2 or 3.
fn square_of_two(lets: &mut Lets, s: &[Expr], k: usize) -> Vec<Expr> {
    let low = multiply(lets, &s[0], &s[0]);
    let cross = multiply(lets, &s[0], &s[1]);
    let double = add(lets, &cross, &cross);
    if k == 2 {
        let high = lets.bind(low[1].clone().add(double[0].clone()));
        return vec![low[0].clone(), high];
    }
    let above = lets.bind(s[1].clone().mul(s[1].clone()));
    let upper = add(lets, &[low[1].clone(), constant(0)], &double);
    let top = lets.bind(upper[1].clone().add(above));
    vec![low[0].clone(), upper[0].clone(), top]
}
