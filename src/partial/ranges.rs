//! Ranges of blocks: their subtrees, and their division into shards.

use std::ops::Range;

/// The largest aligned subtrees in a range of blocks, in order: each has 2^q blocks and begins at a multiple of 2^q.
/// Their sizes go up and then down.
///
/// ```
/// let subtrees: Vec<_> = cranefold::partial::subtrees(3..10).collect();
/// assert_eq!(subtrees, [3..4, 4..8, 8..10]);
/// ```
pub fn subtrees(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let mut start = range.start;
    std::iter::from_fn(move || {
        let left = range.end.checked_sub(start).filter(|&left| left > 0)?;
        let subtree = start..start + (1 << start.trailing_zeros().min(left.ilog2()));
        start = subtree.end;
        Some(subtree)
    })
}

/// Returns true if two adjacent subtrees are the halves of one.
pub fn are_halves(older: &Range<u64>, newer: &Range<u64>) -> bool {
    let each = older.end - older.start;
    older.end == newer.start && newer.end - newer.start == each && older.start.is_multiple_of(2 * each)
}

/// The most subtrees of any range of `blocks` blocks.
pub fn most_subtrees(blocks: u64) -> u64 {
    let Some(levels) = blocks.checked_ilog2().map(u64::from) else { return 0 };
    // The worst range begins at block 1 or later, goes up to a block of a high power of two, and then down to the last
    // blocks.
    let down = u64::from((blocks - (1 << levels) + 1).ilog2());
    (levels + down).max((2 * levels).saturating_sub(2)).max(1)
}

/// The `count` ranges, nearly even, that together are `blocks` blocks in order; some are empty if there are fewer
/// blocks. They begin at multiples of a power of two if that costs little, so that their subtrees are few and alike.
pub fn shards(blocks: u64, count: u64) -> impl Iterator<Item = Range<u64>> {
    let unit = 1 << (blocks / count.max(1) / 16).max(1).ilog2();
    let units = u128::from(blocks.div_ceil(unit));
    let bound = move |i: u64| ((units * u128::from(i) / u128::from(count)) as u64).saturating_mul(unit).min(blocks);
    (0..count).map(move |i| bound(i)..bound(i + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subtrees_are_those_of_the_merges() {
        for blocks in 0..130u64 {
            let sizes: Vec<u32> = subtrees(0..blocks).map(|s| (s.end - s.start).ilog2()).collect();
            let levels: Vec<u32> = cranefold_ir::tree::levels(blocks).collect();
            assert!(sizes.iter().rev().eq(&levels), "{blocks}");
        }
    }

    #[test]
    fn most_subtrees_of_any_range() {
        for blocks in 0..140u64 {
            let ranges = (0..=blocks).flat_map(|start| (start..=blocks).map(move |end| start..end));
            let most = ranges.map(|range| subtrees(range).count() as u64).max();
            assert_eq!(Some(most_subtrees(blocks)), most, "{blocks}");
        }
        assert_eq!(most_subtrees(u64::MAX), 126);
    }

    #[test]
    fn subtrees_of_a_range_are_largest() {
        for (start, end) in (0..40u64).flat_map(|start| (start..70).map(move |end| (start, end))) {
            let all: Vec<Range<u64>> = subtrees(start..end).collect();
            assert!(all.windows(2).all(|pair| pair[0].end == pair[1].start && !are_halves(&pair[0], &pair[1])));
            assert!(all.iter().all(|s| s.start.is_multiple_of(s.end - s.start)));
            assert_eq!(all.iter().map(|s| s.end - s.start).sum::<u64>(), end - start);
        }
    }

    #[test]
    fn shards_are_all_blocks_nearly_evenly() {
        for (blocks, count) in
            [(0, 3), (1, 3), (7, 3), (100, 7), (16384, 4), (16385, 4), (1 << 60, 1000), (u64::MAX, 3)]
        {
            let all: Vec<Range<u64>> = shards(blocks, count).collect();
            assert_eq!((all.len() as u64, all[0].start, all[all.len() - 1].end), (count, 0, blocks));
            assert!(all.windows(2).all(|pair| pair[0].end == pair[1].start && pair[0].start <= pair[0].end));
            let fair = blocks / count;
            assert!(
                all.iter().all(|s| (s.end - s.start).abs_diff(fair) <= fair / 8 + 1),
                "{blocks} in {count}: {all:?}"
            );
        }
        assert_eq!(shards(7, 0).count(), 0);
    }
}
