//! Walks over two arrays of one shape and different strides.

/// Where the elements of an array lie in its buffer, in elements.
#[derive(Clone, Copy, Debug)]
pub struct Placed<'a> {
    /// Elements between neighbours along each axis.
    pub strides: &'a [i64],
    /// The index of the element whose indices are all 0.
    pub origin: u64,
}

impl<'a> Placed<'a> {
    /// An operand's elements.
    pub fn of(operand: &'a cranefold::spec::Operand) -> Placed<'a> {
        Placed { strides: operand.strides(), origin: operand.origin() }
    }

    /// The index of the element with these indices.
    pub fn index(&self, at: &[u64]) -> i64 {
        let steps = at.iter().zip(self.strides).map(|(&i, &stride)| i128::from(i) * i128::from(stride));
        (i128::from(self.origin) + steps.sum::<i128>()) as i64
    }
}

/// The row-major strides of a shape.
pub fn row_major(shape: &[u64]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis].max(1) as i64;
    }
    strides
}

/// Calls `with` on the indices in both arrays of each element of the shape, in row-major order.
///
/// # Errors
/// The first that `with` gives.
pub fn walk<E>(
    shape: &[u64],
    left: Placed,
    right: Placed,
    mut with: impl FnMut(usize, usize) -> Result<(), E>,
) -> Result<(), E> {
    if shape.contains(&0) {
        return Ok(());
    }
    let inner = shape.last().copied().unwrap_or(1);
    let step = |placed: Placed| placed.strides.last().copied().unwrap_or(0);
    let (left_step, right_step) = (step(left), step(right));
    let mut at = vec![0; shape.len()];
    loop {
        let (mut l, mut r) = (left.index(&at), right.index(&at));
        for _ in 0..inner {
            with(l as usize, r as usize)?;
            // A step past the last element may wrap; it is not used.
            (l, r) = (l.wrapping_add(left_step), r.wrapping_add(right_step));
        }
        let outer = shape.len().saturating_sub(1);
        let Some(axis) = (0..outer).rev().find(|&axis| at[axis] + 1 < shape[axis]) else { return Ok(()) };
        at[axis] += 1;
        at[axis + 1..].fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(shape: &[u64], left: (&[i64], u64), right: (&[i64], u64)) -> Vec<(usize, usize)> {
        let placed = |(strides, origin)| Placed { strides, origin };
        let mut pairs = vec![];
        let done: Result<(), ()> = walk(shape, placed(left), placed(right), |l, r| {
            pairs.push((l, r));
            Ok(())
        });
        assert_eq!(done, Ok(()));
        pairs
    }

    #[test]
    fn walks_go_in_row_major_order() {
        assert_eq!(row_major(&[2, 3, 4]), [12, 4, 1]);
        assert_eq!(pairs(&[], (&[], 0), (&[], 7)), [(0, 7)]);
        assert_eq!(pairs(&[0, 3], (&[3, 1], 0), (&[3, 1], 0)), []);
        assert_eq!(pairs(&[2, 2], (&[2, 1], 0), (&[1, -2], 2)), [(0, 2), (1, 0), (2, 3), (3, 1)]);
        assert_eq!(pairs(&[2, 1], (&[1, i64::MAX], 0), (&[0, i64::MIN], 3)), [(0, 3), (1, 3)]);
    }
}
