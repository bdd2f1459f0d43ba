//! Where an axis is cut for the blocks of all operands to be whole.

/// A part of an axis: positions that are as many digits, each with its own stride in every operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The first position.
    pub start: u64,
    /// How many values each digit has, and how many positions lie between neighbouring ones; outermost first.
    pub digits: Vec<(u64, u64)>,
}

/// The block sizes, smallest first, each once, of those that cut an axis of this extent.
///
/// # Errors
/// Two sizes of which the smaller does not divide the larger.
pub(crate) fn chain(extent: u64, sizes: impl Iterator<Item = u64>) -> Result<Vec<u64>, (u64, u64)> {
    let mut chain: Vec<u64> = sizes.filter(|&size| size < extent).collect();
    chain.sort_unstable();
    chain.dedup();
    match chain.windows(2).find(|pair| !pair[1].is_multiple_of(pair[0])) {
        Some(pair) => Err((pair[0], pair[1])),
        None => Ok(chain),
    }
}

/// The runs of positions from `low` to before `high`, in order: first what lies before the first whole block of
/// the largest size, then the whole ones, then what is left, both cut by the smaller sizes in the same way.
///
/// ```text
/// 0..40 in 4, 16  ->  0: 2 of 16, 4 of 4, 4 of 1      32: 2 of 4, 4 of 1
/// ```
pub(crate) fn split(low: u64, high: u64, chain: &[u64]) -> Vec<Run> {
    let Some((&size, smaller)) = chain.split_last() else {
        let whole = Run { start: low, digits: vec![(high - low, 1)] };
        return if low < high { vec![whole] } else { vec![] };
    };
    let (first, last) = (low.next_multiple_of(size), high / size * size);
    if first > last {
        return split(low, high, smaller);
    }
    let mut runs = split(low, first, smaller);
    if first < last {
        let mut digits = vec![((last - first) / size, size)];
        digits.extend((0..smaller.len()).rev().map(|n| (chain[n + 1] / chain[n], chain[n])));
        digits.push((chain[0], 1));
        runs.push(Run { start: first, digits });
    }
    runs.extend(split(last, high, smaller));
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_whole_blocks_and_what_is_left() {
        let text = |low, high, chain: &[u64]| {
            let digits = |run: &Run| run.digits.iter().map(|(n, by)| format!("{n}*{by}")).collect::<Vec<_>>().join(" ");
            split(low, high, chain).iter().map(|run| format!("{}: {}", run.start, digits(run))).collect::<Vec<_>>()
        };
        assert_eq!(text(0, 7, &[]), ["0: 7*1"]);
        assert_eq!(text(0, 0, &[4]), [""; 0]);
        assert_eq!(text(0, 32, &[16]), ["0: 2*16 16*1"]);
        assert_eq!(text(0, 37, &[16]), ["0: 2*16 16*1", "32: 5*1"]);
        assert_eq!(text(0, 47, &[4, 16]), ["0: 2*16 4*4 4*1", "32: 3*4 4*1", "44: 3*1"]);
        assert_eq!(text(17, 32, &[16]), ["17: 15*1"]);
        assert_eq!(text(17, 32, &[4, 16]), ["17: 3*1", "20: 3*4 4*1"]);
        assert_eq!(text(3, 40, &[16]), ["3: 13*1", "16: 1*16 16*1", "32: 8*1"]);
        assert_eq!(text(10, 20, &[16]), ["10: 6*1", "16: 4*1"]);
    }

    #[test]
    fn every_position_is_in_one_run() {
        for chain in [vec![], vec![3], vec![2, 8], vec![4, 8, 32]] {
            for high in 0..70 {
                let mut found = vec![];
                for run in split(5.min(high), high, &chain) {
                    let mut at = vec![run.start];
                    for (extent, by) in run.digits {
                        at = at.iter().flat_map(|&p| (0..extent).map(move |d| p + d * by)).collect();
                    }
                    found.extend(at);
                }
                assert_eq!(found, (5.min(high)..high).collect::<Vec<_>>(), "{chain:?} to {high}");
            }
        }
    }

    #[test]
    fn sizes_divide_one_another() {
        assert_eq!(chain(100, [16, 4, 16].into_iter()), Ok(vec![4, 16]));
        assert_eq!(chain(16, [16, 4].into_iter()), Ok(vec![4]));
        assert_eq!(chain(100, [16, 12].into_iter()), Err((12, 16)));
        assert_eq!(chain(12, [16, 12].into_iter()), Ok(vec![]));
    }
}
