//! Regions: a whole fused loop as one kernel, right and with the same bits on every executor.

mod bits;

use cranefold::Spec;

/// The regions of the list: their names and specs.
fn list() -> Vec<(String, Spec)> {
    let text = include_str!("list.txt");
    let paragraphs = text.split("\n\n").filter(|p| p.contains("region "));
    let one = |paragraph: &str| {
        let at = paragraph.find("region ").expect("a region");
        let name = paragraph[..at].trim_start_matches('#').trim().to_string();
        let spec = paragraph[at..].parse().unwrap_or_else(|e| panic!("{name}: {e}"));
        (name, spec)
    };
    paragraphs.map(one).collect()
}
