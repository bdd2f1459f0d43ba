//! Models that are malformed, each in its own way, as files for the mistakes.

use std::fs;
use std::path::Path;

/// A field of the wire format that holds bytes.
fn bytes(field: u8, bytes: &[u8]) -> Vec<u8> {
    let mut message = varint(u64::from(field) << 3 | 2);
    message.extend(varint(bytes.len() as u64));
    message.extend_from_slice(bytes);
    message
}

/// A field of the wire format that holds an integer.
fn int(field: u8, value: u64) -> Vec<u8> {
    [varint(u64::from(field) << 3), varint(value)].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut message = vec![];
    while value >= 0x80 {
        message.push(value as u8 | 0x80);
        value >>= 7;
    }
    message.push(value as u8);
    message
}

/// A node of a graph or of a function, in the domain `own` if its op is the function `f`.
fn node(name: &str, op: &str, inputs: &[&str], output: &str) -> Vec<u8> {
    let mut node: Vec<u8> = inputs.iter().flat_map(|input| bytes(1, input.as_bytes())).collect();
    node.extend([bytes(2, output.as_bytes()), bytes(3, name.as_bytes()), bytes(4, op.as_bytes())].concat());
    if op == "f" {
        node.extend(bytes(7, b"own"));
    }
    node
}

/// A model of nodes from `x: float[3]` to `y`, with the tensor `w` if one is given.
fn model(opset: u64, nodes: &[Vec<u8>], w: Option<Vec<u8>>) -> Vec<u8> {
    let shape = bytes(1, &int(1, 3));
    let x = [bytes(1, b"x"), bytes(2, &bytes(1, &[int(1, 1), bytes(2, &shape)].concat()))].concat();
    let mut graph: Vec<u8> = nodes.iter().flat_map(|node| bytes(1, node)).collect();
    graph.extend(w.into_iter().flat_map(|w| bytes(5, &[w, bytes(8, b"w")].concat())));
    graph.extend([bytes(11, &x), bytes(12, &bytes(1, b"y"))].concat());
    [int(1, 8), bytes(8, &int(2, opset)), bytes(7, &graph)].concat()
}

/// A tensor of `float` with this many elements, whose data lie in a file.
fn outside(count: u64, location: &str) -> Option<Vec<u8>> {
    let entry = [bytes(1, b"location"), bytes(2, location.as_bytes())].concat();
    Some([int(1, count), int(2, 1), bytes(13, &entry), int(14, 1)].concat())
}

/// Writes the files into a folder.
pub fn write(folder: &Path) {
    let file = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).expect("a file");
    let add = [node("plus", "Add", &["x", "w"], "y")];
    file("text.onnx", b"version https://git-lfs.github.com/spec/v1\n");
    file("bytes.onnx", &(0..4096u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect::<Vec<u8>>());
    ["empty.onnx", "empty.xml", "empty.txt"].iter().for_each(|name| file(name, b""));
    file("zeros.onnx", &[0; 64]);
    file("text.xml", b"no model\n");
    file("bytes.xml", &[0xff; 64]);
    file("other.xml", b"<html><body/></html>\n");
    let xml = concat!(env!("CARGO_MANIFEST_DIR"), "/../graph/tests/data/reduce_max.xml");
    fs::copy(xml, folder.join("alone.xml")).expect("a copy");
    let whole = model(13, &[node("minus", "Neg", &["x"], "y")], None);
    file("cut.onnx", &whole[..whole.len() - 7]);
    file("damaged.onnx", &model(13, &[bytes(1, &[0xff])], None));
    let cycle = [node("a1", "Add", &["x", "b"], "a"), node("n1", "Neg", &["a"], "b"), node("n2", "Abs", &["a"], "y")];
    file("cycle.onnx", &model(13, &cycle, None));
    file("missing.onnx", &model(13, &add, None));
    file("future.onnx", &model(99, &add, None));
    let short = [int(1, 3), int(2, 1), bytes(9, &[0; 8])].concat();
    file("length.onnx", &model(13, &add, Some(short)));
    file("outside.onnx", &model(13, &add, outside(3, "../w.bin")));
    file("no_data.onnx", &model(13, &add, outside(3, "none.bin")));
    // Only a run reads a large one.
    let large = [node("least", "ReduceMin", &["w"], "m"), node("plus", "Add", &["x", "m"], "y")];
    file("no_weights.onnx", &model(13, &large, outside(1 << 20, "none.bin")));
    let names = [bytes(1, b"f"), bytes(4, b"a"), bytes(5, b"b"), bytes(10, b"own")].concat();
    let function = [names, bytes(7, &node("again", "f", &["a"], "b")), bytes(9, &int(2, 13))].concat();
    let calls = model(13, &[node("first", "f", &["x"], "y")], None);
    // The number of the field of functions takes two bytes.
    let functions = [varint(25 << 3 | 2), varint(function.len() as u64), function].concat();
    file("recursion.onnx", &[calls, functions].concat());
    file("many.onnx", &model(13, &vec![node("", "Neg", &["x"], "x"); 1_000_000], None));
}
