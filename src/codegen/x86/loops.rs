//! Loops, which test at their bottom: a loop of no iterations is left out.

use super::machine::code::{Arg, Class, Inst, Item, Label, Reg, View};
use super::machine::table::Opcode;
use super::{Generator, Refused, Walk, each_expr};
use crate::codegen::emit::{Loops, Numbers};
use crate::codegen::storage::Vector;
use cranefold_ir::{Expr, Extent, Loop, LoopVar, Stmt};

/// An open loop.
pub(super) struct Open {
    head: Label,
    exit: Label,
    counter: Reg,
    /// True if the counter counts up; else it counts down the iterations that are left.
    counts_up: bool,
    bound: Option<Reg>,
}

impl<'a> Loops<'a> for Generator<'a> {
    type Loop = Open;

    fn begin_lanes(&mut self, walk: &Walk<'a>, vector: Vector, _: &[Stmt]) -> Result<Option<Vector>, Refused> {
        self.begin_edge(walk, vector.edge)?;
        Ok(Some(vector))
    }

    fn end_lanes(&mut self) {
        self.end_edge();
    }

    fn begin_loop(&mut self, walk: &mut Walk<'a>, l: &'a Loop) -> Open {
        walk.start_cells(self);
        let bound = match l.extent {
            Extent::Const(_) | Extent::From(..) | Extent::Below(..) => None,
            Extent::Carry(var) => Some(walk.counters[&var]),
        };
        let (head, exit) = (self.program.label(), self.program.label());
        let counter = self.program.reg(Class::General);
        let counts_up = counts(&l.body, l.var);
        if let Some(bound) = bound {
            let bound = Arg::Reg(bound, View::R64);
            self.emit(Inst::new(Opcode::Test, &[bound, bound]));
            self.program.items.push(Item::Jump(Opcode::Je, exit));
        }
        match (counts_up, bound, l.extent) {
            (false, Some(bound), _) => self.program.items.push(Item::Copy { to: counter, from: bound }),
            (false, None, Extent::Const(n)) => self.set_number(counter, n as i64),
            _ => self.set_number(counter, 0),
        }
        if counts_up {
            walk.counters.insert(l.var, counter);
        }
        Open { head, exit, counter, counts_up, bound }
    }

    fn enter_loop(&mut self, walk: &mut Walk<'a>, l: &'a Loop, open: &mut Open) -> Result<(), Refused> {
        self.count_positions(walk, l)?;
        self.start_narrow_sums(walk, l);
        self.program.loops.push(l.head());
        let number = self.program.loops.len() as u32 - 1;
        self.program.items.push(Item::Enter(number));
        self.program.items.push(Item::Label(open.head));
        Ok(())
    }

    fn end_loop(&mut self, l: &'a Loop, open: Open) {
        self.step_positions(l.var);
        self.count(l.extent, &open);
        self.program.items.push(Item::Leave);
        self.program.items.push(Item::Label(open.exit));
        self.end_narrow_sums();
    }

    fn outside(&mut self, _: &mut Walk<'a>, _: &'a Stmt) -> Result<(), Refused> {
        Err(Refused("a statement that should stand outside of a wide function".into()))
    }
}

impl Generator<'_> {
    /// Counts, and jumps back to the head while iterations are left.
    fn count(&mut self, extent: Extent, open: &Open) {
        let counter = Arg::Reg(open.counter, View::R64);
        if !open.counts_up {
            self.emit(Inst::new(Opcode::SubBy, &[counter, Arg::Imm(1)]));
            self.program.items.push(Item::Jump(Opcode::Jne, open.head));
            return;
        }
        self.bump(open.counter, 1);
        let compare = match (open.bound, extent) {
            (Some(bound), _) => Inst::new(Opcode::Cmp, &[counter, Arg::Reg(bound, View::R64)]),
            (None, Extent::Const(n)) if i32::try_from(n).is_ok() => {
                Inst::new(Opcode::CmpBy, &[counter, Arg::Imm(n as i64)])
            }
            (None, Extent::Const(n)) => {
                let limit = self.program.reg(Class::General);
                self.set_number(limit, n as i64);
                Inst::new(Opcode::Cmp, &[counter, Arg::Reg(limit, View::R64)])
            }
            (None, _) => unreachable!("a carry has a bound, and lanes are no loop"),
        };
        self.emit(compare);
        self.program.items.push(Item::Jump(Opcode::Jb, open.head));
    }
}

/// Returns true if the value of a loop variable is needed: for a position or a carry.
fn counts(body: &[Stmt], var: LoopVar) -> bool {
    let mut found = false;
    each_expr(body, &mut |e| found |= matches!(e, Expr::At(_, index) if index.coefficient(var) != 0));
    body.iter().for_each(|s| {
        s.visit(&mut |s| found |= matches!(s, Stmt::Carry { of, .. } if of.coefficient(var) != 0));
    });
    found
}
