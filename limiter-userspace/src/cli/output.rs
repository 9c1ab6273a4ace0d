//! Printing for all commands.

use std::{
    fmt::Display,
    io::{self, Write},
    process::ExitCode,
    sync::OnceLock,
};

use limiter_policy::config::Diagnostics;
use serde::Serialize;

/// Whether the command was given `--json`; set once, before it runs.
static JSON: OnceLock<bool> = OnceLock::new();

/// Says whether errors and warnings are printed as JSON.
pub(super) fn speak_json(json: bool) {
    // Nothing else sets it.
    let _ = JSON.set(json);
}

/// An error or a warning as JSON.
#[derive(Serialize)]
struct Told<'t> {
    level: &'static str,
    message: &'t str,
    /// Where it is, in a configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'t str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u64>,
}

fn tell(told: &Told<'_>) {
    // If stderr is gone too, nobody is left to tell.
    if let Ok(line) = serde_json::to_string(told) {
        let _ = writeln!(io::stderr(), "{line}");
    }
}

/// Prints an error to stderr: a line each, or with `--json` an object each.
pub(super) fn fail(error: &anyhow::Error) -> ExitCode {
    let level = "error";
    let place = |file, line, column, message| Told {
        level,
        message,
        file,
        line,
        column,
    };
    if JSON.get() != Some(&true) {
        let _ = writeln!(io::stderr(), "{error}");
    } else if let Some(errors) = error.downcast_ref::<Diagnostics>() {
        for error in errors.iter() {
            let (line, column) = error.at.map(|at| (at.line, at.column)).unzip();
            tell(&place(Some(&error.file), line, column, &error.message));
        }
    } else {
        for message in error.to_string().lines() {
            tell(&place(None, None, None, message));
        }
    }
    ExitCode::FAILURE
}

/// Prints a warning to stderr, with `--json` as an object.
pub(super) fn warn(warning: &impl Display) {
    if JSON.get() == Some(&true) {
        tell(&Told {
            level: "warning",
            message: &warning.to_string(),
            file: None,
            line: None,
            column: None,
        });
    } else {
        let _ = writeln!(io::stderr(), "warning: {warning}");
    }
}

/// Prints a value as one line of JSON.
pub(super) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    writeln!(io::stdout(), "{}", serde_json::to_string(value)?)?;
    Ok(())
}
