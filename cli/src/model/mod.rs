//! `model`: a graph of tensor operations, the plan of kernels that it becomes, their times, and its results.

mod bench;
mod distinct;
mod emit;
mod load;

use crate::args::{Model, ModelVerb};
use crate::buffer::Buffer;
use crate::failure::Failure;
use crate::npy;
use crate::output_files::OutputFiles;
use cranefold::Compiler;
use cranefold_graph::{GraphError, Plan, Value};
pub use emit::library;
use load::{Loaded, beside, load, planned, wrong};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Prints a graph or its plan, runs it, or times its kernels.
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
        ModelVerb::Bench(args) => bench::bench(args, out),
    }
}

fn run(path: &Path, bind: &[String], given: &[String], wanted: &[String], out: &mut dyn Write) -> Result<(), Failure> {
    let Loaded { graph, external } = load(path, bind)?;
    let plan = planned(&graph, path)?;
    refuse_opaque(&plan, path, "")?;
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
            Some(at) => {
                let unread = |reason: String| wrong(path, GraphError::node(&value.name, reason));
                Loading::Bytes(beside(path, at).map_err(unread)?)
            }
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

/// Refuses a plan with steps that no kernel computes; the message ends with the remedy.
///
/// # Errors
/// If there is such a step: the first ones by name, with their number.
pub fn refuse_opaque(plan: &Plan, path: &Path, remedy: &str) -> Result<(), Failure> {
    let count = plan.opaque().count();
    if count == 0 {
        return Ok(());
    }
    let named = plan.opaque().take(MOST_NAMED).map(|step| format!("node `{}` ({}): {}", step.name, step.op, step.why));
    let named = named.collect::<Vec<_>>().join("; ");
    let more = if count > MOST_NAMED {
        format!("; and {} more, which `model plan` shows", count - MOST_NAMED)
    } else {
        String::new()
    };
    Err(wrong(path, format!("no kernel computes {named}{more}{remedy}")))
}

/// The most opaque nodes that a message names.
const MOST_NAMED: usize = 8;

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
            let other = text.split_once('=').filter(|_| !Path::new(text).exists());
            if let Some((name, _)) = other {
                let known = names.join(", ");
                return Err(wrong(path, format!("there is no {role} `{name}`: there is {known}")));
            }
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

/// The kernels and the decisions, for readers.
fn shown(plan: &Plan) -> String {
    let kernels = plan.kernels().enumerate().map(|(number, kernel)| format!("kernel {number}: {}\n", kernel.spec));
    let decisions = plan.decisions().into_iter().map(|line| format!("# {line}\n"));
    let bytes = format!("# {} bytes instead of {}\n", plan.bytes_after(), plan.bytes_before());
    kernels.chain(decisions).chain([bytes]).collect()
}

/// The plan as one JSON object.
fn json_of(plan: &Plan) -> serde_json::Value {
    let kernels = plan.kernels().map(|kernel| {
        serde_json::json!({
            "spec": kernel.spec.to_string(), "nodes": kernel.nodes, "bytes": kernel.bytes, "notes": kernel.notes,
        })
    });
    let opaque = plan.opaque().map(|step| serde_json::json!({ "name": step.name, "op": step.op, "why": step.why }));
    serde_json::json!({
        "kernels": kernels.collect::<Vec<_>>(),
        "opaque": opaque.collect::<Vec<_>>(),
        "bytes_before": plan.bytes_before(),
        "bytes_after": plan.bytes_after(),
    })
}
