//! `limiter completions`.

use std::io::{self, Write as _};

use clap::{Args, Command};
use clap_complete::{Shell, generate};

#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell to write the script for
    shell: Shell,
}

pub(super) fn completions(args: &CompletionsArgs, command: &mut Command) -> anyhow::Result<()> {
    // Into memory first: the generator panics if it cannot write.
    let mut script = Vec::new();
    generate(args.shell, command, "limiter", &mut script);
    io::stdout().write_all(&script)?;
    Ok(())
}
