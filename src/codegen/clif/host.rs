//! Calls of functions of the host, by name.
//!
//! | function | arguments | result |
//! | --- | --- | --- |
//! | `cranefold_nth_<type>` | elements, their number, three positions, place of three results | none |
//! | `cranefold_mode_<type>` | elements, their number, place of the element found | the number of its occurrences |
//!
//! Arguments are pointers and 64-bit integers, in the target's C convention. The functions reorder the elements, and
//! touch no other memory except the results. If fewer than three positions are asked for, the last one is repeated.

use super::{ClifValue, Generator, Val, Walk, scalar_type};
use crate::codegen::address::Base;
use cranefold_ir::{AccId, DType, Selection, Var};
use cranelift_codegen::ir::{
    AbiParam, ExtFuncData, ExternalName, InstBuilder, MemFlagsData, Signature, StackSlotData, StackSlotKind,
    UserExternalName, Value, types,
};

/// The namespace of host functions in the names of a function's calls. Other namespaces are the linker's.
pub const NAMESPACE: u32 = 1;

/// A function of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HostFunction {
    pub name: HostName,
    /// The type of the elements.
    pub dtype: DType,
}

/// The work of a function of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HostName {
    Nth,
    Mode,
}

impl HostFunction {
    const NAMES: [HostName; 2] = [HostName::Nth, HostName::Mode];

    /// Every function, in the order of the indices in the names of calls.
    pub fn all() -> impl Iterator<Item = HostFunction> {
        let of = |name| DType::ALL.into_iter().map(move |dtype| HostFunction { name, dtype });
        Self::NAMES.into_iter().flat_map(of)
    }

    /// The host function that a call names, if it names one.
    pub fn of(name: &UserExternalName) -> Option<HostFunction> {
        Self::all().nth(name.index as usize).filter(|_| name.namespace == NAMESPACE)
    }

    /// The name by which the function is linked.
    pub fn symbol(self) -> String {
        let name = match self.name {
            HostName::Nth => "nth",
            HostName::Mode => "mode",
        };
        format!("cranefold_{name}_{}", self.dtype)
    }

    /// The name in a call.
    fn external(self) -> UserExternalName {
        let index = Self::all().position(|f| f == self).expect("one of all");
        UserExternalName::new(NAMESPACE, index as u32)
    }

    /// Parameters and result, in the target's C convention.
    pub fn signature(self, config: cranelift_codegen::isa::TargetFrontendConfig) -> Signature {
        let mut signature = Signature::new(config.default_call_conv);
        let (params, returns) = match self.name {
            HostName::Nth => (6, 0),
            HostName::Mode => (3, 1),
        };
        signature.params = vec![AbiParam::new(types::I64); params];
        signature.returns = vec![AbiParam::new(types::I64); returns];
        signature
    }
}

impl<'a> Generator<'a> {
    /// A selection: binds the results of a call.
    pub(super) fn select_from(
        &mut self,
        walk: &mut Walk<'a>,
        vars: &[Var],
        what: &Selection,
        (acc, len): (AccId, u64),
    ) {
        let dtype = walk.types[&acc];
        let name = match what {
            Selection::Nth(_) => HostName::Nth,
            Selection::Mode => HostName::Mode,
        };
        let results = self.results();
        let elements = self.bases[&Base::Acc(acc)];
        let mut args = vec![elements, self.builder.ins().iconst(types::I64, len as i64)];
        if let Selection::Nth(positions) = what {
            let last = *positions.last().expect("a position");
            for n in 0..Selection::MAX_POSITIONS {
                let position = positions.get(n).copied().unwrap_or(last);
                args.push(self.builder.ins().iconst(types::I64, position as i64));
            }
        }
        args.push(results);
        let counted = self.call_host(HostFunction { name, dtype }, &args);
        let flags = MemFlagsData::new().with_notrap();
        for (n, &var) in vars.iter().enumerate() {
            let val = match counted {
                Some(value) if n == 1 => Val { value, dtype: DType::I64, lanes: 1 },
                _ => {
                    let offset = (n as u64 * dtype.bytes()) as i32;
                    let value = self.builder.ins().load(scalar_type(dtype), flags, results, offset);
                    Val { value, dtype, lanes: 1 }
                }
            };
            walk.values.insert(var, ClifValue::Val(val));
        }
    }

    /// The address of the memory for results, one for the whole function.
    fn results(&mut self) -> Value {
        let slot = *self.results.get_or_insert_with(|| {
            let bytes = 8 * Selection::MAX_POSITIONS as u32;
            self.builder.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 3))
        });
        self.builder.ins().stack_addr(types::I64, slot, 0)
    }

    fn call_host(&mut self, function: HostFunction, args: &[Value]) -> Option<Value> {
        let (config, builder) = (self.target.config, &mut self.builder);
        let callee = *self.host.entry(function).or_insert_with(|| {
            let name = builder.func.declare_imported_user_function(function.external());
            let signature = builder.import_signature(function.signature(config));
            // A call with a short distance would not reach the host's function.
            let colocated = false;
            builder.import_function(ExtFuncData {
                name: ExternalName::user(name),
                signature,
                colocated,
                patchable: false,
            })
        });
        let call = self.builder.ins().call(callee, args);
        self.builder.inst_results(call).first().copied()
    }
}
