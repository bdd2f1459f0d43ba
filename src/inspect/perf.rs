//! The map by which Linux's `perf` names code that was made at run time.

use crate::error::Error;
use crate::kernel::code::Compiled;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// An open map.
#[derive(Debug)]
pub(crate) struct PerfMap {
    path: String,
    file: Mutex<File>,
}

impl PerfMap {
    /// Opens the map of this process, to add lines to it.
    ///
    /// # Errors
    /// [`Error::PerfMap`] if the map cannot be opened.
    pub fn open() -> Result<PerfMap, Error> {
        let path = format!("/tmp/perf-{}.map", std::process::id());
        match OpenOptions::new().create(true).append(true).open(&path) {
            Ok(file) => Ok(PerfMap { path, file: Mutex::new(file) }),
            Err(e) => Err(Error::PerfMap { path, reason: e.to_string() }),
        }
    }

    /// Adds a line for each function and wide function: address, bytes, name.
    ///
    /// # Errors
    /// [`Error::PerfMap`] if the lines cannot be written.
    pub fn add(&self, compiled: &Compiled) -> Result<(), Error> {
        let mut lines = String::new();
        for (name, (address, bytes)) in compiled.functions() {
            lines += &format!("{address:x} {bytes:x} {name}\n");
        }
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let written = file.write_all(lines.as_bytes());
        written.map_err(|e| Error::PerfMap { path: self.path.clone(), reason: e.to_string() })
    }
}
