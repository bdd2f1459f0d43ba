//! CLIF and wide functions -> executable memory.
//!
//! # The compiled function
//!
//! | | |
//! | --- | --- |
//! | calling convention | the target's C convention |
//! | argument 0 | pointer to an array of pointers: each buffer of the nest in its order, then scratch memory |
//! | result | none |
//!
//! Each pointer goes to the first element of its buffer; no alignment is needed. Inputs are only read. Outputs are only
//! written, except those whose old elements are read first (`inout`). All accesses lie within the lengths that the nest
//! gives: a nest that verifies guarantees it, and the tests and debug builds verify every stage (release builds if a
//! schedule is forced). The scratch memory is [`Code::scratch_bytes`] bytes, aligned to [`SCRATCH_ALIGN`], of any
//! content; if it is 0 bytes, its pointer is not read and may be absent. The function touches no other memory except
//! its frame. It calls only its wide functions (see [`wide`](crate::codegen::x86)), the functions of [`libcalls`] where
//! the target lacks an instruction, and those of [`host`]. It never unwinds.
//!
//! # Memory
//! The functions of a program and their wide functions share pages of their own ([`memory`]), which are freed when the
//! last [`Code`] of them is dropped.

mod host;
mod libcalls;
mod memory;
#[cfg(test)]
mod tests;

use crate::codegen::clif::{self, Generated, HostFunction, Traits, WideName};
use crate::codegen::x86;
use crate::error::{Error, NoCode};
use crate::vectors::Vectors;
use cranefold_ir::Nest;
use cranelift_codegen::Context;
use cranelift_codegen::ir::{Function, UserExternalName, UserExternalNameRef};
use cranelift_codegen::isa::{OwnedTargetIsa, TargetIsa};
use cranelift_frontend::FunctionBuilderContext;
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, ModuleError, ModuleReloc, default_libcall_names};
use memory::{Pages, Provider};
use std::sync::Arc;

pub use crate::codegen::storage::SCRATCH_ALIGN;
pub use memory::{Entry, Memory};

/// The machine code of a nest, and the memory that holds it.
#[derive(Debug)]
pub struct Code {
    bytes: Vec<u8>,
    /// The bytes of each wide function.
    wide_bytes: Vec<u64>,
    scratch_bytes: u64,
    loaded: Option<Loaded>,
}

/// Code in executable memory.
#[derive(Debug)]
struct Loaded {
    entry: Entry,
    /// The address of each wide function.
    wide_functions: Vec<usize>,
    pages: Arc<Pages>,
}

impl Code {
    /// The machine code: the function's, then its wide functions', each with its constants.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes of each wide function.
    pub fn wide_bytes(&self) -> &[u64] {
        &self.wide_bytes
    }

    /// Bytes of scratch memory a call needs.
    pub fn scratch_bytes(&self) -> u64 {
        self.scratch_bytes
    }

    /// The function, if the code is for this machine. Calling it is safe under the contract at the head of this file;
    /// it lives as long as the code.
    pub fn entry(&self) -> Option<Entry> {
        self.loaded.as_ref().map(|l| l.entry)
    }

    /// Bytes of the executable memory that the codes of the program share.
    pub fn memory_bytes(&self) -> usize {
        self.loaded.as_ref().map_or(0, |l| l.pages.bytes())
    }

    /// The places in memory of the function and its wide functions: address and bytes.
    pub fn places(&self) -> Vec<(usize, u64)> {
        let Some(loaded) = &self.loaded else { return vec![] };
        let function = self.bytes.len() as u64 - self.wide_bytes.iter().sum::<u64>();
        let wide_functions = loaded.wide_functions.iter().copied().zip(self.wide_bytes.iter().copied());
        std::iter::once((loaded.entry as usize, function)).chain(wide_functions).collect()
    }
}

/// The Cranelift function of a legal nest.
///
/// # Errors
/// [`NoCode::NoForm`] if the nest holds what code generation has no form for.
pub(crate) fn generate(nest: &Nest, vectors: Vectors, isa: &OwnedTargetIsa) -> Result<Generated, NoCode> {
    let made = clif::function(nest, vectors, Traits::of(&**isa), &mut FunctionBuilderContext::new());
    made.map_err(|e| NoCode::NoForm(e.0))
}

fn refused(message: impl ToString) -> Error {
    Error::Internal { stage: "clif", message: message.to_string() }
}

/// Compiles the legal nests of a program. Loads their codes together if they are for this machine and there is memory
/// to load them into.
///
/// # Errors
/// As [`generate`]; [`Error::Internal`] if Cranelift refuses a function, [`Error::Memory`] if there is no memory for them.
pub(crate) fn compile<'n>(
    nests: impl Iterator<Item = &'n Nest>,
    vectors: Vectors,
    isa: &OwnedTargetIsa,
    memory: Option<&Memory>,
) -> Result<Vec<Code>, NoCode> {
    let mut machine = nests.map(|nest| Machine::of(nest, vectors, isa)).collect::<Result<Vec<_>, _>>()?;
    let loaded = match memory {
        Some(memory) => load(&mut machine, isa, memory)?.into_iter().map(Some).collect(),
        None => machine.iter().map(|_| None).collect::<Vec<_>>(),
    };
    Ok(machine.into_iter().zip(loaded).map(|(machine, loaded)| machine.code(loaded)).collect())
}

/// The machine code of a nest before it is loaded.
struct Machine {
    context: Context,
    wide_functions: Vec<x86::WideFunction>,
    scratch_bytes: u64,
}

impl Machine {
    fn of(nest: &Nest, vectors: Vectors, isa: &OwnedTargetIsa) -> Result<Machine, NoCode> {
        let Generated { function, scratch_bytes, wide_functions, .. } = generate(nest, vectors, isa)?;
        let mut context = Context::for_function(function);
        context.compile(&**isa, &mut Default::default()).map_err(|e| refused(format!("{:?}", e.inner)))?;
        Ok(Machine { context, wide_functions, scratch_bytes })
    }

    fn function_bytes(&self) -> &[u8] {
        self.context.compiled_code().expect("compiled when it was made").code_buffer()
    }

    /// The most bytes that the code takes in memory.
    fn memory_bytes(&self, isa: &dyn TargetIsa) -> usize {
        let relocations = self.context.compiled_code().map_or(0, |code| code.buffer.relocs().len());
        let function = self.function_bytes().len() + relocations * MOST_VENEER_BYTES;
        let wide_functions = self.wide_functions.iter().map(|wide_function| wide_function.bytes.len());
        let align = self.align(isa).max(x86::ALIGN) as usize;
        wide_functions.chain([function]).map(|bytes| bytes.next_multiple_of(align)).sum()
    }

    fn align(&self, isa: &dyn TargetIsa) -> u64 {
        let own = self.context.compiled_code().map_or(1, |code| code.buffer.alignment);
        u64::from(own).max(isa.function_alignment().minimum.into()).max(isa.symbol_alignment())
    }

    fn code(self, loaded: Option<Loaded>) -> Code {
        let bytes = together(self.function_bytes(), &self.wide_functions);
        let wide_bytes = self.wide_functions.iter().map(|wide_function| wide_function.bytes.len() as u64).collect();
        Code { bytes, wide_bytes, scratch_bytes: self.scratch_bytes, loaded }
    }
}

/// The most bytes that the linker adds for a call to a function out of reach.
const MOST_VENEER_BYTES: usize = 32;

/// Links the codes of a program into pages of their own.
fn load(codes: &mut [Machine], isa: &OwnedTargetIsa, memory: &Memory) -> Result<Vec<Loaded>, Error> {
    let no_memory = |error: &dyn std::fmt::Display| Error::Memory(error.to_string());
    let bytes = codes.iter().map(|code| code.memory_bytes(&**isa)).sum();
    let provider = Provider::new(memory, bytes).map_err(|e| no_memory(&e))?;
    let pages = provider.pages();
    let mut builder = JITBuilder::with_isa(isa.clone(), default_libcall_names());
    builder.symbols(libcalls::libcalls());
    let called = codes.iter().flat_map(|code| host_calls(&code.context.func));
    builder.symbols(called.map(|(_, f)| (f.symbol(), host::address(f))));
    builder.memory_provider(Box::new(provider));
    let mut module = JITModule::new(builder);
    let ids =
        codes.iter_mut().map(|code| define(&mut module, code, isa)).collect::<Result<Vec<_>, _>>().map_err(refused)?;
    module.finalize_definitions().map_err(|e| no_memory(&e))?;
    let address = |&id: &FuncId| module.get_finalized_function(id);
    let loaded = |(function, wide_functions): &(FuncId, Vec<FuncId>)| Loaded {
        entry: pages.entry(address(function)),
        wide_functions: wide_functions.iter().map(|id| address(id).addr()).collect(),
        pages: pages.clone(),
    };
    Ok(ids.iter().map(loaded).collect())
}

/// Defines a function and its wide functions.
fn define(
    module: &mut JITModule,
    code: &mut Machine,
    isa: &OwnedTargetIsa,
) -> Result<(FuncId, Vec<FuncId>), Box<ModuleError>> {
    // Each call with its name in the module, which it is known by from here on.
    let mut named = vec![];
    for (place, f) in host_calls(&code.context.func) {
        let id = module.declare_function(&f.symbol(), Linkage::Import, &f.signature(isa.frontend_config()))?;
        named.push((place, id));
    }
    let mut wide_functions = vec![];
    for wide_function in &code.wide_functions {
        let id = module.declare_anonymous_function(&WideName::signature())?;
        module.define_function_bytes(id, x86::ALIGN, &wide_function.bytes, &[])?;
        wide_functions.push(id);
    }
    named.extend(
        wide_calls(&code.context.func).map(|(place, WideName(number))| (place, wide_functions[number as usize])),
    );
    for (place, id) in named {
        code.context.func.params.reset_user_func_name(place, UserExternalName::new(0, id.as_u32()));
    }
    let function = &code.context.func;
    let id = module.declare_anonymous_function(&function.signature)?;
    let relocations = code.context.compiled_code().expect("compiled when it was made").buffer.relocs();
    let relocations: Vec<ModuleReloc> =
        relocations.iter().map(|r| ModuleReloc::from_mach_reloc(r, function, id)).collect();
    module.define_function_bytes(id, code.align(&**isa), code.function_bytes(), &relocations)?;
    Ok((id, wide_functions))
}

/// The code of the function, then the code of its wide functions.
pub fn together(function: &[u8], wide_functions: &[x86::WideFunction]) -> Vec<u8> {
    let parts = wide_functions.iter().map(|wide_function| wide_function.bytes.as_slice());
    std::iter::once(function).chain(parts).collect::<Vec<_>>().concat()
}

/// The wide functions that a function calls, each with the place of its name.
pub fn wide_calls(function: &Function) -> impl Iterator<Item = (UserExternalNameRef, WideName)> {
    function.params.user_named_funcs().iter().filter_map(|(place, name)| Some((place, WideName::of(name)?)))
}

/// The functions of the host that a function calls, each with the place of its name.
pub fn host_calls(function: &Function) -> impl Iterator<Item = (UserExternalNameRef, HostFunction)> {
    function.params.user_named_funcs().iter().filter_map(|(place, name)| Some((place, HostFunction::of(name)?)))
}
