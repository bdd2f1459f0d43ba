//! Checks that a nest keeps the rules of the language.
//!
//! Names and types
//! - A buffer is not of type bool.
//! - An operation takes the types of its operands (`Op::accepts`).
//! - The value of an index is an integer that fits its type, provably.
//! - A load, a read, a value and a call have the type that their declaration gives.
//! - A call names a definition and passes as many arguments as it has parameters, of their types; in
//!   an expression the definition has one result, as a statement one for each value bound.
//! - Names of definitions are words with dots inside, `[a-z_][a-z0-9_]*(\.[a-z0-9_]+)*`, unique, and
//!   none of them is an operation's, a dtype or `bits`.
//! - A definition has results, calls no other, and uses only its parameters and values bound before.
//!
//! Scope
//! - A value is bound once in the nest, and used only after that, in the same body or in loops and wide functions
//!   there.
//! - An accumulator is declared and used likewise. It is not of type bool; its initial value has its type.
//! - A loop's variable is used in the loop only, one of `carry` or `pick` as a value is; no variable is bound
//!   where it is bound already.
//! - An extent that is a variable is one bound by `carry`.
//! - Values, accumulators and loop variables are numbered up to `MAX_NUMBER`.
//! - Loops and wide functions nest at most `MAX_DEPTH` deep, and so do expressions.
//!
//! Memory
//! - An `in` is not stored to, an `out` not loaded; a written value has the type of its place.
//! - Indices stay within the buffer or accumulator, provably, from the extents alone. Statements in a loop that makes
//!   no iteration are exempt. The index of `carry` is never negative. The value of `pick` is an integer.
//!
//! Loops
//! - A `lanes` loop has a constant extent of at least 1, or leaves lanes out, as no other loop does; and only `let`, `call`, sets and stores in it; or one
//!   such loop that no other `lanes` loop is around, where no lanes are left out.
//! - Two iterations of a `parallel` or `lanes` loop do not touch the same element of an output, or of an
//!   accumulator declared outside, if one of them writes it; provably (`conflict.rs` has
//!   the proofs). No such loop merges or folds an accumulator declared outside.
//!
//! Wide functions
//! - No wide function stands in a wide function or in a `lanes` loop. Nothing in one merges, folds or selects.
//!
//! Merging and folding
//! - The accumulators are different; each has at least as many elements as there are states.
//! - The definition takes the accumulators' types twice and gives them once.
//! - There is a block, or a lane; the lanes are a power of two and at least those present.
//!
//! Lines of memory
//! - A line has a power of two of elements, up to 64.
//! - There is an element to rotate, and the accumulator has as many as are rotated; the variable is one bound by
//!   `misalign`.
//!
//! Selecting
//! - There is an element to select from, and the accumulator is at least as long as the slice.
//! - There are 1 to `Selection::MAX_POSITIONS` positions, each below the number of elements; as many values
//!   are bound as there are results.
//! - The accumulator is declared in the same body. After it has been selected from, it is only selected
//!   from again, by the same number of elements: the order of the elements is lost.
//!
//! Transposing
//! - The buffer is an input, and the accumulator, of its type, is declared in the same body and has as many elements as
//!   there are lanes in all columns.
//! - There are 1 to 64 lanes, and there is a column; columns ascend from 0. Every element that may be read lies in the buffer.

#![warn(clippy::wildcard_enum_match_arm)]

mod bounds;
mod conflict;
mod expr;
mod stmt;

use crate::{AccId, DType, Nest, Op, Stmt, Var};
use bounds::Bindings;
use conflict::Access;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;

/// Checks every rule at the head of the file.
///
/// # Errors
/// All violations, in the order of the text; a parallel loop's own follow its body's.
pub fn verify(nest: &Nest) -> Result<(), Violations> {
    let mut verifier = Verifier::new(nest);
    verifier.buffers();
    verifier.defs();
    verifier.body(&nest.body);
    if verifier.violations.is_empty() { Ok(()) } else { Err(Violations(verifier.violations)) }
}

/// A place where a nest breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The statement as text, a loop or a wide function without its body; or a buffer or a line of a definition.
    pub statement: String,
    /// The broken rule and the fault.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, in `{}`", self.message, self.statement)
    }
}

/// All places where a nest breaks a rule, at least one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(Violation::to_string).collect::<Vec<_>>().join("\n"))]
pub struct Violations(pub Vec<Violation>);

/// The item that is being checked, for messages.
#[derive(Clone, Copy)]
enum Site<'a> {
    Buffer(usize),
    Stmt(&'a Stmt),
    /// A definition, and the value or result in it.
    Def(usize, DefPart),
}

#[derive(Clone, Copy)]
enum DefPart {
    Head,
    Let(usize),
    Result(usize),
}

struct Verifier<'a> {
    nest: &'a Nest,
    violations: Vec<Violation>,
    place: Site<'a>,
    /// The values in scope, and all that were ever bound.
    vars: FxHashMap<Var, DType>,
    bound: FxHashSet<Var>,
    /// The accumulators in scope, and all that were ever declared.
    accs: FxHashMap<AccId, AccInfo>,
    declared: FxHashSet<AccId>,
    bindings: Bindings,
    /// True if a wide function is open.
    in_wide: bool,
    /// Reads and writes in the loops that are open.
    accesses: Vec<Access<'a>>,
}

#[derive(Clone, Copy)]
struct AccInfo {
    dtype: DType,
    len: u64,
    /// The number of loops around its declaration.
    depth: usize,
    /// The length of the slice that a selection has taken from it, if one has.
    selected: Option<u64>,
}

impl<'a> Verifier<'a> {
    fn new(nest: &'a Nest) -> Verifier<'a> {
        Verifier {
            nest,
            violations: Vec::new(),
            place: Site::Buffer(0),
            vars: FxHashMap::default(),
            bound: FxHashSet::default(),
            accs: FxHashMap::default(),
            declared: FxHashSet::default(),
            bindings: Bindings::default(),
            in_wide: false,
            accesses: Vec::new(),
        }
    }

    /// Reports a violation at the present place.
    fn report(&mut self, message: impl Into<String>) {
        self.report_in(self.place, message);
    }

    fn report_in(&mut self, place: Site<'a>, message: impl Into<String>) {
        let nest = self.nest;
        let statement = match place {
            Site::Buffer(i) => nest.show_buffer(i).to_string(),
            Site::Stmt(stmt) => nest.show_head(stmt).to_string(),
            Site::Def(i, part) => {
                let def = &nest.defs[i];
                match part {
                    DefPart::Head => format!("def {}", def.name),
                    DefPart::Let(j) => {
                        let var = Var((def.params.len() + j) as u32);
                        format!("def {}: let {var} = {}", def.name, nest.show_expr(&def.lets[j]))
                    }
                    DefPart::Result(j) => format!("def {}: {}", def.name, nest.show_expr(&def.results[j])),
                }
            }
        };
        let violation = Violation { statement, message: message.into() };
        // One fault used twice in a statement is told once.
        if self.violations.last() != Some(&violation) {
            self.violations.push(violation);
        }
    }

    fn buffers(&mut self) {
        for (i, buffer) in self.nest.buffers.iter().enumerate() {
            if buffer.dtype == DType::Bool {
                self.report_in(Site::Buffer(i), "a buffer is not of type bool, which is u8 in memory");
            }
        }
    }

    fn defs(&mut self) {
        let mut names = FxHashSet::default();
        for (i, def) in self.nest.defs.iter().enumerate() {
            self.place = Site::Def(i, DefPart::Head);
            if !is_name(&def.name) {
                self.report("the name is no word of lower-case letters, digits and underscores with dots inside");
            } else if is_reserved(&def.name) {
                self.report("the name is that of an operation or a dtype");
            } else if !names.insert(&def.name) {
                self.report("another definition has this name");
            }
            if def.results.is_empty() {
                self.report("a definition has at least one result");
            }
            self.vars = (0u32..).map(Var).zip(def.params.iter().copied()).collect();
            for (j, value) in def.lets.iter().enumerate() {
                self.place = Site::Def(i, DefPart::Let(j));
                self.expr(value);
                self.vars.insert(Var((def.params.len() + j) as u32), value.dtype());
            }
            for (j, result) in def.results.iter().enumerate() {
                self.place = Site::Def(i, DefPart::Result(j));
                self.expr(result);
            }
        }
        self.vars.clear();
    }
}

/// Returns true if the text form reads the word back as a name.
fn is_name(name: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    name.split('.').all(is_part) && !name.starts_with(|c: char| c.is_ascii_digit())
}

fn is_reserved(name: &str) -> bool {
    let is_dtype = |word: &str| word.parse::<DType>().is_ok();
    name == "bits"
        || is_dtype(name)
        || name.strip_prefix("bits_").is_some_and(is_dtype)
        || Op::ALL.iter().any(|op| op.name() == name)
}
