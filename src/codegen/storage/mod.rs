//! The place of each accumulator of a legal nest: registers, the function's frame, or scratch memory.
//!
//! A wide function and the code around it use the same places.

mod cells;
mod copies;
mod dead;
mod frame;
mod initial;
mod scratch;

use crate::vectors::Vectors;
pub use cells::{Cell, CellLanes, Edge, Vector, cell_of};
use cells::{Cells, cells};
pub use copies::Copies;
use cranefold_ir::{AccId, Nest};
pub use dead::is_dead;
pub use frame::Frame;
pub use initial::set_before_read;
use rustc_hash::{FxHashMap, FxHashSet};
pub use scratch::{SCRATCH_ALIGN, Scratch, TooLarge};

/// The place of every accumulator of a nest.
#[derive(Debug)]
pub struct Storage {
    /// Accumulators in registers.
    pub cells: FxHashMap<AccId, Vec<Cell>>,
    /// Accumulators of which a read may begin in one register and end in the next.
    pub joining: FxHashSet<AccId>,
    /// Accumulators of which some statement takes one element outside of lanes, or in all lanes alike.
    pub alike: FxHashSet<AccId>,
    /// Accumulators in scratch memory.
    pub scratch: Scratch,
    /// The part of the frame that wide functions share with the code around them.
    pub frame: Frame,
}

impl Storage {
    /// The places of the accumulators of a legal nest.
    ///
    /// # Errors
    /// An error if an accumulator has more bytes than an address space.
    pub fn of(nest: &Nest, vectors: Vectors) -> Result<Storage, TooLarge> {
        let Cells { cells, joining, alike } = cells(nest, vectors);
        let scratch = Scratch::of(nest, |acc| !cells.contains_key(&acc))?;
        let frame = Frame::of(nest, &cells, &scratch);
        Ok(Storage { cells, joining, alike, scratch, frame })
    }
}
