//! ONNX models that are malformed, and those at the limits: each is refused with its reason, at once.

use cranefold_graph::onnx::{MAX_GRAPH_DEPTH, MAX_MODEL_NODES, OnnxError, OnnxModel, read};
use cranefold_graph::{DType, Data, ReadOptions};
use std::time::{Duration, Instant};

/// A message in the wire format.
#[derive(Clone, Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn int(mut self, field: u64, value: i64) -> Message {
        self.varint(field << 3);
        self.varint(value as u64);
        self
    }

    fn bytes(mut self, field: u64, bytes: &[u8]) -> Message {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn text(self, field: u64, text: &str) -> Message {
        self.bytes(field, text.as_bytes())
    }

    fn message(self, field: u64, message: Message) -> Message {
        self.bytes(field, &message.0)
    }
}

fn message() -> Message {
    Message::default()
}

fn node(op: &str, inputs: &[&str], outputs: &[&str]) -> Message {
    let named = inputs.iter().fold(message(), |node, input| node.text(1, input));
    outputs.iter().fold(named, |node, output| node.text(2, output)).text(4, op)
}

fn ints(name: &str, values: &[i64]) -> Message {
    values.iter().fold(message().text(1, name).int(20, 7), |attribute, &value| attribute.int(8, value))
}

/// A value of `float` with these dims; a text is a symbol.
fn value(name: &str, dims: &[Result<i64, &str>]) -> Message {
    let dim = |dim: &Result<i64, &str>| match dim {
        Ok(extent) => message().int(1, *extent),
        Err(symbol) => message().text(2, symbol),
    };
    let shape = dims.iter().fold(message(), |shape, each| shape.message(1, dim(each)));
    message().text(1, name).message(2, message().message(1, message().int(1, 1).message(2, shape)))
}

/// A graph of nodes from `x: float[2,3]` to `y`.
fn graph(nodes: &[Message]) -> Message {
    let graph = nodes.iter().fold(message(), |graph, node| graph.message(1, node.clone()));
    graph.message(11, value("x", &[Ok(2), Ok(3)])).message(12, message().text(1, "y"))
}

fn model(graph: Message) -> Message {
    message().int(1, 8).message(8, message().int(2, 13)).message(7, graph)
}

fn read_with(model: Message, options: &ReadOptions) -> Result<OnnxModel, OnnxError> {
    read(&model.0, options, &mut |_| Err("there is no file".into()))
}

/// The message of the refusal, which has to come soon.
fn refusal(model: Message) -> String {
    let start = Instant::now();
    let error = read_with(model, &ReadOptions::default()).expect_err("a refusal").to_string();
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}: {error}", start.elapsed());
    assert!(error.len() < 2000, "{error}");
    error
}

#[test]
fn graphs_that_are_no_graphs() {
    let cycle = graph(&[node("Add", &["x", "b"], &["a"]), node("Neg", &["a"], &["b"]), node("Abs", &["a"], &["y"])]);
    assert_eq!(
        refusal(model(cycle)),
        "node `a`: Add: its input `b` comes from a later node: the graph has a cycle or is out of order"
    );
    let missing = graph(&[node("Add", &["x", "w"], &["y"])]);
    let reason = "node `y`: Add: its input `w` is neither an initializer nor an input nor a node's output";
    assert_eq!(refusal(model(missing)), reason);
    let twice = graph(&[node("Neg", &["x"], &["y"]), node("Abs", &["x"], &["y"])]);
    assert_eq!(refusal(model(twice)), "node `y`: Abs: another value has the name of the output `y`");
    assert_eq!(refusal(model(graph(&[]))), "node `y`: no node gives this output");
}

#[test]
fn files_that_are_no_model() {
    let no_model = "the file is no ONNX model";
    assert_eq!(refusal(message()), format!("{no_model}: there is no graph in it"));
    let text = Message(b"version https://git-lfs.github.com/spec/v1".into());
    assert_eq!(refusal(text), format!("{no_model}: field 14 has wire type 6; 0, 1, 2 and 5 are read"));
    let mut cut = model(graph(&[node("Neg", &["x"], &["y"])]));
    cut.0.truncate(cut.0.len() - 10);
    let error = refusal(cut);
    assert!(error.starts_with(&format!("{no_model}, or only the beginning of one: a field needs ")), "{error}");
    let damaged = model(graph(&[message().bytes(1, &[0xff])]));
    assert_eq!(refusal(damaged), "the ONNX model is damaged, in a NodeProto: field 1 is no UTF-8 text");
}

#[test]
fn versions_of_the_future() {
    let future =
        message().int(1, 20).message(8, message().int(2, 29)).message(7, graph(&[node("Neg", &["x"], &["y"])]));
    assert_eq!(refusal(future), "operator set 29 of the model is not read; versions 1 to 28 are");
}

#[test]
fn tensors_of_wrong_length() {
    let with = |tensor: Message| model(graph(&[node("Add", &["x", "w"], &["y"])]).message(5, tensor.text(8, "w")));
    let floats = message().int(1, 3).int(2, 1);
    assert_eq!(
        refusal(with(floats.clone().bytes(9, &[0; 8]))),
        "node `w`: the shape [3] of f32 needs 12 bytes and the tensor has 8"
    );
    assert_eq!(
        refusal(with(floats.clone().bytes(4, &[0; 16]))),
        "node `w`: the shape [3] of f32 needs 3 values and the tensor has 4"
    );
    assert_eq!(refusal(with(message().int(1, -3).int(2, 1))), "node `w`: dim -3 is below 0");
    let huge = message().int(1, i64::MAX).int(1, i64::MAX).int(2, 1);
    assert!(refusal(with(huge)).ends_with("has too many elements"));
    let large = message().int(1, 1 << 47).int(2, 1).bytes(9, &[0; 4]);
    assert!(refusal(with(large)).ends_with("bytes and the tensor has 4"));
    let small = message().int(1, 1).int(2, 3).int(5, 200);
    assert_eq!(refusal(with(small)), "node `w`: value 200 is out of range for i8");
}

#[test]
fn external_data_stays_in_its_folder() {
    let entry = |key: &str, value: &str| message().text(1, key).text(2, value);
    let outside = |location: &str, dim: i64| {
        let tensor = message().int(1, dim).int(2, 1).text(8, "w").message(13, entry("location", location)).int(14, 1);
        model(graph(&[node("Add", &["x", "w"], &["y"])]).message(5, tensor))
    };
    for location in ["../w", "/etc/passwd", "a/../../w", "c:w", "a\\..\\w", "", "a//b"] {
        let error = refusal(outside(location, 3));
        assert!(error.contains("is not a path inside of the model's folder"), "{error}");
    }
    // Small tensors are read, with the range that the shape needs.
    let mut asked = vec![];
    let found = read(&outside("data/w.bin", 3).0, &ReadOptions::default(), &mut |place| {
        asked.push((place.location.clone(), place.offset, place.bytes));
        Ok(vec![0; 12])
    });
    assert_eq!(found.expect("a model").external, []);
    assert_eq!(asked, [("data/w.bin".to_string(), 0, 12)]);
    let short = read(&outside("w", 3).0, &ReadOptions::default(), &mut |_| Ok(vec![0; 11]));
    let reason = "node `w`: 11 bytes of external data where 12 are needed";
    assert_eq!(short.expect_err("a refusal").to_string(), reason);
    // Large ones become inputs.
    let x = value("x", &[Ok(1 << 20)]);
    let tensor = message().int(1, 1 << 20).int(2, 1).text(8, "w").message(13, entry("location", "w")).int(14, 1);
    let add = node("Add", &["x", "w"], &["y"]);
    let large = message().message(1, add).message(11, x).message(5, tensor).message(12, message().text(1, "y"));
    let found = read_with(model(large), &ReadOptions::default()).expect("a model");
    assert_eq!(found.external.len(), 1);
    assert_eq!(found.graph.inputs().len(), 2);
}

#[test]
fn a_million_nodes() {
    let mut bytes = message();
    let one = node("Neg", &["x"], &["x"]);
    for _ in 0..1_000_000 {
        bytes = bytes.message(1, one.clone());
    }
    assert_eq!(refusal(model(bytes)), format!("more than {MAX_MODEL_NODES} nodes"));
    // As many as are read, each over the one before.
    let names: Vec<String> =
        (0..=50_000).map(|place| if place == 0 { "x".into() } else { format!("v{place}") }).collect();
    let mut chain: Vec<Message> = names.windows(2).map(|pair| node("Neg", &[&pair[0]], &[&pair[1]])).collect();
    chain.push(node("Abs", &[&names[50_000]], &["y"]));
    let found = read_with(model(graph(&chain)), &ReadOptions::default()).expect("a model");
    assert_eq!(found.graph.nodes().len(), 50_002);
}

#[test]
fn items_beyond_the_limit() {
    let empty = (0..5_000_000).fold(message(), |graph, _| graph.bytes(13, &[]));
    assert!(refusal(model(empty)).contains("names, attributes and list elements"));
    let attributes = (0..20_000).fold(node("Neg", &["x"], &["y"]), |node, _| node.bytes(5, &[]));
    assert_eq!(refusal(model(graph(&[attributes]))), "more than 10000 attributes of a node");
}

#[test]
fn graphs_in_graphs() {
    let nested = (0..1000).fold(graph(&[]), |inner, _| {
        graph(&[node("Loop", &["x"], &["y"]).message(5, message().text(1, "body").int(20, 5).message(6, inner))])
    });
    assert_eq!(refusal(model(nested)), format!("more than {MAX_GRAPH_DEPTH} graphs in attributes of one another"));
}

/// A function of the domain `own` from `a` to `b`.
fn function(name: &str, nodes: &[Message]) -> Message {
    let function = message().text(1, name).text(4, "a").text(5, "b").text(10, "own").message(9, message().int(2, 13));
    nodes.iter().fold(function, |function, node| function.message(7, node.clone()))
}

fn call(name: &str, input: &str, output: &str) -> Message {
    node(name, &[input], &[output]).text(7, "own")
}

#[test]
fn functions_that_call_functions() {
    let itself = model(graph(&[call("f", "x", "y")])).message(25, function("f", &[call("f", "a", "b")]));
    assert_eq!(refusal(itself), "node `b`: f: the function `f` calls itself");
    let each_other = model(graph(&[call("f", "x", "y")]))
        .message(25, function("f", &[call("g", "a", "b")]))
        .message(25, function("g", &[call("f", "a", "b")]));
    assert_eq!(refusal(each_other), "node `b`: f: the function `f` calls itself");
    // Each function calls the next one twice: 2^40 nodes.
    let mut doubling = model(graph(&[call("f0", "x", "y")]));
    for depth in 0..40 {
        let next = format!("f{}", depth + 1);
        doubling =
            doubling.message(25, function(&format!("f{depth}"), &[call(&next, "a", "t"), call(&next, "t", "b")]));
    }
    doubling = doubling.message(25, function("f40", &[node("Neg", &["a"], &["b"])]));
    assert!(refusal(doubling).contains("nodes with those of functions"));
}

#[test]
fn functions_take_the_places_of_their_calls() {
    let scaled = function(
        "scaled",
        &[
            node("ReduceMean", &["a"], &["m"]).message(5, message().text(1, "axes").text(21, "over").int(20, 7)),
            node("Sub", &["a", "m"], &["b"]),
        ],
    )
    .text(6, "over");
    let call = call("scaled", "x", "y").message(5, ints("over", &[1]));
    let found = read_with(model(graph(&[call])).message(25, scaled), &ReadOptions::default()).expect("a model");
    let text = "graph {\n  x: f32[2,3] = input\n  v0: f32[2,1] = mean(x) axes=[1] keep_dims\n  \
                v1: f32[2,3] = map(x, v0) \"x0 - x1\"\n  return y = v1\n}\n";
    assert_eq!(found.graph.to_string(), text);
}

#[test]
fn dims_are_bound() {
    let symbolic = || {
        let graph = message().message(1, node("Neg", &["x"], &["y"])).message(12, message().text(1, "y"));
        model(graph.message(11, value("x", &[Err("batch"), Ok(3)])))
    };
    let reason = "node `x`, axis 0: the extent `batch` is not static: bind it to a number";
    assert_eq!(refusal(symbolic()), reason);
    for name in ["batch", "x.0"] {
        let mut options = ReadOptions::default();
        options.dims.insert(name.into(), 5);
        let graph = read_with(symbolic(), &options).expect("a model").graph;
        assert_eq!(graph.value(graph.outputs()[0].value).shape, [5, 3]);
    }
}

#[test]
fn each_dim_has_its_name_and_each_name_its_dim() {
    let two = || {
        let graph = message().message(1, node("Add", &["x", "z"], &["y"])).message(12, message().text(1, "y"));
        let x = value("x", &[Err("batch"), Ok(3), Err("past + 1")]);
        model(graph.message(11, x).message(11, value("z", &[Err("batch"), Ok(1), Err("past + 1")])))
    };
    let bound = |dims: &[(&str, u64)]| {
        let options =
            ReadOptions { dims: dims.iter().map(|(n, e)| (n.to_string(), *e)).collect(), ..Default::default() };
        let found = read_with(two(), &options);
        found.map(|model| model.graph.value(model.graph.outputs()[0].value).shape.clone()).map_err(|e| e.to_string())
    };
    assert_eq!(bound(&[("batch", 5), ("past + 1", 7)]), Ok(vec![5, 3, 7]));
    // A dim by its place is that of one input alone.
    let refused = |dims: &[(&str, u64)]| bound(dims).expect_err("a refusal");
    let missing = "node `x`, axis 2: the extent `past + 1` is not static: bind it to a number";
    assert_eq!(refused(&[("batch", 5)]), missing);
    assert_eq!(
        refused(&[("x.0", 5), ("past + 1", 7)]),
        "node `z`, axis 0: the extent `batch` is not static: bind it to a number"
    );
    assert_eq!(
        refused(&[("batch", 5), ("N", 7)]),
        "there is no symbolic dim `N`: there are `batch`, `past + 1`, `x.0`, `x.2`, `z.0`, `z.2`"
    );
    assert_eq!(refused(&[("x.1", 5)]), "node `x`: the extent of axis 1 is 3, so `x.1` cannot be bound");
    let both = "node `x`: axis 0 is bound as `batch` and, to another number, as `x.0`";
    assert_eq!(refused(&[("batch", 5), ("x.0", 6), ("past + 1", 7)]), both);
    assert_eq!(bound(&[("batch", 0), ("x.0", 0), ("past + 1", 7)]), Ok(vec![0, 3, 7]));
    assert!(refused(&[("batch", u64::MAX), ("past + 1", 7)]).contains("has more than"));
    let (none, nothing) = (model(graph(&[node("Neg", &["x"], &["y"])])), [("N".to_string(), 1)].into());
    let refusal = read_with(none, &ReadOptions { dims: nothing, ..Default::default() }).expect_err("a refusal");
    assert_eq!(refusal.to_string(), "there is no symbolic dim `N`: all dims are static");
}

#[test]
fn inputs_that_become_constants() {
    let axes = message().text(1, "axes").message(2, message().message(1, message().int(1, 7).message(2, message())));
    let sum = || model(graph(&[node("ReduceSum", &["x", "axes"], &["y"])]).message(11, axes.clone()));
    let opaque = read_with(sum(), &ReadOptions::default()).expect_err("a refusal").to_string();
    assert!(opaque.contains("the shape of the result `y` is not known"), "{opaque}");
    let mut options = ReadOptions::default();
    options.values.insert("axes".into(), Data::of_ints(DType::I64, &[1], &[0]).expect("one integer"));
    let graph = read_with(sum(), &options).expect("a model").graph;
    assert_eq!(graph.value(graph.outputs()[0].value).shape, [1, 3]);
}

#[test]
fn what_no_kernel_computes_is_opaque_by_name() {
    let lone = graph(&[node("Cos", &["x"], &["c"]), node("Neg", &["c"], &["y"])]);
    let graph = read_with(model(lone), &ReadOptions::default()).expect("a model").graph;
    let text = "graph {\n  x: f32[2,3] = input\n  c: f32[2,3] = opaque(x) op=\"Cos\" why=\"no kernel computes this op\"\n  \
                y: f32[2,3] = map(c) \"-x0\"\n  return y\n}\n";
    assert_eq!(graph.to_string(), text);
    assert_eq!(text.parse::<cranefold_graph::Graph>().expect("a graph"), graph);
}
