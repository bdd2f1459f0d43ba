//! Regions of models keep their terms through every pass, under several schedules.

use super::rows::terms_are_kept;
use cranefold::Spec;

/// Extents of the list, and the shorter ones that take their places: beside the boundaries of lanes and blocks.
const SHORTER: &[(&str, &str)] = &[("768", "67"), ("512", "130"), ("300", "65"), ("200", "131"), ("500", "259")];

/// The regions of the list, with short slices.
fn regions() -> Vec<Spec> {
    let list = include_str!("../regions/list.txt");
    let regions = list.split("\n\n").filter_map(|paragraph| {
        let (_, region) = paragraph.split_once('\n').filter(|(_, region)| region.starts_with("region "))?;
        let (head, body) = region.split_once('{')?;
        let shorter = |head: String, (long, short): &(&str, &str)| {
            let ends = |head: String, end: char| head.replace(&format!("{long}{end}"), &format!("{short}{end}"));
            ends(ends(head, ']'), ',')
        };
        let text = format!("{}{{{body}", SHORTER.iter().fold(head.to_string(), shorter));
        Some(text.parse().unwrap_or_else(|e| panic!("{text}: {e}")))
    });
    regions.collect()
}

#[test]
fn regions_of_models_keep_their_terms() {
    let regions = regions();
    assert!(regions.len() > 40, "{} regions", regions.len());
    for (r, spec) in regions.iter().enumerate() {
        for n in [0, 1, 2, 5] {
            terms_are_kept(spec, r + n);
        }
    }
}
