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
//! the target lacks an instruction, and those of [`host`]. It never unwinds. Where all of a nest is one wide function,
//! that is the function.
//!
//! # Memory
//! The functions of a program and their wide functions lie side by side in lines of memory ([`memory`]), which are freed
//! when the last [`Code`] of them is dropped. All calls are by absolute addresses, which are filled in as the code is
//! loaded: the one kind of relocation there is.

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
use cranelift_codegen::FinalizedRelocTarget;
use cranelift_codegen::binemit::Reloc;
use cranelift_codegen::ir::{ExternalName, LibCall};
use cranelift_codegen::ir::{Function, UserExternalNameRef};
use cranelift_codegen::isa::{OwnedTargetIsa, TargetIsa};
use cranelift_codegen::{CompiledCode, Context};
use cranelift_frontend::FunctionBuilderContext;
use memory::{Block, Taken};
use std::collections::HashMap;
use std::sync::Arc;

pub use crate::codegen::storage::SCRATCH_ALIGN;
pub use memory::{Entry, Memory};

/// The machine code of a nest, and the memory that holds it.
#[derive(Debug)]
pub struct Code {
    image: Image,
    /// The function that callers enter, then each wide function that it calls.
    functions: Box<[Placed]>,
    /// The place in `functions` of the first wide function: 0 if one is entered.
    first_wide: usize,
    scratch_bytes: u64,
}

/// The one copy of a program's code.
#[derive(Debug)]
enum Image {
    /// In executable memory, with the addresses that code was given there: where they stand, in bytes of the block.
    Loaded { block: Arc<Block>, addresses: Box<[u32]> },
    /// Not for this machine.
    Kept(Box<[u8]>),
}

/// A function in an image.
#[derive(Clone, Copy, Debug)]
struct Placed {
    at: u32,
    bytes: u32,
}

impl Code {
    /// The machine code: the function's, then its wide functions', each with its constants. Addresses of functions are
    /// zero in it, so that it is the same wherever it lies.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len() as usize);
        for function in &self.functions {
            let range = function.at as usize..(function.at + function.bytes) as usize;
            match &self.image {
                Image::Kept(kept) => bytes.extend_from_slice(&kept[range]),
                Image::Loaded { block, addresses } => {
                    let start = bytes.len();
                    bytes.extend_from_slice(block.code(range.clone()));
                    for at in addresses.iter().map(|at| *at as usize).filter(|at| range.contains(at)) {
                        bytes[start + at - range.start..][..ADDRESS_BYTES].fill(0);
                    }
                }
            }
        }
        bytes
    }

    /// Bytes of the machine code.
    pub fn len(&self) -> u64 {
        self.functions.iter().map(|function| u64::from(function.bytes)).sum()
    }

    /// Bytes of each wide function.
    pub fn wide_bytes(&self) -> impl Iterator<Item = u64> {
        self.functions[self.first_wide..].iter().map(|function| u64::from(function.bytes))
    }

    /// Bytes of scratch memory a call needs.
    pub fn scratch_bytes(&self) -> u64 {
        self.scratch_bytes
    }

    /// The function, if the code is for this machine. Calling it is safe under the contract at the head of this file;
    /// it lives as long as the code.
    pub fn entry(&self) -> Option<Entry> {
        match &self.image {
            Image::Loaded { block, .. } => Some(block.entry(self.functions[0].at as usize)),
            Image::Kept(_) => None,
        }
    }

    /// Bytes of the memory that the codes of the program share; of code that is not loaded its own bytes.
    pub fn memory_bytes(&self) -> u64 {
        match &self.image {
            Image::Loaded { block, .. } => block.bytes() as u64,
            Image::Kept(bytes) => bytes.len() as u64,
        }
    }

    /// The places in memory of the function and its wide functions: address and bytes.
    pub fn places(&self) -> Vec<(usize, u64)> {
        let Image::Loaded { block, .. } = &self.image else { return vec![] };
        let place = |function: &Placed| (block.address(function.at as usize), u64::from(function.bytes));
        self.functions.iter().map(place).collect()
    }
}

/// Bytes of an address in code.
const ADDRESS_BYTES: usize = 8;

/// The code of a legal nest before Cranelift compiles its part.
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
    let machines = nests.map(|nest| Machine::of(nest, vectors, isa)).collect::<Result<Vec<_>, _>>()?;
    match memory {
        Some(memory) => Ok(load(&machines, isa, memory)?),
        None => Ok(machines.iter().map(|machine| machine.kept(&**isa)).collect()),
    }
}

/// The machine code of a nest before it is loaded.
struct Machine {
    /// Cranelift's function; `None` if the nest is one wide function.
    context: Option<Context>,
    wide_functions: Vec<x86::WideFunction>,
    scratch_bytes: u64,
}

impl Machine {
    fn of(nest: &Nest, vectors: Vectors, isa: &OwnedTargetIsa) -> Result<Machine, NoCode> {
        let Generated { function, scratch_bytes, wide_functions, .. } = generate(nest, vectors, isa)?;
        let compiled = |function| -> Result<Context, Error> {
            let mut context = Context::for_function(function);
            context.compile(&**isa, &mut Default::default()).map_err(|e| refused(format!("{:?}", e.inner)))?;
            Ok(context)
        };
        let context = function.map(compiled).transpose()?;
        Ok(Machine { context, wide_functions, scratch_bytes })
    }

    /// The function that Cranelift compiled and its code; `None` if the nest is one wide function.
    fn cranelift(&self) -> Option<(&Function, &CompiledCode)> {
        let context = self.context.as_ref()?;
        Some((&context.func, context.compiled_code().expect("compiled when it was made")))
    }

    /// The bytes of each function, and the alignment of its first.
    fn codes(&self, isa: &dyn TargetIsa) -> impl Iterator<Item = (&[u8], u64)> {
        let least = u64::from(isa.function_alignment().minimum).max(isa.symbol_alignment());
        let function = self.cranelift().map(|(_, code)| (code.code_buffer(), least.max(code.buffer.alignment.into())));
        function.into_iter().chain(self.wide_functions.iter().map(|wide| (&*wide.bytes, x86::ALIGN)))
    }

    /// The code for another machine.
    fn kept(&self, isa: &dyn TargetIsa) -> Code {
        let mut image = vec![];
        let functions = self.codes(isa).map(|(code, _)| {
            let at = image.len() as u32;
            image.extend_from_slice(code);
            Placed { at, bytes: code.len() as u32 }
        });
        let functions = functions.collect();
        self.code(Image::Kept(image.into()), functions)
    }

    fn code(&self, image: Image, functions: Box<[Placed]>) -> Code {
        let first_wide = usize::from(self.context.is_some());
        Code { image, functions, first_wide, scratch_bytes: self.scratch_bytes }
    }

    /// The places of the function and its wide functions from byte `end` on, which moves behind them.
    fn placed(&self, isa: &dyn TargetIsa, end: &mut usize) -> Box<[Placed]> {
        let place = |(code, align): (&[u8], u64)| {
            let at = end.next_multiple_of(align as usize);
            *end = at + code.len();
            Placed { at: at as u32, bytes: code.len() as u32 }
        };
        self.codes(isa).map(place).collect()
    }

    /// Copies the code to its places in an image that will lie at `start`, and fills in the addresses that it holds.
    /// Returns the bytes of the image where these stand.
    fn link(
        &self,
        isa: &dyn TargetIsa,
        functions: &[Placed],
        start: usize,
        image: &mut [u8],
    ) -> Result<Box<[u32]>, Error> {
        for ((code, _), function) in self.codes(isa).zip(functions) {
            image[function.at as usize..][..code.len()].copy_from_slice(code);
        }
        let Some((function, compiled)) = self.cranelift() else { return Ok([].into()) };
        let wide =
            wide_calls(function).map(|(place, WideName(n))| (place, start + functions[1 + n as usize].at as usize));
        let host = host_calls(function).map(|(place, f)| (place, host::address(f).addr()));
        let called: HashMap<UserExternalNameRef, usize> = wide.chain(host).collect();
        let relocations = compiled.buffer.relocs();
        let mut filled = Vec::with_capacity(relocations.len());
        for relocation in relocations {
            let address = match &relocation.target {
                FinalizedRelocTarget::Func(at) => Some(start + (functions[0].at + at) as usize),
                FinalizedRelocTarget::ExternalName(ExternalName::User(name)) => called.get(name).copied(),
                FinalizedRelocTarget::ExternalName(ExternalName::LibCall(call)) => libcall(*call),
                FinalizedRelocTarget::ExternalName(_) => None,
            };
            let (Reloc::Abs8, Some(address)) = (relocation.kind, address) else {
                return Err(refused(format!("no link of {relocation:?}")));
            };
            let at = functions[0].at + relocation.offset;
            let address = (address as u64).wrapping_add_signed(relocation.addend);
            image[at as usize..][..ADDRESS_BYTES].copy_from_slice(&address.to_ne_bytes());
            filled.push(at);
        }
        Ok(filled.into())
    }
}

fn libcall(call: LibCall) -> Option<usize> {
    libcalls::address(call).map(|address| address.addr())
}

/// Links the codes of a program into one block of memory.
fn load(machines: &[Machine], isa: &OwnedTargetIsa, memory: &Memory) -> Result<Vec<Code>, Error> {
    let no_memory = |error: std::io::Error| Error::Memory(error.to_string());
    let mut end = 0;
    let placed: Vec<Box<[Placed]>> = machines.iter().map(|machine| machine.placed(&**isa, &mut end)).collect();
    // Places are counted in 32 bits.
    if u32::try_from(end).is_err() {
        return Err(Error::Memory(format!("{end} bytes of code")));
    }
    let write = || -> Result<_, Error> {
        let taken = Taken::new(memory, end).map_err(no_memory)?;
        let mut image = vec![0; end];
        let mut addresses = vec![];
        for (machine, functions) in machines.iter().zip(&placed) {
            addresses.push(machine.link(&**isa, functions, taken.address(), &mut image)?);
        }
        let written = taken.write(&image).map_err(no_memory)?;
        Ok(written.map(|block| (Arc::new(block), addresses)))
    };
    // Where the system refuses to write to pages that codes share, the second time there are whole ones.
    let refused = || Error::Memory("the system writes to none".into());
    let (block, addresses) = write()?.map_or_else(&write, |written| Ok(Some(written)))?.ok_or_else(refused)?;
    let mut codes = vec![];
    for ((machine, functions), addresses) in machines.iter().zip(placed).zip(addresses) {
        let image = Image::Loaded { block: block.clone(), addresses };
        codes.push(machine.code(image, functions));
    }
    codes.shrink_to_fit();
    Ok(codes)
}

/// The wide functions that a function calls, each with the place of its name.
pub fn wide_calls(function: &Function) -> impl Iterator<Item = (UserExternalNameRef, WideName)> {
    function.params.user_named_funcs().iter().filter_map(|(place, name)| Some((place, WideName::of(name)?)))
}

/// The functions of the host that a function calls, each with the place of its name.
pub fn host_calls(function: &Function) -> impl Iterator<Item = (UserExternalNameRef, HostFunction)> {
    function.params.user_named_funcs().iter().filter_map(|(place, name)| Some((place, HostFunction::of(name)?)))
}
