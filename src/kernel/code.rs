//! The code of a signature, as the compiler keeps it, with the decision that it was made by.

use super::StepLoops;
use crate::keyed::Signature;
use crate::link::{Code, Entry, SCRATCH_ALIGN};
use crate::lower::program::{Part, Program};
use crate::pipeline;
use crate::problem::search_windows::Windows;
use crate::schedule::Decided;
use crate::target::Target;
use std::time::Instant;

/// The code of a signature, and the facts of it.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub signature: Signature,
    pub decided: Decided,
    pub target: Target,
    /// The code of each nest of the program; the finish comes last.
    pub codes: Vec<Code>,
    pub layout: ProgramBuffers,
    pub step_loops: StepLoops,
    pub compile_ns: u64,
}

impl Compiled {
    /// The compiled form of a decision: its legal program, and the program's codes, whose making began at `start`.
    pub fn new(
        signature: Signature,
        target: Target,
        decided: Decided,
        program: &Program,
        codes: Vec<Code>,
        start: Instant,
    ) -> Compiled {
        let layout = ProgramBuffers::of(program, &codes);
        let step_loops = StepLoops::of(program.all_nests());
        let compile_ns = start.elapsed().as_nanos() as u64;
        Compiled { signature, decided, target, codes, layout, step_loops, compile_ns }
    }

    /// The function of the only part; `None` if there are more parts, or the code is for another machine.
    pub fn alone(&self) -> Option<Entry> {
        match self.codes.as_slice() {
            [code] if self.layout.parts.len() == 1 => code.entry(),
            _ => None,
        }
    }

    /// The function that a call may enter directly; `None` if there is more than one part, or scratch memory.
    pub fn direct(&self) -> Option<Entry> {
        self.alone().filter(|_| self.layout.scratch_bytes == 0)
    }

    /// The machine code of all codes.
    pub fn bytes(&self) -> Vec<u8> {
        self.codes.iter().flat_map(Code::bytes).collect()
    }

    /// Bytes of the machine code of all codes.
    pub fn code_bytes(&self) -> u64 {
        self.codes.iter().map(Code::len).sum()
    }

    /// Bytes of the code's own memory.
    pub fn memory_bytes(&self) -> u64 {
        // The codes of a program share their memory.
        let loaded = self.codes.first().map_or(0, Code::memory_bytes);
        loaded.max(self.code_bytes())
    }

    /// The places of the code's functions in memory, by name: address and bytes.
    pub fn functions(&self) -> Vec<(String, (usize, u64))> {
        let name = format!("cranefold::{}", pipeline::symbol(&self.signature.source));
        let of_code = |(number, code): (usize, &Code)| {
            let code_name = if number == 0 { name.clone() } else { format!("{name}::code{number}") };
            let places = code.places().into_iter().enumerate();
            let named = places.map(|(n, place)| match n.checked_sub(1) {
                None => (code_name.clone(), place),
                Some(wide_function) => (format!("{code_name}::wide{wide_function}"), place),
            });
            named.collect::<Vec<_>>()
        };
        self.codes.iter().enumerate().flat_map(of_code).collect()
    }

    /// The windows in which each slice is searched; `None` if slices are not searched.
    pub fn windows(&self) -> Option<Windows> {
        let Decided { source, schedule, .. } = &self.decided;
        let problem = source.problem()?;
        if self.layout.has_finish || problem.elements().is_empty() {
            return None;
        }
        Windows::of_computation(problem, &problem.computation_in(schedule.form)?)
    }
}

/// The places of the parts' buffers, in bytes.
#[derive(Debug)]
pub(crate) struct ProgramBuffers {
    pub parts: Vec<PartLayout>,
    /// True if the last code is the finish, which runs after the parts.
    pub has_finish: bool,
    /// The start of each buffer of states in scratch memory.
    pub states: Vec<usize>,
    /// The start of part 0's scratch memory, after the states.
    pub scratch: usize,
    /// Bytes of scratch memory of each part, and of the finish, which uses part 0's.
    pub scratch_each: usize,
    /// Bytes of all scratch memory.
    pub scratch_bytes: u64,
    /// Bytes of scratch memory for states and one part: enough to run the parts one after the other.
    pub serial_scratch_bytes: u64,
}

/// A part's code and the starts of its buffers.
#[derive(Debug)]
pub(crate) struct PartLayout {
    /// The number of its code.
    pub code: usize,
    /// The start of each of its buffers within the call's buffer, in bytes.
    pub starts: Vec<usize>,
}

impl ProgramBuffers {
    /// The places for a program and its code.
    pub fn of(program: &Program, codes: &[Code]) -> ProgramBuffers {
        let mut end: u64 = 0;
        let mut after = |bytes: u64| {
            let start = end;
            end = end.saturating_add(bytes).saturating_add(SCRATCH_ALIGN - 1) / SCRATCH_ALIGN * SCRATCH_ALIGN;
            start as usize
        };
        let states = program.states().iter().map(|b| after(b.bytes())).collect();
        let each = codes.iter().map(Code::scratch_bytes).max().unwrap_or(0);
        debug_assert!(each.is_multiple_of(SCRATCH_ALIGN), "so that the memory of each part is aligned");
        let scratch = after(each.saturating_mul(program.parts.len() as u64));
        let part = |part: &Part| {
            let buffers = &program.nests[part.nest].buffers;
            let starts = buffers.iter().zip(&part.starts).map(|(b, at)| (at * b.dtype.bytes()) as usize);
            PartLayout { code: part.nest, starts: starts.collect() }
        };
        ProgramBuffers {
            parts: program.parts.iter().map(part).collect(),
            has_finish: program.finish.is_some(),
            states,
            scratch,
            scratch_each: each as usize,
            serial_scratch_bytes: (scratch as u64).saturating_add(each),
            scratch_bytes: end,
        }
    }
}
