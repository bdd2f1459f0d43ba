//! The picture of the reduction tree of one slice: lanes across, steps down, blocks that merge, lanes that fold.

use super::html::Svg;
use cranefold::problem::tree::Tree;

/// The most lanes, steps and blocks that are drawn of each; the rest is told.
const LANES: u64 = 8;
const LANES_OF_BLOCKS: u64 = 4;
const STEPS: u64 = 4;
const BLOCKS: u64 = 4;

/// The side of a cell, and the gap between blocks.
const CELL: f64 = 20.0;
const GAP: f64 = 20.0;

/// The picture.
pub fn picture(tree: &Tree) -> Svg {
    let blocks = tree.blocks().max(1);
    let all_steps: u64 = tree.grids.iter().map(|grid| grid.steps.iter().product::<u64>()).sum();
    let in_block = tree.grids.iter().map(|g| g.block * g.steps[g.cut + 1..].iter().product::<u64>()).max().unwrap_or(1);
    let in_block = if blocks == 1 { all_steps } else { in_block.min(all_steps) };
    // The last block has what its walk leaves.
    let in_last = tree.grids.last().filter(|_| blocks > 1).map_or(in_block, |g| {
        (g.steps[g.cut].saturating_sub(1) % g.block.max(1) + 1) * g.steps[g.cut + 1..].iter().product::<u64>()
    });
    // Of more blocks than are drawn, the first two and the last.
    let shown = if blocks > BLOCKS { BLOCKS - 1 } else { blocks };
    let lanes = tree.lanes.min(if shown > 1 { LANES_OF_BLOCKS } else { LANES });
    let steps = in_block.min(STEPS);
    let folds = tree.lanes.max(1).ilog2();
    let merges = if blocks > 1 { blocks.next_power_of_two().ilog2() } else { 0 };
    let block_width = CELL * lanes as f64 + if tree.lanes > lanes { 20.0 } else { 0.0 };
    let width = (64.0 + shown as f64 * (block_width + GAP)).max(400.0);
    let top = 52.0;
    let grid_height = CELL * steps as f64 + if in_block > STEPS { 20.0 } else { 0.0 };
    let merge_top = top + grid_height + 12.0;
    let merge_height = if merges > 0 { 74.0 } else { 0.0 };
    let fold_top = merge_top + merge_height + 30.0;
    let fold_height = 22.0 * f64::from(folds.min(8) + 1);
    let mut svg = Svg::fitting(width, fold_top + fold_height + 4.0);
    let several = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let (lanes_all, steps_all) = (several(tree.lanes, "lane"), several(all_steps, "step"));
    svg.words(
        (4.0, 16.0),
        "start",
        "",
        &format!("{lanes_all} across, {steps_all} down, in {}", several(blocks, "block")),
    );
    let lefts: Vec<f64> = (0..shown).map(|b| 60.0 + b as f64 * (block_width + GAP)).collect();
    for (number, &left) in lefts.iter().enumerate() {
        let (is_last, is_cut) = (number as u64 + 1 == shown, blocks > shown);
        let in_this = if is_last { in_last } else { in_block };
        let last = is_last && is_cut;
        let name = if last { format!("block {}", blocks - 1) } else { format!("block {number}") };
        svg.words((left, top - 8.0), "start", "small", &name);
        for step in 0..steps.min(in_this) {
            for lane in 0..lanes {
                let at = (left + lane as f64 * CELL, top + step as f64 * CELL);
                svg.rect(at, (CELL - 3.0, CELL - 3.0), if lane % 2 == 0 { "blue" } else { "sky" });
            }
            if tree.lanes > lanes {
                svg.words((left + lanes as f64 * CELL + 4.0, top + step as f64 * CELL + 14.0), "start", "mute", "…");
            }
        }
        if in_this > STEPS {
            let more = format!("… {} more down", in_this - STEPS);
            svg.words((left, top + steps as f64 * CELL + 12.0), "start", "small mute", &more);
        }
        if last {
            svg.words((left - GAP / 2.0, top - 8.0), "middle", "mute", "…");
        }
    }
    let middle = |left: f64| left + CELL * lanes as f64 / 2.0;
    svg.words((54.0, top + 14.0), "end", "small mute", "step 0");
    if merges > 0 {
        // Neighbours merge, then pairs of them.
        let mut tops: Vec<f64> = lefts.iter().map(|&left| middle(left)).collect();
        let levels = (tops.len() as f64).log2().ceil().max(1.0);
        let (mut y, height) = (merge_top, 50.0 / levels);
        while tops.len() > 1 {
            let pairs: Vec<f64> = tops.chunks(2).map(|pair| pair.iter().sum::<f64>() / pair.len() as f64).collect();
            for (number, &x) in tops.iter().enumerate() {
                svg.line(&[(x, y), (pairs[number / 2], y + height)], "green", false);
            }
            (tops, y) = (pairs, y + height);
        }
        svg.words(
            (4.0, merge_top + 68.0),
            "start",
            "mute",
            &format!("blocks merge in pairs, {} deep", several(merges.into(), "level")),
        );
    }
    svg.words((4.0, fold_top - 10.0), "start", "mute", "lanes fold, half onto half:");
    let widest = 180.0;
    let centre = 4.0 + widest / 2.0;
    for level in 0..=folds.min(8) {
        let left = tree.lanes >> level;
        let bar = (widest / f64::from(1u32 << level)).max(5.0);
        let y = fold_top + 22.0 * f64::from(level);
        svg.rect((centre - bar / 2.0, y), (bar, 16.0), if left == 1 { "orange" } else { "green" });
        let words = match left {
            1 => "1: `finish` makes it the result".to_string(),
            lanes => format!("{lanes} lanes"),
        };
        svg.words((centre + bar / 2.0 + 8.0, y + 13.0), "start", "mute", &words);
    }
    svg
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranefold::{Problem, Spec};

    /// The blocks of the picture have the steps of the tree, the last one what is left.
    #[test]
    fn the_last_block_has_the_rest() {
        let drawn = |text: &str| {
            let spec: Spec = text.parse().expect("a spec");
            let problem = Problem::of(&spec);
            let computation = problem.computation_in(cranefold::Schedule::default().form).expect("a computation");
            let group = &computation.stages[0].groups[0];
            picture(&Tree::of(&problem.walks[group.walk], &group.reducer.method)).file("")
        };
        // 15,625 steps are 244 blocks of 64 and 9.
        let text = drawn("sum f32[1000000]");
        assert!(text.contains("64 lanes across, 15625 steps down, in 245 blocks"), "{text}");
        assert_eq!((text.matches("60 more down").count(), text.matches("… 5 more down").count()), (2, 1), "{text}");
        let text = drawn("sum f32[1024,1024] axes=[1]");
        assert!(text.contains("16 steps down, in 1 block") && text.contains("12 more down"), "{text}");
    }
}
