//! Random mutations of good texts: never a panic, and what reads prints and reads back.

use super::REGIONS;
use cranefold_spec::Spec;

/// A sequence of numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit.max(1)
    }
}

/// Pieces that mutations put in.
const PIECES: [&str; 48] = [
    "x",
    "sum(",
    "max(",
    ")",
    "(",
    ",",
    ";",
    "\n",
    "#",
    "}",
    "{",
    "=",
    "==",
    "@",
    "@any",
    "@ba",
    "axes=",
    "[",
    "]",
    "0",
    "-1",
    "1e999",
    "999999999999999999999999999999999999999999",
    ".5",
    "inf",
    "nan",
    "not ",
    "-",
    "position(",
    "extent(",
    "old(",
    "centered(",
    "select(",
    "i8(",
    "bool(",
    "f64(",
    "é",
    "$0",
    "keep_dims ",
    "scalar k:f32 ",
    "acc=f64 ",
    "mode(",
    "argmax(",
    "ddof=1",
    "last=1",
    "f8e4m3",
    " and ",
    "\"",
];

fn mutated(random: &mut Random, texts: &[&str]) -> String {
    let mut text = texts[random.below(texts.len())].to_string();
    for _ in 0..=random.below(2) {
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        let (a, b) = (random.below(places.len()), random.below(places.len()));
        let (a, b) = (a.min(b), a.max(b).min(a.min(b) + 1 + random.below(12)));
        let (a, b) = (places[a], places[b.min(places.len() - 1)]);
        match random.below(4) {
            0 => text.replace_range(a..b, ""),
            1 => text.insert_str(a, PIECES[random.below(PIECES.len())]),
            2 => text.replace_range(a..b, PIECES[random.below(PIECES.len())]),
            _ => {
                let again = text[a..b].to_string();
                text.insert_str(b, &again);
            }
        }
    }
    text
}

#[test]
fn mutations_of_good_texts() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let texts: Vec<&str> = REGIONS.iter().map(|(_, text)| *text).collect();
    let (mut good, mut refused) = (0, 0);
    for _ in 0..100_000 {
        let text = mutated(&mut random, &texts);
        match text.parse::<Spec>() {
            Ok(spec) => {
                good += 1;
                let printed = spec.to_string();
                let again: Spec = printed.parse().unwrap_or_else(|error| panic!("{text}\n{printed}\n{error}"));
                assert_eq!((&again, again.to_string()), (&spec, printed), "{text}");
                if let Some(body) = spec.body() {
                    let canonical = body.canonical();
                    assert_eq!(canonical.canonical(), canonical, "{text}");
                }
            }
            Err(error) => {
                refused += 1;
                assert!(!error.to_string().is_empty());
            }
        }
    }
    assert!(good > 1_000 && refused > 20_000, "{good} read, {refused} refused");
}
