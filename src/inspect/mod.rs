//! A kernel as text: every stage, the reasons for its schedule, its machine code, and names for `perf`.

pub(crate) mod assembly;
mod disassembly;
pub mod dump;
mod explain;
pub(crate) mod perf;

use crate::error::Error;
use crate::kernel::Kernel;

impl Kernel {
    /// The text of one stage of the way from the spec, the problem or the nest to this kernel's code, or of `all`.
    ///
    /// The stages are made again, from the kernel's own problem and schedule: the way is
    /// deterministic, so what is shown is what ran.
    ///
    /// # Errors
    /// [`Error::Stage`] if there is no stage of that name, or none of this kernel.
    pub fn dump(&self, stage: &str) -> Result<String, Error> {
        dump::dump(self.spec(), self.compiled(), stage)
    }

    /// Why the kernel is as it is, as a page of text: bytes, operations and where the data lies, the tree, the order
    /// of the loops, the schedule and what else there was, which generator made what, and what a call is expected
    /// to take on [`Machine::TYPICAL`](crate::schedule::Machine::TYPICAL).
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
