//! Running plans: kernels compiled together, buffers by lifetime in one arena, the host's operations by a callback.

use crate::plan::{Plan, PlanOpaque, PlanStep};
use cranefold::{CallError, Compiler, Executor, Input, Kernel, Output, Serial};
use cranefold_spec::Spec;
use rustc_hash::FxHashMap;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The alignment of buffers in the arena, in bytes.
const ALIGN: usize = 64;

/// The most arenas that a prepared plan keeps for the next call.
const KEPT: usize = 16;

/// The reason that a plan does not run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages define the variants and their fields")]
pub enum RunError {
    #[error("kernel {kernel}: {error}")]
    Compile { kernel: usize, error: Box<cranefold::Error> },
    #[error("kernel {kernel}: {error}")]
    Kernel { kernel: usize, error: CallError },
    #[error("{given} {kind} for a plan with {expected}")]
    Count { kind: &'static str, given: usize, expected: usize },
    #[error("{kind} `{name}` has {given} bytes and needs {needed}")]
    Length { kind: &'static str, name: String, given: usize, needed: u64 },
    #[error("the arena needs {0} bytes, more than this machine can address")]
    Memory(u64),
    #[error("opaque node `{name}` ({op}): {reason}")]
    Host { name: String, op: String, reason: String },
}

/// An operation that the host computes in the course of a plan.
#[derive(Debug)]
pub struct HostCall<'a, 'b> {
    /// The step.
    pub step: &'a PlanOpaque,
    /// The elements of its operands.
    pub inputs: &'a [&'b [u8]],
    /// The memory of its results, to be filled.
    pub outputs: &'a mut [&'b mut [u8]],
}

/// The host's operations.
pub type Host<'h> = dyn FnMut(HostCall<'_, '_>) -> Result<(), String> + 'h;

/// The place of a buffer in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Input(usize),
    Constant,
    Output(usize),
    Arena {
        start: usize,
        bytes: usize,
    },
    /// Nothing reads or writes it.
    Nowhere,
}

/// A compiled plan. Threads may share it; each call takes an arena of its own, which later calls use again.
#[derive(Debug)]
pub struct Prepared {
    plan: Plan,
    kernels: Vec<Kernel>,
    /// The outputs that take the place of an input of the kernel.
    over: Vec<Vec<(usize, usize)>>,
    places: Vec<Place>,
    arena: usize,
    free: Mutex<Vec<Vec<u8>>>,
}

impl Plan {
    /// Compiles the plan's distinct kernels, several at a time, and gives each buffer its place.
    ///
    /// ```
    /// use cranefold::Compiler;
    /// use cranefold_graph::{FuseOptions, Graph, fuse};
    ///
    /// let text = "graph { x: f32[2,3] = input; p = softmax(x) axes=[1]; s = sum(p) axes=[0]; return s }";
    /// let plan = fuse(&text.parse::<Graph>()?, &FuseOptions::default())?;
    /// let prepared = plan.prepare(&Compiler::host()?)?;
    ///
    /// let x: Vec<u8> = [1.0f32; 6].into_iter().flat_map(f32::to_ne_bytes).collect();
    /// let mut s = [0; 12];
    /// prepared.run(&[&x], &mut [&mut s])?;
    /// assert_eq!(s.chunks(4).map(|e| f32::from_ne_bytes(e.try_into().unwrap())).collect::<Vec<_>>(), [2.0 / 3.0; 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If a kernel does not compile, or the arena is too large.
    pub fn prepare(&self, compiler: &Compiler) -> Result<Prepared, RunError> {
        let specs: Vec<&Spec> = self.kernels().map(|kernel| &*kernel.spec).collect();
        let mut distinct: Vec<usize> = vec![];
        let mut number: FxHashMap<&Spec, usize> = FxHashMap::default();
        for (kernel, spec) in specs.iter().enumerate() {
            number.entry(spec).or_insert_with(|| {
                distinct.push(kernel);
                distinct.len() - 1
            });
        }
        let compiled: Vec<Mutex<Option<Result<Kernel, cranefold::Error>>>> =
            distinct.iter().map(|_| Mutex::new(None)).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            loop {
                let i = next.fetch_add(1, Ordering::Relaxed);
                let (Some(&kernel), Some(place)) = (distinct.get(i), compiled.get(i)) else { break };
                let made = compiler.compile(specs[kernel]);
                if let Ok(mut place) = place.lock() {
                    *place = Some(made);
                }
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get).min(distinct.len());
        std::thread::scope(|scope| {
            (1..threads).for_each(|_| {
                scope.spawn(work);
            });
            work();
        });
        let mut ready = vec![];
        for (place, &kernel) in compiled.into_iter().zip(&distinct) {
            match place.into_inner().ok().flatten() {
                Some(Ok(made)) => ready.push(made),
                Some(Err(error)) => return Err(RunError::Compile { kernel, error: Box::new(error) }),
                None => {
                    let reason = "its compilation did not end".to_string();
                    return Err(RunError::Host { name: format!("kernel {kernel}"), op: "compile".into(), reason });
                }
            }
        }
        let kernels: Vec<Kernel> = specs.iter().map(|spec| ready[number[spec]].clone()).collect();
        // A kernel that runs on several threads has outputs of its own.
        let (places, arena, over) = places(self, compiler.threads() == 1)?;
        Ok(Prepared { plan: self.clone(), kernels, over, places, arena, free: Mutex::new(vec![]) })
    }
}

impl Prepared {
    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The kernels in the plan's order.
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// The bytes of the arena: the most that buffers between steps take at one time.
    pub fn peak_bytes(&self) -> u64 {
        self.arena as u64
    }

    /// Runs a plan without opaque steps on the calling thread. Buffers are bytes of the elements, row-major.
    ///
    /// # Errors
    /// If a buffer does not fit, or a step is opaque.
    pub fn run(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) -> Result<(), RunError> {
        let host = &mut |call: HostCall<'_, '_>| Err(format!("no kernel computes it: {}", call.step.why));
        self.run_with(&Serial, inputs, outputs, host)
    }

    /// Runs the plan: kernels on the threads of an executor, opaque steps by the host.
    ///
    /// # Errors
    /// If a buffer does not fit, or the host fails.
    pub fn run_with(
        &self,
        executor: &dyn Executor,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
        host: &mut Host<'_>,
    ) -> Result<(), RunError> {
        self.check(inputs, outputs)?;
        let mut arena = self.free.lock().ok().and_then(|mut free| free.pop()).unwrap_or_default();
        if arena.is_empty() && self.arena > 0 {
            arena = vec![0; self.arena + ALIGN];
        }
        let start = arena.as_ptr().align_offset(ALIGN).min(ALIGN);
        let memory = arena.get_mut(start..).unwrap_or_default();
        let done = self.steps(executor, inputs, outputs, memory, host);
        if let Ok(mut free) = self.free.lock()
            && free.len() < KEPT
        {
            free.push(arena);
        }
        done
    }

    fn check(&self, inputs: &[&[u8]], outputs: &[&mut [u8]]) -> Result<(), RunError> {
        let plan = &self.plan;
        for (kind, given, expected) in
            [("inputs", inputs.len(), plan.inputs.len()), ("outputs", outputs.len(), plan.outputs.len())]
        {
            if given != expected {
                return Err(RunError::Count { kind, given, expected });
            }
        }
        let given = inputs.iter().map(|bytes| bytes.len()).zip(plan.inputs.iter().map(|&b| (b, "input")));
        let taken = outputs.iter().map(|bytes| bytes.len()).zip(plan.outputs.iter().map(|o| (o.buffer, "output")));
        for (given, (buffer, kind)) in given.chain(taken) {
            let buffer = &plan.buffers[buffer];
            if given as u64 != buffer.bytes() {
                let (name, needed) = (buffer.name.clone(), buffer.bytes());
                return Err(RunError::Length { kind, name, given, needed });
            }
        }
        Ok(())
    }

    fn steps(
        &self,
        executor: &dyn Executor,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
        arena: &mut [u8],
        host: &mut Host<'_>,
    ) -> Result<(), RunError> {
        let mut kernel = 0;
        for step in &self.plan.steps {
            match step {
                PlanStep::Kernel(call) => {
                    let over = &self.over[kernel];
                    // An input whose place an output takes is that output's memory.
                    let read: Vec<usize> = call
                        .inputs
                        .iter()
                        .enumerate()
                        .filter(|(i, _)| over.iter().all(|(_, input)| input != i))
                        .map(|(_, &b)| b)
                        .collect();
                    let (read, written) = self.memory(inputs, outputs, arena, &read, &call.outputs);
                    let spec = &call.spec;
                    let mut own = read.into_iter();
                    let mut given = vec![];
                    for (i, operand) in spec.inputs().iter().enumerate() {
                        given.push(match over.iter().find(|(_, input)| *input == i) {
                            Some((output, _)) => Input::of_output(*output),
                            None => {
                                let bytes = own.next().unwrap_or_default();
                                let bytes = &bytes[..bytes.len().min(operand.span_bytes() as usize)];
                                Input::from_bytes(operand.dtype(), bytes)
                            }
                        });
                    }
                    let mut taken: Vec<Output> = written
                        .into_iter()
                        .zip(spec.outputs())
                        .map(|(bytes, operand)| {
                            let len = bytes.len().min(operand.span_bytes() as usize);
                            Output::from_bytes(operand.dtype(), &mut bytes[..len])
                        })
                        .collect();
                    let compiled = &self.kernels[kernel];
                    let done = compiled.run_on(executor, &given, &mut taken);
                    done.map_err(|error| RunError::Kernel { kernel, error })?;
                    kernel += 1;
                }
                PlanStep::Opaque(call) => {
                    let (read, mut written) = self.memory(inputs, outputs, arena, &call.inputs, &call.outputs);
                    let result = host(HostCall { step: call, inputs: &read, outputs: &mut written });
                    result.map_err(|reason| RunError::Host { name: call.name.clone(), op: call.op.clone(), reason })?;
                }
            }
        }
        for (number, output) in self.plan.outputs.iter().enumerate() {
            if self.places[output.buffer] != Place::Output(number) {
                self.copy(inputs, outputs, arena, output.buffer, number);
            }
        }
        Ok(())
    }

    /// Writes an output that no step writes, or that is an output twice.
    fn copy(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]], arena: &[u8], buffer: usize, number: usize) {
        match self.places[buffer] {
            Place::Input(input) => outputs[number].copy_from_slice(inputs[input]),
            Place::Constant => {
                if let Some(data) = &self.plan.buffers[buffer].data {
                    outputs[number].copy_from_slice(data.bytes());
                }
            }
            Place::Output(first) => {
                let (before, after) = outputs.split_at_mut(number);
                after[0].copy_from_slice(before[first]);
            }
            Place::Arena { start, bytes } => outputs[number].copy_from_slice(&arena[start..start + bytes]),
            Place::Nowhere => {}
        }
    }

    /// The memory of buffers that a step reads, and of others that it writes.
    fn memory<'b>(
        &'b self,
        inputs: &[&'b [u8]],
        outputs: &'b mut [&mut [u8]],
        arena: &'b mut [u8],
        read: &[usize],
        written: &[usize],
    ) -> (Vec<&'b [u8]>, Vec<&'b mut [u8]>) {
        // The arena in pieces: each is read, or written, by this step.
        let mut pieces: Vec<(usize, usize)> = read
            .iter()
            .chain(written)
            .filter_map(|&buffer| match self.places[buffer] {
                Place::Arena { start, bytes } => Some((start, bytes)),
                _ => None,
            })
            .collect();
        pieces.sort_unstable();
        pieces.dedup();
        let mut of: FxHashMap<usize, &'b mut [u8]> = FxHashMap::default();
        let (mut rest, mut at) = (arena, 0);
        for (start, bytes) in pieces {
            let skipped = std::mem::take(&mut rest);
            let (piece, after) = skipped[start - at..].split_at_mut(bytes);
            of.insert(start, piece);
            (rest, at) = (after, start + bytes);
        }
        let mut own: Vec<Option<&'b mut [u8]>> = outputs.iter_mut().map(|output| Some(&mut **output)).collect();
        let mut taken: Vec<(usize, &'b mut [u8])> = vec![];
        for &buffer in written {
            let memory = match self.places[buffer] {
                Place::Output(number) => own[number].take(),
                Place::Arena { start, .. } => of.remove(&start),
                _ => None,
            };
            taken.push((buffer, memory.unwrap_or_default()));
        }
        let own: Vec<Option<&'b [u8]>> = own.into_iter().map(|output| output.map(|output| &*output)).collect();
        let of: FxHashMap<usize, &'b [u8]> = of.into_iter().map(|(start, piece)| (start, &*piece)).collect();
        let given = |&buffer: &usize| -> &'b [u8] {
            match self.places[buffer] {
                Place::Input(number) => inputs[number],
                Place::Constant => self.plan.buffers[buffer].data.as_ref().map_or(&[], |data| data.bytes()),
                Place::Output(number) => own[number].unwrap_or_default(),
                Place::Arena { start, .. } => of.get(&start).copied().unwrap_or_default(),
                Place::Nowhere => &[],
            }
        };
        (read.iter().map(given).collect(), taken.into_iter().map(|(_, memory)| memory).collect())
    }
}

type Places = (Vec<Place>, usize, Vec<Vec<(usize, usize)>>);

/// A place for each buffer: buffers that live at the same time have places apart.
fn places(plan: &Plan, in_place: bool) -> Result<Places, RunError> {
    let mut places = vec![Place::Nowhere; plan.buffers.len()];
    let is_constant = |buffer: usize| plan.buffers[buffer].data.is_some();
    (0..places.len()).filter(|&buffer| is_constant(buffer)).for_each(|buffer| places[buffer] = Place::Constant);
    plan.inputs.iter().enumerate().for_each(|(number, &buffer)| places[buffer] = Place::Input(number));
    for (number, output) in plan.outputs.iter().enumerate() {
        if places[output.buffer] == Place::Nowhere {
            places[output.buffer] = Place::Output(number);
        }
    }
    let mut last = vec![0; plan.buffers.len()];
    for (number, step) in plan.steps.iter().enumerate() {
        let (inputs, outputs) = operands(step);
        inputs.iter().chain(outputs).for_each(|&buffer| last[buffer] = number);
    }
    // The free ranges of the arena, by their starts.
    let mut free: Vec<(usize, usize)> = vec![];
    let mut end = 0usize;
    let mut over: Vec<Vec<(usize, usize)>> = vec![];
    for (number, step) in plan.steps.iter().enumerate() {
        let (inputs, outputs) = operands(step);
        let mut replaced: Vec<(usize, usize)> = vec![];
        for (output, &buffer) in outputs.iter().enumerate() {
            if places[buffer] != Place::Nowhere {
                continue;
            }
            let bytes = usize::try_from(plan.buffers[buffer].bytes())
                .ok()
                .filter(|&bytes| bytes < isize::MAX as usize / 2)
                .ok_or(RunError::Memory(plan.buffers[buffer].bytes()))?;
            if let PlanStep::Kernel(kernel) = step
                && in_place
                && let Some(input) = replaceable(plan, kernel, number, output, &places, &last, &replaced)
            {
                places[buffer] = places[inputs[input]];
                replaced.push((output, input));
                continue;
            }
            let size = bytes.next_multiple_of(ALIGN);
            let start = match free.iter().position(|(_, length)| *length >= size) {
                Some(i) => {
                    let (start, length) = free[i];
                    free[i] = (start + size, length - size);
                    free.retain(|(_, length)| *length > 0);
                    start
                }
                None => {
                    // The last range grows, if it ends where the arena does.
                    let start = match free.last() {
                        Some(&(start, length)) if start + length == end => {
                            free.pop();
                            start
                        }
                        _ => end,
                    };
                    end = start.checked_add(size).ok_or(RunError::Memory(u64::MAX))?;
                    start
                }
            };
            places[buffer] = Place::Arena { start, bytes };
        }
        let mut ended: Vec<(usize, usize)> = vec![];
        for &buffer in inputs.iter().chain(outputs) {
            let taken = replaced.iter().any(|&(_, input)| inputs[input] == buffer);
            if let Place::Arena { start, bytes } = places[buffer]
                && last[buffer] == number
                && !taken
                && !ended.iter().any(|&(known, _)| known == start)
            {
                ended.push((start, bytes.next_multiple_of(ALIGN)));
            }
        }
        free.extend(ended.into_iter().filter(|(_, length)| *length > 0));
        free.sort_unstable();
        // Neighbouring ranges become one.
        let mut joined: Vec<(usize, usize)> = vec![];
        for (start, length) in free.drain(..) {
            match joined.last_mut() {
                Some((before, size)) if *before + *size == start => *size += length,
                _ => joined.push((start, length)),
            }
        }
        free = joined;
        if let PlanStep::Kernel(_) = step {
            over.push(replaced);
        }
    }
    Ok((places, end, over))
}

/// An input whose last reader is this step, and whose memory an output may take.
fn replaceable(
    plan: &Plan,
    kernel: &crate::plan::PlanKernel,
    number: usize,
    output: usize,
    places: &[Place],
    last: &[usize],
    replaced: &[(usize, usize)],
) -> Option<usize> {
    let bytes = plan.buffers[kernel.outputs[output]].bytes();
    (0..kernel.inputs.len()).find(|&input| {
        let buffer = kernel.inputs[input];
        let alone = kernel.inputs.iter().filter(|&&other| places[other] == places[buffer]).count() == 1;
        let is_free = matches!(places[buffer], Place::Arena { .. }) && last[buffer] == number && alone;
        let same = plan.buffers[buffer].bytes() == bytes && bytes > 0;
        is_free && same && replaced.iter().all(|(_, taken)| *taken != input) && kernel.spec.may_replace(output, input)
    })
}

fn operands(step: &PlanStep) -> (&[usize], &[usize]) {
    match step {
        PlanStep::Kernel(kernel) => (&kernel.inputs, &kernel.outputs),
        PlanStep::Opaque(opaque) => (&opaque.inputs, &opaque.outputs),
    }
}
