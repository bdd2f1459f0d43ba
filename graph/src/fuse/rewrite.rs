//! The rewrites: what a spelling of primitives means, each with its law in real arithmetic.
//!
//! A rewrite looks at one operation and its operands, as the term is made. Its result is a term again.

use super::terms::{T, TermOp, Terms};
use cranefold_ir::DType;
use cranefold_ir::expression::Operation::{self, *};
use cranefold_ir::ops::{OpCall, find};

/// A rewrite: its name and its law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rewrite {
    /// The name.
    pub name: &'static str,
    /// The law.
    pub law: &'static str,
}

/// Every rewrite, in the order in which they are tried.
pub const REWRITES: &[Rewrite] = &[
    Rewrite { name: "cast", law: "a conversion to a type that holds the value already is the value" },
    Rewrite { name: "power", law: "x^2 = x x, x^1 = x, x^(1/2) = sqrt x, x^-1 = 1/x, x^(-1/2) = 1/sqrt x" },
    Rewrite { name: "reciprocal-root", law: "rsqrt x = 1 / sqrt x" },
    Rewrite { name: "negation", law: "a + -b = a - b, a - -b = a + b" },
    Rewrite { name: "one", law: "1 x = x, x / 1 = x" },
    Rewrite { name: "centered", law: "x - mean x = centered x, the mean held in two floats" },
    Rewrite { name: "variance-of-moments", law: "mean x^2 - (mean x)^2 = var x" },
    Rewrite {
        name: "variance",
        law: "mean (x - mean x)^2 = var x, (sum (x - mean x)^2) / (n - k) = var x with ddof k, or times 1 / (n - k)",
    },
    Rewrite { name: "mean", law: "(sum x) / n = (sum x) (1/n) = mean x" },
    Rewrite { name: "log-sum-exp", law: "m + log sum exp(x - m) = log sum exp x, where m = max x" },
    Rewrite { name: "log-softmax", law: "log(exp(d) / s) = d - log s" },
    Rewrite { name: "sum-of-squares", law: "sum x x = sum_squares x, sqrt sum_squares x = l2 x" },
    Rewrite { name: "magnitudes", law: "sum |x| = l1 x, max |x| = linf x, (sum |x|^p)^(1/p) = lp x" },
    Rewrite { name: "log-sum", law: "log_sum x = log sum x" },
    Rewrite {
        name: "deviation",
        law: "x / sqrt(v) = x (1 / sqrt(v)), where v is a variance or mean of squares plus a number",
    },
    Rewrite { name: "root-of-variance", law: "sqrt var x = std x" },
    Rewrite { name: "length", law: "x (1 / sqrt(s)) = x / sqrt(s), where s is a sum of squares" },
    Rewrite { name: "finite-maximum", law: "in log sum exp, a maximum that is infinite may be taken as 0" },
];

impl Terms {
    fn note(&mut self, name: &'static str) {
        debug_assert!(REWRITES.iter().any(|rewrite| rewrite.name == name));
        *self.applied.entry(name).or_default() += 1;
    }

    fn row(&mut self, row: &str, params: &[f64], axes: &[usize], t: T) -> Option<T> {
        let dtype = self.get(t).dtype;
        Some(self.plain_reduce(OpCall::row(find(row)?, params), axes, t, 0, dtype))
    }

    /// The expression that takes the place of an operation on these operands; none if it stays.
    pub(super) fn rewritten(&mut self, operation: Operation, args: &[T], dtype: DType) -> Option<T> {
        match (operation, args) {
            (Cast(to), &[x]) => self.cast(to, x),
            (Pow, &[x, p]) => self.power(x, p),
            (Rsqrt, &[x]) => {
                self.note("reciprocal-root");
                let root = self.apply(Sqrt, &[x]);
                let one = self.of_real(1.0, dtype);
                Some(self.apply(Div, &[one, root]))
            }
            (Add, &[a, b]) => self.add(a, b),
            (Sub, &[a, b]) => self.sub(a, b),
            (Mul, &[a, b]) => self.mul(a, b),
            (Div, &[a, b]) => self.div(a, b),
            (Sqrt, &[x]) => self.sqrt(x),
            (Log, &[x]) => self.log(x),
            _ => None,
        }
    }

    fn cast(&mut self, to: DType, x: T) -> Option<T> {
        let term = self.get(x);
        let same = match (term.dtype, to) {
            (from, to) if from == to => true,
            _ => self.operand_of(x, Cast(to)).is_some(),
        };
        same.then(|| {
            self.note("cast");
            x
        })
    }

    fn power(&mut self, x: T, p: T) -> Option<T> {
        let (p, dtype) = (self.real(p)?, self.get(x).dtype);
        if !dtype.is_float() && p != 2.0 && p != 1.0 {
            return None;
        }
        if let Some((row, _)) = self.lp(x, p) {
            return Some(row);
        }
        let result = match p {
            2.0 => self.apply(Mul, &[x, x]),
            1.0 => x,
            0.5 => self.apply(Sqrt, &[x]),
            -1.0 | -0.5 => {
                let one = self.of_real(1.0, dtype);
                let x = if p == -0.5 { self.apply(Sqrt, &[x]) } else { x };
                self.apply(Div, &[one, x])
            }
            _ => return None,
        };
        self.note("power");
        Some(result)
    }

    /// `(sum |x|^p)^(1/p)`.
    fn lp(&mut self, x: T, root: f64) -> Option<(T, f64)> {
        let (axes, of) = self.reduction(x, "sum").map(|(axes, of)| (axes.to_vec(), of))?;
        let (operation, args) = self.applied(of)?;
        let (base, p) = (*args.first()?, self.real(*args.get(1)?)?);
        let is_root = p > 0.0 && ((1.0 / p - root).abs() <= 1e-7 * root || (1.0 / p) as f32 == root as f32);
        if operation != Pow || !is_root {
            return None;
        }
        let even = p.rem_euclid(2.0) == 0.0;
        let of = self.operand_of(base, Abs).or(even.then_some(base))?;
        self.note("magnitudes");
        Some((self.row("lp", &[p], &axes, of)?, p))
    }

    fn add(&mut self, a: T, b: T) -> Option<T> {
        for (a, b) in [(a, b), (b, a)] {
            if let Some(b) = self.operand_of(b, Neg) {
                self.note("negation");
                return Some(self.apply(Sub, &[a, b]));
            }
        }
        [(a, b), (b, a)].into_iter().find_map(|(m, l)| self.log_sum_exp(m, l))
    }

    /// `m + log sum exp(x - m)`.
    fn log_sum_exp(&mut self, m: T, l: T) -> Option<T> {
        let sum = self.operand_of(l, Log)?;
        let (axes, e) = self.reduction(sum, "sum").map(|(axes, e)| (axes.to_vec(), e))?;
        let d = self.operand_of(e, Exp)?;
        let (operation, args) = self.applied(d)?;
        let (x, subtracted) = (*args.first()?, *args.get(1)?);
        let shape = self.shape(x).to_vec();
        if operation != Sub || self.spread(m, &axes, &shape) != subtracted {
            return None;
        }
        let greatest = match self.reduction(m, "max") {
            Some(_) => m,
            None => self.finite_maximum(m)?,
        };
        let (own, of) = self.reduction(greatest, "max")?;
        if own != axes || of != x {
            return None;
        }
        if greatest != m {
            self.note("finite-maximum");
        }
        self.note("log-sum-exp");
        self.row("log_sum_exp", &[], &axes, x)
    }

    /// The m of `select(|m| == inf, 0, m)`.
    fn finite_maximum(&self, t: T) -> Option<T> {
        let (operation, args) = self.applied(t)?;
        let &[condition, zero, m] = args else { return None };
        let is_infinite = match self.applied(condition)? {
            (Eq, &[a, b]) => self.operand_of(a, Abs) == Some(m) && self.real(b) == Some(f64::INFINITY),
            (IsInf, &[a]) => a == m,
            _ => false,
        };
        (operation == Select && is_infinite && self.real(zero) == Some(0.0)).then_some(m)
    }

    fn sub(&mut self, a: T, b: T) -> Option<T> {
        if let Some(b) = self.operand_of(b, Neg) {
            self.note("negation");
            return Some(self.apply(Add, &[a, b]));
        }
        // x - mean x
        if let TermOp::View(_) = &self.get(b).op {
            let mean = self.get(b).args[0];
            if let Some((axes, x)) = self.reduction(mean, "mean").map(|(axes, x)| (axes.to_vec(), x))
                && x == a
            {
                let shape = self.shape(x).to_vec();
                if self.spread(mean, &axes, &shape) == b {
                    self.note("centered");
                    return Some(self.centered(&axes, x));
                }
            }
        }
        // x - c - d, where c and d are the two floats of the mean.
        if let Some(x) = self.less_mean_pair(a, b) {
            return Some(x);
        }
        // mean x^2 - (mean x)^2
        let squares = self.mean_of_squares(a)?;
        let (operation, args) = self.applied(b)?;
        let (mean, other) = (*args.first()?, *args.get(1)?);
        let (axes, x) = self.reduction(mean, "mean").map(|(axes, x)| (axes.to_vec(), x))?;
        if operation != Mul || mean != other || squares != (axes.clone(), x) {
            return None;
        }
        self.note("variance-of-moments");
        self.row("var", &[0.0], &axes, x)
    }

    fn less_mean_pair(&mut self, a: T, d: T) -> Option<T> {
        let (operation, args) = self.applied(a)?;
        let (x, c) = (*args.first()?, *args.get(1)?);
        let part = |t: T| match &self.get(t).op {
            TermOp::View(_) => self.reduction(self.get(t).args[0], "mean_pair").map(|(axes, of)| (axes.to_vec(), of)),
            _ => None,
        };
        let (axes, of) = part(d)?;
        let number = |t: T| match self.get(self.get(t).args[0]).op {
            TermOp::Reduce { result, .. } => result,
            _ => 2,
        };
        if operation != Sub || part(c)? != (axes.clone(), of) || of != x || (number(c), number(d)) != (0, 1) {
            return None;
        }
        self.note("centered");
        Some(self.centered(&axes, x))
    }

    /// The axes and x of `mean x x`.
    fn mean_of_squares(&self, t: T) -> Option<(Vec<usize>, T)> {
        let (axes, of) = self.reduction(t, "mean")?;
        self.square_of(of).map(|x| (axes.to_vec(), x))
    }

    /// The x of `x x`.
    fn square_of(&self, t: T) -> Option<T> {
        match self.applied(t)? {
            (Mul, &[a, b]) if a == b => Some(a),
            _ => None,
        }
    }

    /// The axes and the operand of a sum of squares of centered elements.
    fn squared_deviations(&self, t: T) -> Option<(Vec<usize>, T)> {
        let (axes, c) = self.reduction(t, "sum_squares")?;
        match &self.get(c).op {
            TermOp::Centered(own) if own == axes => Some((axes.to_vec(), self.get(c).args[0])),
            _ => None,
        }
    }

    fn mul(&mut self, a: T, b: T) -> Option<T> {
        let dtype = self.get(a).dtype;
        if !dtype.is_float() {
            return None;
        }
        if let Some(factor) = self.real(b) {
            if factor == 1.0 {
                self.note("one");
                return Some(a);
            }
            let TermOp::Reduce { axes, .. } = &self.get(a).op else { return None };
            let n = self.count(self.get(a).args[0], axes);
            let is_inverse = |divisor: f64| factor == 1.0 / divisor || factor as f32 == (1.0 / divisor) as f32;
            return [n, n - 1.0].into_iter().find(|&n| n > 0.0 && is_inverse(n)).and_then(|n| self.quotient(a, n));
        }
        // x (1 / sqrt(s))
        for (x, inverse) in [(a, b), (b, a)] {
            let TermOp::View(_) = &self.get(inverse).op else { continue };
            let slice = self.get(inverse).args[0];
            let Some((Div, &[one, root])) = self.applied(slice) else { continue };
            if self.real(one) == Some(1.0) && self.is_length(root) {
                let view = self.get(inverse).clone();
                let TermOp::View(from) = view.op else { continue };
                let root = self.view(root, &view.shape, &from);
                self.note("length");
                return Some(self.apply(Div, &[x, root]));
            }
        }
        None
    }

    /// Returns true for the root of a sum of squares, with a number beside it.
    fn is_length(&self, root: T) -> bool {
        if self.reduction(root, "l2").is_some() {
            return true;
        }
        let Some(under) = self.operand_of(root, Sqrt) else {
            return matches!(self.applied(root), Some((Max | Add, &[a, b]))
                if self.reduction(a, "l2").is_some() && self.real(b).is_some());
        };
        matches!(self.applied(under), Some((Max | Add, &[a, b]))
            if self.reduction(a, "sum_squares").is_some() && self.real(b).is_some())
    }

    fn div(&mut self, a: T, b: T) -> Option<T> {
        let dtype = self.get(a).dtype;
        if !dtype.is_float() {
            return None;
        }
        if let Some(divisor) = self.real(b) {
            if divisor == 1.0 {
                self.note("one");
                return Some(a);
            }
            return self.quotient(a, divisor);
        }
        // x / sqrt(v): one division for the slice.
        let TermOp::View(from) = self.get(b).op.clone() else { return None };
        let slice = self.get(b).args[0];
        if self.number(a).is_some() || !self.is_deviation(slice) {
            return None;
        }
        self.note("deviation");
        let (one, shape) = (self.of_real(1.0, dtype), self.shape(b).to_vec());
        let inverse = self.apply(Div, &[one, slice]);
        let inverse = self.view(inverse, &shape, &from);
        Some(self.apply(Mul, &[a, inverse]))
    }

    /// A sum divided by the number of its elements, or one of squared deviations by any number of them.
    fn quotient(&mut self, sum: T, divisor: f64) -> Option<T> {
        if let Some((axes, x)) = self.squared_deviations(sum) {
            let n = self.count(x, &axes);
            let ddof = n - divisor;
            if (0.0..n).contains(&ddof) && ddof.fract() == 0.0 {
                self.note("variance");
                return self.row("var", &[ddof], &axes, x);
            }
        }
        // The sum of squares of other elements is a mean of squares.
        let squares = self.reduction(sum, "sum_squares").map(|(axes, x)| (axes.to_vec(), x));
        if let Some((axes, x)) = squares.filter(|(axes, x)| self.count(*x, axes) == divisor) {
            self.note("mean");
            let square = self.apply(Mul, &[x, x]);
            return Some(self.reduce_row("mean", &axes, square));
        }
        let (axes, x) = self.reduction(sum, "sum").map(|(axes, x)| (axes.to_vec(), x))?;
        if self.count(x, &axes) == divisor {
            self.note("mean");
            return Some(self.reduce_row("mean", &axes, x));
        }
        None
    }

    /// Returns true for the root of a variance, or mean of squares, plus a number.
    fn is_deviation(&self, root: T) -> bool {
        let Some(under) = self.operand_of(root, Sqrt) else { return false };
        let is_mean = |t: T| self.reduction(t, "var").is_some() || self.mean_of_squares(t).is_some();
        match self.applied(under) {
            Some((Add, &[a, b])) => is_mean(a) && self.real(b).is_some(),
            _ => is_mean(under),
        }
    }

    fn sqrt(&mut self, x: T) -> Option<T> {
        if let Some((axes, of)) = self.reduction(x, "sum_squares").map(|(axes, of)| (axes.to_vec(), of)) {
            self.note("sum-of-squares");
            return self.row("l2", &[], &axes, of);
        }
        let TermOp::Reduce { call, axes, .. } = self.get(x).op.clone() else { return None };
        self.reduction(x, "var")?;
        self.note("root-of-variance");
        let of = self.get(x).args[0];
        self.row("std", &call.params(), &axes, of)
    }

    fn log(&mut self, x: T) -> Option<T> {
        let (operation, args) = self.applied(x)?;
        let (e, s) = (*args.first()?, *args.get(1)?);
        let d = self.operand_of(e, Exp)?;
        if operation != Div || !matches!(self.get(s).op, TermOp::View(_)) {
            return None;
        }
        self.note("log-softmax");
        let s = self.apply(Log, &[s]);
        Some(self.apply(Sub, &[d, s]))
    }

    /// A row without parameters of one float result, after the rewrites.
    pub(crate) fn reduce_row(&mut self, row: &str, axes: &[usize], t: T) -> T {
        let dtype = self.get(t).dtype;
        match find(row) {
            Some(row) => self.reduce(OpCall::row(row, &[]), axes, t, 0, dtype),
            None => t,
        }
    }

    /// A reduction after the rewrites; `dtype` is that of the result in a region.
    pub(crate) fn reduce(&mut self, call: OpCall, axes: &[usize], t: T, result: usize, dtype: DType) -> T {
        if !dtype.is_float() {
            return self.plain_reduce(call, axes, t, result, dtype);
        }
        let name = call.as_row().map_or("", |row| row.name);
        let rewritten = match name {
            "log_sum" => {
                self.note("log-sum");
                let sum = self.reduce_row("sum", axes, t);
                Some(self.apply(Log, &[sum]))
            }
            "sum" => match (self.square_of(t), self.operand_of(t, Abs)) {
                (Some(x), _) => {
                    self.note("sum-of-squares");
                    self.row("sum_squares", &[], axes, x)
                }
                (_, Some(x)) => {
                    self.note("magnitudes");
                    self.row("l1", &[], axes, x)
                }
                _ => None,
            },
            "max" => self.operand_of(t, Abs).and_then(|x| {
                self.note("magnitudes");
                self.row("linf", &[], axes, x)
            }),
            "mean" => self.square_of(t).and_then(|c| match self.get(c).op.clone() {
                TermOp::Centered(own) if own == axes => {
                    self.note("variance");
                    let x = self.get(c).args[0];
                    self.row("var", &[0.0], axes, x)
                }
                _ => None,
            }),
            _ => None,
        };
        rewritten.unwrap_or_else(|| self.plain_reduce(call, axes, t, result, dtype))
    }
}
