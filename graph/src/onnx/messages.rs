//! The messages of ONNX that a graph needs, borrowed from a model's bytes.
//!
//! Ten messages of `onnx.proto` are read: model, graph, function, node, attribute, tensor, value info, type, operator set
//! and the entries of external data. Documentation, metadata and training information are passed over. A body of
//! attributes (the branches of `If`, the body of `Loop`) is read to its node's captured names and no further.
//!
//! # Limits
//!
//! A field of two bytes can stand for a message that takes a hundred bytes of memory. Therefore [`Limits`] counts: nodes,
//! every other message and list element, and how deep graphs lie in attributes of graphs. Tensors stay where they are in
//! the bytes until their values are asked for.

use super::wire::{Fields, WireError};
use std::collections::HashSet;

/// The most nodes of a model, those of its functions and of graphs in attributes among them.
pub const MAX_NODES: usize = 100_000;

/// The most names, attributes, list elements and messages of a model that are not nodes.
pub const MAX_ITEMS: usize = 4_000_000;

/// The greatest depth of graphs in attributes of nodes.
pub const MAX_GRAPH_DEPTH: usize = 32;

/// The most attributes of a node.
const MAX_ATTRIBUTES: usize = 10_000;

/// The greatest rank of a tensor.
pub const MAX_RANK: usize = 64;

/// A fault of a model's messages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// A message is no message.
    #[error("{}", wire_fault(message, fault))]
    Wire {
        /// The name of the message in `onnx.proto`.
        message: &'static str,
        /// The fault.
        fault: WireError,
    },
    /// The model has more of something than is read.
    #[error("more than {limit} {what}")]
    TooMany {
        /// The things that are counted.
        what: &'static str,
        /// The most of them.
        limit: usize,
    },
    /// The model has no graph.
    #[error("the file is no ONNX model: there is no graph in it")]
    NoGraph,
}

/// The message of a fault. Bytes whose outermost message is none are another file; a fault deeper is damage.
fn wire_fault(message: &str, fault: &WireError) -> String {
    match (message, fault) {
        ("ModelProto", WireError::Short { .. }) => {
            format!("the file is no ONNX model, or only the beginning of one: {fault}")
        }
        ("ModelProto", _) => format!("the file is no ONNX model: {fault}"),
        _ => format!("the ONNX model is damaged, in a {message}: {fault}"),
    }
}

/// The counters of one model.
#[derive(Debug, Default)]
struct Limits {
    nodes: usize,
    items: usize,
}

impl Limits {
    fn node(&mut self) -> Result<(), MessageError> {
        self.nodes += 1;
        match self.nodes > MAX_NODES {
            true => Err(MessageError::TooMany { what: "nodes", limit: MAX_NODES }),
            false => Ok(()),
        }
    }

    fn item(&mut self) -> Result<(), MessageError> {
        self.items += 1;
        match self.items > MAX_ITEMS {
            true => Err(MessageError::TooMany { what: "names, attributes and list elements", limit: MAX_ITEMS }),
            false => Ok(()),
        }
    }
}

/// Reads a message of this name field by field.
macro_rules! fields {
    ($name:literal, $bytes:expr, $field:ident => { $($number:pat => $body:expr,)* }) => {{
        let mut fields = Fields::of($bytes);
        loop {
            let next = fields.next().map_err(|fault| MessageError::Wire { message: $name, fault })?;
            let Some($field) = next else { break };
            let mut read = || -> Result<(), Fault> {
                match $field.number {
                    $($number => $body,)*
                    _ => {}
                }
                Ok(())
            };
            read().map_err(|fault| fault.of($name))?;
        }
    }};
}

/// A fault within a message: its own, or that of a message in it.
enum Fault {
    Wire(WireError),
    Message(MessageError),
}

impl Fault {
    fn of(self, message: &'static str) -> MessageError {
        match self {
            Fault::Wire(fault) => MessageError::Wire { message, fault },
            Fault::Message(error) => error,
        }
    }
}

impl From<WireError> for Fault {
    fn from(fault: WireError) -> Fault {
        Fault::Wire(fault)
    }
}

impl From<MessageError> for Fault {
    fn from(error: MessageError) -> Fault {
        Fault::Message(error)
    }
}

/// `ModelProto`.
#[derive(Debug)]
pub(crate) struct Model<'a> {
    pub ir_version: i64,
    pub opsets: Vec<Opset<'a>>,
    pub graph: Graph<'a>,
    pub functions: Vec<Function<'a>>,
}

/// `OperatorSetIdProto`.
#[derive(Clone, Debug)]
pub(crate) struct Opset<'a> {
    pub domain: &'a str,
    pub version: i64,
}

/// `GraphProto`.
#[derive(Debug, Default)]
pub(crate) struct Graph<'a> {
    pub nodes: Vec<Node<'a>>,
    pub initializers: Vec<Tensor<'a>>,
    /// The names of sparse initializers, which no op takes.
    pub sparse: Vec<&'a str>,
    pub inputs: Vec<ValueInfo<'a>>,
    pub outputs: Vec<ValueInfo<'a>>,
    pub value_info: Vec<ValueInfo<'a>>,
}

/// `FunctionProto`.
#[derive(Debug, Default)]
pub(crate) struct Function<'a> {
    pub name: &'a str,
    pub domain: &'a str,
    pub overload: &'a str,
    pub inputs: Vec<&'a str>,
    pub outputs: Vec<&'a str>,
    pub nodes: Vec<Node<'a>>,
    pub opsets: Vec<Opset<'a>>,
    /// The attributes that have a default.
    pub defaults: Vec<Attribute<'a>>,
    pub value_info: Vec<ValueInfo<'a>>,
}

/// `NodeProto`.
#[derive(Debug, Default)]
pub(crate) struct Node<'a> {
    pub name: &'a str,
    pub op: &'a str,
    pub domain: &'a str,
    pub overload: &'a str,
    pub inputs: Vec<&'a str>,
    pub outputs: Vec<&'a str>,
    pub attributes: Vec<Attribute<'a>>,
}

/// `AttributeProto`.
#[derive(Clone, Debug)]
pub(crate) struct Attribute<'a> {
    pub name: &'a str,
    /// The attribute of the function that gives the value.
    pub reference: &'a str,
    pub value: AttributeValue<'a>,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AttributeValue<'a> {
    /// A reference to an attribute of the function, or an attribute without a value.
    None,
    Float(f32),
    Int(i64),
    Text(&'a [u8]),
    Tensor(Tensor<'a>),
    Floats(Vec<f32>),
    Ints(Vec<i64>),
    Texts(Vec<&'a [u8]>),
    /// Graphs: the names from outside that their nodes take.
    Graphs(Vec<&'a str>),
    /// A sparse tensor or a type.
    Other,
}

/// `TensorProto`, whose values are still in its message.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tensor<'a> {
    pub name: &'a str,
    pub dims: Vec<i64>,
    pub data_type: i64,
    pub raw: Option<&'a [u8]>,
    pub external: bool,
    /// The entries of external data: `location`, `offset`, `length`.
    pub entries: Vec<(&'a str, &'a str)>,
    /// The bytes of the message, in which typed values lie.
    pub message: &'a [u8],
}

/// `ValueInfoProto` of a tensor.
#[derive(Clone, Debug, Default)]
pub(crate) struct ValueInfo<'a> {
    pub name: &'a str,
    /// The element type; 0 for no tensor.
    pub elem_type: i64,
    /// The dims, or none where nothing is known.
    pub dims: Option<Vec<Dim<'a>>>,
    /// True of a sequence, a map, an optional value or a sparse tensor.
    pub is_other: bool,
}

/// A dim of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dim<'a> {
    Known(i64),
    Symbol(&'a str),
    Unknown,
}

/// Reads a model.
pub(crate) fn model(bytes: &[u8]) -> Result<Model<'_>, MessageError> {
    let limits = &mut Limits::default();
    let mut found = Model { ir_version: 0, opsets: vec![], graph: Graph::default(), functions: vec![] };
    let mut graphs = 0;
    fields!("ModelProto", bytes, field => {
        1 => found.ir_version = field.int()?,
        7 => {
            graphs += 1;
            if graphs > 1 {
                return Err(WireError::Twice { field: 7 }.into());
            }
            found.graph = graph(field.bytes()?, limits, 0)?;
        },
        8 => found.opsets.push(opset(field.bytes()?, limits)?),
        25 => found.functions.push(function(field.bytes()?, limits)?),
    });
    match graphs {
        0 => Err(MessageError::NoGraph),
        _ => Ok(found),
    }
}

fn opset<'a>(bytes: &'a [u8], limits: &mut Limits) -> Result<Opset<'a>, MessageError> {
    limits.item()?;
    let mut found = Opset { domain: "", version: 0 };
    fields!("OperatorSetIdProto", bytes, field => {
        1 => found.domain = field.text()?,
        2 => found.version = field.int()?,
    });
    Ok(found)
}

fn graph<'a>(bytes: &'a [u8], limits: &mut Limits, depth: usize) -> Result<Graph<'a>, MessageError> {
    if depth > MAX_GRAPH_DEPTH {
        return Err(MessageError::TooMany { what: "graphs in attributes of one another", limit: MAX_GRAPH_DEPTH });
    }
    let mut found = Graph::default();
    fields!("GraphProto", bytes, field => {
        1 => found.nodes.push(node(field.bytes()?, limits, depth)?),
        5 => found.initializers.push(tensor(field.bytes()?, limits)?),
        11 => found.inputs.push(value_info(field.bytes()?, limits)?),
        12 => found.outputs.push(value_info(field.bytes()?, limits)?),
        13 => found.value_info.push(value_info(field.bytes()?, limits)?),
        15 => found.sparse.push(sparse(field.bytes()?, limits)?),
    });
    Ok(found)
}

fn function<'a>(bytes: &'a [u8], limits: &mut Limits) -> Result<Function<'a>, MessageError> {
    limits.item()?;
    let mut found = Function::default();
    fields!("FunctionProto", bytes, field => {
        1 => found.name = field.text()?,
        4 => push(&mut found.inputs, field.text()?, limits)?,
        5 => push(&mut found.outputs, field.text()?, limits)?,
        7 => found.nodes.push(node(field.bytes()?, limits, 0)?),
        9 => found.opsets.push(opset(field.bytes()?, limits)?),
        10 => found.domain = field.text()?,
        11 => found.defaults.push(attribute(field.bytes()?, limits, 0)?),
        12 => found.value_info.push(value_info(field.bytes()?, limits)?),
        13 => found.overload = field.text()?,
    });
    Ok(found)
}

fn push<T>(list: &mut Vec<T>, item: T, limits: &mut Limits) -> Result<(), MessageError> {
    limits.item()?;
    list.push(item);
    Ok(())
}

fn node<'a>(bytes: &'a [u8], limits: &mut Limits, depth: usize) -> Result<Node<'a>, MessageError> {
    limits.node()?;
    let mut found = Node::default();
    fields!("NodeProto", bytes, field => {
        1 => push(&mut found.inputs, field.text()?, limits)?,
        2 => push(&mut found.outputs, field.text()?, limits)?,
        3 => found.name = field.text()?,
        4 => found.op = field.text()?,
        5 => {
            if found.attributes.len() == MAX_ATTRIBUTES {
                return Err(MessageError::TooMany { what: "attributes of a node", limit: MAX_ATTRIBUTES }.into());
            }
            found.attributes.push(attribute(field.bytes()?, limits, depth)?);
        },
        7 => found.domain = field.text()?,
        8 => found.overload = field.text()?,
    });
    Ok(found)
}

/// The fields of an attribute before its type is known.
#[derive(Default)]
struct Parts<'a> {
    kind: i64,
    float: Option<f32>,
    int: Option<i64>,
    text: Option<&'a [u8]>,
    tensor: Option<Tensor<'a>>,
    floats: Vec<f32>,
    ints: Vec<i64>,
    texts: Vec<&'a [u8]>,
    graphs: Option<Vec<&'a str>>,
    other: bool,
}

fn attribute<'a>(bytes: &'a [u8], limits: &mut Limits, depth: usize) -> Result<Attribute<'a>, MessageError> {
    limits.item()?;
    let (mut name, mut reference, mut parts) = ("", "", Parts::default());
    fields!("AttributeProto", bytes, field => {
        1 => name = field.text()?,
        2 => parts.float = Some(field.float()?),
        3 => parts.int = Some(field.int()?),
        4 => parts.text = Some(field.bytes()?),
        5 => parts.tensor = Some(tensor(field.bytes()?, limits)?),
        6 | 11 => {
            let captured = captured(&graph(field.bytes()?, limits, depth + 1)?);
            parts.graphs.get_or_insert_default().extend(captured);
        },
        7 => field.floats(|value| push(&mut parts.floats, value, limits).map_err(Fault::from))?,
        8 => field.ints(|value| push(&mut parts.ints, value, limits).map_err(Fault::from))?,
        9 => push(&mut parts.texts, field.bytes()?, limits)?,
        10 | 14 | 15 | 22 | 23 => parts.other = true,
        20 => parts.kind = field.int()?,
        21 => reference = field.text()?,
    });
    Ok(Attribute { name, reference, value: parts.value() })
}

impl<'a> Parts<'a> {
    /// The value of the attribute's type. Models of before IR version 4 have no type: there the field that is set counts.
    fn value(self) -> AttributeValue<'a> {
        use AttributeValue::*;
        let set = match () {
            () if self.float.is_some() => 1,
            () if self.int.is_some() => 2,
            () if self.text.is_some() => 3,
            () if self.tensor.is_some() => 4,
            () if self.graphs.is_some() => 5,
            () if !self.floats.is_empty() => 6,
            () if !self.ints.is_empty() => 7,
            () if !self.texts.is_empty() => 8,
            () if self.other => 9,
            () => 0,
        };
        // A scalar with its default value may be left out of a message.
        match if self.kind == 0 { set } else { self.kind } {
            1 => Float(self.float.unwrap_or(0.0)),
            2 => Int(self.int.unwrap_or(0)),
            3 => Text(self.text.unwrap_or(b"")),
            4 => self.tensor.map_or(None, Tensor),
            5 | 10 => Graphs(self.graphs.unwrap_or_default()),
            6 => Floats(self.floats),
            7 => Ints(self.ints),
            8 => Texts(self.texts),
            0 => None,
            _ => Other,
        }
    }
}

/// The names that the nodes of a graph take from outside of it, each once, in their order.
fn captured<'a>(graph: &Graph<'a>) -> Vec<&'a str> {
    let mut known: HashSet<&str> = graph.inputs.iter().map(|input| input.name).collect();
    known.extend(graph.initializers.iter().map(|tensor| tensor.name));
    known.extend(graph.sparse.iter());
    let (mut found, mut seen) = (vec![], HashSet::new());
    let mut take = |name: &'a str, known: &HashSet<&str>| {
        if !name.is_empty() && !known.contains(name) && seen.insert(name) {
            found.push(name);
        }
    };
    for node in &graph.nodes {
        for &name in &node.inputs {
            take(name, &known);
        }
        for attribute in &node.attributes {
            if let AttributeValue::Graphs(names) = &attribute.value {
                for &name in names {
                    take(name, &known);
                }
            }
        }
        known.extend(node.outputs.iter());
    }
    for output in &graph.outputs {
        take(output.name, &known);
    }
    found
}

fn tensor<'a>(bytes: &'a [u8], limits: &mut Limits) -> Result<Tensor<'a>, MessageError> {
    limits.item()?;
    let mut found = Tensor { message: bytes, ..Tensor::default() };
    fields!("TensorProto", bytes, field => {
        1 => field.ints(|dim| rank(&mut found.dims, dim))?,
        2 => found.data_type = field.int()?,
        8 => found.name = field.text()?,
        9 => found.raw = Some(field.bytes()?),
        13 => push(&mut found.entries, entry(field.bytes()?)?, limits)?,
        14 => found.external = field.int()? == 1,
    });
    Ok(found)
}

fn rank<T>(dims: &mut Vec<T>, dim: T) -> Result<(), Fault> {
    if dims.len() == MAX_RANK {
        return Err(MessageError::TooMany { what: "axes of a tensor", limit: MAX_RANK }.into());
    }
    dims.push(dim);
    Ok(())
}

fn entry(bytes: &[u8]) -> Result<(&str, &str), MessageError> {
    let (mut key, mut value) = ("", "");
    fields!("StringStringEntryProto", bytes, field => {
        1 => key = field.text()?,
        2 => value = field.text()?,
    });
    Ok((key, value))
}

/// The name of a sparse tensor: that of its values.
fn sparse<'a>(bytes: &'a [u8], limits: &mut Limits) -> Result<&'a str, MessageError> {
    let mut name = "";
    fields!("SparseTensorProto", bytes, field => {
        1 => name = tensor(field.bytes()?, limits)?.name,
    });
    Ok(name)
}

fn value_info<'a>(bytes: &'a [u8], limits: &mut Limits) -> Result<ValueInfo<'a>, MessageError> {
    limits.item()?;
    let mut found = ValueInfo::default();
    fields!("ValueInfoProto", bytes, field => {
        1 => found.name = field.text()?,
        2 => type_of(field.bytes()?, &mut found)?,
    });
    Ok(found)
}

fn type_of<'a>(bytes: &'a [u8], found: &mut ValueInfo<'a>) -> Result<(), MessageError> {
    fields!("TypeProto", bytes, field => {
        1 => tensor_type(field.bytes()?, found)?,
        4 | 5 | 7 | 8 | 9 => found.is_other = true,
    });
    Ok(())
}

fn tensor_type<'a>(bytes: &'a [u8], found: &mut ValueInfo<'a>) -> Result<(), MessageError> {
    fields!("TypeProto.Tensor", bytes, field => {
        1 => found.elem_type = field.int()?,
        2 => found.dims = Some(shape(field.bytes()?)?),
    });
    Ok(())
}

fn shape(bytes: &[u8]) -> Result<Vec<Dim<'_>>, MessageError> {
    let mut dims = vec![];
    fields!("TensorShapeProto", bytes, field => {
        1 => rank(&mut dims, dim(field.bytes()?)?)?,
    });
    Ok(dims)
}

fn dim(bytes: &[u8]) -> Result<Dim<'_>, MessageError> {
    let mut found = Dim::Unknown;
    fields!("TensorShapeProto.Dimension", bytes, field => {
        1 => found = Dim::Known(field.int()?),
        2 => {
            let name = field.text()?;
            found = if name.is_empty() { Dim::Unknown } else { Dim::Symbol(name) };
        },
    });
    Ok(found)
}
