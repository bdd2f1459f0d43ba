//! Fuzzing of cranefold: laws that hold for any bytes.
//!
//! A [`Target`] is a function of bytes that panics if they break a law:
//!
//! | target | bytes | law |
//! | --- | --- | --- |
//! | `spec problem schedule nest program expression combiner layout` | text | it is refused with a short message that points into it, or reads, prints and reads back |
//! | `region` | text | the same; other ends of its definitions are the same spec and problem |
//! | `nest` | text | a nest that verifies is interpreted |
//! | `expression` | text | an expression that types is computed |
//! | `value isa onednn` | text | the law of texts, for types and values, triples and features, oneDNN's names |
//! | `stages` | text of a problem, or a schedule and a spec by lines | each pass gives a nest that verifies |
//! | `compile` | the same | native code gives the bits of the interpreter |
//! | `given` | text of a problem or a nest | what verifies compiles, or has no form, and native code gives the bits of the interpreter |
//! | `run` | the numbers of a [`specs::Case`] | the same, and the reference allows the results |
//! | `run_region` | the numbers of a [`regions::RegionCase`] | the same |
//! | `state` | the numbers of a range and of changes to its state | an error and nothing written, or the same state from either side |
//! | `onnx` | a model | it is refused with a short message, or its graph prints and reads back |
//! | `openvino` | the XML of a model | the same |
//! | `graph` | text | the law of texts; a plan of it prints and reads back |
//! | `plan` | text | the law of texts |
//!
//! [`Inputs`](inputs::Inputs) makes endless inputs from a seed: the texts of the golden files and of the lists of
//! specs, cut, spliced and with numbers at the ends of their ranges, and some plain bytes. `corpus/TARGET/` keeps the
//! inputs that ever broke a law, [`minimised`](minimise::minimised), and a few that reach far. `cargo test --workspace`
//! tries all of them, and a few seconds of new ones.
//!
//! ```text
//! cargo run --release -p cranefold-fuzz -- TARGET --inputs 1000000 --seed 1
//! ```
//!
//! Fuzzers guided by coverage need the instrumentation of a nightly compiler. They take a target as it is:
//! `fuzz_target!(|bytes: &[u8]| _ = cranefold_fuzz::texts::nest(bytes))`.
//!
//! `tests/properties` uses the same generator of specs.

pub mod bits;
mod bytes;
mod compositions;
pub mod data;
pub mod execute;
mod expressions;
pub mod inputs;
pub mod minimise;
pub mod models;
pub mod nests;
pub mod regions;
pub mod runs;
mod seeds;
pub mod specs;
mod states;
pub mod texts;

use std::path::{Path, PathBuf};

/// A law for any bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name of the target and of its corpus.
    pub name: &'static str,
    /// The law: panics if the bytes break it; returns true if they are accepted, and so reach beyond the parser.
    pub run: fn(&[u8]) -> bool,
    /// The source of inputs.
    pub inputs: Origin,
}

/// The source of a target's inputs.
#[derive(Clone, Copy, Debug)]
pub enum Origin {
    /// The texts from which inputs are made.
    Texts(fn() -> Vec<String>),
    /// At most so many bytes, which are numbers.
    Numbers(usize),
    /// The files of the corpus, which inputs are made from.
    Files,
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target { name: "spec", run: texts::spec, inputs: Origin::Texts(seeds::specs) },
    Target { name: "region", run: texts::region, inputs: Origin::Texts(seeds::regions) },
    Target { name: "problem", run: texts::problem, inputs: Origin::Texts(seeds::problems) },
    Target { name: "schedule", run: texts::schedule, inputs: Origin::Texts(seeds::schedules) },
    Target { name: "nest", run: texts::nest, inputs: Origin::Texts(seeds::nests) },
    Target { name: "program", run: texts::program, inputs: Origin::Texts(seeds::programs) },
    Target { name: "expression", run: texts::expression, inputs: Origin::Texts(seeds::expressions) },
    Target { name: "combiner", run: texts::combiner, inputs: Origin::Texts(seeds::combiners) },
    Target { name: "layout", run: texts::layout, inputs: Origin::Texts(seeds::layouts) },
    Target { name: "value", run: texts::value, inputs: Origin::Texts(seeds::values) },
    Target { name: "isa", run: texts::isa, inputs: Origin::Texts(seeds::isas) },
    Target { name: "onednn", run: texts::onednn, inputs: Origin::Texts(seeds::primitives) },
    Target { name: "stages", run: runs::stages, inputs: Origin::Texts(seeds::compilations) },
    Target { name: "compile", run: runs::compile, inputs: Origin::Texts(seeds::compilations) },
    Target { name: "given", run: runs::given, inputs: Origin::Texts(seeds::texts) },
    Target { name: "run", run: runs::run, inputs: Origin::Numbers(specs::Case::BYTES) },
    Target { name: "run_region", run: runs::run_region, inputs: Origin::Numbers(regions::RegionCase::BYTES) },
    Target { name: "state", run: states::state, inputs: Origin::Numbers(states::BYTES) },
    Target { name: "onnx", run: models::onnx, inputs: Origin::Files },
    Target { name: "openvino", run: models::openvino, inputs: Origin::Texts(Vec::new) },
    Target { name: "graph", run: models::graph, inputs: Origin::Texts(seeds::graphs) },
    Target { name: "plan", run: models::plan, inputs: Origin::Texts(seeds::plans) },
];

/// The target with this name.
///
/// ```
/// let target = cranefold_fuzz::target("spec").expect("a target");
/// assert!((target.run)(b"sum f32[2,3] axes=[1]"));
/// assert!(!(target.run)(b"sum f32[2,3] axes=["));
/// assert!(cranefold_fuzz::target("sum").is_none());
/// ```
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

impl Target {
    /// The folder of the inputs that are always tried.
    pub fn corpus_dir(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(self.name)
    }

    /// The inputs that are always tried, with their paths.
    ///
    /// # Errors
    /// The error of a file that cannot be read.
    pub fn corpus(&self) -> std::io::Result<Vec<(PathBuf, Vec<u8>)>> {
        let entries = match std::fs::read_dir(self.corpus_dir()) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(vec![]),
            entries => entries?,
        };
        let mut paths = entries.map(|entry| entry.map(|e| e.path())).collect::<Result<Vec<_>, _>>()?;
        paths.sort();
        paths.into_iter().map(|path| std::fs::read(&path).map(|bytes| (path, bytes))).collect()
    }
}
