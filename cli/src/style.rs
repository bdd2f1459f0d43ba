//! Colours on a terminal, and nowhere else: none where the stream is no terminal, or `NO_COLOR` is set.

use std::env;
use std::io::{IsTerminal, stderr, stdout};

/// The colours of a stream, or none.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    on: bool,
}

impl Style {
    /// The style of the standard output.
    pub fn of_stdout() -> Style {
        Style { on: stdout().is_terminal() && are_wanted() }
    }

    /// The style of the standard error.
    pub fn of_stderr() -> Style {
        Style { on: stderr().is_terminal() && are_wanted() }
    }

    /// A name at the head of a line, padded to so many columns.
    pub fn name(self, name: &str, width: usize) -> String {
        self.of("1", &format!("{name:<width$}"))
    }

    /// The word `error`.
    pub fn error(self) -> String {
        self.of("1;31", "error:")
    }

    /// The word `note`.
    pub fn note(self) -> String {
        self.of("1;33", "note:")
    }

    fn of(self, code: &str, text: &str) -> String {
        if self.on { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_string() }
    }
}

/// Returns true unless `NO_COLOR` says something, or the terminal is `dumb`.
fn are_wanted() -> bool {
    env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && env::var_os("TERM").is_none_or(|term| term != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_on_terminals_alone() {
        let (on, off) = (Style { on: true }, Style { on: false });
        assert_eq!((off.name("run", 5), off.error(), off.note()), ("run  ".into(), "error:".into(), "note:".into()));
        assert_eq!(on.name("run", 5), "\u{1b}[1mrun  \u{1b}[0m");
    }
}
