//! Commands that read a stream from stdin.

use std::{
    io::Write as _,
    process::{Child, Command, Output, Stdio},
};

use anyhow::{Context as _, Result};

/// Starts a command with pipes.
pub(crate) fn spawn(command: &mut Command) -> Result<Child> {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    Ok(piped.stderr(Stdio::piped()).spawn()?)
}

/// Runs a command that reads `input`.
pub(crate) fn feed(command: &mut Command, input: &str) -> Result<Output> {
    let mut child = spawn(command)?;
    let mut stdin = child.stdin.take().context("a pipe")?;
    stdin.write_all(input.as_bytes())?;
    drop(stdin);
    Ok(child.wait_with_output()?)
}
