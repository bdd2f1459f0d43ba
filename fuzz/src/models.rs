//! The law of models: the bytes of a file are refused with a short message, or become a graph that prints and reads back.

use crate::texts::{reads_back, refused, short, text};
use cranefold_graph::{FuseOptions, Graph, MAX_TEXT, Plan, ReadOptions, fuse, onnx, openvino};
use std::fmt::Display;

/// The most bytes that a model's external data has here.
const MOST_EXTERNAL: u64 = 1 << 20;

/// The law of an ONNX model. Its external data is zeros.
pub fn onnx(bytes: &[u8]) -> bool {
    let read = |options: &ReadOptions| {
        onnx::read(bytes, options, &mut |place| match place.bytes {
            bytes @ ..=MOST_EXTERNAL => Ok(vec![0; bytes as usize]),
            bytes => Err(format!("{bytes} bytes")),
        })
    };
    match bound(read) {
        Ok(model) => prints(&model.graph),
        Err(error) => short(&error),
    }
}

/// The law of an OpenVINO model, whose constants are all 1 as `i64`.
pub fn openvino(bytes: &[u8]) -> bool {
    let constants: Vec<u8> = 1i64.to_le_bytes().repeat(1000);
    match bound(|options| openvino::read(bytes, &constants, options)) {
        Ok(found) => prints(&found),
        Err(error) => short(&error),
    }
}

/// The model that is read, with a number for the dim `N` if that is asked for; other dims are refused.
fn bound<T, E: Display>(read: impl Fn(&ReadOptions) -> Result<T, E>) -> Result<T, E> {
    match read(&ReadOptions::default()) {
        Err(error) if error.to_string().contains("the extent `N` is not static") => {
            let mut options = ReadOptions::default();
            options.dims.insert("N".into(), 3);
            read(&options)
        }
        other => other,
    }
}

fn prints(graph: &Graph) -> bool {
    if graph.to_string().len() <= MAX_TEXT {
        reads_back(graph);
    }
    true
}

/// The most elements of all values of a graph that is fused here.
const MOST_ELEMENTS: u64 = 1 << 20;

/// The law of a [`Graph`]'s text, and of the plan of one that is small.
pub fn graph(bytes: &[u8]) -> bool {
    let text = text(bytes);
    match text.parse::<Graph>() {
        Err(error) => refused(&error, &text),
        Ok(graph) => {
            prints(&graph);
            let elements = |value: &cranefold_graph::Value| value.shape.iter().product::<u64>();
            if graph.values().iter().map(elements).fold(0, u64::saturating_add) < MOST_ELEMENTS {
                match fuse(&graph, &FuseOptions::default()) {
                    Ok(plan) => reads_back(&plan),
                    Err(error) => _ = short(&error),
                }
            }
            true
        }
    }
}

/// The law of a [`Plan`]'s text.
pub fn plan(bytes: &[u8]) -> bool {
    let text = text(bytes);
    match text.parse::<Plan>() {
        Err(error) => refused(&error, &text),
        Ok(plan) => {
            reads_back(&plan);
            true
        }
    }
}
