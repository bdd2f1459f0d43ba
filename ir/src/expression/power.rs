//! Powers of any base, by `math::pow`, which takes bases that are not negative.

use super::arithmetic::share;
use crate::{DType, Expr, Lets, Scalar, math};

/// a^n modulo 2^bits, for a constant n of at least 0, by multiplications.
pub(super) fn integer(lets: &mut Lets, a: Expr, n: &Expr) -> Expr {
    let mut n = match n {
        Expr::Const(n) => n.as_int().unwrap_or(0),
        _ => unreachable!("typing has refused other exponents"),
    };
    let mut square = share(lets, a);
    let mut power: Option<Expr> = None;
    while n > 0 {
        if n & 1 == 1 {
            power = Some(match power {
                None => square.clone(),
                Some(low) => lets.bind(low.mul(square.clone())),
            });
        }
        n >>= 1;
        if n > 0 {
            square = lets.bind(square.clone().mul(square));
        }
    }
    power.unwrap_or_else(|| square.int(1))
}

/// x^y for all floats, with the corner cases of IEEE 754: 1 for y = 0 and for x = 1, also beside
/// NaN; the sign of x for an odd y; NaN for a finite x below zero and a y that is no integer.
pub(super) fn float(lets: &mut Lets, x: Expr, y: Expr) -> Expr {
    let x = share(lets, x);
    let known = match &y {
        Expr::Const(y) => Some(y.as_f64()),
        _ => None,
    };
    match known {
        Some(0.0) => return x.float(1.0),
        Some(1.0) => return x,
        Some(-1.0) => return x.float(1.0).div(x),
        Some(p) if p.fract() == 0.0 && (2.0..=8.0).contains(&p) => return small(lets, x, p as u32),
        _ => {}
    }
    let y = share(lets, y);
    let y = bounded(lets, &x, y, known);
    let power = lets.splice(&math::pow(x.dtype()), &[x.clone().abs(), y.clone()]).remove(0);
    let power = lets.bind(power);
    let parity = parity(lets, &y, known);
    let signed = match &parity {
        Parity::Even | Parity::Fraction => power,
        Parity::Odd => with_sign(&x, power, None),
        Parity::Unknown { odd, .. } => with_sign(&x, power, Some(odd)),
    };
    let below_zero = || x.float(-greatest(x.dtype())).le(x.clone()).and(x.clone().lt(x.float(0.0)));
    let not_real = match parity {
        Parity::Even | Parity::Odd => None,
        Parity::Fraction => Some(below_zero()),
        Parity::Unknown { whole, .. } => Some(below_zero().and(whole.not()).or(y.is_nan())),
    };
    match not_real {
        Some(not_real) => not_real.select(Scalar::nan(x.dtype()).into(), signed),
        None => signed,
    }
}

/// x^p for p in 2..=8: the products of `math::pow_int`, the last one with x itself, and so its sign,
/// where p is odd.
fn small(lets: &mut Lets, x: Expr, p: u32) -> Expr {
    let even = lets.splice(&math::pow_int(x.dtype(), p - p % 2), std::slice::from_ref(&x)).remove(0);
    if p % 2 == 1 { even.mul(x) } else { even }
}

/// The exponent as `math::pow` takes it: 0 where x is 1; in place of an infinite one the greatest finite
/// one, which is even and takes any other x to 0 or infinity.
fn bounded(lets: &mut Lets, x: &Expr, y: Expr, known: Option<f64>) -> Expr {
    let most = greatest(x.dtype());
    let y = match known {
        Some(p) => y.float(if p.is_nan() { p } else { p.clamp(-most, most) }),
        None => {
            let y = lets.bind(y.clone().lt(y.float(-most)).select(y.float(-most), y));
            lets.bind(y.float(most).lt(y.clone()).select(y.float(most), y))
        }
    };
    match known {
        // The power of 1 is 1 for any y that is no NaN.
        Some(p) if !p.is_nan() => y,
        _ => lets.bind(x.clone().eq(x.float(1.0)).select(y.float(0.0), y)),
    }
}

fn greatest(dtype: DType) -> f64 {
    if dtype == DType::F32 { f64::from(f32::MAX) } else { f64::MAX }
}

/// The parity of an exponent.
enum Parity {
    Even,
    Odd,
    Fraction,
    /// Not known before run time: conditions that it is an integer, and an odd one.
    Unknown {
        whole: Expr,
        odd: Expr,
    },
}

fn parity(lets: &mut Lets, y: &Expr, known: Option<f64>) -> Parity {
    // Halves of odd integers are exact; an infinite exponent has become the greatest, which is even.
    match known {
        Some(p) if p.is_infinite() || (p * 0.5).fract() == 0.0 => Parity::Even,
        Some(p) if p.fract() == 0.0 => Parity::Odd,
        Some(p) if !p.is_nan() => Parity::Fraction,
        _ => {
            let whole = lets.bind(y.clone().nearest().eq(y.clone()));
            let half = lets.bind(y.clone().mul(y.float(0.5)));
            let odd = whole.clone().and(half.clone().nearest().ne(half));
            Parity::Unknown { whole, odd }
        }
    }
}

/// The power, which is not negative, with the sign of x; if `odd` is given, only where it holds.
fn with_sign(x: &Expr, power: Expr, odd: Option<&Expr>) -> Expr {
    let dtype = x.dtype();
    let sign = x.clone().bits(dtype.unsigned());
    let sign = sign.clone().and(sign.int(1 << (dtype.bits() - 1)));
    let none = sign.int(0);
    let sign = match odd {
        None => sign,
        Some(odd) => odd.clone().select(sign, none),
    };
    power.bits(dtype.unsigned()).or(sign).bits(dtype)
}
