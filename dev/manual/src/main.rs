//! Writes the manual pages to a directory, for `cargo xtask dist`.
//!
//! A separate program instead of a command of `limiter`, because the package contains the pages.

mod pages;

use std::{path::PathBuf, process::ExitCode};

use clap::Parser;

#[derive(Parser)]
struct Arguments {
    /// The directory to write them to.
    directory: PathBuf,
}

fn main() -> ExitCode {
    let Arguments { directory } = Arguments::parse();
    match pages::write(&directory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: cannot write to {}: {error}", directory.display());
            ExitCode::FAILURE
        }
    }
}
