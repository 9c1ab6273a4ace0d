//! How commands print.

use std::{
    fmt::Display,
    io::{self, Write},
    process::ExitCode,
};

/// Says on stderr what went wrong.
pub(super) fn fail(error: &impl Display) -> ExitCode {
    // Nowhere is left to tell it when stderr is gone too.
    let _ = writeln!(io::stderr(), "{error}");
    ExitCode::FAILURE
}

/// Prints a value as one line of JSON.
pub(super) fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    writeln!(io::stdout(), "{}", serde_json::to_string(value)?)?;
    Ok(())
}
