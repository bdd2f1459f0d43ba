//! The fuser: a graph becomes a plan.
//!
//! | stage | files |
//! | --- | --- |
//! | composites are written out in primitives | `expand`, beside this folder |
//! | primitives become terms, equal ones once, after the rewrites | `translate`, `terms`, `rewrite` |
//! | each reduction goes into a kernel, with what it is computed from | `place`, `join`, `pull` |
//! | each value between kernels gets the kernel that writes it | `settle`, `outputs`, `maps`, `cut` |
//! | each kernel becomes the text of a region | `emit` |
//! | kernels, buffers and the host's steps become a plan | `assemble` |
//!
//! A `Kernel` has a `Space` of axes, in which `locate` finds the index of a term; `Waits` keep steps from following
//! themselves, and `needs` tells them of values that have to be in memory first. A new rewrite is a row of [`REWRITES`] and a function in `rewrite`, and nothing else.

mod assemble;
mod cut;
mod emit;
mod join;
mod kernel;
mod locate;
mod maps;
mod needs;
mod outputs;
mod place;
mod pull;
mod rewrite;
mod settle;
mod space;
mod terms;
mod translate;
mod waits;

pub use rewrite::{REWRITES, Rewrite};

use crate::error::GraphError;
use crate::expand::expanded;
use crate::graph::Graph;
use crate::plan::Plan;
use assemble::Assembly;
use cranefold_spec::Order;
use translate::translated;

/// The choices of the fuser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FuseOptions {
    /// True if groups of element-wise nodes without a reduction become kernels too; else they are steps of the host.
    pub elementwise: bool,
    /// The order of accumulation of every kernel.
    pub order: Order,
}

/// Element-wise kernels too, and `order=logical`.
impl Default for FuseOptions {
    fn default() -> FuseOptions {
        FuseOptions { elementwise: true, order: Order::Logical }
    }
}

/// Makes a plan of a graph: each group of nodes around a reduction is one kernel.
///
/// Composites and their spellings in primitives become the same kernels, by the [`REWRITES`]. The plan's results are those
/// of the graph in real arithmetic, within the bounds of rounding; explicit conversions and integers stay as written.
///
/// ```
/// use cranefold_graph::{FuseOptions, Graph, fuse};
///
/// let named: Graph = "graph { x: f32[8,768] = input; y = softmax(x) axes=[1]; return y }".parse()?;
/// let spelled: Graph = r#"graph {
///     x: f32[8,768] = input
///     m = max(x) axes=[1] keep_dims
///     e = map(x, m) "exp(x0 - x1)"
///     s = sum(e) axes=[1] keep_dims
///     y = map(e, s) "x0 / x1"
///     return y
/// }"#
/// .parse()?;
/// let (named, spelled) = (fuse(&named, &FuseOptions::default())?, fuse(&spelled, &FuseOptions::default())?);
/// let specs = |plan: &cranefold_graph::Plan| plan.kernels().map(|k| k.spec.to_string()).collect::<Vec<_>>();
/// assert_eq!(specs(&named), specs(&spelled));
/// assert_eq!(spelled.decisions(), ["kernel 0: m, e, s, y, 49.2 kB instead of 147.6 kB"]);
/// # Ok::<(), cranefold_graph::GraphError>(())
/// ```
///
/// # Errors
/// If a composite cannot be written out.
pub fn fuse(graph: &Graph, options: &FuseOptions) -> Result<Plan, GraphError> {
    let (primitive, to) = expanded(graph)?;
    let translated = translated(&primitive);
    Assembly { graph, primitive: &primitive, to: &to, translated: &translated, options }.plan()
}
