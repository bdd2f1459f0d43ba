//! The work of a legal program in a call: its operations, and the loops that hold most of them.

use crate::lower::program::Program;
use cranefold_ir::{self as ir, Expr, Extent, Loop, LoopKind, Nest, Stmt};

/// The work of a program.
///
/// Operations are those of nests after their last pass, which are close to instructions; a load is none. Each block
/// counts as one merge, which is too many by the number of ones in the binary number of blocks.
#[derive(Debug, Default)]
pub(super) struct Work<'n> {
    /// Operations, with each lane of a vector counted.
    pub operations: u64,
    /// Operations, with a vector counted once.
    pub executed: u64,
    /// The part of `operations` in wide functions.
    pub in_wide: u64,
    /// Operations, loads and elements of selections, with each lane counted.
    pub weight: u64,
    /// The statements of the wide functions, in the order of their numbers.
    pub wide_functions: Vec<&'n [Stmt]>,
    /// The body with most work.
    pub main: Main<'n>,
}

/// A loop's body, or the statements outside all loops.
#[derive(Clone, Debug, Default)]
pub(super) struct Main<'n> {
    /// The part of the weight that is in the body, over all times that it runs.
    pub weight: u64,
    /// The loops around it, outermost first.
    pub loops: Vec<&'n Loop>,
    /// The wide function that holds the body, and the number of loops around that function.
    pub wide_function: Option<(usize, usize)>,
    /// Loads of inputs in the body.
    pub loads: u64,
    /// Lanes of the body's widest vector; 1 for scalars.
    pub lanes: u64,
    /// Elements of selections in the body, which weigh as much as operations on them.
    pub selected: u64,
}

struct Walk<'n> {
    nest: &'n Nest,
    around: Vec<&'n Loop>,
    wide_function: Option<(usize, usize)>,
    work: Work<'n>,
}

impl<'n> Work<'n> {
    /// The work of all parts and the finish; wide functions and the main body are of the first nest.
    pub fn of(program: &'n Program) -> Work<'n> {
        let mut all = Work::default();
        for (number, nest) in program.all_nests().enumerate() {
            let parts = program.parts.iter().filter(|part| part.nest == number).count();
            let mut walk = Walk { nest, around: vec![], wide_function: None, work: Work::default() };
            // The finish is no part, and runs once.
            walk.body(&nest.body, parts.max(1) as u64);
            all.add(walk.work);
        }
        all
    }

    fn add(&mut self, other: Work<'n>) {
        self.operations = self.operations.saturating_add(other.operations);
        self.executed = self.executed.saturating_add(other.executed);
        self.in_wide = self.in_wide.saturating_add(other.in_wide);
        self.weight = self.weight.saturating_add(other.weight);
        if self.main.weight == 0 {
            (self.main, self.wide_functions) = (other.main, other.wide_functions);
        }
    }

    /// The share of the operations that is in wide functions.
    pub fn share_in_wide(&self) -> f64 {
        if self.operations == 0 { 0.0 } else { self.in_wide as f64 / self.operations as f64 }
    }
}

impl<'n> Walk<'n> {
    /// Counts statements that run `times` times.
    fn body(&mut self, stmts: &'n [Stmt], times: u64) {
        let mut here = Main { lanes: 1, ..Main::default() };
        for stmt in stmts {
            match stmt {
                Stmt::For(Loop { kind: LoopKind::Lanes, extent, body, .. }) if extent.lanes().is_some() => {
                    let lanes = extent.lanes().unwrap_or(1);
                    body.iter().for_each(|s| self.vector(s, lanes, times, &mut here));
                }
                Stmt::For(l) => {
                    let extent = if let Extent::Const(extent) = l.extent { extent } else { 1 };
                    self.around.push(l);
                    self.body(&l.body, times.saturating_mul(extent));
                    self.around.pop();
                }
                Stmt::Wide { body } => {
                    self.wide_function = Some((self.work.wide_functions.len(), self.around.len()));
                    self.work.wide_functions.push(body);
                    self.body(body, times);
                    self.wide_function = None;
                }
                Stmt::Select { len, .. } => {
                    here.selected = here.selected.max(*len);
                    here.weight = here.weight.saturating_add(len.saturating_mul(times));
                }
                other => self.vector(other, 1, times, &mut here),
            }
        }
        self.work.weight = self.work.weight.saturating_add(here.weight);
        if here.weight > self.work.main.weight {
            self.work.main = Main { loops: self.around.clone(), wide_function: self.wide_function, ..here };
        }
    }

    /// Counts a statement on vectors of `lanes` lanes.
    fn vector(&mut self, stmt: &Stmt, lanes: u64, times: u64, here: &mut Main) {
        let operations = ir::work::Work::new(&self.nest.defs, ir::work::one_each).stmt(stmt);
        let mut loads = 0;
        stmt.exprs().iter().for_each(|e| e.visit(&mut |e| loads += u64::from(matches!(e, Expr::Load(..)))));
        let executed = operations.saturating_mul(times);
        let all = executed.saturating_mul(lanes);
        let work = &mut self.work;
        work.executed = work.executed.saturating_add(executed);
        work.operations = work.operations.saturating_add(all);
        if self.wide_function.is_some() {
            work.in_wide = work.in_wide.saturating_add(all);
        }
        here.weight = here.weight.saturating_add(all).saturating_add((loads * lanes).saturating_mul(times));
        here.loads += loads;
        here.lanes = here.lanes.max(lanes);
    }
}
