//! Helpers that load files and compare the result.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Command,
};

use jiff::Timestamp;
use limiter_common::limit::{BUILT_IN, LimitId};
use limiter_policy::{
    config::{self, Config, Diagnostics},
    policy::{Limit, Override, OverrideId, Policy, Rate},
};

/// A limit for files that test something else.
pub(super) const LIMIT: &str = "limits: {PacketsPerIPAddress: {burst: 5, count: 5, period: 1s}}\n";

/// Loads the first of `files`, which are written to a temporary directory. Strips the directory's
/// name from errors and from the list of read files.
#[expect(clippy::unwrap_used, reason = "a test's own files can be written")]
pub(super) fn load(files: &[(&str, &[u8])]) -> Result<Config, Vec<String>> {
    let directory = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let file = directory.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, content).unwrap();
        // Files of secrets are refused if other users can read them.
        if [".key", ".password"]
            .iter()
            .any(|kind| name.ends_with(kind))
        {
            fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        }
    }
    let prefix = format!("{}/", directory.path().display());
    let lines = |error: Diagnostics| {
        let text = error.to_string().replace(&prefix, "");
        text.lines().map(ToOwned::to_owned).collect()
    };
    let path = directory.path().join(files[0].0);
    let loaded = config::load(&path, Timestamp::UNIX_EPOCH);
    assert_reported_by_the_command(&path, loaded.as_ref().err());
    let loaded = loaded.map(|mut config| {
        for file in &mut config.files {
            *file = file.strip_prefix(directory.path()).unwrap().to_owned();
        }
        config
    });
    loaded.map_err(lines)
}

/// Returns the names in a table of the manual, as an error lists them.
#[expect(clippy::unwrap_used, reason = "the tests' tables exist")]
pub(super) fn fields_of(heading: &str) -> String {
    let tables = config::field_tables();
    let table = tables.iter().find(|table| table.heading == heading);
    let names = table.unwrap().rows.iter().map(|(name, _)| *name);
    names.collect::<Vec<_>>().join(", ")
}

/// Loads a file without errors; returns its policy.
#[track_caller]
#[expect(clippy::unwrap_used, reason = "the tests' files are right")]
pub(super) fn read(yaml: &str) -> Policy {
    load(&[("limiter.yaml", yaml.as_bytes())]).unwrap().policy
}

/// Fails unless `limiter check` prints the library's diagnostics and exits accordingly.
#[track_caller]
#[expect(clippy::unwrap_used, reason = "the binary was built for this test")]
fn assert_reported_by_the_command(path: &Path, expected: Option<&Diagnostics>) {
    let output = Command::new(env!("CARGO_BIN_EXE_limiter"))
        .arg("check")
        .arg(path)
        .output()
        .unwrap();
    // Warnings depend on the machine.
    let reported: String = String::from_utf8_lossy(&output.stderr)
        .split_inclusive('\n')
        .filter(|line| !line.starts_with("warning: "))
        .collect();
    let expected = expected.map_or_else(String::new, |errors| format!("{errors}\n"));
    assert_eq!(reported, expected);
    let code = i32::from(!expected.is_empty());
    assert_eq!(output.status.code(), Some(code), "{reported}");
    assert_eq!(
        output.stdout.is_empty(),
        code == 1,
        "a bad file must print nothing"
    );
}

/// Checks the errors of a configuration file: `line:column: message`, in order. Without any, the
/// file must load.
#[track_caller]
pub(super) fn check(yaml: &str, expected: &[&str]) {
    let found = load(&[("limiter.yaml", yaml.as_bytes())]).err();
    let expected: Vec<String> = expected
        .iter()
        .map(|line| format!("limiter.yaml:{line}"))
        .collect();
    assert_eq!(found.unwrap_or_default(), expected, "\n{yaml}");
}

pub(super) fn rate(burst: u64, count: u64, period_ns: u64) -> Rate {
    Rate {
        burst,
        count,
        period_ns,
    }
}

#[expect(clippy::unwrap_used, reason = "the tests' ids are right")]
pub(super) fn overridden(id: &str, rate: Rate, comment: Option<&str>) -> Override {
    Override {
        id: OverrideId::Prefix(id.parse().unwrap()),
        rate,
        comment: comment.map(ToOwned::to_owned),
    }
}

pub(super) const SECOND: u64 = 1_000_000_000;

/// Returns a built-in limit as it is without configuration.
#[expect(clippy::unwrap_used, reason = "the tests' ids are right")]
pub(super) fn built_in(id: u16) -> Limit {
    let limit = BUILT_IN.iter().find(|limit| limit.id == LimitId(id));
    Limit::of_built_in(limit.unwrap(), None)
}

/// Checks a file's errors, without the file's name.
#[track_caller]
#[expect(clippy::unwrap_used, reason = "the tests' files are wrong")]
pub(super) fn check_positions(text: &str, expected: &[&str]) {
    let errors = load(&[("limiter.yaml", text.as_bytes())]).unwrap_err();
    let errors: Vec<_> = errors
        .iter()
        .map(|line| line.trim_start_matches("limiter.yaml:"))
        .collect();
    assert_eq!(errors, expected, "{text}");
}
