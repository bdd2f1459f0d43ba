//! `model`: graphs dumped, planned and run.

use super::{cranefold, folder, read_npy, refuses, works, write_npy};
use npyz::Order;
use std::fs;
use std::path::PathBuf;

const GRAPH: &str = "graph {\n  x: f32[3,5] = input\n  p: f32[3,5] = softmax(x) axes=[1]\n  return p\n}\n";

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../graph/tests/data").join(name)
}

fn bytes(values: impl Iterator<Item = f32>) -> Vec<u8> {
    values.flat_map(f32::to_le_bytes).collect()
}

#[test]
fn a_graph_is_dumped_and_planned() {
    let file = folder("model_text").join("softmax.txt");
    fs::write(&file, GRAPH).expect("a file");
    let path = file.to_str().expect("a path in UTF-8");
    assert_eq!(works(&["model", "dump", path]), GRAPH);
    assert!(works(&["model", "plan", path]).starts_with("kernel 0: region x0:f32[3,5] axes=[1] order=logical {"));
    let plan = works(&["model", "plan", path, "--json"]);
    for key in [
        "\"kernels\":[{",
        "\"spec\":\"region ",
        "\"nodes\":[\"p\"]",
        "\"opaque\":[]",
        "\"bytes_before\":",
        "\"bytes_after\":",
    ] {
        assert!(plan.contains(key), "{key} in {plan}");
    }
    let onnx = data("reduce_sum.onnx");
    let graph = "graph {\n  x: f32[2,3] = input\n  y: f32[1,1] = sum(x) axes=[0,1] keep_dims\n  return y\n}\n";
    assert_eq!(works(&["model", "dump", onnx.to_str().expect("a path")]), graph);
    let xml = data("reduce_max.xml");
    let graph = "graph {\n  x: f32[2,3] = input\n  y: f32[2] = max(x) axes=[1]\n  return y\n}\n";
    assert_eq!(works(&["model", "dump", xml.to_str().expect("a path")]), graph);
}

/// The kernel of a model has the bits of the spec alone; an input in Fortran order is the same array.
#[test]
fn a_model_runs_with_the_bits_of_the_spec() {
    let folder = folder("model_run");
    let path = |name: &str| folder.join(name).to_str().expect("a path in UTF-8").to_string();
    fs::write(path("softmax.txt"), GRAPH).expect("a file");
    let value = |i: usize| (i as f32 * 0.37).sin() * 3.0;
    write_npy(&folder.join("x.npy"), "<f4", Order::C, &[3, 5], &bytes((0..15).map(value)));
    let columns = (0..5).flat_map(|column| (0..3).map(move |row| value(5 * row + column)));
    write_npy(&folder.join("columns.npy"), "<f4", Order::Fortran, &[3, 5], &bytes(columns));
    works(&["run", "softmax f32[3,5] axes=[1]", "--input", &path("x.npy"), "--output", &path("wanted.npy")]);
    let wanted = read_npy(&folder.join("wanted.npy"));
    for (input, output) in [("x.npy", "p.npy"), ("columns.npy", "q.npy")] {
        let (input, output) = (format!("x={}", path(input)), path(output));
        let out = works(&["model", "run", &path("softmax.txt"), "--input", &input, "--output", &output]);
        assert_eq!(out, "p f32[3, 5]\n");
        assert_eq!(read_npy(&PathBuf::from(&output)), wanted);
    }
    let found = cranefold(&["model", "run", &path("softmax.txt"), "--input", &path("x.npy")]);
    assert_eq!((found.code, found.out.as_str()), (Some(0), "p f32[3, 5]\n"));
}

#[test]
fn what_is_no_model_or_no_input_is_refused() {
    let folder = folder("model_refused");
    let path = |name: &str| folder.join(name).to_str().expect("a path in UTF-8").to_string();
    let (good, bad, opaque) = (path("softmax.txt"), path("bad.onnx"), path("opaque.txt"));
    fs::write(&good, GRAPH).expect("a file");
    fs::write(&bad, [0xff; 40]).expect("a file");
    write_npy(&folder.join("x.npy"), "<f4", Order::C, &[5, 3], &[0; 60]);
    let (x, out) = (path("x.npy"), path("out.npy"));
    refuses(&["model", "run", &good], &format!("{good}: no file for the input `x`: --input x=F.npy"));
    refuses(
        &["model", "run", &good, "--input", &x, "--output", &out],
        &format!("{x}: the file has shape [5,3], x has shape [3,5]"),
    );
    refuses(
        &["model", "run", &good, "--input", &format!("x={x}"), "--input", &format!("x={x}")],
        &format!("{good}: the input `x` is given twice"),
    );
    refuses(&["model", "run", &good, "--input", &x, "--input", &x], &format!("{good}: 2 input files for x"));
    refuses(&["model", "plan", &good, "--bind", "N"], &format!("{good}: --bind N: write NAME=EXTENT"));
    assert_eq!(cranefold(&["model", "dump", &bad]).code, Some(2));
    assert_eq!(cranefold(&["model", "dump", &path("none.onnx")]).code, Some(2));
    let text = "graph {\n  x: f32[2] = input\n  y: f32[2] = opaque(x) op=\"Conv\"\n  return y\n}\n";
    fs::write(&opaque, text).expect("a file");
    let done = cranefold(&["model", "run", &opaque, "--input", &x]);
    assert_eq!(done.code, Some(2));
    assert!(done.err.contains(": node `y` (Conv) is not computed here"), "{}", done.err);
    assert!(!folder.join("out.npy").exists());
}
