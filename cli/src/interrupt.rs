//! Files that are removed where a signal ends the command: those beside the places that outputs are renamed to.

use std::path::PathBuf;

/// Removes these files if the command is interrupted from now on.
#[cfg(unix)]
pub fn remove_on_signal(files: Vec<PathBuf>) {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;
    if files.is_empty() {
        return;
    }
    // Without signals the files would stay, as they do where the power fails.
    let Ok(mut signals) = Signals::new([SIGHUP, SIGINT, SIGTERM]) else { return };
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            // Those that are not there were not begun, or are renamed already.
            files.iter().for_each(|file| drop(std::fs::remove_file(file)));
            let _ = emulate_default_handler(signal);
        }
    });
}

/// Removes these files if the command is interrupted from now on: not on this system.
#[cfg(not(unix))]
pub fn remove_on_signal(_: Vec<PathBuf>) {}
