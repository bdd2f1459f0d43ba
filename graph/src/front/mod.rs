//! The part that all readers share: operands that may be known, and the folding of known ones.
//!
//! A file computes shapes and axes by the same ops as tensors. A reader therefore keeps what is known apart from the graph:
//! [`Lower`] computes an op of known operands at once, and makes a constant node of the result only where another node
//! takes it.

mod arithmetic;
mod lower;
mod views;

#[cfg(feature = "openvino")]
pub(crate) use arithmetic::FLOOR_DIVISION;
pub(crate) use arithmetic::{number, remainder};
pub(crate) use lower::{Lower, Operand, native};
pub(crate) use views::{range, reshaped};

/// The reason that a node is not lowered.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The node is malformed.
    Wrong(String),
    /// The node is well formed, and no kernel computes it: the reason.
    Opaque(String),
    /// The graph refuses it.
    Graph(crate::GraphError),
}

impl From<String> for Stop {
    fn from(reason: String) -> Stop {
        Stop::Wrong(reason)
    }
}

impl From<&str> for Stop {
    fn from(reason: &str) -> Stop {
        Stop::Wrong(reason.into())
    }
}

impl From<crate::GraphError> for Stop {
    fn from(error: crate::GraphError) -> Stop {
        match error {
            // The reader names the node of the file.
            crate::GraphError::Node { reason, .. } => Stop::Wrong(reason),
            error => Stop::Graph(error),
        }
    }
}

/// The numbers and tensors that a file leaves to the caller.
///
/// ```
/// use cranefold_graph::ReadOptions;
///
/// let mut options = ReadOptions::default();
/// options.dims.insert("batch".into(), 8);
/// assert_eq!(options.dims["batch"], 8);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadOptions {
    /// The extents of symbolic dims by their names; an axis without a name is `INPUT.AXIS`, such as `x.0`. A name that no
    /// dim of the model has is an error.
    pub dims: std::collections::BTreeMap<String, u64>,
    /// The inputs that become constants, by their names: shapes and axes may depend on these.
    pub values: std::collections::BTreeMap<String, crate::Data>,
}
