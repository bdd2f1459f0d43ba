//! Views and picks that the files of several formats ask for in the same way.

use super::{Lower, Operand, Stop};
use crate::{Op, Range};

/// The shape that a list means: 0 copies an extent, if it may, and -1 takes what is left.
pub(crate) fn reshaped(from: &[u64], asked: &[i64], zero_copies: bool) -> Result<Vec<u64>, Stop> {
    let mut shape = Vec::with_capacity(asked.len());
    let mut open = None;
    for (place, &extent) in asked.iter().enumerate() {
        shape.push(match extent {
            -1 if open.is_some() => return Err(Stop::Wrong(format!("the shape {asked:?} leaves two extents open"))),
            -1 => {
                open = Some(place);
                1
            }
            0 if zero_copies => match from.get(place) {
                Some(&extent) => extent,
                None => return Err(Stop::Wrong(format!("extent {place} of {asked:?} copies one of {from:?}"))),
            },
            0.. => extent as u64,
            _ => return Err(Stop::Wrong(format!("extent {extent} in the shape {asked:?}"))),
        });
    }
    if let Some(place) = open {
        let product = |shape: &[u64]| shape.iter().try_fold(1u64, |all, &e| all.checked_mul(e)).unwrap_or(0);
        let (all, others) = (product(from), product(&shape));
        if others == 0 || !all.is_multiple_of(others) {
            return Err(Stop::Wrong(format!("no extent makes {asked:?} of the {all} elements of {from:?}")));
        }
        shape[place] = all / others;
    }
    Ok(shape)
}

/// The elements from a start to an end, which is left out; negative ones count from the end of the axis.
pub(crate) fn range(start: i64, end: i64, step: i64, extent: u64) -> Result<Range, Stop> {
    let all = i128::from(extent);
    let from_end = |at: i64| if at < 0 { i128::from(at) + all } else { i128::from(at) };
    let (start, end, step) = match step {
        0 => return Err("a step of 0".into()),
        1.. => (from_end(start).clamp(0, all), from_end(end).clamp(0, all), i128::from(step)),
        _ => (from_end(start).clamp(-1, all - 1), from_end(end).clamp(-1, all - 1), i128::from(step)),
    };
    let count = match step > 0 {
        true => (end - start + step - 1).div_euclid(step),
        false => (start - end - step - 1).div_euclid(-step),
    };
    Ok(match count.max(0) as u64 {
        0 => Range { start: 0, step: 1, extent: 0 },
        1 => Range { start: start as u64, step: 1, extent: 1 },
        extent => Range { start: start as u64, step: step as i64, extent },
    })
}

/// The greatest extent along which a gather becomes a pick: each of its elements reads the whole axis.
const MOST_PICKED: u64 = 1024;

impl Lower {
    /// The tensor of this shape repeated along each axis.
    pub fn tile(&mut self, name: &str, shape: &[u64], repeats: &[u64], x: &Operand) -> Result<Operand, Stop> {
        // An axis before each one takes its repetitions: [a, b] becomes [1, a, 1, b].
        let pairs = |first: &[u64]| first.iter().zip(shape).flat_map(|(&r, &e)| [r, e]).collect::<Vec<_>>();
        let ones = self.reshape("", &pairs(&vec![1; shape.len()]), x)?;
        let repeated = self.broadcast("", &pairs(repeats), &ones)?;
        let all = repeats.iter().zip(shape).map(|(&r, &e)| r.checked_mul(e)).collect::<Option<Vec<u64>>>();
        self.reshape(name, &all.ok_or("the result is too large")?, &repeated)
    }

    /// Elements by an index that has the rank of x and along its other axes at most its extents.
    pub fn pick(&mut self, name: &str, x: &Operand, index: &Operand, axis: usize) -> Result<Operand, Stop> {
        let (shape, extents) = (x.shape()?, index.shape()?);
        if shape.len() != extents.len() {
            return Err(Stop::Wrong(format!("an index of rank {} for rank {}", extents.len(), shape.len())));
        }
        // Along the other axes the index may be shorter.
        let part = |a: usize| Range { start: 0, step: 1, extent: if a == axis { shape[a] } else { extents[a] } };
        if let Some(a) = (0..shape.len()).find(|&a| a != axis && extents[a] > shape[a]) {
            return Err(Stop::Wrong(format!("an index of {} elements along axis {a} of {}", extents[a], shape[a])));
        }
        let ranges: Vec<Range> = (0..shape.len()).map(part).collect();
        let x = self.slice("", &ranges, x)?;
        self.op(name, Op::Pick(axis), &[&x, index])
    }

    /// Rows by an index of any shape, whose axes take the place of one axis.
    pub fn gather(
        &mut self,
        name: &str,
        x: &Operand,
        index: &Operand,
        axis: usize,
        feeds_reduction: bool,
    ) -> Result<Operand, Stop> {
        let (shape, places) = (x.shape()?.to_vec(), index.shape()?.to_vec());
        let result = [&shape[..axis], &places, &shape[axis + 1..]].concat();
        if let Some(known) = index.known().and_then(|data| data.ints())
            && let Some(range) = run(&known, shape[axis])?
        {
            let mut ranges: Vec<Range> = shape.iter().map(|&extent| Range::all(extent)).collect();
            ranges[axis] = range;
            let part = self.slice("", &ranges, x)?;
            return self.reshape(name, &result, &part);
        }
        if let (Some(data), Some(known)) = (x.known(), index.known())
            && let Some(found) = chosen(&data, &known, axis, &result)
        {
            return Ok(Operand::Known(found));
        }
        if shape[axis] > MOST_PICKED {
            let reason =
                format!("its axis has {} elements, each of which a kernel would read; the host reads one", shape[axis]);
            return Err(Stop::Opaque(reason));
        }
        if !feeds_reduction && shape.len() > 1 {
            return Err(Stop::Opaque("no reduction takes it: the host copies rows".into()));
        }
        if let [classes] = shape[..] {
            // A table of classes, such as the weights of a loss: the classes lie along axis 1, as in the scores beside it.
            let axis = places.len().min(1);
            let mut one = places.clone();
            if places.get(axis) != Some(&1) {
                one.insert(axis, 1);
            }
            let (mut table, mut all) = (vec![1; one.len()], one.clone());
            (table[axis], all[axis]) = (classes, classes);
            let table = self.reshape("", &table, x)?;
            let table = self.broadcast("", &all, &table)?;
            let index = self.reshape("", &one, index)?;
            let picked = self.op("", Op::Pick(axis), &[&table, &index])?;
            return self.reshape(name, &result, &picked);
        }
        // The index stretches along the other axes of x.
        let count: u64 = places.iter().product();
        let mut along = vec![1; shape.len()];
        along[axis] = count;
        let flat = self.reshape("", &along, index)?;
        let mut stretched = shape.clone();
        stretched[axis] = count;
        let flat = self.broadcast("", &stretched, &flat)?;
        let picked = self.op("", Op::Pick(axis), &[x, &flat])?;
        self.reshape(name, &result, &picked)
    }
}

/// The range that known indices are, if they are evenly spaced.
fn run(index: &[i64], extent: u64) -> Result<Option<Range>, Stop> {
    let mut places = Vec::with_capacity(index.len());
    for &at in index {
        let place = if at < 0 { i128::from(at) + i128::from(extent) } else { i128::from(at) };
        if !(0..i128::from(extent)).contains(&place) {
            return Err(Stop::Wrong(format!("index {at} is out of range for an extent of {extent}")));
        }
        places.push(place as i64);
    }
    Ok(match places[..] {
        [] => Some(Range { start: 0, step: 1, extent: 0 }),
        [one] => Some(Range { start: one as u64, step: 1, extent: 1 }),
        [first, second, ..] => {
            let step = second - first;
            let is_even = step != 0 && places.windows(2).all(|pair| pair[1] - pair[0] == step);
            is_even.then_some(Range { start: first as u64, step, extent: places.len() as u64 })
        }
    })
}

/// The elements of known data at known indices.
fn chosen(data: &crate::Data, index: &crate::Data, axis: usize, result: &[u64]) -> Option<crate::Data> {
    let (shape, index) = (data.shape(), index.ints()?);
    let inner: u64 = shape[axis + 1..].iter().product();
    let outer: u64 = shape[..axis].iter().product();
    if outer.checked_mul(index.len() as u64)?.checked_mul(inner)? > crate::MAX_FOLDED {
        return None;
    }
    let mut values = vec![];
    for row in 0..outer {
        for &at in &index {
            let at = if at < 0 { at + shape[axis] as i64 } else { at } as u64;
            let start = (row * shape[axis] + at) * inner;
            values.extend((start..start + inner).map(|place| data.at(place as usize)));
        }
    }
    crate::Data::of(data.dtype(), result, &values).ok()
}
