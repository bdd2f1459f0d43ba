//! The law of models: the bytes of a file are refused with a short message, or become a graph that prints and reads back.

use crate::texts::{reads_back, short};
use cranefold_graph::{Graph, MAX_TEXT, ReadOptions, onnx, openvino};

/// The most bytes that a model's external data has here.
const MOST_EXTERNAL: u64 = 1 << 20;

/// The law of an ONNX model. Its external data is zeros.
pub fn onnx(bytes: &[u8]) -> bool {
    let read = onnx::read(bytes, &options(), &mut |place| match place.bytes {
        bytes @ ..=MOST_EXTERNAL => Ok(vec![0; bytes as usize]),
        bytes => Err(format!("{bytes} bytes")),
    });
    match read {
        Ok(model) => graph(&model.graph),
        Err(error) => short(&error),
    }
}

/// The law of an OpenVINO model, whose constants are all 1 as `i64`.
pub fn openvino(bytes: &[u8]) -> bool {
    let constants: Vec<u8> = 1i64.to_le_bytes().repeat(1000);
    match openvino::read(bytes, &constants, &options()) {
        Ok(found) => graph(&found),
        Err(error) => short(&error),
    }
}

/// Some dims have a number, others are refused.
fn options() -> ReadOptions {
    let mut options = ReadOptions::default();
    options.dims.insert("N".into(), 3);
    options
}

fn graph(graph: &Graph) -> bool {
    if graph.to_string().len() <= MAX_TEXT {
        reads_back(graph);
    }
    true
}
