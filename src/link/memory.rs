//! Executable memory: lines of slabs, which the codes of a compiler share.
//!
//! A slab is one mapping of [`SLAB_PAGES`] pages, or of as many as a larger code takes. Codes take whole lines of
//! [`LINE`] bytes, so that small ones share pages. No page is ever writable and executable. The pages of a slab are
//! executable from the start, and Linux writes to them for us by way of `/proc/self/mem`, as debuggers do. Where it
//! refuses, each code has pages of its own, which are writable while it is copied and executable afterwards.
//!
//! The lines of a dropped code are taken again once all lines of their page are free; the contents of the page are then
//! returned to the operating system. So no line holds two codes between which a processor has seen no new page. A
//! slab's addresses are returned when it is empty, except for one, which is kept for the next code.
//!
//! A child after a fork writes to no slab of its parent, nor frees any: its compiler has slabs of its own.
#![allow(unsafe_code, reason = "maps, protects and frees executable memory")]

use crate::process::forks;
use memmap2::{MmapMut, MmapRaw};
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The type of a compiled function.
pub type Entry = unsafe extern "C" fn(*const *mut u8);

/// Bytes of a line of memory, to which codes are aligned.
pub const LINE: usize = 64;

/// The pages of a slab.
const SLAB_PAGES: usize = 64;

/// The slabs that the codes of a compiler share. They live as long as any code in them.
#[derive(Clone, Debug)]
pub struct Memory(Arc<Slabs>);

#[derive(Debug)]
struct Slabs {
    /// The process that they belong to.
    forks: u64,
    all: Mutex<Vec<Slab>>,
    /// False once the system has refused to write: each code then has pages of its own.
    shares_pages: AtomicBool,
    /// The name of the file by which the system writes.
    name: &'static str,
    /// The file, open since the first code was written.
    file: OnceLock<File>,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory::of(cfg!(target_os = "linux"), "/proc/self/mem")
    }
}

impl Memory {
    fn of(shares_pages: bool, file: &'static str) -> Memory {
        Memory(Arc::new(Slabs {
            forks: forks(),
            all: Mutex::default(),
            shares_pages: shares_pages.into(),
            name: file,
            file: OnceLock::new(),
        }))
    }

    /// Memory in which each code has pages of its own.
    #[cfg(test)]
    pub fn of_whole_pages() -> Memory {
        Memory::of(false, "")
    }

    /// Memory of a system that refuses to write.
    #[cfg(test)]
    pub fn refused() -> Memory {
        Memory::of(true, "/proc/self/no file")
    }

    /// Returns true if small codes share pages.
    fn shares_pages(&self) -> bool {
        self.0.shares_pages.load(Ordering::Relaxed)
    }

    fn slabs(&self) -> MutexGuard<'_, Vec<Slab>> {
        // No panic under the lock leaves its data half-changed.
        self.0.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Slab {
    /// The mapping; raw, because others write to its pages and run them.
    map: MmapRaw,
    lines: Lines,
}

/// The lines of a slab's pages. One that is neither free nor left is a code's.
#[derive(Debug)]
struct Lines {
    /// A bit for each line that may be taken.
    free: Vec<u64>,
    /// A bit for each line of a dropped code, on a page with others.
    left: Vec<u64>,
    /// The words of a page.
    page_words: usize,
    /// No run of free lines is longer.
    longest: usize,
}

/// The lines of a word.
const WORD: usize = u64::BITS as usize;

impl Lines {
    /// The lines of so many free pages.
    fn of(pages: usize, page_bytes: usize) -> Lines {
        let page_words = page_bytes / (LINE * WORD);
        let words = pages * page_words;
        Lines { free: vec![u64::MAX; words], left: vec![0; words], page_words, longest: words * WORD }
    }

    /// Takes the first `lines` free lines in a row, and returns the first; `None` if there is no such run. Whole pages
    /// begin with a page.
    fn take(&mut self, lines: usize, whole_pages: bool) -> Option<usize> {
        if lines > self.longest {
            return None;
        }
        let step = if whole_pages { self.page_words * WORD } else { 1 };
        let (mut line, mut run) = (0, 0);
        while run < lines && line < self.free.len() * WORD {
            if run == 0 && !line.is_multiple_of(step) {
                line = line.next_multiple_of(step);
                continue;
            }
            let (word, in_word) = (self.free[line / WORD] >> (line % WORD), WORD - line % WORD);
            let free = (word.trailing_ones() as usize).min(in_word);
            run = if free > 0 { run + free } else { 0 };
            line += if free > 0 { free } else { (word.trailing_zeros() as usize).min(in_word) };
        }
        if run < lines {
            self.longest = if whole_pages { self.longest } else { lines - 1 };
            return None;
        }
        let first = line - run;
        (first..first + lines).for_each(|line| self.free[line / WORD] &= !(1 << (line % WORD)));
        Some(first)
    }

    /// Gives lines back, and returns the pages that are free now.
    fn give(&mut self, first: usize, lines: usize) -> std::ops::Range<usize> {
        (first..first + lines).for_each(|line| self.left[line / WORD] |= 1 << (line % WORD));
        let page = |line: usize| line / (WORD * self.page_words);
        let pages = page(first)..page(first + lines - 1) + 1;
        let words = |page: usize| page * self.page_words..(page + 1) * self.page_words;
        let is_free = |page: &usize| words(*page).all(|word| self.free[word] | self.left[word] == u64::MAX);
        // Pages between the first and the last are the code's alone.
        let start = pages.start + usize::from(!is_free(&pages.start));
        let end = if pages.end > start && !is_free(&(pages.end - 1)) { pages.end - 1 } else { pages.end };
        for word in (start..end.max(start)).flat_map(words) {
            (self.free[word], self.left[word]) = (u64::MAX, 0);
        }
        if start < end {
            self.longest = self.free.len() * WORD;
        }
        start..end.max(start)
    }

    fn are_free(&self) -> bool {
        self.free.iter().all(|word| *word == u64::MAX)
    }
}

/// The memory of one program's codes, which are in it and run.
#[derive(Debug)]
pub struct Block(Taken);

/// Lines that are taken, with nothing in them yet.
#[derive(Debug)]
pub struct Taken {
    memory: Memory,
    start: *mut u8,
    bytes: usize,
    /// True if no other code is on its pages.
    has_whole_pages: bool,
}

// SAFETY: the lines are the owner's alone until they are written, and only read and run from then on.
unsafe impl Send for Taken {}
// SAFETY: as above.
unsafe impl Sync for Taken {}

impl Taken {
    /// Memory for `bytes` bytes of code, aligned to a line.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn new(memory: &Memory, bytes: usize) -> io::Result<Taken> {
        let page = region::page::size();
        let has_whole_pages = !memory.shares_pages();
        let bytes = bytes.max(1).next_multiple_of(if has_whole_pages { page } else { LINE });
        let of = |start: *mut u8| Taken { memory: memory.clone(), start, bytes, has_whole_pages };
        let slab = |pages: usize| -> io::Result<Slab> {
            let map = MmapRaw::from(MmapMut::map_anon(pages * page)?);
            protect(map.as_mut_ptr(), map.len(), region::Protection::READ_EXECUTE)?;
            Ok(Slab { map, lines: Lines::of(pages, page) })
        };
        let mut all = memory.slabs();
        let taken = |slab: &mut Slab| {
            let first = slab.lines.take(bytes / LINE, has_whole_pages)?;
            Some(slab.map.as_mut_ptr().wrapping_add(first * LINE))
        };
        if let Some(start) = all.iter_mut().rev().find_map(taken) {
            return Ok(of(start));
        }
        let mut new = slab(bytes.div_ceil(page).max(SLAB_PAGES))?;
        let start = taken(&mut new).expect("as many pages as the code takes");
        all.push(new);
        Ok(of(start))
    }

    /// The address of the first byte.
    pub fn address(&self) -> usize {
        self.start.addr()
    }

    /// Copies code here, which is as long as was asked for or less, and makes it executable; `None` if the system refuses
    /// to write: what is taken from now on has whole pages, where it is not needed.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn write(self, code: &[u8]) -> io::Result<Option<Block>> {
        assert!(code.len() <= self.bytes, "no more code than memory was taken for");
        if self.has_whole_pages {
            protect(self.start, self.bytes, region::Protection::READ_WRITE)?;
            // SAFETY: whole pages of a mapping of ours that nobody else has, writable, and as many as the code takes.
            unsafe { self.start.copy_from_nonoverlapping(code.as_ptr(), code.len()) };
            protect(self.start, self.bytes, region::Protection::READ_EXECUTE)?;
        } else if write_by_system(&self.memory.0, self.start, code).is_err() {
            self.memory.0.shares_pages.store(false, Ordering::Relaxed);
            return Ok(None);
        }
        // SAFETY: lines of a mapping of ours, initialised or zero; nothing writes to them from now on.
        unsafe { wasmtime_internal_jit_icache_coherence::clear_cache(self.start.cast(), self.bytes) }?;
        wasmtime_internal_jit_icache_coherence::pipeline_flush_mt()?;
        Ok(Some(Block(self)))
    }
}

/// Protects whole pages of a mapping of ours in which no code runs.
fn protect(start: *mut u8, bytes: usize, protection: region::Protection) -> io::Result<()> {
    // SAFETY: the pages are ours, and nobody uses them.
    unsafe { region::protect(start, bytes, protection) }.map_err(io::Error::other)
}

/// Has Linux copy code to memory that this process itself may not write to. The file that was opened is the memory of the
/// process that the slabs belong to: a child after a fork writes nothing by it.
fn write_by_system(slabs: &Slabs, start: *mut u8, code: &[u8]) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::FileExt;
        if slabs.forks != forks() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let memory = match slabs.file.get() {
            Some(memory) => memory,
            None => {
                let opened = File::options().write(true).open(slabs.name)?;
                slabs.file.get_or_init(|| opened)
            }
        };
        memory.write_all_at(code, start.expose_provenance() as u64)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (slabs, start, code);
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl Block {
    /// Bytes of memory: whole lines, or whole pages.
    pub fn bytes(&self) -> usize {
        self.0.bytes
    }

    /// The code in it, from some byte on.
    pub fn code(&self, range: std::ops::Range<usize>) -> &[u8] {
        assert!(range.start <= range.end && range.end <= self.0.bytes, "a range of the block");
        // SAFETY: within the block, whose memory is initialised or zero, readable, and written no more while it lives.
        unsafe { std::slice::from_raw_parts(self.0.start.wrapping_add(range.start), range.len()) }
    }

    /// The function at a byte of this block. Calling it is safe under the contract at the head of
    /// [`link`](crate::link), for as long as the block lives.
    ///
    /// # Panics
    /// If the byte is not in this block: a bug of ours.
    pub fn entry(&self, at: usize) -> Entry {
        assert!(at < self.0.bytes, "a function lies in the block of its program");
        // SAFETY: the address is not null, and to call what is there is unsafe: the caller's contract.
        unsafe { std::mem::transmute::<*mut u8, Entry>(self.0.start.wrapping_add(at)) }
    }

    /// The address of a byte of this block.
    pub fn address(&self, at: usize) -> usize {
        self.0.address() + at
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // In a child the parent's slabs may be locked for ever; the copy of its memory is left alone.
        if self.memory.0.forks != forks() {
            return;
        }
        let page = region::page::size();
        let mut all = self.memory.slabs();
        let holds = |slab: &Slab| {
            (slab.map.as_ptr().addr()..slab.map.as_ptr().addr() + slab.map.len()).contains(&self.start.addr())
        };
        let Some(at) = all.iter().position(holds) else { unreachable!("lines are of a slab") };
        let slab = &mut all[at];
        let offset = self.start.addr() - slab.map.as_ptr().addr();
        let pages = slab.lines.give(offset / LINE, self.bytes / LINE);
        #[cfg(unix)]
        if !pages.is_empty() {
            let (start, bytes) = (pages.start * page, pages.len() * page);
            // SAFETY: nobody uses the pages any more. Where it fails they are kept until they are written again.
            let _ = unsafe { slab.map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, bytes) };
        }
        let is_larger = |slab: &Slab| slab.map.len() > SLAB_PAGES * page;
        if slab.lines.are_free() {
            let kept = all.iter().filter(|slab| slab.lines.are_free() && !is_larger(slab)).count();
            if is_larger(&all[at]) || kept > 1 {
                all.swap_remove(at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_first_fit_and_again_by_pages() {
        let mut lines = Lines::of(2, 4096);
        let take = |lines: &mut Lines, count| lines.take(count, false);
        assert_eq!([1, 60, 4, 63].map(|count| take(&mut lines, count)), [0, 1, 61, 65].map(Some));
        assert_eq!(take(&mut lines, 1), None);
        assert!(!lines.are_free());
        assert_eq!(lines.give(1, 60), 1..1, "a page with others");
        assert_eq!((take(&mut lines, 60), lines.give(0, 1)), (None, 1..1));
        assert_eq!(lines.give(65, 63), 2..2, "line 64 is another's");
        assert_eq!(lines.give(61, 4), 0..2, "both pages");
        assert!(lines.are_free());
        assert_eq!((take(&mut lines, 128), lines.give(0, 128)), (Some(0), 0..2));
        assert_eq!((take(&mut lines, 1), lines.take(64, true), lines.take(64, true)), (Some(0), Some(64), None));
        assert_eq!(take(&mut lines, 63), Some(1));
    }

    #[test]
    fn pages_of_more_words_are_free_together() {
        let mut lines = Lines::of(2, 16384);
        assert_eq!([200, 56, 256].map(|count| lines.take(count, false)), [0, 200, 256].map(Some));
        assert_eq!((lines.give(0, 200), lines.give(200, 56), lines.give(256, 256)), (1..1, 0..1, 1..2));
    }

    #[test]
    fn code_is_written_whichever_way_and_its_memory_taken_again() {
        let page = region::page::size();
        for memory in [Memory::default(), Memory::of_whole_pages()] {
            for bytes in [1, 64, page, page + 1, SLAB_PAGES * page, SLAB_PAGES * page + 1] {
                let code = vec![0xc3; bytes];
                let one = Taken::new(&memory, bytes).expect("memory").write(&code).expect("written").expect("allowed");
                let two =
                    Taken::new(&memory, 100).expect("memory").write(&[0xcc; 100]).expect("written").expect("allowed");
                assert_eq!((one.code(0..bytes), two.code(0..100)), (&code[..], &[0xcc; 100][..]));
                assert!(one.bytes() >= bytes && one.address(0).is_multiple_of(LINE));
            }
            assert_eq!(memory.slabs().iter().filter(|slab| slab.lines.are_free()).count(), 1, "one is kept");
        }
    }
}
