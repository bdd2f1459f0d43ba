//! The translation of a graph's primitives into terms.

use super::terms::{Args, T, Terms};
use crate::fold::Known;
use crate::graph::{Graph, Node, ValueId};
use crate::infer::{seen, working_float};
use crate::op::Op;
use cranefold_ir::DType::{self, Bool, F32, F64, I32, I64, U64};
use cranefold_ir::Scalar;
use cranefold_ir::expression::{Expression, Folded, Operation};
use cranefold_ir::ops::{Integers, ResultKind, find};
use smallvec::smallvec;

/// The terms of a graph without composites, by its values.
pub(crate) struct Translated {
    pub(crate) terms: Terms,
    pub(crate) of: Vec<T>,
}

pub(crate) fn translated(graph: &Graph) -> Translated {
    let mut result = Translated { terms: Terms::default(), of: vec![0; graph.values().len()] };
    let mut known = Known::default();
    let mut is_known = vec![false; graph.values().len()];
    for node in graph.nodes() {
        // A value that follows from constants alone may be known.
        let follows = node.inputs.iter().all(|id| is_known[id.index()]);
        let may_be_known = follows && !matches!(node.op, Op::Input | Op::Opaque { .. } | Op::Position { .. });
        for (i, &id) in node.outputs.iter().enumerate() {
            is_known[id.index()] = follows && !matches!(node.op, Op::Input | Op::Opaque { .. });
            result.of[id.index()] = result.value(graph, node, i, may_be_known.then_some(&mut known));
        }
    }
    result
}

/// An operand of a formula: a number takes its type from what it stands beside.
#[derive(Clone)]
enum Operand {
    Term(T),
    Int(i128),
    Real(f64),
}

impl Translated {
    /// The term of a result of a node.
    fn value(&mut self, graph: &Graph, node: &Node, result: usize, mut known: Option<&mut Known>) -> T {
        let id = node.outputs[result];
        let value = graph.value(id);
        if let Some(data) = known.as_mut().and_then(|known| uniform(graph, id, known)) {
            let dtype = self.working(value.dtype);
            return self.terms.of_number(data, dtype);
        }
        let leaf = |this: &mut Self| {
            let dtype = this.working(value.dtype);
            this.terms.leaf(id, dtype, &value.shape)
        };
        if known.is_some_and(|known| known.of(graph, id).is_some()) {
            return leaf(self);
        }
        let arg = |this: &Self, i: usize| this.of[node.inputs[i].index()];
        match &node.op {
            Op::Input | Op::Constant(_) | Op::Opaque { .. } => leaf(self),
            Op::Map(formula) => self.map(graph, node, formula, id),
            Op::Cast { to, saturate } => {
                let x = arg(self, 0);
                self.cast(x, graph.value(node.inputs[0]).dtype, *to, *saturate)
            }
            Op::Reshape(shape) => self.terms.reshape(arg(self, 0), shape),
            Op::Transpose(perm) => {
                let from: Vec<Option<usize>> = perm.iter().map(|&axis| Some(axis)).collect();
                self.terms.view(arg(self, 0), &value.shape, &from)
            }
            Op::Broadcast(shape) => self.terms.stretch(arg(self, 0), shape),
            Op::Slice(ranges) => self.terms.slice(arg(self, 0), ranges),
            Op::Concat(axis) => {
                let args = node.inputs.iter().map(|id| self.of[id.index()]).collect();
                let dtype = self.working(value.dtype);
                self.terms.concat(args, *axis, dtype, &value.shape)
            }
            Op::Position { shape, axis } => self.terms.position(shape, *axis),
            Op::Pick(axis) => self.pick(graph, node, *axis),
            Op::Reduce { call, axes, .. } => self.reduce(graph, node, call, axes, result),
            Op::Normalize { .. } | Op::Composite { .. } => leaf(self),
        }
    }

    fn working(&self, dtype: DType) -> DType {
        seen(dtype, if dtype == F64 { F64 } else { F32 })
    }

    /// A conversion of elements of a type of memory to another.
    fn cast(&mut self, x: T, from: DType, to: DType, saturate: bool) -> T {
        if from == to || widens(from, to) {
            // A wider float holds every value; only f64 is another working type.
            return match (self.terms.get(x).dtype, to) {
                (F32, F64) => self.terms.apply(Operation::Cast(F64), &[x]),
                (own, to) if to.is_int() && own != self.working(to) => self.terms.apply(Operation::Cast(to), &[x]),
                _ => x,
            };
        }
        let range = to.int_range().zip(from.int_range()).filter(|_| saturate);
        let Some(((least, greatest), (from_least, from_greatest))) = range else {
            return self.terms.apply(Operation::Cast(to), &[x]);
        };
        // The limits that the type of the operand can pass.
        let own = self.terms.get(x).dtype;
        let mut x = x;
        if from_greatest > greatest {
            let limit = self.terms.of_number(Scalar::int(own, greatest), own);
            x = self.terms.apply(Operation::Min, &[x, limit]);
        }
        if from_least < least {
            let limit = self.terms.of_number(Scalar::int(own, least), own);
            x = self.terms.apply(Operation::Max, &[x, limit]);
        }
        self.terms.apply(Operation::Cast(to), &[x])
    }

    fn map(&mut self, graph: &Graph, node: &Node, formula: &Expression, id: ValueId) -> T {
        let value = graph.value(id);
        let dtypes: Vec<DType> = node.inputs.iter().map(|&id| graph.value(id).dtype).collect();
        let float = working_float(&dtypes);
        let args: Args = node
            .inputs
            .iter()
            .map(|id| {
                let t = self.terms.stretch(self.of[id.index()], &value.shape);
                // Floats of a formula have one working type.
                match (self.terms.get(t).dtype, float) {
                    (F32, F64) => self.terms.apply(Operation::Cast(F64), &[t]),
                    _ => t,
                }
            })
            .collect();
        let result = formula.fold(&mut |folded: Folded<Operand>| match folded {
            Folded::Int(value) => Operand::Int(value),
            Folded::Real(value) => Operand::Real(value),
            Folded::Name(name) => {
                let place = name.get(1..).and_then(|digits| digits.parse::<usize>().ok());
                Operand::Term(place.and_then(|place| args.get(place).copied()).unwrap_or(args[0]))
            }
            Folded::Apply(operation, operands) => self.apply(operation, operands, float),
        });
        let wanted = value.dtype;
        let t = self.typed(result, if wanted.is_float() { float } else { self.working(wanted) });
        let own = self.terms.get(t).dtype;
        // The result is converted once to the type of the value; a float is rounded where it is written.
        match wanted {
            _ if wanted.is_float() && own.is_float() => match (own, self.working(wanted)) {
                (F64, F32) => self.terms.apply(Operation::Cast(F32), &[t]),
                (F32, F64) => self.terms.apply(Operation::Cast(F64), &[t]),
                _ => t,
            },
            Bool if own == Bool => t,
            _ if own == self.working(wanted) && wanted.bytes() >= 4 => t,
            _ => self.terms.apply(Operation::Cast(wanted), &[t]),
        }
    }

    fn typed(&mut self, operand: Operand, dtype: DType) -> T {
        match operand {
            Operand::Term(t) => t,
            Operand::Int(value) if dtype.is_float() => self.terms.of_real(value as f64, dtype),
            Operand::Int(value) if dtype == Bool => self.terms.of_number(Scalar::bool(value != 0), dtype),
            Operand::Int(value) => self.terms.of_number(Scalar::int(dtype, value), dtype),
            Operand::Real(value) if dtype.is_float() => self.terms.of_real(value, dtype),
            Operand::Real(value) => self.terms.of_number(crate::data::scalar(dtype, value), dtype),
        }
    }

    fn apply(&mut self, operation: Operation, operands: Vec<Operand>, float: DType) -> Operand {
        let typed = |operands: &[Operand], terms: &Terms| {
            operands.iter().find_map(|operand| match operand {
                Operand::Term(t) => Some(terms.get(*t).dtype),
                _ => None,
            })
        };
        if let Operation::Select = operation {
            let dtype = typed(&operands[1..], &self.terms).unwrap_or(float);
            let mut operands = operands.into_iter();
            let condition = operands.next().map_or(0, |condition| self.typed(condition, Bool));
            let mut args: Args = smallvec![condition];
            args.extend(operands.map(|operand| self.typed(operand, dtype)));
            return Operand::Term(self.terms.apply(operation, &args));
        }
        let is_logic = matches!(operation, Operation::And | Operation::Or | Operation::Not);
        let all_ints = operands.iter().all(|operand| matches!(operand, Operand::Int(_)));
        let default = match typed(&operands, &self.terms) {
            Some(dtype) => dtype,
            None if is_logic => Bool,
            // Numbers alone: integers stay integers where the operation leaves them so.
            None => {
                if let (true, Operation::Neg, Some(Operand::Int(value))) = (all_ints, operation, operands.first()) {
                    return Operand::Int(-value);
                }
                let ring = matches!(operation, Operation::Add | Operation::Sub | Operation::Mul | Operation::BitNot);
                let terms: Args = operands
                    .into_iter()
                    .map(|operand| self.typed(operand, if all_ints && ring { I64 } else { F64 }))
                    .collect();
                let t = self.terms.apply(operation, &terms);
                return match self.terms.number(t) {
                    Some(value) if value.dtype() == Bool || matches!(operation, Operation::Cast(_)) => Operand::Term(t),
                    Some(value) => value.as_int().map_or(Operand::Real(value.as_f64()), Operand::Int),
                    None => Operand::Term(t),
                };
            }
        };
        let args: Args = operands.into_iter().map(|operand| self.typed(operand, default)).collect();
        Operand::Term(self.terms.apply(operation, &args))
    }

    /// `sum(select(position == index, x, 0))` along the axis, a negative index from the end.
    fn pick(&mut self, graph: &Graph, node: &Node, axis: usize) -> T {
        let (x, index) = (self.of[node.inputs[0].index()], self.of[node.inputs[1].index()]);
        let (from, picks) = (graph.value(node.inputs[0]), graph.value(node.inputs[1]));
        // Beyond the limits of i64 no element is picked, from either end.
        let index = self.cast(index, picks.dtype, I64, true);
        // Along a new last axis stand the candidates; along the axis itself the picks.
        let rank = from.shape.len();
        let one = picks.shape[axis] == 1;
        let (shape, candidates) = if one {
            (from.shape.clone(), axis)
        } else {
            (picks.shape.iter().copied().chain([from.shape[axis]]).collect(), rank)
        };
        let view = |over: bool| -> Vec<Option<usize>> {
            (0..shape.len())
                .map(|i| match i {
                    i if i == candidates => {
                        if over {
                            Some(axis)
                        } else {
                            None
                        }
                    }
                    i if i == axis => {
                        if over {
                            None
                        } else {
                            Some(axis)
                        }
                    }
                    i => Some(i),
                })
                .collect()
        };
        let (x_from, index_from) = (view(true), view(false));
        let x = self.terms.view(x, &shape, &x_from);
        let index = self.terms.view(index, &shape, &index_from);
        let zero = self.terms.of_number(Scalar::int(I64, 0), I64);
        let extent = self.terms.of_number(Scalar::int(I64, from.shape[axis].into()), I64);
        let is_negative = self.terms.apply(Operation::Lt, &[index, zero]);
        let from_end = self.terms.apply(Operation::Add, &[index, extent]);
        let index = self.terms.apply(Operation::Select, &[is_negative, from_end, index]);
        let position = self.terms.position(&shape, candidates);
        let is = self.terms.apply(Operation::Eq, &[position, index]);
        let dtype = self.terms.get(x).dtype;
        if dtype == Bool {
            let picked = self.terms.apply(Operation::And, &[is, x]);
            let t = find("any").map(|row| cranefold_ir::ops::OpCall::row(row, &[]));
            let t = t.map(|call| self.terms.reduce(call, &[candidates], picked, 0, Bool)).unwrap_or(picked);
            return self.terms.reshape(t, &picks.shape);
        }
        let none = self.terms.of_number(Scalar::zero(dtype), dtype);
        let picked = self.terms.apply(Operation::Select, &[is, x, none]);
        let wide = match dtype {
            _ if dtype.is_float() => dtype,
            _ if dtype.is_signed() => I64,
            _ => U64,
        };
        let call = find("sum").map(|row| cranefold_ir::ops::OpCall::row(row, &[]));
        let t = call.map(|call| self.terms.plain_reduce(call, &[candidates], picked, 0, wide)).unwrap_or(picked);
        let t = if wide == dtype { t } else { self.terms.apply(Operation::Cast(dtype), &[t]) };
        self.terms.reshape(t, &picks.shape)
    }

    fn reduce(
        &mut self,
        graph: &Graph,
        node: &Node,
        call: &cranefold_ir::ops::OpCall,
        axes: &[usize],
        result: usize,
    ) -> T {
        let mut x = self.of[node.inputs[0].index()];
        let (input, to) = (graph.value(node.inputs[0]), graph.value(node.outputs[result]));
        let Some(row) = call.as_row() else { return x };
        let mut axes = axes.to_vec();
        let mut shape = input.shape.clone();
        if axes.is_empty() {
            // Groups of one element, along an axis of their own.
            shape.push(1);
            x = self.terms.reshape(x, &shape);
            axes = vec![shape.len() - 1];
        }
        if self.terms.number(x).is_some() {
            // Equal elements have a shape only as a view of one.
            x = self.repeated(x, &shape);
        }
        let converts =
            input.dtype.is_int() && (row.integers == Integers::Refused && row.results == [ResultKind::Value]);
        let accumulates = input.dtype.is_float() && to.dtype == F64;
        if (converts || accumulates) && self.terms.get(x).dtype != F64 {
            x = self.terms.apply(Operation::Cast(F64), &[x]);
        }
        let own = self.terms.get(x).dtype;
        let dtype = match row.results[result] {
            ResultKind::Count => I64,
            _ if !own.is_int() => own,
            _ if row.integers == Integers::Wide => {
                if own.is_signed() {
                    I64
                } else {
                    U64
                }
            }
            _ => own,
        };
        let t = self.terms.reduce(call.clone(), &axes, x, result, dtype);
        let t = match to.dtype {
            wanted if wanted.is_float() && dtype == F64 && self.working(wanted) == F32 => {
                self.terms.apply(Operation::Cast(F32), &[t])
            }
            wanted if wanted.is_float() || wanted == Bool => t,
            // Wide integers, positions and converted results have the type of the value.
            wanted if dtype == self.working(wanted) && (wanted.bytes() >= 4 || row.integers == Integers::Same) => t,
            wanted => self.terms.apply(Operation::Cast(wanted), &[t]),
        };
        self.terms.reshape(t, &to.shape)
    }

    /// A number as a tensor: the select of a position, which is an element of its shape.
    fn repeated(&mut self, number: T, shape: &[u64]) -> T {
        let axis = (0..shape.len()).rev().find(|&axis| shape[axis] != 1).unwrap_or(shape.len().saturating_sub(1));
        let dtype = self.terms.get(number).dtype;
        let position = self.terms.position(shape, axis);
        let zero = self.terms.of_number(Scalar::int(I64, 0), I64);
        let is = self.terms.apply(Operation::Ge, &[position, zero]);
        let other = self.terms.of_number(Scalar::zero(dtype), dtype);
        self.terms.apply(Operation::Select, &[is, number, other])
    }
}

/// Returns true if every value of one type is a value of the other.
fn widens(from: DType, to: DType) -> bool {
    match (from, to) {
        (DType::F16 | DType::Bf16, F32 | F64) | (F32, F64) => true,
        (DType::I8, DType::I16) | (DType::U8, DType::I16 | DType::U16) => true,
        (from, I32) => from.is_int() && from.bytes() < 4,
        _ => false,
    }
}

/// The one value that all elements of a known value have.
fn uniform(graph: &Graph, id: ValueId, known: &mut Known) -> Option<Scalar> {
    let value = graph.value(id);
    let node = &graph.nodes()[value.node];
    if let Op::Constant(data) = &node.op {
        // Long runs of one byte are told by their first elements.
        return data.uniform();
    }
    let count: u64 = value.shape.iter().product();
    if count <= crate::fold::MAX_FOLDED {
        return known.of(graph, id).and_then(|data| data.uniform());
    }
    // Larger views of a uniform value.
    match &node.op {
        Op::Reshape(_) | Op::Broadcast(_) | Op::Transpose(_) if count > 0 => uniform_source(graph, id, known),
        _ => None,
    }
}

fn uniform_source(graph: &Graph, mut id: ValueId, known: &mut Known) -> Option<Scalar> {
    loop {
        let node = &graph.nodes()[graph.value(id).node];
        match &node.op {
            Op::Reshape(_) | Op::Broadcast(_) | Op::Transpose(_) => id = node.inputs[0],
            Op::Constant(data) => return data.uniform(),
            _ => return known.of(graph, id).and_then(|data| data.uniform()),
        }
    }
}
