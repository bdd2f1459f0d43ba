//! Terms: a graph's values as one hash-consed expression, in which equal values are one.
//!
//! A float has its working type, `f32` or `f64`, and narrow integers are `i32`, as in regions; conversions to narrower types
//! stay as operations. Constructors apply the [rewrites](super::rewrite) to what they make.

use crate::eval::formula_def;
use crate::graph::ValueId;
use crate::op::Range;
use cranefold_ir::expression::{Expression, Operation, name};
use cranefold_ir::ops::OpCall;
use cranefold_ir::{DType, Scalar};
use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::{SmallVec, smallvec};
use std::hash::BuildHasher;

/// The number of a term.
pub(crate) type T = u32;

/// The operands of a term.
pub(crate) type Args = SmallVec<[T; 4]>;

/// The extents of a term.
pub(crate) type Shape = SmallVec<[u64; 4]>;

/// The operation of a term.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TermOp {
    /// A tensor that is there before the plan runs, or that an opaque node gives.
    Leaf(ValueId),
    /// A number, whose shape is `[]`: a float stands as `f64`.
    Number(Scalar),
    /// An operation on elements of equal shapes; operands that are numbers stretch.
    Apply(Operation),
    /// The index along an axis.
    Position(usize),
    /// Axis i of the result is axis `from[i]` of the operand; none where it is repeated. The operand's other axes have
    /// extent 1.
    View(Vec<Option<usize>>),
    /// The same elements in row-major order in another shape.
    Reshape,
    /// Ranges along the axes.
    Slice(Vec<Range>),
    /// The operands one after the other along an axis.
    Concat(usize),
    /// Result `result` of a reduction over axes, which are gone.
    Reduce { call: OpCall, axes: Vec<usize>, result: usize },
    /// Each element less the mean over axes.
    Centered(Vec<usize>),
}

/// A term.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Term {
    pub(crate) op: TermOp,
    pub(crate) args: Args,
    pub(crate) dtype: DType,
    pub(crate) shape: Shape,
}

/// All terms of a graph; operands stand before their users.
#[derive(Debug, Default)]
pub(crate) struct Terms {
    all: Vec<Term>,
    depth: Vec<u32>,
    /// The terms by their hashes; one whose hash is taken has the next that is free.
    known: FxHashMap<u64, T>,
    /// The rewrites that were applied, by their names, and how often.
    pub(crate) applied: std::collections::BTreeMap<&'static str, usize>,
}

impl Terms {
    pub(crate) fn get(&self, t: T) -> &Term {
        &self.all[t as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn depth(&self, t: T) -> u32 {
        self.depth[t as usize]
    }

    pub(crate) fn shape(&self, t: T) -> &[u64] {
        &self.get(t).shape
    }

    pub(crate) fn number(&self, t: T) -> Option<Scalar> {
        match self.get(t).op {
            TermOp::Number(value) => Some(value),
            _ => None,
        }
    }

    /// The value of a number as a float.
    pub(crate) fn real(&self, t: T) -> Option<f64> {
        self.number(t).filter(|_| self.get(t).dtype != DType::Bool).map(|value| value.as_f64())
    }

    /// The operation and operands of an application.
    pub(crate) fn applied(&self, t: T) -> Option<(Operation, &[T])> {
        match &self.get(t).op {
            TermOp::Apply(operation) => Some((*operation, &self.get(t).args)),
            _ => None,
        }
    }

    /// The one operand of an application.
    pub(crate) fn operand_of(&self, t: T, of: Operation) -> Option<T> {
        self.applied(t).filter(|(operation, args)| *operation == of && args.len() == 1).map(|(_, args)| args[0])
    }

    /// The axes and the operand of a reduction of this name, without parameters.
    pub(crate) fn reduction(&self, t: T, row: &str) -> Option<(&[usize], T)> {
        match &self.get(t).op {
            TermOp::Reduce { call, axes, .. } if call.as_row().is_some_and(|r| r.name == row) => {
                Some((axes, self.get(t).args[0]))
            }
            _ => None,
        }
    }

    /// The elements of a slice over axes.
    pub(crate) fn count(&self, t: T, axes: &[usize]) -> f64 {
        axes.iter().map(|&axis| self.shape(t)[axis]).product::<u64>() as f64
    }

    pub(super) fn make(&mut self, term: Term) -> T {
        let mut hash = FxBuildHasher.hash_one(&term);
        while let Some(&known) = self.known.get(&hash) {
            if *self.get(known) == term {
                return known;
            }
            hash = hash.wrapping_add(1);
        }
        let t = self.all.len() as T;
        self.depth.push(term.args.iter().map(|&arg| self.depth[arg as usize] + 1).max().unwrap_or(0));
        self.known.insert(hash, t);
        self.all.push(term);
        t
    }

    pub(crate) fn leaf(&mut self, value: ValueId, dtype: DType, shape: &[u64]) -> T {
        self.make(Term { op: TermOp::Leaf(value), args: smallvec![], dtype, shape: shape.into() })
    }

    /// A number of a working type; a float stands as `f64`.
    pub(crate) fn of_number(&mut self, value: Scalar, dtype: DType) -> T {
        let value = if dtype.is_float() { Scalar::f64(value.as_f64()) } else { value };
        self.make(Term { op: TermOp::Number(value), args: smallvec![], dtype, shape: smallvec![] })
    }

    pub(crate) fn of_real(&mut self, value: f64, dtype: DType) -> T {
        self.of_number(Scalar::f64(value), dtype)
    }

    pub(crate) fn position(&mut self, shape: &[u64], axis: usize) -> T {
        self.make(Term { op: TermOp::Position(axis), args: smallvec![], dtype: DType::I64, shape: shape.into() })
    }

    /// The term as it is seen through a map of axes.
    pub(crate) fn view(&mut self, t: T, shape: &[u64], from: &[Option<usize>]) -> T {
        if self.number(t).is_some() {
            return t;
        }
        let own = &self.get(t).shape[..];
        let through = |(i, axis): (usize, &Option<usize>)| axis.filter(|&axis| own[axis] != 1 && shape[i] != 1);
        let mut from: Vec<Option<usize>> = from.iter().enumerate().map(through).collect();
        let mut t = t;
        if let TermOp::View(inner) = &self.get(t).op {
            from = from.iter().map(|axis| axis.and_then(|axis| inner[axis])).collect();
            t = self.get(t).args[0];
        }
        let own = &self.get(t).shape[..];
        let is_same = own == shape && from.iter().enumerate().all(|(i, &axis)| axis == Some(i) || own[i] == 1);
        if is_same {
            return t;
        }
        let dtype = self.get(t).dtype;
        self.make(Term { op: TermOp::View(from), args: smallvec![t], dtype, shape: shape.into() })
    }

    /// The term stretched to a shape, right-aligned.
    pub(crate) fn stretch(&mut self, t: T, shape: &[u64]) -> T {
        let missing = shape.len().saturating_sub(self.shape(t).len());
        let from: Vec<Option<usize>> = (0..shape.len()).map(|i| i.checked_sub(missing)).collect();
        self.view(t, shape, &from)
    }

    /// A slice value over axes of a shape, repeated along them.
    pub(crate) fn spread(&mut self, t: T, axes: &[usize], shape: &[u64]) -> T {
        let mut kept = 0;
        let from: Vec<Option<usize>> = (0..shape.len())
            .map(|axis| match axes.contains(&axis) {
                true => None,
                false => {
                    kept += 1;
                    Some(kept - 1)
                }
            })
            .collect();
        self.view(t, shape, &from)
    }

    pub(crate) fn reshape(&mut self, t: T, shape: &[u64]) -> T {
        if self.number(t).is_some() || self.shape(t) == shape {
            return t;
        }
        let own = Shape::from_slice(self.shape(t));
        // Extents of 1 come and go by a view.
        let real = |shape: &[u64]| (0..shape.len()).filter(|&i| shape[i] != 1).collect::<Vec<usize>>();
        let (before, after) = (real(&own), real(shape));
        if before.iter().map(|&i| own[i]).eq(after.iter().map(|&i| shape[i])) {
            let mut from = vec![None; shape.len()];
            before.iter().zip(&after).for_each(|(&b, &a)| from[a] = Some(b));
            return self.view(t, shape, &from);
        }
        match &self.get(t).op {
            TermOp::Reshape => {
                let inner = self.get(t).args[0];
                return self.reshape(inner, shape);
            }
            // A view that moves extents of 1 alone keeps the row-major order.
            TermOp::View(from) => {
                let inner = self.get(t).args[0];
                let kept: Vec<usize> = from.iter().flatten().copied().collect();
                let repeats = from.iter().zip(&own).any(|(axis, &extent)| axis.is_none() && extent != 1);
                if !repeats && kept.is_sorted() {
                    return self.reshape(inner, shape);
                }
            }
            _ => {}
        }
        let dtype = self.get(t).dtype;
        self.make(Term { op: TermOp::Reshape, args: smallvec![t], dtype, shape: shape.into() })
    }

    pub(crate) fn slice(&mut self, t: T, ranges: &[Range]) -> T {
        let whole = ranges.iter().zip(self.shape(t)).all(|(range, &extent)| *range == Range::all(extent));
        if self.number(t).is_some() || whole {
            return t;
        }
        let shape = ranges.iter().map(|range| range.extent).collect();
        let dtype = self.get(t).dtype;
        self.make(Term { op: TermOp::Slice(ranges.to_vec()), args: smallvec![t], dtype, shape })
    }

    pub(crate) fn concat(&mut self, args: Args, axis: usize, dtype: DType, shape: &[u64]) -> T {
        self.make(Term { op: TermOp::Concat(axis), args, dtype, shape: shape.into() })
    }

    /// A reduction over axes, one result; `dtype` is that of the result in a region.
    pub(crate) fn plain_reduce(&mut self, call: OpCall, axes: &[usize], t: T, result: usize, dtype: DType) -> T {
        let shape = self.shape(t).iter().enumerate().filter(|(a, _)| !axes.contains(a)).map(|(_, &e)| e).collect();
        let op = TermOp::Reduce { call, axes: axes.to_vec(), result };
        self.make(Term { op, args: smallvec![t], dtype, shape })
    }

    pub(crate) fn centered(&mut self, axes: &[usize], t: T) -> T {
        let Term { dtype, shape, .. } = self.get(t).clone();
        self.make(Term { op: TermOp::Centered(axes.to_vec()), args: smallvec![t], dtype, shape })
    }

    /// An operation on operands of equal shapes, among which numbers stretch; after the rewrites.
    pub(crate) fn apply(&mut self, operation: Operation, args: &[T]) -> T {
        let dtype = self.result_type(operation, args);
        if let Some(value) = self.folded(operation, args, dtype) {
            return value;
        }
        if let Some(result) = self.before_broadcast(operation, args) {
            return result;
        }
        let mut args = Args::from_slice(args);
        if matches!(operation, Operation::Add | Operation::Mul) {
            // The deeper operand first, numbers last: a sum and its mirror image are one term.
            args.sort_by_key(|&t| (self.number(t).is_some(), std::cmp::Reverse(self.depth(t)), t));
        }
        if let Some(result) = self.rewritten(operation, &args, dtype) {
            return result;
        }
        let shape = args.iter().find(|&&t| self.number(t).is_none()).map_or(smallvec![], |&t| self.shape(t).into());
        self.make(Term { op: TermOp::Apply(operation), args, dtype, shape })
    }

    /// The type of an operation's result, as regions see it.
    fn result_type(&self, operation: Operation, args: &[T]) -> DType {
        use Operation::*;
        let of = |i: usize| self.get(args[i]).dtype;
        match operation {
            Eq | Ne | Lt | Le | Gt | Ge | IsNan | IsInf | And | Or | Not => DType::Bool,
            Select => of(1),
            Cast(to) if to.is_float() => {
                if to == DType::F64 {
                    DType::F64
                } else {
                    DType::F32
                }
            }
            Cast(to) if to.is_int() && to.bytes() < 4 => DType::I32,
            Cast(to) => to,
            _ => of(0),
        }
    }

    /// The number that an operation on numbers gives.
    fn folded(&mut self, operation: Operation, args: &[T], dtype: DType) -> Option<T> {
        self.number(*args.first()?)?;
        let numbers: Vec<Scalar> = args.iter().map(|&t| self.number(t)).collect::<Option<_>>()?;
        let names: Vec<Expression> = (0..args.len()).map(|i| name(format!("x{i}"))).collect();
        let types: Vec<DType> = numbers.iter().map(|value| value.dtype()).collect();
        let def = formula_def(&Expression::of(operation, names), &types, DType::F64).ok()?;
        let value = def.eval(&numbers).first().copied()?;
        let value = match value.as_int() {
            Some(int) if !dtype.is_float() => Scalar::int(dtype, int),
            _ => value,
        };
        (value.dtype().is_float() == dtype.is_float()).then(|| self.of_number(value, dtype))
    }

    /// The view of an operation on what the operands are views of, where all have the same: it is computed before it is
    /// repeated.
    fn before_broadcast(&mut self, operation: Operation, args: &[T]) -> Option<T> {
        let mut views = args.iter().filter(|&&t| self.number(t).is_none());
        let first = self.get(*views.next()?);
        let TermOp::View(from) = &first.op else { return None };
        let inner_shape = self.shape(first.args[0]);
        let agrees = |t: &T| {
            matches!(&self.get(*t).op, TermOp::View(other) if other == from)
                && self.shape(self.get(*t).args[0]) == inner_shape
        };
        if !views.all(agrees) {
            return None;
        }
        let (from, shape) = (from.clone(), first.shape.clone());
        let inner = |&t: &T| if self.number(t).is_some() { t } else { self.get(t).args[0] };
        let inner: Args = args.iter().map(inner).collect();
        let result = self.apply(operation, &inner);
        Some(self.view(result, &shape, &from))
    }
}
