//! The element values of a region that may be kept between the visits of a slice.

use super::canonical::{forget_position, merged, of_elements};
use super::{IndexBox, Problem, Work};
use cranefold_ir::region::Repeated;
use cranefold_ir::{DType, Def};

impl Problem {
    /// The element values that several visits of a slice are computed from, that may be kept between them, and for whose
    /// definition `is_worth` holds. All visits number the elements of such a value alike: the inputs that it is computed
    /// from have the same boxes in each. Values are floats of 32 or 64 bits.
    ///
    /// ```
    /// use cranefold::{Problem, Spec};
    ///
    /// let spec: Spec = "region x:f32[8,100] axes=[1] { e = exp(x - max(x)); e / sum(e) }".parse()?;
    /// let values = Problem::of(&spec).keepable(|_| true);
    /// assert_eq!(values.iter().map(|v| v.name.as_str()).collect::<Vec<_>>(), ["v1"]);
    /// # Ok::<(), cranefold::SpecError>(())
    /// ```
    pub fn keepable(&self, is_worth: impl Fn(&Def) -> bool) -> Vec<Repeated> {
        let Work::Region(body) = &self.work else { return vec![] };
        if self.elements().is_empty() || self.slices.is_empty() {
            return vec![];
        }
        let is_float = |def: &Def| def.results.iter().all(|r| matches!(r.dtype(), DType::F32 | DType::F64));
        body.repeated(|value| is_float(&value.def) && is_worth(&value.def) && self.numbers_alike(value))
    }

    /// The number of the first kept value of a computation among its inputs, which come after those of the problem and
    /// the indices.
    pub fn first_kept(&self) -> usize {
        self.inputs.len() + self.indices.len()
    }

    /// Returns true if all visits that need a value walk the inputs that it is computed from in the same boxes.
    fn numbers_alike(&self, value: &Repeated) -> bool {
        let walks: Vec<_> =
            self.walks.iter().filter(|walk| walk.reductions.iter().any(|r| value.reductions.contains(r))).collect();
        if walks.iter().any(|walk| walk.gathered.is_some()) {
            return false;
        }
        let of_value = |boxes: &[IndexBox]| -> Vec<IndexBox> {
            boxes.iter().map(|b| merged(forget_position(of_elements(b.clone(), &value.inputs)))).collect()
        };
        let positions = value.is_written.then_some(&self.positions);
        let mut all = walks.iter().map(|walk| of_value(&walk.elements)).chain(positions.map(|boxes| of_value(boxes)));
        let first = all.next();
        all.all(|boxes| Some(&boxes) == first.as_ref())
    }
}
