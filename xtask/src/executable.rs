//! Building what of the workspace is to be run.

use std::{path::PathBuf, process::Stdio};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::command::{self, shown};

/// Builds a program of the workspace, of the package that the arguments name, with cargo's progress on the terminal, and asks
/// cargo where it is.
pub(crate) fn build(name: &str, arguments: &[&str]) -> Result<PathBuf> {
    let mut cargo = command::cargo("build");
    cargo
        .args(arguments)
        .arg("--message-format=json-render-diagnostics")
        .stderr(Stdio::inherit());
    let output = cargo
        .output()
        .with_context(|| format!("cannot run {}", shown(&cargo)))?;
    if !output.status.success() {
        bail!("`{name}` does not build: correct what cargo reports above");
    }
    find(&String::from_utf8_lossy(&output.stdout), name)
        .with_context(|| format!("cargo built no `{name}`: is it still in that package?"))
}

#[derive(Deserialize)]
struct Artifact {
    executable: Option<PathBuf>,
}

/// The executable of that name among cargo's messages, one JSON object a line.
fn find(messages: &str, name: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Artifact>(line).ok()?.executable)
        .find(|path| path.file_name().is_some_and(|file| file == name))
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
        assert_eq!(find(messages, "limiter"), expected);
        assert_eq!(find(messages, "budget"), None);
    }
}
