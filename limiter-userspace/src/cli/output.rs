//! Printing for all commands.

use std::{
    fmt::Display,
    io::{self, Stderr, Stdout, Write},
    process::ExitCode,
    sync::OnceLock,
};

use limiter_policy::{
    config::Diagnostics,
    text::{visible, visible_json},
};
use serde::Serialize;

/// A command's output. Foreign text in it, such as names of interfaces and errors of a store, is escaped on a
/// terminal, so that it has no effect there.
pub(super) struct EscapedOutput<W> {
    to: W,
    shown: fn(&str) -> String,
}

/// Returns the output for a command's result.
pub(super) fn stdout() -> EscapedOutput<Stdout> {
    EscapedOutput {
        to: io::stdout(),
        shown: visible,
    }
}

/// Returns the output for a result in JSON.
pub(super) fn stdout_of_json() -> EscapedOutput<Stdout> {
    EscapedOutput {
        to: io::stdout(),
        shown: visible_json,
    }
}

/// Returns the output for errors.
pub(super) fn stderr() -> EscapedOutput<Stderr> {
    EscapedOutput {
        to: io::stderr(),
        shown: visible,
    }
}

impl<W: Write> Write for EscapedOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A formatted text arrives in pieces, each valid UTF-8 by itself.
        let text = String::from_utf8_lossy(bytes);
        self.to.write_all((self.shown)(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Whether the command was given `--json`; set once, before it runs.
static JSON: OnceLock<bool> = OnceLock::new();

/// Sets whether errors and warnings are printed as JSON.
pub(super) fn speak_json(json: bool) {
    // This is the only setter.
    let _ = JSON.set(json);
}

#[derive(Serialize)]
struct JsonMessage<'t> {
    level: &'static str,
    message: &'t str,
    /// Its position in a configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'t str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u64>,
}

fn write_json(reported: &JsonMessage<'_>) {
    // Ignore errors: without stderr, there is nowhere to report them.
    if let Ok(line) = serde_json::to_string(reported) {
        let _ = writeln!(stderr(), "{}", visible_json(&line));
    }
}

/// Prints an error to stderr: a line each, or with `--json` an object each.
pub(super) fn fail(error: &anyhow::Error) -> ExitCode {
    let level = "error";
    let located = |file, line, column, message| JsonMessage {
        level,
        message,
        file,
        line,
        column,
    };
    if JSON.get() != Some(&true) {
        let _ = writeln!(stderr(), "{error}");
    } else if let Some(errors) = error.downcast_ref::<Diagnostics>() {
        for error in errors.iter() {
            let (line, column) = error.at.map(|at| (at.line, at.column)).unzip();
            write_json(&located(Some(&error.file), line, column, &error.message));
        }
    } else {
        for message in error.to_string().lines() {
            write_json(&located(None, None, None, message));
        }
    }
    ExitCode::FAILURE
}

/// Prints a warning to stderr, with `--json` as an object.
pub(super) fn warn(warning: &impl Display) {
    if JSON.get() == Some(&true) {
        write_json(&JsonMessage {
            level: "warning",
            message: &warning.to_string(),
            file: None,
            line: None,
            column: None,
        });
    } else {
        let _ = writeln!(stderr(), "warning: {warning}");
    }
}

/// Prints a value as one line of JSON.
pub(super) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    writeln!(stdout_of_json(), "{}", serde_json::to_string(value)?)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_say_does_nothing_to_a_terminal() {
        let mut out = EscapedOutput {
            to: Vec::new(),
            shown: visible,
        };
        let name = "b\u{9b}1m\u{202e}ä";
        writeln!(out, "eth\u{1b}[2J\ta {name}").unwrap();
        let printed = String::from_utf8(out.to).unwrap();
        assert_eq!(printed, "eth\\u{1b}[2J\ta b\\u{9b}1m\\u{202e}ä\n");
    }
}
