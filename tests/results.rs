//! The bits of results, held by their hashes: they change with `RESULTS_VERSION` alone.
//!
//! `tests/results.txt` has a line for each spec: the hash of the bytes of its outputs over fixed data of two kinds. `BLESS=1` writes
//! the file anew, which is right only together with a new version.

use cranefold::results::RESULTS_VERSION;
use cranefold::{Compiler, Spec};
use cranefold_fuzz::execute::Memory;
use std::fmt::Write;
use xxhash_rust::xxh3::xxh3_128;

/// The kinds of data: corners of types, of which many a slice is NaN, and elements of like magnitude.
const KINDS: [u8; 2] = [0, 3];

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/results.txt");

/// The specs: those that other machines are tested with, the regions of models, and orders that do not follow memory.
fn specs() -> Vec<String> {
    let lines = include_str!("cross/specs.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let regions = include_str!("regions/list.txt").split("\n\n").filter_map(|paragraph| paragraph.split_once('\n'));
    let regions = regions.filter(|(_, region)| region.starts_with("region "));
    let regions = regions.map(|(_, region)| region.parse::<Spec>().expect("a region of the list").to_string());
    let logical = [
        "sum f32[40,50]@ba axes=[0,1] order=logical",
        "mean f32[3,70,5] axes=[0,2] order=logical",
        "var f32[9,33,17]@acb axes=[1,2] order=logical",
        "log_sum_exp f32[30,1000]@ba axes=[1] order=logical",
        "sum f32[4,33,7]@aBc16b axes=[1] order=logical",
    ];
    lines.map(str::to_string).chain(regions).chain(logical.map(str::to_string)).collect()
}

#[test]
fn results_have_the_bits_of_their_version() {
    let compiler = Compiler::host().expect("a compiler");
    let mut found = format!("version {RESULTS_VERSION}\n");
    for text in specs() {
        let spec: Spec = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        let kernel = compiler.compile(&spec).unwrap_or_else(|e| panic!("{text}: {e}"));
        let of_kind =
            |kind| Memory::of(&spec, kind, 5, (0, 0)).run(&kernel).into_iter().flat_map(|b| b.bytes().to_vec());
        let outputs: Vec<u8> = KINDS.into_iter().flat_map(of_kind).collect();
        writeln!(found, "{:032x} {text}", xxh3_128(&outputs)).expect("text");
    }
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(PATH, &found).expect("the file is written");
        return;
    }
    let held = std::fs::read_to_string(PATH).expect("the file of hashes");
    let changed: Vec<&str> = found.lines().filter(|line| !held.lines().any(|known| known == *line)).collect();
    assert!(held == found, "other bits, or other specs, than the file has:\n{}", changed.join("\n"));
}
