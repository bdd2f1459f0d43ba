//! `model`: a graph of tensor operations, the plan of kernels that it becomes, and its results.

use crate::args::{Model, ModelVerb};
use crate::buffer::Buffer;
use crate::failure::Failure;
use crate::npy;
use crate::output_files::OutputFiles;
use cranefold::Compiler;
use cranefold_graph::{FuseOptions, Graph, Plan, ReadOptions, Value, fuse, onnx, openvino};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The longest file that is read, in bytes: that of ONNX's own format.
const MAX_FILE: u64 = 1 << 31;

/// A model that was read.
struct Loaded {
    graph: Graph,
    /// The inputs of the graph that lie in files beside the model.
    external: Vec<(String, onnx::External)>,
}

/// Prints a graph or its plan, or runs it.
///
/// # Errors
/// If a file cannot be read or written, is no model, or the model cannot run.
pub fn model(args: &Model, out: &mut dyn Write) -> Result<(), Failure> {
    match &args.verb {
        ModelVerb::Dump { file, bind } => {
            let graph = load(file, bind)?.graph;
            write!(out, "{graph}").map_err(Failure::Stdout)
        }
        ModelVerb::Plan { file, bind, json } => {
            let plan = planned(&load(file, bind)?.graph, file)?;
            let text = if *json { format!("{}\n", json_of(&plan)) } else { shown(&plan) };
            out.write_all(text.as_bytes()).map_err(Failure::Stdout)
        }
        ModelVerb::Run { file, bind, input, output } => run(file, bind, input, output, out),
    }
}

fn run(path: &Path, bind: &[String], given: &[String], wanted: &[String], out: &mut dyn Write) -> Result<(), Failure> {
    let Loaded { graph, external } = load(path, bind)?;
    let plan = planned(&graph, path)?;
    if let Some(opaque) = plan.opaque().next() {
        let text = format!("node `{}` ({}) is not computed here: {}", opaque.name, opaque.op, opaque.why);
        return Err(wrong(path, text));
    }
    let inputs: Vec<&Value> = graph.inputs().into_iter().map(|id| graph.value(id)).collect();
    let outside = |name: &str| external.iter().find(|(known, _)| known == name).map(|(_, at)| at);
    let asked: Vec<&str> = inputs.iter().map(|v| v.name.as_str()).filter(|name| outside(name).is_none()).collect();
    let files = assigned(given, &asked, ("input", path))?;
    if let Some(name) = asked.iter().find(|name| !files.contains_key(**name)) {
        return Err(wrong(path, format!("no file for the input `{name}`: --input {name}=F.npy")));
    }
    let results: Vec<&str> = graph.outputs().iter().map(|o| o.name.as_str()).collect();
    let places = assigned(wanted, &results, ("output", path))?;
    let read: Vec<(PathBuf, String)> =
        files.iter().map(|(name, file)| (file.clone(), format!("input {name}"))).collect();
    let written: Vec<(PathBuf, String)> =
        places.iter().map(|(name, file)| (file.clone(), format!("output {name}"))).collect();
    let written_files = OutputFiles::of(&written, &read)?;
    let mut buffers = vec![];
    for value in &inputs {
        buffers.push(match outside(&value.name) {
            Some(at) => Loading::Bytes(beside(path, at).map_err(|reason| wrong(path, reason))?),
            None => Loading::Array(npy::read_packed(&files[&value.name], value.dtype, &value.shape, &value.name)?),
        });
    }
    let prepared = plan.prepare(&Compiler::host()?).map_err(|error| wrong(path, error))?;
    let mut outputs = vec![];
    for output in graph.outputs() {
        let value = graph.value(output.value);
        outputs.push(Buffer::zeroed(value.shape.iter().product::<u64>() * value.dtype.bytes())?);
    }
    let inputs: Vec<&[u8]> = buffers.iter().map(Loading::bytes).collect();
    let mut memory: Vec<&mut [u8]> = outputs.iter_mut().map(Buffer::bytes_mut).collect();
    prepared.run(&inputs, &mut memory).map_err(|error| wrong(path, error))?;
    let names: Vec<&String> = places.keys().collect();
    written_files.write(|n, place, file| {
        let at = graph.outputs().iter().position(|output| output.name == *names[n]).expect("an output of the graph");
        let value = graph.value(graph.outputs()[at].value);
        npy::write_array(file, place, value.dtype, &value.shape, outputs[at].bytes())
    })?;
    for output in graph.outputs() {
        let value = graph.value(output.value);
        writeln!(out, "{} {}{:?}", output.name, value.dtype, value.shape).map_err(Failure::Stdout)?;
    }
    Ok(())
}

/// The elements of an input.
enum Loading {
    Array(Buffer),
    Bytes(Vec<u8>),
}

impl Loading {
    fn bytes(&self) -> &[u8] {
        match self {
            Loading::Array(buffer) => buffer.bytes(),
            Loading::Bytes(bytes) => bytes,
        }
    }
}

/// The files of `NAME=F.npy` by name, and of `F.npy` by the names that are left, in order.
fn assigned(
    given: &[String],
    names: &[&str],
    (role, path): (&str, &Path),
) -> Result<BTreeMap<String, PathBuf>, Failure> {
    let mut of = BTreeMap::new();
    let mut unnamed = vec![];
    for text in given {
        let named = text.split_once('=').filter(|(name, _)| names.contains(name));
        let Some((name, file)) = named else {
            unnamed.push(PathBuf::from(text));
            continue;
        };
        if of.insert(name.to_string(), PathBuf::from(file)).is_some() {
            return Err(wrong(path, format!("the {role} `{name}` is given twice")));
        }
    }
    let mut left =
        names.iter().filter(|name| !of.contains_key(**name)).map(|name| name.to_string()).collect::<Vec<_>>();
    if unnamed.len() > left.len() {
        let known = names.join(", ");
        return Err(wrong(path, format!("{} {role} files for {known}", given.len())));
    }
    of.extend(left.drain(..unnamed.len()).zip(unnamed));
    Ok(of)
}

fn planned(graph: &Graph, path: &Path) -> Result<Plan, Failure> {
    fuse(graph, &FuseOptions::default()).map_err(|error| wrong(path, error))
}

/// Reads a model; the extension of the file says which format it has: `.onnx`, `.xml` beside its `.bin`, or the text of a
/// graph.
fn load(path: &Path, bind: &[String]) -> Result<Loaded, Failure> {
    let mut options = ReadOptions::default();
    for text in bind {
        let bound = text.split_once('=').and_then(|(name, extent)| Some((name.to_string(), extent.parse().ok()?)));
        let (name, extent) = bound.ok_or_else(|| wrong(path, format!("--bind {text}: write NAME=EXTENT")))?;
        options.dims.insert(name, extent);
    }
    let bytes = read(path)?;
    match path.extension().and_then(|e| e.to_str()) {
        Some("onnx") => {
            let mut outside = |at: &onnx::External| beside(path, at);
            let model = onnx::read(&bytes, &options, &mut outside).map_err(|error| wrong(path, error))?;
            Ok(Loaded { graph: model.graph, external: model.external })
        }
        Some("xml") => {
            let weights = path.with_extension("bin");
            let bin = if weights.exists() { read(&weights)? } else { vec![] };
            let graph = openvino::read(&bytes, &bin, &options).map_err(|error| wrong(path, error))?;
            Ok(Loaded { graph, external: vec![] })
        }
        _ => {
            let text = String::from_utf8(bytes).map_err(|_| wrong(path, "the text of a graph is UTF-8"))?;
            let graph = text.parse().map_err(|error: cranefold_graph::GraphError| wrong(path, error))?;
            Ok(Loaded { graph, external: vec![] })
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let unreadable = |error| Failure::Read { path: path.into(), error };
    let mut file = File::open(path).map_err(unreadable)?;
    let length = file.metadata().map_err(unreadable)?.len();
    if length > MAX_FILE {
        return Err(wrong(path, format!("{length} bytes, and the limit is {MAX_FILE}")));
    }
    let mut bytes = vec![];
    file.read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

/// The bytes of a tensor in a file beside a model; links may not lead out of the model's folder either.
fn beside(model: &Path, at: &onnx::External) -> Result<Vec<u8>, String> {
    let folder = match model.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let told = |error: std::io::Error| format!("{}: {error}", at.location);
    let (folder, file) =
        (folder.canonicalize().map_err(told)?, folder.join(&at.location).canonicalize().map_err(told)?);
    if !file.starts_with(&folder) {
        return Err(format!("{} leads out of the model's folder", at.location));
    }
    let mut file = File::open(file).map_err(told)?;
    let length = file.metadata().map_err(told)?.len();
    if at.offset.checked_add(at.bytes).is_none_or(|end| end > length) {
        return Err(format!(
            "{}: bytes {} to {} of {length}",
            at.location,
            at.offset,
            at.offset.saturating_add(at.bytes)
        ));
    }
    file.seek(SeekFrom::Start(at.offset)).map_err(told)?;
    let mut bytes = vec![];
    file.take(at.bytes).read_to_end(&mut bytes).map_err(told)?;
    Ok(bytes)
}

fn wrong(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::Model { path: path.into(), message: error.to_string() }
}

/// The kernels and the decisions, for readers.
fn shown(plan: &Plan) -> String {
    let kernels = plan.kernels().enumerate().map(|(number, kernel)| format!("kernel {number}: {}\n", kernel.spec));
    let decisions = plan.decisions().into_iter().map(|line| format!("# {line}\n"));
    let bytes = format!("# {} bytes instead of {}\n", plan.bytes_after(), plan.bytes_before());
    kernels.chain(decisions).chain([bytes]).collect()
}

/// The plan as one JSON object.
fn json_of(plan: &Plan) -> serde_json::Value {
    let kernels = plan.kernels().map(
        |kernel| serde_json::json!({ "spec": kernel.spec.to_string(), "nodes": kernel.nodes, "bytes": kernel.bytes }),
    );
    let opaque = plan.opaque().map(|step| serde_json::json!({ "name": step.name, "op": step.op, "why": step.why }));
    serde_json::json!({
        "kernels": kernels.collect::<Vec<_>>(),
        "opaque": opaque.collect::<Vec<_>>(),
        "bytes_before": plan.bytes_before(),
        "bytes_after": plan.bytes_after(),
    })
}
