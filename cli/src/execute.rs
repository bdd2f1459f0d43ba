//! The three ways to run a spec.

use crate::args::ExecutorName;
use crate::arrays::Arrays;
use crate::buffer::Buffer;
use crate::failure::Failure;
use crate::threads::pool;
use cranefold::ir::eval;
use cranefold::lower::program::Program;
use cranefold::schedule::Decided;
use cranefold::{Compiler, Input, Kernel, Options, Output, Problem, Schedule, Spec, Spinning, pipeline};
use cranefold_reference as reference;

/// A spec made ready to run.
#[derive(Debug)]
pub enum Executor {
    /// The kernel, and the threads that run it.
    Native(Kernel, Spinning),
    /// The program after the last pass, and its schedule.
    Interpreter(Box<Program>, Schedule),
    /// The spec itself.
    Reference,
}

impl Executor {
    /// Prepares a spec to run.
    ///
    /// # Errors
    /// If a forced choice does not fit, or code cannot be made.
    pub fn prepare(
        spec: &Spec,
        name: ExecutorName,
        options: &Options,
        compiler: &Compiler,
    ) -> Result<Executor, Failure> {
        match name {
            ExecutorName::Native => {
                Ok(Executor::Native(compiler.compile_with(spec, options)?, pool(compiler.threads())?))
            }
            ExecutorName::Interpreter => {
                let bounds = options.bounds(compiler.vectors(), compiler.threads())?;
                let decided = Decided::of(Problem::of(spec), options.schedule.as_ref(), bounds)?;
                let program = pipeline::legal(&decided)?;
                Ok(Executor::Interpreter(Box::new(program), decided.schedule))
            }
            ExecutorName::Reference => Ok(Executor::Reference),
        }
    }

    /// A call of the executor on arrays.
    pub fn call<'a>(&'a self, spec: &'a Spec, arrays: &'a mut Arrays) -> Box<dyn FnMut() -> Result<(), Failure> + 'a> {
        let Arrays { inputs, outputs } = arrays;
        match self {
            Executor::Native(kernel, pool) => Box::new(native(kernel, pool, inputs, outputs)),
            Executor::Interpreter(program, _) => Box::new(|| {
                interpret(program, inputs, outputs);
                Ok(())
            }),
            Executor::Reference => Box::new(|| {
                let inputs: Vec<&[u8]> = inputs.iter().map(Buffer::bytes).collect();
                let mut outputs: Vec<&mut [u8]> = outputs.iter_mut().map(Buffer::bytes_mut).collect();
                Ok(reference::run(spec, &inputs, &mut outputs)?)
            }),
        }
    }
}

/// A call of a kernel on arrays.
pub fn native<'a>(
    kernel: &'a Kernel,
    executor: &'a dyn cranefold::Executor,
    inputs: &'a [Buffer],
    outputs: &'a mut [Buffer],
) -> impl FnMut() -> Result<(), Failure> + 'a {
    let inputs = inputs.iter().zip(kernel.inputs()).map(|(b, (dtype, _))| Input::from_bytes(dtype, b.bytes()));
    let outputs = outputs.iter_mut().zip(kernel.outputs());
    let outputs = outputs.map(|(b, (dtype, _))| Output::from_bytes(dtype, b.bytes_mut()));
    let (inputs, mut outputs): (Vec<_>, Vec<_>) = (inputs.collect(), outputs.collect());
    move || Ok(kernel.run_on(executor, &inputs, &mut outputs)?)
}

/// Evaluates a program on arrays.
pub fn interpret(program: &Program, inputs: &[Buffer], outputs: &mut [Buffer]) {
    let inputs = inputs.iter().map(Buffer::bytes).collect();
    let bytes = |b: &cranefold::ir::Buffer| vec![0; (b.len * b.dtype.bytes()) as usize];
    let mut states: Vec<Vec<u8>> = program.states().iter().map(bytes).collect();
    let states = states.iter_mut().map(Vec::as_mut_slice);
    let outputs = outputs.iter_mut().map(Buffer::bytes_mut).chain(states).collect();
    program.interpret(&mut eval::Bits { inputs, outputs });
}
