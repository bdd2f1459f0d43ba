//! What code is made for: an instruction set.

use crate::error::Error;
use crate::passes::VECTOR_BITS;
use cranelift_codegen::isa::{self, OwnedTargetIsa};
use cranelift_codegen::settings::{self, Configurable, Flags};
use std::fmt;
use target_lexicon::Triple;

/// An instruction set with its features.
#[derive(Clone)]
pub struct Target {
    isa: OwnedTargetIsa,
    features: String,
    host: bool,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({self})")
    }
}

/// The triple and the features that were given, `host` where they were detected.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let features = if self.features.is_empty() { "" } else { " " };
        write!(f, "{}{features}{}", self.isa.triple(), self.features)
    }
}

impl Target {
    /// This machine, with every feature it has.
    ///
    /// # Errors
    /// [`Error::Target`] if Cranelift does not know the machine.
    pub fn host() -> Result<Target, Error> {
        let refused = |reason: String| Error::Target { target: "host".into(), reason };
        let builder = cranelift_native::builder().map_err(|e| refused(e.into()))?;
        let isa = builder.finish(flags().map_err(refused)?).map_err(|e| refused(e.to_string()))?;
        Ok(Target { isa, features: "host".into(), host: true })
    }

    /// A target by its triple (`x86_64-unknown-linux-gnu`) and the names Cranelift gives its features
    /// (`has_avx`), separated by commas or spaces. Without features it is the least of its kind.
    ///
    /// Code for the architecture and system of this machine can be run here, which needs features
    /// that the machine has: asking for others is refused.
    ///
    /// # Errors
    /// [`Error::Target`] if the triple or a feature is unknown, or this machine lacks the feature.
    pub fn new(triple: &str, features: &str) -> Result<Target, Error> {
        let refused = |reason: String| Error::Target { target: triple.chars().take(80).collect(), reason };
        let parsed: Triple = triple.parse().map_err(|e: target_lexicon::ParseError| refused(e.to_string()))?;
        let mut builder = isa::lookup(parsed.clone()).map_err(|e| refused(e.to_string()))?;
        let native = Triple::host();
        let host = parsed.architecture == native.architecture && parsed.operating_system == native.operating_system;
        let words: Vec<&str> = features.split([',', ' ']).filter(|w| !w.is_empty()).collect();
        let available = if host { host_features().map_err(refused)? } else { vec![] };
        for word in &words {
            builder.enable(word).map_err(|e| refused(format!("feature `{word}`: {e}")))?;
            if host && !available.iter().any(|a| a == word) {
                return Err(refused(format!("this machine lacks the feature `{word}`")));
            }
        }
        let isa = builder.finish(flags().map_err(refused)?).map_err(|e| refused(e.to_string()))?;
        Ok(Target { isa, features: words.join(","), host })
    }

    /// Bits of its widest vector.
    pub fn vector_bits(&self) -> u32 {
        VECTOR_BITS
    }

    /// Whether its code runs on this machine.
    pub fn is_host(&self) -> bool {
        self.host
    }

    pub(crate) fn isa(&self) -> &OwnedTargetIsa {
        &self.isa
    }
}

/// The features of this machine that are on or off.
fn host_features() -> Result<Vec<String>, String> {
    let isa = cranelift_native::builder()?.finish(flags()?).map_err(|e| e.to_string())?;
    let on = |v: &&settings::Value| v.as_bool() == Some(true);
    Ok(isa.isa_flags().iter().filter(on).map(|v| v.name.to_string()).collect())
}

/// Our own passes do what an optimiser would, so that what is dumped is what ran; they are verified
/// before. Frames of more than a page are probed, so that an overflow is a fault and nothing else.
fn flags() -> Result<Flags, String> {
    let mut builder = settings::builder();
    let verifier = if cfg!(debug_assertions) { "true" } else { "false" };
    let settings = [
        ("opt_level", "none"),
        ("enable_verifier", verifier),
        ("is_pic", "false"),
        ("use_colocated_libcalls", "false"),
        ("enable_probestack", "true"),
        ("probestack_strategy", "inline"),
    ];
    for (name, value) in settings {
        builder.set(name, value).map_err(|e| e.to_string())?;
    }
    Ok(Flags::new(builder))
}
