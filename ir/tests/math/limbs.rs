//! Wide integers against 256-bit arithmetic.

use crate::big::{Big, Random};
use crate::eval::{Program, eval};
use cranefold_ir::math::limbs;
use cranefold_ir::{DType, Def, Expr, Lets, Scalar};
use std::cmp::Ordering;

const RUNS: u64 = if cfg!(debug_assertions) { 2_000 } else { 20_000 };

/// A definition over `params` limbs.
fn over(params: usize, body: impl FnOnce(&mut Lets, &[Expr]) -> Vec<Expr>) -> Def {
    Def::build("test", &vec![DType::U64; params], body)
}

/// The results' bits for these limbs.
fn run(def: &Def, limbs: &[u64]) -> Vec<u64> {
    let args: Vec<Scalar> = limbs.iter().map(|&l| Scalar::from_bits(DType::U64, l)).collect();
    eval(def, &args).iter().map(|s| s.bits()).collect()
}

#[test]
fn sums_differences_and_negation_wrap() {
    let mut random = Random::new(1);
    for k in 1..=3 {
        let sum = over(2 * k, |lets, a| limbs::add(lets, &a[..k], &a[k..]));
        let difference = over(2 * k, |lets, a| limbs::subtract(lets, &a[..k], &a[k..]));
        let negated = over(k, limbs::negate);
        for _ in 0..RUNS {
            let (a, b) = (random.limbs(k), random.limbs(k));
            let (x, y) = (Big::of(&a, false), Big::of(&b, false));
            let both = [a.clone(), b].concat();
            assert_eq!(run(&sum, &both), x.add(y).0[..k], "{both:x?}");
            assert_eq!(run(&difference, &both), x.sub(y).0[..k], "{both:x?}");
            assert_eq!(run(&negated, &a), x.neg().0[..k], "{a:x?}");
        }
    }
}

#[test]
fn comparisons_and_magnitudes() {
    let mut random = Random::new(2);
    for k in 1..=3 {
        for signed in [false, true] {
            let def = over(2 * k, |lets, v| {
                let (a, b) = v.split_at(k);
                let less = limbs::less(lets, a, b, signed);
                let chosen = limbs::select(lets, &less, a, b);
                let mut all = vec![less, limbs::equal(a, b), limbs::is_negative(a)];
                all.extend(chosen);
                all
            });
            let size = over(k, |lets, a| limbs::magnitude(lets, a).1);
            for _ in 0..RUNS {
                let (a, mut b) = (random.limbs(k), random.limbs(k));
                if random.bits().is_multiple_of(3) {
                    // Equal down to some limb.
                    let from = random.bits() as usize % k;
                    b[from..].copy_from_slice(&a[from..]);
                }
                let (x, y) = (Big::of(&a, signed), Big::of(&b, signed));
                let less = x.cmp(y) == Ordering::Less;
                let flags = [less, x == y, Big::of(&a, true).is_negative()].map(u64::from);
                let want = [&flags[..], if less { &a } else { &b }].concat();
                assert_eq!(run(&def, &[a.clone(), b.clone()].concat()), want, "{signed} {a:x?} {b:x?}");
                assert_eq!(run(&size, &a), Big::of(&a, true).abs().0[..k]);
            }
        }
    }
}

#[test]
fn every_integer_type_widens_and_squares() {
    let mut random = Random::new(3);
    for dtype in DType::ALL.into_iter().filter(|d| d.is_int()) {
        for k in 1..=3 {
            let wide = Def::build("test", &[dtype], |lets, a| limbs::widen(lets, &a[0], k));
            let square = Def::build("test", &[dtype], |lets, a| limbs::square(lets, &a[0]));
            for _ in 0..RUNS / 10 {
                let x = Scalar::from_bits(dtype, random.limb());
                let value = Big::int(x.as_int().unwrap());
                let bits = |def| eval(def, &[x]).iter().map(|s| s.bits()).collect::<Vec<_>>();
                assert_eq!(bits(&wide), value.0[..k], "{x}");
                assert_eq!(bits(&square), value.mul(value).0[..2], "{x}");
            }
        }
    }
}

#[test]
fn products_are_full() {
    let mut random = Random::new(4);
    let def = over(2, |lets, a| limbs::multiply(lets, &a[0], &a[1]));
    for _ in 0..RUNS {
        let a = random.limbs(2);
        let product = u128::from(a[0]) * u128::from(a[1]);
        assert_eq!(run(&def, &a), [product as u64, (product >> 64) as u64]);
    }
}

/// Divisors: small, at limits, at random.
fn divisors(random: &mut Random) -> Vec<u64> {
    let mut all: Vec<u64> = (1..=16).collect();
    for p in [31, 32, 33, 52, 63] {
        all.extend([(1 << p) - 1, 1 << p, (1 << p) + 1]);
    }
    all.extend([100, 1_000_003, 10_000_000_000, u64::MAX - 1, u64::MAX]);
    all.extend((0..60).map(|_| random.bits() >> (random.bits() & 63) | 1));
    all
}

#[test]
fn division_is_exact_and_rounds_as_said() {
    let mut random = Random::new(5);
    for n in divisors(&mut random) {
        for k in 1..=3 {
            let unsigned = over(k, |lets, a| {
                let (mut q, r) = limbs::divide_unsigned(lets, a, n);
                q.push(r);
                q
            });
            let rounded = [false, true].map(|signed| {
                over(k, |lets, a| {
                    let mut q = limbs::divide(lets, a, n, signed);
                    q.extend(limbs::divide_half_even(lets, a, n, signed));
                    q
                })
            });
            for _ in 0..RUNS / 50 {
                let mut a = random.limbs(k);
                if random.bits().is_multiple_of(3) {
                    // At a multiple of n or half-way between two, or next to these.
                    let m = Big::of(&a, false).div_rem(n).0;
                    let half = Big::of(&[n / 2], false);
                    let at = m.mul(Big::of(&[n], false)).add(if random.bits() & 1 == 0 { half } else { Big::ZERO });
                    a = at.add(Big::int(i128::from(random.bits() % 3) - 1)).0[..k].to_vec();
                }
                let (q, r) = Big::of(&a, false).div_rem(n);
                let got = run(&unsigned, &a);
                assert_eq!((&got[..k], got[k]), (&q.0[..k], r.0[0]), "{a:x?} / {n}");
                for (def, signed) in rounded.iter().zip([false, true]) {
                    let x = Big::of(&a, signed);
                    let (q, r) = x.abs().div_rem(n);
                    let odd = q.bit(0);
                    let up = match r.add(r).cmp(Big::of(&[n], false)) {
                        Ordering::Less => false,
                        Ordering::Equal => odd,
                        Ordering::Greater => true,
                    };
                    let sign = |q: Big| if x.is_negative() { q.neg() } else { q };
                    let [cut, even] = [sign(q), sign(q.add(Big::int(i128::from(up))))];
                    let want = [&cut.0[..k], &even.0[..k]].concat();
                    assert_eq!(run(def, &a), want, "{a:x?} / {n}, signed {signed}");
                }
            }
        }
    }
}

#[test]
fn roots_are_floors_and_nearest() {
    let mut random = Random::new(6);
    for k in 1..=3 {
        let floor = over(k, limbs::root_floor);
        let nearest = over(k, limbs::root_nearest);
        assert_eq!((floor.results.len(), nearest.results.len()), [(1, 1), (1, 2), (2, 2)][k - 1]);
        let limit = |b: Big| b.0[k..].iter().all(|&l| l == 0);
        for i in 0..3 * RUNS {
            let mut a = random.limbs(k);
            let exact = if i % 2 == 0 {
                // At a square, or next to one, or next to the middle of two.
                let root = Big::of(&random.limbs(2), false);
                let root = Big([root.0[0], if k == 3 { root.0[1] >> 32 } else { 0 }, 0, 0]);
                let root = if k == 1 { Big([root.0[0] >> 32, 0, 0, 0]) } else { root };
                let square = root.mul(root);
                let middle = if random.bits() & 1 == 0 { root } else { Big::ZERO };
                square.add(middle).add(Big::int(i128::from(random.bits() % 3) - 1))
            } else {
                Big::of(&a, false)
            };
            if limit(exact) {
                a = exact.0[..k].to_vec();
            }
            check_root(&a, &run(&floor, &a), &run(&nearest, &a));
        }
        for a in [vec![0; k], vec![u64::MAX; k]] {
            check_root(&a, &run(&floor, &a), &run(&nearest, &a));
        }
    }
}

fn check_root(a: &[u64], floor: &[u64], nearest: &[u64]) {
    let [x, s, m] = [a, floor, nearest].map(|l| Big::of(l, false));
    let next = s.add(Big::int(1));
    assert!(s.mul(s).cmp(x) != Ordering::Greater, "floor of root {a:x?}: {floor:x?}");
    assert!(next.mul(next).cmp(x) == Ordering::Greater, "floor of root {a:x?}: {floor:x?}");
    // s + 1/2 is below the root where s^2 + s < x.
    let up = s.mul(s).add(s).cmp(x) == Ordering::Less;
    assert_eq!(m, if up { next } else { s }, "nearest to root {a:x?}");
}

#[test]
fn conversion_to_f64_rounds_once() {
    let mut random = Random::new(7);
    for k in 1..=3 {
        for signed in [false, true] {
            let def = over(k, |lets, a| vec![limbs::to_f64(lets, a, signed)]);
            for i in 0..3 * RUNS {
                let mut a = random.limbs(k);
                if i % 2 == 0 {
                    // A few bits, and a tie or its neighbour 53 places below the first.
                    let top = random.bits() as usize % (64 * k);
                    let mut b = Big::ZERO;
                    b.0[top / 64] |= 1 << (top % 64);
                    if top >= 53 {
                        b.0[(top - 53) / 64] |= 1 << ((top - 53) % 64);
                    }
                    if top >= 52 && random.bits() & 1 == 0 {
                        b.0[(top - 52) / 64] |= 1 << ((top - 52) % 64);
                    }
                    a = b.add(Big::int(i128::from(random.bits() % 3) - 1)).0[..k].to_vec();
                }
                let got = f64::from_bits(run(&def, &a)[0]);
                let want = Big::of(&a, signed).to_f64();
                assert_eq!(got.to_bits(), want.to_bits(), "{a:x?} signed {signed}: {got} {want}");
                if k <= 2 && !signed {
                    let wide = u128::from(a[0]) | u128::from(*a.get(1).unwrap_or(&0)) << 64;
                    assert_eq!(want, wide as f64, "the helper");
                }
            }
        }
    }
}

#[test]
fn clamping_to_every_integer_type() {
    let mut random = Random::new(8);
    for dtype in DType::ALL.into_iter().filter(|d| d.is_int()) {
        let (low, high) = dtype.int_range().unwrap();
        for (k, signed) in (1..=3).flat_map(|k| [(k, false), (k, true)]) {
            let def = over(k, |lets, a| vec![limbs::clamp(lets, a, signed, dtype)]);
            for i in 0..RUNS / 10 {
                let mut a = random.limbs(k);
                if i % 2 == 0 {
                    let at = if random.bits() & 1 == 0 { low } else { high };
                    a = Big::int(at + i128::from(random.bits() % 5) - 2).0[..k].to_vec();
                }
                let x = Big::of(&a, signed);
                let want = match x {
                    x if x.cmp(Big::int(low)) == Ordering::Less => low,
                    x if x.cmp(Big::int(high)) == Ordering::Greater => high,
                    x => i128::from(x.0[0]) | i128::from(x.0[1]) << 64,
                };
                assert_eq!(run(&def, &a)[0], Scalar::int(dtype, want).bits(), "{a:x?} {dtype} signed {signed}");
            }
        }
    }
}

#[test]
fn saturating_products_do_not_depend_on_the_order() {
    let mut random = Random::new(9);
    let combine = over(4, |lets, s| limbs::saturating_product(lets, [&s[0], &s[1]], [&s[2], &s[3]]));
    for dtype in DType::ALL.into_iter().filter(|d| d.is_int()) {
        let lift = Def::build("test", &[dtype], |lets, a| limbs::saturating_of(lets, &a[0]));
        let finish = over(2, |lets, s| vec![limbs::saturating_clamp(lets, &s[0], &s[1], dtype)]);
        let (low, high) = dtype.int_range().unwrap();
        for _ in 0..RUNS / 5 {
            let n = 1 + random.bits() as usize % 6;
            let values: Vec<Scalar> = (0..n).map(|_| Scalar::from_bits(dtype, random.limb())).collect();
            let lifted = |x: &Scalar| eval(&lift, &[*x]).iter().map(|s| s.bits()).collect::<Vec<_>>();
            let product = |values: &mut dyn Iterator<Item = &Scalar>| {
                values.fold(vec![0, 1], |s, x| run(&combine, &[s, lifted(x)].concat()))
            };
            let forward = product(&mut values.iter());
            assert_eq!(forward, product(&mut values.iter().rev()), "{values:?}");
            // The true product, held at a magnitude that no type reaches.
            let zero = values.iter().any(|v| v.as_int() == Some(0));
            let held = |p: i128| p.clamp(-(1 << 64), 1 << 64);
            let truth =
                if zero { 0 } else { values.iter().fold(1i128, |p, v| held(p.saturating_mul(v.as_int().unwrap()))) };
            let want = Scalar::int(dtype, truth.clamp(low, high));
            assert_eq!(run(&finish, &forward)[0], want.bits(), "{values:?}");
        }
    }
}

#[test]
fn they_are_as_short_as_documented() {
    let ops = |def: Def| Program::new(&def).ops();
    let divide = |k| over(k, |lets, a| limbs::divide(lets, a, 1_000_003, true));
    let root = |k| over(k, limbs::root_floor);
    let float = |k| over(k, |lets, a| vec![limbs::to_f64(lets, a, true)]);
    assert_eq!([1, 2, 3].map(|k| ops(divide(k))), [12, 47, 86]);
    assert_eq!([1, 2, 3].map(|k| ops(root(k))), [10, 120, 177]);
    assert_eq!([1, 2, 3].map(|k| ops(float(k))), [1, 31, 46]);
    let combine = over(4, |lets, s| limbs::saturating_product(lets, [&s[0], &s[1]], [&s[2], &s[3]]));
    assert_eq!(ops(combine), 5);
}
