//! Where the accumulators of a legal nest live: registers, the function's frame, or scratch memory.
//!
//! Both generators ask here, so that a tile and the code around it agree.

mod cells;
mod dead;
mod frame;
mod initial;
mod scratch;

pub use cells::{Cell, Lanes, Vector, cell_of, cells};
pub use dead::is_dead;
pub use frame::Frame;
pub use initial::set_before_read;
pub use scratch::{SCRATCH_ALIGN, Scratch};
