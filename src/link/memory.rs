//! Executable memory: pages of slabs, which the codes of a compiler share.
//!
//! A slab is one mapping of [`SLAB_PAGES`] pages, or of as many as a larger code takes. Each code has whole pages of a
//! slab to itself, and wastes less than one page. Pages are writable while code is copied into them and executable
//! afterwards, never both. When their last owner is dropped, their contents are returned to the operating system at
//! once, and their addresses when the slab is empty. One empty slab is kept for the next code.
//!
//! Free pages keep their protection, so that a mapping is not split where every second code is freed: a process has
//! 65,530 mappings by default, here enough for millions of codes alive.
#![allow(unsafe_code, reason = "maps, protects and frees executable memory")]

use cranelift_jit::{BranchProtection, JITMemoryKind, JITMemoryProvider};
use cranelift_module::{ModuleError, ModuleResult};
use memmap2::{MmapMut, MmapRaw};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The type of a compiled function.
pub type Entry = unsafe extern "C" fn(*const *mut u8);

/// The pages of a slab, one for each bit of a word.
const SLAB_PAGES: usize = 64;

/// The slabs that the codes of a compiler share. They live as long as any code in them.
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<Mutex<Vec<Slab>>>);

impl Memory {
    fn slabs(&self) -> MutexGuard<'_, Vec<Slab>> {
        // No panic under the lock leaves its data half-changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Slab {
    /// The mapping; raw, because others write to its pages and run them.
    map: MmapRaw,
    /// A bit for each free page. A slab with more pages than a word has bits belongs to one code and is never free.
    free: u64,
}

impl Slab {
    /// Takes the first `pages` free pages in a row, and returns the first page; `None` if there is no such run.
    fn take(&mut self, pages: usize) -> Option<usize> {
        let starts = (1..pages).fold(self.free, |starts, n| starts & self.free >> n);
        (starts != 0).then(|| {
            let first = starts.trailing_zeros() as usize;
            self.free &= !mask(first, pages);
            first
        })
    }

    fn is_empty(&self) -> bool {
        self.free == u64::MAX
    }
}

/// A bit for each of `pages` pages from the first on.
fn mask(first: usize, pages: usize) -> u64 {
    (u64::MAX >> (SLAB_PAGES - pages)) << first
}

/// The pages of one code.
#[derive(Debug)]
pub struct Pages {
    memory: Memory,
    start: *mut u8,
    bytes: usize,
}

// SAFETY: the pages are the owner's alone until they are executable, and only read and run from then on.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// Writable pages of at least `bytes` bytes.
    ///
    /// # Errors
    /// The operating system's error.
    fn new(memory: &Memory, bytes: usize) -> io::Result<Pages> {
        let page = region::page::size();
        let pages = bytes.div_ceil(page).max(1);
        let of = |start: *mut u8| Pages { memory: memory.clone(), start, bytes: pages * page };
        if pages > SLAB_PAGES {
            let map = MmapRaw::from(MmapMut::map_anon(pages * page)?);
            let start = map.as_mut_ptr();
            memory.slabs().push(Slab { map, free: 0 });
            return Ok(of(start));
        }
        let mut all = memory.slabs();
        let start = |slab: &mut Slab| slab.take(pages).map(|first| slab.map.as_mut_ptr().wrapping_add(first * page));
        let start = match all.iter_mut().find_map(start) {
            Some(start) => start,
            None => {
                let map = MmapRaw::from(MmapMut::map_anon(SLAB_PAGES * page)?);
                let start = map.as_mut_ptr();
                all.push(Slab { map, free: !mask(0, pages) });
                start
            }
        };
        drop(all);
        let pages = of(start);
        // SAFETY: whole pages of a mapping of ours that nobody else has. On failure they are free again.
        unsafe { region::protect(start, pages.bytes, region::Protection::READ_WRITE) }.map_err(io::Error::other)?;
        Ok(pages)
    }

    /// Bytes of all the pages.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The function at an address in these pages, which were made executable. Calling it is safe under the contract at
    /// the head of [`link`](crate::link), for as long as the pages live.
    ///
    /// # Panics
    /// If the address is not in these pages: a bug of ours.
    pub fn entry(&self, address: *const u8) -> Entry {
        let is_ours = (self.start.addr()..self.start.addr() + self.bytes).contains(&address.addr());
        assert!(is_ours, "a function lies in the pages of its program");
        // SAFETY: the address is not null, and to call what is there is unsafe: the caller's contract.
        unsafe { std::mem::transmute::<*const u8, Entry>(address) }
    }

    /// Makes the pages executable and no longer writable.
    fn protect(&self) -> io::Result<()> {
        // SAFETY: whole pages of a mapping of ours, initialised or zero; nothing writes to them from now on.
        unsafe { wasmtime_internal_jit_icache_coherence::clear_cache(self.start.cast(), self.bytes) }?;
        // SAFETY: as above.
        unsafe { region::protect(self.start, self.bytes, region::Protection::READ_EXECUTE) }
            .map_err(io::Error::other)?;
        wasmtime_internal_jit_icache_coherence::pipeline_flush_mt()
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        let page = region::page::size();
        let mut all = self.memory.slabs();
        let holds = |slab: &Slab| {
            (slab.map.as_ptr().addr()..slab.map.as_ptr().addr() + slab.map.len()).contains(&self.start.addr())
        };
        let Some(at) = all.iter().position(holds) else { unreachable!("pages are of a slab") };
        let slab = &mut all[at];
        let offset = self.start.addr() - slab.map.as_ptr().addr();
        if self.bytes > SLAB_PAGES * page {
            all.swap_remove(at);
            return;
        }
        #[cfg(unix)]
        {
            // SAFETY: nobody uses the pages any more. Where it fails they are kept until they are written again.
            let _ = unsafe { slab.map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, offset, self.bytes) };
        }
        slab.free |= mask(offset / page, self.bytes / page);
        if slab.is_empty() && all.iter().filter(|slab| slab.is_empty()).count() > 1 {
            all.swap_remove(at);
        }
    }
}

/// An allocator in the pages of one program.
pub struct Provider {
    pages: Arc<Pages>,
    used: usize,
}

impl Provider {
    /// An allocator of `bytes` bytes.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn new(memory: &Memory, bytes: usize) -> io::Result<Provider> {
        Ok(Provider { pages: Arc::new(Pages::new(memory, bytes)?), used: 0 })
    }

    /// The pages.
    pub fn pages(&self) -> Arc<Pages> {
        self.pages.clone()
    }
}

impl JITMemoryProvider for Provider {
    fn allocate(&mut self, size: usize, align: u64, kind: JITMemoryKind) -> io::Result<*mut u8> {
        let start = self.used.next_multiple_of(align as usize);
        match kind {
            JITMemoryKind::Executable if start + size <= self.pages.bytes => {
                self.used = start + size;
                Ok(self.pages.start.wrapping_add(start))
            }
            _ => Err(io::Error::other("memory of another kind, or more than the code was said to take")),
        }
    }

    unsafe fn free_memory(&mut self) {
        // The pages are freed with their last owner.
    }

    fn finalize(&mut self, _: BranchProtection) -> ModuleResult<()> {
        self.pages.protect().map_err(|err| ModuleError::Allocation { err })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_free_pages_are_found_first_fit() {
        let map = MmapRaw::from(MmapMut::map_anon(region::page::size()).expect("a page"));
        let mut slab = Slab { map, free: u64::MAX };
        assert!(slab.is_empty());
        assert_eq!([slab.take(1), slab.take(3), slab.take(60)], [Some(0), Some(1), Some(4)]);
        assert_eq!((slab.free, slab.take(1)), (0, None));
        slab.free = 0b1011_0110;
        assert_eq!([slab.take(3), slab.take(2), slab.take(2), slab.take(1)], [None, Some(1), Some(4), Some(7)]);
        assert_eq!(mask(0, 64), u64::MAX);
        assert_eq!(mask(63, 1), 1 << 63);
    }

    #[test]
    fn pages_are_whole_and_freed_ones_are_taken_again() {
        let (page, memory) = (region::page::size(), Memory::default());
        for bytes in [1, page, page + 1, SLAB_PAGES * page, SLAB_PAGES * page + 1] {
            let pages = Pages::new(&memory, bytes).expect("memory");
            assert_eq!(pages.bytes(), bytes.next_multiple_of(page));
            // SAFETY: writable until protected, and nobody else's.
            unsafe { pages.start.write_bytes(0xc3, pages.bytes()) };
            pages.protect().expect("executable");
        }
        assert_eq!(memory.slabs().iter().filter(|slab| slab.is_empty()).count(), 1, "one is kept");
    }
}
