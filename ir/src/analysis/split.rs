//! The block and the element that an index names.

use crate::{Index, LoopVar};

/// The block and the element in it that an index of an accumulator names, for blocks of `elems` elements; `of_blocks`
/// returns true for the variables that count blocks.
///
/// `index = elems * block + element`, always: a term whose coefficient is no multiple of `elems` belongs to the
/// element, and the constant of the element is from 0 to `elems - 1`. The element is within its block where its other
/// terms are.
///
/// ```
/// use cranefold_ir::analysis::split_block;
/// use cranefold_ir::{Index, LoopVar, Over};
///
/// let (b, e) = (LoopVar { over: Over::Block, id: 0 }, LoopVar { over: Over::Element, id: 1 });
/// let index = Index::term(b, 128).plus(e, 1).offset_by(70);
/// let (block, element) = split_block(&index, 64, |var| var.over == Over::Block);
/// assert_eq!(block, Index::term(b, 2).offset_by(1));
/// assert_eq!(element, Index::term(e, 1).offset_by(6));
/// ```
pub fn split_block(index: &Index, elems: u64, of_blocks: impl Fn(LoopVar) -> bool) -> (Index, Index) {
    let elems = elems as i64;
    let mut block = Index::constant(index.offset.div_euclid(elems));
    let mut element = Index::constant(index.offset.rem_euclid(elems));
    for (var, c) in index.terms() {
        match of_blocks(var) && c % elems == 0 {
            true => block = block.plus(var, c / elems),
            false => element = element.plus(var, c),
        }
    }
    (block, element)
}

/// The terms of the variables for which `first` holds, and the other terms with the constant. Their sum is the index.
pub fn partition(index: &Index, first: impl Fn(LoopVar) -> bool) -> (Index, Index) {
    let (mut of_first, mut rest) = (Index::default(), Index::constant(index.offset));
    for (var, c) in index.terms() {
        match first(var) {
            true => of_first = of_first.plus(var, c),
            false => rest = rest.plus(var, c),
        }
    }
    (of_first, rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Over;
    use proptest::prelude::*;

    const VARS: [Over; 4] = [Over::Block, Over::Output, Over::Element, Over::Block];

    fn var(n: usize) -> LoopVar {
        LoopVar { over: VARS[n], id: n as u32 }
    }

    proptest! {
        #[test]
        fn both_parts_make_the_index(
            elems in 1u64..70,
            offset in -200i64..200,
            coefficients in prop::array::uniform4(-200i64..200),
        ) {
            let index = (0..4).fold(Index::constant(offset), |i, n| i.plus(var(n), coefficients[n]));
            let (block, element) = split_block(&index, elems, |v| v.over == Over::Block);
            prop_assert_eq!(block.times(elems as i64).add(&element), index.clone());
            prop_assert!((0..elems as i64).contains(&element.offset));
            let (first, rest) = partition(&index, |v| v.over == Over::Output);
            prop_assert!(first.terms().all(|(v, _)| v.over == Over::Output) && first.offset == 0);
            prop_assert_eq!(first.add(&rest), index);
        }
    }
}
