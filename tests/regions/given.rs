//! The buffers of a region's call, made from numbers, and its slices as numbers.

use cranefold::spec::Operand;
use cranefold::{DType, Kernel, Scalar, Spec};
use cranefold_fuzz::data::{Buffer, Random};
use cranefold_fuzz::execute::{Memory, places, places_in};
use std::collections::HashMap;

/// The distribution of an input's elements.
#[derive(Clone, Copy, Debug)]
pub enum Draw {
    /// A sum of twelve uniform numbers less six: nearly normal, of mean 0 and deviation 1.
    Normal,
    /// Normal about this mean.
    About(f64),
    /// The magnitude of a normal number, plus this.
    Positive(f64),
    /// The negative of a normal number's magnitude, less this.
    Negative(f64),
    /// 0, or a positive number; one in four is 0.
    Sparse,
    /// Uniform integers from the first to the last.
    Integers(i64, i64),
    /// Integers from 0 to the extent of this axis of the region, of which one in four is -100.
    Labels(usize),
    /// Integers from 0 to the extent of this axis.
    Lengths(usize),
    /// Minus infinity with probability 1/4, but 0 in the first place.
    Additive,
    /// One value.
    Value(f64),
}

impl Draw {
    fn one(self, index: usize, shape: &[u64], random: &mut Random) -> f64 {
        let mut unit = || (random.bits() >> 11) as f64 / 2f64.powi(53);
        let normal = (0..12).map(|_| unit()).sum::<f64>() - 6.0;
        match self {
            Draw::Normal => normal,
            Draw::About(mean) => mean + normal,
            Draw::Positive(least) => normal.abs() + least,
            Draw::Negative(least) => -normal.abs() - least,
            Draw::Sparse => f64::from(unit() > 0.25) * normal.abs(),
            Draw::Integers(low, high) => (low as f64 + unit() * (high - low + 1) as f64).floor(),
            Draw::Labels(_) if unit() < 0.25 => -100.0,
            Draw::Labels(axis) | Draw::Lengths(axis) => (unit() * (shape[axis] + 1) as f64).floor(),
            Draw::Additive => {
                if index > 0 && unit() < 0.25 {
                    f64::NEG_INFINITY
                } else {
                    0.0
                }
            }
            Draw::Value(value) => value,
        }
    }
}

/// The element of a type that is nearest to a number.
pub fn scalar(dtype: DType, value: f64) -> Scalar {
    match dtype {
        DType::Bool => Scalar::bool(value != 0.0),
        _ if dtype.is_float() => Scalar::float(dtype, value),
        _ => Scalar::int(dtype, value as i128),
    }
}

/// A buffer over the whole span of an operand.
fn buffer(operand: &Operand, mut element: impl FnMut(usize) -> f64) -> Buffer {
    let mut buffer = Buffer::new(operand.span_bytes() as usize, 0);
    for index in 0..operand.span_elems() as usize {
        scalar(operand.dtype(), element(index)).write(buffer.bytes_mut(), index);
    }
    buffer
}

/// The names of a region's inputs, scalars among them.
pub fn names(spec: &Spec) -> Vec<String> {
    spec.body().expect("a region").inputs.iter().map(|input| input.name.clone()).collect()
}

/// The buffers of a call; inputs without a draw are normal, and so are the outputs' old elements.
pub fn memory(spec: &Spec, draws: &[(&str, Draw)]) -> Memory {
    let input = |(i, (operand, name)): (u64, (&Operand, String))| {
        let draw = draws.iter().find(|(of, _)| *of == name).map_or(Draw::Normal, |(_, draw)| *draw);
        let draw = if operand.dtype() == DType::Bool { Draw::Integers(0, 1) } else { draw };
        let mut random = Random::new(0x51ed + i);
        buffer(operand, |index| draw.one(index, spec.shape(), &mut random))
    };
    let output = |(o, operand): (u64, &Operand)| {
        let mut random = Random::new(0x01d + o);
        buffer(operand, |index| Draw::Normal.one(index, spec.shape(), &mut random))
    };
    Memory {
        inputs: (0..).zip(spec.inputs().iter().zip(names(spec))).map(input).collect(),
        outputs: (0..).zip(spec.outputs()).map(output).collect(),
    }
}

/// The elements of each output after a kernel ran, in row-major order.
pub fn results(spec: &Spec, kernel: &Kernel, memory: &Memory) -> Vec<Vec<Scalar>> {
    let buffers = memory.run(kernel);
    let read = |(o, buffer): (usize, &Buffer)| {
        let dtype = spec.outputs()[o].dtype();
        places(spec, o).into_iter().map(|place| Scalar::read(dtype, buffer.bytes(), place)).collect()
    };
    buffers.iter().enumerate().map(read).collect()
}

/// The elements of an operand in row-major order.
fn numbers(operand: &Operand, buffer: &Buffer) -> Vec<f64> {
    let places = places_in(operand, operand.shape());
    places.into_iter().map(|place| Scalar::read(operand.dtype(), buffer.bytes(), place).as_f64()).collect()
}

/// The values of a slice: for each input one for every element, also where the input is the same for all of them.
pub struct Slice {
    values: HashMap<String, Vec<f64>>,
    /// The index in the region's shape of each element.
    pub at: Vec<Vec<u64>>,
}

impl Slice {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.at.len()
    }

    /// The values of an input, or of `old0` and so on.
    pub fn of(&self, name: &str) -> &[f64] {
        self.values.get(name).unwrap_or_else(|| panic!("no input `{name}`"))
    }

    /// The value of an input that is the same for all elements; NaN of no elements.
    pub fn one(&self, name: &str) -> f64 {
        self.of(name).first().copied().unwrap_or(f64::NAN)
    }

    /// A value for each element, from its number.
    pub fn map(&self, f: impl Fn(usize) -> f64) -> Vec<f64> {
        (0..self.len()).map(f).collect()
    }
}

/// The number of an index in row-major order.
pub fn place(index: &[u64], shape: &[u64]) -> usize {
    index.iter().zip(shape).fold(0, |place, (i, extent)| place * extent + i) as usize
}

/// The indices of a shape in row-major order.
fn indices(shape: &[u64]) -> Vec<Vec<u64>> {
    let longer = |all: Vec<Vec<u64>>, &extent: &u64| {
        all.iter().flat_map(|index| (0..extent).map(move |i| [index.as_slice(), &[i]].concat())).collect()
    };
    shape.iter().fold(vec![vec![]], longer)
}

/// The slices of a region in the row-major order of its kept axes.
pub fn slices(spec: &Spec, memory: &Memory) -> Vec<Slice> {
    let (shape, reduced) = (spec.shape(), spec.reduced());
    let only = |of: bool| -> Vec<u64> {
        shape.iter().zip(reduced).map(|(&extent, &reduced)| if reduced == of { extent } else { 1 }).collect()
    };
    let mut sources: Vec<(String, Vec<u64>, Vec<f64>)> = vec![];
    for ((operand, name), buffer) in spec.inputs().iter().zip(names(spec)).zip(&memory.inputs) {
        let mut own = vec![1; shape.len() - operand.shape().len()];
        own.extend(operand.shape());
        sources.push((name, own, numbers(operand, buffer)));
    }
    for (o, (operand, buffer)) in spec.outputs().iter().zip(&memory.outputs).enumerate() {
        let own = (0..shape.len()).map(|axis| spec.output_axis(o, axis).map_or(1, |axis| operand.shape()[axis]));
        sources.push((format!("old{o}"), own.collect(), numbers(operand, buffer)));
    }
    let inner = indices(&only(true));
    let slice = |kept: Vec<u64>| {
        let at: Vec<Vec<u64>> = inner.iter().map(|i| i.iter().zip(&kept).map(|(i, k)| i + k).collect()).collect();
        let one = |(name, own, values): &(String, Vec<u64>, Vec<f64>)| {
            let value = |index: &Vec<u64>| {
                let index: Vec<u64> = index.iter().zip(own).map(|(&i, &n)| if n == 1 { 0 } else { i }).collect();
                values[place(&index, own)]
            };
            (name.clone(), at.iter().map(value).collect())
        };
        Slice { values: sources.iter().map(one).collect(), at }
    };
    indices(&only(false)).into_iter().map(slice).collect()
}
