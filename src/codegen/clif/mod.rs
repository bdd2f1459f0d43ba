//! Makes a Cranelift function of a legal nest. Besides `link`, `aot`, `inspect` and `target`, only this module names
//! Cranelift.
//!
//! The function takes one argument: a pointer to an array of pointers. These go to the first element of each buffer of
//! the nest, in order, and then to scratch memory, which is not read if none is needed. It returns nothing.
//!
//! - Instructions are those that the [walk](crate::codegen::walk) of the nest asks for.
//! - A loop tests at its top, so that accumulators carried around it are used once in its body and
//!   loads fold into the operations on them.
//! - Statements in `wide` are a call of a wide function, which the generator of wide vectors makes (see [`wide`]).
//! - A selection is a call of a host function (see [`host`]).
//! - A vector with fewer lanes than fill 128 bits uses the low lanes; the others may hold anything.

mod cells;
mod host;
mod lanes;
mod loops;
mod memory;
mod ops;
mod places;
mod shuffles;
mod values;
mod wide;

use crate::codegen::Refused;
use crate::codegen::address::Base;
use crate::codegen::emit::Handles;
use crate::codegen::storage::Storage;
use crate::codegen::x86;
use crate::vectors::Vectors;
use cranefold_ir::{BufferRole, DType, Nest, Over, Scalar, Stmt};
use cranelift_codegen::ir::{
    AbiParam, Constant, Endianness, FuncRef, Function, InstBuilder, Signature, StackSlot, Type, UserFuncName, Value,
    types,
};
use cranelift_codegen::isa::{CallConv, TargetFrontendConfig, TargetIsa};
use cranelift_codegen::settings;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
pub use host::{HostFunction, HostName};
pub use places::{LoopName, forget, loop_at};
use rustc_hash::FxHashMap;
pub use wide::WideName;

/// The walk of a function.
type Walk<'a> = crate::codegen::walk::Walk<'a, Generator<'a>>;

/// The code of a nest: a Cranelift function, and the memory and the functions that it needs.
pub struct Generated {
    /// `None` if the nest is one wide function, which then is all of its code.
    pub function: Option<Function>,
    /// Bytes of scratch memory, aligned to [`SCRATCH_ALIGN`](crate::codegen::storage::SCRATCH_ALIGN).
    pub scratch_bytes: u64,
    /// The wide functions that it calls, by their number.
    pub wide_functions: Vec<x86::WideFunction>,
    /// The loops of the function, by their number; see [`loop_at`].
    pub loops: Vec<LoopName>,
}

/// The traits of a target that the function depends on.
#[derive(Clone, Copy)]
pub struct Traits {
    config: TargetFrontendConfig,
    /// The order of the bytes of an element in memory.
    order: Endianness,
    /// True for x86 without AVX.
    without_avx: bool,
}

impl Traits {
    /// The traits of an instruction set.
    pub fn of(isa: &dyn TargetIsa) -> Traits {
        // Only x86 has a feature of that name.
        let is_lacking = |flag: settings::Value| flag.name == "has_avx" && flag.as_bool() == Some(false);
        Traits {
            config: isa.frontend_config(),
            order: isa.endianness(),
            without_avx: isa.isa_flags().into_iter().any(is_lacking),
        }
    }
}

/// The code of a legal nest for a target; its wide functions are made by the plan.
///
/// # Errors
/// An error if the nest holds something that `legalize` should have replaced.
pub fn function(
    nest: &Nest,
    vectors: Vectors,
    target: Traits,
    context: &mut FunctionBuilderContext,
) -> Result<Generated, Refused> {
    let Traits { config, .. } = target;
    let storage = Storage::of(nest, vectors).map_err(|e| Refused(e.to_string()))?;
    if config.default_call_conv == CallConv::SystemV
        && let Some(whole) = x86::whole_nest(&x86::Around { nest, storage: &storage, vectors })
    {
        let (scratch_bytes, wide_functions) = (storage.scratch.bytes, vec![whole?]);
        return Ok(Generated { function: None, scratch_bytes, wide_functions, loops: vec![] });
    }
    let mut signature = Signature::new(config.default_call_conv);
    signature.params.push(AbiParam::new(types::I64));
    let mut function = Function::with_name_signature(UserFuncName::user(0, 0), signature);
    let mut builder = FunctionBuilder::new(&mut function, context);
    let entry = builder.create_block();
    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    builder.seal_block(entry);
    let buffers = builder.block_params(entry)[0];
    let mut generator = Generator {
        target,
        builder,
        vectors,
        bases: FxHashMap::default(),
        shared: None,
        wide_functions: vec![],
        loops: vec![],
        results: None,
        host: FxHashMap::default(),
        splats: vec![],
        constants: FxHashMap::default(),
        addends: values::Addends::default(),
        fixed_inputs: !writes_slices(nest) && !may_share(nest),
    };
    generator.leave_place(None);
    generator.find_bases(nest, &storage, buffers);
    Walk::new(nest, &storage, &nest.body).body(&mut generator, &nest.body)?;
    generator.builder.ins().return_(&[]);
    let addends = generator.addends;
    let (shared, wide_functions, loops) = (generator.shared, generator.wide_functions, generator.loops);
    generator.builder.finalize(config);
    addends.fill(&mut function);
    if let Some(shared) = shared {
        let own = wide_functions.iter().map(|t: &x86::WideFunction| t.frame_bytes).max().unwrap_or(0);
        shared.resize(&mut function, storage.frame.bytes + own).map_err(Refused)?;
    }
    Ok(Generated { function: Some(function), scratch_bytes: storage.scratch.bytes, wide_functions, loops })
}

/// Returns true if an output may be the memory of an input by its type and length.
fn may_share(nest: &Nest) -> bool {
    let (inputs, outputs): (Vec<_>, Vec<_>) = nest.buffers.iter().partition(|b| b.role == BufferRole::In);
    outputs.iter().any(|o| inputs.iter().any(|i| (i.dtype, i.len) == (o.dtype, o.len)))
}

/// Returns true if a store stands in a loop over positions.
fn writes_slices(nest: &Nest) -> bool {
    let mut found = false;
    nest.visit(&mut |s| {
        if let Stmt::For(l) = s
            && l.var.over == Over::Position
        {
            l.body.iter().for_each(|s| s.visit(&mut |s| found |= matches!(s, Stmt::Store { .. })));
        }
    });
    found
}

/// A value: a scalar if it has one lane, else a vector.
#[derive(Clone, Copy, Debug)]
struct Val {
    value: Value,
    dtype: DType,
    lanes: u64,
}

/// A value, or a constant that has not been materialised, since it fits both scalars and vectors.
#[derive(Clone, Copy, Debug)]
enum ClifValue {
    Const(Scalar),
    Val(Val),
}

/// A number of 64 bits.
#[derive(Clone, Copy, Debug)]
enum Number {
    Fixed(Value),
    /// A variable that changes as loops run.
    Moving(Variable),
}

struct Generator<'a> {
    target: Traits,
    builder: FunctionBuilder<'a>,
    vectors: Vectors,
    /// The starts of buffers, and of accumulators in memory.
    bases: FxHashMap<Base, Value>,
    /// The slot that the function shares with its wide functions, if there are any.
    shared: Option<wide::SharedFrame>,
    wide_functions: Vec<x86::WideFunction>,
    loops: Vec<LoopName>,
    /// The memory for results of host functions, once one is called.
    results: Option<StackSlot>,
    /// The host functions that are called.
    host: FxHashMap<HostFunction, FuncRef>,
    /// Scalars with their splats, each made once. A scalar bound outside lanes gets its splat at once, so that no inner
    /// loop makes it again. Splats made in a loop's body end with it, even if the scalar does not.
    splats: Vec<(Value, Value)>,
    /// Vector constants since a loop began or ended, each made once, so that Cranelift recognises a comparison and a
    /// selection by it as a minimum or maximum.
    constants: FxHashMap<(Constant, DType), Value>,
    /// Vector constants in the frame; see [`Generator::addend`].
    addends: values::Addends,
    /// True if inputs keep their contents: no output is written at each position of a slice.
    fixed_inputs: bool,
}

impl Handles for Generator<'_> {
    type Value = ClifValue;
    type Number = Number;
    type Register = Variable;
}

/// The type that holds one element in a register. Floats of 16 bits are held as their bits.
fn scalar_type(dtype: DType) -> Type {
    match dtype {
        DType::F32 => types::F32,
        DType::F64 => types::F64,
        _ => Type::int(dtype.bits() as u16).expect("an integer type"),
    }
}

/// The 128-bit type that holds lanes of `dtype`.
fn vector_type(dtype: DType) -> Type {
    scalar_type(dtype).by(16 / dtype.bytes() as u32).expect("a vector type")
}
