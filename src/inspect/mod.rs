//! A kernel as text: every stage, the reasons for its schedule, its machine code, and names for `perf`.

pub(crate) mod assembly;
mod disassembly;
pub mod dump;
mod explain;
pub(crate) mod perf;

use crate::error::Error;
use crate::kernel::Kernel;

/// The operations of a call, and the loop that holds most of them.
///
/// Operations are those of the nest after its last pass, which are close to instructions; a load is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedWork {
    /// Operations, with each lane of a vector counted.
    pub operations: u64,
    /// Operations, with a vector counted once.
    pub vector_operations: u64,
    /// The variable of the innermost loop around the body with most operations and loads, such as `k1`; `None` if no loop
    /// does any work.
    pub hot_loop: Option<String>,
}

impl Kernel {
    /// The operations of a call, and the loop that holds most of them.
    ///
    /// ```
    /// use cranefold::{Compiler, Spec};
    ///
    /// let spec: Spec = "sum f32[64,1024] axes=[1]".parse()?;
    /// let work = Compiler::host()?.compile(&spec)?.work()?;
    /// assert!(work.operations >= 64 * 1023);
    /// assert!(work.hot_loop.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Internal`] if the nest cannot be made again: a bug of ours.
    pub fn work(&self) -> Result<CountedWork, Error> {
        explain::counted(self.compiled())
    }

    /// The text of one stage between the spec and this kernel's code, or of `all` stages.
    ///
    /// The stages are made again from the kernel's own problem and schedule. The compiler is deterministic, so the text
    /// is of the code that runs.
    ///
    /// # Errors
    /// [`Error::Stage`] if there is no stage of that name, or none of this kernel.
    pub fn dump(&self, stage: &str) -> Result<String, Error> {
        dump::dump(self.spec(), self.compiled(), stage)
    }

    /// The page that explains the kernel: bytes, operations and the level of memory that holds the data, the tree, the
    /// order of the loops, the schedule and the other candidates, the code of each generator, and the expected time of
    /// a call on [`Machine::TYPICAL`](crate::schedule::Machine::TYPICAL).
    ///
    /// ```
    /// use cranefold::{Compiler, Spec};
    ///
    /// let spec: Spec = "sum f32[1024,1024] axes=[1]".parse()?;
    /// let page = Compiler::host()?.compile(&spec)?.explain()?;
    /// assert!(page.contains("moves      4,194,304 bytes read, 4,096 written\n"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Internal`] if the nest cannot be made again: a bug of ours.
    pub fn explain(&self) -> Result<String, Error> {
        explain::explain(self.spec(), self.compiled(), &self.facts())
    }
}
