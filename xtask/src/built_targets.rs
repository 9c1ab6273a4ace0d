//! Builds with cargo, and reads the paths of the programs from cargo's messages.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::command::shown;

/// The kind of a target of integration tests.
const TESTS: &str = "test";

/// The kind of a target of benchmarks.
const BENCHMARK: &str = "bench";

/// The targets that cargo built.
#[derive(Debug)]
pub(crate) struct BuiltTargets(Vec<Artifact>);

/// A message of cargo's about a target.
#[derive(Debug, Deserialize)]
struct Artifact {
    manifest_path: PathBuf,
    target: Target,
    profile: Profile,
    /// The features of its package.
    features: Vec<String>,
    /// The program's path, if the target is a program.
    executable: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct Target {
    kind: Vec<String>,
    name: String,
}

#[derive(Debug, Deserialize)]
struct Profile {
    /// Whether the program runs the target's tests.
    test: bool,
}

/// A program that runs tests.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TestProgram {
    /// The directory of its package.
    pub(crate) directory: PathBuf,
    pub(crate) path: PathBuf,
}

impl TestProgram {
    /// Returns the name of the target: the file's name without cargo's hash.
    pub(crate) fn name(&self) -> String {
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy();
        let name = stem.rsplit_once('-').map(|(name, _)| name.to_owned());
        name.unwrap_or_else(|| stem.into_owned())
    }
}

impl BuiltTargets {
    /// Runs `cargo build` with its progress on the terminal. `product` names the build in errors.
    pub(crate) fn by(cargo: &mut Command, product: &str) -> Result<Self> {
        cargo
            .arg("--message-format=json-render-diagnostics")
            .stderr(Stdio::inherit());
        let output = cargo
            .output()
            .with_context(|| format!("cannot run {}", shown(cargo)))?;
        if !output.status.success() {
            bail!("{product} does not build: correct what cargo reports above");
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

    /// Returns the test programs without benchmarks, in the order of the build.
    pub(crate) fn test_programs(&self) -> Vec<TestProgram> {
        let tests = self
            .0
            .iter()
            .filter(|artifact| artifact.profile.test && artifact.target.kind != [BENCHMARK]);
        let programs = tests.filter_map(|artifact| {
            Some(TestProgram {
                directory: artifact.manifest_path.parent()?.to_owned(),
                path: artifact.executable.clone()?,
            })
        });
        programs.collect()
    }

    /// Returns the path of the program with that name. Unit tests inside a program do not count; integration
    /// tests do.
    pub(crate) fn program(&self, name: &str) -> Result<PathBuf> {
        self.0
            .iter()
            .filter(|artifact| artifact.target.name == name)
            .filter(|artifact| !artifact.profile.test || artifact.target.kind == [TESTS])
            .find_map(|artifact| artifact.executable.clone())
            .with_context(|| {
                format!("cargo built no `{name}`: is it still a target of its package?")
            })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn finds_programs_among_messages() {
        let artifact = |target: &str, test: bool, features: &str, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/w/p/Cargo.toml","target":{target},
                "profile":{{"test":{test}}},"features":{features},"executable":{executable}}}"#
            )
            .replace('\n', "")
        };
        let library = r#"{"kind":["lib"],"name":"testbed"}"#;
        let program = r#"{"kind":["bin"],"name":"limiter"}"#;
        let tests = r#"{"kind":["test"],"name":"engines"}"#;
        let benchmark = r#"{"kind":["bench"],"name":"core"}"#;
        let messages = [
            artifact(library, false, r#"["one","two"]"#, "null"),
            r#"{"reason":"build-script-executed","out_dir":"/t/out"}"#.to_owned(),
            artifact(program, true, "[]", r#""/t/deps/limiter-01""#),
            artifact(program, false, "[]", r#""/t/limiter""#),
            artifact(tests, true, "[]", r#""/t/deps/engines-01""#),
            artifact(benchmark, true, "[]", r#""/t/deps/core-01""#),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ];
        let built = BuiltTargets::of_messages(&messages.join("\n"));
        assert_eq!(built.program("limiter").unwrap(), Path::new("/t/limiter"));
        let engines = Path::new("/t/deps/engines-01");
        assert_eq!(built.program("engines").unwrap(), engines);
        let tests = built.test_programs();
        let paths: Vec<_> = tests.iter().map(|tests| tests.path.as_path()).collect();
        assert_eq!(paths, [Path::new("/t/deps/limiter-01"), engines]);
        assert_eq!(tests[0].directory, Path::new("/w/p"));
        assert!(built.program("testbed").is_err());
        assert!(built.program("other").is_err());
        assert!(built.has_feature("two") && !built.has_feature("three"));
        assert!(BuiltTargets::of_messages("").program("limiter").is_err());
    }
}
