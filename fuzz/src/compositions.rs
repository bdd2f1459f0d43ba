//! The computation of a random spec: reducers, the expressions around them, their types and operands.

use crate::data::Random;
use crate::expressions::{Names, constant, expression, expression_type};
use crate::specs::{AxisPlace, Case, Form, layout};
use DType::{Bf16, Bool, F16, F32, F64, I32, I64, U64};
use cranefold::ir::ops::{Combiner, OpCall, ResultKind, Row};
use cranefold::spec::{Builder, Rounding};
use cranefold::{DType, Layout, Spec, ops};
use std::ops::Range;

const POWERS: &[f64] = &[1.0, 2.0, 3.0, 4.0, 5.0, 8.0, 9.0, 1.5, 2.5, 10.25];
const EPSILONS: &[f64] = &[0.0, 1e-6, 0.5, 100.0, -1.0, 1e30];
const DDOFS: &[f64] = &[0.0, 1.0, 2.0, 0.5, 1000.0];

/// The composition of a spec; the first ones are the simplest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Composition {
    /// One row of the table.
    Row,
    /// Up to three rows.
    Several,
    /// Rows of a map of one to three inputs.
    Map,
    /// Rows with expressions after them.
    Then,
    /// Rows and an expression at each position.
    Apply,
    /// A combiner, alone or with another reducer, and perhaps expressions after it.
    Own,
}

impl Composition {
    pub const ALL: [Composition; 6] = [
        Composition::Row,
        Composition::Several,
        Composition::Map,
        Composition::Then,
        Composition::Apply,
        Composition::Own,
    ];
}

/// The operands and expressions of a spec that is being built.
struct Draft<'a> {
    case: &'a Case,
    random: Random,
    shape: Vec<u64>,
    /// The types of elements, then of the inputs of `then`.
    inputs: Vec<DType>,
    thens: Vec<DType>,
    scalars: Names,
    accumulator: DType,
    says_accumulator: bool,
}

/// The builder of a case's spec.
pub fn builder(case: &Case) -> Builder {
    let mut random = Random::new(case.choice);
    let composition = case.composition;
    let has_map = match composition {
        Composition::Map => true,
        Composition::Then | Composition::Apply => random.below(2) == 0,
        _ => false,
    };
    let several = has_map || matches!(composition, Composition::Apply | Composition::Own);
    let then = composition == Composition::Then || composition == Composition::Own && random.below(3) == 0;
    let apply = composition == Composition::Apply || composition == Composition::Own && !then && random.below(4) == 0;
    let some = |random: &mut Random, few: Range<u64>| {
        let count = few.start + random.below(few.end - few.start);
        (0..count).map(|_| random.pick(&DType::ALL)).collect::<Vec<DType>>()
    };
    let inputs = some(&mut random, if several { 1..4 } else { 1..2 });
    let thens = some(&mut random, if then { 0..3 } else { 0..1 });
    let scalars = some(&mut random, if several || then { 0..2 } else { 0..1 });
    let scalars: Names = ["eps", "k"].into_iter().map(String::from).zip(scalars).collect();
    let scalar_types = scalars.iter().map(|(_, d)| d);
    let wide = inputs.iter().chain(&thens).chain(scalar_types).any(|&d| d == F64);
    let accumulator = if wide || case.flags.acc_f64 { F64 } else { F32 };
    let says_accumulator = case.flags.acc_f64;
    let shape = case.shape();
    Draft { case, random, shape, inputs, thens, scalars, accumulator, says_accumulator }.builder(has_map, then, apply)
}

impl Draft<'_> {
    fn builder(mut self, has_map: bool, then: bool, apply: bool) -> Builder {
        let own = self.case.composition == Composition::Own;
        let element = if has_map { self.element() } else { self.inputs[0] };
        if !element.is_float() {
            self.says_accumulator = false;
            if !self.inputs.iter().chain(&self.thens).chain(self.scalars.iter().map(|(_, d)| d)).any(|&d| d == F64) {
                self.accumulator = F32;
            }
        }
        let map = has_map.then(|| self.map(element, apply));
        let mut builder = None;
        let mut results: Vec<(ResultKind, DType)> = vec![];
        let count = match self.case.composition {
            Composition::Row => 1,
            _ => 1 + self.random.below(3),
        };
        let own_reads = own.then(|| self.own_reads(then || apply));
        let mut row_inputs = 1;
        for n in 0..count {
            if own && n == 0 {
                let (combiner, types) = self.combiner(own_reads.as_ref().expect("a combiner"));
                results.extend(types.into_iter().map(|d| (ResultKind::Value, d)));
                builder = Some(Spec::own(combiner));
                continue;
            }
            if own && n > 1 {
                break;
            }
            let alone = count == 1 && !then && !apply;
            // A map of several inputs leaves no inputs for scale and bias.
            let free = !has_map || self.inputs.len() == 1;
            let fits = |r: &&Row| r.takes(element) && (alone || !r.applies && !r.selects) && (free || r.inputs == 1);
            let rows: Vec<&'static Row> = ops::ROWS.iter().filter(fits).collect();
            if rows.is_empty() {
                continue;
            }
            let row = rows[self.random.below(rows.len() as u64) as usize];
            row_inputs = if has_map { 1 } else { row.inputs as u64 };
            results
                .extend(row.results.iter().map(|&kind| (kind, if kind == ResultKind::Count { I64 } else { element })));
            let next = match builder {
                None => Spec::builder(row.name),
                Some(builder) => Builder::reducer(builder, row.name),
            };
            builder = Some(self.params(next, row));
        }
        let mut builder = builder.expect("a reducer");
        if row_inputs > 1 {
            let extra = self.random.below(row_inputs);
            self.inputs.truncate(1);
            for _ in 0..extra {
                let dtype = self.random.pick(&[F16, Bf16, F32, I32, DType::I8]);
                self.inputs.push(dtype);
            }
        }
        builder = self.operands(builder);
        if let Some(map) = map {
            builder = builder.map(map.as_str());
        }
        let reduced = self.case.reduced();
        if self.case.flags.keep_dims {
            builder = builder.keep_dims(true);
        }
        if self.says_accumulator {
            builder = builder.accumulator(F64);
        }
        builder = builder.axes(reduced);
        let values = match (then, apply) {
            (false, false) => results,
            _ => return self.after(builder, &results, then, has_map),
        };
        if self.case.flags.lift {
            builder = builder.empty_axes_lift();
        }
        let applies = row_applies(&builder);
        let outputs: Vec<DType> = values.iter().map(|&(kind, from)| self.output(kind, from, None)).collect();
        self.outputs(builder, &values, &outputs, applies)
    }

    /// The type of a mapped element.
    fn element(&mut self) -> DType {
        loop {
            let dtype = self.random.pick(&DType::ALL);
            // An f64 element makes the accumulator f64, which changes the types of names.
            if dtype != F64 || self.accumulator == F64 {
                return dtype;
            }
        }
    }

    fn typed(&self, name: String, dtype: DType) -> (String, DType) {
        (name, expression_type(dtype, self.accumulator))
    }

    fn elements(&self) -> Names {
        self.inputs.iter().enumerate().map(|(i, &d)| self.typed(format!("x{i}"), d)).collect()
    }

    fn scalar_names(&self) -> Names {
        self.scalars.iter().map(|(name, d)| self.typed(name.clone(), *d)).collect()
    }

    /// A map that reads every input, or some where `apply` may read the others.
    fn map(&mut self, element: DType, apply: bool) -> String {
        let elements = self.elements();
        let names = [elements.clone(), self.scalar_names()].concat();
        let mut must: Vec<String> = elements.into_iter().map(|(name, _)| name).collect();
        if apply {
            must.truncate(1);
        } else if self.case.composition == Composition::Map {
            must.extend(self.scalar_names().into_iter().map(|(name, _)| name));
        }
        expression(&mut self.random, &names, &must, element)
    }

    fn params(&mut self, mut builder: Builder, row: &Row) -> Builder {
        for param in row.params {
            let value = match param.name {
                "p" => self.random.pick(POWERS),
                "eps" => self.random.pick(EPSILONS).max(param.at_least),
                "ddof" => self.random.pick(DDOFS),
                "q" => self.random.below(9) as f64 / 8.0,
                "last" => self.random.below(2) as f64,
                other => panic!("`{other}` is new: say here which values to draw"),
            };
            builder = builder.param(param.name, value);
        }
        builder
    }

    /// Adds inputs, inputs of `then` and scalars.
    fn operands(&mut self, builder: Builder) -> Builder {
        let mut builder = builder.input_at(self.inputs[0], &self.shape, self.case.input_layout(&self.shape));
        for &dtype in &self.inputs[1..] {
            let shape = broadcast(&mut self.random, &self.shape);
            builder = builder.input_at(dtype, &shape, some_layout(&mut self.random, &shape, true, self.case.blocks));
        }
        let to = self.case.output_shape();
        for &dtype in &self.thens {
            let shape = broadcast(&mut self.random, &to);
            builder =
                builder.then_input_at(dtype, &shape, some_layout(&mut self.random, &shape, true, self.case.blocks));
        }
        for (name, dtype) in &self.scalars {
            builder = builder.scalar(name, *dtype);
        }
        builder
    }

    /// Expressions after the reduction, and the outputs.
    fn after(mut self, builder: Builder, results: &[(ResultKind, DType)], then: bool, has_map: bool) -> Builder {
        let of_integers = results.iter().any(|&(kind, d)| kind == ResultKind::Value && d.is_int());
        let to_float = of_integers && self.random.below(2) == 0;
        let working = |&(kind, d): &(ResultKind, DType)| match d {
            _ if kind == ResultKind::Count => I64,
            Bool => Bool,
            d if d.is_float() => self.accumulator,
            _ if to_float => F64,
            d if d.is_signed() => I64,
            _ => U64,
        };
        let working: Vec<DType> = results.iter().map(working).collect();
        let mut names: Names = working.iter().enumerate().map(|(i, &d)| (format!("r{i}"), d)).collect();
        let mut must: Vec<String> = self.scalars.iter().map(|(name, _)| name.clone()).collect();
        names.extend(self.scalar_names());
        if then {
            let thens: Names = self.thens.iter().enumerate().map(|(i, &d)| self.typed(format!("y{i}"), d)).collect();
            must.extend(thens.iter().map(|(name, _)| name.clone()));
            names.extend(thens);
        } else {
            names.extend(self.elements());
            let unread = if has_map { self.inputs.len() } else { 1 };
            must.extend((1..unread.max(self.inputs.len())).map(|i| format!("x{i}")));
        }
        let count = if then { 1 + self.random.below(3) } else { 1 };
        let (mut expressions, mut values, mut outputs) = (vec![], vec![], vec![]);
        for o in 0..count {
            // If integer results become floats, the first output has a float type; others may.
            let float = if !of_integers { None } else { Some(to_float && (o == 0 || self.random.below(2) == 0)) };
            let wanted =
                if to_float && o == 0 { F64 } else { self.random.pick(&[Bool, I32, I64, U64, DType::U8, F32, F64]) };
            let from = wanted;
            let output = self.output(ResultKind::Value, from, float);
            let mut names = names.clone();
            let must = if o == 0 { must.clone() } else { vec![] };
            if then && self.random.below(2) == 0 {
                let old = match (output, working[0]) {
                    (d, r) if d.is_int() && r.is_int() => r,
                    (d, _) => expression_type(d, self.accumulator),
                };
                names.push(("d".into(), old));
            }
            expressions.push(expression(&mut self.random, &names, &must, from));
            values.push((ResultKind::Value, from));
            outputs.push(output);
        }
        let text = expressions.join(", ");
        let builder = if then { builder.then(text.as_str()) } else { builder.apply(text.as_str()) };
        self.outputs(builder, &values, &outputs, !then)
    }

    /// The type of an output with values of type `from`; `float` forces a float type or forbids one.
    fn output(&mut self, kind: ResultKind, from: DType, float: Option<bool>) -> DType {
        let same = if self.case.flags.same_output { Some(from) } else { None };
        let reduced = self.case.reduced();
        let slice: u64 = reduced.into_iter().map(|axis| self.shape[axis as usize]).product();
        let fits = |d: DType| match (kind, from) {
            (ResultKind::Count, _) => d.holds(slice),
            (_, Bool) => d == Bool,
            _ => d != Bool && float.is_none_or(|float| d.is_float() == float),
        };
        match same.filter(|&d| fits(d)) {
            Some(same) => same,
            None => loop {
                let dtype = self.random.pick(&DType::ALL);
                if fits(dtype) {
                    return dtype;
                }
            },
        }
    }

    /// Adds the outputs with the flags that they need.
    fn outputs(
        mut self,
        builder: Builder,
        values: &[(ResultKind, DType)],
        outputs: &[DType],
        applies: bool,
    ) -> Builder {
        let flags = &self.case.flags;
        let mut builder = builder;
        for (o, &output) in outputs.iter().enumerate() {
            builder = builder.output(output);
            let layout = match (o, applies) {
                (0, false) => self.case.output_layout(),
                (_, false) => some_layout(&mut self.random, &self.case.output_shape(), false, self.case.blocks),
                (_, true) => some_layout(&mut self.random, &self.shape, false, self.case.blocks),
            };
            builder = builder.output_layout(layout);
        }
        let pairs = || values.iter().zip(outputs).filter(|((kind, _), _)| *kind != ResultKind::Count);
        let rounded = pairs().any(|((_, from), to)| from.is_float() && to.is_int());
        let integer = pairs().any(|(_, to)| to.is_int());
        if flags.saturate && pairs().any(|((_, from), to)| from.is_int() && to.is_int()) {
            builder = builder.saturate();
        }
        if rounded || integer && flags.says_rounding {
            builder = builder.round(if flags.half_even { Rounding::HalfEven } else { Rounding::Trunc });
        }
        builder
    }

    /// The names that a combiner's lifts may read, and those that they must.
    fn own_reads(&mut self, after: bool) -> (Names, Vec<String>) {
        let elements = self.elements();
        let mut must: Vec<String> = elements.iter().map(|(name, _)| name.clone()).collect();
        if !after {
            must.extend(self.scalars.iter().map(|(name, _)| name.clone()));
        }
        let mut names = [elements, self.scalar_names()].concat();
        if self.random.below(2) == 0 {
            names.push(("i".into(), I64));
        }
        (names, must)
    }

    /// A combiner, and the types of its results.
    fn combiner(&mut self, reads: &(Names, Vec<String>)) -> (Combiner, Vec<DType>) {
        let phases = 1 + self.random.below(2);
        let mut closes = false;
        let mut combiner: Option<Combiner> = None;
        let mut results: Vec<DType> = vec![];
        for k in 0..phases {
            let state: Vec<DType> = (0..1 + self.random.below(3)).map(|_| self.random.pick(&STATES)).collect();
            let identity: Vec<String> = state.iter().map(|&d| constant(&mut self.random, d)).collect();
            let earlier = named('r', &results);
            let names = [reads.0.clone(), earlier].concat();
            let must = if k == 0 { reads.1.clone() } else { vec![] };
            let lift = self.list(&names, &must, &state);
            let combine = self.list(&[named('a', &state), named('b', &state)].concat(), &[], &state);
            let identity = identity.join(", ");
            let next = match combiner {
                None => Combiner::new(&identity, &lift, &combine),
                Some(c) => c.phase(&identity, &lift, &combine),
            };
            let mut next = next.expect("expressions");
            if self.random.below(2) == 0 {
                closes = true;
                let closed: Vec<DType> = (0..1 + self.random.below(2)).map(|_| self.random.pick(&STATES)).collect();
                let names = [named('a', &state), vec![("n".into(), self.accumulator)]].concat();
                next = next.close(&self.list(&names, &[], &closed)).expect("expressions");
                results.extend(closed);
            } else {
                results.extend(state);
            }
            combiner = Some(next);
        }
        let mut combiner = combiner.expect("a phase");
        if phases > 1 || closes {
            let merge = self.list(&[named('a', &results), named('b', &results)].concat(), &[], &results);
            combiner = combiner.merge(&merge).expect("expressions");
        }
        if self.random.below(2) == 0 {
            let finished: Vec<DType> = (0..1 + self.random.below(2)).map(|_| self.random.pick(&STATES)).collect();
            let names = [named('a', &results), vec![("n".into(), self.accumulator)]].concat();
            combiner = combiner.finish(&self.list(&names, &[], &finished)).expect("expressions");
            results = finished;
        }
        if self.random.below(2) == 0 {
            combiner = combiner.commutative();
        }
        (combiner, results)
    }

    /// A list with an expression for each type, the first of which names all of `must`.
    fn list(&mut self, names: &Names, must: &[String], types: &[DType]) -> String {
        let one = |(n, &dtype): (usize, &DType)| {
            let must = if n == 0 { must } else { &[] };
            expression(&mut self.random, names, must, dtype)
        };
        types.iter().enumerate().map(one).collect::<Vec<String>>().join(", ")
    }
}

/// Types of states.
const STATES: [DType; 9] = [F32, F32, F64, I32, I64, U64, DType::U8, DType::I16, Bool];

fn named(letter: char, types: &[DType]) -> Names {
    types.iter().enumerate().map(|(i, &d)| (format!("{letter}{i}"), d)).collect()
}

/// Returns true if a row writes the whole slice.
fn row_applies(builder: &Builder) -> bool {
    let spec = builder.clone().build();
    let calls = spec.map(|s| s.reducers().to_vec()).unwrap_or_default();
    calls.iter().any(|c: &OpCall| c.as_row().is_some_and(|row| row.applies))
}

/// A shape that broadcasts to another.
fn broadcast(random: &mut Random, to: &[u64]) -> Vec<u64> {
    let rank = random.below(to.len() as u64 + 1) as usize;
    let rank = if random.below(2) == 0 { to.len() } else { rank };
    to[to.len() - rank..].iter().map(|&n| if random.below(3) == 0 { 1 } else { n }).collect()
}

fn some_layout(random: &mut Random, shape: &[u64], repeats: bool, blocks: bool) -> Layout {
    let axes: Vec<(u64, AxisPlace)> = shape.iter().map(|&extent| (extent, AxisPlace::some(random))).collect();
    let forms =
        [Form::RowMajor, Form::RowMajor, Form::RowMajor, Form::Tag, Form::Strides, Form::Strides, Form::Blocked];
    let form = random.pick(&forms);
    layout(if blocks { form } else { Form::RowMajor }, &axes, repeats)
}
