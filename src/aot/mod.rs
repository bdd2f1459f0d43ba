//! Ahead of time: a reduction as an object file and the C header that declares its function.
//!
//! # The function
//!
//! | | |
//! | --- | --- |
//! | name | `cranefold_`, the ops, the type and shape of input 0, a hash of the spec; or a given name |
//! | calling convention | the target's C convention |
//! | arguments | a pointer to each input, to each output, and to scratch memory if the function needs any |
//! | result | none |
//!
//! The name is the same on every target, so that one C source links with the object of each. The function is all of the
//! reduction, for one thread; several threads may call it at once. Its contract is a kernel's (see
//! [`run_raw`](crate::Kernel::run_raw)), except that pointers have the alignment of their C types; the header states
//! it.
//!
//! # The object
//! ELF, position independent, with one global symbol; all other symbols (the loops, `…_loops`; the wide functions,
//! `…_wide0`) are local. Where the target lacks the instruction, the object refers to `fma`, `fmaf`, `nearbyint` and
//! `nearbyintf` of the C library's mathematics, which are exact there as everywhere, and to nothing else.

mod header;
mod object;
mod pshufb;
mod symbol;

use crate::compiler::Options;
use crate::error::Error;
use crate::link;
use crate::lower::program::Program;
use crate::pipeline::{self, Made};
use crate::problem::Problem;
use crate::schedule::{Decided, Parts, Schedule};
use crate::spec::Spec;
use crate::target::Target;

/// A compiled reduction as an object file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// The object file.
    pub bytes: Vec<u8>,
    /// The C header, which C++ reads too.
    pub header: String,
    /// The name of the function.
    pub symbol: String,
    /// Bytes of scratch memory that a call needs; its alignment is 64.
    pub scratch_bytes: u64,
}

/// Returns the object of a reduction for a target. `symbol` names the function; by default the name is made of the
/// spec. Objects of one spec for machines with different features need different names to be linked together. The
/// function runs in one part, whatever a forced schedule says.
///
/// ```
/// use cranefold::{Options, Spec, Target, aot};
///
/// let target = Target::new("s390x-unknown-linux-gnu", "arch13")?;
/// let spec: Spec = "mean f32[4,10] axes=[1]".parse()?;
/// let object = aot::emit(&target, &spec, &Options::default(), Some("row_means"))?;
/// assert!(object.bytes.starts_with(b"\x7fELF"));
/// assert!(object.header.contains("void row_means("));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`Error::Object`] if the name is no C identifier or the name of a function that the object calls, the target's
/// objects are not ELF, or the reduction selects elements by their order (`median`, `mode` and the like), for which
/// kernels call functions of this library; [`Error::Schedule`] if a forced schedule does not fit the problem.
pub fn emit(target: &Target, spec: &Spec, options: &Options, symbol: Option<&str>) -> Result<Object, Error> {
    let refused = |what: String, reason: &str| Error::Object { what, reason: reason.into() };
    if let Some(row) = spec.reducers().iter().filter_map(|call| call.as_row()).find(|row| row.selects) {
        let reason = "it selects elements by their order, which functions of the library do";
        return Err(refused(format!("`{}`", row.name), reason));
    }
    let symbol = match symbol {
        Some(name) if symbol::is_identifier(name) => name.to_string(),
        Some(name) => return Err(refused(format!("`{}`", name.escape_default()), "the name is no identifier of C")),
        None => symbol::of(spec),
    };
    // One function does all of the work.
    let forced = options.schedule.clone().map(|schedule| Schedule { parts: Parts::ONE, ..schedule });
    let bounds = options.bounds(target.vectors(), 1)?;
    let isa = target.isa_of_objects()?;
    let decide = |bounds| {
        let decided = Decided::of(Problem::of(spec), forced.as_ref(), bounds)?;
        let program = pipeline::legal(&decided)?;
        Ok((decided, program))
    };
    let generate = |decided: &Decided, program: &Program| link::generate(&program.nests[0], decided.vectors, &isa);
    let Made { program, code: generated, .. } = pipeline::made(bounds, decide, generate)?;
    let nest = &program.nests[0];
    let scratch_bytes = generated.scratch_bytes;
    let object::Linked { bytes, needs } = object::object(generated, nest.buffers.len(), &symbol, isa)?;
    if needs.contains(&symbol) {
        return Err(refused(format!("`{symbol}`"), "the object calls a function of that name"));
    }
    let header = header::Header { spec, target, symbol: &symbol, scratch_bytes, needs: &needs }.to_string();
    Ok(Object { bytes, header, symbol, scratch_bytes })
}
