//! A model's layers, those first on which others depend.

use super::OpenVinoError;
use super::elementwise::formula;
use super::layer::{Cx, dtype};
use super::net::{Layer, Net, shortened};
use super::opaque::opaque;
use super::table::{How, MAX_OPSET, by_type, is_passed_through, is_reduction};
use crate::dims::check_bound;
use crate::error::cut;
use crate::front::{Lower, Operand, ReadOptions, Stop};
use crate::{DType, Data, Graph, GraphError};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// The results of the layers that were lowered, by the places of the layers.
type Done = FxHashMap<usize, Vec<Operand>>;

pub(super) fn read(net: &Net, bin: &[u8], options: &ReadOptions) -> Result<Graph, OpenVinoError> {
    let order = order(net)?;
    let table = by_type();
    let feeds = feeds_reductions(net, &order, &table);
    check_bound(&options.dims, &symbolic(net))?;
    let mut lower = Lower::default();
    let mut done: Done = FxHashMap::default();
    // Inputs have the order of the file.
    for (place, layer) in net.layers.iter().enumerate().filter(|(_, layer)| layer.kind == "Parameter") {
        let results = parameter(layer, options, &mut lower).map_err(|stop| layer_error(layer, stop))?;
        done.insert(place, vec![results]);
    }
    for &place in &order {
        let layer = &net.layers[place];
        if done.contains_key(&place) || layer.kind == "Result" {
            continue;
        }
        let results = match layer.kind.as_str() {
            "Const" => constant(layer, bin).map(|operand| vec![operand]),
            _ => operands(net, place, &done).and_then(|inputs| {
                let name = name(layer);
                let opset = opset(layer)?;
                let feeds_reduction = feeds[place];
                let mut cx = Cx { lower: &mut lower, layer, opset: opset.unwrap_or(1), inputs, name, feeds_reduction };
                let how = table.get(layer.kind.as_str()).filter(|_| opset.is_some());
                let results = match how {
                    None => Err(Stop::Opaque("no kernel computes this op".into())),
                    Some(How::Formula(text)) => formula(&mut cx, text),
                    Some(How::Row(lower, row)) => lower(&mut cx, row),
                    Some(How::Layer(lower)) => lower(&mut cx),
                };
                match results {
                    Err(Stop::Opaque(reason)) => opaque(&mut cx, reason),
                    results => results,
                }
            }),
        };
        done.insert(place, results.map_err(|stop| layer_error(layer, stop))?);
    }
    for (place, layer) in net.layers.iter().enumerate().filter(|(_, layer)| layer.kind == "Result") {
        let wrong = |stop| layer_error(layer, stop);
        let value = operands(net, place, &done).map_err(wrong)?.into_iter().next();
        let value = value.ok_or_else(|| wrong(Stop::Wrong("the result has no input".into())))?;
        let names = [first(&layer.output_names), source_name(net, place), layer.name.as_str()];
        let name = names.iter().find(|name| !name.is_empty() && !lower.has_output(name)).unwrap_or(&"");
        lower.output(name, &value).map_err(wrong)?;
    }
    Ok(lower.finish()?)
}

/// The name of the tensor at the first output port, or else of the layer.
fn name(layer: &Layer) -> &str {
    let of_port = layer.outputs.first().map_or("", |port| first(&port.names));
    if of_port.is_empty() { &layer.name } else { of_port }
}

/// The first of names with commas between them; a comma of a name has a backslash.
fn first(names: &str) -> &str {
    let mut end = 0;
    for (at, c) in names.char_indices() {
        if c == ',' && !names[..at].ends_with('\\') {
            break;
        }
        end = at + c.len_utf8();
    }
    &names[..end]
}

/// The name of the tensor that a result takes.
fn source_name(net: &Net, place: usize) -> &str {
    let port = net.layers[place].inputs.first().map(|port| port.id);
    let source = port.and_then(|port| net.edges.get(&(place, port)));
    let names = source.and_then(|&(from, out)| net.layers[from].outputs.iter().find(|port| port.id == out));
    names.map_or("", |port| first(&port.names))
}

fn layer_error(layer: &Layer, stop: Stop) -> OpenVinoError {
    let reason = match stop {
        Stop::Wrong(reason) | Stop::Opaque(reason) => reason,
        Stop::Graph(error) => return error.into(),
    };
    let reason: String = reason.chars().take(1000).collect();
    GraphError::node(&layer.name, format!("{}: {reason}", shortened(&layer.kind))).into()
}

/// The number of a layer's set of ops; none for ops of extensions.
fn opset(layer: &Layer) -> Result<Option<u32>, Stop> {
    let Some(number) = layer.opset.strip_prefix("opset") else { return Ok(None) };
    match number.parse::<u32>() {
        Ok(number @ 1..=MAX_OPSET) => Ok(Some(number)),
        _ => {
            Err(Stop::Wrong(format!("the op is of {:?}; opset1 to opset{MAX_OPSET} are read", shortened(&layer.opset))))
        }
    }
}

/// The layers on which results depend, each after those it takes.
fn order(net: &Net) -> Result<Vec<usize>, OpenVinoError> {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done,
    }
    let mut states = vec![State::New; net.layers.len()];
    let mut order = vec![];
    // A layer with the number of its inputs that were visited; no recursion, as a model may be as deep as it is long.
    let mut open: Vec<(usize, usize)> = vec![];
    for result in (0..net.layers.len()).filter(|&place| net.layers[place].kind == "Result") {
        open.push((result, 0));
        states[result] = State::Open;
        while let Some((place, visited)) = open.last_mut() {
            let place = *place;
            let layer = &net.layers[place];
            let Some(port) = layer.inputs.get(*visited) else {
                states[place] = State::Done;
                order.push(place);
                open.pop();
                continue;
            };
            *visited += 1;
            let Some(&(from, _)) = net.edges.get(&(place, port.id)) else {
                return Err(layer_error(layer, Stop::Wrong(format!("no edge leads to its input port {}", port.id))));
            };
            match states[from] {
                State::Done => {}
                State::Open => return Err(layer_error(layer, Stop::Wrong("the layer depends on itself".into()))),
                State::New => {
                    states[from] = State::Open;
                    open.push((from, 0));
                }
            }
        }
    }
    Ok(order)
}

/// The operands of a layer, whose own layers are done.
fn operands(net: &Net, place: usize, done: &Done) -> Result<Vec<Operand>, Stop> {
    let layer = &net.layers[place];
    let operand = |port: u64| {
        let &(from, out) = net.edges.get(&(place, port))?;
        let at = net.layers[from].outputs.iter().position(|output| output.id == out)?;
        done.get(&from)?.get(at).cloned()
    };
    let missing = |port: u64| Stop::Wrong(format!("its input port {port} has no value"));
    layer.inputs.iter().map(|port| operand(port.id).ok_or_else(|| missing(port.id))).collect()
}

/// The names of the axes that can be bound, and of those whose extents are known, which are refused by their parameters.
fn symbolic(net: &Net) -> BTreeSet<String> {
    let parameters = net.layers.iter().filter(|layer| layer.kind == "Parameter");
    let named = |layer: &Layer| {
        let shape = layer.data.get("shape").map_or("", String::as_str).to_string();
        let name = name(layer).to_string();
        let axes = shape.split(',').filter(|extent| !extent.trim().is_empty()).count();
        (0..axes).map(move |axis| format!("{name}.{axis}"))
    };
    parameters.flat_map(named).collect()
}

fn parameter(layer: &Layer, options: &ReadOptions, lower: &mut Lower) -> Result<Operand, Stop> {
    let name = name(layer);
    if let Some(data) = options.values.get(name) {
        return Ok(Operand::Known(data.clone()));
    }
    let of = layer.data.get("element_type").map_or("", String::as_str);
    let Some(of) = dtype(of) else {
        return Ok(Operand::Foreign(format!("element type {:?} is none of the library's", shortened(of))));
    };
    let text = layer.data.get("shape").ok_or("attribute `shape` is missing")?;
    let mut shape = vec![];
    for (axis, extent) in text.split(',').map(str::trim).filter(|extent| !extent.is_empty()).enumerate() {
        let by_place = format!("{name}.{axis}");
        shape.push(match (extent.parse::<u64>(), options.dims.get(&by_place)) {
            (Ok(extent), None) => extent,
            (Ok(extent), Some(_)) => {
                return Err(Stop::Wrong(format!("axis {axis} is {extent}, so `{by_place}` cannot be bound")));
            }
            (Err(_), Some(&extent)) => extent,
            (Err(_), None) if extent == "..." => return Err("the rank is dynamic".into()),
            (Err(_), None) => {
                let place = format!("node `{}`, axis {axis}", cut(name));
                return Err(Stop::Graph(GraphError::Unbound { place, dim: cut(&by_place) }));
            }
        });
    }
    Ok(lower.input(name, of, &shape)?)
}

fn constant(layer: &Layer, bin: &[u8]) -> Result<Operand, Stop> {
    let of = layer.data.get("element_type").map_or("", String::as_str);
    let Some(of) = dtype(of) else {
        return Ok(Operand::Foreign(format!("element type {:?} is none of the library's", shortened(of))));
    };
    let number = |name: &str| -> Result<u64, Stop> {
        let text = layer.data.get(name).ok_or_else(|| format!("attribute `{name}` is missing"))?;
        text.parse().map_err(|_| Stop::Wrong(format!("attribute {name}={:?} is no number", shortened(text))))
    };
    let text = layer.data.get("shape").map_or("", String::as_str);
    let extents = text.split(',').map(str::trim).filter(|extent| !extent.is_empty());
    let shape = extents.map(str::parse).collect::<Result<Vec<u64>, _>>();
    let shape = shape.map_err(|_| format!("the shape {:?} of a constant", shortened(text)))?;
    let (offset, size) = (number("offset")?, number("size")?);
    let end = offset.checked_add(size).filter(|&end| end <= bin.len() as u64);
    let end = end.ok_or_else(|| match bin.len() {
        0 => format!("its {size} bytes lie in the .bin file beside the model, which is missing or empty"),
        length => format!("{size} bytes at {offset} leave the .bin file of {length} bytes"),
    })?;
    let raw = &bin[offset as usize..end as usize];
    // A constant of one value may be stored once.
    let bytes = match of == DType::Bool {
        true => raw.iter().map(|&byte| u8::from(byte != 0)).collect(),
        false => crate::front::native(of, raw),
    };
    Ok(Operand::Known(Data::new(of, &shape, bytes)?))
}

/// For each layer: a reduction takes its results, perhaps through formulas and views.
fn feeds_reductions(net: &Net, order: &[usize], table: &FxHashMap<&'static str, How>) -> Vec<bool> {
    let mut feeds = vec![false; net.layers.len()];
    for &place in order.iter().rev() {
        let layer = &net.layers[place];
        let how = table.get(layer.kind.as_str());
        let passes = how.is_some_and(|&how| is_passed_through(how, &layer.kind)) && feeds[place];
        if passes || is_reduction(&layer.kind) {
            for port in &layer.inputs {
                if let Some(&(from, _)) = net.edges.get(&(place, port.id)) {
                    feeds[from] = true;
                }
            }
        }
    }
    feeds
}
