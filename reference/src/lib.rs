//! The reference: slow and obviously right.
//!
//! It walks indices straight from the spec, knows the ops by their names, and shares no code with the compiler: of the
//! op table it reads the declared facts of a row (the kinds of its results, wrapping, an output at every position),
//! which are the spec, and not the reducer that the row builds. Integers are exact, floats carry 128 significant bits,
//! and each result is rounded once at the end. Every other executor is compared with it: [`check`] refuses a result
//! that the reduction tree cannot give.
//!
//! ```
//! use cranefold_ir::{DType, Scalar};
//! use cranefold_reference as reference;
//! use cranefold_spec::Spec;
//!
//! let spec: Spec = "mean i32[2,3] axes=[1] round_half_even".parse()?;
//! let input: Vec<u8> = [1, 2, 3, 7, 8, 8].into_iter().flat_map(i32::to_ne_bytes).collect();
//! let exact = reference::reduce(&spec, &[&input])?;
//! assert_eq!(exact[0][1].round(&spec).as_int(), Some(8));
//!
//! let mut output = [0; 8];
//! reference::run(&spec, &[&input], &mut [&mut output])?;
//! assert_eq!(Scalar::read(DType::I32, &output, 0).as_int(), Some(2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The bounds of a region's results cover the whole chain of its definitions:
//!
//! ```
//! use cranefold_reference as reference;
//! use cranefold_spec::Spec;
//!
//! let spec: Spec = "region x:f32[2,3] axes=[1] { m = max(x); e = exp(x - m); e / sum(e), m }".parse()?;
//! let x: Vec<u8> = [1.0, 2.0, 3.0, 9.0, 7.5, 8.0].into_iter().flat_map(f32::to_ne_bytes).collect();
//! let exact = reference::reduce(&spec, &[&x])?;
//! assert!((exact[0][0].round(&spec).as_f64() - 0.0900306).abs() < 1e-7);
//! assert!(exact[0].iter().all(|exact| exact.is_bounded(&spec) && exact.error_bound(&spec) < 3e-6));
//! assert_eq!(exact[1][1].round(&spec).as_f64(), 9.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The reference decides the questions that the ops' definitions leave open:
//!
//! - parameters (`p`, `eps`) and the count that a mean divides by are first rounded to the
//!   accumulator type;
//! - over no axes, copies wrap or clamp as a reduction of the same op would;
//! - the least and greatest of no integers are the limits of the *input's* type, then converted.

mod bound;
mod combine;
mod elements;
mod exact;
mod expression;
mod floats;
mod functions;
mod integers;
mod known;
mod logic;
mod meaning;
mod moments;
mod normalize;
mod position;
mod real;
mod region;
mod rows;
mod selection;
mod walk;
mod wide;

pub use exact::{Exact, Mismatch, Value, check};
pub use real::Real;
pub use wide::{Integer, U256};

use cranefold_ir::DType::{self, Bool, F32, F64, I64, U64};
use cranefold_ir::Scalar;
use cranefold_ir::ops::{Combiner, OpCall, ResultKind};
use cranefold_spec::{Operand, Role, Rounding, Spec};
use elements::{Elements, Mapped};
use expression::{Names, evaluate, literal_after, seen};
use known::Known;
use meaning::Meaning;
use region::Region;
use rows::Task;
use walk::{Indices, Slice};

/// The reason that there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages define the variants and their fields")]
pub enum ReferenceError {
    #[error("{given} {kind} buffers for a spec with {expected}")]
    Count { kind: &'static str, given: usize, expected: usize },
    #[error("{kind} {index} has {given} bytes and needs {needed}")]
    TooShort { kind: &'static str, index: usize, given: usize, needed: u64 },
    #[error("the reference has no arm for {op} of {elements}, a row of the op table")]
    Unknown { op: &'static str, elements: DType },
}

/// The exact result of every element of every output, in the row-major order of the output's shape.
///
/// A buffer holds the operand's elements in the machine's byte order, from the lowest address of
/// an element; it may be longer.
///
/// # Errors
/// [`ReferenceError`] if there are too few or too many buffers, or one is too short; also if
/// [`then`](Spec::then) or a region reads the outputs' old elements: use [`reduce_over`].
pub fn reduce(spec: &Spec, inputs: &[&[u8]]) -> Result<Vec<Vec<Exact>>, ReferenceError> {
    let definitions = spec.body().map_or(&[][..], |body| &body.definitions);
    let old = definitions.iter().any(|definition| matches!(definition.value, cranefold_ir::region::Value::Old(_)));
    if old || spec.then().iter().any(|expression| expression.uses("d")) {
        return reduce_over(spec, inputs, &[]);
    }
    walk::check_buffers("input", spec.inputs(), inputs.iter().map(|b| b.len()))?;
    Given::of(spec, inputs, &[]).outputs()
}

/// Computes as [`reduce`] does, where `then` and regions may read the old elements of the outputs.
///
/// ```
/// use cranefold_reference as reference;
/// use cranefold_spec::{DType, Spec};
///
/// let spec: Spec = "sum i32[3] then=\"r0 + d\"".parse()?;
/// let input: Vec<u8> = [1, 2, 3].into_iter().flat_map(i32::to_ne_bytes).collect();
/// let exact = reference::reduce_over(&spec, &[&input], &[&100i32.to_ne_bytes()])?;
/// assert_eq!(exact[0][0].round(&spec).as_int(), Some(106));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`ReferenceError`] if there are too few or too many buffers, or one is too short.
pub fn reduce_over(spec: &Spec, inputs: &[&[u8]], old: &[&[u8]]) -> Result<Vec<Vec<Exact>>, ReferenceError> {
    walk::check_buffers("input", spec.inputs(), inputs.iter().map(|b| b.len()))?;
    walk::check_buffers("output", spec.outputs(), old.iter().map(|b| b.len()))?;
    Given::of(spec, inputs, old).outputs()
}

/// A spec and its buffers.
struct Given<'a> {
    spec: &'a Spec,
    inputs: &'a [&'a [u8]],
    old: &'a [&'a [u8]],
    /// The names of the inputs in expressions.
    names: Vec<String>,
    /// The type of floats in expressions.
    accumulator: DType,
}

impl<'a> Given<'a> {
    fn of(spec: &'a Spec, inputs: &'a [&'a [u8]], old: &'a [&'a [u8]]) -> Given<'a> {
        let number = |i: usize| {
            let before = spec.inputs()[..i].iter();
            before.filter(|operand| operand.role() == spec.inputs()[i].role()).count()
        };
        let name = |(i, operand): (usize, &Operand)| match operand.role() {
            Role::Scalar(name) => name.clone(),
            Role::Then => format!("y{}", number(i)),
            _ => format!("x{}", number(i)),
        };
        let widest = if spec.inputs().iter().any(|operand| operand.dtype() == F64) { F64 } else { F32 };
        let accumulator = spec.accumulator().unwrap_or(widest);
        Given { spec, inputs, old, names: spec.inputs().iter().enumerate().map(name).collect(), accumulator }
    }

    /// The results of all outputs.
    fn outputs(&self) -> Result<Vec<Vec<Exact>>, ReferenceError> {
        if let Some(body) = self.spec.body() {
            return region::evaluate(&Region::of(self.spec, body, self.inputs, self.old));
        }
        if self.spec.applies() {
            // Empty slices have no positions, and need no results.
            let none = self.spec.reduced_count() == 0;
            return Ok(vec![if none { vec![] } else { self.applied()? }]);
        }
        let mut outputs = vec![vec![]; self.spec.outputs().len()];
        let mut beside = self.beside();
        for slice in self.slices() {
            let results = self.results(&slice)?;
            let results = match self.spec.then().is_empty() {
                true => results.into_iter().map(|(_, exact)| exact).collect(),
                false => self.then(&results, &mut beside),
            };
            for (output, exact) in results.into_iter().enumerate() {
                outputs[output].push(exact.of_output(output));
            }
        }
        Ok(outputs)
    }

    /// The slices that the output elements are reduced from, in the row-major order of the axes that are kept.
    fn slices(&self) -> impl Iterator<Item = Mapped<'_>> {
        let operands = self.spec.inputs().iter().zip(self.inputs).zip(&self.names);
        let operands = operands.filter(|((operand, _), _)| *operand.role() != Role::Then);
        let mut inputs: Vec<_> =
            operands.map(|((operand, bytes), name)| (name, Slice::all(self.spec, operand, bytes))).collect();
        std::iter::from_fn(move || {
            let slices = inputs.iter_mut().map(|(name, slices)| Some((name.as_str(), slices.next()?)));
            Some(Mapped { inputs: slices.collect::<Option<_>>()?, map: self.spec.map(), accumulator: self.accumulator })
        })
    }

    /// The results of the reducers over a slice with their types in expressions, or without expressions with
    /// the outputs' types.
    fn results(&self, slice: &Mapped) -> Result<Vec<(DType, Exact)>, ReferenceError> {
        let (spec, elements) = (self.spec, &Elements::Mapped(slice));
        let input = elements.dtype();
        if spec.is_identity() {
            let element = elements.iter().next().expect("one element over no axes");
            return Ok(vec![(input, Exact::known(element, self.wraps(&spec.reducers()[0])))]);
        }
        let plain = spec.then().is_empty() && spec.apply().is_none();
        let mut results = vec![];
        for call in spec.reducers() {
            let name = match call {
                OpCall::Row { name, .. } => name,
                OpCall::Own(combiner) => {
                    results.extend(self.combined(combiner, slice));
                    continue;
                }
            };
            let unknown = ReferenceError::Unknown { op: name, elements: input };
            let Some(Meaning::Slice(op)) = Meaning::of(name) else { return Err(unknown) };
            let kinds = call.results();
            let first = kinds.iter().position(|&kind| kind == ResultKind::Value).unwrap_or(0);
            let to = |result: usize| match plain {
                true => spec.outputs()[results.len() + result].dtype(),
                false => self.working_type(kinds[result], input),
            };
            let task = self.task(call, input, to(first));
            let types: Vec<DType> = (0..kinds.len()).map(to).collect();
            results.extend(types.into_iter().zip(rows::reduce(op, &task, elements).ok_or(unknown)?));
        }
        Ok(results)
    }

    /// The results of a combiner.
    fn combined(&self, combiner: &Combiner, slice: &Mapped) -> Vec<(DType, Exact)> {
        let one = |value: Known| (self.working_type(ResultKind::Value, value.dtype), self.given(value));
        combine::reduce(combiner, slice).into_iter().map(one).collect()
    }

    fn task(&self, call: &OpCall, input: DType, to: DType) -> Task {
        Task {
            params: call.params(),
            input,
            to,
            accumulator: self.accumulator,
            saturate: self.spec.saturate(),
            wraps: self.wraps(call),
            half_even: self.spec.rounding() == Rounding::HalfEven,
        }
    }

    /// Returns true if results of integers are taken modulo 2^bits.
    fn wraps(&self, call: &OpCall) -> bool {
        call.as_row().is_some_and(|row| row.wraps) && !self.spec.saturate()
    }

    /// The type of a result in expressions: the accumulator's for floats, 64 bits for integers, or f64 if an
    /// output is a float.
    fn working_type(&self, kind: ResultKind, element: DType) -> DType {
        match (kind, element) {
            (ResultKind::Count, _) => I64,
            (_, Bool) => Bool,
            (_, d) if d.is_float() => self.accumulator,
            _ if self.spec.outputs().iter().any(|output| output.dtype().is_float()) => F64,
            (_, d) if d.is_signed() => I64,
            _ => U64,
        }
    }

    /// The values that `then` reads beside the results, in the order of the output's elements.
    fn beside(&self) -> Beside<'_> {
        let shape = self.spec.outputs()[0].shape();
        let operands = self.spec.inputs().iter().zip(self.inputs).zip(&self.names);
        let operands = operands.filter(|((operand, _), _)| *operand.role() != Role::Element);
        let inputs = operands
            .map(|((operand, bytes), name)| (name.clone(), read(operand, Indices::broadcast(operand, shape), bytes)));
        let old = self.spec.outputs().iter().zip(self.old);
        Beside {
            inputs: inputs.collect(),
            old: old
                .map(|(operand, bytes)| read(operand, Indices::broadcast(operand, operand.shape()), bytes))
                .collect(),
        }
    }

    /// The outputs that `then` computes from the results, at the next output element.
    fn then(&self, results: &[(DType, Exact)], beside: &mut Beside) -> Vec<Exact> {
        let next = |elements: &mut Walk| elements.next().expect("as many as outputs");
        let mut names = named(results);
        names.extend(beside.inputs.iter_mut().map(|(name, walk)| (name.clone(), seen(next(walk), self.accumulator))));
        let first = results[0].0;
        let mut outputs = vec![];
        for (output, expression) in self.spec.then().iter().enumerate() {
            let old = beside.old.get_mut(output).map(next);
            let old = old.map(|d| match d.dtype.is_int() && first.is_int() {
                true => d.cast(first),
                false => seen(d, self.accumulator),
            });
            let mut names = names.clone();
            names.extend(old.map(|d| ("d".to_string(), d)));
            outputs.push(self.given(evaluate(expression, &names, literal_after(Some(first)))));
        }
        outputs
    }

    /// The value of an expression as the result.
    fn given(&self, value: Known) -> Exact {
        Exact::known(value, !self.spec.saturate())
    }

    /// The output at each position of input 0's shape, in row-major order.
    fn applied(&self) -> Result<Vec<Exact>, ReferenceError> {
        let mut output = vec![None; self.spec.inputs()[0].elems() as usize];
        for (slice, places) in self.slices().zip(walk::places(self.spec)) {
            for (place, exact) in places.zip(self.applied_to(&slice)?) {
                output[place as usize] = Some(exact);
            }
        }
        Ok(output.into_iter().map(|exact| exact.expect("every element is in a slice")).collect())
    }

    /// The output at the positions of a slice.
    fn applied_to(&self, slice: &Mapped) -> Result<Vec<Exact>, ReferenceError> {
        let Some(expression) = self.spec.apply() else {
            let call = &self.spec.reducers()[0];
            let (input, name) = (slice.dtype(), call.as_row().map_or("a combiner", |row| row.name));
            let unknown = ReferenceError::Unknown { op: name, elements: input };
            let Some(Meaning::Positions(op)) = Meaning::of(name) else { return Err(unknown) };
            let task = self.task(call, input, self.spec.outputs()[0].dtype());
            let further: Vec<Slice> = match slice.map {
                Some(_) => vec![],
                None => slice.inputs[1..].iter().map(|(_, slice)| slice.clone()).collect(),
            };
            return normalize::apply(op, &task, &Elements::Mapped(slice), &further).ok_or(unknown);
        };
        let results = self.results(slice)?;
        let named = named(&results);
        let literal = literal_after(results.first().map(|&(dtype, _)| dtype));
        let one = |mut names: Names| {
            names.extend(named.iter().cloned());
            self.given(evaluate(expression, &names, literal))
        };
        Ok(slice.names().map(one).collect())
    }
}

/// The values that `then` reads beside the results, element by element.
struct Beside<'a> {
    inputs: Vec<(String, Walk<'a>)>,
    old: Vec<Walk<'a>>,
}

type Walk<'a> = Box<dyn Iterator<Item = Known> + 'a>;

fn read<'a>(operand: &'a Operand, indices: Indices<'a>, bytes: &'a [u8]) -> Walk<'a> {
    Box::new(indices.map(|index| Known::element(Scalar::read(operand.dtype(), bytes, index as usize))))
}

/// The results by their names `r0`, `r1` and so on.
fn named(results: &[(DType, Exact)]) -> Names {
    results.iter().enumerate().map(|(i, (dtype, exact))| (format!("r{i}"), exact.in_expression(*dtype))).collect()
}

/// Runs the spec: writes every output element through the output's layout, and zeros to the padding of
/// blocks. It does not touch other memory between the elements.
///
/// # Errors
/// [`ReferenceError`] if there are too few or too many buffers, or one is too short.
pub fn run(spec: &Spec, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) -> Result<(), ReferenceError> {
    let old: Vec<&[u8]> = outputs.iter().map(|bytes| &**bytes).collect();
    let results = reduce_over(spec, inputs, &old)?;
    for ((output, exact), bytes) in spec.outputs().iter().zip(results).zip(outputs) {
        let size = output.dtype().bytes() as usize;
        for index in output.padding() {
            bytes[index * size..][..size].fill(0);
        }
        for (index, exact) in output.places().zip(exact) {
            exact.round(spec).write(bytes, index);
        }
    }
    Ok(())
}
