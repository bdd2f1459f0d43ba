//! The checks of native code: it gives the bits of the interpreter, writes only elements of the outputs, and gives
//! results that the reference allows.

use crate::data::Buffer;
use crate::execute::{Memory, is_element, is_written, places};
use cranefold::ir::ops::OpCall;
use cranefold::{Compiler, Options, Scalar, Spec};
use cranefold_reference as reference;

/// Returns true if all buffers hold the same bytes.
pub fn are_equal(a: &[Buffer], b: &[Buffer]) -> bool {
    a.iter().zip(b).all(|(a, b)| a.bytes() == b.bytes())
}

/// The outputs after native code ran.
///
/// # Errors
/// The error of compilation, or a write outside a buffer.
pub fn native(compiler: &Compiler, spec: &Spec, memory: &Memory, options: &Options) -> Result<Vec<Buffer>, String> {
    let kernel = compiler.compile_with(spec, options).map_err(|e| format!("{options:?}: {e}"))?;
    let outputs = memory.run(&kernel);
    if !outputs.iter().chain(&memory.inputs).all(Buffer::guards_hold) {
        return Err(format!("native code writes beside a buffer, {options:?}"));
    }
    Ok(outputs)
}

/// A message about the first place where native code gave other bits than the naive nest.
pub fn difference(spec: &Spec, options: &Options, naive: &[Buffer], outputs: &[Buffer]) -> String {
    let differ = |o: &usize| naive[*o].bytes() != outputs[*o].bytes();
    let o = (0..outputs.len()).find(differ).expect("a difference");
    let operand = &spec.outputs()[o];
    let at = |b: &Buffer, i| Scalar::read(operand.dtype(), b.bytes(), i);
    let all = 0..operand.span_elems() as usize;
    let differ: Vec<usize> = all.filter(|&i| at(&naive[o], i).bits() != at(&outputs[o], i).bits()).collect();
    let first = differ.first().copied().unwrap_or(0);
    format!(
        "native code gives other bits at {} places of output {o}, the first {first}: {} and not {}, {options:?}",
        differ.len(),
        at(&outputs[o], first),
        at(&naive[o], first)
    )
}

/// Checks that padding of blocks is zero, and that the places between elements of an output are unchanged.
///
/// # Errors
/// The place where this does not hold.
pub fn only_elements_are_written(spec: &Spec, memory: &Memory, outputs: &[Buffer]) -> Result<(), String> {
    for (o, (before, after)) in memory.outputs.iter().zip(outputs).enumerate() {
        let size = spec.outputs()[o].dtype().bytes() as usize;
        for (place, (element, written)) in is_element(spec, o).into_iter().zip(is_written(spec, o)).enumerate() {
            let bytes = place * size..(place + 1) * size;
            let (before, after) = (&before.bytes()[bytes.clone()], &after.bytes()[bytes]);
            let is_zero = after.iter().all(|&b| b == 0);
            if written && !element && !is_zero {
                return Err(format!("place {place} of output {o} is padding and not zero"));
            }
            if !written && before != after {
                return Err(format!("place {place} of output {o} is written and is no element"));
            }
        }
    }
    Ok(())
}

/// Checks that the reference allows every element. A random combiner keeps no contract: its results depend on the tree,
/// and there is no value to compare them with.
///
/// # Errors
/// The place whose element is not allowed.
pub fn is_allowed(spec: &Spec, memory: &Memory, outputs: &[Buffer]) -> Result<(), String> {
    if spec.reducers().iter().any(|call| matches!(call, OpCall::Own(_))) {
        return Ok(());
    }
    let inputs: Vec<&[u8]> = memory.inputs.iter().map(Buffer::bytes).collect();
    let old: Vec<&[u8]> = memory.outputs.iter().map(Buffer::bytes).collect();
    let exact = reference::reduce_over(spec, &inputs, &old).expect("the right buffers");
    for (o, (exact, output)) in exact.iter().zip(outputs).enumerate() {
        for (place, exact) in places(spec, o).into_iter().zip(exact) {
            let got = Scalar::read(spec.outputs()[o].dtype(), output.bytes(), place);
            if let Err(mismatch) = reference::check(spec, exact, got) {
                return Err(format!("place {place} of output {o}: {mismatch}"));
            }
        }
    }
    Ok(())
}
