//! The check of a forced schedule.

use super::facts::{OutputLoop, output_loops, states_kept};
use super::{Schedule, ScheduleError};
use crate::problem::tree::Tree;
use crate::problem::{Problem, Work};
use cranefold_ir::ops::{Form, Reducer};
use cranefold_ir::region::Repeated;

impl Schedule {
    /// Checks a forced schedule against the problem.
    ///
    /// # Errors
    /// [`ScheduleError`] with the name that the problem does not have, or the limit that the schedule exceeds.
    pub fn check(&self, problem: &Problem) -> Result<(), ScheduleError> {
        self.check_numbers()?;
        if self.form != Form::Plain && problem.reducer_in(self.form).is_none() {
            return Err(ScheduleError::NoForm { form: self.form, work: work(problem) });
        }
        self.parts.check(problem, self.form)?;
        let loops = output_loops(problem);
        for tile in &self.tiles {
            if !loops.iter().flatten().any(|l| l.var == tile.var) {
                let names: Vec<String> = loops.iter().flatten().map(|l| l.var.to_string()).collect();
                let loops = if names.is_empty() { "none".into() } else { names.join(" ") };
                return Err(ScheduleError::NoLoop { var: tile.var, loops });
            }
        }
        for loops in &loops {
            let mut tiles = self.tiles.iter().filter(|tile| loops.iter().any(|l| l.var == tile.var));
            if let (Some(first), Some(second)) = (tiles.next(), tiles.next()) {
                return Err(ScheduleError::TwoTiles { first: first.var, second: second.var });
            }
        }
        self.check_kept(problem, &loops)?;
        let keeping = || problem.computation_keeping(self.form, &self.keep);
        if self.write_first && keeping().is_none_or(|computation| problem.written_first(&computation).is_none()) {
            return Err(ScheduleError::NotFirst);
        }
        let Some(reducer) = problem.reducer_in(self.form).filter(|_| !problem.elements().is_empty()) else {
            return Ok(());
        };
        let bytes = loops.iter().map(|loops| self.state_bytes(problem, &reducer, loops)).max().unwrap_or(0);
        match bytes <= Schedule::MAX_STATE_BYTES {
            true => Ok(()),
            false => Err(ScheduleError::StateTooLarge { bytes, limit: Schedule::MAX_STATE_BYTES }),
        }
    }

    /// Checks that the kept values may be kept, and fit.
    fn check_kept(&self, problem: &Problem, loops: &[Vec<OutputLoop>]) -> Result<(), ScheduleError> {
        if self.keep.is_empty() {
            return Ok(());
        }
        let values = problem.keepable(|_| true);
        let given = self.keep.join(",");
        if let Some(name) = self.keep.iter().find(|name| !values.iter().any(|value| value.name == **name)) {
            let names: Vec<&str> = values.iter().map(|value| value.name.as_str()).collect();
            let values = if names.is_empty() { "none".into() } else { names.join(", ") };
            return Err(ScheduleError::NoKept { given: name.clone(), values });
        }
        let bytes = self.kept_bytes(problem, &values, loops);
        match bytes <= Schedule::MAX_KEPT_BYTES {
            true => Ok(()),
            false => Err(ScheduleError::KeptTooLarge { given, bytes, limit: Schedule::MAX_KEPT_BYTES }),
        }
    }

    /// The bytes of the element values that the schedule keeps at once, of these that may be kept.
    pub(super) fn kept_bytes(&self, problem: &Problem, values: &[Repeated], loops: &[Vec<OutputLoop>]) -> u64 {
        let kept = values.iter().filter(|value| self.keep.contains(&value.name));
        // The first visit is then the only one, and no other reads what it computes.
        let kept = kept.filter(|_| !self.write_first);
        let element: u64 = kept.flat_map(|value| &value.def.results).map(|r| r.dtype().bytes()).sum();
        let slices = loops.iter().map(|loops| self.outputs_at_once(loops)).max().unwrap_or(1);
        element.saturating_mul(problem.count).saturating_mul(slices).saturating_mul(self.interleave)
    }

    /// The slices of a box that are taken together.
    pub(super) fn outputs_at_once(&self, loops: &[OutputLoop]) -> u64 {
        let tiled = loops.iter().position(|l| self.tile_of(l.var).is_some());
        let outputs = loops.iter().skip(tiled.unwrap_or(loops.len()));
        outputs.map(|l| self.tile_of(l.var).map_or(l.extent, |tile| tile.by.min(l.extent))).fold(1, u64::saturating_mul)
    }

    /// Checks a schedule forced for a nest that keeps its loops: only its vectors and its prefetch count.
    ///
    /// # Errors
    /// A number that is out of its limits, or [`ScheduleError::OfNest`].
    pub(super) fn check_of_nest(&self) -> Result<(), ScheduleError> {
        self.check_numbers()?;
        match *self == (Schedule { width: self.width, prefetch: self.prefetch, ..Schedule::default() }) {
            true => Ok(()),
            false => Err(ScheduleError::OfNest(Box::new(self.clone()))),
        }
    }

    /// The bytes of the states that are kept at once for a box of slices.
    fn state_bytes(&self, problem: &Problem, reducer: &Reducer, loops: &[OutputLoop]) -> u64 {
        let tree = Tree::of(&problem.walks[0], &reducer.method);
        let lanes = tree.lanes_present().saturating_mul(self.outputs_at_once(loops));
        lanes
            .saturating_mul(reducer.method.state_bytes())
            .saturating_mul(states_kept(&tree, self.in_flight))
            .saturating_mul(self.interleave)
    }
}

/// The work of a problem in words, for a message.
fn work(problem: &Problem) -> String {
    match &problem.work {
        Work::Convert { .. } => "a conversion".into(),
        Work::Region(_) => "a region".into(),
        Work::Reduce(recipe) => format!("`{}` of {}", recipe.name(), problem.inputs[0].operand.dtype),
    }
}
