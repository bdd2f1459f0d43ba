//! Reduces a file larger than its memory budget in several processes.
//!
//!     cargo run --release --example processes -- "mean,max f32[1000000000]" data.bin 4 64M
//!
//! The file holds the elements of the spec's one input as they lie in memory. Each process gets a range of blocks, and
//! reads its part of the file piece by piece, of at most as many bytes as the budget says. It sends the state of its blocks
//! to the first process through a pipe, which combines and finishes them: to the bits of one kernel over the whole file.

use cranefold::{Compiler, DType, Input, Output, Partial, Scalar, Spec};
use std::error::Error;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::process::{Child, Command, Stdio};

/// Elements of an output that are printed.
const SHOWN: usize = 8;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        [spec, file, processes, budget] => whole(spec, file, processes.parse()?, budget),
        [spec, file, first, end, budget, "shard"] => shard(spec, file, first.parse()?..end.parse()?, bytes(budget)?),
        _ => Err("usage: processes SPEC FILE PROCESSES BUDGET, as in \"sum f32[1000000000]\" data.bin 4 64M".into()),
    }
}

/// A number of bytes: `1000`, `64K`, `64M`, `2G`.
fn bytes(text: &str) -> Outcome<u64> {
    let units = [('K', 10), ('M', 20), ('G', 30)];
    let unit = units.iter().find(|(letter, _)| text.ends_with(*letter));
    let number: u64 = text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse()?;
    Ok(number << unit.map_or(0, |(_, shift)| *shift))
}

/// The partial results of a reduction of one input, which nothing else is needed to finish.
fn partial(spec: &str) -> Outcome<Partial> {
    let spec: Spec = spec.parse()?;
    let partial = Compiler::host()?.partial(&spec)?;
    match spec.inputs() {
        [_] => Ok(partial),
        inputs => Err(format!("the file is one input, and the spec has {}", inputs.len()).into()),
    }
}

/// Starts a process for each shard, combines their states in order and prints what they are finished to.
fn whole(spec: &str, file: &str, processes: usize, budget: &str) -> Outcome<()> {
    let partial = partial(spec)?;
    let input = &partial.spec().inputs()[0];
    let given = std::fs::metadata(file)?.len();
    if given != input.span_bytes() {
        return Err(format!("{file} has {given} bytes, and the input of {spec} {}", input.span_bytes()).into());
    }
    let start = |blocks: Range<u64>| -> Outcome<Child> {
        let [first, end] = [blocks.start, blocks.end].map(|block| block.to_string());
        let mut command = Command::new(std::env::current_exe()?);
        command.args([spec, file, &first, &end, budget, "shard"]).stdout(Stdio::piped());
        Ok(command.spawn()?)
    };
    let children = partial.shards(processes.max(1)).into_iter().map(start).collect::<Outcome<Vec<Child>>>()?;
    let mut all = vec![0; partial.state_bytes()];
    partial.identity(&mut all, 1)?;
    let mut state = vec![];
    for mut child in children {
        state.clear();
        child.stdout.take().ok_or("no pipe")?.read_to_end(&mut state)?;
        if !child.wait()?.success() {
            return Err("a process failed".into());
        }
        // What came is what counts of a state.
        state.resize(partial.state_bytes(), 0);
        partial.combine(&state, &mut all, 1)?;
    }
    let operands = partial.spec().outputs();
    let mut results: Vec<Vec<u8>> = operands.iter().map(|o| vec![0; o.span_bytes() as usize]).collect();
    let outputs = operands.iter().zip(&mut results);
    let mut outputs: Vec<Output> = outputs.map(|(o, bytes)| Output::from_bytes(o.dtype(), bytes)).collect();
    partial.finish(&all, &[], &mut outputs, 1)?;
    println!("{spec}: {given} bytes in {processes} processes of {budget}");
    for (o, bytes) in operands.iter().zip(&results) {
        println!("{}", shown(o.dtype(), bytes, o.span_elems() as usize));
    }
    println!("peak memory {}", peak_memory());
    Ok(())
}

fn shown(dtype: DType, bytes: &[u8], elems: usize) -> String {
    let first: Vec<String> = (0..elems.min(SHOWN)).map(|i| Scalar::read(dtype, bytes, i).to_string()).collect();
    let more = if elems > SHOWN { format!(" and {} more", elems - SHOWN) } else { String::new() };
    first.join(" ") + &more
}

/// Reduces a range of blocks piece by piece and writes their state.
fn shard(spec: &str, file: &str, blocks: Range<u64>, budget: u64) -> Outcome<()> {
    let partial = partial(spec)?;
    let dtype = partial.spec().inputs()[0].dtype();
    let mut file = File::open(file)?;
    let mut state = vec![0; partial.state_bytes()];
    let mut piece_state = state.clone();
    partial.identity(&mut state, 1)?;
    let (mut elements, mut read) = (vec![], 0);
    let pieces = partial.pieces(blocks.clone(), budget)?;
    for piece in &pieces {
        let shard = partial.shard(piece.clone())?;
        let elems = &shard.inputs()[0].elems;
        let wanted = (elems.end - elems.start) * dtype.bytes();
        if wanted > budget {
            return Err(format!("block {} reads {wanted} bytes, more than {budget}", piece.start).into());
        }
        elements.resize(wanted as usize, 0);
        file.seek(SeekFrom::Start(elems.start * dtype.bytes()))?;
        file.read_exact(&mut elements)?;
        shard.partial(&[Input::from_bytes(dtype, &elements)], &mut piece_state)?;
        partial.combine(&piece_state, &mut state, 1)?;
        read += wanted;
    }
    let used = partial.used_bytes(&state)?;
    std::io::stdout().write_all(&state[..used])?;
    let (count, peak) = (pieces.len(), peak_memory());
    eprintln!("blocks {blocks:?}: {read} bytes in {count} pieces, {used} bytes sent, peak memory {peak}");
    Ok(())
}

/// The most memory that this process had at once, where the system tells.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.map_or("not known".into(), |peak| peak.trim().to_string())
}
