//! Bodies as text.

use super::{Body, Definition, Reduction, Value};
use crate::expression::node::{Kind, Level, Node, Operation};
use crate::expression::print::write_node;
use crate::ops::{OpCall, number};
use std::collections::HashMap;
use std::fmt;

/// Prints a line for each definition and one for the outputs. It reads back to an equal body
/// ([`Body::parse`]).
impl fmt::Display for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (definitions, outputs) = self.texts();
        definitions.iter().try_for_each(|definition| writeln!(f, "{definition}"))?;
        f.write_str(&outputs.join(", "))
    }
}

impl Body {
    /// The texts of the definitions and of the outputs, in order.
    ///
    /// ```
    /// use cranefold_ir::DType;
    /// use cranefold_ir::region::{Body, BodyInput, Reach};
    ///
    /// let x = BodyInput { name: "x".into(), dtype: DType::F32, reach: Reach::Element };
    /// let body = Body::parse("m = max(x); exp(x-m), m", vec![x], &[true], DType::F32)?;
    /// assert_eq!(body.texts(), (vec!["m = max(x)".to_string()], vec!["exp(x - m)".to_string(), "m".to_string()]));
    /// # Ok::<(), cranefold_ir::region::RegionError>(())
    /// ```
    pub fn texts(&self) -> (Vec<String>, Vec<String>) {
        let printer = Printer::new(self);
        let definition = |d: &Definition| format!("{} = {}", d.names.join(", "), Text(&printer, &d.value));
        let definitions = self.definitions.iter().filter(|d| !is_hidden(d)).map(definition).collect();
        let outputs = self.outputs.iter().map(|output| Value::Expression(output.clone()));
        (definitions, outputs.map(|output| Text(&printer, &output).to_string()).collect())
    }
}

/// The text of a value.
struct Text<'a>(&'a Printer<'a>, &'a Value);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.value(f, self.1)
    }
}

/// Returns true if a definition was written without names.
fn is_hidden(definition: &Definition) -> bool {
    definition.names.iter().all(|name| name.starts_with('$'))
}

struct Printer<'a> {
    /// The definitions that were written without names.
    hidden: HashMap<&'a str, &'a Definition>,
}

impl<'a> Printer<'a> {
    fn new(body: &'a Body) -> Printer<'a> {
        let hidden = body.definitions.iter().filter(|d| is_hidden(d));
        Printer { hidden: hidden.flat_map(|d| d.names.iter().map(move |name| (name.as_str(), d))).collect() }
    }

    fn node(&self, f: &mut fmt::Formatter<'_>, node: &Node) -> fmt::Result {
        write_node(f, node, Level::Or, &|f, node| self.inline(f, node))
    }

    fn value(&self, f: &mut fmt::Formatter<'_>, value: &Value) -> fmt::Result {
        match value {
            Value::Expression(expression) => self.node(f, &expression.root),
            Value::Reduction(reduction) => self.reduction(f, reduction),
            Value::Position(axis) => write!(f, "position({axis})"),
            Value::Old(output) => write!(f, "old({output})"),
        }
    }

    fn reduction(&self, f: &mut fmt::Formatter<'_>, reduction: &Reduction) -> fmt::Result {
        let Reduction { call, of, over } = reduction;
        let OpCall::Row { name, .. } = call else { return write!(f, "{call}") };
        write!(f, "{name}(")?;
        self.node(f, &of.root)?;
        let row = call.as_row().into_iter().flat_map(|row| row.params).zip(call.params());
        for (param, value) in row.filter(|(param, value)| param.default != Some(*value)) {
            write!(f, ", {}={}", param.name, number(value))?;
        }
        if let Some(axes) = over {
            let axes: Vec<String> = axes.iter().map(usize::to_string).collect();
            write!(f, ", axes=[{}]", axes.join(","))?;
        }
        f.write_str(")")
    }

    /// Writes a value that was written without a name, and the difference that `centered` stands for.
    fn inline(&self, f: &mut fmt::Formatter<'_>, node: &Node) -> Option<fmt::Result> {
        match &node.kind {
            Kind::Name(name) => match &self.hidden.get(name.as_str())?.value {
                Value::Expression(expression) => {
                    Some(f.write_str("(").and_then(|()| self.node(f, &expression.root)).and_then(|()| f.write_str(")")))
                }
                value => Some(self.value(f, value)),
            },
            Kind::Apply(Operation::Sub, args) => {
                let [left, Node { kind: Kind::Name(rest), .. }] = args.as_slice() else { return None };
                let Kind::Apply(Operation::Sub, args) = &left.kind else { return None };
                let [of, Node { kind: Kind::Name(mean), .. }] = args.as_slice() else { return None };
                let pair = self.hidden.get(mean.as_str())?;
                (pair.names == [mean.as_str(), rest.as_str()]).then(|| self.centered(f, of))
            }
            _ => None,
        }
    }

    fn centered(&self, f: &mut fmt::Formatter<'_>, of: &Node) -> fmt::Result {
        let hidden = match &of.kind {
            Kind::Name(name) => self.hidden.get(name.as_str()).map(|d| &d.value),
            _ => None,
        };
        f.write_str("centered(")?;
        match hidden {
            Some(Value::Expression(expression)) => self.node(f, &expression.root)?,
            _ => self.node(f, of)?,
        }
        f.write_str(")")
    }
}

/// The longest text of a value in a message.
const SHORT: usize = 30;

/// The message with the texts of values that were written without a name, in place of their names.
pub(super) fn with_texts(body: &Body, message: &str) -> String {
    let printer = Printer::new(body);
    let mut parts = message.split('$');
    let mut shown = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        let text =
            printer.hidden.get(format!("${}", &part[..digits]).as_str()).map(|d| Text(&printer, &d.value).to_string());
        match text.filter(|text| text.len() <= SHORT) {
            Some(text) => shown.push_str(&text),
            None => shown.push_str("..."),
        }
        shown.push_str(&part[digits..]);
    }
    shown
}

/// The text of a reduced value, for a message.
pub(super) fn short(body: &Body, reduction: &Reduction) -> String {
    let text = Text(&Printer::new(body), &Value::Expression(reduction.of.clone())).to_string();
    if text.len() <= SHORT { text } else { "...".to_string() }
}
