//! A spec with the cache key of its code and the buffers that its calls take.

mod signature;

pub(crate) use signature::hash;
pub use signature::{Key, Signature};

use crate::spec::{Operand, Spec};
use cranefold_ir::DType;
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
    spec: Spec,
    signature: Signature,
    inputs: Box<[Expected]>,
    outputs: Box<[Expected]>,
}

/// The type and the bytes that a call's buffer must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expected {
    dtype: DType,
    bytes: usize,
}

impl Expected {
    /// Returns true if a buffer has this type and this number of bytes.
    #[inline]
    pub fn is(&self, dtype: DType, bytes: usize) -> bool {
        (self.dtype == dtype) & (self.bytes == bytes)
    }
}

impl KeyedSpec {
    pub(crate) fn new(spec: Spec, signature: Signature, is_forced: bool) -> KeyedSpec {
        // No buffer has a length that exceeds the address space.
        let bytes = |o: &Operand| usize::try_from(o.span_bytes()).unwrap_or(usize::MAX);
        let expected = |o: &Operand| Expected { dtype: o.dtype(), bytes: bytes(o) };
        let inputs = spec.inputs().iter().map(expected).collect();
        let outputs = spec.outputs().iter().map(expected).collect();
        KeyedSpec(Arc::new(Inner { is_forced, spec, signature, inputs, outputs }))
    }

    /// The spec.
    pub fn spec(&self) -> &Spec {
        &self.0.spec
    }

    /// The cache key of the spec's code.
    pub fn signature(&self) -> &Signature {
        &self.0.signature
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
        state.write_u64(self.0.spec.known_hash() ^ forced);
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
        !keyed.0.is_forced && keyed.0.spec == *self.0
    }
}
