//! The typing of a tree into nest expressions; the rules are at the head of the module.

use super::arithmetic::{apply, constant, share};
use super::error::Fault;
use super::lexer::cut;
use super::literal::{Folded, Literal};
use super::node::{Kind, Node, Operation};
use crate::{DType, Expr, Lets, Scalar, Var};

type Result<T> = std::result::Result<T, Fault>;

pub(crate) fn build(root: &Node, lets: &mut Lets, names: Vec<(&str, Expr)>, literal: DType) -> Result<Expr> {
    Typing { lets: Some(lets), names, literal }.root(root)
}

/// The type of a tree's value, of names of these types.
pub(crate) fn type_of(root: &Node, names: Vec<(&str, DType)>, literal: DType) -> Result<DType> {
    let names = names.into_iter().map(|(name, dtype)| (name, only_typed(dtype))).collect();
    Typing { lets: None, names, literal }.root(root).map(|value| value.dtype())
}

/// A value of which the type alone matters.
fn only_typed(dtype: DType) -> Expr {
    Expr::Var(Var(0), dtype)
}

/// The value of a node.
enum Value {
    Typed(Expr),
    Number(Literal),
    /// A condition that chooses between two values without a type.
    Choice(Expr, Box<Value>, Box<Value>),
}

struct Typing<'a> {
    /// The place of bound values; `None` if types alone are wanted.
    lets: Option<&'a mut Lets>,
    names: Vec<(&'a str, Expr)>,
    /// The type of a result of numbers alone.
    literal: DType,
}

impl Typing<'_> {
    fn root(&mut self, root: &Node) -> Result<Expr> {
        let value = self.value(root)?;
        self.give(value, self.literal, root, None)
    }

    fn value(&mut self, node: &Node) -> Result<Value> {
        let (operation, args) = match &node.kind {
            Kind::Number(number) => return Ok(Value::Number(*number)),
            Kind::Name(name) => return self.name(name, node).map(Value::Typed),
            Kind::Invalid(message) => return Err(Fault::new(node.at, message)),
            Kind::Apply(operation, args) => (*operation, args.as_slice()),
        };
        let values = args.iter().map(|arg| self.value(arg)).collect::<Result<Vec<Value>>>()?;
        match operation {
            Operation::Cast(dtype) => {
                let [value] = operands(values);
                self.cast(value, dtype, &args[0])
            }
            Operation::Select => self.select(node, args, values),
            _ => self.operation(node, operation, args, values),
        }
    }

    fn name(&mut self, name: &str, node: &Node) -> Result<Expr> {
        let Some(i) = self.names.iter().position(|(known, _)| *known == name) else {
            let known: Vec<&str> = self.names.iter().map(|(name, _)| *name).collect();
            let known = if known.is_empty() {
                "there are no names here".to_string()
            } else {
                format!("the names here are {}", known.join(", "))
            };
            // Inputs are numbered from 0.
            let input = name.strip_prefix('x').and_then(|number| number.parse::<u32>().ok());
            let more = match input.filter(|_| self.names.iter().any(|(known, _)| *known == "x0")) {
                Some(number) => format!("; for `{name}` give {} inputs", u64::from(number) + 1),
                None => String::new(),
            };
            return Err(Fault::new(node.at, format!("unknown name `{}`; {known}{more}", cut(name))));
        };
        let mut value = self.names[i].1.clone();
        if let Some(lets) = &mut self.lets {
            value = share(lets, value);
            self.names[i].1 = value.clone();
        }
        Ok(value)
    }

    fn operation(&mut self, node: &Node, operation: Operation, args: &[Node], values: Vec<Value>) -> Result<Value> {
        let logic = matches!(operation, Operation::And | Operation::Or | Operation::Not);
        let numbers: Vec<Literal> = values.iter().filter_map(Value::number).collect();
        if numbers.len() == values.len() && !logic {
            if let (Operation::Div, [Literal::Int(_), Literal::Int(0)]) = (operation, numbers.as_slice()) {
                return Err(Fault::new(args[1].at, "division by zero"));
            }
            if operation.is_bitwise() {
                let number = Literal::bitwise(operation, &numbers);
                return number.map(Value::Number).map_err(|message| Fault::new(node.at, message));
            }
            return Ok(match Literal::fold(operation, &numbers) {
                Folded::Number(number) => Value::Number(number),
                Folded::Truth(truth) => Value::Typed(Scalar::bool(truth).into()),
            });
        }
        let default = if logic { DType::Bool } else { self.literal };
        let exprs = self.unify(node, args.iter().collect(), values, default)?;
        check(node, operation, args, &exprs)?;
        Ok(self.apply(operation, exprs))
    }

    /// An operation over operands that it takes; over constants a constant.
    fn apply(&mut self, operation: Operation, args: Vec<Expr>) -> Value {
        Value::Typed(match args.iter().all(|arg| matches!(arg, Expr::Const(_))) {
            true => constant(operation, args).into(),
            false => self.built(operation, args),
        })
    }

    fn built(&mut self, operation: Operation, args: Vec<Expr>) -> Expr {
        match &mut self.lets {
            Some(lets) => apply(lets, operation, args),
            None => only_typed(operation.result(args.last().expect("operands").dtype())),
        }
    }

    fn select(&mut self, node: &Node, args: &[Node], values: Vec<Value>) -> Result<Value> {
        let [condition, yes, no] = operands(values);
        let condition = match condition {
            Value::Typed(condition) if condition.dtype() != DType::Bool => {
                let message =
                    format!("`select` takes a bool first, not {}{}", condition.dtype(), hint(DType::Bool, &args[0]));
                return Err(Fault::new(args[0].at, message));
            }
            condition => self.give(condition, DType::Bool, &args[0], None)?,
        };
        let known = match &condition {
            Expr::Const(condition) => Some(condition.bits() != 0),
            _ => None,
        };
        if yes.dtype().is_none() && no.dtype().is_none() {
            return Ok(match known {
                Some(true) => yes,
                Some(false) => no,
                None => Value::Choice(condition, Box::new(yes), Box::new(no)),
            });
        }
        let [yes, no] = operands(self.unify(node, args[1..].iter().collect(), vec![yes, no], self.literal)?);
        Ok(match known {
            Some(true) => Value::Typed(yes),
            Some(false) => Value::Typed(no),
            None => self.apply(Operation::Select, vec![condition, yes, no]),
        })
    }

    fn cast(&mut self, value: Value, to: DType, node: &Node) -> Result<Value> {
        match value {
            Value::Typed(value) => Ok(self.apply(Operation::Cast(to), vec![value])),
            Value::Number(number) => {
                let constant = number.cast(to).map_err(|message| Fault::new(node.at, message))?;
                Ok(Value::Typed(constant.into()))
            }
            Value::Choice(condition, yes, no) => {
                let mut arm = |value: Box<Value>| {
                    let value = self.cast(*value, to, node)?;
                    self.give(value, to, node, None)
                };
                let args = vec![condition, arm(yes)?, arm(no)?];
                Ok(self.apply(Operation::Select, args))
            }
        }
    }

    /// The operands in the one type that typed operands have, or in `default`.
    fn unify(&mut self, node: &Node, nodes: Vec<&Node>, values: Vec<Value>, default: DType) -> Result<Vec<Expr>> {
        let typed = nodes.iter().zip(&values).find_map(|(&node, value)| Some((node, value.dtype()?)));
        let dtype = typed.map_or(default, |(_, dtype)| dtype);
        for (&other, value) in nodes.iter().zip(&values) {
            if let (Some((first, _)), Some(found)) = (typed, value.dtype())
                && found != dtype
            {
                return Err(Fault::new(node.at, differ((first, dtype), (other, found))));
            }
        }
        let partner = typed.map(|(node, _)| node);
        nodes.into_iter().zip(values).map(|(node, value)| self.give(value, dtype, node, partner)).collect()
    }

    /// The value in a type, which is its own if it has one; `partner` is the operand that the type is from.
    fn give(&mut self, value: Value, dtype: DType, node: &Node, partner: Option<&Node>) -> Result<Expr> {
        match value {
            Value::Typed(value) => Ok(value),
            Value::Number(number) => {
                let fault = |message: String| match (number, partner) {
                    (Literal::Real(_), Some(partner)) if dtype.is_int() => {
                        let message = format!("`{number}` is no integer, and {} is {dtype}", show(partner));
                        let float = if dtype.bits() == 64 { DType::F64 } else { DType::F32 };
                        Fault::new(node.at, message + &hint(float, partner))
                    }
                    _ => Fault::new(node.at, message),
                };
                number.of_type(dtype).map(Expr::from).map_err(fault)
            }
            Value::Choice(condition, yes, no) => {
                let yes = self.give(*yes, dtype, node, partner)?;
                let no = self.give(*no, dtype, node, partner)?;
                Ok(self.built(Operation::Select, vec![condition, yes, no]))
            }
        }
    }
}

impl Value {
    fn number(&self) -> Option<Literal> {
        match self {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    fn dtype(&self) -> Option<DType> {
        match self {
            Value::Typed(value) => Some(value.dtype()),
            _ => None,
        }
    }
}

/// The operands of an operation, as many as its arity, which parser and builder keep.
fn operands<T, const N: usize>(values: Vec<T>) -> [T; N] {
    values.try_into().unwrap_or_else(|_| unreachable!("{N} operands"))
}

/// Refuses operands whose types differ or that the operation does not take, and constants it does not take.
fn check(node: &Node, operation: Operation, args: &[Node], exprs: &[Expr]) -> Result<()> {
    use Operation::*;
    let dtype = exprs[0].dtype();
    let half = matches!(dtype, DType::F16 | DType::Bf16);
    let (takes, wanted, ok) = match operation {
        And | Or | Not => ("bool", DType::Bool, dtype == DType::Bool),
        Eq | Ne if dtype == DType::Bool => ("all", dtype, true),
        BitAnd | BitOr | BitXor | BitNot => ("integers and bool", DType::I32, dtype.is_int() || dtype == DType::Bool),
        Shl | Shr => ("integers", DType::I32, dtype.is_int()),
        IsNan | IsInf => ("floats", DType::F32, dtype.is_float()),
        Sqrt | Exp | ExpBelow | Log | Expm1 | Log1p | Tanh | Erf | Rsqrt | Sigmoid | Silu | Softplus | Gelu
        | GeluTanh | Fma => ("f32 and f64", DType::F32, matches!(dtype, DType::F32 | DType::F64)),
        _ => ("numbers", DType::F32, dtype != DType::Bool && !half),
    };
    if !ok {
        let takes = if half { format!("has no form for {dtype}") } else { format!("takes {takes}, not {dtype}") };
        let remedy = match operation {
            BitXor if dtype.is_float() => "; a power is `pow(a, b)`".into(),
            _ => hint(wanted, &args[0]),
        };
        let message = format!("`{}` {takes}{remedy}", operation.text());
        return Err(Fault::new(node.at, message));
    }
    let second = match exprs.get(1) {
        Some(Expr::Const(value)) => value.as_int(),
        _ => None,
    };
    match (operation, second) {
        (Div, Some(0)) => Err(Fault::new(args[1].at, "division by zero")),
        (Pow, second) if dtype.is_int() && second.is_none_or(|n| n < 0) => {
            let message =
                format!("the exponent of a power of {dtype} is a constant of at least 0{}", hint(DType::F32, &args[0]));
            Err(Fault::new(args[1].at, message))
        }
        _ => Ok(()),
    }
}

/// The message for two operands of different types.
fn differ((a, of_a): (&Node, DType), (b, of_b): (&Node, DType)) -> String {
    // The hint converts to the type that holds more.
    let rank = |d: DType| (d != DType::Bool, d.is_float(), d.bits());
    let half = |d| matches!(d, DType::F16 | DType::Bf16);
    let hint = match (half(of_a), half(of_b)) {
        (true, true) => hint(DType::F32, a) + &format!(" and `f32({})`", inside(b)),
        _ if rank(of_a) < rank(of_b) => hint(of_b, a),
        _ => hint(of_a, b),
    };
    format!("{} is {of_a} and {} is {of_b}{hint}", show(a), show(b))
}

/// `; convert it, as in ...`
fn hint(to: DType, node: &Node) -> String {
    format!("; convert, as in `{to}({})`", inside(node))
}

/// The bytes of the longest operand that a message repeats.
const SHORT: usize = 30;

fn inside(node: &Node) -> String {
    let text = node.to_string();
    if text.len() > SHORT { "...".to_string() } else { text }
}

fn show(node: &Node) -> String {
    let text = node.to_string();
    if text.len() > SHORT { "the operand".to_string() } else { format!("`{text}`") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Def;
    use crate::expression::parse;

    /// Every operation, of operands of every type: the type is that of what is built, and what typing refuses it refuses
    /// with the same words either way.
    #[test]
    fn types_are_those_of_what_is_built() {
        let operators =
            ["a or a", "a and a", "not a", "a == a", "a != a", "a < a", "a <= a", "a > a", "a >= a", "a | a"];
        let more =
            ["a ^ a", "a & a", "a << a", "a >> a", "a + a", "a - a", "a * a", "a / a", "-a", "~a", "a << 1", "a"];
        let several = ["min(a, a)", "max(a, a)", "pow(a, a)", "pow(a, 2)", "fma(a, a, a)", "select(a == a, a, a)"];
        let numbers = ["1 + 2", "select(a == a, 1, 2)", "f32(select(a == a, 1, 2))", "1 / 0", "a * 1.5", "b"];
        let functions = Operation::FUNCTIONS.into_iter().map(|operation| format!("{}(a)", operation.text()));
        let casts = DType::ALL.into_iter().map(|to| format!("{to}(a)"));
        let fixed = [&operators[..], &more, &several, &numbers].concat().into_iter().map(str::to_string);
        let mut typed = 0;
        for text in fixed.chain(functions).chain(casts) {
            // The functions of several operands are above.
            let Ok(root) = parse::one(&text) else { continue };
            for dtype in DType::ALL {
                let mut built = None;
                Def::build("any", &[dtype], |lets, args| {
                    built =
                        Some(build(&root, lets, vec![("a", args[0].clone())], DType::F32).map(|value| value.dtype()));
                    vec![]
                });
                let found = type_of(&root, vec![("a", dtype)], DType::F32);
                typed += usize::from(found.is_ok());
                let words = |of: Result<DType>| of.map_err(|fault| (fault.at, fault.message));
                assert_eq!(words(found), words(built.expect("what was built")), "{text} of {dtype}");
            }
        }
        assert!(typed > 500, "{typed} are typed");
    }
}
