//! The text of a kernel: the region of its terms.

use super::kernel::{Access, Kernel};
use super::place::Placement;
use super::space::{Index, seen_through};
use super::terms::{T, TermOp};
use crate::shape::row_major;
use cranefold_ir::DType::{self, F32, F64};
use cranefold_ir::expression::{Expression, Operation, name};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt::{Display, Write};

/// The deepest expression before a part of it gets a name.
const DEEP: usize = 24;

/// A kernel as text, with the terms that it reads and writes, in the order of a call.
pub(crate) struct Emitted {
    pub(crate) text: String,
    pub(crate) operands: Vec<T>,
    /// The elements of each operand that are read.
    pub(crate) read: Vec<u64>,
    pub(crate) outputs: Vec<T>,
}

/// The standing of slices of one element: they are elements or not by the shapes of the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Single {
    /// They are slices.
    Slice,
    /// Outputs of them are elements.
    Element,
    /// Operands of them are elements too: each has all axes.
    Whole,
}

/// Writes a kernel; `memory` gives the element type of a term in memory.
pub(crate) fn emitted(
    placement: &Placement,
    kernel: &Kernel,
    memory: &dyn Fn(T) -> DType,
    order: &str,
    single: Single,
) -> Result<Emitted, String> {
    let terms = placement.terms;
    let is_wide = |t: T| terms.get(t).dtype == F64;
    let any_wide = kernel.computed.iter().any(|(t, _)| is_wide(*t))
        || kernel.reductions.iter().any(|&t| is_wide(t))
        || kernel.operands.iter().any(|(t, _)| memory(*t) == F64);
    let mut emitter = Emitter {
        placement,
        kernel,
        float: if any_wide { F64 } else { F32 },
        memory,
        lines: vec![],
        named: FxHashMap::default(),
        results: FxHashMap::default(),
        uses: FxHashMap::default(),
        viewed: FxHashSet::default(),
        operands: vec![],
        next: 0,
        has_positions: false,
        atoms: kernel.space.order(),
        single,
    };
    emitter.count();
    let mut pending: Vec<T> = kernel.reductions.clone();
    pending.sort_unstable();
    for t in pending {
        emitter.reduction(t)?;
    }
    let mut outputs = vec![];
    for placed in &kernel.outputs {
        let index = kernel.space.resolved(&placed.index);
        let (value, _) = emitter.value(placed.term, &index)?;
        let value = emitter.converted(value, placed.term, memory(placed.into.0));
        let layout = emitter.output_layout(placed)?;
        outputs.push(format!("{value}{layout}"));
    }
    if emitter.operands.is_empty() {
        return Err("a value of positions alone, which no operand of a kernel gives a shape".into());
    }
    let text = emitter.text(order, &outputs);
    let read = emitter.operands.iter().map(|(_, part)| {
        let depends: Vec<usize> = part.iter().flat_map(|(atoms, ..)| atoms.iter().copied()).collect();
        depends.iter().map(|&atom| kernel.space.extent(atom)).product()
    });
    Ok(Emitted {
        text,
        read: read.collect(),
        operands: emitter.operands.iter().map(|(t, _)| *t).collect(),
        outputs: kernel.outputs.iter().map(|placed| placed.into.0).collect(),
    })
}

struct Emitter<'p, 't> {
    placement: &'p Placement<'t>,
    kernel: &'p Kernel,
    /// The type of floats: the accumulator's.
    float: DType,
    memory: &'p dyn Fn(T) -> DType,
    lines: Vec<String>,
    /// The expressions of terms that have a name, or are named by what they are.
    named: FxHashMap<(T, Index), (Expression, usize)>,
    /// The names of reductions.
    results: FxHashMap<T, String>,
    uses: FxHashMap<(T, Index), usize>,
    /// The terms that views show here.
    viewed: FxHashSet<T>,
    operands: Vec<(T, Access)>,
    next: usize,
    has_positions: bool,
    atoms: Vec<usize>,
    single: Single,
}

impl Emitter<'_, '_> {
    /// Counts the users of each computed term.
    fn count(&mut self) {
        let terms = self.placement.terms;
        self.uses.reserve(self.kernel.computed.len());
        for (t, index) in &self.kernel.computed {
            let term = terms.get(*t);
            let TermOp::Apply(_) = term.op else {
                self.viewed.extend(&term.args);
                continue;
            };
            for (place, &arg) in term.args.iter().enumerate() {
                // Both operands of a square are one value, which gets a name.
                let is_again = place > 0 && term.args[place - 1] == arg && term.args.len() != 2;
                if !is_again && terms.number(arg).is_none() {
                    *self.uses.entry((arg, index.clone())).or_default() += 1;
                }
            }
        }
        for &t in &self.kernel.reductions {
            let of = terms.get(t).args[0];
            if let Some(index) = self.kernel.index.get(&of) {
                *self.uses.entry((of, self.kernel.space.resolved(index))).or_default() += 1;
            }
        }
        for placed in &self.kernel.outputs {
            let index = self.kernel.space.resolved(&placed.index);
            *self.uses.entry((placed.term, index)).or_default() += 1;
        }
    }

    fn fresh(&mut self) -> String {
        self.next += 1;
        format!("v{}", self.next - 1)
    }

    /// Defines the result of a reduction, and of all others of the same op and operand.
    fn reduction(&mut self, t: T) -> Result<(), String> {
        if self.results.contains_key(&t) {
            return Ok(());
        }
        let terms = self.placement.terms;
        let term = terms.get(t);
        let of = term.args[0];
        let index = self.kernel.index.get(&of).ok_or("a reduction has no place")?;
        let index = self.kernel.space.resolved(index);
        let (value, _) = self.value(of, &index)?;
        match &term.op {
            TermOp::Centered(_) => {
                let own = self.fresh();
                self.lines.push(format!("{own} = centered({value})"));
                self.results.insert(t, own);
            }
            TermOp::Reduce { call, axes, .. } => {
                let row = call.as_row().ok_or("a combiner in a plan")?;
                let results = row.results.len();
                let names: Vec<String> = (0..results).map(|_| self.fresh()).collect();
                let mut text = format!("{} = {}({value}", names.join(", "), row.name);
                for (param, given) in row.params.iter().zip(call.params()) {
                    if param.default != Some(given) {
                        let _ = write!(text, ", {}={given:?}", param.name);
                    }
                }
                if self.placement.is_total(self.kernel, t) {
                    let atoms = axes.iter().flat_map(|&axis| index[axis].iter());
                    let mut places: Vec<usize> =
                        atoms.filter_map(|atom| self.atoms.iter().position(|a| a == atom)).collect();
                    places.sort_unstable();
                    let places: Vec<String> = places.iter().map(usize::to_string).collect();
                    let _ = write!(text, ", axes=[{}]", places.join(","));
                }
                text.push(')');
                if results == 1 {
                    self.lines.push(text);
                    self.results.insert(t, names[0].clone());
                    return Ok(());
                }
                let mut used = 0;
                for &other in &self.kernel.reductions {
                    if let TermOp::Reduce { call: same, axes: over, result } = &terms.get(other).op
                        && (same, over, terms.get(other).args[0]) == (call, axes, of)
                    {
                        self.results.insert(other, names[*result].clone());
                        used += 1;
                    }
                }
                if used < results && row.name == "sum_exp" {
                    // Names that nothing uses are refused: each result of sum_exp is a reduction too.
                    return Err("half of a sum_exp".into());
                }
                self.lines.push(text);
            }
            _ => return Err("this is no reduction".into()),
        }
        Ok(())
    }

    /// The expression of a term at an index, and its depth.
    fn value(&mut self, t: T, index: &Index) -> Result<(Expression, usize), String> {
        let terms = self.placement.terms;
        let term = terms.get(t);
        if let TermOp::Number(_) = term.op {
            return Ok((self.number(t), 0));
        }
        let at = (t, index.clone());
        if let Some(known) = self.named.get(&at) {
            return Ok(known.clone());
        }
        let is_own = self.kernel.computed.contains(&at);
        if !is_own
            && let TermOp::Reduce { .. } | TermOp::Centered(_) = term.op
            && self.kernel.reductions.contains(&t)
        {
            self.reduction(t)?;
            let own = self.results.get(&t).ok_or("a reduction has no name")?;
            return Ok((name(own), 0));
        }
        if !is_own {
            return Ok((self.operand(t, index)?, 0));
        }
        let (value, depth) = match &term.op {
            TermOp::View(from) => {
                let own = seen_through(from, index, terms.shape(term.args[0]));
                return self.value(term.args[0], &own);
            }
            TermOp::Reshape => {
                let mut space = self.kernel.space.clone();
                let inner = space.reshaped(index, terms.shape(term.args[0])).ok_or("a reshape has no index")?;
                return self.value(term.args[0], &inner);
            }
            TermOp::Position(axis) => (self.position(&index[*axis]), 1),
            TermOp::Apply(operation) => {
                let mut args = vec![];
                let mut deepest = 0;
                for &arg in &term.args {
                    let (value, depth) = self.value(arg, index)?;
                    args.push(value);
                    deepest = deepest.max(depth);
                }
                (self.operation(t, *operation, args), deepest + 2)
            }
            _ => return Err("a term that no kernel computes".into()),
        };
        let users = self.uses.get(&at).copied().unwrap_or(0);
        if users == 1 && depth <= DEEP && !self.viewed.contains(&t) {
            // Its one user asks once.
            return Ok((value, depth));
        }
        let known = if users > 1 || depth > DEEP {
            let own = self.fresh();
            self.lines.push(format!("{own} = {value}"));
            (name(own), 0)
        } else {
            (value, depth)
        };
        self.named.insert(at, known.clone());
        Ok(known)
    }

    fn operation(&self, t: T, operation: Operation, mut args: Vec<Expression>) -> Expression {
        let terms = self.placement.terms;
        let from_float = terms.get(t).args.first().is_some_and(|&arg| terms.get(arg).dtype.is_float());
        match operation {
            // Floats have one type in expressions; what is narrower goes back to it.
            Operation::Cast(to) if to == self.float || to == F64 => match args.pop() {
                Some(arg) if from_float => arg,
                arg => Expression::of(Operation::Cast(self.float), arg),
            },
            Operation::Cast(to) if to.is_float() => {
                Expression::of(Operation::Cast(self.float), [Expression::of(Operation::Cast(to), args)])
            }
            Operation::Cast(to) if to.is_int() && to.bytes() < 4 => {
                Expression::of(Operation::Cast(DType::I32), [Expression::of(Operation::Cast(to), args)])
            }
            _ => Expression::of(operation, args),
        }
    }

    /// The number of a term, as short as its type allows.
    fn number(&self, t: T) -> Expression {
        let value = self.placement.terms.number(t).unwrap_or(cranefold_ir::Scalar::f64(0.0));
        if value.dtype() == DType::Bool {
            let one = |x: i32| Expression::from(x);
            return one(0).eq(one(if value.bits() != 0 { 0 } else { 1 }));
        }
        if let Some(int) = value.as_int() {
            return Expression::number(int);
        }
        let real = value.as_f64();
        // A whole number needs no point; -0 and large ones keep it.
        let whole = real.fract() == 0.0 && real.abs() < 1e15 && !(real == 0.0 && real.is_sign_negative());
        if whole {
            return Expression::number(real as i128);
        }
        if self.float == F32 {
            let short: f64 = format!("{:?}", real as f32).parse().unwrap_or(real);
            if short as f32 == real as f32 && short.is_finite() {
                return Expression::from(short);
            }
        }
        Expression::from(real)
    }

    fn position(&mut self, atoms: &[usize]) -> Expression {
        self.has_positions = true;
        let mut value: Option<Expression> = None;
        for atom in atoms {
            let place = self.atoms.iter().position(|a| a == atom).unwrap_or_default();
            // The call stands as a name until the text is put together.
            let own = name(format!("position_{place}"));
            value = Some(match value {
                None => own,
                Some(outer) => outer * Expression::number(self.kernel.space.extent(*atom).into()) + own,
            });
        }
        value.unwrap_or_else(|| Expression::of(Operation::Cast(DType::I64), [Expression::number(0)]))
    }

    /// The name of an operand, which is new if it is not read yet.
    fn operand(&mut self, t: T, index: &Index) -> Result<Expression, String> {
        let terms = self.placement.terms;
        let term = terms.get(t);
        let (source, part) = match &term.op {
            TermOp::Slice(ranges) if !self.kernel.operands.iter().any(|(source, _)| *source == t) => {
                let part: Access = index.iter().zip(ranges).map(|(a, r)| (a.clone(), r.start, r.step)).collect();
                (term.args[0], part)
            }
            _ => (t, index.iter().map(|atoms| (atoms.clone(), 0, 1)).collect()),
        };
        let place = match self.operands.iter().position(|known| *known == (source, part.clone())) {
            Some(place) => place,
            None => {
                self.operands.push((source, part));
                self.operands.len() - 1
            }
        };
        let operand = name(format!("x{place}"));
        // An operand in f64 has its type; in a kernel of f64 a narrower one has it too.
        Ok(operand)
    }

    fn converted(&self, value: Expression, t: T, to: DType) -> Expression {
        let own = self.placement.terms.get(t).dtype;
        let is_float = own.is_float();
        let same = if is_float { to == self.float } else { to == own };
        if same { value } else { Expression::of(Operation::Cast(to), [value]) }
    }

    /// For each atom the distance of elements in memory, and the first element.
    fn strides(&self, part: &Access, shape: &[u64]) -> (Vec<i64>, u64) {
        let own = row_major(shape);
        let mut strides = vec![0; self.atoms.len()];
        let mut offset = 0;
        for ((atoms, start, step), stride) in part.iter().zip(own) {
            offset += start * stride;
            let mut inner = 1;
            for atom in atoms.iter().rev() {
                if let Some(place) = self.atoms.iter().position(|a| a == atom) {
                    strides[place] += step * (stride * inner) as i64;
                }
                inner *= self.kernel.space.extent(*atom);
            }
        }
        (strides, offset)
    }

    fn output_layout(&self, placed: &super::kernel::Placed) -> Result<String, String> {
        let terms = self.placement.terms;
        let (into, axis, start) = placed.into;
        let index = self.kernel.space.resolved(&placed.index);
        let part: Access =
            index.iter().enumerate().map(|(a, atoms)| (atoms.clone(), if a == axis { start } else { 0 }, 1)).collect();
        let (strides, offset) = self.strides(&part, terms.shape(into));
        let depends: Vec<usize> = index.iter().flatten().copied().collect();
        // The axes of the output: all, those that are kept, or those that no total reduces.
        let space = &self.kernel.space;
        let is_element = self.single != Single::Slice || depends.iter().any(|&atom| space.is_reduced(atom));
        let total =
            self.kernel.totals.iter().flat_map(|totals| space.parts_of(totals.iter().copied())).collect::<Vec<usize>>();
        let is_total = !is_element && total.iter().any(|atom| space.extent(*atom) != 1 && !depends.contains(atom));
        let stays = |atom: usize| is_element || !(space.is_reduced(atom) || is_total && total.contains(&atom));
        let axes: Vec<usize> = (0..self.atoms.len()).filter(|&place| stays(self.atoms[place])).collect();
        let shape: Vec<u64> = axes.iter().map(|&place| space.extent(self.atoms[place])).collect();
        let strides: Vec<i64> = axes.iter().map(|&place| strides[place]).collect();
        if is_dense(&shape, &strides) && offset == 0 {
            return Ok(String::new());
        }
        Ok(layout(&shape, &strides, offset))
    }

    fn text(&mut self, order: &str, outputs: &[String]) -> String {
        let space = &self.kernel.space;
        let rank = self.atoms.len();
        let extents: Vec<u64> = self.atoms.iter().map(|&atom| space.extent(atom)).collect();
        let mut operands: Vec<(Vec<u64>, Vec<i64>, u64, DType)> = Vec::with_capacity(self.operands.len());
        for (t, part) in &self.operands {
            let (strides, offset) = self.strides(part, self.placement.terms.shape(*t));
            let depends = |atom: usize| part.iter().any(|(atoms, ..)| atoms.contains(&atom));
            let shape = (0..rank).map(|i| if depends(self.atoms[i]) { extents[i] } else { 1 }).collect();
            operands.push((shape, strides, offset, (self.memory)(*t)));
        }
        // Some operand has each extent.
        for i in 0..rank {
            if extents[i] != 1 && operands.iter().all(|(shape, ..)| shape[i] != extents[i]) {
                operands[0].0[i] = extents[i];
            }
        }
        let has_rank = operands.iter().any(|(shape, ..)| shape.first().is_some_and(|&e| e != 1));
        let mut text = "region ".to_string();
        for (number, (shape, strides, offset, dtype)) in operands.iter().enumerate() {
            let comma = if number > 0 { ", " } else { "" };
            // Axes of 1 in front are left out where another operand has them.
            let whole = number == 0 && !has_rank || self.single == Single::Whole;
            let first = if whole { 0 } else { shape.iter().position(|&e| e != 1).unwrap_or(rank) };
            let (shape, strides) = (&shape[first..], &strides[first..]);
            let _ = write!(text, "{comma}x{number}:{dtype}[");
            push_list(&mut text, shape);
            text.push(']');
            if !is_dense(shape, strides) || *offset != 0 {
                text.push_str(&layout(shape, strides, *offset));
            }
        }
        text.push_str(" axes=[");
        push_list(&mut text, (0..rank).filter(|&i| space.is_reduced(self.atoms[i])));
        text.push(']');
        let floats = operands.iter().any(|(.., dtype)| *dtype == F64);
        if self.float == F64 && !floats {
            text.push_str(" acc=f64");
        }
        if !order.is_empty() {
            let _ = write!(text, " order={order}");
        }
        let first = text.len();
        text.push_str(" { ");
        self.lines.iter().for_each(|line| text.extend([line.as_str(), "; "]));
        text.push_str(&outputs.join(", "));
        text.push_str(" }");
        if self.has_positions {
            let mut body = text.split_off(first);
            for place in (0..rank).rev() {
                body = body.replace(&format!("position_{place}"), &format!("position({place})"));
            }
            text.push_str(&body);
        }
        text
    }
}

/// Numbers with commas between them.
fn push_list(text: &mut String, numbers: impl IntoIterator<Item = impl Display>) {
    for (place, number) in numbers.into_iter().enumerate() {
        let comma = if place > 0 { "," } else { "" };
        let _ = write!(text, "{comma}{number}");
    }
}

fn is_dense(shape: &[u64], strides: &[i64]) -> bool {
    let dense = row_major(shape);
    let agrees = |((&extent, &stride), &own): ((&u64, &i64), &u64)| extent == 1 || stride == own as i64;
    shape.iter().zip(strides).zip(&dense).all(agrees) || shape.contains(&0)
}

fn layout(shape: &[u64], strides: &[i64], offset: u64) -> String {
    let mut text = "@(".to_string();
    push_list(&mut text, shape.iter().zip(strides).map(|(&extent, &stride)| if extent == 1 { 0 } else { stride }));
    text.push(')');
    // A layout counts from the lowest element.
    let below = |(&extent, &stride): (&u64, &i64)| stride.min(0).unsigned_abs() * extent.saturating_sub(1);
    let offset = offset - shape.iter().zip(strides).map(below).sum::<u64>().min(offset);
    if offset > 0 {
        let _ = write!(text, "+{offset}");
    }
    text
}
