//! The settings of a compiler.

use super::{Compiler, Inner, Limits, Options};
use crate::error::Error;
use crate::process::OfProcess;
use crate::schedules::Schedules;
use crate::target::Target;
use std::path::PathBuf;
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
    width: Option<u32>,
    most_kernels: Option<usize>,
    most_code_bytes: Option<u64>,
    perf_map: bool,
    schedules: Option<PathBuf>,
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

    /// Bits of the widest vector that code may use: 0 (scalar), 64, 128, 256, 512 or 1024; by default the target's. No
    /// bit of a result depends on it.
    pub fn width(self, width: u32) -> Builder {
        Builder { width: Some(width), ..self }
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

    /// Takes schedules from a [file](crate::schedules) that `cranefold tune` has written, where the compiler would choose.
    /// The file is read once, by [`build`](Builder::build); no file is as good as an empty one, and no line can change a
    /// bit of a result. A schedule from the file is verified as a forced one is, which takes longer to compile.
    pub fn schedules(self, path: impl Into<PathBuf>) -> Builder {
        Builder { schedules: Some(path.into()), ..self }
    }

    /// The compiler.
    ///
    /// # Errors
    /// [`Error::Target`] if no target was given and Cranelift does not know this machine, [`Error::Schedule`] if vectors
    /// cannot have the width, [`Error::PerfMap`] if the map cannot be written, [`Error::Schedules`] if the file of schedules
    /// cannot be read.
    pub fn build(self) -> Result<Compiler, Error> {
        let target = self.target.map_or_else(Target::host, Ok)?;
        let threads = self.threads.unwrap_or(1);
        let options = Options { schedule: None, width: self.width };
        let bounds = options.bounds(target.vectors(), threads)?;
        let limits = Limits {
            most_kernels: self.most_kernels.unwrap_or(MOST_KERNELS),
            most_code_bytes: self.most_code_bytes.unwrap_or(MOST_CODE_BYTES),
            perf_map: self.perf_map,
        };
        let target_text = target.canonical();
        let read = |path: PathBuf| {
            let of_path = |error: std::io::Error| Error::Schedules {
                path: path.display().to_string(),
                reason: error.to_string(),
            };
            Schedules::read(&path, &target_text, threads).map_err(of_path)
        };
        let schedules = self.schedules.map_or_else(|| Ok(Schedules::default()), read)?;
        Ok(Compiler(Arc::new(Inner {
            bounds,
            target_text: target_text.into(),
            target,
            schedules,
            limits,
            of_process: OfProcess::new(limits.start()?),
        })))
    }
}
