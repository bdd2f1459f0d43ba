//! A spec, a problem or a nest that has been asked for: what its code is kept by, and what its calls are held to.

mod signature;

pub(crate) use signature::hash;
pub use signature::{Key, Signature};

use crate::problem;
use crate::schedule::Source;
use crate::spec::{Operand, Spec};
use cranefold_ir::{Buffer, BufferRole, DType};
use quick_cache::Equivalent;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A spec and the signature of its code, which [`Compiler::keyed`](crate::Compiler::keyed) computes once, so that
/// asking for its kernel again costs little. Cheap to clone.
///
/// Specs of one problem have equal signatures, and share code.
#[derive(Clone, Debug)]
pub struct KeyedSpec(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// True if the caller forced choices, which the signature then holds.
    is_forced: bool,
    /// None of a problem or a nest.
    spec: Option<Spec>,
    signature: Signature,
    inputs: Box<[Expected]>,
    outputs: Box<[Expected]>,
}

/// The type and the least bytes that a call's buffer must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expected {
    dtype: DType,
    bytes: usize,
}

impl Expected {
    /// The requirement of so many elements.
    fn of(dtype: DType, elems: u64) -> Expected {
        // What fits no address space is no buffer's length.
        Expected { dtype, bytes: usize::try_from(elems.saturating_mul(dtype.bytes())).unwrap_or(usize::MAX) }
    }

    /// Returns true if a buffer has this type and these bytes, or more.
    #[inline]
    pub fn is(&self, dtype: DType, bytes: usize) -> bool {
        (self.dtype == dtype) & (self.bytes <= bytes)
    }

    /// The type of its elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The type of its elements, and how many there are.
    pub fn elements(&self) -> (DType, u64) {
        (self.dtype, self.bytes() / self.dtype.bytes())
    }

    /// Its bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes as u64
    }
}

/// The most characters of a spec in a message.
const TITLE: usize = 100;

/// The text of a spec on one line between quotes, cut if it is long.
pub(crate) fn title(spec: &Spec) -> String {
    let text = spec.to_string();
    let mut rest = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let start: String = rest.by_ref().take(TITLE).collect();
    format!("`{}{}`", start.trim_end(), if rest.next().is_some() { "..." } else { "" })
}

/// The inputs and the outputs that code of a source takes, in order.
fn operands(source: &Source) -> (Vec<Expected>, Vec<Expected>) {
    match source {
        Source::Problem(problem) | Source::Part(problem, _) => {
            let expected = |o: &problem::OperandSpan| Expected::of(o.dtype, o.len);
            (
                problem.inputs.iter().map(|i| expected(&i.operand)).collect(),
                problem.outputs.iter().map(expected).collect(),
            )
        }
        Source::Nest(nest) => {
            let (inputs, outputs) = nest.buffers.iter().partition::<Vec<_>, _>(|b| b.role == BufferRole::In);
            let expected = |buffers: Vec<&Buffer>| buffers.iter().map(|b| Expected::of(b.dtype, b.len)).collect();
            (expected(inputs), expected(outputs))
        }
    }
}

impl KeyedSpec {
    /// The keyed spec of a spec.
    pub(crate) fn new(spec: Spec, signature: Signature, is_forced: bool) -> KeyedSpec {
        let expected = |o: &Operand| Expected::of(o.dtype(), o.span_elems());
        let inputs = spec.inputs().iter().map(expected).collect();
        let outputs = spec.outputs().iter().map(expected).collect();
        KeyedSpec(Arc::new(Inner { is_forced, spec: Some(spec), signature, inputs, outputs }))
    }

    /// The keyed spec of the problem or the nest of a signature.
    pub(crate) fn of_source(signature: Signature) -> KeyedSpec {
        let (inputs, outputs) = operands(&signature.source);
        let (inputs, outputs) = (inputs.into(), outputs.into());
        KeyedSpec(Arc::new(Inner { is_forced: true, spec: None, signature, inputs, outputs }))
    }

    /// The spec; none of a problem or a nest.
    pub fn spec(&self) -> Option<&Spec> {
        self.0.spec.as_ref()
    }

    /// The cache key of the spec's code.
    pub fn signature(&self) -> &Signature {
        &self.0.signature
    }

    /// The name in messages: the text of the spec, cut if it is long.
    pub(crate) fn title(&self) -> String {
        match &self.0.spec {
            Some(spec) => title(spec),
            None => "of a problem or a nest".into(),
        }
    }

    /// The types and bytes that the inputs and the outputs of a call must have.
    pub(crate) fn expected(&self) -> (&[Expected], &[Expected]) {
        (&self.0.inputs, &self.0.outputs)
    }
}

impl PartialEq for KeyedSpec {
    fn eq(&self, other: &KeyedSpec) -> bool {
        let same = |a: &Inner, b: &Inner| a.spec == b.spec && a.signature == b.signature;
        Arc::ptr_eq(&self.0, &other.0) || same(&self.0, &other.0)
    }
}

impl Eq for KeyedSpec {}

impl Hash for KeyedSpec {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let forced = if self.0.is_forced { self.0.signature.hash() as u64 } else { 0 };
        state.write_u64(self.0.spec.as_ref().map_or(0, Spec::known_hash) ^ forced);
    }
}

/// The lookup key of a keyed spec without forced choices: its spec.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a>(pub &'a Spec);

impl Hash for Asked<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.known_hash());
    }
}

impl Equivalent<KeyedSpec> for Asked<'_> {
    fn equivalent(&self, keyed: &KeyedSpec) -> bool {
        !keyed.0.is_forced && keyed.0.spec.as_ref() == Some(self.0)
    }
}
