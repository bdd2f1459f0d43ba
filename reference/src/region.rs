//! Regions, evaluated straight from their meaning.
//!
//! For each index of the kept axes, the definitions are computed in order: values of elements at each index of the
//! reduced axes, values of the slice once, and reductions over the slice by the arms of the rows. Then totals are
//! reduced from the values of all slices. Every value has its bounds, and a reduction of values between bounds has the
//! bounds of all elements that they allow: a result's bounds cover the whole chain of definitions.

use super::ReferenceError;
use super::elements::Elements;
use super::exact::Exact;
use super::expression::{NamedValue, PartOfMean, evaluate_with, seen};
use super::known::{Known, integer};
use super::meaning::{Meaning, OfSlice};
use super::moments::Moments;
use super::real::Real;
use super::rows::{self, Task};
use cranefold_ir::DType::{self, Bool, I64, U64};
use cranefold_ir::Scalar;
use cranefold_ir::expression::Expression;
use cranefold_ir::ops::{OpCall, ResultKind};

use cranefold_ir::region::{Body, Definition, Reduction, Value};
use cranefold_spec::Spec;
use cranefold_spec::layout::Placement;
use std::collections::HashMap;
use std::rc::Rc;

/// A region and its operands.
#[derive(Debug)]
pub struct Region<'a> {
    /// The meaning.
    pub body: &'a Body,
    /// The extents that all inputs broadcast to.
    pub shape: Vec<u64>,
    /// True for each reduced axis.
    pub reduced: Vec<bool>,
    /// The inputs, as many as the body's.
    pub inputs: Vec<Placed<'a>>,
    /// The outputs, as many as the body's, with their old elements.
    pub outputs: Vec<Placed<'a>>,
}

/// An operand of a region.
#[derive(Debug)]
pub struct Placed<'a> {
    /// The type in memory.
    pub dtype: DType,
    /// The number of elements.
    pub count: usize,
    /// The places of the elements.
    pub placement: &'a Placement,
    /// The operand's axis of each axis of the region; none where all indices have the same elements.
    pub axes: Vec<Option<usize>>,
    /// The buffer; empty for an output of which no old element is read.
    pub bytes: &'a [u8],
}

impl Placed<'_> {
    /// The element at an index of the region.
    fn at(&self, index: &[u64]) -> Known {
        let along = |(axis, &i): (&Option<usize>, &u64)| Some(self.placement.along((*axis)?, i));
        let distances = self.axes.iter().zip(index).filter_map(along);
        let place = distances.fold(self.placement.origin as i64, i64::wrapping_add);
        Known::element(Scalar::read(self.dtype, self.bytes, place as usize))
    }
}

/// The axes that a value depends on, from fewer to more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Depth {
    /// None: numbers, scalars and expressions of them.
    Constant,
    /// The kept axes that no total reduces.
    Total,
    /// The kept axes.
    Slice,
    /// The kept and the reduced axes.
    Element,
}

/// The values of a name within a slice, or beside a total.
#[derive(Clone, Debug)]
enum NameValues {
    /// One value.
    One(NamedValue),
    /// A value at each index of the reduced axes, in row-major order.
    Each(Vec<Known>),
}

impl NameValues {
    fn one(known: Known) -> NameValues {
        NameValues::One(NamedValue { known, part: None })
    }

    /// The value at a position of the slice.
    fn at(&self, position: usize) -> NamedValue {
        match self {
            NameValues::One(named) => named.clone(),
            NameValues::Each(values) => NamedValue { known: values[position], part: None },
        }
    }
}

/// The values of the names so far.
type SliceNames<'a> = HashMap<&'a str, NameValues>;

/// The type and the depth of a name.
type Kinds<'a> = HashMap<&'a str, (DType, Depth)>;

/// The indices of a shape in row-major order, with 0 along the axes that do not vary.
fn indices(shape: &[u64], varies: impl Fn(usize) -> bool) -> Vec<Vec<u64>> {
    let mut indices = vec![vec![]];
    for (axis, &extent) in shape.iter().enumerate() {
        let extent = if varies(axis) { extent } else { 1 };
        let with = |index: &[u64], i: u64| index.iter().copied().chain([i]).collect();
        indices = indices.iter().flat_map(|index: &Vec<u64>| (0..extent).map(|i| with(index, i))).collect();
    }
    indices
}

/// Computes the results of all outputs, each in the row-major order of its shape.
///
/// # Errors
/// If a reduction has no arm.
pub fn evaluate(region: &Region) -> Result<Vec<Vec<Exact>>, ReferenceError> {
    let names = Evaluation::of(region);
    let body = region.body;
    let depths: Vec<Depth> = body.outputs.iter().map(|output| names.depth(output)).collect();
    let size = |depth| if depth == Depth::Element { region.shape.iter().product::<u64>() as usize } else { 0 };
    let mut outputs: Vec<Vec<Option<Known>>> = depths.iter().map(|&depth| vec![None; size(depth)]).collect();
    let mut to_reduce = vec![vec![]; body.definitions.len()];
    let inner = indices(&region.shape, |axis| region.reduced[axis]);
    for kept in indices(&region.shape, |axis| !region.reduced[axis]) {
        let at: Vec<Vec<u64>> = inner.iter().map(|i| i.iter().zip(&kept).map(|(i, k)| i + k).collect()).collect();
        let scope = names.slice(&kept, &at, &mut to_reduce)?;
        for ((output, expression), depth) in outputs.iter_mut().zip(&body.outputs).zip(&depths) {
            let value = |position| Some(names.evaluate(expression, &scope, position));
            match depth {
                Depth::Element => (0..).zip(&at).for_each(|(i, index)| output[region.place(index)] = value(i)),
                Depth::Slice => output.push(value(0)),
                Depth::Constant | Depth::Total => {}
            }
        }
    }
    for scope in names.totals(&to_reduce)? {
        for ((output, expression), _) in
            outputs.iter_mut().zip(&body.outputs).zip(&depths).filter(|x| *x.1 == Depth::Total)
        {
            output.push(Some(names.evaluate(expression, &scope, 0)));
        }
    }
    for (k, _) in depths.iter().enumerate().filter(|(_, depth)| **depth == Depth::Constant) {
        let value = names.evaluate(&body.outputs[k], &names.constants, 0);
        outputs[k] = vec![Some(value); region.outputs[k].count];
    }
    let exact = |(k, output): (usize, Vec<Option<Known>>)| {
        output.into_iter().map(|known| Exact::known(known.expect("every element"), false).of_output(k)).collect()
    };
    Ok(outputs.into_iter().enumerate().map(exact).collect())
}

impl<'a> Region<'a> {
    /// The region of a spec with this body and its buffers; `old` is empty if no old element is read.
    pub fn of(spec: &'a Spec, body: &'a Body, inputs: &[&'a [u8]], old: &[&'a [u8]]) -> Region<'a> {
        let placed =
            |operand: &'a cranefold_spec::Operand, bytes: Option<&&'a [u8]>, axis: &dyn Fn(usize) -> _| Placed {
                dtype: operand.dtype(),
                count: operand.elems() as usize,
                placement: operand.placement(),
                axes: (0..spec.rank()).map(axis).collect(),
                bytes: bytes.copied().unwrap_or_default(),
            };
        let input = |(i, operand)| placed(operand, inputs.get(i), &|axis| spec.input_axis(i, axis));
        let output = |(k, operand)| placed(operand, old.get(k), &|axis| spec.output_axis(k, axis));
        Region {
            body,
            shape: spec.shape().to_vec(),
            reduced: spec.reduced().to_vec(),
            inputs: spec.inputs().iter().enumerate().map(input).collect(),
            outputs: spec.outputs().iter().enumerate().map(output).collect(),
        }
    }

    /// The number of an index in row-major order.
    fn place(&self, index: &[u64]) -> usize {
        index.iter().zip(&self.shape).fold(0, |place, (i, extent)| place * extent + i) as usize
    }

    /// The depth of an operand's elements.
    fn depth(&self, operand: &Placed) -> Depth {
        // An extent of 1 beside longer slices is a broadcast.
        let is_one = (0..self.shape.len()).all(|axis| !self.reduced[axis] || self.shape[axis] == 1);
        let has_all = (0..self.shape.len()).all(|axis| !self.reduced[axis] || operand.axes[axis].is_some());
        let counts = |axis: usize| !self.reduced[axis] || self.shape[axis] != 1 || (is_one && has_all);
        let varies = |axis: &usize| operand.axes[*axis].is_some() && counts(*axis);
        let axes = 0..self.shape.len();
        match self.total_axes() {
            _ if axes.clone().any(|axis| varies(&axis) && self.reduced[axis]) => Depth::Element,
            _ if !axes.clone().any(|axis| varies(&axis)) => Depth::Constant,
            over if !over.is_empty() && !over.iter().any(varies) => Depth::Total,
            _ => Depth::Slice,
        }
    }

    /// The kept axes that the totals reduce; empty without totals.
    fn total_axes(&self) -> &[usize] {
        fn over(definition: &Definition) -> Option<&[usize]> {
            match &definition.value {
                Value::Reduction(Reduction { over: Some(axes), .. }) => Some(axes),
                _ => None,
            }
        }
        self.body.definitions.iter().find_map(over).unwrap_or(&[])
    }
}

/// A region, the kinds of its names, and the values of those that are the same everywhere.
struct Evaluation<'a> {
    region: &'a Region<'a>,
    kinds: Kinds<'a>,
    constants: SliceNames<'a>,
}

impl<'a> Evaluation<'a> {
    fn of(region: &'a Region<'a>) -> Evaluation<'a> {
        let mut names = Evaluation { region, kinds: Kinds::new(), constants: SliceNames::new() };
        let body = region.body;
        let first = vec![0; region.shape.len()];
        for (input, operand) in body.inputs.iter().zip(&region.inputs) {
            let depth = match region.depth(operand) {
                Depth::Total => Depth::Slice,
                depth => depth,
            };
            names.kinds.insert(&input.name, (names.seen(operand.dtype), depth));
            if depth == Depth::Constant {
                names.constants.insert(&input.name, names.read(operand, &first));
            }
        }
        for definition in &body.definitions {
            let (dtypes, depth) = names.kind(&definition.value);
            names
                .kinds
                .extend(definition.names.iter().zip(dtypes).map(|(name, dtype)| (name.as_str(), (dtype, depth))));
            let constant = match &definition.value {
                _ if depth != Depth::Constant => continue,
                Value::Expression(expression) => NameValues::one(names.evaluate(expression, &names.constants, 0)),
                Value::Old(output) => names.read(&region.outputs[*output], &first),
                Value::Position(_) | Value::Reduction(_) => unreachable!("they depend on axes"),
            };
            names.constants.insert(&definition.names[0], constant);
        }
        names
    }

    /// The type in expressions of an element in memory.
    fn seen(&self, dtype: DType) -> DType {
        seen(Known::exactly(dtype, Real::ZERO), self.region.body.accumulator).dtype
    }

    /// The element of an operand at an index, as expressions see it.
    fn read(&self, operand: &Placed, index: &[u64]) -> NameValues {
        NameValues::one(seen(operand.at(index), self.region.body.accumulator))
    }

    /// The value of an expression at a position of the slice that the scope is of.
    fn evaluate(&self, expression: &Expression, scope: &SliceNames, position: usize) -> Known {
        let named = |name: &str| Some(scope.get(name)?.at(position));
        evaluate_with(expression, &named, self.region.body.accumulator)
    }

    /// The depth of an expression. Beside a total there are only values that are the same everywhere.
    fn depth(&self, expression: &Expression) -> Depth {
        let depths = || expression.names().into_iter().map(|(name, _)| self.kinds[name.as_str()].1);
        match depths().any(|depth| depth == Depth::Total) {
            true => Depth::Total,
            false => depths().max().unwrap_or(Depth::Constant),
        }
    }

    /// The type of an expression.
    fn dtype(&self, expression: &Expression) -> DType {
        let named =
            |name: &str| Some(NamedValue { known: Known::exactly(self.kinds.get(name)?.0, Real::ZERO), part: None });
        evaluate_with(expression, &named, self.region.body.accumulator).dtype
    }

    /// The types of the names of a definition, and their depth.
    fn kind(&self, value: &Value) -> (Vec<DType>, Depth) {
        let region = self.region;
        match value {
            Value::Expression(expression) => (vec![self.dtype(expression)], self.depth(expression)),
            Value::Position(axis) if region.reduced[*axis] => (vec![I64], Depth::Element),
            Value::Position(_) => (vec![I64], Depth::Slice),
            Value::Old(output) => {
                let operand = &region.outputs[*output];
                (vec![self.seen(operand.dtype)], region.depth(operand))
            }
            Value::Reduction(reduction) => {
                let depth = if reduction.over.is_some() { Depth::Total } else { Depth::Slice };
                (self.results(&reduction.call, self.dtype(&reduction.of)), depth)
            }
        }
    }

    /// The types of the results of a reduction of values of a type.
    fn results(&self, call: &OpCall, of: DType) -> Vec<DType> {
        let is_total = call.as_row().is_some_and(|row| matches!(row.name, "sum" | "prod" | "l1" | "sum_squares"));
        let one = |kind| match kind {
            ResultKind::Count => I64,
            _ if of.is_float() => self.region.body.accumulator,
            _ if of == Bool || !is_total => of,
            _ if of.is_signed() => I64,
            _ => U64,
        };
        call.results().into_iter().map(one).collect()
    }

    /// The values of a slice at an index of the kept axes; `at` are the indices of its elements. The values that the
    /// totals reduce are added to `to_reduce`, definition by definition.
    fn slice(
        &self,
        kept: &[u64],
        at: &[Vec<u64>],
        to_reduce: &mut [Vec<Known>],
    ) -> Result<SliceNames<'a>, ReferenceError> {
        let (region, mut scope) = (self.region, self.constants.clone());
        let read = |operand: &Placed, depth| match depth {
            Depth::Element => NameValues::Each(at.iter().map(|index| self.read(operand, index).at(0).known).collect()),
            _ => self.read(operand, kept),
        };
        for (input, operand) in region.body.inputs.iter().zip(&region.inputs) {
            scope.insert(&input.name, read(operand, self.kinds[input.name.as_str()].1));
        }
        for (number, definition) in region.body.definitions.iter().enumerate() {
            let name = definition.names[0].as_str();
            let depth = self.kinds[name].1;
            let value = match &definition.value {
                Value::Reduction(Reduction { of, over: Some(_), .. }) => {
                    to_reduce[number].push(self.evaluate(of, &scope, 0));
                    continue;
                }
                Value::Reduction(reduction) => {
                    let values: Vec<_> = (0..at.len()).map(|p| self.evaluate(&reduction.of, &scope, p)).collect();
                    scope.extend(self.reduce(number, &values)?);
                    continue;
                }
                _ if matches!(depth, Depth::Constant | Depth::Total) => continue,
                Value::Expression(expression) if depth == Depth::Element => {
                    NameValues::Each((0..at.len()).map(|p| self.evaluate(expression, &scope, p)).collect())
                }
                Value::Expression(expression) => NameValues::one(self.evaluate(expression, &scope, 0)),
                Value::Position(axis) => {
                    let index = |at: &Vec<u64>| Known::exactly(I64, integer(i128::from(at[*axis])));
                    if depth == Depth::Element {
                        NameValues::Each(at.iter().map(index).collect())
                    } else {
                        NameValues::one(index(&kept.to_vec()))
                    }
                }
                Value::Old(output) => read(&region.outputs[*output], depth),
            };
            scope.insert(name, value);
        }
        Ok(scope)
    }

    /// The values beside the totals at each index of the kept axes that they do not reduce; `to_reduce` are the values
    /// of all slices.
    fn totals(&self, to_reduce: &[Vec<Known>]) -> Result<Vec<SliceNames<'a>>, ReferenceError> {
        let (region, over) = (self.region, self.region.total_axes());
        if over.is_empty() {
            return Ok(vec![]);
        }
        let stays = |axis: usize| !region.reduced[axis] && !over.contains(&axis);
        // The numbers of the slices of each total.
        let mut slices: HashMap<Vec<u64>, Vec<usize>> = HashMap::new();
        for (number, kept) in indices(&region.shape, |axis| !region.reduced[axis]).into_iter().enumerate() {
            let total = kept.iter().enumerate().map(|(axis, &i)| if stays(axis) { i } else { 0 }).collect();
            slices.entry(total).or_default().push(number);
        }
        let of_total = |index: Vec<u64>| {
            let slices = slices.get(&index).map_or(&[][..], Vec::as_slice);
            let mut scope = self.constants.clone();
            for (number, definition) in region.body.definitions.iter().enumerate() {
                let name = definition.names[0].as_str();
                if self.kinds[name].1 != Depth::Total {
                    continue;
                }
                let value = match &definition.value {
                    Value::Reduction(_) => {
                        let values: Vec<Known> = slices.iter().map(|&slice| to_reduce[number][slice]).collect();
                        scope.extend(self.reduce(number, &values)?);
                        continue;
                    }
                    Value::Expression(expression) => NameValues::one(self.evaluate(expression, &scope, 0)),
                    Value::Old(output) => self.read(&region.outputs[*output], &index),
                    Value::Position(_) => unreachable!("a position is no total"),
                };
                scope.insert(name, value);
            }
            Ok(scope)
        };
        indices(&region.shape, stays).into_iter().map(of_total).collect()
    }

    /// The results of the reduction with this number, of these values, by their names.
    fn reduce(&self, number: usize, values: &[Known]) -> Result<Vec<(&'a str, NameValues)>, ReferenceError> {
        let Definition { names, value: Value::Reduction(reduction) } = &self.region.body.definitions[number] else {
            unreachable!("a reduction")
        };
        let (call, acc) = (&reduction.call, self.region.body.accumulator);
        // Floats are reduced in the accumulator's type.
        let input = match self.dtype(&reduction.of) {
            dtype if dtype.is_float() => acc,
            dtype => dtype,
        };
        let values: Vec<Known> = values.iter().map(|value| value.cast(input)).collect();
        let elements = Elements::Computed(input, &values);
        let unknown =
            ReferenceError::Unknown { op: call.as_row().map_or("a combiner", |row| row.name), elements: input };
        let Some(Meaning::Slice(op)) = call.as_row().and_then(|row| Meaning::of(row.name)) else { return Err(unknown) };
        let dtypes = self.results(call, input);
        let task = Task {
            params: call.params(),
            input,
            to: dtypes[0],
            accumulator: acc,
            saturate: false,
            wraps: true,
            half_even: false,
        };
        let results = rows::reduce(op, &task, &elements).ok_or(unknown)?;
        let moments = (op == OfSlice::MeanPair).then(|| Moments::of(task.acc(), &elements));
        let part = |i: usize| moments.map(|moments| Rc::new(PartOfMean { mean: number, first: i == 0, moments }));
        let named = |(i, (exact, dtype)): (usize, (Exact, DType))| NamedValue {
            known: exact.in_expression(dtype),
            part: part(i),
        };
        let values = results.into_iter().zip(dtypes).enumerate().map(named).map(NameValues::One);
        Ok(names.iter().map(String::as_str).zip(values).collect())
    }
}

#[cfg(test)]
mod tests;
