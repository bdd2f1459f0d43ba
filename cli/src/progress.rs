//! A line on a terminal that says what is going on, where that takes more than a second.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The time before the line shows, and between its changes, which tell the seconds.
const WAIT: Duration = Duration::from_secs(1);

/// The line. It shows on a terminal alone, and is gone when this is dropped.
#[derive(Debug)]
pub struct Progress(Option<(Sender<&'static str>, JoinHandle<()>)>);

impl Progress {
    /// No line yet; `stage` is under way.
    pub fn start(stage: &'static str, is_wanted: bool) -> Progress {
        if !is_wanted || !io::stderr().is_terminal() {
            return Progress(None);
        }
        let (sender, stages) = mpsc::channel();
        let show = move || {
            let (mut stage, mut begun, mut shown) = (stage, Instant::now(), false);
            loop {
                match stages.recv_timeout(WAIT) {
                    Ok(next) => (stage, begun) = (next, Instant::now()),
                    Err(RecvTimeoutError::Timeout) => {
                        let _ = write!(io::stderr(), "\r\u{1b}[K{}", line(stage, begun.elapsed()));
                        shown = true;
                    }
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
            if shown {
                let _ = write!(io::stderr(), "\r\u{1b}[K");
            }
        };
        Progress(Some((sender, std::thread::spawn(show))))
    }

    /// Another stage begins.
    pub fn stage(&self, stage: &'static str) {
        if let Some((sender, _)) = &self.0 {
            // The thread that shows it may have ended; then nothing is shown.
            let _ = sender.send(stage);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.0.take() {
            drop(sender);
            let _ = thread.join();
        }
    }
}

fn line(stage: &str, elapsed: Duration) -> String {
    format!("{stage} ... {} s", elapsed.as_secs())
}
