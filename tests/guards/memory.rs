//! Memory between two pages that nobody may read or write, and calls in it.

use cranefold::{CallError, DType, Input, Kernel, Output};
use cranefold_fuzz::data::Buffer;
use cranefold_fuzz::execute::Memory;
use region::Protection;
use std::fmt;
use std::mem::MaybeUninit;
use std::ops::Range;

/// Where a buffer lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It ends where the page behind it begins, so that its length decides how it is aligned.
    End,
    /// It begins where the page before it ends.
    Begin,
    /// It touches neither, and begins so many bytes after a multiple of 64.
    Off(usize),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::End => write!(f, "before an inaccessible page"),
            Place::Begin => write!(f, "after an inaccessible page"),
            Place::Off(bytes) => write!(f, "{bytes} bytes off alignment"),
        }
    }
}

/// Bytes on each side of a buffer, as far as there are some, that must stay as they are: eight of the widest vectors.
const MARGIN: usize = 512;

/// Alignment of scratch memory, and of what others are off by.
const ALIGN: usize = 64;

/// Pages that can be used between two that cannot.
struct Zone {
    pages: region::Allocation,
}

impl Zone {
    #[allow(unsafe_code, reason = "pages are made inaccessible")]
    fn new(bytes: usize) -> Zone {
        let page = region::page::size();
        let mut pages = region::alloc(bytes.next_multiple_of(page) + 2 * page, Protection::READ_WRITE).expect("memory");
        let (first, last) = (pages.as_mut_ptr::<u8>(), pages.as_mut_ptr_range::<u8>().end.wrapping_sub(page));
        for guard in [first, last] {
            // SAFETY: a whole page of memory of ours, which no reference goes to.
            unsafe { region::protect(guard, page, Protection::NONE) }.expect("protection");
        }
        Zone { pages }
    }

    /// What can be used.
    #[allow(unsafe_code, reason = "memory from the operating system becomes a slice")]
    fn room(&mut self) -> &mut [u8] {
        let page = region::page::size();
        let len = self.pages.len() - 2 * page;
        // SAFETY: the pages between the two guards are readable, writable and zero at first; the borrow is that of their
        // owner.
        unsafe { std::slice::from_raw_parts_mut(self.pages.as_mut_ptr::<u8>().add(page), len) }
    }

    /// Where so many bytes are to lie; the zone grows where it is too small.
    fn range(&mut self, len: usize, place: Place) -> Range<usize> {
        if self.room().len() < len + 2 * MARGIN + ALIGN {
            *self = Zone::new(2 * len + 2 * MARGIN + ALIGN);
        }
        let start = match place {
            Place::End => self.room().len() - len,
            Place::Begin => 0,
            Place::Off(bytes) => MARGIN + bytes,
        };
        start..start + len
    }

    /// As many bytes, with margins of a pattern on both sides.
    fn lay(&mut self, range: Range<usize>) -> &mut [u8] {
        let room = self.room();
        for margin in margins(&range, room.len()) {
            room[margin.clone()].iter_mut().zip(margin).for_each(|(byte, at)| *byte = pattern(at));
        }
        &mut room[range]
    }

    fn margins_hold(&mut self, range: &Range<usize>) -> bool {
        let room = self.room();
        margins(range, room.len()).into_iter().flatten().all(|at| room[at] == pattern(at))
    }
}

fn margins(range: &Range<usize>, room: usize) -> [Range<usize>; 2] {
    [range.start.saturating_sub(MARGIN)..range.start, range.end..room.min(range.end + MARGIN)]
}

fn pattern(at: usize) -> u8 {
    (at * 37 + 11) as u8
}

/// A buffer in a zone.
struct Laid {
    zone: Zone,
    range: Range<usize>,
}

impl Laid {
    fn none() -> Laid {
        Laid { zone: Zone::new(1 << 16), range: 0..0 }
    }

    fn lay(&mut self, bytes: &[u8], place: Place) {
        self.range = self.zone.range(bytes.len(), place);
        self.zone.lay(self.range.clone()).copy_from_slice(bytes);
    }

    /// Lays scratch memory, as near to its place as its alignment allows.
    fn lay_scratch(&mut self, bytes: usize, place: Place) {
        let range = self.zone.range(bytes, if place == Place::End { place } else { Place::Begin });
        let start = range.start / ALIGN * ALIGN;
        self.range = start..start + bytes;
        self.zone.lay(self.range.clone()).fill(0xaa);
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.zone.room()[self.range.clone()]
    }

    fn margins_hold(&mut self) -> bool {
        self.zone.margins_hold(&self.range)
    }
}

/// Memory for calls of any kernel.
#[derive(Default)]
pub struct Guarded {
    inputs: Vec<Laid>,
    outputs: Vec<Laid>,
    scratch: Option<Laid>,
}

impl Guarded {
    /// Runs a kernel on copies of buffers that lie where they are told to, and its scratch memory.
    ///
    /// # Errors
    /// What it did that it may not, or that the outputs are others than `expected`.
    pub fn run(&mut self, kernel: &Kernel, of: &Memory, expected: &[Buffer], place: Place) -> Result<(), String> {
        lay(&mut self.inputs, &of.inputs, place);
        lay(&mut self.outputs, &of.outputs, place);
        let scratch = self.scratch.get_or_insert_with(Laid::none);
        scratch.lay_scratch(kernel.scratch_bytes() as usize, place);
        let spec = kernel.spec().expect("a kernel of a spec");
        let inputs: Vec<Input> = spec
            .inputs()
            .iter()
            .zip(&mut self.inputs)
            .map(|(o, laid)| Input::from_bytes(o.dtype(), laid.bytes()))
            .collect();
        let mut outputs: Vec<Output> = spec
            .outputs()
            .iter()
            .zip(&mut self.outputs)
            .map(|(o, laid)| Output::from_bytes(o.dtype(), laid.bytes()))
            .collect();
        let ran = match kernel.parts() == 1 && kernel.scratch_bytes() == 0 {
            true => kernel.run(&inputs, &mut outputs),
            false => in_parts(kernel, &inputs, &mut outputs, scratch.bytes()),
        };
        ran.map_err(|error| error.to_string())?;
        let outside = |what: &str, n: usize| Err(format!("bytes beside {what} {n} are written"));
        for (n, (laid, before)) in self.inputs.iter_mut().zip(&of.inputs).enumerate() {
            if !laid.margins_hold() {
                return outside("input", n);
            }
            if laid.bytes() != before.bytes() {
                return Err(format!("input {n} is written"));
            }
        }
        for (n, (laid, expected)) in self.outputs.iter_mut().zip(expected).enumerate() {
            if !laid.margins_hold() {
                return outside("output", n);
            }
            if laid.bytes() != expected.bytes() {
                return Err(format!("output {n} has other bits than elsewhere"));
            }
        }
        if scratch.margins_hold() { Ok(()) } else { outside("scratch memory", 0) }
    }

    /// Runs a kernel over its input 0.
    ///
    /// # Errors
    /// As [`run`](Guarded::run).
    pub fn run_in_place(&mut self, kernel: &Kernel, of: &Memory, place: Place) -> Result<(), String> {
        lay(&mut self.inputs, &of.inputs, place);
        let dtypes: Vec<DType> =
            kernel.spec().expect("a kernel of a spec").inputs().iter().map(|o| o.dtype()).collect();
        let (first, others) = self.inputs.split_first_mut().expect("an input");
        let inputs: Vec<Input> =
            others.iter_mut().zip(&dtypes[1..]).map(|(laid, &d)| Input::from_bytes(d, laid.bytes())).collect();
        let output = &mut Output::from_bytes(dtypes[0], first.bytes());
        kernel.run_in_place(output, &inputs).map_err(|error| error.to_string())?;
        match self.inputs.iter_mut().all(Laid::margins_hold) {
            true => Ok(()),
            false => Err("bytes beside a buffer are written, in place".into()),
        }
    }
}

fn lay(zones: &mut Vec<Laid>, buffers: &[Buffer], place: Place) {
    zones.truncate(buffers.len());
    zones.resize_with(buffers.len(), Laid::none);
    zones.iter_mut().zip(buffers).for_each(|(laid, buffer)| laid.lay(buffer.bytes(), place));
}

/// Runs the parts of a call, the last one first.
fn in_parts(kernel: &Kernel, inputs: &[Input], outputs: &mut [Output], scratch: &mut [u8]) -> Result<(), CallError> {
    // SAFETY: initialised bytes are bytes that may not be; what the kernel leaves in them is initialised.
    #[allow(unsafe_code, reason = "bytes that may be read are given as such that need not")]
    let scratch = unsafe { &mut *(scratch as *mut [u8] as *mut [MaybeUninit<u8>]) };
    let call = kernel.call_in(inputs, outputs, scratch)?;
    (0..call.parts()).rev().try_for_each(|part| call.run_part(part))?;
    call.finish()
}
