//! The cuts of an axis that make the blocks of all operands whole.

/// A piece of an axis, whose positions have digits, each with its own stride in every operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The first position.
    pub start: u64,
    /// For each digit the number of its values and the positions between neighbouring ones; outermost first.
    pub digits: Vec<(u64, u64)>,
}

/// The block sizes that cut an axis of this extent, smallest first, each once.
pub fn cutting(extent: u64, sizes: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut cutting: Vec<u64> = sizes.filter(|&size| size < extent).collect();
    cutting.sort_unstable();
    cutting.dedup();
    cutting
}

/// Returns true if each size is a multiple of the one before.
fn divide(sizes: &[u64]) -> bool {
    sizes.windows(2).all(|pair| pair[1].is_multiple_of(pair[0]))
}

/// The most pieces that an axis may have.
pub fn most_pieces(extent: u64, sizes: &[u64]) -> u64 {
    match divide(sizes) {
        true => sizes.len() as u64 + 1,
        false => sizes.iter().map(|size| (extent - 1) / size).fold(1, u64::saturating_add),
    }
}

/// The pieces of the positions from `low` to before `high`, in order.
///
/// If sizes divide one another: the positions before the first whole block of the largest size, the whole blocks,
/// and the positions after them; the first and the last part are cut by the smaller sizes in the same way. Else each
/// piece ends at the end of a block of any size.
///
/// ```text
/// 0..40 in 4, 16  ->  0: 2 of 16, 4 of 4, 4 of 1      32: 2 of 4, 4 of 1
/// 0..24 in 8, 12  ->  0: 8 of 1      8: 4 of 1      12: 4 of 1      16: 8 of 1
/// ```
pub fn split(low: u64, high: u64, sizes: &[u64]) -> Vec<Piece> {
    if divide(sizes) { nested(low, high, sizes) } else { crossing(low, high, sizes) }
}

fn plain(low: u64, high: u64) -> Option<Piece> {
    (low < high).then(|| Piece { start: low, digits: vec![(high - low, 1)] })
}

fn crossing(low: u64, high: u64, sizes: &[u64]) -> Vec<Piece> {
    let mut pieces = vec![];
    let mut start = low;
    while start < high {
        let ends = sizes.iter().map(|&size| (start / size + 1) * size);
        let end = ends.min().unwrap_or(high).min(high);
        pieces.extend(plain(start, end));
        start = end;
    }
    pieces
}

fn nested(low: u64, high: u64, sizes: &[u64]) -> Vec<Piece> {
    let Some((&size, smaller)) = sizes.split_last() else { return plain(low, high).into_iter().collect() };
    let (first, last) = (low.next_multiple_of(size), high / size * size);
    if first > last {
        return nested(low, high, smaller);
    }
    let mut pieces = nested(low, first, smaller);
    if first < last {
        let mut digits = vec![((last - first) / size, size)];
        digits.extend((0..smaller.len()).rev().map(|n| (sizes[n + 1] / sizes[n], sizes[n])));
        digits.push((sizes[0], 1));
        pieces.push(Piece { start: first, digits });
    }
    pieces.extend(nested(last, high, smaller));
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(low: u64, high: u64, sizes: &[u64]) -> Vec<String> {
        let digits = |piece: &Piece| piece.digits.iter().map(|(n, by)| format!("{n}*{by}")).collect::<Vec<_>>();
        split(low, high, sizes).iter().map(|piece| format!("{}: {}", piece.start, digits(piece).join(" "))).collect()
    }

    #[test]
    fn pieces_are_whole_blocks_and_what_is_left() {
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
    fn blocks_that_cross_are_cut_at_every_end() {
        assert_eq!(text(0, 24, &[12, 16]), ["0: 12*1", "12: 4*1", "16: 8*1"]);
        assert_eq!(text(5, 20, &[4, 6]), ["5: 1*1", "6: 2*1", "8: 4*1", "12: 4*1", "16: 2*1", "18: 2*1"]);
        assert_eq!(most_pieces(24, &[12, 16]), 3);
        assert_eq!(most_pieces(u64::MAX, &[2, 3]), (u64::MAX - 1) / 2 + (u64::MAX - 1) / 3 + 1);
    }

    #[test]
    fn every_position_is_in_one_piece() {
        for sizes in [vec![], vec![3], vec![2, 8], vec![4, 8, 32], vec![3, 4], vec![2, 6, 9]] {
            for high in 0..70 {
                let mut found = vec![];
                let pieces = split(5.min(high), high, &sizes);
                assert!(high <= 5 || pieces.len() as u64 <= most_pieces(high, &sizes) + sizes.len() as u64);
                for piece in pieces {
                    let mut at = vec![piece.start];
                    for (extent, by) in piece.digits {
                        at = at.iter().flat_map(|&p| (0..extent).map(move |d| p + d * by)).collect();
                    }
                    found.extend(at);
                }
                assert_eq!(found, (5.min(high)..high).collect::<Vec<_>>(), "{sizes:?} to {high}");
            }
        }
    }

    #[test]
    fn sizes_that_cut() {
        assert_eq!(cutting(100, [16, 4, 16].into_iter()), [4, 16]);
        assert_eq!(cutting(16, [16, 4].into_iter()), [4]);
        assert_eq!(cutting(12, [16, 12].into_iter()), [0; 0]);
    }
}
