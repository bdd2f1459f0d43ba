//! Questions about statements and rewrites of them, each in one place.
//!
//! | file | answers |
//! | --- | --- |
//! | `access` | the accumulators, expressions and indices that statements touch |
//! | `rewrite` | statements replaced, substituted and renamed |
//! | `split` | the block and the element that an index names |
//! | `neighbours` | sums of elements that lie side by side |
//! | `band` | perfectly nested loops, and their distribution over statements |
//!
//! Every `match` over statements and expressions here names each variant: a new one does not compile until its answers
//! are given.

mod access;
mod band;
mod neighbours;
mod rewrite;
mod split;

pub use access::{
    Access, is_elementwise, is_straight, mentions, reads, touched, visit_accesses, visit_exprs, visit_indices,
};
pub use band::{Band, Side};
pub use neighbours::NeighbourSum;
pub use rewrite::{Zone, map_accs, map_elements, renamed, rewrite, rewrite_bodies, rewrite_zones, substitute};
pub use split::{partition, split_block};
