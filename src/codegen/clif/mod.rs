//! Legal nest -> Cranelift function. With `jit` and `target` the only place that knows Cranelift.
//!
//! The function takes one argument: a pointer to an array of pointers, one for each buffer of the
//! nest in its order, each to the buffer's first element, then one to scratch memory, which is not read
//! where none is needed. It returns nothing.
//!
//! - A loop tests at its top, so that accumulators carried around it are used once in its body and
//!   loads fold into the operations on them.
//! - Each pattern of indices that moves with a loop has a pointer that is bumped once an iteration;
//!   constant parts of indices are offsets in the instructions. Bytes exist only here.
//! - Accumulators with constant indices live in registers, others in the frame, and those too large for it
//!   in scratch memory (see [`storage`](crate::codegen::storage)).
//! - A tile is a call of a function that the generator of wide vectors makes (see [`tile`]).
//! - A selection is a call of a function of the host (see [`host`]).
//! - A vector of fewer lanes than fill 128 bits sits in the low lanes of one; the others hold anything.

mod cells;
mod columns;
mod host;
mod lanes;
mod memory;
mod ops;
mod places;
mod tile;

use crate::codegen::storage::{Cell, Frame, Scratch, cell_of, cells, set_before_read};
use crate::codegen::x86::{self, Plan};
use cranefold_ir::{
    AccId, DType, Def, Expr, Extent, Index, Loop, LoopKind, LoopVar, Nest, Op, Over, Scalar, Stmt, Var,
};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, Endianness, FuncRef, Function, InstBuilder, Signature, StackSlot, Type, UserFuncName, Value, types,
};
use cranelift_codegen::isa::{TargetFrontendConfig, TargetIsa};
use cranelift_codegen::settings;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
pub use host::{HostFunction, HostName};
use memory::{Base, Pointers};
pub use places::{LoopName, forget, loop_at};
use std::collections::{HashMap, HashSet};
pub use tile::TileName;

/// A nest holds something that should have been legalized: a bug of ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("code generation has no form for {0}")]
pub struct Unsupported(pub String);

/// A Cranelift function, and what its callers have to give it.
pub struct Generated {
    pub function: Function,
    /// Bytes of scratch memory, aligned to [`SCRATCH_ALIGN`](crate::codegen::storage::SCRATCH_ALIGN).
    pub scratch_bytes: u64,
    /// The tiles it calls, by their number.
    pub tiles: Vec<x86::Tile>,
    /// Its loops, by their number; see [`loop_at`].
    pub loops: Vec<LoopName>,
}

/// What the function depends on of a target.
#[derive(Clone, Copy)]
pub struct Traits {
    config: TargetFrontendConfig,
    /// The order of the bytes of an element in memory.
    order: Endianness,
    /// Whether it is x86 without AVX.
    without_avx: bool,
}

impl Traits {
    /// Those of an instruction set.
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

/// The function of a legal nest for a target, its tiles made by the plan.
///
/// # Errors
/// If the nest holds what `legalize` should have replaced.
pub fn function(
    nest: &Nest,
    plan: Plan,
    target: Traits,
    context: &mut FunctionBuilderContext,
) -> Result<Generated, Unsupported> {
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
    let cells = cells(nest);
    let scratch = Scratch::of(nest, |acc| !cells.contains_key(&acc)).map_err(|e| Unsupported(e.to_string()))?;
    let scratch_bytes = scratch.bytes;
    let frame = Frame::of(nest, &cells, &scratch);
    let addends = nest.defs.iter().any(fuses).then(|| lanes::Addends::new(&mut builder));
    let mut generator = Generator {
        nest,
        target,
        builder,
        plan,
        cells,
        scratch,
        frame,
        shared: None,
        tiles: vec![],
        loops: vec![],
        results: None,
        host: HashMap::new(),
        registers: HashMap::new(),
        types: HashMap::new(),
        fresh: HashMap::new(),
        rest: vec![],
        declared_here: vec![HashSet::new()],
        values: HashMap::new(),
        splats: vec![],
        addends,
        pointers: Pointers::default(),
        carries: HashMap::new(),
        lane: None,
        one_lane: false,
        constants: HashMap::new(),
        in_lane_loop: false,
        positions: HashMap::new(),
        matrices: vec![],
        steps: HashMap::new(),
        set_before_read: set_before_read(&nest.body),
        writes_slices: writes_slices(nest),
    };
    generator.end_loop(None);
    generator.bases(buffers);
    generator.outer_body(&nest.body)?;
    generator.builder.ins().return_(&[]);
    let addends = generator.addends;
    let (shared, tiles, loops) = (generator.shared, generator.tiles, generator.loops);
    let own = generator.frame.bytes;
    generator.builder.finalize(config);
    if let Some(shared) = shared {
        let bytes = own + tiles.iter().map(|t: &x86::Tile| t.frame_bytes).max().unwrap_or(0);
        shared.resize(&mut function, bytes).map_err(Unsupported)?;
    }
    if let Some(addends) = addends {
        addends.fill(&mut function);
    }
    Ok(Generated { function, scratch_bytes, tiles, loops })
}

/// Whether a store stands in a loop over positions.
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

/// Whether a definition has fused operations.
fn fuses(def: &Def) -> bool {
    let mut found = false;
    let mut see = |e: &Expr| found |= matches!(e, Expr::Op(Op::Fma, ..));
    def.lets.iter().chain(&def.results).for_each(|e| e.visit(&mut see));
    found
}

/// The most registers that a loop's constants and accumulators take before those constants that need
/// none stay in the frame: of 16, four are for the values of an element.
const MOST_CONSTANTS: usize = 12;

/// A value: of one lane it is scalar, else a vector.
#[derive(Clone, Copy, Debug)]
struct Val {
    value: Value,
    dtype: DType,
    lanes: u64,
}

/// A value, or a constant that has not been materialised, since it fits both scalars and vectors.
#[derive(Clone, Copy, Debug)]
enum Operand {
    Const(Scalar),
    Val(Val),
}

struct Generator<'a> {
    nest: &'a Nest,
    target: Traits,
    builder: FunctionBuilder<'a>,
    plan: Plan,
    cells: HashMap<AccId, Vec<Cell>>,
    scratch: Scratch,
    /// What tiles share with the function.
    frame: Frame,
    /// The slot of that, where there are tiles.
    shared: Option<tile::Shared>,
    tiles: Vec<x86::Tile>,
    loops: Vec<LoopName>,
    /// Where functions of the host write their results, once one is called.
    results: Option<StackSlot>,
    /// The functions of the host that are called.
    host: HashMap<HostFunction, FuncRef>,
    registers: HashMap<(AccId, Cell), Variable>,
    types: HashMap<AccId, DType>,
    /// Cells that hold what they started with.
    fresh: HashMap<(AccId, Cell), Scalar>,
    /// The statements after the current one in its body, and in those around it.
    rest: Vec<&'a [Stmt]>,
    /// The accumulators that the bodies around declare, but for bodies of lanes.
    declared_here: Vec<HashSet<AccId>>,
    /// Each bound value.
    values: HashMap<Var, Operand>,
    /// Scalars bound outside of lanes, each with its splat, which is made beside it so that no loop
    /// inside makes it again. Those of a loop's body end with it, even where the scalar does not.
    splats: Vec<(Value, Value)>,
    /// Vector constants in the frame; see [`Generator::addend`].
    addends: Option<lanes::Addends>,
    pointers: Pointers,
    carries: HashMap<LoopVar, Value>,
    lane: Option<(LoopVar, u64)>,
    /// Whether only the first lane is written.
    one_lane: bool,
    /// Vector constants made so far: before the innermost loop for all its bodies of lanes, else in
    /// the current body. Each is made once, so that a comparison and a selection by it are seen to be
    /// a minimum or maximum.
    constants: HashMap<Scalar, Value>,
    /// Whether those are the loop's.
    in_lane_loop: bool,
    /// Values of indices that are the same in all lanes, for the current body.
    positions: HashMap<(DType, Index), Value>,
    /// Loads of the current body that are columns of matrices.
    matrices: Vec<columns::Matrix>,
    /// Vectors of steps between lanes, made before the innermost loop, as the constants are.
    steps: HashMap<(DType, i64, i64), Value>,
    /// Accumulators that need no initial value.
    set_before_read: HashSet<AccId>,
    /// Whether outputs are written at each position of a slice.
    writes_slices: bool,
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

impl<'a> Generator<'a> {
    /// A body that is none of lanes.
    fn outer_body(&mut self, body: &'a [Stmt]) -> Result<(), Unsupported> {
        let matrices = self.matrices(body);
        let around = std::mem::replace(&mut self.matrices, matrices);
        let done = self.body(body);
        self.matrices = around;
        done
    }

    fn body(&mut self, body: &'a [Stmt]) -> Result<(), Unsupported> {
        for (n, stmt) in body.iter().enumerate() {
            self.rest.push(&body[n + 1..]);
            match stmt {
                Stmt::Carry { var, of } => self.carry(*var, of, &body[n + 1..])?,
                Stmt::Pick { var, value, most } => self.pick(*var, value, *most, &body[n + 1..])?,
                _ => self.stmt(stmt)?,
            }
            self.rest.pop();
        }
        Ok(())
    }

    fn stmt(&mut self, stmt: &'a Stmt) -> Result<(), Unsupported> {
        match stmt {
            Stmt::For(l) => match (l.kind, l.extent) {
                (LoopKind::Lanes, _) if matches!(l.body[..], [Stmt::For(_)]) => {
                    Err(Unsupported("lanes of two loops".into()))
                }
                (LoopKind::Lanes, Extent::Const(lanes)) => {
                    // One lane is a scalar, unless it is in a vector and would have to be taken out.
                    let one = lanes == 1;
                    self.lane = (!one || self.in_vectors(&l.body)).then_some((l.var, lanes.max(2)));
                    self.one_lane = one;
                    let done = self.body(&l.body);
                    self.lane = None;
                    self.one_lane = false;
                    if !self.in_lane_loop {
                        self.constants.clear();
                    }
                    done
                }
                _ => self.counted(l),
            },
            Stmt::Acc { acc, dtype, len, init } => {
                self.declared_here.last_mut().expect("the function's body").insert(*acc);
                self.declare(*acc, *dtype, *len, *init);
                Ok(())
            }
            Stmt::Let { var, value } => {
                let value = self.expr(value)?;
                if let (None, Operand::Val(v)) = (self.lane, value) {
                    let splat = self.builder.ins().splat(vector_type(v.dtype), v.value);
                    self.splats.push((v.value, splat));
                }
                self.bind(*var, value);
                Ok(())
            }
            Stmt::Call { vars, def, args } => {
                let results = self.call(self.nest.def(*def), args)?;
                vars.iter().zip(results).for_each(|(&var, value)| self.bind(var, value));
                Ok(())
            }
            Stmt::Set { acc, index, value } => {
                let value = self.expr(value)?;
                self.set(*acc, index, value)
            }
            Stmt::Store { buf, index, value } => {
                let value = self.expr(value)?;
                self.store(Base::Buf(*buf), self.nest.buffers[buf.0 as usize].dtype, index, value)
            }
            Stmt::Select { vars, what, acc, len } => {
                self.select_from(vars, what, *acc, *len);
                Ok(())
            }
            Stmt::Tile { body } => self.tile(body),
            Stmt::Carry { .. } | Stmt::Pick { .. } | Stmt::Merge { .. } | Stmt::Fold { .. } => {
                Err(Unsupported("a merge or fold that was not written out".into()))
            }
        }
    }

    /// Whether the body is about accumulators in vector registers alone.
    fn in_vectors(&self, body: &[Stmt]) -> bool {
        let in_vector = |acc: &AccId, index: &Index| {
            let cell = |cells: &Vec<Cell>| cell_of(cells, index.offset as u64).lanes > 1;
            self.cells.get(acc).is_some_and(cell)
        };
        let mut all = true;
        for stmt in body {
            if let Stmt::Set { acc, index, .. } = stmt {
                all &= in_vector(acc, index);
            }
            stmt.exprs().iter().for_each(|e| {
                e.visit(&mut |e| {
                    if let Expr::Read(acc, _, index) = e {
                        all &= in_vector(acc, index);
                    }
                })
            });
        }
        all
    }

    fn bind(&mut self, var: Var, value: Operand) {
        self.values.insert(var, value);
    }

    /// A loop that tests at its top.
    fn counted(&mut self, l: &'a Loop) -> Result<(), Unsupported> {
        let header = self.builder.create_block();
        let (inside, exit) = (self.builder.create_block(), self.builder.create_block());
        let bound = match l.extent {
            Extent::Const(_) => None,
            Extent::Carry(var) => Some(self.carries[&var]),
        };
        let counter = self.builder.declare_var(types::I64);
        let zero = self.builder.ins().iconst(types::I64, 0);
        self.builder.def_var(counter, zero);
        self.count(l.var, counter);
        let bumps = self.enter(l.var, &l.body, None);
        self.loop_constants(&l.body);
        self.builder.ins().jump(header, &[]);
        let around = self.begin_loop(l.head());
        self.builder.switch_to_block(header);
        let i = self.builder.use_var(counter);
        let more = match (bound, l.extent) {
            (Some(bound), _) => self.builder.ins().icmp(IntCC::UnsignedLessThan, i, bound),
            (None, Extent::Const(n)) => self.builder.ins().icmp_imm_s(IntCC::UnsignedLessThan, i, n as i64),
            _ => unreachable!("a carry has a bound"),
        };
        self.builder.ins().brif(more, inside, &[], exit, &[]);
        self.builder.switch_to_block(inside);
        self.builder.seal_block(inside);
        self.positions.clear();
        let splats = self.splats.len();
        self.fresh.clear();
        self.declared_here.push(HashSet::new());
        self.outer_body(&l.body)?;
        self.declared_here.pop();
        self.fresh.clear();
        self.splats.truncate(splats);
        for (pointer, bytes) in bumps {
            let at = self.builder.use_var(pointer);
            let next = self.builder.ins().iadd_imm_s(at, bytes);
            self.builder.def_var(pointer, next);
        }
        let i = self.builder.use_var(counter);
        let next = self.builder.ins().iadd_imm_s(i, 1);
        self.builder.def_var(counter, next);
        self.builder.ins().jump(header, &[]);
        self.builder.seal_block(header);
        self.end_loop(around);
        self.builder.switch_to_block(exit);
        self.builder.seal_block(exit);
        self.leave(l.var);
        self.positions.clear();
        self.constants.clear();
        self.steps.clear();
        self.in_lane_loop = false;
        Ok(())
    }

    /// Makes the vector constants of a loop that holds bodies of lanes and no other loop, but for those
    /// that [`Generator::addend`] reads. Those that turn out not to be used as vectors leave no code.
    fn loop_constants(&mut self, body: &[Stmt]) {
        self.constants.clear();
        self.steps.clear();
        let loops = body.iter().filter_map(|s| if let Stmt::For(l) = s { Some(l) } else { None });
        let (lanes, others): (Vec<&Loop>, Vec<&Loop>) = loops.partition(|l| l.kind == LoopKind::Lanes);
        self.in_lane_loop = !lanes.is_empty() && others.is_empty();
        if !self.in_lane_loop {
            return;
        }
        // Each with whether it is used but as an addend of fused operations.
        let mut scalars: Vec<(Scalar, bool)> = vec![];
        let mut take = |e: &Expr, other_use: bool| {
            if let Expr::Const(s) = e {
                match scalars.iter_mut().find(|(known, _)| known == s) {
                    Some((_, used)) => *used |= other_use,
                    None => scalars.push((*s, other_use)),
                }
            }
        };
        let mut operands = |e: &Expr| {
            let fused = matches!(e, Expr::Op(Op::Fma, ..));
            e.args().iter().enumerate().for_each(|(n, a)| take(a, !fused || n < 2));
        };
        let mut defs: Vec<&Def> = vec![];
        let mut registers = 0;
        for stmt in lanes.iter().flat_map(|l| &l.body) {
            match stmt {
                Stmt::Call { def, .. } => defs.push(self.nest.def(*def)),
                Stmt::Set { acc, .. } if self.cells.contains_key(acc) => registers += 1,
                _ => {}
            }
            stmt.exprs().iter().for_each(|e| {
                e.visit(&mut |e| {
                    operands(e);
                    if let Expr::Call(def, ..) = e {
                        defs.push(self.nest.def(*def));
                    }
                })
            });
        }
        let mut steps: Vec<(DType, i64, i64)> = vec![];
        for l in &lanes {
            l.body.iter().flat_map(|s| s.exprs()).for_each(|e| {
                e.visit(&mut |e| {
                    if let Expr::At(dtype, index) = e
                        && index.coefficient(l.var) != 0
                    {
                        steps.push((*dtype, index.offset, index.coefficient(l.var)));
                    }
                })
            });
        }
        if registers + steps.len() <= MOST_CONSTANTS {
            for (dtype, offset, c) in steps {
                let value = self.steps_of(dtype, offset, c);
                self.steps.insert((dtype, offset, c), value);
            }
        }
        defs.dedup_by_key(|d| &d.name);
        defs.iter().flat_map(|d| d.lets.iter().chain(&d.results)).for_each(|e| e.visit(&mut operands));
        let fit = registers + scalars.len() <= MOST_CONSTANTS;
        for (s, other_use) in scalars {
            if fit || other_use {
                let value = self.splat_constant(s);
                self.constants.insert(s, value);
            }
        }
    }

    /// Binds a carry variable: trailing ones of the index.
    fn carry(&mut self, var: LoopVar, of: &Index, rest: &'a [Stmt]) -> Result<(), Unsupported> {
        let number = self.index_value(of);
        let next = self.builder.ins().iadd_imm_s(number, 1);
        let ones = self.builder.ins().ctz(next);
        self.carries.insert(var, ones);
        self.enter(var, rest, Some(ones));
        Ok(())
    }

    /// Binds a variable to a value, at most so great.
    fn pick(&mut self, var: LoopVar, value: &Expr, most: u64, rest: &'a [Stmt]) -> Result<(), Unsupported> {
        let value = self.expr(value)?;
        let value = self.scalar(value)?;
        let number = match value.dtype.bytes() {
            8 => value.value,
            _ => self.builder.ins().uextend(types::I64, value.value),
        };
        let most = self.builder.ins().iconst(types::I64, most as i64);
        let is_less = self.builder.ins().icmp(IntCC::UnsignedLessThan, number, most);
        let number = self.builder.ins().select(is_less, number, most);
        self.carries.insert(var, number);
        self.enter(var, rest, Some(number));
        Ok(())
    }

    fn expr(&mut self, e: &Expr) -> Result<Operand, Unsupported> {
        match e {
            Expr::Const(s) => Ok(Operand::Const(*s)),
            Expr::Var(var, _) => Ok(self.values[var]),
            Expr::Load(buf, dtype, index) => Ok(Operand::Val(self.load(Base::Buf(*buf), *dtype, index))),
            Expr::Read(acc, dtype, index) => Ok(self.read(*acc, *dtype, index)),
            Expr::At(dtype, index) => Ok(self.at(*dtype, index)),
            Expr::Op(op, dtype, args) => {
                let args = args.iter().map(|a| self.expr(a)).collect::<Result<Vec<_>, _>>()?;
                self.op(*op, *dtype, &args)
            }
            Expr::Call(def, _, args) => Ok(self.call(self.nest.def(*def), args)?.remove(0)),
        }
    }

    /// Writes out the body of a definition.
    fn call(&mut self, def: &Def, args: &[Expr]) -> Result<Vec<Operand>, Unsupported> {
        let mut values = args.iter().map(|a| self.expr(a)).collect::<Result<Vec<_>, _>>()?;
        for value in &def.lets {
            let value = self.in_def(value, &values)?;
            values.push(value);
        }
        def.results.iter().map(|r| self.in_def(r, &values)).collect()
    }

    fn in_def(&mut self, e: &Expr, values: &[Operand]) -> Result<Operand, Unsupported> {
        match e {
            Expr::Const(s) => Ok(Operand::Const(*s)),
            Expr::Var(Var(v), _) => Ok(values[*v as usize]),
            Expr::Op(op, dtype, args) => {
                let args = args.iter().map(|a| self.in_def(a, values)).collect::<Result<Vec<_>, _>>()?;
                self.op(*op, *dtype, &args)
            }
            _ => Err(Unsupported("a definition that reads memory".into())),
        }
    }
}
