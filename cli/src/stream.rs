//! `run --memory`: a reduction of files larger than memory, in shards that are read one after the other.
//!
//! The array is cut into boxes of its kept axes, and each box into ranges of the first reduced axis ([`cut`]). Each thread
//! takes some shards at once, reads each and reduces it to its state while it is in the cache. The states of a box combine in
//! order, and its outputs
//! are the bits of the kernel of the whole.
//!
//! [`cut`]: crate::cut

use crate::args::{ExecutorName, Run};
use crate::arrays::{self, Arrays, check_count, input_bytes};
use crate::cut::{Cut, Piece, within};
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
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The least bound of memory.
const LEAST_MEMORY: u64 = 1 << 20;

/// An input: its file, the place of its first element and whether the bytes of each are in the other order, or the bytes of a
/// scalar.
enum Source {
    File { path: PathBuf, file: File, start: u64, swapped: bool },
    Value(Vec<u8>),
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
    let cut = Cut::choose(&spec, &compiler, memory, args.threads)?;
    let mut outputs = arrays::outputs(&spec)?;
    let began = Instant::now();
    let streaming = Streaming { spec: &spec, compiler: &compiler, sources: &sources, cut: &cut };
    let mut results: Vec<&mut [u8]> = outputs.iter_mut().map(|output| output.bytes_mut()).collect();
    streaming.run(args.threads, &mut results)?;
    let ns = began.elapsed().as_nanos() as f64;
    let arrays = Arrays { inputs: vec![], outputs };
    arrays.write(&spec, Form::Logical, &places)?;
    let mut lines = vec![("spec".to_string(), spec.to_string())];
    lines.push(("input".into(), format!("{} of elements, from files", figures::size(input_bytes(&spec)))));
    let several = spec.outputs().len() > 1;
    let name = |n: usize| if several { format!("output {n}") } else { "output".into() };
    lines.extend((0..spec.outputs().len()).map(|n| (name(n), shown(&spec, n, &arrays))));
    let (rate, time) = (figures::rate(input_bytes(&spec), ns), figures::time(ns));
    lines.push(("run".into(), format!("{} shards in {time}, {rate} GB/s read", cut.pieces())));
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
            let (file, start, swapped) = npy::open_elements(path, operand, &format!("input {n}"))?;
            Ok(Source::File { path: path.clone(), file, start, swapped })
        }
    };
    spec.inputs().iter().map(source).collect()
}

/// The facts that all threads read.
struct Streaming<'s> {
    spec: &'s Spec,
    compiler: &'s Compiler,
    sources: &'s [Source],
    cut: &'s Cut<'s>,
}

/// The state of neighbouring shards of a box.
struct Made {
    /// The last of the shards.
    piece: Piece,
    partial: Partial,
    /// The used bytes of the state.
    state: Vec<u8>,
}

/// The memory of a thread from one batch to the next.
struct Worker {
    /// The elements of each input.
    buffers: Vec<Vec<u8>>,
    /// The state of the shards before in a box, and of the one that is read.
    states: [Vec<u8>; 2],
    /// The partial results of the last box.
    partial: Partial,
    kept: Vec<Range<u64>>,
}

impl Streaming<'_> {
    /// Reduces all pieces to the outputs.
    fn run(&self, threads: usize, outputs: &mut [&mut [u8]]) -> Result<(), Failure> {
        let next = AtomicU64::new(0);
        // As many batches are taken that are not yet combined with those before them.
        let (give, permits) = channel();
        (0..Cut::open_batches(threads)).for_each(|_| give.send(()).expect("the receiver is here"));
        let permits = Mutex::new(permits);
        let (send, receive) = channel();
        let first = self.cut.first_box();
        let partial = self.compiler.partial_of(self.spec, &first)?;
        std::thread::scope(|scope| {
            // A failure drops this, and no thread takes a further batch.
            let give = give;
            for _ in 0..threads {
                let (send, next, permits) = (send.clone(), &next, &permits);
                let buffers = vec![vec![]; self.sources.len()];
                let states = [vec![], vec![]];
                let mut worker = Worker { buffers, states, partial: partial.clone(), kept: first.clone() };
                scope.spawn(move || {
                    while permits.lock().unwrap_or_else(PoisonError::into_inner).recv().is_ok() {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= self.cut.batches() {
                            break;
                        }
                        let made = self.reduce(number, &mut worker);
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
            // The state of the box so far, and the next; bytes after the used ones are old.
            let (mut all, mut one) = (vec![], vec![]);
            let mut begins_box = true;
            let mut progress = Progress::new(self.cut.batches());
            let mut done = 0;
            for (number, made) in receive {
                waiting.insert(number, made?);
                while let Some(made) = waiting.remove(&done) {
                    for Made { piece, partial, state } in made {
                        let into = if begins_box { &mut all } else { &mut one };
                        into.resize(partial.state_bytes(), 0);
                        into[..state.len()].copy_from_slice(&state);
                        if !begins_box {
                            partial.combine(&one, &mut all, 1).map_err(cranefold::Error::from)?;
                        }
                        begins_box = piece.ends_box;
                        if begins_box {
                            self.finish(&partial, &all, &piece, outputs)?;
                        }
                    }
                    done += 1;
                    progress.show(done);
                    // The threads have ended if nobody takes it.
                    let _ = give.send(());
                }
            }
            Ok(())
        })
    }

    /// Reads the pieces of a batch and reduces them, those of one box to one state.
    fn reduce(&self, batch: u64, worker: &mut Worker) -> Result<Vec<Made>, Failure> {
        let mut made: Vec<Made> = vec![];
        let mut pieces = self.cut.batch(batch).peekable();
        let mut is_first = true;
        while let Some(piece) = pieces.next() {
            if worker.kept != piece.kept {
                worker.partial = worker.partial.of_box(&piece.kept)?;
                worker.kept.clone_from(&piece.kept);
            }
            let Worker { buffers, states: [all, one], partial, .. } = worker;
            let shard = partial.shard_of(&piece.chunk)?;
            for span in shard.inputs() {
                self.read(span.input, &piece.chunk, &mut buffers[span.input])?;
            }
            let operands = self.spec.inputs();
            let input = |n: usize| Input::from_bytes(operands[n].dtype(), &buffers[n]);
            let inputs: Vec<Input<'_>> = shard.inputs().iter().map(|span| input(span.input)).collect();
            let into = if is_first { &mut *all } else { &mut *one };
            into.resize(partial.state_bytes(), 0);
            shard.partial(&inputs, into).map_err(cranefold::Error::from)?;
            if !is_first {
                partial.combine(one, all, 1).map_err(cranefold::Error::from)?;
            }
            is_first = pieces.peek().is_none_or(|next| next.kept != piece.kept);
            if is_first {
                let used = partial.used_bytes(all).map_err(cranefold::Error::from)?;
                made.push(Made { partial: partial.clone(), state: all[..used].to_vec(), piece });
            }
        }
        Ok(made)
    }

    /// Writes the outputs of a box to their places in the whole outputs.
    fn finish(&self, partial: &Partial, state: &[u8], piece: &Piece, outputs: &mut [&mut [u8]]) -> Result<(), Failure> {
        let mut buffers = vec![vec![]; self.sources.len()];
        for &input in partial.finish_inputs() {
            self.read(input, &piece.chunk, &mut buffers[input])?;
        }
        let operands = self.spec.inputs();
        let input = |&n: &usize| Input::from_bytes(operands[n].dtype(), &buffers[n]);
        let inputs: Vec<Input<'_>> = partial.finish_inputs().iter().map(input).collect();
        let own = partial.spec().outputs();
        let mut results: Vec<Vec<u8>> = own.iter().map(|o| vec![0; o.span_bytes() as usize]).collect();
        let places = own.iter().zip(&mut results);
        let mut places: Vec<Output<'_>> = places.map(|(o, bytes)| Output::from_bytes(o.dtype(), bytes)).collect();
        partial.finish(state, &inputs, &mut places, 1).map_err(cranefold::Error::from)?;
        for (o, (result, output)) in results.iter().zip(outputs).enumerate() {
            let operand = &self.spec.outputs()[o];
            let within = within(operand.shape(), &piece.chunk, |axis| self.spec.output_axis(o, axis));
            let mut at = 0;
            for run in runs(operand.shape(), &within) {
                let [from, to] = [run.start, run.end].map(|elem| (elem * operand.dtype().bytes()) as usize);
                output[from..to].copy_from_slice(&result[at..at + to - from]);
                at += to - from;
            }
        }
        Ok(())
    }

    /// Reads the part of an input in a chunk.
    fn read(&self, input: usize, chunk: &[Range<u64>], into: &mut Vec<u8>) -> Result<(), Failure> {
        let (path, file, start, swapped) = match &self.sources[input] {
            Source::Value(bytes) => {
                into.clone_from(bytes);
                return Ok(());
            }
            Source::File { path, file, start, swapped } => (path, file, *start, *swapped),
        };
        let operand = &self.spec.inputs()[input];
        let within = within(operand.shape(), chunk, |axis| self.spec.input_axis(input, axis));
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
        if swapped {
            into.chunks_exact_mut(operand.dtype().bytes() as usize).for_each(<[u8]>::reverse);
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

/// A line on a terminal about the batches that are done.
struct Progress {
    all: u64,
    shown: Option<Instant>,
}

impl Progress {
    fn new(all: u64) -> Progress {
        Progress { all, shown: io::stderr().is_terminal().then(Instant::now) }
    }

    fn show(&mut self, done: u64) {
        let Some(last) = &mut self.shown else { return };
        let width = (40 * done / self.all.max(1)) as usize;
        let is_last = done == self.all;
        if is_last || last.elapsed() > Duration::from_millis(100) {
            *last = Instant::now();
            let end = if is_last { "\r\x1b[K" } else { "" };
            // A terminal that takes no line has no progress.
            let _shown = write!(
                io::stderr(),
                "\r[{}{}] {done} of {} batches{end}",
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
