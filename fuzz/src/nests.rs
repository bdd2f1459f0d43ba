//! Interprets nests of any text that take little time and memory.

use crate::data::{Buffer, elements};
use crate::execute::Memory;
use cranefold::ir::{self, BufferRole, Expr, Extent, Nest, Stmt};
use cranefold::{Compiler, Error, Kernel, Options, Scalar};

/// The most statements, expressions and elements of an execution.
const MOST_WORK: u64 = 100_000;

/// The most bytes of buffers.
const MOST_BYTES: u64 = 1 << 16;

/// Returns whether a nest is interpreted soon, and in little memory.
pub(crate) fn is_small(nest: &Nest) -> bool {
    let bytes = nest.buffers.iter().map(|b| b.len.saturating_mul(b.dtype.bytes()));
    bytes.fold(0, u64::saturating_add) <= MOST_BYTES && work(nest) <= MOST_WORK
}

/// Interprets a nest that verifies, if it is small.
pub(crate) fn interpret(nest: &Nest) {
    // The domain's inputs come before its outputs; a nest whose buffers do not is for the verifier alone.
    if is_small(nest) && nest.buffers.is_sorted_by_key(|b| b.role != BufferRole::In) {
        Memory::of_nest(nest, 0, 1).interpreted(nest);
    }
}

impl Memory {
    /// Elements of a kind in all buffers that are read, the others of a pattern.
    pub fn of_nest(nest: &Nest, kind: u8, seed: u64) -> Memory {
        let buffer = |(n, b): (u64, &ir::Buffer)| match b.role {
            BufferRole::Out => Buffer::new((b.len * b.dtype.bytes()) as usize, 0),
            BufferRole::In | BufferRole::InOut => {
                Buffer::holding(&elements(b.dtype, b.len as usize, kind, seed.wrapping_add(n << 32)), 0)
            }
        };
        let (inputs, outputs): (Vec<_>, Vec<_>) = (0..).zip(&nest.buffers).partition(|(_, b)| b.role == BufferRole::In);
        Memory { inputs: inputs.into_iter().map(buffer).collect(), outputs: outputs.into_iter().map(buffer).collect() }
    }
}

/// Holds the native code of a nest that verifies against the interpreter; says whether there is any: a nest may have no
/// form on the target.
///
/// # Errors
/// As [`agrees`]; also what fails to compile in another way.
pub fn native(compiler: &Compiler, nest: &Nest, options: &Options, kind: u8, seed: u64) -> Result<bool, String> {
    let kernel = match compiler.compile_nest(nest, options) {
        Ok(kernel) => kernel,
        Err(Error::Nest(_)) => return Ok(false),
        Err(error) => return Err(format!("{options:?}: {error}")),
    };
    agrees(&kernel, nest, kind, seed).map(|()| true).map_err(|error| format!("{options:?}: {error}"))
}

/// Holds a kernel on random elements against the interpreter of its nest.
///
/// # Errors
/// Other bits, but for those of a NaN, which the language leaves open; bytes written beside a buffer.
pub fn agrees(kernel: &Kernel, nest: &Nest, kind: u8, seed: u64) -> Result<(), String> {
    let memory = Memory::of_nest(nest, kind, seed);
    let (expected, outputs) = (memory.interpreted(nest), memory.run(kernel));
    if !outputs.iter().chain(&memory.inputs).all(Buffer::guards_hold) {
        return Err("native code writes beside a buffer".into());
    }
    let written = nest.buffers.iter().filter(|b| b.role != BufferRole::In);
    for (n, (buffer, (expected, output))) in written.zip(expected.iter().zip(&outputs)).enumerate() {
        let at = |bytes: &Buffer, i| Scalar::read(buffer.dtype, bytes.bytes(), i);
        let is_same =
            |a: Scalar, b: Scalar| a.bits() == b.bits() || buffer.dtype.is_float() && a.is_nan() && b.is_nan();
        if let Some(i) = (0..buffer.len as usize).find(|&i| !is_same(at(expected, i), at(output, i))) {
            let (expected, output) = (at(expected, i), at(output, i));
            return Err(format!("element {i} of output {n} is {output} and not {expected}"));
        }
    }
    Ok(())
}

/// The approximate work of a nest.
fn work(nest: &Nest) -> u64 {
    let mut defs: Vec<u64> = vec![];
    for def in &nest.defs {
        let of = total(def.lets.iter().chain(&def.results).map(|e| of_expr(e, &defs)));
        defs.push(of.saturating_add(1));
    }
    of_body(&nest.body, &defs)
}

fn of_body(body: &[Stmt], defs: &[u64]) -> u64 {
    total(body.iter().map(|s| of_stmt(s, defs)))
}

fn of_stmt(stmt: &Stmt, defs: &[u64]) -> u64 {
    let inside = of_body(stmt.body(), defs);
    let own = match stmt {
        Stmt::For(l) => match l.extent {
            Extent::Const(n) | Extent::From(_, n) | Extent::Below(_, n) => {
                return n.saturating_mul(inside.saturating_add(1)).saturating_add(1);
            }
            // A number of ones of 64 bits, or what was picked.
            Extent::Carry(_) => return inside.saturating_add(1).saturating_mul(64),
        },
        Stmt::Acc { len, .. } => *len,
        Stmt::Call { def, .. } => defs[def.0 as usize],
        Stmt::Merge { accs, def, blocks, elems } => {
            states(accs.len(), *elems).saturating_mul(*blocks).saturating_mul(defs[def.0 as usize])
        }
        Stmt::Fold { accs, def, lanes, elems, .. } => {
            states(accs.len(), *elems).saturating_mul(*lanes).saturating_mul(defs[def.0 as usize])
        }
        Stmt::Select { len, .. } => len.saturating_mul(16),
        Stmt::Transpose(t) => t.elements(),
        _ => 0,
    };
    let exprs = total(stmt.exprs().iter().map(|e| of_expr(e, defs)));
    1u64.saturating_add(own).saturating_add(inside).saturating_add(exprs)
}

fn states(accs: usize, elems: u64) -> u64 {
    (accs as u64).saturating_mul(elems)
}

fn of_expr(expr: &Expr, defs: &[u64]) -> u64 {
    let called = match expr {
        Expr::Call(def, ..) => defs[def.0 as usize],
        _ => 1,
    };
    total(expr.args().iter().map(|e| of_expr(e, defs))).saturating_add(called)
}

fn total(of: impl Iterator<Item = u64>) -> u64 {
    of.fold(0, u64::saturating_add)
}
