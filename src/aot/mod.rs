//! Ahead of time: a reduction, or several, as an object file and the C header that declares a function for each.
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
//! ELF, position independent, with one global symbol a function; all other symbols (the loops, `…_loops`; the wide
//! functions, `…_wide0`) are local. Where the target lacks the instruction, the object refers to `fma`, `fmaf`, `nearbyint` and
//! `nearbyintf` of the C library's mathematics, which are exact there as everywhere, and to nothing else.

mod header;
mod object;
mod pshufb;
mod symbol;

use crate::codegen::clif::Generated;
use crate::compiler::Options;
use crate::error::Error;
use crate::link;
use crate::lower::program::Program;
use crate::pipeline::{self, Made};
use crate::problem::Problem;
use crate::schedule::{Decided, Parts, Schedule};
use crate::spec::Spec;
use crate::target::Target;
use object::Linked;

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
    let symbol = name(spec, symbol)?;
    let ready = Ready::of(target, spec, options)?;
    let linked = linked(target, vec![(ready.generated, ready.buffers, symbol.clone())], &symbol)?;
    let (scratch_bytes, needs) = (ready.scratch_bytes, &linked.needs[0]);
    let header = header::Header { spec, target, symbol: &symbol, scratch_bytes, needs }.to_string();
    Ok(Object { bytes: linked.bytes, header, symbol, scratch_bytes })
}

/// A reduction of a [`Library`].
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// The reduction.
    pub spec: &'a Spec,
    /// The name of the function; by default it is made of the spec.
    pub symbol: Option<&'a str>,
    /// A sentence about the function, for the header.
    pub about: &'a str,
}

/// Several compiled reductions as one object file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    /// The object file.
    pub bytes: Vec<u8>,
    /// The C header, which C++ reads too.
    pub header: String,
    /// The name of each function.
    pub symbols: Vec<String>,
    /// Bytes of scratch memory that a call of each function needs; its alignment is 64.
    pub scratch_bytes: Vec<u64>,
}

/// The reason for which a name is refused.
const NO_IDENTIFIER: &str =
    "the name is no identifier of C, which is letters, digits and `_`, begins with no digit, and is no word of C";

/// Returns one object of several reductions for a target, with a function each, as [`emit`] makes it of one. `name` is an
/// identifier of C, of which the header's guard is made; `about` is a sentence about the whole, for the header.
///
/// ```
/// use cranefold::{Options, Spec, Target, aot};
///
/// let target = Target::new("s390x-unknown-linux-gnu", "arch13")?;
/// let specs: [Spec; 2] = ["mean f32[4,10] axes=[1]".parse()?, "max f32[4,10]".parse()?];
/// let [mean, max] = specs.each_ref().map(|spec| aot::Member { spec, symbol: None, about: "" });
/// let members = [aot::Member { symbol: Some("row_means"), ..mean }, max];
/// let library = aot::emit_all(&target, "statistics", "Two statistics.", &members, &Options::default())?;
/// assert_eq!(library.symbols[0], "row_means");
/// assert!(library.header.contains("#ifndef STATISTICS_H\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`emit`], and [`Error::Object`] if two functions have one name.
pub fn emit_all(
    target: &Target,
    name: &str,
    about: &str,
    members: &[Member],
    options: &Options,
) -> Result<Library, Error> {
    if !symbol::is_identifier(name) {
        return Err(refused(name.escape_default().to_string(), NO_IDENTIFIER));
    }
    let symbols = members.iter().map(|member| self::name(member.spec, member.symbol));
    let symbols = symbols.collect::<Result<Vec<_>, _>>()?;
    let mut known = std::collections::HashSet::new();
    if let Some(symbol) = symbols.iter().find(|symbol| !known.insert(symbol.as_str())) {
        return Err(refused(symbol.clone(), "two functions have this name"));
    }
    let mut functions = vec![];
    let mut scratch_bytes = vec![];
    for (member, symbol) in members.iter().zip(&symbols) {
        let ready = Ready::of(target, member.spec, options)?;
        scratch_bytes.push(ready.scratch_bytes);
        functions.push((ready.generated, ready.buffers, symbol.clone()));
    }
    let linked = linked(target, functions, name)?;
    let header = |n: usize| header::Header {
        spec: members[n].spec,
        target,
        symbol: &symbols[n],
        scratch_bytes: scratch_bytes[n],
        needs: &linked.needs[n],
    };
    let functions = (0..members.len()).map(|n| (header(n), members[n].about)).collect();
    let header = header::Several { name, about, target, functions }.to_string();
    Ok(Library { bytes: linked.bytes, header, symbols, scratch_bytes })
}

fn refused(name: String, reason: &str) -> Error {
    Error::Object { what: format!("`{name}`"), reason: reason.into() }
}

/// The name of a reduction's function.
fn name(spec: &Spec, given: Option<&str>) -> Result<String, Error> {
    match given {
        Some(name) if symbol::is_identifier(name) => Ok(name.to_string()),
        Some(name) => Err(refused(name.escape_default().to_string(), NO_IDENTIFIER)),
        None => Ok(symbol::of(spec)),
    }
}

/// A reduction's loops, ready to be put into an object.
struct Ready {
    generated: Generated,
    /// The pointers that the loops take, but for scratch.
    buffers: usize,
    scratch_bytes: u64,
}

impl Ready {
    fn of(target: &Target, spec: &Spec, options: &Options) -> Result<Ready, Error> {
        if let Some(row) = spec.reducers().iter().filter_map(|call| call.as_row()).find(|row| row.selects) {
            let reason = "it selects elements by their order, which functions of the library do";
            return Err(refused(row.name.into(), reason));
        }
        // One function does all of the work.
        let forced = options.schedule.clone().map(|schedule| Schedule { parts: Parts::ONE, ..schedule });
        let bounds = options.bounds(target.vectors(), 1)?;
        let isa = target.isa_of_objects()?;
        let decide = |bounds| pipeline::decide(Problem::of(spec), forced.as_ref(), bounds);
        let generate = |decided: &Decided, program: &Program| link::generate(&program.nests[0], decided.vectors, &isa);
        let Made { program, code: generated, .. } = pipeline::made(bounds, decide, generate)?;
        let (buffers, scratch_bytes) = (program.nests[0].buffers.len(), generated.scratch_bytes);
        Ok(Ready { generated, buffers, scratch_bytes })
    }
}

/// The object `name` of functions: their loops, numbers of pointers and names.
fn linked(target: &Target, functions: Vec<(Generated, usize, String)>, name: &str) -> Result<Linked, Error> {
    let symbols: Vec<String> = functions.iter().map(|(.., symbol)| symbol.clone()).collect();
    let wanted = functions.into_iter().zip(&symbols);
    let wanted = wanted.map(|((generated, buffers, _), symbol)| object::Wanted { generated, buffers, symbol });
    let linked = object::object(wanted.collect(), name, target.isa_of_objects()?)?;
    match symbols.into_iter().find(|symbol| linked.needs.iter().flatten().any(|need| need == symbol)) {
        Some(symbol) => Err(refused(symbol, "the object calls a function of that name")),
        None => Ok(linked),
    }
}
