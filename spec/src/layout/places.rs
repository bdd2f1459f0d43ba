//! Walks over the elements of one operand.

use super::Placement;

/// The indices in the buffer of elements, one after another in the order of their indices along the axes.
///
/// ```
/// use cranefold_spec::Layout;
///
/// let placement = Layout::tag("aB2b")?.resolve(&[2, 3], 4)?;
/// assert_eq!(placement.places(&[2, 3]).collect::<Vec<_>>(), [0, 1, 2, 4, 5, 6]);
/// assert_eq!(placement.places(&[2, 3]).column_major().collect::<Vec<_>>(), [0, 4, 1, 5, 2, 6]);
/// # Ok::<(), cranefold_spec::layout::LayoutError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Places<'a> {
    placement: &'a Placement,
    /// The axes from the slowest to the fastest.
    order: Vec<usize>,
    /// The indices of the first element.
    first: Vec<u64>,
    /// The number of elements to walk along each axis.
    extents: Vec<u64>,
    /// The next element, counted from the first.
    at: Vec<u64>,
    /// The place of the next element if its index along the fastest axis were 0.
    row: i64,
    left: u64,
}

impl Placement {
    /// The places of the elements with indices below these extents, in row-major order.
    ///
    /// # Panics
    /// If there are more extents than axes.
    pub fn places(&self, extents: &[u64]) -> Places<'_> {
        self.places_from(&vec![0; extents.len()], extents)
    }

    /// The places of so many elements along each axis, the one with the indices `first` first, in row-major order.
    ///
    /// # Panics
    /// If there are not as many indices as extents, or more than axes.
    pub fn places_from(&self, first: &[u64], extents: &[u64]) -> Places<'_> {
        let rank = extents.len();
        let left = if extents.contains(&0) { 0 } else { extents.iter().fold(1, |n: u64, &e| n.saturating_mul(e)) };
        let (first, extents, at) = (first.to_vec(), extents.to_vec(), vec![0; rank]);
        Places { placement: self, order: (0..rank).collect(), first, extents, at, row: 0, left }.in_new_row()
    }

    /// The places of the padding around the elements of this shape.
    ///
    /// # Panics
    /// If there are more extents than axes.
    pub fn padding<'a>(&'a self, shape: &'a [u64]) -> impl Iterator<Item = usize> + 'a {
        let mut places = (self.padded != shape).then(|| self.places(&self.padded));
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
}

impl<'a> Places<'a> {
    /// The same places with axis 0 fastest.
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

#[cfg(test)]
mod tests {
    use crate::layout::Layout;

    fn places(layout: Layout, first: &[u64], extents: &[u64]) -> Vec<usize> {
        let whole: Vec<u64> = first.iter().zip(extents).map(|(first, extent)| first + extent).collect();
        let placement = layout.resolve(&whole, 4).unwrap();
        let all: Vec<usize> = placement.places_from(first, extents).collect();
        let mut columns: Vec<usize> = placement.places_from(first, extents).column_major().collect();
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
        assert_eq!(columns.places(&[2, 3]).column_major().collect::<Vec<_>>(), [0, 3, 1, 4, 2, 5]);
    }

    #[test]
    fn padding_is_what_no_element_has() {
        let padding_of =
            |layout: Layout, shape: &[u64]| layout.resolve(shape, 4).unwrap().padding(shape).collect::<Vec<_>>();
        let tag = |tag: &str| Layout::tag(tag).unwrap();
        assert_eq!(padding_of(Layout::row_major(), &[2, 3]), [0; 0]);
        assert_eq!(padding_of(Layout::strides([7, 2]), &[2, 3]), [0; 0]);
        assert_eq!(padding_of(tag("aB2b"), &[2, 4]), [0; 0]);
        assert_eq!(padding_of(tag("aB2b"), &[0, 3]), [0; 0]);
        assert_eq!(padding_of(tag("aB2b").offset(1), &[2, 3]), [4, 8]);
        assert_eq!(padding_of(Layout::blocked_strides([10, 2], "2b").unwrap(), &[2, 3]), [3, 13]);
        assert_eq!(padding_of(tag("AB2a2b"), &[1, 1]), [1, 2, 3]);
    }
}
