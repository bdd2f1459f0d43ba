//! Regions: a whole fused loop as one kernel, right and with the same bits on every executor.

mod bits;
mod builder;
mod corners;
mod given;
mod keep;
mod logical;
mod nothing;
mod old;
mod reference;
mod siblings;
mod sugar;
mod values;
mod write_first;

use cranefold::Spec;

/// The regions of the list: their names and specs.
fn list() -> Vec<(String, Spec)> {
    let text = include_str!("list.txt");
    let one = |paragraph: &str| {
        let (name, region) = paragraph.split_once('\n').filter(|(_, region)| region.starts_with("region "))?;
        let spec = region.parse().unwrap_or_else(|e| panic!("{name}: {e}"));
        Some((name.trim_start_matches('#').trim().to_string(), spec))
    };
    text.split("\n\n").filter_map(one).collect()
}
