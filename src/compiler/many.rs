//! Many kernels at once.

use super::Compiler;
use crate::error::Error;
use crate::executor::Executor;
use crate::kernel::Kernel;
use crate::keyed::KeyedSpec;
use crate::spec::Spec;
use std::sync::OnceLock;

/// A reduction in any form that a compiler takes: a [`Spec`], a [`KeyedSpec`], or the text of a spec or a region.
pub trait Reduction: Sync {
    /// The kernel of the reduction, compiled or from the cache.
    ///
    /// # Errors
    /// As [`Compiler::compile`]; of text also [`Error::Spec`] if it is none.
    fn compile_by(&self, compiler: &Compiler) -> Result<Kernel, Error>;
}

impl Reduction for Spec {
    fn compile_by(&self, compiler: &Compiler) -> Result<Kernel, Error> {
        compiler.compile(self)
    }
}

impl Reduction for KeyedSpec {
    fn compile_by(&self, compiler: &Compiler) -> Result<Kernel, Error> {
        compiler.compile_keyed(self)
    }
}

impl Reduction for str {
    fn compile_by(&self, compiler: &Compiler) -> Result<Kernel, Error> {
        compiler.compile(&self.parse()?)
    }
}

impl Reduction for String {
    fn compile_by(&self, compiler: &Compiler) -> Result<Kernel, Error> {
        self.as_str().compile_by(compiler)
    }
}

impl<R: Reduction + ?Sized> Reduction for &R {
    fn compile_by(&self, compiler: &Compiler) -> Result<Kernel, Error> {
        (**self).compile_by(compiler)
    }
}

impl Compiler {
    /// The kernels of many reductions, compiled on the threads of an executor or from the cache, each with its own
    /// result in the order of the reductions. Equal ones are compiled once.
    ///
    /// ```
    /// use cranefold::{Compiler, Spinning};
    ///
    /// let compiler = Compiler::host()?;
    /// let texts = ["sum f32[2,3] axes=[1]", "max f32[2,3] axes=[2]", "mean f32[2,3] axes=[1]"];
    /// let kernels = compiler.compile_all(&Spinning::new(2)?, &texts);
    /// assert!(kernels[0].is_ok() && kernels[2].is_ok());
    /// let error = kernels[1].as_ref().unwrap_err().to_string();
    /// assert!(error.starts_with("axis 2 is out of range for rank 2: its axes are -2 to 1\n"), "{error}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// For each reduction, as [`compile`](Compiler::compile).
    ///
    /// # Panics
    /// If the executor panics.
    pub fn compile_all<R: Reduction>(&self, executor: &dyn Executor, reductions: &[R]) -> Vec<Result<Kernel, Error>> {
        let kernels: Vec<OnceLock<_>> = reductions.iter().map(|_| OnceLock::new()).collect();
        let compile = |n: usize| {
            kernels[n].get_or_init(|| reductions[n].compile_by(self));
        };
        executor.run(reductions.len(), &compile);
        // What the executor has left out is compiled here.
        (0..reductions.len()).for_each(compile);
        kernels.into_iter().map(|kernel| kernel.into_inner().expect("compiled above")).collect()
    }
}
