//! `limiter completions`.

use std::io::{self, Write as _};

use clap::{Arg, Args, Command};
use clap_complete::{Shell, generate};

#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell to write the script for
    shell: Shell,
}

pub(super) fn completions(args: &CompletionsArgs, command: Command) -> anyhow::Result<()> {
    // Write to memory first: the generator panics if it cannot write.
    let mut script = Vec::new();
    generate(args.shell, &mut shown(command), "limiter", &mut script);
    io::stdout().write_all(&script)?;
    Ok(())
}

/// Returns a command without its hidden options, which the generator would complete too.
fn shown(command: Command) -> Command {
    let command = if command.get_arguments().any(Arg::is_hide_set) {
        let shown = command.get_arguments().filter(|one| !one.is_hide_set());
        Command::new(command.get_name().to_owned())
            .about(command.get_about().cloned().unwrap_or_default())
            .args(shown.cloned())
            .subcommands(command.get_subcommands().cloned())
    } else {
        command
    };
    command.mut_subcommands(shown)
}
