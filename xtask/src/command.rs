//! Runs programs.

use std::{
    env,
    ffi::OsString,
    path::PathBuf,
    process::{Command, ExitStatus, Stdio},
};

use anyhow::{Context as _, Result, bail};

use crate::workspace;

/// Returns the running cargo, at the workspace's root, without the variables of `cargo run` about
/// xtask: crates that read them would be rebuilt each time.
pub(crate) fn cargo(command: &str) -> Command {
    let mut cargo = Command::new(cargo_file());
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(describes_package) {
            cargo.env_remove(name);
        }
    }
    cargo.current_dir(workspace::root()).arg(command);
    cargo
}

/// Returns the command for another task. The running program's file may have been replaced by a build.
pub(crate) fn xtask(task: &str) -> Command {
    let mut cargo = cargo("run");
    cargo.args(["--quiet", "--package", "xtask", "--", task]);
    cargo
}

pub(crate) fn cargo_file() -> PathBuf {
    env::var_os("CARGO")
        .unwrap_or_else(|| OsString::from("cargo"))
        .into()
}

fn describes_package(variable: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_"]
        .iter()
        .any(|prefix| variable.starts_with(prefix))
}

/// Runs a command, and returns its exit status.
pub(crate) fn status(command: &mut Command) -> Result<ExitStatus> {
    command
        .status()
        .with_context(|| format!("cannot run {}", shown(command)))
}

/// Runs a command that must succeed. Its own output explains a failure.
pub(crate) fn succeed(command: &mut Command) -> Result<()> {
    let status = status(command)?;
    if !status.success() {
        bail!("`{}` failed ({status})", shown(command));
    }
    Ok(())
}

/// Returns the output of a command that must succeed.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {}", shown(command)))?;
    if !output.status.success() {
        bail!("`{}` failed ({})", shown(command), output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the command as typed in a shell.
pub(crate) fn shown(command: &Command) -> String {
    let program = PathBuf::from(command.get_program());
    let name = program.file_name().unwrap_or(command.get_program());
    let mut words = vec![name.to_string_lossy()];
    words.extend(command.get_args().map(|word| word.to_string_lossy()));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_what_one_would_type() {
        let mut command = Command::new("/usr/bin/cargo");
        command.args(["fmt", "--check"]);
        assert_eq!(shown(&command), "cargo fmt --check");
    }

    #[test]
    fn knows_what_describes_a_package() {
        assert!(describes_package("CARGO_PKG_NAME"));
        assert!(describes_package("CARGO_MANIFEST_DIR"));
        assert!(!describes_package("CARGO_TARGET_DIR"));
    }
}
