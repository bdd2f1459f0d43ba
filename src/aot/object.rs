//! CLIF and wide functions of one function or several -> an object file.

use crate::codegen::clif::{Generated, HostFunction, WideName};
use crate::codegen::x86;
use crate::error::Error;
use cranelift_codegen::ir::{
    AbiParam, Block, ExternalName, Function, InstBuilder, LibCall, MemFlagsData, Signature, StackSlotData,
    StackSlotKind, UserExternalName, UserFuncName, types,
};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::{Context, FinalizedRelocTarget};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_module::{FuncId, Linkage, Module, default_libcall_names};
use cranelift_object::{ObjectBuilder, ObjectModule};
use target_lexicon::BinaryFormat;

use super::pshufb;

/// A function to be put into an object: its loops, the pointers that it takes but for scratch, and its name.
pub struct Wanted<'a> {
    pub generated: Generated,
    pub buffers: usize,
    pub symbol: &'a str,
}

/// An object file, and for each function the names of the C library's functions that it needs.
pub struct Linked {
    pub bytes: Vec<u8>,
    pub needs: Vec<Vec<String>>,
}

fn internal(error: impl std::fmt::Debug) -> Error {
    Error::Internal { stage: "object", message: format!("{error:?}") }
}

/// The object `name` of generated functions, each of which takes its pointers, and one to scratch memory if it needs any.
///
/// # Errors
/// [`Error::Object`] if the target's objects are not ELF; [`Error::Internal`] if Cranelift refuses a function.
pub fn object(functions: Vec<Wanted>, name: &str, isa: OwnedTargetIsa) -> Result<Linked, Error> {
    if isa.triple().binary_format != BinaryFormat::Elf {
        let what = format!("the target `{}`", isa.triple());
        return Err(Error::Object { what, reason: "its objects are not ELF".into() });
    }
    let pshufb = format!("{name}_pshufb");
    let own = pshufb.clone();
    let names = move |call| if call == LibCall::X86Pshufb { own.clone() } else { default_libcall_names()(call) };
    let builder = ObjectBuilder::new(isa, name, Box::new(names)).map_err(internal)?;
    let mut module = ObjectModule::new(builder);
    let mut calls = vec![];
    for wanted in functions {
        calls.push(define(&mut module, wanted)?);
    }
    if calls.iter().flatten().any(|&call| call == LibCall::X86Pshufb) {
        let function = pshufb::function(module.target_config());
        let id = declare(&mut module, &pshufb, Linkage::Local, &function.signature)?;
        module.define_function(id, &mut Context::for_function(function)).map_err(internal)?;
    }
    let bytes = module.finish().emit().map_err(internal)?;
    let named = |calls: Vec<LibCall>| {
        calls.into_iter().filter(|&call| call != LibCall::X86Pshufb).map(default_libcall_names()).collect()
    };
    Ok(Linked { bytes, needs: calls.into_iter().map(named).collect() })
}

/// Puts a function, its loops and its wide functions into the module. Returns the library functions that it calls.
fn define(module: &mut ObjectModule, wanted: Wanted) -> Result<Vec<LibCall>, Error> {
    let Wanted { generated: Generated { function, scratch_bytes, wide_functions, .. }, buffers, symbol } = wanted;
    let name = format!("{symbol}_loops");
    let (loops, calls) = match (function, &*wide_functions) {
        (None, [whole]) => {
            let mut signature = Signature::new(module.target_config().default_call_conv);
            signature.params.push(AbiParam::new(types::I64));
            let loops = declare(module, &name, Linkage::Local, &signature)?;
            module.define_function_bytes(loops, x86::ALIGN, &whole.bytes, &[]).map_err(internal)?;
            (loops, vec![])
        }
        (None, several) => return Err(internal(format!("{} wide functions without a caller", several.len()))),
        (Some(function), _) => {
            let mut context = Context::for_function(function);
            link_wide(module, &mut context.func, &wide_functions, symbol)?;
            let loops = declare(module, &name, Linkage::Local, &context.func.signature)?;
            module.define_function(loops, &mut context).map_err(internal)?;
            (loops, libcalls(&context))
        }
    };
    let function = entry(module, loops, buffers + usize::from(scratch_bytes > 0));
    let id = declare(module, symbol, Linkage::Export, &function.signature)?;
    module.define_function(id, &mut Context::for_function(function)).map_err(internal)?;
    Ok(calls)
}

fn declare(module: &mut ObjectModule, name: &str, linkage: Linkage, signature: &Signature) -> Result<FuncId, Error> {
    module.declare_function(name, linkage, signature).map_err(internal)
}

/// Puts the wide functions of a function into the module, and points the function's calls at them.
fn link_wide(
    module: &mut ObjectModule,
    function: &mut Function,
    wide_functions: &[x86::WideFunction],
    symbol: &str,
) -> Result<(), Error> {
    for callee in function.dfg.ext_funcs.keys().collect::<Vec<_>>() {
        let ExternalName::User(place) = function.dfg.ext_funcs[callee].name else { continue };
        let name = function.params.user_named_funcs()[place].clone();
        let Some(WideName(number)) = WideName::of(&name) else {
            // Only selections call host functions, and they are refused before.
            return Err(internal(HostFunction::of(&name).map(HostFunction::symbol)));
        };
        let id = declare(module, &format!("{symbol}_wide{number}"), Linkage::Local, &WideName::signature())?;
        let bytes = &wide_functions[number as usize].bytes;
        module.define_function_bytes(id, x86::ALIGN, bytes, &[]).map_err(internal)?;
        function.params.reset_user_func_name(place, UserExternalName::new(0, id.as_u32()));
        // All functions lie in one section.
        function.dfg.ext_funcs[callee].colocated = true;
    }
    Ok(())
}

/// The library functions that a compiled function calls where the target lacks an instruction, each once.
fn libcalls(context: &Context) -> Vec<LibCall> {
    let relocations = context.compiled_code().map_or(&[][..], |code| code.buffer.relocs());
    let mut calls: Vec<LibCall> = vec![];
    for relocation in relocations {
        if let FinalizedRelocTarget::ExternalName(ExternalName::LibCall(call)) = relocation.target
            && !calls.contains(&call)
        {
            calls.push(call);
        }
    }
    calls
}

/// The entry block of a function of one block, with the function's parameters.
pub(super) fn only_block(builder: &mut FunctionBuilder<'_>) -> Block {
    let block = builder.create_block();
    builder.append_block_params_for_function_params(block);
    builder.switch_to_block(block);
    builder.seal_block(block);
    block
}

/// The function that C calls: it puts its arguments into the array of pointers that the loops take.
fn entry(module: &mut ObjectModule, loops: FuncId, pointers: usize) -> Function {
    let config = module.target_config();
    let mut signature = Signature::new(config.default_call_conv);
    signature.params = vec![AbiParam::new(types::I64); pointers];
    let mut function = Function::with_name_signature(UserFuncName::user(0, 1), signature);
    let callee = module.declare_func_in_func(loops, &mut function);
    let mut context = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut function, &mut context);
    let block = only_block(&mut builder);
    let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, 8 * pointers as u32, 3);
    let slot = builder.create_sized_stack_slot(slot);
    let array = builder.ins().stack_addr(types::I64, slot, 0);
    for (n, argument) in builder.block_params(block).to_vec().into_iter().enumerate() {
        builder.ins().store(MemFlagsData::trusted(), argument, array, 8 * n as i32);
    }
    builder.ins().call(callee, &[array]);
    builder.ins().return_(&[]);
    builder.finalize(config);
    function
}
