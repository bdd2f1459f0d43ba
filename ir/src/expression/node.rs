//! The tree of an expression.

use super::error::Fault;
use super::literal::{Folded, Literal};
use super::{MAX_DEPTH, MAX_TEXT};
use crate::DType;
use std::hash::{Hash, Hasher};

/// A node and its place: an operation's at its operator or function, the others' at their start.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    /// A byte of the expression's text, if it has one; it takes no part in equality.
    pub(crate) at: usize,
    /// The depth of nested operations, its own counted.
    pub(crate) depth: usize,
    /// The number of its nodes, itself counted.
    pub(crate) nodes: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Not negative: a minus is an operation.
    Number(Literal),
    Name(String),
    Apply(Operation, Vec<Node>),
    /// A builder's call that no text can express; the message says why.
    Invalid(String),
}

impl PartialEq for Node {
    fn eq(&self, other: &Node) -> bool {
        self.kind == other.kind
    }
}

impl std::cmp::Eq for Node {}

impl Hash for Node {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind.hash(state);
    }
}

impl Node {
    pub(crate) fn leaf(kind: Kind, at: usize) -> Node {
        Node { kind, at, depth: 0, nodes: 1 }
    }

    /// An operation; the error is the message that it nests too deep, or has more nodes than a text has bytes.
    pub(crate) fn apply(operation: Operation, args: Vec<Node>, at: usize) -> Result<Node, String> {
        let depth = 1 + args.iter().map(|a| a.depth).max().unwrap_or(0);
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        let nodes = 1 + args.iter().map(|a| a.nodes).sum::<usize>();
        if nodes > MAX_TEXT {
            return Err(format!("the expression has more than {MAX_TEXT} nodes"));
        }
        Ok(Node { kind: Kind::Apply(operation, args), at, depth, nodes })
    }

    /// An operation of any depth.
    pub(crate) fn of_any_depth(operation: Operation, args: Vec<Node>) -> Node {
        let depth = 1 + args.iter().map(|a| a.depth).max().unwrap_or(0);
        let nodes = 1 + args.iter().map(|a| a.nodes).sum::<usize>();
        Node { kind: Kind::Apply(operation, args), at: 0, depth, nodes }
    }

    /// Calls `f` on the node and all below it, from left to right as they are written.
    pub(crate) fn visit<'a>(&'a self, f: &mut impl FnMut(&'a Node)) {
        f(self);
        if let Kind::Apply(_, args) = &self.kind {
            args.iter().for_each(|a| a.visit(f));
        }
    }

    /// Calls `f` on each name and its place, from left to right.
    pub(crate) fn visit_names<'a>(&'a self, f: &mut impl FnMut(&'a str, usize)) {
        self.visit(&mut |node| {
            if let Kind::Name(name) = &node.kind {
                f(name, node.at);
            }
        });
    }

    /// The tree with other nodes in place of the names for which `f` has one.
    pub(crate) fn replaced(
        self,
        f: &mut impl FnMut(&str, usize) -> Result<Option<Node>, Fault>,
    ) -> Result<Node, Fault> {
        match self.kind {
            Kind::Name(ref name) => Ok(f(name, self.at)?.unwrap_or(self)),
            Kind::Apply(operation, args) => {
                let args = args.into_iter().map(|arg| arg.replaced(f)).collect::<Result<Vec<Node>, Fault>>()?;
                Node::apply(operation, args, self.at).map_err(|message| Fault::new(self.at, message))
            }
            _ => Ok(self),
        }
    }

    /// The number that an expression of numbers alone is; none where typing would refuse it.
    pub(crate) fn number(&self) -> Option<Literal> {
        match self.folded()? {
            Folded::Number(number) => Some(number),
            Folded::Truth(_) => None,
        }
    }

    fn folded(&self) -> Option<Folded> {
        let (operation, args) = match &self.kind {
            Kind::Number(number) => return Some(Folded::Number(*number)),
            Kind::Apply(operation, args) => (*operation, args),
            _ => return None,
        };
        if let (Select, [condition, yes, no]) = (operation, args.as_slice()) {
            let Folded::Truth(condition) = condition.folded()? else { return None };
            let (yes, no) = (yes.number()?, no.number()?);
            return Some(Folded::Number(if condition { yes } else { no }));
        }
        let numbers = args.iter().map(Node::number).collect::<Option<Vec<Literal>>>()?;
        if operation.is_bitwise() {
            return Literal::bitwise(operation, &numbers).ok().map(Folded::Number);
        }
        match (operation, numbers.as_slice()) {
            (Or | And | Not | Cast(_), _) | (Div, [Literal::Int(_), Literal::Int(0)]) => None,
            _ => Some(Literal::fold(operation, &numbers)),
        }
    }

    /// The node of a number, which is the negation of its magnitude if it is negative.
    pub(crate) fn of_number(number: Literal, at: usize) -> Node {
        let (negative, magnitude) = match number {
            Literal::Int(value) => (value < 0, Literal::Int(value.checked_abs().unwrap_or(i128::MAX))),
            Literal::Real(value) => (value.is_sign_negative() && !value.is_nan(), Literal::Real(value.abs())),
        };
        let leaf = Node::leaf(Kind::Number(magnitude), at);
        if negative { Node { kind: Kind::Apply(Neg, vec![leaf]), at, depth: 1, nodes: 2 } } else { leaf }
    }

    /// The message of the first node that no text can express.
    pub(crate) fn invalid(&self) -> Option<&str> {
        match &self.kind {
            Kind::Invalid(message) => Some(message),
            Kind::Apply(_, args) => args.iter().find_map(Node::invalid),
            _ => None,
        }
    }
}

pub(crate) fn too_deep() -> String {
    format!("the expression nests more than {MAX_DEPTH} deep")
}

/// An operator, a function or a conversion; the table of the [module](super) defines each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is the word in text, or the name of its sign")]
pub enum Operation {
    Or,
    And,
    Not,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    BitOr,
    BitXor,
    BitAnd,
    Shl,
    Shr,
    Add,
    Sub,
    Mul,
    Div,
    Neg,
    BitNot,
    Min,
    Max,
    Pow,
    Abs,
    Sqrt,
    Exp,
    /// No word in text: [`Exp`] where the operand is never above 0.
    ExpBelow,
    Log,
    Expm1,
    Log1p,
    Tanh,
    Erf,
    Floor,
    Ceil,
    Round,
    Trunc,
    Sign,
    IsNan,
    IsInf,
    Rsqrt,
    Sigmoid,
    Silu,
    Softplus,
    Gelu,
    GeluTanh,
    Fma,
    Select,
    Cast(DType),
}

use Operation::*;

/// The precedence of an operation in text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Or,
    And,
    Not,
    Compare,
    BitOr,
    BitXor,
    BitAnd,
    Shift,
    Sum,
    Product,
    Neg,
    /// Functions, names, numbers, parentheses.
    Atom,
}

impl Level {
    /// The next tighter level.
    pub(crate) fn tighter(self) -> Level {
        match self {
            Level::Or => Level::And,
            Level::And => Level::Not,
            Level::Not => Level::Compare,
            Level::Compare => Level::BitOr,
            Level::BitOr => Level::BitXor,
            Level::BitXor => Level::BitAnd,
            Level::BitAnd => Level::Shift,
            Level::Shift => Level::Sum,
            Level::Sum => Level::Product,
            Level::Product => Level::Neg,
            Level::Neg | Level::Atom => Level::Atom,
        }
    }
}

impl Operation {
    /// The operators between two operands.
    pub(crate) const INFIX: [Operation; 17] =
        [Or, And, Eq, Ne, Lt, Le, Gt, Ge, BitOr, BitXor, BitAnd, Shl, Shr, Add, Sub, Mul, Div];

    /// The operations that are written as calls, without conversions.
    pub(crate) const FUNCTIONS: [Operation; 26] = [
        Min, Max, Abs, Sqrt, Exp, Log, Pow, Fma, Select, Expm1, Log1p, Tanh, Erf, Floor, Ceil, Round, Trunc, Sign,
        IsNan, IsInf, Rsqrt, Sigmoid, Silu, Softplus, Gelu, GeluTanh,
    ];

    pub(crate) fn text(self) -> &'static str {
        match self {
            Or => "or",
            And => "and",
            Not => "not",
            Eq => "==",
            Ne => "!=",
            Lt => "<",
            Le => "<=",
            Gt => ">",
            Ge => ">=",
            BitOr => "|",
            BitXor => "^",
            BitAnd => "&",
            Shl => "<<",
            Shr => ">>",
            BitNot => "~",
            Add => "+",
            Sub | Neg => "-",
            Mul => "*",
            Div => "/",
            Min => "min",
            Max => "max",
            Pow => "pow",
            Abs => "abs",
            Sqrt => "sqrt",
            Exp => "exp",
            ExpBelow => "exp_below",
            Log => "log",
            Expm1 => "expm1",
            Log1p => "log1p",
            Tanh => "tanh",
            Erf => "erf",
            Floor => "floor",
            Ceil => "ceil",
            Round => "round",
            Trunc => "trunc",
            Sign => "sign",
            IsNan => "is_nan",
            IsInf => "is_inf",
            Rsqrt => "rsqrt",
            Sigmoid => "sigmoid",
            Silu => "silu",
            Softplus => "softplus",
            Gelu => "gelu",
            GeluTanh => "gelu_tanh",
            Fma => "fma",
            Select => "select",
            Cast(dtype) => dtype.name(),
        }
    }

    pub(crate) fn level(self) -> Level {
        match self {
            Or => Level::Or,
            And => Level::And,
            Not => Level::Not,
            Eq | Ne | Lt | Le | Gt | Ge => Level::Compare,
            BitOr => Level::BitOr,
            BitXor => Level::BitXor,
            BitAnd => Level::BitAnd,
            Shl | Shr => Level::Shift,
            Add | Sub => Level::Sum,
            Mul | Div => Level::Product,
            Neg | BitNot => Level::Neg,
            _ => Level::Atom,
        }
    }

    /// The number of operands.
    pub(crate) fn arity(self) -> usize {
        match self {
            Or | And | Eq | Ne | Lt | Le | Gt | Ge | BitOr | BitXor | BitAnd | Shl | Shr | Add | Sub | Mul | Div
            | Min | Max | Pow => 2,
            Fma | Select => 3,
            _ => 1,
        }
    }

    /// Returns true for the operations on the bits of integers.
    pub(super) fn is_bitwise(self) -> bool {
        matches!(self, BitOr | BitXor | BitAnd | Shl | Shr | BitNot)
    }

    /// The type of the result, given that of the last operand.
    pub(crate) fn result(self, operand: DType) -> DType {
        match self {
            Cast(dtype) => dtype,
            Or | And | Not | Eq | Ne | Lt | Le | Gt | Ge | IsNan | IsInf => DType::Bool,
            _ => operand,
        }
    }

    /// The function or conversion of this name.
    pub(crate) fn call(name: &str) -> Option<Operation> {
        let function = Operation::FUNCTIONS.into_iter().find(|op| op.text() == name);
        function.or_else(|| name.parse().ok().map(Cast))
    }
}

/// Returns true for the words of the language, which no name may be.
pub(crate) fn is_reserved(word: &str) -> bool {
    ["or", "and", "not", "inf", "nan"].contains(&word) || Operation::call(word).is_some()
}
