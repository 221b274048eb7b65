//! `ablate completions`: completions for a shell.

use clap::{Args, Command};

use super::exit::Exit;

/// What `completions` takes.
#[derive(Args)]
pub struct Arguments {
    /// The shell
    shell: clap_complete::Shell,
}

/// Prints the completions of a command line.
pub fn completions(mut command: Command, arguments: &Arguments) -> Result<(), Exit> {
    let out = &mut std::io::stdout();
    clap_complete::generate(arguments.shell, &mut command, "ablate", out);
    Ok(())
}
