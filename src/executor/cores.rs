//! The cores that threads run on, where the system tells: Linux. Elsewhere nothing is known, and nothing done.
#![allow(unsafe_code, reason = "asks Linux for cores by functions of C")]

/// The cores that a thread may run on.
#[derive(Clone, Copy)]
pub(crate) struct Cores {
    #[cfg(target_os = "linux")]
    mask: libc::cpu_set_t,
    count: usize,
}

#[cfg(target_os = "linux")]
impl Cores {
    /// The cores that this thread may run on; `None` if the system does not tell.
    pub fn allowed() -> Option<Cores> {
        // SAFETY: numbers alone, for which zeros are the empty set.
        let mut mask: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: the mask is as large as is said; thread 0 is this one.
        let failed = unsafe { libc::sched_getaffinity(0, size_of_val(&mask), &mut mask) } != 0;
        // SAFETY: the mask is initialised.
        let count = unsafe { libc::CPU_COUNT(&mask) } as usize;
        (!failed).then_some(Cores { mask, count })
    }

    /// Moves this thread to another of these cores than some, if there is one left, and lets it run on all of them again.
    pub fn move_off(&self, taken: impl Iterator<Item = usize>) {
        let mut others = *self;
        for core in taken.filter(|core| *core < 8 * size_of::<libc::cpu_set_t>()) {
            // SAFETY: the mask is initialised, and has a bit of this number.
            unsafe { libc::CPU_CLR(core, &mut others.mask) };
        }
        // SAFETY: the mask is initialised.
        if unsafe { libc::CPU_COUNT(&others.mask) } > 0 && others.set() {
            self.set();
        }
    }

    /// Lets this thread run on these cores alone; returns true if it does.
    fn set(&self) -> bool {
        // SAFETY: the mask is as large as is said and is only read; thread 0 is this one.
        unsafe { libc::sched_setaffinity(0, size_of_val(&self.mask), &self.mask) == 0 }
    }
}

#[cfg(not(target_os = "linux"))]
impl Cores {
    /// The cores that this thread may run on; `None` if the system does not tell.
    pub fn allowed() -> Option<Cores> {
        None
    }

    /// Moves this thread to another of these cores than some.
    pub fn move_off(&self, _: impl Iterator<Item = usize>) {}
}

impl Cores {
    /// The number of cores.
    pub fn count(&self) -> usize {
        self.count
    }
}

/// The core that this thread runs on; `None` if the system does not tell.
pub(super) fn here() -> Option<usize> {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: it reads a number that the system keeps.
        usize::try_from(unsafe { libc::sched_getcpu() }).ok()
    }
    #[cfg(not(target_os = "linux"))]
    None
}
