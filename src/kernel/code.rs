//! What the compiler keeps: the code of a signature, and how it was made.

use super::StepLoops;
use crate::keyed::Signature;
use crate::link::{Code, Entry, SCRATCH_ALIGN};
use crate::lower::program::{Part, Program};
use crate::pipeline;
use crate::problem::search_windows::Windows;
use crate::problem::tree::Tree;
use crate::schedule::Decided;
use crate::target::Target;
use std::time::Instant;

/// The code of a signature and what is known of it.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub signature: Signature,
    pub decided: Decided,
    pub target: Target,
    /// The code of each nest of the program, that of the finish last.
    pub codes: Vec<Code>,
    /// The bytes of all of it.
    pub bytes: Vec<u8>,
    pub layout: ProgramBuffers,
    pub step_loops: StepLoops,
    pub compile_ns: u64,
}

impl Compiled {
    /// Of what was decided, its legal program and the codes of that, which were begun to be made at `start`.
    pub fn new(
        signature: Signature,
        target: Target,
        decided: Decided,
        program: &Program,
        codes: Vec<Code>,
        start: Instant,
    ) -> Compiled {
        let bytes = codes.iter().map(Code::bytes).collect::<Vec<_>>().concat();
        let layout = ProgramBuffers::of(program, &codes);
        let step_loops = StepLoops::of(program.all_nests());
        let compile_ns = start.elapsed().as_nanos() as u64;
        Compiled { signature, decided, target, codes, bytes, layout, step_loops, compile_ns }
    }

    /// The function of the one part, where there is no more and the code is for this machine.
    pub fn alone(&self) -> Option<Entry> {
        match self.codes.as_slice() {
            [code] if self.layout.parts.len() == 1 => code.entry(),
            _ => None,
        }
    }

    /// The function that a call enters as it is: where there is one part and no scratch memory.
    pub fn direct(&self) -> Option<Entry> {
        self.alone().filter(|_| self.layout.scratch_bytes == 0)
    }

    /// Bytes of the memory that the code has to itself.
    pub fn memory_bytes(&self) -> u64 {
        // The codes of a program have theirs together.
        let loaded = self.codes.first().map_or(0, Code::memory_bytes) as u64;
        loaded.max(self.bytes.len() as u64)
    }

    /// Where its functions lie, by name: address and bytes.
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

    /// The windows in which each slice is searched, if it is.
    pub fn windows(&self) -> Option<Windows> {
        let Decided { source, schedule, .. } = &self.decided;
        let problem = source.problem()?;
        if self.layout.has_finish || problem.elements.is_empty() {
            return None;
        }
        let reducer = problem.reducer_in(schedule.form)?;
        Windows::of(problem, &reducer, &Tree::of(problem, &reducer.method))
    }
}

/// Where parts find their buffers, in bytes.
#[derive(Debug)]
pub(crate) struct ProgramBuffers {
    pub parts: Vec<PartLayout>,
    /// Whether the last code is of what runs after the parts.
    pub has_finish: bool,
    /// Where each buffer of states begins in scratch memory.
    pub states: Vec<usize>,
    /// Where the scratch memory of part 0 begins, after that of states.
    pub scratch: usize,
    /// Scratch memory of each part, and of the finish, which takes that of part 0.
    pub scratch_each: usize,
    /// All scratch memory.
    pub scratch_bytes: u64,
    /// That of states and one part: enough for one part after the other.
    pub serial_scratch_bytes: u64,
}

/// A part.
#[derive(Debug)]
pub(crate) struct PartLayout {
    /// Its code.
    pub code: usize,
    /// Where each of its buffers begins in that of the call.
    pub starts: Vec<usize>,
}

impl ProgramBuffers {
    /// Of a program and its code.
    pub fn of(program: &Program, codes: &[Code]) -> ProgramBuffers {
        let mut end: u64 = 0;
        let mut after = |bytes: u64| {
            let start = end;
            end = end.saturating_add(bytes).saturating_add(SCRATCH_ALIGN - 1) / SCRATCH_ALIGN * SCRATCH_ALIGN;
            start as usize
        };
        let states = program.states().iter().map(|b| after(b.len.saturating_mul(b.dtype.bytes()))).collect();
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
