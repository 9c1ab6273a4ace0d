//! `cargo xtask run`

use std::{
    ffi::OsString,
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Command, ExitCode, Stdio},
};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::{
    command::{self, shown},
    demo, setup,
};

/// Builds the daemon and becomes it; without arguments, shows what it does.
pub(crate) fn run(arguments: &[OsString]) -> Result<ExitCode> {
    setup::ensure()?;
    let limiter = build()?;
    if arguments.is_empty() {
        return demo::run(&limiter);
    }
    let mut command = Command::new(&limiter);
    command.arg("run").args(arguments);
    // Only returns if it fails. Signals, the terminal and the exit code are the daemon's own.
    let error = command.exec();
    Err(error).with_context(|| format!("cannot run {}", limiter.display()))
}

/// Builds the release binary, with cargo's progress on the terminal, and asks cargo where it is.
fn build() -> Result<PathBuf> {
    let mut cargo = command::cargo("build");
    cargo
        .args(["--release", "--package", "limiter-userspace"])
        .arg("--message-format=json-render-diagnostics")
        .stderr(Stdio::inherit());
    let output = cargo
        .output()
        .with_context(|| format!("cannot run {}", shown(&cargo)))?;
    if !output.status.success() {
        bail!("the daemon does not build: correct what cargo reports above");
    }
    executable(&String::from_utf8_lossy(&output.stdout))
        .context("cargo built no `limiter`: is [[bin]] still in limiter-userspace/Cargo.toml?")
}

#[derive(Deserialize)]
struct Artifact {
    executable: Option<PathBuf>,
}

/// The one executable among cargo's messages, one JSON object a line.
fn executable(messages: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Artifact>(line).ok()?.executable)
        .find(|path| path.file_name().is_some_and(|name| name == "limiter"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_binary_among_messages() {
        let messages = r#"{"reason":"compiler-artifact","executable":null}
{"reason":"build-script-executed","out_dir":"/t/out"}
{"reason":"compiler-artifact","executable":"/t/release/limiter"}
{"reason":"build-finished","success":true}"#;
        let expected = Some(PathBuf::from("/t/release/limiter"));
        assert_eq!(executable(messages), expected);
        assert_eq!(executable(""), None);
    }
}
