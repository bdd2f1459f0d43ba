//! The settings of a compiler.

use super::cache::Cache;
use super::{Compiler, Inner};
use crate::error::Error;
use crate::inspect::perf::PerfMap;
use crate::target::Target;
use std::sync::Arc;

/// The default for the most codes kept.
const MOST_KERNELS: usize = 16_000;

/// The default for the most bytes of executable memory kept.
const MOST_CODE_BYTES: u64 = 256 << 20;

/// Makes a [`Compiler`].
///
/// ```
/// use cranefold::Compiler;
///
/// let compiler = Compiler::builder().threads(4).most_kernels(1000).most_code_bytes(16 << 20).build()?;
/// assert_eq!(compiler.threads(), 4);
/// # Ok::<(), cranefold::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Builder {
    target: Option<Target>,
    threads: Option<usize>,
    most_kernels: Option<usize>,
    most_code_bytes: Option<u64>,
    perf_map: bool,
}

impl Builder {
    /// The target; by default this machine with every instruction it has.
    pub fn target(self, target: Target) -> Builder {
        Builder { target: Some(target), ..self }
    }

    /// The number of threads that run a call; by default one. With several, large work gets several parts, which an
    /// [`Executor`](crate::Executor) runs.
    pub fn threads(self, threads: usize) -> Builder {
        Builder { threads: Some(threads.max(1)), ..self }
    }

    /// The most codes that are kept, at least one; by default 16,000.
    pub fn most_kernels(self, most: usize) -> Builder {
        Builder { most_kernels: Some(most), ..self }
    }

    /// The most bytes of executable memory of the codes that are kept; by default 256 MiB. Code is made anew for each
    /// spec if it is larger than a shard's share of these bytes, which is at least 4 MiB or all of them.
    pub fn most_code_bytes(self, most: u64) -> Builder {
        Builder { most_code_bytes: Some(most), ..self }
    }

    /// Writes the names of functions to `/tmp/perf-PID.map`, which `perf report` reads. A function's name is
    /// `cranefold::sum_f32_4xr1000_to_f32`, where `r` marks reduced extents; a wide function's has its number besides.
    pub fn perf_map(self) -> Builder {
        Builder { perf_map: true, ..self }
    }

    /// The compiler.
    ///
    /// # Errors
    /// [`Error::Target`] if no target was given and Cranelift does not know this machine, [`Error::PerfMap`] if the map
    /// cannot be written.
    pub fn build(self) -> Result<Compiler, Error> {
        let target = self.target.map_or_else(Target::host, Ok)?;
        let most_kernels = self.most_kernels.unwrap_or(MOST_KERNELS);
        let perf_map = self.perf_map.then(PerfMap::open).transpose()?;
        Ok(Compiler(Arc::new(Inner {
            vectors: target.vectors(),
            target_text: target.canonical().into(),
            target,
            threads: self.threads.unwrap_or(1),
            cache: Cache::new(most_kernels, self.most_code_bytes.unwrap_or(MOST_CODE_BYTES)),
            memory: Default::default(),
            perf_map,
        })))
    }
}
