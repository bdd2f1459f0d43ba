//! A problem or a nest in place of a spec, read from the text that `dump` prints: `--from problem|nest FILE`.

use crate::args::From;
use crate::buffer::Buffer;
use crate::failure::Failure;
use crate::npy;
use crate::output_files::OutputFiles;
use crate::random;
use cranefold::ir::{BufferRole, Nest, eval};
use cranefold::{Compiler, DType, Kernel, Options, Problem, lower};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The longest text that is read.
const MAX_BYTES: u64 = 64 << 20;

/// The characters of a line that are shown beside the place of an error.
const SHOWN: usize = 90;

/// A problem or a nest.
#[derive(Debug)]
pub enum Given {
    /// A problem.
    Problem(Box<Problem>),
    /// A nest.
    Nest(Nest),
}

impl Given {
    /// Reads one of a file, or of the standard input where the path is `-`.
    ///
    /// # Errors
    /// [`Failure::Read`], or [`Failure::Text`] with the place of what is wrong.
    pub fn read(from: From, path: &Path) -> Result<Given, Failure> {
        let text = text(path)?;
        let refused = |at: (usize, Option<usize>), message: String| Failure::Text {
            path: path.into(),
            message,
            place: place(&text, at),
        };
        match from {
            From::Problem => {
                let problem = text.parse::<Problem>();
                problem
                    .map(|problem| Given::Problem(Box::new(problem)))
                    .map_err(|error| refused((error.line, None), error.message))
            }
            From::Nest if text.trim_start().starts_with("part ") => {
                let message = "these are the nests of several parts; `dump --threads 1` prints one nest";
                Err(refused((1, None), message.into()))
            }
            From::Nest => {
                let nest = text.parse::<Nest>();
                nest.map(Given::Nest).map_err(|error| refused((error.line, Some(error.column)), error.message))
            }
        }
    }

    /// The kernel.
    ///
    /// # Errors
    /// Those of the compiler.
    pub fn compile(&self, compiler: &Compiler, options: &Options) -> Result<Kernel, Failure> {
        Ok(match self {
            Given::Problem(problem) => compiler.compile_problem(problem, options)?,
            Given::Nest(nest) => compiler.compile_nest(nest, options)?,
        })
    }

    /// The nest that says what it means: a problem's naive one.
    pub fn meaning(&self) -> Nest {
        match self {
            Given::Problem(problem) => lower::lower(problem, "naive"),
            Given::Nest(nest) => nest.clone(),
        }
    }
}

/// The text of a file, or of the standard input.
fn text(path: &Path) -> Result<String, Failure> {
    let unreadable = |error| Failure::Read { path: path.into(), error };
    let source: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(io::stdin().lock()),
        false => Box::new(File::open(path).map_err(unreadable)?),
    };
    let mut text = String::new();
    source.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
    match text.len() as u64 > MAX_BYTES {
        true => Err(unreadable(io::Error::new(io::ErrorKind::FileTooLarge, format!("more than {MAX_BYTES} bytes")))),
        false => Ok(text),
    }
}

/// A line of a text and a caret under a column of it, both counted from 1; under its first word, where no column is said.
fn place(text: &str, (line, column): (usize, Option<usize>)) -> String {
    let shown: Vec<char> = text.lines().nth(line - 1).unwrap_or_default().chars().collect();
    let indent = shown.iter().take_while(|c| c.is_whitespace()).count();
    let at = column.map_or(indent, |column| column - 1);
    let start = at.saturating_sub(SHOWN / 2);
    // A tab would move the caret away from its place.
    let part: String = shown.iter().skip(start).take(SHOWN).map(|&c| if c.is_control() { ' ' } else { c }).collect();
    let number = match column {
        Some(column) => format!("line {line}, column {column}"),
        None => format!("line {line}"),
    };
    format!("{number}\n  {}\n  {:indent$}^", part.trim_end(), "", indent = at - start)
}

/// A buffer of a call.
#[derive(Clone, Copy, Debug)]
struct Array {
    role: BufferRole,
    dtype: DType,
    len: u64,
}

/// The buffers of a call: arrays of one axis, as they lie in memory.
#[derive(Debug)]
pub struct Flat {
    arrays: Vec<Array>,
    /// The inputs.
    pub inputs: Vec<Buffer>,
    /// The outputs: what they hold before a call, then what it has written.
    pub outputs: Vec<Buffer>,
}

impl Flat {
    /// Random inputs, or those of files; outputs of zeros, or where they are read, of files if there are any.
    ///
    /// # Errors
    /// If there are too few or too many files, or one cannot be read or is not the array.
    pub fn of(given: &Given, inputs: &[PathBuf], old: &[PathBuf], seed: u64) -> Result<Flat, Failure> {
        let arrays = arrays(given);
        let of_role = |is: &dyn Fn(BufferRole) -> bool| arrays.iter().filter(|a| is(a.role)).count();
        check_count("input", inputs.len(), of_role(&|role| role == BufferRole::In))?;
        check_count("old", old.len(), of_role(&|role| role == BufferRole::InOut))?;
        let (mut inputs, mut old) = (inputs.iter(), old.iter());
        let mut flat = Flat { arrays: arrays.clone(), inputs: vec![], outputs: vec![] };
        let mut random = random::Flat::of_seed(seed);
        for (n, array) in arrays.iter().enumerate() {
            let name = format!("x{n}");
            let mut buffer = |path: Option<&PathBuf>, is_random: bool| match path {
                Some(path) => npy::read_flat(path, array.dtype, array.len, &name),
                None => {
                    let mut buffer = Buffer::zeroed(array.len.saturating_mul(array.dtype.bytes()))?;
                    if is_random {
                        random.fill(array.dtype, buffer.bytes_mut());
                    }
                    Ok(buffer)
                }
            };
            match array.role {
                BufferRole::In => flat.inputs.push(buffer(inputs.next(), true)?),
                BufferRole::InOut => flat.outputs.push(buffer(old.next(), false)?),
                BufferRole::Out | BufferRole::Nontemporal => flat.outputs.push(buffer(None, false)?),
            }
        }
        Ok(flat)
    }

    /// The outputs again, as they are now.
    ///
    /// # Errors
    /// [`Failure::Memory`].
    pub fn copy_of_outputs(&self) -> Result<Vec<Buffer>, Failure> {
        self.outputs.iter().map(|buffer| buffer.moved(0)).collect()
    }

    /// The element type and the length of each output.
    pub fn written(&self) -> impl Iterator<Item = (DType, u64)> {
        self.arrays.iter().filter(|a| a.role != BufferRole::In).map(|a| (a.dtype, a.len))
    }

    /// Writes the outputs to files, all or none of them; none, if there are no places.
    ///
    /// # Errors
    /// If one cannot be written.
    pub fn write(&self, places: &OutputFiles) -> Result<(), Failure> {
        let written: Vec<(DType, u64)> = self.written().collect();
        places.write(|output, path, file| {
            let (dtype, len) = written[output];
            npy::write_array(file, path, dtype, &[len], self.outputs[output].bytes())
        })
    }
}

/// Checks the number of files where there are any.
fn check_count(role: &'static str, given: usize, expected: usize) -> Result<(), Failure> {
    if given == 0 { Ok(()) } else { crate::arrays::check_count(role, given, expected) }
}

/// The buffers of a call, inputs first.
fn arrays(given: &Given) -> Vec<Array> {
    match given {
        Given::Nest(nest) => nest.buffers.iter().map(|b| Array { role: b.role, dtype: b.dtype, len: b.len }).collect(),
        Given::Problem(problem) => {
            let inputs = problem.inputs.iter().map(|input| (BufferRole::In, &input.operand));
            let role = |o| if problem.reads_old(o) { BufferRole::InOut } else { BufferRole::Out };
            let outputs = problem.outputs.iter().enumerate().map(|(o, output)| (role(o), output));
            inputs.chain(outputs).map(|(role, o)| Array { role, dtype: o.dtype, len: o.len }).collect()
        }
    }
}

/// Evaluates a nest on arrays.
pub fn interpret(nest: &Nest, inputs: &[Buffer], outputs: &mut [Buffer]) {
    let inputs = inputs.iter().map(Buffer::bytes).collect();
    eval::run(nest, &mut eval::Bits { inputs, outputs: outputs.iter_mut().map(Buffer::bytes_mut).collect() });
}
