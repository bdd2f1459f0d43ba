//! A tile of a legal nest -> machine code of x86-64, with vectors of 256 or 512 bits. With
//! `disassembly` the only place that knows `iced_x86`.
//!
//! A tile is a function of two arguments, by the convention of System V: the array of pointers that the
//! kernel got (see [`jit`](crate::link)), and the kernel's frame, in which lie accumulators, and the counters
//! and values that the tile takes from around it (see [`Frame`]). It keeps what that convention says, and
//! leaves the upper halves of vector registers clear.
//!
//! - Selection (this file, [`ops`], [`casts`], [`bytes`], [`lanes`], [`cells`], [`halves`], [`positions`], [`strided`],
//!   [`turned`], [`aligned`], [`address`]) writes instructions over virtual registers. All vectors have the tier's full
//!   width: lanes that a value lacks hold anything. Outside of lanes a value is the same in all of them, so that it
//!   serves scalars and vectors alike.
//! - [`machine`] makes bytes of them.

mod address;
mod aligned;
mod bytes;
mod casts;
mod cells;
mod halves;
mod lanes;
mod machine;
mod ops;
mod positions;
mod strided;
mod turned;

use crate::codegen::marks::Mark;
use crate::codegen::storage::{Cell, Frame, Scratch, Vector, set_before_read};
use crate::schedule::Decided;
use crate::vectors::Vectors;
use address::{Base, Pointers};
use cranefold_ir::{AccId, DType, Def, Expr, Extent, Index, Loop, LoopVar, Nest, Op, Over, Scalar, Stmt, Var};
use iced_x86::Code;
use machine::code::{Arg, Class, First, Inst, Item, Program, Reg, View};
use machine::encode::FRAME;
use machine::tier::Tier;
use std::collections::{BTreeMap, HashMap, HashSet};

/// A tile holds something that has no form in wide vectors: a bug of ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("wide vectors have no form for {0}")]
pub struct Refused(pub String);

/// The code of a tile.
#[derive(Debug)]
pub struct Tile {
    /// Code, then constants; it begins at a multiple of 64 bytes.
    pub bytes: Vec<u8>,
    /// Bytes of code.
    pub code_bytes: usize,
    /// Bytes it needs in the frame for itself.
    pub frame_bytes: u64,
    /// Where loops begin and end: offsets in bytes.
    pub marks: Vec<(usize, Mark)>,
    /// What each loop is called.
    pub loops: Vec<String>,
}

/// The alignment of a tile's code, in bytes.
pub const ALIGN: u64 = 64;

/// What tiles share.
#[derive(Debug)]
pub struct Around<'a> {
    /// The nest.
    pub nest: &'a Nest,
    /// Accumulators in registers.
    pub cells: &'a HashMap<AccId, Vec<Cell>>,
    /// Accumulators in scratch memory.
    pub scratch: &'a Scratch,
    /// What lies in the frame.
    pub frame: &'a Frame,
    /// How they are made.
    pub plan: Plan,
}

/// How tiles are made.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The vectors.
    pub vectors: Vectors,
    /// How far ahead of what loops over steps read of inputs memory is asked for, in bytes; 0 is not at all.
    pub prefetch_bytes: u64,
}

impl Plan {
    /// The plan of what was decided.
    pub fn of(decided: &Decided) -> Plan {
        Plan { vectors: decided.vectors, prefetch_bytes: decided.schedule.prefetch }
    }

    /// That of nests without tiles.
    #[cfg(test)]
    pub const BASE: Plan = Plan { vectors: Vectors::BASE, prefetch_bytes: 0 };
}

/// The code of a tile's body.
///
/// # Errors
/// If the body holds what has no form.
pub fn tile(around: &Around, body: &[Stmt]) -> Result<Tile, Refused> {
    let tier = if around.plan.vectors.bits >= 512 { Tier::Avx512 } else { Tier::Avx2 };
    let mut program = Program::default();
    let (frame, buffers) = (program.reg(Class::General), program.reg(Class::General));
    debug_assert_eq!(frame, FRAME);
    let mut generator = Generator {
        around,
        nest: around.nest,
        tier,
        program,
        prologue: vec![],
        buffers,
        types: HashMap::new(),
        cells: HashMap::new(),
        values: HashMap::new(),
        pointers: Pointers::default(),
        counters: HashMap::new(),
        lane: None,
        vector: None,
        halves: vec![],
        set_before_read: set_before_read(body),
        positions: HashMap::new(),
        in_steps: 0,
        moving: vec![],
        narrow: HashMap::new(),
        rest: vec![],
        declared_here: vec![HashSet::new()],
        strided: vec![],
        turned: vec![],
        edge: None,
        starts: aligned::Starts::default(),
        fresh: BTreeMap::new(),
    };
    around.nest.visit(&mut |s| {
        if let Stmt::Acc { acc, dtype, .. } = s {
            generator.types.insert(*acc, *dtype);
        }
    });
    generator.enter_around(body);
    generator.outer_body(body)?;
    let mut program = generator.program;
    let mut items = generator.prologue;
    items.append(&mut program.items);
    program.items = items;
    let assembled = machine::assemble(program, tier, buffers, around.frame.bytes + LANE_SLOT_BYTES)?;
    Ok(Tile {
        bytes: assembled.code.bytes,
        code_bytes: assembled.code.code_bytes,
        frame_bytes: LANE_SLOT_BYTES + assembled.frame_bytes,
        marks: assembled.code.marks,
        loops: assembled.loops,
    })
}

/// Bytes at the start of a tile's own part of the frame in which lanes are moved about: two vectors.
const LANE_SLOT_BYTES: u64 = 128;

/// How many lanes of a value are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lanes {
    /// All, and they are equal.
    Same,
    /// The first so many.
    First(u64),
}

/// Where a value is.
#[derive(Clone, Copy, Debug)]
enum Place {
    Const(Scalar),
    /// A truth value in AVX-512 is a mask; in AVX2 no bits or all bits in each lane.
    Reg(Reg),
    /// Lanes in memory, read where they are used.
    Mem(Reg, i32),
}

/// A value.
#[derive(Clone, Copy, Debug)]
struct Val {
    place: Place,
    dtype: DType,
    lanes: Lanes,
    /// Bytes of a lane; of a truth value those of what was compared.
    bytes: u64,
}

struct Generator<'a> {
    around: &'a Around<'a>,
    nest: &'a Nest,
    tier: Tier,
    program: Program,
    /// What stands before all else.
    prologue: Vec<Item>,
    buffers: Reg,
    types: HashMap<AccId, DType>,
    /// The registers of cells.
    cells: HashMap<(AccId, Cell), Reg>,
    values: HashMap<Var, Val>,
    pointers: Pointers,
    /// The counters of loops, where they are needed, and carries.
    counters: HashMap<LoopVar, Reg>,
    lane: Option<(LoopVar, u64)>,
    /// The lanes of the current vector, of one loop or two.
    vector: Option<Vector>,
    /// Halves of vectors by now, where the lanes are of two loops.
    halves: Vec<halves::Halves>,
    set_before_read: HashSet<AccId>,
    /// Values of indices that are the same in all lanes, for the current body.
    positions: HashMap<(DType, Index), Reg>,
    /// Loops over steps around.
    in_steps: u32,
    /// Vectors of positions that loops around count up, see [`positions`].
    moving: Vec<positions::Moving>,
    /// In the current loop, 32-bit sums of bytes beside the registers of 64-bit ones that they are added to after it.
    narrow: HashMap<Reg, Reg>,
    /// The statements after the current one in its body, and in those around it up to the loop.
    rest: Vec<&'a [Stmt]>,
    /// The accumulators that the bodies around declare, but for bodies of lanes.
    declared_here: Vec<HashSet<AccId>>,
    /// Loads of the current body that share what is read of memory.
    strided: Vec<strided::Group>,
    /// Loads of the current body that are columns of a matrix.
    turned: Vec<turned::Block>,
    /// Of a vector of which not all lanes are elements those that are, see [`aligned`].
    edge: Option<Reg>,
    /// Where inputs that are read by lines begin.
    starts: aligned::Starts,
    /// Registers of cells that were declared, but hold what they start with only once it is needed there.
    fresh: BTreeMap<Reg, Scalar>,
}

impl<'a> Generator<'a> {
    fn emit(&mut self, inst: Inst) {
        self.program.items.push(Item::Inst(inst));
    }

    fn vector(&mut self) -> Reg {
        self.program.reg(Class::Vector)
    }

    fn full(&self, reg: Reg) -> Arg {
        Arg::Reg(reg, self.tier.view())
    }

    /// Counters and values from around the tile.
    fn enter_around(&mut self, body: &'a [Stmt]) {
        let taken = self.around.frame.taken(body);
        for (var, at) in taken.counters {
            let counter = self.program.reg(Class::General);
            let args = [Arg::Reg(counter, View::R64), Arg::Mem(FRAME, at as i32)];
            self.emit(Inst::new(Code::Mov_r64_rm64, &args));
            self.counters.insert(var, counter);
            self.enter(var, body, Some(counter));
        }
        for (var, dtype, at) in taken.values {
            let val = self.broadcast_load(dtype, FRAME, at as i32);
            self.values.insert(var, val);
        }
    }

    /// A body that is none of lanes.
    fn outer_body(&mut self, body: &'a [Stmt]) -> Result<(), Refused> {
        let (groups, blocks) = (self.groups(body), self.blocks(body));
        let strided = std::mem::replace(&mut self.strided, groups);
        let turned = std::mem::replace(&mut self.turned, blocks);
        let done = self.body(body);
        (self.strided, self.turned) = (strided, turned);
        done
    }

    fn body(&mut self, body: &'a [Stmt]) -> Result<(), Refused> {
        for (n, stmt) in body.iter().enumerate() {
            self.rest.push(&body[n + 1..]);
            match stmt {
                Stmt::Carry { var, of } => self.carry(*var, of, &body[n + 1..]),
                Stmt::Pick { var, value, most } => self.pick(*var, value, *most, &body[n + 1..])?,
                _ => self.stmt(stmt)?,
            }
            self.rest.pop();
        }
        Ok(())
    }

    fn stmt(&mut self, stmt: &'a Stmt) -> Result<(), Refused> {
        match stmt {
            Stmt::For(l) => match Vector::of(l) {
                Some((vector, body)) => {
                    (self.lane, self.vector) = (Some((vector.var, vector.lanes)), Some(vector));
                    let done = self.body(body);
                    (self.lane, self.vector) = (None, None);
                    self.halves.clear();
                    done
                }
                None => self.counted(l),
            },
            Stmt::Acc { acc, dtype, len, init } => {
                self.declared_here.last_mut().expect("the tile's body").insert(*acc);
                self.declare(*acc, *dtype, *len, *init);
                Ok(())
            }
            Stmt::Let { var, value } => {
                let value = self.expr(value, None)?;
                let value = self.kept(value);
                self.values.insert(*var, value);
                Ok(())
            }
            Stmt::Call { vars, def, args } => {
                let results = self.call(self.nest.def(*def), args, None)?;
                for (&var, value) in vars.iter().zip(results) {
                    let value = self.kept(value);
                    self.values.insert(var, value);
                }
                Ok(())
            }
            Stmt::Set { acc, index, value } => self.set(*acc, index, value),
            Stmt::Store { buf, index, value } => {
                let dtype = self.nest.buffers[buf.0 as usize].dtype;
                let value = self.expr(value, None)?;
                self.store(Base::Buf(*buf), dtype, index, value)
            }
            _ => Err(Refused("a statement that should stand outside of a tile".into())),
        }
    }

    /// A value that later statements may use: not memory, and no accumulator's own register.
    fn kept(&mut self, value: Val) -> Val {
        match value.place {
            Place::Const(_) => value,
            Place::Mem(..) => Val { place: Place::Reg(self.reg(value)), ..value },
            Place::Reg(reg) if self.cells.values().any(|&c| c == reg) => {
                let to = self.program.reg(self.program.classes[reg.0 as usize]);
                self.program.items.push(Item::Copy { to, from: reg });
                Val { place: Place::Reg(to), ..value }
            }
            Place::Reg(_) => value,
        }
    }

    /// A loop that tests at its bottom, where it runs at least once.
    fn counted(&mut self, l: &'a Loop) -> Result<(), Refused> {
        if l.extent == Extent::Const(0) {
            return Ok(());
        }
        let lines = self.lines(l);
        self.start_cells();
        let bound = match l.extent {
            Extent::Const(_) => None,
            Extent::Carry(var) => Some(self.counters[&var]),
        };
        let (head, exit) = (self.program.label(), self.program.label());
        let counter = self.program.reg(Class::General);
        let counter_arg = Arg::Reg(counter, View::R64);
        let counts_up = counts(&l.body, l.var);
        if let Some(bound) = bound {
            let bound = Arg::Reg(bound, View::R64);
            self.emit(Inst::new(Code::Test_rm64_r64, &[bound, bound]).first(First::Use));
            self.program.items.push(Item::Jump(Code::Je_rel32_64, exit));
        }
        match (counts_up, bound, l.extent) {
            (false, Some(bound), _) => self.program.items.push(Item::Copy { to: counter, from: bound }),
            (false, None, Extent::Const(n)) => self.number(counter, n as i64),
            _ => self.number(counter, 0),
        }
        if counts_up {
            self.counters.insert(l.var, counter);
        }
        let bumps = self.enter(l.var, &l.body, None);
        let lines = lines.map(|lines| {
            let start = self.start_lines(&lines, &bumps);
            (lines, start)
        });
        self.count_positions(l);
        self.start_narrow_sums(l);
        self.program.loops.push(l.head());
        let number = self.program.loops.len() as u32 - 1;
        let behind_first = self.program.label();
        if let Some((_, start)) = &lines {
            self.edge_of_lines(start.first, &l.body)?;
            self.program.items.push(Item::Jump(Code::Jmp_rel32_64, behind_first));
        }
        self.program.items.push(Item::Enter(number));
        self.program.items.push(Item::Label(head));
        self.positions.clear();
        self.declared_here.push(HashSet::new());
        let steps = u32::from(l.var.over == Over::Step);
        self.in_steps += steps;
        let (first, others) = l.body.split_at(usize::from(lines.is_some()));
        self.outer_body(first)?;
        self.program.items.push(Item::Label(behind_first));
        self.outer_body(others)?;
        self.in_steps -= steps;
        self.fresh.clear();
        self.declared_here.pop();
        for (pointer, bytes) in bumps {
            self.add(pointer, bytes);
        }
        self.step_positions(l.var);
        if counts_up {
            self.add(counter, 1);
            match (bound, l.extent) {
                (Some(bound), _) => {
                    let args = [counter_arg, Arg::Reg(bound, View::R64)];
                    self.emit(Inst::new(Code::Cmp_rm64_r64, &args).first(First::Use));
                }
                (None, Extent::Const(n)) => {
                    if i32::try_from(n).is_ok() {
                        let args = [counter_arg, Arg::Imm(n as i64)];
                        self.emit(Inst::new(Code::Cmp_rm64_imm32, &args).first(First::Use));
                    } else {
                        let limit = self.program.reg(Class::General);
                        self.number(limit, n as i64);
                        let args = [counter_arg, Arg::Reg(limit, View::R64)];
                        self.emit(Inst::new(Code::Cmp_rm64_r64, &args).first(First::Use));
                    }
                }
                _ => unreachable!("a carry has a bound"),
            }
            self.program.items.push(Item::Jump(Code::Jb_rel32_64, head));
        } else {
            self.emit(Inst::new(Code::Sub_rm64_imm32, &[counter_arg, Arg::Imm(1)]).first(First::Mod));
            self.program.items.push(Item::Jump(Code::Jne_rel32_64, head));
        }
        self.program.items.push(Item::Leave);
        self.program.items.push(Item::Label(exit));
        if let Some((lines, start)) = &lines {
            self.end_lines(lines, *start, &l.body)?;
        }
        self.end_narrow_sums();
        self.leave(l.var);
        self.positions.clear();
        Ok(())
    }

    /// Binds a carry variable: trailing ones of the index.
    fn carry(&mut self, var: LoopVar, of: &Index, rest: &'a [Stmt]) {
        let number = self.index_value(of);
        self.add(number, 1);
        let ones = self.program.reg(Class::General);
        let args = [Arg::Reg(ones, View::R64), Arg::Reg(number, View::R64)];
        self.emit(Inst::new(Code::Tzcnt_r64_rm64, &args));
        self.counters.insert(var, ones);
        self.enter(var, rest, Some(ones));
    }

    /// Binds a variable to a value, at most so great.
    fn pick(&mut self, var: LoopVar, value: &Expr, most: u64, rest: &'a [Stmt]) -> Result<(), Refused> {
        let value = self.expr(value, None)?;
        let (unsigned, bytes) = (value.dtype.unsigned(), value.bytes);
        if !matches!(bytes, 4 | 8) {
            return Err(Refused(format!("a place of {}", value.dtype)));
        }
        let value = self.op(Op::Bits, unsigned, &[value], None)?;
        let greatest = if bytes == 8 { most } else { most.min(u32::MAX.into()) };
        let most = self.constant(Scalar::int(unsigned, greatest.into()));
        let value = self.op(Op::Min, unsigned, &[value, most], None)?;
        let from = self.reg(value);
        let number = self.program.reg(Class::General);
        let (code, view) = match bytes {
            4 => (self.tier.pick(Code::VEX_Vmovd_rm32_xmm, Code::EVEX_Vmovd_rm32_xmm), View::R32),
            _ => (self.tier.pick(Code::VEX_Vmovq_rm64_xmm, Code::EVEX_Vmovq_rm64_xmm), View::R64),
        };
        self.emit(Inst::new(code, &[Arg::Reg(number, view), Arg::Reg(from, View::Xmm)]));
        self.counters.insert(var, number);
        self.enter(var, rest, Some(number));
        Ok(())
    }

    /// The value of an expression; written to `to` where that is given and costs nothing.
    fn expr(&mut self, e: &Expr, to: Option<Reg>) -> Result<Val, Refused> {
        match e {
            Expr::Const(s) => Ok(self.constant(*s)),
            Expr::Var(var, _) => self.values.get(var).copied().ok_or_else(|| Refused(format!("{var} from elsewhere"))),
            Expr::Load(buf, dtype, index) => self.load(Base::Buf(*buf), *dtype, index),
            Expr::Read(acc, dtype, index) => self.read(*acc, *dtype, index),
            Expr::At(dtype, index) => self.at(*dtype, index),
            Expr::Op(op, dtype, args) => {
                if let Some(sum) = self.sum_of_bytes(e) {
                    return self.add_bytes(sum, to);
                }
                if let Some(value) = self.combined_where(*op, *dtype, args, to)? {
                    return Ok(value);
                }
                if let Some((extreme, a, b)) = ops::lesser_or_greater(*op, args) {
                    let (a, b) = (self.expr(a, None)?, self.expr(b, None)?);
                    return Ok(self.float_extreme(extreme, a, b, to));
                }
                let args = args.iter().map(|a| self.expr(a, None)).collect::<Result<Vec<_>, _>>()?;
                self.op(*op, *dtype, &args, to)
            }
            Expr::Call(def, _, args) => Ok(self.call(self.nest.def(*def), args, to)?.remove(0)),
        }
    }

    fn constant(&self, s: Scalar) -> Val {
        Val { place: Place::Const(s), dtype: s.dtype(), lanes: Lanes::Same, bytes: s.dtype().bytes() }
    }

    /// Writes out the body of a definition; a single result to `to` where that is given.
    fn call(&mut self, def: &Def, args: &[Expr], to: Option<Reg>) -> Result<Vec<Val>, Refused> {
        let mut values = vec![];
        for (n, arg) in args.iter().enumerate() {
            let value = self.expr(arg, None)?;
            let once = uses(def, n) <= 1;
            values.push(match value.place {
                Place::Mem(..) if !once => Val { place: Place::Reg(self.reg(value)), ..value },
                _ => value,
            });
        }
        for value in &def.lets {
            let value = self.in_def(value, &values, None)?;
            let value = match value.place {
                Place::Mem(..) => Val { place: Place::Reg(self.reg(value)), ..value },
                _ => value,
            };
            values.push(value);
        }
        let to = to.filter(|_| def.results.len() == 1);
        def.results.iter().map(|r| self.in_def(r, &values, to)).collect()
    }

    fn in_def(&mut self, e: &Expr, values: &[Val], to: Option<Reg>) -> Result<Val, Refused> {
        match e {
            Expr::Const(s) => Ok(self.constant(*s)),
            Expr::Var(Var(v), _) => Ok(values[*v as usize]),
            Expr::Op(op, dtype, args) => {
                if let Some((extreme, a, b)) = ops::lesser_or_greater(*op, args) {
                    let (a, b) = (self.in_def(a, values, None)?, self.in_def(b, values, None)?);
                    return Ok(self.float_extreme(extreme, a, b, to));
                }
                let args = args.iter().map(|a| self.in_def(a, values, None)).collect::<Result<Vec<_>, _>>()?;
                self.op(*op, *dtype, &args, to)
            }
            _ => Err(Refused("a definition that reads memory".into())),
        }
    }

    fn op(&mut self, op: Op, result: DType, args: &[Val], to: Option<Reg>) -> Result<Val, Refused> {
        let constants: Option<Vec<Scalar>> =
            args.iter().map(|a| if let Place::Const(s) = a.place { Some(s) } else { None }).collect();
        match (constants, args) {
            (Some(constants), _) => Ok(self.constant(op.eval(result, &constants))),
            (None, &[Val { place: Place::Const(s), .. }, other] | &[other, Val { place: Place::Const(s), .. }])
                if op.is_neutral(s) =>
            {
                Ok(other)
            }
            (None, _) => self.operation(op, result, args, to),
        }
    }
}

/// How often a definition names its parameter.
fn uses(def: &Def, parameter: usize) -> usize {
    let mut n = 0;
    let mut count = |e: &Expr| n += usize::from(matches!(e, Expr::Var(Var(v), _) if *v as usize == parameter));
    def.lets.iter().chain(&def.results).for_each(|e| e.visit(&mut count));
    n
}

/// Calls `f` on every expression in the body, operands too.
fn each_expr<'a>(body: &'a [Stmt], f: &mut impl FnMut(&'a Expr)) {
    fn all<'a>(e: &'a Expr, f: &mut impl FnMut(&'a Expr)) {
        f(e);
        e.args().iter().for_each(|a| all(a, f));
    }
    body.iter().for_each(|s| s.visit(&mut |s| s.exprs().iter().for_each(|e| all(e, f))));
}

/// Whether the value of a loop variable is needed itself: for a position or a carry.
fn counts(body: &[Stmt], var: LoopVar) -> bool {
    let mut found = false;
    each_expr(body, &mut |e| found |= matches!(e, Expr::At(_, index) if index.coefficient(var) != 0));
    body.iter().for_each(|s| {
        s.visit(&mut |s| found |= matches!(s, Stmt::Carry { of, .. } if of.coefficient(var) != 0));
    });
    found
}
