//! The stages of a body: the visits of the slice.

use super::{Body, Value};
use crate::expression::Expression;
use rustc_hash::{FxHashMap, FxHashSet};

/// The visits that a body's values need.
///
/// A stage is one visit of the slice, with all its reductions together. A reduction's stage is the number of stages
/// that must end before its element is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stages {
    /// For each stage, the definitions that are its reductions.
    pub reductions: Vec<Vec<usize>>,
    /// The definitions that are totals.
    pub totals: Vec<usize>,
    /// For each definition, the number of stages after which its value is known: all, if it is computed from old elements.
    /// A total's value is known after all slices.
    pub known_after: Vec<usize>,
    /// For each output, the number of stages after which its value is known.
    pub outputs_after: Vec<usize>,
}

impl Body {
    /// The stages of the reductions.
    ///
    /// ```
    /// use cranefold_ir::DType;
    /// use cranefold_ir::region::{Body, BodyInput, Reach};
    ///
    /// let x = BodyInput { name: "x".into(), dtype: DType::F32, reach: Reach::Element };
    /// let body = Body::parse("c = x - mean(x); r = max(x); c / sqrt(mean(c * c)), r", vec![x], &[true], DType::F32)?;
    /// // The mean, c, the maximum, the mean of squares.
    /// let stages = body.stages();
    /// assert_eq!(stages.reductions, [vec![0, 2], vec![3]]);
    /// assert_eq!((stages.known_after, stages.outputs_after), (vec![1, 1, 1, 2], vec![2, 1]));
    /// # Ok::<(), cranefold_ir::region::RegionError>(())
    /// ```
    pub fn stages(&self) -> Stages {
        let mut stages = Stages { reductions: vec![], totals: vec![], known_after: vec![], outputs_after: vec![] };
        let mut after: FxHashMap<&str, usize> = FxHashMap::default();
        let of = |expression: &Expression, after: &FxHashMap<&str, usize>| {
            let mut latest = 0;
            expression.each_name(&mut |name, _| latest = latest.max(after.get(name).copied().unwrap_or(0)));
            latest
        };
        for (d, definition) in self.definitions.iter().enumerate() {
            let known = match &definition.value {
                Value::Expression(expression) => of(expression, &after),
                Value::Reduction(reduction) if reduction.over.is_some() => {
                    stages.totals.push(d);
                    of(&reduction.of, &after)
                }
                Value::Reduction(reduction) => {
                    let stage = of(&reduction.of, &after);
                    stages.reductions.resize(stages.reductions.len().max(stage + 1), vec![]);
                    stages.reductions[stage].push(d);
                    stage + 1
                }
                Value::Position(_) | Value::Old(_) => 0,
            };
            for name in &definition.names {
                after.insert(name, known);
            }
            stages.known_after.push(known);
        }
        stages.outputs_after = self.outputs.iter().map(|output| of(output, &after)).collect();
        self.after_all_stages(&mut stages);
        stages
    }

    /// Sets what is computed from old elements as known after all stages: no reduction over the slice needs it.
    fn after_all_stages(&self, stages: &mut Stages) {
        let last = stages.reductions.len();
        let of_old = self.names_of_old();
        let definitions = self.definitions.iter().zip(&mut stages.known_after);
        definitions.filter(|(d, _)| of_old.contains(d.names[0].as_str())).for_each(|(_, known)| *known = last);
        let outputs = self.outputs.iter().zip(&mut stages.outputs_after);
        outputs.filter(|(output, _)| reads_any(output, &of_old)).for_each(|(_, known)| *known = last);
    }

    /// The names of old elements, and of what is computed from them.
    pub(super) fn names_of_old(&self) -> FxHashSet<&str> {
        let mut names = FxHashSet::default();
        for definition in &self.definitions {
            let is_of_old = match &definition.value {
                Value::Old(_) => true,
                Value::Expression(expression) => reads_any(expression, &names),
                Value::Reduction(_) | Value::Position(_) => false,
            };
            if is_of_old {
                names.extend(definition.names.iter().map(String::as_str));
            }
        }
        names
    }
}

/// Returns true if an expression reads one of the names.
pub(super) fn reads_any(expression: &Expression, names: &FxHashSet<&str>) -> bool {
    let mut reads = false;
    expression.each_name(&mut |name, _| reads |= names.contains(name));
    reads
}
