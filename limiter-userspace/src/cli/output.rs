//! Printing for all commands.

use std::{
    fmt::Display,
    io::{self, Write},
    process::ExitCode,
};

/// Prints an error to stderr.
pub(super) fn fail(error: &impl Display) -> ExitCode {
    // If stderr is gone too, nobody is left to tell.
    let _ = writeln!(io::stderr(), "{error}");
    ExitCode::FAILURE
}

/// Prints a value as one line of JSON.
pub(super) fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    writeln!(io::stdout(), "{}", serde_json::to_string(value)?)?;
    Ok(())
}
