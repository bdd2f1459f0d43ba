//! The layers and edges of an OpenVINO IR file, read from its XML.
//!
//! The text is parsed by `roxmltree`, which expands no entities beyond fixed limits and reads nothing else. Bodies of
//! `TensorIterator`, `Loop` and `If` lie inside of their layer and are not read.

use roxmltree::{Document, Node, ParsingOptions};
use std::collections::HashMap;

/// The most layers of a model.
pub const MAX_LAYERS: usize = 100_000;

/// The most elements, attributes and texts of the XML.
pub const MAX_XML_NODES: u32 = 8_000_000;

/// The longest XML text, in bytes.
pub const MAX_XML: usize = 1 << 30;

/// The greatest rank of a tensor.
pub const MAX_RANK: usize = 64;

/// The most input or output ports of a layer.
pub const MAX_PORTS: usize = 1000;

/// A fault of the XML.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetError {
    /// The bytes are no UTF-8 text.
    #[error("the file is no OpenVINO model: it is no UTF-8 text")]
    Text,
    /// The text is too long.
    #[error("the XML has {found} bytes; the limit is {limit}")]
    Long {
        /// The bytes of the text.
        found: usize,
        /// The most bytes.
        limit: usize,
    },
    /// The text is no XML.
    #[error("the file is no OpenVINO model: it is no XML: {0}")]
    Xml(String),
    /// The root is no `net`.
    #[error("the file is no OpenVINO model: its root element is `{0}`, and that of a model is `net`")]
    Root(String),
    /// A version of the format that is not read.
    #[error("the IR version is {0:?}; 10 and 11 are read")]
    Version(String),
    /// An element lacks an attribute or has a wrong one.
    #[error("line {line}: <{element}>: {fault}")]
    Element {
        /// The line of the element.
        line: u32,
        /// Its tag.
        element: String,
        /// The fault.
        fault: String,
    },
    /// The model has more of something than is read.
    #[error("more than {limit} {what}")]
    TooMany {
        /// The things that are counted.
        what: &'static str,
        /// The most of them.
        limit: usize,
    },
}

/// A model: layers in the order of the file, and edges.
#[derive(Debug)]
pub(crate) struct Net {
    pub layers: Vec<Layer>,
    /// For each input, by the place of its layer and the id of its port, the place of a layer and the id of its output.
    pub edges: HashMap<(usize, u64), (usize, u64)>,
}

/// A layer.
#[derive(Debug)]
pub(crate) struct Layer {
    pub name: String,
    pub kind: String,
    /// The set of ops, such as `opset1`.
    pub opset: String,
    pub data: HashMap<String, String>,
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
    /// The names of a result.
    pub output_names: String,
}

/// A port of a layer.
#[derive(Debug)]
pub(crate) struct Port {
    pub id: u64,
    pub precision: String,
    /// The extents; -1 for one that the model does not know.
    pub dims: Vec<i64>,
    pub names: String,
}

/// Reads the XML.
pub(crate) fn net(bytes: &[u8]) -> Result<Net, NetError> {
    if bytes.len() > MAX_XML {
        return Err(NetError::Long { found: bytes.len(), limit: MAX_XML });
    }
    let text = std::str::from_utf8(bytes).map_err(|_| NetError::Text)?;
    check_depth(text)?;
    let options = ParsingOptions { allow_dtd: false, nodes_limit: MAX_XML_NODES, ..ParsingOptions::default() };
    let document =
        Document::parse_with_options(text, options).map_err(|error| NetError::Xml(both_ends(&error.to_string())))?;
    let root = document.root_element();
    if root.tag_name().name() != "net" {
        return Err(NetError::Root(shortened(root.tag_name().name())));
    }
    match root.attribute("version") {
        Some("10" | "11") => {}
        version => return Err(NetError::Version(shortened(version.unwrap_or("")))),
    }
    let mut places: HashMap<u64, usize> = HashMap::new();
    let mut layers = vec![];
    for element in children(root, "layers").flat_map(|list| children(list, "layer")) {
        if layers.len() == MAX_LAYERS {
            return Err(NetError::TooMany { what: "layers", limit: MAX_LAYERS });
        }
        let id = number(element, "id")?;
        if places.insert(id, layers.len()).is_some() {
            return Err(fault(element, format!("the id {id} stands twice")));
        }
        layers.push(layer(element)?);
    }
    let mut edges = HashMap::new();
    for edge in children(root, "edges").flat_map(|list| children(list, "edge")) {
        let place = |attribute: &str| -> Result<usize, NetError> {
            let id = number(edge, attribute)?;
            places.get(&id).copied().ok_or_else(|| fault(edge, format!("there is no layer {id}")))
        };
        let (from, to) = (place("from-layer")?, place("to-layer")?);
        let (out, into) = (number(edge, "from-port")?, number(edge, "to-port")?);
        if !layers[from].outputs.iter().any(|port| port.id == out) {
            return Err(fault(edge, format!("layer {:?} has no output port {out}", shortened(&layers[from].name))));
        }
        if !layers[to].inputs.iter().any(|port| port.id == into) {
            return Err(fault(edge, format!("layer {:?} has no input port {into}", shortened(&layers[to].name))));
        }
        if edges.insert((to, into), (from, out)).is_some() {
            return Err(fault(
                edge,
                format!("input port {into} of layer {:?} has two edges", shortened(&layers[to].name)),
            ));
        }
    }
    Ok(Net { layers, edges })
}

/// The greatest depth of elements; files of OpenVINO have some ten, bodies of loops some more.
const MAX_DEPTH: usize = 200;

/// Refuses a text whose elements lie too deep: the parser recurses into them.
fn check_depth(text: &str) -> Result<(), NetError> {
    let (mut depth, mut bytes) = (0usize, text.as_bytes());
    while let Some(at) = memchr(b'<', bytes) {
        bytes = &bytes[at + 1..];
        match bytes.first() {
            Some(b'/') => depth = depth.saturating_sub(1),
            Some(b'!' | b'?') | None => {}
            Some(_) => {
                let end = memchr(b'>', bytes).unwrap_or(bytes.len());
                if end == 0 || bytes[end - 1] != b'/' {
                    depth += 1;
                }
            }
        }
        if depth > MAX_DEPTH {
            return Err(NetError::TooMany { what: "elements in one another", limit: MAX_DEPTH });
        }
    }
    Ok(())
}

fn memchr(byte: u8, bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|&other| other == byte)
}

fn layer(element: Node) -> Result<Layer, NetError> {
    let data = children(element, "data").flat_map(|data| data.attributes());
    Ok(Layer {
        name: attribute(element, "name")?.into(),
        kind: attribute(element, "type")?.into(),
        opset: element.attribute("version").unwrap_or("").into(),
        data: data.map(|attribute| (attribute.name().into(), attribute.value().into())).collect(),
        inputs: ports(element, "input")?,
        outputs: ports(element, "output")?,
        output_names: element.attribute("output_names").unwrap_or("").into(),
    })
}

fn ports(layer: Node, list: &str) -> Result<Vec<Port>, NetError> {
    let mut found: Vec<Port> = vec![];
    for port in children(layer, list).flat_map(|list| children(list, "port")) {
        if found.len() == MAX_PORTS {
            return Err(NetError::TooMany { what: "ports of a layer", limit: MAX_PORTS });
        }
        let mut dims = vec![];
        for dim in children(port, "dim") {
            if dims.len() == MAX_RANK {
                return Err(NetError::TooMany { what: "axes of a port", limit: MAX_RANK });
            }
            let text = dim.text().unwrap_or("").trim();
            dims.push(text.parse().map_err(|_| fault(dim, format!("{:?} is no extent", shortened(text))))?);
        }
        let id = number(port, "id")?;
        let (precision, names) = (port.attribute("precision").unwrap_or(""), port.attribute("names").unwrap_or(""));
        found.push(Port { id, precision: precision.into(), dims, names: names.into() });
    }
    Ok(found)
}

fn children<'a, 'i>(element: Node<'a, 'i>, tag: &str) -> impl Iterator<Item = Node<'a, 'i>> {
    element.children().filter(move |child| child.is_element() && child.tag_name().name() == tag)
}

fn attribute<'a>(element: Node<'a, '_>, name: &str) -> Result<&'a str, NetError> {
    element.attribute(name).ok_or_else(|| fault(element, format!("there is no attribute `{name}`")))
}

fn number(element: Node, name: &str) -> Result<u64, NetError> {
    let text = attribute(element, name)?;
    text.parse().map_err(|_| fault(element, format!("{name}={:?} is no number", shortened(text))))
}

fn fault(element: Node, fault: String) -> NetError {
    let line = element.document().text_pos_at(element.range().start).row;
    NetError::Element { line, element: shortened(element.tag_name().name()), fault }
}

/// The message of the XML parser without the middle of a long name; the place in the file stands at its end.
fn both_ends(message: &str) -> String {
    let count = message.chars().count();
    if count <= 200 {
        return message.into();
    }
    let (first, last): (String, String) =
        (message.chars().take(120).collect(), message.chars().skip(count - 60).collect());
    format!("{first}...{last}")
}

/// The beginning of a text of the file, for a message.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.into(),
    }
}
