//! The reader of ONNX models.
//!
//! [`read`] takes the bytes of a `ModelProto` and makes a [`Graph`] of its nodes. Operator sets 1 to 28 are read. Functions
//! of the model take the places of their calls; shapes, axes and all else that is known is computed while the model is read.
//! A node that no kernel computes becomes an opaque one with the op's name, and its attribute `why` has the reason.
//!
//! # Limits
//!
//! A model has at most [`MAX_MODEL_NODES`] nodes and [`MAX_ITEMS`] names, attributes and list elements; graphs in
//! attributes lie at most [`MAX_GRAPH_DEPTH`] deep, functions call one another 64 deep and never themselves. The messages
//! are read by a reader of this crate, which borrows all text and all tensors from the bytes: it holds these limits while
//! it reads, where a general crate for protocol buffers would first build all of the model in memory.

mod constants;
mod elementwise;
mod gather;
mod loss;
mod messages;
mod model;
mod node;
mod norm;
mod opaque;
mod reduce;
mod table;
mod tensor;
mod views;
mod wire;

pub use messages::{MAX_GRAPH_DEPTH, MAX_ITEMS, MAX_NODES as MAX_MODEL_NODES, MessageError};
pub use table::MAX_OPSET;
pub use tensor::External;
pub use wire::WireError;

use crate::front::ReadOptions;
use crate::{Graph, GraphError};

/// A model that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct OnnxModel {
    /// The graph.
    pub graph: Graph,
    /// Tensors outside of the model, by the names of the graph's inputs that take them.
    pub external: Vec<(String, External)>,
}

/// The reason that a model is not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OnnxError {
    /// The bytes are no model, or one beyond the limits.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// The operator set of a newer version of ONNX.
    #[error("operator set {given} of {of} is not read; versions 1 to {limit} are")]
    Opset {
        /// The model or the function.
        of: String,
        /// The version that it asks for.
        given: i64,
        /// The newest that is read.
        limit: i64,
    },
    /// A node or a tensor is malformed.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

/// Reads a model. `load` gives bytes of a file beside the model; it is called for small tensors, others become inputs of
/// the graph, which [`OnnxModel::external`] lists.
///
/// ```
/// use cranefold_graph::{ReadOptions, onnx};
///
/// // A model with the graph `y = ReduceSum(x)`, x: float[2,3].
/// let bytes = include_bytes!("../../tests/data/reduce_sum.onnx");
/// let model = onnx::read(bytes, &ReadOptions::default(), &mut |_| Err("there are no files".into()))?;
/// assert_eq!(model.graph.to_string(), "graph {\n  x: f32[2,3] = input\n  y: f32[1,1] = sum(x) axes=[0,1] keep_dims\n  return y\n}\n");
/// # Ok::<(), onnx::OnnxError>(())
/// ```
///
/// # Errors
/// If the bytes are no model, a limit is exceeded, or a node is malformed.
pub fn read(
    bytes: &[u8],
    options: &ReadOptions,
    load: &mut dyn FnMut(&External) -> Result<Vec<u8>, String>,
) -> Result<OnnxModel, OnnxError> {
    model::read(&messages::model(bytes)?, options, load)
}
