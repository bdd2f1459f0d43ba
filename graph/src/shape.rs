//! Shapes: counts, broadcasting, axes.

use cranefold_spec::MAX_RANK;

/// The most elements of a value.
pub const MAX_ELEMENTS: u64 = 1 << 60;

/// The number of elements of a shape.
pub(crate) fn elements(shape: &[u64]) -> Result<u64, String> {
    if shape.len() > MAX_RANK {
        return Err(format!("rank {}, and the limit is {MAX_RANK}", shape.len()));
    }
    // An extent of 0 does not excuse the others: strides are products of them.
    let product = |all: u64, &e: &u64| all.checked_mul(e.max(1)).filter(|&n| n <= MAX_ELEMENTS);
    let most = shape.iter().try_fold(1, product);
    most.ok_or_else(|| format!("shape {} has more than {MAX_ELEMENTS} elements", shown(shape)))?;
    Ok(shape.iter().product())
}

/// The shape to which shapes broadcast, right-aligned as in NumPy.
pub(crate) fn broadcast(shapes: &[&[u64]]) -> Result<Vec<u64>, String> {
    let rank = shapes.iter().map(|s| s.len()).max().unwrap_or(0);
    let mut result = vec![1; rank];
    for shape in shapes {
        for (to, &extent) in result[rank - shape.len()..].iter_mut().zip(*shape) {
            match (*to, extent) {
                (_, 1) => {}
                (1, e) => *to = e,
                (a, b) if a == b => {}
                _ => {
                    let all: Vec<String> = shapes.iter().map(|s| shown(s)).collect();
                    return Err(format!("shapes {} do not broadcast", all.join(", ")));
                }
            }
        }
    }
    Ok(result)
}

/// A shape in brackets, as texts have it.
pub(crate) fn shown(shape: &[u64]) -> String {
    let extents: Vec<String> = shape.iter().map(u64::to_string).collect();
    format!("[{}]", extents.join(","))
}

/// The axes in ascending order, negative ones counted from the end.
///
/// ```
/// assert_eq!(cranefold_graph::resolve_axes(&[-1, 0], 3), Ok(vec![0, 2]));
/// assert_eq!(cranefold_graph::resolve_axes(&[3], 3), Err("axis 3 is out of range for rank 3".into()));
/// ```
///
/// # Errors
/// If an axis is out of range or named twice.
pub fn resolve_axes(axes: &[i64], rank: usize) -> Result<Vec<usize>, String> {
    let mut resolved = axes.iter().map(|&a| resolve_axis(a, rank)).collect::<Result<Vec<usize>, String>>()?;
    resolved.sort_unstable();
    match resolved.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("axis {} is named twice", pair[0])),
        None => Ok(resolved),
    }
}

/// An axis, a negative one counted from the end.
///
/// # Errors
/// If the axis is out of range.
pub fn resolve_axis(axis: i64, rank: usize) -> Result<usize, String> {
    let resolved = if axis < 0 { axis.checked_add(rank as i64) } else { Some(axis) };
    resolved
        .filter(|&a| (0..rank as i64).contains(&a))
        .map(|a| a as usize)
        .ok_or_else(|| format!("axis {axis} is out of range for rank {rank}"))
}

/// The strides of a row-major tensor, in elements.
pub(crate) fn row_major(shape: &[u64]) -> Vec<u64> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis].max(1);
    }
    strides
}
