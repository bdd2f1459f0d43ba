//! Calls of wide functions, and the part of the frame that they share with the function.

use super::{Generator, Walk};
use crate::codegen::Refused;
use crate::codegen::storage::SCRATCH_ALIGN;
use crate::codegen::x86;
use cranefold_ir::{Nest, Stmt};
use cranelift_codegen::ir::{
    AbiParam, ExtFuncData, ExternalName, Function, InstBuilder, MemFlagsData, Signature, StackSlot, StackSlotData,
    StackSlotKind, UserExternalName, Value, types,
};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::FunctionBuilder;

/// The name of a wide function, by its number, until the loader gives it another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WideName(pub u32);

impl WideName {
    const NAMESPACE: u32 = 2;

    /// The wide function that a name stands for, if it is one's name.
    pub fn of(name: &UserExternalName) -> Option<WideName> {
        (name.namespace == WideName::NAMESPACE).then_some(WideName(name.index))
    }

    /// The signature of a wide function: its arguments are the array of pointers and the shared part of the frame.
    pub fn signature() -> Signature {
        let mut signature = Signature::new(CallConv::SystemV);
        signature.params.extend([AbiParam::new(types::I64); 2]);
        signature
    }
}

/// The shared part of the frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedFrame {
    slot: StackSlot,
    /// Its address, a multiple of [`SCRATCH_ALIGN`].
    pub base: Value,
    /// The array of pointers.
    buffers: Value,
}

impl SharedFrame {
    /// The shared part of the frame of a nest with wide functions; `None` without any. The builder is at the start of
    /// the function, whose argument is `buffers`.
    pub(super) fn of(builder: &mut FunctionBuilder, nest: &Nest, buffers: Value) -> Option<SharedFrame> {
        let mut has_wide = false;
        nest.visit(&mut |s| has_wide |= matches!(s, Stmt::Wide { .. }));
        if !has_wide {
            return None;
        }
        let slot = builder.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, 0, 4));
        let address = builder.ins().stack_addr(types::I64, slot, 0);
        let last = builder.ins().iadd_imm_s(address, SCRATCH_ALIGN as i64 - 1);
        let base = builder.ins().band_imm_s(last, -(SCRATCH_ALIGN as i64));
        Some(SharedFrame { slot, base, buffers })
    }

    /// Gives the shared part of the frame `bytes` bytes.
    pub(super) fn resize(self, function: &mut Function, bytes: u64) -> Result<(), String> {
        let size = u32::try_from(bytes + SCRATCH_ALIGN).map_err(|_| format!("a frame of {bytes} bytes"))?;
        function.sized_stack_slots[self.slot].size = size;
        Ok(())
    }
}

impl<'a> Generator<'a> {
    /// Stores the variables that the wide function takes, and calls it.
    pub(super) fn wide(&mut self, walk: &Walk<'a>, body: &[Stmt]) -> Result<(), Refused> {
        let around = x86::Around { nest: walk.nest, storage: walk.storage, vectors: self.vectors };
        let wide_function = x86::wide_function(&around, body)?;
        let number = self.wide_functions.len() as u32;
        self.wide_functions.push(wide_function);
        let shared = self.shared.expect("a nest with wide functions");
        let flags = MemFlagsData::trusted();
        let taken = walk.storage.frame.taken(body);
        for (var, at) in taken.counters {
            let value = self.value_of(walk.counters[&var]);
            self.builder.ins().store(flags, value, shared.base, at as i32);
        }
        for (var, _, at) in taken.values {
            let value = self.scalar(walk.values[&var])?.value;
            self.builder.ins().store(flags, value, shared.base, at as i32);
        }
        let signature = self.builder.import_signature(WideName::signature());
        let name = UserExternalName::new(WideName::NAMESPACE, number);
        let name = self.builder.func.declare_imported_user_function(name);
        // Other memory may lie between the functions of a module.
        let data = ExtFuncData { name: ExternalName::user(name), signature, colocated: false, patchable: false };
        let function = self.builder.import_function(data);
        self.builder.ins().call(function, &[shared.buffers, shared.base]);
        Ok(())
    }
}
