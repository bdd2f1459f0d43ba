//! `run --memory`: a reduction of files larger than memory, in shards that are read one after the other.
//!
//! The array is cut into boxes of its first kept axis, if that stands before the reduced one, and each box into ranges of
//! the first reduced axis. Each thread reads a shard and reduces it to its state while it is in the cache. The states of a
//! box combine in order, and its outputs are the bits of the kernel of the whole.

use crate::args::{ExecutorName, Run};
use crate::arrays::{self, Arrays, check_count, input_bytes};
use crate::failure::Failure;
use crate::npy::{self, Form};
use crate::run::{places, shown};
use crate::threads::compiler;
use crate::{figures, scalars};
use cranefold::spec::Operand;
use cranefold::{Compiler, Input, Output, Partial, Scalar, Spec};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

/// The most bytes that a shard reads: those that stay in the cache from their reading to their reduction.
const MOST_SHARD_BYTES: u64 = 4 << 20;

/// The least bound of memory.
const LEAST_MEMORY: u64 = 1 << 20;

/// The states that wait for an older one, for each thread.
const WAITING: usize = 2;

/// An input: its file and the place of its first element, or the bytes of a scalar.
enum Source {
    File { path: PathBuf, file: File, start: u64 },
    Value(Vec<u8>),
}

/// A shard, by the number of its box, with its box.
#[derive(Clone, Debug)]
struct Piece {
    kept: Vec<Range<u64>>,
    chunk: Vec<Range<u64>>,
    /// True for the last piece of a box.
    ends_box: bool,
}

/// Runs a reduction of files in shards.
///
/// # Errors
/// If an argument is wrong, a file is not its operand or the bound of memory is too small: nothing is written then.
pub fn stream(args: &Run, memory: &str, out: &mut dyn Write) -> Result<(), Failure> {
    let spec: Spec = args.spec.parse()?;
    let memory = bytes(memory)?;
    check(args, &spec)?;
    let places = places(args)?;
    let compiler = compiler(args.threads)?;
    let sources = sources(args, &spec)?;
    let whole = compiler.partial(&spec)?;
    let pieces = pieces(&spec, &whole, (memory / 4 / args.threads as u64).min(MOST_SHARD_BYTES))?;
    let mut outputs = arrays::outputs(&spec)?;
    let began = Instant::now();
    let streaming = Streaming { spec: &spec, compiler: &compiler, sources: &sources, memory };
    let mut results: Vec<&mut [u8]> = outputs.iter_mut().map(|output| output.bytes_mut()).collect();
    streaming.run(&pieces, args.threads, &mut results)?;
    let ns = began.elapsed().as_nanos() as f64;
    let arrays = Arrays { inputs: vec![], outputs };
    arrays.write(&spec, Form::Logical, &places)?;
    let mut lines = vec![("spec".to_string(), spec.to_string())];
    lines.push(("input".into(), format!("{} of elements, from files", figures::size(input_bytes(&spec)))));
    let several = spec.outputs().len() > 1;
    let name = |n: usize| if several { format!("output {n}") } else { "output".into() };
    lines.extend((0..spec.outputs().len()).map(|n| (name(n), shown(&spec, n, &arrays))));
    let (rate, time) = (figures::rate(input_bytes(&spec), ns), figures::time(ns));
    lines.push(("run".into(), format!("{} shards in {time}, {rate} GB/s read", pieces.len())));
    lines.iter().try_for_each(|(name, text)| writeln!(out, "{name:<8} {text}")).map_err(Failure::Stdout)
}

/// A number of bytes: `1000`, `64K`, `256M`, `2G`.
fn bytes(text: &str) -> Result<u64, Failure> {
    let (digits, shift) = match text.char_indices().next_back() {
        Some((at, 'K')) => (&text[..at], 10),
        Some((at, 'M')) => (&text[..at], 20),
        Some((at, 'G')) => (&text[..at], 30),
        _ => (text, 0),
    };
    let all = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    let refused = |why: &str| Failure::Usage(format!("--memory {text}: {why}"));
    let all = all.ok_or_else(|| refused("a number of bytes such as 64M, with K, M, G or nothing after it"))?;
    if all < LEAST_MEMORY { Err(refused("the least is 1M")) } else { Ok(all) }
}

fn check(args: &Run, spec: &Spec) -> Result<(), Failure> {
    let refused = |option: &str| Err(Failure::Usage(format!("--memory streams files, and has no {option}")));
    if args.input.is_empty() {
        return Err(Failure::Usage("--memory streams files: give each input by --input".into()));
    }
    if args.from.is_some() {
        return refused("--from");
    }
    if args.raw {
        return refused("--raw");
    }
    if args.executor != ExecutorName::Native {
        return refused("--executor");
    }
    if args.forced.is_any() || args.schedules.is_some() {
        return refused("forced or tuned schedule");
    }
    if !args.old.is_empty() || (0..spec.outputs().len()).any(|output| spec.reads_old(output)) {
        return refused("old outputs");
    }
    match args.output.len() {
        0 => Ok(()),
        given => check_count("output", given, spec.outputs().len()),
    }
}

/// The files of the inputs and the values of scalars.
fn sources(args: &Run, spec: &Spec) -> Result<Vec<Source>, Failure> {
    let values = scalars::given(spec, &args.scalar)?;
    let named = spec.inputs().iter().filter(|o| scalars::name(o).is_none()).count();
    check_count("input", args.input.len(), named)?;
    let (mut paths, mut values) = (args.input.iter().enumerate(), values.into_iter());
    let source = |operand: &Operand| match scalars::name(operand) {
        Some(name) => {
            let missing = || scalars::ScalarError::Missing { name: name.into() };
            let value: Scalar = values.next().flatten().ok_or_else(missing)?;
            let mut bytes = vec![0; operand.dtype().bytes() as usize];
            value.write(&mut bytes, 0);
            Ok(Source::Value(bytes))
        }
        None => {
            let (n, path) = paths.next().expect("as many as are counted");
            let (file, start) = npy::open_elements(path, operand, &format!("input {n}"))?;
            Ok(Source::File { path: path.clone(), file, start })
        }
    };
    spec.inputs().iter().map(source).collect()
}

/// The shards of an array, each of which reads at most about so many bytes.
fn pieces(spec: &Spec, whole: &Partial, most_bytes: u64) -> Result<Vec<Piece>, Failure> {
    let axis = whole.axis()?;
    let (shape, kept) = (spec.shape(), spec.axes_kept());
    let all: Vec<Range<u64>> = shape.iter().map(|&extent| 0..extent).collect();
    let each = |axis: usize, of: u64| (of / shape[axis].max(1)).max(1);
    let greatest = |count: u64, extent: u64| count.clamp(1, extent.max(1));
    let total = input_bytes(spec);
    // Results of a box are neighbours only if the first kept axis is the outermost that counts.
    let cut = kept.first().copied().filter(|&first| first < axis && shape[first] > 1);
    let rows = cut.map_or(1, |first| greatest(most_bytes / each(first, total), shape[first]));
    let count = cut.map_or(1, |first| shape[first].div_ceil(rows));
    let of_box = cut.map_or(total, |first| each(first, total) * rows);
    // A power of two of indices begins at ends of blocks where rows are whole.
    let indices = 1 << greatest(most_bytes / each(axis, of_box), shape[axis]).ilog2();
    let mut pieces = vec![];
    for number in 0..count {
        let mut within = all.clone();
        if let Some(first) = cut {
            within[first] = number * rows..((number + 1) * rows).min(shape[first]);
        }
        let mut start = 0;
        loop {
            let end = (start + indices).min(shape[axis]);
            let end = if most_bytes >= of_box { shape[axis] } else { end };
            let mut chunk = within.clone();
            chunk[axis] = start..end;
            let kept = kept.iter().map(|&axis| within[axis].clone()).collect();
            pieces.push(Piece { kept, chunk, ends_box: end == shape[axis] });
            start = end;
            if start >= shape[axis] {
                break;
            }
        }
    }
    Ok(pieces)
}

/// The facts that all threads read.
struct Streaming<'s> {
    spec: &'s Spec,
    compiler: &'s Compiler,
    sources: &'s [Source],
    memory: u64,
}

impl Streaming<'_> {
    /// Reduces all pieces to the outputs.
    fn run(&self, pieces: &[Piece], threads: usize, outputs: &mut [&mut [u8]]) -> Result<(), Failure> {
        let first = self.compiler.partial_of(self.spec, &pieces[0].kept)?;
        let held = first.state_bytes() as u64 * ((WAITING + 1) * threads + 2) as u64;
        if held > self.memory / 2 {
            let (needed, state) = (figures::size(2 * held), figures::size(first.state_bytes() as u64));
            let why = format!("the states of {threads} threads take half of {needed}, {state} each");
            return Err(Failure::Usage(format!("--memory is too small: {why}")));
        }
        let next = AtomicUsize::new(0);
        // Each piece that is taken waits for those before it, of which there are less than this many.
        let (send, receive) = sync_channel(WAITING * threads);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                let (send, next) = (send.clone(), &next);
                scope.spawn(move || {
                    let mut buffers = vec![vec![]; self.sources.len()];
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        let Some(piece) = pieces.get(number) else { break };
                        let made = self.reduce(piece, &mut buffers);
                        let failed = made.is_err();
                        // Nobody receives after a failure.
                        if send.send((number, made)).is_err() || failed {
                            break;
                        }
                    }
                });
            }
            drop(send);
            let mut waiting = BTreeMap::new();
            let mut open: Option<(Partial, Vec<u8>)> = None;
            let mut progress = Progress::new(pieces.len());
            let mut done = 0;
            for (number, made) in receive {
                waiting.insert(number, made?);
                while let Some((partial, state)) = waiting.remove(&done) {
                    let (partial, all) = match open.take() {
                        None => (partial, state),
                        Some((partial, mut all)) => {
                            partial.combine(&state, &mut all, 1).map_err(cranefold::Error::from)?;
                            (partial, all)
                        }
                    };
                    match pieces[done].ends_box {
                        true => self.finish(&partial, &all, &pieces[done], outputs)?,
                        false => open = Some((partial, all)),
                    }
                    done += 1;
                    progress.show(done);
                }
            }
            Ok(())
        })
    }

    /// Reads a piece and reduces it to its state.
    fn reduce(&self, piece: &Piece, buffers: &mut [Vec<u8>]) -> Result<(Partial, Vec<u8>), Failure> {
        let partial = self.compiler.partial_of(self.spec, &piece.kept)?;
        let shard = partial.shard_of(&piece.chunk)?;
        for span in shard.inputs() {
            self.read(span.input, &piece.chunk, &mut buffers[span.input])?;
        }
        let operands = self.spec.inputs();
        let input = |n: usize| Input::from_bytes(operands[n].dtype(), &buffers[n]);
        let inputs: Vec<Input<'_>> = shard.inputs().iter().map(|span| input(span.input)).collect();
        let mut state = vec![0; partial.state_bytes()];
        shard.partial(&inputs, &mut state).map_err(cranefold::Error::from)?;
        Ok((partial, state))
    }

    /// Writes the outputs of a box, which are neighbours in the whole outputs.
    fn finish(&self, partial: &Partial, state: &[u8], piece: &Piece, outputs: &mut [&mut [u8]]) -> Result<(), Failure> {
        let mut buffers = vec![vec![]; self.sources.len()];
        let all: Vec<Range<u64>> = piece.chunk.clone();
        for &input in partial.finish_inputs() {
            self.read(input, &all, &mut buffers[input])?;
        }
        let operands = self.spec.inputs();
        let input = |&n: &usize| Input::from_bytes(operands[n].dtype(), &buffers[n]);
        let inputs: Vec<Input<'_>> = partial.finish_inputs().iter().map(input).collect();
        let operands = partial.spec().outputs().iter().zip(self.spec.outputs()).zip(outputs.iter_mut());
        let places = operands.map(|((own, whole), output)| {
            let before = piece.kept.first().filter(|_| own.elems() < whole.elems()).map_or(0, |rows| rows.start);
            let extent = own.elems() / piece.kept.first().map_or(1, |rows| rows.end - rows.start);
            let start = (before * extent * own.dtype().bytes()) as usize;
            Output::from_bytes(own.dtype(), &mut output[start..start + own.span_bytes() as usize])
        });
        let mut places: Vec<Output<'_>> = places.collect();
        Ok(partial.finish(state, &inputs, &mut places, 1).map_err(cranefold::Error::from)?)
    }

    /// Reads the part of an input in a chunk.
    fn read(&self, input: usize, chunk: &[Range<u64>], into: &mut Vec<u8>) -> Result<(), Failure> {
        let (path, file, start) = match &self.sources[input] {
            Source::Value(bytes) => {
                into.clone_from(bytes);
                return Ok(());
            }
            Source::File { path, file, start } => (path, file, *start),
        };
        let operand = &self.spec.inputs()[input];
        let mut within: Vec<Range<u64>> = operand.shape().iter().map(|&extent| 0..extent).collect();
        for (axis, range) in chunk.iter().enumerate() {
            if let Some(own) = self.spec.input_axis(input, axis) {
                within[own] = range.clone();
            }
        }
        let elems: u64 = within.iter().map(|range| range.end - range.start).product();
        into.resize((elems * operand.dtype().bytes()) as usize, 0);
        let mut at = 0;
        for run in runs(operand.shape(), &within) {
            let [from, to] = [run.start, run.end].map(|elem| elem * operand.dtype().bytes());
            let until = at + (to - from) as usize;
            let place = start + from;
            read_at(file, &mut into[at..until], place).map_err(|error| Failure::Read { path: path.clone(), error })?;
            at = until;
        }
        Ok(())
    }
}

/// The runs of neighbouring elements of a box in a row-major array.
fn runs(shape: &[u64], within: &[Range<u64>]) -> Vec<Range<u64>> {
    // The dims inside the last one that is cut are whole.
    let cut = (0..shape.len()).rev().find(|&axis| within[axis] != (0..shape[axis])).unwrap_or(0);
    let inner: u64 = shape.iter().skip(cut + 1).product();
    let last = within.get(cut).map_or(0..1, |range| range.start * inner..range.end * inner);
    let mut starts = vec![0];
    let mut each: u64 = shape.iter().skip(cut).product();
    for axis in (0..cut).rev() {
        let outer = within[axis].clone();
        starts = outer.flat_map(|i| starts.iter().map(move |start| start + i * each)).collect();
        each *= shape[axis];
    }
    starts.into_iter().map(|start| start + last.start..start + last.end).collect()
}

#[cfg(unix)]
fn read_at(file: &File, into: &mut [u8], place: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, into, place)
}

/// Reads at a place; threads take turns, as they share the file's position.
#[cfg(not(unix))]
fn read_at(file: &File, into: &mut [u8], place: u64) -> io::Result<()> {
    static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut file = file;
    io::Seek::seek(&mut file, io::SeekFrom::Start(place))?;
    io::Read::read_exact(&mut file, into)
}

/// A line on a terminal about the pieces that are done.
struct Progress {
    all: usize,
    shown: Option<Instant>,
}

impl Progress {
    fn new(all: usize) -> Progress {
        Progress { all, shown: io::stderr().is_terminal().then(Instant::now) }
    }

    fn show(&mut self, done: usize) {
        let Some(last) = &mut self.shown else { return };
        let width = 40 * done / self.all.max(1);
        let is_last = done == self.all;
        if is_last || last.elapsed() > Duration::from_millis(100) {
            *last = Instant::now();
            let end = if is_last { "\r\x1b[K" } else { "" };
            // A terminal that takes no line has no progress.
            let _shown = write!(
                io::stderr(),
                "\r[{}{}] {done} of {} shards{end}",
                "#".repeat(width),
                " ".repeat(40 - width),
                self.all
            );
        }
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "runs are lists of ranges, of one too")]
mod tests {
    use super::*;

    #[test]
    fn runs_are_neighbours() {
        assert_eq!(runs(&[], &[]), [0..1]);
        assert_eq!(runs(&[10], &[2..5]), [2..5]);
        assert_eq!(runs(&[4, 10], &[1..3, 0..10]), [10..30]);
        assert_eq!(runs(&[4, 10], &[1..3, 2..5]), [12..15, 22..25]);
        assert_eq!(runs(&[2, 3, 4], &[0..2, 1..2, 0..4]), [4..8, 16..20]);
        assert_eq!(runs(&[2, 3, 4], &[0..2, 0..3, 0..4]), [0..24]);
    }
}
