//! A model's nodes in order: names to operands, functions in the place of their calls.

use super::messages::{AttributeValue, Dim, Function, Graph, Model, Node, Opset, Tensor, ValueInfo};
use super::node::{Cx, Results};
use super::opaque::opaque;
use super::table::{How, MAX_OPSET, OpRow, by_name, is_passed_through, is_reduction};
use super::tensor::{External, dtype};
use super::{OnnxError, OnnxModel};
use crate::dims;
use crate::error::cut;
use crate::front::{Lower, Operand, ReadOptions, Stop, native};
use crate::{DType, Data, GraphError, MAX_NODES};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// The greatest depth of calls of functions.
const MAX_CALLS: usize = 64;

/// The reader of one model.
struct Reader<'m, 'a> {
    options: &'m ReadOptions,
    load: &'m mut dyn FnMut(&External) -> Result<Vec<u8>, String>,
    lower: Lower,
    table: FxHashMap<&'static str, &'static OpRow>,
    functions: FxHashMap<(&'a str, &'a str, &'a str), &'m Function<'a>>,
    /// The functions whose nodes are lowered, from the outermost on.
    calls: Vec<*const Function<'a>>,
    /// The nodes that were lowered, in functions too.
    lowered: usize,
    /// The tensors outside of the model that are inputs of the graph.
    external: Vec<(String, External)>,
}

/// The names that nodes see.
struct Scope<'m, 'a> {
    values: FxHashMap<&'a str, Operand>,
    call: FxHashMap<&'a str, AttributeValue<'a>>,
    opsets: &'m [Opset<'a>],
    said: FxHashMap<&'a str, &'m ValueInfo<'a>>,
    is_main: bool,
}

pub(super) fn read<'a>(
    model: &Model<'a>,
    options: &ReadOptions,
    load: &mut dyn FnMut(&External) -> Result<Vec<u8>, String>,
) -> Result<OnnxModel, OnnxError> {
    check_versions(model)?;
    check_bound(&model.graph, options)?;
    let functions = model.functions.iter().map(|f| ((f.domain, f.name, f.overload), f)).collect();
    let mut reader = Reader {
        options,
        load,
        lower: Lower::default(),
        table: by_name(),
        functions,
        calls: vec![],
        lowered: 0,
        external: vec![],
    };
    reader.main(model)?;
    Ok(OnnxModel { graph: reader.lower.finish()?, external: reader.external })
}

fn check_versions(model: &Model) -> Result<(), OnnxError> {
    for (opsets, of) in std::iter::once((&model.opsets, "the model"))
        .chain(model.functions.iter().map(|function| (&function.opsets, function.name)))
    {
        for opset in opsets.iter().filter(|opset| ["", "ai.onnx"].contains(&opset.domain)) {
            if !(1..=MAX_OPSET).contains(&opset.version) {
                let of = of.chars().take(80).collect();
                return Err(OnnxError::Opset { of, given: opset.version, limit: MAX_OPSET });
            }
        }
    }
    Ok(())
}

/// Refuses extents that are given to no dim.
fn check_bound(graph: &Graph, options: &ReadOptions) -> Result<(), OnnxError> {
    if options.dims.is_empty() {
        return Ok(());
    }
    let mut names: BTreeSet<String> = BTreeSet::new();
    let values = graph.inputs.iter().chain(&graph.outputs).chain(&graph.value_info);
    let symbols = values.flat_map(|value| value.dims.iter().flatten());
    names.extend(symbols.filter_map(|dim| if let Dim::Symbol(name) = dim { Some(name.to_string()) } else { None }));
    for input in &graph.inputs {
        for (axis, dim) in input.dims.iter().flatten().enumerate() {
            let by_place = format!("{}.{axis}", input.name);
            match (dim, options.dims.get(&by_place)) {
                (Dim::Known(extent), Some(_)) => {
                    let reason = format!("the extent of axis {axis} is {extent}, so `{by_place}` cannot be bound");
                    return Err(GraphError::node(input.name, reason).into());
                }
                (Dim::Symbol(name), Some(given)) if options.dims.get(*name).is_some_and(|other| other != given) => {
                    let reason =
                        format!("axis {axis} is bound as `{}` and, to another number, as `{by_place}`", cut(name));
                    return Err(GraphError::node(input.name, reason).into());
                }
                (Dim::Known(_), None) => {}
                (Dim::Symbol(_) | Dim::Unknown, _) => {
                    names.insert(by_place);
                }
            }
        }
    }
    Ok(dims::check_bound(&options.dims, &names)?)
}

/// The error of a node of the file.
fn node_error(node: &Node, stop: Stop) -> OnnxError {
    let reason = match stop {
        Stop::Wrong(reason) | Stop::Opaque(reason) => reason,
        Stop::Graph(error) => return error.into(),
    };
    let name = match (node.name, node.outputs.first()) {
        ("", Some(output)) => output,
        ("", None) => "",
        (name, _) => name,
    };
    let reason: String = reason.chars().take(1000).collect();
    let op: String = node.op.chars().take(80).collect();
    GraphError::node(name, format!("{op}: {reason}")).into()
}

impl<'m, 'a> Reader<'m, 'a> {
    fn main(&mut self, model: &'m Model<'a>) -> Result<(), OnnxError> {
        let graph = &model.graph;
        let live = live(&graph.nodes, graph.outputs.iter().map(|output| output.name));
        let mut scope = Scope {
            values: FxHashMap::default(),
            call: FxHashMap::default(),
            opsets: &model.opsets,
            said: said(&[&graph.value_info, &graph.outputs]),
            is_main: true,
        };
        let used = used(graph, &live);
        self.inputs(graph, &used, &mut scope)?;
        self.nodes(&graph.nodes, &live, &mut scope)?;
        for output in &graph.outputs {
            let wrong = |stop: Stop| match stop {
                Stop::Wrong(reason) | Stop::Opaque(reason) => GraphError::node(output.name, reason),
                Stop::Graph(error) => error,
            };
            let value = scope.values.get(output.name);
            let value = value.ok_or_else(|| GraphError::node(output.name, "no node gives this output"))?;
            self.lower.output(output.name, value).map_err(wrong)?;
        }
        Ok(())
    }

    /// The inputs of the graph and its initializers.
    fn inputs(
        &mut self,
        graph: &'m Graph<'a>,
        used: &FxHashSet<&'a str>,
        scope: &mut Scope<'m, 'a>,
    ) -> Result<(), OnnxError> {
        let initialized: FxHashSet<&str> = graph.initializers.iter().map(|tensor| tensor.name).collect();
        for &name in &graph.sparse {
            scope.values.insert(name, Operand::Foreign("a sparse tensor".into()));
        }
        // Before IR version 4 an initializer is an input too. A caller may give such an input another value.
        for input in &graph.inputs {
            let given = self.options.values.get(input.name);
            if initialized.contains(input.name) && given.is_none() {
                continue;
            }
            let operand = match given {
                Some(data) => Operand::Known(data.clone()),
                None => self.input(input, used.contains(input.name))?,
            };
            if scope.values.insert(input.name, operand).is_some() {
                return Err(GraphError::node(input.name, "another input has this name").into());
            }
        }
        for tensor in &graph.initializers {
            if scope.values.contains_key(tensor.name) || !used.contains(tensor.name) {
                continue;
            }
            let wrong = |error: super::tensor::TensorError| GraphError::node(tensor.name, error.to_string());
            let of = match dtype(tensor.data_type) {
                Ok(of) => of,
                Err(error) => {
                    scope.values.insert(tensor.name, Operand::Foreign(error.to_string()));
                    continue;
                }
            };
            let (shape, count) = tensor.shape().map_err(wrong)?;
            let operand = match tensor.external {
                true => self.outside(tensor, of, &shape, count)?,
                false => {
                    let data = Data::new(of, &shape, tensor.bytes().map_err(wrong)?);
                    Operand::Known(data.map_err(|reason| GraphError::node(tensor.name, reason))?)
                }
            };
            scope.values.insert(tensor.name, operand);
        }
        Ok(())
    }

    /// An input of the graph. One that nothing uses may have any type.
    fn input(&mut self, input: &ValueInfo<'a>, is_used: bool) -> Result<Operand, OnnxError> {
        let wrong = |reason: String| OnnxError::from(GraphError::node(input.name, reason));
        if input.is_other {
            return match is_used {
                true => Err(wrong("the input is no tensor, but a sequence, a map or optional".into())),
                false => Ok(Operand::Foreign("an input that is no tensor".into())),
            };
        }
        let of = match dtype(input.elem_type) {
            Ok(of) => of,
            Err(error) if is_used => return Err(wrong(error.to_string())),
            Err(error) => return Ok(Operand::Foreign(error.to_string())),
        };
        let Some(dims) = &input.dims else { return Err(wrong("the input has no shape".into())) };
        let mut shape = vec![];
        for (axis, dim) in dims.iter().enumerate() {
            let by_place = format!("{}.{axis}", input.name);
            let bound = |name: &str| self.options.dims.get(name).or_else(|| self.options.dims.get(&by_place)).copied();
            let unbound = |name: &str| {
                let place = format!("node `{}`, axis {axis}", cut(input.name));
                OnnxError::from(GraphError::Unbound { place, dim: cut(name) })
            };
            shape.push(match *dim {
                Dim::Known(extent) => {
                    u64::try_from(extent).map_err(|_| wrong(format!("axis {axis} has extent {extent}")))?
                }
                Dim::Symbol(name) => bound(name).ok_or_else(|| unbound(name))?,
                Dim::Unknown => bound(&by_place).ok_or_else(|| unbound(&by_place))?,
            });
        }
        Ok(self.lower.input(input.name, of, &shape)?)
    }

    /// A tensor outside of the model: small ones are read, as shapes and axes may depend on them, others are inputs.
    fn outside(&mut self, tensor: &Tensor, of: DType, shape: &[u64], count: u64) -> Result<Operand, OnnxError> {
        let wrong = |reason: String| OnnxError::from(GraphError::node(tensor.name, reason));
        let place = tensor.external().map_err(|error| wrong(error.to_string()))?;
        if count > crate::MAX_FOLDED {
            self.external.push((tensor.name.into(), place));
            return Ok(self.lower.input(tensor.name, of, shape)?);
        }
        let raw = (self.load)(&place).map_err(&wrong)?;
        if raw.len() as u64 != place.bytes {
            return Err(wrong(format!("{} bytes of external data where {} are needed", raw.len(), place.bytes)));
        }
        Ok(Operand::Known(Data::new(of, shape, native(of, &raw)).map_err(wrong)?))
    }

    fn nodes(&mut self, nodes: &'m [Node<'a>], live: &[bool], scope: &mut Scope<'m, 'a>) -> Result<(), OnnxError> {
        let feeds = self.feeds_reductions(nodes);
        for (place, node) in nodes.iter().enumerate() {
            if !live[place] {
                continue;
            }
            self.lowered += 1;
            if self.lowered > MAX_NODES {
                let (given, limit) = (self.lowered as u64, MAX_NODES as u64);
                return Err(GraphError::Limit { what: "nodes with those of functions", given, limit }.into());
            }
            let inputs = self.operands(node, nodes, place, scope)?;
            let results = self.node(node, inputs, feeds[place], scope)?;
            for (name, result) in node.outputs.iter().zip(results) {
                if !name.is_empty() && scope.values.insert(name, result).is_some() {
                    let reason = format!("another value has the name of the output `{name}`");
                    return Err(node_error(node, Stop::Wrong(reason)));
                }
            }
        }
        Ok(())
    }

    /// The operands of a node; the captured values of graphs in its attributes follow.
    fn operands(
        &self,
        node: &Node<'a>,
        nodes: &[Node<'a>],
        place: usize,
        scope: &Scope<'m, 'a>,
    ) -> Result<Vec<Option<Operand>>, OnnxError> {
        let captured = node.attributes.iter().filter_map(|attribute| match &attribute.value {
            AttributeValue::Graphs(names) => Some(names),
            _ => None,
        });
        let mut operands = vec![];
        for &name in node.inputs.iter().chain(captured.flatten()) {
            operands.push(match (name, scope.values.get(name)) {
                ("", _) => None,
                (_, Some(operand)) => Some(operand.clone()),
                (_, None) => {
                    let is_later = nodes[place..].iter().any(|other| other.outputs.contains(&name));
                    let reason = match is_later {
                        true => format!(
                            "its input `{name}` comes from a later node: the graph has a cycle or is out of order"
                        ),
                        false => {
                            format!("its input `{name}` is neither an initializer nor an input nor a node's output")
                        }
                    };
                    return Err(node_error(node, Stop::Wrong(reason)));
                }
            });
        }
        Ok(operands)
    }

    fn node(
        &mut self,
        node: &'m Node<'a>,
        inputs: Vec<Option<Operand>>,
        feeds_reduction: bool,
        scope: &Scope<'m, 'a>,
    ) -> Result<Vec<Operand>, OnnxError> {
        if let Some(&function) = self.functions.get(&(node.domain, node.op, node.overload)) {
            return self.call(node, function, inputs, scope);
        }
        let is_standard = ["", "ai.onnx"].contains(&node.domain);
        let version = version(scope.opsets, node.domain);
        let row = self.table.get(node.op).copied().filter(|row| is_standard && version >= row.since);
        let said = node.outputs.iter().map(|name| self.said(scope.said.get(name)?)).collect();
        let is_named = scope.is_main;
        let mut cx =
            Cx { lower: &mut self.lower, node, version, call: &scope.call, inputs, is_named, feeds_reduction, said };
        let results: Results = match row.map(|row| row.how) {
            None => Err(Stop::Opaque("no kernel computes this op".into())),
            Some(How::Formula(text)) => super::elementwise::formula(&mut cx, text),
            Some(How::Row(lower, name)) => lower(&mut cx, name),
            Some(How::Node(lower)) => lower(&mut cx),
        };
        let wanted = (0..node.outputs.len()).filter(|&output| cx.has_output(output)).max().map_or(0, |last| last + 1);
        let results = match results {
            Ok(results) if results.len() < wanted => {
                Err(Stop::Opaque(format!("{} of its {wanted} results are computed", results.len())))
            }
            results => results,
        };
        let results = match results {
            Err(Stop::Opaque(reason)) => opaque(&mut cx, reason),
            results => results,
        };
        results.map_err(|stop| node_error(node, stop))
    }

    /// The type and the shape that the file says of a value, if they are static.
    fn said(&self, info: &ValueInfo<'a>) -> Option<(DType, Vec<u64>)> {
        let extent = |dim: &Dim<'a>| match *dim {
            Dim::Known(extent) => u64::try_from(extent).ok(),
            Dim::Symbol(name) => self.options.dims.get(name).copied(),
            Dim::Unknown => None,
        };
        let shape = info.dims.as_ref()?.iter().map(extent).collect::<Option<Vec<u64>>>()?;
        Some((dtype(info.elem_type).ok()?, shape))
    }

    /// The nodes of a function in the place of its call.
    fn call(
        &mut self,
        node: &'m Node<'a>,
        function: &'m Function<'a>,
        inputs: Vec<Option<Operand>>,
        outer: &Scope<'m, 'a>,
    ) -> Result<Vec<Operand>, OnnxError> {
        let wrong = |reason: String| node_error(node, Stop::Wrong(reason));
        if self.calls.contains(&(function as *const _)) {
            return Err(wrong(format!("the function `{}` calls itself", function.name)));
        }
        if self.calls.len() == MAX_CALLS {
            return Err(wrong(format!("calls of functions are {MAX_CALLS} deep, which is the limit")));
        }
        if inputs.len() > function.inputs.len() {
            return Err(wrong(format!("{} inputs; the function has {}", inputs.len(), function.inputs.len())));
        }
        let mut scope = Scope {
            values: FxHashMap::default(),
            call: FxHashMap::default(),
            opsets: &function.opsets,
            said: said(&[&function.value_info]),
            is_main: false,
        };
        let given = inputs.into_iter().chain(std::iter::repeat(None));
        for (&name, operand) in function.inputs.iter().zip(given) {
            // A node passes an operand that is left out on by its name.
            let operand = operand.unwrap_or_else(|| Operand::Foreign("an operand that is left out".into()));
            scope.values.insert(name, operand);
        }
        for default in &function.defaults {
            scope.call.insert(default.name, default.value.clone());
        }
        for attribute in &node.attributes {
            let value = match attribute.reference {
                "" => Some(&attribute.value),
                reference => outer.call.get(reference),
            };
            if let Some(value) = value {
                scope.call.insert(attribute.name, value.clone());
            }
        }
        let live = live(&function.nodes, function.outputs.iter().copied());
        self.calls.push(function);
        self.nodes(&function.nodes, &live, &mut scope)?;
        self.calls.pop();
        let outputs = function.outputs.iter().take(node.outputs.len());
        outputs
            .map(|name| {
                let missing = || wrong(format!("no node of the function gives its output `{name}`"));
                scope.values.get(name).cloned().ok_or_else(missing)
            })
            .collect()
    }

    /// For each node: a reduction takes its results, perhaps through formulas and views.
    fn feeds_reductions(&self, nodes: &[Node<'a>]) -> Vec<bool> {
        let mut wanted: FxHashSet<&str> = FxHashSet::default();
        let mut feeds = vec![false; nodes.len()];
        for (place, node) in nodes.iter().enumerate().rev() {
            feeds[place] = node.outputs.iter().any(|name| wanted.contains(name));
            let passes = self.table.get(node.op).is_some_and(|row| is_passed_through(row)) && feeds[place];
            if passes || is_reduction(node.op) {
                wanted.extend(node.inputs.iter().copied());
            }
        }
        feeds
    }
}

/// The version of a domain's operator set; a model of the first IR versions does not say it.
fn version(opsets: &[Opset], domain: &str) -> i64 {
    let is = |opset: &&Opset| match domain {
        "" | "ai.onnx" => ["", "ai.onnx"].contains(&opset.domain),
        domain => opset.domain == domain,
    };
    opsets.iter().find(is).map_or(1, |opset| opset.version)
}

/// The types and shapes that a file says of its values.
fn said<'m, 'a>(lists: &[&'m Vec<ValueInfo<'a>>]) -> FxHashMap<&'a str, &'m ValueInfo<'a>> {
    lists.iter().flat_map(|list| list.iter()).map(|info| (info.name, info)).collect()
}

/// For each node: an output depends on it.
fn live<'a>(nodes: &[Node<'a>], outputs: impl Iterator<Item = &'a str>) -> Vec<bool> {
    let mut wanted: FxHashSet<&str> = outputs.collect();
    let mut live = vec![false; nodes.len()];
    for (place, node) in nodes.iter().enumerate().rev() {
        if !node.outputs.iter().any(|name| !name.is_empty() && wanted.contains(name)) {
            continue;
        }
        live[place] = true;
        wanted.extend(taken(node));
    }
    live
}

/// The names that a node takes, those of graphs in its attributes among them.
fn taken<'r, 'a>(node: &'r Node<'a>) -> impl Iterator<Item = &'a str> + 'r {
    let captured = node.attributes.iter().flat_map(|attribute| match &attribute.value {
        AttributeValue::Graphs(names) => &names[..],
        _ => &[],
    });
    node.inputs.iter().chain(captured).copied()
}

/// The names that live nodes and outputs take.
fn used<'a>(graph: &Graph<'a>, live: &[bool]) -> FxHashSet<&'a str> {
    let nodes = graph.nodes.iter().zip(live).filter(|(_, live)| **live);
    let outputs = graph.outputs.iter().map(|output| output.name);
    nodes.flat_map(|(node, _)| taken(node)).chain(outputs).collect()
}
