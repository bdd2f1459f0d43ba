//! The renaming of an expression's names.

use super::node::{Kind, Node};
use super::{Expression, parse};

impl Expression {
    /// The expression with every name replaced by its `rename`, if that gives one.
    ///
    /// ```
    /// use cranefold_ir::expression::Expression;
    ///
    /// let expression: Expression = "r0 / (r0 + eps)".parse()?;
    /// let renamed = expression.renamed(|name| (name == "eps").then(|| "x1".to_string()));
    /// assert_eq!(renamed.to_string(), "r0 / (r0 + x1)");
    /// # Ok::<(), cranefold_ir::expression::ExpressionError>(())
    /// ```
    #[must_use]
    pub fn renamed(&self, rename: impl Fn(&str) -> Option<String>) -> Expression {
        fn in_node(node: &Node, rename: &impl Fn(&str) -> Option<String>) -> Node {
            let mut node = node.clone();
            match &mut node.kind {
                Kind::Name(name) => *name = rename(name).unwrap_or_else(|| name.clone()),
                Kind::Apply(_, args) => args.iter_mut().for_each(|a| *a = in_node(a, rename)),
                Kind::Number(_) | Kind::Invalid(_) => {}
            }
            node
        }
        let renamed = Expression { root: in_node(&self.root, &rename), text: None };
        // The limit holds for users' texts: with other names a text may be longer.
        let text = renamed.to_string();
        match parse::one(&text) {
            Ok(root) => Expression { root, text: Some(text.into()) },
            Err(_) => renamed,
        }
    }
}
