//! The loop that each instruction belongs to, for the disassembly.

/// The begin or the end of a loop's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The begin of the loop with this number.
    Enter(u32),
    /// The end of the innermost open loop.
    Leave,
}

/// The marks of code in pieces: `pieces` has the end of each and its innermost loop, in order; code between
/// two pieces belongs to the second. `around` has for each loop the one around it.
pub fn marks(pieces: impl Iterator<Item = (usize, Option<u32>)>, around: &[Option<u32>]) -> Vec<(usize, Mark)> {
    let loops_around = |innermost: Option<u32>| {
        let mut loops: Vec<u32> = std::iter::successors(innermost, |&n| around[n as usize]).collect();
        loops.reverse();
        loops
    };
    let (mut out, mut open, mut start) = (vec![], vec![], 0);
    for (end, innermost) in pieces {
        let loops = loops_around(innermost);
        let common = loops.iter().zip(&open).take_while(|(a, b)| a == b).count();
        out.extend(open[common..].iter().map(|_| (start, Mark::Leave)));
        out.extend(loops[common..].iter().map(|&n| (start, Mark::Enter(n))));
        (open, start) = (loops, end);
    }
    out.extend(open.iter().map(|_| (start, Mark::Leave)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_left_for_others_are_entered_again() {
        use Mark::{Enter, Leave};
        let around = [None, Some(0), None];
        let pieces = [(4, Some(1)), (8, Some(2)), (9, Some(2)), (12, Some(1))];
        let expected = [
            (0, Enter(0)),
            (0, Enter(1)),
            (4, Leave),
            (4, Leave),
            (4, Enter(2)),
            (9, Leave),
            (9, Enter(0)),
            (9, Enter(1)),
            (12, Leave),
            (12, Leave),
        ];
        assert_eq!(marks(pieces.into_iter(), &around), expected);
    }
}
