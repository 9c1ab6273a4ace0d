//! Writes the manual pages to a directory, for `cargo xtask dist`.
//!
//! A program of its own, and not a command of `limiter`: the package holds the pages.

use std::{path::PathBuf, process::ExitCode};

use clap::Parser;
use limiter_userspace::cli::manual;

#[derive(Parser)]
struct Arguments {
    /// Where to write them.
    directory: PathBuf,
}

fn main() -> ExitCode {
    let Arguments { directory } = Arguments::parse();
    match manual::write(&directory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: cannot write to {}: {error}", directory.display());
            ExitCode::FAILURE
        }
    }
}
