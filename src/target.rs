//! A target of code: an instruction set with its features.

use crate::error::Error;
use crate::vectors::Vectors;
use cranefold_ir::nearest::meant;
use cranelift_codegen::isa::{self, Builder, LookupError, OwnedTargetIsa};
use cranelift_codegen::settings::{self, Configurable, Flags, SettingKind};
use std::fmt;
use std::sync::Arc;
use target_lexicon::{Architecture, Triple};

/// An instruction set with its features.
#[derive(Clone)]
pub struct Target {
    isa: OwnedTargetIsa,
    features: Arc<str>,
    /// The features for which Cranelift has no name.
    own: Arc<[&'static str]>,
    vectors: Vectors,
    host: bool,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({self})")
    }
}

/// The triple and the features as they were given, or `host` if they were detected.
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
        let isa = builder.finish(flags(CodePlacement::Known).map_err(refused)?).map_err(|e| refused(e.to_string()))?;
        let own = own_of_host();
        let vectors = vectors(isa.triple(), &[flags_on(&isa), own.clone()].concat());
        Ok(Target { isa, features: "host".into(), own: own.into(), vectors, host: true })
    }

    /// A target by its triple (`x86_64-unknown-linux-gnu`) and its features, separated by commas or spaces. Features
    /// are Cranelift's names (`has_avx`) and presets (`haswell`, `x86-64-v3`), and on x86-64 also `has_f16c` and
    /// `has_avx512bw`, for which Cranelift has no names, and `intel` ([`Vectors::intel`]). Without features, the target is
    /// the least of its kind. The architectures are x86-64, aarch64, riscv64 (vectors with `has_v`) and s390x: the machine's
    /// own in every build, all others with the feature `all-targets` of this crate.
    ///
    /// Code for the architecture and system of this machine can run here, so features that the machine lacks are
    /// refused. [`elsewhere`](Target::elsewhere) takes them.
    ///
    /// ```
    /// use cranefold::Target;
    ///
    /// let target = Target::new("x86_64-apple-darwin", "x86-64-v3")?;
    /// assert_eq!(target.vector_bits(), 256);
    /// # Ok::<(), cranefold::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Target`] if the triple or a feature is unknown, or this machine lacks the feature.
    pub fn new(triple: &str, features: &str) -> Result<Target, Error> {
        Target::of(triple, features, true)
    }

    /// A target like [`new`](Target::new)'s, for code that runs on other machines: all features are allowed, and the
    /// code does not run here.
    ///
    /// # Errors
    /// [`Error::Target`] if the triple or a feature is unknown.
    pub fn elsewhere(triple: &str, features: &str) -> Result<Target, Error> {
        Target::of(triple, features, false)
    }

    fn of(triple: &str, features: &str, runs_here: bool) -> Result<Target, Error> {
        let cut = |text: &str, most: usize| text.chars().take(most).collect();
        let refused = |reason: String| Error::Target { target: cut(triple, 80), reason: cut(&reason, 400) };
        let parsed: Triple = triple.parse().map_err(|e: target_lexicon::ParseError| refused(e.to_string()))?;
        let builder = isa::lookup(parsed.clone()).map_err(|e| refused(unknown(&e)))?;
        let native = Triple::host();
        let is_native =
            parsed.architecture == native.architecture && parsed.operating_system == native.operating_system;
        let host = runs_here && is_native;
        let available = if host { host_features().map_err(refused)? } else { vec![] };
        let mut words: Vec<&str> = vec![];
        let mut asked = Asked { builder, own: vec![] };
        for word in features.split([',', ' ']).filter(|w| !w.is_empty()) {
            if words.contains(&word) {
                continue;
            }
            let added = asked.enable(word).map_err(refused)?;
            if let Some(lacking) = added.into_iter().find(|flag| host && *flag != INTEL && !available.contains(flag)) {
                let of = if lacking == word { String::new() } else { format!(" of `{word}`") };
                return Err(refused(format!("this machine lacks the feature `{lacking}`{of}")));
            }
            words.push(word);
        }
        let flags = flags(CodePlacement::Known).map_err(refused)?;
        let isa = asked.builder.finish(flags).map_err(|e| refused(e.to_string()))?;
        let own = asked.own;
        let vectors = vectors(isa.triple(), &[flags_on(&isa), own.clone()].concat());
        Ok(Target { isa, features: words.join(",").into(), own: own.into(), vectors, host })
    }

    /// The target's widest vectors.
    pub fn vectors(&self) -> Vectors {
        self.vectors
    }

    /// Bits of the target's widest vector.
    pub fn vector_bits(&self) -> u32 {
        self.vectors.bits
    }

    /// Returns true if the target's code runs on this machine.
    pub fn is_host(&self) -> bool {
        self.host
    }

    /// The triple.
    pub fn triple(&self) -> String {
        self.isa.triple().to_string()
    }

    /// The features of the target, by the names that [`new`](Target::new) takes.
    pub fn features(&self) -> Vec<&'static str> {
        let mut features = flags_on(&self.isa);
        for own in OWN {
            features.extend(self.own.contains(&own).then_some(own));
        }
        features
    }

    /// The canonical text of the target, for signatures: the triple and every enabled feature, in alphabetical order,
    /// whether the features were given one by one, by a preset, or detected.
    ///
    /// ```
    /// use cranefold::Target;
    ///
    /// let target = Target::elsewhere("x86_64-unknown-none", "has_sse41,has_sse3 has_ssse3")?;
    /// assert_eq!(target.canonical(), "x86_64-unknown-none has_sse3 has_sse41 has_ssse3");
    /// # Ok::<(), cranefold::Error>(())
    /// ```
    pub fn canonical(&self) -> String {
        let mut features = self.features();
        features.sort_unstable();
        std::iter::once(self.triple().as_str()).chain(features).collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn isa(&self) -> &OwnedTargetIsa {
        &self.isa
    }

    /// Cranelift's form of the target, for code that a linker places.
    ///
    /// # Errors
    /// [`Error::Target`] if Cranelift has no such form of the target.
    pub(crate) fn isa_of_objects(&self) -> Result<OwnedTargetIsa, Error> {
        let refused = |reason: String| Error::Target { target: self.isa.triple().to_string(), reason };
        let mut builder = isa::lookup(self.isa.triple().clone()).map_err(|e| refused(unknown(&e)))?;
        for flag in self.isa.isa_flags() {
            builder.set(flag.name, &flag.value_string()).map_err(|e| refused(e.to_string()))?;
        }
        builder.finish(flags(CodePlacement::Anywhere).map_err(refused)?).map_err(|e| refused(e.to_string()))
    }
}

/// The reason for which a target is refused.
fn unknown(error: &LookupError) -> String {
    match error {
        LookupError::SupportDisabled => {
            "it is left out of this build, which is for its own architecture alone: the feature `all-targets` of the crate \
             adds all others"
                .into()
        }
        LookupError::Unsupported => "the architectures are x86_64, aarch64, riscv64 and s390x".into(),
    }
}

/// Features of x86-64 for which Cranelift has no name. The last one says how fast the machine is, and needs nothing of it.
const OWN: [&str; 3] = ["has_f16c", "has_avx512bw", INTEL];

/// See [`Vectors::intel`].
const INTEL: &str = "intel";

/// The features that vectors of 256 bits need.
const AVX2: [&str; 4] = ["has_avx2", "has_fma", "has_bmi1", "has_f16c"];

/// The features that vectors of 512 bits need besides.
const AVX512: [&str; 4] = ["has_avx512f", "has_avx512dq", "has_avx512vl", "has_avx512bw"];

/// Features that every machine with another feature has too, but that Cranelift's presets leave out.
const TOGETHER: [(&str, &[&str]); 2] = [
    ("has_avx2", &["has_avx", "has_f16c"]),
    ("has_avx512dq", &["has_avx2", "has_avx", "has_f16c", "has_avx512f", "has_avx512bw"]),
];

/// Features that another one implies, and that Cranelift wants by name.
const IMPLIED: [(&str, &str); 1] = [("has_v", "has_zvl128b")];

/// The features enabled so far.
struct Asked {
    builder: Builder,
    /// The features for which Cranelift has no name.
    own: Vec<&'static str>,
}

impl Asked {
    /// Enables a feature, or the features of a preset; returns those that were not enabled before.
    fn enable(&mut self, word: &str) -> Result<Vec<&'static str>, String> {
        let is_x86 = self.builder.triple().architecture == Architecture::X86_64;
        if let Some(own) = OWN.into_iter().find(|own| is_x86 && *own == word) {
            self.own.push(own);
            return Ok(vec![own]);
        }
        let before = self.on()?;
        if !self.builder.iter().any(|setting| setting.name == word) {
            let known: Vec<&str> = self.builder.iter().map(|setting| setting.name).collect();
            let own = format!("has_{word}");
            return Err(match known.contains(&own.as_str()) {
                true => format!("there is no feature `{word}`: did you mean `{own}`?"),
                false if meant(word, known.iter().copied()).is_empty() => {
                    format!("there is no feature `{word}`; there are {}", known.join(", "))
                }
                false => format!("there is no feature `{word}`{}", meant(word, known)),
            });
        }
        self.builder.enable(word).map_err(|e| format!("feature `{word}`: {e}"))?;
        if self.builder.iter().any(|s| s.name == word && s.kind == SettingKind::Preset) {
            let on = self.on()?;
            for (_, others) in TOGETHER.iter().filter(|(feature, _)| on.contains(feature)) {
                for other in *others {
                    match OWN.contains(other) {
                        true => self.own.push(other),
                        false => self.builder.enable(other).map_err(|e| format!("feature `{word}`: {e}"))?,
                    }
                }
            }
        }
        let on = self.on()?;
        for (_, other) in IMPLIED.iter().filter(|(feature, other)| on.contains(feature) && !on.contains(other)) {
            self.builder.enable(other).map_err(|e| format!("feature `{word}`: {e}"))?;
        }
        Ok(self.on()?.into_iter().filter(|flag| !before.contains(flag)).collect())
    }

    fn on(&self) -> Result<Vec<&'static str>, String> {
        let isa = self.builder.finish(flags(CodePlacement::Known)?).map_err(|e| e.to_string())?;
        Ok([flags_on(&isa), self.own.clone()].concat())
    }
}

/// Cranelift's features of an instruction set.
fn flags_on(isa: &OwnedTargetIsa) -> Vec<&'static str> {
    isa.isa_flags().iter().filter(|v| v.as_bool() == Some(true)).map(|v| v.name).collect()
}

/// The features of this machine.
fn host_features() -> Result<Vec<&'static str>, String> {
    let isa = cranelift_native::builder()?.finish(flags(CodePlacement::Known)?).map_err(|e| e.to_string())?;
    Ok([flags_on(&isa), own_of_host()].concat())
}

/// The features of this machine that Cranelift has no name for.
fn own_of_host() -> Vec<&'static str> {
    #[cfg(target_arch = "x86_64")]
    let found = [is_x86_feature_detected!("f16c"), is_x86_feature_detected!("avx512bw"), is_of_intel()];
    #[cfg(not(target_arch = "x86_64"))]
    let found = [false; 3];
    OWN.into_iter().zip(found).filter(|(_, found)| *found).map(|(name, _)| name).collect()
}

/// Returns true if the processor says that Intel made it.
#[cfg(target_arch = "x86_64")]
fn is_of_intel() -> bool {
    let name = std::arch::x86_64::__cpuid(0);
    [name.ebx, name.edx, name.ecx].map(u32::to_le_bytes).concat() == b"GenuineIntel"
}

/// The widest vectors of a machine with these features.
fn vectors(triple: &Triple, features: &[&str]) -> Vectors {
    let has = |name: &str| features.contains(&name);
    let all = |names: &[&str]| names.iter().all(|name| has(name));
    if matches!(triple.architecture, Architecture::Riscv64(_)) && !has("has_v") {
        return Vectors::NONE;
    }
    match (all(&AVX2), all(&AVX512)) {
        (true, true) => {
            let (dot, byte_permutes) = (has("has_avx512vnni"), has("has_avx512vbmi"));
            Vectors { bits: 512, dot, byte_permutes, intel: has(INTEL) }
        }
        (true, false) => Vectors { bits: 256, dot: has("has_avx_vnni"), ..Vectors::BASE },
        (false, _) => Vectors::BASE,
    }
}

/// The address range of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CodePlacement {
    /// A place that the loader knows.
    Known,
    /// A place that a linker or the system chooses.
    Anywhere,
}

/// Cranelift's settings. Its optimiser is off, because our passes do its work and a dump shows the code that runs; its
/// verifier runs in debug builds. Frames of more than a page are probed, so that a stack overflow is always a fault.
fn flags(place: CodePlacement) -> Result<Flags, String> {
    let mut builder = settings::builder();
    let verifier = if cfg!(debug_assertions) { "true" } else { "false" };
    let settings = [
        ("opt_level", "none"),
        ("enable_verifier", verifier),
        ("is_pic", if place == CodePlacement::Anywhere { "true" } else { "false" }),
        ("use_colocated_libcalls", "false"),
        ("enable_probestack", "true"),
        ("probestack_strategy", "inline"),
    ];
    for (name, value) in settings {
        builder.set(name, value).map_err(|e| e.to_string())?;
    }
    Ok(Flags::new(builder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_is_left_out_names_the_feature() {
        assert!(unknown(&LookupError::SupportDisabled).contains("the feature `all-targets`"));
        assert!(!unknown(&LookupError::Unsupported).contains("all-targets"));
    }
}
