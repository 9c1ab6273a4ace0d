//! The manual pages.

use std::{io, path::Path};

use clap::CommandFactory as _;

use super::Cli;

/// Writes `limiter.1` and a page for each subcommand, such as `limiter-run.1`, to a directory.
pub fn write(directory: &Path) -> io::Result<()> {
    clap_mangen::generate_to(Cli::command(), directory)
}
