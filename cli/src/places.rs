//! Walks over the elements of one operand.

use cranefold::layout::Placement;
use cranefold::spec::Operand;

/// The indices in the buffer of elements, one after another in the order of their indices along the axes.
#[derive(Clone, Debug)]
pub struct Places<'a> {
    placement: &'a Placement,
    /// The axes from the slowest to the fastest.
    order: Vec<usize>,
    /// The indices of the first element.
    first: Vec<u64>,
    /// How many elements are walked along each axis.
    extents: Vec<u64>,
    /// The next element, counted from the first.
    at: Vec<u64>,
    /// Where the next element would lie if its index along the fastest axis were 0.
    row: i64,
    left: u64,
}

impl<'a> Places<'a> {
    /// All elements of an operand, in row-major order.
    pub fn of(operand: &'a Operand) -> Places<'a> {
        Places::within(operand.placement(), &vec![0; operand.shape().len()], operand.shape())
    }

    /// So many elements along each axis, the one with the indices `first` first, in row-major order.
    pub fn within(placement: &'a Placement, first: &[u64], extents: &[u64]) -> Places<'a> {
        let rank = extents.len();
        let left = if extents.contains(&0) { 0 } else { extents.iter().product() };
        let (first, extents, at) = (first.to_vec(), extents.to_vec(), vec![0; rank]);
        Places { placement, order: (0..rank).collect(), first, extents, at, row: 0, left }.in_new_row()
    }

    /// The same with axis 0 fastest.
    pub fn column_major(mut self) -> Places<'a> {
        self.order.reverse();
        self.in_new_row()
    }

    fn in_new_row(mut self) -> Places<'a> {
        self.row = self.start_of_row();
        self
    }

    fn start_of_row(&self) -> i64 {
        let slower = &self.order[..self.order.len().saturating_sub(1)];
        let along = slower.iter().map(|&axis| self.placement.along(axis, self.first[axis] + self.at[axis]));
        along.fold(self.placement.origin as i64, i64::wrapping_add)
    }
}

impl Iterator for Places<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        let Some((&fastest, slower)) = self.order.split_last() else { return Some(self.row as usize) };
        let along = self.placement.along(fastest, self.first[fastest] + self.at[fastest]);
        let place = self.row.wrapping_add(along) as usize;
        self.at[fastest] += 1;
        if self.at[fastest] == self.extents[fastest] {
            self.at[fastest] = 0;
            for &axis in slower.iter().rev() {
                self.at[axis] += 1;
                if self.at[axis] < self.extents[axis] {
                    break;
                }
                self.at[axis] = 0;
            }
            self.row = self.start_of_row();
        }
        Some(place)
    }
}

/// The indices in the buffer of an operand's padding.
pub fn padding(operand: &Operand) -> impl Iterator<Item = usize> + '_ {
    let (placement, shape) = (operand.placement(), operand.shape());
    let blocked = !placement.blocks.is_empty() && placement.padded != shape;
    let mut places = blocked.then(|| Places::within(placement, &vec![0; shape.len()], &placement.padded));
    std::iter::from_fn(move || {
        let places = places.as_mut()?;
        loop {
            let outside = places.at.iter().zip(shape).any(|(i, extent)| i >= extent);
            let place = places.next()?;
            if outside {
                return Some(place);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranefold::{Layout, Reduction};

    fn places(layout: Layout, first: &[u64], extents: &[u64]) -> Vec<usize> {
        let whole: Vec<u64> = first.iter().zip(extents).map(|(first, extent)| first + extent).collect();
        let placement = layout.resolve(&whole, 4).unwrap();
        let all: Vec<usize> = Places::within(&placement, first, extents).collect();
        let mut columns: Vec<usize> = Places::within(&placement, first, extents).column_major().collect();
        let mut sorted = all.clone();
        columns.sort_unstable();
        sorted.sort_unstable();
        assert_eq!(columns, sorted, "the same in another order");
        all
    }

    #[test]
    fn walks_go_in_row_major_order() {
        assert_eq!(places(Layout::row_major().offset(7), &[], &[]), [7]);
        assert_eq!(places(Layout::row_major(), &[0, 0], &[0, 3]), [0; 0]);
        assert_eq!(places(Layout::strides([1, -2]), &[0, 0], &[2, 2]), [2, 0, 3, 1]);
        assert_eq!(places(Layout::strides([0, i64::MIN]), &[0, 0], &[2, 1]), [0, 0]);
        assert_eq!(places(Layout::tag("bA2a").unwrap(), &[0, 0], &[3, 2]), [0, 4, 1, 5, 2, 6]);
        assert_eq!(places(Layout::tag("aB2b").unwrap().offset(1), &[1, 1], &[2, 2]), [6, 7, 10, 11]);
        let columns = Layout::row_major().resolve(&[2, 3], 4).unwrap();
        assert_eq!(Places::within(&columns, &[0, 0], &[2, 3]).column_major().collect::<Vec<_>>(), [0, 3, 1, 4, 2, 5]);
    }

    #[test]
    fn padding_is_what_no_element_has() {
        let padding_of = |text: &str| padding(&text.parse::<Reduction>().unwrap().inputs()[0]).collect::<Vec<_>>();
        assert_eq!(padding_of("sum f32[2,3]"), [0; 0]);
        assert_eq!(padding_of("sum f32[2,3]@(7,2)"), [0; 0]);
        assert_eq!(padding_of("sum f32[2,4]@aB2b"), [0; 0]);
        assert_eq!(padding_of("sum f32[0,3]@aB2b"), [0; 0]);
        assert_eq!(padding_of("sum f32[2,3]@aB2b+1"), [4, 8]);
        assert_eq!(padding_of("sum f32[2,3]@(10,2)2b"), [3, 13]);
        assert_eq!(padding_of("sum f32[1,1]@AB2a2b"), [1, 2, 3]);
    }
}
