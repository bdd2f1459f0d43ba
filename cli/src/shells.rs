//! The completions of shells, and the manual page.

use crate::args::{Args, Shell};
use crate::failure::Failure;
use clap::CommandFactory;
use clap_complete::generate;
use clap_complete::shells::{Bash, Fish, Zsh};
use std::io::Write;

/// The name of the command in a shell.
const NAME: &str = "cranefold";

/// Prints the completions of a shell.
///
/// # Errors
/// [`Failure::Stdout`].
pub fn completions(shell: Shell, out: &mut dyn Write) -> Result<(), Failure> {
    let mut script = vec![];
    match shell {
        Shell::Bash => generate(Bash, &mut Args::command(), NAME, &mut script),
        Shell::Zsh => generate(Zsh, &mut Args::command(), NAME, &mut script),
        Shell::Fish => generate(Fish, &mut Args::command(), NAME, &mut script),
    }
    out.write_all(&script).map_err(Failure::Stdout)
}

/// Prints the manual page: that of the command, then those of its verbs.
///
/// # Errors
/// [`Failure::Stdout`].
pub fn man(out: &mut dyn Write) -> Result<(), Failure> {
    let mut command = Args::command();
    command.build();
    let mut page = vec![];
    clap_mangen::Man::new(command.clone()).render(&mut page).map_err(Failure::Stdout)?;
    for verb in command.get_subcommands() {
        let man = clap_mangen::Man::new(verb.clone());
        writeln!(page, ".SH \"{} {}\"", NAME.to_uppercase(), verb.get_name().to_uppercase())
            .map_err(Failure::Stdout)?;
        man.render_description_section(&mut page).map_err(Failure::Stdout)?;
        man.render_options_section(&mut page).map_err(Failure::Stdout)?;
    }
    out.write_all(&page).map_err(Failure::Stdout)
}
