//! The byte shuffle that x86 lacks without SSSE3, as a function of an object; Cranelift calls it by name.

use super::object::only_block;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, Function, InstBuilder, MemFlagsData, Signature, StackSlotData, StackSlotKind, UserFuncName, types,
};
use cranelift_codegen::isa::{CallConv, TargetFrontendConfig};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

/// `(a, mask)` -> bytes of `a` at the places that `mask` names, 0 where its highest bit is set.
///
/// The function copies the bytes one by one, in memory: a shuffle would be the instruction that the target lacks.
pub fn function(config: TargetFrontendConfig) -> Function {
    let mut signature = Signature::new(CallConv::SystemV);
    signature.params = vec![AbiParam::new(types::I8X16); 2];
    signature.returns = vec![AbiParam::new(types::I8X16)];
    let mut function = Function::with_name_signature(UserFuncName::user(0, 2), signature);
    let mut context = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut function, &mut context);
    let block = only_block(&mut builder);
    let (a, mask) = (builder.block_params(block)[0], builder.block_params(block)[1]);
    let slot = builder.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, 48, 4));
    let base = builder.ins().stack_addr(types::I64, slot, 0);
    let flags = MemFlagsData::new().with_notrap();
    builder.ins().store(flags, a, base, 0);
    builder.ins().store(flags, mask, base, 16);
    for n in 0..16 {
        let at = builder.ins().uload8(types::I64, flags, base, 16 + n);
        let place = builder.ins().band_imm_s(at, 15);
        let address = builder.ins().iadd(base, place);
        let byte = builder.ins().load(types::I8, flags, address, 0);
        let zero = builder.ins().iconst(types::I8, 0);
        let is_set = builder.ins().icmp_imm_s(IntCC::UnsignedGreaterThan, at, 127);
        let byte = builder.ins().select(is_set, zero, byte);
        builder.ins().store(flags, byte, base, 32 + n);
    }
    let result = builder.ins().load(types::I8X16, flags, base, 32);
    builder.ins().return_(&[result]);
    builder.finalize(config);
    function
}
