//! The domain of hashed terms, by which passes are proved.

use super::{Domain, Misaligned, run};
use crate::{BufId, BufferRole, DType, Def, Nest, Op, Scalar, Selection};
use std::collections::HashMap;

/// The domain of hashed terms. Two outputs with the same hash are made by the same operations on the same
/// input elements in the same order, up to a collision of 128 bits.
///
/// A call of a definition is one node, named as the definition up to its first dot: so `max.f32`,
/// the sequence that stands for `max` on a target without it, makes the same term as `max`. A simple
/// definition without a dot is no node: passes inline it.
///
/// A result of a selection is a node of the selection and the elements, in any order. `div_by` makes the term of `div`,
/// and a parameter that is nothing but its third operand is in no term.
///
/// `pick` gives a number made from the term of its value, so that the terms of elements found by it depend on
/// that term.
///
/// **Integer addition** is exact modulo 2^bits, so it is associative and commutative in its value, and
/// its term says no more than the value depends on: the sum of the operands' terms modulo 2^128, to which a
/// constant 0 adds nothing. The proof stands: operands' terms are hashes, so equal sums are sums
/// of the same terms, each as often, up to a collision; a dropped, doubled or foreign operand makes another
/// sum. An operand's type is in its term, by a cast's name or a leaf's. Counts of a term that agree modulo
/// 2^128 agree modulo 2^bits, on which alone the value depends. In any other operation the sum is an ordinary
/// operand.
///
/// **A cast of an integer to a type that holds it, or is no narrower,** keeps the value modulo 2^bits of that type, and its
/// term is linear: the operand's, scaled by the factor of the new type over that of the old one. So a sum of bytes in 16 bits
/// that is cast to 32 has the term of the sum of the bytes in 32 bits. The domain knows the least and the greatest value
/// of each integer, without a limit: of an element those of its type, of a sum the sums. Where they do not fit the type
/// of the operand, bits may be lost, and the cast is a node as any other.
#[derive(Debug)]
pub struct Terms {
    /// The term of each element of each output, `None` where none was stored.
    pub outputs: Vec<Vec<Option<u128>>>,
    /// The values of states that were stored, by output and element.
    states: HashMap<(usize, usize), Term>,
    /// The factor of each type, and its inverse modulo 2^128.
    factors: [[u128; 2]; DType::ALL.len()],
    inputs: usize,
    /// The number of buffers before the buffers of states.
    before_states: usize,
}

/// A value: its term, and what is known of the integer that it stands for.
#[derive(Clone, Copy, Debug)]
pub struct Term {
    hash: u128,
    dtype: DType,
    /// The least and the greatest value of an integer, as a number without a limit.
    range: [i128; 2],
}

impl Term {
    /// A value of a type, of which nothing else is known.
    fn any(hash: u128, dtype: DType) -> Term {
        let (least, most) = dtype.int_range().unwrap_or_default();
        Term { hash, dtype, range: [least, most] }
    }

    /// Returns true for an integer that a type holds, whatever the elements are.
    fn fits(&self, dtype: DType) -> bool {
        dtype.int_range().is_some_and(|(least, most)| least <= self.range[0] && self.range[1] <= most)
    }
}

impl Terms {
    /// The domain for the buffers of `nest`, without terms yet.
    pub fn new(nest: &Nest) -> Terms {
        let is_out = |b: &&crate::Buffer| b.role != BufferRole::In;
        let outputs = nest.buffers.iter().filter(is_out).map(|b| vec![None; b.len as usize]).collect();
        let (inputs, before_states) = (nest.buffers.iter().filter(|b| !is_out(b)).count(), nest.buffers.len());
        let factors = DType::ALL.map(|dtype| {
            let factor = factor(dtype);
            [factor, inverse(factor)]
        });
        Terms { outputs, states: HashMap::new(), factors, inputs, before_states }
    }

    /// The domain with further buffers after the nest's: states, which some nests store and another loads.
    pub fn with_states(mut self, states: &[crate::Buffer]) -> Terms {
        self.outputs.extend(states.iter().map(|b| vec![None; b.len as usize]));
        self
    }

    /// The terms a nest stores.
    pub fn of(nest: &Nest) -> Vec<Vec<Option<u128>>> {
        Terms::of_misaligned(nest, 0)
    }

    /// The terms a nest stores where its first buffer begins so many elements after the start of a line of memory, and each
    /// other one three more than the one before it.
    pub fn of_misaligned(nest: &Nest, elements: u64) -> Vec<Vec<Option<u128>>> {
        let elements: Vec<u64> = (0..nest.buffers.len() as u64).map(|n| elements + 3 * n).collect();
        let mut terms = Terms::new(nest);
        run(nest, &mut Misaligned { domain: &mut terms, elements: &elements });
        terms.outputs
    }

    /// The output of a buffer.
    fn output(&self, buf: BufId) -> usize {
        buf.0 as usize - self.inputs
    }

    /// A cast of an integer to a type that holds it, or that is no narrower than its own; `None` if bits may be lost.
    fn kept(&self, result: DType, value: Term) -> Option<Term> {
        let holds = result.is_int() && result.bytes() >= value.dtype.bytes() || value.fits(result);
        let keeps = value.fits(value.dtype) && holds;
        let [[to, _], [_, from]] = [result, value.dtype].map(|dtype| self.factors[dtype as usize]);
        let hash = value.hash.wrapping_mul(to).wrapping_mul(from);
        keeps.then_some(Term { hash, dtype: result, ..value })
    }
}

/// One step of hashing: a product that mixes both halves of the state with the next part.
fn mix(hash: u128, part: u128) -> u128 {
    const K: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;
    let x = (hash ^ part).wrapping_mul(K);
    (x ^ (x >> 67)).wrapping_mul(K).rotate_left(41)
}

fn word(text: &str) -> u128 {
    text.bytes().fold(1, |h, b| mix(h, u128::from(b)))
}

/// The odd number that the numbers of a type are scaled by.
fn factor(dtype: DType) -> u128 {
    mix(2, dtype as u128) | 1
}

/// The inverse of an odd number modulo 2^128, by Newton's iteration: each step doubles the bits that are right, of which
/// the number itself has three.
fn inverse(odd: u128) -> u128 {
    (0..6).fold(odd, |inverse, _| inverse.wrapping_mul(2u128.wrapping_sub(odd.wrapping_mul(inverse))))
}

impl Domain for Terms {
    type Value = Term;

    fn constant(&mut self, value: Scalar) -> Term {
        let dtype = value.dtype();
        if let (true, Some(number)) = (dtype.is_int(), value.as_int()) {
            // The sum of the terms of two numbers is the term of their sum, so that a negative one is negative here too.
            let [factor, _] = self.factors[dtype as usize];
            return Term { hash: (number as u128).wrapping_mul(factor), dtype, range: [number; 2] };
        }
        Term::any(mix(mix(2, dtype as u128), u128::from(value.bits())), dtype)
    }

    fn load(&mut self, buf: BufId, dtype: DType, index: usize) -> Term {
        if buf.0 as usize >= self.before_states {
            return self.states[&(self.output(buf), index)];
        }
        Term::any(mix(mix(mix(3, u128::from(buf.0)), index as u128), dtype as u128), dtype)
    }

    fn store(&mut self, buf: BufId, index: usize, value: Term) {
        let output = self.output(buf);
        let known = self.outputs[output][index].replace(value.hash);
        assert!(known.is_none(), "element {index} of {buf} is stored twice");
        if buf.0 as usize >= self.before_states {
            self.states.insert((output, index), value);
        }
    }

    fn op(&mut self, op: Op, result: DType, args: &[Term]) -> Term {
        match (op, args) {
            (Op::Add, [a, b]) if result.is_int() => {
                let range = [0, 1].map(|end| a.range[end].saturating_add(b.range[end]));
                return Term { hash: a.hash.wrapping_add(b.hash), dtype: result, range };
            }
            (Op::DivBy, _) => return self.op(Op::Div, result, &args[..2]),
            (Op::Cast, &[value]) => {
                if let Some(kept) = self.kept(result, value) {
                    return kept;
                }
            }
            _ => {}
        }
        let name = if op == Op::Cast { word(result.name()) } else { word(op.name()) };
        let name = if op == Op::Bits { mix(name, word(result.name())) } else { name };
        Term::any(args.iter().fold(name, |h, a| mix(h, a.hash)), result)
    }

    fn call(&mut self, def: &Def, args: &[Term]) -> Option<Vec<Term>> {
        if def.is_simple() && !def.name.contains('.') {
            return None;
        }
        let name = word(def.name.split('.').next().expect("a name"));
        let terms = args.iter().enumerate().filter(|&(n, _)| !def.is_hint(n));
        let term = terms.fold(name, |h, (_, a)| mix(h, a.hash));
        let result = |(i, result): (usize, &crate::Expr)| {
            let hash = if i == 0 { term } else { mix(term, i as u128) };
            Term::any(hash, result.dtype())
        };
        Some(def.results.iter().enumerate().map(result).collect())
    }

    fn pick(&mut self, value: Term, most: u64) -> u64 {
        (value.hash % (u128::from(most) + 1)) as u64
    }

    fn select(&mut self, what: &Selection, dtype: DType, slice: &[Term]) -> Vec<Term> {
        // A sum does not depend on the order of its operands.
        let elements = slice.iter().fold(slice.len() as u128, |sum, v| sum.wrapping_add(mix(4, v.hash)));
        let node = |name, which| mix(mix(mix(word(name), dtype as u128), elements), which);
        match what {
            Selection::Nth(positions) => {
                positions.iter().map(|&p| Term::any(node("nth", u128::from(p)), dtype)).collect()
            }
            Selection::Mode => {
                vec![Term::any(node("mode", 0), dtype), Term::any(node("mode", 1), DType::I64)]
            }
        }
    }
}
