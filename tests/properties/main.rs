//! Properties of random specs: every op, type, flag and layout, extents around every boundary.
//!
//! - `terms`: no pass, under any schedule, changes what is combined in which order (law 1, proved).
//! - `bits`: native code and the interpreter after every pass give the same bits and write the
//!   elements of the outputs alone; the result is one that the reference allows.
//! - `choice`: schedules that are chosen keep the limits of schedules.
//! - `kinds`: random regions are of all kinds.
//! - `text`: what prints reads back, and no text makes a parser panic.
//! - `layouts`: those of outputs show in no bit, those of inputs in no exact result.
//! - `partial`: shards, combined in any brackets, have the bits of the whole.
//! - `regions`: random regions have the same bits from every executor, keep their terms, and the reference allows them.
//! - `words`: a spec said in other words is the same problem.
//!
//! A failure shows the spec as text, the schedule and the seed of the data.

mod bits;
mod choice;
mod kinds;
mod layouts;
mod partial;
mod regions;
mod shards;
mod terms;
mod text;
mod words;

use cranefold_fuzz::specs::Case;
use proptest::prelude::*;

/// Cases of up to so many elements and axes.
fn cases(most_elements: u64, most_axes: u64) -> impl Strategy<Value = Case> {
    prop::collection::vec(any::<u8>(), Case::BYTES).prop_map(move |bytes| Case::of(&bytes, most_elements, most_axes))
}
