//! Loops, which test at their top, and the constants made before them.

use super::cells::in_vectors;
use super::{Generator, Number, Walk};
use crate::codegen::Refused;
use crate::codegen::emit::Loops;
use crate::codegen::storage::Vector;
use cranefold_ir::{DefId, Expr, Extent, Loop, LoopKind, Op, Stmt};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};
use cranelift_frontend::Variable;

/// An open loop.
pub(super) struct Open {
    header: Block,
    exit: Block,
    counter: Variable,
    bound: Option<Value>,
    /// The loop around, to which instructions belong again after this one.
    around: Option<u32>,
    /// The number of splats before the loop.
    splats: usize,
}

impl<'a> Loops<'a> for Generator<'a> {
    type Loop = Open;

    fn begin_lanes(&mut self, walk: &Walk<'a>, vector: Vector, body: &[Stmt]) -> Result<Option<Vector>, Refused> {
        if vector.outer.is_some() {
            return Err(Refused("lanes of two loops".into()));
        }
        if vector.edge.is_some() {
            return Err(Refused("lanes that are left out".into()));
        }
        // One lane is a scalar, unless it is in a vector and would have to be taken out.
        let in_lanes = vector.lanes > 1 || in_vectors(walk, body);
        Ok(in_lanes.then_some(Vector { lanes: vector.lanes.max(2), ..vector }))
    }

    fn begin_loop(&mut self, walk: &mut Walk<'a>, l: &'a Loop) -> Open {
        walk.start_cells(self);
        let header = self.builder.create_block();
        let exit = self.builder.create_block();
        let bound = match l.extent {
            Extent::Const(_) | Extent::From(..) | Extent::Below(..) => None,
            Extent::Carry(var) => Some(self.value_of(walk.counters[&var])),
        };
        let counter = self.builder.declare_var(types::I64);
        let zero = self.builder.ins().iconst(types::I64, 0);
        self.builder.def_var(counter, zero);
        walk.counters.insert(l.var, Number::Moving(counter));
        Open { header, exit, counter, bound, around: None, splats: 0 }
    }

    fn enter_loop(&mut self, walk: &mut Walk<'a>, l: &'a Loop, open: &mut Open) -> Result<(), Refused> {
        self.loop_constants(walk, &l.body);
        let (header, inside) = (open.header, self.builder.create_block());
        self.builder.ins().jump(header, &[]);
        open.around = self.enter_place(l.head());
        self.builder.switch_to_block(header);
        let i = self.builder.use_var(open.counter);
        let more = match (open.bound, l.extent) {
            (Some(bound), _) => self.builder.ins().icmp(IntCC::UnsignedLessThan, i, bound),
            (None, Extent::Const(n)) => self.builder.ins().icmp_imm_s(IntCC::UnsignedLessThan, i, n as i64),
            _ => unreachable!("a carry has a bound"),
        };
        self.builder.ins().brif(more, inside, &[], open.exit, &[]);
        self.builder.switch_to_block(inside);
        self.builder.seal_block(inside);
        open.splats = self.splats.len();
        Ok(())
    }

    fn end_loop(&mut self, _: &'a Loop, open: Open) {
        self.splats.truncate(open.splats);
        let i = self.builder.use_var(open.counter);
        let next = self.builder.ins().iadd_imm_s(i, 1);
        self.builder.def_var(open.counter, next);
        self.builder.ins().jump(open.header, &[]);
        self.builder.seal_block(open.header);
        self.leave_place(open.around);
        self.builder.switch_to_block(open.exit);
        self.builder.seal_block(open.exit);
        self.constants.clear();
    }

    fn outside(&mut self, walk: &mut Walk<'a>, stmt: &'a Stmt) -> Result<(), Refused> {
        match stmt {
            Stmt::Select { vars, what, acc, len } => {
                self.select_from(walk, vars, what, (*acc, *len));
                Ok(())
            }
            Stmt::Wide { body } => self.wide(walk, body),
            _ => unreachable!("all others are the walk's"),
        }
    }
}

impl Generator<'_> {
    /// Makes the vector constants before an innermost loop, because Cranelift leaves them where they are made. The
    /// addends that [`Generator::addend`] reads are left out. Constants that are not used as vectors leave no code.
    fn loop_constants(&mut self, walk: &Walk, body: &[Stmt]) {
        self.constants.clear();
        let loops = || body.iter().filter_map(|s| if let Stmt::For(l) = s { Some(l) } else { None });
        if loops().any(|l| l.kind != LoopKind::Lanes) {
            return;
        }
        for l in loops() {
            let mut defs: Vec<DefId> = vec![];
            for stmt in &l.body {
                if let Stmt::Call { def, .. } = stmt {
                    defs.push(*def);
                }
                stmt.exprs().iter().for_each(|e| {
                    e.visit(&mut |e| match e {
                        Expr::Call(def, ..) => defs.push(*def),
                        Expr::At(dtype, index) if index.coefficient(l.var) != 0 => {
                            self.steps_of(*dtype, index.offset, index.coefficient(l.var));
                        }
                        _ => self.operands(e),
                    })
                });
            }
            for def in defs.into_iter().map(|def| walk.nest.def(def)) {
                def.lets.iter().chain(&def.results).for_each(|e| e.visit(&mut |e| self.operands(e)));
            }
        }
    }

    /// Makes the constants among the operands of an operation.
    fn operands(&mut self, e: &Expr) {
        let addend = if matches!(e, Expr::Op(Op::Fma, ..)) { 2 } else { usize::MAX };
        for (n, arg) in e.args().iter().enumerate() {
            if let (Expr::Const(s), true) = (arg, n != addend) {
                self.splat_constant(*s);
            }
        }
    }
}
