//! Builds with cargo, and asks it where the programs are.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::command::shown;

/// The targets that cargo built.
#[derive(Debug)]
pub(crate) struct Built(Vec<Artifact>);

/// A message of cargo's about a target.
#[derive(Debug, Deserialize)]
struct Artifact {
    target: Target,
    /// The features of its package.
    features: Vec<String>,
    /// The program's path, if the target is one.
    executable: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
}

impl Built {
    /// Runs `cargo build` with its progress on the terminal; `what` names it in errors.
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

    /// Parses the targets in cargo's messages, one JSON object a line.
    fn of_messages(messages: &str) -> Self {
        let artifacts = messages.lines().map(serde_json::from_str);
        Self(artifacts.filter_map(Result::ok).collect())
    }

    /// Returns whether a built package has the feature.
    pub(crate) fn has_feature(&self, name: &str) -> bool {
        let mut features = self.0.iter().flat_map(|artifact| &artifact.features);
        features.any(|feature| feature == name)
    }

    /// Returns the path of the program with that name.
    pub(crate) fn program(&self, name: &str) -> Result<PathBuf> {
        self.0
            .iter()
            .filter(|artifact| artifact.target.name == name)
            .find_map(|artifact| artifact.executable.clone())
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
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"testbed"},"features":["one","two"],"executable":null}
{"reason":"build-script-executed","out_dir":"/t/out"}
{"reason":"compiler-artifact","target":{"name":"limiter"},"features":[],"executable":"/t/release/limiter"}
{"reason":"compiler-artifact","target":{"name":"engines"},"features":[],"executable":"/t/release/deps/engines-01"}
{"reason":"build-finished","success":true}"#;
        let built = Built::of_messages(messages);
        let found = built.program("limiter").unwrap();
        assert_eq!(found, PathBuf::from("/t/release/limiter"));
        let found = built.program("engines").unwrap();
        assert_eq!(found, PathBuf::from("/t/release/deps/engines-01"));
        assert!(built.program("testbed").is_err());
        assert!(built.program("other").is_err());
        assert!(built.has_feature("two") && !built.has_feature("three"));
        assert!(Built::of_messages("").program("limiter").is_err());
    }
}
