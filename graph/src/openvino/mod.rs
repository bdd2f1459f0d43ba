//! The reader of OpenVINO IR, versions 10 and 11.
//!
//! [`read`] takes the text of the `.xml` file and the bytes of the `.bin` file, and makes a [`Graph`] of the layers on
//! which results depend. Shapes and axes that are known are computed while the model is read. A layer that no kernel
//! computes becomes an opaque node of its type, and its attribute `why` has the reason.
//!
//! # Limits
//!
//! A model has at most [`MAX_LAYERS`] layers of at most [`MAX_PORTS`] ports, and its XML at most [`MAX_XML_NODES`]
//! elements, attributes and texts, which lie at most 200 deep.

mod elementwise;
mod layer;
mod model;
mod net;
mod norm;
mod opaque;
mod reduce;
mod table;
mod views;

pub use net::{MAX_LAYERS, MAX_PORTS, MAX_XML_NODES, NetError};
pub use table::MAX_OPSET;

use crate::front::ReadOptions;
use crate::{Graph, GraphError};

/// The reason that a model is not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenVinoError {
    /// The XML is no model, or one beyond the limits.
    #[error(transparent)]
    Net(#[from] NetError),
    /// A layer is malformed.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

/// Reads a model from its XML and the bytes of its constants.
///
/// ```
/// use cranefold_graph::{ReadOptions, openvino};
///
/// // A model of ReduceMax over axis 1 of x: f32[2,3].
/// let (xml, bin) = (include_bytes!("../../tests/data/reduce_max.xml"), include_bytes!("../../tests/data/reduce_max.bin"));
/// let graph = openvino::read(xml, bin, &ReadOptions::default())?;
/// assert_eq!(graph.to_string(), "graph {\n  x: f32[2,3] = input\n  y: f32[2] = max(x) axes=[1]\n  return y\n}\n");
/// # Ok::<(), openvino::OpenVinoError>(())
/// ```
///
/// # Errors
/// If the text is no model, a limit is exceeded, or a layer is malformed.
pub fn read(xml: &[u8], bin: &[u8], options: &ReadOptions) -> Result<Graph, OpenVinoError> {
    model::read(&net::net(xml)?, bin, options)
}
