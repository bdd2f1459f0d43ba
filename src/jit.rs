//! CLIF and tiles -> executable memory.
//!
//! # The compiled function
//!
//! | | |
//! | --- | --- |
//! | calling convention | the target's C convention |
//! | argument 0 | pointer to an array of pointers: each buffer of the nest in its order, then scratch memory |
//! | result | none |
//!
//! Each pointer goes to the first element of its buffer; no alignment is needed. Inputs are only
//! read, outputs only written, but for those whose old elements are read first (`inout`), all within the
//! lengths the nest gives: so a nest that verifies does, and the tests and debug builds verify every stage
//! (release builds where a schedule is forced). The scratch memory is [`Code::scratch_bytes`] bytes, aligned to [`SCRATCH_ALIGN`]; what it holds
//! does not matter, and where it is 0 bytes its pointer is not read and may be absent. The function touches
//! no other memory but its frame, calls nothing but its tiles (see [`wide`]), the functions at the end of this
//! file, where the target lacks an instruction, and those of [`host`], and never unwinds.
//!
//! # Memory
//! One module holds one function and its tiles. Its pages are writable while code is copied and executable
//! afterwards, never both; they are given back when the [`Code`] is dropped.
#![allow(unsafe_code, reason = "maps and frees executable memory")]

mod host;
#[cfg(test)]
mod tests;

use crate::codegen::{self, Generated, HostFunction, LoopName, TileName, loop_at};
use crate::disassembly::{self, Part, disassembly};
use crate::error::Error;
use crate::wide::{self, Plan};
use cranefold_ir::Nest;
use cranelift_codegen::ir::{ExternalName, Function, LibCall, UserExternalName, UserExternalNameRef};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::{CompiledCode, Context, FinalizedRelocTarget};
use cranelift_frontend::FunctionBuilderContext;
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Linkage, Module, default_libcall_names};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::__m128i;
use std::sync::Mutex;
use target_lexicon::Architecture;

pub use crate::storage::SCRATCH_ALIGN;

/// The type of the compiled function.
pub type Entry = unsafe extern "C" fn(*const *mut u8);

/// Machine code, and the memory it lives in.
#[derive(Debug)]
pub struct Code {
    bytes: Vec<u8>,
    /// Those of its tiles.
    tile_bytes: Vec<u64>,
    scratch_bytes: u64,
    loaded: Option<Loaded>,
}

struct Loaded {
    entry: Entry,
    module: Mutex<Option<JITModule>>,
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Loaded({:p})", self.entry as *const u8)
    }
}

impl Code {
    /// The machine code: that of the function, then that of its tiles, each with its constants.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes of each tile.
    pub fn tile_bytes(&self) -> &[u64] {
        &self.tile_bytes
    }

    /// Bytes of scratch memory a call needs.
    pub fn scratch_bytes(&self) -> u64 {
        self.scratch_bytes
    }

    /// The function, where the code is for this machine. Calling it is safe under the contract at the
    /// head of this file; it lives as long as the code.
    pub fn entry(&self) -> Option<Entry> {
        self.loaded.as_ref().map(|l| l.entry)
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let module = self.module.get_mut().map(Option::take);
        if let Ok(Some(module)) = module {
            // SAFETY: the only pointer into the module's memory is `entry`, which is dropped with it;
            // a caller that runs the function holds the `Code` that owns this.
            unsafe { module.free_memory() };
        }
    }
}

/// The CLIF of a legal nest.
///
/// # Errors
/// [`Error::Internal`] if the nest holds what code generation has no form for.
pub fn clif(nest: &Nest, plan: Plan, isa: &OwnedTargetIsa) -> Result<Function, Error> {
    let mut function = generate(nest, plan, isa)?.function;
    codegen::forget(&mut function);
    Ok(function)
}

fn generate(nest: &Nest, plan: Plan, isa: &OwnedTargetIsa) -> Result<Generated, Error> {
    let mut context = FunctionBuilderContext::new();
    // Only x86 has a feature of that name.
    let is_lacking = |flag: cranelift_codegen::settings::Value| flag.name == "has_avx" && flag.as_bool() == Some(false);
    let without_avx = isa.isa_flags().into_iter().any(is_lacking);
    codegen::function(nest, plan, isa.frontend_config(), without_avx, &mut context)
        .map_err(|e| Error::Internal { stage: "legalize", message: e.to_string() })
}

/// Compiles a legal nest; loads the code where `host` says that it is for this machine.
///
/// # Errors
/// [`Error::Internal`] if Cranelift refuses the function, [`Error::Memory`] if there is no memory for it.
pub fn compile(nest: &Nest, plan: Plan, isa: &OwnedTargetIsa, host: bool) -> Result<Code, Error> {
    let Generated { function, scratch_bytes, tiles, .. } = generate(nest, plan, isa)?;
    let tile_bytes = tiles.iter().map(|tile| tile.bytes.len() as u64).collect();
    let mut context = Context::for_function(function);
    let refused = |message: String| Error::Internal { stage: "clif", message };
    if !host {
        let code = context.compile(&**isa, &mut Default::default()).map_err(|e| refused(format!("{:?}", e.inner)))?;
        let bytes = together(code.code_buffer(), &tiles);
        return Ok(Code { bytes, tile_bytes, scratch_bytes, loaded: None });
    }
    let mut builder = JITBuilder::with_isa(isa.clone(), default_libcall_names());
    builder.symbols(libcalls());
    let called = host_calls(&context.func);
    builder.symbols(called.iter().map(|&(_, f)| (f.symbol(), host::address(f))));
    let mut module = JITModule::new(builder);
    for (place, f) in called {
        let signature = f.signature(isa.frontend_config());
        let id =
            module.declare_function(&f.symbol(), Linkage::Import, &signature).map_err(|e| refused(e.to_string()))?;
        // From now on the call names it as the module does.
        context.func.params.reset_user_func_name(place, UserExternalName::new(0, id.as_u32()));
    }
    let named: Vec<(UserExternalNameRef, TileName)> = tile_calls(&context.func).collect();
    for (place, TileName(number)) in named {
        let id = module.declare_anonymous_function(&TileName::signature()).map_err(|e| refused(e.to_string()))?;
        let bytes = &tiles[number as usize].bytes;
        module.define_function_bytes(id, wide::ALIGN, bytes, &[]).map_err(|e| refused(e.to_string()))?;
        context.func.params.reset_user_func_name(place, UserExternalName::new(0, id.as_u32()));
    }
    let id = module.declare_anonymous_function(&context.func.signature).map_err(|e| refused(e.to_string()))?;
    module.define_function(id, &mut context).map_err(|e| refused(format!("{e:?}")))?;
    let bytes = context.compiled_code().map_or(vec![], |code| together(code.code_buffer(), &tiles));
    module.finalize_definitions().map_err(|e| Error::Memory(e.to_string()))?;
    let address = module.get_finalized_function(id);
    // SAFETY: the address is that of a finalized function with the signature at the head of this file.
    let entry = unsafe { std::mem::transmute::<*const u8, Entry>(address) };
    Ok(Code { bytes, tile_bytes, scratch_bytes, loaded: Some(Loaded { entry, module: Mutex::new(Some(module)) }) })
}

/// The code of the function, then that of its tiles.
fn together(function: &[u8], tiles: &[wide::Tile]) -> Vec<u8> {
    let parts = tiles.iter().map(|tile| tile.bytes.as_slice());
    std::iter::once(function).chain(parts).collect::<Vec<_>>().concat()
}

/// The tiles that a function calls, each with the place of its name.
fn tile_calls(function: &Function) -> impl Iterator<Item = (UserExternalNameRef, TileName)> {
    function.params.user_named_funcs().iter().filter_map(|(place, name)| Some((place, TileName::of(name)?)))
}

/// The functions of the host that a function calls, each with the place of its name.
fn host_calls(function: &Function) -> Vec<(UserExternalNameRef, HostFunction)> {
    let names = function.params.user_named_funcs().iter();
    names.filter_map(|(place, name)| Some((place, HostFunction::of(name)?))).collect()
}

/// The CLIF of a legal nest as text, after lines that say which functions of the host it calls.
///
/// # Errors
/// As [`clif`].
pub fn clif_text(nest: &Nest, plan: Plan, isa: &OwnedTargetIsa) -> Result<String, Error> {
    let function = clif(nest, plan, isa)?;
    let legend = |(place, f): (UserExternalNameRef, HostFunction)| {
        format!("; {} is {}\n", function.params.user_named_funcs()[place], f.symbol())
    };
    let tiles = tile_calls(&function)
        .map(|(place, TileName(number))| format!("; {} is tile {number}\n", function.params.user_named_funcs()[place]));
    let legend: String = host_calls(&function).into_iter().map(legend).chain(tiles).collect();
    Ok(legend + &function.to_string())
}

/// The assembly of a legal nest, whose code is `of`: on x86-64 disassembled, else as Cranelift prints it.
///
/// # Errors
/// As [`compile`]; [`Error::Internal`] also if the nest gives other code than that.
pub fn assembly(of: &Code, nest: &Nest, plan: Plan, isa: &OwnedTargetIsa) -> Result<String, Error> {
    let Generated { function, tiles, loops, .. } = generate(nest, plan, isa)?;
    let is_x86 = isa.triple().architecture == Architecture::X86_64;
    let mut context = Context::for_function(function);
    context.set_disasm(!is_x86);
    let refused = |message: String| Error::Internal { stage: "clif", message };
    context.compile(&**isa, &mut Default::default()).map_err(|e| refused(format!("{:?}", e.inner)))?;
    let code = context.compiled_code().expect("compiled above");
    if together(code.code_buffer(), &tiles) != of.bytes() {
        return Err(Error::Internal { stage: "asm", message: "other code than that of the kernel".into() });
    }
    if !is_x86 {
        return Ok(code.vcode.clone().unwrap_or_default());
    }
    let mut text = format!("function:\n{}", function_text(&context.func, code, &loops));
    for (number, tile) in tiles.iter().enumerate() {
        let loops: Vec<&str> = tile.loops.iter().map(String::as_str).collect();
        let (bytes, code_bytes, marks) = (&tile.bytes, tile.code_bytes, &tile.marks);
        let part = Part { bytes, code_bytes, loops: &loops, marks, addresses: &[] };
        text += &format!("\ntile {number}:\n{}", disassembly(&part));
    }
    Ok(text)
}

/// The disassembly of what Cranelift made.
fn function_text(function: &Function, code: &CompiledCode, loops: &[LoopName]) -> String {
    let around: Vec<Option<u32>> = loops.iter().map(|l| l.around).collect();
    let pieces = code.buffer.get_srclocs_sorted().iter().map(|piece| (piece.end as usize, loop_at(piece.loc)));
    let code_bytes = pieces.clone().map(|(end, _)| end).max().unwrap_or(code.code_buffer().len());
    let marks = disassembly::marks(pieces, &around);
    let loops: Vec<&str> = loops.iter().map(|l| l.name.as_str()).collect();
    let relocations = code.buffer.relocs().iter();
    let addresses: Vec<(usize, String)> =
        relocations.map(|r| (r.offset as usize, target_name(function, &r.target))).collect();
    let bytes = code.code_buffer();
    disassembly(&Part { bytes, code_bytes, loops: &loops, marks: &marks, addresses: &addresses })
}

/// What an address is of.
fn target_name(function: &Function, target: &FinalizedRelocTarget) -> String {
    match target {
        FinalizedRelocTarget::ExternalName(ExternalName::LibCall(call)) => default_libcall_names()(*call),
        FinalizedRelocTarget::ExternalName(ExternalName::User(place)) => {
            let name = &function.params.user_named_funcs()[*place];
            let tile = TileName::of(name).map(|TileName(number)| format!("tile {number}"));
            tile.or_else(|| HostFunction::of(name).map(HostFunction::symbol)).unwrap_or_else(|| name.to_string())
        }
        other => other.display(Some(&function.params)),
    }
}

extern "C" fn fma_f32(a: f32, b: f32, c: f32) -> f32 {
    a.mul_add(b, c)
}

extern "C" fn fma_f64(a: f64, b: f64, c: f64) -> f64 {
    a.mul_add(b, c)
}

extern "C" fn nearest_f32(a: f32) -> f32 {
    a.round_ties_even()
}

extern "C" fn nearest_f64(a: f64) -> f64 {
    a.round_ties_even()
}

/// Bytes of `a` at the places that `mask` names, 0 where its highest bit is set.
#[cfg(target_arch = "x86_64")]
#[allow(improper_ctypes_definitions, reason = "vectors are passed in registers, as the compiled code does")]
extern "C" fn x86_pshufb(a: __m128i, mask: __m128i) -> __m128i {
    // SAFETY: 128 bits either way, and all values of all types are valid.
    let [a, mask] = unsafe { std::mem::transmute::<[__m128i; 2], [[u8; 16]; 2]>([a, mask]) };
    let bytes = mask.map(|at| if at & 0x80 == 0 { a[usize::from(at & 15)] } else { 0 });
    // SAFETY: as above.
    unsafe { std::mem::transmute::<[u8; 16], __m128i>(bytes) }
}

/// The functions Cranelift calls where a target lacks the instruction: correctly rounded all.
fn libcalls() -> Vec<(String, *const u8)> {
    let names = default_libcall_names();
    [
        #[cfg(target_arch = "x86_64")]
        (LibCall::X86Pshufb, x86_pshufb as *const u8),
        (LibCall::FmaF32, fma_f32 as *const u8),
        (LibCall::FmaF64, fma_f64 as *const u8),
        (LibCall::NearestF32, nearest_f32 as *const u8),
        (LibCall::NearestF64, nearest_f64 as *const u8),
    ]
    .map(|(call, address)| (names(call), address))
    .into()
}
