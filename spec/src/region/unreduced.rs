//! Regions with reduced axes that reduce nothing.

use crate::Spec;
use cranefold_ir::region::{Body, BodyInput, Value};
use std::sync::Arc;

impl Spec {
    /// The region with `axes=[]` that writes the same elements, if this one has reduced axes but no reduction, and every
    /// output has an element at each position. Where the slices are is then no part of its meaning.
    ///
    /// ```
    /// use cranefold_spec::Spec;
    ///
    /// let spec: Spec = "region x:f32[4,6], m:f32[1,6] axes=[0] { exp(x - m) }".parse()?;
    /// let same: Spec = "region x:f32[4,6], m:f32[1,6] axes=[] { exp(x - m) }".parse()?;
    /// assert_eq!(spec.unreduced(), Some(same.clone()));
    /// assert_eq!(same.unreduced(), None);
    /// # Ok::<(), cranefold_spec::SpecError>(())
    /// ```
    pub fn unreduced(&self) -> Option<Spec> {
        let body = self.body.as_ref()?;
        let reduces = body.definitions.iter().any(|definition| matches!(definition.value, Value::Reduction(_)));
        if reduces || !self.reduced.contains(&true) || self.lost.iter().any(Option::is_some) {
            return None;
        }
        let reduced = vec![false; self.reduced.len()];
        let lost = self.outputs.iter().map(|_| Some(reduced.clone())).collect();
        let spec = Spec { reduced: reduced.clone(), lost, ..self.clone() };
        let input = |(at, input): (usize, &BodyInput)| BodyInput { reach: spec.input_reach(at), ..input.clone() };
        let inputs = body.inputs.iter().enumerate().map(input).collect();
        let body = Body { inputs, reduced, ..Body::clone(body) };
        Some(Spec { body: Some(Arc::new(body)), ..spec }.hashed())
    }
}
