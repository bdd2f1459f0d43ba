//! The canonical form of a body: one for all spellings of the same values.

use super::{Body, BodyInput, Definition, Reduction, Value, types};
use crate::DType;
use crate::expression::Expression;
use crate::expression::literal::Literal;
use crate::expression::node::{Kind, Node, Operation};
use crate::expression::parse;
use crate::ops::OpCall;
use rustc_hash::FxHashMap;

impl Body {
    /// The canonical form.
    ///
    /// Equal subexpressions become one value, across definitions and stages. Inputs are called `x0`, `x1` and so on by
    /// their place, values `v0`, `v1` and so on in the order in which the outputs need them. A value that is used once
    /// stands where it is used, one that is used several times is a definition, and so is every reduction, position and
    /// old element. Definitions that only rename, and unused ones, vanish. Operations among numbers are done; no other
    /// arithmetic is changed. Axes behind the last one that a position or total names are forgotten.
    ///
    /// ```
    /// use cranefold_ir::DType;
    /// use cranefold_ir::region::{Body, BodyInput, Reach};
    ///
    /// let body = |text: &str| {
    ///     let x = BodyInput { name: "x".into(), dtype: DType::F32, reach: Reach::Element };
    ///     Body::parse(text, vec![x], &[false, true], DType::F32)
    /// };
    /// let short = body("(x - mean(x)) / sqrt(mean((x - mean(x)) * (x - mean(x))))")?;
    /// let long = body("m = mean(x); c = x - m; d = c; s = c * d; r = sqrt(mean(s)); d / r")?;
    /// assert_eq!(short.canonical(), long.canonical());
    /// assert_eq!(long.canonical().to_string(), "v0 = mean(x0)\nv1 = x0 - v0\nv2 = mean(v1 * v1)\nv1 / sqrt(v2)");
    /// # Ok::<(), cranefold_ir::region::RegionError>(())
    /// ```
    pub fn canonical(&self) -> Body {
        let mut graph = Graph::of(self);
        let outputs = graph.outputs.clone();
        graph.choose_names(&outputs);
        graph.body(self, &outputs)
    }
}

/// A value by its number; operands have smaller numbers.
type Id = usize;

/// A value over others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Item {
    Number(Literal),
    Input(usize),
    Apply(Operation, Vec<Id>),
    Reduction {
        call: OpCall,
        of: Id,
        over: Option<Vec<usize>>,
    },
    /// A result of a reduction.
    Result(Id, usize),
    Position(usize),
    Old(usize),
}

impl Item {
    fn operands(&self) -> &[Id] {
        match self {
            Item::Apply(_, operands) => operands,
            Item::Reduction { of, .. } | Item::Result(of, _) => std::slice::from_ref(of),
            _ => &[],
        }
    }
}

/// The greatest depth and number of nodes of an expression that stands inside another one.
const MOST_DEPTH: usize = 50;
const MOST_NODES: usize = 100;

/// The values of a body, each once.
struct Graph {
    items: Vec<Item>,
    /// The type of each value; none for a number, and for a choice between numbers.
    dtypes: Vec<Option<DType>>,
    known: FxHashMap<Item, Id>,
    accumulator: DType,
    outputs: Vec<Id>,
    /// For each value, true if it is a definition.
    named: Vec<bool>,
}

impl Graph {
    fn of(body: &Body) -> Graph {
        let mut graph = Graph {
            items: vec![],
            dtypes: vec![],
            known: FxHashMap::default(),
            accumulator: body.accumulator,
            outputs: vec![],
            named: vec![],
        };
        let old = types::types(body, &|_| 0).ok();
        let mut names: FxHashMap<&str, Id> = FxHashMap::default();
        for (i, input) in body.inputs.iter().enumerate() {
            let dtype = types::of_input(input.dtype, body.accumulator);
            names.insert(&input.name, graph.add(Item::Input(i), Some(dtype)));
        }
        for (d, definition) in body.definitions.iter().enumerate() {
            let dtypes = old.as_ref().map(|types| types.definitions[d].as_slice()).unwrap_or_default();
            let dtype = |k: usize| Some(dtypes.get(k).copied().unwrap_or(body.accumulator));
            match &definition.value {
                Value::Expression(expression) => {
                    let id = graph.node(&expression.root, &names);
                    let id = graph.given(id, body.accumulator);
                    definition.names.iter().for_each(|name| graph.name(&mut names, name, id));
                }
                Value::Reduction(Reduction { call, of, over }) => {
                    let of = graph.root(&of.root, &names);
                    let item = Item::Reduction { call: call.clone(), of, over: over.clone() };
                    let reduction = graph.add(item, None);
                    for (k, name) in definition.names.iter().enumerate() {
                        let id = graph.add(Item::Result(reduction, k), dtype(k));
                        graph.name(&mut names, name, id);
                    }
                }
                Value::Position(axis) => {
                    let id = graph.add(Item::Position(*axis), dtype(0));
                    definition.names.iter().for_each(|name| graph.name(&mut names, name, id));
                }
                Value::Old(output) => {
                    let id = graph.add(Item::Old(*output), dtype(0));
                    definition.names.iter().for_each(|name| graph.name(&mut names, name, id));
                }
            }
        }
        graph.outputs = body.outputs.iter().map(|output| graph.root(&output.root, &names)).collect();
        graph
    }

    fn name<'a>(&self, names: &mut FxHashMap<&'a str, Id>, name: &'a str, id: Id) {
        names.insert(name, id);
    }

    fn add(&mut self, item: Item, dtype: Option<DType>) -> Id {
        if let Some(&id) = self.known.get(&item) {
            return id;
        }
        self.items.push(item.clone());
        self.dtypes.push(dtype);
        self.known.insert(item, self.items.len() - 1);
        self.items.len() - 1
    }

    /// The value of a whole expression: a choice between numbers has the accumulator's type.
    fn root(&mut self, node: &Node, names: &FxHashMap<&str, Id>) -> Id {
        let id = self.node(node, names);
        self.chosen(id, self.accumulator)
    }

    fn node(&mut self, node: &Node, names: &FxHashMap<&str, Id>) -> Id {
        if let Some(number) = node.number() {
            return self.add(Item::Number(number), None);
        }
        match &node.kind {
            Kind::Name(name) => match names.get(name.as_str()) {
                Some(&id) => id,
                // No body that was read has an unknown name.
                None => self.add(Item::Input(usize::MAX), Some(self.accumulator)),
            },
            Kind::Apply(operation, args) => {
                let args: Vec<Id> = args.iter().map(|arg| self.node(arg, names)).collect();
                self.apply(*operation, args)
            }
            Kind::Number(number) => self.add(Item::Number(*number), None),
            Kind::Invalid(_) => self.add(Item::Number(Literal::Real(f64::NAN)), None),
        }
    }

    /// An operation; choices between numbers take the type that they have beside the other operands.
    fn apply(&mut self, operation: Operation, mut args: Vec<Id>) -> Id {
        if let Operation::Cast(dtype) = operation {
            return self.add(Item::Apply(operation, args), Some(dtype));
        }
        let first = if operation == Operation::Select { 1 } else { 0 };
        let typed = args[first..].iter().find_map(|&arg| self.dtypes[arg]);
        let dtype = match (operation, typed) {
            (Operation::Select, None) => return self.add(Item::Apply(operation, args), None),
            (Operation::And | Operation::Or | Operation::Not, None) => DType::Bool,
            (_, typed) => typed.unwrap_or(self.accumulator),
        };
        for arg in &mut args[first..] {
            *arg = self.chosen(*arg, dtype);
        }
        let result = operation.result(dtype);
        self.add(Item::Apply(operation, args), Some(result))
    }

    /// The value in a type if it is a choice between numbers; else the value.
    fn chosen(&mut self, id: Id, dtype: DType) -> Id {
        if self.is_choice(id) { self.given(id, dtype) } else { id }
    }

    /// Returns true for a choice between numbers.
    fn is_choice(&self, id: Id) -> bool {
        self.dtypes[id].is_none() && matches!(self.items[id], Item::Apply(..))
    }

    /// The value in a type if it has none; else the value.
    fn given(&mut self, id: Id, dtype: DType) -> Id {
        match self.dtypes[id] {
            Some(_) => id,
            None => self.add(Item::Apply(Operation::Cast(dtype), vec![id]), Some(dtype)),
        }
    }

    /// Decides which of the values that the outputs need are definitions.
    fn choose_names(&mut self, outputs: &[Id]) {
        let mut uses = vec![0u64; self.items.len()];
        outputs.iter().for_each(|&output| uses[output] += 1);
        for id in (0..self.items.len()).rev().filter(|&id| !matches!(self.items[id], Item::Number(_))) {
            // A choice between numbers is no definition: it stands wherever it is used.
            let times = if self.is_choice(id) { uses[id] } else { uses[id].min(1) };
            for &operand in self.items[id].operands() {
                uses[operand] = uses[operand].saturating_add(times);
            }
        }
        self.named = vec![false; self.items.len()];
        let (mut depths, mut nodes) = (vec![0; self.items.len()], vec![1; self.items.len()]);
        for id in 0..self.items.len() {
            match &self.items[id] {
                Item::Result(..) | Item::Position(_) | Item::Old(_) => self.named[id] = true,
                Item::Apply(_, args) => {
                    let inside = || args.iter().filter(|&&arg| !self.named[arg]);
                    depths[id] = 1 + inside().map(|&arg| depths[arg]).max().unwrap_or(0);
                    nodes[id] = 1 + args.len() + inside().map(|&arg| nodes[arg]).sum::<usize>();
                    let large = depths[id] >= MOST_DEPTH || nodes[id] >= MOST_NODES;
                    self.named[id] = self.dtypes[id].is_some() && (uses[id] > 1 || large);
                }
                _ => {}
            }
        }
        // An output alone needs no name, however large it is.
        for &output in outputs {
            if matches!(self.items[output], Item::Apply(..)) && uses[output] == 1 {
                self.named[output] = false;
            }
        }
    }

    /// The definitions that values need, operands first, in the order of the outputs.
    fn order(&self, outputs: &[Id]) -> Vec<Id> {
        let (mut order, mut seen) = (vec![], vec![false; self.items.len()]);
        // The number of operands that were walked stands beside each value.
        let mut walk: Vec<(Id, usize)> = vec![];
        for &output in outputs {
            walk.push((output, 0));
            while let Some((id, next)) = walk.pop() {
                if next == 0 && std::mem::replace(&mut seen[id], true) {
                    continue;
                }
                match self.items[id].operands().get(next) {
                    Some(&operand) => walk.extend([(id, next + 1), (operand, 0)]),
                    None if matches!(self.items[id], Item::Reduction { .. }) => order.push(id),
                    None if self.named[id] && !matches!(self.items[id], Item::Result(..)) => order.push(id),
                    None => {}
                }
            }
        }
        order
    }

    fn body(&self, body: &Body, outputs: &[Id]) -> Body {
        let mut names: FxHashMap<Id, String> = FxHashMap::default();
        let mut numbers = 0..;
        let mut fresh = || format!("v{}", numbers.next().unwrap_or(0usize));
        let mut definitions = vec![];
        for id in self.order(outputs) {
            let (own, value) = match &self.items[id] {
                Item::Reduction { call, of, over } => {
                    let own: Vec<String> = call.results().iter().map(|_| fresh()).collect();
                    for (k, name) in own.iter().enumerate() {
                        if let Some(&result) = self.known.get(&Item::Result(id, k)) {
                            names.insert(result, name.clone());
                        }
                    }
                    let reduction =
                        Reduction { call: call.clone(), of: self.expression(*of, &names), over: over.clone() };
                    (own, Value::Reduction(reduction))
                }
                Item::Position(axis) => (vec![fresh()], Value::Position(*axis)),
                Item::Old(output) => (vec![fresh()], Value::Old(*output)),
                _ => (vec![fresh()], Value::Expression(placed(self.inside(id, &names)))),
            };
            if !matches!(value, Value::Reduction(_)) {
                names.insert(id, own[0].clone());
            }
            definitions.push(Definition { names: own, value });
        }
        let input = |(i, input): (usize, &BodyInput)| BodyInput { name: format!("x{i}"), ..input.clone() };
        Body {
            inputs: body.inputs.iter().enumerate().map(input).collect(),
            reduced: named_axes(body, &definitions),
            outputs: outputs.iter().map(|&output| self.expression(output, &names)).collect(),
            definitions,
            accumulator: body.accumulator,
        }
    }

    fn expression(&self, id: Id, names: &FxHashMap<Id, String>) -> Expression {
        placed(self.tree(id, names))
    }

    /// The tree of a value: its name if it is a definition.
    fn tree(&self, id: Id, names: &FxHashMap<Id, String>) -> Node {
        match names.get(&id) {
            Some(name) => Node::leaf(Kind::Name(name.clone()), 0),
            None => self.inside(id, names),
        }
    }

    /// The tree of a value, whatever its name.
    fn inside(&self, id: Id, names: &FxHashMap<Id, String>) -> Node {
        match &self.items[id] {
            Item::Number(number) => Node::of_number(*number, 0),
            Item::Input(input) => Node::leaf(Kind::Name(format!("x{input}")), 0),
            Item::Apply(operation, args) => {
                Node::of_any_depth(*operation, args.iter().map(|&arg| self.tree(arg, names)).collect())
            }
            other => unreachable!("{other:?} is a definition"),
        }
    }
}

/// The expression of a tree, with places in its own text; at its beginning if it is deeper than texts may be.
fn placed(root: Node) -> Expression {
    let text = root.to_string();
    let root = parse::one(&text).unwrap_or(root);
    Expression { root, text: Some(text.into()) }
}

/// For each axis up to the last one that definitions name, true if it is reduced.
fn named_axes(body: &Body, definitions: &[Definition]) -> Vec<bool> {
    let last = definitions.iter().filter_map(|definition| match &definition.value {
        Value::Position(axis) => Some(*axis),
        Value::Reduction(Reduction { over: Some(over), .. }) => over.last().copied(),
        _ => None,
    });
    body.reduced.iter().copied().take(last.max().map_or(0, |last| last + 1)).collect()
}
