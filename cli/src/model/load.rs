//! Models from files: the format by the extension, tensors beside a model from its folder alone.

use crate::failure::Failure;
use cranefold_graph::onnx::OnnxError;
use cranefold_graph::openvino::OpenVinoError;
use cranefold_graph::{FuseOptions, Graph, GraphError, Plan, ReadOptions, fuse, onnx, openvino};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// The longest file that is read, in bytes: that of ONNX's own format.
const MAX_FILE: u64 = 1 << 31;

/// A model that was read.
pub struct Loaded {
    /// The graph.
    pub graph: Graph,
    /// The inputs of the graph that lie in files beside the model.
    pub external: Vec<(String, onnx::External)>,
}

/// Reads a model; the extension of the file says which format it has: `.onnx`, `.xml` beside its `.bin`, or the text of a
/// graph. `bind` are texts `NAME=EXTENT`.
///
/// # Errors
/// If a file cannot be read or is no model, or a dim is not bound, bound twice or not there.
pub fn load(path: &Path, bind: &[String]) -> Result<Loaded, Failure> {
    let mut options = ReadOptions::default();
    for text in bind {
        // A dim may be named by a formula, such as `past=0`.
        let bound = text.rsplit_once('=').and_then(|(name, extent)| Some((name.to_string(), extent.parse().ok()?)));
        let (name, extent) = bound.filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
            wrong(path, format!("--bind {text}: write NAME=EXTENT, where EXTENT is an integer of 0 and more"))
        })?;
        if options.dims.insert(name.clone(), extent).is_some() {
            return Err(wrong(path, format!("--bind {text}: `{name}` is bound twice")));
        }
    }
    let bytes = read(path)?;
    if bytes.is_empty() {
        return Err(wrong(path, "the file is empty"));
    }
    match path.extension().and_then(|e| e.to_str()) {
        Some("onnx") => {
            let mut outside = |at: &onnx::External| beside(path, at);
            let model = onnx::read(&bytes, &options, &mut outside).map_err(|error| match error {
                OnnxError::Graph(error) => unread(path, error),
                error => wrong(path, error),
            })?;
            Ok(Loaded { graph: model.graph, external: model.external })
        }
        Some("xml") => {
            let weights = path.with_extension("bin");
            let bin = if weights.exists() { read(&weights)? } else { vec![] };
            let graph = openvino::read(&bytes, &bin, &options).map_err(|error| match error {
                OpenVinoError::Graph(error) => unread(path, error),
                error => wrong(path, error),
            })?;
            Ok(Loaded { graph, external: vec![] })
        }
        _ => {
            let text = String::from_utf8(bytes).map_err(|_| {
                wrong(
                    path,
                    "a model ends in .onnx or .xml; else it is the text of a graph, which is UTF-8, and this is not",
                )
            })?;
            let graph = Graph::bound(&text, &options.dims).map_err(|error| unread(path, error))?;
            Ok(Loaded { graph, external: vec![] })
        }
    }
}

/// The failure of a graph that is not read; one that lacks an extent is told the option that gives it.
fn unread(path: &Path, error: GraphError) -> Failure {
    match &error {
        GraphError::Unbound { dim, .. } => wrong(path, format!("{error}, as by --bind \"{dim}=8\"")),
        _ => wrong(path, error),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let unreadable = |error| Failure::Read { path: path.into(), error };
    let file = File::open(path).map_err(unreadable)?;
    let length = file.metadata().map_err(unreadable)?.len();
    if length > MAX_FILE {
        return Err(wrong(path, format!("{length} bytes, and the limit is {MAX_FILE}")));
    }
    // A file may be a stream, which says no length.
    let mut bytes = vec![];
    let length = file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if length as u64 > MAX_FILE {
        return Err(wrong(path, format!("more bytes than the limit, {MAX_FILE}")));
    }
    Ok(bytes)
}

/// The bytes of a tensor in a file beside a model; links may not lead out of the model's folder either.
///
/// # Errors
/// If the path leaves the folder, or the file is too short or cannot be read.
pub fn beside(model: &Path, at: &onnx::External) -> Result<Vec<u8>, String> {
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

/// The plan of a graph.
///
/// # Errors
/// If the graph breaks a limit of plans.
pub fn planned(graph: &Graph, path: &Path) -> Result<Plan, Failure> {
    fuse(graph, &FuseOptions::default()).map_err(|error| wrong(path, error))
}

/// The failure of a model.
pub fn wrong(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::Model { path: path.into(), message: error.to_string() }
}
