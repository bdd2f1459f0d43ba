//! Endless inputs, made from a seed.

use crate::{Origin, Target};
use fastrand::Rng;
use std::collections::HashMap;

/// Words that parsers trip over: numbers at the ends of their ranges, marks, characters of several bytes.
const WORDS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "63",
    "64",
    "65",
    "255",
    "4096",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "1e309",
    "1e-400",
    "1e999999999",
    "-0.0",
    "0.5",
    "nan",
    "inf",
    "-inf",
    "0x7fc00001",
    "00",
    "+1",
    "1_000",
    "é",
    "\u{0}",
    "\u{7f}",
    "\u{2028}",
    "\u{1f600}",
    "\u{feff}",
    "\r\n",
    "\t",
    "\n",
    " ",
    "  ",
    "\"",
    "\\",
    "\\u{110000}",
    "\\u{41}",
    "#",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    ";",
    "=",
    "->",
    "..",
    ".",
    "@",
    "+",
    "-",
    "*",
    "/",
    "<",
    "==",
    "not",
    "f32",
    "f64",
    "f16",
    "i8",
    "i64",
    "u64",
    "bool",
    "then",
    "map=\"",
];

/// The most bytes of an input, except for inputs that repeat something.
const MOST_BYTES: usize = 8000;
const MOST_REPEATED_BYTES: usize = 120_000;

/// The class of a word; a word is only replaced by another of its class.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Class {
    Word,
    Number,
    Mark,
}

impl Class {
    fn of(word: &str) -> Class {
        match word.strip_prefix('-').unwrap_or(word).chars().next() {
            Some(c) if c.is_ascii_digit() => Class::Number,
            Some(c) if c.is_alphabetic() || c == '_' => Class::Word,
            _ => Class::Mark,
        }
    }
}

/// Inputs of a target: its seeds and its corpus cut, spliced and changed, and now and then any bytes.
///
/// ```
/// use cranefold_fuzz::{inputs::Inputs, target};
///
/// let target = target("schedule").expect("a target");
/// let first: Vec<Vec<u8>> = Inputs::new(target, 1).take(100).collect();
/// assert!(first.iter().eq(&Inputs::new(target, 1).take(100).collect::<Vec<_>>()));
/// ```
#[derive(Debug)]
pub struct Inputs {
    random: Rng,
    words: Words,
    /// The texts, as numbers of words.
    texts: Vec<Vec<u32>>,
    /// The inputs that are not text.
    numbers: Vec<Vec<u8>>,
    /// The most bytes of an input that is not text.
    most_bytes: usize,
    /// True if the inputs are files, which random bytes hardly ever are.
    are_files: bool,
}

/// The words of all texts.
#[derive(Debug, Default)]
struct Words {
    all: Vec<String>,
    known: HashMap<String, u32>,
    classes: HashMap<Class, Vec<u32>>,
}

impl std::fmt::Debug for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Class::Word => "word",
            Class::Number => "number",
            Class::Mark => "mark",
        })
    }
}

impl Words {
    fn number_of(&mut self, word: &str) -> u32 {
        if let Some(&known) = self.known.get(word) {
            return known;
        }
        let number = self.all.len() as u32;
        self.all.push(word.into());
        self.known.insert(word.into(), number);
        self.classes.entry(Class::of(word)).or_default().push(number);
        number
    }

    /// Splits a text into words: adjacent letters and digits make one word, and every other character is a word.
    fn split(&mut self, text: &str) -> Vec<u32> {
        let mut words = vec![];
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let digits = |c: char| c.is_ascii_digit();
            // `i16` and `x0` are words; `16a` of a tag is a number and a word.
            let len = match first {
                c if digits(c) => rest.find(|c| !digits(c)),
                c if is_part(c) => rest.find(|c| !is_part(c)),
                c => Some(c.len_utf8()),
            };
            let (word, after) = rest.split_at(len.unwrap_or(rest.len()));
            words.push(self.number_of(word));
            rest = after;
        }
        words
    }
}

impl Inputs {
    /// The inputs of a target and a seed. They also depend on the texts and the corpus.
    ///
    /// # Panics
    /// If the corpus or the texts of the repository cannot be read.
    pub fn new(target: &Target, seed: u64) -> Inputs {
        let corpus = target.corpus().expect("the corpus").into_iter().map(|(_, bytes)| bytes);
        let mut words = Words::default();
        WORDS.iter().for_each(|word| _ = words.number_of(word));
        let (mut texts, mut numbers, mut most_bytes) = (vec![], vec![], 0);
        let are_files = matches!(target.inputs, Origin::Files);
        match target.inputs {
            Origin::Files => {
                most_bytes = 200;
                numbers.extend(corpus);
            }
            Origin::Numbers(most) => {
                most_bytes = most;
                numbers.extend(corpus);
            }
            Origin::Texts(seeds) => {
                let seeds = seeds();
                let corpus = corpus.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
                texts.extend(seeds.into_iter().chain(corpus).map(|text| words.split(&text)));
            }
        }
        Inputs { random: Rng::with_seed(seed), words, texts, numbers, most_bytes, are_files }
    }

    /// The bytes of a case.
    fn case(&mut self) -> Vec<u8> {
        if self.numbers.is_empty() || self.random.u8(..) < if self.are_files { 8 } else { 200 } {
            return self.bytes(self.most_bytes);
        }
        let mut bytes = self.numbers[self.random.usize(..self.numbers.len())].clone();
        if self.are_files && self.random.u8(..) < 64 {
            self.splice(&mut bytes);
        }
        for _ in 0..1 + self.random.usize(..8) {
            self.change_byte(&mut bytes);
        }
        bytes
    }

    /// At most `most` random bytes.
    fn bytes(&mut self, most: usize) -> Vec<u8> {
        let len = self.random.usize(..=most);
        (0..len).map(|_| self.random.u8(..)).collect()
    }

    /// Puts part of another file, or of the same one, in the place of some bytes.
    fn splice(&mut self, bytes: &mut Vec<u8>) {
        let other = self.random.usize(..self.numbers.len());
        let from = self.range(self.numbers[other].len(), 200);
        let part = self.numbers[other][from].to_vec();
        let at = self.range(bytes.len(), 50);
        bytes.splice(at, part);
    }

    fn change_byte(&mut self, bytes: &mut Vec<u8>) {
        let at = self.random.usize(..=bytes.len());
        match self.random.u8(..4) {
            0 => bytes.insert(at, self.random.u8(..)),
            1 if at < bytes.len() => drop(bytes.remove(at)),
            2 if at < bytes.len() => bytes[at] ^= 1 << self.random.u8(..8),
            _ if at < bytes.len() => bytes[at] = self.random.u8(..),
            _ => {}
        }
    }

    fn text(&mut self) -> Vec<u8> {
        let mut words = match self.random.u8(..) {
            0..8 => return self.bytes(80),
            8..16 => (0..self.random.usize(..40)).map(|_| self.any_word()).collect(),
            _ => self.texts[self.random.usize(..self.texts.len())].clone(),
        };
        let mut most = MOST_BYTES;
        // Some texts keep their form: only numbers are replaced.
        for _ in 0..self.random.u8(..6) / 2 {
            self.change_number(&mut words);
        }
        while self.random.u8(..) < 160 && {
            let repeats = self.change(&mut words);
            most = if repeats { MOST_REPEATED_BYTES } else { most };
            true
        } {}
        let mut bytes = vec![];
        for word in words {
            if bytes.len() > most {
                break;
            }
            bytes.extend_from_slice(self.words.all[word as usize].as_bytes());
        }
        if self.random.u8(..) < 16 {
            self.change_byte(&mut bytes);
        }
        bytes
    }

    fn any_word(&mut self) -> u32 {
        self.random.u32(..self.words.all.len() as u32)
    }

    /// A range of at most `most` adjacent words.
    fn range(&mut self, len: usize, most: usize) -> std::ops::Range<usize> {
        let start = self.random.usize(..=len);
        start..len.min(start + 1 + self.random.usize(..most))
    }

    /// Replaces a number by another one, or by any of the words that parsers trip over.
    fn change_number(&mut self, words: &mut [u32]) {
        let is_number = |word: &u32| Class::of(&self.words.all[*word as usize]) == Class::Number;
        let numbers: Vec<usize> = (0..words.len()).filter(|&at| is_number(&words[at])).collect();
        if let Some(&at) = self.random.choice(&numbers) {
            let like = &self.words.classes[&Class::Number];
            let known = self.random.u8(..4) > 0;
            words[at] =
                if known { like[self.random.usize(..like.len())] } else { self.random.u32(..WORDS.len() as u32) };
        }
    }

    /// Changes a text; returns true if it may have become long.
    fn change(&mut self, words: &mut Vec<u32>) -> bool {
        let at = self.random.usize(..=words.len());
        let other = self.random.usize(..self.texts.len());
        match self.random.u8(..64) {
            0..6 => drop(words.drain(self.range(words.len(), 6))),
            6..12 => {
                let copy = words[self.range(words.len(), 12)].to_vec();
                words.splice(at..at, copy);
            }
            12..24 if at < words.len() => {
                let class = Class::of(&self.words.all[words[at] as usize]);
                let like = &self.words.classes[&class];
                words[at] = like[self.random.usize(..like.len())];
            }
            24..30 if at < words.len() => words[at] = self.any_word(),
            30..40 => self.change_number(words),
            40..46 => {
                let splice = self.range(self.texts[other].len(), 20);
                let splice = self.texts[other][splice].to_vec();
                words.splice(at..at, splice);
            }
            46..50 => {
                words.truncate(at);
                let from = self.random.usize(..=self.texts[other].len());
                words.extend_from_slice(&self.texts[other][from..]);
            }
            50..53 => words.truncate(at),
            53..56 if at < words.len() => {
                let with = self.random.usize(..words.len());
                words.swap(at, with);
            }
            56 if self.random.u8(..4) == 0 => {
                let copy = words[self.range(words.len(), 6)].to_vec();
                let times = 1 << self.random.u8(..13);
                words.splice(at..at, copy.iter().copied().cycle().take(copy.len() * times));
                return true;
            }
            _ => {
                let word = self.any_word();
                words.insert(at, word);
            }
        }
        false
    }
}

impl Iterator for Inputs {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        Some(if self.texts.is_empty() { self.case() } else { self.text() })
    }
}
