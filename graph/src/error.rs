//! Errors of graphs.

/// The most characters of a name that a message shows.
const SHOWN: usize = 80;

/// The reason that there is no such graph, plan or result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// A node breaks a rule.
    #[error("node `{node}`: {reason}")]
    Node {
        /// The name of the node.
        node: String,
        /// The rule, with the given value and the limit.
        reason: String,
    },
    /// A text departs from the grammar.
    #[error("line {line}, column {column}: {reason}")]
    Text {
        /// The line, counted from 1.
        line: usize,
        /// The column in characters, counted from 1.
        column: usize,
        /// The rule.
        reason: String,
    },
    /// The extent of a symbolic dim is not given.
    #[error("{place}: the extent `{dim}` is not static: bind it to a number")]
    Unbound {
        /// The place in the text or the model.
        place: String,
        /// The name of the dim.
        dim: String,
    },
    /// There is more of something than the limit allows.
    #[error("{given} {what}, and the limit is {limit}")]
    Limit {
        /// The thing that is counted.
        what: &'static str,
        /// The number given.
        given: u64,
        /// The limit.
        limit: u64,
    },
    /// A call does not fit the graph or the plan.
    #[error("{0}")]
    Call(String),
}

impl GraphError {
    /// An error of a node; a long name is cut.
    ///
    /// ```
    /// use cranefold_graph::GraphError;
    ///
    /// assert_eq!(GraphError::node("add_1", "2 inputs needed, 1 given").to_string(), "node `add_1`: 2 inputs needed, 1 given");
    /// ```
    pub fn node(node: &str, reason: impl Into<String>) -> GraphError {
        GraphError::Node { node: cut(node), reason: reason.into() }
    }
}

/// The text, cut to a length that a message can show.
pub(crate) fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        None => text.to_string(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}
