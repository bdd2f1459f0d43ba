//! Legal nest -> Cranelift function. With `link`, `aot`, `inspect` and `target` the only place that knows Cranelift.
//!
//! The function takes one argument: a pointer to an array of pointers, one for each buffer of the
//! nest in its order, each to the buffer's first element, then one to scratch memory, which is not read
//! where none is needed. It returns nothing.
//!
//! - Instructions are those that the [walk](crate::codegen::walk) of the nest asks for.
//! - A loop tests at its top, so that accumulators carried around it are used once in its body and
//!   loads fold into the operations on them.
//! - Statements in `wide` are a call of a wide function, which the generator of wide vectors makes (see [`wide`]).
//! - A selection is a call of a function of the host (see [`host`]).
//! - A vector of fewer lanes than fill 128 bits sits in the low lanes of one; the others hold anything.

mod cells;
mod columns;
mod host;
mod lanes;
mod loops;
mod memory;
mod ops;
mod places;
mod values;
mod wide;

use crate::codegen::Refused;
use crate::codegen::address::Base;
use crate::codegen::emit::Handles;
use crate::codegen::storage::Storage;
use crate::codegen::x86;
use crate::vectors::Vectors;
use cranefold_ir::{DType, Nest, Over, Scalar, Stmt};
use cranelift_codegen::ir::{
    AbiParam, Constant, Endianness, FuncRef, Function, InstBuilder, Signature, StackSlot, Type, UserFuncName, Value,
    types,
};
use cranelift_codegen::isa::{TargetFrontendConfig, TargetIsa};
use cranelift_codegen::settings;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
pub use host::{HostFunction, HostName};
pub use places::{LoopName, forget, loop_at};
use std::collections::HashMap;
pub use wide::WideName;

/// The walk of a function.
type Walk<'a> = crate::codegen::walk::Walk<'a, Generator<'a>>;

/// A Cranelift function, and what its callers have to give it.
pub struct Generated {
    pub function: Function,
    /// Bytes of scratch memory, aligned to [`SCRATCH_ALIGN`](crate::codegen::storage::SCRATCH_ALIGN).
    pub scratch_bytes: u64,
    /// The wide functions it calls, by their number.
    pub wide_functions: Vec<x86::WideFunction>,
    /// Its loops, by their number; see [`loop_at`].
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

/// The function of a legal nest for a target, its wide functions made of these vectors.
///
/// # Errors
/// If the nest holds what `legalize` should have replaced.
pub fn function(
    nest: &Nest,
    vectors: Vectors,
    target: Traits,
    context: &mut FunctionBuilderContext,
) -> Result<Generated, Refused> {
    let Traits { config, .. } = target;
    let mut signature = Signature::new(config.default_call_conv);
    signature.params.push(AbiParam::new(types::I64));
    let mut function = Function::with_name_signature(UserFuncName::user(0, 0), signature);
    let mut builder = FunctionBuilder::new(&mut function, context);
    let entry = builder.create_block();
    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    builder.seal_block(entry);
    let buffers = builder.block_params(entry)[0];
    let storage = Storage::of(nest).map_err(|e| Refused(e.to_string()))?;
    let mut generator = Generator {
        target,
        builder,
        vectors,
        bases: HashMap::new(),
        shared: None,
        wide_functions: vec![],
        loops: vec![],
        results: None,
        host: HashMap::new(),
        splats: vec![],
        constants: HashMap::new(),
        addends: values::Addends::default(),
        matrices: vec![],
        fixed_inputs: !writes_slices(nest),
    };
    generator.leave_place(None);
    generator.find_bases(nest, &storage, buffers);
    Walk::new(nest, &storage, &nest.body).outer_body(&mut generator, &nest.body)?;
    generator.builder.ins().return_(&[]);
    let addends = generator.addends;
    let (shared, wide_functions, loops) = (generator.shared, generator.wide_functions, generator.loops);
    generator.builder.finalize(config);
    addends.fill(&mut function);
    if let Some(shared) = shared {
        let own = wide_functions.iter().map(|t: &x86::WideFunction| t.frame_bytes).max().unwrap_or(0);
        shared.resize(&mut function, storage.frame.bytes + own).map_err(Refused)?;
    }
    Ok(Generated { function, scratch_bytes: storage.scratch.bytes, wide_functions, loops })
}

/// Returns whether a store stands in a loop over positions.
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

/// A value: of one lane it is scalar, else a vector.
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
    /// It changes as loops run.
    Moving(Variable),
}

struct Generator<'a> {
    target: Traits,
    builder: FunctionBuilder<'a>,
    vectors: Vectors,
    /// The starts of buffers, and of accumulators in memory.
    bases: HashMap<Base, Value>,
    /// The slot of what wide functions share with the function, where there are wide functions.
    shared: Option<wide::SharedFrame>,
    wide_functions: Vec<x86::WideFunction>,
    loops: Vec<LoopName>,
    /// The memory in which functions of the host write their results, once one is called.
    results: Option<StackSlot>,
    /// The functions of the host that are called.
    host: HashMap<HostFunction, FuncRef>,
    /// Scalars, each with its splat, which is made once. One bound outside of lanes has it at once, so that no loop inside
    /// makes it again. Splats of a loop's body end with it, even where the scalar does not.
    splats: Vec<(Value, Value)>,
    /// Vector constants since a loop began or ended. Each is made once, so that a comparison and a selection by it are
    /// seen to be a minimum or maximum.
    constants: HashMap<(Constant, DType), Value>,
    /// Vector constants in the frame; see [`Generator::addend`].
    addends: values::Addends,
    /// Loads of the current body that are columns of matrices.
    matrices: Vec<columns::Matrix>,
    /// True where inputs keep their contents: no output is written at each position of a slice.
    fixed_inputs: bool,
}

impl Handles for Generator<'_> {
    type Value = ClifValue;
    type Number = Number;
    type Register = Variable;
}

/// The type that holds one element in a register. Halves are held as their bits.
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
