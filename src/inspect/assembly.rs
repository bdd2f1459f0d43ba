//! Code as text: CLIF, and machine code disassembled.

use crate::codegen::clif::{self, Generated, HostFunction, LoopName, WideName, loop_at};
use crate::codegen::marks::marks;
use crate::error::Error;
use crate::inspect::disassembly::{MarkedCode, disassembly};
use crate::link::{Code, generate, host_calls, wide_calls};
use crate::vectors::Vectors;
use cranefold_ir::Nest;
use cranelift_codegen::ir::{ExternalName, Function, UserExternalNameRef};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::{CompiledCode, Context, FinalizedRelocTarget};
use cranelift_module::default_libcall_names;
use target_lexicon::Architecture;

/// The CLIF of a legal nest; `None` if the nest is one wide function.
///
/// # Errors
/// [`Error::Internal`] if the nest holds what code generation has no form for.
pub fn clif(nest: &Nest, vectors: Vectors, isa: &OwnedTargetIsa) -> Result<Option<Function>, Error> {
    let mut function = generate(nest, vectors, isa)?.function;
    function.iter_mut().for_each(clif::forget);
    Ok(function)
}

/// The CLIF of a legal nest as text, after a legend of the host functions that it calls.
///
/// # Errors
/// As [`clif`].
pub fn clif_text(nest: &Nest, vectors: Vectors, isa: &OwnedTargetIsa) -> Result<String, Error> {
    let Some(function) = clif(nest, vectors, isa)? else {
        return Ok("; none: the kernel is wide 0\n".into());
    };
    let legend = |(place, f): (UserExternalNameRef, HostFunction)| {
        format!("; {} is {}\n", function.params.user_named_funcs()[place], f.symbol())
    };
    let wide_functions = wide_calls(&function)
        .map(|(place, WideName(number))| format!("; {} is wide {number}\n", function.params.user_named_funcs()[place]));
    let legend: String = host_calls(&function).map(legend).chain(wide_functions).collect();
    Ok(legend + &function.to_string())
}

/// The assembly of a legal nest with the code `of`: disassembled on x86-64, else as Cranelift prints it.
///
/// # Errors
/// As [`compile`](crate::link::compile); [`Error::Internal`] also if the nest gives other code than that.
pub fn assembly(of: &Code, nest: &Nest, vectors: Vectors, isa: &OwnedTargetIsa) -> Result<String, Error> {
    let Generated { function, wide_functions, loops, .. } = generate(nest, vectors, isa)?;
    let is_x86 = isa.triple().architecture == Architecture::X86_64;
    let refused = |message: String| Error::Internal { stage: "clif", message };
    let compiled = |function| -> Result<Context, Error> {
        let mut context = Context::for_function(function);
        context.set_disasm(!is_x86);
        context.compile(&**isa, &mut Default::default()).map_err(|e| refused(format!("{:?}", e.inner)))?;
        Ok(context)
    };
    let context = function.map(compiled).transpose()?;
    let cranelift = context.as_ref().map(|context| (&context.func, context.compiled_code().expect("compiled above")));
    let function_bytes = cranelift.map_or(&[][..], |(_, code)| code.code_buffer());
    let wide_bytes = wide_functions.iter().map(|wide| &*wide.bytes);
    if std::iter::once(function_bytes).chain(wide_bytes).collect::<Vec<_>>().concat() != of.bytes() {
        return Err(Error::Internal { stage: "asm", message: "other code than that of the kernel".into() });
    }
    let mut parts = vec![];
    if let Some((function, code)) = cranelift {
        if !is_x86 {
            return Ok(code.vcode.clone().unwrap_or_default());
        }
        parts.push(format!("function:\n{}", function_text(function, code, &loops)));
    }
    for (number, wide_function) in wide_functions.iter().enumerate() {
        let loops: Vec<&str> = wide_function.loops.iter().map(String::as_str).collect();
        let (bytes, code_bytes, marks) = (&wide_function.bytes, wide_function.code_bytes, &wide_function.marks);
        let part = MarkedCode { bytes, code_bytes, loops: &loops, marks, addresses: &[] };
        parts.push(format!("wide {number}:\n{}", disassembly(&part)));
    }
    Ok(parts.join("\n"))
}

/// The disassembly of the code that Cranelift made of a function.
fn function_text(function: &Function, code: &CompiledCode, loops: &[LoopName]) -> String {
    let around: Vec<Option<u32>> = loops.iter().map(|l| l.around).collect();
    let pieces = code.buffer.get_srclocs_sorted().iter().map(|piece| (piece.end as usize, loop_at(piece.loc)));
    let code_bytes = pieces.clone().map(|(end, _)| end).max().unwrap_or(code.code_buffer().len());
    let marks = marks(pieces, &around);
    let loops: Vec<&str> = loops.iter().map(|l| l.name.as_str()).collect();
    let relocations = code.buffer.relocs().iter();
    let addresses: Vec<(usize, String)> =
        relocations.map(|r| (r.offset as usize, target_name(function, &r.target))).collect();
    let bytes = code.code_buffer();
    disassembly(&MarkedCode { bytes, code_bytes, loops: &loops, marks: &marks, addresses: &addresses })
}

/// The name of the function or data that an address refers to.
fn target_name(function: &Function, target: &FinalizedRelocTarget) -> String {
    match target {
        FinalizedRelocTarget::ExternalName(ExternalName::LibCall(call)) => default_libcall_names()(*call),
        FinalizedRelocTarget::ExternalName(ExternalName::User(place)) => {
            let name = &function.params.user_named_funcs()[*place];
            let wide_function = WideName::of(name).map(|WideName(number)| format!("wide {number}"));
            wide_function
                .or_else(|| HostFunction::of(name).map(HostFunction::symbol))
                .unwrap_or_else(|| name.to_string())
        }
        other => other.display(Some(&function.params)),
    }
}
