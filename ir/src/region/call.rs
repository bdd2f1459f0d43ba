//! The calls of a region's values that are no operations: reductions, positions, extents, old elements.

use super::names::{row, unknown_call};
use super::read::{Named, Reader, Result};
use super::{Reduction, Value};
use crate::expression::error::Fault;
use crate::expression::literal::Literal;
use crate::expression::node::{Kind, Node, Operation};
use crate::expression::parse::{self, Call, Key, usage};
use crate::ops::{OpCall, Row};

/// The row whose results `centered` subtracts: a mean as a pair of floats.
const MEAN_PAIR: &str = "mean_pair";

impl Reader<'_> {
    /// Reads a call. If it is the whole value of a definition it takes the names, and nothing is left; else it is
    /// entered under a new name, which is returned.
    pub(super) fn call(&mut self, call: Call, made: &[Node], names: Option<&[Named]>) -> Result<Option<Node>> {
        let Call { word, at, args, keys } = call;
        let word = word.as_str();
        let args = args.into_iter().map(|arg| {
            let flag = |name: &String| row(word).is_some_and(|row| row.params.iter().any(|param| param.name == name));
            match &arg.kind {
                Kind::Name(name) if flag(name) && !self.knows(name) => {
                    Err(Fault::new(arg.at, format!("a parameter is written with its value, as in `{name}=1`")))
                }
                _ => self.resolved(arg, made),
            }
        });
        let args = args.collect::<Result<Vec<Node>>>()?;
        match word {
            "position" | "extent" | "old" | "centered" if !keys.is_empty() => {
                Err(Fault::new(keys[0].at, format!("`{word}` has no parameters")))
            }
            "position" => {
                let axis = self.axis(word, &args, at)?;
                self.enter(vec![], Value::Position(axis), word, at, names)
            }
            "extent" => {
                let axis = self.axis(word, &args, at)?;
                match &self.scope.shape {
                    Some(shape) => Ok(Some(Node::of_number(Literal::Int(shape[axis].into()), at))),
                    None => Err(Fault::new(at, "extents are numbers here")),
                }
            }
            "old" => {
                let output = usize::try_from(integer(word, "an output's number", &args, at)?);
                let output = output.map_err(|_| Fault::new(at, "outputs are numbered from 0"))?;
                self.enter(vec![], Value::Old(output), word, at, names)
            }
            "centered" => self.centered(args, at).map(Some),
            _ => match row(word) {
                Some(row) => self.reduction(row, args, keys, at, names),
                None => Err(Fault::new(at, not_a_row(word, args.len(), &keys))),
            },
        }
    }

    /// Enters a value under the definition's names, or under new ones.
    fn enter(
        &mut self,
        results: Vec<&str>,
        value: Value,
        word: &str,
        at: usize,
        names: Option<&[Named]>,
    ) -> Result<Option<Node>> {
        let results = results.len().max(1);
        let plural = if results == 1 { "" } else { "s" };
        match names {
            Some(names) if names.len() == results => {
                self.define(names.to_vec(), value, word)?;
                Ok(None)
            }
            Some(names) => {
                let message = format!("`{word}` gives {results} result{plural}, and here are {} names", names.len());
                Err(Fault::new(at, message.replace("are 1 names", "is 1 name")))
            }
            None if results > 1 => {
                let message = format!("`{word}` gives {results} results: name them, as in `a, b = {word}(x)`");
                Err(Fault::new(at, message))
            }
            None => {
                let name = self.hidden(at);
                self.define(vec![name.clone()], value, word)?;
                Ok(Some(Node::leaf(Kind::Name(name.0), at)))
            }
        }
    }

    /// The definitions of `centered(e)`: e is computed once, the two parts of its mean are subtracted one by one.
    fn centered(&mut self, args: Vec<Node>, at: usize) -> Result<Node> {
        let Ok([of]) = <[Node; 1]>::try_from(args) else {
            return Err(Fault::new(at, "`centered` takes one value"));
        };
        let Some(row) = row(MEAN_PAIR) else {
            return Err(Fault::new(at, format!("`centered` needs the op `{MEAN_PAIR}`, which there is not")));
        };
        self.reduces(at)?;
        let of = match of.kind {
            Kind::Name(_) => of,
            _ => {
                let name = self.hidden(of.at);
                let value = Value::Expression(self.expression(of));
                self.define(vec![name.clone()], value, "")?;
                Node::leaf(Kind::Name(name.0), name.1)
            }
        };
        let results: Vec<Named> = row.results.iter().map(|_| self.hidden(at)).collect();
        let reduction = Reduction { call: OpCall::row(row, &[]), of: self.expression(of.clone()), over: None };
        self.define(results.clone(), Value::Reduction(reduction), "centered")?;
        let less =
            |value, (name, _): Named| parse::apply(Operation::Sub, vec![value, Node::leaf(Kind::Name(name), at)], at);
        results.into_iter().try_fold(of, less)
    }

    /// Refuses a reduction in a region that reduces no axes.
    fn reduces(&self, at: usize) -> Result<()> {
        match self.scope.reduced.contains(&true) || self.scope.shape.is_none() {
            true => Ok(()),
            false => Err(Fault::new(at, "`axes=[]` allows no reductions: name the axes to reduce")),
        }
    }

    /// Reads a reduction: one value, then parameters and `axes=`.
    fn reduction(
        &mut self,
        row: &'static Row,
        args: Vec<Node>,
        keys: Vec<Key>,
        at: usize,
        names: Option<&[Named]>,
    ) -> Result<Option<Node>> {
        let word = row.name;
        let of = match <[Node; 1]>::try_from(args) {
            Ok([of]) => of,
            Err(args) => {
                let compares = if Operation::call(word).is_some() { "; of two it compares" } else { "" };
                let message = format!("`{word}` reduces one value{compares}; here are {}", args.len());
                return Err(Fault::new(at, message));
            }
        };
        if row.applies {
            let message = format!(
                "`{word}` writes a value at each position: in a region write its text, which is {}",
                row.formula
            );
            return Err(Fault::new(at, message));
        }
        self.reduces(at)?;
        let (mut params, mut over) = (vec![], None);
        for key in keys {
            match (key.name.as_str(), key.is_list, key.values.as_slice()) {
                ("axes", _, _) if over.is_some() => return Err(Fault::new(key.at, "`axes` is given twice")),
                ("axes", _, axes) => over = Some(self.kept_axes(axes, key.at)?),
                ("groups" | "group" | "segments", _, _) => {
                    let message = format!(
                        "`{}=`: groups inside the reduced axes are not supported; write two regions, or give the \
                         groups an axis of their own",
                        key.name
                    );
                    return Err(Fault::new(key.at, message));
                }
                (_, false, &[value]) => params.push((key.name, value)),
                _ => return Err(Fault::new(key.at, "a parameter is one number")),
            }
        }
        let call = OpCall::of(row, &params).map_err(|error| Fault::new(at, error.to_string()))?;
        call.check_overflow(self.scope.accumulator).map_err(|error| Fault::new(at, error.to_string()))?;
        let value = Value::Reduction(Reduction { call, of: self.expression(of), over });
        self.enter(row.results.iter().map(|_| "").collect(), value, word, at, names)
    }

    /// The kept axes of a total, in ascending order.
    fn kept_axes(&self, given: &[f64], at: usize) -> Result<Vec<usize>> {
        let mut axes = vec![];
        for &axis in given {
            if axis.fract() != 0.0 || axis.abs() > 1e9 {
                return Err(Fault::new(at, format!("{axis} is no axis")));
            }
            let index = self.axis_number(axis as i64, at)?;
            if self.scope.reduced[index] {
                let message = format!(
                    "axis {index} is reduced by the region; the `axes` of a total are kept ones, and stages over other \
                     axes are two regions"
                );
                return Err(Fault::new(at, message));
            }
            if axes.contains(&index) {
                return Err(Fault::new(at, format!("axis {index} is listed twice")));
            }
            axes.push(index);
        }
        if axes.is_empty() {
            return Err(Fault::new(at, "a total reduces at least one axis"));
        }
        axes.sort_unstable();
        Ok(axes)
    }

    fn axis(&self, word: &str, args: &[Node], at: usize) -> Result<usize> {
        self.axis_number(integer(word, "an axis", args, at)?, at)
    }

    /// An axis of the region; a negative number counts from the end.
    fn axis_number(&self, axis: i64, at: usize) -> Result<usize> {
        let rank = self.scope.reduced.len();
        let index = if axis < 0 { axis + rank as i64 } else { axis };
        match usize::try_from(index).ok().filter(|&index| index < rank) {
            Some(index) => Ok(index),
            None => {
                let axes = format!("its axes are -{rank} to {}", rank.saturating_sub(1));
                Err(Fault::new(at, format!("axis {axis} is out of range for rank {rank}: {axes}")))
            }
        }
    }
}

/// The integer that is the one operand of a call.
fn integer(word: &str, what: &str, args: &[Node], at: usize) -> Result<i64> {
    let number = match args {
        [one] => one.number(),
        _ => None,
    };
    match number {
        Some(Literal::Int(value)) if value.abs() <= 1_000_000_000 => Ok(value as i64),
        _ => Err(Fault::new(at, format!("`{word}` takes {what}, as in `{word}(0)`"))),
    }
}

/// The message for a call of a word that is no row.
fn not_a_row(word: &str, args: usize, keys: &[Key]) -> String {
    match Operation::call(word) {
        Some(_) if !keys.is_empty() => format!("`{word}` has no parameters"),
        Some(operation) => {
            let are = if args == 1 { "here is 1".to_string() } else { format!("here are {args}") };
            format!("`{word}` is {}; {are}", usage(operation))
        }
        None => unknown_call(word),
    }
}
