//! The kernels of a plan, each spec once.

use cranefold::Spec;
use cranefold_graph::{Plan, PlanKernel};
use std::collections::HashMap;

/// The kernels of one spec.
#[derive(Debug)]
pub struct Distinct<'p> {
    /// The kernels by their numbers in the plan.
    pub kernels: Vec<(usize, &'p PlanKernel)>,
}

impl<'p> Distinct<'p> {
    /// The distinct kernels of a plan, in the order of their first.
    pub fn of(plan: &'p Plan) -> Vec<Distinct<'p>> {
        let mut found: Vec<Distinct<'p>> = vec![];
        let mut places: HashMap<&Spec, usize> = HashMap::new();
        for (number, kernel) in plan.kernels().enumerate() {
            let place = *places.entry(&*kernel.spec).or_insert(found.len());
            match found.get_mut(place) {
                Some(distinct) => distinct.kernels.push((number, kernel)),
                None => found.push(Distinct { kernels: vec![(number, kernel)] }),
            }
        }
        found
    }

    /// The number of the first kernel.
    pub fn first(&self) -> usize {
        self.kernels[0].0
    }

    /// The spec.
    pub fn spec(&self) -> &'p Spec {
        &self.kernels[0].1.spec
    }

    /// The number of kernels.
    pub fn count(&self) -> usize {
        self.kernels.len()
    }
}
