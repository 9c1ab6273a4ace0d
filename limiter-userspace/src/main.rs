//! The `limiter` command.

use std::process::ExitCode;

use clap::Parser;
use limiter_userspace::cli::Cli;

fn main() -> ExitCode {
    Cli::parse().execute()
}
