//! Building, and asking cargo where it put the programs.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::command::shown;

/// Programs that cargo built, each with the name of its target.
#[derive(Debug)]
pub(crate) struct Built(Vec<(String, PathBuf)>);

impl Built {
    /// Runs `cargo build` with its progress on the terminal; `what` is said not to build.
    pub(crate) fn by(cargo: &mut Command, what: &str) -> Result<Self> {
        cargo
            .arg("--message-format=json-render-diagnostics")
            .stderr(Stdio::inherit());
        let output = cargo
            .output()
            .with_context(|| format!("cannot run {}", shown(cargo)))?;
        if !output.status.success() {
            bail!("{what} does not build: correct what cargo reports above");
        }
        Ok(Self::of_messages(&String::from_utf8_lossy(&output.stdout)))
    }

    /// The executables among cargo's messages, one JSON object a line.
    fn of_messages(messages: &str) -> Self {
        #[derive(Deserialize)]
        struct Artifact {
            target: Target,
            executable: Option<PathBuf>,
        }
        #[derive(Deserialize)]
        struct Target {
            name: String,
        }
        let programs = messages.lines().filter_map(|line| {
            let Artifact { target, executable } = serde_json::from_str(line).ok()?;
            Some((target.name, executable?))
        });
        Self(programs.collect())
    }

    /// The program of that name.
    pub(crate) fn program(&self, name: &str) -> Result<PathBuf> {
        self.0
            .iter()
            .find(|(target, _)| target == name)
            .map(|(_, path)| path.clone())
            .with_context(|| {
                format!("cargo built no `{name}`: is it still a target of its package?")
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_programs_among_messages() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"testbed"},"executable":null}
{"reason":"build-script-executed","out_dir":"/t/out"}
{"reason":"compiler-artifact","target":{"name":"limiter"},"executable":"/t/release/limiter"}
{"reason":"compiler-artifact","target":{"name":"engines"},"executable":"/t/release/deps/engines-01"}
{"reason":"build-finished","success":true}"#;
        let built = Built::of_messages(messages);
        let found = built.program("limiter").unwrap();
        assert_eq!(found, PathBuf::from("/t/release/limiter"));
        let found = built.program("engines").unwrap();
        assert_eq!(found, PathBuf::from("/t/release/deps/engines-01"));
        assert!(built.program("other").is_err());
        assert!(Built::of_messages("").program("limiter").is_err());
    }
}
