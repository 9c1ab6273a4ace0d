//! The errors, each one line with the remedy.

use std::{io, path::PathBuf};

use crate::toolchain::MissingParts;

/// The reason why there is no object.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine cannot build for BPF.
    #[error("no eBPF toolchain: {0}: run `cargo xtask setup`")]
    NoToolchain(#[from] MissingParts),
    /// A program of the toolchain did not start.
    #[error("cannot run {}: {source}", program.display())]
    Spawn {
        /// The program.
        program: PathBuf,
        /// The error of the system call.
        source: io::Error,
    },
    /// Cargo ran and failed.
    #[error("`cargo {command}` failed for {package}: correct what it reports above")]
    Cargo {
        /// The command: `build` or `clippy`.
        command: &'static str,
        /// The package to build.
        package: &'static str,
    },
    /// A file that was built could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system call.
        source: io::Error,
    },
    /// A built file is no valid object.
    #[error("{} is no ELF object: {source}; is bpf-linker up to date?", path.display())]
    NoObject {
        /// The file.
        path: PathBuf,
        /// The parse error.
        source: object::read::Error,
    },
    /// A file of the output could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the system call.
        source: io::Error,
    },
}
