//! The published problems again over blocked layouts.
//!
//! Every algorithm, types, p and eps and chain of post-ops, for every set of axes of the published cases, runs with
//! every second of [`TAGS`]: in one [`Pair`] of it, the next one for the next combination, so that every tag and
//! pair meets every algorithm, all types, every chain and all axes, which is asserted. Extents are small: the
//! channels take turns among primes and others that are no multiple of a block.

use crate::problem::{Problem, cases, combinations, ints};
use crate::published::CASES;
use crate::run::Tally;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// The beginnings are for the first two axes, the middle for those between, the ends for blocks.
const TAGS: [(&str, &str); 9] = [
    ("aB", "8b"),
    ("aB", "16b"),
    ("aB", "32b"),
    ("AB", "8a8b"),
    ("AB", "16a16b"),
    ("AB", "16b16a"),
    ("AB", "32a32b"),
    ("AB", "4b16a4b"),
    ("BA", "2a8b8a2b"),
];

/// Where the tag stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Pair {
    FromBlocked,
    Both,
    Any,
    ToBlocked,
    ToBlockedFromChannelsLast,
    BetweenBlocks,
}

const PAIRS: [Pair; 6] =
    [Pair::FromBlocked, Pair::Both, Pair::Any, Pair::ToBlocked, Pair::ToBlockedFromChannelsLast, Pair::BetweenBlocks];

const CHANNELS: [i64; 4] = [17, 31, 33, 5];

fn tag((first, blocks): (&str, &str), rank: usize) -> String {
    let middle: String = ('c'..).take(rank - 2).collect();
    format!("{first}{middle}{blocks}")
}

/// The tags of source and destination.
fn tags(t: usize, pair: Pair, rank: usize) -> (String, String) {
    let plain: String = ('a'..).take(rank).collect();
    let last = format!("a{}b", &plain[2..]);
    let (own, next) = (tag(TAGS[t], rank), tag(TAGS[(t + 1) % TAGS.len()], rank));
    match pair {
        Pair::FromBlocked => (own, plain),
        Pair::Both => (own.clone(), own),
        Pair::Any => (own, "any".into()),
        Pair::ToBlocked => (plain, own),
        Pair::ToBlockedFromChannelsLast => (last, own),
        Pair::BetweenBlocks => (own, next),
    }
}

/// The words that each tag and pair met.
type Met = BTreeMap<(usize, Pair), BTreeSet<String>>;

/// Runs those whose number over all leaves this remainder by two.
fn check_half(half: usize) -> usize {
    let (mut tally, mut met, mut done, mut number) = (Tally::default(), Met::new(), BTreeSet::new(), 0);
    for mut case in cases(CASES) {
        let (rank, axes) = (ints(&case["src"]).len(), ints(&case["axes"]));
        if !done.insert((rank, axes.clone())) {
            continue;
        }
        case["post_ops"] = json!(["", "add:f32:per_oc", "sum+linear:2:1+add:f32"]);
        for (n, problem) in combinations(&case).into_iter().enumerate() {
            for t in (n % 2..TAGS.len()).step_by(2) {
                let pair = PAIRS[(n / 3 + t + done.len()) % PAIRS.len()];
                let problem = blocked(problem.clone(), &axes, t, pair, CHANNELS[(n + t) % 4]);
                let words = [problem.alg.clone(), format!("{axes:?}"), problem.post_ops.clone()];
                let types = format!("{}->{}", problem.src.dtype, problem.dst.dtype);
                met.entry((t, pair)).or_default().extend(words.into_iter().chain([types]));
                number += 1;
                match problem.translate() {
                    _ if number % 2 != half => {}
                    Ok(spec) => tally.check(&spec, number as u64 / 2),
                    Err(error) => tally.fail(format!("{problem:?}: {error}")),
                }
            }
        }
    }
    assert_eq!((met.len(), done.len()), (TAGS.len() * PAIRS.len(), 7));
    for (place, words) in met {
        assert_eq!(words.len(), 9 + 6 + 3 + 11, "{place:?}: {words:?}");
    }
    tally.conclude()
}

/// The problem with these layouts and extents to match.
fn blocked(mut problem: Problem, axes: &[i64], t: usize, pair: Pair, channels: i64) -> Problem {
    let rank = problem.src.dims.len();
    let batch = if TAGS[t].0.contains('A') { 19 } else { 3 };
    let dims = [batch, channels, 2, 3];
    problem.src.dims = dims[..rank].into();
    let reduced = |axis: usize| axes.contains(&(axis as i64));
    problem.dst.dims = (0..rank).map(|axis| if reduced(axis) { 1 } else { dims[axis] }).collect();
    (problem.src.tag, problem.dst.tag) = tags(t, pair, rank);
    problem
}

#[test]
fn even_variants() {
    assert_eq!(check_half(0), 4490);
}

#[test]
fn odd_variants() {
    assert_eq!(check_half(1), 4491);
}

/// Where one element is left beside whole blocks, on a kept axis and maybe on the reduced one.
#[test]
fn one_element_beside_whole_blocks() {
    let mut tally = Tally::default();
    for text in [
        "sum f32[3,3]@AB2a2b axes=[0]",
        "sum f32[19,17]@AB16a16b axes=[0]",
        "sum f32[129,17] axes=[0] -> @A16a",
        "max i8[257,9] axes=[0] -> @A8a",
        "prod bf16[65,33] axes=[0] -> @A32a",
        "mean u8[5,5,2]@ABc4a4b axes=[1] keep_dims round_half_even -> @ABc4a4b",
    ] {
        let spec = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        (0..5).for_each(|n| tally.check(&spec, n));
    }
    tally.conclude();
}
