//! The completions of shells, and the manual page.

use crate::args::{Args, Shell};
use crate::failure::Failure;
use clap::{Command, CommandFactory};
use clap_complete::generate;
use clap_complete::shells::{Bash, Fish, Zsh};
use std::io::{self, Write};

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

/// Prints the manual page: that of the command, with a section for each verb.
///
/// # Errors
/// [`Failure::Stdout`].
pub fn man(out: &mut dyn Write) -> Result<(), Failure> {
    let mut command = Args::command();
    command.build();
    let mut page = vec![];
    let man = clap_mangen::Man::new(command.clone());
    let mut render = || {
        man.render_title(&mut page)?;
        man.render_name_section(&mut page)?;
        man.render_synopsis_section(&mut page)?;
        man.render_extra_section(&mut page)
    };
    render().map_err(Failure::Stdout)?;
    verbs(&command, NAME, &mut page).map_err(Failure::Stdout)?;
    out.write_all(&page).map_err(Failure::Stdout)
}

/// Adds the sections of the verbs under a command of this name, and of those under them.
fn verbs(command: &Command, name: &str, page: &mut Vec<u8>) -> io::Result<()> {
    for verb in command.get_subcommands() {
        let name = format!("{name} {}", verb.get_name());
        let man = clap_mangen::Man::new(verb.clone());
        let mut section = vec![];
        man.render_synopsis_section(&mut section)?;
        man.render_description_section(&mut section)?;
        man.render_options_section(&mut section)?;
        man.render_extra_section(&mut section)?;
        // The parts of a verb stand below its name.
        let section = String::from_utf8_lossy(&section).replace(".SH ", ".SS ");
        write!(page, ".SH \"{}\"\n{section}", name.to_uppercase())?;
        verbs(verb, &name, page)?;
    }
    Ok(())
}
