//! The demonstration that `cargo xtask run` shows.

use std::{path::Path, process::ExitCode};

use anyhow::{Result, bail};

/// Shows the limiter at work.
pub(crate) fn run(limiter: &Path) -> Result<ExitCode> {
    bail!(
        "there is no demonstration yet: run `{} run` with a configuration instead",
        limiter.display()
    )
}
